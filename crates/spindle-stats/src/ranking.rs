//! Which of several cases is best, whether it may be called the winner, and the places of all.
//!
//! The best was chosen *because* its values came out high, so what is said of it must hold whichever of the cases came
//! out so. Every comparison here is one of [`Family`], whose intervals hold for all pairs together: the winner is the
//! case that is faster than each other one by just the verdict that stands in the tables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cases::{CaseRounds, log_lead};
use crate::pairs::PairVerdict;
use crate::{Family, Standard, StatsError, Verdict};

/// The cases in relation to the best one. Every index is a position in the slice given to [`rank`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The case that no other is ahead of over the rounds that both finished: the greatest geometric mean, where all
    /// finished the same rounds. The first of several such.
    pub best: usize,
    /// The best against every other, in the order of the cases.
    pub verdicts: Vec<PairVerdict>,
    /// The best, when it is faster than every other case; always `None` when there is no other.
    pub winner: Option<usize>,
    /// The other cases that the best is not faster than, in the order of the cases: draws within the margin as well as
    /// open questions. Empty when there is a winner.
    pub tied: Vec<usize>,
    /// Every case and its place, from 1, the best place first. The best and those tied with it share the first; the
    /// best of the rest, and those of the rest that it is not faster than, share the next, as 1, 1, 3.
    pub places: Vec<(usize, u32)>,
}

/// Picks the best case, compares it with every other, decides whether it is the winner, and gives every case its place.
///
/// # Errors
/// Those of [`Family::of`].
pub fn rank(cases: &[CaseRounds], standard: Standard) -> Result<Ranking, StatsError> {
    rank_in_groups(cases, &vec![0; cases.len()], standard)
}

/// The same for cases of which some may not win: each has a group, and best and winner are found among those of the
/// lowest. The best is compared with the cases of all groups, by intervals that hold for all of them together; `winner`
/// and `tied` speak of its own group. Places begin again in each group, the lowest group first. A case without a group
/// is of group 0.
///
/// # Errors
/// Those of [`Family::of`].
pub fn rank_in_groups(
    cases: &[CaseRounds],
    groups: &[u32],
    standard: Standard,
) -> Result<Ranking, StatsError> {
    let family = Family::of(cases, standard)?;
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for case in 0..cases.len() {
        let group = groups.get(case).copied().unwrap_or(0);
        members.entry(group).or_default().push(case);
    }
    let mut groups = members.values();
    let contenders = groups.next().ok_or(StatsError::NoCases)?;
    let AgainstBest {
        best,
        mut verdicts,
        tied,
    } = against_best(&family, contenders)?;
    let winner = (tied.is_empty() && !verdicts.is_empty()).then_some(best);
    verdicts.extend(groups.flatten().map(|&other| PairVerdict {
        a: best,
        b: other,
        comparison: family.compare(best, other),
    }));
    verdicts.sort_by_key(|pair| pair.b);
    let mut placed = Vec::new();
    for group in members.into_values() {
        placed.extend(places(&family, group)?);
    }
    Ok(Ranking {
        best,
        verdicts,
        winner,
        tied,
        places: placed,
    })
}

/// Some of the cases in relation to the best of them.
struct AgainstBest {
    best: usize,
    verdicts: Vec<PairVerdict>,
    tied: Vec<usize>,
}

fn against_best(family: &Family<'_>, among: &[usize]) -> Result<AgainstBest, StatsError> {
    let best = best_of(family.cases, among)?;
    let others = among.iter().filter(|&&other| other != best);
    let verdicts: Vec<PairVerdict> = others
        .map(|&other| PairVerdict {
            a: best,
            b: other,
            comparison: family.compare(best, other),
        })
        .collect();
    let open = verdicts
        .iter()
        .filter(|pair| pair.comparison.verdict != Verdict::Faster);
    Ok(AgainstBest {
        best,
        tied: open.map(|pair| pair.b).collect(),
        verdicts,
    })
}

