//! The result on a terminal: one table of cases, the verdict of every pair, the headline last, where the eye rests.
//!
//! Plain text by default. The caller decides on colour and width: it knows whether it writes to a terminal.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width, presets,
};

use crate::comparison::{self, FigureColumn, NO_FIGURE};
use crate::{bulk_load, cost, device_limits, load_curve, queries, sentences, times};
use spindle_result::{
    Case, CaseStatus, FactorAnswer, PairComparison, Ranking, RunResult, Verdict, next_steps,
};

/// Narrower than this, the columns of figures go into two tables, half of them each.
const ONE_TABLE_WIDTH: u16 = 112;

/// From this width, columns stand two blanks apart.
const ROOMY_WIDTH: u16 = 130;

/// Widths of terminals that a table is drawn for: the figures need the least, the eye loses the line beyond the most.
const TERMINAL_WIDTHS: RangeInclusive<u16> = 80..=200;

/// Between rows, "record separator" of ASCII: no name holds it.
const ROW_END: char = '\u{1e}';

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of text to stay within, as far as the figures allow.
    pub width: u16,
    /// Whether to colour verdicts and set the headline in bold, with ANSI escapes.
    pub colour: bool,
}

impl Default for Style {
    /// Plain text of 120 columns, for pipes and files.
    fn default() -> Self {
        Style {
            width: 120,
            colour: false,
        }
    }
}

impl Style {
    /// In colour and as wide as a terminal, within 80 to 200 columns. A terminal that does not know how many `columns`
    /// it has says 0, and gets the usual width.
    pub fn of_terminal(columns: u16) -> Style {
        let width = match columns {
            0 => Style::default().width,
            columns => columns.clamp(*TERMINAL_WIDTHS.start(), *TERMINAL_WIDTHS.end()),
        };
        Style {
            width,
            colour: true,
        }
    }
}

/// The whole text that ends a run, with a line feed at its end.
pub fn render(result: &RunResult, style: Style) -> String {
    let headline = paint(&result.headline, BOLD, style);
    let parts = [
        figures(result, style),
        side_by_side(result, style),
        pairs(result, style),
        effects(result),
        reasons(result),
        findings(result, style),
        measured_how_well(result),
        costs(result),
        warnings(result, style),
        next(result, style),
    ];
    format!(
        "{}\n\n{}{headline}\n",
        sentences::context(result),
        parts.concat()
    )
}

/// The table of cases, and what the abbreviations in it mean; a blank line at its end.
pub(crate) fn figures(result: &RunResult, style: Style) -> String {
    let mut text = String::new();
    let all = comparison::columns(result);
    let tables: Vec<&[FigureColumn]> = match style.width >= ONE_TABLE_WIDTH {
        true => vec![&all],
        false => {
            let (first, second) = all.split_at(all.len().div_ceil(2));
            vec![first, second]
        }
    };
    for columns in tables {
        let _ = writeln!(text, "{}\n", cases(result, columns, style.width));
    }
    let _ = writeln!(text, "{}{}\n", remarks(result), comparison::legend(&all));
    text
}

/// Latency over load, and what queries or a bulk load took, side by side; a blank line at its end, or nothing at all.
pub(crate) fn side_by_side(result: &RunResult, style: Style) -> String {
    let mut text = String::new();
    for of in load_curve::tables(result)
        .iter()
        .chain(&bulk_load::tables(result))
        .chain(&queries::tables(result))
    {
        let mut table = plain_table(style.width);
        table.set_header(&of.header);
        for row in &of.rows {
            table.add_row(row);
        }
        table.set_style(TableComponent::HeaderLines, '-');
        (1..of.header.len()).for_each(|column| align_right(&mut table, column));
        let _ = writeln!(text, "{}\n{}\n\n{}\n", of.title, lines(&table), of.note);
    }
    text
}

/// The best case of every workload and load level against each other one; a blank line at its end.
pub(crate) fn pairs(result: &RunResult, style: Style) -> String {
    let rankings = result.rankings.iter();
    rankings
        .map(|ranking| verdicts(result, ranking, style))
        .collect()
}

