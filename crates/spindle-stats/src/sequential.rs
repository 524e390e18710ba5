//! When a pair of cases has been measured often enough, if that is asked after every round. Called by the runner, for
//! plans of `rounds = "auto"`.
//!
//! Testing at 5 % after every round and stopping at the first success finds differences among equals far more often
//! than in 5 of 100 cases. Here a pair is settled for one of two reasons, each of which leaves the error rate alone:
//! - **it is decided with certainty**: the interval of all pairs allows a verdict, and so does that of the pair alone
//!   at 99.9 %. Looks as strict as that take next to nothing from the error rate of the end (J. Haybittle, "Repeated
//!   assessment of results in clinical trials of cancer treatment", British Journal of Radiology 44, 1971; R. Peto and
//!   others, British Journal of Cancer 34, 1976);
//! - **it is precise**: the interval has become as narrow as the plan asks for, whatever it says (Y. S. Chow and H.
//!   Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the mean", Annals of
//!   Mathematical Statistics 36, 1965). How narrow it is tells nothing of where it lies: of normal values the mean is
//!   independent of all the standard deviations so far. What remains is that one stops rather when the spread came out
//!   small, so that intervals miss the truth a little more often than they are made for (N. Starr, "The performance of
//!   a sequential procedure for the fixed-width interval estimation of the mean", same journal 37, 1966). Against that:
//!   no look before the fifth round, a reason must hold after two rounds in a row (a few rounds more than the rule
//!   wants mend it: G. Simons, same journal 39, 1968), and intervals are made for 97 % ([`Looks`]).
//!
//! That false winners then stay below 5 % and intervals hold the truth in 95 of 100 cases, at every ratio of noise to
//! precision, is measured in `tests/sequential.rs`.

use crate::cases::log_ratios;
use crate::comparison::{Verdict, judge};
use crate::interval::Moments;
use crate::simultaneous::Family;
use crate::spread::Spread;
use crate::{CaseRounds, Standard};

/// The fewest rounds after which a pair is settled.
pub const ROUNDS_MIN: u32 = 6;

/// The chance of a false verdict that one early look takes, of a pair alone.
const EARLY_ERROR_CHANCE: f64 = 0.001;

impl Family<'_> {
    /// Whether cases `a` and `b` need no more rounds beside each other, or no more runs where they have any.
    /// `precision` is how far the ends of the interval may lie from the ratio, as a fraction of it: 0.03 for 3 %. A
    /// difference of twice the precision is then found in 95 of 100 experiments or more.
    ///
    /// # Panics
    /// When there is no such case.
    pub fn is_settled(&self, a: usize, b: usize, precision: f64) -> bool {
        let pair = (&self.cases[a], &self.cases[b]);
        let ends = ends_of_repetitions(pair);
        let [.., before, last] = ends[..] else {
            return false;
        };
        ends.len() >= ROUNDS_MIN as usize
            && [last, before]
                .iter()
                .all(|until| self.has_reason(pair, *until, precision))
    }

    fn has_reason(&self, (a, b): (&CaseRounds, &CaseRounds), until: u32, precision: f64) -> bool {
        let Some(moments) = Moments::of(&log_ratios(a, b, until)) else {
            return false;
        };
        let variance = self.mean_variance(until);
        let Some(spread) = Spread::of(&moments, variance, self.cases.len()) else {
            return false;
        };
        spread.half_width(self.standard.error_chance()) <= precision.ln_1p()
            || is_beyond_doubt(&moments, &spread, self.standard)
    }
}

/// The rounds that both finished, or the last of them in each run: after these it is looked.
fn ends_of_repetitions((a, b): (&CaseRounds, &CaseRounds)) -> Vec<u32> {
    let rounds = a.values.keys().copied();
    let mut ends: Vec<u32> = rounds
        .filter(|round| b.values.contains_key(round))
        .collect();
    let run_of = |round: u32| a.runs.get(&round);
    ends.dedup_by(|later, earlier| {
        let is_same = run_of(*later).is_some() && run_of(*later) == run_of(*earlier);
        if is_same {
            *earlier = *later;
        }
        is_same
    });
    ends
}

