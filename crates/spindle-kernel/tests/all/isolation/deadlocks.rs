//! Deadlocks: every circle of waits is found, at once, by exactly one of the transactions in it, and nothing else is
//! called a deadlock.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_io::env::seeded_rng;
use spindle_io::sync::Latch;
use spindle_kernel::probe::{self, Probe};
use spindle_kernel::{KernelError, KernelSettings, PlantedFault, Result, Session};

use rand_xoshiro::rand_core::RngCore;

use super::stage::{self, Stage};

/// Longer than anything takes that is no deadlock.
const LOCK_TIMEOUT_NS: u64 = 10_000_000_000;
const ROWS: u64 = 64;

async fn increment(stage: &Stage, session: &mut Session, row: u64) -> Result<()> {
    let increment = |bytes: &mut [u8]| {
        let count = u64::from_le_bytes((&*bytes).try_into().unwrap()) + 1;
        bytes.copy_from_slice(&count.to_le_bytes());
    };
    session.update_row(stage.row(row), 0..8, increment).await
}

/// How the second statement of each client ended, and when.
type Endings = Vec<(Result<()>, u64)>;

/// Each of `clients` locks its own row, then all ask for the row of the next; the last for that of the first when
/// `closed`, else for one of nobody's.
fn chain(clients: u64, closed: bool, settings: &KernelSettings) -> (Endings, u64) {
    let images = stage::loaded(settings, 48, ROWS);
    let (outcome, _) = stage::play(clients, settings, &images, None, move |stage| async move {
        let endings = Arc::new(Latch::new(Vec::new()));
        let mut joins = Vec::new();
        for me in 0..clients {
            let endings = Arc::clone(&endings);
            joins.push(
                stage.spawn(&format!("client{me}"), move |stage| async move {
                    let mut session = stage.instance.session();
                    increment(&stage, &mut session, me).await.unwrap();
                    stage.env.sleep(5_000_000).await;
                    let next = if closed { (me + 1) % clients } else { me + 1 };
                    let ended = increment(&stage, &mut session, next).await;
                    let is_victim = ended.is_err();
                    endings.lock().push((ended, stage.env.now()));
                    if is_victim {
                        session.rollback().await.unwrap();
                    } else {
                        session.commit().await.unwrap();
                    }
                }),
            );
        }
        for join in joins {
            join.ended().await.unwrap();
        }
        let endings = std::mem::take(&mut *endings.lock());
        (endings, stage.instance.statistics().deadlocks)
    });
    outcome.unwrap()
}

/// Says what is wrong with how a circle of `clients` ended.
fn broken_by_one(clients: u64, settings: &KernelSettings) -> std::result::Result<(), String> {
    let (endings, counted) = chain(clients, true, settings);
    let mut victims = 0;
    for (ended, at_ns) in endings {
        if at_ns > LOCK_TIMEOUT_NS {
            return Err(format!("a wait ended only after {at_ns} ns"));
        }
        match ended {
            Ok(()) => {}
            Err(KernelError::Deadlock { transactions, .. }) => {
                victims += 1;
                if transactions.len() as u64 != clients {
                    return Err(format!("a circle of {transactions:?}"));
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    if (victims, counted) == (1, 1) {
        Ok(())
    } else {
        Err(format!("{victims} victims, {counted} deadlocks counted"))
    }
}

#[test]
fn a_circle_is_broken_at_once_by_one_of_those_in_it() {
    let settings = stage::settings(LOCK_TIMEOUT_NS);
    for clients in [2, 3, 7, 20] {
        let hits = probe::hits(Probe::DeadlockBroken);
        assert_eq!(broken_by_one(clients, &settings), Ok(()));
        assert_eq!(probe::hits(Probe::DeadlockBroken), hits + 1);
    }
}

#[test]
fn deadlocks_unseen_end_by_timeout_and_the_check_says_so() {
    let settings = KernelSettings {
        planted: Some(PlantedFault::DeadlockUnseen),
        ..stage::settings(LOCK_TIMEOUT_NS)
    };
    for clients in [2, 3] {
        let said = broken_by_one(clients, &settings).unwrap_err();
        assert!(said.contains("a wait ended only after"), "{said}");
    }
}

#[test]
fn a_long_chain_of_waits_is_no_deadlock() {
    let (endings, counted) = chain(20, false, &stage::settings(LOCK_TIMEOUT_NS));
    assert_eq!((endings.len(), counted), (20, 0));
    assert!(endings.iter().all(|(ended, _)| *ended == Ok(())));
}

/// What clients hold and wait for, as they know it themselves.
#[derive(Default)]
struct Model {
    holders: BTreeMap<u64, usize>,
    waiting: BTreeMap<usize, u64>,
}

impl Model {
    /// The clients from `me` on, each waiting for the next, back to `me`; `None` when they do not lead back.
    fn circle(&self, me: usize) -> Option<Vec<usize>> {
        let mut circle = Vec::new();
        let mut at = me;
        while !circle.contains(&at) {
            circle.push(at);
            at = *self.holders.get(self.waiting.get(&at)?)?;
        }
        (at == me).then_some(circle)
    }
}

/// Clients of one random run, who lock few rows in any order.
async fn random_client(stage: Stage, seed: u64, me: usize, model: Arc<Latch<Model>>) {
    let mut rng = seeded_rng(seed, me as u64);
    let mut session = stage.instance.session();
    for _ in 0..6 {
        let rows: Vec<u64> = (0..4).map(|_| rng.next_u64() % 6).collect();
        loop {
            let done = lock_all(&stage, &mut session, &rows, me, &model).await;
            // It waits for nobody now, so it may leave the model before it has left the rows.
            model.lock().holders.retain(|_, holder| *holder != me);
            match done {
                Ok(()) => break session.commit().await.unwrap(),
                Err(KernelError::Deadlock { .. }) => session.rollback().await.unwrap(),
                Err(error) => panic!("seed {seed}, client {me}: {error}"),
            }
        }
    }
}

async fn lock_all(
    stage: &Stage,
    session: &mut Session,
    rows: &[u64],
    me: usize,
    model: &Latch<Model>,
) -> Result<()> {
    for &row in rows {
        model.lock().waiting.insert(me, row);
        let locked = increment(stage, session, row).await;
        let mut model = model.lock();
        if let Err(KernelError::Deadlock { transactions, .. }) = &locked {
            let circle = model.circle(me).expect("a deadlock is a circle");
            assert_eq!(circle.len(), transactions.len());
        }
        model.waiting.remove(&me);
        locked?;
        model.holders.insert(row, me);
    }
    Ok(())
}

#[test]
fn under_random_load_every_deadlock_is_found_and_is_one() {
    let settings = stage::settings(LOCK_TIMEOUT_NS);
    let images = stage::loaded(&settings, 48, ROWS);
    let mut deadlocks = 0;
    for seed in 0..60 {
        let (outcome, _) = stage::play(seed, &settings, &images, None, move |stage| async move {
            let model = Arc::default();
            let clients: Vec<_> = (0..5)
                .map(|me| {
                    let model = Arc::clone(&model);
                    let client = move |stage| random_client(stage, seed, me, model);
                    stage.spawn(&format!("client{me}"), client)
                })
                .collect();
            for client in clients {
                client.ended().await.unwrap();
            }
            stage.instance.statistics()
        });
        let statistics = outcome.unwrap();
        assert_eq!(statistics.commits, 5 * 6);
        assert_eq!(statistics.rollbacks, statistics.deadlocks);
        deadlocks += statistics.deadlocks;
    }
    println!("{deadlocks} deadlocks in 60 runs");
    assert!(deadlocks > 100);
}
