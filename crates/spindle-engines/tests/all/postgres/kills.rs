//! The server is killed under load, again and again on the same files: it recovers, everything it has promised is
//! there, and its own checker finds nothing wrong. (This says nothing about flushes: the page cache survives a killed
//! process.) `SPINDLE_KILLS=30 cargo test -p spindle-engines --test all postgres::kills` kills more often than a test
//! has time for.

use std::sync::Arc;
use std::time::Duration;

use rand_xoshiro::rand_core::RngCore;
use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{ServerStop, SqlUnderTest};
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::Acknowledged;

use super::clients;
use super::home::{CLIENTS, Home, is_installed, postgres, request, start, workload};
use crate::progress::wait_for;

const KILLS: u64 = 5;

#[test]
fn kills_under_load_lose_no_commit() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let asked = std::env::var("SPINDLE_KILLS");
    let kills = asked.map_or(KILLS, |kills| kills.parse().unwrap());
    let home = Home::new();
    let request = request(&[("data_checksums", "on")]);
    let directories = home.loaded("made", &request);
    let mut promised = vec![0; CLIENTS];
    for kill in 0..kills {
        let server = start(&request, &directories);
        let under_test = SqlUnderTest::new(Arc::clone(&server), workload(), directories.clone());
        let engine = Arc::new(under_test);
        let env: Arc<dyn Env> = RealEnv::new(kill);
        let mut running = engine.start_clients(&env, clients());
        wait_for(&running, 50);
        std::thread::sleep(Duration::from_millis(seeded_rng(kill, 0).next_u64() % 400));
        home.kill();
        // The clients have lost their connections, which is what is to happen.
        let _ = block_on(running.stop());
        for (sum, more) in promised.iter_mut().zip(running.acknowledged()) {
            *sum += more.last;
        }
        server.stop(ServerStop::Kill).unwrap();

        let recovered = start(&request, &directories);
        let mut connection = recovered.connect().unwrap();
        let acknowledged: Vec<Acknowledged> =
            promised.iter().copied().map(Acknowledged::up_to).collect();
        let found = workload().check(&mut *connection, &acknowledged);
        println!("{}", found.unwrap_or_else(|loss| panic!("{loss}")));
        // What was committed but not heard of counts as promised from now on.
        connection
            .ask("select id, number from ledger", &mut |row| {
                promised[row.int(0)? as usize] = row.int(1)?.unsigned_abs();
                Ok(())
            })
            .unwrap();
        drop(connection);
        recovered.stop(ServerStop::Kill).unwrap();
    }
    let verified = postgres().verify(&request, &directories).unwrap();
    println!("{kills} kills, {promised:?} transactions; {verified}");

    // A block that was changed behind the server's back is found.
    let path = std::fs::read_dir(directories.data.join("cluster/base/5"))
        .unwrap()
        .flatten()
        .max_by_key(|entry| entry.metadata().unwrap().len())
        .unwrap()
        .path();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 8192 * 8192 + 5000;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let found = postgres().verify(&request, &directories).unwrap_err();
    assert!(found.to_string().contains("invalid page"), "{found}");
}
