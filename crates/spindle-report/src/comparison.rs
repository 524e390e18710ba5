//! The columns of the comparison, for the terminal and both reports, and of the checks, for the reports; and how their
//! figures are written.

use spindle_stats::ROUNDS_TO_JUDGE;

use spindle_result::{
    Case, ClientAudit, CommonRounds, IoCounts, Keeps, Measure, PairComparison, RunResult, Summary,
    Trial, Verdict, format_interval, rounds_that_tell, unit,
};
use spindle_text::quantity::{size, thousands};
use spindle_text::vocabulary::{self, ColumnHead, EMBEDDED, Vocabulary};

use super::sentences::counted;

/// Shown where the system does not tell.
const UNKNOWN: &str = "unknown";

/// Shown where a figure is missing.
pub const NO_FIGURE: &str = "-";

/// One column of figures.
#[derive(Debug, Clone, Copy)]
pub struct FigureColumn {
    /// What the figure is, in full.
    pub title: &'static str,
    /// The title cut to two short lines, for terminals.
    pub short: [&'static str; 2],
    /// What the short title stands for, where it does not say so itself.
    pub legend: Option<&'static str>,
    /// Its head in the words of a database, where each has its own.
    head: Option<fn(&'static Vocabulary) -> &'static ColumnHead>,
    /// Where it stands.
    shown: Shown,
    /// What stands there when a figure is missing.
    missing: &'static str,
    /// The figure of one case.
    figure: fn(&Summary) -> Option<String>,
}

/// When a column stands in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Even when every figure is missing.
    Always,
    /// When a case has its figure, or when nothing was measured at all.
    UnlessMissing,
    /// Only when a case has its figure: most workloads have none.
    WithFigure,
}

impl FigureColumn {
    /// What stands in it for one case.
    pub fn cell(&self, summary: &Summary) -> String {
        (self.figure)(summary).unwrap_or_else(|| self.missing.to_owned())
    }

