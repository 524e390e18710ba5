//! Which of several cases is best, what may be said of it against each other case, and whether it may be called the
//! winner.
//!
//! Two questions, two standards:
//! - **"Is the best faster than this one?"** Each verdict is a plain comparison at 95 %, as if the two were the only
//!   cases. That is what a reader who cares about those two wants, and its interval is the one printed.
//! - **"Is there a winner?"** The best was chosen *because* its values came out high. Of six equal cases one always looks
//!   best, and in about a fifth of all experiments some other is called slower by luck (`tests/study.rs` measures
//!   that). So the headline names a winner only if the best beats *every* other of the `k` cases at a level of its own,
//!   `5 % / k` one-sided: an intersection-union test (R. Berger, "Multiparameter hypothesis testing and acceptance
//!   sampling", Technometrics 24, 1982). A case that is not truly best has a rival that is as good or better, and to be
//!   named it must beat that one too, by luck alone; so it is named with a chance of at most `5 % / k`. Whichever of the
//!   `k` cases came out best, the chance that the winner is a false one is at most their sum (Bonferroni), 5 %.
//!
//! A case may therefore be slower by its verdict and still be listed as tied with the best in the headline.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::comparison::{check_margin, compare_by, is_comparable, rounds_to_differ};
use crate::interval::Moments;
use crate::{Comparison, Standard, StatsError, Verdict};

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
    /// For a best case that is faster as a pair, yet not sure among all: how many rounds in all would probably show it to
    /// beat the other at the winner's level, at most [`MAX_ROUNDS`](crate::MAX_ROUNDS), which stands for that many or more.
    pub rounds_to_win: Option<u32>,
}

/// The cases in relation to the best one. Every index is a position in the slice given to [`rank`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The case that no other is ahead of over the rounds that both finished: the greatest geometric mean, where all
    /// finished the same rounds. The first of several such.
    pub best: usize,
    /// The best against every other, in the order of the cases.
    pub verdicts: Vec<PairVerdict>,
    /// The best, when it is faster than every other of the `k` cases by its verdict and with a two-sided p-value of at
    /// most `2 / k` of [`Looks::error_chance`](crate::Looks::error_chance); always `None` when there is no other.
    pub winner: Option<usize>,
    /// The other cases that the best was not shown to beat at that level, in the order of the cases: draws within the
    /// margin as well as open questions. Empty when there is a winner.
    pub tied: Vec<usize>,
    /// Every case and its place, from 1, the best place first. The best and those tied with it share the first; the best
    /// of the rest, and those of the rest that it was not shown to beat, share the next, as 1, 1, 3.
    pub places: Vec<(usize, u32)>,
}

/// Picks the best case, compares it with every other, decides whether it is the winner, and gives every case its place.
///
/// # Errors
/// [`StatsError::NoCases`], [`StatsError::CaseWithoutRounds`], [`StatsError::BadCaseValue`] for a value that is zero,
/// negative, infinite or not a number, [`StatsError::BadMargin`] unless the margin is 0 or more and below 1.
pub fn rank(cases: &[CaseRounds], standard: Standard) -> Result<Ranking, StatsError> {
    check_margin(standard.margin)?;
    check_cases(cases)?;
    let all: Vec<usize> = (0..cases.len()).collect();
    let Standing {
        best,
        verdicts,
        tied,
    } = stand(cases, &all, standard)?;
    let winner = (tied.is_empty() && !verdicts.is_empty()).then_some(best);
    Ok(Ranking {
        best,
        verdicts,
        winner,
        tied,
        places: places(cases, standard)?,
    })
}

/// Some of the cases in relation to the best of them.
struct Standing {
    best: usize,
    verdicts: Vec<PairVerdict>,
    tied: Vec<usize>,
}