/// Place after place, each led by the best of those that have none yet.
fn places(family: &Family<'_>, mut left: Vec<usize>) -> Result<Vec<(usize, u32)>, StatsError> {
    let mut placed = Vec::new();
    while !left.is_empty() {
        let mut standing = against_best(family, &left)?;
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

/// The case that no other is ahead of, pair by pair over the rounds that both finished, so that none looks best because
/// it missed a slow round. From the first on, the case that is furthest ahead of the best so far replaces it. Where
/// cases finished different rounds that may go in a circle, and ends after as many steps as there are cases.
fn best_of(cases: &[CaseRounds], among: &[usize]) -> Result<usize, StatsError> {
    let mut best = *among.first().ok_or(StatsError::NoCases)?;
    for _ in among {
        let mut ahead = (best, 0.0);
        for &other in among.iter().filter(|&&other| other != best) {
            let lead = log_lead(&cases[other], &cases[best]);
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
            ..CaseRounds::default()
        }
    }

    /// A case of five rounds around `level`, with noise of about 1 % that differs by `seed`.
    fn noisy(name: &str, level: f64, seed: usize) -> CaseRounds {
        const NOISE: [f64; 7] = [0.004, -0.011, 0.009, -0.003, 0.012, -0.008, 0.001];
        let value = |round: u32| level * (1.0 + NOISE[(round as usize * (seed + 1) + seed) % 7]);
        case(name, &[1, 2, 3, 4, 5].map(|round| (round, value(round))))
    }

    /// The fastest of all may not win; it is compared with the winner all the same, and has a place in its own group.
    #[test]
    fn the_winner_is_of_the_lowest_group() {
        let cases = [
            noisy("weak and fast", 900.0, 0),
            noisy("strong", 200.0, 1),
            noisy("strong and slow", 150.0, 2),
            noisy("weak", 100.0, 3),
        ];
        let ranking = rank_in_groups(&cases, &[3, 1, 1, 3], STANDARD).unwrap();
        assert_eq!((ranking.best, ranking.winner), (1, Some(1)));
        let verdicts: Vec<_> = ranking
            .verdicts
            .iter()
            .map(|pair| (pair.b, pair.comparison.verdict))
            .collect();
        let expected = [
            (0, Verdict::Slower),
            (2, Verdict::Faster),
            (3, Verdict::Faster),
        ];
        assert_eq!(verdicts, expected);
        assert!(ranking.tied.is_empty());
        assert_eq!(ranking.places, [(1, 1), (2, 2), (0, 1), (3, 2)]);
        // Alone in its group, it has nobody to win against.
        let alone = rank_in_groups(&cases, &[3, 1, 2, 3], STANDARD).unwrap();
        assert_eq!((alone.best, alone.winner), (1, None));
        let equal = rank_in_groups(&cases, &[7; 4], STANDARD).unwrap();
        assert_eq!(equal, rank(&cases, STANDARD).unwrap());
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
    const SURELY_BETTER: [(u32, f64); 3] = [(1, 131.0), (2, 129.0), (3, 130.0)];

    #[test]
    fn a_difference_that_is_sure_of_two_is_not_sure_of_three() {
        let steady = case("steady", &[(1, 100.0), (2, 100.0), (3, 100.0)]);
        let unsteady = case("unsteady", &[(1, 100.0), (2, 96.0), (3, 104.0)]);
        let likely = case("likely", &LIKELY_BETTER);
        let of_two = [likely.clone(), steady.clone()];
        assert_eq!(rank(&of_two, STANDARD).unwrap().winner, Some(0));
        let of_three = [likely, steady.clone(), unsteady.clone()];
        let ranking = rank(&of_three, STANDARD).unwrap();
        assert_eq!((ranking.winner, ranking.tied), (None, vec![1, 2]));
        let surely = case("surely", &SURELY_BETTER);
        assert_eq!(
            rank(&[surely, steady, unsteady], STANDARD).unwrap().winner,
            Some(0)
        );
    }

    /// What is said of a pair does not depend on where it is said.
    #[test]
    fn every_table_says_the_same_of_a_pair() {
        let cases = [
            noisy("a", 100.0, 0),
            noisy("b", 101.0, 1),
            noisy("c", 103.0, 2),
            noisy("d", 120.0, 3),
        ];
        let ranking = rank(&cases, STANDARD).unwrap();
        let pairs = crate::pairs(&cases, STANDARD).unwrap();
        for of_best in &ranking.verdicts {
            let mut others = pairs.iter();
            let pair = others.find(|pair| pair.a == of_best.b && pair.b == of_best.a);
            let (back, forth) = (of_best.comparison, pair.unwrap().comparison);
            let ((low, _), (_, high)) = (back.ci95.unwrap(), forth.ci95.unwrap());
            assert!((low * high - 1.0).abs() < 1e-12);
            assert_eq!(
                back.verdict == Verdict::Faster,
                forth.verdict == Verdict::Slower
            );
        }
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

    /// The slow rounds of the first run are those of one case alone: they say nothing of the other.
    #[test]
    fn runs_are_compared_by_the_rounds_that_both_finished_in_them() {
        let in_runs = |values: &[(u32, f64)]| CaseRounds {
            runs: (1..=6).map(|round| (round, (round - 1) / 2 + 1)).collect(),
            ..case("", values)
        };
        let cases = [
            in_runs(&[(1, 110.0), (2, 11.0), (3, 220.0), (5, 100.0), (6, 121.0)]),
            in_runs(&[(1, 100.0), (3, 200.0), (4, 2.0), (5, 100.0), (6, 100.0)]),
        ];
        let comparison = rank(&cases, STANDARD).unwrap().verdicts[0].comparison;
        let expected = compare_paired(&[1.1; 3], &[1.0; 3], MARGIN).unwrap();
        assert!((comparison.ratio - expected.ratio).abs() < 1e-12);
        assert_eq!(
            (comparison.rounds, comparison.verdict),
            (3, Verdict::Faster)
        );
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
            looks: Looks::EveryRound,
            ..STANDARD
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
