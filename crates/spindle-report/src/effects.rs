//! The effects of a matrix as rows of a table: each value against each other, and how far two settings depend on each
//! other. Both reports show them.

use crate::comparison::ratio;
use spindle_result::{Effect, Interaction, RatioEstimate, RunResult, format_interval};

/// Heads of the columns of [`EffectTable::effects`].
pub const HEADER: [&str; 8] = [
    "clients",
    "setting",
    "value",
    "against",
    "ratio",
    "95 % interval",
    "value is",
    "layouts",
];

/// Heads of the columns of [`EffectTable::interactions`].
pub const INTERACTIONS_HEADER: [&str; 7] = [
    "clients",
    "setting",
    "depends on",
    "ratio",
    "at",
    "one ratio over the other",
    "it is",
];

/// The rows.
pub struct EffectTable {
    /// A row for each effect.
    pub effects: Vec<Vec<String>>,
    /// A row for each pair of settings and values.
    pub interactions: Vec<Vec<String>>,
}

impl EffectTable {
    /// Those of a result; empty where nothing was varied.
    pub fn of(result: &RunResult) -> EffectTable {
        EffectTable {
            effects: result.effects.iter().map(effect).collect(),
            interactions: result.interactions.iter().map(interaction).collect(),
        }
    }
}

fn effect(of: &Effect) -> Vec<String> {
    vec![
        of.load.in_column(),
        of.factor.to_string(),
        of.level.clone(),
        of.base.clone(),
        ratio(of.effect.ratio),
        interval(of.effect),
        of.verdict.to_string(),
        of.cases.to_string(),
    ]
}

fn interaction(of: &Interaction) -> Vec<String> {
    let is = match of.verdict {
        spindle_stats::Verdict::Faster => "greater",
        spindle_stats::Verdict::Slower => "smaller",
        spindle_stats::Verdict::Draw => "the same",
        spindle_stats::Verdict::Undecided => "not clear",
    };
    vec![
        of.load.in_column(),
        format!("{} {} against {}", of.factor, of.level, of.base),
        of.other.to_string(),
        format!("{} and {}", ratio(of.effects.0), ratio(of.effects.1)),
        format!("{} and {}", of.at, of.at_base),
        format!(
            "{} ({})",
            ratio(of.interaction.ratio),
            interval(of.interaction)
        ),
        is.to_owned(),
    ]
}

fn interval(of: RatioEstimate) -> String {
    of.ci95
        .map_or_else(|| "two rounds are needed".to_owned(), format_interval)
}
