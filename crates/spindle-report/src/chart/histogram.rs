//! How long the requests of one point took: bars over a logarithmic axis, so that a few long ones are seen beside many
//! short ones.

use maud::{Markup, html};
use spindle_text::quantity::time;

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, draw, greatest};
use crate::calibration_sheet::LatencyBars;

/// Bars of each factor of ten.
const BARS_PER_DECADE: f64 = 10.0;

/// The chart of one point.
pub(crate) fn figure(bars: &LatencyBars, id: &str) -> Markup {
    let bars_us = bars_of(&bars.buckets);
    let (Some(first), Some(last)) = (bars_us.first(), bars_us.last()) else {
        return html! {};
    };
    let x = Axis::Logarithmic(first.from_us..last.to_us);
    let most = greatest(bars_us.iter().map(|bar| bar.percent));
    let label = format!("Latencies of {}; the figures follow.", bars.name);
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 260 } else { 220 },
            x: x.clone(),
            x_title: "time of a request, us, logarithmic",
            y: Axis::from_zero(most),
            y_title: "% of the requests",
            label: &label,
        };
        let mark = |bar: &Bar| {
            let corners = [(bar.from_us, 0.0), (bar.to_us, bar.percent)];
            Mark::filled_box("part c1", corners, bar.says())
        };
        draw(&frame, bars_us.iter().map(mark).collect())
    });
    let figure = Figure {
        id,
        heading: &bars.name,
        legend: Vec::new(),
        drawing,
        note: String::new(),
        controls: html! {},
        figures: Figures::Table {
            header: ["longer than", "up to", "% of the requests"]
                .map(str::to_owned)
                .to_vec(),
            rows: bars_us
                .iter()
                .map(|bar| {
                    vec![
                        time(bar.from_us),
                        time(bar.to_us),
                        format!("{:.3}", bar.percent),
                    ]
                })
                .collect(),
        },
    };
    figure.markup()
}

#[derive(Debug, PartialEq)]
struct Bar {
    from_us: f64,
    to_us: f64,
    percent: f64,
}

impl Bar {
    fn says(&self) -> String {
        let (from, to) = (time(self.from_us), time(self.to_us));
        format!("{from} to {to}: {:.2} %", self.percent)
    }
}

/// Bars of equal factors, without those that hold nothing.
fn bars_of(buckets: &[(f64, u64)]) -> Vec<Bar> {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut bars = std::collections::BTreeMap::<i64, u64>::new();
    for (upper_us, count) in buckets.iter().filter(|(upper_us, _)| *upper_us > 0.0) {
        let bar = (upper_us.log10() * BARS_PER_DECADE).ceil() as i64;
        *bars.entry(bar).or_default() += count;
    }
    let edge = |bar: i64| 10_f64.powf(bar as f64 / BARS_PER_DECADE);
    let bars = bars.into_iter().map(|(bar, count)| Bar {
        from_us: edge(bar - 1),
        to_us: edge(bar),
        percent: count as f64 * 100.0 / all as f64,
    });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hold_all_requests_and_lie_over_their_times() {
        let bars = bars_of(&[(100.0, 1), (101.0, 2), (126.0, 1), (5_000.0, 4)]);
        let percents: Vec<f64> = bars.iter().map(|bar| bar.percent).collect();
        // 126 us lies just beyond the edge of 125.9.
        assert_eq!(percents, [12.5, 25.0, 12.5, 50.0]);
        assert_eq!(percents.iter().sum::<f64>(), 100.0);
        for (bar, value_us) in bars.iter().zip([100.0, 101.0]) {
            assert!(
                bar.from_us < value_us && value_us <= bar.to_us * 1.000_001,
                "{bar:?}"
            );
        }
    }
}
