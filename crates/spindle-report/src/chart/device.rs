//! What devices and the system did over time: a small chart for each figure that was sampled, all layouts on the same
//! axes.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::{Value, json};
use spindle_stats::TimeSeries;

use super::figure::{Figure, Figures};
use super::{
    Axis, Frame, Mark, Size, colour_class, draw, greatest, layout_index, numbered, thin::thin,
};
use crate::timeline::{AVERAGED_SAMPLES, Timeline, duration_s};
use spindle_result::{RunResult, SampledTrial, SystemFigure};

/// Charts that are shown at once; what was sampled first is what most people want to see.
const UNFOLDED: usize = 12;

/// How names of figures end, and the unit that they say so.
const UNITS: [(&str, &str); 11] = [
    ("_percent", "%"),
    ("_bytes_per_s", "bytes per second"),
    ("_mib_per_s", "MiB per second"),
    ("_per_s", "per second"),
    ("_bytes", "bytes"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_pages", "pages"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
];

/// The charts of one load, in the order in which the figures were sampled; `None` when none were.
pub(crate) fn figures(result: &RunResult, timeline: &Timeline<'_>, id: &str) -> Option<Markup> {
    if names(timeline).is_empty() {
        return None;
    }
    Some(html! {
        @let (zero, moving): (Vec<&SystemFigure>, Vec<&SystemFigure>) =
            names(timeline).into_iter().partition(|name| is_zero(timeline, name));
        @let names: Vec<(usize, &SystemFigure)> = moving.into_iter().enumerate().collect();
        @let (first, more) = names.split_at(names.len().min(UNFOLDED));
        div.small-charts {
            @for (index, name) in first { (figure(result, timeline, name, &format!("{id}-{index}"))) }
        }
        @if !more.is_empty() {
            details.on-screen {
                summary { (more.len()) " more figures of the system" }
                div.small-charts {
                    @for (index, name) in more { (figure(result, timeline, name, &format!("{id}-{index}"))) }
                }
            }
        }
        @if !zero.is_empty() {
            p.note { "Zero all the time: " (zero.iter().map(|name| heading(name)).collect::<Vec<_>>().join("; ")) "." }
        }
    })
}

/// Whether a figure was zero in all samples that are drawn.
fn is_zero(timeline: &Timeline<'_>, name: &SystemFigure) -> bool {
    let columns = timeline
        .typical()
        .filter_map(|trial| trial.system.column(name));
    let mut values = columns.flatten().flatten();
    values.all(|value| *value == 0.0)
}

/// Every figure of which some value is known.
fn names<'a>(timeline: &Timeline<'a>) -> Vec<&'a SystemFigure> {
    let mut names = Vec::new();
    for column in timeline.typical().flat_map(|trial| &trial.system.columns) {
        let is_known = column.values.iter().any(Option::is_some);
        if is_known && column.name != SystemFigure::Checkpoints && !names.contains(&&column.name) {
            names.push(&column.name);
        }
    }
    names
}

/// A figure's name in words, with its unit.
fn heading(figure: &SystemFigure) -> String {
    let name = figure.name();
    // The system tells it of all that runs there, not of the group that was held to a budget.
    if *figure == SystemFigure::PageCacheMib {
        return "Page cache of the whole machine, MiB".to_owned();
    }
    let with_unit = UNITS.iter().find_map(|(end, unit)| {
        let stem = name.strip_suffix(end)?;
        Some(format!("{stem}, {unit}"))
    });
    let heading = with_unit
        .unwrap_or_else(|| name.to_owned())
        .replace('_', " ");
    let mut characters = heading.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

fn figure(result: &RunResult, timeline: &Timeline<'_>, name: &SystemFigure, id: &str) -> Markup {
    let heading = heading(name);
    let columns: Vec<(&SampledTrial, &[Option<f32>])> = timeline
        .typical()
        .filter_map(|trial| Some((trial, trial.system.column(name)?)))
        .collect();
    let known = columns
        .iter()
        .flat_map(|(_, values)| values.iter().flatten());
    let highest = greatest(known.map(|value| f64::from(*value)));
    let longest_s = greatest(timeline.typical().map(duration_s));
    let round = timeline.typical_round;
    let label = format!("{heading} over time, round {round}, a line for every layout.");
    let frame = Frame {
        size: Size::Small,
        height: 200,
        x: Axis::linear(0.0, longest_s),
        x_title: "seconds",
        y: Axis::from_zero(highest),
        y_title: &heading,
        label: &label,
    };
    let mut marks = Vec::new();
    for kind in [LineKind::Samples, LineKind::Average] {
        marks.extend(
            columns
                .iter()
                .flat_map(|(trial, values)| lines(result, trial, values, kind)),
        );
    }
    let series = columns.iter().map(|(trial, values)| {
        json!({
            "name": numbered(result, &trial.case.layout),
            "class": colour_class(layout_index(result, &trial.case.layout)),
            "round": round,
            "step_s": trial.system.interval_ms as f64 / 1e3,
            "values": values.iter().map(|value| figures_of(*value)).collect::<Vec<Value>>(),
        })
    });
    Figure {
        id,
        heading: &heading,
        legend: Vec::new(),
        drawing: draw(&frame, marks),
        note: String::new(),
        controls: html! {},
        figures: Figures::Series(json!({
            "value": name.name(),
            "round": round,
            "series": series.collect::<Vec<Value>>(),
        })),
    }
    .markup()
}

/// A value in the three figures that are enough to be shown.
fn figures_of(value: Option<f32>) -> Value {
    let Some(value) = value.map(f64::from) else {
        return Value::Null;
    };
    let magnitude = value.abs().max(1e-6).log10().floor();
    let unit = 10_f64.powf(2.0 - magnitude);
    let rounded = (value * unit).round() / unit;
    if rounded.fract() == 0.0 {
        json!(rounded as i64)
    } else {
        // Divided once more to lose the noise that the unit's own rounding brought.
        json!((rounded * 1e6).round() / 1e6)
    }
}

/// How the values of a trial are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Faint, as they were sampled.
    Samples,
    /// Strong, their moving average.
    Average,
}

