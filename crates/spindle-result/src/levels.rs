//! Repetition in levels: runs made again, rounds within a run, time within a trial. What was repeated only within one
//! run says nothing of another hour and other files, so where there are runs, a run is what cases are compared by: the
//! interval is of the runs' means, as by T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time" (ISMM
//! 2013). The parts of the variance say which level is worth repeating.

use std::collections::BTreeMap;

use spindle_stats::{
    CaseRounds, PlanPace, TrialLength, VarianceParts, best_trial_length, rounds_per_run,
    variance_parts,
};

use super::{
    Case, CaseId, PairComparison, RunRecord, RunResult, Trial, Variance, fixed_rate, named,
};

/// A trial's samples are taken together in this many stretches, long enough not to depend on each other (batch means).
const STRETCHES: usize = 10;
/// Another measured time is recommended when the interval would be so wide at most, as a part of what it is.
const WORTH_CHANGING: f64 = 0.85;

/// Any figure of a case in the rounds that have it, to be compared by rounds, or by runs where the plan has several.
pub(super) fn figure_of(case: &Case, figure: impl Fn(&Trial) -> Option<f64>) -> CaseRounds {
    let trials = case.trials.iter();
    let known = trials
        .clone()
        .filter_map(|trial| Some((trial.round, figure(trial)?)));
    CaseRounds {
        name: case.id.layout.clone(),
        values: known.filter(|(_, value)| *value > 0.0).collect(),
        runs: trials
            .filter_map(|trial| Some((trial.round, trial.conditions.run?)))
            .collect(),
        counted: None,
    }
}

/// What cases are compared by, in words.
pub fn unit(result: &RunResult) -> &'static str {
    match result.cases.iter().any(has_runs) {
        true => "runs",
        false => "rounds",
    }
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

fn variance(result: &RunResult, record: &RunRecord, verdict: &PairComparison) -> Option<Variance> {
    let find = |id: CaseId| result.case(&id).filter(|case| case.is_compared());
    let (a, b) = (find(verdict.cases.first())?, find(verdict.cases.second())?);
    let of_b: BTreeMap<u32, &Trial> = b.trials.iter().map(|trial| (trial.round, trial)).collect();
    let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut within = Vec::new();
    let (mut pair_s, mut measured_s) = (Vec::new(), Vec::new());
    for trial in &a.trials {
        let Some(other) = of_b.get(&trial.round) else {
            continue;
        };
        let ratio = fixed_rate::speed(trial).ln() - fixed_rate::speed(other).ln();
        runs.entry(trial.conditions.run.unwrap_or(1))
            .or_default()
            .push(ratio);
        let of_both = [a, b].map(|case| within_trial(record, &case.id, trial.round));
        within.extend(of_both[0].zip(of_both[1]).map(|(a, b)| a + b));
        let whole_ms = |trial: &Trial| trial.conditions.times.map(|times| times.whole_ms);
        measured_s.extend(
            trial
                .conditions
                .times
                .map(|times| times.measured_ms as f64 / 1e3),
        );
        pair_s.extend(
            whole_ms(trial)
                .zip(whole_ms(other))
                .map(|(a, b)| (a + b) as f64 / 1e3),
        );
    }
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    // What ends with its last transaction has no length that could be set.
    let is_timed = a
        .trials
        .iter()
        .all(|trial| trial.conditions.asked_ms.is_some());
    let count = runs.len() as f64;
    let runs: Vec<Vec<f64>> = runs.into_values().collect();
    let parts = variance_parts(&runs, mean(&within).unwrap_or(0.0))?;
    let between_s = record.phases.iter().map(|phase| phase.ms).sum::<u64>() as f64 / 1e3 / count;
    let rounds = mean(&pair_s).and_then(|pair_s| rounds_per_run(&parts, between_s, pair_s));
    let pace = mean(&pair_s)
        .zip(mean(&measured_s))
        .map(|(round_s, measured_s)| PlanPace {
            measured_s,
            round_s,
            rounds: pair_s.len() as u32,
        });
    let length = pace
        .filter(|_| is_timed && parts.runs.is_none())
        .and_then(|pace| best_trial_length(&parts, pace))
        .filter(|length| length.width <= WORTH_CHANGING);
    Some(Variance {
        cases: verdict.cases.clone(),
        within_percent: 100.0 * parts.within,
        trials_percent: 100.0 * parts.trials,
        runs_percent: parts.runs.map(|runs| 100.0 * runs),
        rounds_per_run: rounds,
        better_measure_s: length.map(|length| length.measured_s),
        sentence: sentence(verdict, &parts, rounds, length, is_timed),
    })
}

