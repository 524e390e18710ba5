//! Entries of leaves: put in, made ghosts of, and both undone. A transaction that changes an entry has its row locked,
//! and in a unique index its key, too. A deleted entry stays as a ghost: a roll-back wakes it where it lies, without
//! needing room, and statements that began before the commit find their rows by it.

use crate::block::index::{self, EntryPlace, Fit, Holds, IndexEntry};
use crate::block::space_map::Fill;
use crate::block::{BlockAddress, RowVersion};
use crate::cache::ExclusiveBlock;
use crate::change::blocks::change_and_note;
use crate::change::space::{WithUndo, push_fill};
use crate::error::Result;
use crate::free_space::FreeSpace;
use crate::index::{Index, Root};
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::transaction::undo_record::UndoRecord;
use crate::wait_event::ProcessWaits;

use super::split::make_room;
use super::{descend, is_damaged, is_leaf_of, is_spent, push_put, push_tidy};

/// More attempts than any race takes: the index is damaged.
const ATTEMPTS_MAX: usize = 10_000;

/// What is done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Add,
    Remove,
}

/// What became of an attempt.
enum Attempt {
    /// Done; if the map did not know that the leaf now has nothing but ghosts, it was told.
    Done { is_told: bool },
    /// The leaf will have nothing but ghosts: the map is to be told, too.
    Empties,
    /// The place is another leaf's by now.
    Raced,
    /// The leaf has no room.
    NoRoom,
}

/// Adds an entry, or removes it; looks first in the leaf that it may be in, if one is known. The transaction has room
/// for the undo record in its undo block.
pub(crate) async fn change_entry(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    (id, undo_address): (u64, BlockAddress),
    index: &Index,
    place: EntryPlace<'_>,
    (what, mut known): (What, Option<BlockAddress>),
) -> Result<()> {
    let (root, mut tells_map) = (index.root, false);
    for _ in 0..ATTEMPTS_MAX {
        let leaf = match known.take() {
            Some(leaf) => leaf,
            None => {
                let found = descend(sga, waits, root, place, 0).await?;
                found.pin.address()
            }
        };
        let pinned = WithUndo::get(sga, waits, leaf, undo_address, tells_map).await?;
        let (pins, count) = pinned.pins();
        let planned = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
            let mut attempt = plan(sga, builder, root, (leaf, &blocks[0]), place, (id, what))?;
            if let Attempt::Done { .. } = attempt {
                let is_told = what == What::Remove
                    && is_emptied(&index.emptied, root, (leaf, &blocks[0]), place);
                if is_told && !tells_map {
                    builder.clear();
                    return Ok(Attempt::Empties);
                }
                if is_told && !sga.settings.has_planted(PlantedFault::EmptyLeafUntold) {
                    push_fill(sga, builder, leaf, Fill::Room);
                }
                attempt = Attempt::Done { is_told };
                push_undo(builder, (id, undo_address), root, place, what);
            }
            Ok(attempt)
        };
        let learn = |attempt: &Attempt| {
            if let Attempt::Done { is_told: true } = attempt {
                index.emptied.learn(leaf);
            }
        };
        let attempt = change_and_note(sga, waits, builder, &pins[..count], planned, learn);
        let (attempt, _) = attempt.await?;
        drop(pinned);
        match attempt {
            Attempt::Done { .. } => return Ok(()),
            Attempt::Empties => tells_map = true,
            Attempt::Raced => tells_map = false,
            Attempt::NoRoom => Box::pin(make_room(sga, waits, builder, index, place)).await?,
        }
    }
    Err(is_damaged(
        sga,
        root,
        root.address,
        "no room can be made where a key belongs",
    ))
}

