//! Expressions and conditions as they are written: columns by their names. [`crate::bound`] finds the columns.

use std::ops::{Add, Mul, Sub};

use crate::pattern::Pattern;

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A column.
    Column(String),
    /// An exact number.
    Number {
        /// Its digits.
        digits: i128,
        /// How many stand behind the point.
        scale: u8,
    },
    /// A day, counted from 1970-01-01.
    Date(i32),
    /// A text.
    Text(String),
    /// The sum of two numbers.
    Add(Box<Expr>, Box<Expr>),
    /// A number less another.
    Subtract(Box<Expr>, Box<Expr>),
    /// The product of two numbers.
    Multiply(Box<Expr>, Box<Expr>),
    /// A number divided by another, rounded to a number of decimal places; 0 where the divisor is 0.
    Divide(Box<Expr>, Box<Expr>, u8),
    /// The year of a day.
    Year(Box<Expr>),
    /// The first bytes of a text.
    First(u16, Box<Expr>),
    /// One value where a condition holds, else another.
    If(Box<Condition>, Box<Expr>, Box<Expr>),
}

/// A question to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Both are equal.
    Equal(Expr, Expr),
    /// The first is less.
    Less(Expr, Expr),
    /// The first is not greater.
    AtMost(Expr, Expr),
    /// A text is like a pattern.
    Like(Expr, Pattern),
    /// A value is one of these.
    In(Expr, Vec<Expr>),
    /// All of these hold.
    All(Vec<Condition>),
    /// One of these holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// A column.
pub fn col(name: &str) -> Expr {
    Expr::Column(name.to_owned())
}

/// A whole number.
pub fn number(number: i64) -> Expr {
    decimal(i128::from(number), 0)
}

/// An exact number: `digits` divided by ten to the power of `scale`.
pub fn decimal(digits: i128, scale: u8) -> Expr {
    Expr::Number { digits, scale }
}

/// A day, counted from 1970-01-01.
pub fn date(day: i32) -> Expr {
    Expr::Date(day)
}

/// A text.
pub fn text(text: &str) -> Expr {
    Expr::Text(text.to_owned())
}

/// One value where a condition holds, else another.
pub fn when(condition: Condition, then: Expr, otherwise: Expr) -> Expr {
    Expr::If(Box::new(condition), Box::new(then), Box::new(otherwise))
}

impl Expr {
    /// Equal to another.
    pub fn is(self, other: Expr) -> Condition {
        Condition::Equal(self, other)
    }

    /// Not equal to another.
    pub fn is_not(self, other: Expr) -> Condition {
        self.is(other).not()
    }

    /// Less than another.
    pub fn less(self, other: Expr) -> Condition {
        Condition::Less(self, other)
    }

    /// Another or less.
    pub fn at_most(self, other: Expr) -> Condition {
        Condition::AtMost(self, other)
    }

    /// Greater than another.
    pub fn more(self, other: Expr) -> Condition {
        Condition::Less(other, self)
    }

    /// Another or more.
    pub fn at_least(self, other: Expr) -> Condition {
        Condition::AtMost(other, self)
    }

    /// The first, the last, or between them.
    pub fn between(self, first: Expr, last: Expr) -> Condition {
        self.clone().at_least(first).and(self.at_most(last))
    }

    /// One of these.
    pub fn is_in(self, these: impl IntoIterator<Item = Expr>) -> Condition {
        Condition::In(self, these.into_iter().collect())
    }

    /// A text like a pattern, in which `%` stands for any characters.
    pub fn like(self, pattern: &str) -> Condition {
        Condition::Like(self, Pattern::new(pattern))
    }

    /// The year of a day.
    #[must_use]
    pub fn year(self) -> Expr {
        Expr::Year(Box::new(self))
    }

    /// The first bytes of a text.
    #[must_use]
    pub fn first(self, bytes: u16) -> Expr {
        Expr::First(bytes, Box::new(self))
    }

    /// Divided by another, rounded to `places` decimal places.
    #[must_use]
    pub fn divided(self, by: Expr, scale: u8) -> Expr {
        Expr::Divide(Box::new(self), Box::new(by), scale)
    }

    /// Calls `hear` with the name of each column in it.
    pub(crate) fn columns(&self, hear: &mut dyn FnMut(&str)) {
        match self {
            Expr::Column(name) => hear(name),
            Expr::Number { .. } | Expr::Date(_) | Expr::Text(_) => {}
            Expr::Add(left, right)
            | Expr::Subtract(left, right)
            | Expr::Multiply(left, right)
            | Expr::Divide(left, right, _) => {
                left.columns(hear);
                right.columns(hear);
            }
            Expr::Year(of) | Expr::First(_, of) => of.columns(hear),
            Expr::If(condition, then, otherwise) => {
                condition.columns(hear);
                then.columns(hear);
                otherwise.columns(hear);
            }
        }
    }
}

impl Condition {
    /// This and another.
    #[must_use]
    pub fn and(self, other: Condition) -> Condition {
        Condition::All(vec![self, other])
    }

    /// This or another.
    #[must_use]
    pub fn or(self, other: Condition) -> Condition {
        Condition::Any(vec![self, other])
    }

    /// Not this.
    #[must_use]
    #[allow(
        clippy::should_implement_trait,
        reason = "beside and() and or(), which no operator can be"
    )]
    pub fn not(self) -> Condition {
        Condition::Not(Box::new(self))
    }

    pub(crate) fn columns(&self, hear: &mut dyn FnMut(&str)) {
        match self {
            Condition::Equal(left, right)
            | Condition::Less(left, right)
            | Condition::AtMost(left, right) => {
                left.columns(hear);
                right.columns(hear);
            }
            Condition::Like(of, _) => of.columns(hear),
            Condition::In(of, these) => {
                of.columns(hear);
                these.iter().for_each(|one| one.columns(hear));
            }
            Condition::All(list) | Condition::Any(list) => {
                list.iter().for_each(|one| one.columns(hear));
            }
            Condition::Not(of) => of.columns(hear),
        }
    }
}

impl Add for Expr {
    type Output = Expr;

    fn add(self, other: Expr) -> Expr {
        Expr::Add(Box::new(self), Box::new(other))
    }
}

impl Sub for Expr {
    type Output = Expr;

    fn sub(self, other: Expr) -> Expr {
        Expr::Subtract(Box::new(self), Box::new(other))
    }
}

impl Mul for Expr {
    type Output = Expr;

    fn mul(self, other: Expr) -> Expr {
        Expr::Multiply(Box::new(self), Box::new(other))
    }
}
