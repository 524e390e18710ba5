//! What a run found: the content of `result.json`, and how it follows from what the run recorded.
//!
//! [`RunRecord`] is the plain data that replaying a journal gives; [`build`] turns it into a [`RunResult`], a pure
//! function without clock, files or randomness. The terminal table and the reports print a [`RunResult`] and decide
//! nothing themselves. The runner fills [`Trial`]s; anything above may read results. The format on disk is described in
//! `docs/result-format.md` and, for machines, in `docs/result.schema.json`.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod answer;
mod attribution;
mod beneath;
mod build;
mod bulk_load;
mod capacity;
mod case_means;
mod clients;
mod cold_start;
mod common_rounds;
mod costs;
mod device_drift;
mod disturbance;
mod doubt;
mod drift;
mod durability;
mod effects;
mod far_out;
mod few_transactions;
mod findings;
mod fixed_rate;
mod headline;
mod judge;
mod kinds;
mod left_out;
mod levels;
mod lookup;
mod mean;
mod model;
mod next_steps;
mod possible;
mod queries;
mod record;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod statements;
mod stopping;
mod stored;
mod summary;
mod time_needed;
pub mod tpch;
mod warnings;
mod wording;

pub use build::{RecordError, build};
pub use capacity::CaseCapacity;
pub use common_rounds::CommonRounds;
pub use costs::{Cost, costs};
pub use disturbance::noise;
pub use doubt::{Doubt, TRIES_MAX, doubt};
pub use findings::kinds_of_findings;
pub use fixed_rate::speed;
pub use kinds::KindMeans;
pub use left_out::is_answer;
pub use levels::unit;
pub use model::{
    AccessMethod, Arrivals, Attribution, Audit, BulkLoad, CacheUse, Capacity, Case, CaseId,
    CasePair, CaseStatus, ClientAudit, ClientProcessors, Conditions, CpuMicroseconds, CpuShares,
    DatabaseFacts, Deferred, DeviceProbe, Drift, Effect, FORMAT_VERSION, FactorAnswer, FactorName,
    Finding, Interaction, IoCalls, IoCounts, IoPerTransaction, Keeps, KindOfTransaction, Latency,
    Layout, LimitedIo, LoadLevel, LoadStep, Measure, Memory, NOT_DIRECT_HERE, Neighbour,
    NoiseFloor, OracleEvent, OwnCost, PageCache, Pair, PairComparison, PartDifference, Phase,
    Price, ProbedTimes, Promise, PromiseReason, QueryRun, QueryTime, QuietWait, RankedCase,
    Ranking, RateStep, RatioEstimate, ResponseTime, Restore, RunResult, SegmentSpace, SetAside,
    StackKind, StackPart, Standstill, StatementTime, Stopping, SystemColumn, SystemFigure,
    SystemMean, SystemSeries, Throughput, TimePart, TimeUse, Trial, TrialFigures, TrialTimes,
    UsedLimit, Variance, Wait, WaitEvent, WarmUp, Warning, experiment, is_refresh, machine,
};
pub use next_steps::next_steps;
pub use possible::{impossible_figure, impossible_series, impossible_trial, is_rate};
pub use queries::{QueryMean, QueryMeans};
pub use record::{AutoPlan, CaseRecord, MatrixRecord, RunRecord, SampledTrial};
pub use spindle_stats::Verdict;
pub use statements::StatementMeans;
pub use stored::StoredRun;
pub use summary::Summary;
pub use time_needed::rounds_that_tell;
pub use wording::{EACH_SETTING, format_interval, format_ratio, named, percent};
