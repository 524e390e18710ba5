//! Indexes: what the dictionary says of them, and the keys of rows. How they are made is in [`crate::index_build`], how
//! their blocks are found and changed in [`crate::change::tree`]; [`crate::session`] keeps them in step with their
//! tables.

use std::sync::Arc;

use spindle_io::sync::Semaphore;

use crate::block::BlockAddress;
use crate::control_file::{Contents, IndexOfTable, Segment, StoredKey};
use crate::error::Result;
use crate::free_space::FreeSpace;
use crate::key::Key;
use crate::sga::Sga;
use crate::space::Space;

pub use crate::control_file::KeyPart;

/// What the key of a new index is put together from, in order.
#[derive(Debug, Clone, Copy)]
pub enum IndexKey<'a> {
    /// Bytes of rows, of a table without columns.
    Bytes(&'a [KeyPart]),
    /// Columns of the table, by their names.
    Columns(&'a [&'a str]),
}

/// An index of an open database.
pub struct Index {
    pub(crate) root: Root,
    pub(crate) space: Space,
    key: Arc<Key>,
    /// The columns of its key, by their numbers; `None` where its table has none.
    columns: Option<Arc<[u16]>>,
    is_unique: bool,
    /// Leaves whose last entry was deleted, to be taken out of the tree when they can be.
    pub(crate) emptied: Arc<FreeSpace>,
    /// The turn of the session that takes a block for a new node. One that was never used is formatted in the cache,
    /// unread: were it another session's node meanwhile, written and gone from the cache, that would hide it.
    pub(crate) new_node_turn: Semaphore,
}

/// What is needed to navigate an index.
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
    pub(crate) fn new(sga: &Sga, contents: &Contents, of: &IndexOfTable) -> Index {
        let segment = contents.segment(of.segment);
        let parts = of.parts(contents.segment(of.table).columns.as_ref());
        let parts = parts.expect("keys are made of columns that are there");
        Index {
            root: Root::of(segment),
            space: Space::new(segment),
            key: Arc::new(Key::new(&segment.name, of.table, parts)),
            columns: match &of.key {
                StoredKey::Bytes(_) => None,
                StoredKey::Columns(columns) => Some(Arc::from(&columns[..])),
            },
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

    /// The columns of its key, as numbers of its table's, in order; `None` where its table has no columns.
    pub fn columns(&self) -> Option<&[u16]> {
        self.columns.as_deref()
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
