//! What a database keeps when the power goes, in a word: engines say it of settings, file systems and devices, and
//! results hold it. Any crate may use the words; the reasons for them are `spindle-engines`'.

use serde::{Deserialize, Serialize};

/// What is kept when the power goes, the strongest first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// Every commit that was acknowledged.
    EveryCommit,
    /// Nothing is known to be lost, and not all is known.
    #[default]
    Unknown,
    /// All but the last commits; the database is whole.
    AllButTheLast,
    /// The database may be damaged.
    MayBeDamaged,
    /// Nothing: it was in memory, or recovery empties it.
    Nothing,
}

/// What is gone where nothing is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loses {
    /// All files: they, or their device, are memory.
    Files,
    /// Some tables, as a whole.
    Tables,
}

impl Keeps {
    /// As in `result.json`.
    pub fn word(self) -> &'static str {
        match self {
            Keeps::EveryCommit => "every_commit",
            Keeps::Unknown => "unknown",
            Keeps::AllButTheLast => "all_but_the_last",
            Keeps::MayBeDamaged => "may_be_damaged",
            Keeps::Nothing => "nothing",
        }
    }

    /// To follow "the only layout that".
    pub fn of_one(self) -> &'static str {
        match self {
            Keeps::EveryCommit => "keeps every commit",
            Keeps::Unknown => "is not known to lose commits",
            Keeps::AllButTheLast | Keeps::MayBeDamaged | Keeps::Nothing => self.of_group(),
        }
    }

    /// To follow "among layouts that": a group of cases.
    pub fn of_group(self) -> &'static str {
        match self {
            Keeps::EveryCommit => "keep every commit",
            Keeps::Unknown => "are not known to lose commits",
            Keeps::AllButTheLast => "may lose the last commits only",
            Keeps::MayBeDamaged => "a power cut may damage",
            Keeps::Nothing => "a power cut empties",
        }
    }
}
