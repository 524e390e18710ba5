//! Why cases differ: their response times beside each other, and findings with their evidence.

use serde::{Deserialize, Serialize};

use super::{Load, TimeUse};

/// The difference of two layouts' response times, split into its parts. One for each verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Load level.
    #[serde(flatten)]
    pub load: Load,
    /// Name of the layout whose transactions take longer on average; at a fixed rate its p99 may be the shorter one.
    pub slower: String,
    /// Name of the other.
    pub faster: String,
    /// By how much longer a transaction of `slower` takes, in microseconds.
    pub difference_us: f64,
    /// 95 % interval of it (Student's t over the rounds that both finished); `None` with a single one.
    #[serde(default)]
    pub ci95_us: Option<(f64, f64)>,
    /// What the difference is made of, the largest first whatever their sign; they add up to it.
    pub parts: Vec<PartDifference>,
    /// All of it in one sentence.
    pub sentence: String,
}

/// How much longer, or shorter, one part of a transaction's time is on the slower layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartDifference {
    /// As in [`super::TimePart`].
    pub part: TimeUse,
    /// Microseconds of one transaction; below zero when the slower layout spends less on it.
    pub us: f64,
    /// 95 % interval of it; `None` with a single common round.
    #[serde(default)]
    pub ci95_us: Option<(f64, f64)>,
    /// What the part is, in the words of this pair of layouts, such as "copying through the page cache".
    pub explanation: Option<String>,
}

/// Something that the data show and that a person can act on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its kind in a word or two, such as `double buffering`; the same for every run.
    pub kind: String,
    /// Names of the layouts that it was found on.
    pub layouts: Vec<String>,
    /// Load levels that it was found at.
    pub clients: Vec<u32>,
    /// What was found, in a sentence.
    pub text: String,
    /// The figures that show it, each a sentence.
    pub evidence: Vec<String>,
    /// What can be done.
    pub remedy: String,
}
