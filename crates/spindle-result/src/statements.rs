//! The statements of a case, over all its trials.

use super::Case;

/// One statement: means over all its executions in the trials of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementMeans {
    /// Its text, as in [`super::StatementTime`].
    pub statement: String,
    /// Executions for each transaction that was committed.
    pub per_transaction: f64,
    /// Mean time, microseconds.
    pub mean_us: f64,
}

impl Case {
    /// Each statement, in the workload's order; none where there are none.
    pub fn statements(&self) -> Vec<StatementMeans> {
        let mut sums: Vec<(&str, u64, f64)> = Vec::new();
        for of in self.trials.iter().flat_map(|trial| &trial.statements) {
            let total_us = of.count as f64 * of.mean_us;
            match sums.iter_mut().find(|(name, ..)| *name == of.statement) {
                Some((_, count, sum_us)) => {
                    *count += of.count;
                    *sum_us += total_us;
                }
                None => sums.push((&of.statement, of.count, total_us)),
            }
        }
        let transactions: u64 = self.trials.iter().map(|trial| trial.transactions).sum();
        let means = |(name, count, sum_us): (&str, u64, f64)| StatementMeans {
            statement: name.to_owned(),
            per_transaction: count as f64 / transactions.max(1) as f64,
            mean_us: sum_us / count.max(1) as f64,
        };
        sums.into_iter().map(means).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StatementTime, sample};

    #[test]
    fn executions_weigh_the_same_whichever_trial_they_are_of() {
        let mut record = sample::record(&[("a", &[120.0, 120.0])]);
        let statement = |count, mean_us| StatementTime {
            statement: "select".to_owned(),
            count,
            mean_us,
        };
        // Ten transactions in each trial.
        record.cases[0].trials[0].statements = vec![statement(30, 100.0)];
        record.cases[0].trials[1].statements = vec![statement(10, 300.0)];
        let case = &crate::build(&record).unwrap().cases[0];
        let means = case.statements();
        assert_eq!(means.len(), 1);
        assert_eq!((means[0].mean_us, means[0].per_transaction), (150.0, 2.0));
    }
}
