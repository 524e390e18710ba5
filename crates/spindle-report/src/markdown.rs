//! `report.md`: the content of the page for places that render Markdown, such as a pull request. The dialect is
//! GitHub's, for its tables.

use std::fmt::Write as _;

use spindle_stats::TimeSeries;
use spindle_text::quantity::thousands;

use super::bulk_load;
use super::capacity;
use super::comparison::{self, CHECKS, CHECKS_NOTE, NO_FIGURE};
use super::costs;
use super::effects;
use super::facts::{Fact, facts, facts_of_machine};
use super::io_calls;
use super::kinds::{self, kinds_of};
use super::load_curve;
use super::page::{events_of, trials_in_order};
use super::pairs::{PairTable, left_out};
use super::queries;
use super::sentences::{
    ALL_PAIRS, EFFECTS, NEXT, REPEAT, REPEAT_COMMAND, compared_by, context, costs, drift,
    emulation_terms, how_compared, load_name, measure_of, memory_terms, noise, of_half, stopping,
};
use super::timeline::{AVERAGED_SAMPLES, Timeline, per_minute};
use spindle_result::{Case, RunResult, SampledTrial, WaitEvent, next_steps};

/// Most characters that one trial's throughput over time takes.
const SPARKLINE_CHARS: usize = 40;

/// The whole text. `series` holds the throughput over time of the trials that were sampled.
pub fn markdown(result: &RunResult, series: &[SampledTrial]) -> String {
    let mut text = format!(
        "# {}\n\n{}\n\n**{}**\n",
        escaped(result.experiment.name()),
        escaped(&context(result)),
        escaped(&result.headline)
    );
    let sections = [
        warnings(result),
        next(result),
        comparison_table(result),
        verdicts(result),
        capacities(result),
        costs_table(result),
        pairs(result),
        effects(result),
        why(result),
        checks(result),
        throughput_table(result, series),
        side_by_side(result),
        kinds(result),
        statements(result),
        waits(result),
        method(result),
    ];
    for section in sections {
        text.push_str(&section);
    }
    text
}

/// A table; cells are escaped here. No rows, no table.
fn table(header: &[String], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(header);
    let _ = writeln!(text, "|{}", " --- |".repeat(header.len()));
    text.extend(rows.iter().map(|row| line(row)));
    text
}

/// A heading and what stands below it; nothing at all when that is empty.
fn section(heading: &str, body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!("\n## {heading}\n\n{}\n", body.trim_end())
    }
}

