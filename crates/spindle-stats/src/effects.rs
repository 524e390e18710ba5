//! What each setting of a matrix does: cases that differ in several factors at once, each at some of its levels, and
//! the effect of one level against another over all else that was varied.
//!
//! An effect is a contrast of the logarithms of the cases' values: for each combination of the other factors the case
//! with one level less the case with the other, averaged. It is taken round by round, so what slowed a whole round
//! divides out as it does for a pair; and over as many pairs as there are combinations, so it is known better than any
//! of them. The interaction of two factors is the difference of two such effects, of the one factor at two levels of
//! the other.
//!
//! Intervals hold together as those of [`Family`](crate::Family) do, and by the same arithmetic: all effects are one
//! family, all interactions another. A family of this many contrasts takes the factor of as many cases as have at least
//! this many pairs; the effects of a single factor are then exactly the verdicts of its cases. That the factor, made
//! for pairs, is enough for contrasts of a matrix is shown by simulation (`tests/all/effects.rs`).
//!
//! Of a half fraction (G. Box and J. Hunter, "The 2^(k-p) fractional factorial designs", Technometrics 3, 1961) no two
//! cases differ in one factor alone. Effects are then those of means over all cases of a level, and are only reckoned
//! where every other factor is balanced between them.

use std::collections::BTreeMap;

use crate::cases::{CaseRounds, check_cases};
use crate::comparison::{Comparison, check_margin, compare_spread};
use crate::interval::Moments;
use crate::spread::Spread;
use crate::{Standard, StatsError};

/// Which level of each factor the cases have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelMatrix {
    /// For each case its level of each factor, counted from 0; all of one length.
    pub cells: Vec<Vec<usize>>,
    /// Whether the cases are a balanced part of all combinations.
    pub is_fraction: bool,
}

/// One level of a factor against another, over all combinations of the other factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Which factor.
    pub factor: usize,
    /// The level that it is said of.
    pub level: usize,
    /// The level that it is compared with, an earlier one.
    pub base: usize,
    /// How many cases have either level and were compared.
    pub cases: u32,
    /// Geometric mean of the ratios of the cases that differ in this factor only, and what may be said of `level`.
    pub comparison: Comparison,
}

/// How much the effect of one factor depends on another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interaction {
    /// The factor whose effect it is, and the other: an earlier and a later one.
    pub factors: (usize, usize),
    /// Level of the first factor, and the level that it is compared with.
    pub levels: (usize, usize),
    /// Levels of the other factor at which the effects are compared, the later one first.
    pub at: (usize, usize),
    /// The effects of the first factor at these levels, as ratios.
    pub effects: (f64, f64),
    /// The effects of the other factor at the levels of the first.
    pub effects_of_other: (f64, f64),
    /// Ratio of the two effects.
    pub comparison: Comparison,
}

/// What the factors of a matrix do. Empty where nothing can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effects {
    /// Every level of each factor against every earlier one.
    pub effects: Vec<Effect>,
    /// Every pair of levels of each factor at every pair of levels of each later one.
    pub interactions: Vec<Interaction>,
}