    fn stands_among(&self, summaries: &[Summary]) -> bool {
        let has_figure = summaries.iter().any(|of| (self.figure)(of).is_some());
        match self.shown {
            Shown::Always => true,
            Shown::UnlessMissing => summaries.is_empty() || has_figure,
            Shown::WithFigure => has_figure,
        }
    }
}

/// The columns of figures, from left to right; number, layout and clients stand before them. They are those of the
/// published comparisons of raw devices and file systems, and the program's audit of itself.
const COLUMNS: [FigureColumn; 11] = [
    FigureColumn {
        title: "transactions per minute",
        short: ["", "tpm"],
        legend: None,
        head: None,
        shown: Shown::Always,
        missing: NO_FIGURE,
        figure: |summary| Some(thousands(summary.tpm)),
    },
    FigureColumn {
        title: "95 % interval of tpm, ±%",
        short: ["+-", "%"],
        legend: Some("+-: 95 % interval of tpm"),
        head: None,
        shown: Shown::Always,
        missing: NO_FIGURE,
        figure: |summary| summary.tpm_half_width_percent.map(half_width),
    },
    FigureColumn {
        title: "new orders per minute (NOPM)",
        short: ["", "NOPM"],
        legend: Some("NOPM: new orders per minute"),
        head: None,
        shown: Shown::WithFigure,
        missing: NO_FIGURE,
        figure: |summary| summary.nopm.map(thousands),
    },
    FigureColumn {
        title: "reads per second",
        short: ["reads", "/s"],
        legend: None,
        head: None,
        shown: Shown::UnlessMissing,
        missing: UNKNOWN,
        figure: |summary| summary.read_iops.map(thousands),
    },
    FigureColumn {
        title: "writes per second",
        short: ["writes", "/s"],
        legend: None,
        head: None,
        shown: Shown::UnlessMissing,
        missing: UNKNOWN,
        figure: |summary| summary.write_iops.map(thousands),
    },
    FigureColumn {
        title: "KB per second",
        short: ["KB", "/s"],
        legend: None,
        head: None,
        shown: Shown::UnlessMissing,
        missing: UNKNOWN,
        figure: |summary| summary.kib_per_s.map(thousands),
    },
    FigureColumn {
        title: EMBEDDED.log_write.title,
        short: [EMBEDDED.log_write.short, "ms"],
        legend: Some(EMBEDDED.log_write.legend),
        head: Some(|words| &words.log_write),
        shown: Shown::UnlessMissing,
        missing: NO_FIGURE,
        figure: |summary| summary.log_file_parallel_write_ms.map(milliseconds),
    },
    FigureColumn {
        title: EMBEDDED.block_read.title,
        short: [EMBEDDED.block_read.short, "ms"],
        legend: Some(EMBEDDED.block_read.legend),
        head: Some(|words| &words.block_read),
        shown: Shown::UnlessMissing,
        missing: NO_FIGURE,
        figure: |summary| summary.db_file_sequential_read_ms.map(milliseconds),
    },
    FigureColumn {
        title: "CPU %, user / system / iowait",
        short: ["CPU %", "us/sy/wa"],
        legend: Some("CPU: user/system/iowait"),
        head: None,
        shown: Shown::UnlessMissing,
        missing: UNKNOWN,
        figure: |summary| {
            let (user, system) = (summary.cpu_user_percent?, summary.cpu_system_percent?);
            let iowait = summary.cpu_iowait_percent?;
            Some(format!("{user:.0}/{system:.0}/{iowait:.0}"))
        },
    },
    FigureColumn {
        title: "transaction ms, p50 / p95 / p99",
        short: ["transaction ms", "p50/p95/p99"],
        legend: None,
        head: None,
        shown: Shown::UnlessMissing,
        missing: NO_FIGURE,
        figure: |summary| {
            let percentiles = [summary.p50_ms, summary.p95_ms, summary.p99_ms];
            Some(percentiles.map(milliseconds).join("/"))
        },
    },
    FigureColumn {
        title: "database / device bytes, read / written",
        short: ["DB/dev", "rd/wr"],
        legend: Some("DB/dev: bytes that the database counted over bytes that the device counted"),
        head: None,
        shown: Shown::UnlessMissing,
        missing: UNKNOWN,
        figure: |summary| {
            let (read, write) = (summary.read_ratio, summary.write_ratio);
            let is_known = read.is_some() || write.is_some();
            is_known.then(|| format!("{}/{}", optional(read, ratio), optional(write, ratio)))
        },
    },
];

/// The same in the words of a database.
fn all_in(words: &'static Vocabulary) -> [FigureColumn; 11] {
    COLUMNS.map(|column| match column.head {
        Some(head) => FigureColumn {
            title: head(words).title,
            short: [head(words).short, column.short[1]],
            legend: Some(head(words).legend),
            ..column
        },
        None => column,
    })
}

/// The columns of all databases: those that have another head in the words of a server come once for each.
pub fn all_columns() -> Vec<FigureColumn> {
    let mut all: Vec<FigureColumn> = Vec::new();
    for column in vocabulary::ALL.into_iter().flat_map(all_in) {
        if all.iter().all(|other| other.title != column.title) {
            all.push(column);
        }
    }
    all
}

/// The words of the database of a result.
pub(super) fn words(result: &RunResult) -> &'static Vocabulary {
    Vocabulary::of(&result.experiment.facts().database.engine)
}

/// The columns that a figure of a case stands in, the first ones always.
pub fn columns(result: &RunResult) -> Vec<FigureColumn> {
    let summaries: Vec<Summary> = result.cases.iter().filter_map(Case::summary).collect();
    let shown = all_in(words(result)).into_iter();
    shown
        .filter(|column| column.stands_among(&summaries))
        .collect()
}

/// What the abbreviations of [`FigureColumn::short`] stand for, for below a terminal's table.
pub fn legend(columns: &[FigureColumn]) -> String {
    let explained: Vec<&str> = columns.iter().filter_map(|column| column.legend).collect();
    explained.join("; ")
}