fn stand(
    cases: &[CaseRounds],
    among: &[usize],
    standard: Standard,
) -> Result<Standing, StatsError> {
    let best = best_of(cases, among)?;
    let level = two_sided_level(cases.len(), standard);
    let mut verdicts = Vec::new();
    let mut tied = Vec::new();
    for &other in among.iter().filter(|&&other| other != best) {
        let comparison = compare_cases(&cases[best], &cases[other], standard)?;
        let is_faster = comparison.verdict == Verdict::Faster;
        let is_sure = comparison.p_value.is_some_and(|p_value| p_value <= level);
        if !(is_faster && is_sure) {
            tied.push(other);
        }
        verdicts.push(PairVerdict {
            a: best,
            b: other,
            comparison,
            rounds_to_win: (is_faster && !is_sure)
                .then(|| rounds_to_differ(&comparison, level))
                .flatten(),
        });
    }
    Ok(Standing {
        best,
        verdicts,
        tied,
    })
}

/// Place after place, each led by the best of those that have none yet.
fn places(cases: &[CaseRounds], standard: Standard) -> Result<Vec<(usize, u32)>, StatsError> {
    let mut left: Vec<usize> = (0..cases.len()).collect();
    let mut placed = Vec::new();
    while !left.is_empty() {
        let mut standing = stand(cases, &left, standard)?;
        let ratio_to_best = |case: &usize| {
            let mut pairs = standing.verdicts.iter();
            let pair = pairs.find(|pair| pair.b == *case);
            pair.map_or(1.0, |pair| pair.comparison.ratio)
        };
        standing
            .tied
            .sort_by(|a, b| ratio_to_best(a).total_cmp(&ratio_to_best(b)));
        let place = placed.len() as u32 + 1;
        placed.push((standing.best, place));
        placed.extend(standing.tied.iter().map(|&case| (case, place)));
        left.retain(|case| placed.iter().all(|(other, _)| other != case));
    }
    Ok(placed)
}

/// The greatest two-sided p-value that shows the best of `cases` cases to beat another. Only the tail in which the best
/// is ahead can name a false winner, and it holds half of that p-value.
fn two_sided_level(cases: usize, standard: Standard) -> f64 {
    2.0 * standard.looks.error_chance() / cases as f64
}

pub(crate) fn check_cases(cases: &[CaseRounds]) -> Result<(), StatsError> {
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

/// The case that no other is ahead of, pair by pair over the rounds that both finished, lest a case look best because it
/// missed a slow round. From the first on, whoever is furthest ahead of the best so far takes its stead; where cases
/// finished different rounds that may go in a circle, and ends after as many steps as there are cases.
fn best_of(cases: &[CaseRounds], among: &[usize]) -> Result<usize, StatsError> {
    let mut best = *among.first().ok_or(StatsError::NoCases)?;
    for _ in among {
        let mut ahead = (best, 0.0);
        for &other in among.iter().filter(|&&other| other != best) {
            let lead = log_lead(&cases[other], &cases[best])?;
            if lead > ahead.1 {
                ahead = (other, lead);
            }
        }
        if ahead.0 == best {
            break;
        }
        best = ahead.0;
    }
    Ok(best)
}

/// Logarithm of the ratio of two cases' geometric means over the rounds that both finished, or each over its own when
/// there is none.
fn log_lead(a: &CaseRounds, b: &CaseRounds) -> Result<f64, StatsError> {
    let (a_values, b_values) = paired(a, b);
    if a_values.is_empty() {
        return Ok(log_mean(a.values.values().copied())? - log_mean(b.values.values().copied())?);
    }
    Ok(log_mean(a_values.into_iter())? - log_mean(b_values.into_iter())?)
}

/// Logarithm of the geometric mean.
fn log_mean(values: impl Iterator<Item = f64>) -> Result<f64, StatsError> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    Ok(Moments::of(&logs).ok_or(StatsError::NoValues)?.mean)
}

/// The values of two cases in the rounds that both finished.
pub(crate) fn paired(a: &CaseRounds, b: &CaseRounds) -> (Vec<f64>, Vec<f64>) {
    let both = |(round, &value): (&u32, &f64)| Some((value, *b.values.get(round)?));
    a.values.iter().filter_map(both).unzip()
}

