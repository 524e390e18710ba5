//! Load at a fixed rate, in the simulated world, where time is exact: intended begins are held, a stall is charged with
//! all that arrived meanwhile, a driver that leaves that out is caught, and a backlog is counted.

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::sim::World;
use spindle_io::sync::Latch;
use spindle_stats::LatencyHistogram;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::{
    Acknowledged, Arrivals, Checker, Client, ClientSession, LoadedTable, Loader, RowOperation,
    Schedule, SessionError, Spacing, TableShare, TableSpec, Txn, Workload,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Transactions without operations: only their commit takes time.
struct Nothing;

impl Workload for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }
    fn tables(&self) -> Vec<TableSpec> {
        Vec::new()
    }
    fn loader(&self, _table: usize, _first: u64) -> Loader<'_> {
        Box::new(|_, _| {})
    }
    fn replaced_bytes(&self, _table: usize, _row_bytes: usize) -> usize {
        0
    }
    fn next(&self, _client: &mut Client, _tables: &[LoadedTable]) -> Txn {
        Txn::default()
    }
    fn checker(&self, _acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        unreachable!("nothing is checked here")
    }
}

/// A database whose commits take `commit_ns`, and which stands still for a while.
#[derive(Clone)]
struct Server {
    env: Arc<dyn Env>,
    commit_ns: u64,
    /// From when to when nothing is done.
    stall_ns: (u64, u64),
    seen: Arc<Latch<Seen>>,
}

/// What the database sees of its clients.
#[derive(Default)]
struct Seen {
    begun_ns: Vec<u64>,
    /// From begin to end: what a driver with coordinated omission reports.
    served: LatencyHistogram,
}

