//! What a comparison has to meet before something is said: how small a difference counts as none, and how sure an
//! interval must be, given how often the rounds were looked at on the way.

/// From this many transactions in a trial on, intervals of its rounds are trusted: their number is then known to 18 %,
/// and its logarithm is about normal, as intervals assume.
pub const COUNTED_MIN: f64 = 30.0;

/// The standard of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standard {
    /// Two cases are a draw when their ratio surely lies within this fraction of 1, 0 to below 1; 0.03 for 3 %.
    pub margin: f64,
    /// When the rounds were looked at.
    pub looks: Looks,
    /// By how much two equal things differ on this machine, as a fraction; 0 when that is not known. No case is faster
    /// or slower by less.
    pub noise_floor: f64,
    /// How many tables of cases the experiment has, 1 or more: one for each workload and load level. The chance of
    /// error is theirs together.
    pub tables: u32,
}

impl Standard {
    /// The standard of a plan with a fixed number of rounds.
    pub const fn fixed(margin: f64) -> Standard {
        Standard {
            margin,
            looks: Looks::Once,
            noise_floor: 0.0,
            tables: 1,
        }
    }

    /// The chance that any interval of one table misses its true ratio: the experiment's, shared out among its tables.
    pub fn error_chance(&self) -> f64 {
        self.looks.error_chance() / f64::from(self.tables.max(1))
    }

    /// By how much two equal cases may differ that counted this many transactions in a trial, as a fraction: twice the
    /// standard deviation of the logarithm of their ratio, if each came by chance (Poisson: `1/sqrt(n)` of `n`). 0 from
    /// [`COUNTED_MIN`] on, where the spread of rounds tells it. With fewer, counts are so coarse that all rounds may
    /// agree by their length alone, and no interval tells.
    pub fn counting_floor(one: Option<f64>, other: Option<f64>) -> f64 {
        let counts = [one, other].map(|count| count.unwrap_or(f64::INFINITY).max(1.0));
        if counts.iter().all(|count| *count >= COUNTED_MIN) {
            return 0.0;
        }
        let variance: f64 = counts.iter().map(|count| 1.0 / count).sum();
        (2.0 * variance.sqrt()).exp_m1()
    }

    /// This standard for two cases that counted this many transactions in a trial.
    pub(crate) fn for_counts(self, one: Option<f64>, other: Option<f64>) -> Standard {
        let floor = Standard::counting_floor(one, other);
        Standard {
            noise_floor: self.noise_floor.max(floor),
            ..self
        }
    }

    /// Whether a ratio lies nearer to 1 than the machine's own noise.
    pub(crate) fn is_noise(&self, ratio: f64) -> bool {
        ratio.ln().abs() < self.noise_floor.ln_1p()
    }
}

/// When it was looked whether the rounds suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// When all rounds of a fixed number were done.
    Once,
    /// After every round or run, to stop as soon as [`is_settled`](crate::Family::is_settled) says so.
    EveryRound,
}

impl Looks {
    /// The chance that any interval of an experiment misses its true value, for which intervals are made, so that one
    /// does in 5 of 100 experiments at most. A run that may stop after any round stops more often when the spread
    /// came out small by luck; a little less is allowed then (why so little less: `sequential`).
    pub const fn error_chance(self) -> f64 {
        match self {
            Looks::Once => 0.05,
            Looks::EveryRound => 0.03,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_transactions_decide_large_differences_only() {
        let floor = |one, other| Standard::counting_floor(Some(one), Some(other));
        assert!(floor(5.0, 6.0) > 2.0 && floor(29.0, 29.0) > 0.5);
        assert!((1.0..2.0).contains(&floor(5.0, 500.0)));
        assert_eq!(floor(30.0, 30.0), 0.0);
        assert_eq!(Standard::counting_floor(None, None), 0.0);
        assert!(Standard::counting_floor(Some(4.0), None) > 1.0);
        let standard = Standard::fixed(0.03).for_counts(Some(5.0), Some(6.0));
        assert!(standard.is_noise(1.2) && !standard.is_noise(5.0));
    }
}
