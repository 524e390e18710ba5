//! The key that a person meant who wrote another one, for the help of an error.

/// The candidate a person most likely meant: one that contains what was written (or is contained in it), or that
/// differs by a slip or two of the keys; `None` when none is near.
pub(super) fn nearest(
    written: &str,
    candidates: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    const CONTAINED_LENGTH_MIN: usize = 4;
    let written = written.to_ascii_lowercase();
    spindle_text::nearest::nearest(&written, candidates.clone()).or_else(|| {
        candidates
            .filter(|candidate| candidate.len().min(written.len()) >= CONTAINED_LENGTH_MIN)
            .find(|candidate| candidate.contains(written.as_str()) || written.contains(candidate))
    })
}
