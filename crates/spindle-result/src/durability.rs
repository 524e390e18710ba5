//! What the headline says of durability: among which cases the winner is, and what of those that keep less. Nothing
//! where all keep the same.

use spindle_stats::Verdict;

use super::answer::Answer;
use super::{
    CasePair, Comparison, Measure, Promise, Ranking, RunResult, format_interval, format_ratio,
};

/// The answer, with the cases named that it is of.
pub(super) fn group(ranking: &Ranking, answer: &Answer) -> String {
    match ranking.has_weaker() {
        true => {
            let group = format!("Among layouts that {}", ranking.keeps.of_group());
            answer.sentence_among(&group)
        }
        false => answer.sentence(),
    }
}

/// A sentence for each case that keeps less, those first that are faster still; with a blank before it.
pub(super) fn weaker(result: &RunResult, ranking: &Ranking) -> String {
    let keeps_less = |verdict: &&Comparison| ranking.keeps_of(&verdict.cases.b) != ranking.keeps;
    let mut weaker: Vec<&Comparison> = result.verdicts_of(ranking).filter(keeps_less).collect();
    weaker.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let sentences = weaker.iter().map(|verdict| {
        let case = result.case(&verdict.cases.second());
        let promise = case.map(|case| case.promise.clone()).unwrap_or_default();
        format!(" {}.", sentence(verdict, ranking, &promise))
    });
    sentences.collect()
}

/// `WAL normal is faster still, 10.2 x WAL (9.10-11.4), but may lose the last 40 s of commits`.
fn sentence(verdict: &Comparison, ranking: &Ranking, promise: &Promise) -> String {
    let CasePair { a, b, .. } = &verdict.cases;
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
        (Verdict::Undecided, _) => {
            format!("{b}: {clause}, and not known to be faster: {ratio}")
        }
        (Verdict::Draw | Verdict::Faster, _) => format!("{b}: {clause}, and no faster: {ratio}"),
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
                "Among layouts that keep every commit, only WAL was measured at 8 clients. WAL normal is faster still, "
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
            headline.starts_with(
                "Among layouts that keep every commit, only safe was measured at 8 clients"
            ),
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
            headline
                .contains("as it is: may be damaged by a power cut, and no faster: 0.71 x safe ("),
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
            unknown_first.starts_with("Among layouts that are not known to lose commits, only a"),
            "{unknown_first}"
        );
    }
}
