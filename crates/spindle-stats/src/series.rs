//! Throughput, or any other figure, sampled at equal steps of time during one trial. The runner fills a series, the
//! report draws it with its moving average.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Equally spaced samples. Sample `i` covers the time from `i * step` to `(i + 1) * step` after the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeSeries {
    step: Duration,
    samples: Vec<f64>,
}

impl TimeSeries {
    /// A series without samples; `step` is the time that each sample will cover.
    pub fn new(step: Duration) -> Self {
        TimeSeries {
            step,
            samples: Vec::new(),
        }
    }

    /// A series of samples taken already.
    pub fn from_samples(step: Duration, samples: Vec<f64>) -> Self {
        TimeSeries { step, samples }
    }

    /// Appends the sample of the next step, in whatever unit the series has.
    pub fn push(&mut self, sample: f64) {
        self.samples.push(sample);
    }

    /// The time that one sample covers.
    pub fn step(&self) -> Duration {
        self.step
    }

    /// The samples in the order of time.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// Trailing moving average: sample `i` becomes the mean of itself and the `window - 1` samples before it. The first
    /// samples average what there is, so the result is as long as the series and starts at its first sample.
    pub fn moving_average(&self, window: NonZeroUsize) -> TimeSeries {
        let averages = (0..self.samples.len()).map(|last| {
            let first = (last + 1).saturating_sub(window.get());
            // Summed afresh for each sample: a running sum would carry its rounding errors to the end.
            mean_of(&self.samples[first..=last])
        });
        TimeSeries {
            step: self.step,
            samples: averages.collect(),
        }
    }

    /// Mean of all samples; `None` when there are none.
    pub fn mean(&self) -> Option<f64> {
        (!self.samples.is_empty()).then(|| mean_of(&self.samples))
    }

    /// The greatest sample, which is the best one when more is better; `None` when there are none.
    pub fn best(&self) -> Option<f64> {
        self.samples.iter().copied().reduce(f64::max)
    }
}

fn mean_of(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[f64]) -> TimeSeries {
        TimeSeries::from_samples(Duration::from_secs(1), samples.to_vec())
    }

    fn window(samples: usize) -> NonZeroUsize {
        NonZeroUsize::new(samples).expect("windows in these tests are not empty")
    }

    #[test]
    fn the_moving_average_looks_back_only_and_starts_with_what_there_is() {
        let averaged = series(&[2.0, 4.0, 9.0, 0.0, 3.0]).moving_average(window(3));
        assert_eq!(averaged.samples(), [2.0, 3.0, 5.0, 13.0 / 3.0, 4.0]);
        assert_eq!(averaged.step(), Duration::from_secs(1));
    }

    #[test]
    fn a_window_of_one_changes_nothing_and_a_long_one_averages_all() {
        let samples = series(&[1.0, 2.0, 6.0]);
        assert_eq!(samples.moving_average(window(1)), samples);
        assert_eq!(
            samples.moving_average(window(100)).samples(),
            [1.0, 1.5, 3.0]
        );
    }

    #[test]
    fn an_earlier_spike_leaves_no_rounding_error_behind() {
        let averaged = series(&[1e20, 1.0, 1.0, 1.0]).moving_average(window(2));
        assert_eq!(averaged.samples()[2..], [1.0, 1.0]);
    }

    #[test]
    fn mean_and_best_of_all_samples() {
        let mut samples = TimeSeries::new(Duration::from_millis(500));
        assert_eq!((samples.mean(), samples.best()), (None, None));
        for sample in [3.0, 8.0, 1.0] {
            samples.push(sample);
        }
        assert_eq!((samples.mean(), samples.best()), (Some(4.0), Some(8.0)));
    }
}
