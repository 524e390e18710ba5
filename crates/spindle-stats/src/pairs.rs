//! Every case beside every other, with the correction for having compared so many: what a reader may take from a table of
//! all pairs.
//!
//! [`rank`](crate::rank) answers "is there a winner", for which only pairs with the best matter. Whoever looks at all `m` pairs
//! of `k` cases, `m = k (k - 1) / 2`, will find some that differ by luck: of five equal cases one or more of the 10 in a third
//! of all experiments. Here a pair is faster or slower only when its p-value, raised by Holm's method for all `m`
//! ([`holm`]), is still at most [`Looks::error_chance`](crate::Looks::error_chance): among all pairs of an experiment a false
//! difference is then named in at most 5 % of experiments, however the pairs depend on each other. `tests/study.rs` measures
//! both. A draw says that a difference is small, not that there is one; it is what the pair alone allows.

use serde::{Deserialize, Serialize};

use crate::comparison::check_margin;
use crate::drift::holm;
use crate::ranking::{check_cases, compare_cases};
use crate::{CaseRounds, Comparison, Standard, StatsError, Verdict};

/// Two cases among all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Index of the case that the verdicts are said of.
    pub a: usize,
    /// Index of the other, greater than `a`.
    pub b: usize,
    /// Their comparison as if there were no others.
    pub alone: Comparison,
    /// Its p-value after Holm's correction for all pairs; `None` where there is none.
    pub p_value_of_all: Option<f64>,
    /// What may be said of `a` among all pairs.
    pub verdict: Verdict,
}

/// Compares every case with every other: pairs in the order of the cases.
///
/// A pair without a p-value (fewer than two common rounds) counts as one of the pairs that are corrected for.
///
/// # Errors
/// Those of [`rank`](crate::rank).
pub fn pairs(cases: &[CaseRounds], standard: Standard) -> Result<Vec<Pair>, StatsError> {
    check_margin(standard.margin)?;
    check_cases(cases)?;
    let mut alone = Vec::new();
    for a in 0..cases.len() {
        for b in a + 1..cases.len() {
            alone.push((a, b, compare_cases(&cases[a], &cases[b], standard)?));
        }
    }
    let p_values: Vec<f64> = alone
        .iter()
        .map(|(_, _, comparison)| comparison.p_value.unwrap_or(1.0))
        .collect();
    let pairs = alone.into_iter().zip(holm(&p_values));
    Ok(pairs
        .map(|((a, b, alone), p_value)| {
            let is_sure = p_value <= standard.looks.error_chance();
            let verdict = match alone.verdict {
                Verdict::Faster | Verdict::Slower if !is_sure => Verdict::Undecided,
                verdict => verdict,
            };
            Pair {
                a,
                b,
                alone,
                p_value_of_all: alone.p_value.map(|_| p_value),
                verdict,
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Standard = Standard::fixed(0.03);

    fn case(name: &str, values: &[f64]) -> CaseRounds {
        CaseRounds {
            name: name.to_owned(),
            values: (1..).zip(values.iter().copied()).collect(),
        }
    }

    #[test]
    fn every_pair_is_there_once() {
        let cases = ["a", "b", "c", "d"].map(|name| case(name, &[1.0, 1.0]));
        let all = pairs(&cases, STANDARD).unwrap();
        let named: Vec<_> = all.iter().map(|pair| (pair.a, pair.b)).collect();
        assert_eq!(named, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
        assert!(all.iter().all(|pair| pair.verdict == Verdict::Draw));
        assert_eq!(pairs(&cases[..1], STANDARD), Ok(Vec::new()));
    }

    #[test]
    fn a_pair_that_is_sure_alone_is_not_sure_among_many() {
        let likely = case("likely", &[111.0, 105.0, 108.0]);
        let other = case("other", &[100.0, 100.0, 100.0]);
        let of_two = pairs(&[likely.clone(), other.clone()], STANDARD).unwrap();
        assert_eq!(of_two[0].verdict, Verdict::Faster);
        assert_eq!(of_two[0].p_value_of_all, of_two[0].alone.p_value);
        let of_three = pairs(&[likely, other.clone(), other], STANDARD).unwrap();
        assert_eq!(of_three[0].alone.verdict, Verdict::Faster);
        assert_eq!(of_three[0].verdict, Verdict::Undecided);
        assert!(of_three[0].p_value_of_all > of_three[0].alone.p_value);
        assert_eq!(of_three[2].verdict, Verdict::Draw);
    }

    #[test]
    fn pairs_without_a_common_round_are_counted_and_open() {
        let early = case("early", &[100.0, 101.0]);
        let late = CaseRounds {
            name: "late".to_owned(),
            values: [(7, 50.0)].into(),
        };
        let all = pairs(&[early, late], STANDARD).unwrap();
        assert_eq!(
            (all[0].p_value_of_all, all[0].verdict),
            (None, Verdict::Undecided)
        );
        assert!(pairs(&[], STANDARD).is_err());
    }
}
