//! Times of which some are known to be "at least this long" only: a transaction that had not ended when measuring did,
//! or was given up. Leaving these out would hide the longest waits of all; taking them as they stand would make them
//! too short. The product-limit estimate (E. L. Kaplan and P. Meier, "Nonparametric Estimation from Incomplete
//! Observations", Journal of the American Statistical Association 53, 1958) does neither: until its last moment such a
//! transaction counts among those that had not ended, and from then on it says nothing.

use crate::histogram::LatencyHistogram;

const NS_PER_US: f64 = 1_000.0;

/// The distribution of times of which some are lower bounds. Without any of these it is the histogram's own, to the
/// digit.
#[derive(Debug, Clone)]
pub struct CensoredTimes {
    ended: LatencyHistogram,
    /// Time in nanoseconds, and the share of all that ended by then, of each bucket in which any did; ascending.
    ended_by: Vec<(u64, f64)>,
    longest_us: f64,
    at_least_count: u64,
}

impl CensoredTimes {
    /// Of the times in `ended`, which are whole, and those in `at_least`, which were longer than they are.
    pub fn new(ended: LatencyHistogram, at_least: &LatencyHistogram) -> CensoredTimes {
        CensoredTimes {
            ended_by: product_limit(&ended, at_least),
            longest_us: ended.max_us().max(at_least.max_us()),
            at_least_count: at_least.count(),
            ended,
        }
    }

    /// The time, in microseconds, that `percent` (0 to 100) of all were no longer than. Where too many had not ended to
    /// tell, the longest time seen: the true one is at least that. 0 without any times.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        if self.at_least_count == 0 {
            return self.ended.percentile_us(percent);
        }
        let share = percent / 100.0;
        // Products of shares are rounded.
        let reached = |&&(_, by): &&(u64, f64)| by >= share - 1e-12;
        match self.ended_by.iter().find(reached) {
            Some((time_ns, _)) => *time_ns as f64 / NS_PER_US,
            None => self.longest_us,
        }
    }

    /// The share of all, 0 to 1, that took longer than this; 0 without any times.
    pub fn share_longer_than(&self, time_us: f64) -> f64 {
        let ended = self.ended_by.iter();
        let ended = ended.take_while(|(time_ns, _)| *time_ns as f64 <= time_us * NS_PER_US);
        match (ended.last(), self.ended_by.is_empty()) {
            (Some((_, by)), _) => (1.0 - by).max(0.0),
            (None, false) => 1.0,
            // Nothing ended: all that is known is how long it has taken so far.
            (None, true) => f64::from(u8::from(self.longest_us > time_us)),
        }
    }

    /// The longest of all in microseconds, whether it ended or not; 0 without any.
    pub fn max_us(&self) -> f64 {
        self.longest_us
    }
}

fn product_limit(ended: &LatencyHistogram, at_least: &LatencyHistogram) -> Vec<(u64, f64)> {
    let mut lower_bounds = at_least.to_buckets().into_iter().peekable();
    let mut under_way = ended.count() + at_least.count();
    let mut lasting = 1.0;
    let mut steps = Vec::new();
    for (time_ns, count) in ended.to_buckets() {
        while let Some((_, gone)) = lower_bounds.next_if(|&(bound_ns, _)| bound_ns < time_ns) {
            under_way -= gone;
        }
        lasting *= 1.0 - count as f64 / under_way as f64;
        under_way -= count;
        steps.push((time_ns, 1.0 - lasting));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_longer_times_is_what_the_percentiles_say() {
        let even: Vec<u64> = (1..=100).collect();
        let times = CensoredTimes::new(recorded(&even), &LatencyHistogram::new());
        assert!((times.share_longer_than(50.5) - 0.5).abs() < 1e-9);
        assert_eq!(times.share_longer_than(0.5), 1.0);
        assert_eq!(times.share_longer_than(200.0), 0.0);
        // Half of them had not ended at 30: they are longer than that, and nobody knows by how much.
        let half: Vec<u64> = (1..=50).collect();
        let times = CensoredTimes::new(recorded(&half), &recorded(&[60; 50]));
        assert!((times.share_longer_than(55.0) - 0.5).abs() < 1e-9);
        let none = CensoredTimes::new(LatencyHistogram::new(), &recorded(&[60]));
        assert_eq!(none.share_longer_than(55.0), 1.0);
        let nothing = CensoredTimes::new(LatencyHistogram::new(), &LatencyHistogram::new());
        assert_eq!(nothing.share_longer_than(55.0), 0.0);
    }

    fn recorded(times_us: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        let times = times_us.iter();
        times.for_each(|time_us| histogram.record_ns(time_us * 1_000));
        histogram
    }

    fn assert_close(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() <= 0.001 * expected,
            "{actual} is not {expected}"
        );
    }

    #[test]
    fn what_has_ended_alone_is_the_histogram() {
        let ended = recorded(&[5, 1, 9, 7, 3]);
        let times = CensoredTimes::new(ended.clone(), &LatencyHistogram::new());
        for percent in [0.0, 20.0, 50.0, 95.0, 99.0, 100.0] {
            assert_eq!(times.percentile_us(percent), ended.percentile_us(percent));
        }
        assert_eq!(times.max_us(), ended.max_us());
        let none = CensoredTimes::new(LatencyHistogram::new(), &LatencyHistogram::new());
        assert_eq!((none.percentile_us(99.0), none.max_us()), (0.0, 0.0));
    }

    /// Kaplan and Meier's own example (their section 2): deaths at 0.8, 3.1, 5.4, 9.2 months, losses at 1.0, 2.7, 7.0,
    /// 12.1.
    #[test]
    fn the_example_of_the_paper_comes_out() {
        let times = CensoredTimes::new(
            recorded(&[800, 3_100, 5_400, 9_200]),
            &recorded(&[1_000, 2_700, 7_000, 12_100]),
        );
        let lasting: Vec<f64> = times.ended_by.iter().map(|(_, by)| 1.0 - by).collect();
        let expected = [7.0 / 8.0, 0.7, 0.525, 0.2625];
        for (lasting, expected) in lasting.iter().zip(expected) {
            assert!((lasting - expected).abs() < 1e-12, "{lasting} {expected}");
        }
        assert_close(times.percentile_us(30.0), 3_100.0);
        assert_close(times.percentile_us(50.0), 9_200.0);
        // A quarter had not ended: all that is known is the longest time seen.
        assert_close(times.percentile_us(99.0), 12_100.0);
        assert_close(times.max_us(), 12_100.0);
    }

    #[test]
    fn one_that_never_ends_shows_and_short_ones_cut_off_shorten_nothing() {
        let hundred: Vec<u64> = (1..=98).collect();
        let starved = CensoredTimes::new(recorded(&hundred), &recorded(&[2_000_000, 2_000_000]));
        assert_close(starved.percentile_us(98.0), 98.0);
        assert_close(starved.percentile_us(99.0), 2_000_000.0);
        let cut_off = CensoredTimes::new(recorded(&[1_000; 50]), &recorded(&[1; 50]));
        assert_close(cut_off.percentile_us(50.0), 1_000.0);
    }

    #[test]
    fn nothing_that_ended_leaves_the_lower_bound() {
        let times = CensoredTimes::new(LatencyHistogram::new(), &recorded(&[30, 70]));
        assert_close(times.percentile_us(50.0), 70.0);
    }
}