impl LineKind {
    /// The class by which the page's style knows it.
    fn class(self) -> &'static str {
        match self {
            LineKind::Samples => "raw",
            LineKind::Average => "average",
        }
    }
}

/// The known values, or their moving average, as lines that break where a value is not known.
fn lines(
    result: &RunResult,
    trial: &SampledTrial,
    values: &[Option<f32>],
    kind: LineKind,
) -> Vec<Mark> {
    let step = Duration::from_millis(trial.system.interval_ms);
    let class = format!(
        "{} {}",
        kind.class(),
        colour_class(layout_index(result, &trial.case.layout))
    );
    let mut lines = Vec::new();
    let mut start = 0;
    for piece in values.split(Option::is_none) {
        let known = piece
            .iter()
            .flatten()
            .map(|value| f64::from(*value))
            .collect();
        let mut series = TimeSeries::from_samples(step, known);
        if kind == LineKind::Average {
            series = series.moving_average(AVERAGED_SAMPLES);
        }
        let seconds = |index: usize| ((start + index) as f64 + 0.5) * step.as_secs_f64();
        let points: Vec<(f64, f64)> = (0..piece.len())
            .map(|index| (seconds(index), series.samples()[index]))
            .collect();
        if !points.is_empty() {
            lines.push(Mark::line(
                class.clone(),
                thin(&points, Size::Small.width() as usize / 4),
            ));
        }
        start += piece.len() + 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{CaseId, SystemColumn, SystemSeries, build, sample};

    #[test]
    fn a_name_becomes_words_and_a_unit() {
        let names = [
            "device_utilisation_percent",
            "device_queue",
            "written_bytes_per_s",
            "dirty_bytes",
        ];
        let headings = [
            "Device utilisation, %",
            "Device queue",
            "Written, bytes per second",
            "Dirty, bytes",
        ];
        assert_eq!(names.map(|name| heading(&name.into())), headings);
    }

    #[test]
    fn figures_that_are_zero_all_the_time_have_no_chart_and_one_line() {
        let record = sample::record(&[("a", &[1.0]), ("b", &[1.0])]);
        let result = build(&record).unwrap();
        let column = |name: &str, value| SystemColumn {
            name: name.into(),
            values: vec![Some(0.0), Some(value)],
        };
        let trial = SampledTrial {
            case: CaseId::new("a", 8),
            round: 1,
            interval_ms: 1_000,
            tps: vec![1.0, 1.0],
            system: SystemSeries {
                interval_ms: 1_000,
                columns: vec![
                    column("device_merged_reads_per_s", 0.0),
                    column("device_reads_per_s", 7.0),
                ],
            },
        };
        let series = [trial];
        let timeline = Timeline::of(&result, &series, &result.rankings[0]).unwrap();
        let html = figures(&result, &timeline, "x").unwrap().into_string();
        assert_eq!(html.matches("<figure").count(), 1, "{html}");
        let line = "Zero all the time: Device merged reads, per second.";
        assert!(html.contains(line), "{html}");
    }

    #[test]
    fn a_line_breaks_where_a_value_is_not_known() {
        let trial = SampledTrial {
            case: CaseId::new("b", 8),
            round: 1,
            interval_ms: 1_000,
            tps: vec![1.0; 5],
            system: SystemSeries {
                interval_ms: 1_000,
                columns: Vec::new(),
            },
        };
        let values = [Some(1.0), Some(2.0), None, None, Some(7.0)];
        let result = build(&sample::record(&[("a", &[1.0]), ("b", &[1.0])])).unwrap();
        let lines = lines(&result, &trial, &values, LineKind::Samples);
        let places: Vec<&[(f64, f64)]> = lines.iter().map(Mark::values).collect();
        assert_eq!(places, [&[(0.5, 1.0), (1.5, 2.0)][..], &[(4.5, 7.0)]]);
    }

    #[test]
    fn three_figures_are_shown() {
        let texts =
            [123_456.0, 12.3456, 0.012_345_6, 0.0].map(|value| figures_of(Some(value)).to_string());
        assert_eq!(texts, ["123000", "12.3", "0.0123", "0"]);
        assert_eq!(figures_of(None), Value::Null);
    }
}
