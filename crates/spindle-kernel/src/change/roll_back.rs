//! Undoing a transaction: for a session that asks for it, for one that died, and after a crash.

use std::sync::Arc;

use crate::block::index::EntryPlace;
use crate::block::space_map::Fill;
use crate::block::{self, BlockAddress, RowId, RowVersion, heap, transaction_table, undo};
use crate::cache::{ExclusiveBlock, Pin};
use crate::error::{KernelError, Result};
use crate::free_space::FreeSpace;
use crate::index::Root;
use crate::log::redo::{RecordBuilder, VectorKind, row_head};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::transaction::slot_of;
use crate::transaction::undo_record::{RowBefore, StoredUndo, UndoRecord};
use crate::wait_event::ProcessWaits;

use super::blocks::{change, change_and_note};
use super::space::{WithUndo, free_space, push_fill};
use super::transaction::{push_end, push_slot, table_pin};
use super::tree;
use super::tree::entries::{What, is_emptied, push_undone};

/// Undoes a transaction, newest change first. Each step forgets its undo record in the same redo record, so that a
/// crash in the middle never undoes a change twice, and after an error this may be called again.
pub(crate) async fn roll_back(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    id: u64,
) -> Result<()> {
    let table = table_pin(sga, waits, id).await?;
    let (slot, wrap) = slot_of(id);
    let (_, place) = sga.undo.slot_place(slot);
    loop {
        let entry = {
            let block = table.read(sga, waits).await?;
            transaction_table::entry(&block, usize::from(place))
        };
        if !entry.active || entry.wrap != wrap {
            sga.undo.endings().end(slot, Some(entry.ended));
            return Ok(());
        }
        undo_block(sga, waits, builder, &table, id, entry.undo_block).await?;
    }
}

/// Undoes what a transaction has in one undo block, and enters in the transaction table where to continue.
async fn undo_block(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    table: &Pin,
    id: u64,
    address: BlockAddress,
) -> Result<()> {
    let mut stored = Vec::new();
    loop {
        let undo_pin = sga.cache.get(sga, waits, address).await?;
        let used = {
            let block = undo_pin.read(sga, waits).await?;
            let (used, last) = undo::last(&block).ok_or_else(|| broken_chain(sga, address))?;
            stored.clear();
            stored.extend_from_slice(last);
            used
        };
        let stored = StoredUndo::parse(&stored).ok_or_else(|| broken_chain(sga, address))?;
        if stored.transaction != id {
            return Err(broken_chain(sga, address));
        }
        let previous = match stored.record {
            UndoRecord::Link { previous } => previous,
            UndoRecord::NoEntry { row, index, key } | UndoRecord::Entry { row, index, key } => {
                drop(undo_pin);
                let place = EntryPlace { key, row };
                let was_there = matches!(stored.record, UndoRecord::Entry { .. });
                let what = if was_there { What::Remove } else { What::Add };
                undo_entry(
                    sga,
                    waits,
                    builder,
                    (address, used),
                    (index, place),
                    (id, what),
                )
                .await?;
                continue;
            }
            UndoRecord::Row { row, was } => {
                drop(undo_pin);
                let put_back = (row, was, stored.previous);
                undo_one(sga, waits, builder, address, used, put_back).await?;
                continue;
            }
        };
        let pins = [&undo_pin, table];
        change(sga, waits, builder, &pins, |blocks, builder| {
            push_truncate(builder, address, used);
            let previous =
                previous.filter(|_| !sga.settings.has_planted(PlantedFault::UndoChainCut));
            match previous {
                Some(previous) => push_slot(builder, sga, &blocks[1], id, previous),
                None => push_end(builder, sga, id),
            }
            Ok(())
        })
        .await?;
        return Ok(());
    }
}

