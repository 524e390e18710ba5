//! Which of several cases is best, what may be said of it against each other case, and whether it may be called the
//! winner.
//!
//! Two questions, two standards:
//! - **"Is the best faster than this one?"** Each verdict is a plain comparison at 95 %, as if the two were the only
//!   cases. That is what a reader who cares about those two wants, and its interval is the one printed.
//! - **"Is there a winner?"** The best was chosen *because* its values came out high. Of six equal cases one always looks
//!   best, and in about a fifth of all experiments some other is called slower by luck (`tests/study.rs` measures
//!   that). So the headline names a winner only if the best beats *every* other case, with the p-values of all
//!   `k (k - 1) / 2` pairs corrected by Holm's step-down method (S. Holm, "A simple sequentially rejective multiple test
//!   procedure", Scandinavian Journal of Statistics 6, 1979). It bounds the chance of one or more false differences
//!   among all pairs by 5 %, and whichever case was picked afterwards, its pairs are among them.
//!
//! A case may therefore be slower by its verdict and still be listed as tied with the best in the headline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::comparison::{check_margin, compare_paired, is_comparable, log_ratios};
use crate::interval::Moments;
use crate::{Comparison, StatsError, Verdict};

/// The chance of a false winner that the headline accepts.
const HEADLINE_LEVEL: f64 = 0.05;

/// The values of one case, one for each round that it finished.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRounds {
    /// Name of the case, for messages.
    pub name: String,
    /// Round to value; more is better. A round whose trial failed is absent.
    pub values: BTreeMap<u32, f64>,
}

/// The best case against one other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairVerdict {
    /// Index of the best case, the one the verdict is said of.
    pub a: usize,
    /// Index of the other case.
    pub b: usize,
    /// Their comparison over the rounds that both finished. When there is no such round, the ratio is that of their
    /// geometric means, undecided, of 0 rounds.
    pub comparison: Comparison,
}

/// The cases in relation to the best one. Every index is a position in the slice given to [`rank`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The case with the greatest geometric mean over the rounds that all cases finished (over its own rounds when there
    /// is none); the first of several such.
    pub best: usize,
    /// The best against every other, in the order of the cases.
    pub verdicts: Vec<PairVerdict>,
    /// The best, when it is faster than every other case beyond the doubt of having been chosen after the fact; always
    /// `None` when there is no other.
    pub winner: Option<usize>,
    /// The other cases that the best was not shown to beat, in the order of the cases: draws within the margin as well
    /// as open questions. Empty when there is a winner.
    pub tied: Vec<usize>,
}

/// Picks the best case, compares it with every other and decides whether it is the winner. `margin` is that of
/// [`compare_paired`].
///
/// # Errors
/// [`StatsError::NoCases`], [`StatsError::CaseWithoutRounds`], [`StatsError::BadCaseValue`] for a value that is zero,
/// negative, infinite or not a number, [`StatsError::BadMargin`] unless `0 <= margin < 1`.
pub fn rank(cases: &[CaseRounds], margin: f64) -> Result<Ranking, StatsError> {
    check_margin(margin)?;
    check_cases(cases)?;
    let best = best_of(cases)?;
    let mut verdicts = Vec::new();
    let mut tied = Vec::new();
    let p_values = adjusted_p_values_against(best, cases)?;
    for other in (0..cases.len()).filter(|&other| other != best) {
        let comparison = compare_cases(&cases[best], &cases[other], margin)?;
        let beaten = comparison.verdict == Verdict::Faster && p_values[&other] <= HEADLINE_LEVEL;
        if !beaten {
            tied.push(other);
        }
        verdicts.push(PairVerdict {
            a: best,
            b: other,
            comparison,
        });
    }
    let winner = (tied.is_empty() && !verdicts.is_empty()).then_some(best);
    Ok(Ranking {
        best,
        verdicts,
        winner,
        tied,
    })
}

