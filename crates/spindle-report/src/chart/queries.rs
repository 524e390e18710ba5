//! Seconds per query: for each query a bar for each layout, on one scale, logarithmic where the queries lie far apart.

use maud::{Markup, html};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, both, colour_class, draw};
use crate::queries;
use crate::side_by_side::{self, SideBySide};
use spindle_result::{Case, QueryMeans, RunResult};

/// Height of a bar, and of a query's name above its bars, in units.
const BAR: u32 = 10;
const NAME: u32 = 18;

/// A bar that is twice as long is then no query that took twice as long.
const LOGARITHMIC_NOTE: &str =
    "The scale is logarithmic and has no zero for bars to begin at: compare where they end.";

/// The chart of the cases of one load, with `table` as its figures; `None` when they have no queries.
pub(crate) fn figure(
    result: &RunResult,
    cases: &[&Case],
    table: &SideBySide,
    id: &str,
) -> Option<Markup> {
    let measured = queries::measured(cases);
    let (_, first) = measured.first()?;
    let names: Vec<&str> = first.times.iter().map(|time| time.name.as_str()).collect();
    let bars: Vec<Bar> = names
        .iter()
        .enumerate()
        .flat_map(|(query, name)| bars_of(result, &measured, query, name))
        .collect();
    let axis = Axis::for_all(bars.iter().map(|bar| bar.seconds));
    let x_title = match axis.is_logarithmic() {
        true => "seconds, logarithmic",
        false => "seconds",
    };
    let note = match axis.is_logarithmic() {
        true => format!("{} {LOGARITHMIC_NOTE}", table.note),
        false => table.note.to_owned(),
    };
    let heading = &table.title;
    let label = format!("{heading}, of every layout; the figures follow.");
    let height_of_query = BAR * measured.len() as u32 + NAME;
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: 52 + height_of_query * names.len() as u32,
            x: axis.clone(),
            x_title,
            y: Axis::Rows(names.len()),
            y_title: "",
            label: &label,
        };
        draw(&frame, marks(&bars, measured.len(), axis.ends().0))
    });
    let number = |case: &Case| result.layout_number(&case.id.layout).unwrap_or(1);
    let figure = Figure {
        id,
        heading,
        legend: measured
            .iter()
            .map(|(case, _)| {
                (
                    colour_class(number(case) - 1),
                    side_by_side::name(result, case),
                )
            })
            .collect(),
        drawing,
        note,
        controls: html! {},
        figures: Figures::Table {
            header: table.header.clone(),
            rows: table.rows.clone(),
        },
    };
    Some(figure.markup())
}

struct Bar {
    query: usize,
    /// Its place among the bars of the query.
    place: usize,
    class: String,
    name: String,
    text: String,
    seconds: f64,
}

/// A query that has no seconds has no bar; the figures say why.
fn bars_of(
    result: &RunResult,
    measured: &[(&Case, QueryMeans)],
    query: usize,
    name: &str,
) -> Vec<Bar> {
    let bar = |(place, (case, means)): (usize, &(&Case, QueryMeans))| {
        let time = means.times.iter().find(|time| time.name == name)?;
        let (seconds, number) = (time.seconds?, result.layout_number(&case.id.layout)?);
        let layout = side_by_side::name(result, case);
        Some(Bar {
            query,
            place,
            class: colour_class(number - 1),
            name: name.to_owned(),
            text: format!("{name}, {layout}: {} s", side_by_side::seconds(seconds)),
            seconds,
        })
    };
    measured.iter().enumerate().filter_map(bar).collect()
}

fn marks(bars: &[Bar], layouts: usize, start: f64) -> Vec<Mark> {
    let whole = f64::from(BAR * layouts as u32 + NAME);
    let at = |bar: &Bar, part: f64| {
        let units = f64::from(NAME) + f64::from(BAR) * (bar.place as f64 + part);
        bar.query as f64 + units / whole
    };
    let mut marks = Vec::new();
    for bar in bars {
        let corners = [(start, at(bar, 0.1)), (bar.seconds, at(bar, 0.9))];
        let class = format!("part {}", bar.class);
        marks.push(Mark::filled_box(class, corners, bar.text.clone()));
        if bar.place == 0 {
            let above = bar.query as f64 + f64::from(NAME - 4) / whole;
            marks.push(Mark::text("name", (start, above), bar.name.clone()));
        }
    }
    marks
}