async fn undo_one(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    undo_address: BlockAddress,
    used: usize,
    (row, was, previous): (RowId, RowBefore<'_>, RowVersion),
) -> Result<()> {
    // What the slot will hold, where that may be less than it does.
    let (vector, own, holds) = match was {
        RowBefore::Patch { offset, .. } => (VectorKind::PatchRow, offset.to_le_bytes(), None),
        RowBefore::Whole { kind, bytes } => {
            (VectorKind::SetRow, [kind as u8, 0], Some(Some(bytes.len())))
        }
        RowBefore::Nothing => (VectorKind::ClearRow, [0, 0], Some(None)),
    };
    let (address, mut tells_map) = (row.address, false);
    let head = row_head(row.slot, own, previous);
    loop {
        let pinned = WithUndo::get(sga, waits, address, undo_address, tells_map).await?;
        let (pins, count) = pinned.pins();
        let plan = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
            let freed = holds.and_then(|holds| has_freed(sga, &blocks[0], row, holds));
            if freed.is_some() && !tells_map {
                return Ok(None);
            }
            if freed.is_some() {
                push_fill(sga, builder, address, Fill::Room);
            }
            if !sga.settings.has_planted(PlantedFault::UndoNotApplied) {
                builder.push(vector, address, &[&head, was.bytes()]);
            }
            push_truncate(builder, undo_address, used);
            Ok(Some(freed))
        };
        let learn = |told: &Option<Option<Arc<FreeSpace>>>| {
            if let Some(Some(free)) = told {
                free.learn(address);
            }
        };
        let told = change_and_note(sga, waits, builder, &pins[..count], plan, learn);
        match told.await?.0 {
            None => tells_map = true,
            Some(_) => return Ok(()),
        }
    }
}

/// The space of a segment, when its block has room once a slot holds this little, and the map does not know.
fn has_freed(sga: &Sga, block: &[u8], row: RowId, holds: Option<usize>) -> Option<Arc<FreeSpace>> {
    let (_, before) = heap::stored(block, row.slot)?;
    if holds.is_some_and(|holds| holds >= before.len()) {
        return None;
    }
    let free = free_space(sga, block::segment(block));
    let is_news = !free.is_known(row.address) && free.has_room(block, row.slot, holds);
    is_news.then_some(free)
}

/// What became of an attempt to undo something in an index.
enum Undone {
    Yes {
        is_told: bool,
    },
    /// The leaf will hold nothing: the map is to be told, too.
    Empties,
    /// The place is another leaf's by now.
    Raced,
}

/// Undoes what was done to an entry of an index, wherever it is by now.
async fn undo_entry(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    (undo_address, used): (BlockAddress, usize),
    (index, place): (u32, EntryPlace<'_>),
    done: (u64, What),
) -> Result<()> {
    let root = Root::find(sga, index).ok_or_else(|| broken_chain(sga, undo_address))?;
    let (emptied, mut tells_map) = (free_space(sga, index), false);
    loop {
        let found = tree::descend(sga, waits, root, place, 0).await?;
        let leaf = found.pin.address();
        drop(found);
        let pinned = WithUndo::get(sga, waits, leaf, undo_address, tells_map).await?;
        let (pins, count) = pinned.pins();
        let plan = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
            let node = (leaf, &*blocks[0]);
            if !tree::is_leaf_of(sga, node.1, root, place) {
                return Ok(Undone::Raced);
            }
            let is_told = done.1 == What::Add && is_emptied(&emptied, root, node, place);
            if is_told && !tells_map {
                return Ok(Undone::Empties);
            }
            if is_told {
                push_fill(sga, builder, leaf, Fill::Room);
            }
            if !sga.settings.has_planted(PlantedFault::EntriesNotUndone) {
                push_undone(sga, builder, root, node, place, done)?;
            }
            push_truncate(builder, undo_address, used);
            Ok(Undone::Yes { is_told })
        };
        let learn = |undone: &Undone| {
            if let Undone::Yes { is_told: true } = undone {
                emptied.learn(leaf);
            }
        };
        let undone = change_and_note(sga, waits, builder, &pins[..count], plan, learn);
        match undone.await?.0 {
            Undone::Yes { .. } => return Ok(()),
            Undone::Empties => tells_map = true,
            Undone::Raced => tells_map = false,
        }
    }
}

fn push_truncate(builder: &mut RecordBuilder, address: BlockAddress, used: usize) {
    builder.push(
        VectorKind::UndoTruncate,
        address,
        &[&(used as u32).to_le_bytes()],
    );
}

fn broken_chain(sga: &Sga, address: BlockAddress) -> KernelError {
    KernelError::DamagedBlock {
        address,
        device: sga.storage.datafile(address.file).name().to_string(),
        reason: "the undo chain of a transaction ends here too early".to_string(),
    }
}
