//! Expressions and conditions whose columns have been found, ready for rows. Numbers are 128 bits wide on their way, so
//! that no product or sum of the columns there are goes beyond them.

use crate::columns::{Encoder, Type, number_4, number_8, number_16};
use crate::error::{QueryError, Result};
use crate::expression::{Condition, Expr};
use crate::pattern::Pattern;
use crate::row::{FoundColumn, Row, RowHeading};

/// Days from 0000-03-01 to 1970-01-01, and days in 400 years.
const DAYS_BEFORE_1970: i128 = 719_468;
const DAYS_IN_ERA: i128 = 146_097;

/// An expression that knows where its columns are.
#[derive(Debug, Clone)]
pub struct Bound {
    value: Value,
    of: Type,
}

#[derive(Debug, Clone)]
enum Value {
    Exact(Number),
    Text(Text),
}

/// A number, without its point.
#[derive(Debug, Clone)]
enum Number {
    Column4(Spot),
    Column8(Spot),
    Column16(Spot),
    Constant(i128),
    Add(Box<Number>, Box<Number>),
    Subtract(Box<Number>, Box<Number>),
    Multiply(Box<Number>, Box<Number>),
    Divide(Box<Number>, Box<Number>),
    Year(Box<Number>),
    If(Box<Test>, Box<Number>, Box<Number>),
}

/// Where a number is: a slot of the row, and a place in it.
#[derive(Debug, Clone, Copy)]
struct Spot {
    slot: usize,
    at: usize,
}

#[derive(Debug, Clone)]
enum Text {
    Column(FoundColumn),
    Constant(Vec<u8>),
    First(usize, Box<Text>),
    If(Box<Test>, Box<Text>, Box<Text>),
}

/// A condition that knows where its columns are.
#[derive(Debug, Clone)]
pub struct Test(ComparedValue);

#[derive(Debug, Clone)]
enum ComparedValue {
    Equal(Number, Number),
    Less(Number, Number),
    AtMost(Number, Number),
    TextEqual(Text, Text),
    Like(Text, Pattern),
    In(Number, Vec<i128>),
    TextIn(Text, Vec<Vec<u8>>),
    All(Vec<ComparedValue>),
    Any(Vec<ComparedValue>),
    Not(Box<ComparedValue>),
}

impl Number {
    fn of(&self, row: &Row<'_>) -> i128 {
        match self {
            Number::Column4(spot) => i128::from(number_4(row.slot(spot.slot), spot.at)),
            Number::Column8(spot) => i128::from(number_8(row.slot(spot.slot), spot.at)),
            Number::Column16(spot) => number_16(row.slot(spot.slot), spot.at),
            Number::Constant(number) => *number,
            Number::Add(left, right) => left.of(row) + right.of(row),
            Number::Subtract(left, right) => left.of(row) - right.of(row),
            Number::Multiply(left, right) => left.of(row) * right.of(row),
            Number::Divide(of, by) => divided(of.of(row), by.of(row)),
            Number::Year(day) => year(day.of(row)),
            Number::If(test, then, otherwise) => match test.0.holds(row) {
                true => then.of(row),
                false => otherwise.of(row),
            },
        }
    }

    fn times(self, factor: i128) -> Number {
        match (self, factor) {
            (number, 1) => number,
            (Number::Constant(number), factor) => Number::Constant(number * factor),
            (number, factor) => {
                Number::Multiply(Box::new(number), Box::new(Number::Constant(factor)))
            }
        }
    }
}

/// Rounded, halves away from 0.
fn divided(of: i128, by: i128) -> i128 {
    if by == 0 {
        return 0;
    }
    let (twice, half) = (of.abs() * 2, by.abs());
    let quotient = (twice + half) / (2 * half);
    match (of < 0) == (by < 0) {
        true => quotient,
        false => -quotient,
    }
}

/// The year of a day (Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn year(day: i128) -> i128 {
    let shifted = day + DAYS_BEFORE_1970;
    let (era, of_era) = (
        shifted.div_euclid(DAYS_IN_ERA),
        shifted.rem_euclid(DAYS_IN_ERA) as i64,
    );
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Its years begin in March; January and February are the next year's.
    era * 400 + i128::from(year) + i128::from(of_year >= 306)
}

impl Text {
    fn of<'r>(&'r self, row: &Row<'r>) -> &'r [u8] {
        match self {
            Text::Column(found) => found.text(row),
            Text::Constant(text) => text,
            Text::First(bytes, of) => {
                let text = of.of(row);
                &text[..text.len().min(*bytes)]
            }
            Text::If(test, then, otherwise) => match test.0.holds(row) {
                true => then.of(row),
                false => otherwise.of(row),
            },
        }
    }
}

