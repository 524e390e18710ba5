//! Values of expressions, and variables: what `\set` calculated, or a text that a definition or an answer of the
//! database left, which is understood when an expression asks for it.

use std::borrow::Cow;

use super::mistake::NoValue;
use crate::sql::{Dialect, Value};

/// A value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl Scalar {
    fn type_name(self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "boolean",
            Scalar::Int(_) => "int",
            Scalar::Double(_) => "double",
        }
    }

    /// As a whole number; doubles are rounded, halves to the even one.
    pub fn to_int(self) -> Result<i64, NoValue> {
        // 2 to the power of 63, the first that does not fit.
        const LIMIT: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Scalar::Int(number) => Ok(number),
            Scalar::Double(number) => match number.round_ties_even() {
                rounded if (-LIMIT..LIMIT).contains(&rounded) => Ok(rounded as i64),
                rounded => Err(NoValue::Overflow(rounded)),
            },
            other => Err(NoValue::Coercion(other.type_name(), "int")),
        }
    }

    /// As a double.
    pub fn to_double(self) -> Result<f64, NoValue> {
        match self {
            Scalar::Int(number) => Ok(number as f64),
            Scalar::Double(number) => Ok(number),
            other => Err(NoValue::Coercion(other.type_name(), "double")),
        }
    }

    /// As a truth value; numbers are none.
    pub fn to_bool(self) -> Result<bool, NoValue> {
        match self {
            Scalar::Bool(truth) => Ok(truth),
            other => Err(NoValue::Coercion(other.type_name(), "boolean")),
        }
    }

    /// What a condition makes of it: numbers other than 0 are true, no value is not.
    pub fn is_true(self) -> bool {
        match self {
            Scalar::Null => false,
            Scalar::Bool(truth) => truth,
            Scalar::Int(number) => number != 0,
            Scalar::Double(number) => number != 0.0,
        }
    }

    /// As pgbench writes it into a statement.
    pub fn text(self) -> String {
        match self {
            Scalar::Null => "NULL".to_owned(),
            Scalar::Bool(truth) => truth.to_string(),
            Scalar::Int(number) => number.to_string(),
            Scalar::Double(number) => double_text(number),
        }
    }

    /// As a parameter of a statement. A double goes as a text of 15 digits, as pgbench sends it.
    pub fn parameter(self, dialect: Dialect) -> Value<'static> {
        match (self, dialect) {
            (Scalar::Null, _) => Value::Null,
            (Scalar::Int(number), _) => Value::Int(number),
            (Scalar::Bool(_) | Scalar::Double(_), Dialect::Postgres) => {
                Value::Text(Cow::Owned(self.text()))
            }
            (Scalar::Bool(truth), _) => Value::Int(truth.into()),
            (Scalar::Double(number), _) => Value::Float(number),
        }
    }
}

/// As PostgreSQL's `%.15g` writes a number: as C's does, but for what is no finite one (src/port/snprintf.c).
pub(super) fn double_text(number: f64) -> String {
    const DIGITS: i32 = 15;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        let sign = if number > 0.0 { "" } else { "-" };
        return format!("{sign}Infinity");
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let places = (DIGITS - 1 - exponent) as usize;
        return without_zeros(&format!("{number:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let digits = without_zeros(digits);
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A variable of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Variable {
    /// Nothing has set it.
    Unset,
    /// What an expression gave.
    Scalar(Scalar),
    /// What a definition or an answer gave.
    Text(String),
    /// What an answer gave that is no text.
    Bytes(Vec<u8>),
}

impl Variable {
    /// Of a text: as the whole number that it writes in the usual way, else as it is.
    pub fn of_text(text: &str) -> Variable {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Variable::Scalar(Scalar::Int(number)),
            _ => Variable::Text(text.to_owned()),
        }
    }

    /// Its value in an expression.
    pub fn value(&self, name: &str) -> Result<Scalar, NoValue> {
        match self {
            Variable::Unset => Err(NoValue::Undefined(name.to_owned())),
            Variable::Scalar(scalar) => Ok(*scalar),
            Variable::Text(text) => understood(text).ok_or_else(|| NoValue::Malformed {
                name: name.to_owned(),
                text: text.clone(),
            }),
            Variable::Bytes(bytes) => {
                Variable::Text(String::from_utf8_lossy(bytes).into_owned()).value(name)
            }
        }
    }

    /// Its value as a time of `\sleep`: the digits that its text begins with, as C's `atoi` reads them.
    pub fn time(&self, name: &str) -> Result<i64, NoValue> {
        let text = match self {
            Variable::Unset => return Err(NoValue::Undefined(name.to_owned())),
            Variable::Scalar(scalar) => scalar.text(),
            Variable::Text(text) => text.clone(),
            Variable::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        };
        let number = text.trim_start_matches(BLANKS);
        let (sign, digits) = match number.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, number.strip_prefix('+').unwrap_or(number)),
        };
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = match count {
            0 => 0,
            _ => digits[..count].parse().unwrap_or(i64::MAX),
        };
        match number == 0 && !text.starts_with(|first: char| first.is_ascii_digit()) {
            true => Err(NoValue::NoTime {
                name: name.to_owned(),
                text,
            }),
            false => Ok(sign * number),
        }
    }
}

