//! Has a trial come to a steady state? Asked of its throughput while it warms up, again and again as the series grows.
//!
//! The method is **MSER-5** (K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
//! Simulation 69, 1997; K. P. White, M. J. Cobb and S. C. Spratt, "A comparison of five steady-state truncation
//! heuristics for simulation", Winter Simulation Conference 2000): average the samples by fives, and leave out as many
//! at the beginning as make the standard error of the mean of the rest smallest. Of 44 methods it was the one
//! recommended for automation (K. Hoad, S. Robinson and R. Davies, "Automating warm-up length estimation", Journal of
//! the Operational Research Society 61, 2010), and for the reasons that matter here: it has nothing to tune, it needs
//! no estimate of the correlation of neighbouring samples, which multiplies all its standard errors alike, and it
//! assumes no shape of the warm-up. A machine that goes back and forth between two speeds is steady by it as soon as
//! the beginning of the series has seen both about as the rest has. A test of trend or of equal means calls it unsteady
//! forever.
//!
//! A series is steady when what is to be left out ends in its first quarter. (The sources ask for the first half, of a
//! series that is looked at once. Here each look is one more chance to be wrong, and the stricter rule costs steady
//! series next to nothing: `tests/steady_state.rs`.) While a throughput still rises or falls, leaving out more is
//! always better, and the cut lies as late as it may. What changes so slowly that noise hides it in a series as short
//! as this goes unseen.

/// Samples that are averaged to one value.
const BATCH: usize = 5;
/// Values from which on something is said.
const BATCHES_MIN: usize = 20;
/// The cut leaves at least this many values, as the standard error of fewer is often small by chance.
const REST_MIN: usize = 5;

/// The fewest samples of which anything can be said.
pub const STEADY_SAMPLES_MIN: usize = BATCH * BATCHES_MIN;

/// How many samples at the beginning belong to the warm-up, when the rest is a steady state; `None` when the series has
/// not come to one yet, or is shorter than [`STEADY_SAMPLES_MIN`]. Samples are equally spaced.
pub fn steady_after(samples: &[f64]) -> Option<usize> {
    if samples.len() < STEADY_SAMPLES_MIN {
        return None;
    }
    let batches: Vec<f64> = samples
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    let cut = best_cut(&batches);
    (4 * cut <= batches.len()).then_some(cut * BATCH)
}

/// The number of values to leave out at the beginning; the least of several that are as good. White's statistic is the
/// sum of the squared deviations of the rest over the square of its count.
fn best_cut(values: &[f64]) -> usize {
    let (mut cut, mut least) = (0, f64::INFINITY);
    // From the end, so that each value is looked at once (B. Welford, "Note on a method for calculating corrected sums
    // of squares and products", Technometrics 4, 1962).
    let (mut mean, mut squares) = (0.0, 0.0);
    for (first, value) in values.iter().enumerate().rev() {
        let count = values.len() - first;
        let deviation = value - mean;
        mean += deviation / count as f64;
        squares += deviation * (value - mean);
        let error = squares / (count * count) as f64;
        if count >= REST_MIN && error <= least {
            (cut, least) = (first, error);
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Disturbances without a pattern, between -1 and 1.
    fn disturbance(index: usize) -> f64 {
        let mixed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)) % 2001) as f64 / 1000.0 - 1.0
    }

    fn series(length: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..length)
            .map(|index| level(index) + 50.0 * disturbance(index))
            .collect()
    }

    #[test]
    fn a_constant_is_steady_from_its_first_sample() {
        assert_eq!(steady_after(&[7.0; STEADY_SAMPLES_MIN]), Some(0));
        assert_eq!(steady_after(&[7.0; STEADY_SAMPLES_MIN - 1]), None);
    }

    #[test]
    fn a_slow_beginning_is_cut_off() {
        let slow = series(300, |index| if index < 60 { 300.0 } else { 1_000.0 });
        assert_eq!(steady_after(&slow), Some(60));
        assert_eq!(steady_after(&slow[..110]), None);
    }

    #[test]
    fn what_still_rises_or_falls_is_not_steady() {
        for slope in [5.0, -5.0] {
            let moving = series(300, |index| 3_000.0 + slope * index as f64);
            assert_eq!(steady_after(&moving), None);
        }
    }

    #[test]
    fn an_approach_is_over_when_noise_hides_the_rest() {
        let approach = |length| {
            series(length, |index| {
                1_000.0 - 800.0 * (-(index as f64) / 40.0).exp()
            })
        };
        assert_eq!(steady_after(&approach(120)), None);
        assert!(steady_after(&approach(800)).is_some());
    }
}
