//! Every case beside every other: what a reader may take from a table of all pairs. The comparisons are those of
//! [`Family`], which hold for all pairs together, so that this table says of a pair what the ranking and the headline
//! say of it.

use serde::{Deserialize, Serialize};

use crate::{CaseRounds, Comparison, Family, Standard, StatsError};

/// Two cases, and what can be said of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairVerdict {
    /// Index of the case that the verdict is said of; against the best case, of that.
    pub a: usize,
    /// Index of the other; among all pairs, greater than `a`.
    pub b: usize,
    /// Their comparison over the rounds that both finished. When there is no such round, the ratio is that of their
    /// geometric means, undecided, of 0 rounds.
    pub comparison: Comparison,
}

/// Compares every case with every other: pairs in the order of the cases.
///
/// # Errors
/// Those of [`Family::of`].
pub fn pairs(cases: &[CaseRounds], standard: Standard) -> Result<Vec<PairVerdict>, StatsError> {
    let family = Family::of(cases, standard)?;
    let with_later = |a: usize| (a + 1..cases.len()).map(move |b| (a, b));
    let all = (0..cases.len()).flat_map(with_later);
    Ok(all
        .map(|(a, b)| PairVerdict {
            a,
            b,
            comparison: family.compare(a, b),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    const STANDARD: Standard = Standard::fixed(0.03);

    fn case(name: &str, values: &[f64]) -> CaseRounds {
        CaseRounds {
            name: name.to_owned(),
            values: (1..).zip(values.iter().copied()).collect(),
            ..CaseRounds::default()
        }
    }

    #[test]
    fn every_pair_is_there_once() {
        let cases = ["a", "b", "c", "d"].map(|name| case(name, &[1.0; 3]));
        let all = pairs(&cases, STANDARD).unwrap();
        let named: Vec<_> = all.iter().map(|pair| (pair.a, pair.b)).collect();
        assert_eq!(named, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
        assert!(
            all.iter()
                .all(|pair| pair.comparison.verdict == Verdict::Draw)
        );
        assert_eq!(pairs(&cases[..1], STANDARD), Ok(Vec::new()));
    }

    #[test]
    fn a_pair_that_is_sure_alone_is_not_sure_among_many() {
        let likely = case("likely", &[111.0, 105.0, 108.0]);
        let other = case("other", &[100.0, 100.0, 100.0]);
        let of_two = pairs(&[likely.clone(), other.clone()], STANDARD).unwrap();
        assert_eq!(of_two[0].comparison.verdict, Verdict::Faster);
        let p_value = of_two[0].comparison.p_value.unwrap();
        assert!((of_two[0].comparison.p_value_of_all.unwrap() - p_value).abs() < 1e-12);
        let unsteady = case("unsteady", &[100.0, 96.0, 104.0]);
        let of_three = pairs(&[likely, other, unsteady], STANDARD).unwrap();
        assert_eq!(of_three[0].comparison.verdict, Verdict::Undecided);
        assert_eq!(of_three[0].comparison.p_value, Some(p_value));
        assert!(of_three[0].comparison.p_value_of_all > Some(0.05));
    }

    #[test]
    fn pairs_without_a_common_round_are_counted_and_open() {
        let early = case("early", &[100.0, 101.0]);
        let late = CaseRounds {
            name: "late".to_owned(),
            values: [(7, 50.0)].into(),
            ..CaseRounds::default()
        };
        let all = pairs(&[early, late], STANDARD).unwrap();
        assert_eq!(
            (all[0].comparison.p_value_of_all, all[0].comparison.verdict),
            (None, Verdict::Undecided)
        );
        assert!(pairs(&[], STANDARD).is_err());
    }
}