/// What C's `isspace` takes for one.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// The value that a text writes. Beginnings of words are enough, as for pgbench.
fn understood(text: &str) -> Option<Scalar> {
    let lower = text.to_ascii_lowercase();
    let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
    if lower.is_empty() {
        return None;
    }
    if lower == "null" {
        return Some(Scalar::Null);
    }
    if begins("true") || begins("yes") || lower == "on" {
        return Some(Scalar::Bool(true));
    }
    if begins("false") || begins("no") || lower == "off" || lower == "of" {
        return Some(Scalar::Bool(false));
    }
    let number = text.trim_start_matches(BLANKS);
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        // What looks like a whole number must be one that fits.
        return number.parse().ok().map(Scalar::Int);
    }
    if digits.starts_with("0x") || digits.starts_with("0X") {
        let sign = if number.starts_with('-') { -1.0 } else { 1.0 };
        let double = hexadecimal(&digits[2..])?;
        return double.is_finite().then_some(Scalar::Double(sign * double));
    }
    let double: f64 = number.parse().ok()?;
    let says_infinity = digits.starts_with(['i', 'I', 'n', 'N']);
    (double.is_finite() || says_infinity).then_some(Scalar::Double(double))
}

/// A number in base 16, as C's `strtod` reads it behind `0x`: digits with a point among them, and a power of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, power) = match text.split_once(['p', 'P']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(part.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(part.len()).ok()?.checked_mul(4)?;
    Some(number * 2f64.powi(power.checked_sub(places)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_with_fifteen_digits_as_c_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (1e15, "1e+15"),
            (123_456_789_012_345.6, "123456789012346"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e300, "1e+300"),
            (std::f64::consts::PI, "3.14159265358979"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (-f64::NAN, "NaN"),
        ] {
            assert_eq!(double_text(number), text, "{number:e}");
        }
    }

    #[test]
    fn texts_are_understood_as_pgbench_understands_them() {
        for (text, value) in [
            ("null", Some(Scalar::Null)),
            ("t", Some(Scalar::Bool(true))),
            ("Yes", Some(Scalar::Bool(true))),
            ("on", Some(Scalar::Bool(true))),
            ("o", None),
            ("of", Some(Scalar::Bool(false))),
            ("n", Some(Scalar::Bool(false))),
            (" 12", Some(Scalar::Int(12))),
            ("+12", Some(Scalar::Int(12))),
            ("12.5", Some(Scalar::Double(12.5))),
            ("1e3", Some(Scalar::Double(1000.0))),
            ("0x10", Some(Scalar::Double(16.0))),
            ("-0X1.8p1", Some(Scalar::Double(-3.0))),
            ("0x", None),
            ("0x1g", None),
            ("99999999999999999999", None),
            ("", None),
            ("blue", None),
        ] {
            assert_eq!(understood(text), value, "{text:?}");
        }
        assert_eq!(
            Variable::of_text("7"),
            Variable::Scalar(Scalar::Int(7)),
            "no text is kept"
        );
        assert_eq!(Variable::of_text("07"), Variable::Text("07".to_owned()));
    }

    #[test]
    fn times_to_sleep_are_read_as_pgbench_reads_them() {
        let time = |text: &str| Variable::of_text(text).time("x").ok();
        for (text, wanted) in [
            ("12", Some(12)),
            ("-5", Some(-5)),
            (" 7ms", Some(7)),
            ("1.9", Some(1)),
            ("0x10", Some(0)),
            ("", None),
            ("soon", None),
            ("99999999999999999999", Some(i64::MAX)),
        ] {
            assert_eq!(time(text), wanted, "{text:?}");
        }
        assert_eq!(Variable::Scalar(Scalar::Double(2.5)).time("x"), Ok(2));
        assert!(Variable::Unset.time("x").is_err());
    }

    #[test]
    fn doubles_become_whole_numbers_to_the_nearest_even_one() {
        for (double, whole) in [(2.5, 2), (3.5, 4), (-2.5, -2), (2.6, 3)] {
            assert_eq!(Scalar::Double(double).to_int(), Ok(whole));
        }
        assert!(Scalar::Double(9.3e18).to_int().is_err());
        assert!(Scalar::Double(f64::NAN).to_int().is_err());
        assert_eq!(
            Scalar::Double(-9_223_372_036_854_775_808.0).to_int(),
            Ok(i64::MIN)
        );
    }
}
