//! The answer in a sentence: who is fastest and by how much, or that it is too close to call.

use std::fmt::Write as _;

use spindle_stats::Verdict;

use super::{Case, Comparison, Ranking, RunResult, fixed_rate};

/// What is said when reads were answered from memory, so that no device was compared.
const COMPARES_CACHES: &str = "the data fits in memory: this compares caches, not devices";

/// From this share of reads answered by the page cache, the comparison is one of caches.
pub(super) const MOSTLY_CACHED_SHARE: f64 = 0.5;

/// One sentence per workload and load level, each ending in a full stop.
pub(super) fn headline(result: &RunResult) -> String {
    let several_workloads = result
        .cases
        .iter()
        .any(|case| case.workload != result.cases[0].workload);
    let sentences: Vec<String> = result
        .rankings
        .iter()
        .map(|ranking| {
            let mut load = match ranking.clients {
                1 => "at 1 client".to_owned(),
                clients => format!("at {clients} clients"),
            };
            if several_workloads {
                let _ = write!(load, " of {}", ranking.workload);
            }
            let mut sentence = sentence(result, ranking, &load);
            if result.memory_budget_bytes.is_none() && is_mostly_cached(result, ranking) {
                let _ = write!(sentence, "; {COMPARES_CACHES}");
            }
            sentence + "."
        })
        .collect();
    if sentences.is_empty() {
        return "Nothing was measured: the reason stands beside each case.".to_owned();
    }
    sentences.join(" ")
}

