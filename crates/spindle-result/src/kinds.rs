//! The kinds of transactions of a case, over all its trials.

use super::Case;
use super::mean::mean_of;

/// One kind of transaction: means over the trials of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct KindMeans {
    /// Its name.
    pub kind: String,
    /// Committed per minute.
    pub per_minute: f64,
    /// Median of the time it took, microseconds.
    pub p50_us: f64,
    /// Its 95th percentile.
    pub p95_us: f64,
    /// Its 99th percentile.
    pub p99_us: f64,
}

impl Case {
    /// Each kind of transaction, in the workload's order; none when there is one kind only.
    pub fn kinds(&self) -> Vec<KindMeans> {
        let Some(first) = self.trials.first() else {
            return Vec::new();
        };
        let kinds = first.kinds.iter();
        kinds.filter_map(|kind| self.means_of(&kind.kind)).collect()
    }

    fn means_of(&self, kind: &str) -> Option<KindMeans> {
        let of_trials = || {
            self.trials.iter().filter_map(|trial| {
                let found = trial.kinds.iter().find(|of| of.kind == kind)?;
                Some((found, trial.measured_s))
            })
        };
        Some(KindMeans {
            kind: kind.to_owned(),
            per_minute: mean_of(
                of_trials().map(|(of, seconds)| of.transactions as f64 * 60.0 / seconds),
            )?,
            p50_us: mean_of(of_trials().map(|(of, _)| of.latency_us.p50))?,
            p95_us: mean_of(of_trials().map(|(of, _)| of.latency_us.p95))?,
            p99_us: mean_of(of_trials().map(|(of, _)| of.latency_us.p99))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use crate::{KindOfTransaction, Latency};

    fn kind(kind: &str, transactions: u64, p50: f64) -> KindOfTransaction {
        KindOfTransaction {
            kind: kind.to_owned(),
            transactions,
            latency_us: Latency {
                p50,
                p95: 2.0 * p50,
                p99: 3.0 * p50,
                max: 4.0 * p50,
                mean: p50,
            },
        }
    }

    #[test]
    fn new_orders_are_told_by_the_minute() {
        let mut record = sample::record(&[("a", &[100.0, 101.0, 102.0])]);
        assert_eq!(crate::build(&record).unwrap().cases[0].nopm, None);
        for (trial, new_orders) in record.cases[0].trials.iter_mut().zip([10, 20, 30]) {
            trial.kinds = vec![
                kind("payment", 500, 1.0),
                kind("new_order", new_orders, 1.0),
            ];
        }
        let case = &crate::build(&record).unwrap().cases[0];
        // Trials of five seconds.
        let nopm = case.nopm.expect("there were new orders");
        assert_eq!(nopm.mean, 240.0);
        let (low, high) = nopm.ci95.expect("three trials have an interval");
        assert!(low < 240.0 && high > 240.0);
        assert_eq!(case.summary().unwrap().nopm, Some(240.0));
    }

    #[test]
    fn kinds_are_averaged_over_trials() {
        let mut record = sample::record(&[("a", &[100.0, 101.0])]);
        let trials = &mut record.cases[0].trials;
        trials[0].kinds = vec![kind("new order", 10, 100.0), kind("payment", 5, 10.0)];
        trials[1].kinds = vec![kind("new order", 20, 200.0), kind("payment", 5, 10.0)];
        let result = crate::build(&record).unwrap();
        let kinds = result.cases[0].kinds();
        assert_eq!(kinds.len(), 2);
        assert_eq!(kinds[0].kind, "new order");
        // Trials of five seconds.
        assert_eq!(kinds[0].per_minute, 180.0);
        assert_eq!((kinds[0].p50_us, kinds[0].p99_us), (150.0, 450.0));
        assert_eq!(kinds[1].per_minute, 60.0);
    }
}
