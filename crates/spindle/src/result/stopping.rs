//! What it saved to stop measuring what was settled: the trials that a plan with as many rounds for every case would have
//! run, and the time they would have taken.

use super::{AutoPlan, CaseRecord, Outcome, RunRecord, Stopping, Trial};

/// `None` for a plan with a fixed number of rounds.
pub(super) fn stopping(record: &RunRecord) -> Option<Stopping> {
    let plan = record.auto?;
    let rounds_max = record.planned_rounds;
    let measured: Vec<&CaseRecord> = record
        .cases
        .iter()
        .filter(|case| case.outcome == Outcome::Measured && !case.trials.is_empty())
        .collect();
    let trials = measured.iter().map(|case| case.trials.len() as u32).sum();
    let saved_s = measured
        .iter()
        .map(|case| {
            let time_s: f64 = case
                .trials
                .iter()
                .map(|trial| duration_s(trial, plan))
                .sum();
            let run = case.trials.len() as f64;
            (f64::from(rounds_max) - run).max(0.0) * time_s / run
        })
        .sum();
    Some(Stopping {
        precision: plan.precision,
        rounds_max,
        trials,
        trials_of_fixed_plan: rounds_max * measured.len() as u32,
        saved_s: if plan.is_finished { saved_s } else { 0.0 },
    })
}

/// The time of a trial: restore, warm-up, and what was measured.
fn duration_s(trial: &Trial, plan: AutoPlan) -> f64 {
    let restore_s = trial.restore.duration_ms as f64 / 1e3;
    let warm_up_s = trial
        .warm_up
        .map_or(plan.warmup_s, |warm_up| warm_up.duration_s);
    restore_s + warm_up_s + trial.measured_s
}

#[cfg(test)]
mod tests {
    use super::super::{WarmUp, build, sample};
    use super::*;

    fn record(is_finished: bool) -> RunRecord {
        let mut record = sample::record(&[("a", &[100.0; 8]), ("b", &[50.0; 6]), ("c", &[])]);
        record.planned_rounds = 10;
        record.auto = Some(AutoPlan {
            precision: 0.03,
            is_finished,
            warmup_s: 1.0,
        });
        for trial in &mut record.cases[0].trials {
            trial.warm_up = Some(WarmUp {
                duration_s: 2.0,
                is_settled: true,
            });
        }
        record
    }

    #[test]
    fn what_was_not_run_is_counted_with_the_time_of_what_was() {
        let stopping = build(&record(true)).unwrap().stopping.unwrap();
        assert_eq!((stopping.trials, stopping.trials_of_fixed_plan), (14, 20));
        // 2 trials of 2 + 5 s and 4 of 1 + 5 s, with a restore of 8 ms each.
        assert!((stopping.saved_s - (2.0 * 7.008 + 4.0 * 6.008)).abs() < 1e-9);
    }

    #[test]
    fn a_run_under_way_has_saved_nothing_yet_and_a_fixed_plan_never() {
        assert_eq!(
            build(&record(false)).unwrap().stopping.unwrap().saved_s,
            0.0
        );
        let mut fixed = record(true);
        fixed.auto = None;
        assert_eq!(build(&fixed).unwrap().stopping, None);
    }
}
