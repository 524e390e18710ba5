//! Percentiles of the transaction time: a row for each layout, from p50 over p95 to p99.

use maud::{Markup, html};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, colour_class, draw};
use crate::comparison::milliseconds;
use spindle_result::{Case, RunResult, Summary};

/// Height of a row in units.
const ROW: u32 = 36;

/// The chart of the cases of one load; `None` when none was measured.
pub(crate) fn figure(
    result: &RunResult,
    cases: &[&Case],
    id: &str,
    heading: &str,
) -> Option<Markup> {
    let rows: Vec<Row> = cases
        .iter()
        .filter_map(|case| Row::of(result, case))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let axis = Axis::for_all(rows.iter().flat_map(|row| row.percentiles()));
    let x_title = if axis.is_logarithmic() {
        "milliseconds, logarithmic"
    } else {
        "milliseconds"
    };
    let label = format!("{heading}: p50, p95 and p99 of every layout; the figures follow.");
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: 52 + ROW * rows.len() as u32,
            x: axis.clone(),
            x_title,
            y: Axis::Rows(rows.len()),
            y_title: "",
            label: &label,
        };
        draw(&frame, marks(&rows, size, axis.ends().0))
    });
    let header = ["layout", "p50, ms", "p95, ms", "p99, ms"];
    let figure = Figure {
        id,
        heading,
        legend: Vec::new(),
        drawing,
        note: "Three dots from left to right: half of the transactions took no longer, 95 of 100, 99 of 100. Means over the \
               rounds."
            .to_owned(),
        controls: html! {},
        figures: Figures::Table {
            header: header.map(str::to_owned).to_vec(),
            rows: rows
                .iter()
                .map(|row| {
                    let figures = row.percentiles().map(milliseconds);
                    [vec![row.name.clone()], figures.to_vec()].concat()
                })
                .collect(),
        },
    };
    Some(figure.markup())
}

struct Row {
    name: String,
    class: String,
    summary: Summary,
}

impl Row {
    fn of(result: &RunResult, case: &Case) -> Option<Row> {
        let number = result.layout_number(&case.id.layout)?;
        Some(Row {
            name: format!("{number} {}", case.id.layout),
            class: colour_class(number - 1),
            summary: case.summary().filter(|_| case.is_compared())?,
        })
    }

    fn percentiles(&self) -> [f64; 3] {
        [
            self.summary.p50_ms,
            self.summary.p95_ms,
            self.summary.p99_ms,
        ]
    }
}

fn marks(rows: &[Row], size: Size, start: f64) -> Vec<Mark> {
    let longest_name = if size == Size::Wide { 90 } else { 46 };
    let mut marks = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let [name_at, dots_at] = [0.36, 0.72].map(|share| index as f64 + share);
        let percentiles = row.percentiles();
        let name = super::shortened(&row.name, longest_name);
        marks.push(Mark::text("name", (start, name_at), name));
        marks.push(Mark::line(
            format!("span {}", row.class),
            vec![(percentiles[0], dots_at), (percentiles[2], dots_at)],
        ));
        for (percentile, label) in percentiles.into_iter().zip(["p50", "p95", "p99"]) {
            marks.push(Mark::dot(
                format!("dot {}", row.class),
                (percentile, dots_at),
                5.0,
                format!("{}: {label} {} ms", row.name, milliseconds(percentile)),
            ));
        }
    }
    marks
}
