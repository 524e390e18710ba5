//! What is said of clients, whatever they do.

use std::ops::RangeInclusive;

use spindle_text::settings;

/// How many clients there may be.
pub const CLIENTS: RangeInclusive<u32> = 1..=4096;

settings! {
    /// What is said of clients. What is left out depends on the workload.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ClientSettings {
        /// Load levels: each number of clients is a case; 1 if left out with `"tpch"` and `"tpcd"`.
        clients: Option<Vec<u32>> = optional_numbers("clients", "`8`", CLIENTS),
        /// Pause of a client after each transaction; not with `rate`.
        think_time_ms: u64 = duration_ms("think_time", 0, 0..=3_600_000),
        /// Whether a client whose connection is lost connects again, for up to 30 seconds, and goes on; else that ends
        /// the trial. Not with the embedded database.
        reconnect: bool = flag("reconnect", false),
        /// The share of transactions that may fail for good. A trial with more of them has failed. Deadlocks and the
        /// like are tried again and are no failures, until a transaction has been tried again 100 times: then it has
        /// failed. With `"tpch"` and `"tpcd"` it is `"100%"` when it is left out.
        error_limit_percent: Option<f64> = optional_percent("error_limit", "`\"1%\"`", 0.0..=100.0),
    }
}