impl ClientSession for Server {
    async fn execute(&mut self, _operation: &RowOperation) -> Result<(), SessionError> {
        Ok(())
    }
    async fn commit(&mut self) -> Result<(), SessionError> {
        let began_ns = self.env.now();
        self.seen.lock().begun_ns.push(began_ns);
        let (stops_ns, goes_on_ns) = self.stall_ns;
        let is_hit = began_ns + self.commit_ns > stops_ns && began_ns < goes_on_ns;
        let waits_ns = if is_hit { goes_on_ns - began_ns } else { 0 };
        self.env.sleep(waits_ns + self.commit_ns).await;
        let served_ns = self.env.now() - began_ns;
        self.seen.lock().served.record_ns(served_ns);
        Ok(())
    }
    async fn rollback(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
    async fn visit(
        &mut self,
        _table: usize,
        _share: TableShare,
        _visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SessionError> {
        Ok(())
    }
}

struct Case {
    clients: usize,
    rate_per_s: f64,
    spacing: Spacing,
    commit_ns: u64,
    stall_ns: (u64, u64),
}

impl Default for Case {
    fn default() -> Self {
        Case {
            clients: 4,
            rate_per_s: 1000.0,
            spacing: Spacing::Even,
            commit_ns: MS / 2,
            stall_ns: (0, 0),
        }
    }
}

/// What a run of `SECONDS` gave.
struct Outcome {
    begun_ns: Vec<u64>,
    served: LatencyHistogram,
    latencies: LatencyHistogram,
    delays: LatencyHistogram,
    backlog: u64,
    stopped_within_ns: u64,
}

const SECONDS: u64 = 10;
const SEED: u64 = 11;

fn run(case: &Case) -> Outcome {
    let mut world = World::new(SEED);
    let env: Arc<dyn Env> = world.env();
    let seen = Arc::new(Latch::new(Seen::default()));
    let server = Server {
        env: Arc::clone(&env),
        commit_ns: case.commit_ns,
        stall_ns: case.stall_ns,
        seen: Arc::clone(&seen),
    };
    let behaviour = Behaviour {
        clients: case.clients,
        arrivals: Some(Arrivals {
            rate_per_s: case.rate_per_s,
            spacing: case.spacing,
        }),
        ..Behaviour::default()
    };
    let workload: Arc<dyn Workload> = Arc::new(Nothing);
    let outcome = world.run(async move {
        let mut running: Running =
            driver::start(&env, &workload, &[], behaviour, move || server.clone());
        running.measure(true);
        env.sleep(SECONDS * SECOND).await;
        running.measure(false);
        let (latencies, delays) = (running.latencies(), running.delays());
        let (backlog, ended_ns) = (running.backlog(env.now()), env.now());
        running.stop().await.unwrap();
        let seen = std::mem::take(&mut *seen.lock());
        Outcome {
            begun_ns: seen.begun_ns,
            served: seen.served,
            latencies,
            delays,
            backlog,
            stopped_within_ns: env.now() - ended_ns,
        }
    });
    outcome.expect("the world lives to the end")
}

#[test]
fn transactions_begin_when_they_are_due() {
    for spacing in [Spacing::Even, Spacing::Poisson] {
        let case = Case {
            // Enough that one is always free.
            clients: 64,
            spacing,
            ..Case::default()
        };
        let outcome = run(&case);
        let arrivals = Arrivals {
            rate_per_s: case.rate_per_s,
            spacing,
        };
        let env = World::new(SEED).env();
        let mut schedule = Schedule::new(arrivals, 0, env.rng(1 << 33), 0.0);
        let due_ns: Vec<u64> = outcome.begun_ns.iter().map(|_| schedule.take()).collect();
        assert_eq!(outcome.begun_ns, due_ns, "{spacing:?}");
        assert!(outcome.delays.max_us() <= 0.001, "{spacing:?}");
        assert_eq!(outcome.backlog, 0);
    }
}

#[test]
fn a_slower_database_changes_no_intended_begin() {
    let slow = Case {
        clients: 64,
        commit_ns: 20 * MS,
        ..Case::default()
    };
    assert_eq!(
        run(&slow).begun_ns[..5_000],
        run(&Case {
            clients: 64,
            ..Case::default()
        })
        .begun_ns[..5_000]
    );
}

/// A stall of a second under 1000 transactions a second: the thousand that arrive meanwhile are late by up to a second,
/// on average by half of one. Fails for times that leave those out.
fn charged_with_the_stall(latencies: &LatencyHistogram) -> Result<(), String> {
    // 1000 of 10000 came in the stall, and some more before the queue was worked off.
    let p95_us = latencies.p95_us();
    if !(400_000.0..700_000.0).contains(&p95_us) {
        return Err(format!("the 95th percentile is {p95_us} us"));
    }
    let mean_us = latencies.mean_us();
    if !(50_000.0..150_000.0).contains(&mean_us) {
        return Err(format!("the mean is {mean_us} us"));
    }
    Ok(())
}

fn stall() -> Outcome {
    run(&Case {
        stall_ns: (4 * SECOND, 5 * SECOND),
        ..Case::default()
    })
}

#[test]
fn a_stall_is_charged_with_all_that_arrived_meanwhile() {
    let outcome = stall();
    charged_with_the_stall(&outcome.latencies).unwrap();
    assert_eq!(outcome.backlog, 0, "it was worked off");
    assert!(outcome.delays.max_us() > 900_000.0);
}

#[test]
fn coordinated_omission_is_caught() {
    let outcome = stall();
    // Counted from the begin instead of the intended one, only the four that were at work are late.
    let omitted = charged_with_the_stall(&outcome.served).unwrap_err();
    assert!(omitted.contains("the 95th percentile is 5"), "{omitted}");
    assert!(outcome.served.p99_us() < 1_000.0);
}

#[test]
fn a_backlog_grows_with_what_cannot_be_done() {
    let outcome = run(&Case {
        clients: 1,
        rate_per_s: 300.0,
        commit_ns: 10 * MS,
        ..Case::default()
    });
    // 3000 are due in ten seconds and 1000 can be done; the first is due a 300th of a second after the beginning.
    assert!(
        (1_999..=2_001).contains(&outcome.backlog),
        "{}",
        outcome.backlog
    );
    assert!(outcome.delays.max_us() > 6_500_000.0);
}

#[test]
fn clients_that_wait_for_the_next_arrival_stop_at_once() {
    let outcome = run(&Case {
        rate_per_s: 0.05,
        ..Case::default()
    });
    assert_eq!((outcome.stopped_within_ns, outcome.begun_ns.len()), (0, 0));
}
