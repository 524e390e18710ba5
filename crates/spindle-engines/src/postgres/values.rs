//! Values in PostgreSQL's binary formats, as its `*_send` and `*_recv` functions write and read them
//! (src/backend/utils/adt of PostgreSQL; of numbers with digits, numeric.c: groups of four decimal digits).

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use postgres_protocol::Oid;
use postgres_protocol::types::{
    bool_from_sql, float4_from_sql, float8_from_sql, int2_from_sql, int4_from_sql, int8_from_sql,
    oid_from_sql,
};
use spindle_workload::SessionError;
use spindle_workload::sql::Value;
use spindle_workload::sql::value::decimal_text;

/// Types by their numbers (pg_type.dat).
const BOOL: Oid = 16;
const BYTEA: Oid = 17;
const CHAR: Oid = 18;
const NAME: Oid = 19;
const INT8: Oid = 20;
const INT2: Oid = 21;
const INT4: Oid = 23;
const TEXT: Oid = 25;
const OID: Oid = 26;
const FLOAT4: Oid = 700;
const FLOAT8: Oid = 701;
const UNKNOWN: Oid = 705;
const BPCHAR: Oid = 1042;
const VARCHAR: Oid = 1043;
const DATE: Oid = 1082;
const TIMESTAMP: Oid = 1114;
const TIMESTAMPTZ: Oid = 1184;
const NUMERIC: Oid = 1700;

/// 2000-01-01, from where PostgreSQL counts, in days and microseconds since 1970-01-01.
const EPOCH_DAY: i32 = 10_957;
const EPOCH_US: i64 = EPOCH_DAY as i64 * 86_400_000_000;
/// A group of digits of a number.
const GROUP: u64 = 10_000;
const GROUP_DIGITS: u32 = 4;
const NEGATIVE: u16 = 0x4000;

/// A value that goes as a text.
pub(super) enum AsText<'a> {
    Text(&'a str),
    Int(i64),
}

impl AsText<'_> {
    /// Writes it.
    pub fn write(self, out: &mut BytesMut) {
        match self {
            AsText::Text(text) => out.put_slice(text.as_bytes()),
            AsText::Int(number) => out.put_slice(number.to_string().as_bytes()),
        }
    }
}

/// A value, if it goes as a text that the server reads as the type: because it is one, or because the binary format of
/// the type is not known here.
pub(super) fn as_text<'a>(value: &'a Value<'_>, of: Oid) -> Option<AsText<'a>> {
    match value {
        Value::Text(text) => {
            let is_as_it_is = matches!(of, TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN);
            (!is_as_it_is).then_some(AsText::Text(text))
        }
        Value::Int(number) => {
            let is_known = match of {
                // Of truths, only 0 and 1 are numbers.
                BOOL => (0..=1).contains(number),
                // What is too large is told by the server in its own words.
                INT4 => i32::try_from(*number).is_ok(),
                INT2 => i16::try_from(*number).is_ok(),
                OID => u32::try_from(*number).is_ok(),
                INT8 | NUMERIC | FLOAT8 | FLOAT4 | TEXT | VARCHAR | BPCHAR => true,
                _ => false,
            };
            (!is_known).then_some(AsText::Int(*number))
        }
        _ => None,
    }
}

