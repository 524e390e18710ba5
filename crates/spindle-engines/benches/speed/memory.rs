//! Databases without devices to wait for: how many row reads from the buffer cache a core carries out, what accounting
//! for waits takes of them, and what looking at its own invariants takes of a transaction.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use spindle_engines::kernel::{KernelEngine, KernelSettings, Shutdown, files_of};
use spindle_io::env::{LocalFuture, ProcessStart};
use spindle_io::real::facts::ProcessorTime;
use spindle_io::real::{RealEnv, block_on};
use spindle_io::{Env, Join};
use spindle_kernel::invariant;
use spindle_workload::driver::{self, Behaviour};
use spindle_workload::{OltpMix, OltpMixSettings, Workload};

use crate::Pace;
use crate::database::{BLOCK_BYTES, read_everything, work};
use crate::figures::{Figure, Figures, Goal};

const CLIENTS: usize = 8;
const ROWS_A_TRANSACTION: u32 = 100;

/// A database that lies in its cache wholly, and devices of memory for what little is written.
struct Cached {
    env: Arc<dyn Env>,
    engine: Arc<KernelEngine>,
    workload: Arc<dyn Workload>,
}

impl Cached {
    fn new(env: Arc<dyn Env>) -> Cached {
        Cached::with(env, 100, 64 << 20)
    }

    /// With so much of the data in the cache, and this many reads of a hundred rows.
    fn with(env: Arc<dyn Env>, read_percent: u32, cache_bytes: u64) -> Cached {
        let workload: Arc<dyn Workload> = Arc::new(OltpMix {
            data_bytes: 32 << 20,
            clients: CLIENTS as u64,
            settings: OltpMixSettings {
                read_percent,
                row_operations: ROWS_A_TRANSACTION,
            },
        });
        let settings = KernelSettings {
            block_bytes: BLOCK_BYTES,
            buffer_cache_bytes: cache_bytes,
            ..KernelSettings::default()
        };
        let shape = files_of(&*workload, CLIENTS, BLOCK_BYTES, 1, 3, 16 << 20);
        let engine = KernelEngine::in_memory(&env, &shape, &settings, &*workload, CLIENTS);
        let engine = Arc::new(block_on(engine).expect("the database starts"));
        read_everything(&engine, &*workload, CLIENTS);
        Cached {
            env,
            engine,
            workload,
        }
    }

    /// Rows read per second.
    fn rows(&self, clients: usize, pace: Pace) -> f64 {
        let done = work(&self.env, &self.engine, &self.workload, clients, pace);
        let misses = done.statistics.physical_read_ios;
        assert_eq!(misses, 0, "every read finds its block in the cache");
        done.transactions * f64::from(ROWS_A_TRANSACTION) / done.seconds
    }

    fn stop(self) {
        let engine = Arc::into_inner(self.engine).expect("every client has gone");
        block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
    }
}

/// Everything on one core: the session, and the processes that have nothing to do.
pub fn cache(pace: Pace, _: &Path, figures: &mut Figures) {
    let everywhere = sched_getaffinity(None).expect("where this thread may run");
    let mut one = CpuSet::new();
    let last = (0..CpuSet::MAX_CPU).rfind(|cpu| everywhere.is_set(*cpu));
    one.set(last.expect("it runs somewhere"));
    sched_setaffinity(None, &one).expect("a thread may confine itself");
    let cached = Cached::new(RealEnv::new(1));
    let rows: Vec<f64> = (0..pace.pairs).map(|_| cached.rows(1, pace)).collect();
    cached.stop();
    sched_setaffinity(None, &everywhere).expect("and may go where it could before");
    let what = "rows/s from the cache, one core".to_owned();
    let goal = Some(Goal::AtLeast(500_000.0));
    figures.add(Figure::alone(what, rows.into_iter(), goal));
}

