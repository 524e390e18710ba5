//! The answer in a sentence: who is fastest and by how much, or that it is too close to call.

use std::fmt::Write as _;

use spindle_stats::{ROUNDS_TO_JUDGE, Verdict};

use super::answer::{AnswerSentence, Opening};
use super::judge::is_within_noise;
use super::time_needed::rounds_that_tell;
use super::wording::{
    EACH_SETTING, MOSTLY_CACHED_SHARE, format_interval, format_ratio, listed, named, percent,
};
use super::{
    FactorAnswer, Measure, PairComparison, RankedCase, Ranking, RunResult, capacity, costs,
    disturbance, durability, few_transactions, fixed_rate, left_out, levels,
};

/// What is said when reads were answered from memory, so that no device was compared.
const COMPARES_CACHES: &str = "the data fits in memory: this compares caches, not devices";

/// What is said of a winner whose lead is no larger than what other load on the machine may make.
const SMALL_LEAD: &str = "; the other load on the machine may explain so small a lead";

/// One sentence for each load level, or for several levels with the same answer; each ends in a full stop. The second
/// text leaves out what the settings do, where the first tells it.
pub(super) fn headline(result: &RunResult) -> (String, Option<String>) {
    let sentences: Vec<String> = answers(result)
        .iter()
        .map(|answer| {
            let load = at_clients(answer);
            let mut told = match answer.as_slice() {
                [ranking] => answer_at(result, ranking, &load),
                levels => fastest(result, levels, &load),
            };
            let is_small = |ranking: &&Ranking| has_small_lead(result, ranking);
            if answer.iter().any(is_small) {
                told = told.with(SMALL_LEAD);
            }
            let is_cached = |ranking: &&Ranking| is_mostly_cached(result, ranking);
            if !result.was_memory_held() && answer.iter().any(is_cached) {
                told = told.with(&format!("; {COMPARES_CACHES}"));
            }
            let weaker = match told.keeps_most() {
                true => String::new(),
                false => durability::weaker(result, answer[0]),
            };
            format!("{}.{weaker}", durability::group(answer[0], &told))
        })
        .collect();
    let missing = left_out::sentence(result);
    let settings = settings(&result.factor_answers);
    if sentences.is_empty() {
        let nothing = || "Nothing was measured: there is no case.".to_owned();
        return (missing.unwrap_or_else(nothing), None);
    }
    let before = missing.into_iter().chain(disturbance::said_first(result));
    let after = left_out::combinations(result);
    let answer: Vec<String> = before.chain(sentences).chain(after).collect();
    let costs = costs::sentence(result);
    let with = |settings: &Option<String>| {
        let behind = settings.iter().chain(&costs);
        let all: Vec<&str> = answer.iter().chain(behind).map(String::as_str).collect();
        all.join(" ")
    };
    let without = settings.is_some().then(|| with(&None));
    (with(&settings), without)
}

/// What each setting of a matrix does, where the run has no more than one load level.
fn settings(answers: &[FactorAnswer]) -> Option<String> {
    let first = answers.first()?;
    let is_one = |answer: &FactorAnswer| answer.load == first.load;
    let sentences: Vec<String> = answers.iter().map(FactorAnswer::told).collect();
    let told = format!("{EACH_SETTING} {}.", sentences.join(". "));
    answers.iter().all(is_one).then_some(told)
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

/// Whether the same layout won at all levels, before the same others, and by ratios whose intervals overlap. Each ratio
/// stays that of its level: a mean over levels would be true of none.
fn is_one_answer(result: &RunResult, levels: &[&Ranking]) -> bool {
    let first = levels[0];
    // At a fixed rate each load level has its own times to tell, and so have cases that keep less.
    let stands_alone = |ranking: &&Ranking| ranking.measure == Measure::P99 || ranking.has_weaker();
    if levels.iter().any(stands_alone) {
        return false;
    }
    // Rounds of one run say too little of another to be taken together.
    if result.cases.iter().any(levels::has_runs) {
        return false;
    }
    // Nor do the rates of one number of clients say anything of another's.
    if result.cases.iter().any(|case| case.capacity().is_some()) {
        return false;
    }
    let is_same_winner = |other: &&Ranking| other.winner.is_some() && other.winner == first.winner;
    let overlaps = |rival: &Vec<&PairComparison>| {
        let is_same = rival
            .iter()
            .all(|comparison| comparison.cases.b == rival[0].cases.b);
        let of_levels = envelope(rival);
        let common = rival.iter().filter_map(|comparison| comparison.ci95);
        let common = common.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)));
        is_same && of_levels.is_some() && common.is_some_and(|(low, high)| low <= high)
    };
    levels.iter().all(is_same_winner) && rivals_of(result, levels).iter().all(overlaps)
}

