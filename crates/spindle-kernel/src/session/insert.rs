//! How a session puts rows in: the block that its inserts go to, the slot in it, and the next block when that is full.

use std::sync::Arc;

use super::Session;
use super::change::{is_kept, next_version, push_compact, push_row};
use crate::block::heap::{self, RowFit, RowKind};
use crate::block::space_map::Fill;
use crate::block::{BlockAddress, RowId, RowVersion};
use crate::cache::{ExclusiveBlock, Wanted};
use crate::change::blocks::change;
use crate::change::space::{WithUndo, is_unused, leave, push_fill};
use crate::error::{KernelError, Result};
use crate::free_space::{FreeSpace, PCT_FREE};
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::table::Table;
use crate::transaction::undo_record::{RowBefore, UNDO_RECORD_OVERHEAD_BYTES, UndoRecord};
use crate::wait_event::ProcessWaits;

/// A block that a session's inserts go to.
pub(super) struct InsertBlock {
    address: BlockAddress,
    state: InsertState,
    free: Arc<FreeSpace>,
}

/// What the next insert does with such a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InsertState {
    /// Adds a row.
    Used,
    /// Formats the block, and tells the map.
    Unused,
    /// The same. No row was ever in the block, so it need not be read first.
    New,
}

impl InsertState {
    /// The blocks of such an insert.
    async fn blocks(
        self,
        sga: &Sga,
        waits: &ProcessWaits,
        address: BlockAddress,
        undo: BlockAddress,
    ) -> Result<WithUndo> {
        if self == InsertState::New {
            // In a box, for this future is a part of many, which are moved about.
            let new = WithUndo::get_with_map(sga, waits, Wanted::New(address), undo);
            return Box::pin(new).await;
        }
        WithUndo::get(sga, waits, address, undo, self == InsertState::Unused).await
    }
}

impl InsertBlock {
    /// Lets others have it.
    pub(super) fn give_back(self) {
        self.free.give_back(self.address);
    }
}

/// What became of an attempt to insert a row.
pub(super) enum Inserted {
    /// The row is in; the map was told that the block is used.
    At {
        row: RowId,
        is_told: bool,
    },
    /// The block was never used: the map is to be told of it, too.
    Unused,
    NoRoom,
}

impl Session {
    /// Puts a row into the block that this session's inserts go to, or into another with room.
    pub(super) async fn insert(
        &mut self,
        table: &Table,
        kind: RowKind,
        bytes: &[u8],
    ) -> Result<RowId> {
        let (mut wants_new, mut to_try) = (false, None);
        loop {
            let Some(block) = self.insert_blocks.get(&table.segment) else {
                match self.take_insert_block(table, wants_new).await {
                    Err(error @ KernelError::TablespaceFull { .. }) => {
                        // Each of the blocks that wait is tried once before that is said.
                        let left = to_try.unwrap_or_else(|| table.free.waiting());
                        to_try = Some(left.checked_sub(1).ok_or(error)?);
                        wants_new = false;
                    }
                    taken => taken?,
                }
                continue;
            };
            let (address, state) = (block.address, block.state);
            let inserted = self.insert_into(table, (address, state), kind, bytes);
            match inserted.await? {
                Inserted::At { row, .. } => {
                    if state != InsertState::Used {
                        self.note_state(table, InsertState::Used);
                    }
                    return Ok(row);
                }
                Inserted::Unused => self.note_state(table, InsertState::Unused),
                Inserted::NoRoom => {
                    let (sga, free) = (&*self.sga, &*table.free);
                    if leave(sga, &self.waits, &mut self.builder, free, address).await? {
                        // Its room is locked. To avoid cycling through such blocks, a new one is next.
                        free.wait_again(address);
                        wants_new = true;
                    }
                    self.insert_blocks.remove(&table.segment);
                }
            }
        }
    }

    /// The block that this session's inserts into a table go to, once it has been used.
    pub(super) fn used_insert_block(&self, table: &Table) -> Option<BlockAddress> {
        let block = self.insert_blocks.get(&table.segment)?;
        (block.state == InsertState::Used).then_some(block.address)
    }

    fn note_state(&mut self, table: &Table, state: InsertState) {
        if let Some(block) = self.insert_blocks.get_mut(&table.segment) {
            block.state = state;
        }
    }

    /// Takes a block that others have left with room, or the next one of the segment.
    async fn take_insert_block(&mut self, table: &Table, wants_new: bool) -> Result<()> {
        let free = &table.free;
        let waiting = if wants_new { None } else { free.take_waiting() };
        let (address, state) = match waiting {
            Some(address) => {
                probe::hit(Probe::RoomUsedAgain);
                (address, InsertState::Used)
            }
            None => loop {
                match free.take_next(|number| table.block(number)) {
                    Ok((_, address)) if !free.is_mapped() => break (address, InsertState::Used),
                    Ok((number, address)) if number < table.loaded_blocks() => {
                        break (address, InsertState::Unused);
                    }
                    Ok((_, address)) => break (address, InsertState::New),
                    Err(number) => table.space.extend(&self.sga, &self.waits, number).await?,
                }
            },
        };
        let block = InsertBlock {
            address,
            state,
            free: Arc::clone(free),
        };
        self.insert_blocks.insert(table.segment, block);
        Ok(())
    }

