//! An index is made from its leaves upwards, of the entries in order: each level is written past the cache, node by
//! node, then the level above it of the nodes' low fences. It counts when the control file knows it, as a table does.
//! The instance calls this.

mod sorted;

use std::sync::Arc;

use spindle_query::RowLayoutError;

use crate::block::index::{self as node, EntryPlace, IndexEntry, IndexHead, Node};
use crate::block::{self, BlockAddress, RowId};
use crate::control_file::{IndexOfTable, KeyPart, StoredKey};
use crate::error::{KernelError, Result};
use crate::index::{Index, IndexKey};
use crate::key::Key;
use crate::session::Session;
use crate::sga::Sga;
use crate::space::{SpacePlan, extent_blocks, format_unused, write_extent};
use crate::table::Table;
use sorted::Sorted;

/// Share of a node that is filled (Oracle's `PCTFREE` of indexes leaves the same).
const FILLED_PERCENT: usize = 90;
/// What a node takes beyond its entries and the keys of its fences, and an entry beyond its key, at most.
const NODE_BYTES: usize = 96;
const ENTRY_BYTES: usize = 20;

type Owned = (Vec<u8>, RowId);

/// Makes an index of the rows that a table has. These must not change meanwhile.
pub(crate) async fn create(
    sga: &Sga,
    session: &mut Session,
    table: &Table,
    name: &str,
    is_unique: bool,
    key: IndexKey<'_>,
) -> Result<Arc<Index>> {
    let block_bytes = sga.settings.block_bytes;
    let (stored, parts) = stored_key(table, name, key)?;
    let key_bytes: usize = parts.iter().map(|part| usize::from(part.bytes)).sum();
    let key_bytes_max = node::key_bytes_max(block_bytes);
    if !(1..=key_bytes_max).contains(&key_bytes) {
        return Err(KernelError::KeysTooLong {
            index: name.to_string(),
            key_bytes,
            key_bytes_max,
        });
    }
    let key = Key::new(name, table.segment, parts);
    let mut sorted = Sorted::new(session, table, &key).await?;
    let mut plan = SpacePlan::begin(sga).await;
    let number = plan.add_segment(name, key_bytes, 0, extent_blocks(block_bytes))?;
    let mut blocks = Blocks::new(sga, plan, number);
    let mut level = Level::new(0);
    while let Some(entries) = sorted.next().await? {
        for (key, row) in entries {
            if is_unique && level.entries.last().is_some_and(|last| last.0.0 == key) {
                return Err(KernelError::DuplicateKey {
                    index: name.to_string(),
                });
            }
            level.add(&mut blocks, (key, row), None).await?;
        }
    }
    let root = loop {
        match level.close(&mut blocks).await? {
            Closed::Root(root) => break root,
            Closed::Children(above, children) => {
                level = Level::new(above);
                for (low, address) in children {
                    level.add(&mut blocks, low, Some(address.to_u64())).await?;
                }
            }
        }
    };
    let mut plan = blocks.finish(root).await?;
    sga.flush_datafiles().await?;
    let entry = IndexOfTable {
        segment: number as u32,
        table: table.segment,
        is_unique,
        key: stored,
    };
    let index = Index::new(sga, &plan.contents, &entry);
    plan.contents.indexes.push(entry);
    drop(plan.enter().await?);
    Ok(Arc::new(index))
}

/// A key as the dictionary keeps it, and the bytes of rows that make it.
fn stored_key(table: &Table, index: &str, key: IndexKey<'_>) -> Result<(StoredKey, Vec<KeyPart>)> {
    let part = |(offset, bytes)| KeyPart { offset, bytes };
    match (key, table.columns()) {
        (IndexKey::Bytes(parts), None) => Ok((StoredKey::Bytes(parts.to_vec()), parts.to_vec())),
        (IndexKey::Bytes(_), Some(_)) => Err(KernelError::KeyOfBytes {
            index: index.to_string(),
            table: table.name().to_string(),
        }),
        (IndexKey::Columns(_), None) => Err(KernelError::NoColumns {
            table: table.name().to_string(),
        }),
        (IndexKey::Columns(names), Some(layout)) => {
            let columns = names.iter().map(|name| layout.number(name));
            let columns: std::result::Result<Vec<u16>, RowLayoutError> = columns.collect();
            let columns = columns.map_err(|error| table.misfit(error))?;
            let parts = layout.key_parts(&columns);
            let parts = parts.map_err(|error| table.misfit(error))?;
            let parts = parts.into_iter().map(part).collect();
            Ok((StoredKey::Columns(columns), parts))
        }
    }
}