/// The part of the variance of a trial's logarithm of throughput that comes from within it; `None` without enough
/// samples.
fn within_trial(record: &RunRecord, case: &CaseId, round: u32) -> Option<f64> {
    let mut series = record.series.iter();
    let sampled = series.find(|sampled| sampled.case == *case && sampled.round == round)?;
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

fn sentence(
    verdict: &PairComparison,
    parts: &VarianceParts,
    rounds: Option<u32>,
    length: Option<TrialLength>,
    is_timed: bool,
) -> String {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let mut text = format!(
        "{} against {} at {}: the ratio varies by {} within trials and by {} from trial to trial",
        named(&verdict.cases.a),
        named(&verdict.cases.b),
        verdict.cases.load,
        percent(parts.within),
        percent(parts.trials)
    );
    let largest = parts
        .within
        .max(parts.trials)
        .max(parts.runs.unwrap_or(0.0));
    match parts.runs {
        None => {
            text += "; how much it varies from run to run, with new files, is not known without plan.runs"
        }
        Some(runs) => {
            text += &format!(
                ", and by {} from run to run, each with new files",
                percent(runs)
            )
        }
    }
    text += ". ";
    text += match largest {
        largest if parts.runs == Some(largest) => {
            "More runs narrow the interval; more rounds hardly do."
        }
        largest if parts.trials == largest || !is_timed => "More rounds narrow the interval.",
        _ => "A longer plan.measure narrows the interval, and so do more rounds.",
    };
    if let Some(rounds) = rounds.filter(|_| parts.runs.is_some_and(|runs| runs > 0.0)) {
        text += &format!(" For the time it takes, {rounds} rounds a run are best.");
    }
    if let Some(length) = length {
        text += &format!(
            " In the same time, trials of {} s would make the interval narrower by about {:.0} %.",
            length.measured_s,
            100.0 * (1.0 - length.width)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{TrialTimes, build, sample};
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

    /// Rounds of three runs agree with each other and runs do not, in all that is compared.
    #[test]
    fn latency_and_processor_time_are_compared_by_runs_too() {
        let mut record = sample::record(&[("a", &[200.0; 9]), ("b", &[100.0; 9])]);
        for case in &mut record.cases {
            let is_first = case.layout == 0;
            for trial in &mut case.trials {
                let run = (trial.round - 1) / 3;
                trial.conditions.run = Some(run + 1);
                let factor = if is_first {
                    [0.6, 1.1, 0.8][run as usize]
                } else {
                    1.0
                };
                trial.latency_us.p99 = 3_000.0 * factor;
                let used = trial.cpu_us_per_transaction.as_mut().unwrap();
                (used.user, used.system) = (50.0 * factor, 90.0 * factor);
            }
        }
        let verdict = &build(&record).unwrap().verdicts[0];
        for ratio in [verdict.p99.unwrap(), verdict.cpu.unwrap()] {
            // Over nine rounds it would be 0.65 to 1.02.
            let (low, high) = ratio.ci95.unwrap();
            assert!(low < 0.5 && high > 1.2, "{ratio:?}");
        }
    }

    /// A run in which one of them was measured more often says of both what it says of their common rounds.
    #[test]
    fn runs_are_compared_by_their_common_rounds() {
        let mut record = sample::record(&[
            ("a", &[100.0, 50.0, 100.0, 100.0, 100.0, 100.0]),
            ("b", &[100.0; 6]),
        ]);
        for case in &mut record.cases {
            for trial in &mut case.trials {
                trial.conditions.run = Some((trial.round - 1) / 2 + 1);
            }
        }
        record.cases[1].trials.remove(1);
        let verdict = &build(&record).unwrap().verdicts[0];
        assert_eq!((verdict.ratio, verdict.rounds), (1.0, 3));
    }

    /// Trials that each take 10 s, of which 5 are measured, and differ from each other by far more than in themselves.
    #[test]
    fn shorter_trials_are_recommended_where_trials_differ() {
        let told = |measured_ms: u64, is_timed: bool| {
            let a: Vec<f64> = (0..10)
                .map(|round| 94.0 + f64::from(round % 4) * 5.0)
                .collect();
            let mut record = sample::record(&[("a", &a), ("b", &[100.0; 10])]);
            for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
                trial.conditions.asked_ms = is_timed.then_some(measured_ms);
                trial.figures.transactions = 1_000;
                trial.conditions.times = Some(TrialTimes {
                    measured_ms,
                    whole_ms: measured_ms + 1_000,
                    ..TrialTimes::default()
                });
            }
            build(&record).unwrap()
        };
        let long = told(5_000, true);
        assert_eq!(long.variances[0].better_measure_s, Some(1.0));
        let sentence = &long.variances[0].sentence;
        assert!(
            sentence.contains("In the same time, trials of 1 s would make the interval narrower"),
            "{sentence}"
        );
        let headline = &long.headline;
        assert!(
            headline.contains(" s, or less time with plan.measure = \"1s\"")
                || headline.contains(" min, or less time with plan.measure = \"1s\""),
            "{headline}"
        );
        let counted = told(5_000, false);
        assert_eq!(counted.variances[0].better_measure_s, None);
        let short = told(1_000, true);
        assert_eq!(short.variances[0].better_measure_s, None);
        assert!(
            !short.headline.contains("plan.measure"),
            "{}",
            short.headline
        );
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
