//! How long a trial takes, about, before any has ended. What the plan says is certain; how fast the machine reads and
//! writes is assumed. The reckoning of a plan and the schedule of a run go by it.

use spindle_engines::sql::{ServerKind, server};
use spindle_experiment::{DatabaseSpec, Experiment, PutBack, RestoreBy, Verify};

/// Assumed: what is copied, or read to compare it, in a second.
pub(crate) const BYTES_PER_S: u64 = 200 << 20;
/// Assumed: what a server loads in a second.
pub(crate) const SERVER_LOADS_PER_S: u64 = 40 << 20;
/// Assumed: part of a database that a trial changes, per cent.
const CHANGED_PERCENT: u64 = 10;
/// Assumed: what the check of the embedded database reads in a second.
const CHECKED_PER_S: u64 = 400 << 20;
/// Assumed: putting a volume back to its snapshot.
const ROLL_BACK_MS: u64 = 3_000;
/// Assumed: flushing, starting and stopping a database, beside probing its devices.
const KERNEL_ENDS_MS: u64 = 500;
const SERVER_ENDS_MS: u64 = 6_000;

/// Assumed: rates that a search tries, each for a quarter of the measured time, and a quarter of that before it.
const RATES_TRIED: u64 = 35;
/// A try lasts `TRY_OF_PROMISE` times the promise, but at most `TRY_LONGER_MAX` times its usual length.
const TRY_OF_PROMISE: u64 = 20;
const TRY_LONGER_MAX: u64 = 10;

/// What a trial takes about, restore included, in milliseconds: before the first has ended.
pub(crate) fn trial_ms(experiment: &Experiment) -> u64 {
    let plan = &experiment.plan;
    let restore_ms = match experiment.spec() {
        DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => {
            put_back_ms(experiment, experiment.database.size_bytes, PutBack::Copy)
        }
        DatabaseSpec::Remote(remote) => there_ms(experiment, remote.address.kind()),
    };
    restore_ms + plan.warmup_ms + search_ms(experiment) + plan.measure_ms + ends_ms(experiment)
}

/// Time to start, flush, check and stop a database.
pub(crate) fn ends_ms(experiment: &Experiment) -> u64 {
    let is_server = match experiment.spec() {
        DatabaseSpec::Kernel(_) => false,
        DatabaseSpec::Server(spec) => !server(spec.kind).is_library(),
        DatabaseSpec::Remote(_) => true,
    };
    match is_server {
        true => SERVER_ENDS_MS,
        // The check reads every row.
        false => KERNEL_ENDS_MS + ms_of(experiment.database.size_bytes, CHECKED_PER_S),
    }
}

/// Time to search for the highest rate, where that is asked for.
pub(crate) fn search_ms(experiment: &Experiment) -> u64 {
    match experiment.workload.promised {
        Some(promised) => {
            let usual_ms = (experiment.plan.measure_ms / 4).max(1_000);
            let longer_ms = (TRY_OF_PROMISE * promised.p99_ms).min(TRY_LONGER_MAX * usual_ms);
            RATES_TRIED * (longer_ms.max(usual_ms) + usual_ms / 4)
        }
        None => 0,
    }
}

/// Time that an existing server takes to put a database back, if it may copy it.
pub(crate) fn there_ms(experiment: &Experiment, kind: ServerKind) -> u64 {
    let per_s = match (experiment.plan.restore, kind) {
        (RestoreBy::Copy | RestoreBy::Reflink, ServerKind::Postgres) => BYTES_PER_S,
        _ => SERVER_LOADS_PER_S,
    };
    ms_of(experiment.database.size_bytes, per_s)
}

/// Time to put this many bytes back, and to read what the plan wants to see.
pub(crate) fn put_back_ms(experiment: &Experiment, bytes: u64, how: PutBack) -> u64 {
    let changed_ms = ms_of(bytes / 100 * CHANGED_PERCENT, BYTES_PER_S);
    let put_back_ms = match how {
        PutBack::ThinVolumes => ROLL_BACK_MS,
        PutBack::Copy | PutBack::Clones => changed_ms,
    };
    let verified_ms = match experiment.plan.restore_verify {
        Verify::Full => ms_of(bytes, BYTES_PER_S),
        Verify::Changed => changed_ms,
    };
    put_back_ms + verified_ms
}

/// How long this many bytes take.
pub(crate) fn ms_of(bytes: u64, bytes_per_s: u64) -> u64 {
    bytes / (bytes_per_s / 1000)
}