/// The nodes of one level, as they are filled.
struct Level {
    level: u8,
    /// Where the node begins that is being filled.
    low: Owned,
    entries: Vec<(Owned, Option<u64>)>,
    /// Bytes of its keys.
    keys_bytes: usize,
    /// The nodes before it.
    done: Vec<(Owned, BlockAddress)>,
}

/// What a level has become.
enum Closed {
    /// Its only node is the root, as the redo has it.
    Root(Vec<u8>),
    /// The number of the level above, and what it consists of.
    Children(u8, Vec<(Owned, BlockAddress)>),
}

fn place(owned: &Owned) -> EntryPlace<'_> {
    EntryPlace {
        key: &owned.0,
        row: owned.1,
    }
}

fn first() -> Owned {
    (Vec::new(), EntryPlace::FIRST.row)
}

fn common(left: &[u8], right: &[u8]) -> usize {
    let both = left.iter().zip(right);
    both.take_while(|(left, right)| left == right).count()
}

impl Level {
    fn new(level: u8) -> Level {
        Level {
            level,
            low: first(),
            entries: Vec::new(),
            keys_bytes: 0,
            done: Vec::new(),
        }
    }

    /// Adds an entry, which comes after all that were added before.
    async fn add(
        &mut self,
        blocks: &mut Blocks<'_>,
        entry: Owned,
        number: Option<u64>,
    ) -> Result<()> {
        let key = &entry.0;
        // Every key of the node begins with what its fences have in common.
        let saved = common(&self.low.0, key) * self.entries.len();
        let keys_bytes = self.keys_bytes - saved.min(self.keys_bytes) + key.len();
        let bytes = keys_bytes + self.low.0.len() + key.len() + self.fixed_bytes();
        if bytes > blocks.block_bytes() * FILLED_PERCENT / 100 && self.entries.len() > 1 {
            let high = self.separator(self.entries.len() - 1, &entry);
            self.put(blocks, self.entries.len(), high).await?;
        }
        self.keys_bytes += entry.0.len();
        self.entries.push((entry, number));
        Ok(())
    }

    fn fixed_bytes(&self) -> usize {
        NODE_BYTES + (self.entries.len() + 1) * (ENTRY_BYTES + 8 * usize::from(self.level > 0))
    }

    /// Where a node that ends with the entry at `last` gives way to one that begins with `next`: in leaves the shortest
    /// key that divides both.
    fn separator(&self, last: usize, next: &Owned) -> Owned {
        let last = &self.entries[last].0;
        if self.level > 0 || last.0 == next.0 {
            return next.clone();
        }
        let bytes = common(&last.0, &next.0) + 1;
        (next.0[..bytes].to_vec(), EntryPlace::FIRST.row)
    }

    /// The node of the first `count` entries.
    fn node(
        &self,
        count: usize,
        high: Option<EntryPlace<'_>>,
        right: Option<BlockAddress>,
    ) -> Vec<u8> {
        let node = Node {
            level: self.level,
            low: place(&self.low),
            high,
            right,
        };
        let entries = self.entries[..count].iter().map(|((key, row), number)| {
            let entry = IndexEntry {
                suffix: key,
                row: *row,
                number: *number,
                is_ghost: false,
            };
            (&[][..], entry)
        });
        node.with(entries)
    }

    /// Writes the node of the first `count` entries, which ends at `high`; another follows.
    async fn put(&mut self, blocks: &mut Blocks<'_>, count: usize, high: Owned) -> Result<()> {
        let (address, right) = (blocks.address(0)?, blocks.address(1)?);
        let bytes = self.node(count, Some(place(&high)), Some(right));
        blocks.put(bytes).await?;
        let gone = self.entries.drain(..count);
        self.keys_bytes -= gone.map(|((key, _), _)| key.len()).sum::<usize>();
        let low = std::mem::replace(&mut self.low, high);
        self.done.push((low, address));
        Ok(())
    }

