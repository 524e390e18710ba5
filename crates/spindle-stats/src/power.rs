//! How many rounds find a difference of a given size: said before a run, or after one that found nothing.

use crate::interval::quantile;

/// The most rounds that [`rounds_needed`](crate::Comparison::rounds_needed) looks ahead.
pub const MAX_ROUNDS: u32 = 1_000;

/// The chance of finding the difference.
pub(crate) const POWER: f64 = 0.95;

/// The fewest rounds that find a ratio of `1 + difference` (0.05 for 5 %) in 95 of 100 experiments, when the ratio of
/// two cases spreads by `spread` from round to round (standard deviation of its logarithm: 0.02 for about 2 %). Of a
/// fixed plan; at most [`MAX_ROUNDS`], which stands for "that many or more". `None` unless both are above zero.
///
/// The paired t test at 5 %: the least `n` with `sqrt(n) d / s >= t(0.975) + t(0.95)`, `n - 1` degrees of freedom (W.
/// Guenther, "Sample size formulas for normal theory t tests", The American Statistician 35, 1981, speaks of the same
/// sum and of how little it is off; `tests/reference.rs` compares it with the noncentral t).
pub fn rounds_to_find(difference: f64, spread: f64) -> Option<u32> {
    let logarithm = difference.ln_1p();
    if !(logarithm > 0.0 && spread > 0.0) {
        return None;
    }
    let finds = |rounds: &u32| {
        let wanted = quantile(*rounds, 0.975) + quantile(*rounds, POWER);
        f64::from(*rounds).sqrt() * logarithm / spread >= wanted
    };
    (2..MAX_ROUNDS).find(finds).or(Some(MAX_ROUNDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finer_differences_and_more_noise_take_more_rounds() {
        assert_eq!(rounds_to_find(1.0, 0.01), Some(2));
        let rounds = |difference, spread| rounds_to_find(difference, spread).unwrap();
        assert!(rounds(0.05, 0.03) < rounds(0.05, 0.06));
        assert!(rounds(0.05, 0.03) < rounds(0.02, 0.03));
        assert_eq!(rounds(0.001, 0.5), MAX_ROUNDS);
        assert_eq!(rounds_to_find(0.0, 0.1), None);
        assert_eq!(rounds_to_find(0.1, 0.0), None);
    }
}
