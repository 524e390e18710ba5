//! What a case keeps when the power goes, as it stands in the journal and in `result.json`.

use std::fmt;

use serde::{Deserialize, Serialize};
use spindle_text::keeps::{Keeps, Loses};

use super::any_reason::AnyReason;

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
#[serde(from = "AnyReason")]
pub struct PromiseReason {
    /// As it stands: `synchronous_commit = off`.
    pub what: String,
    /// What it keeps.
    pub keeps: Keeps,
    /// For [`Keeps::Nothing`]: what is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loses: Option<Loses>,
    /// What that means, in words: a clause.
    pub effect: String,
    /// Where it is written.
    pub source: String,
}

impl From<AnyReason> for PromiseReason {
    fn from(of: AnyReason) -> PromiseReason {
        PromiseReason {
            keeps: of.keeps,
            loses: of.loses(),
            what: of.what,
            effect: of.effect,
            source: of.source,
        }
    }
}

/// The verb of a clause: of one case, and of several.
type Verb = [&'static str; 2];

const IS: Verb = ["is", "are"];
const KEEPS: Verb = ["keeps", "keep"];
const LOSES: Verb = ["loses", "lose"];
const MAY: Verb = ["may", "may"];

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
        reasons.any(|reason| reason.loses == Some(Loses::Files))
    }

    /// To follow the names of several cases: [`Promise::clause`] in the plural.
    pub fn clause_of_several(&self) -> String {
        let ([_, verb], rest) = self.told();
        format!("{verb} {rest}")
    }

    /// To follow the name of a case: `may lose the last 0.6 s of commits`.
    pub fn clause(&self) -> String {
        let ([verb, _], rest) = self.told();
        format!("{verb} {rest}")
    }

    /// What it keeps: a verb, and what follows it.
    fn told(&self) -> (Verb, String) {
        match (self.keeps, self.back_ms) {
            (Keeps::EveryCommit, _) => (KEEPS, "every commit".to_owned()),
            (Keeps::AllButTheLast, Some(ms)) => {
                let least = if self.has_unknown() { "at least " } else { "" };
                let lost = format!("lose {least}the last {} of commits", seconds(ms));
                (MAY, lost)
            }
            (Keeps::AllButTheLast, None) => (MAY, "lose the last commits".to_owned()),
            (Keeps::MayBeDamaged, _) => (MAY, "be damaged by a power cut".to_owned()),
            (Keeps::Nothing, _) if self.is_in_memory() => {
                (LOSES, "all files in a power cut".to_owned())
            }
            (Keeps::Nothing, _) => (LOSES, "whole tables in a power cut".to_owned()),
            (Keeps::Unknown, _) => {
                let why = self.weakest().map(|reason| format!(" ({})", reason.what));
                let why = why.unwrap_or_default();
                (IS, format!("not known to keep every commit{why}"))
            }
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
            loses: None,
            effect: String::new(),
            source: String::new(),
        };
        let on_unknown = Promise {
            reasons: vec![unknown],
            ..last(Some(600))
        };
        assert_eq!(on_unknown.to_string(), "all but 0.6 s?");
        assert_eq!(
            on_unknown.clause(),
            "may lose at least the last 0.6 s of commits"
        );
    }

    #[test]
    fn files_in_memory_are_lost_as_a_whole() {
        let with = |loses, effect: &str| Promise {
            keeps: Keeps::Nothing,
            back_ms: None,
            reasons: vec![PromiseReason {
                what: "tmpfs on /dev/shm".to_owned(),
                keeps: Keeps::Nothing,
                loses,
                effect: effect.to_owned(),
                source: String::new(),
            }],
        };
        let in_memory = with(Some(Loses::Files), "in whatever words");
        assert_eq!(in_memory.clause(), "loses all files in a power cut");
        assert_eq!(
            in_memory.clause_of_several(),
            "lose all files in a power cut"
        );
        let unlogged = with(Some(Loses::Tables), "in whatever words");
        assert_eq!(unlogged.clause(), "loses whole tables in a power cut");
        let unknown = Promise::default().clause_of_several();
        assert_eq!(unknown, "are not known to keep every commit");
    }

    #[test]
    fn what_older_versions_said_in_words_alone_is_read() {
        let read = |effect: &str| -> PromiseReason {
            let old = serde_json::json!({
                "what": "tmpfs on /dev/shm", "keeps": "nothing", "effect": effect, "source": "",
            });
            serde_json::from_value(old).unwrap()
        };
        let in_memory = read("files are in memory: a power cut loses all of them");
        assert_eq!(in_memory.loses, Some(Loses::Files));
        let device = read("the device is memory: a power cut loses all of it");
        assert_eq!(device.loses, Some(Loses::Files));
        let unlogged = read("recovery empties what is unlogged, after any crash");
        assert_eq!(unlogged.loses, Some(Loses::Tables));
    }
}
