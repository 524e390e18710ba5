//! Which of two cases is faster, by how much and how surely: a paired comparison of their values round by round.
//!
//! Both cases ran in every round, so whatever slowed a whole round (a warm disk, a busy neighbour) divides out of the
//! ratio of the two. The logarithms of those ratios are averaged and get a Student's t interval at 95 %; the
//! exponential of both is the geometric mean ratio and its interval. Logarithms make the answer the same in kind
//! whichever case is named first, and turn noise proportional to speed into noise of one size.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::interval::{Moments, p_value_of, quantile};
use crate::power::{MAX_ROUNDS, POWER};
use crate::spread::{ROUNDS_TO_JUDGE, Spread};
use crate::{Side, Standard, StatsError};

/// What may be said of the first case of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Greater values than the other: the interval of the ratio lies above 1.
    Faster,
    /// Smaller values than the other: the interval of the ratio lies below 1.
    Slower,
    /// As good as equal: the whole interval lies within the margin of 1.
    Draw,
    /// The rounds do not tell.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Draw => "draw",
            Verdict::Undecided => "undecided",
        })
    }
}

/// The outcome of comparing case `a` with case `b`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Geometric mean of `a / b` over the rounds; above 1 when `a` has the greater values.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` with fewer than two rounds, whose spread is unknown. Of a
    /// [`Family`](crate::Family) all intervals together hold the truth in 95 of 100 experiments.
    pub ci95: Option<(f64, f64)>,
    /// What may be said of `a`.
    pub verdict: Verdict,
    /// How many rounds were paired.
    pub rounds: u32,
    /// For an undecided comparison of two rounds or more: how many rounds in all decide it in 95 of 100 experiments, if
    /// the ratio is what it seems (or off by the margin, where that is more) and the rounds spread as they did. An
    /// estimate made from few rounds is itself rough. At most [`MAX_ROUNDS`], which stands for "that many or more".
    /// `None` where only the machine's noise forbids a verdict, which more rounds do not.
    pub rounds_needed: Option<u32>,
    /// How far the ratio spreads from round to round: standard deviation of its logarithm, 0.02 for about 2 %; in a
    /// [`Family`](crate::Family) moderated by what the other pairs show. `None` with fewer than two rounds.
    /// [`rounds_to_find`](crate::rounds_to_find) takes it.
    pub spread: Option<f64>,
    /// Two-sided p-value of "the ratio is 1", of this pair's rounds alone; `None` with fewer than two rounds.
    pub p_value: Option<f64>,
    /// The same, raised for all pairs of all tables of the experiment: the interval excludes 1 when it is at most
    /// [`Looks::error_chance`](crate::Looks::error_chance).
    pub p_value_of_all: Option<f64>,
}

impl Comparison {
    /// Of two cases that have no round in common.
    pub(crate) fn without_rounds(ratio: f64) -> Comparison {
        Comparison {
            ratio,
            ci95: None,
            verdict: Verdict::Undecided,
            rounds: 0,
            rounds_needed: None,
            spread: None,
            p_value: None,
            p_value_of_all: None,
        }
    }
}

/// Compares two cases by their values in the same rounds, of which there were as many as had been planned: `a[i]` and
/// `b[i]` are of one round. More is better (transactions per minute); for a time, name the cases the other way round.
///
/// With the 95 % interval `[low, high]` of the ratio `a / b` and `margin` as a fraction (0.03 for 3 %), the verdict is
/// 1. [`Verdict::Draw`] when `1 - margin <= low` and `high <= 1 + margin`, even if the interval excludes 1: a
///    difference that is sure but too small to matter;
/// 2. [`Verdict::Faster`] when `low > 1`, [`Verdict::Slower`] when `high < 1`;
/// 3. [`Verdict::Undecided`] otherwise, and always with fewer than [`ROUNDS_TO_JUDGE`] rounds.
///
/// Rounds that agree exactly, as simulated ones may, have an interval of no width.
///
/// # Errors
/// [`StatsError::UnequalLengths`], [`StatsError::NoValues`] when both series are empty, [`StatsError::NotPositive`] for
/// a value that is zero, negative, infinite or not a number, [`StatsError::BadMargin`] unless `0 <= margin < 1`.
pub fn compare_paired(a: &[f64], b: &[f64], margin: f64) -> Result<Comparison, StatsError> {
    compare_by(a, b, Standard::fixed(margin))
}

