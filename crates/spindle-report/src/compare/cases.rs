//! What became of each case: its figures in the runs of both sides, and what they allow to say.

use spindle_result::{Case, CaseId, CaseStatus, Measure, speed};
use spindle_stats::{StatsError, UnpairedRatio, Verdict, compare_runs};

use super::{
    CaseCall, CaseComparison, CompareOptions, ComparedRun, Difference, Judgement, Noise,
    RunComparison, differences, orderings,
};

/// Compares the runs of the second side with those of the first. Each has one run or more, and the first of all says
/// what is compared.
///
/// # Errors
/// A figure that has no ratio, which only a journal changed by hand can hold.
///
/// # Panics
/// A side has no run.
pub fn compare(
    before: &[ComparedRun<'_>],
    after: &[ComparedRun<'_>],
    options: &CompareOptions,
) -> Result<RunComparison, StatsError> {
    let (first, other) = (before[0], after[0]);
    let machines = differences::of_all(before, after, differences::of_machines);
    let experiments = differences::of_all(before, after, differences::of_experiments);
    let may_call = (options.across_machines || machines.is_empty())
        && (options.across_settings || experiments.is_empty());
    let is_one_run = before.len() == 1
        && after.len() == 1
        && first.started_at == other.started_at
        && first.result == other.result;
    let (ids, only_after) = ids(before, after);
    let workload = &first.result.workload;
    let of_sides = |id: &CaseId| {
        let side = |runs| SideFigures::of(runs, id, workload);
        (side(before), side(after))
    };
    let in_both = ids.iter().map(of_sides);
    let in_both = in_both.filter(|(before, after)| before.has_any() && after.has_any());
    let comparisons = in_both.count() as u32;
    let mut cases = Vec::new();
    for id in ids {
        let (a, b) = of_sides(&id);
        let judgement = match missing_because(&a, &b) {
            Some(missing) => missing,
            None => {
                let of_layout = |a: &_, b: &_| differences::of_layouts(a, b, &id.layout);
                let differences = differences::of_all(before, after, of_layout);
                let may_call = may_call && (options.across_settings || differences.is_empty());
                compared(
                    &a,
                    &b,
                    comparisons,
                    (may_call, is_one_run),
                    options,
                    differences,
                )?
            }
        };
        cases.push(CaseComparison {
            id,
            workload: workload.clone(),
            judgement,
        });
    }
    cases.extend(only_after.into_iter().map(|(id, workload)| CaseComparison {
        id,
        workload,
        judgement: missing("in this run only"),
    }));
    Ok(RunComparison {
        threshold: options.threshold,
        machines,
        experiments,
        cases,
        orderings: orderings::orderings(first.result, other.result),
    })
}

/// The cases of the first side, and those that only the other has, with their workloads.
fn ids(
    before: &[ComparedRun<'_>],
    after: &[ComparedRun<'_>],
) -> (Vec<CaseId>, Vec<(CaseId, String)>) {
    let mut ids: Vec<CaseId> = Vec::new();
    for case in before.iter().flat_map(|run| &run.result.cases) {
        if !ids.contains(&case.id) {
            ids.push(case.id.clone());
        }
    }
    let mut only_after: Vec<(CaseId, String)> = Vec::new();
    for run in after {
        let is_one_workload = run.result.workload == before[0].result.workload;
        for case in &run.result.cases {
            let named = (case.id.clone(), run.result.workload.clone());
            if !(is_one_workload && ids.contains(&case.id) || only_after.contains(&named)) {
                only_after.push(named);
            }
        }
    }
    (ids, only_after)
}

/// The figures of a case in the runs of one side.
#[derive(Default)]
struct SideFigures {
    /// By what it is compared, in each run that has figures.
    measures: Vec<Measure>,
    /// A value for each round, of each run that has figures.
    runs: Vec<Vec<f64>>,
    /// Why the others have none.
    without: Vec<String>,
    /// Runs in which it broke off.
    failed: usize,
}

impl SideFigures {
    fn of(runs: &[ComparedRun<'_>], id: &CaseId, workload: &str) -> SideFigures {
        let mut side = SideFigures::default();
        let of_workload = runs.iter().filter(|run| run.result.workload == workload);
        for case in of_workload.filter_map(|run| run.result.case(id)) {
            match figures(case) {
                Ok((measure, values)) => {
                    side.measures.push(measure);
                    side.runs.push(values);
                }
                Err(missing) => {
                    side.without.push(missing.reason);
                    side.failed += usize::from(missing.has_failed);
                }
            }
        }
        side
    }

    fn has_any(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Mean of the runs' means.
    fn mean(&self) -> f64 {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let means: Vec<f64> = self.runs.iter().map(|run| mean(run)).collect();
        mean(&means)
    }
}

/// Why a case has no figures.
pub(crate) struct NoFigures {
    /// In words.
    reason: String,
    /// It broke off.
    has_failed: bool,
}

/// The figures of a case, a round each.
pub(crate) fn figures(case: &Case) -> Result<(Measure, Vec<f64>), NoFigures> {
    if !case.is_compared() {
        let reason = case.outcome.reason().unwrap_or("the run ended before it");
        return Err(NoFigures {
            reason: format!("{}: {reason}", case.outcome.status()),
            has_failed: matches!(case.outcome, CaseStatus::Failed { .. }),
        });
    }
    if case.id.load.rate.is_some_and(|rate| rate.is_of_slowest()) {
        let reason = "its rate was a part of what the slowest layout did in that run";
        return Err(NoFigures {
            reason: reason.to_owned(),
            has_failed: false,
        });
    }
    let mut trials = case.trials.iter();
    Ok(if trials.any(|trial| trial.arrivals.is_some()) {
        let p99 = case.trials.iter().map(|trial| trial.latency_us.p99);
        (Measure::P99, p99.collect())
    } else {
        let tpm = case.trials.iter().map(speed);
        (Measure::Throughput, tpm.collect())
    })
}

/// Why a case is not compared; `None` when it is.
fn missing_because(before: &SideFigures, after: &SideFigures) -> Option<Judgement> {
    let is_new_failure =
        before.has_any() && after.failed > 0 && (before.failed == 0 || !after.has_any());
    match (after.without.first(), before.without.first()) {
        (Some(reason), _) if before.has_any() && (is_new_failure || !after.has_any()) => {
            let runs = after.runs.len() + after.without.len();
            let of_runs = match (after.failed, runs) {
                (0, _) | (_, 1) => String::new(),
                (failed, runs) => format!("in {failed} of {runs} runs "),
            };
            Some(Judgement::Missing {
                reason: format!("now {of_runs}{reason}"),
                is_regression: is_new_failure,
            })
        }
        (None, _) if !after.has_any() => Some(missing("not in this run")),
        (_, Some(reason)) if !before.has_any() => Some(missing(&format!("before {reason}"))),
        _ => None,
    }
}

fn missing(reason: &str) -> Judgement {
    Judgement::Missing {
        reason: reason.to_owned(),
        is_regression: false,
    }
}

/// One of this many `comparisons`; nothing is called unless it may be.
fn compared(
    before: &SideFigures,
    after: &SideFigures,
    comparisons: u32,
    (may_call, is_one_run): (bool, bool),
    options: &CompareOptions,
    differences: Vec<Difference>,
) -> Result<Judgement, StatsError> {
    let measure = before.measures[0];
    let mut measures = before.measures.iter().chain(&after.measures);
    if measures.any(|other| *other != measure) {
        return Ok(missing(
            "one run has a fixed rate of arrivals and the other has none",
        ));
    }
    let mut compared = match measure {
        Measure::Throughput => compare_runs(&after.runs, &before.runs, comparisons)?,
        // The shorter time is the faster.
        Measure::P99 => compare_runs(&before.runs, &after.runs, comparisons)?,
    };
    // Nothing in a run can differ from itself.
    if is_one_run && before.runs == after.runs {
        compared.is_enough = true;
        compared.ratio = UnpairedRatio {
            ratio: 1.0,
            ci95: Some((1.0, 1.0)),
            p_value: None,
        };
    }
    let threshold = options.threshold;
    let call = match may_call {
        true if !compared.is_enough => CaseCall::Called {
            verdict: Verdict::Undecided,
            is_regression: false,
        },
        true => call(&compared.ratio, threshold),
        false => CaseCall::Refused,
    };
    Ok(Judgement::Compared {
        measure,
        before: before.mean(),
        after: after.mean(),
        speed: compared.ratio,
        runs: [before.runs.len(), after.runs.len()],
        noise: compared.noise.map(|noise| Noise {
            between_runs: noise.between_runs,
            between_rounds: noise.between_rounds,
            runs_needed: noise.runs_to_find(threshold),
        }),
        differences,
        call,
    })
}

/// Slower and faster when the interval excludes 1, a draw when it lies within the threshold of 1. A regression is
/// certainly slower, and its ratio is below 1 by more than the threshold.
pub(super) fn call(speed: &UnpairedRatio, threshold: f64) -> CaseCall {
    let verdict = match speed.ci95 {
        Some((low, high)) if 1.0 - threshold <= low && high <= 1.0 + threshold => Verdict::Draw,
        Some((low, _)) if low > 1.0 => Verdict::Faster,
        Some((_, high)) if high < 1.0 => Verdict::Slower,
        _ => Verdict::Undecided,
    };
    CaseCall::Called {
        verdict,
        is_regression: verdict == Verdict::Slower && speed.ratio < 1.0 - threshold,
    }
}
