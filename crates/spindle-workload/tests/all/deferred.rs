//! Transactions that clients put off, in the simulated world, where time is exact: their clients go on at once, each is
//! carried out once and in order, and the clients' time adds up without them.

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::sim::World;
use spindle_io::sync::Latch;
use spindle_workload::driver::{self, Behaviour, Running, Work, deferring};
use spindle_workload::{Client, SessionError};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// Every tenth transaction of a client is put off.
const PUT_OFF: usize = 1;

/// Transactions of 1 ms; those that are put off take `deferred_ns`.
struct Office {
    env: Arc<dyn Env>,
    deferred_ns: u64,
    /// Client and number of those that were put off, as they were carried out.
    done: Arc<Latch<Vec<(usize, u64)>>>,
}

#[derive(Clone, Copy)]
struct Paper {
    client: usize,
    number: u64,
}

impl Work for Office {
    type Txn = Paper;
    type Session = ();

    fn kinds(&self) -> Vec<String> {
        vec!["at once".to_owned(), "put off".to_owned()]
    }

    fn connect(&self) -> Result<(), SessionError> {
        Ok(())
    }

    fn next(&self, client: &mut Client) -> Paper {
        client.changes += 1;
        Paper {
            client: client.number,
            number: client.changes,
        }
    }

    fn kind(&self, paper: &Paper) -> usize {
        usize::from(paper.number.is_multiple_of(10))
    }

    fn is_deferred(&self, kind: usize) -> bool {
        kind == PUT_OFF
    }

    fn number(&self, _: &Paper) -> u64 {
        0
    }

    async fn attempt(&self, (): &mut (), paper: &Paper) -> Result<(), SessionError> {
        if self.kind(paper) != PUT_OFF {
            self.env.sleep(MS).await;
            return Ok(());
        }
        self.env.sleep(self.deferred_ns).await;
        self.done.lock().push((paper.client, paper.number));
        Ok(())
    }

    async fn rollback(&self, (): &mut ()) -> Result<(), SessionError> {
        Ok(())
    }
}

/// Has clients work, and gives what `look` sees of them; afterwards, what was put off and carried out.
fn at_work<T: Send + 'static>(
    behaviour: Behaviour,
    deferred_ns: u64,
    seed: u64,
    look: impl AsyncFnOnce(&mut Running, &dyn Env) -> T + Send + 'static,
) -> (T, Vec<(usize, u64)>) {
    let mut world = World::new(seed);
    let env: Arc<dyn Env> = world.env();
    let done = Arc::new(Latch::new(Vec::new()));
    let work = Arc::new(Office {
        env: Arc::clone(&env),
        deferred_ns,
        done: Arc::clone(&done),
    });
    let seen = world.run(async move {
        let mut running = driver::start_work(&env, work, behaviour);
        let seen = look(&mut running, &*env).await;
        running.stop().await.unwrap();
        seen
    });
    let done = std::mem::take(&mut *done.lock());
    (seen.expect("the world lives to the end"), done)
}

fn clients(clients: usize) -> Behaviour {
    Behaviour {
        clients,
        ..Behaviour::default()
    }
}

#[test]
fn clients_go_on_and_their_time_adds_up() {
    // Twenty clients put off some 2,200 a second, and two processes can carry out 4,000.
    let (seen, _) = at_work(clients(20), MS / 2, 1, async |running, env| {
        env.sleep(SECOND).await;
        running.measure(true);
        let before = (running.committed_by_client(), running.time_spent(env.now()));
        env.sleep(SECOND).await;
        running.measure(false);
        let after = (running.committed_by_client(), running.time_spent(env.now()));
        let ended: u64 = after.0.iter().sum::<u64>() - before.0.iter().sum::<u64>();
        let spent = after.1.since(&before.1);
        (
            ended,
            after.0.len(),
            spent,
            running.by_kind(),
            running.deferred().unwrap(),
        )
    });
    let (ended, records, spent, kinds, deferred) = seen;
    assert_eq!(records, 20, "clients alone are told of");
    assert!((22_000..=22_400).contains(&ended), "{ended}");
    let of_clients = spent.in_transactions() - spent.deferred_ns;
    assert!(of_clients.abs_diff(20 * SECOND) < 20 * MS, "{spent:?}");
    assert_eq!(spent.deferred_ns, spent.in_transactions_ns[PUT_OFF]);
    assert_eq!(spent.idle_ns, 0, "what the processes do is left out");
    let at_once = &kinds[0].latencies;
    assert!(
        (at_once.max_us() - 1000.0).abs() < 10.0,
        "nobody waits for what is put off"
    );
    assert!((kinds[PUT_OFF].latencies.max_us() - 500.0).abs() < 10.0);
    assert_eq!(deferred.completed.count(), kinds[PUT_OFF].latencies.count());
    assert!(
        deferred.completed.max_us() > 4_000.0,
        "they come in crowds, and stand in a queue"
    );
    assert_eq!(
        kinds.iter().map(|kind| kind.latencies.count()).sum::<u64>(),
        ended
    );
}

#[test]
fn what_is_too_much_is_told() {
    // One process can carry out 100 a second, and ten clients put off some 1,100.
    let (deferred, done) = at_work(clients(10), 10 * MS, 2, async |running, env| {
        running.measure(true);
        env.sleep(SECOND).await;
        running.measure(false);
        running.deferred().unwrap()
    });
    assert!(
        (98..=101).contains(&deferred.completed.count()),
        "{}",
        deferred.completed.count()
    );
    assert!(
        (980..=1_020).contains(&deferred.waiting),
        "{}",
        deferred.waiting
    );
    assert!(done.len() < 105, "what still waits at the end is given up");
}

#[test]
fn each_is_carried_out_once_and_a_clients_own_in_order() {
    for seed in 0..20 {
        let counted = Behaviour {
            transactions: Some(40),
            ..clients(7)
        };
        let deferred_ns = [MS / 10, 3 * MS, 50 * MS][seed as usize % 3];
        let (committed, done) = at_work(counted, deferred_ns, seed, async |running, env| {
            while !running.is_finished() {
                env.sleep(MS).await;
            }
            running.committed_by_client()
        });
        assert_eq!(committed, [40; 7], "as many as each began");
        assert_eq!(done.len(), 28);
        for client in 0..7 {
            let own = done.iter().filter(|(of, _)| *of == client);
            let numbers: Vec<u64> = own.map(|(_, number)| *number).collect();
            assert_eq!(numbers, [10, 20, 30, 40], "one process carries them out");
        }
    }
}

#[test]
fn all_pause_and_go_on() {
    // Processes that are idle when they are asked, and such that have much to do.
    for deferred_ns in [MS / 10, 20 * MS] {
        let (seen, _) = at_work(clients(12), deferred_ns, 3, async |running, env| {
            env.sleep(SECOND / 2 + MS / 2).await;
            running.pause().await;
            let paused = running.committed();
            env.sleep(SECOND).await;
            let still = running.committed();
            running.go_on();
            env.sleep(SECOND / 2).await;
            (paused, still, running.committed())
        });
        assert_eq!(seen.0, seen.1, "nothing is under way");
        assert!(seen.2 > seen.1 + 5_000, "{seen:?}");
    }
}

#[test]
fn one_process_serves_ten_clients() {
    assert_eq!([1, 10, 11, 1_000].map(deferring), [1, 1, 2, 100]);
}
