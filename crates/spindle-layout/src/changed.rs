//! Lists of changed blocks: what a restore copies back. Made from the tracker of a trial's devices, handed over by the
//! process that ran the trial.

use std::collections::BTreeMap;
use std::ops::Range;

/// For each file, by its name (`data1`, ...), the blocks that were written, in ranges of block numbers counted in the
/// shape's blocks. Files that are missing were not written. Ranges may overlap and stand in any order.
pub type ChangedBlocks = BTreeMap<String, Vec<Range<u64>>>;

/// Block numbers, ascending as `WrittenBlocks::written` gives them, as ranges. The tracker must have been made with the
/// shape's block size.
pub fn ranges(blocks: impl IntoIterator<Item = u64>) -> Vec<Range<u64>> {
    merge(blocks.into_iter().map(|block| block..block + 1))
}

/// Joins ranges, ascending by their starts, that touch or overlap; empty ones vanish.
pub(crate) fn merge(ascending: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ascending {
        match merged.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one_range() {
        assert_eq!(ranges([0, 1, 2, 7, 9, 10]), [0..3, 7..8, 9..11]);
        assert_eq!(ranges([]), []);
    }

    #[test]
    fn ranges_that_touch_or_overlap_are_joined() {
        assert_eq!(merge([0..4, 2..3, 4..6, 6..6, 8..9]), [0..6, 8..9]);
    }
}
