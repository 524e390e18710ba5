//! The check of an index's structure, for a database that is not in use: every node is where the one above it and the
//! one to its left say, its entries are in order and within its fences, every block is in the tree, free or never used,
//! each entry leads to a row that has its key, and each row has its entry.

use std::collections::BTreeSet;

use super::Session;
use crate::block::index::{self as node, EntryPlace, IndexHead, Node};
use crate::block::space_map::Fill;
use crate::block::{BlockAddress, RowId};
use crate::change::space::hear_maps;
use crate::change::tree::is_damaged;
use crate::error::Result;
use crate::index::Index;
use crate::table::Table;

/// What an index is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexShape {
    /// Levels of its tree, leaves included.
    pub levels: u64,
    /// Nodes of its tree.
    pub nodes: u64,
    /// Leaves among them.
    pub leaves: u64,
    /// Blocks that were used and are free again.
    pub free_blocks: u64,
    /// Entries, each of a row.
    pub entries: u64,
    /// Deleted entries that are still in leaves.
    pub ghosts: u64,
    /// Leaves that hold nothing else.
    pub emptied: u64,
    /// Those of them that the maps tell of.
    pub emptied_told: u64,
}

/// A place that the check takes with it.
type Owned = (Vec<u8>, RowId);

/// A node that the level above has announced.
struct Announced {
    address: BlockAddress,
    low: Owned,
}

/// The nodes of a level, in order, as they are looked at.
#[derive(Default)]
struct Level {
    /// Of the next level down.
    below: Vec<Announced>,
    /// Where the last node ends and what comes after it.
    end: Option<(Option<Owned>, Option<BlockAddress>)>,
    /// The key of the last entry that is not deleted.
    last_key: Option<Vec<u8>>,
}

fn owned(place: EntryPlace<'_>) -> Owned {
    (place.key.to_vec(), place.row)
}

impl Session {
    /// Checks an index of a table, which must not be in use meanwhile.
    ///
    /// # Errors
    /// [`crate::KernelError::DamagedIndex`], with the block and what is wrong with it.
    pub async fn check_index(&mut self, table: &Table, index: &Index) -> Result<IndexShape> {
        let mut shape = IndexShape::default();
        let mut seen = BTreeSet::new();
        let mut announced = vec![Announced {
            address: index.root.address,
            low: owned(EntryPlace::FIRST),
        }];
        loop {
            let mut level = Level::default();
            let mut number = None;
            for node in &announced {
                seen.insert(node.address);
                let found = self.check_node(index, node, &mut level, &mut shape).await?;
                let expected = *number.get_or_insert(found);
                self.require_index(index, node.address, found == expected, || {
                    format!("it is of level {found}, its neighbour of {expected}")
                })?;
            }
            shape.levels += 1;
            shape.nodes += announced.len() as u64;
            let end = level.end.take();
            let last = announced[announced.len() - 1].address;
            self.require_index(index, last, end == Some((None, None)), || {
                "the last node of a level has a neighbour".to_string()
            })?;
            if number == Some(0) {
                shape.leaves = announced.len() as u64;
                break;
            }
            announced = level.below;
        }
        self.check_blocks(index, seen, &mut shape).await?;
        self.check_rows(table, index, shape.entries).await?;
        Ok(shape)
    }

    fn require_index(
        &self,
        index: &Index,
        address: BlockAddress,
        holds: bool,
        otherwise: impl FnOnce() -> String,
    ) -> Result<()> {
        match holds {
            true => Ok(()),
            false => Err(is_damaged(&self.sga, index.root, address, otherwise())),
        }
    }

