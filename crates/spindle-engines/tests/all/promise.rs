//! What running databases keep when the power goes, by the settings that they are found to run with: a weaker setting
//! is named.

use spindle_engines::promise::{CommitStorage, Keeps, Promise};
use spindle_system::Beneath;
use spindle_system::SystemTree;

/// What lies beneath a directory of the test.
pub fn storage(directory: &std::path::Path) -> CommitStorage {
    CommitStorage {
        places: vec![Beneath::of(&SystemTree::default(), directory)],
        ..CommitStorage::default()
    }
}

/// Demands that `what` is a reason that keeps so much and loses so far back, and that nothing stronger is promised.
pub fn must_name(promise: &Promise, what: &str, keeps: Keeps, back_ms: Option<u64>) {
    let mut reasons = promise.reasons.iter();
    let reason = reasons.find(|reason| reason.what == what);
    let reason = reason.unwrap_or_else(|| panic!("{what} is not named: {promise:?}"));
    assert_eq!((reason.keeps, reason.back_ms), (keeps, back_ms), "{what}");
    assert!(promise.keeps >= keeps, "{promise:?}");
}
