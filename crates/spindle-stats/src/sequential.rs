//! When a pair of cases has been measured often enough, if that is asked after every round. Called by the runner, for plans
//! of `rounds = "auto"`.
//!
//! Whoever tests at 5 % after every round and stops at the first success finds differences among equals far more often
//! than in 5 of 100 cases. Here a pair is settled for one of two reasons, each of which leaves the error rate alone:
//! - **it is decided beyond doubt**: the interval at 99.9 % allows a verdict. Looks as strict as that take next to nothing
//!   from the error rate of the end (J. Haybittle, "Repeated assessment of results in clinical trials of cancer
//!   treatment", British Journal of Radiology 44, 1971; R. Peto and others, British Journal of Cancer 34, 1976);
//! - **it is precise**: the interval has become as narrow as the plan asks for, whatever it says (Y. S. Chow and
//!   H. Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the mean", Annals of
//!   Mathematical Statistics 36, 1965). How narrow it is tells nothing of where it lies: of normal values the mean is
//!   independent of all the standard deviations so far. What remains is that one stops rather when the spread came out
//!   small, so that intervals miss the truth a little more often than they are made for (N. Starr, "The performance of a
//!   sequential procedure for the fixed-width interval estimation of the mean", same journal 37, 1966). Against that: no
//!   look before the fifth round, a reason must hold after two rounds in a row (a few rounds more than the rule wants
//!   mend it: G. Simons, same journal 39, 1968), and intervals are made for 97 % ([`Looks`]).
//!
//! That false winners then stay below 5 % and intervals hold the truth in 95 of 100 cases, at every ratio of noise to
//! precision, is measured in `tests/sequential.rs`.

use crate::comparison::{check_margin, judge, log_ratios};
use crate::interval::{Moments, half_width};
use crate::{Looks, StatsError, Verdict};

/// The fewest rounds after which a pair is settled.
pub const ROUNDS_MIN: u32 = 6;

/// The chance of a false verdict that one early look takes.
const EARLY_ERROR_CHANCE: f64 = 0.001;

/// Whether two cases need no more rounds. `a[i]` and `b[i]` are of one round, in the order of rounds; `margin` is that of
/// [`compare_paired`](crate::compare_paired). `precision` is how far the ends of the interval may lie from the ratio, as a
/// fraction of it: 0.03 for 3 %. A difference of twice the precision is then found in 95 of 100 cases or more.
///
/// # Errors
/// Those of [`compare_paired`](crate::compare_paired).
pub fn is_settled(a: &[f64], b: &[f64], margin: f64, precision: f64) -> Result<bool, StatsError> {
    check_margin(margin)?;
    let all = log_ratios(a, b)?;
    if all.count < ROUNDS_MIN {
        return Ok(false);
    }
    let before = a.len() - 1;
    let without_last = log_ratios(&a[..before], &b[..before])?;
    Ok([all, without_last]
        .iter()
        .all(|moments| has_reason(moments, margin, precision)))
}

fn has_reason(moments: &Moments, margin: f64, precision: f64) -> bool {
    let Some(standard_deviation) = moments.standard_deviation else {
        return false;
    };
    let width = half_width(
        standard_deviation,
        moments.count,
        Looks::EveryRound.error_chance(),
    );
    width <= precision.ln_1p() || is_beyond_doubt(moments, margin)
}

fn is_beyond_doubt(moments: &Moments, margin: f64) -> bool {
    let interval = moments.interval(EARLY_ERROR_CHANCE);
    interval.is_some_and(|(low, high)| judge((low.exp(), high.exp()), margin) != Verdict::Undecided)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONES: [f64; 12] = [1.0; 12];

    /// The first number of rounds after which the values beside a case of 1 are settled.
    fn settled_after(values: &[f64], precision: f64) -> Option<usize> {
        (1..=values.len()).find(|&rounds| {
            is_settled(&values[..rounds], &ONES[..rounds], 0.03, precision).unwrap()
        })
    }

    /// Values that lie `spread` around `middle`.
    fn around(middle: f64, spread: f64) -> Vec<f64> {
        let signs = [
            1.0, -1.0, 0.5, -0.5, 0.0, 0.7, -0.7, 0.2, -0.2, 0.4, -0.4, 0.0,
        ];
        signs.map(|sign| middle * (1.0 + sign * spread)).to_vec()
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
    fn a_reason_must_hold_after_two_rounds_in_a_row() {
        let mut values = vec![1.0; 12];
        // Rounds 1 to 5 agree; the sixth does not, and spoils the precision for long.
        values[5] = 1.2;
        assert_eq!(settled_after(&values, 0.03), None);
        values[5] = 1.001;
        assert_eq!(settled_after(&values, 0.03), Some(6));
    }
}
