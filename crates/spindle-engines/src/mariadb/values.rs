//! Values as MariaDB and MySQL send and take them. Answers to prepared statements are binary, others are texts whose
//! type the column tells.

use mysql::consts::ColumnType;
use spindle_text::calendar::{date_of, days_since_1970};
use spindle_workload::SessionError;
use spindle_workload::sql::value::{decimal_text, parse_decimal};
use spindle_workload::sql::{SqlRow, Value};

/// The character set of bytes that are no text (`binary`).
const BINARY: u16 = 63;
const DAY_US: i64 = 86_400_000_000;

/// A value on its way in. Exact numbers go as texts: the server makes numbers of them.
pub(super) fn parameter(value: &Value<'_>) -> mysql::Value {
    match value {
        Value::Null => mysql::Value::NULL,
        Value::Int(number) => mysql::Value::Int(*number),
        Value::Float(number) => mysql::Value::Double(*number),
        Value::Decimal { digits, scale } => {
            mysql::Value::Bytes(decimal_text(*digits, *scale).into_bytes())
        }
        Value::Text(text) => mysql::Value::Bytes(text.as_bytes().to_vec()),
        Value::Bytes(bytes) => mysql::Value::Bytes(bytes.to_vec()),
        Value::Date(day) => moment(i64::from(*day) * DAY_US),
        Value::Timestamp(microseconds) => moment(*microseconds),
    }
}

fn moment(microseconds: i64) -> mysql::Value {
    let (year, month, day) = date_of(microseconds.div_euclid(DAY_US));
    let of_day = microseconds.rem_euclid(DAY_US);
    let seconds = of_day / 1_000_000;
    mysql::Value::Date(
        year as u16,
        month as u8,
        day as u8,
        (seconds / 3600) as u8,
        (seconds / 60 % 60) as u8,
        (seconds % 60) as u8,
        (of_day % 1_000_000) as u32,
    )
}

/// A value as a text that `LOAD DATA` reads; `None`: no value, or one that is its own text.
pub(super) fn load_text(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:e}"),
        Value::Decimal { digits, scale } => decimal_text(*digits, *scale),
        Value::Date(day) => {
            let (year, month, day) = date_of(i64::from(*day));
            format!("{year:04}-{month:02}-{day:02}")
        }
        Value::Timestamp(microseconds) => {
            let (year, month, day) = date_of(microseconds.div_euclid(DAY_US));
            let of_day = microseconds.rem_euclid(DAY_US);
            let (seconds, part) = (of_day / 1_000_000, of_day % 1_000_000);
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{part:06}")
        }
        Value::Null | Value::Text(_) | Value::Bytes(_) => return None,
    })
}

/// A row of an answer.
pub(super) struct AnswerRow(pub mysql::Row);

impl SqlRow for AnswerRow {
    fn columns(&self) -> usize {
        self.0.len()
    }

    fn name(&self, column: usize) -> &str {
        let described = self.0.columns_ref().get(column);
        described.map_or("", |described| {
            std::str::from_utf8(described.name_ref()).unwrap_or_default()
        })
    }

    fn value(&self, column: usize) -> Result<Value<'_>, SessionError> {
        let columns = self.0.columns_ref();
        let (Some(described), Some(value)) = (columns.get(column), self.0.as_ref(column)) else {
            return Err(SessionError::Failed(format!("there is no column {column}")));
        };
        let kind = described.column_type();
        let is_bytes = described.character_set() == BINARY;
        let converted = match value {
            mysql::Value::Bytes(bytes) => of_text(kind, is_bytes, bytes),
            other => of_binary(kind, other),
        };
        converted.ok_or_else(|| {
            SessionError::Failed(format!("column {column} holds {value:?}, of type {kind:?}"))
        })
    }
}

fn of_binary(kind: ColumnType, value: &mysql::Value) -> Option<Value<'static>> {
    Some(match *value {
        mysql::Value::NULL => Value::Null,
        mysql::Value::Int(number) => Value::Int(number),
        mysql::Value::UInt(number) => match i64::try_from(number) {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Text(number.to_string().into()),
        },
        mysql::Value::Float(number) => Value::Float(f64::from(number)),
        mysql::Value::Double(number) => Value::Float(number),
        mysql::Value::Date(year, month, day, hour, minute, second, microseconds) => {
            // No day of any calendar: `0000-00-00`, `2024-00-15`.
            if month == 0 || day == 0 {
                let mut text = format!("{year:04}-{month:02}-{day:02}");
                if kind != ColumnType::MYSQL_TYPE_DATE {
                    text += &format!(" {hour:02}:{minute:02}:{second:02}");
                }
                if microseconds != 0 {
                    text += &format!(".{microseconds:06}");
                }
                return Some(Value::Text(text.into()));
            }
            let days = days_since_1970(i64::from(year), i64::from(month), i64::from(day));
            if kind == ColumnType::MYSQL_TYPE_DATE {
                return Some(Value::Date(days as i32));
            }
            let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
            Value::Timestamp(days * DAY_US + seconds * 1_000_000 + i64::from(microseconds))
        }
        mysql::Value::Time(is_negative, days, hours, minutes, seconds, microseconds) => {
            let sign = if is_negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            let part = match microseconds {
                0 => String::new(),
                part => format!(".{part:06}"),
            };
            Value::Text(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{part}").into())
        }
        mysql::Value::Bytes(_) => return None,
    })
}

