//! How figures, cases and rounds are spelled in a sentence: the same in the headline, in warnings and in findings.

use std::fmt::Write as _;

use super::{Case, RunResult, Trial};

/// What stands before the effects of settings.
pub const EACH_SETTING: &str = "Each setting over all others:";

/// From this share of reads answered by the page cache, the comparison is one of caches.
pub(super) const MOSTLY_CACHED_SHARE: f64 = 0.5;

/// A ratio as it is written everywhere: three figures or two decimals.
pub fn format_ratio(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// What would decide an open question: a number of rounds or runs in all.
pub fn rounds_that_tell(needed: u32, unit: &str) -> String {
    if needed >= spindle_stats::MAX_ROUNDS {
        format!("the noise is too large for any number of {unit}")
    } else {
        format!("a verdict needs about {needed} {unit} in all")
    }
}

/// A fraction as a percentage without needless zeros: 0.03 is `3`, 0.025 is `2.5`.
pub fn percent(fraction: f64) -> f64 {
    (fraction * 1e4).round() / 100.0
}

/// `a and b`, or `a; b; and c`, because names of layouts hold commas.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [init @ .., last] => format!("{}; and {last}", init.join("; ")),
    }
}

/// A case in a sentence: its layout, and as much of its load as is needed to tell it from others.
pub(super) fn case_label(result: &RunResult, case: &Case) -> String {
    let first = &result.cases[0];
    let mut label = case.id.layout.clone();
    if result
        .cases
        .iter()
        .any(|other| other.id.load != first.id.load)
    {
        let _ = write!(label, " at {}", case.id.load);
    }
    label
}

/// `round 2` or `rounds 1, 3`; `None` when the condition holds in no trial.
pub(super) fn rounds_where(case: &Case, condition: impl Fn(&Trial) -> bool) -> Option<String> {
    let rounds: Vec<String> = case
        .trials
        .iter()
        .filter(|trial| condition(trial))
        .map(|trial| trial.round.to_string())
        .collect();
    match rounds.as_slice() {
        [] => None,
        [round] => Some(format!("round {round}")),
        rounds if rounds.len() == case.trials.len() => Some("every round".to_owned()),
        rounds => Some(format!("rounds {}", rounds.join(", "))),
    }
}
