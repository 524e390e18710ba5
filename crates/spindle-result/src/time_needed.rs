//! How long rounds and runs take, and how many would decide an open question. The headline, verdicts and the next steps
//! tell it.

use spindle_text::quantity::about_time;

use super::{Case, RunResult, levels};

/// What would decide an open question: a number of rounds or runs in all, and how long they take, if that is known.
pub fn rounds_that_tell(result: &RunResult, needed: u32) -> String {
    let unit = levels::unit(result);
    if needed >= spindle_stats::MAX_ROUNDS {
        return format!("the noise is too large for any number of {unit}");
    }
    let time = unit_ms(result).map(|ms| about_time((ms * f64::from(needed)) as u64));
    let time = time.map_or_else(String::new, |time| format!(", {time}"));
    format!("a verdict needs about {needed} {unit} in all{time}")
}

/// How long a round takes, or a run where these are compared; milliseconds.
pub(super) fn unit_ms(result: &RunResult) -> Option<f64> {
    let round_ms = round_ms(result)?;
    Some(match result.cases.iter().any(levels::has_runs) {
        true => round_ms * rounds_of_a_run(result),
        false => round_ms,
    })
}

pub(super) fn compared(result: &RunResult) -> impl Iterator<Item = &Case> {
    result.cases.iter().filter(|case| case.is_compared())
}

/// How long a round of all cases takes, restores and warm-ups included; `None` where trials do not tell.
pub(super) fn round_ms(result: &RunResult) -> Option<f64> {
    let of_case = |case: &Case| {
        let times = case.trials.iter().map(|trial| trial.conditions.times);
        let times: Option<Vec<f64>> = times.map(|times| Some(times?.whole_ms as f64)).collect();
        times.map(|times| times.iter().sum::<f64>() / times.len() as f64)
    };
    compared(result).map(of_case).sum()
}

/// Rounds that were run.
pub(super) fn rounds_of(result: &RunResult) -> f64 {
    let rounds = compared(result).map(|case| case.trials.len());
    rounds.max().unwrap_or(0) as f64
}

/// Rounds of one run of several.
fn rounds_of_a_run(result: &RunResult) -> f64 {
    let trials = result.cases.iter().flat_map(|case| &case.trials);
    let runs = trials.filter_map(|trial| trial.conditions.run).max();
    rounds_of(result) / f64::from(runs.unwrap_or(1))
}
