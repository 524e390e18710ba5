//! Indexes: what the dictionary says of them, and the keys of rows. How their blocks are found and changed is in
//! [`crate::change::tree`]; [`crate::session`] keeps them in step with their tables.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_io::sync::Latch;

use crate::block::index::{self as node, Head, Node, Place};
use crate::block::{self, BlockAddress, RowId};
use crate::control_file::{IndexOfTable, Segment};
use crate::error::Result;
use crate::key::Key;
use crate::sga::Sga;
use crate::space::{Space, SpacePlan, extent_blocks, format_unused, write_extent};

pub use crate::control_file::KeyPart;

/// An index of an open database.
pub struct Index {
    pub(crate) root: Root,
    pub(crate) space: Space,
    key: Arc<Key>,
    is_unique: bool,
    /// First places of leaves whose last entry was deleted, to be taken out of the tree when they can be.
    pub(crate) emptied: Latch<VecDeque<(Vec<u8>, RowId)>>,
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
    pub(crate) fn new(segment: &Segment, of: &IndexOfTable, block_bytes: usize) -> Index {
        Index {
            root: Root::of(segment),
            space: Space::new(segment, block_bytes),
            key: Arc::new(Key {
                index: segment.name.clone(),
                table: of.table,
                parts: of.key.clone(),
            }),
            is_unique: of.is_unique,
            emptied: Latch::default(),
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

    /// The key of a row. Keys are compared byte by byte, and a shorter one is less.
    ///
    /// # Errors
    /// [`KernelError::NoKey`] when the row ends before the last part of its key begins.
    pub fn key_of(&self, row: &[u8]) -> Result<Vec<u8>> {
        self.key.of(row)
    }
}

/// Makes an empty index: its header, a root without entries, and blocks for it to grow into.
pub(crate) async fn create(
    sga: &Sga,
    name: &str,
    table: u32,
    is_unique: bool,
    key: &[KeyPart],
) -> Result<Arc<Index>> {
    let block_bytes = sga.settings.block_bytes;
    let key_bytes: usize = key.iter().map(|part| usize::from(part.bytes)).sum();
    assert!(
        (1..=node::key_bytes_max(block_bytes)).contains(&key_bytes),
        "a key of up to {key_bytes} bytes does not fit blocks of {block_bytes}"
    );
    let mut plan = SpacePlan::begin(sga).await;
    let number = plan.add_segment(name, key_bytes, 0, extent_blocks(block_bytes))?;
    let entry = IndexOfTable {
        segment: number as u32,
        table,
        is_unique,
        key: key.to_vec(),
    };
    let segment = &plan.contents.segments[number];
    let index = Index::new(segment, &entry, block_bytes);
    let mut filler = sga.env.rng(u64::from(segment.number));
    write_extent(sga, segment.extents[0], |step, address, bytes| {
        let is_made = format_first(step, address, number as u32, bytes);
        if !is_made {
            format_unused(address, bytes, &mut filler);
        }
    })
    .await?;
    sga.flush_datafiles().await?;
    plan.contents.indexes.push(entry);
    plan.enter().await?;
    Ok(Arc::new(index))
}

/// Makes the first two blocks of an index: its header, and a root without entries. False for the others.
fn format_first(step: u32, address: BlockAddress, segment: u32, bytes: &mut [u8]) -> bool {
    let empty = Head {
        free: None,
        fresh: 2,
    };
    let root = Node {
        level: 0,
        low: Place::FIRST,
        high: None,
        right: None,
    };
    match step {
        0 => node::format_head(bytes, address, segment, empty),
        1 => node::format_node(bytes, address, segment, &root.with(std::iter::empty())),
        _ => return false,
    }
    block::seal(bytes);
    true
}
