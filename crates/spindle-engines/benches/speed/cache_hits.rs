//! Reads of which so many find their block in the cache, by few sessions and by many. Each session is on a processor or has
//! a read under way all the time, whatever the cache holds: so throughput rises with the hit ratio, and what sessions wait
//! for besides reads is next to nothing. Levels take turns, so that a noisy machine troubles all of them.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::kernel::{AccessPath, IoMethod, KernelEngine, Settings, Shutdown};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_kernel::WaitEvent;
use spindle_workload::{OltpMix, Workload};

use crate::Pace;
use crate::database::{DIRECT, Database, read_everything, work};
use crate::figures::{Figure, Figures, Goal};

const DATA_BYTES: u64 = 32 << 20;
/// Share of the blocks that the cache holds, per mille; the last holds more than all of them.
const LEVELS: [u64; 5] = [500, 900, 990, 999, 1250];
const SESSIONS: [usize; 4] = [1, 2, 8, 64];
const LOG_BYTES: u64 = 16 << 20;

/// What sessions did at one level.
#[derive(Clone, Copy)]
struct Point {
    rows_per_second: f64,
    /// Share of their time in waits other than reads of blocks.
    waits: f64,
    /// Share of the logical reads that needed no I/O, percent.
    hits: f64,
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let workload: Arc<dyn Workload> = Arc::new(OltpMix {
        data_bytes: DATA_BYTES,
        clients: SESSIONS[3] as u64,
        read_percent: 100,
        row_operations: 20,
    });
    let mut database = Database::create(directory, workload, SESSIONS[3], DATA_BYTES, LOG_BYTES);
    let pace = Pace {
        measure: pace.measure / 5,
        ..pace
    };
    // By level, then by number of sessions; one for each turn.
    let mut points = vec![vec![Vec::new(); SESSIONS.len()]; LEVELS.len()];
    for _ in 0..pace.pairs {
        for (level, points) in LEVELS.iter().zip(&mut points) {
            database.settings = Settings {
                buffer_cache_bytes: DATA_BYTES / 1000 * level,
                ..database.settings
            };
            for (point, points) in points_of(&database, pace).into_iter().zip(points) {
                points.push(point);
            }
        }
    }
    for (number, sessions) in SESSIONS.into_iter().enumerate() {
        for levels in points.windows(2) {
            let of = |level: usize| levels[level][number].iter();
            let rates = |level| of(level).map(|point: &Point| point.rows_per_second);
            let hits =
                |level| of(level).map(|point: &Point| point.hits).sum::<f64>() / pace.pairs as f64;
            let pairs: Vec<(f64, f64)> = rates(1).zip(rates(0)).collect();
            figures.add(Figure::of_pairs(
                format!("rows/s, {:.1} % hits, {sessions} sessions", hits(1)),
                &format!("{:.1} % hits", hits(0)),
                &pairs,
                Goal::AtLeast(1.0),
            ));
        }
        let mut waits = points
            .iter()
            .flat_map(|level| &level[number])
            .map(|point| point.waits);
        let worst = waits.by_ref().fold(0.0, f64::max);
        figures.add(Figure::alone(
            format!("waits but reads, share of time, {sessions} sessions"),
            std::iter::once(worst),
            Some(Goal::AtMost(0.05)),
        ));
    }
}

/// One start of the database, and each number of sessions in turn.
fn points_of(database: &Database, pace: Pace) -> Vec<Point> {
    let path = AccessPath {
        method: IoMethod::Async,
        ..DIRECT
    };
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = database.start(&env, path);
    read_everything(&engine, &*database.workload, SESSIONS[3]);
    let point = |sessions: usize| {
        let before = waited_ns(&engine);
        let done = work(&env, &engine, &database.workload, sessions, pace);
        let waited_s = (waited_ns(&engine) - before) as f64 / 1e9;
        // Waits of the warm-up are in, and so is its time.
        let seconds = done.seconds + pace.warm_up.as_secs_f64();
        let (reads, misses) = (
            done.statistics.logical_reads as f64,
            done.statistics.physical_read_ios as f64,
        );
        Point {
            rows_per_second: done.transactions * 20.0 / done.seconds,
            waits: waited_s / (seconds * sessions as f64),
            hits: 100.0 * (1.0 - misses / reads.max(1.0)),
        }
    };
    let points = SESSIONS.map(point).to_vec();
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
    points
}

/// Time of sessions in waits other than for a block to be read.
fn waited_ns(engine: &KernelEngine) -> u64 {
    let is_read = |event| {
        matches!(
            event,
            WaitEvent::DbFileSequentialRead
                | WaitEvent::DbFileScatteredRead
                | WaitEvent::ReadByOtherSession
        )
    };
    let totals = engine.session_wait_events();
    let others = totals.iter().filter(|total| !is_read(total.event));
    others.map(|total| total.total_ns).sum()
}
