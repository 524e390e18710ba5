//! What an import says: what the mix covers, what it leaves out and why, and what to do next.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use spindle_report::sentences::counted;
use spindle_text::paragraph::wrapped;
use spindle_text::plain::{one_line, shortened};
use spindle_workload::sql::Dialect;

use super::mix::{CallShare, Counted, ImportedMix, Left};

/// What the experiment file is called.
pub const EXPERIMENT: &str = "experiment.toml";
/// Statements that were left out, at most this many are shown for each reason.
const SHOWN_MAX: usize = 3;
/// Reasons at most.
const REASONS_MAX: usize = 12;
/// Characters of a statement.
const TEXT_CHARS: usize = 70;
/// Columns of a line.
const WIDTH: usize = 100;

/// All that was counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToldTotals {
    statements: usize,
    calls: f64,
    time_ms: f64,
}

impl ToldTotals {
    /// Of these statements.
    pub fn of(counted: &[Counted]) -> ToldTotals {
        ToldTotals {
            statements: counted.len(),
            calls: counted.iter().map(|each| each.calls).sum(),
            time_ms: counted.iter().map(|each| each.time_ms).sum(),
        }
    }
}

/// What a mix is, in words.
pub fn told(
    mix: &ImportedMix,
    totals: &ToldTotals,
    source: &str,
    out: &Path,
    has_load: bool,
    dialect: Dialect,
) -> String {
    let mut text = format!(
        "{source}: {}, {}, {:.1} s in all\n",
        counted(totals.statements, "statement"),
        counted(totals.calls as usize, "call"),
        totals.time_ms / 1000.0
    );
    let _ = writeln!(text, "The mix covers {}.", shares(mix.covered));
    let _ = writeln!(text, "\nWritten to {}:", out.display());
    let weights: u32 = mix.scripts.iter().map(|script| script.weight).sum();
    for script in &mix.scripts {
        let share = 100.0 * f64::from(script.weight) / f64::from(weights);
        let _ = writeln!(text, "  {share:5.1} % {}", script.name);
    }
    let _ = writeln!(text, "          {EXPERIMENT}");
    if !mix.left.is_empty() {
        let _ = write!(text, "\nLeft out:\n{}", left(mix));
    }
    if !mix.doubts.is_empty() {
        text.push_str("\nWhat drawn values do not have:\n");
        for doubt in &mix.doubts {
            paragraph(&mut text, doubt);
        }
    }
    if !mix.read_from_rows.is_empty() {
        text.push_str("\nRead from rows of the server, as no histogram holds them:\n");
        let columns: Vec<&str> = mix.read_from_rows.iter().map(String::as_str).collect();
        paragraph(&mut text, &format!("values of {}", columns.join(", ")));
    }
    text.push_str("\nNext:\n");
    if !has_load {
        let dump = match dialect {
            Dialect::MariaDb => "mariadb-dump DATABASE > data.sql",
            Dialect::Postgres | Dialect::Sqlite => {
                "pg_dump --format=custom --file=data.dump DATABASE"
            }
        };
        paragraph(
            &mut text,
            &format!(
                "The data is yours to bring: `{dump}`, and its name as `load` in {EXPERIMENT}, or --load here."
            ),
        );
    }
    let experiment = out.join(EXPERIMENT);
    let _ = writeln!(text, "  spindle plan {}", experiment.display());
    text
}

/// A point of a list.
pub fn paragraph(text: &mut String, sentence: &str) {
    for (number, line) in wrapped(sentence, WIDTH - 4).iter().enumerate() {
        let mark = if number == 0 { "-" } else { " " };
        let _ = writeln!(text, "  {mark} {line}");
    }
}

fn shares(share: CallShare) -> String {
    format!(
        "{:.1} % of the calls and {:.1} % of the time",
        100.0 * share.calls,
        100.0 * share.time
    )
}

/// What is not in a mix, by reasons.
pub fn left(mix: &ImportedMix) -> String {
    let mut reasons: BTreeMap<String, Vec<&Left>> = BTreeMap::new();
    for each in &mix.left {
        reasons.entry(each.why.to_string()).or_default().push(each);
    }
    let sum = |of: &[&Left]| {
        of.iter().fold(CallShare::default(), |sum, each| CallShare {
            calls: sum.calls + each.share.calls,
            time: sum.time + each.share.time,
        })
    };
    let mut reasons: Vec<(String, CallShare, Vec<&Left>)> = reasons
        .into_iter()
        .map(|(why, of)| (why, sum(&of), of))
        .collect();
    let weight = |share: CallShare| share.calls.max(share.time);
    reasons.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)));
    let mut text = String::new();
    for (why, share, of) in reasons.iter().take(REASONS_MAX) {
        paragraph(&mut text, &format!("{}: {}", shares(*share), one_line(why)));
        for each in of.iter().take(SHOWN_MAX) {
            let line = each.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "      {}", shortened(&one_line(&line), TEXT_CHARS));
        }
        if of.len() > SHOWN_MAX {
            let _ = writeln!(text, "      and {} more", of.len() - SHOWN_MAX);
        }
    }
    if reasons.len() > REASONS_MAX {
        let more = counted(reasons.len() - REASONS_MAX, "more reason");
        let _ = writeln!(text, "  - and {more}");
    }
    text
}
