//! TPC-C on the embedded database beside PostgreSQL, four warehouses in the cache of each and eight users, every commit
//! on stable storage. PostgreSQL carries transactions out by procedures, one call each, through its socket. The
//! embedded database is called as a library: there is no wire protocol and no SQL, which is a part of what it gains.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::kernel::{IoSettings, KernelUnderTest};
use spindle_engines::sql::{Purpose, ServerKind, create_and_load, server};
use spindle_io::Env;
use spindle_io::real::{AccessPath, Caching, Method, RealEnv, block_on};
use spindle_system::SystemTree;
use spindle_system::processes::Processes;
use spindle_workload::Workload;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::{Tpcc, TpccMix};

use super::tpcc::{SEED, WAREHOUSES};
use super::{CACHE_BYTES, Private};
use crate::Pace;
use crate::database::{DIRECT, Database};
use crate::figures::{Figure, Figures, Goal};

const USERS: usize = 8;
const LOG_FILE_BYTES: u64 = 256 << 20;
/// Transactions for whose rows there is room.
const ROOM_FOR: u64 = 2_000_000;
/// The kind of transactions that count (clause 5.4 of the standard).
const NEW_ORDER: usize = 0;

/// What a run of the users came to.
struct Reached {
    new_orders_per_minute: f64,
    /// Of clients and database together.
    cpu_s_per_new_order: f64,
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let bytes = Tpcc::loaded_bytes(WAREHOUSES);
    let Some(request) = Private::request(ServerKind::Postgres, USERS, CACHE_BYTES, bytes) else {
        return;
    };
    let home = directory.with_file_name("tpcc-postgres");
    std::fs::create_dir(&home).expect("a directory for the server");
    let directories = Private::directories(&home);
    let tpcc = |procedures| Tpcc::new(WAREHOUSES, TpccMix::STANDARD, procedures, SEED);
    let postgres = server(ServerKind::Postgres);
    let loaded = create_and_load(
        postgres,
        &request,
        &directories,
        &tpcc(true),
        &Arc::default(),
    );
    loaded.expect("it is loaded");
    let rows: Arc<dyn Workload> = Arc::from(tpcc(false).in_rows(ROOM_FOR));
    let database = Database::create(directory, rows, USERS, CACHE_BYTES, LOG_FILE_BYTES);
    let measure = pace.measure * 4;
    let pairs: Vec<(Reached, Reached)> = (0..pace.pairs)
        .map(|_| {
            let ours = embedded(&database, pace.warm_up, measure);
            let directories = directories.clone();
            let private =
                Private::start(ServerKind::Postgres, &request, directories, Purpose::Trial);
            let servers = private.running.processes();
            let engine = private.engine(tpcc(true));
            let theirs = work(&engine, servers, pace.warm_up, measure);
            drop(engine);
            private.end();
            (ours, theirs)
        })
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    for (what, of, goal) in [
        (
            format!("TPC-C, 4 warehouses, {USERS} users, tpmC per core"),
            (|reached, cores| reached.new_orders_per_minute / cores) as fn(&Reached, f64) -> f64,
            Goal::AtLeast(3.0),
        ),
        (
            "its processor time, us/New-Order".to_owned(),
            |reached, _| reached.cpu_s_per_new_order * 1e6,
            Goal::AtMost(1.0 / 3.0),
        ),
    ] {
        let pairs: Vec<(f64, f64)> = pairs
            .iter()
            .map(|(ours, theirs)| (of(ours, cores), of(theirs, cores)))
            .collect();
        figures.add(Figure::of_pairs(
            what,
            "PostgreSQL, procedures",
            &pairs,
            goal,
        ));
    }
}

/// Started for each run and stopped after it, as the server is: neither writes while the other is measured.
fn embedded(database: &Database, warm_up: Duration, measure: Duration) -> Reached {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let path = IoSettings::of(AccessPath::new(Caching::Direct, Method::Async));
    let engine =
        Arc::into_inner(database.start_as(&env, path, DIRECT)).expect("nobody else has it");
    let workload = Arc::clone(&database.workload);
    let engine: Arc<dyn RunningEngine> = Arc::new(KernelUnderTest::new(&env, engine, workload));
    let reached = work(&engine, Vec::new(), warm_up, measure);
    block_on(engine.stop()).expect("the database stops");
    reached
}

/// Has the users read the tables into the cache, as they work, and measures them then.
fn work(
    engine: &Arc<dyn RunningEngine>,
    servers: Vec<u32>,
    warm_up: Duration,
    measure: Duration,
) -> Reached {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let behaviour = Behaviour {
        clients: USERS,
        ..Behaviour::default()
    };
    let processes = Processes::with_servers(std::process::id(), servers);
    let mut running = engine.start_clients(&env, behaviour);
    // Until the tables are in the cache.
    std::thread::sleep(20 * warm_up);
    running.measure(true);
    let cpu_s = || {
        let cpu = processes.cpu(&SystemTree::default());
        let cpu = cpu.expect("this process and its server");
        (cpu.user_us + cpu.system_us) as f64 / 1e6
    };
    let (began, cpu) = (Instant::now(), cpu_s());
    std::thread::sleep(measure);
    let new_orders = running.by_kind()[NEW_ORDER].latencies.count() as f64;
    let (seconds, used_s) = (began.elapsed().as_secs_f64(), cpu_s() - cpu);
    assert_eq!(running.failure(), None);
    block_on(running.stop()).expect("the clients end");
    Reached {
        new_orders_per_minute: new_orders / seconds * 60.0,
        cpu_s_per_new_order: used_s / new_orders,
    }
}
