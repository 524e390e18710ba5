//! Load that arrives at a fixed rate, whatever the database makes of it: when each transaction is to begin. One
//! schedule serves all clients; any free client takes the next arrival, so clients are the servers of one queue, first
//! come, first served. A time counted from the intended begin holds the wait for a free client, too: a database that
//! stalls is charged with all that arrived meanwhile, not just with what it happened to be working on (G. Tene calls
//! the mistake of leaving that out coordinated omission).

use std::ops::RangeInclusive;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_text::rate::AskedRate;
use spindle_text::{settings, words};

words! {
    /// The times between transactions that arrive at a rate.
    pub enum Spacing {
        /// As of independent users: exponentially distributed, a Poisson process.
        Poisson = "poisson",
        /// All alike.
        Even = "even",
    }
}

/// Rates that may be asked for, transactions per second.
const RATE_PER_S: RangeInclusive<f64> = 0.01..=10_000_000.0;

settings! {
    /// What is said of how transactions come in time.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ArrivalSettings {
        /// Transactions begin at this rate, whatever the database makes of them (an open loop), see below. Each rate of
        /// a list is a load level; per cents are of what the slowest layout can do. `"auto"`: the highest rate that
        /// keeps `p99` is searched.
        rate: Option<AskedRate> = rates("rate", RATE_PER_S),
        /// With `rate = "auto"`: the promise; 99 of 100 transactions take no longer from their intended begin.
        p99_ms: Option<u64> = optional_duration_ms("p99", "none", 1..=3_600_000),
        /// With `rate`: times between transactions as of independent users, or all alike. They follow from `seed`, and
        /// are the same for every layout of a round.
        spacing: Option<Spacing> = optional_word("arrivals", "Poisson, where `rate` is set"),
    }
}

/// An open loop: load that comes from outside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Transactions that are to begin each second, 0.01 to 10,000,000.
    pub rate_per_s: f64,
    /// The times between them.
    pub spacing: Spacing,
}

impl Arrivals {
    /// Each as soon as a client is free.
    pub const AT_ONCE: Arrivals = Arrivals {
        rate_per_s: f64::INFINITY,
        spacing: Spacing::Poisson,
    };
}

/// The times at which transactions are to begin, from the first on.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    began_ns: u64,
    rng: Xoshiro256PlusPlus,
    /// Even ones come earlier by this share of the time between two of them: 0 to 1, without 1.
    ahead: f64,
    taken: u64,
    /// When the next is due, nanoseconds since the beginning. Not rounded, so that the rate does not drift.
    next_ns: f64,
}

impl Schedule {
    /// A schedule that begins at `began_ns`; everything in it follows from `rng`. Even arrivals come earlier by a share
    /// of the time between two of them, `ahead`, 0 to 1 without 1: schedules side by side would else come in bursts.
    pub fn new(arrivals: Arrivals, began_ns: u64, rng: Xoshiro256PlusPlus, ahead: f64) -> Schedule {
        let mut schedule = Schedule {
            arrivals,
            began_ns,
            rng,
            ahead,
            taken: 0,
            next_ns: 0.0,
        };
        schedule.draw_next();
        schedule
    }

    /// Takes the next arrival: when it is due.
    pub fn take(&mut self) -> u64 {
        let due_ns = self.next_due_ns();
        self.taken += 1;
        self.draw_next();
        due_ns
    }

    /// How many are due at `now_ns` and not taken yet.
    pub fn backlog(&self, now_ns: u64) -> u64 {
        self.waiting_ns(now_ns).count() as u64
    }

    /// How long each that is due at `now_ns` and not taken yet has waited.
    pub fn waiting_ns(&self, now_ns: u64) -> impl Iterator<Item = u64> + use<> {
        let mut ahead = self.clone();
        std::iter::from_fn(move || {
            let due_ns = ahead.next_due_ns();
            (due_ns <= now_ns).then(|| now_ns - ahead.take())
        })
    }

    fn next_due_ns(&self) -> u64 {
        self.began_ns + self.next_ns as u64
    }

    fn draw_next(&mut self) {
        let mean_ns = 1e9 / self.arrivals.rate_per_s;
        self.next_ns = match self.arrivals.spacing {
            Spacing::Even => ((self.taken + 1) as f64 - self.ahead) * mean_ns,
            Spacing::Poisson => {
                // Below 1, so that its rest has a logarithm.
                let uniform = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                self.next_ns - (1.0 - uniform).ln() * mean_ns
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_io::env::seeded_rng;

    fn schedule(spacing: Spacing) -> Schedule {
        let arrivals = Arrivals {
            rate_per_s: 300.0,
            spacing,
        };
        Schedule::new(arrivals, 1_000, seeded_rng(1, 2), 0.0)
    }

    #[test]
    fn even_arrivals_do_not_drift() {
        let mut even = schedule(Spacing::Even);
        assert_eq!(even.take(), 1_000 + 3_333_333);
        let millionth = (2..=1_000_000).map(|_| even.take()).last();
        assert_eq!(millionth, Some(1_000 + 3_333_333_333_333));
    }

    #[test]
    fn even_arrivals_of_parts_come_one_after_the_other() {
        let part = |ahead| {
            let arrivals = Arrivals {
                rate_per_s: 100.0,
                spacing: Spacing::Even,
            };
            let mut part = Schedule::new(arrivals, 0, seeded_rng(1, 2), ahead);
            (0..10).map(move |_| part.take())
        };
        let mut times: Vec<u64> = [0.0, 0.25, 0.5, 0.75].into_iter().flat_map(part).collect();
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(gaps.collect::<Vec<_>>(), [2_500_000; 39]);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_independent_users() {
        const COUNT: usize = 100_000;
        let mut poisson = schedule(Spacing::Poisson);
        let times: Vec<u64> = (0..COUNT).map(|_| poisson.take()).collect();
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 * 300.0 / 1e9)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|gap| (gap - mean).powi(2));
        let variance = squares.sum::<f64>() / gaps.len() as f64;
        // Both are 1, with standard errors of 0.003 and 0.009.
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!((variance - 1.0).abs() < 0.045, "{variance}");
        let mut again = schedule(Spacing::Poisson);
        assert_eq!(again.take(), times[0], "one seed is one schedule");
    }

    #[test]
    fn the_backlog_is_what_is_due_and_not_taken() {
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let mut all = schedule(spacing);
            let times: Vec<u64> = (0..100).map(|_| all.take()).collect();
            let mut some = schedule(spacing);
            assert_eq!(some.backlog(times[0] - 1), 0);
            assert_eq!(some.backlog(times[49]), 50);
            let waited: u64 = times[..50].iter().map(|time| times[49] - time).sum();
            assert_eq!(some.waiting_ns(times[49]).sum::<u64>(), waited);
            (0..20).for_each(|_| {
                some.take();
            });
            assert_eq!(some.backlog(times[49]), 30);
            assert_eq!(some.backlog(times[10]), 0);
        }
    }
}