/// What the table of checks shows.
pub(super) const CHECKS_NOTE: &str = "\
What the program counted beside what the device counted, and what was left to write when each trial ended. A device \
without FUA is flushed after a durable write, and the kernel may count that as another write, of no bytes.";

/// One column of the table of checks, which has a row for every trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    /// What the figure is, in full.
    pub title: &'static str,
    /// The figure of one trial of a case.
    pub cell: fn(&Case, &Trial) -> String,
}

/// The columns of the checks, from left to right; the layout stands before them.
pub(super) const CHECKS: [Check; 14] = [
    Check {
        title: "clients / in tpm x mean time",
        cell: |case, trial| match trial.audit.clients {
            Some(audit) => clients(audit),
            None => case.id.load.in_column(),
        },
    },
    Check {
        title: "round",
        cell: |_, trial| trial.round.to_string(),
    },
    Check {
        title: "tpm",
        cell: |_, trial| thousands(trial.tpm),
    },
    Check {
        title: "transactions tried again",
        cell: |_, trial| thousands(trial.retries as f64),
    },
    Check {
        title: "reads, program / device",
        cell: |_, trial| both_sides(trial, |side| side.reads),
    },
    Check {
        title: "writes, program / device",
        cell: |_, trial| both_sides(trial, |side| side.writes),
    },
    Check {
        title: "bytes read, ratio",
        cell: |_, trial| known(trial.audit.read_ratio, ratio),
    },
    Check {
        title: "bytes written, ratio",
        cell: |_, trial| known(trial.audit.write_ratio, ratio),
    },
    Check {
        title: "read from page cache",
        cell: |_, trial| {
            known(trial.audit.page_cache_share, |share| {
                format!("{:.0} %", 100.0 * share)
            })
        },
    },
    Check {
        title: "dirty in page cache at the end",
        cell: |_, trial| known(trial.audit.dirty_bytes_at_end, size),
    },
    Check {
        title: "dirty in the database's cache at the end",
        cell: |_, trial| known(trial.audit.dirty_buffer_bytes_at_end, size),
    },
    Check {
        title: "flush at the end, ms",
        cell: |_, trial| optional(trial.audit.flush_at_end_us, |us| milliseconds(us / 1e3)),
    },
    Check {
        title: "CPU user / system per transaction, µs",
        cell: |_, trial| {
            known(trial.cpu_us_per_transaction, |cpu| {
                format!("{} / {}", thousands(cpu.user), thousands(cpu.system))
            })
        },
    },
    Check {
        title: "memory of instance / a session",
        cell: |_, trial| {
            known(trial.memory, |memory| {
                let (instance, session) = (size(memory.instance_bytes), size(memory.session_bytes));
                format!("{instance} / {session}")
            })
        },
    },
];

/// Clients beside those that throughput times mean transaction time accounts for (Little's law), those that had nothing
/// to do included; and whether the two differ.
fn clients(audit: ClientAudit) -> String {
    let had_nothing_to_do = audit.clients as f64 - audit.at_work();
    let accounted_for = audit.in_transactions + had_nothing_to_do;
    let fails = if audit.holds() { "" } else { ", differ" };
    format!("{} / {accounted_for:.2}{fails}", audit.clients)
}

fn both_sides(trial: &Trial, count: fn(&IoCounts) -> u64) -> String {
    let of = |side| known(side, |side| thousands(count(&side) as f64));
    format!("{} / {}", of(trial.audit.tool), of(trial.audit.device))
}

/// Heading of what a case keeps when the power goes, which stands behind its clients.
pub const KEEPS: &str = "after a power cut";

/// The same in two short lines.
pub const KEEPS_SHORT: [&str; 2] = ["power", "cut"];

/// What a case keeps when the power goes, for a cell; nothing for one that was not measured.
pub fn keeps(case: &Case) -> String {
    match case.is_compared() {
        true => case.promise.to_string(),
        false => NO_FIGURE.to_owned(),
    }
}

