//! What can be wrong with values handed to this crate. Nothing else here can fail.

use std::fmt;

use thiserror::Error;

/// Which of the two series of a comparison a message speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first series, the one the verdict is said of.
    A,
    /// The second series.
    B,
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Side::A => "a",
            Side::B => "b",
        })
    }
}

/// Why values could not be summarised or compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StatsError {
    /// A mean or a ratio of nothing was asked for.
    #[error("there are no values: at least one is needed")]
    NoValues,
    /// A value is infinite or not a number.
    #[error("value {index} is {value}: only finite numbers have a mean")]
    NotFinite {
        /// Position of the value, from 0.
        index: usize,
        /// The value itself.
        value: f64,
    },
    /// Two series that should be paired round by round differ in length.
    #[error(
        "a has {a_rounds} rounds and b has {b_rounds}: a paired comparison needs the same rounds of both"
    )]
    UnequalLengths {
        /// Number of values in the first series.
        a_rounds: usize,
        /// Number of values in the second series.
        b_rounds: usize,
    },
    /// A value has no logarithm: it is zero, negative, infinite or not a number.
    #[error(
        "value {index} of series {side} is {value}: ratios need finite values above zero; leave failed trials out"
    )]
    NotPositive {
        /// The series that holds the value.
        side: Side,
        /// Position of the value in that series, from 0.
        index: usize,
        /// The value itself.
        value: f64,
    },
    /// The margin of a draw is outside 0 (inclusive) to 1 (exclusive).
    #[error(
        "the margin of a draw is {margin}: 0 or more and less than 1 is allowed, such as 0.03 for 3 %"
    )]
    BadMargin {
        /// The margin that was given, as a fraction of 1.
        margin: f64,
    },
    /// There is no case to rank.
    #[error("there are no cases to rank: at least one is needed")]
    NoCases,
    /// A case has no finished round.
    #[error("case \"{case}\" has no finished round: leave it out of the ranking")]
    CaseWithoutRounds {
        /// Name of the case.
        case: String,
    },
    /// A case holds a value that cannot be part of a ratio.
    #[error(
        "case \"{case}\", round {round}: {value} cannot be compared; finite values above zero are allowed, leave failed trials out"
    )]
    BadCaseValue {
        /// Name of the case.
        case: String,
        /// Round of the value.
        round: u32,
        /// The value itself.
        value: f64,
    },
}