/// Adds the vectors that put a new entry into the leaf that it is likely to be in, and its undo record. Unless the
/// caller has `looked` whether the key is free, that is checked, too. False when more is to be done: the entry belongs
/// elsewhere, the leaf is full, or the key may be there.
pub(crate) fn plan_new(
    sga: &Sga,
    builder: &mut RecordBuilder,
    (id, undo_address): (u64, BlockAddress),
    root: Root,
    leaf: (BlockAddress, &[u8]),
    (place, looked): (EntryPlace<'_>, bool),
) -> Result<bool> {
    let first = EntryPlace {
        key: place.key,
        ..EntryPlace::FIRST
    };
    let fits = match looked {
        true => is_leaf_of(sga, leaf.1, root, place),
        // With the key nowhere the leaf that covers its first place covers all of them.
        false => {
            is_leaf_of(sga, leaf.1, root, first) && index::holds(leaf.1, first) == Holds::Nothing
        }
    };
    if !fits {
        return Ok(false);
    }
    let planned = plan_in_leaf(sga, builder, root, leaf, place, (id, What::Add))?;
    push_undo(builder, (id, undo_address), root, place, What::Add);
    Ok(matches!(planned, Attempt::Done { .. }))
}

/// Adds the undo record of a change of an entry.
fn push_undo(
    builder: &mut RecordBuilder,
    (id, undo_address): (u64, BlockAddress),
    root: Root,
    place: EntryPlace<'_>,
    what: What,
) {
    let (row, index, key) = (place.row, root.segment, place.key);
    let record = match what {
        What::Add => UndoRecord::NoEntry { row, index, key },
        What::Remove => UndoRecord::Entry { row, index, key },
    };
    let header = record.header(id, RowVersion::LOADED);
    builder.push(VectorKind::UndoAppend, undo_address, &[&header, key]);
}

/// Adds the vectors that change the entry, if the leaf is its own.
fn plan(
    sga: &Sga,
    builder: &mut RecordBuilder,
    root: Root,
    leaf: (BlockAddress, &[u8]),
    place: EntryPlace<'_>,
    (id, what): (u64, What),
) -> Result<Attempt> {
    match is_leaf_of(sga, leaf.1, root, place) {
        true => plan_in_leaf(sga, builder, root, leaf, place, (id, what)),
        false => Ok(Attempt::Raced),
    }
}

/// Adds the vectors that change the entry in its leaf.
fn plan_in_leaf(
    sga: &Sga,
    builder: &mut RecordBuilder,
    root: Root,
    (address, block): (BlockAddress, &[u8]),
    place: EntryPlace<'_>,
    (id, what): (u64, What),
) -> Result<Attempt> {
    let found = index::find(block, place);
    let (mut position, before) = match found {
        Ok(position) => (position, Some(index::entry(block, position))),
        Err(position) => (position, None),
    };
    let is_there = before.is_some_and(|entry| !entry.is_ghost);
    if is_there != (what == What::Remove) {
        let reason = format!(
            "it has {} entry of row {}",
            if is_there { "an" } else { "no" },
            place.row
        );
        return Err(is_damaged(sga, root, address, reason));
    }
    let entry = IndexEntry {
        suffix: &place.key[index::prefix(block).len()..],
        row: place.row,
        number: before.map(|_| id),
        is_ghost: what == What::Remove,
    };
    if before.is_none_or(|before| before.number.is_none()) {
        let spent = is_spent(sga);
        let bytes = index::stored_bytes(entry.suffix.len(), entry.number.is_some());
        match index::fit(block, bytes, before.is_none(), found.ok(), spent) {
            Fit::Now => {}
            Fit::Tidied(gone, bare) => {
                push_tidy(builder, address, &gone, &bare);
                position -= gone.iter().filter(|&&before| before < position).count() as u16;
            }
            Fit::No => return Ok(Attempt::NoRoom),
        }
    }
    push_put(builder, address, position, before.is_some(), &entry);
    Ok(Attempt::Done { is_told: false })
}

/// True when a leaf, once the entry of a place is gone, holds nothing that counts, and the map does not know yet.
pub(crate) fn is_emptied(
    emptied: &FreeSpace,
    root: Root,
    (address, block): (BlockAddress, &[u8]),
    place: EntryPlace<'_>,
) -> bool {
    let counts = |entry: IndexEntry<'_>| !entry.is_ghost && entry.row != place.row;
    address != root.address && !index::entries(block).any(counts) && !emptied.is_known(address)
}

/// Adds the vector that undoes what a transaction did to an entry: takes it out, or wakes it. An entry that the
/// transaction found as a ghost becomes one again.
pub(crate) fn push_undone(
    sga: &Sga,
    builder: &mut RecordBuilder,
    root: Root,
    (address, block): (BlockAddress, &[u8]),
    place: EntryPlace<'_>,
    (id, what): (u64, What),
) -> Result<()> {
    let Ok(position) = index::find(block, place) else {
        let reason = format!(
            "it has no entry of row {}, which is to be undone",
            place.row
        );
        return Err(is_damaged(sga, root, address, reason));
    };
    let entry = index::entry(block, position);
    if what == What::Add && entry.number.is_none() {
        builder.push(VectorKind::DropEntry, address, &[&position.to_le_bytes()]);
        return Ok(());
    }
    let undone = IndexEntry {
        number: entry.number.map(|_| id),
        is_ghost: what == What::Add,
        ..entry
    };
    push_put(builder, address, position, true, &undone);
    Ok(())
}
