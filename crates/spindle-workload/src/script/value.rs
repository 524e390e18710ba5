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

/// As C's `%.15g` writes a number.
fn double_text(number: f64) -> String {
    const DIGITS: i32 = 15;
    if number.is_nan() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}nan");
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
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
        }
    }
}

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
    let number = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        // What looks like a whole number must be one that fits.
        return number.parse().ok().map(Scalar::Int);
    }
    let double: f64 = number.parse().ok()?;
    let says_infinity = digits.starts_with(['i', 'I', 'n', 'N']);
    (double.is_finite() || says_infinity).then_some(Scalar::Double(double))
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
            (f64::INFINITY, "inf"),
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