/// What is said of a case of which nothing is known, and of several.
const NOT_KNOWN: [&str; 2] = [
    "is not known to keep every commit",
    "are not known to keep every commit",
];

/// What weakens what some layouts keep.
#[derive(PartialEq)]
struct Weakness {
    keeps: Keeps,
    /// The clauses of one layout, and of several.
    clauses: [String; 2],
    reasons: String,
}

impl Weakness {
    /// `None`: nothing weakens what it keeps.
    fn of(case: &Case) -> Option<Weakness> {
        let promise = &case.promise;
        let reasons: Vec<String> = promise
            .weaknesses()
            .map(|reason| format!("{}: {}", reason.what, reason.effect))
            .collect();
        (!reasons.is_empty()).then(|| Weakness {
            keeps: promise.keeps,
            clauses: match promise.keeps {
                // What is unknown stands among the reasons.
                Keeps::Unknown => NOT_KNOWN.map(str::to_owned),
                _ => [promise.clause(), promise.clause_of_several()],
            },
            reasons: reasons.join("; "),
        })
    }

    /// The line of some layouts, which may be all that there are.
    fn line(&self, of: &[&str], are_all: bool) -> String {
        let ([one, several], reasons) = (&self.clauses, &self.reasons);
        match of {
            // A name may end with any word.
            [only] => format!("{only}: {one} ({reasons})"),
            _ if are_all && self.keeps == Keeps::Unknown => {
                format!("No layout is known to keep every commit ({reasons})")
            }
            _ if are_all => format!("Every layout {one} ({reasons})"),
            some => format!("{}: {several} ({reasons})", names(some)),
        }
    }
}

/// What weakens what cases keep, a line each; one line for all when all are alike, and none when all keep every commit.
pub fn weaknesses(result: &RunResult) -> Vec<String> {
    let mut lines: Vec<(Vec<&str>, Weakness)> = Vec::new();
    let mut layouts: Vec<&str> = Vec::new();
    for case in result.cases.iter().filter(|case| case.is_compared()) {
        let layout = case.id.layout.as_str();
        layouts.push(layout);
        let Some(weakness) = Weakness::of(case) else {
            continue;
        };
        match lines.iter_mut().find(|(_, known)| *known == weakness) {
            Some((of, _)) if of.contains(&layout) => {}
            Some((of, _)) => of.push(layout),
            None => lines.push((vec![layout], weakness)),
        }
    }
    layouts.sort_unstable();
    layouts.dedup();
    lines
        .iter()
        .map(|(of, weakness)| weakness.line(of, of.len() == layouts.len()))
        .collect()
}

/// `a, b`, or `a, b; c` where a name holds a comma.
fn names(of: &[&str]) -> String {
    let holds_comma = of.iter().any(|name| name.contains(','));
    of.join(if holds_comma { "; " } else { ", " })
}

/// What weakens what cases keep, where that is the same of all.
pub fn weakness_of_all(result: &RunResult) -> Option<String> {
    let mut measured = result.cases.iter().filter(|case| case.is_compared());
    let are_weak = measured.all(|case| case.promise.weaknesses().next().is_some());
    let mut lines = weaknesses(result).into_iter();
    lines.next().filter(|_| are_weak && lines.next().is_none())
}

/// What is to be said of a case apart from its figures: why there are none, or what is wrong with them. `None` for a
/// case with nothing to add.
pub fn remark(result: &RunResult, case: &Case) -> Option<String> {
    if let Some(reason) = case.outcome.reason() {
        return Some(format!("{}: {reason}", case.outcome.status()));
    }
    let not_direct = result.layout_of(case)?.not_direct_note();
    let said: Vec<String> = not_direct
        .into_iter()
        .chain(common_rounds(result, case))
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What a case and the best did in the rounds that both ran, where its mean is of other rounds than its ratio.
pub fn common_rounds(result: &RunResult, case: &Case) -> Option<String> {
    let common = CommonRounds::of(result, case)?;
    let rounds = counted(common.rounds, "round");
    Some(match common.measure {
        Measure::Throughput => format!(
            "in the {rounds} that both ran: {} tpm, the best {}",
            thousands(common.own),
            thousands(common.of_best)
        ),
        Measure::P99 => format!(
            "in the {rounds} that both ran: p99 {} ms, the best {}",
            milliseconds(common.own),
            milliseconds(common.of_best)
        ),
    })
}

/// What ratios are of, in a few words to follow "ratio of".
pub fn ratio_of(measure: Measure) -> &'static str {
    match measure {
        Measure::Throughput => "tpm",
        Measure::P99 => "p99, theirs over its own,",
    }
}

