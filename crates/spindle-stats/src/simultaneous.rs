//! The cases of an experiment beside each other, every pair at once: the one place from which the table of verdicts,
//! the table of all pairs, the ranking and the headline take their intervals.
//!
//! Of six equal cases the data pick the one that looks best. An interval that holds the truth in 95 of 100 pairs,
//! chosen beforehand, excludes 1 for some pair of the six in a third of all experiments. The intervals here hold
//! *together*: in 95 of 100 experiments every one of them holds the truth, so in at most 5 is any pair called different
//! that is not, wherever a reader looks. Comparisons with the best alone (J. Hsu, "Multiple Comparisons", 1996) are
//! narrower, but of equal cases they call some "not the best", which is true and reads like a difference.
//!
//! How a single pair is judged beside the others is in [`crate::spread`].

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::cases::{CaseRounds, check_cases, log_lead, log_ratios};
use crate::comparison::{Comparison, check_margin, compare_spread};
use crate::interval::Moments;
use crate::spread::Spread;
use crate::{Standard, StatsError};

/// Cases of one workload and load level, every pair of which is to be judged by one standard.
#[derive(Debug, Clone)]
pub struct Family<'a> {
    /// What [`Family::mean_variance`] has found.
    variances: RefCell<BTreeMap<u32, Option<f64>>>,
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
            variances: RefCell::default(),
        })
    }

    /// Mean variance of the log ratios of all pairs over rounds up to `until`: the same for every pair that asks.
    pub(crate) fn mean_variance(&self, until: u32) -> Option<f64> {
        let mut known = self.variances.borrow_mut();
        *known
            .entry(until)
            .or_insert_with(|| mean_variance(self.cases, until))
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
                compare_spread(
                    &moments,
                    spread,
                    self.standard.for_counts(a.counted, b.counted),
                )
            }
            None => Comparison::without_rounds(log_lead(a, b).exp()),
        }
    }
}

/// Mean variance of the log ratios of all pairs over rounds up to `until`, each pair weighted by its degrees of
/// freedom.
fn mean_variance(cases: &[CaseRounds], until: u32) -> Option<f64> {
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
