//! The mean of a few values and how far it can be trusted: Student's t interval at 95 %. Used for every column of the
//! table that has a "plus or minus", and by the comparison of two cases.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::StatsError;

/// A mean and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// Lower and upper end of the interval that holds the true mean in 95 of 100 such experiments, in the unit of the
    /// values; `None` when there is a single value, whose spread is unknown.
    pub ci95: Option<(f64, f64)>,
}

/// Mean of `values` with the interval `mean -+ t * s / sqrt(n)`: `s` is the sample standard deviation (divisor `n - 1`)
/// and `t` the 97.5 % quantile of Student's t with `n - 1` degrees of freedom (Student, "The probable error of a mean",
/// Biometrika 6, 1908).
///
/// # Errors
/// [`StatsError::NoValues`] without values, [`StatsError::NotFinite`] when one is infinite or not a number.
pub fn estimate_mean(values: &[f64]) -> Result<Estimate, StatsError> {
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(StatsError::NotFinite {
            index,
            value: values[index],
        });
    }
    let moments = Moments::of(values).ok_or(StatsError::NoValues)?;
    Ok(Estimate {
        mean: moments.mean,
        ci95: moments.ci95(),
    })
}

/// Count, mean and spread: all that a t interval needs to know of its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub(crate) count: u32,
    pub(crate) mean: f64,
    /// Sample standard deviation; `None` for a single value.
    pub(crate) standard_deviation: Option<f64>,
}

impl Moments {
    /// `None` when there are no values.
    pub(crate) fn of(values: &[f64]) -> Option<Moments> {
        let count = values.len() as f64;
        // Deviations from the first value, not from zero: equal values then have a spread of exactly zero.
        let origin = *values.first()?;
        let shift = values.iter().map(|value| value - origin).sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - origin - shift).powi(2));
        let standard_deviation =
            (values.len() > 1).then(|| (squares.sum::<f64>() / (count - 1.0)).sqrt());
        Some(Moments {
            count: u32::try_from(values.len()).unwrap_or(u32::MAX),
            mean: origin + shift,
            standard_deviation,
        })
    }

    /// The 95 % interval of the mean; `None` for a single value.
    fn ci95(&self) -> Option<(f64, f64)> {
        self.interval(0.05)
    }

    /// The interval that misses the true mean with this chance; `None` for a single value.
    pub(crate) fn interval(&self, error_chance: f64) -> Option<(f64, f64)> {
        let standard_error = self.standard_deviation? / f64::from(self.count).sqrt();
        let half_width = quantile(self.count, 1.0 - error_chance / 2.0) * standard_error;
        Some((self.mean - half_width, self.mean + half_width))
    }

    /// Two-sided p-value of "the true mean is zero"; `None` for a single value.
    pub(crate) fn p_value(&self) -> Option<f64> {
        let standard_error = self.standard_deviation? / f64::from(self.count).sqrt();
        Some(p_value_of(self.mean, standard_error, self.count))
    }
}

/// Two-sided p-value of "the true value is zero", of an estimate with as many degrees of freedom as the mean of `count`
/// values (2 or more).
pub(crate) fn p_value_of(estimate: f64, standard_error: f64, count: u32) -> f64 {
    if standard_error == 0.0 {
        return if estimate == 0.0 { 1.0 } else { 0.0 };
    }
    let t = (estimate / standard_error).abs();
    // Twice the lower tail, because one minus the upper one loses all figures of a small p-value.
    2.0 * students_t(count).cdf(-t)
}

/// The `share` quantile of Student's t for the mean of `count` values (2 or more).
pub(crate) fn quantile(count: u32, share: f64) -> f64 {
    students_t(count).inverse_cdf(share)
}

/// Student's t for the mean of `count` values (2 or more).
fn students_t(count: u32) -> StudentsT {
    StudentsT::new(0.0, 1.0, f64::from(count - 1)).expect("one degree of freedom or more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_has_a_mean_and_no_interval() {
        let estimate = estimate_mean(&[42.0]).unwrap();
        assert_eq!((estimate.mean, estimate.ci95), (42.0, None));
        assert_eq!(Moments::of(&[42.0]).unwrap().p_value(), None);
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        // 0.1 has no exact binary form: a naive mean of seven of them is not 0.1.
        let estimate = estimate_mean(&[0.1; 7]).unwrap();
        assert_eq!((estimate.mean, estimate.ci95), (0.1, Some((0.1, 0.1))));
        assert_eq!(Moments::of(&[0.1; 7]).unwrap().p_value(), Some(0.0));
        assert_eq!(Moments::of(&[0.0; 7]).unwrap().p_value(), Some(1.0));
    }

    #[test]
    fn nothing_and_no_number_are_refused() {
        assert_eq!(estimate_mean(&[]), Err(StatsError::NoValues));
        assert!(matches!(
            estimate_mean(&[1.0, f64::NAN]),
            Err(StatsError::NotFinite { index: 1, .. })
        ));
        assert!(matches!(
            estimate_mean(&[f64::INFINITY]),
            Err(StatsError::NotFinite { index: 0, .. })
        ));
    }
}
