//! Sizes, durations and percentages as people write them: `"64MiB"`, `"500ms"`, `"3%"`.
//!
//! Pure functions from text to number and back. [`size`] is how any message, table or page tells a size. [`size_text`]
//! and [`duration_text`] spell a setting as the experiment file does. Sizes are binary, as database files are: `K`,
//! `M`, `G`, `T` mean `KiB`, `MiB`, `GiB`, `TiB`.

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

/// A size as a person reads it: exact where a short figure is (`1.25 GiB`, `1,100 MiB`, `8,193 bytes`), else in three
/// figures that count (`1.26 GiB`, `4.00 KiB`).
pub fn size(bytes: u64) -> String {
    size_rounded(bytes, f64::round)
}

/// The same of what is needed: rounded up, so that making that much room is enough.
pub fn size_needed(bytes: u64) -> String {
    size_rounded(bytes, f64::ceil)
}

/// The same of what is free: rounded down, so that it is never more than there is.
pub fn size_free(bytes: u64) -> String {
    size_rounded(bytes, f64::floor)
}

/// The same, but in bytes where three figures would leave some out.
pub fn size_exact(bytes: u64) -> String {
    match size_needed(bytes) == size_free(bytes) {
        true => size(bytes),
        false => format!("{} bytes", thousands(bytes as f64)),
    }
}

fn size_rounded(bytes: u64, round: fn(f64) -> f64) -> String {
    const SHORT_MAX: u64 = 9_999;
    let fits = |factor: u64| factor == 1 || bytes >= factor;
    let at = SIZE_UNITS
        .iter()
        .position(|(_, factor)| fits(*factor))
        .expect("the smallest unit always fits");
    let named = |figure: String, unit: &str| match (unit, bytes) {
        ("B", 1) => "1 byte".to_owned(),
        ("B", _) => format!("{figure} bytes"),
        _ => format!("{figure} {unit}"),
    };
    let (unit, factor) = SIZE_UNITS[at];
    let value = bytes as f64 / factor as f64;
    if (100 * u128::from(bytes)).is_multiple_of(u128::from(factor)) && value < 1000.0 {
        return named(value.to_string(), unit);
    }
    let exact = SIZE_UNITS[at..].iter().find(|(_, factor)| {
        bytes.is_multiple_of(*factor) && (bytes / factor <= SHORT_MAX || *factor == TIB)
    });
    if let Some((unit, factor)) = exact {
        return named(thousands((bytes / factor) as f64), unit);
    }
    // What rounds to 1,024 is one of the next larger unit.
    let (value, unit) = match at.checked_sub(1) {
        Some(larger) if round(value) >= 1024.0 => (value / 1024.0, SIZE_UNITS[larger].0),
        _ => (value, unit),
    };
    let (decimals, tens) = match value {
        ..9.995 => (2, 100.0),
        ..99.95 => (1, 10.0),
        _ => return named(thousands(round(value)), unit),
    };
    let value = round(value * tens) / tens;
    named(format!("{value:.decimals$}"), unit)
}

/// Two sizes that a person compares: as [`size`] tells them, but in bytes where that would make the same of them.
pub fn two_sizes(one: u64, other: u64) -> [String; 2] {
    match (size(one), size(other)) {
        (first, second) if first == second && one != other => [one, other].map(size_exact),
        (first, second) => [first, second],
    }
}

/// A duration as the experiment file would spell it, in the largest unit that divides it.
pub fn duration_text(duration_ms: u64) -> String {
    if duration_ms == 0 {
        "0s".to_owned()
    } else {
        with_largest_unit(duration_ms, &DURATION_UNITS)
    }
}

/// A short time in microseconds as a person reads it, to about three figures: `1.81 us`, `45 us`, `1.23 ms`, `250 ms`,
/// `2.5 s`.
pub fn time(value_us: f64) -> String {
    match value_us {
        0.0 => "0 us".to_owned(),
        -9.995..9.995 => format!("{value_us:.2} us"),
        ..999.5 => format!("{value_us:.0} us"),
        ..99_995.0 => format!("{:.2} ms", value_us / 1e3),
        ..999_500.0 => format!("{:.0} ms", value_us / 1e3),
        _ => format!("{:.1} s", value_us / 1e6),
    }
}

/// An estimate of a time as a person reads it: `0.4 s`, `45 s`, `12 min`, `3.5 h`. Rounded up.
pub fn about_time(duration_ms: u64) -> String {
    let tenths = duration_ms.div_ceil(100);
    if tenths < 100 && !tenths.is_multiple_of(10) {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = duration_ms.div_ceil(1000);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        7200..=172_799 => format!("{:.1} h", seconds as f64 / 3600.0),
        _ => format!("{} days", thousands(seconds.div_ceil(86_400) as f64)),
    }
}

