//! What the headline says of durability: among which cases the winner is, and what of those that keep less. Nothing
//! where all keep the same.

use spindle_stats::Verdict;

use super::answer::{AnswerSentence, Opening};
use super::{
    Keeps, Measure, PairComparison, Promise, Ranking, RunResult, format_interval, format_ratio,
    named,
};

/// Cases that keep less are told one by one up to here.
const TOLD_MAX: usize = 3;

/// The answer, with the cases named that it is of.
pub(super) fn group(ranking: &Ranking, answer: &AnswerSentence) -> String {
    match ranking.has_weaker() {
        true => {
            let group = format!("Among layouts that {}", ranking.keeps.of_group());
            answer.sentence_among(&group)
        }
        false => answer.sentence(),
    }
}

/// The answer where one case keeps more than all others, and is faster than each of them.
pub(super) fn fastest_of_all(
    result: &RunResult,
    ranking: &Ranking,
    load: &str,
) -> Option<AnswerSentence> {
    let mut others: Vec<&PairComparison> = result.verdicts_of(ranking).collect();
    let is_beaten = |other: &&PairComparison| other.verdict == Verdict::Faster;
    if others.is_empty() || !others.iter().all(is_beaten) {
        return None;
    }
    others.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let (told, more) = others.split_at(others.len().min(TOLD_MAX));
    let mut told: Vec<String> = told.iter().map(|other| beaten(result, other)).collect();
    if !more.is_empty() {
        told.push(format!("{} more by more", more.len()));
    }
    let best = named(&ranking.best);
    let told = told.join("; ");
    let keeps = match ranking.keeps {
        Keeps::Unknown => "is not known to lose commits",
        _ => "keeps most",
    };
    Some(AnswerSentence::new(
        Opening::KeepsMost,
        format!("{best} is fastest and {keeps}, {load}: {told}"),
    ))
}

/// `5.62 x delete (5.10-6.20), which may lose the last 35 s of commits`.
fn beaten(result: &RunResult, other: &PairComparison) -> String {
    let mut told = format!("{} x {}", format_ratio(other.ratio), named(&other.cases.b));
    if let Some(interval) = other.ci95 {
        told += &format!(" ({})", format_interval(interval));
    }
    let case = result.case(&other.cases.second());
    let keeps = case.map(|case| case.promise.clause()).unwrap_or_default();
    format!("{told}, which {keeps}")
}

/// Cases that keep less and may be worth it, each in a sentence; the others are counted. With a blank before it.
pub(super) fn weaker(result: &RunResult, ranking: &Ranking) -> String {
    let keeps_less =
        |verdict: &&PairComparison| ranking.keeps_of(&verdict.cases.b) != ranking.keeps;
    let mut weaker: Vec<&PairComparison> = result.verdicts_of(ranking).filter(keeps_less).collect();
    // Those come first that are faster for sure.
    weaker.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    weaker.sort_by_key(|verdict| verdict.verdict != Verdict::Slower);
    let may_be_faster = |verdict: &&&PairComparison| match verdict.verdict {
        Verdict::Slower | Verdict::Undecided => true,
        Verdict::Draw | Verdict::Faster => false,
    };
    let told: Vec<&PairComparison> = weaker
        .iter()
        .filter(may_be_faster)
        .copied()
        .take(TOLD_MAX)
        .collect();
    let is_told = |verdict: &&PairComparison| told.iter().any(|told| told.cases == verdict.cases);
    let rest = weaker.iter().copied().filter(|verdict| !is_told(verdict));
    let sentences = told.iter().map(|verdict| {
        let case = result.case(&verdict.cases.second());
        let promise = case.map(|case| case.promise.clone()).unwrap_or_default();
        format!(" {}.", sentence(verdict, ranking, &promise))
    });
    sentences.chain(counted(rest)).collect()
}

