//! Two runs beside each other, whose rounds have nothing in common: Welch's interval of the ratio of their values.
//!
//! Rounds of one run share whatever the machine was doing and are compared in pairs ([`crate::compare_paired`]). Rounds
//! of two runs share nothing, so each run's own spread counts, and neither is taken to be that of the other.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::comparison::is_comparable;
use crate::interval::Moments;
use crate::{Side, StatsError};

/// The outcome of comparing values of two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnpairedRatio {
    /// Geometric mean of `a` over that of `b`; above 1 when `a` has the greater values.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` when either has fewer than two values, whose spread is unknown.
    pub ci95: Option<(f64, f64)>,
    /// Two-sided p-value of "the ratio is 1"; `None` when there is no interval.
    pub p_value: Option<f64>,
}

/// Compares the values of two runs, as many of each as there are.
///
/// With means `ma`, `mb`, variances `va`, `vb` and counts `na`, `nb` of the logarithms, the interval is the exponential
/// of `ma - mb -+ t * sqrt(va / na + vb / nb)`. `t` is the 97.5 % quantile of Student's t with the degrees of freedom
/// `(va / na + vb / nb)^2 / ((va / na)^2 / (na - 1) + (vb / nb)^2 / (nb - 1))` (B. L. Welch, "The generalization of
/// 'Student's' problem when several different population variances are involved", Biometrika 34, 1947; F. E.
/// Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946).
///
/// The interval knows the noise within each run. What changed between them (another day, another state of the machine)
/// is part of the ratio.
///
/// # Errors
/// [`StatsError::NoValues`] when either is empty, [`StatsError::NotPositive`] for a value that is zero, negative,
/// infinite or not a number.
pub fn compare_unpaired(a: &[f64], b: &[f64]) -> Result<UnpairedRatio, StatsError> {
    compare_unpaired_among(a, b, 1)
}

/// The same as one of several comparisons whose intervals hold together in 95 of 100 cases: each is made for its share
/// of the 5 % (Bonferroni). The p-value is raised to match.
///
/// # Errors
/// Those of [`compare_unpaired`].
pub fn compare_unpaired_among(
    a: &[f64],
    b: &[f64],
    comparisons: u32,
) -> Result<UnpairedRatio, StatsError> {
    let (a, b) = (log_moments(a, Side::A)?, log_moments(b, Side::B)?);
    Ok(ratio_of(a.mean - b.mean, spread(&a, &b), comparisons))
}

/// The ratio whose logarithm is `difference`, known as well as `spread` says, as one of this many `comparisons`.
pub(crate) fn ratio_of(
    difference: f64,
    spread: Option<(f64, Option<StudentsT>)>,
    comparisons: u32,
) -> UnpairedRatio {
    let comparisons = f64::from(comparisons.max(1));
    let upper_share = 1.0 - 0.05 / comparisons / 2.0;
    let interval = spread.map(|(standard_error, students_t)| {
        let half_width = match students_t {
            Some(t) => t.inverse_cdf(upper_share) * standard_error,
            None => 0.0,
        };
        (
            (difference - half_width).exp(),
            (difference + half_width).exp(),
        )
    });
    let p_value = spread.map(|(standard_error, students_t)| match students_t {
        // Twice the lower tail, because one minus the upper one loses all figures of a small p-value.
        Some(t) => 2.0 * t.cdf(-(difference / standard_error).abs()),
        None if difference == 0.0 => 1.0,
        None => 0.0,
    });
    UnpairedRatio {
        ratio: difference.exp(),
        ci95: interval,
        p_value: p_value.map(|p_value| (p_value * comparisons).min(1.0)),
    }
}

pub(crate) fn log_moments(values: &[f64], side: Side) -> Result<Moments, StatsError> {
    if let Some(index) = values.iter().position(|&value| !is_comparable(value)) {
        return Err(StatsError::NotPositive {
            side,
            index,
            value: values[index],
        });
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    Moments::of(&logs).ok_or(StatsError::NoValues)
}

/// Standard error of the difference of two means, and the distribution of the difference in units of it: `None` where
/// all values of each side are equal. Nothing when either side has a single value.
pub(crate) fn spread(a: &Moments, b: &Moments) -> Option<(f64, Option<StudentsT>)> {
    let part = |moments: &Moments| {
        let standard_deviation = moments.standard_deviation?;
        Some(standard_deviation.powi(2) / f64::from(moments.count))
    };
    let (part_a, part_b) = (part(a)?, part(b)?);
    let variance = part_a + part_b;
    let of_one = |part: f64, moments: &Moments| part.powi(2) / f64::from(moments.count - 1);
    let freedom = variance.powi(2) / (of_one(part_a, a) + of_one(part_b, b));
    // Without any spread, or with one so small that its square is zero, there are no degrees of freedom to speak of.
    Some((variance.sqrt(), StudentsT::new(0.0, 1.0, freedom).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapping_the_runs_inverts_the_ratio() {
        let (a, b) = (
            [1_200.0, 1_150.0, 1_260.0],
            [1_000.0, 1_010.0, 985.0, 990.0],
        );
        let forth = compare_unpaired(&a, &b).unwrap();
        let back = compare_unpaired(&b, &a).unwrap();
        assert!((forth.ratio * back.ratio - 1.0).abs() < 1e-12);
        let ((low, _), (_, high)) = (forth.ci95.unwrap(), back.ci95.unwrap());
        assert!((low * high - 1.0).abs() < 1e-12);
        assert!((forth.p_value.unwrap() - back.p_value.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn a_single_value_has_a_ratio_and_no_interval() {
        let single = compare_unpaired(&[300.0], &[100.0, 101.0]).unwrap();
        assert!((single.ratio - 300.0 / (100.0_f64 * 101.0).sqrt()).abs() < 1e-12);
        assert_eq!((single.ci95, single.p_value), (None, None));
    }

    #[test]
    fn values_without_spread_have_an_interval_of_no_width() {
        let equal = compare_unpaired(&[5.0; 3], &[5.0; 2]).unwrap();
        assert_eq!((equal.ci95, equal.p_value), (Some((1.0, 1.0)), Some(1.0)));
        let double = compare_unpaired(&[10.0; 3], &[5.0; 2]).unwrap();
        assert_eq!(double.ci95, Some((double.ratio, double.ratio)));
        assert_eq!(double.p_value, Some(0.0));
    }

    #[test]
    fn values_without_a_ratio_are_refused() {
        assert_eq!(compare_unpaired(&[], &[1.0]), Err(StatsError::NoValues));
        assert_eq!(compare_unpaired(&[1.0], &[]), Err(StatsError::NoValues));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                compare_unpaired(&[1.0], &[1.0, bad]),
                Err(StatsError::NotPositive {
                    side: Side::B,
                    index: 1,
                    ..
                })
            ));
        }
    }
}
