//! From a recorded run to its result: orders trials, has the cases judged, collects the warnings.

use spindle_stats::{StatsError, estimate_mean};
use thiserror::Error;

use super::{
    Case, CaseRecord, CaseStatus, FORMAT_VERSION, LoadLevel, Promise, RunRecord, RunResult,
    SampledTrial, Throughput, Trial, attribution, bulk_load, case_means, drift, effects, findings,
    headline, judge, levels, stopping, warnings,
};

/// Why a record has no result: the journal it came from was damaged or changed by hand.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecordError {
    /// A case names a layout that is not there.
    #[error("case {case} is of layout {layout}, but only {layouts} layouts are recorded")]
    NoSuchLayout {
        /// Index of the case.
        case: usize,
        /// Index of the layout it names.
        layout: usize,
        /// How many there are.
        layouts: usize,
    },
    /// A case holds two trials of one round, of which only one can count.
    #[error("case {case} holds two trials of round {round}; keep the one that finished")]
    RepeatedRound {
        /// Index of the case.
        case: usize,
        /// The round.
        round: u32,
    },
    /// Numbers that have no statistics.
    #[error(transparent)]
    Statistics(#[from] StatsError),
}

/// The result of a run, finished or not.
///
/// A case whose trials include one without a single transaction counts as failed; a case to be measured that has no
/// trial yet counts as skipped. Only the others are compared, and only with cases of the same load level.
///
/// # Errors
/// [`RecordError`] when the record contradicts itself.
pub fn build(record: &RunRecord) -> Result<RunResult, RecordError> {
    let mut result = RunResult {
        format: FORMAT_VERSION,
        workload: record.workload.clone(),
        headline: String::new(),
        headline_without_settings: None,
        experiment: record.experiment.clone(),
        machine: record.machine.clone(),
        margin: record.margin,
        memory_budget_bytes: record.memory_budget_bytes,
        own_cost: record.own_cost,
        layouts: record.layouts.clone(),
        cases: cases(record)?,
        rankings: Vec::new(),
        verdicts: Vec::new(),
        pairs: Vec::new(),
        effects: Vec::new(),
        interactions: Vec::new(),
        factor_answers: Vec::new(),
        noise: Vec::new(),
        drifts: Vec::new(),
        stopping: None,
        attributions: Vec::new(),
        findings: Vec::new(),
        variances: Vec::new(),
        phases: record.phases.clone(),
        warnings: Vec::new(),
    };
    let judgements = judge::judge(&result, record)?;
    for judgement in judgements {
        let matrix = record.matrix.as_ref();
        let told = effects::of_load(&result, &judgement.ranking, matrix, judgement.standard)?;
        result.rankings.push(judgement.ranking);
        result.verdicts.extend(judgement.verdicts);
        result.pairs.extend(judgement.pairs);
        result.effects.extend(told.effects);
        result.interactions.extend(told.interactions);
        result.factor_answers.extend(told.answers);
        result.noise.extend(judgement.noise);
    }
    result.variances = levels::variances(&result, record);
    result.drifts = drift::drifts(&result.cases)?;
    result.stopping = stopping::stopping(record, &result.verdicts);
    result.attributions = attribution::attributions(&result);
    result.findings = findings::findings(&result);
    (result.headline, result.headline_without_settings) = headline::headline(&result);
    result.warnings = warnings::warnings(&result, record);
    Ok(result)
}

fn cases(record: &RunRecord) -> Result<Vec<Case>, RecordError> {
    let cases = record.cases.iter().enumerate();
    let mut cases = cases
        .map(|(index, case)| one_case(record, index, case))
        .collect::<Result<Vec<Case>, RecordError>>()?;
    // Cases that compete stand together; within a group the order of the record stays.
    let loads: Vec<LoadLevel> = cases.iter().map(|case| case.id.load).collect();
    cases.sort_by_key(|case| loads.iter().position(|load| *load == case.id.load));
    Ok(cases)
}

fn one_case(record: &RunRecord, index: usize, case: &CaseRecord) -> Result<Case, RecordError> {
    let id = record.id_of(case).ok_or(RecordError::NoSuchLayout {
        case: index,
        layout: case.layout,
        layouts: record.layouts.len(),
    })?;
    let mut trials = case.trials.clone();
    trials.sort_by_key(|trial| trial.round);
    if let Some(pair) = trials
        .windows(2)
        .find(|pair| pair[0].round == pair[1].round)
    {
        return Err(RecordError::RepeatedRound {
            case: index,
            round: pair[0].round,
        });
    }
    let tpm = throughput(trials.iter().map(|trial| trial.tpm).collect())?;
    let nopm = throughput(trials.iter().filter_map(|trial| trial.nopm()).collect())?;
    let idle = trials.iter().find(|trial| trial.tpm <= 0.0);
    let outcome = match (&case.outcome, idle) {
        (CaseStatus::Measured, Some(trial)) => CaseStatus::Failed {
            reason: format!("no transaction was committed in round {}", trial.round),
        },
        (CaseStatus::Measured, None) if trials.is_empty() => CaseStatus::Skipped {
            reason: "the run ended before its first trial".to_owned(),
        },
        (outcome, _) => outcome.clone(),
    };
    let of_case = record.series.iter().filter(|sampled| sampled.case == id);
    let of_case: Vec<&SampledTrial> = of_case.collect();
    Ok(Case {
        id,
        outcome,
        promise: promise_of(&trials),
        load: bulk_load::of_case(&trials, &of_case),
        trials,
        set_aside: case.set_aside.clone(),
        tpm,
        nopm,
        response_time: case_means::response_time(&case.trials),
        system: case_means::system(of_case.into_iter()),
    })
}

