//! Clients that wait are counted, in the simulated world, where time is exact: one that gets no turn, one that thinks,
//! one whose tries and rollbacks take time, load that stands in a queue when the measured time ends.

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::sim::World;
use spindle_workload::driver::{self, Behaviour, LeftOpen, TimeSpent, Work};
use spindle_workload::{Arrivals, Client, SessionError, Spacing};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const WARM_UP: u64 = SECOND;
const MEASURE: u64 = 2 * SECOND;

/// Clients below `served` have transactions of 1 ms; the others wait for their turn until the end of time. Every tenth
/// transaction is tried twice.
struct Unfair {
    env: Arc<dyn Env>,
    served: usize,
    is_tried_twice: bool,
}

impl Work for Unfair {
    type Txn = (usize, u64);
    /// The number of the last transaction that met another.
    type Session = u64;

    fn connect(&self) -> Result<u64, SessionError> {
        Ok(0)
    }

    fn next(&self, client: &mut Client) -> (usize, u64) {
        client.changes += 1;
        (client.number, client.changes)
    }

    fn number(&self, _: &(usize, u64)) -> u64 {
        0
    }

    async fn attempt(
        &self,
        met: &mut u64,
        &(client, number): &(usize, u64),
    ) -> Result<(), SessionError> {
        if client >= self.served {
            // As a busy handler does: it looks again and again.
            while self.env.now() < WARM_UP + MEASURE + SECOND {
                self.env.sleep(100 * MS).await;
            }
        }
        self.env.sleep(MS).await;
        if self.is_tried_twice && number % 10 == 0 && *met != number {
            *met = number;
            return Err(SessionError::Retry("busy".to_owned()));
        }
        Ok(())
    }

    async fn rollback(&self, _: &mut u64) -> Result<(), SessionError> {
        self.env.sleep(MS).await;
        Ok(())
    }
}

/// What was seen of the measured time.
struct Measured {
    committed: Vec<u64>,
    spent: TimeSpent,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    left_open: LeftOpen,
    not_begun_us: f64,
}

fn measure(behaviour: Behaviour, served: usize, is_tried_twice: bool) -> Measured {
    let mut world = World::new(9);
    let env: Arc<dyn Env> = world.env();
    let work = Arc::new(Unfair {
        env: Arc::clone(&env),
        served,
        is_tried_twice,
    });
    let measured = world.run(async move {
        let mut running = driver::start_work(&env, work, behaviour);
        env.sleep(WARM_UP).await;
        running.measure(true);
        let (before, spent_before) = (running.committed_by_client(), running.time_spent(env.now()));
        env.sleep(MEASURE).await;
        running.measure(false);
        let (after, spent) = (running.committed_by_client(), running.time_spent(env.now()));
        let (times, delays) = (running.times(), running.delay_times());
        let left_open = running.left_open();
        running.stop().await.unwrap();
        assert_eq!(running.left_open(), left_open, "told once");
        Measured {
            committed: after
                .iter()
                .zip(&before)
                .map(|(now, then)| now - then)
                .collect(),
            spent: spent.since(&spent_before),
            p50_us: times.percentile_us(50.0),
            p99_us: times.percentile_us(99.0),
            max_us: times.max_us(),
            left_open,
            not_begun_us: delays.max_us(),
        }
    });
    measured.expect("the world lives to the end")
}

fn clients(clients: usize) -> Behaviour {
    Behaviour {
        clients,
        ..Behaviour::default()
    }
}

fn assert_close(actual: f64, expected: f64) {
    let off = (actual - expected).abs();
    assert!(off <= 0.002 * expected, "{actual} is not {expected}");
}

#[test]
fn three_clients_without_a_turn_count_in_mean_and_percentiles() {
    let it = measure(clients(4), 1, false);
    assert_eq!(it.committed[1..], [0, 0, 0]);
    assert!(
        (1_999..=2_001).contains(&it.committed[0]),
        "{:?}",
        it.committed
    );
    // All four are accounted for, to the last nanosecond.
    assert_eq!(
        it.spent.in_transactions() + it.spent.between_ns,
        4 * MEASURE
    );
    let mean_us = it.spent.in_transactions() as f64 / 1e3 / it.committed[0] as f64;
    assert_close(mean_us, 4_000.0);
    assert_close(it.p50_us, 1_000.0);
    // They have waited since before the measured time began, and are at least so old.
    assert_close(it.max_us, (WARM_UP + MEASURE) as f64 / 1e3);
    assert_eq!(it.left_open.count, 4);
    assert_eq!(it.left_open.longest_ns, WARM_UP + MEASURE);
}

#[test]
fn where_the_served_end_few_the_percentiles_show_it() {
    // Served once in half a second: 3 of 7 have not ended.
    let slow = Behaviour {
        think_time_ns: 499 * MS,
        ..clients(4)
    };
    let it = measure(slow, 1, false);
    assert_eq!(it.committed.iter().sum::<u64>(), 4);
    assert_close(it.p99_us, (WARM_UP + MEASURE) as f64 / 1e3);
    assert_eq!(it.left_open.count, 3);
}

#[test]
fn tries_and_rollbacks_are_in_the_time_and_thinking_is_not() {
    let thinking = Behaviour {
        think_time_ns: 3 * MS,
        ..clients(2)
    };
    let it = measure(thinking, 2, true);
    let all: u64 = it.committed.iter().sum();
    // Of ten transactions nine take 1 ms, one takes 3 ms.
    assert_close(
        it.spent.in_transactions() as f64 / all as f64,
        1.2 * MS as f64,
    );
    assert_close(it.spent.thinking_ns as f64 / all as f64, 3.0 * MS as f64);
    assert_close(it.max_us, 3_000.0);
    assert_eq!(
        it.spent.in_transactions() + it.spent.thinking_ns + it.spent.between_ns,
        2 * MEASURE
    );
}

#[test]
fn what_is_due_and_has_not_begun_counts_from_when_it_was_due() {
    let too_much = Behaviour {
        arrivals: Some(Arrivals {
            rate_per_s: 2_000.0,
            spacing: Spacing::Even,
        }),
        ..clients(1)
    };
    let it = measure(too_much, 1, false);
    // One of two is served. At 1 s 1,000 wait, at 3 s 3,000: half a second to one and a half.
    assert_close(it.not_begun_us, 1_500_000.0);
    assert_close(it.max_us, 1_500_000.0);
    assert_close(it.spent.queued_ns as f64, 2_000.0 * MEASURE as f64);
    assert_eq!(it.spent.idle_ns, 0);
    let little = Behaviour {
        arrivals: Some(Arrivals {
            rate_per_s: 100.0,
            spacing: Spacing::Even,
        }),
        ..clients(2)
    };
    let it = measure(little, 2, false);
    assert_eq!(it.spent.queued_ns, 0);
    assert_close(it.spent.in_transactions() as f64, 0.1 * MEASURE as f64);
    assert_close(it.spent.idle_ns as f64, 1.9 * MEASURE as f64);
}
