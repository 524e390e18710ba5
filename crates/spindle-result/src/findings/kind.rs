//! What a kind of finding is, and what its look at a case gives. Every kind uses this.

use super::case_facts::CaseFacts;

/// One kind of finding.
pub(super) struct FindingKind {
    /// What it is called, the same in every run.
    pub(super) name: &'static str,
    /// What was found, in a sentence.
    pub(super) text: &'static str,
    /// The same in a case of which `text` is not true, or says too little.
    pub(super) words: Option<Words>,
    /// What can be done about it.
    pub(super) remedy: &'static str,
    /// Looks for it in a case.
    pub(super) look: fn(&CaseFacts<'_>) -> Option<Sighting>,
}

/// The words of a kind for a case, given what the verdicts at its load level say.
pub(super) type Words = fn(&CaseFacts<'_>, AtLoad) -> &'static str;

/// What the verdicts at the load level of a case say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtLoad {
    /// It is faster than another, and slower than none.
    Ahead,
    /// It is slower than another, and faster than none.
    Behind,
    /// It is faster than one and slower than another; or others differ, and nothing is known of it.
    Between,
    /// No two layouts are known to differ, and at least one verdict is undecided.
    Open,
    /// All are draws, or there is nothing to compare.
    Alike,
}

/// That it was found in a case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sighting {
    /// How much it matters, 0 to 1: about the share of a transaction's time that it explains.
    pub(super) weight: f64,
    /// The figures that show it, in words.
    pub(super) evidence: String,
}
