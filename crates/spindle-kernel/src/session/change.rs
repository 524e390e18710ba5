//! How a session changes rows: the slot that holds a row, what fits into its block, and rows that must move to another
//! one. Every step is one redo record of the row's block and the undo block.

use std::ops::Range;
use std::sync::Arc;

use super::Session;
use crate::block::heap::{self, Fit, RowKind};
use crate::block::{self, BlockAddress, BlockKind, RowId, Version, undo};
use crate::change::blocks::change;
use crate::change::transaction;
use crate::error::{KernelError, Result};
use crate::log::redo::{RecordBuilder, VectorKind, row_head};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::table::{Table, next_insert_block};
use crate::transaction::undo_record::{UNDO_RECORD_OVERHEAD_BYTES, UndoRecord};

/// Share of a block that inserts leave free, for rows that grow (Oracle's `PCTFREE`, whose default is the same).
const PCT_FREE: usize = 10;

/// A slot as it is before a change.
#[derive(Clone, Copy)]
struct Before<'a> {
    block: &'a [u8],
    kind: RowKind,
    bytes: &'a [u8],
    /// The version that the change will make.
    next: Version,
}

/// What became of an attempt to change a row where it was looked for.
enum Attempt {
    Done,
    /// The row has migrated, to this place.
    At(RowId),
    /// Its block has no room for it.
    NoRoom,
}

impl Session {
    /// Changes the bytes `range` of a row in place: `edit` gets them as they are. Waits for the row's lock up to the
    /// lock timeout, or fails at once when that would be a deadlock; the transaction goes on either way, and is best
    /// rolled back. `edit` may be called again, with fresh bytes, when the change had to wait. Error when an index
    /// goes by some of the bytes.
    pub async fn update_row(
        &mut self,
        row: RowId,
        range: Range<usize>,
        edit: impl Fn(&mut [u8]),
    ) -> Result<()> {
        self.patch_wherever(row, &range, true, &edit).await
    }

