//! A result in a dozen lines of 80 columns: what was tested, a line for each candidate, one sentence why, the answer
//! last. For who asked on the command line; everything else is in the report.

use std::fmt::Write as _;

use serde_json::Value;
use spindle_result::{CaseId, EACH_SETTING, Outcome, Ranking, RatioEstimate, RunResult};
use spindle_text::paragraph;
use spindle_text::quantity::size_text;

use super::comparison::{keeps, milliseconds, ratio};
use super::sentences::{clients, counted, load_name};
use super::table::{BOLD, Style, YELLOW, paint};

/// Lines are no wider, whatever the terminal.
const WIDTH: usize = 80;
/// Candidates have this much room for their names at least, and at most.
const NAME_WIDTHS: (usize, usize) = (12, 30);

/// The text, with a line feed at its end; `report` is where the rest is.
pub fn render(result: &RunResult, report: &str, style: Style) -> String {
    let mut text = wrapped(&tested(result), "");
    places(result)
        .iter()
        .for_each(|place| text += &wrapped(place, ""));
    text.push('\n');
    for ranking in &result.rankings {
        if result.rankings.len() > 1 {
            let _ = writeln!(text, "At {}:", clients(ranking.clients));
        }
        text += &candidates(result, ranking);
    }
    for case in result
        .cases
        .iter()
        .filter(|case| case.outcome != Outcome::Measured)
    {
        let reason = case.outcome.reason().unwrap_or_default();
        text += &wrapped(
            &format!("{}: {}: {reason}", case.id.layout, case.outcome.status()),
            "  ",
        );
    }
    text.push('\n');
    if let Some(why) = result.attributions.first() {
        text += &wrapped(&format!("Why: {}", why.sentence), "");
    }
    if let Some(gravest) = result.warnings.first() {
        let more = match result.warnings.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more in the report)"),
        };
        let note = wrapped(&format!("Mind: {}{more}", gravest.text), "");
        text += &note.replacen("Mind:", &paint("Mind:", YELLOW, style), 1);
    }
    text += &format!("Report: {report}\n");
    for line in answer(result).lines() {
        let _ = writeln!(text, "{}", paint(line, BOLD, style));
    }
    text
}

/// The headline; what each setting does has a line of its own.
fn answer(result: &RunResult) -> String {
    let (before, settings) = match result.headline.split_once(EACH_SETTING) {
        Some((before, _)) => (before, result.factor_answers.as_slice()),
        None => (result.headline.as_str(), &[][..]),
    };
    let mut text = wrapped(before, "");
    if !settings.is_empty() {
        let _ = writeln!(text, "{EACH_SETTING}");
    }
    for setting in settings {
        text += &wrapped(&setting.sentence, "  ");
    }
    text
}

/// Engines, data, workload, rounds.
fn tested(result: &RunResult) -> String {
    let experiment = &result.experiment;
    let mut engines: Vec<&str> = Vec::new();
    for layout in &result.layouts {
        let engine = layout.engine.as_deref().unwrap_or("embedded database");
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let size = experiment["database"]["size_bytes"].as_u64();
    let rounds = result.cases.iter().map(|case| case.trials.len()).max();
    let measured_s = experiment["plan"]["measure_ms"]
        .as_u64()
        .map(|ms| ms as f64 / 1e3);
    let load = result
        .cases
        .first()
        .map(|case| load_name(result, case.id.clients));
    let parts = [
        Some(engines.join(" and ")),
        size.map(|size| format!("{} of data", size_text(size))),
        load,
        rounds
            .zip(measured_s)
            .map(|(rounds, seconds)| format!("{} x {seconds} s", counted(rounds, "round"))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A line for each place of data: directory, file system, device.
fn places(result: &RunResult) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for place in result.machine["data_paths"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let file_system = place["file_system"]["kind"].as_str();
        let device = &place["device"];
        let model = device["model"]
            .as_str()
            .map(str::trim)
            .filter(|model| !model.is_empty());
        let size = device["size_bytes"]
            .as_u64()
            .map(|bytes| format!("{:.0} GB", bytes as f64 / 1e9));
        let kind = device["rotational"].as_bool().map(|turns| {
            if turns {
                "says it rotates"
            } else {
                "solid state"
            }
        });
        let facts: Vec<String> = [model.map(str::to_owned), size, kind.map(str::to_owned)]
            .into_iter()
            .flatten()
            .collect();
        let mut line = place["path"].as_str().unwrap_or_default().to_owned();
        if let Some(file_system) = file_system {
            let _ = write!(line, ": {file_system}");
        }
        if let Some(name) = device["name"].as_str() {
            let _ = write!(line, " on {name}");
        }
        if !facts.is_empty() {
            let _ = write!(line, " ({})", facts.join(", "));
        }
        if !lines.contains(&line) && place["path"] != Value::Null {
            lines.push(line);
        }
    }
    lines
}

/// A line for each candidate, the best first.
fn candidates(result: &RunResult, ranking: &Ranking) -> String {
    let names = ranking
        .places
        .iter()
        .map(|place| place.layout.chars().count());
    let width = names.max().unwrap_or(0).clamp(NAME_WIDTHS.0, NAME_WIDTHS.1);
    let mut text = format!(
        "  {:width$} {:>10} {:>8}  {:22} {}\n",
        "", "tpm", "p99 ms", "of the best", "keeps"
    );
    for place in &ranking.places {
        let case = result.case(&CaseId::new(&place.layout, ranking.clients));
        let Some((case, summary)) = case.and_then(|case| Some((case, case.summary()?))) else {
            continue;
        };
        let of_best = place.of_best.map_or_else(|| "best".to_owned(), share);
        let _ = writeln!(
            text,
            "  {:width$} {:>10} {:>8}  {of_best:22} {}",
            cut(&place.layout, width),
            thousands(summary.tpm),
            milliseconds(summary.p99_ms),
            keeps(case)
        );
    }
    text + &new_orders(result, ranking)
}

/// What TPC-C is compared by elsewhere, for each candidate; nothing for other workloads.
fn new_orders(result: &RunResult, ranking: &Ranking) -> String {
    let of_candidates: Vec<String> = ranking
        .places
        .iter()
        .filter_map(|place| {
            let case = result.case(&CaseId::new(&place.layout, ranking.clients))?;
            Some(format!("{} {}", place.layout, thousands(case.nopm?.mean)))
        })
        .collect();
    match of_candidates.is_empty() {
        true => String::new(),
        false => wrapped(
            &format!(
                "New orders per minute (NOPM): {}.",
                of_candidates.join(", ")
            ),
            "  ",
        ),
    }
}

/// `0.56 x (0.53 to 0.59)`.
fn share(of_best: RatioEstimate) -> String {
    let interval = of_best.ci95.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", ratio(low), ratio(high))
    });
    format!("{} x{interval}", ratio(of_best.ratio))
}

/// A name within its room.
fn cut(name: &str, width: usize) -> String {
    match name.chars().count() > width {
        true => name.chars().take(width - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// `61,204`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A paragraph in lines of [`WIDTH`], broken between words, each line behind `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let lines = paragraph::wrapped(text, WIDTH - indent.len());
    lines
        .into_iter()
        .map(|line| format!("{indent}{line}\n"))
        .collect()
}
