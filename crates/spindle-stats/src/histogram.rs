//! Latencies counted in buckets of 3 significant figures, so that percentiles and the maximum survive a run of millions
//! of transactions. Clients record into a few that they share; reports merge them.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency told apart, in nanoseconds: one hour. Longer ones are counted as this one.
pub const HIGHEST_LATENCY_NS: u64 = 3_600_000_000_000;

const SIGNIFICANT_FIGURES: u8 = 3;
const NS_PER_US: f64 = 1_000.0;

/// A histogram of latencies from 1 ns to [`HIGHEST_LATENCY_NS`], each known to within 0.1 %: a wrapper of
/// [HdrHistogram](http://hdrhistogram.org). It takes about a quarter of a megabyte whatever it holds, and recording
/// never allocates.
///
/// Percentiles, maximum and mean are those of the buckets, so a histogram restored by
/// [`LatencyHistogram::from_buckets`] answers exactly as the original did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct LatencyHistogram {
    counts: Histogram<u64>,
}

impl From<Vec<(u64, u64)>> for LatencyHistogram {
    fn from(buckets: Vec<(u64, u64)>) -> Self {
        LatencyHistogram::from_buckets(&buckets)
    }
}

impl From<LatencyHistogram> for Vec<(u64, u64)> {
    fn from(histogram: LatencyHistogram) -> Self {
        histogram.to_buckets()
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, HIGHEST_LATENCY_NS, SIGNIFICANT_FIGURES)
            .expect("constant bounds that the histogram allows");
        LatencyHistogram { counts }
    }

    /// Its size in memory, bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.counts.distinct_values() * size_of::<u64>()) as u64
    }

    /// Counts one latency, in nanoseconds; one beyond the highest is counted as the highest.
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.counts.saturating_record(latency_ns);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.counts
            .add(&other.counts)
            .expect("all latency histograms have the same bounds");
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The latency, in microseconds, that `percent` (0 to 100) of all were no longer than, by nearest rank; 0 when
    /// empty. It is the upper edge of its bucket, hence never too short and at most 0.1 % (or 1 ns) too long.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        self.counts.value_at_quantile(percent / 100.0) as f64 / NS_PER_US
    }

    /// Median latency in microseconds; 0 when empty.
    pub fn p50_us(&self) -> f64 {
        self.percentile_us(50.0)
    }

    /// 95th percentile in microseconds; 0 when empty.
    pub fn p95_us(&self) -> f64 {
        self.percentile_us(95.0)
    }

    /// 99th percentile in microseconds; 0 when empty.
    pub fn p99_us(&self) -> f64 {
        self.percentile_us(99.0)
    }

    /// The longest latency in microseconds, as the upper edge of its bucket; 0 when empty.
    pub fn max_us(&self) -> f64 {
        self.counts.max() as f64 / NS_PER_US
    }

    /// Mean latency in microseconds, within 0.1 %; 0 when empty.
    pub fn mean_us(&self) -> f64 {
        self.counts.mean() / NS_PER_US
    }

    /// The buckets that hold anything, shortest first, as (upper edge in nanoseconds, count): what the journal stores.
    pub fn to_buckets(&self) -> Vec<(u64, u64)> {
        self.counts
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect()
    }

    /// The histogram that [`LatencyHistogram::to_buckets`] was made of.
    pub fn from_buckets(buckets: &[(u64, u64)]) -> Self {
        let mut histogram = Self::new();
        for &(latency_ns, count) in buckets {
            histogram.counts.saturating_record_n(latency_ns, count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(latencies_ns: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for latency_ns in latencies_ns {
            histogram.record_ns(latency_ns);
        }
        histogram
    }

    fn assert_within_a_thousandth(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() <= expected / 1_000.0,
            "{actual} is not within 0.1 % of {expected}"
        );
    }

    #[test]
    fn percentiles_are_nearest_ranks_within_three_figures() {
        let histogram = recorded((1..=10_000).map(|i| i * 1_000));
        assert_eq!(histogram.count(), 10_000);
        assert_within_a_thousandth(histogram.p50_us(), 5_000.0);
        assert_within_a_thousandth(histogram.p95_us(), 9_500.0);
        assert_within_a_thousandth(histogram.p99_us(), 9_900.0);
        assert_within_a_thousandth(histogram.max_us(), 10_000.0);
        assert_within_a_thousandth(histogram.mean_us(), 5_000.5);
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let histogram = LatencyHistogram::new();
        assert_eq!(histogram.count(), 0);
        assert_eq!(histogram.p99_us(), 0.0);
        assert_eq!(histogram.max_us(), 0.0);
        assert_eq!(histogram.mean_us(), 0.0);
        assert!(histogram.to_buckets().is_empty());
    }

    #[test]
    fn both_ends_of_the_range_saturate() {
        let histogram = recorded([0, u64::MAX]);
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.p50_us(), 0.0);
        assert_within_a_thousandth(histogram.max_us(), HIGHEST_LATENCY_NS as f64 / 1_000.0);
    }

    #[test]
    fn merging_equals_recording_everything_in_one() {
        let mut merged = recorded((0..500).map(|i| i * 7_919));
        merged.merge(&recorded((0..900).map(|i| i * i * 104_729)));
        let whole = recorded(
            (0..500)
                .map(|i| i * 7_919)
                .chain((0..900).map(|i| i * i * 104_729)),
        );
        assert_eq!(merged, whole);
    }

    #[test]
    fn buckets_restore_the_same_answers() {
        let histogram = recorded((0..2_000).map(|i| i * i * 48_271).chain([u64::MAX]));
        let buckets = histogram.to_buckets();
        assert!(buckets.is_sorted());
        let restored = LatencyHistogram::from_buckets(&buckets);
        assert_eq!(restored.to_buckets(), buckets);
        assert_eq!(restored.count(), histogram.count());
        assert_eq!(restored.mean_us(), histogram.mean_us());
        for percent in [0.0, 1.0, 50.0, 95.0, 99.0, 100.0] {
            assert_eq!(
                restored.percentile_us(percent),
                histogram.percentile_us(percent)
            );
        }
        assert_eq!(restored.max_us(), histogram.max_us());
    }
}
