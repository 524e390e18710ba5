//! What searches for the highest rate found, as a table for page and Markdown.

use crate::comparison::{NO_FIGURE, milliseconds};
use spindle_result::{CaseCapacity, RunResult};
use spindle_text::quantity::thousands;

/// What the columns are.
pub(crate) const HEADER: [&str; 6] = [
    "layout",
    "clients",
    "p99 promised, ms",
    "transactions per second",
    "of the closed loop",
    "knee, per second",
];

/// What is to be said of it.
pub(crate) const NOTE: &str = "\
The highest rate at which 99 of 100 transactions keep the promise: the mean of the trials, with its 95 % interval. The \
knee is the rate with the most throughput for its p99: beyond it, response times grow faster than the load.";

/// A row for each case that was searched; none where no rate was searched for.
pub(crate) fn rows(result: &RunResult) -> Vec<Vec<String>> {
    let cases = result.cases.iter().filter(|case| case.is_compared());
    cases
        .filter_map(|case| {
            let capacity = case.capacity()?;
            let number = result.layout_number(&case.id.layout)?;
            Some(vec![
                format!("{number} {}", case.id.layout),
                case.id.load.in_column(),
                milliseconds(capacity.p99_ms),
                rate(&capacity),
                format!("{:.0} %", 100.0 * capacity.of_closed_loop),
                thousands(capacity.knee_per_s),
            ])
        })
        .collect()
}

fn rate(capacity: &CaseCapacity) -> String {
    let interval = capacity.ci95.map_or_else(
        || NO_FIGURE.to_owned(),
        |(low, high)| format!("{}-{}", thousands(low.max(0.0)), thousands(high)),
    );
    format!("{} ({interval})", thousands(capacity.rate_per_s))
}