/// Holm's adjusted p-values, in the order given: reject each hypothesis whose adjusted p-value is at most the level, and
/// the chance of rejecting any true one is at most that level, however the tests depend on each other.
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<usize> = (0..p_values.len()).collect();
    ascending.sort_by(|&i, &j| p_values[i].total_cmp(&p_values[j]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut floor = 0.0_f64;
    for (rank, &index) in ascending.iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        floor = floor.max((p_values[index] * remaining).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

fn check_cases(cases: &[CaseRounds]) -> Result<(), StatsError> {
    if cases.is_empty() {
        return Err(StatsError::NoCases);
    }
    for case in cases {
        if case.values.is_empty() {
            return Err(StatsError::CaseWithoutRounds {
                case: case.name.clone(),
            });
        }
        if let Some((&round, &value)) = case
            .values
            .iter()
            .find(|&(_, &value)| !is_comparable(value))
        {
            return Err(StatsError::BadCaseValue {
                case: case.name.clone(),
                round,
                value,
            });
        }
    }
    Ok(())
}

/// The case with the greatest geometric mean. Only rounds that all finished count, lest a case look best because it
/// missed a slow round.
fn best_of(cases: &[CaseRounds]) -> Result<usize, StatsError> {
    let finished_by_all = |round: &u32| cases.iter().all(|case| case.values.contains_key(round));
    let any_shared = cases[0].values.keys().any(finished_by_all);
    let mut best = 0;
    let mut best_log_mean = f64::NEG_INFINITY;
    for (index, case) in cases.iter().enumerate() {
        let rounds = case.values.iter();
        let counted = rounds.filter(|&(round, _)| !any_shared || finished_by_all(round));
        let log_mean = log_mean(counted.map(|(_, &value)| value))?;
        if log_mean > best_log_mean {
            (best, best_log_mean) = (index, log_mean);
        }
    }
    Ok(best)
}

/// Logarithm of the geometric mean.
fn log_mean(values: impl Iterator<Item = f64>) -> Result<f64, StatsError> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    Ok(Moments::of(&logs).ok_or(StatsError::NoValues)?.mean)
}

/// The values of two cases in the rounds that both finished.
fn paired(a: &CaseRounds, b: &CaseRounds) -> (Vec<f64>, Vec<f64>) {
    let both = |(round, &value): (&u32, &f64)| Some((value, *b.values.get(round)?));
    a.values.iter().filter_map(both).unzip()
}

fn compare_cases(a: &CaseRounds, b: &CaseRounds, margin: f64) -> Result<Comparison, StatsError> {
    let (a_values, b_values) = paired(a, b);
    if a_values.is_empty() {
        let log_ratio =
            log_mean(a.values.values().copied())? - log_mean(b.values.values().copied())?;
        return Ok(Comparison {
            ratio: log_ratio.exp(),
            ci95: None,
            verdict: Verdict::Undecided,
            rounds: 0,
            rounds_needed: None,
            p_value: None,
        });
    }
    compare_paired(&a_values, &b_values, margin)
}

/// Holm's adjusted p-value of `best` against each other case, adjusted among all pairs of cases. A pair of fewer than
/// two rounds shows nothing: its p-value is 1.
fn adjusted_p_values_against(
    best: usize,
    cases: &[CaseRounds],
) -> Result<BTreeMap<usize, f64>, StatsError> {
    let mut pairs = Vec::new();
    let mut p_values = Vec::new();
    for i in 0..cases.len() {
        for j in i + 1..cases.len() {
            let (a, b) = paired(&cases[i], &cases[j]);
            let p_value = if a.is_empty() {
                None
            } else {
                log_ratios(&a, &b)?.p_value()
            };
            pairs.push((i, j));
            p_values.push(p_value.unwrap_or(1.0));
        }
    }
    let adjusted = pairs.into_iter().zip(holm_adjusted(&p_values));
    let of_best = adjusted.filter_map(|((i, j), p_value)| match (i == best, j == best) {
        (true, _) => Some((j, p_value)),
        (_, true) => Some((i, p_value)),
        _ => None,
    });
    Ok(of_best.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.03;

    fn case(name: &str, values: &[(u32, f64)]) -> CaseRounds {
        CaseRounds {
            name: name.to_owned(),
            values: values.iter().copied().collect(),
        }
    }

    /// A case of five rounds around `level`, with noise of about 1 % that differs by `seed`.
    fn noisy(name: &str, level: f64, seed: usize) -> CaseRounds {
        const NOISE: [f64; 7] = [0.004, -0.011, 0.009, -0.003, 0.012, -0.008, 0.001];
        let value = |round: u32| level * (1.0 + NOISE[(round as usize * (seed + 1) + seed) % 7]);
        case(name, &[1, 2, 3, 4, 5].map(|round| (round, value(round))))
    }

    #[test]
    fn a_clear_best_is_the_winner() {
        let cases = [
            noisy("slow", 100.0, 0),
            noisy("fast", 200.0, 1),
            noisy("middle", 150.0, 2),
        ];
        let ranking = rank(&cases, MARGIN).unwrap();
        assert_eq!((ranking.best, ranking.winner), (1, Some(1)));
        assert!(ranking.tied.is_empty());
        let pairs: Vec<_> = ranking.verdicts.iter().map(|v| (v.a, v.b)).collect();
        assert_eq!(pairs, [(1, 0), (1, 2)]);
        assert!(
            ranking
                .verdicts
                .iter()
                .all(|pair| pair.comparison.verdict == Verdict::Faster)
        );
    }

    #[test]
    fn one_rival_that_is_not_beaten_takes_the_title_away() {
        let cases = [
            noisy("fast", 200.0, 0),
            noisy("as fast", 199.0, 1),
            noisy("slow", 100.0, 2),
        ];
        let ranking = rank(&cases, MARGIN).unwrap();
        assert_eq!((ranking.best, ranking.winner), (0, None));
        assert_eq!(ranking.tied, [1]);
    }

    #[test]
    fn a_sure_difference_within_the_margin_wins_nothing() {
        let cases = [
            case("a", &[(1, 101.0), (2, 101.0), (3, 101.0)]),
            case("b", &[(1, 100.0), (2, 100.0), (3, 100.0)]),
        ];
        let ranking = rank(&cases, MARGIN).unwrap();
        assert_eq!(ranking.verdicts[0].comparison.verdict, Verdict::Draw);
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1]));
        assert_eq!(rank(&cases, 0.0).unwrap().winner, Some(0));
    }

    #[test]
    fn the_headline_is_stricter_than_the_verdict() {
        // p = 0.04 for the best against each other: faster by the verdict, not after the correction for three pairs.
        let cases = [
            case("a", &[(1, 111.0), (2, 105.0), (3, 108.0)]),
            case("b", &[(1, 100.0), (2, 100.0), (3, 100.0)]),
            case("c", &[(1, 100.0), (2, 100.0), (3, 100.0)]),
        ];
        let ranking = rank(&cases, MARGIN).unwrap();
        for pair in &ranking.verdicts {
            assert_eq!(pair.comparison.verdict, Verdict::Faster);
            assert!(pair.comparison.p_value.unwrap() > 0.05 / 3.0);
        }
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1, 2]));
        assert_eq!(rank(&cases[..2], MARGIN).unwrap().winner, Some(0));
    }

    #[test]
    fn only_rounds_that_both_finished_are_paired() {
        // Round 2 was slow for all. Unpaired, "b" would look best, because it missed it.
        let cases = [
            case("a", &[(1, 110.0), (2, 55.0), (3, 111.0), (4, 109.0)]),
            case("b", &[(1, 100.0), (3, 101.0), (4, 99.5)]),
        ];
        let ranking = rank(&cases, MARGIN).unwrap();
        assert_eq!(ranking.best, 0);
        let comparison = ranking.verdicts[0].comparison;
        let expected =
            compare_paired(&[110.0, 111.0, 109.0], &[100.0, 101.0, 99.5], MARGIN).unwrap();
        assert_eq!(comparison, expected);
        assert_eq!(comparison.rounds, 3);
    }

    #[test]
    fn cases_without_a_common_round_are_undecided() {
        let cases = [
            case("a", &[(1, 100.0), (2, 100.0)]),
            case("b", &[(3, 400.0), (4, 100.0)]),
        ];
        let ranking = rank(&cases, MARGIN).unwrap();
        assert_eq!((ranking.best, ranking.winner), (1, None));
        assert_eq!(ranking.tied, [0]);
        let comparison = ranking.verdicts[0].comparison;
        assert!((comparison.ratio - 2.0).abs() < 1e-12);
        assert_eq!(
            (comparison.verdict, comparison.rounds, comparison.ci95),
            (Verdict::Undecided, 0, None)
        );
    }

    #[test]
    fn a_single_case_has_nobody_to_beat() {
        let ranking = rank(&[noisy("alone", 1.0, 0)], MARGIN).unwrap();
        assert_eq!((ranking.best, ranking.winner), (0, None));
        assert!(ranking.verdicts.is_empty() && ranking.tied.is_empty());
    }

    #[test]
    fn one_round_names_no_winner() {
        let cases = [case("a", &[(1, 300.0)]), case("b", &[(1, 100.0)])];
        let ranking = rank(&cases, MARGIN).unwrap();
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1]));
    }

    #[test]
    fn unusable_cases_are_named() {
        assert_eq!(rank(&[], MARGIN), Err(StatsError::NoCases));
        let good = noisy("good", 1.0, 0);
        let empty = case("empty", &[]);
        let error = rank(&[good.clone(), empty], MARGIN).unwrap_err();
        assert!(matches!(error, StatsError::CaseWithoutRounds { case } if case == "empty"));
        let error = rank(&[good.clone(), case("zero", &[(7, 0.0)])], MARGIN).unwrap_err();
        assert!(matches!(error, StatsError::BadCaseValue { case, round: 7, .. } if case == "zero"));
        assert!(matches!(
            rank(&[good], 2.0),
            Err(StatsError::BadMargin { .. })
        ));
    }
}
