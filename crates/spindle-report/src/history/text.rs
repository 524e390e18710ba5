//! Histories on a terminal: a line for each case and change.

use std::fmt::Write as _;

use super::{CaseHistory, Change, Histories, History};
use crate::compare::ComparedRun;
use crate::comparison::milliseconds;
use crate::table::{BOLD, GREEN, RED, Style, paint};
use spindle_result::Measure;
use spindle_stats::HISTORY_MIN;
use spindle_text::quantity::thousands;

/// Differences that a line names; more are counted.
const DIFFERENCES_SHOWN: usize = 3;

/// Histories of the runs below a directory, in words.
pub fn render(histories: &Histories<'_>, below: &str, style: Style) -> String {
    let mut text = String::new();
    if histories.histories.is_empty() {
        let _ = writeln!(
            text,
            "No history below {below}: {HISTORY_MIN} runs or more of the same experiment, workload, plan and layouts are needed."
        );
    }
    for history in &histories.histories {
        text.push_str(&one(history, style));
        text.push('\n');
    }
    if !histories.left_out.is_empty() {
        let _ = writeln!(
            text,
            "Left out, as fewer than {HISTORY_MIN} runs ask the same:"
        );
        for run in &histories.left_out {
            let _ = writeln!(text, "  {}, begun {}", run.name, run.started_at);
        }
    }
    text
}

fn one(history: &History<'_>, style: Style) -> String {
    let runs = &history.runs;
    let [first, .., last] = runs.as_slice() else {
        return String::new();
    };
    let name = first.result.experiment.name();
    let title = format!("{name}, {}: {} runs", first.result.workload, runs.len());
    let mut text = format!(
        "{}, from {} to {}\n",
        paint(&title, BOLD, style),
        first.started_at,
        last.started_at
    );
    for case in &history.cases {
        let _ = writeln!(text, "{}", level(case));
        for change in &case.changes {
            let _ = writeln!(text, "  {}", told(change, runs, style));
        }
    }
    let verdict = match history.has_changes() {
        true => "Chance alone would name a change in 5 of 100 flat histories, all cases together.",
        false => "No change was found.",
    };
    let _ = writeln!(text, "{verdict}");
    text
}

/// `direct, 8 clients: 30861 tpm in the last of 12 runs, runs of a level differ by 1.2 %`.
fn level(case: &CaseHistory) -> String {
    let last = case.values.last().map_or(0.0, |(_, value)| *value);
    let last = match case.measure {
        Measure::Throughput => format!("{} tpm", thousands(last)),
        Measure::P99 => format!("p99 {} ms", milliseconds(last / 1e3)),
    };
    let noise = case.noise.map_or_else(String::new, |noise| {
        format!(
            ", runs of a level differ by {:.1} %",
            100.0 * noise.exp_m1()
        )
    });
    format!(
        "{}, {}: {last} in the last of {} runs{noise}",
        case.id.layout,
        case.id.load,
        case.values.len()
    )
}

/// `5.2 % slower (3.1-7.2) between runs/a (begun ...) and runs/b (begun ...); kernel: 6.1 -> 6.2`.
fn told(change: &Change, runs: &[ComparedRun<'_>], style: Style) -> String {
    let percent = |ratio: f64| 100.0 * (1.0 - ratio).abs();
    let (low, high) = change.ci95;
    let (word, colour, ends) = match change.ratio < 1.0 {
        true => ("slower", RED, (high, low)),
        false => ("faster", GREEN, (low, high)),
    };
    let size = format!(
        "{:.1} % {word} ({:.1}-{:.1})",
        percent(change.ratio),
        percent(ends.0),
        percent(ends.1)
    );
    let run = |index: usize| format!("{} ({})", runs[index].name, runs[index].started_at);
    format!(
        "{} between {} and {}; {}",
        paint(&size, colour, style),
        run(change.runs[0]),
        run(change.runs[1]),
        differing(change)
    )
}

/// What differs in the machines of the two runs, the first few.
fn differing(change: &Change) -> String {
    let all = &change.machines;
    if all.is_empty() {
        return "their machines agree".to_owned();
    }
    let shown: Vec<String> = all
        .iter()
        .take(DIFFERENCES_SHOWN)
        .map(|one| format!("{}: {} -> {}", one.setting, one.before, one.after))
        .collect();
    let more = match all.len().saturating_sub(DIFFERENCES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more (--format json)"),
    };
    format!("{}{more}", shown.join(", "))
}
