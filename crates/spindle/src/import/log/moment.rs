//! Moments as logs write them, in microseconds. Time zones are not looked at: only what lies between moments matters.

use spindle_text::calendar::days_since_1970;

/// `2026-11-24 09:00:00.123 UTC`, `2026-11-24T09:00:00.123456Z`, or, as MariaDB writes it, `261124  9:00:00`.
pub fn moment_us(text: &str) -> Option<u64> {
    let text = text.trim();
    let (date, time) = text.split_once([' ', 'T'])?;
    let (year, month, day) = match date.split('-').collect::<Vec<_>>()[..] {
        [year, month, day] => (number(year)?, number(month)?, number(day)?),
        _ if date.len() == 6 && date.is_ascii() => (
            2000 + number(&date[..2])?,
            number(&date[2..4])?,
            number(&date[4..])?,
        ),
        _ => return None,
    };
    let time = time.trim_start();
    let end = time.find(|letter: char| !letter.is_ascii_digit() && !":.".contains(letter));
    let time = &time[..end.unwrap_or(time.len())];
    let parts: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = parts[..] else {
        return None;
    };
    let (second, part) = second.split_once('.').unwrap_or((second, ""));
    let is_there = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !is_there || year > 9999 || part.len() > 9 || !part.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let part_us = format!("{part:0<6.6}").parse::<u64>().ok()?;
    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(u64::try_from(seconds).ok()? * 1_000_000 + part_us)
}

fn number(text: &str) -> Option<i64> {
    let is_number = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// A time that is written in seconds or milliseconds, in microseconds.
pub fn duration_us(text: &str, unit_us: f64) -> Option<u64> {
    let time: f64 = text.trim().parse().ok()?;
    let is_time = time.is_finite() && (0.0..1e12).contains(&time);
    is_time.then_some((time * unit_us) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_each_server_writes_them() {
        let midnight = 1_795_478_400_000_000;
        let nine = midnight + 9 * 3_600_000_000;
        for (text, moment) in [
            ("2026-11-24 09:00:00.123 UTC", nine + 123_000),
            ("2026-11-24T09:00:00.123456Z", nine + 123_456),
            ("2026-11-24T09:00:00.123456+01:00", nine + 123_456),
            ("261124  9:00:00", nine),
            ("2026-11-24 00:00:00", midnight),
        ] {
            assert_eq!(moment_us(text), Some(moment), "{text}");
        }
        for wrong in [
            "",
            "2026-11-24",
            "2026-13-01 00:00:00",
            "é",
            "261124 9:é0:00",
            "1-1-1 1:1:1",
        ] {
            assert_eq!(moment_us(wrong), None, "{wrong}");
        }
        assert_eq!(duration_us("0.123", 1e3), Some(123));
        assert_eq!(duration_us("NaN", 1e3), None);
    }
}
