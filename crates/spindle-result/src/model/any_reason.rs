//! A reason of a promise as any version wrote it, for `promise` alone: what is gone where nothing is kept was said in
//! words at first.

use serde::Deserialize;
use spindle_text::keeps::{Keeps, Loses};

/// In the effects of storage that is memory as a whole, as older versions wrote them.
const LOST_WHOLE: &str = "a power cut loses all of";

/// What stands in a journal or a `result.json`.
#[derive(Deserialize)]
pub(super) struct AnyReason {
    pub what: String,
    pub keeps: Keeps,
    #[serde(default)]
    loses: Option<Loses>,
    pub effect: String,
    pub source: String,
}

impl AnyReason {
    /// What is gone, where nothing is kept.
    pub fn loses(&self) -> Option<Loses> {
        let in_words = || match self.effect.contains(LOST_WHOLE) {
            true => Loses::Files,
            false => Loses::Tables,
        };
        (self.keeps == Keeps::Nothing).then(|| self.loses.unwrap_or_else(in_words))
    }
}