/// ` Of others that keep less, 1 is not known to be faster and 14 are no faster.`; `None` without any.
fn counted<'a>(rest: impl Iterator<Item = &'a PairComparison>) -> Option<String> {
    let (mut faster, mut open, mut no_faster) = (0, 0, 0);
    for verdict in rest {
        match verdict.verdict {
            Verdict::Slower => faster += 1,
            Verdict::Undecided => open += 1,
            Verdict::Draw | Verdict::Faster => no_faster += 1,
        }
    }
    let counts = [
        (faster, "faster as well"),
        (open, "not known to be faster"),
        (no_faster, "no faster"),
    ];
    let is_or_are = |count: usize| if count == 1 { "is" } else { "are" };
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{count} {} {what}", is_or_are(count)))
        .collect();
    let counts = match counts.as_slice() {
        [] => return None,
        [first, second, third] => format!("{first}, {second}, and {third}"),
        one_or_two => one_or_two.join(" and "),
    };
    Some(format!(" Of others that keep less, {counts}."))
}

/// `WAL normal is faster still, 10.2 x WAL (9.10-11.4), but may lose the last 40 s of commits`.
fn sentence(verdict: &PairComparison, ranking: &Ranking, promise: &Promise) -> String {
    let [a, b] = [&verdict.cases.a, &verdict.cases.b].map(|name| named(name));
    let clause = promise.clause();
    let mut ratio = format!("{} x {a}", format_ratio(1.0 / verdict.ratio));
    if let Some((low, high)) = verdict.ci95 {
        ratio += &format!(" ({})", format_interval((1.0 / high, 1.0 / low)));
    }
    match (verdict.verdict, ranking.measure) {
        (Verdict::Slower, Measure::Throughput) => {
            format!("{b} is faster still, {ratio}, but {clause}")
        }
        (Verdict::Slower, Measure::P99) => {
            format!("{b} responds faster still, {ratio}, but {clause}")
        }
        // Those that are slower are counted, see `weaker`.
        (Verdict::Undecided | Verdict::Draw | Verdict::Faster, _) => {
            format!("{b}: {clause}, and not known to be faster: {ratio}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keeps, RunResult, build, sample};

    /// Cases with what each keeps.
    fn result(cases: &[(&str, Keeps, &[f64])]) -> RunResult {
        let plain: Vec<(&str, &[f64])> = cases.iter().map(|(name, _, tpm)| (*name, *tpm)).collect();
        let mut record = sample::record(&plain);
        for (case, (_, keeps, _)) in record.cases.iter_mut().zip(cases) {
            for trial in &mut case.trials {
                trial.promise.keeps = *keeps;
                trial.promise.back_ms = (*keeps == Keeps::AllButTheLast).then_some(40_000);
            }
        }
        build(&record).unwrap()
    }

    const SLOW: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];
    const MIDDLE: &[f64] = &[140.0, 141.4, 138.6, 140.2, 140.6];
    const FAST: &[f64] = &[1400.0, 1414.0, 1386.0, 1402.0, 1406.0];

    #[test]
    fn the_winner_is_named_among_those_that_keep_most_and_the_others_after_it() {
        let result = result(&[
            ("DELETE", Keeps::EveryCommit, SLOW),
            ("WAL", Keeps::EveryCommit, MIDDLE),
            ("WAL normal", Keeps::AllButTheLast, FAST),
        ]);
        let headline = &result.headline;
        assert!(
            headline.starts_with(
                "Among layouts that keep every commit, WAL is fastest: 1.40 x DELETE ("
            ),
            "{headline}"
        );
        assert!(
            headline.contains(" WAL normal is faster still, 10.0 x WAL ("),
            "{headline}"
        );
        assert!(
            headline.ends_with("), but may lose the last 40 s of commits."),
            "{headline}"
        );
        let ranking = &result.rankings[0];
        assert_eq!(ranking.winner.as_deref(), Some("WAL"));
        assert_eq!(ranking.keeps, Keeps::EveryCommit);
        let places: Vec<_> = ranking
            .places
            .iter()
            .map(|place| (place.layout.as_str(), place.place, place.keeps))
            .collect();
        let expected = [
            ("WAL", 1, Keeps::EveryCommit),
            ("DELETE", 2, Keeps::EveryCommit),
            ("WAL normal", 1, Keeps::AllButTheLast),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn the_only_one_that_keeps_most_is_compared_with_those_that_keep_less() {
        let result = result(&[
            ("WAL", Keeps::EveryCommit, MIDDLE),
            ("WAL normal", Keeps::AllButTheLast, FAST),
        ]);
        let headline = &result.headline;
        assert!(
            headline.starts_with(
                "WAL is the only layout that keeps every commit, at 8 clients. WAL normal is faster still, "
            ),
            "{headline}"
        );
    }

    #[test]
    fn equal_promises_are_not_spoken_of() {
        for keeps in [
            Keeps::EveryCommit,
            Keeps::Unknown,
            Keeps::AllButTheLast,
            Keeps::Nothing,
        ] {
            let result = result(&[("a", keeps, SLOW), ("b", keeps, MIDDLE)]);
            assert!(
                result.headline.starts_with("b is fastest: 1.40 x a"),
                "{}",
                result.headline
            );
        }
    }

    #[test]
    fn the_only_one_that_keeps_most_is_named_first() {
        let result = result(&[
            ("safe", Keeps::EveryCommit, MIDDLE),
            ("risky", Keeps::MayBeDamaged, FAST),
            ("as it is", Keeps::MayBeDamaged, SLOW),
        ]);
        let headline = &result.headline;
        assert!(
            headline.starts_with("safe is the only layout that keeps every commit, at 8 clients"),
            "{headline}"
        );
        assert!(
            headline.contains("risky is faster still, 10.0 x safe ("),
            "{headline}"
        );
        assert!(
            headline.contains("but may be damaged by a power cut"),
            "{headline}"
        );
        assert!(
            headline.ends_with(" Of others that keep less, 1 is no faster."),
            "{headline}"
        );
    }

    #[test]
    fn many_that_keep_less_are_counted() {
        let mut cases = vec![("safe", Keeps::EveryCommit, MIDDLE)];
        for fast in ["f1", "f2", "f3", "f4", "f5"] {
            cases.push((fast, Keeps::MayBeDamaged, FAST));
        }
        for slow in ["s1", "s2", "s3"] {
            cases.push((slow, Keeps::MayBeDamaged, SLOW));
        }
        cases.push((
            "open",
            Keeps::MayBeDamaged,
            &[20.0, 300.0, 10.0, 150.0, 60.0],
        ));
        let headline = result(&cases).headline;
        assert_eq!(headline.matches("is faster still").count(), 3, "{headline}");
        assert!(
            headline.ends_with(
                " Of others that keep less, 2 are faster as well, 1 is not known to be faster, and 3 are no faster."
            ),
            "{headline}"
        );
    }

    #[test]
    fn one_that_keeps_most_and_is_fastest_is_the_winner() {
        let headline = result(&[
            ("wal", Keeps::EveryCommit, FAST),
            ("delete", Keeps::AllButTheLast, SLOW),
            ("memory", Keeps::MayBeDamaged, MIDDLE),
        ])
        .headline;
        assert!(
            headline.starts_with("wal is fastest and keeps most, at 8 clients: 10.0 x memory ("),
            "{headline}"
        );
        assert!(
            headline.contains("), which may be damaged by a power cut; 14.0 x delete ("),
            "{headline}"
        );
        assert!(
            headline.ends_with("), which may lose the last 40 s of commits."),
            "{headline}"
        );
    }

    #[test]
    fn one_that_keeps_less_and_may_be_faster_is_named() {
        let headline = result(&[
            (
                "safe",
                Keeps::EveryCommit,
                &[100.0, 20.0, 300.0, 60.0, 150.0],
            ),
            (
                "fsync off",
                Keeps::MayBeDamaged,
                &[40.0, 90.0, 10.0, 120.0, 70.0],
            ),
        ])
        .headline;
        assert!(
            headline.contains(
                " fsync off: may be damaged by a power cut, and not known to be faster: "
            ),
            "{headline}"
        );
    }

    /// What is unknown may be as strong as it likes: it is not called the strongest, nor weaker than what is known to
    /// lose.
    #[test]
    fn unknown_stands_between_all_and_less() {
        let headline = |first, second| result(&[("a", first, SLOW), ("b", second, FAST)]).headline;
        assert!(headline(Keeps::EveryCommit, Keeps::Unknown).contains("b is faster still"));
        let unknown_first = headline(Keeps::Unknown, Keeps::AllButTheLast);
        assert!(
            unknown_first.starts_with("a is the only layout that is not known to lose commits, "),
            "{unknown_first}"
        );
    }
}
