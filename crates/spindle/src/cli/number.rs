//! Numbers, durations and sizes on the command line: one outside of its range, or none at all, is told what is
//! allowed.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use spindle_text::quantity::{parse_duration_ms, parse_size};

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

/// Milliseconds of a duration that something is measured for.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let time_ms = parse_duration_ms(text).filter(|ms| (10_000..=86_400_000).contains(ms));
    time_ms.ok_or_else(|| "allowed: a duration from 10s to 24h, such as 2m".to_owned())
}

/// Bytes of a size of data.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).filter(|bytes| (16 << 20..=64 << 40).contains(bytes));
    bytes.ok_or_else(|| "allowed: a size from 16MiB to 64TiB, such as 4GiB".to_owned())
}
