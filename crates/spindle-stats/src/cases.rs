//! What the rounds gave for each case, and the ratio of two of them.

use std::collections::BTreeMap;

use crate::StatsError;
use crate::comparison::is_comparable;
use crate::interval::Moments;

/// The values of one case, one for each round that it finished.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseRounds {
    /// Name of the case, for messages.
    pub name: String,
    /// Round to value; more is better. A round whose trial failed is absent.
    pub values: BTreeMap<u32, f64>,
    /// Round to the run that it belongs to, where all rounds are repeated in runs. Cases are then compared by their
    /// runs: the ratio of a run is the mean of those of the rounds that both finished in it. Empty: each round counts
    /// by itself.
    pub runs: BTreeMap<u32, u32>,
    /// Transactions that the value of one round comes from, in the median; `None` where work was given and its time was
    /// measured. Few of them decide little: see [`Standard::counting_floor`](crate::Standard::counting_floor).
    pub counted: Option<f64>,
}

/// Errors: no cases, a case without rounds, a value that cannot be compared.
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
