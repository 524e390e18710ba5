//! Throughput over the number of clients: a line for each layout, the 95 % interval of each mean.

use maud::{Markup, html};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, colour_class, draw, greatest};
use crate::comparison::NO_FIGURE;
use spindle_result::{Case, LoadLevel, RunResult, Throughput};
use spindle_text::quantity::thousands;

/// How far intervals are drawn, in highest means.
const INTERVALS_MAX: f64 = 1.5;

/// The chart of one workload; `None` with a single load level, where there is nothing to scale.
pub(crate) fn figure(result: &RunResult, id: &str, heading: &str) -> Option<Markup> {
    let points: Vec<Point> = result
        .cases
        .iter()
        .filter(|case| case.is_compared())
        .filter_map(|case| Point::of(result, case))
        .collect();
    let mut levels: Vec<u32> = points.iter().map(|point| point.clients).collect();
    levels.sort_unstable();
    levels.dedup();
    if levels.len() < 2 {
        return None;
    }
    let drawn: Vec<usize> = (0..result.layouts.len())
        .filter(|layout| points.iter().any(|point| point.layout == *layout))
        .collect();
    let most_clients = greatest(levels.iter().map(|&clients| f64::from(clients)));
    // Intervals of unsteady rounds may reach far beyond all means; they are cut off rather than the means made flat.
    let highest_mean = greatest(points.iter().map(|point| point.tpm.mean));
    let highest = greatest(points.iter().map(Point::highest)).min(INTERVALS_MAX * highest_mean);
    let label = format!(
        "{heading}: transactions per minute of every layout at every load; the figures follow."
    );
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 340 } else { 280 },
            x: Axis::from_zero(most_clients),
            x_title: "clients",
            y: Axis::from_zero(highest),
            y_title: "transactions per minute",
            label: &label,
        };
        draw(&frame, marks(result, &drawn, &points, most_clients, size))
    });
    let name = |layout: usize| format!("{} {}", layout + 1, result.layouts[layout].name);
    let mut header = vec!["transactions per minute".to_owned()];
    header.extend(
        levels
            .iter()
            .map(|clients| LoadLevel::of(*clients).to_string()),
    );
    let row = |&layout: &usize| {
        let figures = levels.iter().map(|clients| {
            let mut points = points.iter();
            let point = points.find(|point| point.layout == layout && point.clients == *clients);
            point.map_or(NO_FIGURE.to_owned(), |point| thousands(point.tpm.mean))
        });
        [vec![name(layout)], figures.collect()].concat()
    };
    let figure = Figure {
        id,
        heading,
        legend: drawn
            .iter()
            .map(|&layout| (colour_class(layout), name(layout)))
            .collect(),
        drawing,
        note: "Means of the rounds with their 95 % intervals.".to_owned(),
        controls: html! {},
        figures: Figures::Table {
            header,
            rows: drawn.iter().map(row).collect(),
        },
    };
    Some(figure.markup())
}

struct Point {
    layout: usize,
    clients: u32,
    tpm: Throughput,
}

impl Point {
    fn of(result: &RunResult, case: &Case) -> Option<Point> {
        Some(Point {
            layout: result.layout_number(&case.id.layout)? - 1,
            clients: (case.id.load.rate.is_none()).then_some(case.id.load.clients)?,
            tpm: case.tpm?,
        })
    }

    fn highest(&self) -> f64 {
        self.tpm.ci95.map_or(self.tpm.mean, |(_, high)| high)
    }
}

/// Layouts stand a little beside each other, so that intervals at one load do not hide each other.
fn marks(
    result: &RunResult,
    drawn: &[usize],
    points: &[Point],
    most_clients: f64,
    size: Size,
) -> Vec<Mark> {
    let unit = most_clients / f64::from(size.width());
    let layouts = result.layouts.len() as f64;
    let x = |point: &Point| {
        f64::from(point.clients) + 3.0 * unit * (point.layout as f64 - layouts / 2.0)
    };
    let mut marks = Vec::new();
    for &layout in drawn {
        let of_layout: Vec<&Point> = points
            .iter()
            .filter(|point| point.layout == layout)
            .collect();
        let class = colour_class(layout);
        let line = of_layout
            .iter()
            .map(|point| (x(point), point.tpm.mean))
            .collect();
        marks.push(Mark::line(format!("average {class}"), line));
        for point in of_layout {
            if let Some((low, high)) = point.tpm.ci95 {
                let ends = vec![(x(point), low.max(0.0)), (x(point), high)];
                marks.push(Mark::line(format!("interval {class}"), ends));
            }
            let name = &result.layouts[layout].name;
            marks.push(Mark::dot(
                format!("dot {class}"),
                (x(point), point.tpm.mean),
                4.0,
                format!(
                    "{name}, {}: {} tpm",
                    LoadLevel::of(point.clients),
                    thousands(point.tpm.mean)
                ),
            ));
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use spindle_result::{build, sample};

    use super::*;

    #[test]
    fn one_client_is_no_clients() {
        let mut record = sample::record(&[("a", &[100.0; 3])]);
        let mut single = record.cases[0].clone();
        single.load = LoadLevel::of(1);
        record.cases.push(single);
        let drawn = figure(&build(&record).unwrap(), "scaling", "Scaling").expect("two loads");
        let drawn = drawn.into_string();
        assert!(drawn.contains("a, 1 client: ") && drawn.contains("a, 8 clients: "));
        assert!(!drawn.contains("1 clients"));
    }
}