/// The same by another [`Standard`]: with [`crate::Looks::EveryRound`] the interval is wider, so that it holds the true
/// ratio in 95 of 100 cases although it was the rounds themselves that said when to stop.
///
/// # Errors
/// Those of [`compare_paired`].
pub fn compare_by(a: &[f64], b: &[f64], standard: Standard) -> Result<Comparison, StatsError> {
    check_margin(standard.margin)?;
    let moments = log_ratios(a, b)?;
    Ok(compare_spread(&moments, Spread::alone(&moments), standard))
}

/// The comparison that the moments of the log ratios, and what is known of their spread, allow.
pub(crate) fn compare_spread(
    moments: &Moments,
    spread: Option<Spread>,
    standard: Standard,
) -> Comparison {
    let error_chance = standard.error_chance();
    let ci95 = spread.map(|spread| {
        let (low, high) = spread.interval(moments.mean, error_chance);
        (low.exp(), high.exp())
    });
    let ratio = moments.mean.exp();
    let judged = match ci95 {
        Some(interval) if moments.count >= ROUNDS_TO_JUDGE => judge(interval, standard.margin),
        _ => Verdict::Undecided,
    };
    let is_noise = ci95.is_some() && standard.is_noise(ratio);
    let verdict = match judged {
        Verdict::Faster | Verdict::Slower if is_noise => Verdict::Undecided,
        judged => judged,
    };
    let is_open = judged == Verdict::Undecided;
    Comparison {
        ratio,
        ci95,
        verdict,
        rounds: moments.count,
        rounds_needed: spread
            .filter(|_| is_open)
            .map(|spread| rounds_needed(moments, &spread, standard)),
        spread: spread.map(|spread| spread.standard_deviation),
        p_value: moments.p_value(),
        p_value_of_all: spread.map(|spread| {
            let standard_error = spread.widened_standard_error(error_chance);
            let of_table = p_value_of(moments.mean, standard_error, moments.count);
            (of_table * f64::from(standard.tables)).min(1.0)
        }),
    }
}

/// Fails unless `0 <= margin < 1`.
pub(crate) fn check_margin(margin: f64) -> Result<(), StatsError> {
    if (0.0..1.0).contains(&margin) {
        Ok(())
    } else {
        Err(StatsError::BadMargin { margin })
    }
}

/// Whether a value has a logarithm, and so may be part of a ratio.
pub(crate) fn is_comparable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Moments of `ln(a / b)`, round by round.
pub(crate) fn log_ratios(a: &[f64], b: &[f64]) -> Result<Moments, StatsError> {
    if a.len() != b.len() {
        return Err(StatsError::UnequalLengths {
            a_rounds: a.len(),
            b_rounds: b.len(),
        });
    }
    for (side, values) in [(Side::A, a), (Side::B, b)] {
        if let Some(index) = values.iter().position(|&value| !is_comparable(value)) {
            return Err(StatsError::NotPositive {
                side,
                index,
                value: values[index],
            });
        }
    }
    // A difference of logarithms, because the quotient of two extreme values may overflow.
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| a.ln() - b.ln()).collect();
    Moments::of(&logs).ok_or(StatsError::NoValues)
}

/// The verdict that an interval of the ratio allows. Judged by the very numbers that are printed, so that a reader can
/// check it.
pub(crate) fn judge((low, high): (f64, f64), margin: f64) -> Verdict {
    if 1.0 - margin <= low && high <= 1.0 + margin {
        Verdict::Draw
    } else if low > 1.0 {
        Verdict::Faster
    } else if high < 1.0 {
        Verdict::Slower
    } else {
        Verdict::Undecided
    }
}

