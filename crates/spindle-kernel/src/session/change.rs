//! How a session changes rows: the slot that holds a row, what fits into its block, and rows that must move to another
//! one. Every step is one redo record of the row's block and the undo block.

use std::ops::Range;
use std::sync::Arc;

use super::Session;
use crate::block::heap::{self, RowFit, RowKind};
use crate::block::space_map::Fill;
use crate::block::{self, BlockAddress, RowId, RowVersion, undo};
use crate::cache::ExclusiveBlock;
use crate::change::blocks::change_and_note;
use crate::change::space::{WithUndo, push_fill};
use crate::change::transaction;
use crate::error::{KernelError, Result};
use crate::free_space::FreeSpace;
use crate::log::redo::{RecordBuilder, VectorKind, row_head};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::table::Table;
use crate::transaction::undo_record::{RowBefore, UNDO_RECORD_OVERHEAD_BYTES, UndoRecord};

/// A slot as it is before a change.
#[derive(Clone, Copy)]
struct Before<'a> {
    block: &'a [u8],
    kind: RowKind,
    bytes: &'a [u8],
    /// The version that the change will make.
    next: RowVersion,
}

/// What a change makes of a slot.
struct Planned<'a> {
    /// How to undo it.
    undo: UndoRecord<'a>,
    /// Bytes that the slot holds afterwards; `None`: no row.
    holds: Option<usize>,
}

/// What became of an attempt to change a row where it was looked for.
enum Attempt {
    Done,
    /// The row has migrated, to this place.
    At(RowId),
    /// It is at home again, and no longer at this place.
    Home(RowId),
    /// Its block has no room for it.
    NoRoom,
}

impl Session {
    /// Changes the bytes `range` of a row in place: `edit` gets them as they are. Waits for the row's lock up to the
    /// lock timeout, or fails at once when that would be a deadlock; the transaction continues either way, and is best
    /// rolled back. `edit` may be called again, with fresh bytes, when the change had to wait. Error when an index goes
    /// by some of the bytes.
    pub async fn update_row(
        &mut self,
        row: RowId,
        range: Range<usize>,
        edit: impl Fn(&mut [u8]),
    ) -> Result<()> {
        self.patch_wherever(row, &range, true, &edit).await
    }

    /// Makes another row of the same length of one that is locked, where no key becomes another; they differ in `range`
    /// only. A migrated row comes home if it can.
    pub(super) async fn patch_locked(
        &mut self,
        table: &Table,
        row: RowId,
        range: Range<usize>,
        row_bytes: &[u8],
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let edit = |bytes: &mut [u8]| bytes.copy_from_slice(&row_bytes[range.clone()]);
        let Attempt::At(place) = self.patch((row, row), &range, false, &edit).await? else {
            return Ok(());
        };
        match self.put_in_place(table, row, row, row_bytes).await? {
            Attempt::Home(place) => self.clear_left(table, row, place).await,
            _ => {
                let there = self.patch((row, place), &range, false, &edit);
                there.await.map(drop)
            }
        }
    }

    async fn patch_wherever(
        &mut self,
        row: RowId,
        range: &Range<usize>,
        guards_keys: bool,
        edit: &impl Fn(&mut [u8]),
    ) -> Result<()> {
        match self.patch((row, row), range, guards_keys, edit).await? {
            Attempt::At(place) => self
                .patch((row, place), range, guards_keys, edit)
                .await
                .map(drop),
            _ => Ok(()),
        }
    }

