//! The cases of an experiment beside each other, every pair at once: the one place from which the table of verdicts,
//! the table of all pairs, the ranking and the headline take their intervals.
//!
//! Of six equal cases the data pick the one that looks best. An interval that holds the truth in 95 of 100 pairs,
//! chosen beforehand, excludes 1 for some pair of the six in a third of all experiments. The intervals here hold
//! *together*: in 95 of 100 experiments every one of them holds the truth, so in at most 5 is any pair called different
//! that is not, wherever a reader looks. Comparisons with the best alone (J. Hsu, "Multiple Comparisons", 1996) are
//! narrower, but of equal cases they call some "not the best", which is true and reads like a difference.
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

use std::collections::BTreeMap;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::comparison::{Comparison, check_margin, compare_spread, is_comparable};
use crate::interval::{Moments, quantile};
use crate::ranking::CaseRounds;
use crate::{Standard, StatsError};
use widening::{CASES, CHANCES, ROUNDS, WIDENING};

/// The fewest common rounds of two cases of which one is called faster or slower, or both a draw. Of two rounds the
/// interval holds what it promises for normal noise only; machines have two speeds, and two rounds then agree by luck
/// too often (`tests/all/few_rounds.rs`).
pub const ROUNDS_TO_JUDGE: u32 = 3;

/// How many rounds the mean variance of all pairs weighs.
const PRIOR_ROUNDS: f64 = 2.0;

/// The chance that a pair's true variance lies above its upper limit.
const LIMIT_CHANCE: f64 = 0.01;

/// Cases of one workload and load level, every pair of which is to be judged by one standard.
#[derive(Debug, Clone)]
pub struct Family<'a> {
    pub(crate) cases: &'a [CaseRounds],
    pub(crate) standard: Standard,
    /// Mean variance of the log ratios of all pairs; `None` where no pair has two rounds.
    mean_variance: Option<f64>,
}

impl<'a> Family<'a> {
    /// # Errors
    /// [`StatsError::NoCases`], [`StatsError::CaseWithoutRounds`], [`StatsError::BadCaseValue`] for a value that is
    /// zero, negative, infinite or not a number, [`StatsError::BadMargin`] unless the margin is 0 or more and below 1.
    pub fn of(cases: &'a [CaseRounds], standard: Standard) -> Result<Family<'a>, StatsError> {
        check_margin(standard.margin)?;
        check_cases(cases)?;
        Ok(Family {
            cases,
            standard,
            mean_variance: mean_variance(cases, u32::MAX),
        })
    }

    /// Case `a` beside case `b`, both indices into the cases, over the rounds that both finished. Without such a round
    /// the ratio is that of their geometric means, undecided, of 0 rounds.
    ///
    /// # Panics
    /// When there is no such case.
    pub fn compare(&self, a: usize, b: usize) -> Comparison {
        let (a, b) = (&self.cases[a], &self.cases[b]);
        match Moments::of(&log_ratios(a, b, u32::MAX)) {
            Some(moments) => {
                let spread = Spread::of(&moments, self.mean_variance, self.cases.len());
                compare_spread(&moments, spread, self.standard)
            }
            None => Comparison::without_rounds(log_lead(a, b).exp()),
        }
    }
}

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

    /// Standard error of the mean log ratio after so many rounds.
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

/// The variance of a pair of so many rounds (2 or more), from its own and the mean of all pairs.
fn moderated(own: f64, mean: f64, rounds: u32) -> f64 {
    let freedom = f64::from(rounds - 1);
    let chi_squared = ChiSquared::new(freedom).expect("one degree of freedom or more");
    let upper_limit = own * freedom / chi_squared.inverse_cdf(LIMIT_CHANCE);
    (freedom * own + PRIOR_ROUNDS * mean.min(upper_limit)) / (freedom + PRIOR_ROUNDS)
}

/// Mean variance of the log ratios of all pairs over rounds up to `until`, each pair weighted by its degrees of
/// freedom.
pub(crate) fn mean_variance(cases: &[CaseRounds], until: u32) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for (index, a) in cases.iter().enumerate() {
        for b in &cases[index + 1..] {
            let moments = Moments::of(&log_ratios(a, b, until));
            let known = moments.and_then(|all| Some((all.standard_deviation?, all.count - 1)));
            if let Some((standard_deviation, of_pair)) = known {
                squares += standard_deviation.powi(2) * f64::from(of_pair);
                freedom += f64::from(of_pair);
            }
        }
    }
    (freedom > 0.0).then(|| squares / freedom)
}

