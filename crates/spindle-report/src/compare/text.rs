//! A comparison of runs on a terminal.

use std::fmt::Write as _;

use super::{
    CaseCall, CaseComparison, CompareOptions, ComparedRun, Difference, Judgement, Orderings, Pairs,
    RunComparison, sees,
};
use crate::comparison::{milliseconds, ratio};
use crate::table::{
    BOLD, CYAN, GREEN, Ink, PLAIN, RED, Style, YELLOW, align_right, lines, paint, plain_table,
    with_words,
};
use spindle_result::{Measure, RatioEstimate, Verdict, format_interval, noise};
use spindle_stats::MAX_ROUNDS;
use spindle_text::quantity::thousands;

/// The runs' figures say how sure they are within each; what else changed between two days they cannot know.
const BETWEEN_RUNS: &str = "Intervals cover noise within a run only, not changes between runs. To see how large those are, run the \
same settings twice, and name several runs a side: spindle compare DIR DIR -- DIR DIR.";

/// What is said where the newer runs are named first.
const TURNED_ROUND: &str =
    "what you named first began later; a gain below is a loss over time, and a loss a gain.";

/// A side beside the first, in words. Each has one run or more.
pub fn render(
    before: &[ComparedRun<'_>],
    after: &[ComparedRun<'_>],
    comparison: &RunComparison,
    options: &CompareOptions,
    style: Style,
) -> String {
    let title = match before.len() + after.len() {
        2 => "Two runs".to_owned(),
        _ => format!("{} beside {}", runs(before.len()), runs(after.len())),
    };
    let mut text = format!("{}\n", paint(&title, BOLD, style));
    for (label, side) in [("  before: ", before), ("  now:    ", after)] {
        for (index, run) in side.iter().enumerate() {
            let label = if index == 0 { label } else { "          " };
            let _ = writeln!(text, "{label}{}, begun {}", run.name, run.started_at);
        }
    }
    text.push('\n');
    if is_turned_round(before, after) {
        let label = paint("note:", YELLOW, style);
        let _ = writeln!(text, "{label} {TURNED_ROUND}");
    }
    let machines = (
        "The machines",
        &comparison.machines,
        options.across_machines,
    );
    let experiments = (
        "Workload and plan",
        &comparison.experiments,
        options.across_settings,
    );
    let mut layouts = comparison.cases.iter();
    let has_differing_layouts = layouts.any(|case| {
        matches!(&case.judgement, Judgement::Compared { differences, .. } if !differences.is_empty())
    });
    for (what, differences, is_wanted) in [machines, experiments] {
        text.push_str(&differences_of(what, differences, is_wanted, style));
    }
    if has_differing_layouts {
        text.push_str("Layouts of one name differ, see below.\n");
    }
    text.push_str(&noise_in(before.iter().chain(after), style));
    text.push_str(&cases(comparison, style));
    text.push_str(&differing_layouts(
        comparison,
        options.across_settings,
        style,
    ));
    for orderings in &comparison.orderings {
        text.push_str(&side_by_side(orderings, style));
    }
    let _ = writeln!(text, "{}", conclusion(comparison, options, style));
    let _ = writeln!(text, "{}", between_runs(comparison, options));
    text
}

/// Whether each run named first began after all others; times are in UTC, in one form, so text orders them.
fn is_turned_round(before: &[ComparedRun<'_>], after: &[ComparedRun<'_>]) -> bool {
    let first_before = before.iter().map(|run| run.started_at).min();
    let last_after = after.iter().map(|run| run.started_at).max();
    first_before
        .zip(last_after)
        .is_some_and(|(before, after)| after < before)
}

fn runs(count: usize) -> String {
    match count {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    }
}

/// What went on around each run and may explain a difference.
fn noise_in<'a>(sides: impl Iterator<Item = &'a ComparedRun<'a>>, style: Style) -> String {
    let mut text = String::new();
    for side in sides {
        for noise in noise(side.result) {
            let label = paint("noise:", YELLOW, style);
            let _ = writeln!(text, "{label} {}: {noise}", side.name);
        }
    }
    text
}

/// How far runs of one side differ, and how many would do.
fn between_runs(comparison: &RunComparison, options: &CompareOptions) -> String {
    let Some((id, noise)) = comparison.noisiest() else {
        return BETWEEN_RUNS.to_owned();
    };
    let percent = |deviation: f64| format!("{:.1} %", 100.0 * deviation.exp_m1());
    let rounds = noise.between_rounds.map_or_else(String::new, |rounds| {
        format!(", rounds of a run by {}", percent(rounds))
    });
    let gate = noise.runs_needed.map_or_else(String::new, |needed| {
        let or_more = if needed >= MAX_ROUNDS { " or more" } else { "" };
        format!(
            " Detecting a {} % loss at this noise needs {needed}{or_more} runs per side.",
            in_percent(options.threshold)
        )
    });
    format!(
        "Intervals cover noise between runs, too. Runs of one side differ by {} ({}, {}{}){rounds}.{gate}",
        percent(noise.between_runs),
        id.layout,
        id.load,
        if comparison.cases.len() > 1 {
            ", the noisiest case"
        } else {
            ""
        },
    )
}

/// A fraction in per cent, without figures that say nothing.
fn in_percent(fraction: f64) -> f64 {
    let rounded = |places: f64| (fraction * places).round() / (places / 100.0);
    match rounded(1e4) {
        0.0 => rounded(1e9),
        percent => percent,
    }
}

fn differences_of(what: &str, differences: &[Difference], is_wanted: bool, style: Style) -> String {
    if differences.is_empty() {
        return format!("{what} agree.\n");
    }
    let (label, colour) = match is_wanted {
        true => ("differ, as was said", CYAN),
        false => ("differ", YELLOW),
    };
    let title = format!("{what} {label}:");
    format!("{}\n{}", paint(&title, colour, style), listed(differences))
}

fn listed(differences: &[Difference]) -> String {
    let line = |difference: &Difference| {
        let Difference {
            setting,
            before,
            after,
            runs,
        } = difference;
        let runs = match runs.as_slice() {
            [] => String::new(),
            runs => format!(" ({})", runs.join(", ")),
        };
        format!("  {setting}: {before} -> {after}{runs}\n")
    };
    differences.iter().map(line).collect()
}

fn cases(comparison: &RunComparison, style: Style) -> String {
    let mut table = plain_table(style.width);
    for case in &comparison.cases {
        table.add_row(row(case));
    }
    for column in [1, 2, 3, 5] {
        align_right(&mut table, column);
    }
    // Blanks in the cell would be lost where a name is broken into lines.
    if let Some(column) = table.column_mut(0) {
        column.set_padding((3, 1));
    }
    let labels: Vec<_> = comparison.cases.iter().map(label).collect();
    format!(
        "\nlayout, clients; before, now; ratio of speed, and its interval (95 % for all cases together):\n{}\n",
        with_words(table, 0, &labels, style)
    )
}

fn row(case: &CaseComparison) -> Vec<String> {
    let mut row = vec![case.id.layout.clone(), case.id.load.in_column()];
    let Judgement::Compared {
        measure,
        before,
        after,
        speed,
        ..
    } = &case.judgement
    else {
        return row;
    };
    let (write, unit): (fn(f64) -> String, &str) = match measure {
        Measure::Throughput => (thousands, "tpm"),
        Measure::P99 => (|us| milliseconds(us / 1e3), "ms (p99)"),
    };
    let interval = |interval| format!("({})", format_interval(interval));
    row.extend([
        write(*before),
        write(*after),
        unit.to_owned(),
        format!("{} x", ratio(speed.ratio)),
        speed.ci95.map_or_else(String::new, interval),
    ]);
    row
}

/// What may be said of a case, in a word or two, and its ink.
fn label(case: &CaseComparison) -> (String, Ink) {
    let (words, ink) = match &case.judgement {
        Judgement::Missing {
            reason,
            is_regression,
        } => (reason.as_str(), if *is_regression { RED } else { PLAIN }),
        Judgement::Compared { speed, .. } if speed.ci95.is_none() => {
            ("two rounds or more are needed in each run", PLAIN)
        }
        Judgement::Compared { call, speed, .. } => match call {
            CaseCall::Refused => ("not called", YELLOW),
            CaseCall::Called {
                is_regression: true,
                ..
            } => ("slower: a regression", RED),
            CaseCall::Called { verdict, .. } => match verdict {
                Verdict::Faster => ("faster", GREEN),
                Verdict::Slower => ("slower, within the threshold", YELLOW),
                Verdict::Draw => ("draw", CYAN),
                Verdict::Undecided if case.has_too_few() => (
                    "undecided: three rounds or runs are needed for a verdict",
                    YELLOW,
                ),
                Verdict::Undecided => {
                    let sees = 100.0 * sees(speed).unwrap_or(1.0);
                    return (format!("undecided: sees {sees:.0} %"), YELLOW);
                }
            },
        },
    };
    (words.to_owned(), ink)
}

/// The settings of single layouts that differ; where they are not to, they keep these from being called.
fn differing_layouts(comparison: &RunComparison, is_wanted: bool, style: Style) -> String {
    let (differs, colour) = match is_wanted {
        true => ("differs, as was said", CYAN),
        false => ("differs", YELLOW),
    };
    let mut text = String::new();
    let mut seen: Vec<&str> = Vec::new();
    for case in &comparison.cases {
        let Judgement::Compared { differences, .. } = &case.judgement else {
            continue;
        };
        if differences.is_empty() || seen.contains(&case.id.layout.as_str()) {
            continue;
        }
        seen.push(&case.id.layout);
        let title = format!("The layout {} {differs}:", case.id.layout);
        let _ = writeln!(
            text,
            "{}\n{}",
            paint(&title, colour, style),
            listed(differences)
        );
    }
    text
}

/// The layouts in the order of each database: place, and throughput relative to its best.
fn side_by_side(orderings: &Orderings, style: Style) -> String {
    let mut table = plain_table(style.width);
    let [first, other] = &orderings.engines;
    table.add_row(vec!["  layout", "", first, "", other]);
    for layout in &orderings.layouts {
        let mut row = vec![format!("  {}", layout.layout)];
        for place in &layout.places {
            row.push(place.place.to_string());
            row.push(place.of_best.map_or_else(|| "best".to_owned(), of_best));
        }
        table.add_row(row);
    }
    let Pairs {
        same,
        contrary,
        open,
    } = orderings.pairs;
    let title = format!("The orderings of the layouts, {}:", orderings.load);
    format!(
        "{}\n{}\nOf {} pairs of layouts, {same} come in the same order under both, {contrary} in the contrary order; {open} are not \
         told apart by one of them.\n\n",
        paint(&title, BOLD, style),
        lines(&table),
        same + contrary + open,
    )
}

fn of_best(estimate: RatioEstimate) -> String {
    let interval = |interval| format!(" ({})", format_interval(interval));
    let interval = estimate.ci95.map_or_else(String::new, interval);
    format!("{} x{interval}", ratio(estimate.ratio))
}

/// The outcome of a comparison, without a style.
#[cfg(test)]
pub(super) fn render_conclusion(comparison: &RunComparison) -> String {
    no_regression(comparison, 100.0 * comparison.threshold)
}

fn conclusion(comparison: &RunComparison, options: &CompareOptions, style: Style) -> String {
    let percent = in_percent(options.threshold);
    let text = if comparison.has_regression() {
        format!("A regression: at least one case is slower by more than {percent} %, or broke off.")
    } else if comparison.is_one_run() {
        "No difference: both sides are one run, with the same figures in every round.".to_owned()
    } else if !comparison.is_judged() {
        format!("Nothing was judged{}.", what_to_do(comparison, options))
    } else {
        no_regression(comparison, percent)
    };
    paint(&text, BOLD, style)
}

/// Nothing regressed; but could it have been seen?
fn no_regression(comparison: &RunComparison, percent: f64) -> String {
    let all = comparison.cases.len();
    let judged = comparison
        .cases
        .iter()
        .filter(|case| case.speed_judged().is_some());
    let judged = judged.count();
    let unseen: Vec<f64> = comparison.too_imprecise().collect();
    let known = judged - unseen.len();
    let Some(best) = unseen.iter().copied().reduce(f64::min) else {
        return format!(
            "No regression beyond {percent} %: {judged} of {all} cases were judged, each known well enough to see one."
        );
    };
    let too_few = comparison.cases.iter().filter(|case| case.has_too_few());
    let too_few = too_few.count();
    if too_few == unseen.len() {
        return format!(
            "{known} of {all} cases are known well enough to see {percent} %: {too_few} have fewer than three rounds or runs \
             on a side, so a regression may have been missed. Measure three or more."
        );
    }
    let rest = if known == 0 {
        "they see"
    } else {
        "the others see"
    };
    let remedy = match comparison.noisiest() {
        None => "Measure more rounds, longer, or on a calmer machine",
        Some(_) => "Measure more runs",
    };
    format!(
        "{known} of {all} cases are known well enough to see {percent} % ({rest} {:.0} % at best), so a regression may have been \
         missed. {remedy}.",
        100.0 * best
    )
}

/// How a comparison that was refused can be forced.
fn what_to_do(comparison: &RunComparison, options: &CompareOptions) -> &'static str {
    let refuses_machines = !comparison.machines.is_empty() && !options.across_machines;
    let is_refused = comparison.cases.iter().any(|case| {
        matches!(
            case.judgement,
            Judgement::Compared {
                call: CaseCall::Refused,
                ..
            }
        )
    });
    match (is_refused, refuses_machines) {
        (true, true) => {
            ": the machines differ, and the difference may be theirs. If that is the question, say --across-machines (and \
             --across-settings where settings differ)"
        }
        (true, false) => {
            ": the settings differ, and the difference may be theirs. If that is the question, say --across-settings"
        }
        (false, _) => ": there is no case that both runs measured in two rounds or more",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::CaseId;

    #[test]
    fn sides_are_turned_round_where_all_of_the_first_began_later() {
        let record = spindle_result::sample::record(&[("a", &[1.0])]);
        let result = spindle_result::build(&record).unwrap();
        let began = |days: &[&'static str]| -> Vec<ComparedRun<'_>> {
            let side = |day: &&'static str| ComparedRun {
                name: "run",
                started_at: day,
                result: &result,
            };
            days.iter().map(side).collect()
        };
        let is_turned = |before: &[&'static str], after: &[&'static str]| {
            is_turned_round(&began(before), &began(after))
        };
        assert!(is_turned(
            &["2026-11-02T10:00:00Z"],
            &["2026-11-02T09:59:00Z"]
        ));
        assert!(!is_turned(&["2026-11-01"], &["2026-11-02"]));
        assert!(!is_turned(&["2026-11-02"], &["2026-11-02"]));
        assert!(!is_turned(&["2026-11-03", "2026-11-01"], &["2026-11-02"]));
    }

    #[test]
    fn what_is_said_of_a_case_stands_on_its_line_however_long_its_name_is() {
        let case = |name: &str| CaseComparison {
            id: CaseId::new(&format!("{name}: {}", ["filesystem ext4"; 6].join(", ")), 8),
            workload: "oltp_mix".to_owned(),
            judgement: Judgement::Missing {
                reason: format!("{name} is gone"),
                is_regression: false,
            },
        };
        let names = ["first", "second", "third"];
        let comparison = RunComparison {
            threshold: 0.03,
            machines: Vec::new(),
            experiments: Vec::new(),
            cases: names.map(case).into(),
            orderings: Vec::new(),
        };
        for width in [80, 120] {
            let colour = false;
            let text = cases(&comparison, Style { width, colour });
            for name in names {
                let begins = format!("   {name}:");
                let line = text.lines().find(|line| line.starts_with(&begins));
                let ends = format!("  {name} is gone");
                assert!(line.is_some_and(|line| line.ends_with(&ends)), "{text}");
            }
        }
    }
}