    /// Looks at a node by itself, and as the right neighbour of the one before. Returns its level.
    async fn check_node(
        &mut self,
        index: &Index,
        announced: &Announced,
        level: &mut Level,
        shape: &mut IndexShape,
    ) -> Result<u8> {
        let address = announced.address;
        let mut entries = Vec::new();
        let number = {
            let sga = &*self.sga;
            let pin = sga.cache.get(sga, &self.waits, address).await?;
            let block = pin.read(sga, &self.waits).await?;
            let is_node =
                node::is_node(&block) && crate::block::segment(&block) == index.root.segment;
            self.require_index(index, address, is_node, || "it is no node".to_string())?;
            let found = Node::of(&block);
            let follows = level.end.take().is_none_or(|(high, right)| {
                high == Some(owned(found.low)) && right == Some(address)
            });
            self.require_index(index, address, follows, || {
                "it is not the neighbour that the node on its left has".to_string()
            })?;
            self.require_index(index, address, owned(found.low) == announced.low, || {
                "it does not begin where the branch above says".to_string()
            })?;
            self.require_index(index, address, is_in_order(&block), || {
                "its entries are not in order within its fences".to_string()
            })?;
            level.end = Some((found.high.map(owned), found.right));
            for entry in node::entries(&block) {
                let key = node::key_of(&block, &entry);
                match (found.level, entry.is_ghost) {
                    (0, true) => shape.ghosts += 1,
                    (0, false) => entries.push((key, entry.row)),
                    _ => level.below.push(Announced {
                        address: BlockAddress::from_u64(entry.number.unwrap_or(0)),
                        low: (key, entry.row),
                    }),
                }
            }
            found.level
        };
        if number == 0 && entries.is_empty() && address != index.root.address {
            shape.emptied += 1;
            if index.emptied.is_mapped() {
                let (sga, waits) = (&*self.sga, &*self.waits);
                let told = &mut shape.emptied_told;
                let hear = |_, fill| *told += u64::from(fill == Fill::Room);
                hear_maps(sga, waits, address, 1, hear).await?;
            }
        }
        shape.entries += entries.len() as u64;
        for (key, row) in entries {
            let found = self.read_row(row, |bytes| index.key_of(bytes)).await;
            let leads = matches!(&found, Ok(Ok(of_row)) if *of_row == key);
            let again = index.is_unique() && level.last_key.as_ref() == Some(&key);
            self.require_index(index, address, !again, || {
                format!("row {row} and another have the same key, which must be unique")
            })?;
            level.last_key = Some(key);
            self.require_index(index, address, leads, || {
                format!("an entry leads to row {row}, which has not its key: {found:?}")
            })?;
        }
        Ok(number)
    }

    /// Every block that was ever used is in the tree or free.
    async fn check_blocks(
        &mut self,
        index: &Index,
        mut seen: BTreeSet<BlockAddress>,
        shape: &mut IndexShape,
    ) -> Result<()> {
        let sga = &*self.sga;
        let head = {
            let pin = sga.cache.get(sga, &self.waits, index.root.head).await?;
            IndexHead::of(&pin.read(sga, &self.waits).await?)
        };
        let mut next = head.free;
        while let Some(address) = next {
            let pin = sga.cache.get(sga, &self.waits, address).await?;
            let block = pin.read(sga, &self.waits).await?;
            let is_free = node::is_free(&block) && seen.insert(address);
            self.require_index(index, address, is_free, || "it is not free".to_string())?;
            shape.free_blocks += 1;
            next = node::right(&block);
        }
        let used = shape.nodes + shape.free_blocks + 1;
        self.require_index(
            index,
            index.root.head,
            used == u64::from(head.fresh),
            || {
                format!(
                    "{} blocks were used, {used} are in the tree, free, or this",
                    head.fresh
                )
            },
        )
    }

    /// Each row has its entry: there are as many rows as entries, and each entry leads to another row, for no row has
    /// two keys.
    async fn check_rows(&mut self, table: &Table, index: &Index, entries: u64) -> Result<()> {
        let mut rows = 0;
        self.scan(table, 0, u64::MAX, |_, _| rows += 1).await?;
        self.require_index(index, index.root.head, rows == entries, || {
            format!("the table has {rows} rows, the index {entries} entries")
        })
    }
}

/// True when entries and fences of a node are in order, and a branch begins with its own low fence.
fn is_in_order(block: &[u8]) -> bool {
    let keys: Vec<Owned> = node::entries(block)
        .map(|entry| (node::key_of(block, &entry), entry.row))
        .collect();
    let (low, high) = (owned(node::low(block)), node::high(block).map(owned));
    let first = keys.first().is_none_or(|first| match node::level(block) {
        0 => *first >= low,
        _ => *first == low,
    });
    let last = keys
        .last()
        .zip(high)
        .is_none_or(|(last, high)| *last < high);
    let is_empty_branch = keys.is_empty() && node::level(block) > 0;
    first && last && !is_empty_branch && keys.windows(2).all(|two| two[0] < two[1])
}