/// A time that has passed as a person reads it, in its two largest units: `4 s`, `2 min 3 s`, `1 h 12 min`.
pub fn elapsed(duration_ms: u64) -> String {
    let seconds = (duration_ms + 500) / 1000;
    let minutes = (seconds + 30) / 60;
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
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

/// Millions of bytes per second, or whatever else may be few: a decimal below 10, commas between thousands.
pub fn thousands_or_tenths(value: f64) -> String {
    match value < 10.0 {
        true => format!("{value:.1}"),
        false => thousands(value),
    }
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
    fn a_time_that_has_passed_has_two_units() {
        for (ms, told) in [
            (400, "0 s"),
            (4_400, "4 s"),
            (59_600, "1 min 0 s"),
            (123_000, "2 min 3 s"),
            (3_599_400, "59 min 59 s"),
            (4_320_000, "1 h 12 min"),
            (7_170_000, "2 h 0 min"),
        ] {
            assert_eq!(elapsed(ms), told, "{ms}");
        }
    }

    #[test]
    fn estimates_are_short() {
        let times = [1, 901, 1_320, 9_950, 119_000, 121_000, 9_000_000].map(about_time);
        let words = ["0.1 s", "1 s", "1.4 s", "10 s", "119 s", "3 min", "2.5 h"];
        assert_eq!(times, words);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [999.6, 75_123.0, 12.0, 1e6, -100.0, -1_234.0, -0.2].map(thousands),
            ["1,000", "75,123", "12", "1,000,000", "-100", "-1,234", "0"]
        );
    }

    #[test]
    fn what_is_needed_is_never_understated_nor_what_is_free_overstated() {
        let (mut bytes, mut rounded) = (1_u64, 0);
        while bytes < 5 * TIB {
            let of = |text: String| {
                let (figure, unit) = text.split_once(' ').unwrap();
                let figure: f64 = figure.replace(',', "").parse().unwrap();
                let unit = SIZE_UNITS.iter().find(|(name, _)| *name == unit);
                figure * unit.map_or(1, |(_, factor)| *factor) as f64
            };
            let (needed, free) = (of(size_needed(bytes)), of(size_free(bytes)));
            let exact = bytes as f64;
            assert!(needed >= exact && needed <= 1.01 * exact, "{bytes}");
            assert!(free <= exact && free >= 0.99 * exact, "{bytes}");
            rounded += u32::from(needed > free);
            bytes += bytes / 7 + 1;
        }
        assert!(rounded > 100);
        let exact = [MIB + 512, 8192, 9_000 * MIB].map(size_exact);
        assert_eq!(exact, ["1,049,088 bytes", "8 KiB", "9,000 MiB"]);
        assert_eq!(
            [size_needed(GIB - 1), size_free(GIB - 1)],
            ["1.00 GiB", "1,023 MiB"]
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
    fn people_read_sizes_exactly_or_in_three_figures() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (512, "512 bytes"),
            (4096, "4 KiB"),
            (8193, "8,193 bytes"),
            (1536, "1.5 KiB"),
            (12_345, "12.1 KiB"),
            (3 * MIB + 1, "3.00 MiB"),
            (1100 * MIB, "1,100 MiB"),
            (GIB + GIB / 4, "1.25 GiB"),
            (3 * GIB / 2, "1.5 GiB"),
            (25_276_510_208, "23.5 GiB"),
            (GIB - 1, "1.00 GiB"),
            (1000 * MIB - 1, "1,000 MiB"),
            (24 * GIB, "24 GiB"),
            (20_000 * TIB, "20,000 TiB"),
            (u64::MAX, "16,777,216 TiB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn people_read_short_times_in_the_unit_that_fits() {
        assert_eq!(
            [0.0, 45.4, 999.7, 1234.0, 250_000.0, 2_500_000.0].map(time),
            ["0 us", "45 us", "1.00 ms", "1.23 ms", "250 ms", "2.5 s"]
        );
    }

    #[test]
    fn two_sizes_never_look_the_same_unless_they_are() {
        assert_eq!(two_sizes(GIB, GIB / 2), ["1 GiB", "512 MiB"]);
        assert_eq!(
            two_sizes(3 * MIB + 1, 3 * MIB + 2),
            ["3,145,729 bytes", "3,145,730 bytes"]
        );
        assert_eq!(two_sizes(MIB, MIB), ["1 MiB", "1 MiB"]);
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