/// The heading of a column of ratios of cases a and b: above 1, a is the better one. `None`: some are of throughput and
/// some of p99.
pub fn ratio_title(measure: Option<Measure>) -> &'static str {
    match measure {
        Some(Measure::Throughput) => "tpm, a / b",
        Some(Measure::P99) => "p99, b / a",
        None => "tpm, a / b; at a rate p99, b / a",
    }
}

/// The interval of a ratio: `1.85-1.99`, or nothing known.
pub fn interval(comparison: &PairComparison) -> String {
    optional(comparison.ci95, format_interval)
}

/// The verdict in words, with what it lacks to be certain.
pub fn verdict(result: &RunResult, comparison: &PairComparison) -> String {
    let (word, unit) = (comparison.verdict.to_string(), unit(result));
    match (comparison.verdict, comparison.rounds_needed) {
        (Verdict::Undecided, _) if comparison.rounds < ROUNDS_TO_JUDGE => {
            format!("{word}, {ROUNDS_TO_JUDGE} {unit} or more are needed")
        }
        (Verdict::Undecided, Some(needed)) => {
            format!("{word}, {}", rounds_that_tell(result, needed))
        }
        (Verdict::Undecided, None) => format!("{word}, within the machine's own noise"),
        _ => word,
    }
}

/// A ratio in three figures or two decimals.
pub use spindle_result::format_ratio as ratio;

fn optional<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NO_FIGURE.to_owned(), write)
}

fn known<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), write)
}

/// An interval that is wider than its middle reaches below zero, where no throughput is.
fn half_width(percent_of_mean: f64) -> String {
    match percent_of_mean > 100.0 {
        true => ">100".to_owned(),
        false => percent(percent_of_mean),
    }
}

