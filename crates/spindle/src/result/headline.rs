//! The answer in a sentence: who is fastest and by how much, or that it is too close to call.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use spindle_stats::{Looks, Standard, Verdict, compare_by};

use super::judge::is_within_noise;
use super::{Case, Comparison, Measure, Ranking, RunResult, disturbance, fixed_rate};

/// What is said when reads were answered from memory, so that no device was compared.
const COMPARES_CACHES: &str = "the data fits in memory: this compares caches, not devices";

/// From this share of reads answered by the page cache, the comparison is one of caches.
pub(super) const MOSTLY_CACHED_SHARE: f64 = 0.5;

/// One sentence for each workload and load level, or for several levels with the same answer; each ends in a full stop.
pub(super) fn headline(result: &RunResult) -> String {
    let several_workloads = result
        .cases
        .iter()
        .any(|case| case.workload != result.cases[0].workload);
    let sentences: Vec<String> = answers(result)
        .iter()
        .map(|answer| {
            let mut load = at_clients(answer);
            if several_workloads {
                let _ = write!(load, " of {}", answer[0].workload);
            }
            let mut sentence = match answer.as_slice() {
                [ranking] => sentence(result, ranking, &load),
                levels => shared_sentence(result, levels, &load),
            };
            let is_cached = |ranking: &&Ranking| is_mostly_cached(result, ranking);
            if result.memory_budget_bytes.is_none() && answer.iter().any(is_cached) {
                let _ = write!(sentence, "; {COMPARES_CACHES}");
            }
            sentence + "."
        })
        .collect();
    if sentences.is_empty() {
        return "Nothing was measured: the reason stands beside each case.".to_owned();
    }
    let first = disturbance::said_first(result);
    let all: Vec<String> = Some(first)
        .filter(|text| !text.is_empty())
        .into_iter()
        .chain(sentences)
        .collect();
    all.join(" ")
}

/// The rankings, those of several load levels together that can be told in one sentence.
fn answers(result: &RunResult) -> Vec<Vec<&Ranking>> {
    let mut answers: Vec<Vec<&Ranking>> = Vec::new();
    for ranking in &result.rankings {
        let joined = answers.iter_mut().find(|answer| {
            let mut levels = (*answer).clone();
            levels.push(ranking);
            is_one_answer(result, &levels)
        });
        match joined {
            Some(answer) => answer.push(ranking),
            None => answers.push(vec![ranking]),
        }
    }
    answers
}

/// Whether the same layout won at all levels, before the same others, and by ratios that may well be one.
fn is_one_answer(result: &RunResult, levels: &[&Ranking]) -> bool {
    let first = levels[0];
    // At a fixed rate each load level has times of its own to tell.
    if first.measure == Measure::P99 {
        return false;
    }
    let is_same_winner = |other: &&Ranking| {
        other.workload == first.workload && other.winner.is_some() && other.winner == first.winner
    };
    let rivals = |ranking: &Ranking| {
        let comparisons = comparisons_of(result, ranking);
        let ends = [comparisons.first(), comparisons.last()];
        ends.map(|comparison| comparison.map(|comparison| comparison.b.clone()))
    };
    let of_first = rivals(first);
    levels.iter().all(is_same_winner)
        && levels.iter().all(|ranking| rivals(ranking) == of_first)
        && of_first
            .iter()
            .flatten()
            .all(|rival| over_levels(result, levels, rival).is_some())
}

/// The winner's ratio to a rival over several load levels: of each round the geometric mean of its levels. `None` unless it
/// lies within the interval of every level.
fn over_levels(result: &RunResult, levels: &[&Ranking], rival: &str) -> Option<Comparison> {
    let logs_of = |layout: &str| -> Option<BTreeMap<u32, f64>> {
        let mut sums = BTreeMap::new();
        for (index, ranking) in levels.iter().enumerate() {
            let mut cases = result.cases.iter();
            let case = cases.find(|case| case.is_ranked_in(ranking) && case.layout == layout)?;
            let tpm = case
                .trials
                .iter()
                .map(|trial| (trial.round, trial.tpm.ln()));
            let tpm: BTreeMap<u32, f64> = tpm.collect();
            if index == 0 {
                sums = tpm;
            } else {
                sums.retain(|round, _| tpm.contains_key(round));
                sums.iter_mut().for_each(|(round, sum)| *sum += tpm[round]);
            }
        }
        Some(sums)
    };
    let (winner, rival_logs) = (logs_of(&levels[0].best)?, logs_of(rival)?);
    let mean = |sum: f64| (sum / levels.len() as f64).exp();
    let (a, b): (Vec<f64>, Vec<f64>) = winner
        .iter()
        .filter_map(|(round, sum)| Some((mean(*sum), mean(*rival_logs.get(round)?))))
        .unzip();
    let standard = Standard {
        looks: match result.stopping {
            None => Looks::Once,
            Some(_) => Looks::EveryRound,
        },
        ..Standard::fixed(result.margin)
    };
    let pooled = compare_by(&a, &b, standard).ok()?;
    let of_levels: Vec<&Comparison> = levels
        .iter()
        .filter_map(|ranking| {
            let mut comparisons = comparisons_of(result, ranking).into_iter();
            comparisons.find(|comparison| comparison.b == rival)
        })
        .collect();
    let holds_pooled = |comparison: &&Comparison| {
        let holds = |(low, high)| (low..=high).contains(&pooled.ratio);
        comparison.ci95.is_some_and(holds)
    };
    let is_one = pooled.ci95.is_some() && of_levels.iter().all(holds_pooled);
    let first = of_levels.first().filter(|_| is_one)?;
    Some(Comparison {
        ratio: pooled.ratio,
        ci95: pooled.ci95,
        ..(*first).clone()
    })
}