/// The fewest rounds that tell the ratio seen, or the margin where that is more, from 1 in 95 of 100 experiments, by
/// the formula of [`rounds_to_find`](crate::rounds_to_find).
fn rounds_needed(moments: &Moments, spread: &Spread, standard: Standard) -> u32 {
    let difference = moments.mean.abs().max(standard.margin.ln_1p());
    let decides = |rounds: u32| {
        let critical = spread.half_width_after(rounds, standard.error_chance());
        let wanted = critical + quantile(rounds, POWER) * spread.standard_error_after(rounds);
        difference >= wanted
    };
    fewest_rounds(moments.count.max(ROUNDS_TO_JUDGE - 1), decides)
}

/// The fewest rounds above `rounds` that decide. Intervals only shrink with more rounds, and one that is decided stays
/// so: bisect.
fn fewest_rounds(rounds: u32, decided: impl Fn(u32) -> bool) -> u32 {
    let mut undecided = rounds;
    let mut enough = MAX_ROUNDS.max(undecided.saturating_add(1));
    while undecided + 1 < enough {
        let middle = undecided + (enough - undecided) / 2;
        if decided(middle) {
            enough = middle;
        } else {
            undecided = middle;
        }
    }
    enough
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.03;

    fn compare(a: &[f64], b: &[f64]) -> Comparison {
        compare_paired(a, b, MARGIN).unwrap()
    }

    #[test]
    fn the_edges_of_the_margin_belong_to_the_draw() {
        assert_eq!(judge((0.97, 1.03), MARGIN), Verdict::Draw);
        assert_eq!(judge((0.9699, 1.03), MARGIN), Verdict::Undecided);
        assert_eq!(judge((0.97, 1.0301), MARGIN), Verdict::Undecided);
    }

    #[test]
    fn a_sure_but_small_difference_is_a_draw() {
        assert_eq!(judge((1.01, 1.02), MARGIN), Verdict::Draw);
        assert_eq!(judge((1.01, 1.04), MARGIN), Verdict::Faster);
        assert_eq!(judge((0.96, 0.99), MARGIN), Verdict::Slower);
    }

    #[test]
    fn without_a_margin_the_interval_must_exclude_one() {
        assert_eq!(judge((1.0, 1.1), 0.0), Verdict::Undecided);
        assert_eq!(judge((0.9, 1.0), 0.0), Verdict::Undecided);
        assert_eq!(judge((1.0, 1.0), 0.0), Verdict::Draw);
    }

    #[test]
    fn no_verdict_is_called_within_the_noise_of_the_machine() {
        let with_floor = |noise_floor| {
            let standard = Standard {
                noise_floor,
                ..Standard::fixed(MARGIN)
            };
            let comparison = compare_by(&[1.1; 3], &[1.0; 3], standard).unwrap();
            (comparison.verdict, comparison.rounds_needed)
        };
        assert_eq!(with_floor(0.09), (Verdict::Faster, None));
        assert_eq!(with_floor(0.11), (Verdict::Undecided, None));
        let standard = Standard {
            noise_floor: 0.11,
            ..Standard::fixed(MARGIN)
        };
        let draw = compare_by(&[1.01; 3], &[1.0; 3], standard).unwrap();
        assert_eq!(draw.verdict, Verdict::Draw);
    }

    #[test]
    fn swapping_the_cases_inverts_the_ratio() {
        let a = [1_200.0, 1_150.0, 1_260.0, 1_190.0];
        let b = [1_000.0, 1_010.0, 1_025.0, 985.0];
        let (forth, back) = (compare(&a, &b), compare(&b, &a));
        assert_eq!(forth.verdict, Verdict::Faster);
        assert_eq!(back.verdict, Verdict::Slower);
        assert!((forth.ratio * back.ratio - 1.0).abs() < 1e-12);
        let ((low, _), (_, high)) = (forth.ci95.unwrap(), back.ci95.unwrap());
        assert!((low * high - 1.0).abs() < 1e-12);
        assert_eq!(forth.rounds_needed, None);
        assert_eq!(forth.spread, back.spread);
    }

    #[test]
    fn what_slows_a_whole_round_divides_out() {
        let rounds = compare(&[110.0, 55.0, 220.0], &[100.0, 50.0, 200.0]);
        assert_eq!(rounds.verdict, Verdict::Faster);
        assert!((rounds.ratio - 1.1).abs() < 1e-12);
    }

    #[test]
    fn identical_rounds_are_a_draw_of_no_width() {
        let same = compare(&[5.0, 7.0, 6.0], &[5.0, 7.0, 6.0]);
        assert_eq!(same.ratio, 1.0);
        assert_eq!(same.ci95, Some((1.0, 1.0)));
        assert_eq!(same.verdict, Verdict::Draw);
        assert_eq!(same.p_value, Some(1.0));
    }

    #[test]
    fn a_constant_difference_is_sure() {
        let constant = compare(&[22.0; 3], &[20.0; 3]);
        let (low, high) = constant.ci95.unwrap();
        assert_eq!((low, high), (constant.ratio, constant.ratio));
        assert_eq!(constant.verdict, Verdict::Faster);
        assert_eq!(constant.p_value, Some(0.0));
    }

    #[test]
    fn one_round_decides_nothing() {
        let single = compare(&[300.0], &[100.0]);
        assert!((single.ratio - 3.0).abs() < 1e-12);
        assert_eq!(single.verdict, Verdict::Undecided);
        assert_eq!(
            (
                single.ci95,
                single.rounds_needed,
                single.spread,
                single.p_value
            ),
            (None, None, None, None)
        );
    }

    #[test]
    fn two_rounds_have_an_interval_and_decide_nothing() {
        let two = compare(&[300.0, 301.0], &[100.0, 100.0]);
        assert!(two.ci95.unwrap().0 > 2.0);
        assert_eq!(
            (two.verdict, two.rounds_needed),
            (Verdict::Undecided, Some(3))
        );
        assert_eq!(
            compare(&[100.0; 2], &[100.0; 2]).verdict,
            Verdict::Undecided
        );
        assert_eq!(
            compare(&[300.0, 301.0, 300.0], &[100.0; 3]).verdict,
            Verdict::Faster
        );
    }

    #[test]
    fn values_without_a_ratio_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                compare_paired(&[1.0, bad], &[1.0, 1.0], MARGIN),
                Err(StatsError::NotPositive {
                    side: Side::A,
                    index: 1,
                    ..
                })
            ));
            assert!(matches!(
                compare_paired(&[1.0, 1.0], &[bad, 1.0], MARGIN),
                Err(StatsError::NotPositive {
                    side: Side::B,
                    index: 0,
                    ..
                })
            ));
        }
        assert_eq!(
            compare_paired(&[1.0, 2.0], &[1.0], MARGIN),
            Err(StatsError::UnequalLengths {
                a_rounds: 2,
                b_rounds: 1
            })
        );
        assert_eq!(compare_paired(&[], &[], MARGIN), Err(StatsError::NoValues));
        for margin in [-0.01, 1.0, f64::NAN] {
            assert!(matches!(
                compare_paired(&[1.0], &[1.0], margin),
                Err(StatsError::BadMargin { .. })
            ));
        }
    }

    #[test]
    fn an_equal_pair_without_a_margin_needs_all_the_rounds_there_are() {
        let hopeless = compare_paired(&[2.0, 1.0], &[1.0, 2.0], 0.0).unwrap();
        assert_eq!(hopeless.verdict, Verdict::Undecided);
        assert_eq!(hopeless.rounds_needed, Some(MAX_ROUNDS));
    }

    #[test]
    fn verdicts_are_written_as_in_the_result_format() {
        for verdict in [
            Verdict::Faster,
            Verdict::Slower,
            Verdict::Draw,
            Verdict::Undecided,
        ] {
            let json = serde_json::to_value(verdict).unwrap();
            assert_eq!(json, verdict.to_string());
        }
    }
}