    async fn patch(
        &mut self,
        (row, place): (RowId, RowId),
        range: &Range<usize>,
        guards_keys: bool,
        edit: &impl Fn(&mut [u8]),
    ) -> Result<Attempt> {
        let mut edited = vec![0; range.len()];
        let sga = Arc::clone(&self.sga);
        self.change_slot(place, range.len(), None, |before, builder| {
            let row_at = match held(row, place, before)? {
                Ok(row_at) => row_at,
                Err(moved_to) => return Ok((Attempt::At(moved_to), None)),
            };
            if guards_keys {
                check_no_key(&sga, row, before.block, range)?;
            }
            let (start, end) = (row_at + range.start, row_at + range.end);
            let old = before
                .bytes
                .get(start..end)
                .ok_or(KernelError::RowTooShort {
                    row,
                    row_bytes: before.bytes.len() - row_at,
                    end: range.end,
                })?;
            edited.copy_from_slice(old);
            edit(&mut edited);
            let head = row_head(place.slot, (start as u16).to_le_bytes(), before.next);
            builder.push(VectorKind::PatchRow, place.address, &[&head, &edited]);
            let was = RowBefore::Patch {
                offset: start as u16,
                bytes: old,
            };
            let undo = UndoRecord::Row { row: place, was };
            let holds = Some(before.bytes.len());
            Ok((Attempt::Done, Some(Planned { undo, holds })))
        })
        .await
    }

    /// Puts another row in a row's place, in another block if it must be.
    pub(super) async fn replace(
        &mut self,
        table: &Table,
        row: RowId,
        row_bytes: &[u8],
    ) -> Result<()> {
        let left = match self.put_in_place(table, row, row, row_bytes).await? {
            Attempt::Done => return Ok(()),
            Attempt::Home(place) => return self.clear_left(table, row, place).await,
            Attempt::NoRoom => None,
            Attempt::At(place) => match self.put_in_place(table, row, place, row_bytes).await? {
                Attempt::Done => return Ok(()),
                _ => Some(place),
            },
        };
        probe::hit(Probe::RowMigrated);
        let migrated = [&row.to_bytes()[..], row_bytes].concat();
        let place = self.insert(table, RowKind::Migrated, &migrated).await?;
        let led = self.lead(table, row, place).await;
        self.done_or_broken(led)?;
        match left {
            Some(place) => self.clear_second(table, row, place).await,
            None => Ok(()),
        }
    }

    /// Has the slot of a row say where it has migrated to.
    async fn lead(&mut self, table: &Table, row: RowId, place: RowId) -> Result<()> {
        let free = Some(&*table.free);
        self.change_slot(row, kept_bytes(table), free, |before, builder| {
            let forward = &[&place.to_bytes()[..]];
            push_row(builder, row, RowKind::Forward, before.next, forward);
            let undo = before.whole(row);
            let holds = Some(RowId::BYTES);
            Ok(((), Some(Planned { undo, holds })))
        })
        .await
    }

    /// Empties the place that a row has left to come home.
    async fn clear_left(&mut self, table: &Table, row: RowId, place: RowId) -> Result<()> {
        probe::hit(Probe::RowCameHome);
        if self.sga.settings.has_planted(PlantedFault::LeftRowKept) {
            return Ok(());
        }
        self.clear_second(table, row, place).await
    }

    /// Empties the place of a row whose home has been changed.
    async fn clear_second(&mut self, table: &Table, row: RowId, place: RowId) -> Result<()> {
        let cleared = self.clear(table, row, place).await.map(drop);
        self.done_or_broken(cleared)
    }

    /// Puts a row where the present one is, if there is room in that block; one that has migrated from there comes
    /// home.
    async fn put_in_place(
        &mut self,
        table: &Table,
        row: RowId,
        place: RowId,
        row_bytes: &[u8],
    ) -> Result<Attempt> {
        let sga = Arc::clone(&self.sga);
        let free = Some(&*table.free);
        self.change_slot(place, kept_bytes(table), free, |before, builder| {
            let (kind, row_at, left) = match held(row, place, before)? {
                Ok(row_at) => (before.kind, row_at, None),
                Err(moved_to) => (RowKind::Row, 0, Some(moved_to)),
            };
            let is_kept = |slot| is_kept(&sga, place.address, slot);
            let needed = row_at + row_bytes.len();
            match heap::fit(before.block, place.slot, needed, 0, is_kept) {
                RowFit::No => return Ok((left.map_or(Attempt::NoRoom, Attempt::At), None)),
                RowFit::Compacted(cut) => push_compact(builder, place, &cut),
                RowFit::Now => {}
            }
            let parts = [&before.bytes[..row_at], row_bytes];
            push_row(builder, place, kind, before.next, &parts);
            let undo = before.whole(place);
            let planned = Planned {
                undo,
                holds: Some(needed),
            };
            Ok((left.map_or(Attempt::Done, Attempt::Home), Some(planned)))
        })
        .await
    }

