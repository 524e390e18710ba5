//! `spindle show`: a run on a terminal, from the answer down to what weakens it. The table and its parts are those that
//! end a run ([`crate::table`]); what is added here needs more room: the ranking, throughput over time, what a
//! transaction's time went to, why layouts differ, and findings.

mod sparkline;

use std::fmt::Write as _;

use crate::comparison::{milliseconds, ratio};
use crate::sentences;
use crate::table::{self, BOLD, CYAN, Style, align_right, lines, number, paint, plain_table};
use spindle_result::StoredRun;
use spindle_result::{
    Case, Finding, LoadLevel, Ranking, ResponseTime, RunRecord, RunResult, TimePart,
    format_interval,
};
use spindle_text::quantity::thousands;

pub use sparkline::sparkline;

/// Widest line of bars.
const SPARKLINE_CELLS_MAX: usize = 60;
/// And the narrowest: then names are broken instead.
const SPARKLINE_CELLS_MIN: usize = 10;
/// What stands beside a line of bars and a name: number, figure and blanks.
const BESIDE_SPARKLINE: usize = 19;
/// Parts of a transaction's time below this share of it are added up as the rest.
const PART_SHARE_MIN: f64 = 0.02;

/// All that there is to say about a run.
pub fn render(run: &StoredRun, style: Style) -> String {
    format!(
        "{}\n\n{}",
        title(run),
        render_result(&run.result, &run.record, style)
    )
}

/// `quickstart, begun 2026-01-01T12:00:00Z, finished`.
fn title(run: &StoredRun) -> String {
    let state = match run.is_finished {
        true => "finished",
        false => "not finished",
    };
    let name = run.result.experiment.name();
    let directory = run.directory.display();
    format!("{name}, begun {}, {state}: {directory}", run.started_at)
}

