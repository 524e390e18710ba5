//! Whole numbers on the command line: one outside of its range, or no number at all, is told what is allowed.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::TypedValueParser;

/// Reads a number of a range.
pub(super) fn number<N>(range: RangeInclusive<N>) -> impl TypedValueParser<Value = N>
where
    N: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    number_or(range, "")
}

/// As [`number`]; `advice` follows what is allowed.
pub(super) fn number_or<N>(
    range: RangeInclusive<N>,
    advice: &'static str,
) -> impl TypedValueParser<Value = N>
where
    N: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text
            .parse::<N>()
            .ok()
            .filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("allowed: a whole number from {least} to {most}{advice}")
        })
    }
}
