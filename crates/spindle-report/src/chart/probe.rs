//! The devices themselves over the run: what a probe found before each trial, beside what is usual for its layout. A
//! line that leaves 100 % says that the device, and not the layout, was another.

use maud::{Markup, html};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, colour_class, draw, greatest};
use crate::comparison::NO_FIGURE;
use spindle_result::{DeviceProbe, ProbedTimes, RunResult};
use spindle_stats::median;

/// How far the drawing reaches, percent of the usual time: a single late probe must not flatten all others.
const HIGHEST_PERCENT: f64 = 400.0;

/// One probe of a layout's device.
struct Point {
    layout: usize,
    round: u32,
    position: u32,
    probe: DeviceProbe,
}

/// A layout's probes of one kind, as shares of their median.
struct Line {
    layout: usize,
    name: String,
    /// How it is drawn, to be told from that of the other kind.
    style: &'static str,
    /// Place in the run, from 1, and percent of the median.
    values: Vec<(f64, f64)>,
}

/// The chart; `None` with fewer than two trials that have a probe.
pub(crate) fn figure(result: &RunResult) -> Option<Markup> {
    let points = points(result);
    if points.len() < 2 {
        return None;
    }
    let lines = [
        lines(result, &points, ("durable write", "average"), |probe| {
            probe.write
        }),
        lines(result, &points, ("direct read", "average again"), |probe| {
            probe.read
        }),
    ];
    let lines: Vec<Line> = lines.into_iter().flatten().collect();
    let highest = greatest(
        lines
            .iter()
            .flat_map(|line| line.values.iter().map(|of| of.1)),
    );
    let heading = "The devices over the run";
    let label = format!("{heading}: time of a request before each trial; the figures follow.");
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 260 } else { 220 },
            x: Axis::from_zero(points.len() as f64),
            x_title: "trials in the order in which they ran",
            y: Axis::from_zero(highest.min(HIGHEST_PERCENT)),
            y_title: "percent of what is usual for the layout",
            label: &label,
        };
        draw(&frame, marks(&lines))
    });
    let legend = lines
        .iter()
        .map(|line| (colour_class(line.layout), line.name.clone()));
    let figure = Figure {
        id: "probes",
        heading,
        legend: legend.collect(),
        drawing,
        note: "Before each trial: direct reads and durable writes of 8 KiB, one after the other; the median of each; dashed for reads. Lines that \
               rise together show a device that became slower for all."
            .to_owned(),
        controls: html! {},
        figures: Figures::Table {
            header: ["trial", "layout", "round", "direct read, us", "durable write, us"]
                .map(str::to_owned)
                .to_vec(),
            rows: (1..).zip(&points).map(|(number, point)| row(result, number, point)).collect(),
        },
    };
    Some(figure.markup())
}

/// All probes in the order in which they were made.
fn points(result: &RunResult) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for case in &result.cases {
        let Some(number) = result.layout_number(&case.id.layout) else {
            continue;
        };
        points.extend(case.trials.iter().filter_map(|trial| {
            Some(Point {
                layout: number - 1,
                round: trial.round,
                position: trial.position,
                probe: trial.conditions.probe?,
            })
        }));
    }
    points.sort_by_key(|point| (point.round, point.position));
    points
}

fn lines(
    result: &RunResult,
    points: &[Point],
    (kind, style): (&str, &'static str),
    of: impl Fn(&DeviceProbe) -> Option<ProbedTimes>,
) -> Vec<Line> {
    let line = |layout: usize| {
        let known: Vec<(f64, f64)> = (1..)
            .zip(points)
            .filter(|(_, point)| point.layout == layout)
            .filter_map(|(number, point)| Some((f64::from(number), of(&point.probe)?.median_us)))
            .collect();
        let usual_us = median(known.iter().map(|of| of.1)).filter(|us| *us > 0.0)?;
        let name = &result.layouts[layout].name;
        Some(Line {
            layout,
            name: format!("{} {name}: {kind}", layout + 1),
            style,
            values: known
                .into_iter()
                .map(|(number, us)| (number, (100.0 * us / usual_us).min(HIGHEST_PERCENT)))
                .collect(),
        })
    };
    (0..result.layouts.len()).filter_map(line).collect()
}

fn marks(lines: &[Line]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for line in lines {
        let class = colour_class(line.layout);
        marks.push(Mark::line(
            format!("{} {class}", line.style),
            line.values.clone(),
        ));
        marks.extend(line.values.iter().map(|&(number, percent)| {
            let text = format!("{}, trial {number:.0}: {percent:.0} %", line.name);
            Mark::dot(format!("dot {class}"), (number, percent), 2.5, text)
        }));
    }
    marks
}

fn row(result: &RunResult, number: u32, point: &Point) -> Vec<String> {
    let microseconds = |times: Option<ProbedTimes>| {
        times.map_or(NO_FIGURE.to_owned(), |times| {
            format!("{:.0}", times.median_us)
        })
    };
    vec![
        number.to_string(),
        result.layouts[point.layout].name.clone(),
        point.round.to_string(),
        microseconds(point.probe.read),
        microseconds(point.probe.write),
    ]
}
