//! Does the throughput of a case move from round to round? A line through the logarithms of its rounds, and the
//! correction for having looked at many cases.

use std::collections::BTreeMap;

use crate::StatsError;
use crate::comparison::is_comparable;
use crate::interval::{p_value_of, quantile};

/// The fewest rounds whose drift is looked at: two degrees of freedom.
const ROUNDS_MIN: usize = 4;

/// A straight line through the rounds of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// From one round to the next the value is multiplied by this.
    pub factor_per_round: f64,
    /// 95 % interval of the factor.
    pub ci95: (f64, f64),
    /// Two-sided p-value of "the factor is 1", of this case alone.
    pub p_value: f64,
}

/// The trend of a case's values (round to value) by least squares on the logarithms, with Student's t interval of the
/// slope for `n - 2` degrees of freedom (any textbook, such as N. Draper and H. Smith, "Applied Regression Analysis",
/// 1998, chapter 1). `None` with fewer than 4 rounds.
///
/// # Errors
/// [`StatsError::NotFinite`] for a value that has no logarithm.
pub fn trend(values: &BTreeMap<u32, f64>) -> Result<Option<Trend>, StatsError> {
    if let Some((index, (_, &value))) = values
        .iter()
        .enumerate()
        .find(|(_, (_, value))| !is_comparable(**value))
    {
        return Err(StatsError::NotFinite { index, value });
    }
    if values.len() < ROUNDS_MIN {
        return Ok(None);
    }
    let count = values.len() as f64;
    let points: Vec<(f64, f64)> = values
        .iter()
        .map(|(&round, value)| (f64::from(round), value.ln()))
        .collect();
    let middle = |axis: fn(&(f64, f64)) -> f64| points.iter().map(axis).sum::<f64>() / count;
    let (x_mean, y_mean) = (middle(|point| point.0), middle(|point| point.1));
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        points
            .iter()
            .map(|&(x, y)| term(x - x_mean, y - y_mean))
            .sum()
    };
    let x_squares = sum(&|x, _| x * x);
    let slope = sum(&|x, y| x * y) / x_squares;
    let residual_squares = sum(&|x, y| (y - slope * x).powi(2));
    let standard_error = (residual_squares / (count - 2.0) / x_squares).sqrt();
    // `quantile` and `p_value_of` speak of a mean of this many values, which has one degree of freedom less.
    let as_mean_of = values.len() as u32 - 1;
    let half_width = quantile(as_mean_of, 0.975) * standard_error;
    Ok(Some(Trend {
        factor_per_round: slope.exp(),
        ci95: ((slope - half_width).exp(), (slope + half_width).exp()),
        p_value: p_value_of(slope, standard_error, as_mean_of),
    }))
}

/// P-values of several tests, each raised so that the chance of any false finding among all of them is at most the
/// level it is held against (S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
/// of Statistics 6, 1979). In the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut greatest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let tests_left = (p_values.len() - rank) as f64;
        greatest = greatest.max(tests_left * p_values[index]).min(1.0);
        adjusted[index] = greatest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64]) -> BTreeMap<u32, f64> {
        (1..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn a_steady_loss_is_a_factor_below_one() {
        let trend = trend(&rounds(&[100.0, 90.0, 81.0, 72.9, 65.61]))
            .unwrap()
            .unwrap();
        assert!((trend.factor_per_round - 0.9).abs() < 1e-9);
        assert!(trend.p_value < 1e-9);
    }

    #[test]
    fn a_missing_round_keeps_its_place() {
        let mut values = rounds(&[100.0, 90.0, 81.0, 72.9, 65.61]);
        values.remove(&3);
        let trend = trend(&values).unwrap().unwrap();
        assert!((trend.factor_per_round - 0.9).abs() < 1e-9);
    }

    #[test]
    fn three_rounds_say_nothing_and_equal_ones_say_no() {
        assert_eq!(trend(&rounds(&[1.0, 2.0, 3.0])), Ok(None));
        assert_eq!(trend(&rounds(&[5.0; 6])).unwrap().unwrap().p_value, 1.0);
        assert!(trend(&rounds(&[1.0, 0.0])).is_err());
    }

    #[test]
    fn the_correction_never_lowers_and_keeps_the_order() {
        let adjusted = holm(&[0.04, 0.01, 0.03, 0.5]);
        let expected = [0.09, 0.04, 0.09, 0.5];
        for (adjusted, expected) in adjusted.iter().zip(expected) {
            assert!((adjusted - expected).abs() < 1e-12);
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }
}
