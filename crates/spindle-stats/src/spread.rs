//! How far the log ratio of a pair of cases spreads, and how wide its interval is when the intervals of all pairs are
//! to hold together.
//!
//! **Variance.** Three rounds tell the spread of one pair badly, and all pairs tell it well if they are alike. So the
//! variance of a pair is *moderated* (G. Smyth, "Linear models and empirical Bayes methods", Statistical Applications
//! in Genetics 3, 2004): its own weighs as its rounds less one, the mean of all pairs as [`PRIOR_ROUNDS`] more. That
//! mean is cut off where the pair's own rounds rule it out (the upper 99 % limit), or else one unsteady case would hide
//! what two steady ones show.
//!
//! **Critical value.** Student's t of the pair's rounds, times a factor that depends on the number of cases and rounds
//! and on the chance of error ([`widening`]). It was found by simulation of the worst of some 20 patterns of noise:
//! cases all alike, some of them 2, 4, 10 or infinitely many times as noisy as the rest. Two cases are one pair: the
//! factor is 1, the variance its own, and the interval the plain paired one.

mod widening;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::interval::{Moments, quantile};
use widening::{CASES, CHANCES, ROUNDS, WIDENING};

/// The fewest common rounds of two cases of which one is called faster or slower, or both a draw. Of two rounds the
/// interval holds what it promises for normal noise only; machines have two speeds, and two rounds then agree by luck
/// too often (`tests/all/few_rounds.rs`).
pub const ROUNDS_TO_JUDGE: u32 = 3;

/// How many rounds the mean variance of all pairs weighs.
const PRIOR_ROUNDS: f64 = 2.0;

/// The chance that a pair's true variance lies above its upper limit.
const LIMIT_CHANCE: f64 = 0.01;

/// How far the log ratio of a pair spreads, for intervals that hold for all pairs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    /// Standard deviation from round to round, moderated.
    pub(crate) standard_deviation: f64,
    rounds: u32,
    cases: usize,
}

impl Spread {
    /// That of a pair alone; `None` with a single round.
    pub(crate) fn alone(moments: &Moments) -> Option<Spread> {
        Spread::of(moments, None, 2)
    }

    pub(crate) fn of(
        moments: &Moments,
        mean_variance: Option<f64>,
        cases: usize,
    ) -> Option<Spread> {
        let own = moments.standard_deviation?;
        let standard_deviation = match mean_variance {
            Some(mean) if cases > 2 => moderated(own.powi(2), mean, moments.count).sqrt(),
            _ => own,
        };
        Some(Spread {
            standard_deviation,
            rounds: moments.count,
            cases,
        })
    }

    /// Half the width of the interval of the mean log ratio.
    pub(crate) fn half_width(&self, error_chance: f64) -> f64 {
        self.half_width_after(self.rounds, error_chance)
    }

    /// The same after another number of rounds (2 or more) that spread as these do.
    pub(crate) fn half_width_after(&self, rounds: u32, error_chance: f64) -> f64 {
        critical_value(self.cases, rounds, error_chance) * self.standard_error_after(rounds)
    }

    /// Standard error of the mean log ratio after this many rounds.
    pub(crate) fn standard_error_after(&self, rounds: u32) -> f64 {
        self.standard_deviation / f64::from(rounds).sqrt()
    }

    pub(crate) fn interval(&self, mean: f64, error_chance: f64) -> (f64, f64) {
        let half_width = self.half_width(error_chance);
        (mean - half_width, mean + half_width)
    }

    /// Standard error that, taken with Student's t of the pair alone, is as strict as the interval of all pairs.
    pub(crate) fn widened_standard_error(&self, error_chance: f64) -> f64 {
        let widening = widening(self.cases, self.rounds, error_chance);
        widening * self.standard_error_after(self.rounds)
    }
}

/// The variance of a pair of this many rounds (2 or more), from its own and the mean of all pairs.
fn moderated(own: f64, mean: f64, rounds: u32) -> f64 {
    let freedom = f64::from(rounds - 1);
    let chi_squared = ChiSquared::new(freedom).expect("one degree of freedom or more");
    let upper_limit = own * freedom / chi_squared.inverse_cdf(LIMIT_CHANCE);
    (freedom * own + PRIOR_ROUNDS * mean.min(upper_limit)) / (freedom + PRIOR_ROUNDS)
}

/// What a pair's standard error is multiplied by for an interval that holds for all pairs of this many cases.
fn critical_value(cases: usize, rounds: u32, error_chance: f64) -> f64 {
    quantile(rounds, 1.0 - error_chance / 2.0) * widening(cases, rounds, error_chance)
}

/// How much wider an interval is that holds for all pairs, by the table: between its numbers of cases and its chances
/// of error in their logarithms, between its numbers of rounds in their inverse. Beyond the table's last number of
/// cases it continues as between the last two, beyond the other ends it stays.
fn widening(cases: usize, rounds: u32, error_chance: f64) -> f64 {
    let Some(beyond_two) = cases.checked_sub(2).filter(|beyond| *beyond > 0) else {
        return 1.0;
    };
    let log_chances = CHANCES.map(|chance| -chance.ln());
    let at_chance = place(&log_chances, -error_chance.ln()).within_table();
    let at_rounds = place(
        &ROUNDS.map(|rounds| -1.0 / f64::from(rounds)),
        -1.0 / f64::from(rounds),
    );
    let at_rounds = at_rounds.within_table();
    let of_cases = |row: usize| {
        let row = &WIDENING[row];
        at_rounds.between(|column| at_chance.between(|layer| row[column][layer]))
    };
    let log_cases = CASES.map(|cases| f64::from(cases).ln());
    place(&log_cases, ((beyond_two + 2) as f64).ln()).between(of_cases)
}

/// A place in an ascending list: between `index` and the next, so far on.
#[derive(Debug, Clone, Copy)]
struct Position {
    index: usize,
    share: f64,
}

impl Position {
    fn within_table(self) -> Position {
        let share = self.share.clamp(0.0, 1.0);
        Position { share, ..self }
    }

    fn between(&self, value: impl Fn(usize) -> f64) -> f64 {
        (1.0 - self.share) * value(self.index) + self.share * value(self.index + 1)
    }
}

fn place(ascending: &[f64], value: f64) -> Position {
    let next = ascending.partition_point(|entry| *entry <= value);
    let index = next.clamp(1, ascending.len() - 1) - 1;
    let (low, high) = (ascending[index], ascending[index + 1]);
    Position {
        index,
        share: (value - low) / (high - low),
    }
}
