//! From what the process of a trial found to what the journal keeps of it.

use crate::trial::protocol::TrialOutcome;
use spindle_engines::engine::Restored;
use spindle_result::{Conditions, Restore, SystemSeries, Trial};

/// A trial as the journal keeps it, with its series.
pub(super) struct FinishedTrial {
    pub(super) trial: Trial,
    /// Transactions per second.
    pub(super) samples: Vec<f64>,
    /// What the system did meanwhile.
    pub(super) system: SystemSeries,
}

impl FinishedTrial {
    /// Puts together what the trial's process found and how its database was restored before.
    pub(super) fn of(
        round: u32,
        position: u32,
        outcome: TrialOutcome,
        restored: Restored,
        conditions: Conditions,
    ) -> FinishedTrial {
        let mut trial = Trial {
            round,
            position,
            figures: outcome.figures,
            restore: Restore {
                method: restored.method.to_owned(),
                changed_blocks: restored.changed_blocks,
                verified: restored.is_verified,
                duration_ms: restored.took.as_millis() as u64,
            },
            conditions,
        };
        let found = std::mem::replace(&mut trial.warnings, restored.warnings);
        trial.warnings.extend(found);
        trial.warnings.extend(stolen(outcome.steal_percent));
        FinishedTrial {
            trial,
            samples: outcome.samples,
            system: outcome.system,
        }
    }
}

/// What is to be said of processor time that a hypervisor took.
fn stolen(steal_percent: f64) -> Option<String> {
    (steal_percent >= 5.0)
        .then(|| format!("the hypervisor took {steal_percent:.0} % of processor time for others"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::trial::protocol::Span;
    use spindle_result::{KindOfTransaction, Latency, Standstill, TrialTimes, sample};
    use spindle_workload::sql::{SqlWorkload, Tpcc, TpccMix};

    #[test]
    fn the_workload_names_new_orders_as_results_know_them() {
        let tpcc = Tpcc::new(1, TpccMix::STANDARD, false, 1);
        let kinds = tpcc.kinds().into_iter().map(|kind| KindOfTransaction {
            kind,
            transactions: 1,
            latency_us: Latency {
                p50: 1.0,
                p95: 1.0,
                p99: 1.0,
                max: 1.0,
                mean: 1.0,
            },
        });
        assert_eq!(kinds.filter(KindOfTransaction::is_new_order).count(), 1);
    }

    #[test]
    fn a_trial_keeps_what_its_process_found() {
        let mut figures = sample::trial(1, 900.0).figures;
        figures.warnings = vec!["from the process".to_string()];
        let outcome = TrialOutcome {
            figures: figures.clone(),
            span: Span::default(),
            steal_percent: 6.0,
            standstill: Standstill::default(),
            times: TrialTimes::default(),
            samples: vec![15.0],
            system: SystemSeries::default(),
            answers: Vec::new(),
            written: Vec::new(),
        };
        let restored = Restored {
            method: "m",
            changed_blocks: 0,
            is_verified: true,
            took: Duration::ZERO,
            warnings: vec!["from the restore".to_string()],
        };
        let finished = FinishedTrial::of(2, 3, outcome, restored, Conditions::default());
        let mut trial = finished.trial;
        assert_eq!((trial.round, trial.position), (2, 3));
        assert_eq!(trial.restore.method, "m");
        assert_eq!(
            trial.warnings,
            [
                "from the restore",
                "from the process",
                "the hypervisor took 6 % of processor time for others"
            ]
        );
        trial.warnings = figures.warnings.clone();
        assert_eq!(trial.figures, figures);
        assert_eq!(finished.samples, [15.0]);
    }
}
