//! `cargo bench -p spindle-workload --bench schedule`: a thousand users with a think time, and a thousand clients of an
//! open loop, on a database that costs nothing. How late their transactions begin is the driver's own doing. Goal: the
//! 99th percentile of begin minus intended begin is below 5 ms on two processors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_io::sync::Latch;
use spindle_stats::LatencyHistogram;
use spindle_workload::driver::{self, Behaviour, Work};
use spindle_workload::{Arrivals, Client, SessionError, Spacing};

const USERS: usize = 1000;
const THINK_TIME_NS: u64 = 200_000_000;
const SECONDS: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;
const GOAL_MS: f64 = 5.0;

/// Transactions of nothing. Each client knows when its next one should begin: a think time after the last ended.
struct Nothing {
    env: Arc<dyn Env>,
    measuring: Arc<AtomicBool>,
    late: Arc<Latch<LatencyHistogram>>,
}

/// When the next transaction should begin; 0 before the first.
type Due = u64;

impl Work for Nothing {
    type Txn = ();
    type Session = Due;

    fn connect(&self) -> Result<Due, SessionError> {
        Ok(0)
    }

    fn next(&self, _: &mut Client) {}

    fn number(&self, (): &()) -> u64 {
        0
    }

    async fn attempt(&self, due_ns: &mut Due, (): &()) -> Result<(), SessionError> {
        let now_ns = self.env.now();
        if *due_ns > 0 && self.measuring.load(Ordering::Relaxed) {
            self.late.lock().record_ns(now_ns.saturating_sub(*due_ns));
        }
        *due_ns = now_ns + THINK_TIME_NS;
        Ok(())
    }

    async fn rollback(&self, _: &mut Due) -> Result<(), SessionError> {
        Ok(())
    }
}

fn main() {
    let users = Behaviour {
        clients: USERS,
        think_time_ns: THINK_TIME_NS,
        ..Behaviour::default()
    };
    let open_loop = Behaviour {
        clients: USERS,
        arrivals: Some(Arrivals {
            rate_per_s: USERS as f64 * 1e9 / THINK_TIME_NS as f64,
            spacing: Spacing::Poisson,
        }),
        ..Behaviour::default()
    };
    for (name, behaviour) in [("think time", users), ("open loop", open_loop)] {
        let late = run(behaviour);
        let p99_ms = late.percentile_us(99.0) / 1e3;
        let verdict = if p99_ms < GOAL_MS { "met" } else { "missed" };
        println!(
            "{USERS} users, {name}: {} transactions began late by {:.3} ms in the median, {p99_ms:.3} ms at the 99th percentile \
             (goal: below {GOAL_MS} ms, {verdict})",
            late.count(),
            late.percentile_us(50.0) / 1e3,
        );
    }
}

/// How late transactions began.
fn run(behaviour: Behaviour) -> LatencyHistogram {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let (measuring, late) = (Arc::new(AtomicBool::new(false)), Arc::new(Latch::default()));
    let work = Arc::new(Nothing {
        env: Arc::clone(&env),
        measuring: Arc::clone(&measuring),
        late: Arc::clone(&late),
    });
    let mut running = driver::start_work(&env, work, behaviour);
    block_on(env.sleep(2 * SECOND_NS));
    running.measure(true);
    measuring.store(true, Ordering::Relaxed);
    block_on(env.sleep(SECONDS * SECOND_NS));
    measuring.store(false, Ordering::Relaxed);
    running.measure(false);
    block_on(running.stop()).expect("nothing fails");
    match behaviour.arrivals {
        Some(_) => running.delays(),
        None => late.lock().clone(),
    }
}
