//! PostgreSQL as a database under test, with the server that is installed: made, loaded, worked on, killed, put back.
//! Where there is none, each test says so and does nothing.

mod client;
mod errors;
mod foreign;
mod hindrances;
pub mod home;
mod kept;
mod kills;
mod prepared;
mod survey;
mod template;

use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{ServerStop, SqlUnderTest};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::{GoldenTree, TreeImage, Verify};
use spindle_workload::driver::Behaviour;

use crate::progress::wait_for;
use home::{CLIENTS, Home, is_installed, postgres, request, start, workload};

const PATIENCE: Duration = Duration::from_secs(60);

fn clients() -> Behaviour {
    Behaviour {
        clients: CLIENTS,
        ..Behaviour::default()
    }
}

#[test]
fn clients_work_on_a_loaded_database_and_nothing_is_lost() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[("data_checksums", "on")]);
    let directories = home.loaded("made", &request);
    // An image lies elsewhere, and is put back after a trial.
    let golden = GoldenTree::seal(directories, &Arc::default()).unwrap();
    let image = TreeImage::provision(&golden, home.directories("image")).unwrap();
    for round in 0..2 {
        let server = start(&request, image.directories());
        let under_test = SqlUnderTest::new(server, workload(), image.directories().clone());
        let engine = Arc::new(under_test);
        let env: Arc<dyn Env> = RealEnv::new(round);
        let counts = || engine.counters().counts().expect("it tells");
        let before = (counts(), engine.counters().waits());
        let mut running = engine.start_clients(&env, clients());
        wait_for(&running, 500);
        assert_eq!(
            engine.counters().session_threads().len(),
            CLIENTS,
            "a process for each client"
        );
        block_on(running.stop()).unwrap();
        let found = block_on(engine.check(running.acknowledged()));
        println!("{}", found.unwrap_or_else(|loss| panic!("{loss}")));
        // More than was promised is missing, and is found to be.
        let mut too_many = running.acknowledged();
        too_many[0].last += 1_000_000;
        assert!(block_on(engine.check(too_many)).is_err());

        // The server's own processes report once a second.
        let began = Instant::now();
        while counts().redo.write_bytes == before.0.redo.write_bytes {
            assert!(began.elapsed() < PATIENCE, "no redo was counted");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(counts().data.read_bytes > before.0.data.read_bytes);
        let names = |waits: &[spindle_engines::engine::EngineWait]| -> Vec<String> {
            waits.iter().map(|wait| wait.event.to_string()).collect()
        };
        assert_eq!(names(&engine.counters().waits()), names(&before.1));
        assert_eq!(names(&engine.counters().session_waits()), names(&before.1));
        let segments = engine.counters().segments();
        assert!(segments.iter().any(|segment| segment.name == "ledger_pkey"));
        assert!(segments.iter().any(|segment| segment.bytes > 4 << 20));
        assert_eq!(engine.counters().failure(), None);
        block_on(engine.flush()).unwrap();
        block_on(engine.stop()).unwrap();
        assert_eq!(home.processes(), []);
        image.restore(Verify::Changed).unwrap();
    }
    let verified = postgres().verify(&request, image.directories()).unwrap();
    assert!(verified.contains("amcheck"), "{verified}");
    assert!(verified.contains("pg_checksums"), "{verified}");
}

#[test]
fn files_lie_where_their_kind_belongs() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let directories = home.loaded("made", &request);
    let bytes_in = |path: &std::path::Path| -> u64 {
        let mut directories = vec![path.to_path_buf()];
        let mut bytes = 0;
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => directories.push(entry.path()),
                    kind if kind.is_file() => bytes += entry.metadata().unwrap().len(),
                    _ => {}
                }
            }
        }
        bytes
    };
    assert!(bytes_in(&directories.data) > 4 << 20);
    assert!(bytes_in(&directories.index) > 8192);
    assert!(bytes_in(&directories.redo) >= 16 << 20);
    assert_eq!(bytes_in(&directories.undo), 0);
    let server = start(&request, &directories);
    let mut connection = server.connect().unwrap();
    // Loading has left nothing to be done to the rows when they are first read.
    let pages = "select sum(relpages), sum(relallvisible) from pg_class \
                 where relkind = 'r' and relnamespace = 'public'::regnamespace";
    connection
        .ask(pages, &mut |row| {
            assert!(row.int(0)? > 500);
            assert_eq!(row.int(0)?, row.int(1)?, "pages, and those visible to all");
            Ok(())
        })
        .unwrap();
    connection
        .run("create temporary table t as select generate_series(1, 100000) n")
        .unwrap();
    assert!(bytes_in(&directories.temp) > 1 << 20);
    drop(connection);
    server.stop(ServerStop::Clean).unwrap();
    assert!(server.failure().is_some());
}

#[test]
fn what_waits_is_seen_by_its_name() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let directories = home.loaded("made", &request);
    let server = start(&request, &directories);
    let [mut first, mut second] = [server.connect().unwrap(), server.connect().unwrap()];
    let update = "update ledger set number = number where id = 0";
    first.begin().unwrap();
    first.run(update).unwrap();
    let seen = || {
        let waits = server.session_waits();
        let found = waits
            .iter()
            .find(|wait| wait.event == "Lock:transactionid (enq: TX - row lock contention)");
        found.map_or((0, 0), |wait| (wait.count, wait.total_ns))
    };
    assert_eq!(seen(), (0, 0));
    std::thread::scope(|scope| {
        scope.spawn(|| second.run(update).unwrap());
        let began = Instant::now();
        while seen().0 < 3 {
            assert!(began.elapsed() < PATIENCE, "the wait was not seen");
            std::thread::sleep(Duration::from_millis(20));
        }
        first.commit().unwrap();
    });
    let (count, total_ns) = seen();
    assert!(total_ns >= count * 100_000_000);
    server.stop(ServerStop::Kill).unwrap();
}
