//! What clients do when transactions fail, in the simulated world: what is refused is counted, what was in another's
//! way is tried again, a lost connection ends the run or is made again, and counts add up.

use std::collections::VecDeque;
use std::sync::{Arc, RwLock};

use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_io::sim::World;
use spindle_io::sync::{Latch, timeout};
use spindle_workload::driver::{self, Behaviour, ClientError, Running, Work};
use spindle_workload::{Acknowledged, Client, SessionError, TerminalTimes};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

type Outcome = Result<(), SessionError>;

/// A database that answers as it was told, and after that has no complaints.
struct Scripted {
    env: Arc<dyn Env>,
    seen: Arc<Latch<Seen>>,
    terminal: TerminalTimes,
}

#[derive(Default)]
struct Seen {
    connects: VecDeque<Outcome>,
    attempts: VecDeque<Outcome>,
    rollbacks: VecDeque<Outcome>,
    /// What each transaction has written to temporary files; after that it is not known.
    temporary: VecDeque<u64>,
    rolled_back: u64,
}

impl Scripted {
    /// One without complaints.
    fn content(env: &Arc<dyn Env>, terminal: TerminalTimes) -> Arc<Scripted> {
        Arc::new(Scripted {
            env: Arc::clone(env),
            seen: Arc::default(),
            terminal,
        })
    }
}

fn next(script: &mut VecDeque<Outcome>) -> Outcome {
    script.pop_front().unwrap_or(Ok(()))
}

impl Work for Scripted {
    type Txn = u64;
    type Session = ();

    fn kinds(&self) -> Vec<String> {
        vec!["even".to_owned(), "odd".to_owned()]
    }

    fn connect(&self) -> Outcome {
        next(&mut self.seen.lock().connects)
    }

    fn next(&self, client: &mut Client) -> u64 {
        client.changes += 1;
        client.changes
    }

    fn terminal_times(&self, _: &u64, _: &mut Client) -> TerminalTimes {
        self.terminal
    }

    fn kind(&self, txn: &u64) -> usize {
        (txn % 2) as usize
    }

    fn number(&self, txn: &u64) -> u64 {
        *txn
    }

    fn temporary_bytes(&self, (): &mut ()) -> Option<u64> {
        self.seen.lock().temporary.pop_front()
    }

    async fn attempt(&self, (): &mut (), _: &u64) -> Outcome {
        self.env.sleep(MS).await;
        next(&mut self.seen.lock().attempts)
    }

    async fn rollback(&self, (): &mut ()) -> Outcome {
        let mut seen = self.seen.lock();
        seen.rolled_back += 1;
        next(&mut seen.rollbacks)
    }
}

fn refused() -> Outcome {
    Err(SessionError::Refused("a duplicate".to_owned()))
}

fn lost() -> Outcome {
    Err(SessionError::Lost("the server is gone".to_owned()))
}

/// What became of a run.
struct Ended {
    committed: u64,
    retries: u64,
    deadlocks: u64,
    errors: u64,
    reconnects: u64,
    acknowledged: Vec<Acknowledged>,
    by_kind: Vec<(u64, u64)>,
    temporary: Vec<Option<u64>>,
    latencies: u64,
    rolled_back: u64,
    finished_by_itself: bool,
    first_error: Option<String>,
    result: Result<(), ClientError>,
}

/// Lets clients carry out `transactions` each, for a minute at most.
fn run(clients: usize, transactions: u64, reconnect: bool, seen: Seen) -> Ended {
    let mut world = World::new(5);
    let env: Arc<dyn Env> = world.env();
    let seen = Arc::new(Latch::new(seen));
    let work = Arc::new(Scripted {
        env: Arc::clone(&env),
        seen: Arc::clone(&seen),
        terminal: TerminalTimes::default(),
    });
    let behaviour = Behaviour {
        clients,
        transactions: Some(transactions),
        reconnect,
        ..Behaviour::default()
    };
    let ended = world.run(async move {
        let mut running: Running = driver::start_work(&env, work, behaviour);
        running.measure(true);
        env.sleep(60 * SECOND).await;
        let finished_by_itself = running.is_finished();
        let result = running.stop().await;
        let kinds = running.by_kind();
        Ended {
            committed: running.committed(),
            retries: running.retries(),
            deadlocks: running.deadlocks(),
            errors: running.errors(),
            reconnects: running.reconnects(),
            acknowledged: running.acknowledged(),
            by_kind: kinds
                .iter()
                .map(|kind| (kind.latencies.count(), kind.errors))
                .collect(),
            temporary: kinds.iter().map(|kind| kind.temporary_bytes).collect(),
            latencies: running.latencies().count(),
            rolled_back: seen.lock().rolled_back,
            finished_by_itself,
            first_error: running.first_error(),
            result,
        }
    });
    ended.expect("the world lives to the end")
}