/// Accounting for a wait is two looks at the clock and two additions, where a process waits. With a clock that stands
/// still and costs nothing, what is left is the additions; the difference bounds what accounting costs cache hits.
pub fn accounting(pace: Pace, _: &Path, figures: &mut Figures) {
    let timed = Cached::new(RealEnv::new(1));
    let untimed = Cached::new(Arc::new(Clockless(RealEnv::new(1))));
    let pairs: Vec<(f64, f64)> = (0..pace.pairs)
        .map(|_| (timed.rows(CLIENTS, pace), untimed.rows(CLIENTS, pace)))
        .collect();
    let what = format!("rows/s with waits accounted, {CLIENTS} sessions");
    let goal = Goal::AtLeast(0.97);
    figures.add(Figure::of_pairs(what, "the same, no clock", &pairs, goal));
    timed.stop();
    untimed.stop();
}

/// Pairs of the bench of the invariants for each of others: many short ones, as what is sought is smaller than the
/// noise.
const INVARIANT_PAIRS: usize = 40;

/// Processor time of a transaction that reads and changes rows of a database that is twice its cache, with the
/// invariants looked at and without, in turn, while the same clients work on. Devices are memory: there is nothing else
/// to wait for.
pub fn invariants(pace: Pace, _: &Path, figures: &mut Figures) {
    let cached = Cached::with(RealEnv::new(1), 40, 16 << 20);
    let behaviour = Behaviour {
        clients: CLIENTS,
        ..Behaviour::default()
    };
    let (tables, connector) = (cached.engine.tables(), cached.engine.connector());
    let mut running = driver::start(&cached.env, &cached.workload, &tables, behaviour, connector);
    std::thread::sleep(pace.warm_up);
    let cpu_us = |left_out: bool| {
        invariant::LEFT_OUT.store(left_out, Ordering::Relaxed);
        let (before, committed) = (ProcessorTime::now(), running.committed());
        std::thread::sleep(pace.measure / 20);
        let used = (ProcessorTime::now() - before).total();
        used.as_secs_f64() * 1e6 / (running.committed() - committed).max(1) as f64
    };
    let pairs: Vec<(f64, f64)> = (0..INVARIANT_PAIRS * pace.pairs)
        .map(|turn| {
            // Who goes first changes, so that what drifts troubles both.
            let is_first = turn % 2 == 0;
            let (first, second) = (cpu_us(!is_first), cpu_us(is_first));
            if is_first {
                (first, second)
            } else {
                (second, first)
            }
        })
        .collect();
    invariant::LEFT_OUT.store(false, Ordering::Relaxed);
    block_on(running.stop()).expect("no client fails");
    drop(running);
    cached.stop();
    let what = "processor us/transaction, invariants checked".to_owned();
    let goal = Goal::AtMost(1.02);
    figures.add(Figure::of_pairs(what, "not checked", &pairs, goal));
    let (low, high) = interval(&pairs);
    for (end, value) in [("from", low), ("to", high)] {
        let what = format!("95 % interval of that ratio, {end}");
        figures.add(Figure::alone(what, std::iter::once(value), None));
    }
}

/// The mean of the pairs' ratios, in logarithms, with what two standard errors make of it: from, to.
fn interval(pairs: &[(f64, f64)]) -> (f64, f64) {
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(ours, peer)| (ours / peer).ln())
        .collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let two_errors = 2.0 * (squares / (count - 1.0) / count).sqrt();
    ((mean - two_errors).exp(), (mean + two_errors).exp())
}

/// The real world without a clock to look at.
struct Clockless(Arc<RealEnv>);

impl Env for Clockless {
    fn now(&self) -> u64 {
        0
    }

    fn sleep(&self, duration_ns: u64) -> LocalFuture {
        self.0.sleep(duration_ns)
    }

    fn spawn(&self, name: &str, start: ProcessStart) -> Join {
        self.0.spawn(name, start)
    }

    fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
        self.0.rng(stream)
    }
}