pub(crate) fn compare_cases(
    a: &CaseRounds,
    b: &CaseRounds,
    standard: Standard,
) -> Result<Comparison, StatsError> {
    let (a_values, b_values) = paired(a, b);
    if a_values.is_empty() {
        return Ok(Comparison {
            ratio: log_lead(a, b)?.exp(),
            ci95: None,
            verdict: Verdict::Undecided,
            rounds: 0,
            rounds_needed: None,
            spread: None,
            p_value: None,
        });
    }
    compare_by(&a_values, &b_values, standard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Looks, compare_paired};

    const MARGIN: f64 = 0.03;
    const STANDARD: Standard = Standard::fixed(MARGIN);

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
        let ranking = rank(&cases, STANDARD).unwrap();
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
        let ranking = rank(&cases, STANDARD).unwrap();
        assert_eq!((ranking.best, ranking.winner), (0, None));
        assert_eq!(ranking.tied, [1]);
    }

    #[test]
    fn a_sure_difference_within_the_margin_wins_nothing() {
        let cases = [
            case("a", &[(1, 101.0), (2, 101.0), (3, 101.0)]),
            case("b", &[(1, 100.0), (2, 100.0), (3, 100.0)]),
        ];
        let ranking = rank(&cases, STANDARD).unwrap();
        assert_eq!(ranking.verdicts[0].comparison.verdict, Verdict::Draw);
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1]));
        assert_eq!(rank(&cases, Standard::fixed(0.0)).unwrap().winner, Some(0));
    }

    /// Two-sided p-value of 0.041 against a case of 100 in every round.
    const LIKELY_BETTER: [(u32, f64); 3] = [(1, 111.0), (2, 105.0), (3, 108.0)];
    /// Two-sided p-value of 0.029 against a case of 100 in every round.
    const SURELY_BETTER: [(u32, f64); 3] = [(1, 110.5), (2, 105.5), (3, 108.0)];

    /// The ranking of a case with the values of `best` and `others` cases of 100 in every round.
    fn against(best: &[(u32, f64)], others: usize) -> Ranking {
        let other = case("other", &[(1, 100.0), (2, 100.0), (3, 100.0)]);
        let mut cases = vec![other; others + 1];
        cases[0] = case("best", best);
        rank(&cases, STANDARD).unwrap()
    }

    #[test]
    fn the_headline_is_stricter_than_the_verdict() {
        let ranking = against(&LIKELY_BETTER, 2);
        for pair in &ranking.verdicts {
            let p_value = pair.comparison.p_value.unwrap();
            assert_eq!(pair.comparison.verdict, Verdict::Faster);
            assert!((0.10 / 3.0..0.05).contains(&p_value), "{p_value}");
        }
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1, 2]));
    }

    #[test]
    fn it_says_after_how_many_rounds_the_best_would_win() {
        let open = against(&LIKELY_BETTER, 2).verdicts[0];
        assert_eq!(open.rounds_to_win, Some(4));
        // Four rounds of the same mean and spread, and it has won.
        let apart = open.comparison.spread.unwrap() * 0.75_f64.sqrt();
        let value = |from_mean: f64| 100.0 * open.comparison.ratio * from_mean.exp();
        let (low, high) = (value(-apart), value(apart));
        let best = case("best", &[(1, low), (2, high), (3, low), (4, high)]);
        let other = case("other", &[1, 2, 3, 4].map(|round| (round, 100.0)));
        let cases = [best, other.clone(), other];
        assert_eq!(rank(&cases, STANDARD).unwrap().winner, Some(0));

        let among_ten = against(&LIKELY_BETTER, 9).verdicts[0];
        assert!(among_ten.rounds_to_win > Some(4));
        assert_eq!(against(&SURELY_BETTER, 2).verdicts[0].rounds_to_win, None);
    }

    #[test]
    fn between_two_cases_the_headline_is_the_verdict() {
        assert_eq!(against(&LIKELY_BETTER, 1).winner, Some(0));
    }

    #[test]
    fn each_further_case_raises_the_bar() {
        let three = against(&SURELY_BETTER, 2);
        let p_value = three.verdicts[0].comparison.p_value.unwrap();
        assert!((0.10 / 4.0..0.10 / 3.0).contains(&p_value), "{p_value}");
        assert_eq!((three.winner, three.tied), (Some(0), vec![]));
        let four = against(&SURELY_BETTER, 3);
        assert_eq!((four.winner, four.tied), (None, vec![1, 2, 3]));
    }

    #[test]
    fn only_rounds_that_both_finished_are_paired() {
        // Round 2 was slow for all. Unpaired, "b" would look best, because it missed it.
        let cases = [
            case("a", &[(1, 110.0), (2, 55.0), (3, 111.0), (4, 109.0)]),
            case("b", &[(1, 100.0), (3, 101.0), (4, 99.5)]),
        ];
        let ranking = rank(&cases, STANDARD).unwrap();
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
        let ranking = rank(&cases, STANDARD).unwrap();
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
        let ranking = rank(&[noisy("alone", 1.0, 0)], STANDARD).unwrap();
        assert_eq!((ranking.best, ranking.winner), (0, None));
        assert!(ranking.verdicts.is_empty() && ranking.tied.is_empty());
    }

    #[test]
    fn one_round_names_no_winner() {
        let cases = [case("a", &[(1, 300.0)]), case("b", &[(1, 100.0)])];
        let ranking = rank(&cases, STANDARD).unwrap();
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1]));
    }

    #[test]
    fn places_are_shared_by_those_not_shown_to_differ() {
        let cases = [
            noisy("slow", 100.0, 0),
            noisy("fast", 200.0, 1),
            noisy("as fast", 199.0, 2),
            noisy("as slow", 101.0, 3),
        ];
        let places = rank(&cases, STANDARD).unwrap().places;
        assert_eq!(places, [(1, 1), (2, 1), (3, 3), (0, 3)]);
    }

    #[test]
    fn a_case_that_is_measured_no_more_does_not_say_who_is_best() {
        // Over the rounds of "lost" alone, "b" was ahead.
        let cases = [
            case("a", &[(1, 99.0), (2, 99.0), (3, 120.0), (4, 120.0)]),
            case("b", &[(1, 100.0), (2, 100.0), (3, 100.0), (4, 100.0)]),
            case("lost", &[(1, 10.0), (2, 10.0)]),
        ];
        assert_eq!(rank(&cases, STANDARD).unwrap().best, 0);
    }

    #[test]
    fn looking_after_every_round_raises_the_bar() {
        let cases = [
            case("a", &LIKELY_BETTER),
            case("b", &[(1, 100.0), (2, 100.0), (3, 100.0)]),
        ];
        let standard = Standard {
            margin: MARGIN,
            looks: Looks::EveryRound,
            noise_floor: 0.0,
        };
        let (once, often) = (rank(&cases, STANDARD), rank(&cases, standard));
        let pair = |ranking: &Ranking| ranking.verdicts[0].comparison;
        let (once, often) = (once.unwrap(), often.unwrap());
        assert_eq!((once.winner, often.winner), (Some(0), None));
        assert!(pair(&often).ci95.unwrap().0 < pair(&once).ci95.unwrap().0);
    }

    #[test]
    fn unusable_cases_are_named() {
        assert_eq!(rank(&[], STANDARD), Err(StatsError::NoCases));
        let good = noisy("good", 1.0, 0);
        let empty = case("empty", &[]);
        let error = rank(&[good.clone(), empty], STANDARD).unwrap_err();
        assert!(matches!(error, StatsError::CaseWithoutRounds { case } if case == "empty"));
        let error = rank(&[good.clone(), case("zero", &[(7, 0.0)])], STANDARD).unwrap_err();
        assert!(matches!(error, StatsError::BadCaseValue { case, round: 7, .. } if case == "zero"));
        assert!(matches!(
            rank(&[good], Standard::fixed(2.0)),
            Err(StatsError::BadMargin { .. })
        ));
    }
}
