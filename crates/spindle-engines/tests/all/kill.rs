//! `kill -9` of the running database at random moments, again and again on the same files: it recovers, and everything
//! it has promised is there. (This says nothing about flushes: the page cache survives a killed process. The simulated
//! world's crashes do.)

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::kernel::{Shutdown, WriteSync};
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_text::word::Word;
use spindle_workload::{Acknowledged, Client, ClientSession, SessionError, TableShare, driver};

use crate::small;

const KILLS: u64 = 50;
const CHILD: &str = "SPINDLE_KILL_TEST_DIRECTORY";

/// The process that is killed: every client says which of its transactions has been promised, on standard output.
#[test]
#[ignore = "a process that another test starts and kills"]
fn the_process_that_is_killed() {
    let Ok(directory) = std::env::var(CHILD) else {
        return;
    };
    let seed: u64 = std::env::var("SPINDLE_KILL_TEST_SEED")
        .unwrap()
        .parse()
        .unwrap();
    let env: Arc<dyn Env> = RealEnv::new(seed);
    let files = small::files(directory.as_ref());
    // Methods take turns.
    let (_, method) = Method::ALLOWED[seed as usize % Method::ALLOWED.len()];
    let io = small::path(Caching::Buffered, method);
    let sync = if seed.is_multiple_of(2) {
        WriteSync::Dsync
    } else {
        WriteSync::Checkpoint
    };
    let engine = block_on(small::start(&env, &files, io, sync));
    std::thread::scope(|scope| {
        for number in 0..small::CLIENTS {
            let (engine, env) = (&engine, &env);
            scope.spawn(move || {
                let rng = env.rng(number as u64);
                let mut client = Client {
                    number,
                    clients: small::CLIENTS,
                    changes: 0,
                    rng,
                };
                let mut session = engine.connector()();
                loop {
                    let txn = small::workload().next(&mut client, &engine.tables());
                    let done = block_on(async {
                        for operation in &txn.operations {
                            session.execute(operation).await?;
                        }
                        session.commit().await
                    });
                    match done {
                        Err(SessionError::Retry(_) | SessionError::Deadlock(_)) => {
                            block_on(session.rollback()).unwrap();
                        }
                        Err(error) => panic!("{error}"),
                        Ok(()) if txn.number > 0 => {
                            writeln!(std::io::stdout(), "promised {number}").unwrap()
                        }
                        Ok(()) => {}
                    }
                }
            });
        }
    });
}

#[test]
fn fifty_kills_lose_nothing_that_was_promised() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env: Arc<dyn Env> = RealEnv::new(1);
    let files = block_on(small::load(&env, directory.path()));
    let mut promised = vec![0; small::CLIENTS];
    let mut recovered_redo = 0;
    for kill in 0..KILLS {
        use rand_xoshiro::rand_core::RngCore;
        let wait_ms = 20 + seeded_rng(kill, 0).next_u64() % 200;
        for (client, count) in run_and_kill(directory.path(), kill, wait_ms) {
            promised[client] += count;
        }
        let (found, redo_bytes) = block_on(check(&env, &files, promised.clone()));
        recovered_redo += redo_bytes;
        // What was committed but not heard of counts as promised from now on.
        promised = found;
    }
    assert!(
        recovered_redo > 0,
        "no kill left anything to recover: the test shows nothing"
    );
    assert!(
        promised.iter().sum::<u64>() > KILLS,
        "{promised:?} transactions are too few to show anything"
    );
    println!(
        "{KILLS} kills, {promised:?} transactions, {recovered_redo} bytes of redo rolled forward"
    );
}

/// Runs the database for a while, kills it, and returns how many promises each client heard.
fn run_and_kill(directory: &std::path::Path, seed: u64, wait_ms: u64) -> Vec<(usize, u64)> {
    let mut child = spindle_harness::child!(the_process_that_is_killed)
        .env(CHILD, directory)
        .env("SPINDLE_KILL_TEST_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut counts = vec![0; small::CLIENTS];
    let mut count = |line: &str| {
        if let Some(client) = line
            .trim()
            .rsplit("promised ")
            .next()
            .and_then(|number| number.parse::<usize>().ok())
        {
            counts[client] += 1;
        }
    };
    // The clock starts when the database is open: with the first promise.
    let mut line = String::new();
    while !line.contains("promised") {
        line.clear();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "the database never opened"
        );
    }
    count(&line);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(wait_ms));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        for line in output.lines().map_while(Result::ok) {
            count(&line);
        }
        killer.join().unwrap();
    });
    counts.into_iter().enumerate().collect()
}

/// Recovers the database, checks it, and returns the transactions each client turns out to have.
async fn check(
    env: &Arc<dyn Env>,
    files: &spindle_layout::DatabaseFiles,
    promised: Vec<u64>,
) -> (Vec<u64>, u64) {
    let engine = small::start(
        env,
        files,
        small::path(Caching::Buffered, Method::Sync),
        WriteSync::Dsync,
    )
    .await;
    let redo_bytes = engine.recovery().redo_bytes;
    let mut session = engine.connector()();
    let workload = small::workload();
    let all = promised.iter().copied().map(Acknowledged::up_to).collect();
    driver::check(&mut session, &*workload, all)
        .await
        .unwrap_or_else(|loss| panic!("{loss}"));
    let mut found = promised;
    session
        .visit(1, TableShare::WHOLE, &mut |row| {
            let number = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().unwrap());
            found[number(0) as usize] = number(8);
        })
        .await
        .unwrap();
    drop(session);
    Arc::into_inner(engine)
        .unwrap()
        .stop(Shutdown::Abort)
        .await
        .unwrap();
    (found, redo_bytes)
}
