//! The leaf that a session's last row went to, for each index. Rows that come in the order of their keys go there one
//! after another, and the way from the root can be left out, as PostgreSQL does on the rightmost leaf. Where keys come
//! at random two in succession rarely meet, and nothing is tried in vain.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::block::BlockAddress;

/// By segment, the leaves that a session's last rows went to.
#[derive(Default)]
pub(super) struct LastLeaves(FxHashMap<u32, LastLeaf>);

struct LastLeaf {
    address: BlockAddress,
    /// The row before the last one went there, too.
    is_repeated: bool,
}

impl LastLeaves {
    /// The leaf that the next row of an index is likely to go to, if there is one.
    pub(super) fn likely(&self, segment: u32) -> Option<BlockAddress> {
        let last = self.0.get(&segment)?;
        last.is_repeated.then_some(last.address)
    }

    /// Nothing is known of the leaves of an index any longer.
    pub(super) fn forget(&mut self, segment: u32) {
        self.0.remove(&segment);
    }

    /// A row of an index goes to this leaf.
    pub(super) fn note(&mut self, segment: u32, address: BlockAddress) {
        match self.0.entry(segment) {
            Entry::Vacant(free) => {
                let is_repeated = false;
                free.insert(LastLeaf {
                    address,
                    is_repeated,
                });
            }
            Entry::Occupied(mut last) => {
                let last = last.get_mut();
                last.is_repeated = last.address == address;
                last.address = address;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_likely_once_two_rows_in_succession_went_there() {
        let leaf = |block| BlockAddress { file: 1, block };
        let mut leaves = LastLeaves::default();
        let mut likely_after = |block| {
            leaves.note(7, leaf(block));
            leaves.likely(7)
        };
        assert_eq!(likely_after(1), None);
        assert_eq!(likely_after(1), Some(leaf(1)));
        assert_eq!(likely_after(2), None);
        assert_eq!(likely_after(1), None);
        assert_eq!(leaves.likely(8), None);
        leaves.note(7, leaf(1));
        leaves.forget(7);
        leaves.note(7, leaf(1));
        assert_eq!(leaves.likely(7), None);
    }
}
