//! Mistakes in scripts, places in them for people, and what cannot be calculated.

use std::ops::Range;

use spindle_text::section::TextFile;

use super::value::double_text;

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

/// Places in a file. They are asked for from its begin to its end, so that the text is counted through once.
pub(super) struct Places<'a> {
    name: &'a str,
    text: &'a str,
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> Places<'a> {
    pub fn new(file: &'a TextFile) -> Places<'a> {
        Places {
            name: &file.name,
            text: &file.text,
            at: 0,
            line: 1,
            column: 1,
        }
    }

    /// A place as compilers write it: `load.sql:3:7`. It is not before the one that was asked for last.
    pub fn at(&mut self, at: usize) -> String {
        for letter in self.text[self.at..at].chars() {
            match letter {
                '\n' => (self.line, self.column) = (self.line + 1, 1),
                _ => self.column += 1,
            }
        }
        self.at = at;
        format!("{}:{}:{}", self.name, self.line, self.column)
    }
}

/// What stands before the text of some files, as editors of Windows write them.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// A word of a file as a message shows it.
pub(super) fn shown(word: &str) -> String {
    match word.contains(BYTE_ORDER_MARK) {
        true => format!(
            "\"{}\", which has a byte order mark (U+FEFF) in it,",
            word.replace(BYTE_ORDER_MARK, "")
        ),
        false => format!("\"{word}\""),
    }
}

/// As C's `%.6f` writes a number in PostgreSQL.
fn fixed(number: f64) -> String {
    match number.is_finite() {
        true => format!("{number:.6}"),
        false => double_text(number),
    }
}

/// Why an expression has no value, in the words of pgbench.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum NoValue {
    #[error("cannot coerce {0} to {1}")]
    Coercion(&'static str, &'static str),
    #[error("double to int overflow for {}", fixed(*.0))]
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
    #[error("gaussian parameter must be at least {GAUSSIAN_MIN:.6} (not {})", fixed(*.0))]
    Gaussian(f64),
    #[error("zipfian parameter must be in range [{ZIPFIAN_MIN:.3}, {ZIPFIAN_MAX:.0}] (not {})", fixed(*.0))]
    Zipfian(f64),
    #[error("exponential parameter must be greater than zero (not {})", fixed(*.0))]
    Exponential(f64),
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
    #[error("invalid sleep time \"{text}\" for variable \"{name}\"")]
    NoTime { name: String, text: String },
}

/// What the parameters of distributions may be.
pub(super) const GAUSSIAN_MIN: f64 = 2.0;
pub(super) const ZIPFIAN_MIN: f64 = 1.001;
pub(super) const ZIPFIAN_MAX: f64 = 1000.0;