impl ComparedValue {
    fn holds(&self, row: &Row<'_>) -> bool {
        match self {
            ComparedValue::Equal(left, right) => left.of(row) == right.of(row),
            ComparedValue::Less(left, right) => left.of(row) < right.of(row),
            ComparedValue::AtMost(left, right) => left.of(row) <= right.of(row),
            ComparedValue::TextEqual(left, right) => left.of(row) == right.of(row),
            ComparedValue::Like(text, pattern) => pattern.fits(text.of(row)),
            ComparedValue::In(number, these) => these.contains(&number.of(row)),
            ComparedValue::TextIn(text, these) => {
                let text = text.of(row);
                these.iter().any(|one| one == text)
            }
            ComparedValue::All(list) => list.iter().all(|one| one.holds(row)),
            ComparedValue::Any(list) => list.iter().any(|one| one.holds(row)),
            ComparedValue::Not(of) => !of.holds(row),
        }
    }
}

impl Test {
    /// Finds the columns of a condition.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn of(condition: &Condition, heading: &RowHeading) -> Result<Test> {
        asked(condition, heading).map(Test)
    }

    /// Whether it holds for a row.
    pub fn holds(&self, row: &Row<'_>) -> bool {
        self.0.holds(row)
    }
}

fn asked(condition: &Condition, heading: &RowHeading) -> Result<ComparedValue> {
    let list = |list: &[Condition]| -> Result<Vec<ComparedValue>> {
        let all = list.iter().map(|one| asked(one, heading));
        all.collect()
    };
    Ok(match condition {
        Condition::Equal(left, right) => {
            match (Bound::of(left, heading)?, Bound::of(right, heading)?) {
                (
                    Bound {
                        value: Value::Text(left),
                        ..
                    },
                    right,
                ) => ComparedValue::TextEqual(left, right.into_text()?),
                (left, right) => {
                    let (left, right, _) = same_scale(left, right)?;
                    ComparedValue::Equal(left, right)
                }
            }
        }
        Condition::Less(left, right) => {
            let (left, right, _) = numbers(left, right, heading)?;
            ComparedValue::Less(left, right)
        }
        Condition::AtMost(left, right) => {
            let (left, right, _) = numbers(left, right, heading)?;
            ComparedValue::AtMost(left, right)
        }
        Condition::Like(text, pattern) => {
            ComparedValue::Like(Bound::of(text, heading)?.into_text()?, pattern.clone())
        }
        Condition::In(of, these) => one_of(Bound::of(of, heading)?, these, heading)?,
        Condition::All(of) => ComparedValue::All(list(of)?),
        Condition::Any(of) => ComparedValue::Any(list(of)?),
        Condition::Not(of) => ComparedValue::Not(Box::new(asked(of, heading)?)),
    })
}

fn one_of(of: Bound, these: &[Expr], heading: &RowHeading) -> Result<ComparedValue> {
    let wrong = |found: &Expr| QueryError::WrongType {
        what: "a constant of the same type and places",
        found: format!("{found:?}"),
    };
    match of.value {
        Value::Text(text) => {
            let constant = |expr: &Expr| match expr {
                Expr::Text(text) => Ok(text.as_bytes().to_vec()),
                other => Err(wrong(other)),
            };
            let these: Result<_> = these.iter().map(constant).collect();
            Ok(ComparedValue::TextIn(text, these?))
        }
        Value::Exact(number) => {
            let constant = |expr: &Expr| {
                let one = Bound::of(expr, heading)?;
                match one.value {
                    Value::Exact(Number::Constant(digits)) if one.of.scale() == of.of.scale() => {
                        Ok(digits)
                    }
                    _ => Err(wrong(expr)),
                }
            };
            let these: Result<_> = these.iter().map(constant).collect();
            Ok(ComparedValue::In(number, these?))
        }
    }
}

fn power_of_ten(of: u8) -> i128 {
    10i128.pow(u32::from(of))
}

/// Both with as many places as the one that has more, and how many that are.
fn same_scale(left: Bound, right: Bound) -> Result<(Number, Number, u8)> {
    let ((left, left_scale), (right, right_scale)) = (left.into_number()?, right.into_number()?);
    let scale = left_scale.max(right_scale);
    Ok((
        left.times(power_of_ten(scale - left_scale)),
        right.times(power_of_ten(scale - right_scale)),
        scale,
    ))
}

fn numbers(left: &Expr, right: &Expr, heading: &RowHeading) -> Result<(Number, Number, u8)> {
    same_scale(Bound::of(left, heading)?, Bound::of(right, heading)?)
}

/// A calculation with two numbers, and the places of its result.
fn calculated(
    expr: &Expr,
    left: &Expr,
    right: &Expr,
    heading: &RowHeading,
) -> Result<(Number, u8)> {
    if let Expr::Multiply(..) = expr {
        let (left, left_scale) = Bound::of(left, heading)?.into_number()?;
        let (right, right_scale) = Bound::of(right, heading)?.into_number()?;
        let product = Number::Multiply(left.into(), right.into());
        return Ok((product, left_scale + right_scale));
    }
    let (left, right, scale) = numbers(left, right, heading)?;
    Ok(match expr {
        Expr::Divide(.., places) => {
            let left = left.times(power_of_ten(*places));
            (Number::Divide(left.into(), right.into()), *places)
        }
        Expr::Add(..) => (Number::Add(left.into(), right.into()), scale),
        _ => (Number::Subtract(left.into(), right.into()), scale),
    })
}

