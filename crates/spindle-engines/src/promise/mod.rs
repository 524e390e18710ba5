//! What a database keeps when the power goes: a promise, worked out from its settings in force, from the file systems
//! beneath its files and from their devices. [`table`] is the one place that says what each of them costs, with its
//! source (`docs/durability.md` shows it); `kernel`, `sqlite`, `postgres` and `innodb` find the lines of an engine,
//! `storage` those of what lies beneath, `scripts` what clients set themselves. The weakest line wins.

pub mod innodb;
pub mod kernel;
pub mod postgres;
pub mod scripts;
pub mod sqlite;
pub mod storage;
pub mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use spindle_text::keeps::{Keeps, Loses};
pub use storage::CommitStorage;
pub use table::{PromiseLine, Subject, TABLE};

/// A server's settings in force, by their own names in small letters, with values in small letters.
pub type SettingsInForce = BTreeMap<String, String>;

/// Tables that a reason names.
const NAMED: usize = 3;

/// What a case keeps when the power goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The weakest of its reasons.
    pub keeps: Keeps,
    /// For [`Keeps::AllButTheLast`]: how far back a lost commit may lie, milliseconds, about; `None` when nothing
    /// bounds it.
    pub back_ms: Option<u64>,
    /// What it follows from, the weakest first.
    pub reasons: Vec<Reason>,
}

/// One thing that a promise follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The setting, mount option or device, as it stands: `synchronous_commit = off`.
    pub what: String,
    /// What it keeps.
    pub keeps: Keeps,
    /// As in [`PromiseLine::loses`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loses: Option<Loses>,
    /// As in [`Promise::back_ms`].
    pub back_ms: Option<u64>,
    /// What that means, in words: a clause.
    pub effect: String,
    /// Where it is written.
    pub source: String,
}

impl Reason {
    /// A line of the table that applies to `what`.
    pub(crate) fn of(line: &PromiseLine, what: impl Into<String>) -> Reason {
        Reason {
            what: what.into(),
            keeps: line.keeps,
            loses: line.loses,
            back_ms: None,
            effect: line.effect.to_owned(),
            source: line.source.to_owned(),
        }
    }

    /// The same, with what may be lost.
    pub(crate) fn back(mut self, back_ms: Option<u64>) -> Reason {
        self.back_ms = back_ms;
        self
    }
}

impl Promise {
    /// The weakest of these reasons; without a reason nothing is known.
    pub fn of(mut reasons: Vec<Reason>) -> Promise {
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.keeps));
        let keeps = reasons
            .first()
            .map_or(Keeps::Unknown, |reason| reason.keeps);
        let last = reasons
            .iter()
            .filter(|reason| reason.keeps == Keeps::AllButTheLast);
        let backs: Option<Vec<u64>> = last.map(|reason| reason.back_ms).collect();
        let back_ms = backs.and_then(|backs| backs.into_iter().max());
        Promise {
            keeps,
            back_ms: back_ms.filter(|_| keeps == Keeps::AllButTheLast),
            reasons,
        }
    }

    /// With more reasons.
    pub(crate) fn with(self, reasons: Vec<Reason>) -> Promise {
        match reasons.is_empty() {
            true => self,
            false => self.and(Promise::of(reasons)),
        }
    }

    /// Both: the weaker wins, and no reason is lost.
    pub fn and(self, other: Promise) -> Promise {
        let mut reasons = self.reasons;
        for reason in other.reasons {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        Promise::of(reasons)
    }
}

/// `name = value`, as a reason names it.
fn setting(name: &str, value: &str) -> String {
    format!("{name} = {value}")
}

/// What a reason calls some tables: the first of them by name.
fn tables(kind: &str, names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => format!("{kind}: {shown}"),
        more => format!("{kind}: {shown} and {more} more"),
    }
}

/// Whether a flag is off, in any spelling.
fn is_off(value: &str) -> bool {
    matches!(value, "off" | "false" | "no" | "0")
}

/// Whether a flag is on, in any spelling.
fn is_on(value: &str) -> bool {
    matches!(value, "on" | "true" | "yes" | "1")
}

#[cfg(test)]
mod tests;