/// `at 8 clients`, `at 50 and at 150 clients`.
fn at_clients(answer: &[&Ranking]) -> String {
    let levels: Vec<String> = answer
        .iter()
        .map(|ranking| format!("at {}", ranking.clients))
        .collect();
    match levels.as_slice() {
        [only] if only == "at 1" => "at 1 client".to_owned(),
        [only] => format!("{only} clients"),
        [first @ .., last] => format!("{} and {last} clients", first.join(", ")),
        [] => String::new(),
    }
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

/// The best against every other, the closest first.
fn comparisons_of<'a>(result: &'a RunResult, ranking: &Ranking) -> Vec<&'a Comparison> {
    let mut comparisons: Vec<&Comparison> = result
        .verdicts
        .iter()
        .filter(|verdict| {
            verdict.workload == ranking.workload && verdict.clients == ranking.clients
        })
        .collect();
    comparisons.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    comparisons
}

/// One sentence for load levels with one answer.
fn shared_sentence(result: &RunResult, levels: &[&Ranking], load: &str) -> String {
    let comparisons = comparisons_of(result, levels[0]);
    let rivals: Vec<Comparison> = [comparisons.first(), comparisons.last()]
        .into_iter()
        .flatten()
        .filter_map(|comparison| over_levels(result, levels, &comparison.b))
        .collect();
    match comparisons.as_slice() {
        [_] => fastest(&levels[0].best, &[&rivals[0]], load),
        _ => fastest(&levels[0].best, &rivals.iter().collect::<Vec<_>>(), load),
    }
}

/// The sentence for a winner.
fn fastest(best: &str, comparisons: &[&Comparison], load: &str) -> String {
    match comparisons {
        [] => String::new(),
        [only] => format!("{best} is fastest: {}, {load}", times(only)),
        [next, .., slowest] => format!(
            "{best} is fastest: {}, the next best, and {}, the slowest, {load}",
            times(next),
            times(slowest)
        ),
    }
}

fn sentence(result: &RunResult, ranking: &Ranking, load: &str) -> String {
    let comparisons = comparisons_of(result, ranking);
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
        all if ranking.winner.is_some() => fastest(best, all, load),
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
            "{best} came out best, {} {load}, but that is not sure among {} cases: {}",
            pair_by_pair(&beaten),
            comparisons.len() + 1,
            rounds_to_win(&beaten)
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
    } else if tied.iter().any(|comparison| is_within_noise(comparison)) {
        text.push_str(": within the machine's own noise");
    } else if let Some((needed, rounds)) = tied
        .iter()
        .filter_map(|comparison| Some((comparison.rounds_needed?, comparison.rounds)))
        .max()
    {
        let _ = write!(text, "; {}", more_rounds(needed, rounds));
    }
    text
}

/// What would make the best case the winner, which is faster than each of `beaten` as a pair.
pub(super) fn rounds_to_win(beaten: &[&Comparison]) -> String {
    let of_each = beaten
        .iter()
        .filter_map(|comparison| Some((comparison.rounds_to_win?, comparison.rounds)));
    of_each
        .max()
        .map_or("more rounds would tell".to_owned(), |(needed, rounds)| {
            more_rounds(needed, rounds)
        })
}

/// What would decide an open question after so many `rounds`, of which `needed` in all probably would.
pub fn more_rounds(needed: u32, rounds: u32) -> String {
    match needed.saturating_sub(rounds) {
        _ if needed >= spindle_stats::MAX_ROUNDS => {
            "no sensible number of rounds would decide".to_owned()
        }
        1 => "about one more round would decide".to_owned(),
        more => format!("about {more} more rounds would decide"),
    }
}

/// A fraction as a percentage without needless zeros: 0.03 is `3`, 0.025 is `2.5`.
pub fn percent(fraction: f64) -> f64 {
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
            headline.contains("more rounds would decide), at 8 clients; a is 10.9 x slow ("),
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
                "Too close to call between a, 1; b, 2; and c, 3 (1.04 x to 1.07 x; about 33 more rounds"
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
             3 cases: about one more round would decide."
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

    /// The same layouts at 50 and at 150 clients.
    fn at_two_levels(second: [&[f64]; 2]) -> String {
        let mut record = sample::record(&[
            ("buffered", &[100.0, 101.0, 99.0]),
            ("direct", &[200.0, 203.0, 196.0]),
        ]);
        let mut heavy = sample::record(&[("buffered", second[0]), ("direct", second[1])]).cases;
        record.cases.iter_mut().for_each(|case| case.clients = 50);
        heavy.iter_mut().for_each(|case| case.clients = 150);
        record.cases.extend(heavy);
        headline_of(&record)
    }

    #[test]
    fn load_levels_with_one_answer_share_a_sentence() {
        assert_eq!(
            at_two_levels([&[50.0, 50.5, 49.5], &[99.0, 102.0, 98.5]]),
            "direct is fastest: 2.00 x buffered (1.96-2.04), at 50 and at 150 clients."
        );
    }

    #[test]
    fn load_levels_whose_ratios_differ_have_a_sentence_each() {
        assert_eq!(
            at_two_levels([&[50.0, 50.5, 49.5], &[150.0, 151.6, 148.5]]),
            "direct is fastest: 2.00 x buffered (1.96-2.04), at 50 clients. \
             direct is fastest: 3.00 x buffered (3.00-3.00), at 150 clients."
        );
        let other_winner = at_two_levels([&[50.0, 50.5, 49.5], &[25.0, 25.3, 24.7]]);
        assert!(
            other_winner.contains("buffered is fastest: 2.00 x direct"),
            "{other_winner}"
        );
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
