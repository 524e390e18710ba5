//! The arithmetic behind a verdict: histograms, series, intervals, comparisons and the ranking of cases.
//!
//! Everything here is a pure function of its arguments: no files, no clock, no randomness, no terminal. Any crate may
//! call it; it calls none of them. Why these methods and no others: `docs/decisions/0003-statistics.md`. That the
//! arithmetic is right is shown in `tests/reference.rs` (against SciPy); that the verdicts are honest, in
//! `tests/study.rs` (thousands of synthetic experiments whose truth is known).

mod comparison;
mod error;
mod histogram;
mod interval;
mod ranking;
mod series;
mod unpaired;

pub use comparison::{Comparison, MAX_ROUNDS, Verdict, compare_paired};
pub use error::{Side, StatsError};
pub use histogram::{HIGHEST_LATENCY_NS, LatencyHistogram};
pub use interval::{Estimate, estimate_mean};
pub use ranking::{CaseRounds, PairVerdict, Ranking, rank};
pub use series::TimeSeries;
pub use unpaired::{UnpairedRatio, compare_unpaired};