/// Writes a value, which is not [`Value::Null`], as the type takes it.
///
/// # Errors
/// [`SessionError::Failed`]: the type does not take such a value, or not so large a one.
pub(super) fn write(value: &Value<'_>, of: Oid, out: &mut BytesMut) -> Result<(), SessionError> {
    match (value, of) {
        (Value::Int(number), _) => write_int(*number, of, out),
        (Value::Float(number), FLOAT8) => {
            out.put_f64(*number);
            Ok(())
        }
        (Value::Float(number), FLOAT4) => {
            out.put_f32(*number as f32);
            Ok(())
        }
        (Value::Decimal { digits, scale }, NUMERIC) => {
            write_numeric(*digits, *scale, out);
            Ok(())
        }
        (Value::Decimal { digits, scale }, FLOAT8) => {
            out.put_f64(*digits as f64 / 10f64.powi(i32::from(*scale)));
            Ok(())
        }
        (Value::Decimal { digits, scale: 0 }, _) => write_int(*digits, of, out),
        (Value::Decimal { digits, scale }, TEXT | VARCHAR | BPCHAR) => {
            out.put_slice(decimal_text(*digits, *scale).as_bytes());
            Ok(())
        }
        (Value::Text(text), TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN) => {
            out.put_slice(text.as_bytes());
            Ok(())
        }
        (Value::Bytes(bytes), BYTEA) => {
            out.put_slice(bytes);
            Ok(())
        }
        (Value::Date(day), DATE) => {
            out.put_i32(day - EPOCH_DAY);
            Ok(())
        }
        (Value::Date(day), TIMESTAMP | TIMESTAMPTZ) => {
            out.put_i64(i64::from(*day) * 86_400_000_000 - EPOCH_US);
            Ok(())
        }
        (Value::Timestamp(moment), TIMESTAMP | TIMESTAMPTZ) => {
            out.put_i64(moment - EPOCH_US);
            Ok(())
        }
        _ => Err(no_such(value, of)),
    }
}

fn write_int(number: i64, of: Oid, out: &mut BytesMut) -> Result<(), SessionError> {
    let too_large = || no_such(&Value::Int(number), of);
    match of {
        INT8 => out.put_i64(number),
        INT4 => out.put_i32(i32::try_from(number).map_err(|_| too_large())?),
        INT2 => out.put_i16(i16::try_from(number).map_err(|_| too_large())?),
        OID => out.put_u32(u32::try_from(number).map_err(|_| too_large())?),
        BOOL => out.put_u8(u8::from(number != 0)),
        NUMERIC => write_numeric(number, 0, out),
        FLOAT8 => out.put_f64(number as f64),
        FLOAT4 => out.put_f32(number as f32),
        TEXT | VARCHAR | BPCHAR => out.put_slice(number.to_string().as_bytes()),
        _ => return Err(too_large()),
    }
    Ok(())
}

fn no_such(value: &Value<'_>, of: Oid) -> SessionError {
    SessionError::Failed(format!("type {of} of PostgreSQL does not take {value:?}"))
}

fn write_numeric(digits: i64, scale: u8, out: &mut BytesMut) {
    // Groups begin at the point: what stands behind it is filled up to whole groups.
    let missing = (GROUP_DIGITS - u32::from(scale) % GROUP_DIGITS) % GROUP_DIGITS;
    let mut rest = u128::from(digits.unsigned_abs()) * 10u128.pow(missing);
    let behind = (u32::from(scale) + missing) / GROUP_DIGITS;
    // Ten groups hold the nineteen digits of 64 bits and three more.
    let mut groups = [0u16; 10];
    let mut count = 0;
    while rest > 0 {
        groups[count] = (rest % u128::from(GROUP)) as u16;
        rest /= u128::from(GROUP);
        count += 1;
    }
    out.put_u16(count as u16);
    out.put_i16(count as i16 - behind as i16 - 1);
    out.put_u16(if digits < 0 { NEGATIVE } else { 0 });
    out.put_u16(u16::from(scale));
    for group in groups[..count].iter().rev() {
        out.put_u16(*group);
    }
}

