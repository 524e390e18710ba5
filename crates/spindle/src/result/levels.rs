//! Repetition in levels: runs made anew, rounds within a run, time within a trial. What was repeated only within one run says
//! nothing of another hour and other files, so where there are runs, a run is what cases are compared by: the interval is of
//! the runs' means, as by T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013). The parts of the
//! variance say which level is worth repeating.

use std::collections::BTreeMap;

use spindle_stats::{VarianceParts, rounds_per_run, variance_parts};

use super::headline::clients_text;
use super::{Case, Comparison, RunRecord, RunResult, Trial, Variance, fixed_rate};

/// A trial's samples are taken together in so many stretches, long enough not to depend on each other (batch means).
const STRETCHES: usize = 10;

/// What a case is compared by: of each round its throughput (or promptness at a fixed rate); where the plan has several
/// runs, of each run the geometric mean of its rounds.
pub(super) fn units(case: &Case) -> BTreeMap<u32, f64> {
    if !has_runs(case) {
        return rounds(case);
    }
    let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for trial in &case.trials {
        let run = trial.conditions.run.unwrap_or(1);
        runs.entry(run)
            .or_default()
            .push(fixed_rate::speed(trial).ln());
    }
    let mean = |logs: Vec<f64>| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    runs.into_iter()
        .map(|(run, logs)| (run, mean(logs)))
        .collect()
}

/// The same of each round, whatever runs there are.
pub(super) fn rounds(case: &Case) -> BTreeMap<u32, f64> {
    let trials = case.trials.iter();
    trials
        .map(|trial| (trial.round, fixed_rate::speed(trial)))
        .collect()
}

/// Whether the plan of a case's trials has several runs.
pub(super) fn has_runs(case: &Case) -> bool {
    case.trials
        .iter()
        .any(|trial| trial.conditions.run.is_some())
}

/// Where the variance of each verdict's ratio is.
pub(super) fn variances(result: &RunResult, record: &RunRecord) -> Vec<Variance> {
    let verdicts = result.verdicts.iter();
    verdicts
        .filter_map(|verdict| variance(result, record, verdict))
        .collect()
}

fn variance(result: &RunResult, record: &RunRecord, verdict: &Comparison) -> Option<Variance> {
    let find = |layout: &str| {
        let mut cases = result.cases.iter().filter(|case| case.is_compared());
        cases.find(|case| {
            case.layout == layout
                && case.workload == verdict.workload
                && case.clients == verdict.clients
        })
    };
    let (a, b) = (find(&verdict.a)?, find(&verdict.b)?);
    let of_b: BTreeMap<u32, &Trial> = b.trials.iter().map(|trial| (trial.round, trial)).collect();
    let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut within = Vec::new();
    let mut pair_s = Vec::new();
    for trial in &a.trials {
        let Some(other) = of_b.get(&trial.round) else {
            continue;
        };
        let ratio = fixed_rate::speed(trial).ln() - fixed_rate::speed(other).ln();
        runs.entry(trial.conditions.run.unwrap_or(1))
            .or_default()
            .push(ratio);
        let of_both =
            [(a, trial.round), (b, trial.round)].map(|of| within_trial(record, result, of));
        within.extend(of_both[0].zip(of_both[1]).map(|(a, b)| a + b));
        let whole_ms = |trial: &Trial| trial.conditions.times.map(|times| times.whole_ms);
        pair_s.extend(
            whole_ms(trial)
                .zip(whole_ms(other))
                .map(|(a, b)| (a + b) as f64 / 1e3),
        );
    }
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let count = runs.len() as f64;
    let runs: Vec<Vec<f64>> = runs.into_values().collect();
    let parts = variance_parts(&runs, mean(&within).unwrap_or(0.0))?;
    let between_s = record.phases.iter().map(|phase| phase.ms).sum::<u64>() as f64 / 1e3 / count;
    let rounds = mean(&pair_s).and_then(|pair_s| rounds_per_run(&parts, between_s, pair_s));
    Some(Variance {
        workload: verdict.workload.clone(),
        clients: verdict.clients,
        a: verdict.a.clone(),
        b: verdict.b.clone(),
        within_percent: 100.0 * parts.within,
        trials_percent: 100.0 * parts.trials,
        runs_percent: parts.runs.map(|runs| 100.0 * runs),
        rounds_per_run: rounds,
        sentence: sentence(verdict, &parts, rounds),
    })
}

