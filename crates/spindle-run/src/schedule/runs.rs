//! Runs that are repeated until pairs are settled: `runs = "auto"`. A run is then what cases are compared by, as in the
//! verdicts, and the rules for rounds hold for runs: pairs are looked at after each. All cases have every run and every
//! round of it.
//!
//! Where the rounds are `auto`, too, the parts of the variance say how many a run has: the number that narrows the
//! interval most for its time (`spindle_stats::rounds_per_run`). Runs that differ from each other have few rounds, and
//! many are made; where trials differ, runs have more of them.

use std::collections::BTreeMap;

use spindle_stats::{ROUNDS_TO_JUDGE, VarianceParts, rounds_per_run, variance_parts};

use super::{RunState, runnable, unsettled_by};
use spindle_experiment::{RUNS_TO_ESTIMATE, Repeats};
use spindle_result::speed;

/// Whether a plan has this run, given the runs before it.
pub(super) fn is_wanted(state: &RunState, run: u32) -> bool {
    let plan = &state.experiment.plan;
    let Some(auto) = plan.auto.filter(|_| plan.repeats_runs()) else {
        return true;
    };
    if run == 1 || last_begun(state) >= run {
        return true;
    }
    let rounds = plan.rounds_of(run);
    let runnable = runnable(state);
    if run > ROUNDS_TO_JUDGE && is_time_up(state, run, auto.time_ms) {
        return false;
    }
    run <= spindle_stats::ROUNDS_MIN
        || !unsettled_by(state, &runnable, auto, 1..*rounds.start()).is_empty()
}

/// Whether this run would end later than the plan's time, going by the runs so far.
fn is_time_up(state: &RunState, run: u32, time_ms: Option<u64>) -> bool {
    let (spent_ms, trial_ms) = state.spent();
    let run_ms = once_ms(state) + round_ms(state, trial_ms) * u64::from(rounds_in(state, run));
    time_ms.is_some_and(|time_ms| spent_ms + run_ms > time_ms)
}

/// Rounds of a run. What was decided for a run stands once the next has begun, and a round that began is ended.
pub(super) fn rounds_in(state: &RunState, run: u32) -> u32 {
    let plan = &state.experiment.plan;
    let repeats = plan.auto.map(|auto| auto.repeats);
    if repeats != Some(Repeats::RunsAndRounds) {
        return plan.rounds;
    }
    let begun = rounds_begun(state, run);
    if last_begun(state) > run {
        return begun;
    }
    let parts = parts(state, run).filter(|_| run > RUNS_TO_ESTIMATE);
    let best = parts.and_then(|parts| {
        let (_, trial_ms) = state.spent();
        let [run_s, round_s] =
            [once_ms(state), round_ms(state, trial_ms)].map(|ms| ms as f64 / 1e3);
        rounds_per_run(&parts, run_s, round_s)
    });
    best.unwrap_or(ROUNDS_TO_JUDGE).min(plan.rounds).max(begun)
}

/// Rounds of a run of which a trial is done.
fn rounds_begun(state: &RunState, run: u32) -> u32 {
    let rounds = state.experiment.plan.rounds_of(run);
    let done = rounds_done(state).filter(|round| rounds.contains(round));
    done.max().map_or(0, |last| last + 1 - rounds.start())
}

/// The last run that has a trial; 0 when there is none.
fn last_begun(state: &RunState) -> u32 {
    let last = rounds_done(state).max();
    last.map_or(0, |round| state.experiment.plan.run_of(round))
}

/// The rounds of all trials that are done.
fn rounds_done(state: &RunState) -> impl Iterator<Item = u32> {
    let cases = state.cases().into_iter();
    cases.flat_map(|case| state.finished(case).map(|trial| trial.round))
}

/// Time that a run takes apart from its trials, with the pause before it: the mean of those that have begun.
fn once_ms(state: &RunState) -> u64 {
    let phases_ms: u64 = state.phases().iter().map(|phase| phase.ms).sum();
    phases_ms / u64::from(last_begun(state).max(1))
}

fn round_ms(state: &RunState, trial_ms: u64) -> u64 {
    trial_ms * runnable(state).len() as u64
}

/// Where the variance of the ratios was in the runs before this one: the mean over all pairs of a case and the first of
/// its load.
fn parts(state: &RunState, run: u32) -> Option<VarianceParts> {
    let before = *state.experiment.plan.rounds_of(run).start();
    let mut pairs = Vec::new();
    let cases = runnable(state);
    for case in &cases {
        let first = cases.iter().find(|other| other.1 == case.1)?;
        if first == case {
            continue;
        }
        let of_first: BTreeMap<u32, f64> = state
            .finished(*first)
            .map(|trial| (trial.round, speed(trial)))
            .collect();
        let mut runs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for trial in state.finished(*case).filter(|trial| trial.round < before) {
            let ratio = of_first.get(&trial.round).map(|of| speed(trial) / of);
            if let Some(log) = ratio.map(f64::ln).filter(|log| log.is_finite()) {
                let run = state.experiment.plan.run_of(trial.round);
                runs.entry(run).or_default().push(log);
            }
        }
        let runs: Vec<Vec<f64>> = runs.into_values().collect();
        pairs.extend(variance_parts(&runs, 0.0));
    }
    let mean = |part: fn(&VarianceParts) -> f64| {
        let squares: f64 = pairs.iter().map(|parts| part(parts).powi(2)).sum();
        (squares / pairs.len() as f64).sqrt()
    };
    (!pairs.is_empty()).then(|| VarianceParts {
        within: 0.0,
        trials: mean(|parts| parts.trials),
        runs: Some(mean(|parts| parts.runs.unwrap_or_default())),
    })
}
