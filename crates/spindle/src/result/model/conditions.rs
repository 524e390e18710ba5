//! What a trial was measured under: facts about the machine around it that are no property of its layout.

use serde::{Deserialize, Serialize};

/// What a trial was measured under. Every part is optional: results of older versions have none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The wait for quiet before it; `None` when there was none.
    pub quiet: Option<QuietWait>,
}

/// A wait, before a trial, until its devices were at rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietWait {
    /// How long it took, milliseconds.
    pub waited_ms: u64,
    /// How long it might have taken, milliseconds.
    pub limit_ms: u64,
    /// Whether the devices came to rest; `false` when the time ran out.
    pub is_quiet: bool,
    /// What kept them busy at the end, in words; `None` when nothing did.
    pub in_the_way: Option<String>,
}
