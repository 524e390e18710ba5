//! Sizes, durations and percentages as people write them: `"64MiB"`, `"500ms"`, `"3%"`.
//!
//! Pure functions from text to number and back; [`size_text`] and [`duration_text`] are for anybody who shows a setting
//! to a person. Sizes are binary, as database files are: `K`, `M`, `G`, `T` mean `KiB`, `MiB`, `GiB`, `TiB`.

/// Bytes in a kibibyte.
pub const KIB: u64 = 1 << 10;
/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;
/// Bytes in a tebibyte.
pub const TIB: u64 = 1 << 40;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;

const SIZE_UNITS: [(&str, u64); 5] = [
    ("TiB", TIB),
    ("GiB", GIB),
    ("MiB", MIB),
    ("KiB", KIB),
    ("B", 1),
];
const DURATION_UNITS: [(&str, u64); 4] = [
    ("h", HOUR_MS),
    ("m", MINUTE_MS),
    ("s", SECOND_MS),
    ("ms", 1),
];

/// The bytes meant by a text such as `8KiB`, `1.5 GiB`, `64M` or `512B` (any case); `None` when it is no whole number
/// of bytes with a known unit. Decimal units (`MB`) are not known: a gigabyte that is not a gibibyte surprises people
/// here.
pub fn parse_size(text: &str) -> Option<u64> {
    parse_with_unit(text, |unit| {
        let is_named = |name: &str| {
            name.eq_ignore_ascii_case(unit)
                || (name.len() > 1 && name[..1].eq_ignore_ascii_case(unit))
        };
        SIZE_UNITS
            .iter()
            .find(|(name, _)| is_named(name))
            .map(|(_, bytes)| *bytes)
    })
}

/// The milliseconds meant by a text such as `500ms`, `2.5s`, `5m` or `1h`; `None` when it is no whole number of them.
pub fn parse_duration_ms(text: &str) -> Option<u64> {
    parse_with_unit(text, |unit| {
        DURATION_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, ms)| *ms)
    })
}

/// The percentage meant by a text such as `3%` or `2.5 %`, in per cent.
pub fn parse_percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?.trim();
    is_plain_number(number).then(|| number.parse().ok())?
}

/// The rate meant by a text such as `500/s`, `0.5/s` or `30000/m`, per second.
pub fn parse_rate_per_s(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once('/')?;
    let number = number.trim_end();
    let unit_ms = DURATION_UNITS
        .iter()
        .find(|(name, _)| *name == unit && *name != "ms")
        .map(|(_, ms)| *ms)?;
    let count: f64 = is_plain_number(number).then(|| number.parse().ok())??;
    Some(count * SECOND_MS as f64 / unit_ms as f64)
}

/// A size as the experiment file would spell it, in the largest unit that divides it.
pub fn size_text(bytes: u64) -> String {
    with_largest_unit(bytes, &SIZE_UNITS)
}

/// A duration as the experiment file would spell it, in the largest unit that divides it.
pub fn duration_text(duration_ms: u64) -> String {
    if duration_ms == 0 {
        "0s".to_owned()
    } else {
        with_largest_unit(duration_ms, &DURATION_UNITS)
    }
}

/// A whole number with commas between thousands: `61,204`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value <= -0.5 {
        "-".to_owned()
    } else {
        String::new()
    };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn with_largest_unit(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |factor: u64| factor == 1 || (value >= factor && value.is_multiple_of(factor));
    let (unit, factor) = units
        .iter()
        .find(|(_, factor)| fits(*factor))
        .expect("the smallest unit always fits");
    format!("{}{unit}", value / factor)
}

fn parse_with_unit(text: &str, factor_of: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let number_length = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_length);
    let factor = factor_of(unit.trim_start())?;
    if !is_plain_number(number) {
        return None;
    }
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor),
        Some(_) => {
            let value = number.parse::<f64>().ok()? * factor as f64;
            // Past 2^53 a double no longer counts single bytes.
            (value.fract() == 0.0 && value < (1u64 << 53) as f64).then_some(value as u64)
        }
    }
}

/// Digits with at most one point among them: no sign, no exponent, no `inf`.
fn is_plain_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && text.bytes().filter(|b| *b == b'.').count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [999.6, 75_123.0, 12.0, 1e6, -100.0, -1_234.0, -0.2].map(thousands),
            ["1,000", "75,123", "12", "1,000,000", "-100", "-1,234", "0"]
        );
    }

    #[test]
    fn sizes_are_binary_in_any_case() {
        for (text, bytes) in [
            ("8KiB", 8192),
            ("8K", 8192),
            ("8k", 8192),
            ("64 MiB", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("2T", 2 << 40),
            ("512B", 512),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "8",
            "KiB",
            "8 KB",
            "1MB",
            "-1K",
            "1e3K",
            "1.0001K",
            ".5K",
            "1..5K",
            "99999999999T",
            "8Ki",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_whole_milliseconds() {
        for (text, ms) in [
            ("500ms", 500),
            ("2s", 2000),
            ("2.5s", 2500),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("0s", 0),
        ] {
            assert_eq!(parse_duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "5", "5M", "0.5ms", "five s", "1 day", "-1s"] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }

    #[test]
    fn rates_are_per_second_minute_or_hour() {
        for (text, rate_per_s) in [
            ("500/s", 500.0),
            ("0.5 /s", 0.5),
            ("30000/m", 500.0),
            ("1800/h", 0.5),
        ] {
            assert_eq!(parse_rate_per_s(text), Some(rate_per_s), "{text}");
        }
        for text in [
            "500", "500/", "/s", "500/ms", "500/sec", "-1/s", "1e3/s", "inf/s",
        ] {
            assert_eq!(parse_rate_per_s(text), None, "{text}");
        }
    }

    #[test]
    fn percentages_need_their_sign() {
        assert_eq!(parse_percent("3%"), Some(3.0));
        assert_eq!(parse_percent("2.5 %"), Some(2.5));
        for text in ["3", "%", "-3%", "inf%", "3%%"] {
            assert_eq!(parse_percent(text), None, "{text}");
        }
    }

    #[test]
    fn texts_are_read_back_as_the_same_value() {
        for bytes in [1, 512, 8192, 8193, 64 << 20, (1 << 30) + 1024, 1 << 41] {
            assert_eq!(parse_size(&size_text(bytes)), Some(bytes));
        }
        for ms in [0, 1, 999, 1000, 1500, 60_000, 5_400_000, 7_200_000] {
            assert_eq!(parse_duration_ms(&duration_text(ms)), Some(ms));
        }
        assert_eq!(size_text(64 << 20), "64MiB");
        assert_eq!(duration_text(90_000), "90s");
    }
}