/// A percentage in two or three figures.
fn percent(value: f64) -> String {
    if value >= 9.95 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// Milliseconds in about three figures.
pub(crate) fn milliseconds(value: f64) -> String {
    match value {
        value if value >= 99.5 => thousands(value),
        value if value >= 9.95 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{CaseId, CasePair, build, sample};

    fn comparison(verdict: Verdict, rounds_needed: Option<u32>) -> PairComparison {
        PairComparison {
            cases: CasePair::of(&CaseId::new("a", 8), &CaseId::new("b", 8)),
            ratio: 1.1,
            ci95: Some((1.02, 1.19)),
            verdict,
            rounds_needed,
            rounds_to_find: None,
            rounds_to_win: None,
            rounds: 3,
            p99: None,
            cpu: None,
        }
    }

    #[test]
    fn a_case_of_fewer_rounds_has_figures_that_agree_with_its_ratio() {
        let record = sample::record(&[("best", &[200.0, 200.0, 200.0, 400.0]), ("b", &[100.0; 3])]);
        let result = build(&record).unwrap();
        let told = remark(&result, &result.cases[1]);
        assert_eq!(
            told.as_deref(),
            Some("in the 3 rounds that both ran: 100 tpm, the best 200")
        );
        assert_eq!(remark(&result, &result.cases[0]), None);
        let page = crate::html(&result, &[]);
        assert_eq!(page.matches("in the 3 rounds that both ran").count(), 2);
        let brief = crate::brief::render(&result, "report.html", crate::table::Style::default());
        assert!(
            brief.contains("  b: in the 3 rounds that both ran"),
            "{brief}"
        );
    }

    #[test]
    fn several_layouts_are_told_in_the_plural_and_apart() {
        use spindle_result::PromiseReason;

        let record = sample::record(&[("wal, full", &[100.0]), ("b", &[100.0]), ("c", &[100.0])]);
        let mut result = build(&record).unwrap();
        for case in &mut result.cases[..2] {
            case.promise.reasons = vec![PromiseReason {
                what: "md0".to_owned(),
                keeps: Keeps::Unknown,
                loses: None,
                effect: "does not tell".to_owned(),
                source: String::new(),
            }];
        }
        let line = "wal, full; b: are not known to keep every commit (md0: does not tell)";
        assert_eq!(weaknesses(&result), [line]);
        assert_eq!(names(&["a", "b"]), "a, b");
    }

    #[test]
    fn where_nothing_was_measured_there_is_no_column_of_one_workload() {
        let mut result = build(&sample::record(&[("a", &[100.0])])).unwrap();
        result.cases.clear();
        let shown = columns(&result);
        assert_eq!(shown.len(), all_in(words(&result)).len() - 1);
        assert!(shown.iter().all(|column| column.short[1] != "NOPM"));
    }

    #[test]
    fn clients_that_are_not_accounted_for_are_marked() {
        let audit = |in_transactions| ClientAudit {
            clients: 8,
            in_transactions,
            deferring: 0.0,
            thinking: 1.0,
            idle: 0.0,
            away: 0.0,
            open_at_end: 0,
            longest_open_s: 0.0,
            got_a_turn: 8,
            fewest: 9,
            most: 11,
        };
        assert_eq!(clients(audit(6.9)), "8 / 7.90");
        assert_eq!(clients(audit(6.0)), "8 / 7.00, differ");
    }

    #[test]
    fn a_verdict_says_what_it_lacks() {
        let mut record = sample::record(&[("a", &[100.0; 3]), ("b", &[100.0; 3])]);
        let result = build(&record).unwrap();
        let words = |verdict_, rounds| verdict(&result, &comparison(verdict_, rounds));
        assert_eq!(words(Verdict::Faster, None), "faster");
        assert_eq!(words(Verdict::Draw, None), "draw");
        assert_eq!(
            words(Verdict::Undecided, Some(9)),
            "undecided, a verdict needs about 9 rounds in all"
        );
        assert_eq!(
            words(Verdict::Undecided, Some(spindle_stats::MAX_ROUNDS)),
            "undecided, the noise is too large for any number of rounds"
        );
        assert_eq!(
            words(Verdict::Undecided, None),
            "undecided, within the machine's own noise"
        );
        let two_rounds = PairComparison {
            rounds: 2,
            ..comparison(Verdict::Undecided, Some(3))
        };
        assert_eq!(
            verdict(&result, &two_rounds),
            "undecided, 3 rounds or more are needed"
        );
        record.cases[0].trials[0].conditions.run = Some(1);
        let of_runs = build(&record).unwrap();
        assert_eq!(
            verdict(&of_runs, &comparison(Verdict::Undecided, Some(9))),
            "undecided, a verdict needs about 9 runs in all"
        );
    }

    #[test]
    fn milliseconds_keep_three_figures() {
        assert_eq!(
            [0.084, 9.94, 9.96, 99.4, 99.6].map(milliseconds),
            ["0.08", "9.94", "10.0", "99.4", "100"]
        );
    }

    #[test]
    fn an_interval_nobody_knows_is_a_dash() {
        let mut comparison = comparison(Verdict::Undecided, None);
        assert_eq!(interval(&comparison), "1.02-1.19");
        comparison.ci95 = None;
        assert_eq!(interval(&comparison), NO_FIGURE);
    }

    #[test]
    fn no_interval_is_shown_to_reach_below_zero() {
        let shown = [4.2, 99.6, 297.0].map(half_width);
        assert_eq!(shown, ["4.2", "100", ">100"]);
    }
}
