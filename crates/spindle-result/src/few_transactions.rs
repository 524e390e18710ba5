//! Trials in which so few transactions ended that they tell large differences only: what is said in place of a winner,
//! and how long trials must be. The judge takes the counts from here, the headline and the warnings the words.

use spindle_stats::{COUNTED_MIN, Standard, median};

use super::wording::{case_label, format_ratio, named};
use super::{Case, PairComparison, RunResult, Trial};

/// Transactions of a trial in the median of the case's trials; `None` where trials end with their work, whose time is
/// measured.
pub(super) fn counted(case: &Case) -> Option<f64> {
    let is_timed = |trial: &Trial| trial.conditions.asked_ms.is_some();
    if case.trials.is_empty() || !case.trials.iter().all(is_timed) {
        return None;
    }
    median(case.trials.iter().map(|trial| trial.transactions as f64))
}

/// By how much any two of these cases may differ for want of transactions, as a fraction.
pub(super) fn worst_floor(cases: &[&Case]) -> f64 {
    let mut counts: Vec<f64> = cases.iter().filter_map(|case| counted(case)).collect();
    counts.sort_by(f64::total_cmp);
    Standard::counting_floor(counts.first().copied(), counts.get(1).copied())
}

/// The counts of two cases that are too few for a verdict on the ratio between them.
fn too_few(result: &RunResult, comparison: &PairComparison) -> Option<[f64; 2]> {
    let of = |id| counted(result.case(&id)?);
    let counts = [
        of(comparison.cases.first())?,
        of(comparison.cases.second())?,
    ];
    let floor = Standard::counting_floor(Some(counts[0]), Some(counts[1]));
    (comparison.ratio.ln().abs() < floor.ln_1p()).then_some(counts)
}

/// What the headline says of cases that are not told apart for that reason.
pub(super) fn in_short(result: &RunResult, tied: &[&PairComparison]) -> Option<String> {
    let counts = tied
        .iter()
        .filter_map(|comparison| too_few(result, comparison));
    let counts: Vec<f64> = counts.flatten().collect();
    let fewest = counts.iter().copied().reduce(f64::min)?;
    Some(format!(
        "too few transactions to tell, as few as {fewest:.0} a trial: measure {} longer",
        times_longer(fewest)
    ))
}

/// The same of one pair, which its rounds seemed to decide.
pub(super) fn warning(result: &RunResult, comparison: &PairComparison) -> Option<String> {
    let counts = too_few(result, comparison)?;
    let case = result.case(&comparison.cases.first())?;
    let fewest = counts[0].min(counts[1]);
    Some(format!(
        "{} was {} x as fast as {}, by {:.0} against {:.0} transactions a trial. So few tell no such difference: a \
         trial needs {COUNTED_MIN:.0} or more. Set plan.measure to {} as long, or choose shorter transactions.",
        case_label(result, case),
        format_ratio(comparison.ratio),
        named(&comparison.cases.b),
        counts[0],
        counts[1],
        times_longer(fewest)
    ))
}

/// How many times as long a trial has to be.
fn times_longer(fewest: f64) -> String {
    // With some to spare, or half of the trials would have too few again.
    let times = (1.5 * COUNTED_MIN / fewest.max(1.0)).ceil();
    format!("{times:.0} times")
}

#[cfg(test)]
mod tests {
    use super::super::{RunRecord, build, sample};

    /// Two cases that differ by a fifth in every round, with so many transactions in a trial.
    fn record(transactions: [u64; 2]) -> RunRecord {
        let mut record = sample::record(&[("a", &[120.0; 4]), ("b", &[100.0; 4])]);
        for (case, transactions) in record.cases.iter_mut().zip(transactions) {
            for trial in &mut case.trials {
                trial.figures.transactions = transactions;
                trial.conditions.asked_ms = Some(5_000);
            }
        }
        record
    }

    #[test]
    fn few_transactions_name_no_winner() {
        let result = build(&record([6, 5])).unwrap();
        assert_eq!(result.rankings[0].winner, None);
        assert_eq!(
            result.headline,
            "Too close to call between a and b (1.20 x, 1.20-1.20: too few transactions to tell, as few as 5 a trial: \
             measure 9 times longer), at 8 clients."
        );
        let told = result
            .warnings
            .iter()
            .filter(|told| told.text.contains("So few tell no such"));
        assert_eq!(told.count(), 1, "{:?}", result.warnings);
    }

    #[test]
    fn enough_transactions_and_large_differences_do() {
        let enough = build(&record([60, 50])).unwrap();
        assert_eq!(enough.rankings[0].winner.as_deref(), Some("a"));
        let mut large = record([60, 5]);
        for trial in &mut large.cases[0].trials {
            trial.figures.tpm = 1_200.0;
        }
        let large = build(&large).unwrap();
        assert_eq!(large.rankings[0].winner.as_deref(), Some("a"));
    }

    #[test]
    fn work_that_is_given_is_one_transaction_and_decides() {
        let mut record = record([1, 1]);
        for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
            trial.conditions.asked_ms = None;
        }
        let result = build(&record).unwrap();
        assert_eq!(result.rankings[0].winner.as_deref(), Some("a"));
    }
}