/// Reads a value of a type.
///
/// # Errors
/// [`SessionError::Failed`]: a type that workloads do not use, or bytes that are none of it.
pub(super) fn read(bytes: &[u8], of: Oid) -> Result<Value<'_>, SessionError> {
    let malformed = |error: Box<dyn std::error::Error + Sync + Send>| {
        SessionError::Failed(format!("a value of type {of} of PostgreSQL: {error}"))
    };
    let int = |number: i64| Ok(Value::Int(number));
    match of {
        INT8 => int(int8_from_sql(bytes).map_err(malformed)?),
        INT4 => int(int4_from_sql(bytes).map_err(malformed)?.into()),
        INT2 => int(int2_from_sql(bytes).map_err(malformed)?.into()),
        OID => int(oid_from_sql(bytes).map_err(malformed)?.into()),
        BOOL => int(bool_from_sql(bytes).map_err(malformed)?.into()),
        FLOAT8 => Ok(Value::Float(float8_from_sql(bytes).map_err(malformed)?)),
        FLOAT4 => Ok(Value::Float(
            float4_from_sql(bytes).map_err(malformed)?.into(),
        )),
        TEXT | VARCHAR | BPCHAR | NAME | CHAR | UNKNOWN => {
            Ok(Value::Text(String::from_utf8_lossy(bytes)))
        }
        BYTEA => Ok(Value::bytes(bytes)),
        DATE => {
            let day = int4_from_sql(bytes).map_err(malformed)?;
            Ok(Value::Date(day.saturating_add(EPOCH_DAY)))
        }
        TIMESTAMP | TIMESTAMPTZ => {
            let moment = int8_from_sql(bytes).map_err(malformed)?;
            Ok(Value::Timestamp(moment.saturating_add(EPOCH_US)))
        }
        NUMERIC => read_numeric(bytes)
            .ok_or_else(|| SessionError::Failed("an exact number that is none".to_owned())),
        _ => Err(SessionError::Failed(format!(
            "an answer has a column of type {of} of PostgreSQL, which no workload uses: cast it to text"
        ))),
    }
}

/// Reads a value of a type as the server writes it. What workloads do not calculate with stays a text.
///
/// # Errors
/// [`SessionError::Failed`]: it is none of that type.
pub(super) fn read_written(bytes: &[u8], of: Oid) -> Result<Value<'_>, SessionError> {
    let text = String::from_utf8_lossy(bytes);
    let value = match of {
        INT8 | INT4 | INT2 | OID => text.parse().ok().map(Value::Int),
        BOOL => Some(Value::Int(matches!(&*text, "t" | "true").into())),
        FLOAT8 | FLOAT4 => text.parse().ok().map(Value::Float),
        NUMERIC => exact(&text),
        BYTEA => text.strip_prefix("\\x").and_then(from_hex),
        _ => return Ok(Value::Text(text)),
    };
    value.ok_or_else(|| {
        SessionError::Failed(format!("a value of type {of} of PostgreSQL: {text:?}"))
    })
}

/// A number with all its digits; one that has too many, or is no finite one, as it can be kept.
fn exact(text: &str) -> Option<Value<'static>> {
    let places = text.split_once('.').map_or(0, |(_, places)| places.len());
    let digits = text.replacen('.', "", 1);
    match (digits.parse(), u8::try_from(places)) {
        (Ok(digits), Ok(scale)) => Some(Value::Decimal { digits, scale }),
        _ if digits.parse::<i128>().is_ok() => Some(Value::Text(Cow::Owned(text.to_owned()))),
        _ => text.parse().ok().map(Value::Float),
    }
}

fn from_hex(digits: &str) -> Option<Value<'static>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.map(|bytes| Value::Bytes(Cow::Owned(bytes)))
}

fn read_numeric(bytes: &[u8]) -> Option<Value<'static>> {
    let mut words = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (count, weight) = (words.next()?, words.next()? as i16);
    let (sign, scale) = (words.next()?, words.next()?);
    if sign != 0 && sign != NEGATIVE {
        return Some(Value::Float(match sign {
            0xD000 => f64::INFINITY,
            0xF000 => f64::NEG_INFINITY,
            _ => f64::NAN,
        }));
    }
    let groups: Vec<u16> = words.take(usize::from(count)).collect();
    if groups.len() != usize::from(count) {
        return None;
    }
    let signed = |number: i128| if sign == NEGATIVE { -number } else { number };
    let exact = exact_digits(&groups, weight, u32::from(scale)).map(signed);
    let small = exact.and_then(|digits| i64::try_from(digits).ok());
    Some(match (small, u8::try_from(scale), exact) {
        (Some(digits), Ok(scale), _) => Value::Decimal { digits, scale },
        // Averages have more digits than fit: as they are written.
        (_, Ok(scale), Some(digits)) => Value::Text(Cow::Owned(decimal_text(digits, scale))),
        _ => {
            let groups = groups.iter().enumerate();
            let value = groups.fold(0.0, |sum, (place, group)| {
                sum + f64::from(*group) * (GROUP as f64).powi(i32::from(weight) - place as i32)
            });
            Value::Float(if sign == NEGATIVE { -value } else { value })
        }
    })
}

