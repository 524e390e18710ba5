//! Ratios of pairs, and how much they tell: their median, and the interval in which the true median lies 95 times of
//! 100.

use crate::figures::median;

pub(super) struct Ratios {
    median: f64,
    low: f64,
    high: f64,
}

impl Ratios {
    /// Of the first of each pair to the second. The interval reaches from one ratio to another, so a few that something
    /// disturbed do not widen it. Fewer than six pairs do not tell; then it is everything.
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

    /// Whether they may well be equal.
    pub(super) fn hold_1(&self) -> bool {
        (self.low..=self.high).contains(&1.0)
    }
}

impl std::fmt::Display for Ratios {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ratios { median, low, high } = self;
        write!(formatter, "{median:.3} ({low:.3}-{high:.3})")
    }
}

/// Which of this many sorted values is the first of the interval; as many at the other end are outside, too. As many
/// values lie below the true median as heads come when a coin is thrown that often. So it is the value below which
/// there are others enough that fewer or as many heads come at most once in 40 times (the sign test turned round:
/// Conover, Practical Nonparametric Statistics, 3.2).
fn first_inside(count: usize) -> Option<usize> {
    let throws = 0.5_f64.powi(count as i32);
    // Ways to get exactly this many heads, and the chance of at most this many.
    let (mut heads, mut ways, mut chance) = (0, 1.0, throws);
    while chance <= 0.025 {
        ways *= (count - heads) as f64 / (heads + 1) as f64;
        heads += 1;
        chance += ways * throws;
    }
    usize::checked_sub(heads, 1)
}