    /// Empties the slots of a row.
    pub(super) async fn delete(&mut self, table: &Table, row: RowId) -> Result<()> {
        match self.clear(table, row, row).await? {
            Some(place) => self.clear_second(table, row, place).await,
            None => Ok(()),
        }
    }

    /// Empties a slot of a row. Returns the place of the row when it had migrated from there.
    async fn clear(&mut self, table: &Table, row: RowId, place: RowId) -> Result<Option<RowId>> {
        let free = Some(&*table.free);
        self.change_slot(place, kept_bytes(table), free, |before, builder| {
            let moved_to = held(row, place, before)?.err();
            builder.push(
                VectorKind::ClearRow,
                place.address,
                &[&row_head(place.slot, [0, 0], before.next)],
            );
            let undo = before.whole(place);
            Ok((moved_to, Some(Planned { undo, holds: None })))
        })
        .await
    }

    /// Changes a slot that holds something. `plan` looks at it, adds the vectors of the change and says how to undo it,
    /// keeping at most `kept_bytes` of its contents; or leaves all as it is. Where the change leaves the block with
    /// room, that is told to `free` and the map.
    async fn change_slot<T>(
        &mut self,
        place: RowId,
        kept_bytes: usize,
        free: Option<&FreeSpace>,
        mut plan: impl for<'a> FnMut(Before<'a>, &mut RecordBuilder) -> Result<(T, Option<Planned<'a>>)>,
    ) -> Result<T> {
        let (id, undo_address) = self
            .prepare(Some(place), UNDO_RECORD_OVERHEAD_BYTES + kept_bytes)
            .await?;
        let (sga, waits, address) = (&*self.sga, &self.waits, place.address);
        let mut tells_map = false;
        let (value, kept) = loop {
            let blocks = WithUndo::get(sga, waits, address, undo_address, tells_map).await?;
            let (pins, count) = blocks.pins();
            let pins = &pins[..count];
            let planned = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
                let block = &*blocks[0];
                let (kind, bytes) =
                    heap::stored(block, place.slot).ok_or(KernelError::NoSuchRow { row: place })?;
                let next = next_version(id, undo_address, &blocks[1]);
                let before = Before {
                    block,
                    kind,
                    bytes,
                    next,
                };
                let (value, planned) = plan(before, builder)?;
                let Some(Planned { undo, holds }) = planned else {
                    return Ok(Some((value, None, false)));
                };
                let is_told = free.is_some_and(|free| {
                    holds.is_none_or(|holds| holds < bytes.len())
                        && !free.is_known(address)
                        && free.has_room(block, place.slot, holds)
                });
                if is_told && !tells_map {
                    builder.clear();
                    return Ok(None);
                }
                if is_told && !sga.settings.has_planted(PlantedFault::RoomUntold) {
                    push_fill(sga, builder, address, Fill::Room);
                }
                let previous = version_before(sga, block, place.slot, next);
                builder.push(
                    VectorKind::UndoAppend,
                    undo_address,
                    &[&undo.header(id, previous), undo.bytes()],
                );
                Ok(Some((value, Some(undo.bytes().len()), is_told)))
            };
            let learn = |done: &Option<(T, Option<usize>, bool)>| {
                if let (Some((_, _, true)), Some(free)) = (done, free) {
                    free.learn(address);
                }
            };
            let done = change_and_note(sga, waits, &mut self.builder, pins, planned, learn);
            match done.await?.0 {
                None => tells_map = true,
                Some((value, kept, _)) => break (value, kept),
            }
        };
        let unused_bytes = match kept {
            Some(kept) => kept_bytes - kept,
            None => undo::stored_bytes(UNDO_RECORD_OVERHEAD_BYTES + kept_bytes),
        };
        let transaction = self.transaction.as_mut().expect("begun by the change");
        transaction::give_room(transaction, unused_bytes);
        Ok(value)
    }
}