/// The next best and the slowest of all others, each as it stands at every level.
fn rivals_of<'a>(result: &'a RunResult, levels: &[&Ranking]) -> Vec<Vec<&'a PairComparison>> {
    let of_levels: Vec<Vec<&PairComparison>> = levels
        .iter()
        .map(|ranking| comparisons_of(result, ranking))
        .collect();
    let at_levels = |pick: fn(&[&'a PairComparison]) -> Option<&'a PairComparison>| {
        of_levels.iter().filter_map(|level| pick(level)).collect()
    };
    let nearest = at_levels(|level| level.first().copied());
    match of_levels.iter().all(|level| level.len() == 1) {
        true => vec![nearest],
        false => vec![nearest, at_levels(|level| level.last().copied())],
    }
}

/// From the lowest end of their intervals to the highest; `None` when one of them has none.
fn envelope(comparisons: &[&PairComparison]) -> Option<(f64, f64)> {
    let intervals: Option<Vec<(f64, f64)>> = comparisons
        .iter()
        .map(|comparison| comparison.ci95)
        .collect();
    let all = intervals?.into_iter();
    all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// `at 8 clients`, `at 50 and at 150 clients`.
fn at_clients(answer: &[&Ranking]) -> String {
    let level = |ranking: &&Ranking| format!("at {}", ranking.load.clients);
    match answer {
        [] => String::new(),
        [only] => format!("at {}", only.load),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(level).collect();
            format!("{} and {} clients", first.join(", "), level(last))
        }
    }
}

/// `1.92 x buffered (1.85-1.99)`, or `6.76 to 15.5 x WAL (6.10-17.2)` over several load levels.
fn times(levels: &[&PairComparison]) -> String {
    let ratios = levels.iter().map(|comparison| comparison.ratio);
    let (least, most) = ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| {
        (least.min(ratio), most.max(ratio))
    });
    let (least, most) = (format_ratio(least), format_ratio(most));
    let ratio = if least == most {
        most
    } else {
        format!("{least} to {most}")
    };
    let mut text = format!("{ratio} x {}", named(&levels[0].cases.b));
    if let Some(interval) = envelope(levels) {
        let _ = write!(text, " ({})", format_interval(interval));
    }
    text
}

/// `1.70 x as fast as xfs (1.10-2.63)`.
fn as_fast_as(comparison: &PairComparison) -> String {
    let mut text = format!(
        "{} x as fast as {}",
        format_ratio(comparison.ratio),
        named(&comparison.cases.b)
    );
    if let Some(interval) = comparison.ci95 {
        let _ = write!(text, " ({})", format_interval(interval));
    }
    text
}

fn is_mostly_cached(result: &RunResult, ranking: &Ranking) -> bool {
    let competitors = result.cases_at(ranking.load);
    let mut compared = competitors.filter(|case| case.is_compared());
    compared.any(|case| {
        case.page_cache_share()
            .is_some_and(|share| share > MOSTLY_CACHED_SHARE)
    })
}