/// The part of the variance of a trial's logarithm of throughput that comes from within it; `None` without enough samples.
fn within_trial(
    record: &RunRecord,
    result: &RunResult,
    (case, round): (&Case, u32),
) -> Option<f64> {
    let layout = result.layout_number(&case.layout)? - 1;
    let mut series = record.series.iter();
    let sampled = series.find(|sampled| {
        sampled.layout == layout
            && sampled.workload == case.workload
            && sampled.clients == case.clients
            && sampled.round == round
    })?;
    let each = sampled.tps.len() / STRETCHES;
    if each == 0 {
        return None;
    }
    let stretches = sampled
        .tps
        .chunks_exact(each)
        .map(|of| of.iter().sum::<f64>() / each as f64);
    let means: Vec<f64> = stretches.collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let squares: f64 = means.iter().map(|of| (of - mean).powi(2)).sum();
    (mean > 0.0).then(|| squares / (count - 1.0) / count / (mean * mean))
}

fn sentence(verdict: &Comparison, parts: &VarianceParts, rounds: Option<u32>) -> String {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let mut text = format!(
        "{} against {} at {}: the ratio varies by {} within trials and by {} from trial to trial",
        verdict.a,
        verdict.b,
        clients_text(verdict.clients),
        percent(parts.within),
        percent(parts.trials)
    );
    let largest = parts
        .within
        .max(parts.trials)
        .max(parts.runs.unwrap_or(0.0));
    match parts.runs {
        None => text += "; what varies from run to run is not known without plan.runs",
        Some(runs) => text += &format!(", and by {} from run to run", percent(runs)),
    }
    text += ". ";
    text += match largest {
        largest if parts.runs == Some(largest) => {
            "More runs narrow the interval; more rounds hardly do."
        }
        largest if parts.trials == largest => "More rounds narrow the interval.",
        _ => "A longer plan.measure narrows the interval, and so do more rounds.",
    };
    if let Some(rounds) = rounds.filter(|_| parts.runs.is_some_and(|runs| runs > 0.0)) {
        text += &format!(" For the time it takes, {rounds} rounds a run are best.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{build, sample};
    use super::*;

    /// Two layouts in three runs of three rounds: by so much the ratio is another in each run.
    fn result(of_runs: [f64; 3]) -> RunResult {
        const NOISE: [f64; 9] = [0.99, 1.01, 1.0, 1.005, 0.995, 1.0, 1.01, 0.99, 1.0];
        let a: Vec<f64> = (0..9)
            .map(|round| 100.0 * of_runs[round / 3] * NOISE[round])
            .collect();
        let mut record = sample::record(&[("a", &a), ("b", &[100.0; 9])]);
        for case in &mut record.cases {
            for trial in &mut case.trials {
                trial.conditions.run = Some((trial.round - 1) / 3 + 1);
            }
        }
        build(&record).unwrap()
    }

    #[test]
    fn what_differs_from_run_to_run_is_in_the_interval() {
        // Within each run a is surely faster; another hour would have said something else.
        let unsteady = result([1.10, 1.30, 1.05]);
        let (low, high) = unsteady.verdicts[0].ci95.unwrap();
        assert!(low < 1.0 && high > 1.3, "{low} {high}");
        assert_eq!(
            unsteady.verdicts[0].verdict,
            spindle_stats::Verdict::Undecided
        );
        let steady = result([1.20, 1.21, 1.19]);
        assert_eq!(steady.verdicts[0].verdict, spindle_stats::Verdict::Faster);
    }

    #[test]
    fn the_parts_say_which_level_is_worth_repeating() {
        let variance = &result([1.10, 1.30, 1.05]).variances[0];
        assert!(variance.runs_percent.unwrap() > 5.0, "{variance:?}");
        assert!(variance.trials_percent < 1.5, "{variance:?}");
        assert!(
            variance.sentence.contains("More runs narrow the interval"),
            "{variance:?}"
        );
        let single = sample::record(&[("a", &[100.0, 104.0, 97.0]), ("b", &[50.0, 50.0, 50.0])]);
        let single = build(&single).unwrap();
        let variance = &single.variances[0];
        assert_eq!(variance.runs_percent, None);
        assert!(
            variance.sentence.contains("not known without plan.runs"),
            "{variance:?}"
        );
    }
}
