//! Throughput over time: the samples faint, their moving average strong, checkpoints as ticks above, all layouts on the
//! same axes. One round is drawn; the script shows the others, and other windows of the average.

use maud::{Markup, html};
use serde_json::json;

use super::figure::{Figure, Figures};
use super::{
    Axis, Frame, Mark, Size, both, colour_class, draw, greatest, layout_index, numbered, thin::thin,
};
use crate::timeline::{AVERAGED_SAMPLES, Timeline, checkpoints, duration_s, over_time, per_minute};
use spindle_result::{RunResult, SampledTrial};

/// Height of the row of ticks that one layout's checkpoints take, as a share of the axis.
const TICK_ROW: f64 = 0.03;

/// The chart of one load; `heading` names it.
pub(crate) fn figure(
    result: &RunResult,
    timeline: &Timeline<'_>,
    id: &str,
    heading: &str,
) -> Markup {
    let lines: Vec<Line> = timeline
        .typical()
        .map(|trial| Line::of(result, trial))
        .collect();
    let all: Vec<Line> = timeline
        .trials
        .iter()
        .map(|trial| Line::of(result, trial))
        .collect();
    let with_checkpoints = all.iter().any(|line| !line.checkpoints.is_empty());
    let highest = greatest(all.iter().flat_map(|line| line.samples.iter().copied()));
    let tick_rows = if with_checkpoints {
        lines.len() as f64
    } else {
        0.0
    };
    let top = highest * 1.02 / (1.0 - TICK_ROW * tick_rows.min(16.0));
    let longest_s = greatest(timeline.trials.iter().map(|trial| duration_s(trial)));
    let label = format!(
        "{heading}, round {}: transactions per minute of every layout over the measured time. The means are in the \
         comparison table.",
        timeline.typical_round
    );
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 380 } else { 300 },
            x: Axis::linear(0.0, longest_s),
            x_title: "seconds since the start of measurement",
            y: Axis::linear(0.0, top),
            y_title: "transactions per minute",
            label: &label,
        };
        draw(&frame, marks(&lines, size, top))
    });
    Figure {
        id,
        heading,
        legend: lines
            .iter()
            .map(|line| (line.class.clone(), line.name.clone()))
            .collect(),
        drawing,
        note: note(timeline, with_checkpoints),
        controls: controls(timeline, id),
        figures: Figures::Series(json!({
            "value": "transactions_per_minute",
            "round": timeline.typical_round,
            "window": AVERAGED_SAMPLES,
            "top": top,
            "tick_row": TICK_ROW,
            "series": all.iter().map(|line| json!({
                "name": line.name,
                "class": line.class,
                "round": line.round,
                "step_s": line.interval_ms as f64 / 1e3,
                "checkpoints": line.checkpoints,
                "values": line.samples.iter().map(|sample| *sample as u64).collect::<Vec<u64>>(),
            })).collect::<Vec<_>>(),
        })),
    }
    .markup()
}

fn note(timeline: &Timeline<'_>, with_checkpoints: bool) -> String {
    let round = match timeline.rounds().len() {
        1 => String::new(),
        rounds => format!(
            "Shown is round {} of {rounds}, the one nearest to the mean throughput of all. ",
            timeline.typical_round
        ),
    };
    let ticks = if with_checkpoints {
        " Ticks above: checkpoints that ended."
    } else {
        ""
    };
    format!(
        "{round}Strong: the moving average of {AVERAGED_SAMPLES} samples. Faint: the samples.{ticks}"
    )
}

fn controls(timeline: &Timeline<'_>, id: &str) -> Markup {
    let rounds = timeline.rounds();
    html! {
        label for={ (id) "-window" } { "Moving average of "
            output for={ (id) "-window" } { (AVERAGED_SAMPLES) } " samples" }
        input id={ (id) "-window" } data-control="window" type="range" min="1" max="60" value=(AVERAGED_SAMPLES);
        @if rounds.len() > 1 {
            label for={ (id) "-round" } { "Round" }
            select id={ (id) "-round" } data-control="round" {
                @for round in rounds {
                    option value=(round) selected[round == timeline.typical_round] { (round) }
                }
            }
        }
    }
}

/// One trial over time, in transactions per minute.
struct Line {
    /// Number and name of its layout.
    name: String,
    /// The classes that give it its colour.
    class: String,
    round: u32,
    interval_ms: u64,
    samples: Vec<f64>,
    averages: Vec<f64>,
    checkpoints: Vec<usize>,
}

impl Line {
    fn of(result: &RunResult, trial: &SampledTrial) -> Line {
        let samples = per_minute(trial);
        Line {
            name: numbered(result, &trial.case.layout),
            class: colour_class(layout_index(result, &trial.case.layout)),
            round: trial.round,
            interval_ms: trial.interval_ms,
            averages: samples.moving_average(AVERAGED_SAMPLES).samples().to_vec(),
            samples: samples.samples().to_vec(),
            checkpoints: checkpoints(trial),
        }
    }
}

/// Faint lines first, so that strong ones lie above them.
fn marks(lines: &[Line], size: Size, top: f64) -> Vec<Mark> {
    let buckets = size.width() as usize / 4;
    let curve = |kind: &str, line: &Line, values: &[f64]| {
        let class = format!("{kind} {}", line.class);
        Mark::line(class, thin(&over_time(line.interval_ms, values), buckets))
    };
    let raw = lines.iter().map(|line| curve("raw", line, &line.samples));
    let averages = lines
        .iter()
        .map(|line| curve("average", line, &line.averages));
    let ticks = lines.iter().enumerate().flat_map(|(row, line)| {
        let class = format!("checkpoint {}", line.class);
        let [from, to] = [row as f64, row as f64 + 0.75].map(|rows| top * (1.0 - TICK_ROW * rows));
        line.checkpoints.iter().map(move |&sample| {
            let second = (sample as f64 + 0.5) * line.interval_ms as f64 / 1e3;
            Mark::line(class.clone(), vec![(second, from), (second, to)])
        })
    });
    raw.chain(averages).chain(ticks).collect()
}
