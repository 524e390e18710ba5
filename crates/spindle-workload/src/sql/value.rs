//! Values on their way into and out of a database.

use std::borrow::Cow;

use spindle_text::calendar::date_of;

/// A value of a column or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// A number of limited precision.
    Float(f64),
    /// An exact number: `digits` times ten to the power of minus `scale`.
    Decimal {
        /// All its digits.
        digits: i64,
        /// How many of them stand behind the point.
        scale: u8,
    },
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A day, counted from 1970-01-01.
    Date(i32),
    /// A moment in universal time, microseconds since the beginning of 1970.
    Timestamp(i64),
}

impl<'a> Value<'a> {
    /// A text that is borrowed.
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }

    /// Bytes that are borrowed.
    pub fn bytes(bytes: &'a [u8]) -> Value<'a> {
        Value::Bytes(Cow::Borrowed(bytes))
    }

    /// An amount of money: hundredths.
    pub fn cents(cents: i64) -> Value<'static> {
        Value::Decimal {
            digits: cents,
            scale: 2,
        }
    }
}

/// An exact number as people and databases write it.
pub fn decimal_text(digits: impl Into<i128>, scale: u8) -> String {
    let digits: i128 = digits.into();
    if scale == 0 {
        return digits.to_string();
    }
    let scale = usize::from(scale);
    let sign = if digits < 0 { "-" } else { "" };
    let padded = format!("{:0width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{part}")
}

/// The digits of an exact number that is written with up to `scale` places; `None` when it is none, or has more that
/// are not zero.
pub fn parse_decimal(text: &str, scale: u8) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let scale = usize::from(scale);
    let (kept, rest) = part.split_at(part.len().min(scale));
    if rest.bytes().any(|digit| digit != b'0') || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let number: i64 = format!("{whole}{kept:0<scale$}").parse().ok()?;
    Some(sign * number)
}

/// A day, counted from 1970-01-01, as ISO 8601 writes it.
pub fn date_text(day: i32) -> String {
    let (year, month, of_month) = date_of(i64::from(day));
    format!("{year:04}-{month:02}-{of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_written_as_dates() {
        for (day, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (59, "1970-03-01"),
            (8_035, "1992-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_text(day), text);
        }
    }

    #[test]
    fn exact_numbers_are_written_and_read() {
        for (digits, scale, text) in [
            (0, 2, "0.00"),
            (5, 2, "0.05"),
            (-5, 2, "-0.05"),
            (12_345, 2, "123.45"),
            (-1234, 4, "-0.1234"),
            (7, 0, "7"),
        ] {
            assert_eq!(decimal_text(digits, scale), text);
            assert_eq!(parse_decimal(text, scale), Some(digits));
        }
        assert_eq!(parse_decimal("1.5", 2), Some(150));
        assert_eq!(parse_decimal("1.500", 2), Some(150));
        assert_eq!(parse_decimal("1.505", 2), None);
        assert_eq!(parse_decimal("x", 2), None);
        assert_eq!(parse_decimal(".", 2), None);
    }
}