/// A ratio as it is written everywhere: three figures or two decimals.
pub fn format_ratio(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// `1.92 x buffered (1.85-1.99)`.
fn times(comparison: &Comparison) -> String {
    let mut text = format!("{} x {}", format_ratio(comparison.ratio), comparison.b);
    if let Some((low, high)) = comparison.ci95 {
        let _ = write!(text, " ({}-{})", format_ratio(low), format_ratio(high));
    }
    text
}

fn is_mostly_cached(result: &RunResult, ranking: &Ranking) -> bool {
    let competitors = result
        .cases
        .iter()
        .filter(|case| case.is_ranked_in(ranking));
    let mut compared = competitors.filter(|case| case.is_compared());
    compared.any(|case| {
        case.page_cache_share()
            .is_some_and(|share| share > MOSTLY_CACHED_SHARE)
    })
}

fn sentence(result: &RunResult, ranking: &Ranking, load: &str) -> String {
    let mut comparisons: Vec<&Comparison> = result
        .verdicts
        .iter()
        .filter(|verdict| {
            verdict.workload == ranking.workload && verdict.clients == ranking.clients
        })
        .collect();
    comparisons.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    if let Some(sentence) = fixed_rate::sentence(result, ranking, &comparisons, load) {
        return sentence;
    }
    let best = &ranking.best;
    match comparisons.as_slice() {
        [] => format!("Only {best} was measured {load}: there is nothing to compare it with"),
        [.., slowest]
            if comparisons
                .iter()
                .all(|comparison| comparison.ci95.is_none()) =>
        {
            format!(
                "Undecided {load}: {best} came out best ({}), but a verdict needs two finished rounds or more",
                times(slowest)
            )
        }
        [only] if ranking.winner.is_some() => format!("{best} is fastest: {}, {load}", times(only)),
        [next, .., slowest] if ranking.winner.is_some() => format!(
            "{best} is fastest: {}, the next best, and {}, the slowest, {load}",
            times(next),
            times(slowest)
        ),
        _ => too_close(result, ranking, &comparisons, load),
    }
}

/// The sentence for a best case that was not shown to beat every other. `comparisons` stand in ascending order of ratio.
/// Those that it does not beat even as a pair are too close to call; beating all, each as a pair, is still not winning
/// among all (see `spindle_stats::rank`), and the sentence says so.
fn too_close(
    result: &RunResult,
    ranking: &Ranking,
    comparisons: &[&Comparison],
    load: &str,
) -> String {
    let is_beaten = |comparison: &&&Comparison| comparison.verdict == Verdict::Faster;
    let beaten: Vec<&Comparison> = comparisons.iter().filter(is_beaten).copied().collect();
    let close: Vec<&Comparison> = comparisons
        .iter()
        .filter(|comparison| !is_beaten(comparison))
        .copied()
        .collect();
    let best = &ranking.best;
    if close.is_empty() {
        return format!(
            "{best} came out best, {} {load}, but that is not sure among {} cases: more rounds would tell",
            pair_by_pair(&beaten),
            comparisons.len() + 1
        );
    }
    let mut names = vec![best.as_str()];
    names.extend(close.iter().map(|comparison| comparison.b.as_str()));
    let mut sentence = format!(
        "Too close to call between {} ({}), {load}",
        listed(&names),
        closeness(result, &close)
    );
    if !beaten.is_empty() {
        let _ = write!(
            sentence,
            "; {best} is {}, pair by pair",
            pair_by_pair(&beaten)
        );
    }
    sentence
}

/// `1.26 x direct, slaves (1.00-1.58) to 3.04 x buffered, sync (1.58-5.84)`.
fn pair_by_pair(beaten: &[&Comparison]) -> String {
    match beaten {
        [] => String::new(),
        [only] => times(only),
        [nearest, .., slowest] => format!("{} to {}", times(nearest), times(slowest)),
    }
}

/// How close the tied ones are and what would tell them apart.
fn closeness(result: &RunResult, tied: &[&Comparison]) -> String {
    let mut text = match tied {
        [only] => format!("{} x", format_ratio(only.ratio)),
        [first, .., last] if format_ratio(first.ratio) != format_ratio(last.ratio) => {
            format!(
                "{} x to {} x",
                format_ratio(first.ratio),
                format_ratio(last.ratio)
            )
        }
        [first, ..] => format!("{} x each", format_ratio(first.ratio)),
        [] => String::new(),
    };
    if let [
        Comparison {
            ci95: Some((low, high)),
            ..
        },
    ] = tied
    {
        let _ = write!(text, ", {}-{}", format_ratio(*low), format_ratio(*high));
    }
    if tied
        .iter()
        .all(|comparison| comparison.verdict == Verdict::Draw)
    {
        let _ = write!(text, ": a draw within {} %", percent(result.margin));
    } else if let Some(rounds) = tied
        .iter()
        .filter_map(|comparison| comparison.rounds_needed)
        .max()
    {
        let _ = match rounds {
            spindle_stats::MAX_ROUNDS.. => {
                write!(text, "; no sensible number of rounds would decide")
            }
            rounds => write!(text, "; about {rounds} rounds would decide"),
        };
    }
    text
}

/// A fraction as a percentage without needless zeros: 0.03 is `3`, 0.025 is `2.5`.
fn percent(fraction: f64) -> f64 {
    (fraction * 1e4).round() / 100.0
}

/// `a and b`, or `a; b; and c`, because names of layouts hold commas.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [init @ .., last] => format!("{}; and {last}", init.join("; ")),
    }
}

