//! The client of PostgreSQL beside other people's clients on the same server: `pgbench` has TPC-B and the point select,
//! `tpcc` go-tpc, BenchBase and HammerDB, `tpch` psql. What a client takes of the processors is missing to the server,
//! so its time for a transaction counts as much as the throughput. `plans` has the queries of TPC-H on the embedded
//! database beside PostgreSQL itself.

mod benchbase;
mod go_tpc;
mod hammerdb;
mod pgbench;
mod plans;
mod ratios;
mod server_time;
mod tpcc;
mod tpch;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{
    Purpose, RunningServer, ServerKind, ServerRequest, SqlUnderTest, Stop, server,
};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::TreeDirectories;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::SqlWorkload;

use crate::figures::{Figure, Figures, Goal};

pub use pgbench::{run as beside_pgbench, scripts as scripts_beside_pgbench};
pub use plans::run as plans_beside_sql;
pub use tpcc::run as beside_tpcc;
pub use tpch::run as beside_psql;

/// Of a processor's time in /proc/PID/stat, a second (USER_HZ, proc_pid_stat(5)).
const TICKS_PER_S: f64 = 100.0;

/// Transactions a second, and the clients' processor time for each, microseconds.
#[derive(Clone, Copy)]
struct Reached {
    tps: f64,
    cpu_us: f64,
}

/// A server of the bench's own; killed when dropped.
struct Private {
    running: Arc<dyn RunningServer>,
    directories: TreeDirectories,
    has_ended: bool,
}

impl Private {
    /// What is asked of it; says why, when there is no server.
    fn request(clients: usize, data_bytes: u64) -> Option<ServerRequest> {
        let request = ServerRequest {
            settings: Default::default(),
            bin_dir: None,
            buffer_cache_bytes: 1 << 30,
            data_bytes,
            clients: 2 * clients as u32,
            io: None,
        };
        let examined = server(ServerKind::Postgres).examine(&request);
        examined
            .inspect_err(|reason| eprintln!("  skipped: {reason}"))
            .ok()?;
        Some(request)
    }

    /// Empty directories for a server that runs as another user.
    fn directories(directory: &Path) -> TreeDirectories {
        let place = directory.parent().expect("the bench's place");
        for path in [place, directory] {
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, open).expect("our own directory");
        }
        let directories = TreeDirectories::within(|_| directory.to_path_buf());
        directories.make().expect("an empty directory");
        directories
    }

    fn start(request: &ServerRequest, directories: TreeDirectories, purpose: Purpose) -> Private {
        let started = server(ServerKind::Postgres).start(request, &directories, purpose);
        Private {
            running: started.expect("the server starts"),
            directories,
            has_ended: false,
        }
    }

    /// Ends it in order.
    fn end(mut self) {
        self.running.stop(Stop::Clean).expect("the server ends");
        self.has_ended = true;
    }

    fn create_database(&self, name: &str) {
        let mut connection = self.running.connect().expect("a connection");
        let created = connection.run(&format!("create database {name}"));
        created.expect("a database of the peer's own");
    }

    fn engine(&self, workload: impl SqlWorkload + 'static) -> Arc<dyn RunningEngine> {
        self.engine_of(Arc::new(workload))
    }

    fn engine_of(&self, workload: Arc<dyn SqlWorkload>) -> Arc<dyn RunningEngine> {
        Arc::new(SqlUnderTest::new(
            Arc::clone(&self.running),
            workload,
            self.directories.clone(),
        ))
    }

    fn password(&self) -> String {
        let password = std::fs::read_to_string(self.directories.data.join("password"));
        password.expect("the cluster has one").trim().to_owned()
    }

    /// Where its socket is.
    fn socket_directory(&self) -> PathBuf {
        self.directories.data.join("run")
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Err(error) = self.running.stop(Stop::Kill) {
            eprintln!("  the server did not stop: {error}");
        }
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