/// What each setting of a matrix does; a blank line at its end, or nothing at all.
pub(crate) fn effects(result: &RunResult) -> String {
    if result.factor_answers.is_empty() {
        return String::new();
    }
    let several = result.rankings.len() > 1;
    let line = |answer: &FactorAnswer| match several {
        true => format!("  {} ({})", answer.told(), answer.load),
        false => format!("  {}", answer.told()),
    };
    let title = std::iter::once(format!("{}:", sentences::EFFECTS));
    paragraph(title.chain(result.factor_answers.iter().map(line)))
}

/// Why layouts differ, a sentence for each pair; a blank line at its end, or nothing at all.
pub(crate) fn reasons(result: &RunResult) -> String {
    if result.attributions.is_empty() {
        return String::new();
    }
    let title = std::iter::once("Why they differ:".to_owned());
    let sentences = result.attributions.iter();
    paragraph(title.chain(sentences.map(|attribution| format!("  {}", attribution.sentence))))
}

/// What can be acted on, without the evidence; a blank line at its end, or nothing at all.
fn findings(result: &RunResult, style: Style) -> String {
    let label = paint("finding:", CYAN, style);
    let findings = result.findings.iter();
    let several = result.rankings.len() > 1;
    paragraph(findings.map(|finding| {
        let places = match several {
            true => finding.places(),
            false => finding.layouts.join("; "),
        };
        format!(
            "{label} {} ({places}): {} What helps: {}",
            finding.kind, finding.text, finding.remedy
        )
    }))
}

/// The machine's own noise, and what stopping early saved; a blank line at its end, or nothing at all.
pub(crate) fn measured_how_well(result: &RunResult) -> String {
    let noise = result.noise.iter().map(sentences::noise);
    let stopping = result.stopping.iter().map(sentences::stopping);
    paragraph(noise.chain(stopping))
}

/// What Spindle itself takes, and where the time went; a blank line at its end, or nothing at all.
pub(crate) fn costs(result: &RunResult) -> String {
    let costs = [
        times::line(result),
        cost::own_cost(result),
        cost::memory(result),
        device_limits::reached(result),
    ];
    paragraph(costs.into_iter().flatten())
}

/// What weakens the answer; a blank line at its end, or nothing at all.
pub(crate) fn warnings(result: &RunResult, style: Style) -> String {
    let label = paint("warning:", YELLOW, style);
    let warnings = result.warnings.iter();
    paragraph(warnings.map(|warning| format!("{label} {}", warning.text)))
}

/// What to do where the answer is open or weak; a blank line at its end, or nothing at all.
pub(crate) fn next(result: &RunResult, style: Style) -> String {
    let label = paint("next:", CYAN, style);
    let steps = next_steps(result).into_iter();
    paragraph(steps.map(|step| format!("{label} {step}")))
}