#[test]
fn a_number_of_transactions_ends_by_itself_and_kinds_add_up() {
    let ended = run(3, 5, false, Seen::default());
    assert!(ended.finished_by_itself);
    assert_eq!(ended.result, Ok(()));
    assert_eq!(ended.committed, 15);
    // Numbers 1 to 5 of three clients.
    assert_eq!(ended.by_kind, [(6, 0), (9, 0)]);
    assert_eq!(ended.latencies, 15);
    assert_eq!(ended.acknowledged, [Acknowledged::up_to(5); 3]);
}

#[test]
fn what_is_refused_is_counted_and_the_client_goes_on() {
    let seen = Seen {
        attempts: [Ok(()), refused()].into(),
        ..Seen::default()
    };
    let ended = run(1, 4, false, seen);
    assert_eq!(ended.result, Ok(()));
    assert_eq!((ended.committed, ended.errors, ended.retries), (3, 1, 0));
    assert_eq!(ended.rolled_back, 1);
    assert_eq!(ended.acknowledged, [Acknowledged { last: 4, failed: 1 }]);
    assert_eq!(ended.by_kind, [(1, 1), (2, 0)]);
    assert_eq!(ended.first_error.as_deref(), Some("a duplicate"));
}

#[test]
fn temporary_space_is_known_of_a_kind_when_it_is_known_of_each() {
    // Transactions 1 to 4, of which the second fails: what it has written is no other's.
    let with = |temporary: &[u64]| Seen {
        attempts: [Ok(()), refused()].into(),
        temporary: temporary.iter().copied().collect(),
        ..Seen::default()
    };
    let ended = run(1, 4, false, with(&[1, 20, 300, 4000]));
    assert_eq!(ended.temporary, [Some(4000), Some(301)]);
    let ended = run(1, 4, false, with(&[1, 20, 300]));
    assert_eq!(ended.temporary, [None, Some(301)]);
    let ended = run(1, 4, false, with(&[]));
    assert_eq!(ended.temporary, [None, None]);
}

#[test]
fn what_was_in_anothers_way_is_tried_again() {
    let deadlock = || Err(SessionError::Deadlock("a circle".to_owned()));
    let retry = || Err(SessionError::Retry("busy".to_owned()));
    let seen = Seen {
        attempts: [deadlock(), retry(), Ok(())].into(),
        ..Seen::default()
    };
    let ended = run(1, 2, false, seen);
    assert_eq!(ended.result, Ok(()));
    assert_eq!((ended.committed, ended.errors), (2, 0));
    assert_eq!(
        (ended.retries, ended.deadlocks, ended.rolled_back),
        (2, 1, 2)
    );
    assert_eq!(ended.acknowledged, [Acknowledged::up_to(2)]);
}

#[test]
fn what_meets_others_a_hundred_times_is_given_up_and_the_client_goes_on() {
    let in_the_way = [
        SessionError::Retry("busy".to_owned()),
        SessionError::Deadlock("a circle".to_owned()),
    ];
    for error in in_the_way {
        let deadlocks = match error {
            SessionError::Deadlock(_) => 100,
            _ => 0,
        };
        let seen = Seen {
            attempts: vec![Err(error.clone()); 101].into(),
            ..Seen::default()
        };
        let ended = run(1, 4, false, seen);
        assert_eq!(ended.result, Ok(()));
        assert_eq!((ended.committed, ended.errors), (3, 1));
        assert_eq!((ended.retries, ended.deadlocks), (100, deadlocks));
        assert_eq!(ended.rolled_back, 101);
        assert_eq!(ended.acknowledged, [Acknowledged { last: 4, failed: 1 }]);
        assert_eq!(ended.by_kind, [(2, 0), (1, 1)]);
        assert_eq!(ended.first_error, Some(error.to_string()));
    }
}

#[test]
fn a_lost_connection_ends_the_run() {
    let seen = Seen {
        attempts: [Ok(()), lost()].into(),
        ..Seen::default()
    };
    let ended = run(1, 4, false, seen);
    let reason = ended.result.unwrap_err().to_string();
    assert!(reason.contains("the server is gone"), "{reason}");
    assert!(ended.finished_by_itself);
    assert_eq!(ended.committed, 1);
}

#[test]
fn a_client_that_may_connects_anew_and_goes_on() {
    let seen = Seen {
        connects: [Ok(()), lost(), lost(), Ok(())].into(),
        attempts: [Ok(()), lost()].into(),
        ..Seen::default()
    };
    let ended = run(1, 4, true, seen);
    assert_eq!(ended.result, Ok(()));
    assert_eq!((ended.committed, ended.errors, ended.reconnects), (3, 1, 1));
    assert_eq!(ended.acknowledged, [Acknowledged { last: 4, failed: 1 }]);
}

