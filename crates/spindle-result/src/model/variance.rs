//! At which level of repetition the ratio of two layouts varies.

use serde::{Deserialize, Serialize};

use super::CasePair;

/// The parts of the variance of one verdict's ratio, as standard deviations in percent of the ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variance {
    /// Which two, the best first.
    #[serde(flatten)]
    pub cases: CasePair,
    /// Within trials, from the throughput over their time.
    pub within_percent: f64,
    /// From one trial to the next of the same run.
    pub trials_percent: f64,
    /// From one run to the next; `None` with a single run.
    pub runs_percent: Option<f64>,
    /// Rounds a run that narrow the interval most for their time; `None` with a single run.
    pub rounds_per_run: Option<u32>,
    /// Measured time of a trial that narrows the interval most in the time of this run, seconds; `None` with several
    /// runs, or where it would help little.
    #[serde(default)]
    pub better_measure_s: Option<f64>,
    /// All of it in words, and what to repeat.
    pub sentence: String,
}
