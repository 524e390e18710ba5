//! Reads of which a set share finds its block in the cache, by few sessions and by many. Each session is on a processor
//! or has a read under way all the time, whatever the cache holds: so throughput rises with the hit ratio, what
//! sessions wait for besides reads is next to nothing, and the processors or the disk are at their limit. One session
//! alone cannot keep either busy all the time: what limits it is the latency of its own reads. Levels take turns, so
//! that a noisy machine troubles all of them.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::engine::Counters;
use spindle_engines::kernel::{IoSettings, KernelEngine, KernelSettings, Shutdown};
use spindle_io::Env;
use spindle_io::real::{AccessPath, Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_kernel::WaitEvent;
use spindle_workload::{OltpMix, OltpMixSettings, Workload};

use crate::Pace;
use crate::database::{Database, read_everything, work};
use crate::figures::{Figure, Figures, Goal, median};
use crate::machine::{Busy, Moment};

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
    busy: Busy,
}

/// The busier of processors and disk is at its limit when it is busy for this share of the time.
const LIMIT: f64 = 0.9;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let workload: Arc<dyn Workload> = Arc::new(OltpMix {
        data_bytes: DATA_BYTES,
        clients: SESSIONS[3] as u64,
        settings: OltpMixSettings {
            read_percent: 100,
            row_operations: 20,
        },
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
            database.settings = KernelSettings {
                buffer_cache_bytes: DATA_BYTES / 1000 * level,
                ..database.settings
            };
            for (point, points) in points_of(&database, directory, pace)
                .into_iter()
                .zip(points)
            {
                points.push(point);
            }
        }
    }
    for (number, sessions) in SESSIONS.into_iter().enumerate() {
        let levels: Vec<&[Point]> = points.iter().map(|level| &level[number][..]).collect();
        rises(sessions, &levels, figures);
        limits(sessions, &levels, figures);
        let waits = levels.iter().copied().flatten().map(|point| point.waits);
        figures.add(Figure::alone(
            format!("waits but reads, share of time, {sessions} sessions"),
            std::iter::once(waits.fold(0.0, f64::max)),
            Some(Goal::AtMost(0.05)),
        ));
    }
}

/// Each level beside the one before.
fn rises(sessions: usize, levels: &[&[Point]], figures: &mut Figures) {
    for pair in levels.windows(2) {
        let rates = |level: &[Point]| -> Vec<f64> {
            level.iter().map(|point| point.rows_per_second).collect()
        };
        let pairs: Vec<(f64, f64)> = rates(pair[1]).into_iter().zip(rates(pair[0])).collect();
        figures.add(Figure::of_pairs(
            format!("rows/s, {}, {sessions} sessions", hits(pair[1])),
            &hits(pair[0]),
            &pairs,
            Goal::AtLeast(1.0),
        ));
    }
}

/// How busy processors and disk were at each level, and whether one of them was as busy as it can be.
fn limits(sessions: usize, levels: &[&[Point]], figures: &mut Figures) {
    for level in levels {
        let share = |of: fn(Busy) -> Option<f64>| {
            let known = level.iter().filter_map(|point| of(point.busy));
            median(known)
        };
        let (processors, disk) = (share(|busy| busy.processors), share(|busy| busy.disk));
        for (what, busy) in [("processors", processors), ("disk", disk)] {
            let what = format!("{what} busy, {}, {sessions} sessions", hits(level));
            figures.add(Figure::alone(what, busy.into_iter(), None));
        }
        let (name, goal) = match sessions {
            1 => ("one session's latency", None),
            _ => ("the busier", Some(Goal::AtLeast(LIMIT))),
        };
        let busier = [processors, disk].into_iter().flatten().reduce(f64::max);
        let what = format!("{name}, {}, {sessions} sessions", hits(level));
        figures.add(Figure::alone(what, busier.into_iter(), goal));
    }
}

/// The hit ratio of a level as it was measured.
fn hits(level: &[Point]) -> String {
    let hits = median(level.iter().map(|point| point.hits)).unwrap_or(0.0);
    format!("{hits:.1} % hits")
}

/// One start of the database, and each number of sessions in turn.
fn points_of(database: &Database, directory: &Path, pace: Pace) -> Vec<Point> {
    let path = IoSettings::of(AccessPath::new(Caching::Direct, Method::Async));
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = database.start(&env, path);
    read_everything(&engine, &*database.workload, SESSIONS[3]);
    let point = |sessions: usize| {
        let (before, began) = (waited_ns(&engine), Moment::now(directory));
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
            busy: began.busy_until(Moment::now(directory)),
        }
    };
    let points = SESSIONS.map(point).to_vec();
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
    points
}

/// Time of sessions in waits other than for a block to be read.
fn waited_ns(engine: &KernelEngine) -> u64 {
    let reads = [
        WaitEvent::DbFileSequentialRead,
        WaitEvent::DbFileScatteredRead,
        WaitEvent::ReadByOtherSession,
    ]
    .map(WaitEvent::name);
    let totals = engine.session_waits();
    let others = totals
        .iter()
        .filter(|total| !reads.contains(&&*total.event));
    others.map(|total| total.total_ns).sum()
}
