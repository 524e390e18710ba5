//! The 22 queries of TPC-H at scale 1, carried out by the embedded database as plans, beside PostgreSQL with the same
//! cache: a power run by each in turn. Both have everything in their caches or near them, and 4 MB for each sort.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::engine::RunningEngine;
use spindle_engines::kernel::{KernelEngine, KernelSettings, KernelUnderTest, files_of};
use spindle_engines::sql::{Purpose, ServerKind, create_and_load, server};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::Workload;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::Tpch;
use spindle_workload::sql::tpch::{Parameters, TpchVersion};

use super::{CACHE_BYTES, Private};
use crate::Pace;
use crate::figures::{Figure, Figures, Goal};

const BLOCK_BYTES: usize = 8192;
const LOG_FILE_BYTES: u64 = 64 << 20;
const LOG_BUFFER_BYTES: usize = 1 << 20;
const SLAVES: u32 = 2;
/// Each takes a minute.
const PAIRS_MAX: usize = 3;

fn workload(scale: f64) -> Tpch {
    Tpch {
        version: TpchVersion::H,
        scale,
        queries: TpchVersion::H.queries().collect(),
        refresh: false,
        parameters: Parameters::Validation,
        query_limit: None,
        kept: None,
        seed: 1,
    }
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let scale = if pace.pairs <= 2 { 0.01 } else { 1.0 };
    let Some(request) =
        Private::request(ServerKind::Postgres, 2, CACHE_BYTES, (2e9 * scale) as u64)
    else {
        return;
    };
    let directories = Private::directories(directory);
    let postgres = server(ServerKind::Postgres);
    let sql = Arc::new(workload(scale));
    let loaded = create_and_load(postgres, &request, &directories, &*sql, &Arc::default());
    loaded.expect("a loaded cluster");
    let private = Private::start(ServerKind::Postgres, &request, directories, Purpose::Trial);
    let (theirs, ours) = (private.engine_of(sql), embedded(scale));
    power_run_ms(&ours);
    power_run_ms(&theirs);
    let pair = |number: usize| {
        let (ours, theirs) = match number.is_multiple_of(2) {
            true => (power_run_ms(&ours), power_run_ms(&theirs)),
            false => {
                let first = power_run_ms(&theirs);
                (power_run_ms(&ours), first)
            }
        };
        for (query, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            eprintln!("  Q{}: {ours:.1} ms, PostgreSQL {theirs:.1} ms", query + 1);
        }
        (ours.iter().sum(), theirs.iter().sum())
    };
    let measured: Vec<(f64, f64)> = (0..pace.pairs.min(PAIRS_MAX)).map(pair).collect();
    figures.add(Figure::of_pairs(
        "TPC-H on the embedded database, 22 queries, ms".to_owned(),
        "PostgreSQL",
        &measured,
        Goal::AtMost(2.0),
    ));
}

/// The embedded database on devices of memory, loaded.
fn embedded(scale: f64) -> Arc<dyn RunningEngine> {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let workload: Arc<dyn Workload> = Arc::from(workload(scale).in_plans(1, SLAVES));
    let settings = KernelSettings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: CACHE_BYTES,
        log_buffer_bytes: LOG_BUFFER_BYTES,
        ..KernelSettings::default()
    };
    let shape = files_of(&*workload, 1, BLOCK_BYTES, 2, 3, LOG_FILE_BYTES);
    let started = KernelEngine::in_memory(&env, &shape, &settings, &*workload, 1);
    let engine = block_on(started).expect("a database in memory");
    Arc::new(KernelUnderTest::new(&env, engine, workload))
}

/// Milliseconds of each query.
fn power_run_ms(engine: &Arc<dyn RunningEngine>) -> Vec<f64> {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let behaviour = Behaviour {
        clients: 1,
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    running.measure(true);
    while !running.is_finished() {
        assert_eq!(running.failure(), None);
        std::thread::sleep(Duration::from_millis(5));
    }
    let kinds = running.by_kind();
    block_on(running.stop()).expect("the client ends");
    let queries = kinds.iter().take(workload(1.0).queries.len());
    queries.map(|kind| kind.latencies.mean_us() / 1e3).collect()
}