/// The best against every other that keeps as much, the closest first.
fn comparisons_of<'a>(result: &'a RunResult, ranking: &Ranking) -> Vec<&'a PairComparison> {
    let mut comparisons: Vec<&PairComparison> = result
        .verdicts_of(ranking)
        .filter(|verdict| ranking.keeps_of(&verdict.cases.b) == ranking.keeps)
        .collect();
    comparisons.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    comparisons
}

/// Whether there is a winner that leads the next by less than what is to be trusted on a machine as busy as it was.
fn has_small_lead(result: &RunResult, ranking: &Ranking) -> bool {
    let Some(floor) = disturbance::busy_floor(result).filter(|_| ranking.winner.is_some()) else {
        return false;
    };
    let next = comparisons_of(result, ranking).first().copied();
    next.is_some_and(|next| next.ratio < 1.0 + floor)
}

/// Whether another layout that is no faster or slower than this rival shares its place, at one level or more.
fn is_tied(levels: &[&Ranking], rival: &[&PairComparison]) -> bool {
    let is_shared = |(ranking, rival): (&&Ranking, &&PairComparison)| {
        let mut places = ranking.places.iter();
        let own = places.find(|place| place.layout == rival.cases.b);
        let is_beside = |own: &RankedCase| {
            let mut places = ranking.places.iter();
            places.any(|other| {
                let is_other = other.layout != own.layout;
                is_other && (other.keeps, other.place) == (own.keeps, own.place)
            })
        };
        own.is_some_and(is_beside)
    };
    levels.iter().zip(rival).any(is_shared)
}

/// Whether all that keep as much as the winner share the second place, at every level.
fn are_tied_for_second(levels: &[&Ranking]) -> bool {
    levels.iter().all(|ranking| {
        let mut others = ranking
            .places
            .iter()
            .filter(|place| place.keeps == ranking.keeps && place.layout != ranking.best);
        others.all(|place| place.place == 2)
    })
}

/// The sentence for a winner at one load level, or at several with one answer.
fn fastest(result: &RunResult, levels: &[&Ranking], load: &str) -> AnswerSentence {
    let best = named(&levels[0].best);
    let told = match rivals_of(result, levels).as_slice() {
        [next, slowest] => {
            let rank = |rival, alone: &str| match is_tied(levels, rival) {
                true => format!("one of {alone}"),
                false => alone.to_owned(),
            };
            let (first, last) = (rank(next, "the next best"), rank(slowest, "the slowest"));
            let (next, slowest) = (times(next), times(slowest));
            match are_tied_for_second(levels) {
                true => {
                    let others = comparisons_of(result, levels[0]).len();
                    let all = if others == 2 { "both" } else { "all" };
                    format!("{best} is fastest: {next} to {slowest}, {all} tied for second, {load}")
                }
                false => {
                    format!("{best} is fastest: {next}, {first}, and {slowest}, {last}, {load}")
                }
            }
        }
        rivals => {
            let told: Vec<String> = rivals.iter().map(|rival| times(rival)).collect();
            format!("{best} is fastest: {}, {load}", told.concat())
        }
    };
    AnswerSentence::new(Opening::Name, told)
}

fn answer_at(result: &RunResult, ranking: &Ranking, load: &str) -> AnswerSentence {
    let comparisons = comparisons_of(result, ranking);
    let of_rate = fixed_rate::answer(result, ranking, &comparisons)
        .or_else(|| capacity::answer(result, ranking, &comparisons));
    if let Some(answer) = of_rate {
        return answer;
    }
    let best = named(&ranking.best);
    match comparisons.as_slice() {
        // Those that keep less are told of after it.
        [] if ranking.has_weaker() => durability::fastest_of_all(result, ranking, load)
            .unwrap_or_else(|| {
                let keeps = ranking.keeps.of_one();
                AnswerSentence::new(
                    Opening::OnlyOfGroup,
                    format!("{best} is the only layout that {keeps}, {load}"),
                )
            }),
        [] => AnswerSentence::new(
            Opening::Only,
            format!("{best} was measured {load}: there is nothing to compare it with"),
        ),
        [.., slowest]
            if comparisons
                .iter()
                .all(|comparison| comparison.rounds < ROUNDS_TO_JUDGE) =>
        {
            AnswerSentence::new(
                Opening::Undecided,
                format!(
                    "{load}: {best} was best ({}), but a verdict needs {ROUNDS_TO_JUDGE} finished {} or more",
                    times(&[slowest]),
                    levels::unit(result)
                ),
            )
        }
        _ if ranking.winner.is_some() => fastest(result, &[ranking], load),
        _ => too_close(result, ranking, &comparisons, load),
    }
}