    /// Writes what is left.
    async fn close(mut self, blocks: &mut Blocks<'_>) -> Result<Closed> {
        // The last node has no high fence, and so stores its keys whole.
        while !node::node_fits(
            &self.node(self.entries.len(), None, None),
            blocks.block_bytes(),
        ) {
            let half = self.entries.len() / 2;
            let high = self.separator(half - 1, &self.entries[half].0);
            self.put(blocks, half, high).await?;
        }
        let last = self.node(self.entries.len(), None, None);
        if self.done.is_empty() {
            return Ok(Closed::Root(last));
        }
        self.done.push((self.low, blocks.address(0)?));
        blocks.put(last).await?;
        Ok(Closed::Children(self.level + 1, self.done))
    }
}

/// The blocks of the index, written extent by extent; the first, which has header and root, at last.
struct Blocks<'a> {
    sga: &'a Sga,
    plan: SpacePlan<'a>,
    segment: usize,
    /// Extents before the one that is being filled, and their blocks.
    extents_done: usize,
    blocks_done: usize,
    /// Nodes of the extent that is being filled.
    nodes: Vec<Vec<u8>>,
    first_extent: Vec<Vec<u8>>,
}

impl<'a> Blocks<'a> {
    fn new(sga: &'a Sga, plan: SpacePlan<'a>, segment: usize) -> Blocks<'a> {
        Blocks {
            sga,
            plan,
            segment,
            extents_done: 0,
            blocks_done: 0,
            // The header's and the root's places.
            nodes: vec![Vec::new(); 2],
            first_extent: Vec::new(),
        }
    }

    fn block_bytes(&self) -> usize {
        self.sga.settings.block_bytes
    }

    /// Blocks used so far.
    fn used(&self) -> usize {
        self.blocks_done + self.nodes.len()
    }

    /// Address of the block that comes `ahead` blocks after the next one.
    fn address(&mut self, ahead: usize) -> Result<BlockAddress> {
        let (mut order, mut number) = (self.extents_done, self.nodes.len() + ahead);
        loop {
            let extents = &self.plan.contents.segments[self.segment].extents;
            match extents.get(order) {
                None => self.plan.add_extent(self.segment)?,
                Some(extent) if number < extent.blocks as usize => {
                    return Ok(BlockAddress {
                        file: extent.file,
                        block: extent.first_block + number as u32,
                    });
                }
                Some(extent) => {
                    number -= extent.blocks as usize;
                    order += 1;
                }
            }
        }
    }

    async fn put(&mut self, node: Vec<u8>) -> Result<()> {
        self.nodes.push(node);
        let extents = &self.plan.contents.segments[self.segment].extents;
        let extent_blocks = extents[self.extents_done].blocks as usize;
        if self.nodes.len() < extent_blocks {
            return Ok(());
        }
        let nodes = std::mem::take(&mut self.nodes);
        match self.extents_done {
            0 => self.first_extent = nodes,
            order => self.write(order, &nodes, None).await?,
        }
        self.extents_done += 1;
        self.blocks_done += extent_blocks;
        Ok(())
    }

    /// Writes the nodes of an extent; the others of its blocks are unused.
    async fn write(&self, order: usize, nodes: &[Vec<u8>], head: Option<IndexHead>) -> Result<()> {
        let segment = &self.plan.contents.segments[self.segment];
        let mut filler = self.sga.env.rng(u64::from(segment.number));
        let extent = segment.extents[order];
        write_extent(self.sga, extent, |step, address, bytes| {
            match (nodes.get(step as usize), head) {
                (Some(_), Some(head)) if step == 0 => {
                    node::format_head(bytes, address, segment.number, head);
                }
                (Some(node), _) => node::format_node(bytes, address, segment.number, node),
                (None, _) => return format_unused(address, bytes, &mut filler),
            }
            block::seal(bytes);
        })
        .await
    }

    /// Writes what is left, header and root.
    async fn finish(mut self, root: Vec<u8>) -> Result<SpacePlan<'a>> {
        let head = IndexHead {
            free: None,
            fresh: self.used() as u32,
        };
        let nodes = std::mem::take(&mut self.nodes);
        let extents = self.plan.contents.segments[self.segment].extents.len();
        match self.extents_done {
            0 => self.first_extent = nodes,
            order if order < extents => self.write(order, &nodes, None).await?,
            _ => {}
        }
        self.first_extent[1] = root;
        self.write(0, &self.first_extent, Some(head)).await?;
        Ok(self.plan)
    }
}
