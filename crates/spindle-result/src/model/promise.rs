//! What a case keeps when the power goes, as it stands in the journal and in `result.json`.

use std::fmt;

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
    /// Nothing: it was in memory.
    Nothing,
}

/// What a case keeps when the power goes, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The weakest of its reasons.
    pub keeps: Keeps,
    /// For [`Keeps::AllButTheLast`]: how far back a lost commit may lie, milliseconds, about; `None` when nothing
    /// bounds it.
    #[serde(default)]
    pub back_ms: Option<u64>,
    /// What it follows from, the weakest first; empty in results of versions that did not look.
    #[serde(default)]
    pub reasons: Vec<PromiseReason>,
}

/// A setting, mount option or device that a promise follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromiseReason {
    /// As it stands: `synchronous_commit = off`.
    pub what: String,
    /// What it keeps.
    pub keeps: Keeps,
    /// What that means, in words: a clause.
    pub effect: String,
    /// Where it is written.
    pub source: String,
}

/// In the effects of storage that is memory as a whole.
const LOST_WHOLE: &str = "a power cut loses all of";

impl Promise {
    /// What it follows from, in the first place.
    pub fn weakest(&self) -> Option<&PromiseReason> {
        self.reasons.first()
    }

    /// The reasons that make it weaker than every commit.
    pub fn weaknesses(&self) -> impl Iterator<Item = &PromiseReason> {
        let reasons = self.reasons.iter();
        reasons.filter(|reason| reason.keeps != Keeps::EveryCommit)
    }

    /// Whether something beneath does not tell what it keeps, beside what makes the promise weak.
    fn has_unknown(&self) -> bool {
        let mut reasons = self.reasons.iter();
        reasons.any(|reason| reason.keeps == Keeps::Unknown)
    }

    /// Whether what lies in memory are the files, and not some tables alone.
    fn is_in_memory(&self) -> bool {
        let mut reasons = self.reasons.iter();
        reasons.any(|reason| reason.effect.contains(LOST_WHOLE))
    }

    /// To follow the names of several cases: [`Promise::clause`] in the plural.
    pub fn clause_of_several(&self) -> String {
        let clause = self.clause();
        let singular = [("is ", "are "), ("keeps ", "keep "), ("loses ", "lose ")];
        let mut plurals = singular
            .iter()
            .filter_map(|(one, several)| Some(format!("{several}{}", clause.strip_prefix(one)?)));
        plurals.next().unwrap_or(clause)
    }

    /// To follow the name of a case: `may lose the last 0.6 s of commits`.
    pub fn clause(&self) -> String {
        match (self.keeps, self.back_ms) {
            (Keeps::EveryCommit, _) => "keeps every commit".to_owned(),
            (Keeps::AllButTheLast, Some(ms)) => {
                let more = if self.has_unknown() { ", or more" } else { "" };
                format!("may lose the last {} of commits{more}", seconds(ms))
            }
            (Keeps::AllButTheLast, None) => "may lose the last commits".to_owned(),
            (Keeps::MayBeDamaged, _) => "may be damaged by a power cut".to_owned(),
            (Keeps::Nothing, _) if self.is_in_memory() => {
                "loses all files in a power cut".to_owned()
            }
            (Keeps::Nothing, _) => "loses whole tables in a power cut".to_owned(),
            (Keeps::Unknown, _) => match self.weakest() {
                Some(reason) => format!("is not known to keep every commit ({})", reason.what),
                None => "is not known to keep every commit".to_owned(),
            },
        }
    }
}

/// In the cell of a table.
impl fmt::Display for Promise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.keeps, self.back_ms) {
            (Keeps::EveryCommit, _) => formatter.pad("all commits"),
            (Keeps::AllButTheLast, Some(ms)) => {
                let mark = if self.has_unknown() { "?" } else { "" };
                formatter.pad(&format!("all but {}{mark}", seconds(ms)))
            }
            (Keeps::AllButTheLast, None) => formatter.pad("all but the last"),
            (Keeps::MayBeDamaged, _) => formatter.pad("may be damaged"),
            (Keeps::Nothing, _) => formatter.pad("nothing"),
            (Keeps::Unknown, _) => formatter.pad("unknown"),
        }
    }
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

/// `0.6 s`, `40 s`, `5 ms`.
fn seconds(ms: u64) -> String {
    match ms {
        0..100 => format!("{ms} ms"),
        100..10_000 if !ms.is_multiple_of(1000) => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{} s", ms.div_ceil(1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_said_with_its_time() {
        let last = |back_ms| Promise {
            keeps: Keeps::AllButTheLast,
            back_ms,
            reasons: Vec::new(),
        };
        let said = [Some(50), Some(600), Some(1_000), Some(40_000), None]
            .map(|back_ms| last(back_ms).to_string());
        assert_eq!(
            said,
            [
                "all but 50 ms",
                "all but 0.6 s",
                "all but 1 s",
                "all but 40 s",
                "all but the last"
            ]
        );
        assert_eq!(
            last(Some(600)).clause(),
            "may lose the last 0.6 s of commits"
        );
        let unknown = PromiseReason {
            what: "ext4 without a journal".to_owned(),
            keeps: Keeps::Unknown,
            effect: String::new(),
            source: String::new(),
        };
        let on_unknown = Promise {
            reasons: vec![unknown],
            ..last(Some(600))
        };
        assert_eq!(on_unknown.to_string(), "all but 0.6 s?");
        assert!(on_unknown.clause().ends_with("of commits, or more"));
    }

    #[test]
    fn files_in_memory_are_lost_as_a_whole() {
        let with = |effect: &str| Promise {
            keeps: Keeps::Nothing,
            back_ms: None,
            reasons: vec![PromiseReason {
                what: "tmpfs on /dev/shm".to_owned(),
                keeps: Keeps::Nothing,
                effect: effect.to_owned(),
                source: String::new(),
            }],
        };
        let in_memory = with("files are in memory: a power cut loses all of them");
        assert_eq!(in_memory.clause(), "loses all files in a power cut");
        assert_eq!(
            in_memory.clause_of_several(),
            "lose all files in a power cut"
        );
        let unlogged = with("recovery empties what is unlogged, after any crash");
        assert_eq!(unlogged.clause(), "loses whole tables in a power cut");
        let unknown = Promise::default().clause_of_several();
        assert_eq!(unknown, "are not known to keep every commit");
    }
}
