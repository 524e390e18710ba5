//! The name of a point, which is that of its job. The rest of the folder uses it.

use std::fmt;
use std::str::FromStr;

use spindle_io::real::Method;
use spindle_text::word::Word;

use crate::figures::What;

/// A point, as its job is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointName {
    /// Of a curve: `small-async-8`.
    Curve {
        /// What its requests are.
        what: What,
        /// How they are handed over.
        method: Method,
        /// How many are under way.
        depth: u32,
    },
    /// Of a matrix of ORION's: `mix-2-1-small`.
    Matrix {
        /// Small requests under way.
        small: u32,
        /// Large ones, or streams.
        large: u32,
        /// Which of both the figures are of.
        is_small: bool,
    },
    /// Flushes: `flush-16`.
    Flush {
        /// Writers.
        writers: u32,
    },
}

/// A job that is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPointName;

impl fmt::Display for PointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PointName::Curve {
                what,
                method,
                depth,
            } => write!(f, "{}-{method}-{depth}", size_word(*what)),
            PointName::Matrix {
                small,
                large,
                is_small,
            } => {
                let of = if *is_small { "small" } else { "large" };
                write!(f, "mix-{small}-{large}-{of}")
            }
            PointName::Flush { writers } => write!(f, "flush-{writers}"),
        }
    }
}

impl FromStr for PointName {
    type Err = NoPointName;

    fn from_str(text: &str) -> Result<PointName, NoPointName> {
        let number = |text: &str| text.parse().map_err(|_| NoPointName);
        let words: Vec<&str> = text.split('-').collect();
        match words.as_slice() {
            ["flush", writers] => Ok(PointName::Flush {
                writers: number(writers)?,
            }),
            ["mix", small, large, of @ ("small" | "large")] => Ok(PointName::Matrix {
                small: number(small)?,
                large: number(large)?,
                is_small: *of == "small",
            }),
            [size @ ("small" | "large"), method, depth] => Ok(PointName::Curve {
                what: match *size {
                    "small" => What::SmallRandom,
                    _ => What::LargeSequential,
                },
                method: Method::of_word(method).ok_or(NoPointName)?,
                depth: number(depth)?,
            }),
            _ => Err(NoPointName),
        }
    }
}

fn size_word(what: What) -> &'static str {
    match what {
        What::SmallRandom => "small",
        What::LargeSequential => "large",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "small-async-256",
            "large-sync-1",
            "mix-2-0-small",
            "mix-0-1-large",
            "flush-16",
        ] {
            assert_eq!(text.parse::<PointName>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "job1",
            "small-aio-1",
            "small-sync",
            "mix-1-1",
            "flush-x",
        ] {
            assert_eq!(text.parse::<PointName>(), Err(NoPointName), "{text}");
        }
    }
}
