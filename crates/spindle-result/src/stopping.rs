//! What a plan that stops by itself came to: whether every ratio was known well enough before the limit of rounds, and
//! what it saved to measure no more of what was settled, in trials and time.

use super::{
    AutoPlan, CaseRecord, CaseStatus, PairComparison, RunRecord, Stopping, Trial, Verdict, named,
};

/// `None` for a plan with a fixed number of rounds, and where nothing was measured.
pub(super) fn stopping(record: &RunRecord, verdicts: &[PairComparison]) -> Option<Stopping> {
    let plan = record.auto?;
    let rounds_max = record.planned_rounds;
    let measured: Vec<&CaseRecord> = record
        .cases
        .iter()
        .filter(|case| case.outcome == CaseStatus::Measured && !case.trials.is_empty())
        .collect();
    if measured.is_empty() {
        return None;
    }
    let runs = runs(&measured);
    let limit = match plan.runs_max {
        Some(_) if plan.ended_by_time_ms.is_some() => runs,
        Some(runs_max) => runs_max,
        None => rounds_max,
    };
    let least_known = least_known(verdicts, plan, limit);
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
        is_finished: plan.is_finished,
        reached: least_known.map(|(_, half_width)| half_width),
        runs,
        ended_by_time_ms: plan.ended_by_time_ms,
        runs_max: plan.runs_max,
        least_known: least_known.map(|(pair, _)| {
            format!(
                "the ratio of {} and {} at {}",
                named(&pair.cases.a),
                named(&pair.cases.b),
                pair.cases.load
            )
        }),
    })
}

fn runs(measured: &[&CaseRecord]) -> u32 {
    let trials = measured.iter().flat_map(|case| &case.trials);
    let runs = trials.filter_map(|trial| trial.conditions.run);
    runs.max().unwrap_or(1)
}

/// Of the pairs that were measured up to the limit of rounds or runs, are not decided, and are less precise than asked
/// for: the one with the widest interval, and how far its ends lie from the ratio.
fn least_known(
    verdicts: &[PairComparison],
    plan: AutoPlan,
    limit: u32,
) -> Option<(&PairComparison, f64)> {
    let at_limit = verdicts
        .iter()
        .filter(|pair| pair.rounds >= limit && pair.verdict == Verdict::Undecided);
    let half_widths = at_limit.filter_map(|pair| Some((pair, pair.ci95?.1 / pair.ratio - 1.0)));
    half_widths
        .filter(|(_, half_width)| *half_width > plan.precision)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
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
            ended_by_time_ms: None,
            runs_max: None,
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

    /// One file, six rounds of it, an interval of 0.78 to 1.84: nothing was enough for 5 %.
    #[test]
    fn a_limit_that_was_reached_first_is_said_with_what_is_known() {
        let noisy = [100.0, 160.0, 90.0, 140.0, 80.0, 150.0];
        let mut record = sample::record(&[("a", &noisy), ("b", &[100.0; 6])]);
        record.planned_rounds = 6;
        record.auto = Some(AutoPlan {
            precision: 0.05,
            is_finished: true,
            warmup_s: 1.0,
            ended_by_time_ms: None,
            runs_max: None,
        });
        let stopping = build(&record).unwrap().stopping.unwrap();
        assert!(stopping.reached.unwrap() > 0.2, "{stopping:?}");
        assert_eq!(
            stopping.least_known.as_deref(),
            Some("the ratio of a and b at 8 clients")
        );
        let nothing = sample::record(&[("a", &[]), ("b", &[])]);
        record.cases = nothing.cases;
        assert_eq!(build(&record).unwrap().stopping, None);
    }

    /// Six rounds, of times that are far from each other, though not known to 0.1 %.
    #[test]
    fn a_difference_that_was_certain_at_the_limit_was_not_ended_by_it() {
        let of_a = [100.0, 104.0, 97.0, 102.0, 99.0, 101.0];
        let mut record = sample::record(&[("a", &of_a), ("b", &[10.0; 6])]);
        record.planned_rounds = 6;
        record.auto = Some(AutoPlan {
            precision: 0.001,
            is_finished: true,
            warmup_s: 1.0,
            ended_by_time_ms: Some(60_000),
            runs_max: None,
        });
        let stopping = build(&record).unwrap().stopping.unwrap();
        assert_eq!((stopping.reached, stopping.least_known), (None, None));
    }

    #[test]
    fn each_run_has_stopped_by_itself() {
        let mut record = record(true);
        for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
            trial.conditions.run = Some((trial.round - 1) / 3 + 1);
        }
        let stopping = build(&record).unwrap().stopping.unwrap();
        assert_eq!((stopping.runs, stopping.reached), (3, None));
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
