//! The embedded database loads `junk`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::kernel::{IoSettings, Shutdown};
use spindle_io::Env;
use spindle_io::real::facts::ProcessorTime;
use spindle_io::real::{AccessPath, Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::driver::{self, Behaviour};
use spindle_workload::sql::Junk;
use spindle_workload::{MadeFor, Transactions, Workload, WorkloadKind};

use super::COMMIT_EVERY;
use crate::database::{BLOCK_BYTES, DIRECT, Database};

const LOG_FILE_BYTES: u64 = 256 << 20;

/// What a load took.
pub struct Loaded {
    pub took: Duration,
    /// Processor time of the whole process, microseconds.
    pub cpu_us: f64,
    /// The largest memory of the process meanwhile beyond that before it started the database, bytes.
    pub memory_bytes: f64,
}

/// Makes a database and has one client load this many rows.
pub fn load(directory: &Path, rows: u64, cache_bytes: u64) -> Loaded {
    let directory = directory.join("embedded");
    std::fs::create_dir(&directory).expect("a directory for the database");
    let database = Database::create(&directory, workload(rows), 1, cache_bytes, LOG_FILE_BYTES);
    let env: Arc<dyn Env> = RealEnv::new(1);
    let before_bytes = memory_bytes("VmRSS:");
    forget_largest_memory();
    let path = IoSettings::of(AccessPath::new(Caching::Direct, Method::Async));
    let engine = database.start_as(&env, path, DIRECT);
    let behaviour = Behaviour {
        clients: 1,
        ..Behaviour::default()
    };
    let (began, cpu) = (Instant::now(), ProcessorTime::now());
    let tables = engine.tables();
    let connect = engine.connector();
    let running = driver::start(&env, &database.workload, &tables, behaviour, connect);
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let loaded = Loaded {
        took: began.elapsed(),
        cpu_us: (ProcessorTime::now() - cpu).total().as_secs_f64() * 1e6,
        memory_bytes: memory_bytes("VmHWM:") - before_bytes,
    };
    assert_eq!(running.failure(), None);
    assert_eq!(running.committed(), rows / u64::from(COMMIT_EVERY));
    let mut running = running;
    block_on(running.stop()).expect("the client ends");
    drop(running);
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
    std::fs::remove_dir_all(&directory).expect("the database goes");
    loaded
}

/// The load, and no more room than it takes.
pub fn junk(rows: u64) -> Junk {
    let Transactions::Junk(junk) = WorkloadKind::Junk.defaults() else {
        unreachable!("the kind of junk is junk");
    };
    Junk {
        rows,
        commit_every: COMMIT_EVERY,
        ..junk
    }
}

fn workload(rows: u64) -> Arc<dyn Workload> {
    let made_for = MadeFor {
        data_bytes: 0,
        block_bytes: BLOCK_BYTES as u64,
        clients: 1,
        seed: 1,
        dialect: None,
    };
    let made = Transactions::Junk(junk(rows)).settings().make(&made_for);
    Arc::from(made.of_rows().expect("the embedded database has junk"))
}

/// From now on `VmHWM` counts afresh (clear_refs in proc_pid_clear_refs(5)).
fn forget_largest_memory() {
    std::fs::write("/proc/self/clear_refs", "5").expect("this process's own");
}

/// A line of proc_pid_status(5), bytes.
fn memory_bytes(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let value = status.lines().find_map(|text| text.strip_prefix(line));
    let kib = value.and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    kib.expect("a number of KiB") * 1024.0
}
