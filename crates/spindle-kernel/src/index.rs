//! Indexes: what the dictionary says of them, and the keys of rows. How they are made is in [`crate::index_build`], how
//! their blocks are found and changed in [`crate::change::tree`]; [`crate::session`] keeps them in step with their
//! tables.

use std::sync::Arc;

use spindle_io::sync::Semaphore;

use crate::block::BlockAddress;
use crate::control_file::{IndexOfTable, Segment};
use crate::error::Result;
use crate::free_space::FreeSpace;
use crate::key::Key;
use crate::sga::Sga;
use crate::space::Space;

pub use crate::control_file::KeyPart;

/// An index of an open database.
pub struct Index {
    pub(crate) root: Root,
    pub(crate) space: Space,
    key: Arc<Key>,
    is_unique: bool,
    /// Leaves whose last entry was deleted, to be taken out of the tree when they can be.
    pub(crate) emptied: Arc<FreeSpace>,
    /// The turn of the session that takes a block for a new node. One that was never used is formatted in the cache,
    /// unread: were it another session's node meanwhile, written and gone from the cache, that would hide it.
    pub(crate) new_node_turn: Semaphore,
}

/// What it takes to find one's way in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    /// The index's segment.
    pub(crate) segment: u32,
    /// Its header.
    pub(crate) head: BlockAddress,
    /// Its root, which is always the second block.
    pub(crate) address: BlockAddress,
}

impl Root {
    fn of(segment: &Segment) -> Root {
        let extent = segment.extents[0];
        let block = |block| BlockAddress {
            file: extent.file,
            block,
        };
        Root {
            segment: segment.number,
            head: block(extent.first_block),
            address: block(extent.first_block + 1),
        }
    }

    /// That of the index of a segment; `None` when there is none.
    pub(crate) fn find(sga: &Sga, segment: u32) -> Option<Root> {
        sga.control.read(|contents| {
            let mut segments = contents.segments.iter();
            segments.find(|found| found.number == segment).map(Root::of)
        })
    }
}

impl Index {
    /// What the dictionary says of it.
    pub(crate) fn new(sga: &Sga, segment: &Segment, of: &IndexOfTable) -> Index {
        Index {
            root: Root::of(segment),
            space: Space::new(segment),
            key: Arc::new(Key {
                index: segment.name.clone(),
                table: of.table,
                parts: of.key.clone(),
            }),
            is_unique: of.is_unique,
            emptied: sga.free_spaces.of(segment.number, || 0),
            new_node_turn: Semaphore::new(1),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.key.index
    }

    /// True when no two rows may have the same key.
    pub fn is_unique(&self) -> bool {
        self.is_unique
    }

    /// How it takes keys from rows.
    pub(crate) fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// Length of the longest key, bytes.
    pub(crate) fn key_bytes(&self) -> usize {
        self.key
            .parts
            .iter()
            .map(|part| usize::from(part.bytes))
            .sum()
    }

    /// The key of a row. Keys are compared byte by byte, and a shorter one is less.
    ///
    /// # Errors
    /// [`KernelError::NoKey`] when the row ends before the last part of its key begins.
    pub fn key_of(&self, row: &[u8]) -> Result<Vec<u8>> {
        self.key.of(row)
    }
}
