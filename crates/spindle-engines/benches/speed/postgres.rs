//! The client of PostgreSQL beside pgbench: the same statements on the same server, prepared, eight clients. What a client
//! takes of the processors is missing to the server, so its time for a transaction counts as much as the throughput.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::Engine;
use spindle_engines::sql::{
    Purpose, ServerKind, ServerRequest, SqlUnderTest, Stop, create_and_load, server,
};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::TreeDirectories;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::Tpcb;

use crate::Pace;
use crate::figures::{Figure, Figures, Goal};

const CLIENTS: usize = 8;
const SCALE: u32 = 20;
/// Of a processor's time in /proc/PID/stat, a second (USER_HZ, proc_pid_stat(5)).
const TICKS_PER_S: f64 = 100.0;

/// What Spindle's workload does, as pgbench's built-in scripts are written.
const TPCB: &str = "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime, client, number) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP, :client_id, :aid);
END;
";
const SELECT: &str = "\\set aid random(1, 100000 * :scale)
SELECT abalance FROM accounts WHERE aid = :aid;
";

/// Transactions a second, and the clients' processor time for each, microseconds.
#[derive(Clone, Copy)]
struct Reached {
    tps: f64,
    cpu_us: f64,
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let place = directory.parent().expect("the bench's place");
    for path in [place, directory] {
        // The server may run as somebody else.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, open).expect("our own directory");
    }
    let request = ServerRequest {
        settings: Default::default(),
        bin_dir: None,
        buffer_cache_bytes: 1 << 30,
        data_bytes: Tpcb::loaded_bytes(SCALE),
        clients: 2 * CLIENTS as u32,
        io: None,
    };
    let postgres = server(ServerKind::Postgres);
    if let Err(reason) = postgres.examine(&request) {
        eprintln!("  skipped: {reason}");
        return;
    }
    let Some(pgbench) = pgbench() else {
        eprintln!("  skipped: pgbench is not installed");
        return;
    };
    let directories = TreeDirectories::within(|_| directory.to_path_buf());
    directories.make().expect("an empty directory");
    let loaded = Tpcb {
        scale: SCALE,
        select_only: false,
    };
    create_and_load(postgres, &request, &directories, &loaded).expect("TPC-B is loaded");
    let running = postgres.start(&request, &directories, Purpose::Trial);
    let running = running.expect("the server starts");
    let beside = Beside {
        pgbench,
        directories: &directories,
        measure: pace.measure * 2,
    };
    for (what, select_only, script) in [("TPC-B", false, TPCB), ("select", true, SELECT)] {
        let workload = Tpcb {
            scale: SCALE,
            select_only,
        };
        let engine = SqlUnderTest::new(
            Arc::clone(&running),
            Arc::new(workload),
            directories.clone(),
        );
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let path = directory.join("script.sql");
        std::fs::write(&path, script).expect("the script is written");
        // Both once, to fill the cache.
        ours(&engine, pace.warm_up);
        beside.pgbench(&path);
        let pairs: Vec<(Reached, Reached)> = (0..pace.pairs)
            .map(|_| (ours(&engine, beside.measure), beside.pgbench(&path)))
            .collect();
        let of = |value: fn(&Reached) -> f64| -> Vec<(f64, f64)> {
            pairs.iter().map(|(a, b)| (value(a), value(b))).collect()
        };
        let name = "pgbench -M prepared -c 8";
        figures.add(Figure::of_pairs(
            format!("PostgreSQL {what}, transactions/s"),
            name,
            &of(|reached| reached.tps),
            Goal::AtLeast(0.97),
        ));
        figures.add(Figure::of_pairs(
            format!("PostgreSQL {what}, client CPU us/transaction"),
            name,
            &of(|reached| reached.cpu_us),
            Goal::AtMost(1.0),
        ));
    }
    running.stop(Stop::Kill).expect("the server stops");
}

/// Where it is: on the path, or where Debian puts it.
fn pgbench() -> Option<std::path::PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = debian.flatten().map(|entry| entry.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = debian.chain(std::env::split_paths(&path));
    directories.find_map(|directory| {
        let program = directory.join("pgbench");
        program.is_file().then_some(program)
    })
}

fn ours(engine: &Arc<dyn Engine>, measure: Duration) -> Reached {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let behaviour = Behaviour {
        clients: CLIENTS,
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

/// Processor time of the clients' threads (schedstat, Linux Documentation/scheduler/sched-stats.rst).
fn client_cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("this process has threads");
    let times = threads.flatten().filter_map(|entry| {
        let text = |file: &str| std::fs::read_to_string(entry.path().join(file)).ok();
        if !text("comm")?.starts_with("client") {
            return None;
        }
        let running_ns: u64 = text("schedstat")?.split(' ').next()?.parse().ok()?;
        Some(Duration::from_nanos(running_ns))
    });
    times.sum()
}

struct Beside<'a> {
    pgbench: std::path::PathBuf,
    directories: &'a TreeDirectories,
    measure: Duration,
}

impl Beside<'_> {
    fn pgbench(&self, script: &Path) -> Reached {
        let password = std::fs::read_to_string(self.directories.data.join("password"));
        let mut command = Command::new(&self.pgbench);
        command
            .env("PGPASSWORD", password.expect("the cluster has one").trim())
            .args(["-n", "-M", "prepared", "-j", "2", "-U", "spindle"])
            .args(["-c", &CLIENTS.to_string()])
            .args(["-T", &self.measure.as_secs().max(1).to_string()])
            .args(["-D", &format!("scale={SCALE}")])
            .arg("-h")
            .arg(self.directories.data.join("run"))
            .arg("-f")
            .arg(script)
            .arg("postgres");
        let before = ended_children_cpu_s();
        let output = command.output().expect("pgbench runs");
        let cpu_s = ended_children_cpu_s() - before;
        let transactions = figure(&output, "number of transactions actually processed: ");
        Reached {
            tps: figure(&output, "tps = "),
            cpu_us: cpu_s * 1e6 / transactions,
        }
    }
}

fn figure(output: &Output, before: &str) -> f64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.split_once(before).map(|(_, rest)| rest);
    let number = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        panic!("pgbench said no {before:?}: {text} {error}")
    })
}

/// Processor time of children that ended and were waited for: fields 16 and 17 of proc_pid_stat(5).
fn ended_children_cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this process");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let ticks = fields.split(' ').skip(13).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().expect("a number"))
        .sum::<f64>()
        / TICKS_PER_S
}