/// Lines, and a blank one at their end if there are any.
fn paragraph(lines: impl Iterator<Item = String>) -> String {
    let mut text: String = lines.map(|line| line + "\n").collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn cases(result: &RunResult, columns: &[FigureColumn], width: u16) -> String {
    let mut table = plain_table(width);
    let mut header = vec![
        "#".to_owned(),
        "layout".to_owned(),
        comparison::KEEPS_SHORT.join("\n"),
        "cli-\nents".to_owned(),
    ];
    header.extend(columns.iter().map(|column| column.short.join("\n")));
    let figures = 3..header.len();
    table.set_header(header);
    for case in &result.cases {
        table.add_row(row(result, case, columns));
    }
    table.set_style(TableComponent::HeaderLines, '-');
    if width >= ROOMY_WIDTH {
        table.set_style(TableComponent::MiddleHeaderIntersections, '-');
    } else {
        // Without a line between columns, even a blank one, only the padding of one keeps them apart.
        table.remove_style(TableComponent::VerticalLines);
        table.remove_style(TableComponent::MiddleHeaderIntersections);
    }
    set_constraint(&mut table, 0, ColumnConstraint::ContentWidth);
    set_constraint(
        &mut table,
        1,
        ColumnConstraint::LowerBoundary(Width::Fixed(14)),
    );
    set_constraint(&mut table, 2, ColumnConstraint::ContentWidth);
    for index in figures {
        set_constraint(&mut table, index, ColumnConstraint::ContentWidth);
        align_right(&mut table, index);
    }
    lines(&table)
}

/// A case without figures says so in their first column; the reason stands below the table, where there is room for it.
fn row(result: &RunResult, case: &Case, columns: &[FigureColumn]) -> Vec<String> {
    let mut row = vec![
        number(result, &case.id.layout),
        case.id.layout.clone(),
        comparison::keeps(case),
        case.id.load.in_column(),
    ];
    match (&case.outcome, case.summary()) {
        (CaseStatus::Measured, Some(summary)) => {
            row.extend(columns.iter().map(|column| column.cell(&summary)))
        }
        (outcome, _) => {
            row.push(outcome.status().to_owned());
            row.extend(columns.iter().skip(1).map(|_| NO_FIGURE.to_owned()));
        }
    }
    row
}

/// One line for each case that has something to say apart from its figures.
fn remarks(result: &RunResult) -> String {
    let mut text = String::new();
    for case in &result.cases {
        if let Some(remark) = comparison::remark(result, case) {
            let label = format!(
                "{} {}, {}",
                number(result, &case.id.layout),
                case.id.layout,
                case.id.load
            );
            let _ = writeln!(text, "{label}: {remark}");
        }
    }
    for weakness in comparison::weaknesses(result) {
        let _ = writeln!(text, "{weakness}");
    }
    text
}

/// The number of a layout, as text.
pub(crate) fn number(result: &RunResult, layout: &str) -> String {
    result
        .layout_number(layout)
        .map_or_else(String::new, |number| number.to_string())
}

/// The best case of one workload and load level against every other.
fn verdicts(result: &RunResult, ranking: &Ranking, style: Style) -> String {
    let comparisons: Vec<&PairComparison> = result.verdicts_of(ranking).collect();
    if comparisons.is_empty() {
        return String::new();
    }
    let mut table = plain_table(style.width);
    let mut words = Vec::new();
    for comparison in &comparisons {
        let verdict = comparison::verdict(result, comparison);
        words.push((verdict, colour_of(comparison.verdict)));
        table.add_row([
            format!("  {}", number(result, &comparison.cases.b)),
            comparison.cases.b.clone(),
            format!("{} x", comparison::ratio(comparison.ratio)),
            comparison.ci95.map_or_else(String::new, |_| {
                format!("({})", comparison::interval(comparison))
            }),
        ]);
    }
    align_right(&mut table, 2);
    let title = format!(
        "{} against ({}; ratio of {} and its 95 % interval):\n",
        ranking.best,
        sentences::load_name(result, ranking.load),
        comparison::ratio_of(ranking.measure)
    );
    format!("{title}{}\n", with_words(table, 1, &words, style))
}

/// A table with words behind each row, each with its ink; a line feed at its end. Only column `names` is
/// broken into lines where the style's width asks for it: a row's first line tells all that its words are about.
pub(crate) fn with_words(
    mut table: Table,
    names: usize,
    words: &[(String, Ink)],
    style: Style,
) -> String {
    for column in (0..table.column_count()).filter(|column| *column != names) {
        if let Some(column) = table.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    // A line between rows tells where each of them ends.
    table.set_style(TableComponent::HorizontalLines, ROW_END);
    let drawn = lines(&table);
    let mut drawn = drawn.lines();
    let mut text = String::new();
    for (words, ink) in words {
        let row = drawn.by_ref().take_while(|line| !line.contains(ROW_END));
        for (index, line) in row.enumerate() {
            let _ = match index {
                0 => writeln!(text, "{line}  {}", paint(words, *ink, style)),
                _ => writeln!(text, "{line}"),
            };
        }
    }
    text
}

pub(crate) fn plain_table(width: u16) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table
}

fn set_constraint(table: &mut Table, column: usize, constraint: ColumnConstraint) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(constraint).set_padding((0, 1));
    }
}