/// The effects and interactions of the factors of `matrix`, of which `cases` are the cells.
///
/// # Errors
/// Those of [`Family::of`](crate::Family::of).
///
/// # Panics
/// When `matrix` has not a cell for each case.
pub fn effects(
    cases: &[CaseRounds],
    matrix: &LevelMatrix,
    standard: Standard,
) -> Result<Effects, StatsError> {
    check_margin(standard.margin)?;
    check_cases(cases)?;
    assert_eq!(cases.len(), matrix.cells.len(), "a cell for each case");
    let of_levels = matrix.level_pairs();
    let mut contrasts = Vec::new();
    for &(factor, level, base) in &of_levels {
        let weights = matrix.effect(factor, level, base);
        contrasts.extend(weights.map(|weights| ((factor, level, base), weights)));
    }
    let effects =
        judged(cases, contrasts, standard).map(|((factor, level, base), weights, told)| Effect {
            factor,
            level,
            base,
            cases: weights.iter().filter(|weight| **weight != 0.0).count() as u32,
            comparison: told,
        });
    let effects = effects.collect();
    let mut contrasts = Vec::new();
    for &one in &of_levels {
        for &other in of_levels.iter().filter(|other| other.0 > one.0) {
            let weights = matrix.interaction(one, other);
            contrasts.extend(weights.map(|weights| ((one, other), weights)));
        }
    }
    let interactions = judged(cases, contrasts, standard).map(|((one, other), weights, told)| {
        // The part of the contrast that lies at one level of a factor is the effect of the other factor there.
        let effect_at = |factor: usize, level: usize, sign: f64| {
            let is_there = |case: usize| matrix.cells[case][factor] == level;
            let part = (0..cases.len()).map(|case| match is_there(case) {
                true => sign * weights[case],
                false => 0.0,
            });
            let part: Vec<f64> = part.collect();
            mean_of(cases, &part, &rounds_of(cases, &weights)).exp()
        };
        Interaction {
            factors: (one.0, other.0),
            levels: (one.1, one.2),
            at: (other.1, other.2),
            effects: (
                effect_at(other.0, other.1, 1.0),
                effect_at(other.0, other.2, -1.0),
            ),
            effects_of_other: (effect_at(one.0, one.1, 1.0), effect_at(one.0, one.2, -1.0)),
            comparison: told,
        }
    });
    Ok(Effects {
        effects,
        interactions: interactions.collect(),
    })
}

impl LevelMatrix {
    /// Every factor with each level and each earlier one, as far as cases have them.
    fn level_pairs(&self) -> Vec<(usize, usize, usize)> {
        let factors = self.cells.first().map_or(0, Vec::len);
        let mut pairs = Vec::new();
        for factor in 0..factors {
            let mut levels: Vec<usize> = self.cells.iter().map(|cell| cell[factor]).collect();
            levels.sort_unstable();
            levels.dedup();
            for (index, base) in levels.iter().enumerate() {
                pairs.extend(
                    levels[index + 1..]
                        .iter()
                        .map(|level| (factor, *level, *base)),
                );
            }
        }
        pairs
    }

    /// The weights of the cases in the effect of `level` against `base`; `None` where cases cannot tell it.
    fn effect(&self, factor: usize, level: usize, base: usize) -> Option<Vec<f64>> {
        let matched = self.matched(&[(factor, level, base)]);
        matched.or_else(|| self.of_means(&[(factor, level, base)]))
    }

    /// The same for the difference that the second makes to the first.
    fn interaction(
        &self,
        one: (usize, usize, usize),
        other: (usize, usize, usize),
    ) -> Option<Vec<f64>> {
        let matched = self.matched(&[one, other]);
        matched.or_else(|| self.of_means(&[one, other]))
    }

    /// The mean over all cases that have counterparts at all levels, everything else being equal.
    fn matched(&self, varied: &[(usize, usize, usize)]) -> Option<Vec<f64>> {
        let mut weights = vec![0.0; self.cells.len()];
        let mut groups = 0.0;
        let has_first = |cell: &&Vec<usize>| {
            varied
                .iter()
                .all(|(factor, level, _)| cell[*factor] == *level)
        };
        for first in self.cells.iter().filter(has_first) {
            if let Some(group) = self.group(first, varied) {
                groups += 1.0;
                group
                    .into_iter()
                    .for_each(|(case, sign)| weights[case] += sign);
            }
        }
        weights.iter_mut().for_each(|weight| *weight /= groups);
        (groups > 0.0).then_some(weights)
    }

    /// The cases that differ from `first` in the varied factors only, with their signs; `None` when one is missing.
    fn group(
        &self,
        first: &[usize],
        varied: &[(usize, usize, usize)],
    ) -> Option<Vec<(usize, f64)>> {
        let mut wanted = vec![(first.to_vec(), 1.0)];
        for &(factor, _, base) in varied {
            let mut others = wanted.clone();
            for (cell, sign) in &mut others {
                cell[factor] = base;
                *sign = -*sign;
            }
            wanted.extend(others);
        }
        let found = wanted.into_iter().map(|(cell, sign)| {
            let case = self.cells.iter().position(|other| *other == cell)?;
            Some((case, sign))
        });
        found.collect()
    }