/// All digits up to the last place of the scale.
fn exact_digits(groups: &[u16], weight: i16, scale: u32) -> Option<i128> {
    let mut digits: i128 = 0;
    for (place, group) in groups.iter().enumerate() {
        // The power of ten of the group's last digit.
        let power = (i32::from(weight) - place as i32) * GROUP_DIGITS as i32 + scale as i32;
        let group = i128::from(*group);
        let part = match u32::try_from(power) {
            Ok(power) => group.checked_mul(10i128.checked_pow(power)?)?,
            // A group may reach beyond the scale with zeros.
            Err(_) => group / 10i128.checked_pow(power.unsigned_abs())?,
        };
        digits = digits.checked_add(part)?;
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<'a>(value: &Value<'_>, of: Oid, bytes: &'a mut BytesMut) -> Value<'a> {
        bytes.clear();
        write(value, of, bytes).unwrap();
        read(&*bytes, of).unwrap()
    }

    #[test]
    fn exact_numbers_keep_every_digit() {
        let mut bytes = BytesMut::new();
        for (digits, scale) in [
            (0, 0),
            (0, 2),
            (5, 2),
            (-5, 2),
            (12_345, 2),
            (100_000_000, 0),
            (100_000_000, 4),
            (1, 9),
            (i64::MAX, 3),
            (i64::MIN, 0),
            (i64::MIN, 18),
        ] {
            let value = Value::Decimal { digits, scale };
            assert_eq!(there_and_back(&value, NUMERIC, &mut bytes), value);
        }
    }

    #[test]
    fn numbers_with_more_digits_than_fit_are_texts() {
        // 12345678901234567890.5: groups 1234 5678 9012 3456 7890 . 5000
        let words: [u16; 10] = [6, 4, 0, 1, 1234, 5678, 9012, 3456, 7890, 5000];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(
            read(&bytes, NUMERIC).unwrap(),
            Value::text("12345678901234567890.5")
        );
    }

    #[test]
    fn what_a_server_writes_is_read_as_what_it_sends() {
        for (text, of, value) in [
            ("-7", INT8, Value::Int(-7)),
            ("t", BOOL, Value::Int(1)),
            ("f", BOOL, Value::Int(0)),
            ("0.30000000000000004", FLOAT8, Value::Float(0.1 + 0.2)),
            ("-Infinity", FLOAT8, Value::Float(f64::NEG_INFINITY)),
            (
                "-0.05",
                NUMERIC,
                Value::Decimal {
                    digits: -5,
                    scale: 2,
                },
            ),
            (
                "12345678901234567890.5",
                NUMERIC,
                Value::text("12345678901234567890.5"),
            ),
            ("\\x00ff", BYTEA, Value::bytes(&[0, 255])),
            ("2026-11-25", DATE, Value::text("2026-11-25")),
            ("{\"a\": 1}", 3802, Value::text("{\"a\": 1}")),
        ] {
            assert_eq!(read_written(text.as_bytes(), of), Ok(value), "{text}");
        }
        assert!(read_written(b"seven", INT4).is_err());
    }

    #[test]
    fn values_that_a_type_cannot_hold_are_refused() {
        let mut bytes = BytesMut::new();
        assert!(write(&Value::Int(40_000), INT2, &mut bytes).is_err());
        assert!(write(&Value::text("x"), INT4, &mut bytes).is_err());
        assert!(read(&[1, 2], INT4).is_err());
        assert!(read(&[1, 2], 3802).is_err());
    }
}
