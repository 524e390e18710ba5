//! Random updates bound by the device: reads, datafile writes and redo together, beside fio reading and writing as many
//! blocks with a log written beside it, as large and as often as LGWR wrote just before. Every write is durable on both
//! sides: RWF_DSYNC here, O_DSYNC there.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::kernel::{IoSettings, Shutdown};
use spindle_io::Env;
use spindle_io::real::{AccessPath, Caching, Method};
use spindle_io::real::{RealEnv, block_on};

use crate::database::{Database, Done, work, written};
use crate::figures::{Figure, Figures, Goal, median};
use crate::reads::slob;
use crate::{Pace, fio};

const SESSIONS: usize = 32;
const CACHE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 256 << 20;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let what = format!("physical I/Os/s, 100 % updates, {SESSIONS} sessions");
    if !fio::is_here() {
        return figures.add(Figure::alone(
            what,
            std::iter::empty(),
            Some(Goal::AtLeast(0.8)),
        ));
    }
    let workload = slob(100, SESSIONS);
    let database = Database::create(directory, workload, SESSIONS, CACHE_BYTES, LOG_BYTES);
    let (data, log) = (directory.join("peer-data"), directory.join("peer-log"));
    written(&data, 1 << 30);
    written(&log, LOG_BYTES);
    let (mut rates, mut log_writes, mut log_kib) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pace.pairs {
        let ours = ours(&database, pace);
        let redo = ours.counts.redo;
        let ios = ours.counts.data.reads + ours.counts.data.writes + redo.writes;
        let bytes = redo.write_bytes / redo.writes.max(1);
        let job = fio::LogJob {
            path: &log,
            bytes: bytes.next_multiple_of(4096).max(4096),
            per_second: (redo.writes as f64 / ours.seconds).max(1.0) as u64,
        };
        let peer = fio::updates(&data, SESSIONS, &job, pace.measure);
        rates.push((ios as f64 / ours.seconds, peer.per_second));
        log_writes.push(job.per_second as f64);
        log_kib.push(bytes as f64 / 1024.0);
    }
    let log_job = format!(
        "fio randrw + log {:.0} x {:.0}K/s",
        median(log_writes.into_iter()).unwrap_or(0.0),
        median(log_kib.into_iter()).unwrap_or(0.0)
    );
    figures.add(Figure::of_pairs(what, &log_job, &rates, Goal::AtLeast(0.8)));
}

/// The database is started for each run and shut down after it: nothing is left to write while the peer runs.
fn ours(database: &Database, pace: Pace) -> Done {
    let path = IoSettings::of(AccessPath::new(Caching::Direct, Method::Async));
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = database.start(&env, path);
    let done = work(&env, &engine, &database.workload, SESSIONS, pace);
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Normal)).expect("the database stops");
    done
}