fn owned(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

fn numbered(result: &RunResult, layout: &str) -> String {
    match result.layout_number(layout) {
        Some(number) => format!("{number} {layout}"),
        None => layout.to_owned(),
    }
}

fn warnings(result: &RunResult) -> String {
    let items: String = result
        .warnings
        .iter()
        .map(|warning| format!("- {}\n", escaped(&warning.text)))
        .collect();
    section("What weakens this answer", &items)
}

fn next(result: &RunResult) -> String {
    let steps = next_steps(result).into_iter();
    let items: String = steps
        .map(|step| format!("- {}\n", with_names(&step)))
        .collect();
    section(NEXT, &items)
}

fn costs_table(result: &RunResult) -> String {
    let mut body = String::new();
    for ranking in &result.rankings {
        let rows = costs::rows(result, ranking);
        if !rows.is_empty() {
            let load = load_name(result, ranking.load);
            let _ = writeln!(
                body,
                "{}\n\n{}",
                escaped(&load),
                table(&owned(&costs::HEADER), &rows)
            );
        }
    }
    match body.is_empty() {
        true => body,
        false => section("Costs", &format!("{body}{}", costs::NOTE)),
    }
}

fn capacities(result: &RunResult) -> String {
    let rows = capacity::rows(result);
    if rows.is_empty() {
        return String::new();
    }
    let header = owned(&capacity::HEADER);
    let body = format!("{}\n{}", table(&header, &rows), capacity::NOTE);
    section("Capacity", &body)
}

fn comparison_table(result: &RunResult) -> String {
    let columns = comparison::columns(result);
    let mut header = owned(&["layout", comparison::KEEPS, "clients"]);
    header.extend(columns.iter().map(|column| column.title.to_owned()));
    header.push("status".to_owned());
    let row = |case: &Case| {
        let summary = case.summary();
        let mut row = vec![
            numbered(result, &case.id.layout),
            comparison::keeps(case),
            case.id.load.in_column(),
        ];
        let cell = |column: &comparison::FigureColumn| {
            summary
                .as_ref()
                .map_or_else(|| NO_FIGURE.to_owned(), |summary| column.cell(summary))
        };
        row.extend(columns.iter().map(cell));
        row.push(
            comparison::remark(result, case).unwrap_or_else(|| case.outcome.status().to_owned()),
        );
        row
    };
    let rows: Vec<Vec<String>> = result.cases.iter().map(row).collect();
    let weaknesses = comparison::weaknesses(result).into_iter();
    let weaknesses: String = weaknesses
        .map(|weakness| format!("\n- {}", escaped(&weakness)))
        .collect();
    let body = format!("{}\n{weaknesses}", table(&header, &rows).trim_end());
    section("Comparison", &body)
}

fn verdicts(result: &RunResult) -> String {
    let mut rows = Vec::new();
    for ranking in &result.rankings {
        rows.extend(result.verdicts_of(ranking).map(|comparison| {
            vec![
                result.workload.clone(),
                comparison.cases.load.in_column(),
                numbered(result, &comparison.cases.a),
                numbered(result, &comparison.cases.b),
                comparison::ratio(comparison.ratio),
                comparison::interval(comparison),
                comparison::verdict(result, comparison),
            ]
        }));
    }
    let header = owned(&[
        "workload",
        "clients",
        "a",
        "b",
        comparison::ratio_title(measure_of(result)),
        "95 % interval",
        "a is",
    ]);
    let mut body = table(&header, &rows);
    if !body.is_empty() {
        let _ = write!(body, "\n{}\n", escaped(compared_by(result)));
    }
    section("Verdicts", &body)
}

/// Every layout beside every other, a table for each workload and load level.
fn pairs(result: &RunResult) -> String {
    let mut body = String::new();
    for ranking in &result.rankings {
        let Some(matrix) = PairTable::of(result, ranking) else {
            continue;
        };
        let number = |layout: &&str| result.layout_number(layout).unwrap_or(1).to_string();
        let mut header = owned(&["layout, beside"]);
        header.extend(matrix.layouts.iter().map(number));
        let cell = |row: &str, column: &str| {
            let cell = matrix.cell(row, column);
            cell.map_or_else(String::new, |cell| {
                format!("{} ({}) {}", cell.ratio, cell.interval, cell.verdict)
            })
        };
        let row = |row: &&str| {
            let cells = matrix.layouts.iter().map(|column| cell(row, column));
            std::iter::once(numbered(result, row))
                .chain(cells)
                .collect()
        };
        let rows: Vec<Vec<String>> = matrix.layouts.iter().map(row).collect();
        let load = load_name(result, ranking.load);
        let _ = write!(body, "{}:\n\n{}\n", escaped(&load), table(&header, &rows));
    }
    if !body.is_empty() {
        let _ = writeln!(body, "{}", escaped(ALL_PAIRS));
    }
    if let Some(left_out) = left_out(result) {
        let _ = writeln!(body, "{left_out}");
    }
    section("Every pair of layouts", &body)
}

/// What each setting of a matrix does, and how far that depends on others.
fn effects(result: &RunResult) -> String {
    let sentences: String = result
        .factor_answers
        .iter()
        .map(|answer| {
            let load = answer.load;
            format!("- {} ({load})\n", escaped(&answer.told()))
        })
        .collect();
    if sentences.is_empty() {
        return String::new();
    }
    let table = effects::EffectTable::of(result);
    let mut body = format!("{EFFECTS}:\n\n{sentences}\n");
    body.push_str(&self::table(&owned(&effects::HEADER), &table.effects));
    body.push('\n');
    body.push_str(&self::table(
        &owned(&effects::INTERACTIONS_HEADER),
        &table.interactions,
    ));
    if let Some(half) = of_half(result) {
        let _ = write!(body, "\n{half}\n");
    }
    section("Effects", &body)
}

fn checks(result: &RunResult) -> String {
    let mut header = owned(&["layout"]);
    header.extend(CHECKS.iter().map(|check| check.title.to_owned()));
    let mut rows = Vec::new();
    for case in &result.cases {
        rows.extend(case.trials.iter().map(|trial| {
            let mut row = vec![numbered(result, &case.id.layout)];
            row.extend(CHECKS.iter().map(|check| (check.cell)(case, trial)));
            row
        }));
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut body = format!("{CHECKS_NOTE}\n\n{}", table(&header, &rows));
    for line in io_calls::lines(result) {
        let _ = write!(body, "\n- {}", escaped(&line));
    }
    section("Checks", &body)
}

/// Throughput over time as a row of block characters, all on one scale.
fn throughput_table(result: &RunResult, series: &[SampledTrial]) -> String {
    let mut rows = Vec::new();
    for ranking in &result.rankings {
        let Some(timeline) = Timeline::of(result, series, ranking) else {
            continue;
        };
        let drawn: Vec<(&str, TimeSeries)> = timeline
            .typical()
            .map(|trial| (trial.case.layout.as_str(), per_minute(trial)))
            .collect();
        let averages = |samples: &TimeSeries| samples.moving_average(AVERAGED_SAMPLES);
        let highest = drawn
            .iter()
            .filter_map(|(_, samples)| averages(samples).best());
        let highest = highest.fold(0.0, f64::max);
        for (layout, samples) in &drawn {
            rows.push(vec![
                numbered(result, layout),
                ranking.load.in_column(),
                timeline.typical_round.to_string(),
                thousands(samples.best().unwrap_or(0.0)),
                sparkline(&averages(samples), highest),
            ]);
        }
    }
    let header = [
        "layout".to_owned(),
        "clients".to_owned(),
        "round".to_owned(),
        "best sample, tpm".to_owned(),
        format!("moving average of {AVERAGED_SAMPLES} samples"),
    ];
    section("Throughput over time", &table(&header, &rows))
}

/// Heights from nothing to `highest` in eighths; samples beyond [`SPARKLINE_CHARS`] are thinned evenly.
fn sparkline(series: &TimeSeries, highest: f64) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let samples = series.samples();
    let every = samples.len().div_ceil(SPARKLINE_CHARS).max(1);
    let height = |sample: &f64| {
        let share = if highest > 0.0 { sample / highest } else { 0.0 };
        EIGHTHS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    samples.iter().step_by(every).map(height).collect()
}

/// Attributions, findings, and what is known of the machine's noise and drift.
fn why(result: &RunResult) -> String {
    let mut body = String::new();
    for attribution in &result.attributions {
        let _ = writeln!(
            body,
            "- {} ({})",
            with_names(&attribution.sentence),
            escaped(&result.workload)
        );
    }
    for finding in &result.findings {
        let _ = write!(
            body,
            "- **{}** ({}): ",
            escaped(&finding.kind),
            escaped(&finding.places())
        );
        let _ = write!(
            body,
            "{} {}",
            with_names(&finding.text),
            with_names(&finding.evidence.join("; "))
        );
        let _ = writeln!(body, ". Remedy: {}", with_names(&finding.remedy));
    }
    let mut sentences: Vec<String> = result.noise.iter().map(noise).collect();
    sentences.extend(result.drifts.iter().map(drift));
    sentences.extend(result.stopping.as_ref().map(stopping));
    for sentence in sentences {
        let _ = writeln!(body, "- {}", with_names(&sentence));
    }
    section("Why", &body)
}

/// Latency over load, and what queries or a bulk load took, side by side, for each load level that has them.
fn side_by_side(result: &RunResult) -> String {
    let tables = load_curve::tables(result).into_iter();
    tables
        .chain(bulk_load::tables(result))
        .chain(queries::tables(result))
        .map(|of| {
            let body = format!("{}\n{}\n", table(&of.header, &of.rows), of.note);
            section(&of.title, &body)
        })
        .collect()
}

/// The kinds of transactions apart, a table for each workload and load level that has several: the layouts of each kind
/// together.
fn kinds(result: &RunResult) -> String {
    let mut body = String::new();
    for group in result.groups() {
        let mut rows = Vec::new();
        for kind in kinds_of(&group) {
            rows.extend(kind.layouts.iter().map(|(layout, figures)| {
                let mut row = vec![kind.kind.clone(), numbered(result, layout)];
                row.extend(figures.iter().cloned());
                row
            }));
        }
        if let (Some(first), false) = (group.first(), rows.is_empty()) {
            let load = load_name(result, first.id.load);
            let table = table(&owned(&kinds::COLUMNS), &rows);
            let _ = write!(body, "{}:\n\n{table}\n", escaped(&load));
            for sentence in kinds::deferred(&group) {
                let _ = write!(body, "{}\n\n", escaped(&sentence));
            }
        }
    }
    section("Kinds of transactions", &body)
}

/// What each statement took, a table for each load level.
fn statements(result: &RunResult) -> String {
    let groups = result.groups();
    let tables = groups
        .iter()
        .filter_map(|group| queries::statements_table(result, group));
    tables
        .map(|of| {
            let body = format!("{}\n{}\n", table(&of.header, &of.rows), of.note);
            section(&of.title, &body)
        })
        .collect()
}

fn waits(result: &RunResult) -> String {
    let mut body = String::new();
    for group in result.groups() {
        let cases: Vec<&Case> = group
            .into_iter()
            .filter(|case| !case.trials.is_empty())
            .collect();
        let Some(first) = cases.first() else {
            continue;
        };
        let mut header = vec!["event, mean ms".to_owned()];
        header.extend(cases.iter().map(|case| numbered(result, &case.id.layout)));
        let row = |event: &WaitEvent| {
            let mut row = vec![event.own_name().to_owned()];
            row.extend(cases.iter().map(|case| {
                let mean = case.mean_wait_ms(event).map(comparison::milliseconds);
                mean.unwrap_or_else(|| NO_FIGURE.to_owned())
            }));
            row
        };
        let rows: Vec<Vec<String>> = events_of(&cases).into_iter().map(row).collect();
        if !rows.is_empty() {
            let load = load_name(result, first.id.load);
            let _ = write!(body, "{}:\n\n{}\n", escaped(&load), table(&header, &rows));
        }
    }
    section("Wait events", &body)
}

fn method(result: &RunResult) -> String {
    let layout_rows: Vec<Vec<String>> = result
        .layouts
        .iter()
        .map(|layout| {
            vec![
                numbered(result, &layout.name),
                layout.path.clone(),
                layout.description.clone(),
                layout.all_notes().join("; "),
            ]
        })
        .collect();
    let trial_rows: Vec<Vec<String>> = trials_in_order(result)
        .into_iter()
        .map(|(case, trial)| {
            vec![
                trial.round.to_string(),
                trial.position.to_string(),
                numbered(result, &case.id.layout),
                case.id.load.in_column(),
                thousands(trial.tpm),
                trial.restore.method.clone(),
                (if trial.restore.verified { "yes" } else { "no" }).to_owned(),
            ]
        })
        .collect();
    let terms = format!(
        "{} {}{}{}",
        how_compared(result),
        memory_terms(result),
        emulation_terms(result),
        costs(result)
    );
    [
        section("How it was measured", &format!("{}\n", escaped(&terms))),
        section(
            "Layouts",
            &table(
                &owned(&["layout", "path", "description", "notes"]),
                &layout_rows,
            ),
        ),
        section(
            "Order of trials",
            &table(
                &owned(&[
                    "round", "position", "layout", "clients", "tpm", "restore", "verified",
                ]),
                &trial_rows,
            ),
        ),
        section(
            "To repeat it",
            &format!("{REPEAT}\n\n```\n{REPEAT_COMMAND}\n```\n"),
        ),
        section(
            "Experiment",
            &facts_table(facts(result.experiment.document())),
        ),
        section(
            "Machine",
            &facts_table(facts_of_machine(result.machine.as_ref())),
        ),
    ]
    .concat()
}

fn facts_table(facts: Vec<Fact>) -> String {
    let rows: Vec<Vec<String>> = facts
        .into_iter()
        .map(|fact| vec![fact.path.clone(), fact.text()])
        .collect();
    table(&owned(&["setting", "value"]), &rows)
}

/// A sentence in which names of events and settings stand between backticks, as they do in Markdown.
fn with_names(sentence: &str) -> String {
    let pieces = sentence.split('`').enumerate();
    let pieces = pieces.map(|(index, piece)| match index % 2 {
        1 => format!("`{}`", piece.replace('|', " ")),
        _ => escaped(piece),
    });
    pieces.collect()
}

/// Text that Markdown takes as it stands: what it would read as markup gets a backslash or, for HTML, an entity.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(
            escaped("<b>|a_b*\n[x](y)"),
            "&lt;b&gt;\\|a\\_b\\* \\[x\\](y)"
        );
    }

    #[test]
    fn names_between_backticks_stay_names() {
        assert_eq!(
            with_names("wait for `log_file` *now*"),
            "wait for `log_file` \\*now\\*"
        );
    }

    #[test]
    fn a_sparkline_shows_the_height_of_every_sample() {
        let series =
            |samples: &[f64]| TimeSeries::from_samples(Duration::from_secs(1), samples.to_vec());
        assert_eq!(sparkline(&series(&[0.0, 4.0, 8.0]), 8.0), "▁▄█");
        assert_eq!(sparkline(&series(&[1.0; 100]), 1.0).chars().count(), 34);
        assert_eq!(sparkline(&series(&[0.0]), 0.0), "▁");
    }
}
