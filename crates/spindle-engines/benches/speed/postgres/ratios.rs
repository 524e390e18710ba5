//! Ratios of pairs, and how much they tell: their median, and the interval in which the true median lies 95 times of 100.

use crate::figures::median;

pub(super) struct Ratios {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratios {
    /// Of the first of each pair to the second. The interval reaches from one ratio to another, so a few that something disturbed
    /// do not widen it. Fewer than six pairs do not tell; then it is everything.
    pub(super) fn of(pairs: &[(f64, f64)]) -> Ratios {
        let mut sorted: Vec<f64> = pairs.iter().map(|(a, b)| a / b).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = match first_inside(sorted.len()) {
            None => (0.0, f64::INFINITY),
            Some(first) => (sorted[first], sorted[sorted.len() - 1 - first]),
        };
        Ratios {
            median: median(sorted.iter().copied()).expect("there are pairs"),
            low,
            high,
        }
    }

    /// How far the median is from 1.
    pub(super) fn apart_percent(&self) -> f64 {
        apart_percent(self.median)
    }

    /// The end over the beginning of the interval.
    pub(super) fn width(&self) -> f64 {
        self.high / self.low
    }

    /// Whether the interval is nowhere farther from 1.
    pub(super) fn surely_within(&self, percent: f64) -> bool {
        apart_percent(self.low).max(apart_percent(self.high)) <= percent
    }

    /// Whether the interval is everywhere farther from 1.
    pub(super) fn surely_beyond(&self, percent: f64) -> bool {
        let is_on_one_side = self.low > 1.0 || self.high < 1.0;
        is_on_one_side && apart_percent(self.low).min(apart_percent(self.high)) > percent
    }
}

impl std::fmt::Display for Ratios {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ratios { median, low, high } = self;
        write!(formatter, "{median:.3} ({low:.3}-{high:.3})")
    }
}

fn apart_percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0).abs()
}

/// Which of so many sorted values is the first of the interval; as many at the other end are outside, too. As many values lie below the
/// true median as heads come when a coin is thrown that often. So it is the value below which there are so many others that fewer or as
/// many heads come at most once in 40 times (the sign test turned round: Conover, Practical Nonparametric Statistics, 3.2).
fn first_inside(count: usize) -> Option<usize> {
    let throws = 0.5_f64.powi(count as i32);
    // Ways to get just so many heads, and the chance of at most so many.
    let (mut heads, mut ways, mut chance) = (0, 1.0, throws);
    while chance <= 0.025 {
        ways *= (count - heads) as f64 / (heads + 1) as f64;
        heads += 1;
        chance += ways * throws;
    }
    usize::checked_sub(heads, 1)
}