    /// Adds a row to a block.
    async fn insert_into(
        &mut self,
        table: &Table,
        (address, state): (BlockAddress, InsertState),
        kind: RowKind,
        bytes: &[u8],
    ) -> Result<Inserted> {
        let (id, undo_address) = self.prepare(None, UNDO_RECORD_OVERHEAD_BYTES).await?;
        let (sga, waits) = (&*self.sga, &self.waits);
        let row = NewRow {
            table,
            kind,
            bytes,
            transaction: id,
            address,
            undo_address,
            tells_map: state != InsertState::Used,
        };
        let blocks = state.blocks(sga, waits, address, undo_address).await?;
        let (pins, count) = blocks.pins();
        let mut locked = Vec::new();
        let planned = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
            Ok(row.plan(sga, (&blocks[0], &blocks[1]), builder, &mut locked))
        };
        let inserted = change(sga, waits, &mut self.builder, &pins[..count], planned).await;
        if let Some(transaction) = &mut self.transaction {
            transaction.locks.extend(locked);
        }
        let inserted = inserted?.0;
        if let Inserted::At { is_told: true, .. } = inserted {
            table.free.learn_taken(address);
        }
        Ok(inserted)
    }
}

/// A row on its way into a block.
pub(super) struct NewRow<'a> {
    pub(super) table: &'a Table,
    pub(super) kind: RowKind,
    pub(super) bytes: &'a [u8],
    pub(super) transaction: u64,
    pub(super) address: BlockAddress,
    /// The transaction's undo block.
    pub(super) undo_address: BlockAddress,
    /// The map is told when the block is used for the first time.
    pub(super) tells_map: bool,
}

impl NewRow<'_> {
    /// Adds the vectors that put it into its block, and its undo record into the other. `locked` gets the slots that
    /// this locked.
    pub(super) fn plan(
        &self,
        sga: &Sga,
        (block, undo): (&[u8], &[u8]),
        builder: &mut RecordBuilder,
        locked: &mut Vec<RowId>,
    ) -> Inserted {
        let (address, id) = (self.address, self.transaction);
        let is_unused = is_unused(block);
        if is_unused && !self.tells_map && self.table.free.is_mapped() {
            return Inserted::Unused;
        }
        let slots = if is_unused { 0 } else { heap::slots(block) };
        let try_lock = |row| sga.locks.try_lock(row, id);
        let Some(row) = empty_slot(block, (address, slots), try_lock, locked) else {
            return Inserted::NoRoom;
        };
        let is_told = is_unused && self.tells_map;
        if is_unused {
            let segment = self.table.segment.to_le_bytes();
            builder.push(VectorKind::FormatHeap, address, &[&segment]);
            if is_told && !sga.settings.has_planted(PlantedFault::UseUntold) {
                push_fill(sga, builder, address, Fill::Room);
            }
        } else {
            let reserve_bytes = block.len() * PCT_FREE / 100;
            let is_kept = |slot| is_kept(sga, address, slot);
            match heap::fit(block, row.slot, self.bytes.len(), reserve_bytes, is_kept) {
                RowFit::No => return Inserted::NoRoom,
                RowFit::Compacted(cut) => push_compact(builder, row, &cut),
                RowFit::Now => {}
            }
        }
        let previous = match is_unused {
            true => RowVersion::LOADED,
            false => heap::version(block, row.slot),
        };
        let was = RowBefore::Nothing;
        let undone = UndoRecord::Row { row, was }.header(id, previous);
        builder.push(VectorKind::UndoAppend, self.undo_address, &[&undone]);
        let next = next_version(id, self.undo_address, undo);
        push_row(builder, row, self.kind, next, &[self.bytes]);
        Inserted::At { row, is_told }
    }
}

/// The first slot without a row that can be locked; `locked` gets those that this locked. A slot may be empty because a
/// transaction that has not ended emptied it.
fn empty_slot(
    block: &[u8],
    (address, slots): (BlockAddress, u16),
    try_lock: impl Fn(RowId) -> Option<bool>,
    locked: &mut Vec<RowId>,
) -> Option<RowId> {
    let empty = heap::empty_slots(block, slots).chain(std::iter::once(slots));
    let mut rows = empty.map(|slot| RowId { address, slot });
    rows.find(|row| {
        let lock = try_lock(*row);
        if lock == Some(true) {
            locked.push(*row);
        }
        lock.is_some()
    })
}