    /// The difference of means over all cases of each level, if this is a fraction in which every other factor is
    /// balanced between them.
    fn of_means(&self, varied: &[(usize, usize, usize)]) -> Option<Vec<f64>> {
        if !self.is_fraction {
            return None;
        }
        // Which of the 2 or 4 means a case belongs to, as bits.
        let mean_of = |cell: &Vec<usize>| {
            let mut mean = 0;
            for (bit, (factor, level, base)) in varied.iter().enumerate() {
                match cell[*factor] {
                    found if found == *level => mean |= 1 << bit,
                    found if found == *base => {}
                    _ => return None,
                }
            }
            Some(mean)
        };
        let means = 1_usize << varied.len();
        let mut counts = vec![0_u32; means];
        let mut others: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
        for cell in &self.cells {
            let Some(mean) = mean_of(cell) else { continue };
            counts[mean] += 1;
            for (factor, level) in cell.iter().enumerate() {
                if varied.iter().all(|(each, ..)| *each != factor) {
                    let of_level = others
                        .entry((factor, *level))
                        .or_insert_with(|| vec![0; means]);
                    of_level[mean] += 1;
                }
            }
        }
        let is_even = |counts: &Vec<u32>| counts.iter().all(|count| *count == counts[0]);
        if counts[0] == 0 || !is_even(&counts) || !others.values().all(is_even) {
            return None;
        }
        let weight = |cell: &Vec<usize>| {
            let Some(mean) = mean_of(cell) else {
                return 0.0;
            };
            let bases = varied.len() - (mean as u32).count_ones() as usize;
            let sign = if bases.is_multiple_of(2) { 1.0 } else { -1.0 };
            sign / f64::from(counts[0])
        };
        Some(self.cells.iter().map(weight).collect())
    }
}

/// One contrast of a family: what it is, the weights of the cases, its value in each round or run.
struct Contrast<T> {
    what: T,
    weights: Vec<f64>,
    moments: Moments,
}

impl<T> Contrast<T> {
    /// Its variance for cases of variance 1 that know nothing of each other.
    fn size(&self) -> f64 {
        self.weights.iter().map(|weight| weight * weight).sum()
    }
}

/// Judges contrasts by intervals that hold together. Those without a common round of their cases are left out.
fn judged<T>(
    cases: &[CaseRounds],
    contrasts: Vec<(T, Vec<f64>)>,
    standard: Standard,
) -> impl Iterator<Item = (T, Vec<f64>, Comparison)> {
    let contrasts: Vec<Contrast<T>> = contrasts
        .into_iter()
        .filter_map(|(what, weights)| {
            let moments = Moments::of(&values(cases, &weights))?;
            Some(Contrast {
                what,
                weights,
                moments,
            })
        })
        .collect();
    let (mut squares, mut freedom) = (0.0, 0.0);
    for contrast in &contrasts {
        if let Some(standard_deviation) = contrast.moments.standard_deviation {
            let of_contrast = f64::from(contrast.moments.count - 1);
            squares += of_contrast * standard_deviation.powi(2) / contrast.size();
            freedom += of_contrast;
        }
    }
    let mean_variance = (freedom > 0.0).then(|| squares / freedom);
    let as_cases = cases_with_pairs(contrasts.len());
    contrasts.into_iter().map(move |contrast| {
        let mean = mean_variance.map(|mean| mean * contrast.size());
        let spread = Spread::of(&contrast.moments, mean, as_cases);
        let told = compare_spread(&contrast.moments, spread, standard);
        (contrast.what, contrast.weights, told)
    })
}

/// The fewest cases that have this many pairs.
fn cases_with_pairs(pairs: usize) -> usize {
    (2..)
        .find(|cases| cases * (cases - 1) / 2 >= pairs)
        .unwrap_or(2)
}

/// The rounds that all cases with a weight finished.
fn rounds_of(cases: &[CaseRounds], weights: &[f64]) -> Vec<u32> {
    let weighted = || {
        cases
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight != 0.0)
    };
    let Some((first, _)) = weighted().next() else {
        return Vec::new();
    };
    let rounds = first.values.keys().copied();
    let is_common = |round: &u32| weighted().all(|(case, _)| case.values.contains_key(round));
    rounds.filter(is_common).collect()
}

/// The weighted sum of the logarithms of a round.
fn in_round(cases: &[CaseRounds], weights: &[f64], round: u32) -> f64 {
    let weighted = cases
        .iter()
        .zip(weights)
        .filter(|(_, weight)| **weight != 0.0);
    weighted
        .map(|(case, weight)| weight * case.values[&round].ln())
        .sum()
}

