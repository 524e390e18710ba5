//! The client of PostgreSQL beside other people's clients on the same server: `pgbench` has TPC-B and the point select,
//! `tpcc` go-tpc, BenchBase and HammerDB, `tpch` psql. What a client takes of the processors is missing to the server,
//! so its time for a transaction counts as much as the throughput. `plans` and `tpcc_embedded` have TPC-H and TPC-C on
//! the embedded database beside PostgreSQL itself.

mod benchbase;
mod go_tpc;
mod hammerdb;
mod pgbench;
mod plans;
mod ratios;
mod server_time;
mod tpcc;
mod tpcc_embedded;
mod tpch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::driver::Behaviour;

use crate::figures::{Figure, Figures, Goal};
use crate::private_server::Private;

pub use pgbench::{run as beside_pgbench, scripts as scripts_beside_pgbench};
pub use plans::run as plans_beside_sql;
pub use tpcc::run as beside_tpcc;
pub use tpcc_embedded::run as tpcc_beside_procedures;
pub use tpch::run as beside_psql;

/// The server's buffer cache.
const CACHE_BYTES: u64 = 1 << 30;
/// Of a processor's time in /proc/PID/stat, a second (USER_HZ, proc_pid_stat(5)).
const TICKS_PER_S: f64 = 100.0;

/// Transactions a second, and the clients' processor time for each, microseconds.
#[derive(Clone, Copy)]
struct Reached {
    tps: f64,
    cpu_us: f64,
}

impl Private {
    fn password(&self) -> String {
        let password = std::fs::read_to_string(self.directories.data.join("password"));
        password.expect("the cluster has one").trim().to_owned()
    }

    /// Where its socket is.
    fn socket_directory(&self) -> PathBuf {
        self.directories.data.join("run")
    }
}

/// Runs our clients for a while.
fn ours(engine: &Arc<dyn RunningEngine>, clients: usize, measure: Duration) -> Reached {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let behaviour = Behaviour {
        clients,
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    while running.committed() < 100 {
        assert_eq!(running.failure(), None);
        std::thread::sleep(Duration::from_millis(1));
    }
    let look = || (Instant::now(), running.committed(), client_cpu());
    let (began, committed, cpu) = look();
    std::thread::sleep(measure);
    let (ended, committed_then, cpu_then) = look();
    assert_eq!(running.failure(), None);
    block_on(running.stop()).expect("the clients end");
    let transactions = (committed_then - committed) as f64;
    Reached {
        tps: transactions / (ended - began).as_secs_f64(),
        cpu_us: (cpu_then - cpu).as_nanos() as f64 / 1e3 / transactions,
    }
}

/// Throughput and processor time of ours and a peer's, measured in turn.
fn add_pairs(
    figures: &mut Figures,
    what: &str,
    peer: &str,
    pairs: &[(Reached, Reached)],
    goals: (Option<Goal>, Option<Goal>),
) {
    let of = |value: fn(&Reached) -> f64| -> Vec<(f64, f64)> {
        pairs.iter().map(|(a, b)| (value(a), value(b))).collect()
    };
    figures.add(Figure::of_pairs(
        format!("{what}, transactions/s"),
        peer,
        &of(|reached| reached.tps),
        goals.0,
    ));
    figures.add(Figure::of_pairs(
        format!("{what}, client CPU us/transaction"),
        peer,
        &of(|reached| reached.cpu_us),
        goals.1,
    ));
}

/// Processor time of our clients' threads.
fn client_cpu() -> Duration {
    cpu_of_threads(std::process::id(), "client")
}

/// Processor time of a process's threads that are called so (schedstat, Linux Documentation/scheduler/sched-stats.rst).
fn cpu_of_threads(process: u32, called: &str) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it has threads");
    let times = threads.flatten().filter_map(|entry| {
        let text = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        if !text("comm")?.starts_with(called) {
            return None;
        }
        let running_ns: u64 = text("schedstat")?.split(' ').next()?.parse().ok()?;
        Some(Duration::from_nanos(running_ns))
    });
    times.sum()
}

/// Processor time of children that ended and were waited for, seconds: fields 16 and 17 of proc_pid_stat(5).
fn ended_children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this process");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let ticks = fields.split(' ').skip(13).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / TICKS_PER_S
}

/// A program on the path.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// A program of PostgreSQL's: where Debian puts it, or on the path.
fn program_of_postgres(name: &str) -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut debian = debian
        .flatten()
        .map(|entry| entry.path().join("bin").join(name));
    debian
        .find(|program| program.is_file())
        .or_else(|| on_path(name))
}