    /// The same of a row that is locked, where no key becomes another; nothing to do when the range is empty.
    pub(super) async fn patch_locked(
        &mut self,
        row: RowId,
        range: Range<usize>,
        edit: impl Fn(&mut [u8]),
    ) -> Result<()> {
        match range.is_empty() {
            true => Ok(()),
            false => self.patch_wherever(row, &range, false, &edit).await,
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
        self.change_slot(place, range.len(), |before, builder| {
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
            let record = UndoRecord::Patch {
                row: place,
                offset: start as u16,
                bytes: old,
            };
            Ok((Attempt::Done, Some(record)))
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
            Attempt::NoRoom => None,
            Attempt::At(place) => match self.put_in_place(table, row, place, row_bytes).await? {
                Attempt::Done => return Ok(()),
                _ => Some(place),
            },
        };
        probe::hit(Probe::RowMigrated);
        // Were a step to fail, what the steps before it left behind is a migrated row that no slot leads to: dead
        // space.
        let migrated = [&row.to_bytes()[..], row_bytes].concat();
        let place = self.insert(table, RowKind::Migrated, &migrated).await?;
        self.change_slot(row, kept_bytes(table), |before, builder| {
            let forward = &[&place.to_bytes()[..]];
            push_row(builder, row, RowKind::Forward, before.next, forward);
            Ok(((), Some(before.whole(row))))
        })
        .await?;
        match left {
            Some(place) => self.clear(table, row, place).await.map(drop),
            None => Ok(()),
        }
    }

    /// Puts a row where the present one is, if there is room in that block.
    async fn put_in_place(
        &mut self,
        table: &Table,
        row: RowId,
        place: RowId,
        row_bytes: &[u8],
    ) -> Result<Attempt> {
        let sga = Arc::clone(&self.sga);
        self.change_slot(place, kept_bytes(table), |before, builder| {
            let row_at = match held(row, place, before)? {
                Ok(row_at) => row_at,
                Err(moved_to) => return Ok((Attempt::At(moved_to), None)),
            };
            let is_kept = |slot| is_kept(&sga, place.address, slot);
            let needed = row_at + row_bytes.len();
            match heap::fit(before.block, place.slot, needed, 0, is_kept) {
                Fit::No => return Ok((Attempt::NoRoom, None)),
                Fit::Compacted(cut) => push_compact(builder, place, &cut),
                Fit::Now => {}
            }
            push_row(
                builder,
                place,
                before.kind,
                before.next,
                &[&before.bytes[..row_at], row_bytes],
            );
            Ok((Attempt::Done, Some(before.whole(place))))
        })
        .await
    }

    /// Empties the slots of a row.
    pub(super) async fn delete(&mut self, table: &Table, row: RowId) -> Result<()> {
        match self.clear(table, row, row).await? {
            Some(place) => self.clear(table, row, place).await.map(drop),
            None => Ok(()),
        }
    }

    /// Empties a slot of a row. Returns the place of the row when it had migrated from there.
    async fn clear(&mut self, table: &Table, row: RowId, place: RowId) -> Result<Option<RowId>> {
        self.change_slot(place, kept_bytes(table), |before, builder| {
            let moved_to = held(row, place, before)?.err();
            builder.push(
                VectorKind::ClearRow,
                place.address,
                &[&row_head(place.slot, [0, 0], before.next)],
            );
            Ok((moved_to, Some(before.whole(place))))
        })
        .await
    }

    /// Changes a slot that holds something. `plan` looks at it, adds the vectors of the change and says how to undo it,
    /// keeping at most `kept_bytes` of what is there; or leaves all as it is.
    async fn change_slot<T>(
        &mut self,
        place: RowId,
        kept_bytes: usize,
        mut plan: impl for<'a> FnMut(
            Before<'a>,
            &mut RecordBuilder,
        ) -> Result<(T, Option<UndoRecord<'a>>)>,
    ) -> Result<T> {
        let (id, undo_address) = self
            .prepare(Some(place), UNDO_RECORD_OVERHEAD_BYTES + kept_bytes)
            .await?;
        let sga = &*self.sga;
        let [undo, data] = sga
            .cache
            .get_two(sga, &self.waits, [undo_address, place.address])
            .await?;
        let pins = [&data, &undo];
        let ((value, kept), _) = change(
            sga,
            &self.waits,
            &mut self.builder,
            &pins,
            |blocks, builder| {
                let block = &*blocks[0];
                let (kind, bytes) =
                    heap::stored(block, place.slot).ok_or(KernelError::NoSuchRow { row: place })?;
                let before = Before {
                    block,
                    kind,
                    bytes,
                    next: next_version(id, undo_address, &blocks[1]),
                };
                let (value, record) = plan(before, builder)?;
                let Some(record) = record else {
                    return Ok((value, None));
                };
                let previous = heap::version(block, place.slot);
                builder.push(
                    VectorKind::UndoAppend,
                    undo_address,
                    &[&record.header(id, previous), record.bytes()],
                );
                Ok((value, Some(record.bytes().len())))
            },
        )
        .await?;
        let unused_bytes = match kept {
            Some(kept) => kept_bytes - kept,
            None => undo::stored_bytes(UNDO_RECORD_OVERHEAD_BYTES + kept_bytes),
        };
        let transaction = self.transaction.as_mut().expect("begun by the change");
        transaction::give_room(transaction, unused_bytes);
        Ok(value)
    }

    /// Puts a row into the block that this session's inserts go to, or the next one with room.
    pub(super) async fn insert(
        &mut self,
        table: &Table,
        kind: RowKind,
        bytes: &[u8],
    ) -> Result<RowId> {
        loop {
            let number = *self
                .insert_blocks
                .entry(table.segment)
                .or_insert_with(|| next_insert_block(table));
            let Some(address) = table.block(number) else {
                table.space.extend(&self.sga, &self.waits, number).await?;
                continue;
            };
            match self.insert_into(table, address, kind, bytes).await? {
                Some(row) => return Ok(row),
                None => {
                    self.insert_blocks
                        .insert(table.segment, next_insert_block(table));
                }
            }
        }
    }

    /// Adds a row to a block; `None` when the block has no room for it.
    async fn insert_into(
        &mut self,
        table: &Table,
        address: BlockAddress,
        kind: RowKind,
        bytes: &[u8],
    ) -> Result<Option<RowId>> {
        let (id, undo_address) = self.prepare(None, UNDO_RECORD_OVERHEAD_BYTES).await?;
        let sga = &*self.sga;
        let [undo, data] = sga
            .cache
            .get_two(sga, &self.waits, [undo_address, address])
            .await?;
        let mut locked = Vec::new();
        let inserted = change(
            sga,
            &self.waits,
            &mut self.builder,
            &[&data, &undo],
            |blocks, builder| {
                let block = &blocks[0];
                let fresh = block::kind(block) == BlockKind::Unused as u8;
                let slots = if fresh { 0 } else { heap::slots(block) };
                // A slot may be empty because a transaction that has not ended emptied it.
                let row = (0..=slots)
                    .filter(|slot| *slot == slots || heap::stored(block, *slot).is_none())
                    .map(|slot| RowId { address, slot })
                    .find(|row| {
                        let lock = sga.locks.try_lock(*row, id);
                        if lock == Some(true) {
                            locked.push(*row);
                        }
                        lock.is_some()
                    });
                let Some(row) = row else { return Ok(None) };
                if fresh {
                    let segment = table.segment.to_le_bytes();
                    builder.push(VectorKind::FormatHeap, address, &[&segment]);
                } else {
                    let reserve_bytes = block.len() * PCT_FREE / 100;
                    let is_kept = |slot| is_kept(sga, address, slot);
                    match heap::fit(block, row.slot, bytes.len(), reserve_bytes, is_kept) {
                        Fit::No => return Ok(None),
                        Fit::Compacted(cut) => push_compact(builder, row, &cut),
                        Fit::Now => {}
                    }
                }
                let previous = if fresh {
                    Version::LOADED
                } else {
                    heap::version(block, row.slot)
                };
                builder.push(
                    VectorKind::UndoAppend,
                    undo_address,
                    &[&UndoRecord::NoRow { row }.header(id, previous)],
                );
                let next = next_version(id, undo_address, &blocks[1]);
                push_row(builder, row, kind, next, &[bytes]);
                Ok(Some(row))
            },
        )
        .await;
        if let Some(transaction) = &mut self.transaction {
            transaction.locks.extend(locked);
        }
        Ok(inserted?.0)
    }
}

impl<'a> Before<'a> {
    /// How to put back all that the slot held.
    fn whole(&self, place: RowId) -> UndoRecord<'a> {
        UndoRecord::Row {
            row: place,
            kind: self.kind,
            bytes: self.bytes,
        }
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
fn is_kept(sga: &Sga, address: BlockAddress, slot: u16) -> bool {
    let planted = sga.settings.has_planted(PlantedFault::FreedSpaceNotKept);
    !planted && sga.locks.is_locked(RowId { address, slot })
}

/// The most that undoing a change of a whole slot keeps.
fn kept_bytes(table: &Table) -> usize {
    table.row_bytes() + RowId::BYTES
}

/// The version that a change makes whose undo record is the next in a block.
fn next_version(transaction: u64, undo_address: BlockAddress, undo_block: &[u8]) -> Version {
    Version {
        transaction,
        undo_block: undo_address,
        undo_offset: undo::used(undo_block) as u16,
    }
}

fn push_row(
    builder: &mut RecordBuilder,
    place: RowId,
    kind: RowKind,
    version: Version,
    parts: &[&[u8]],
) {
    let head = row_head(place.slot, [kind as u8, 0], version);
    let payload: Vec<&[u8]> = std::iter::once(&head[..])
        .chain(parts.iter().copied())
        .collect();
    builder.push(VectorKind::SetRow, place.address, &payload);
}

fn push_compact(builder: &mut RecordBuilder, place: RowId, cut: &[u16]) {
    probe::hit(Probe::BlockCompacted);
    let cut: Vec<u8> = cut.iter().flat_map(|slot| slot.to_le_bytes()).collect();
    builder.push(
        VectorKind::CompactHeap,
        place.address,
        &[&place.slot.to_le_bytes(), &cut],
    );
}