/// Mean and interval of a figure of trials; `None` without any.
fn throughput(per_minute: Vec<f64>) -> Result<Option<Throughput>, RecordError> {
    if per_minute.is_empty() {
        return Ok(None);
    }
    let estimate = estimate_mean(&per_minute)?;
    Ok(Some(Throughput {
        mean: estimate.mean,
        ci95: estimate.ci95,
    }))
}

/// The weakest that a trial found; settings may have been changed on a server meanwhile.
fn promise_of(trials: &[Trial]) -> Promise {
    let promises = trials.iter().map(|trial| &trial.promise);
    let weakest = promises.max_by_key(|promise| (promise.keeps, promise.back_ms));
    weakest.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use spindle_stats::Verdict;

    use super::super::sample;
    use super::*;

    #[test]
    fn the_best_is_compared_with_every_other() {
        let record = sample::record(&[
            ("slow", &[100.0, 101.0, 99.0]),
            ("fast", &[200.0, 203.0, 198.0]),
            ("middle", &[150.0, 151.0, 150.5]),
        ]);
        let result = build(&record).unwrap();
        let pairs: Vec<_> = result
            .verdicts
            .iter()
            .map(|v| (v.cases.a.as_str(), v.cases.b.as_str(), v.verdict))
            .collect();
        assert_eq!(
            pairs,
            [
                ("fast", "slow", Verdict::Faster),
                ("fast", "middle", Verdict::Faster)
            ]
        );
        assert!((result.verdicts[0].ratio - 2.0).abs() < 0.01);
        assert_eq!(result.rankings[0].winner.as_deref(), Some("fast"));
    }

    #[test]
    fn load_levels_are_judged_apart_and_grouped() {
        let mut record = sample::record(&[("a", &[100.0, 101.0]), ("b", &[50.0, 50.2])]);
        let mut heavy = sample::record(&[("a", &[60.0, 61.0]), ("b", &[120.0, 123.0])]).cases;
        for case in &mut heavy {
            case.load = LoadLevel::of(64);
        }
        record.cases = vec![
            record.cases[0].clone(),
            heavy[0].clone(),
            record.cases[1].clone(),
            heavy[1].clone(),
        ];
        let result = build(&record).unwrap();
        let order: Vec<_> = result
            .cases
            .iter()
            .map(|case| (case.id.load.clients, case.id.layout.as_str()))
            .collect();
        assert_eq!(order, [(8, "a"), (8, "b"), (64, "a"), (64, "b")]);
        let best: Vec<_> = result
            .rankings
            .iter()
            .map(|r| (r.load.clients, r.best.as_str()))
            .collect();
        assert_eq!(best, [(8, "a"), (64, "b")]);
        assert_eq!(result.verdicts.len(), 2);
    }

    #[test]
    fn trials_stand_in_the_order_of_rounds_and_rounds_are_paired() {
        let mut record = sample::record(&[("a", &[100.0, 50.0]), ("b", &[80.0, 40.0])]);
        record.cases[0].trials.reverse();
        let result = build(&record).unwrap();
        assert_eq!(result.cases[0].trials[0].round, 1);
        assert!((result.verdicts[0].ratio - 1.25).abs() < 1e-9);
    }

    #[test]
    fn cases_that_failed_or_never_ran_are_not_compared() {
        let mut record = sample::record(&[
            ("a", &[100.0, 90.0]),
            ("b", &[]),
            ("c", &[1.0, 0.0]),
            ("d", &[9.0]),
        ]);
        record.cases[3].outcome = CaseStatus::Failed {
            reason: "disk full".to_owned(),
        };
        let result = build(&record).unwrap();
        let outcomes: Vec<_> = result
            .cases
            .iter()
            .map(|case| case.outcome.status())
            .collect();
        assert_eq!(outcomes, ["measured", "skipped", "failed", "failed"]);
        assert_eq!(
            result.cases[2].outcome.reason(),
            Some("no transaction was committed in round 2")
        );
        assert_eq!(result.cases[1].tpm, None);
        assert!(result.verdicts.is_empty());
        assert_eq!(result.cases[3].trials.len(), 1);
    }

    #[test]
    fn a_record_that_contradicts_itself_is_refused() {
        let mut record = sample::record(&[("a", &[1.0, 2.0])]);
        record.cases[0].trials[1].round = 1;
        assert_eq!(
            build(&record),
            Err(RecordError::RepeatedRound { case: 0, round: 1 })
        );
        record.cases[0].layout = 7;
        assert!(matches!(
            build(&record),
            Err(RecordError::NoSuchLayout { layout: 7, .. })
        ));
        let mut record = sample::record(&[("a", &[1.0])]);
        record.margin = 1.5;
        assert!(matches!(build(&record), Err(RecordError::Statistics(_))));
    }

    #[test]
    fn a_result_survives_being_written_and_read() {
        let mut record = sample::record(&[("a", &[100.0, 90.0]), ("b", &[])]);
        record.cases[1].outcome = CaseStatus::Skipped {
            reason: "io_uring is not permitted here".to_owned(),
        };
        let result = build(&record).unwrap();
        assert_eq!(RunResult::from_json(&result.to_json()).unwrap(), result);
    }
}
