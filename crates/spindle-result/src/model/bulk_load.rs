//! What a bulk load brought, and how it went over time.

use serde::{Deserialize, Serialize};

/// Rows that clients inserted until there were enough: means over the trials of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkLoad {
    /// Rows.
    pub rows: u64,
    /// Seconds that they took, the flush at the end included.
    pub seconds: f64,
    /// Rows per second of that time.
    pub rows_per_s: f64,
    /// The time until the last commit in equal parts, ten where there are samples enough; empty where there are not
    /// even two.
    pub over_time: Vec<LoadStep>,
}

/// One of the equal parts of a load's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadStep {
    /// When it ends, seconds after the first row.
    pub end_s: f64,
    /// Rows per second in it.
    pub rows_per_s: f64,
    /// Space of all segments at its end, MiB; `None` where it was not sampled.
    pub segments_mib: Option<f64>,
}
