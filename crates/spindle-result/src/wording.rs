//! How figures, cases and rounds are spelled in a sentence: the same in the headline, in warnings and in findings.

use std::borrow::Cow;
use std::fmt::Write as _;

use spindle_text::quantity::thousands;

use super::{Case, RunResult, Trial};

/// What stands before the effects of settings.
pub const EACH_SETTING: &str = "Each setting over all others:";

/// From this share of reads answered by the page cache, the comparison is one of caches.
pub(super) const MOSTLY_CACHED_SHARE: f64 = 0.5;

/// Beyond this a ratio says no more than that it is large.
const RATIO_MAX: f64 = 1e6;

/// Where the ends of an interval are further apart than by this factor, an end beyond it, or below one over it, says no
/// more than that it is far.
const END_MAX: f64 = 1e3;

/// A ratio as it is written everywhere: three figures or two decimals.
pub fn format_ratio(value: f64) -> String {
    match value {
        value if value > RATIO_MAX => format!("over {}", thousands(RATIO_MAX)),
        value if value >= 99.95 => thousands(value),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// The interval of a ratio, to stand in brackets: `1.85-1.99`. Beyond what could be told apart its ends say so.
pub fn format_interval((low, high): (f64, f64)) -> String {
    match is_far(low, high) {
        false => format!("{}-{}", format_ratio(low), format_ratio(high)),
        true => format!("{} to {}", end(low), end(high)),
    }
}

/// Whether rounds that are too few leave open what the ratio is: its ends have any number of digits.
fn is_far(low: f64, high: f64) -> bool {
    let apart = high / low;
    !(apart <= END_MAX && high <= RATIO_MAX && low >= 1.0 / RATIO_MAX)
}

/// An end of an interval whose ends are far apart.
fn end(ratio: f64) -> String {
    match ratio {
        ratio if (1.0 / END_MAX..=END_MAX).contains(&ratio) => format_ratio(ratio),
        ratio if ratio > 1.0 => format!("over {}", thousands(END_MAX)),
        _ => format!("under {}", 1.0 / END_MAX),
    }
}

/// A fraction as a percentage without needless zeros: 0.03 is `3`, 0.025 is `2.5`.
pub fn percent(fraction: f64) -> f64 {
    (fraction * 1e4).round() / 100.0
}

/// The name of a layout in a sentence. One that holds a comma stands between quotes, or its parts are taken for several
/// layouts.
pub fn named(name: &str) -> Cow<'_, str> {
    match name.contains([',', ';']) {
        true => Cow::Owned(format!("\"{name}\"")),
        false => Cow::Borrowed(name),
    }
}

/// `a and b`, or `a, b and "c, direct"`.
pub(super) fn listed(names: &[&str]) -> String {
    let names: Vec<Cow<'_, str>> = names.iter().map(|name| named(name)).collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => only.to_string(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// A case in a sentence: its layout, and as much of its load as is needed to tell it from others.
pub(super) fn case_label(result: &RunResult, case: &Case) -> String {
    let first = &result.cases[0];
    let mut label = named(&case.id.layout).into_owned();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_keep_three_figures() {
        let written = [0.333, 1.0, 9.99, 9.996, 99.94, 99.96, 1234.5, 2e38].map(format_ratio);
        assert_eq!(
            written,
            [
                "0.33",
                "1.00",
                "9.99",
                "10.0",
                "99.9",
                "100",
                "1,234",
                "over 1,000,000"
            ]
        );
    }

    #[test]
    fn only_names_that_hold_commas_are_quoted() {
        assert_eq!(listed(&["a", "b"]), "a and b");
        let three = listed(&["ext4, direct", "raw", "xfs, direct"]);
        assert_eq!(three, "\"ext4, direct\", raw and \"xfs, direct\"");
    }

    #[test]
    fn ends_of_intervals_stay_short() {
        let written = [
            (0.9, 899.4),
            (1_480.0, 1_520.0),
            (0.0, 2e38),
            (0.7, 3_218_927.0),
            (0.0002, 1.5),
        ];
        assert_eq!(
            written.map(format_interval),
            [
                "0.90-899",
                "1,480-1,520",
                "under 0.001 to over 1,000",
                "0.70 to over 1,000",
                "under 0.001 to 1.50"
            ]
        );
    }
}
