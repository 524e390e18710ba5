//! Mistakes in scripts, places in them for people, and what cannot be calculated.

use std::ops::Range;

/// What is wrong with a script, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
}

impl Mistake {
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Mistake {
        Mistake {
            span,
            message: message.into(),
        }
    }
}

/// A place in a file, as compilers write it: `load.sql:3:7`.
pub(super) fn place(file: &str, text: &str, at: usize) -> String {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before[start..].chars().count() + 1;
    format!("{file}:{line}:{column}")
}

/// Why an expression has no value, in the words of pgbench.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum NoValue {
    #[error("cannot coerce {0} to {1}")]
    Coercion(&'static str, &'static str),
    #[error("double to int overflow for {0:.6}")]
    Overflow(f64),
    #[error("bigint {0} out of range")]
    OutOfRange(&'static str),
    #[error("division by zero")]
    DivisionByZero,
    #[error("undefined variable \"{0}\"")]
    Undefined(String),
    #[error("malformed variable \"{name}\" value: \"{text}\"")]
    Malformed { name: String, text: String },
    #[error("empty range given to random")]
    EmptyRange,
    #[error("random range is too large")]
    LargeRange,
    #[error("gaussian parameter must be at least {GAUSSIAN_MIN:.6} (not {0:.6})")]
    Gaussian(f64),
    #[error("zipfian parameter must be in range [{ZIPFIAN_MIN:.3}, {ZIPFIAN_MAX:.0}] (not {0:.6})")]
    Zipfian(f64),
    #[error("exponential parameter must be greater than zero (not {0:.6})")]
    Exponential(f64),
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
    #[error("\\sleep for {0} is no time")]
    NoTime(i64),
}

/// What the parameters of distributions may be.
pub(super) const GAUSSIAN_MIN: f64 = 2.0;
pub(super) const ZIPFIAN_MIN: f64 = 1.001;
pub(super) const ZIPFIAN_MAX: f64 = 1000.0;
