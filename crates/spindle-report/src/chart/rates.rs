//! Latency at fixed rates: p50 and p99 of reads that come whether those before were answered or not.

use maud::{Markup, html};
use spindle_text::quantity::{thousands, time};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, colour_class, draw, greatest};
use crate::calibration_sheet::RateLine;

/// A percentile, as a line of the chart.
type Percentile = (&'static str, fn(&RateLine) -> Option<f64>);
const PERCENTILES: [Percentile; 2] = [
    ("p50", |line| Some(line.p50_us)),
    ("p99", |line| line.p99_us),
];

/// The chart; empty without any rate.
pub(crate) fn figure(lines: &[RateLine], id: &str, heading: &str) -> Markup {
    if lines.is_empty() {
        return html! {};
    }
    let times = lines
        .iter()
        .flat_map(|line| PERCENTILES.map(|(_, of)| of(line)))
        .flatten();
    let y = Axis::for_all(times);
    let y_title = match y.is_logarithmic() {
        true => "time since it was due, us, logarithmic",
        false => "time since it was due, us",
    };
    let most = greatest(lines.iter().map(|line| line.rate_per_s));
    let label = format!("{heading}: p50 and p99; the figures follow.");
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 320 } else { 260 },
            x: Axis::from_zero(most),
            x_title: "reads due per second",
            y: y.clone(),
            y_title,
            label: &label,
        };
        draw(&frame, marks(lines))
    });
    let figure = Figure {
        id,
        heading,
        legend: PERCENTILES
            .iter()
            .enumerate()
            .map(|(index, (name, _))| (colour_class(index), (*name).to_owned()))
            .collect(),
        drawing,
        note: "Reads come at parts of the maximum, from 10 to 95 % where the time allowed, in bunches as from many clients. \
               The time of each counts from when it was due."
            .to_owned(),
        controls: html! {},
        figures: Figures::Table {
            header: ["reads due per second", "p50", "p99", "kept up"].map(str::to_owned).to_vec(),
            rows: lines.iter().map(row).collect(),
        },
    };
    figure.markup()
}

fn row(line: &RateLine) -> Vec<String> {
    let is_kept_up = if line.is_kept_up { "yes" } else { "no" };
    vec![
        thousands(line.rate_per_s),
        time(line.p50_us),
        line.p99_us.map_or("-".to_owned(), time),
        is_kept_up.to_owned(),
    ]
}

fn marks(lines: &[RateLine]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (index, (name, of)) in PERCENTILES.iter().enumerate() {
        let class = colour_class(index);
        let known = lines
            .iter()
            .filter_map(|line| Some((line.rate_per_s, of(line)?)));
        marks.push(Mark::line(
            format!("average {class}"),
            known.clone().collect(),
        ));
        marks.extend(known.map(|(rate_per_s, time_us)| {
            let (rate, taken) = (thousands(rate_per_s), time(time_us));
            let says = format!("{rate} per second: {name} {taken}");
            Mark::dot(format!("dot {class}"), (rate_per_s, time_us), 4.0, says)
        }));
    }
    marks
}
