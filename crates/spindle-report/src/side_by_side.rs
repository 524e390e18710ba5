//! A table with a column for each layout of a load level, for the terminal and both reports. What its rows are, its
//! maker says: [`crate::queries`], [`crate::bulk_load`].

use spindle_result::{Case, RunResult};

/// Bytes of a mebibyte.
pub(crate) const MIB: f64 = 1_048_576.0;

/// Figures of one workload and load level.
pub struct SideBySide {
    /// What is in it, of which workload and load.
    pub title: String,
    /// What the columns are: that of the rows, then each layout by number and name.
    pub header: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
    /// How it is to be read.
    pub note: &'static str,
}

/// Number and name of a case's layout.
pub fn name(result: &RunResult, case: &Case) -> String {
    match result.layout_number(&case.id.layout) {
        Some(number) => format!("{number} {}", case.id.layout),
        None => case.id.layout.clone(),
    }
}

/// With two or three figures that count.
pub(crate) fn mebibytes(mib: f64) -> String {
    match mib {
        0.0 => "0".to_owned(),
        ..0.1 => format!("{mib:.3}"),
        0.1..10.0 => format!("{mib:.2}"),
        10.0..100.0 => format!("{mib:.1}"),
        _ => format!("{mib:.0}"),
    }
}