impl<'a> Before<'a> {
    /// How to put back all that the slot held.
    fn whole(&self, place: RowId) -> UndoRecord<'a> {
        let was = RowBefore::Whole {
            kind: self.kind,
            bytes: self.bytes,
        };
        UndoRecord::Row { row: place, was }
    }
}

/// Error when an index goes by bytes of a row that are about to be changed in place.
fn check_no_key(sga: &Sga, row: RowId, block: &[u8], range: &Range<usize>) -> Result<()> {
    match sga.keys.with_bytes(block::segment(block), range) {
        None => Ok(()),
        Some(key) => Err(KernelError::KeyInPlace {
            row,
            index: key.index.clone(),
        }),
    }
}

/// Where in the bytes of a slot the row begins, or `Err` with the place that it has migrated to.
fn held(row: RowId, place: RowId, before: Before<'_>) -> Result<std::result::Result<usize, RowId>> {
    let is_home = row == place;
    match before.kind {
        RowKind::Row if is_home => Ok(Ok(0)),
        RowKind::Forward if is_home => Ok(Err(RowId::from_bytes(before.bytes))),
        RowKind::Migrated if !is_home && RowId::from_bytes(before.bytes) == row => {
            Ok(Ok(RowId::BYTES))
        }
        _ => Err(KernelError::NoSuchRow { row }),
    }
}

/// The room of a row whose transaction has not ended is wanted by its roll-back.
pub(super) fn is_kept(sga: &Sga, address: BlockAddress, slot: u16) -> bool {
    let planted = sga.settings.has_planted(PlantedFault::FreedSpaceNotKept);
    !planted && sga.locks.is_locked(RowId { address, slot })
}

/// The most that undoing a change of a whole slot keeps.
fn kept_bytes(table: &Table) -> usize {
    table.row_bytes() + RowId::BYTES
}

/// The version that a change makes whose undo record is the next in a block.
pub(super) fn next_version(
    transaction: u64,
    undo_address: BlockAddress,
    undo_block: &[u8],
) -> RowVersion {
    RowVersion {
        transaction,
        undo_block: undo_address,
        undo_offset: undo::used(undo_block) as u16,
    }
}

/// The version that a slot has before a change which makes `next`.
fn version_before(sga: &Sga, block: &[u8], slot: u16, next: RowVersion) -> RowVersion {
    match sga.settings.has_planted(PlantedFault::UndoInCircle) {
        true => next,
        false => heap::version(block, slot),
    }
}

pub(super) fn push_row(
    builder: &mut RecordBuilder,
    place: RowId,
    kind: RowKind,
    version: RowVersion,
    parts: &[&[u8]],
) {
    let head = row_head(place.slot, [kind as u8, 0], version);
    builder.push_written(VectorKind::SetRow, place.address, |bytes| {
        bytes.extend_from_slice(&head);
        for part in parts {
            bytes.extend_from_slice(part);
        }
    });
}

pub(super) fn push_compact(builder: &mut RecordBuilder, place: RowId, cut: &[u16]) {
    probe::hit(Probe::BlockCompacted);
    let cut: Vec<u8> = cut.iter().flat_map(|slot| slot.to_le_bytes()).collect();
    builder.push(
        VectorKind::CompactHeap,
        place.address,
        &[&place.slot.to_le_bytes(), &cut],
    );
}