#[test]
fn a_connection_lost_in_a_rollback_is_made_anew_too() {
    for attempt in [refused(), Err(SessionError::Retry("busy".to_owned()))] {
        let seen = Seen {
            attempts: [attempt].into(),
            rollbacks: [lost()].into(),
            ..Seen::default()
        };
        let ended = run(1, 3, true, seen);
        assert_eq!(ended.result, Ok(()));
        assert_eq!((ended.committed, ended.errors, ended.reconnects), (2, 1, 1));
    }
}

#[test]
fn a_server_that_stays_away_is_given_up() {
    let connects = std::iter::once(Ok(())).chain((0..10_000).map(|_| lost()));
    let seen = Seen {
        connects: connects.collect(),
        attempts: [lost()].into(),
        ..Seen::default()
    };
    let ended = run(1, 3, true, seen);
    assert!(
        ended
            .result
            .unwrap_err()
            .to_string()
            .contains("the server is gone")
    );
    assert!(ended.finished_by_itself);
}

#[test]
fn a_pause_finds_nothing_under_way_and_clients_go_on_after_it() {
    let mut world = World::new(7);
    let env: Arc<dyn Env> = world.env();
    let work = Scripted::content(&env, TerminalTimes::default());
    let behaviour = Behaviour {
        clients: 3,
        ..Behaviour::default()
    };
    let paused = world.run(async move {
        let mut running = driver::start_work(&env, work, behaviour);
        running.measure(true);
        env.sleep(10 * MS + MS / 2).await;
        running.measure(false);
        let (cut, left_open) = (running.committed(), running.left_open().count);
        running.pause().await;
        let paused = running.committed();
        let spent = running.time_spent(env.now());
        env.sleep(SECOND).await;
        let still = running.time_spent(env.now()).since(&spent);
        assert_eq!((running.committed(), still.in_transactions()), (paused, 0));
        running.go_on();
        env.sleep(10 * MS).await;
        let gone_on = running.committed();
        running.pause().await;
        running.stop().await.expect("no client failed");
        [cut, left_open, paused, u64::from(gone_on > paused + 20)]
    });
    // Three were under way when measuring ended; each ended before the pause, and none began.
    assert_eq!(paused, Ok([30, 3, 33, 1]));
}

#[test]
fn a_client_keys_in_before_a_transaction_and_thinks_after_it() {
    let mut world = World::new(5);
    let env: Arc<dyn Env> = world.env();
    let times = TerminalTimes {
        keying_ns: 18 * MS,
        thinking_ns: 12 * MS,
    };
    let work = Scripted::content(&env, times);
    let behaviour = Behaviour {
        clients: 2,
        ..Behaviour::default()
    };
    let counted = world.run(async move {
        let mut running = driver::start_work(&env, work, behaviour);
        running.measure(true);
        // Still keying in, then done for the first time, then keying in for the second.
        env.sleep(18 * MS + MS / 2).await;
        let keyed_in = running.committed();
        env.sleep(MS).await;
        let first = running.committed();
        env.sleep(29 * MS).await;
        let spent = running.time_spent(env.now());
        // Told to stop while it keys in, a client begins nothing more.
        running.stop().await.expect("no client failed");
        let thinking_ms = spent.thinking_ns / MS;
        [keyed_in, first, running.committed(), thinking_ms]
    });
    assert_eq!(counted, Ok([0, 2, 2, 95]));
}

/// Clients that connect until they are let in.
struct Held {
    let_in: Arc<RwLock<bool>>,
}

impl Work for Held {
    type Txn = ();
    type Session = ();

    fn kinds(&self) -> Vec<String> {
        vec!["any".to_owned()]
    }

    fn connect(&self) -> Outcome {
        match *self.let_in.read().unwrap() {
            true => Ok(()),
            false => lost(),
        }
    }

    fn next(&self, _: &mut Client) {}

    fn kind(&self, (): &()) -> usize {
        0
    }

    fn number(&self, (): &()) -> u64 {
        0
    }

    async fn attempt(&self, (): &mut (), (): &()) -> Outcome {
        Ok(())
    }

    async fn rollback(&self, (): &mut ()) -> Outcome {
        Ok(())
    }
}

#[test]
fn who_waits_for_clients_waits_until_all_are_connected() {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let let_in = Arc::new(RwLock::new(false));
    let work = Arc::new(Held {
        let_in: Arc::clone(&let_in),
    });
    let mut held = let_in.write().unwrap();
    let behaviour = Behaviour {
        clients: 3,
        ..Behaviour::default()
    };
    let mut running = driver::start_work(&env, work, behaviour);
    let timed_out = block_on(timeout(&*env, 50 * MS, running.begun(None)));
    assert!(timed_out.is_err(), "no client is connected");
    *held = true;
    drop(held);
    block_on(running.begun(None));
    block_on(running.stop()).unwrap();
}