/// The same without the line about the directory.
pub fn render_result(result: &RunResult, record: &RunRecord, style: Style) -> String {
    let mut text = format!("{}\n\n", paint(&result.headline, BOLD, style));
    for ranking in &result.rankings {
        text.push_str(&places(result, ranking, style));
    }
    text.push_str(&table::figures(result, style));
    text.push_str(&table::pairs(result, style));
    for group in result.groups() {
        text.push_str(&throughput(result, record, &group, style));
        text.push_str(&response_times(result, &group, style));
    }
    text.push_str(&table::reasons(result));
    text.push_str(&findings(result, style));
    text.push_str(&table::measured_how_well(result));
    text.push_str(&table::costs(result));
    text.push_str(&table::warnings(result, style));
    text.push_str(&table::next(result, style));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// `(oltp_mix, 8 clients`, to be closed.
fn of_load(result: &RunResult, load: LoadLevel) -> String {
    format!("({}", sentences::load_name(result, load))
}

fn heading(what: &str, style: Style) -> String {
    paint(what, CYAN, style) + "\n"
}

/// The ranking with its ties.
fn places(result: &RunResult, ranking: &Ranking, style: Style) -> String {
    if ranking.places.is_empty() {
        return String::new();
    }
    let mut table = plain_table(style.width);
    let mut group = None;
    for place in &ranking.places {
        if ranking.has_weaker() && group != Some(place.keeps) {
            group = Some(place.keeps);
            let title = format!("layouts that {}:", place.keeps.of_group());
            table.add_row([String::new(), title]);
        }
        let of_best = place
            .of_best
            .map_or_else(String::new, |of_best| format!("{} x", ratio(of_best.ratio)));
        let interval = place.of_best.and_then(|of_best| of_best.ci95);
        table.add_row([
            format!("  {}.", place.place),
            place.layout.clone(),
            format!("#{}", number(result, &place.layout)),
            of_best,
            interval.map_or_else(String::new, |interval| {
                format!("({})", format_interval(interval))
            }),
        ]);
    }
    align_right(&mut table, 3);
    let load = of_load(result, ranking.load);
    let title = format!("Ranking {load}; speed beside the best's, and its 95 % interval):");
    format!("{}{}\n\n", heading(&title, style), lines(&table))
}

/// Throughput over time: for each case the mean of its rounds, all on one scale.
fn throughput(result: &RunResult, record: &RunRecord, group: &[&Case], style: Style) -> String {
    let series: Vec<(&Case, Vec<f64>)> = group
        .iter()
        .map(|case| (*case, mean_over_rounds(record, case)))
        .filter(|(_, tpm)| !tpm.is_empty())
        .collect();
    let full = series
        .iter()
        .flat_map(|(_, tpm)| tpm.iter().copied())
        .fold(0.0, f64::max);
    let Some((first, _)) = series.first().filter(|_| full > 0.0) else {
        return String::new();
    };
    let names = series
        .iter()
        .map(|(case, _)| case.id.layout.chars().count());
    let beside = BESIDE_SPARKLINE + names.max().unwrap_or(0);
    let cells = usize::from(style.width).saturating_sub(beside);
    let cells = cells.clamp(SPARKLINE_CELLS_MIN, SPARKLINE_CELLS_MAX);
    let mut table = plain_table(style.width);
    for (case, tpm) in &series {
        let mean = tpm.iter().sum::<f64>() / tpm.len() as f64;
        table.add_row([
            format!("  {}", number(result, &case.id.layout)),
            case.id.layout.clone(),
            sparkline(tpm, full, cells),
            thousands(mean),
        ]);
    }
    align_right(&mut table, 3);
    let load = of_load(result, first.id.load);
    let title = format!(
        "Throughput over the measured time {load}; a whole bar is {} tpm):",
        thousands(full)
    );
    format!("{}{}\n\n", heading(&title, style), lines(&table))
}

/// Transactions per minute at each sample, as far as all sampled rounds of a case reach.
fn mean_over_rounds(record: &RunRecord, case: &Case) -> Vec<f64> {
    let rounds: Vec<&[f64]> = record
        .series
        .iter()
        .filter(|trial| trial.case == case.id)
        .map(|trial| trial.tps.as_slice())
        .collect();
    let samples = rounds.iter().map(|tps| tps.len()).min().unwrap_or(0);
    let mean = |index: usize| {
        60.0 * rounds.iter().map(|tps| tps[index]).sum::<f64>() / rounds.len() as f64
    };
    (0..samples).map(mean).collect()
}

/// What a transaction's time went to, in each case that knows.
fn response_times(result: &RunResult, group: &[&Case], style: Style) -> String {
    let mut table = plain_table(style.width);
    let mut known = group
        .iter()
        .filter_map(|case| Some((*case, case.response_time.as_ref()?)))
        .peekable();
    let Some((first, _)) = known.peek().copied() else {
        return String::new();
    };
    for (case, time) in known {
        table.add_row([
            format!("  {}", number(result, &case.id.layout)),
            case.id.layout.clone(),
            milliseconds(time.mean_us / 1e3),
            format!("= {}", parts(time)),
        ]);
    }
    align_right(&mut table, 2);
    let load = of_load(result, first.id.load);
    let title = format!("Where the time of a transaction went {load}; ms):");
    format!("{}{}\n\n", heading(&title, style), lines(&table))
}

/// `6.10 db file sequential read + 2.20 system CPU - 0.30 in smaller parts`.
fn parts(time: &ResponseTime) -> String {
    let is_large = |part: &&TimePart| part.us.abs() >= PART_SHARE_MIN * time.mean_us;
    let large: Vec<&TimePart> = time.parts.iter().filter(is_large).collect();
    let large_us: f64 = large.iter().map(|part| part.us).sum();
    let mut terms: Vec<(f64, &str)> = large
        .iter()
        .map(|part| (part.us, part.part.own_name()))
        .collect();
    if large.len() < time.parts.len() {
        terms.push((time.mean_us - large_us, "in smaller parts"));
    }
    let mut text = String::new();
    for (index, (us, part)) in terms.into_iter().enumerate() {
        let sign = match (index, us < 0.0) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        };
        let _ = write!(text, "{sign}{} {part}", milliseconds(us.abs() / 1e3));
    }
    text
}

fn findings(result: &RunResult, style: Style) -> String {
    let mut text = String::new();
    for finding in &result.findings {
        text.push_str(&one_finding(finding, style));
    }
    text
}

fn one_finding(finding: &Finding, style: Style) -> String {
    let mut text = format!(
        "{} {} ({}): {}\n",
        paint("finding:", CYAN, style),
        finding.kind,
        finding.places(),
        finding.text
    );
    for evidence in &finding.evidence {
        let _ = writeln!(text, "  - {evidence}");
    }
    let _ = writeln!(text, "  what helps: {}\n", finding.remedy);
    text
}
