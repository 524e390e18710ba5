//! What a search for the highest rate found in a trial.

use serde::{Deserialize, Serialize};
use spindle_stats::RateStep;

/// The highest rate at which load kept a promise in one trial. The trial's other figures were measured at this rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// What was promised: 99 of 100 transactions take no longer from their intended begin, microseconds.
    pub p99_us: f64,
    /// The rate, per second.
    pub rate_per_s: f64,
    /// What the same clients did in a closed loop, per second.
    pub closed_loop_per_s: f64,
    /// Whether tries disagreed to the end of the search: the rate is where most of them point to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unsettled: bool,
    /// The rates that were tried, in this order.
    pub steps: Vec<RateStep>,
}