/// What a pair's standard error is multiplied by for an interval that holds for all pairs of so many cases.
fn critical_value(cases: usize, rounds: u32, error_chance: f64) -> f64 {
    quantile(rounds, 1.0 - error_chance / 2.0) * widening(cases, rounds, error_chance)
}

/// How much wider an interval is that holds for all pairs, by the table: between its numbers of cases and its chances
/// of error in their logarithms, between its numbers of rounds in their inverse. Beyond the table's last number of
/// cases it goes on as between the last two, beyond the other ends it stays.
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
struct Place {
    index: usize,
    share: f64,
}

impl Place {
    fn within_table(self) -> Place {
        let share = self.share.clamp(0.0, 1.0);
        Place { share, ..self }
    }

    fn between(&self, value: impl Fn(usize) -> f64) -> f64 {
        (1.0 - self.share) * value(self.index) + self.share * value(self.index + 1)
    }
}

fn place(ascending: &[f64], value: f64) -> Place {
    let next = ascending.partition_point(|entry| *entry <= value);
    let index = next.clamp(1, ascending.len() - 1) - 1;
    let (low, high) = (ascending[index], ascending[index + 1]);
    Place {
        index,
        share: (value - low) / (high - low),
    }
}

pub(crate) fn check_cases(cases: &[CaseRounds]) -> Result<(), StatsError> {
    if cases.is_empty() {
        return Err(StatsError::NoCases);
    }
    for case in cases {
        if case.values.is_empty() {
            return Err(StatsError::CaseWithoutRounds {
                case: case.name.clone(),
            });
        }
        let mut values = case.values.iter();
        if let Some((&round, &value)) = values.find(|&(_, &value)| !is_comparable(value)) {
            return Err(StatsError::BadCaseValue {
                case: case.name.clone(),
                round,
                value,
            });
        }
    }
    Ok(())
}

/// Logarithms of the ratio of two cases in the rounds up to `until` that both finished, or their means in each run.
pub(crate) fn log_ratios(a: &CaseRounds, b: &CaseRounds, until: u32) -> Vec<f64> {
    let both = a.values.range(..=until).filter_map(|(round, value)| {
        // A difference of logarithms, because the quotient of two extreme values may overflow.
        Some((round, value.ln() - b.values.get(round)?.ln()))
    });
    if a.runs.is_empty() {
        return both.map(|(_, log)| log).collect();
    }
    let mut runs: BTreeMap<Option<&u32>, Vec<f64>> = BTreeMap::new();
    for (round, log) in both {
        runs.entry(a.runs.get(round)).or_default().push(log);
    }
    let mean = |logs: Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
    runs.into_values().map(mean).collect()
}

/// Logarithm of the ratio of two cases' geometric means over the rounds that both finished, or each over its own when
/// there is none.
pub(crate) fn log_lead(a: &CaseRounds, b: &CaseRounds) -> f64 {
    let mean = |logs: &[f64]| Moments::of(logs).map(|moments| moments.mean);
    mean(&log_ratios(a, b, u32::MAX)).unwrap_or_else(|| {
        let own = |case: &CaseRounds| {
            let logs: Vec<f64> = case.values.values().map(|value| value.ln()).collect();
            mean(&logs).unwrap_or_default()
        };
        own(a) - own(b)
    })
}
