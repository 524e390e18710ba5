//! The arithmetic behind a verdict: histograms, series, steady states, intervals, comparisons, when to stop, drift and
//! the ranking of cases.
//!
//! Everything here is a pure function of its arguments: no files, no clock, no randomness, no terminal. Any crate may
//! call it; it calls none of them. Why these methods and no others: `docs/decisions/0003-statistics.md`. That the
//! arithmetic is right is shown in `tests/reference.rs` (against SciPy); that the verdicts are honest, in
//! `tests/study.rs` and `tests/sequential.rs` (thousands of synthetic experiments whose truth is known).

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod cases;
mod censored;
mod change_points;
mod comparison;
mod drift;
mod effects;
mod error;
mod fall;
mod histogram;
mod interval;
mod levels;
mod median;
mod pairs;
mod power;
mod ranking;
mod rate_search;
mod runs;
mod sequential;
mod series;
mod simultaneous;
mod spread;
mod standard;
mod steady_state;
mod unpaired;

pub use cases::CaseRounds;
pub use censored::CensoredTimes;
pub use change_points::{ChangePoint, HISTORY_MIN, Levels, change_points};
pub use comparison::{Comparison, Verdict, compare_by, compare_paired};
pub use drift::{Trend, holm, trend};
pub use effects::{Effect, Effects, Interaction, LevelMatrix, effects};
pub use error::{Side, StatsError};
pub use fall::{Fall, fall};
pub use histogram::{HIGHEST_LATENCY_NS, LatencyHistogram};
pub use interval::{Estimate, estimate_mean};
pub use levels::{
    PlanPace, TrialLength, VarianceParts, best_trial_length, rounds_per_run, variance_parts,
};
pub use median::median;
pub use pairs::{PairVerdict, pairs};
pub use power::{MAX_ROUNDS, rounds_to_find};
pub use ranking::{Ranking, rank, rank_in_groups};
pub use rate_search::{RateSearch, RateStep, RateTry, SearchEnd};
pub use runs::{RunNoise, RunsRatio, compare_runs};
pub use sequential::ROUNDS_MIN;
pub use series::TimeSeries;
pub use simultaneous::Family;
pub use spread::ROUNDS_TO_JUDGE;
pub use standard::{COUNTED_MIN, Looks, Standard};
pub use steady_state::{STEADY_SAMPLES_MIN, steady_after};
pub use unpaired::{UnpairedRatio, compare_unpaired, compare_unpaired_among};