/// The sentence for a best case that is not faster than every other. `comparisons` stand in ascending order of ratio.
fn too_close(
    result: &RunResult,
    ranking: &Ranking,
    comparisons: &[&PairComparison],
    load: &str,
) -> AnswerSentence {
    let (beaten, close): (Vec<&PairComparison>, Vec<&PairComparison>) = comparisons
        .iter()
        .copied()
        .partition(|comparison| comparison.verdict == Verdict::Faster);
    let best = named(&ranking.best);
    let mut names = vec![ranking.best.as_str()];
    names.extend(close.iter().map(|comparison| comparison.cases.b.as_str()));
    let mut sentence = format!(
        "between {} ({}), {load}",
        listed(&names),
        closeness(result, &close)
    );
    match beaten.as_slice() {
        [] => {}
        [only] => {
            let _ = write!(sentence, "; {best} is {}", as_fast_as(only));
        }
        [nearest, .., slowest] => {
            let (nearest, slowest) = (as_fast_as(nearest), as_fast_as(slowest));
            let _ = write!(sentence, "; {best} is {nearest}, and up to {slowest}");
        }
    }
    AnswerSentence::new(Opening::TooClose, sentence)
}

/// How close the tied ones are and what would tell them apart.
fn closeness(result: &RunResult, tied: &[&PairComparison]) -> String {
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
        PairComparison {
            ci95: Some(interval),
            ..
        },
    ] = tied
    {
        let _ = write!(text, ", {}", format_interval(*interval));
    }
    if tied
        .iter()
        .all(|comparison| comparison.verdict == Verdict::Draw)
    {
        let _ = write!(text, ": a draw within {} %", percent(result.margin));
    } else if let Some(too_few) = few_transactions::in_short(result, tied) {
        let _ = write!(text, ": {too_few}");
    } else if tied.iter().any(|comparison| is_within_noise(comparison)) {
        text.push_str(": within the machine's own noise");
    } else if let Some(needed) = tied
        .iter()
        .filter_map(|comparison| comparison.rounds_needed)
        .max()
    {
        let _ = write!(text, "; {}", rounds_that_tell(result, needed));
        if let Some(measure_s) = shorter_trials_s(result, tied) {
            let _ = write!(text, ", or less time with plan.measure = \"{measure_s}s\"");
        }
    }
    text
}

/// A measured time by which all of these would be decided sooner, shorter than what was measured; seconds.
fn shorter_trials_s(result: &RunResult, tied: &[&PairComparison]) -> Option<f64> {
    let better = |comparison: &&PairComparison| {
        let mut variances = result.variances.iter();
        let variance = variances.find(|variance| variance.cases == comparison.cases)?;
        variance.better_measure_s
    };
    let lengths: Option<Vec<f64>> = tied.iter().map(better).collect();
    let longest_s = lengths?.into_iter().reduce(f64::max)?;
    let mut trials = result.cases.iter().flat_map(|case| &case.trials);
    let is_shorter = trials.all(|trial| {
        let times = trial.conditions.times;
        times.is_none_or(|times| longest_s * 1e3 < times.measured_ms as f64)
    });
    is_shorter.then_some(longest_s)
}