impl Bound {
    /// Finds the columns of an expression.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn of(expr: &Expr, heading: &RowHeading) -> Result<Bound> {
        let number = |value, of| Bound {
            value: Value::Exact(value),
            of,
        };
        Ok(match expr {
            Expr::Column(name) => {
                let found = heading.find(name)?;
                let of = found.place.of;
                let spot = Spot {
                    slot: found.slot,
                    at: found.place.offset,
                };
                let value = match (of.scale(), of.fixed_bytes()) {
                    (None, _) => Value::Text(Text::Column(found)),
                    (Some(_), 4) => Value::Exact(Number::Column4(spot)),
                    (Some(_), 8) => Value::Exact(Number::Column8(spot)),
                    (Some(_), _) => Value::Exact(Number::Column16(spot)),
                };
                Bound { value, of }
            }
            Expr::Number { digits, scale } => number(Number::Constant(*digits), Type::Sum(*scale)),
            Expr::Date(day) => number(Number::Constant(i128::from(*day)), Type::Date),
            Expr::Text(text) => Bound {
                value: Value::Text(Text::Constant(text.as_bytes().to_vec())),
                of: Type::Varying(text.len() as u16),
            },
            Expr::Add(left, right)
            | Expr::Subtract(left, right)
            | Expr::Multiply(left, right)
            | Expr::Divide(left, right, _) => {
                let (value, scale) = calculated(expr, left, right, heading)?;
                number(value, Type::Sum(scale))
            }
            Expr::Year(day) => {
                let (day, _) = Bound::of(day, heading)?.into_number()?;
                number(Number::Year(day.into()), Type::Integer)
            }
            Expr::First(bytes, of) => Bound {
                value: Value::Text(Text::First(
                    usize::from(*bytes),
                    Bound::of(of, heading)?.into_text()?.into(),
                )),
                of: Type::Fixed(*bytes),
            },
            Expr::If(condition, then, otherwise) => {
                let test = Box::new(Test::of(condition, heading)?);
                let (then, otherwise) = (Bound::of(then, heading)?, Bound::of(otherwise, heading)?);
                if let Value::Text(left) = then.value {
                    let of = Type::Varying(then.of.text_bytes().max(otherwise.of.text_bytes()));
                    let right = otherwise.into_text()?;
                    let value = Text::If(test, left.into(), right.into());
                    return Ok(Bound {
                        value: Value::Text(value),
                        of,
                    });
                }
                let (then, otherwise, scale) = same_scale(then, otherwise)?;
                let value = Number::If(test, then.into(), otherwise.into());
                number(value, Type::Sum(scale))
            }
        })
    }

    /// The type of its values.
    pub fn type_of(&self) -> Type {
        self.of
    }

    /// Puts the value of a row into a row that is being written.
    pub fn encode(&self, row: &Row<'_>, into: &mut Encoder<'_>) {
        match &self.value {
            Value::Exact(number) => into.number(number.of(row)),
            Value::Text(text) => into.text(text.of(row)),
        }
    }

    /// Its number for a row, without its point; 0 where it is a text.
    pub fn number(&self, row: &Row<'_>) -> i128 {
        match &self.value {
            Value::Exact(number) => number.of(row),
            Value::Text(_) => 0,
        }
    }

    /// Puts the value of a row behind `key` so that keys are in the order of their values, or the other way round.
    pub fn put_in_order(&self, row: &Row<'_>, is_descending: bool, key: &mut Vec<u8>) {
        let start = key.len();
        match &self.value {
            Value::Exact(number) => {
                let turned = number.of(row) as u128 ^ 1 << 127;
                key.extend_from_slice(&turned.to_be_bytes());
            }
            // Less than any byte of a text, so that a shorter one comes first.
            Value::Text(text) => {
                key.extend_from_slice(text.of(row));
                key.push(0);
            }
        }
        if is_descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    fn into_number(self) -> Result<(Number, u8)> {
        match (self.value, self.of.scale()) {
            (Value::Exact(number), Some(scale)) => Ok((number, scale)),
            (value, _) => Err(QueryError::WrongType {
                what: "a number",
                found: format!("{value:?}"),
            }),
        }
    }

    fn into_text(self) -> Result<Text> {
        match self.value {
            Value::Text(text) => Ok(text),
            Value::Exact(number) => Err(QueryError::WrongType {
                what: "a text",
                found: format!("{number:?}"),
            }),
        }
    }
}
