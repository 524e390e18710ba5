//! What transactions cost on layouts with a price, as a table for page and Markdown.

use crate::comparison::NO_FIGURE;
use spindle_result::{Cost, Ranking, RunResult, costs};
use spindle_text::quantity::thousands;

/// What the columns are.
pub(crate) const HEADER: [&str; 5] = [
    "layout",
    "price per month",
    "transactions per second",
    "cost of a million",
    "dominated by",
];

/// What is to be said of it.
pub(crate) const NOTE: &str = "\
The cost of a million transactions if the layout did as many per second for a month of 730 hours. A layout that is \
dominated is never the better choice: another does as much or more, and costs no more.";

/// A row for each layout at a load level, the cheapest first; none without prices.
pub(crate) fn rows(result: &RunResult, ranking: &Ranking) -> Vec<Vec<String>> {
    let row = |cost: Cost| {
        let currency = &cost.price.currency;
        vec![
            cost.layout.clone(),
            format!(
                "{:.2} {currency}",
                cost.price.hundredths_per_month as f64 / 100.0
            ),
            thousands(cost.rate_per_s),
            cost.amount(),
            cost.dominated_by.unwrap_or_else(|| NO_FIGURE.to_owned()),
        ]
    };
    costs(result, ranking).into_iter().map(row).collect()
}
