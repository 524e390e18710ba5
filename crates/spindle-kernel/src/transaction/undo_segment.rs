//! The undo segment: one, whose first blocks are the transaction table and whose others hold undo records. A
//! transaction owns the undo block it writes to; a block is used again when every transaction that wrote to it has
//! ended, the longest unused first, for readers may want what is in it. When running transactions have all of its
//! blocks it grows by extents of the datafiles ([`crate::space::extend_undo`]). Everything here is bookkeeping in
//! memory; what must survive is in the blocks, protected by redo.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use spindle_io::sync::Latch;

use crate::block::{BlockAddress, transaction_table};
use crate::control_file::{Extent, Segment};
use crate::error::{KernelError, Result};
use crate::storage::UNDO_FILE;

use super::visibility::Endings;

#[derive(Default)]
struct Blocks {
    /// Blocks without records of running transactions, longest unused first.
    free: VecDeque<BlockAddress>,
    /// Blocks that no transaction writes to and that still have room.
    partial: Vec<BlockAddress>,
    /// Running transactions with records in a block, for blocks that have any.
    users: FxHashMap<BlockAddress, u32>,
    /// Blocks for undo records.
    count: usize,
}

impl Blocks {
    fn add(&mut self, extent: Extent) {
        let blocks = extent.first_block..extent.first_block + extent.blocks;
        self.count += blocks.len();
        let file = extent.file;
        self.free
            .extend(blocks.map(|block| BlockAddress { file, block }));
    }
}

/// The undo segment of a running instance.
pub(crate) struct UndoSegment {
    table_first: u32,
    table_blocks: u32,
    slots_per_block: usize,
    blocks: Latch<Blocks>,
    /// Slots without a transaction, longest unused first.
    free_slots: Latch<VecDeque<usize>>,
    endings: Endings,
}

/// How many blocks the transaction table takes for `slots` slots.
pub(crate) fn table_blocks(block_bytes: usize, slots: usize) -> u32 {
    slots.div_ceil(transaction_table::slots_per_block(block_bytes)) as u32
}

impl UndoSegment {
    /// Over the segment's extents; `table_blocks` of the first are the transaction table.
    pub(crate) fn new(segment: &Segment, table_blocks: u32, block_bytes: usize) -> UndoSegment {
        let first = segment.extents[0];
        let slots_per_block = transaction_table::slots_per_block(block_bytes);
        let slots = slots_per_block * table_blocks as usize;
        let mut blocks = Blocks::default();
        blocks.add(Extent {
            first_block: first.first_block + table_blocks,
            blocks: first.blocks - table_blocks,
            ..first
        });
        for extent in &segment.extents[1..] {
            blocks.add(*extent);
        }
        UndoSegment {
            table_first: first.first_block,
            table_blocks,
            slots_per_block,
            blocks: Latch::new(blocks),
            free_slots: Latch::new((0..slots).collect()),
            endings: Endings::new(slots),
        }
    }

    /// The blocks of the transaction table.
    pub(crate) fn table(&self) -> impl Iterator<Item = BlockAddress> + use<> {
        (self.table_first..self.table_first + self.table_blocks).map(|block| BlockAddress {
            file: UNDO_FILE,
            block,
        })
    }

    /// Slots in each block of the table.
    pub(crate) fn slots_per_block(&self) -> usize {
        self.slots_per_block
    }

    /// Where a slot is: its block and its place there.
    pub(crate) fn slot_place(&self, slot: usize) -> (BlockAddress, u16) {
        let block = self.table_first + (slot / self.slots_per_block) as u32;
        (
            BlockAddress {
                file: UNDO_FILE,
                block,
            },
            (slot % self.slots_per_block) as u16,
        )
    }

    /// Takes a slot for a new transaction; with its wrap number it names the transaction.
    pub(crate) fn take_slot(&self) -> Result<(usize, u32)> {
        let slots = self.table_blocks as usize * self.slots_per_block;
        let free = self.free_slots.lock().pop_front();
        let slot = free.ok_or(KernelError::TransactionTableFull { slots })?;
        Ok((slot, self.endings.begin(slot)))
    }

    /// The slot is free for another transaction.
    pub(crate) fn give_slot(&self, slot: usize) {
        self.free_slots.lock().push_back(slot);
    }

    /// What recovery found in the slot.
    pub(crate) fn recall(&self, slot: usize, entry: transaction_table::TransactionSlot) {
        self.endings.recall(slot, entry);
    }

    /// When transactions ended.
    pub(crate) fn endings(&self) -> &Endings {
        &self.endings
    }

    /// Blocks for undo records.
    pub(crate) fn undo_blocks(&self) -> usize {
        self.blocks.lock().count
    }

    /// Running transactions have all of its blocks.
    pub(crate) fn is_full(&self) -> bool {
        let blocks = self.blocks.lock();
        blocks.partial.is_empty() && blocks.free.is_empty()
    }

    /// It has another extent.
    pub(crate) fn add_extent(&self, extent: Extent) {
        self.blocks.lock().add(extent);
    }

    /// Takes a block to write undo to; true when it is to be formatted first. `None`: running transactions have all.
    pub(crate) fn take_block(&self) -> Option<(BlockAddress, bool)> {
        let mut blocks = self.blocks.lock();
        let taken = match blocks.partial.pop() {
            Some(block) => (block, false),
            None => (blocks.free.pop_front()?, true),
        };
        *blocks.users.entry(taken.0).or_default() += 1;
        Some(taken)
    }

    /// A transaction has ended that wrote to `touched`; the last of them has room left when `has_room`.
    pub(crate) fn give_blocks(&self, touched: &[BlockAddress], has_room: bool) {
        let mut blocks = self.blocks.lock();
        for (index, block) in touched.iter().enumerate() {
            let users = blocks.users.get_mut(block).expect("it was taken");
            *users -= 1;
            let is_unused = *users == 0;
            if is_unused {
                blocks.users.remove(block);
            }
            let is_last = index + 1 == touched.len();
            if is_last && has_room {
                blocks.partial.push(*block);
            } else if is_unused {
                blocks.free.push_back(*block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_blocks(blocks: u32) -> UndoSegment {
        let extents = vec![Extent {
            file: 0,
            first_block: 1,
            blocks,
        }];
        let segment = Segment {
            number: 0,
            name: "undo".into(),
            row_bytes: 0,
            loaded_rows: 0,
            extents,
            columns: None,
        };
        UndoSegment::new(&segment, 1, 2048)
    }

    #[test]
    fn a_block_is_free_when_its_last_user_has_ended() {
        let undo = of_blocks(3);
        let (first, fresh) = undo.take_block().unwrap();
        assert!(fresh);
        undo.give_blocks(&[first], true);
        let (again, fresh) = undo.take_block().unwrap();
        assert_eq!((again, fresh), (first, false));
        let (second, _) = undo.take_block().unwrap();
        assert!(undo.is_full());
        assert_eq!(undo.take_block(), None);
        undo.give_blocks(&[first, second], false);
        assert!(undo.take_block().unwrap().1);
    }

    #[test]
    fn another_extent_has_blocks_for_undo_in_its_own_file() {
        let undo = of_blocks(2);
        assert_eq!(undo.undo_blocks(), 1);
        undo.take_block().unwrap();
        undo.add_extent(Extent {
            file: 2,
            first_block: 9,
            blocks: 4,
        });
        assert_eq!(undo.undo_blocks(), 5);
        let in_it = BlockAddress { file: 2, block: 9 };
        assert_eq!(undo.take_block(), Some((in_it, true)));
    }
}
