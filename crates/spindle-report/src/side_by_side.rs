//! A table with a column for each layout of a load level, for the terminal and both reports. What its rows are, its
//! maker says: [`crate::queries`], [`crate::bulk_load`], [`crate::load_curve`].

use spindle_result::{Case, RunResult, TimeUse};
use spindle_text::quantity::thousands;

use crate::comparison::NO_FIGURE;

/// A part of the time that is smaller than this in every layout has no row.
const PART_MIN: f64 = 0.01;

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
        _ => thousands(mib),
    }
}

/// Seconds of each part of some time that went by for each case, by what became of its transactions' time; the greatest
/// first. `NO_FIGURE` where that is not known.
pub(crate) fn time_rows(cases: &[(&Case, f64)]) -> Vec<Vec<String>> {
    let mut parts: Vec<(&TimeUse, f64)> = Vec::new();
    for (case, _) in cases {
        let Some(time) = &case.response_time else {
            continue;
        };
        for of in &time.parts {
            let share = of.us / time.mean_us;
            match parts.iter_mut().find(|(part, _)| **part == of.part) {
                Some((_, greatest)) => *greatest = greatest.max(share),
                None => parts.push((&of.part, share)),
            }
        }
    }
    parts.retain(|(_, share)| *share >= PART_MIN);
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let of_part = |(part, _): (&TimeUse, f64)| {
        let cell = |(case, whole_s): &(&Case, f64)| match &case.response_time {
            Some(time) => seconds(whole_s * time.part_us(part) / time.mean_us),
            None => NO_FIGURE.to_owned(),
        };
        let title = format!("time in {}, s", part.own_name());
        std::iter::once(title)
            .chain(cases.iter().map(cell))
            .collect()
    };
    parts.into_iter().map(of_part).collect()
}

/// With three figures that count, about.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..0.001 => format!("{seconds:.6}"),
        0.001..0.01 => format!("{seconds:.5}"),
        0.01..0.1 => format!("{seconds:.4}"),
        0.1..10.0 => format!("{seconds:.3}"),
        10.0..100.0 => format!("{seconds:.2}"),
        100.0..1000.0 => format!("{seconds:.1}"),
        _ => thousands(seconds),
    }
}