/// A case in a sentence: its layout, and as much of its load as is needed to tell it from others.
pub(super) fn case_label(result: &RunResult, case: &Case) -> String {
    let first = &result.cases[0];
    let mut label = case.layout.clone();
    if result
        .cases
        .iter()
        .any(|other| other.clients != first.clients)
    {
        let _ = write!(label, " at {} clients", case.clients);
    }
    if result
        .cases
        .iter()
        .any(|other| other.workload != first.workload)
    {
        let _ = write!(label, " of {}", case.workload);
    }
    label
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, RunRecord, build, sample};
    use super::*;

    fn headline_of(record: &RunRecord) -> String {
        build(record).unwrap().headline
    }

    #[test]
    fn a_winner_is_named_with_its_next_best_and_the_slowest() {
        let record = sample::record(&[
            ("buffered, sync", &[100.0, 101.0, 99.0]),
            ("direct, async", &[200.0, 203.0, 198.0]),
            ("odm", &[150.0, 151.0, 150.5]),
        ]);
        assert_eq!(
            headline_of(&record),
            "direct, async is fastest: 1.33 x odm (1.30-1.37), the next best, and 2.00 x buffered, sync (1.99-2.02), \
             the slowest, at 8 clients."
        );
    }

    #[test]
    fn of_two_the_slower_is_named_once() {
        let record = sample::record(&[("a", &[100.0, 101.0, 99.0]), ("b", &[200.0, 203.0, 198.0])]);
        assert_eq!(
            headline_of(&record),
            "b is fastest: 2.00 x a (1.99-2.02), at 8 clients."
        );
    }

    #[test]
    fn a_draw_says_how_equal() {
        let record =
            sample::record(&[("a", &[100.0, 100.5, 100.2]), ("b", &[100.1, 100.4, 100.1])]);
        assert_eq!(
            headline_of(&record),
            "Too close to call between a and b (1.00 x, 1.00-1.00: a draw within 3 %), at 8 clients."
        );
    }

    #[test]
    fn an_open_question_says_what_would_decide_it() {
        let record = sample::record(&[
            ("a", &[100.0, 120.0, 109.0]),
            ("b", &[105.0, 101.0, 104.0]),
            ("slow", &[10.0, 10.1, 9.9]),
        ]);
        let headline = headline_of(&record);
        assert!(
            headline.starts_with("Too close to call between a and b (1.06 x, "),
            "{headline}"
        );
        assert!(
            headline.contains("rounds would decide), at 8 clients; a is 10.9 x slow ("),
            "{headline}"
        );
    }

    #[test]
    fn three_tied_are_listed_apart_from_the_beaten() {
        let record = sample::record(&[
            ("a, 1", &[100.0, 120.0, 109.0]),
            ("b, 2", &[107.0, 103.0, 106.0]),
            ("c, 3", &[98.0, 109.0, 101.0]),
        ]);
        let headline = headline_of(&record);
        assert!(
            headline.starts_with(
                "Too close to call between a, 1; b, 2; and c, 3 (1.04 x to 1.07 x; about 36 rounds"
            ),
            "{headline}"
        );
    }

    #[test]
    fn a_pair_that_is_sure_alone_is_not_sure_among_many() {
        let record = sample::record(&[
            ("a", &[111.0, 105.0, 108.0]),
            ("b", &[100.0, 100.0, 100.0]),
            ("c", &[100.0, 100.0, 100.0]),
        ]);
        assert_eq!(
            headline_of(&record),
            "a came out best, 1.08 x b (1.01-1.16) to 1.08 x c (1.01-1.16) at 8 clients, but that is not sure among \
             3 cases: more rounds would tell."
        );
    }

    #[test]
    fn one_round_decides_nothing() {
        let record = sample::record(&[("a", &[300.0]), ("b", &[100.0])]);
        assert_eq!(
            headline_of(&record),
            "Undecided at 8 clients: a came out best (3.00 x b), but a verdict needs two finished rounds or more."
        );
    }

    #[test]
    fn one_case_and_none() {
        let mut record = sample::record(&[("a", &[300.0, 301.0])]);
        assert_eq!(
            headline_of(&record),
            "Only a was measured at 8 clients: there is nothing to compare it with."
        );
        record.cases[0].outcome = Outcome::Failed {
            reason: "disk full".to_owned(),
        };
        assert_eq!(
            headline_of(&record),
            "Nothing was measured: the reason stands beside each case."
        );
    }

    #[test]
    fn reads_from_memory_are_said_unless_memory_was_held_equal() {
        let mut record =
            sample::record(&[("a", &[100.0, 101.0, 99.0]), ("b", &[200.0, 203.0, 198.0])]);
        for trial in &mut record.cases[0].trials {
            trial.audit.page_cache_share = Some(0.51);
        }
        assert_eq!(
            headline_of(&record),
            "b is fastest: 2.00 x a (1.99-2.02), at 8 clients; the data fits in memory: this compares caches, not devices."
        );
        record.memory_budget_bytes = Some(1 << 30);
        assert!(!headline_of(&record).contains("caches"));
        record.memory_budget_bytes = None;
        for trial in &mut record.cases[0].trials {
            trial.audit.page_cache_share = Some(0.5);
        }
        assert!(!headline_of(&record).contains("caches"));
    }

    #[test]
    fn ratios_keep_three_figures() {
        let written = [0.333, 1.0, 9.99, 9.996, 99.94, 99.96, 1234.5].map(format_ratio);
        assert_eq!(
            written,
            ["0.33", "1.00", "9.99", "10.0", "99.9", "100", "1234"]
        );
    }
}
