//! What a search for the highest rate found in a trial.

use serde::{Deserialize, Serialize};

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

/// A rate that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Transactions that arrived, per second.
    pub rate_per_s: f64,
    /// How many ended while it was measured.
    pub transactions: u64,
    /// Half of the transactions took no longer, microseconds from their intended begin.
    pub p50_us: f64,
    /// So took 99 of 100.
    pub p99_us: f64,
    /// The share of them that took longer than promised, 0 to 1.
    pub late_share: f64,
}
