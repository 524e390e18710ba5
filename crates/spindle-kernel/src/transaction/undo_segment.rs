//! The undo segment: one, whose first blocks are the transaction table and whose others hold undo records. A
//! transaction owns the undo block it writes to; a block is used again when every transaction that wrote to it has
//! ended, the longest unused first, for readers may want what is in it. Everything here is bookkeeping in memory; what
//! must survive is in the blocks, protected by redo.

use std::collections::VecDeque;

use spindle_io::sync::Latch;

use crate::block::{BlockAddress, transaction_table};
use crate::control_file::{Extent, Segment};
use crate::error::{KernelError, Result};
use crate::storage::UNDO_FILE;

use super::visibility::Endings;

/// The undo segment's number.
pub(crate) const UNDO_SEGMENT: u32 = 0;

struct Blocks {
    /// Blocks without records of running transactions, longest unused first.
    free: VecDeque<u32>,
    /// Blocks nobody writes to that still have room.
    partial: Vec<u32>,
    /// For each block of the file, running transactions with records in it.
    users: Vec<u32>,
}

/// The undo segment of a running instance.
pub(crate) struct UndoSegment {
    table_first: u32,
    table_blocks: u32,
    slots_per_block: usize,
    undo_blocks: usize,
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
    /// Over the segment's extents; `table_blocks` of them are the transaction table.
    pub(crate) fn new(segment: &Segment, table_blocks: u32, block_bytes: usize) -> UndoSegment {
        let Extent {
            first_block,
            blocks,
            ..
        } = segment.extents[0];
        let slots_per_block = transaction_table::slots_per_block(block_bytes);
        let slots = slots_per_block * table_blocks as usize;
        let undo_first = first_block + table_blocks;
        UndoSegment {
            table_first: first_block,
            table_blocks,
            slots_per_block,
            undo_blocks: (blocks - table_blocks) as usize,
            blocks: Latch::new(Blocks {
                free: (undo_first..first_block + blocks).collect(),
                partial: Vec::new(),
                users: vec![0; (first_block + blocks) as usize],
            }),
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
    pub(crate) fn recall(&self, slot: usize, entry: transaction_table::Entry) {
        self.endings.recall(slot, entry);
    }

    /// When transactions ended.
    pub(crate) fn endings(&self) -> &Endings {
        &self.endings
    }

    /// Blocks for undo records.
    pub(crate) fn undo_blocks(&self) -> usize {
        self.undo_blocks
    }

    /// Takes a block to write undo to; true when it is to be formatted first.
    pub(crate) fn take_block(&self) -> Result<(BlockAddress, bool)> {
        let mut blocks = self.blocks.lock();
        let (block, fresh) = match blocks.partial.pop() {
            Some(block) => (block, false),
            None => (blocks.free.pop_front().ok_or(KernelError::UndoFull)?, true),
        };
        blocks.users[block as usize] += 1;
        Ok((
            BlockAddress {
                file: UNDO_FILE,
                block,
            },
            fresh,
        ))
    }

    /// A transaction has ended that wrote to `touched`; the last of them has room left when `has_room`.
    pub(crate) fn give_blocks(&self, touched: &[BlockAddress], has_room: bool) {
        let mut blocks = self.blocks.lock();
        for (index, address) in touched.iter().enumerate() {
            let block = address.block;
            blocks.users[block as usize] -= 1;
            let is_last = index + 1 == touched.len();
            if is_last && has_room {
                blocks.partial.push(block);
            } else if blocks.users[block as usize] == 0 {
                blocks.free.push_back(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_free_when_its_last_user_has_ended() {
        let extents = vec![Extent {
            file: 0,
            first_block: 1,
            blocks: 3,
        }];
        let segment = Segment {
            number: 0,
            name: "undo".into(),
            row_bytes: 0,
            loaded_rows: 0,
            extents,
        };
        let undo = UndoSegment::new(&segment, 1, 2048);
        let (first, fresh) = undo.take_block().unwrap();
        assert!(fresh);
        undo.give_blocks(&[first], true);
        let (again, fresh) = undo.take_block().unwrap();
        assert_eq!((again, fresh), (first, false));
        let (second, _) = undo.take_block().unwrap();
        assert_eq!(undo.take_block(), Err(KernelError::UndoFull));
        undo.give_blocks(&[first, second], false);
        assert!(undo.take_block().unwrap().1);
    }
}
