//! What devices and the system did over time: a small chart for each figure that was sampled, all layouts on the same axes.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, colour_class, draw, greatest, thin::thin};
use crate::report::timeline::{CHECKPOINTS, Timeline, duration_s};
use crate::result::{RunResult, SampledTrial};

/// How names of figures end, and the unit that they say so.
const UNITS: [(&str, &str); 9] = [
    ("_percent", "%"),
    ("_bytes_per_s", "bytes per second"),
    ("_per_s", "per second"),
    ("_bytes", "bytes"),
    ("_kib", "KiB"),
    ("_pages", "pages"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
];

/// The charts of one load, in the order in which the figures were sampled; nothing when none were.
pub(in crate::report) fn figures(result: &RunResult, timeline: &Timeline<'_>, id: &str) -> Markup {
    html! {
        @for (index, name) in names(timeline).into_iter().enumerate() {
            (figure(result, timeline, name, &format!("{id}-{index}")))
        }
    }
}

/// Every figure of which some value is known.
fn names<'a>(timeline: &Timeline<'a>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for column in timeline.typical().flat_map(|trial| &trial.system.columns) {
        let is_known = column.values.iter().any(Option::is_some);
        if is_known && column.name != CHECKPOINTS && !names.contains(&column.name.as_str()) {
            names.push(column.name.as_str());
        }
    }
    names
}

/// A figure's name in words, and its unit.
fn words(name: &str) -> (String, &'static str) {
    let unit = UNITS.iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    let (stem, unit) = unit.unwrap_or((name, ""));
    (stem.replace('_', " "), unit)
}

fn figure(result: &RunResult, timeline: &Timeline<'_>, name: &str, id: &str) -> Markup {
    let (words, unit) = words(name);
    let columns: Vec<(&SampledTrial, &[Option<f32>])> = timeline
        .typical()
        .filter_map(|trial| Some((trial, trial.system.column(name)?)))
        .collect();
    let known = columns.iter().flat_map(|(_, values)| values.iter().flatten());
    let highest = greatest(known.map(|value| f64::from(*value)));
    let longest_s = greatest(timeline.typical().map(duration_s));
    let round = timeline.typical_round;
    let label = format!("{words} over time, round {round}, a line for every layout.");
    let frame = Frame {
        size: Size::Small,
        height: 210,
        x: Axis::linear(0.0, longest_s),
        x_title: "seconds",
        y: Axis::from_zero(highest),
        y_title: if unit.is_empty() { "number" } else { unit },
        label: &label,
    };
    let lines = columns.iter().flat_map(|(trial, values)| lines(trial, values));
    let layout_name = |layout: usize| result.layouts.get(layout).map_or("", |layout| &layout.name);
    let series = columns.iter().map(|(trial, values)| {
        json!({
            "name": format!("{} {}", trial.layout + 1, layout_name(trial.layout)),
            "class": colour_class(trial.layout),
            "round": round,
            "step_s": trial.system.interval_ms as f64 / 1e3,
            "values": values.iter().map(|value| figures_of(*value)).collect::<Vec<Value>>(),
        })
    });
    Figure {
        id,
        heading: &words,
        legend: Vec::new(),
        drawing: draw(&frame, lines.collect()),
        note: String::new(),
        controls: html! {},
        figures: Figures::Series(json!({
            "value": name,
            "round": round,
            "series": series.collect::<Vec<Value>>(),
        })),
    }
    .markup()
}

/// A value in the four figures that are enough to be shown.
fn figures_of(value: Option<f32>) -> Value {
    let Some(value) = value.map(f64::from) else {
        return Value::Null;
    };
    let magnitude = value.abs().max(1e-6).log10().floor();
    let unit = 10_f64.powf(3.0 - magnitude);
    let rounded = (value * unit).round() / unit;
    if rounded.fract() == 0.0 {
        json!(rounded as i64)
    } else {
        // Divided once more to lose the noise that the unit's own rounding brought.
        json!((rounded * 1e6).round() / 1e6)
    }
}

/// The known values as lines that break where one is not known.
fn lines(trial: &SampledTrial, values: &[Option<f32>]) -> Vec<Mark> {
    let step_s = trial.system.interval_ms as f64 / 1e3;
    let points: Vec<Option<(f64, f64)>> = values
        .iter()
        .enumerate()
        .map(|(index, value)| Some(((index as f64 + 0.5) * step_s, f64::from((*value)?))))
        .collect();
    points
        .split(Option::is_none)
        .filter(|piece| !piece.is_empty())
        .map(|piece| {
            let piece: Vec<(f64, f64)> = piece.iter().copied().flatten().collect();
            let class = format!("sampled {}", colour_class(trial.layout));
            Mark::line(class, thin(&piece, Size::Small.width() as usize / 3))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_into_words_and_unit() {
        let texts = [
            ("device_utilisation_percent", ("device utilisation", "%")),
            ("device_queue", ("device queue", "")),
            ("written_bytes_per_s", ("written", "bytes per second")),
            ("dirty_bytes", ("dirty", "bytes")),
        ];
        for (name, (stem, unit)) in texts {
            assert_eq!(words(name), (stem.to_owned(), unit));
        }
    }

    #[test]
    fn four_figures_are_shown() {
        let texts = [123_456.0, 12.3456, 0.012_345_6, 0.0].map(|value| figures_of(Some(value)).to_string());
        assert_eq!(texts, ["123500", "12.35", "0.012346", "0"]);
        assert_eq!(figures_of(None), Value::Null);
    }
}