fn of_text(kind: ColumnType, is_bytes: bool, bytes: &[u8]) -> Option<Value<'_>> {
    use ColumnType::*;
    let text = || std::str::from_utf8(bytes).ok();
    match kind {
        MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_INT24 | MYSQL_TYPE_LONG
        | MYSQL_TYPE_LONGLONG | MYSQL_TYPE_YEAR => {
            text().map(|text| text.parse().map_or(Value::text(text), Value::Int))
        }
        MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => text()?.parse().ok().map(Value::Float),
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => text().map(exact),
        MYSQL_TYPE_DATE | MYSQL_TYPE_DATETIME | MYSQL_TYPE_TIMESTAMP => written_moment(text()?),
        _ if is_bytes => Some(Value::bytes(bytes)),
        _ => text().map(Value::text),
    }
}

/// An exact number; as a text where 64 bits are too few for its digits, or its places are many.
fn exact(text: &str) -> Value<'_> {
    let scale = text.split_once('.').map_or(0, |(_, places)| places.len());
    let digits = u8::try_from(scale)
        .ok()
        .and_then(|scale| Some((parse_decimal(text, scale)?, scale)));
    digits.map_or(Value::text(text), |(digits, scale)| Value::Decimal {
        digits,
        scale,
    })
}

/// `2026-11-21`, `2026-11-21 23:07:01` or `2026-11-21 23:07:01.000001`; with a month or day of 0 it stays a text.
fn written_moment(text: &str) -> Option<Value<'_>> {
    let (date, time) = match text.split_once(' ') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if month == 0 || day == 0 {
        return Some(Value::text(text));
    }
    let days = days_since_1970(year, month, day);
    let Some(time) = time else {
        return Some(Value::Date(days as i32));
    };
    let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = whole.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let microseconds: i64 = format!("{part:0<6}").parse().ok()?;
    let seconds = (hour * 60 + minute) * 60 + second;
    Some(Value::Timestamp(
        days * DAY_US + seconds * 1_000_000 + microseconds,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_that_are_no_days_stay_as_they_are() {
        use ColumnType::{MYSQL_TYPE_DATE, MYSQL_TYPE_DATETIME};
        for (kind, value, text) in [
            (MYSQL_TYPE_DATE, (2024, 0, 15, 0), "2024-00-15"),
            (MYSQL_TYPE_DATE, (0, 0, 0, 0), "0000-00-00"),
            (MYSQL_TYPE_DATETIME, (0, 0, 0, 0), "0000-00-00 00:00:00"),
            (MYSQL_TYPE_DATETIME, (2024, 2, 0, 0), "2024-02-00 00:00:00"),
            (
                MYSQL_TYPE_DATETIME,
                (2024, 2, 0, 7),
                "2024-02-00 00:00:00.000007",
            ),
        ] {
            let (year, month, day, microseconds) = value;
            let value = mysql::Value::Date(year, month, day, 0, 0, 0, microseconds);
            assert_eq!(of_binary(kind, &value), Some(Value::text(text)));
            assert_eq!(
                of_text(kind, false, text.as_bytes()),
                Some(Value::text(text))
            );
        }
    }

    #[test]
    fn times_and_large_numbers_are_texts() {
        let of = |value| of_binary(ColumnType::MYSQL_TYPE_TIME, &value);
        let time = mysql::Value::Time(true, 1, 2, 3, 4, 50);
        assert_eq!(of(time), Some(Value::text("-26:03:04.000050")));
        assert_eq!(
            of(mysql::Value::UInt(u64::MAX)),
            Some(Value::text("18446744073709551615"))
        );
    }

    #[test]
    fn texts_are_read_by_the_type_of_their_column() {
        let of = |kind, text: &'static str| of_text(kind, false, text.as_bytes());
        let decimal = ColumnType::MYSQL_TYPE_NEWDECIMAL;
        let exact = |digits, scale| Some(Value::Decimal { digits, scale });
        assert_eq!(of(decimal, "-1.50"), exact(-150, 2));
        assert_eq!(of(decimal, "17"), exact(17, 0));
        let long = "123456789012345678901234567890";
        assert_eq!(of(decimal, long), Some(Value::text(long)));
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_DATETIME, "1970-01-02 00:00:01.5"),
            Some(Value::Timestamp(DAY_US + 1_500_000))
        );
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_DATE, "1970-01-02"),
            Some(Value::Date(1))
        );
        let large = "18446744073709551615";
        assert_eq!(
            of(ColumnType::MYSQL_TYPE_LONGLONG, large),
            Some(Value::text(large))
        );
        assert_eq!(of(ColumnType::MYSQL_TYPE_DATE, "x"), None);
    }
}
