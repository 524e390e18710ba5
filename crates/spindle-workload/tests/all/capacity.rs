//! The highest rate that keeps a promise, in the simulated world: clients of a database that answers after exponential
//! times are the servers of a queue whose limit is known (M/M/c; A. K. Erlang, 1917).

use std::convert::Infallible;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::Env;
use spindle_io::sim::World;
use spindle_workload::capacity::{Capacity, Goal, NoCapacity, find_capacity};
use spindle_workload::driver::{self, Behaviour};
use spindle_workload::{
    Acknowledged, Arrivals, Checker, Client, ClientSession, LoadedTable, Loader, RowOperation,
    SessionError, Spacing, TableShare, TableSpec, Txn, Workload,
};

const SERVERS: u32 = 4;
const SERVICE_PER_S: f64 = 25.0;
const PROMISE_S: f64 = 0.25;
const TRY_S: u64 = 60;

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

/// Commits take exponential times.
struct Server {
    env: Arc<dyn Env>,
    rng: Xoshiro256PlusPlus,
    service_per_s: f64,
}

impl ClientSession for Server {
    async fn execute(&mut self, _operation: &RowOperation) -> Result<(), SessionError> {
        Ok(())
    }
    async fn commit(&mut self) -> Result<(), SessionError> {
        let uniform = ((self.rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let time_ns = -uniform.ln() / self.service_per_s * 1e9;
        self.env.sleep(time_ns as u64).await;
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

fn found(service_per_s: f64, p99_us: f64) -> Result<Capacity, NoCapacity<Infallible>> {
    let mut world = World::new(17);
    let env: Arc<dyn Env> = world.env();
    let behaviour = Behaviour {
        clients: SERVERS as usize,
        arrivals: Some(Arrivals {
            rate_per_s: f64::INFINITY,
            spacing: Spacing::Poisson,
        }),
        ..Behaviour::default()
    };
    let workload: Arc<dyn Workload> = Arc::new(Nothing);
    let sessions = Arc::clone(&env);
    let number = std::sync::atomic::AtomicU64::new(1 << 40);
    let connect = move || Server {
        rng: sessions.rng(number.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
        env: Arc::clone(&sessions),
        service_per_s,
    };
    let outcome = world.run(async move {
        let mut running = driver::start(&env, &workload, &[], behaviour, connect);
        let goal = Goal {
            p99_us,
            spacing: Spacing::Poisson,
        };
        let try_ns = TRY_S * 1_000_000_000;
        let found = find_capacity(&*env, &running, goal, try_ns, |_| Ok(())).await;
        running.stop().await.unwrap();
        found
    });
    outcome.expect("the world lives to the end")
}

/// The share of transactions that take longer than promised: the wait is 0 or exponential, by Erlang's C, and the
/// service comes on top.
fn late_share(rate_per_s: f64) -> f64 {
    let load = rate_per_s / SERVICE_PER_S;
    let blocked = (1..=SERVERS).fold(1.0, |blocked, server| {
        load * blocked / (f64::from(server) + load * blocked)
    });
    let utilization = load / f64::from(SERVERS);
    let must_wait = blocked / (1.0 - utilization * (1.0 - blocked));
    let spare = f64::from(SERVERS) * SERVICE_PER_S - rate_per_s;
    let served_later = (-SERVICE_PER_S * PROMISE_S).exp();
    let waited = (-spare * PROMISE_S).exp();
    let both = (spare * served_later - SERVICE_PER_S * waited) / (spare - SERVICE_PER_S);
    (1.0 - must_wait) * served_later + must_wait * both
}

fn capacity_per_s() -> f64 {
    let (mut low, mut high) = (0.0, f64::from(SERVERS) * SERVICE_PER_S);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match late_share(middle) <= 0.01 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

#[test]
fn the_capacity_of_a_simulated_server_is_found_within_five_per_cent_of_theory() {
    let found = found(SERVICE_PER_S, PROMISE_S * 1e6).unwrap();
    let over = found.rate_per_s / capacity_per_s();
    assert!((over - 1.0).abs() < 0.05, "{over}");
    // Four clients that never wait do what four servers can.
    let most_per_s = f64::from(SERVERS) * SERVICE_PER_S;
    assert!((found.closed_loop_per_s / most_per_s - 1.0).abs() < 0.05);
    // The curve grows from the lowest rate to the highest.
    let mut steps = found.steps.clone();
    steps.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let (first, last) = (steps[0], steps[steps.len() - 1]);
    assert!(last.p99_us > 1.2 * first.p99_us, "{first:?} {last:?}");
    // A server that is slower by a tenth is told from this one.
    let slower = self::found(0.9 * SERVICE_PER_S, PROMISE_S * 1e6).unwrap();
    assert!(
        slower.rate_per_s < 0.95 * capacity_per_s(),
        "{}",
        slower.rate_per_s
    );
}

#[test]
fn a_promise_that_no_rate_keeps_is_said() {
    let Err(NoCapacity::Nowhere(step)) = found(SERVICE_PER_S, 1_000.0) else {
        panic!("the server alone takes longer than that");
    };
    assert!(step.rate_per_s < 1.0, "{step:?}");
}
