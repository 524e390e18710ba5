//! What a run found: the content of `result.json`, and how it follows from what the run recorded.
//!
//! [`RunRecord`] is the plain data that replaying a journal gives; [`build`] turns it into a [`RunResult`], a pure
//! function without clock, files or randomness. The terminal table and the reports print a [`RunResult`] and decide
//! nothing themselves. The runner fills [`Trial`]s; anything above may read results. The format on disk is described in
//! `docs/result-format.md` and, for machines, in `docs/result.schema.json`.

mod audit;
mod build;
mod fixed_rate;
mod headline;
mod model;
mod record;
#[cfg(test)]
mod sample;
mod summary;
mod warnings;

pub use audit::{Audit, IoCounts};
pub use build::{RecordError, build};
pub use headline::format_ratio;
pub use model::{
    Arrivals, Attribution, Case, Comparison, CpuMicroseconds, CpuShares, Drift, FORMAT_VERSION,
    Finding, Latency, Layout, Memory, NOT_DIRECT_HERE, NoiseFloor, Outcome, OwnCost,
    PartDifference, Place, Ranking, RatioEstimate, ResponseTime, Restore, RunResult, SegmentSpace,
    Stopping, SystemColumn, SystemMean, SystemSeries, Throughput, TimePart, Trial, Wait, WarmUp,
    Warning,
};
pub use record::{CaseRecord, RunRecord, SampledTrial};
pub use spindle_stats::Verdict;
pub use summary::Summary;