/// Its mean over some rounds.
fn mean_of(cases: &[CaseRounds], weights: &[f64], rounds: &[u32]) -> f64 {
    let all = rounds.iter().map(|round| in_round(cases, weights, *round));
    all.sum::<f64>() / rounds.len().max(1) as f64
}

/// The contrast in each round, or its mean in each run.
fn values(cases: &[CaseRounds], weights: &[f64]) -> Vec<f64> {
    let rounds = rounds_of(cases, weights);
    let mut runs: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    let run_of = |round: u32| cases.iter().find_map(|case| case.runs.get(&round).copied());
    for round in &rounds {
        runs.entry(run_of(*round)).or_default().push(*round);
    }
    match cases.iter().all(|case| case.runs.is_empty()) {
        true => rounds
            .iter()
            .map(|round| in_round(cases, weights, *round))
            .collect(),
        false => runs
            .values()
            .map(|of_run| mean_of(cases, weights, of_run))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, Verdict};

    fn named(values: &[&[f64]]) -> Vec<CaseRounds> {
        let named = values.iter().map(|values| CaseRounds {
            name: String::new(),
            values: (1..).zip(values.iter().copied()).collect(),
            ..CaseRounds::default()
        });
        named.collect()
    }

    fn two_by_two() -> LevelMatrix {
        LevelMatrix {
            cells: vec![vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]],
            is_fraction: false,
        }
    }

    const STANDARD: Standard = Standard::fixed(0.03);

    #[test]
    fn effects_multiply_and_are_averaged_over_the_other_factor() {
        // The first factor makes it twice as fast; the second by half where the first is 0, by a fifth where it is 1.
        let cases = named(&[
            &[100.0, 50.0, 80.0],
            &[150.0, 75.0, 120.0],
            &[200.0, 100.0, 160.0],
            &[240.0, 120.0, 192.0],
        ]);
        let told = effects(&cases, &two_by_two(), STANDARD).unwrap();
        let ratios: Vec<f64> = told
            .effects
            .iter()
            .map(|effect| effect.comparison.ratio)
            .collect();
        assert!(
            (ratios[0] - (2.0_f64 * 1.6).sqrt()).abs() < 1e-9,
            "{ratios:?}"
        );
        assert!(
            (ratios[1] - (1.5_f64 * 1.2).sqrt()).abs() < 1e-9,
            "{ratios:?}"
        );
        assert!(
            told.effects
                .iter()
                .all(|effect| effect.comparison.verdict == Verdict::Faster)
        );
        assert!(told.effects.iter().all(|effect| effect.cases == 4));
        let [interaction] = told.interactions[..] else {
            panic!("{:?}", told.interactions)
        };
        assert!((interaction.comparison.ratio - 0.8).abs() < 1e-9);
        assert!(
            (interaction.effects.0 - 1.6).abs() < 1e-9
                && (interaction.effects.1 - 2.0).abs() < 1e-9
        );
        let (at_level, at_base) = interaction.effects_of_other;
        assert!((at_level - 1.2).abs() < 1e-9 && (at_base - 1.5).abs() < 1e-9);
        assert_eq!(interaction.comparison.verdict, Verdict::Slower);
    }

    #[test]
    fn effects_of_one_factor_are_the_verdicts_of_its_cases() {
        let cases = named(&[
            &[100.0, 103.0, 99.0, 101.0],
            &[120.0, 118.0, 121.0, 125.0],
            &[99.0, 104.0, 100.0, 98.0],
        ]);
        let matrix = LevelMatrix {
            cells: vec![vec![0], vec![1], vec![2]],
            is_fraction: false,
        };
        let told = effects(&cases, &matrix, STANDARD).unwrap();
        let family = Family::of(&cases, STANDARD).unwrap();
        assert_eq!(told.effects.len(), 3);
        assert!(told.interactions.is_empty());
        for effect in &told.effects {
            let pair = family.compare(effect.level, effect.base);
            let (low, high) = effect.comparison.ci95.unwrap();
            let (of_pair_low, of_pair_high) = pair.ci95.unwrap();
            assert!(
                (low / of_pair_low - 1.0).abs() < 1e-9 && (high / of_pair_high - 1.0).abs() < 1e-9
            );
            assert_eq!(effect.comparison.verdict, pair.verdict);
        }
    }

    #[test]
    fn a_missing_cell_leaves_out_its_counterpart_and_no_more() {
        let cases = named(&[
            &[100.0, 101.0, 99.0],
            &[300.0, 303.0, 300.0],
            &[200.0, 203.0, 199.0],
        ]);
        let matrix = LevelMatrix {
            cells: vec![vec![0, 0], vec![0, 1], vec![1, 0]],
            is_fraction: false,
        };
        let told = effects(&cases, &matrix, STANDARD).unwrap();
        let ratios: Vec<f64> = told
            .effects
            .iter()
            .map(|effect| effect.comparison.ratio)
            .collect();
        assert!(
            (ratios[0] - 2.0).abs() < 0.02 && (ratios[1] - 3.0).abs() < 0.02,
            "{ratios:?}"
        );
        assert!(told.effects.iter().all(|effect| effect.cases == 2));
        assert!(told.interactions.is_empty());
        let alone = LevelMatrix {
            cells: vec![vec![0, 0], vec![0, 0], vec![1, 1]],
            is_fraction: false,
        };
        assert_eq!(
            effects(&cases, &alone, STANDARD).unwrap(),
            Effects::default()
        );
    }

    /// The half of 2 to the power of `factors` with an even number of levels 1.
    fn half(factors: usize) -> LevelMatrix {
        let cells = (0..1_usize << factors).filter(|bits| bits.count_ones() % 2 == 0);
        let cell = |bits: usize| (0..factors).map(|factor| bits >> factor & 1).collect();
        LevelMatrix {
            cells: cells.map(cell).collect(),
            is_fraction: true,
        }
    }

    #[test]
    fn a_half_tells_every_effect_and_interaction() {
        let matrix = half(5);
        let value = |cell: &Vec<usize>| {
            let both = if cell[0] == 1 && cell[1] == 1 {
                1.3
            } else {
                1.0
            };
            1000.0 * 1.5_f64.powi(cell[0] as i32) * 0.8_f64.powi(cell[4] as i32) * both
        };
        let values: Vec<Vec<f64>> = matrix
            .cells
            .iter()
            .map(|cell| vec![value(cell); 3])
            .collect();
        let slices: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        let told = effects(&named(&slices), &matrix, STANDARD).unwrap();
        let ratios: Vec<f64> = told
            .effects
            .iter()
            .map(|effect| effect.comparison.ratio)
            .collect();
        let wanted = [1.5 * 1.3_f64.sqrt(), 1.3_f64.sqrt(), 1.0, 1.0, 0.8];
        assert!(
            ratios.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9),
            "{ratios:?}"
        );
        assert_eq!(told.interactions.len(), 10);
        for interaction in &told.interactions {
            let wanted = if interaction.factors == (0, 1) {
                1.3
            } else {
                1.0
            };
            assert!(
                (interaction.comparison.ratio - wanted).abs() < 1e-9,
                "{interaction:?}"
            );
        }
        // One case of the half is lost: nothing is balanced any more.
        let lost = LevelMatrix {
            cells: matrix.cells[1..].to_vec(),
            is_fraction: true,
        };
        assert_eq!(
            effects(&named(&slices[1..]), &lost, STANDARD).unwrap(),
            Effects::default()
        );
    }

    #[test]
    fn only_rounds_that_all_cases_finished_count() {
        let mut cases = named(&[&[100.0; 4], &[150.0; 4], &[200.0; 4], &[300.0; 4]]);
        cases[3].values.remove(&2);
        let told = effects(&cases, &two_by_two(), STANDARD).unwrap();
        assert!(
            told.effects
                .iter()
                .all(|effect| effect.comparison.rounds == 3)
        );
        for (round, run) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
            cases.iter_mut().for_each(|case| {
                case.runs.insert(round, run);
            });
        }
        let told = effects(&cases, &two_by_two(), STANDARD).unwrap();
        assert!(
            told.effects
                .iter()
                .all(|effect| effect.comparison.rounds == 2)
        );
        assert!(
            told.effects
                .iter()
                .all(|effect| effect.comparison.verdict == Verdict::Undecided)
        );
    }
}