fn is_beyond_doubt(moments: &Moments, spread: &Spread, standard: Standard) -> bool {
    let decides = |(low, high): (f64, f64)| {
        judge((low.exp(), high.exp()), standard.margin) != Verdict::Undecided
    };
    let alone = moments.interval(EARLY_ERROR_CHANCE);
    alone.is_some_and(decides) && decides(spread.interval(moments.mean, standard.error_chance()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Looks;

    const STANDARD: Standard = Standard {
        looks: Looks::EveryRound,
        ..Standard::fixed(0.03)
    };

    fn case(values: impl IntoIterator<Item = f64>) -> CaseRounds {
        CaseRounds {
            name: String::new(),
            values: (1..).zip(values).collect(),
            ..CaseRounds::default()
        }
    }

    /// The first number of rounds after which the values beside as many `others` of 1 are settled.
    fn settled_among(values: &[f64], others: usize, precision: f64) -> Option<usize> {
        (1..=values.len()).find(|&rounds| {
            let mut cases = vec![case(vec![1.0; rounds]); others + 1];
            cases[0] = case(values[..rounds].iter().copied());
            let family = Family::of(&cases, STANDARD).unwrap();
            family.is_settled(0, 1, precision)
        })
    }

    fn settled_after(values: &[f64], precision: f64) -> Option<usize> {
        settled_among(values, 1, precision)
    }

    /// Values that lie `spread` around `middle`.
    fn around(middle: f64, spread: f64) -> Vec<f64> {
        let signs = [
            1.0, -1.0, 0.5, -0.5, 0.0, 0.7, -0.7, 0.2, -0.2, 0.4, -0.4, 0.0,
        ];
        signs.map(|sign| middle * (1.0 + sign * spread)).to_vec()
    }

    /// Runs of two rounds each that have the values of the rounds of another test: they are settled with the same run.
    #[test]
    fn runs_are_settled_by_their_means() {
        let settled_after = |values: &[f64]| {
            (1..=values.len()).find(|&runs| {
                let rounds = values[..runs]
                    .iter()
                    .flat_map(|value| [0.5, 2.0].map(|of| of * value));
                let mut cases = [case(rounds), case(vec![1.0; 2 * runs])];
                for case in &mut cases {
                    let rounds = 1..=2 * runs as u32;
                    case.runs = rounds.map(|round| (round, round.div_ceil(2))).collect();
                }
                let family = Family::of(&cases, STANDARD).unwrap();
                family.is_settled(0, 1, 0.04)
            })
        };
        assert_eq!(settled_after(&around(1.0, 0.05)), Some(9));
        assert_eq!(settled_after(&[2.0; 12]), Some(ROUNDS_MIN as usize));
    }

    #[test]
    fn nothing_is_settled_before_the_sixth_round() {
        assert_eq!(settled_after(&[2.0; 12], 0.03), Some(ROUNDS_MIN as usize));
    }

    #[test]
    fn what_is_beyond_doubt_need_not_be_precise() {
        assert_eq!(settled_after(&around(5.0, 0.2), 0.001), Some(6));
        assert_eq!(settled_after(&around(1.05, 0.2), 0.001), None);
    }

    #[test]
    fn what_is_precise_need_not_be_decided() {
        assert_eq!(settled_after(&around(1.0, 0.05), 0.04), Some(9));
        assert_eq!(settled_after(&around(1.0, 0.05), 0.02), None);
    }

    #[test]
    fn the_precision_is_that_of_the_interval_of_all_pairs() {
        let alone = settled_after(&around(1.0, 0.05), 0.04);
        assert!(settled_among(&around(1.0, 0.05), 5, 0.04) != alone);
        assert_eq!(settled_after(&around(1.0, 0.05), 0.05), Some(7));
    }

    #[test]
    fn a_reason_must_hold_after_two_rounds_in_a_row() {
        let mut values = vec![1.0; 12];
        // Rounds 1 to 5 agree; the sixth does not, and spoils the precision for long.
        values[5] = 1.2;
        assert_eq!(settled_after(&values, 0.03), None);
        values[5] = 1.001;
        assert_eq!(settled_after(&values, 0.03), Some(6));
    }
}
