//! Where the wall time of a run went: the parts for the page, and a line for the terminal.

use spindle_result::{RunResult, Trial, TrialTimes};
use spindle_text::quantity::elapsed;

/// Parts of less than this, of a hundred, are one on the terminal.
const SMALL_PERCENT: f64 = 4.5;

/// What a part is called, and its milliseconds.
type PartOfTrial = (&'static str, fn(&TrialTimes) -> u64);

/// The parts of a trial, in their order.
const OF_TRIALS: [PartOfTrial; 9] = [
    ("restoring databases", |times| times.restore_ms),
    ("waiting for quiet devices", |times| times.quiet_ms),
    ("probing devices", |times| times.probe_ms),
    ("starting databases", |times| times.start_ms),
    ("warm-up", |times| times.warm_up_ms),
    ("measured", |times| times.measured_ms),
    ("flushing at the end", |times| times.flush_ms),
    ("checks", |times| times.check_ms),
    ("stopping databases", |times| times.stop_ms),
];

/// What a run is for, among them: told however short it was.
const MEASURED: usize = 5;

/// One thing that was done.
pub(crate) struct TimedPart {
    /// What, in words.
    pub what: String,
    /// How long it took, milliseconds.
    pub ms: u64,
    /// Its share of all, of a hundred.
    pub percent: f64,
    is_measured: bool,
}

/// What was done, before the trials and in all of them; nothing of runs of versions that did not keep these times.
pub(crate) fn parts(result: &RunResult) -> Vec<TimedPart> {
    let set_aside = result.cases.iter().flat_map(|case| &case.set_aside);
    let aside = set_aside.map(|of| &of.trial);
    let counted = result.cases.iter().flat_map(|case| &case.trials);
    let times_of = |trial: &Trial| trial.conditions.times;
    let times: Vec<TrialTimes> = counted.filter_map(times_of).collect();
    let aside_ms: u64 = aside.filter_map(times_of).map(|times| times.whole_ms).sum();
    let sum = |of: fn(&TrialTimes) -> u64| times.iter().map(of).sum::<u64>();
    let phases = result.phases.iter();
    let mut parts: Vec<(String, u64, bool)> = phases
        .map(|phase| (phase.what.clone(), phase.ms, false))
        .collect();
    let of_trials = OF_TRIALS.iter().enumerate();
    parts.extend(
        of_trials.map(|(index, (what, of))| ((*what).to_owned(), sum(*of), index == MEASURED)),
    );
    let known: u64 = OF_TRIALS.iter().map(|(_, of)| sum(*of)).sum();
    let whole = sum(|times| times.whole_ms);
    let other_ms = whole.saturating_sub(known);
    parts.push(("other, in trials".to_owned(), other_ms, false));
    parts.push(("trials that were set aside".to_owned(), aside_ms, false));
    let all: u64 = parts.iter().map(|(_, ms, _)| ms).sum();
    let parts = parts.into_iter().filter(|(_, ms, _)| *ms > 0);
    let percent = |ms: u64| 100.0 * ms as f64 / all as f64;
    parts
        .map(|(what, ms, is_measured)| TimedPart {
            percent: percent(ms),
            what,
            ms,
            is_measured,
        })
        .collect()
}

/// `Time: 42 % measured, 15 % checks, 12 % warm-up, 31 % in smaller parts, of 2 min 3 s`; `None` where nothing is
/// known.
pub(crate) fn line(result: &RunResult) -> Option<String> {
    let mut parts = parts(result);
    let all_ms: u64 = parts.iter().map(|part| part.ms).sum();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ms));
    let (large, small): (Vec<TimedPart>, Vec<TimedPart>) = parts
        .into_iter()
        .partition(|part| part.percent >= SMALL_PERCENT || part.is_measured);
    let mut told: Vec<String> = large
        .iter()
        .map(|part| format!("{:.0} % {}", part.percent, part.what))
        .collect();
    let small_percent: f64 = small.iter().map(|part| part.percent).sum();
    if !small.is_empty() {
        told.push(format!("{small_percent:.0} % in smaller parts"));
    }
    (all_ms > 0).then(|| format!("Time: {}, of {}", told.join(", "), elapsed(all_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_among_the_parts_of_a_trial() {
        assert_eq!(OF_TRIALS[MEASURED].0, "measured");
    }
}
