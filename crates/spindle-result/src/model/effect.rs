//! What each setting of a matrix does, in `result.json`.

use serde::{Deserialize, Serialize};
use spindle_stats::Verdict;

use super::words::open_words;
use super::{LoadLevel, RatioEstimate};

open_words! {
    /// What was varied: the last part of its key, or the layout itself.
    FactorName:
    /// The layout: where and how the database lies.
    Layout => "layout",
}

/// One level of a factor against another, over all combinations of the other factors. The intervals of all effects of a
/// run hold together, as those of pairs do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Load level.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// What was varied.
    pub factor: FactorName,
    /// The value that it is said of.
    pub level: String,
    /// The value that it is compared with, an earlier one in the experiment file.
    pub base: String,
    /// Geometric mean of the ratios of the cases that differ in this factor only: of their throughput, or of their time
    /// the other way round, as the ranking's measure says. The interval is `None` with fewer than two common rounds.
    pub effect: RatioEstimate,
    /// What may be said of `level`.
    pub verdict: Verdict,
    /// Rounds, or runs, that all these cases finished.
    pub rounds: u32,
    /// How many cases have either value and were compared.
    pub cases: u32,
}

/// How much the effect of one factor depends on another. The intervals of all interactions of a run hold together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// Load level.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// The factor whose effect it is.
    pub factor: FactorName,
    /// Its value.
    pub level: String,
    /// The value that this is compared with.
    pub base: String,
    /// The factor that it may depend on.
    pub other: FactorName,
    /// A value of that.
    pub at: String,
    /// An earlier one.
    pub at_base: String,
    /// The effect at either value, as a ratio.
    pub effects: (f64, f64),
    /// The effect of the other factor, of `at` against `at_base`, at `level` and at `base`.
    pub effects_of_other: (f64, f64),
    /// The first of these over the second.
    pub interaction: RatioEstimate,
    /// Whether the effect is greater (`faster`) at the first, smaller, or the same within the margin.
    pub verdict: Verdict,
    /// Rounds, or runs, that all these cases finished.
    pub rounds: u32,
}

/// What a factor does, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorAnswer {
    /// Load level.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// Which factor.
    pub factor: FactorName,
    /// For people, without a full stop.
    pub sentence: String,
    /// Whether its effect depends on no other setting. In results of older versions the sentence says so itself.
    #[serde(default)]
    pub is_same_everywhere: bool,
}

impl FactorAnswer {
    /// The sentence, and that the effect depends on no other setting.
    pub fn told(&self) -> String {
        match self.is_same_everywhere {
            true => format!("{}; the same whatever else is set", self.sentence),
            false => self.sentence.clone(),
        }
    }
}