pub(crate) fn align_right(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The drawn table without the blanks that fill its last column.
pub(crate) fn lines(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// A code of "Select Graphic Rendition", ECMA-48, section 8.3.117; `None`: text as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ink(Option<&'static str>);

/// Bold text.
pub const BOLD: Ink = Ink(Some("1"));
/// Red text.
pub const RED: Ink = Ink(Some("31"));
/// Text as it is.
pub(crate) const PLAIN: Ink = Ink(None);
pub(crate) const GREEN: Ink = Ink(Some("32"));
/// Yellow text.
pub const YELLOW: Ink = Ink(Some("33"));
pub(crate) const CYAN: Ink = Ink(Some("36"));

fn colour_of(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Faster => GREEN,
        Verdict::Slower => RED,
        Verdict::Draw => CYAN,
        Verdict::Undecided => YELLOW,
    }
}

/// The text between the code of an ink and its end, where the style has colours.
pub fn paint(text: &str, ink: Ink, style: Style) -> String {
    match ink.0.filter(|_| style.colour) {
        Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_comes_only_when_told() {
        let coloured = Style {
            colour: true,
            ..Style::default()
        };
        assert_eq!(paint("draw", CYAN, coloured), "\x1b[36mdraw\x1b[0m");
        assert_eq!(paint("draw", CYAN, Style::default()), "draw");
    }

    #[test]
    fn a_terminal_gives_the_width_within_reason() {
        let widths = [0, 40, 80, 132, 200, 500].map(|columns| Style::of_terminal(columns).width);
        assert_eq!(widths, [120, 80, 80, 132, 200, 200]);
    }

    #[test]
    fn words_stay_with_their_rows_however_long_names_are() {
        use spindle_result::{build, sample};

        let name = |of: &str| format!("{of}: {}", ["filesystem ext4"; 6].join(", "));
        let names = ["quick", "alike", "half", "slow"].map(name);
        let tpm: [&[f64]; 4] = [
            &[1_000.0, 1_001.0, 999.0],
            &[1_001.0, 999.0, 1_000.0],
            &[500.0, 501.0, 499.0],
            &[100.0, 101.0, 99.0],
        ];
        let cases: Vec<(&str, &[f64])> = names.iter().map(String::as_str).zip(tpm).collect();
        let result = build(&sample::record(&cases)).unwrap();
        for width in [80, 120] {
            let style = Style {
                width,
                ..Style::default()
            };
            let text = pairs(&result, style);
            for comparison in result.verdicts_of(&result.rankings[0]) {
                let (of, _) = comparison.cases.b.split_once(':').unwrap();
                let begins = format!("  {of}:");
                let line = text.lines().find(|line| line.contains(&begins)).unwrap();
                let ratio = format!("{} x", comparison::ratio(comparison.ratio));
                assert!(line.contains(&ratio), "{text}");
                let verdict = comparison::verdict(&result, comparison);
                assert!(line.ends_with(&format!("  {verdict}")), "{text}");
            }
            assert_eq!(text.matches("faster").count(), 2, "{text}");
            assert_eq!(text.matches("ext4").count(), 6 * 4, "{text}");
            assert!(!text.contains(ROW_END), "{text}");
        }
    }

    #[test]
    fn findings_are_told_with_their_loads_where_there_are_several() {
        use spindle_result::{CaseId, Finding, build, sample};

        let mut result = build(&sample::record(&[("a", &[100.0; 3]), ("b", &[99.0; 3])])).unwrap();
        result.findings = vec![Finding {
            kind: "CPU-bound".to_owned(),
            layouts: vec!["a".to_owned(), "b".to_owned()],
            clients: vec![1, 8],
            cases: vec![
                CaseId::new("a", 8),
                CaseId::new("b", 1),
                CaseId::new("b", 8),
            ],
            text: "It is.".to_owned(),
            evidence: Vec::new(),
            remedy: "None.".to_owned(),
        }];
        let one = findings(&result, Style::default());
        assert_eq!(
            one,
            "finding: CPU-bound (a; b): It is. What helps: None.\n\n"
        );
        result.rankings.push(result.rankings[0].clone());
        let several = findings(&result, Style::default());
        assert!(
            several.starts_with("finding: CPU-bound (a at 8 clients; b at 1 and 8 clients): "),
            "{several}"
        );
    }
}