#[cfg(test)]
mod tests {
    use super::super::{CaseStatus, LoadLevel, RunRecord, build, sample};

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
            "\"direct, async\" is fastest: 1.33 x odm (1.29-1.37), the next best, and 2.00 x \"buffered, sync\" \
             (1.97-2.04), the slowest, at 8 clients."
        );
    }

    #[test]
    fn of_equal_losers_none_is_called_the_slowest() {
        let record = sample::record(&[
            ("a", &[100.0, 104.0, 99.0]),
            ("b", &[200.0, 203.0, 198.0]),
            ("c", &[101.0, 100.0, 102.0]),
        ]);
        assert_eq!(
            headline_of(&record),
            "b is fastest: 1.98 x c (1.85-2.12) to 1.98 x a (1.87-2.10), both tied for second, at 8 clients."
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
            headline.contains("rounds in all), at 8 clients; a is 10.9 x as fast as slow ("),
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
                "Too close to call between \"a, 1\", \"b, 2\" and \"c, 3\" (1.04 x to 1.07 x; a verdict needs about 108"
            ),
            "{headline}"
        );
    }

    #[test]
    fn two_rounds_make_no_winner() {
        let record = sample::record(&[("a", &[117.0, 117.2]), ("b", &[100.0, 100.0])]);
        assert_eq!(
            headline_of(&record),
            "Undecided at 8 clients: a was best (1.17 x b (1.16-1.18)), but a verdict needs 3 finished rounds or more."
        );
    }

    #[test]
    fn one_round_decides_nothing() {
        let record = sample::record(&[("a", &[300.0]), ("b", &[100.0])]);
        assert_eq!(
            headline_of(&record),
            "Undecided at 8 clients: a was best (3.00 x b), but a verdict needs 3 finished rounds or more."
        );
    }

    #[test]
    fn one_case_and_none() {
        let mut record = sample::record(&[("a", &[300.0, 301.0])]);
        assert_eq!(
            headline_of(&record),
            "Only a was measured at 8 clients: there is nothing to compare it with."
        );
        record.cases[0].outcome = CaseStatus::Failed {
            reason: "disk full".to_owned(),
        };
        assert_eq!(
            headline_of(&record),
            "Nothing was measured: a failed (disk full)."
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
        for trial in &mut record.cases[0].trials {
            trial.audit.page_cache_bytes_at_end = Some(2 << 30);
        }
        assert!(
            headline_of(&record).contains("caches"),
            "a budget that did not hold"
        );
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
        record
            .cases
            .iter_mut()
            .for_each(|case| case.load = LoadLevel::of(50));
        heavy
            .iter_mut()
            .for_each(|case| case.load = LoadLevel::of(150));
        record.cases.extend(heavy);
        headline_of(&record)
    }

    #[test]
    fn load_levels_with_one_answer_share_a_sentence() {
        assert_eq!(
            at_two_levels([&[50.0, 50.5, 49.5], &[99.0, 102.0, 98.5]]),
            "direct is fastest: 2.00 x buffered (1.92-2.07), at 50 and at 150 clients."
        );
    }

    /// No mean over levels, which would be true of none.
    #[test]
    fn ratios_of_several_levels_are_a_range() {
        let headline = at_two_levels([&[50.0, 60.0, 40.0], &[120.0, 150.0, 84.0]]);
        assert!(
            headline.starts_with("direct is fastest: 2.00 to 2.33 x buffered ("),
            "{headline}"
        );
    }

    #[test]
    fn load_levels_whose_ratios_differ_have_a_sentence_each() {
        assert_eq!(
            at_two_levels([&[50.0, 50.5, 49.5], &[150.0, 151.6, 148.5]]),
            "direct is fastest: 2.00 x buffered (1.94-2.05), at 50 clients. \
             direct is fastest: 3.00 x buffered (3.00-3.00), at 150 clients."
        );
        let other_winner = at_two_levels([&[50.0, 50.5, 49.5], &[25.0, 25.3, 24.7]]);
        assert!(
            other_winner.contains("buffered is fastest: 2.00 x direct"),
            "{other_winner}"
        );
    }
}
