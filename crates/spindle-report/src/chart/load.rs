//! Latency over load: p99 of every rate, a line for each layout. Where rates were searched for, it goes through the
//! means of neighbours of all that were tried, and the promise is across; where the plan has several rates, through
//! these.

use maud::{Markup, html};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, colour_class, draw, greatest};
use crate::capacity::{HEADER, NOTE, rows};
use crate::load_curve::LoadCurve;
use spindle_result::{Case, RateStep, RunResult};
use spindle_text::quantity::thousands;

/// p99 is drawn up to this many times the promise: beyond it only that it was broken counts.
const PROMISES_MAX: f64 = 3.0;
/// Rates within this factor of each other are one point of a line.
const NEIGHBOURS: f64 = 1.03;

/// The chart of the cases of one load; `None` where no rate was searched for.
pub(crate) fn figure(
    result: &RunResult,
    cases: &[&Case],
    id: &str,
    heading: &str,
) -> Option<Markup> {
    let curves: Vec<Curve> = cases
        .iter()
        .filter_map(|case| Curve::of(result, case))
        .collect();
    let promise_ms = cases.iter().find_map(|case| case.capacity())?.p99_ms;
    let note = format!(
        "{NOTE} The line across is the promise; p99 beyond {PROMISES_MAX} times of it is drawn there."
    );
    let figures = Figures::Table {
        header: HEADER.map(str::to_owned).to_vec(),
        rows: rows(result),
    };
    Some(of_curves(
        &curves,
        Some(promise_ms),
        (id, heading),
        note,
        figures,
    ))
}

/// The chart of the rates that the plan has.
pub(crate) fn figure_of_levels(result: &RunResult, curve: &LoadCurve<'_>, id: &str) -> Markup {
    let of_layout = |first: &&Case| Curve::of_levels(result, curve, &first.id.layout);
    let curves: Vec<Curve> = curve.layouts(result).iter().filter_map(of_layout).collect();
    let table = curve.table(result);
    let figures = Figures::Table {
        header: table.header,
        rows: table.rows,
    };
    let note = format!("{} Lines end where a layout falls behind.", table.note);
    of_curves(&curves, None, (id, &table.title), note, figures)
}

fn of_curves(
    curves: &[Curve],
    promise_ms: Option<f64>,
    (id, heading): (&str, &str),
    note: String,
    figures: Figures,
) -> Markup {
    let of_points =
        |pick: fn(&(f64, f64)) -> f64| curves.iter().flat_map(move |it| it.points.iter().map(pick));
    let most_per_s = greatest(of_points(|point| point.0));
    let highest_ms = greatest(of_points(|point| point.1));
    let highest_ms = promise_ms.map_or(highest_ms, |promise_ms| {
        highest_ms.min(PROMISES_MAX * promise_ms)
    });
    let label = format!("{heading}: p99 of every layout at every rate; the figures follow.");
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 340 } else { 280 },
            x: Axis::from_zero(most_per_s),
            x_title: "transactions that arrive per second",
            y: Axis::from_zero(highest_ms),
            y_title: "p99, milliseconds",
            label: &label,
        };
        let promise = promise_ms.map(|ms| vec![(0.0, ms), (most_per_s, ms)]);
        let promise = promise.map(|line| Mark::line("span".to_owned(), line));
        let mut marks: Vec<Mark> = promise.into_iter().collect();
        marks.extend(curves.iter().flat_map(|curve| curve.marks(highest_ms)));
        draw(&frame, marks)
    });
    let figure = Figure {
        id,
        heading,
        legend: curves
            .iter()
            .map(|curve| (colour_class(curve.layout), curve.name.clone()))
            .collect(),
        drawing,
        note,
        controls: html! {},
        figures,
    };
    figure.markup()
}

/// p99 over the rates that were tried for a layout, in ascending order.
struct Curve {
    layout: usize,
    name: String,
    /// Rate per second, p99 in milliseconds.
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn of(result: &RunResult, case: &Case) -> Option<Curve> {
        case.capacity()?;
        let mut steps: Vec<&RateStep> = case.capacities().flat_map(|it| &it.steps).collect();
        steps.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        let layout = result.layout_number(&case.id.layout)? - 1;
        Some(Curve {
            layout,
            name: format!("{} {}", layout + 1, case.id.layout),
            points: points(&steps),
        })
    }

    /// Of a layout at the rates of the plan that it keeps up with.
    fn of_levels(result: &RunResult, curve: &LoadCurve<'_>, layout: &str) -> Option<Curve> {
        let cases = curve.levels.iter().flatten();
        let cases = cases.filter(|case| case.id.layout == layout && !case.is_overloaded());
        let number = result.layout_number(layout)?;
        Some(Curve {
            layout: number - 1,
            name: format!("{number} {layout}"),
            points: cases
                .filter_map(|case| Some((case.rate_per_s()?, case.summary()?.p99_ms)))
                .collect(),
        })
    }

    fn marks(&self, highest_ms: f64) -> Vec<Mark> {
        let class = colour_class(self.layout);
        let shown = |&(per_s, p99_ms): &(f64, f64)| (per_s, p99_ms.min(highest_ms));
        let line = self.points.iter().map(shown).collect();
        let mut marks = vec![Mark::line(format!("average {class}"), line)];
        marks.extend(self.points.iter().map(|point| {
            let told = format!(
                "{}, {} per second: p99 {:.2} ms",
                self.name,
                thousands(point.0),
                point.1
            );
            Mark::dot(format!("dot {class}"), shown(point), 4.0, told)
        }));
        marks
    }
}

/// The means of neighbours; `steps` stand in ascending order of rate.
fn points(steps: &[&RateStep]) -> Vec<(f64, f64)> {
    let groups = steps.chunk_by(|a, b| b.rate_per_s <= NEIGHBOURS * a.rate_per_s);
    let mean = |group: &[&RateStep], figure: fn(&RateStep) -> f64| {
        group.iter().map(|step| figure(step)).sum::<f64>() / group.len() as f64
    };
    groups
        .map(|group| {
            let per_s = mean(group, |step| step.rate_per_s);
            (per_s, mean(group, |step| step.p99_us / 1e3))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_point() {
        let step = |rate_per_s: f64, p99_us: f64| RateStep {
            rate_per_s,
            transactions: 100,
            p50_us: 500.0,
            p99_us,
            late_share: 0.0,
        };
        let steps = [
            step(100.0, 2_000.0),
            step(102.0, 4_000.0),
            step(200.0, 9_000.0),
        ];
        let steps: Vec<&RateStep> = steps.iter().collect();
        assert_eq!(points(&steps), [(101.0, 3.0), (200.0, 9.0)]);
    }
}
