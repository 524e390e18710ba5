//! Undoing a transaction: for a session that asks for it, for one that died, and after a crash.

use crate::block::index::Place;
use crate::block::{BlockAddress, transaction_table, undo};
use crate::cache::Pin;
use crate::error::{KernelError, Result};
use crate::index::Root;
use crate::log::redo::{RecordBuilder, VectorKind, row_head};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::transaction::slot_of;
use crate::transaction::undo_record::{StoredUndo, UndoRecord};
use crate::wait_event::ProcessWaits;

use super::blocks::change;
use super::transaction::{push_end, push_slot, table_pin};
use super::tree;
use super::tree::entries::{What, push_undone};

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

/// Undoes what a transaction has in one undo block, and enters in the transaction table where to go on.
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
                let place = Place { key, row };
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
            _ => {
                drop(undo_pin);
                undo_one(sga, waits, builder, address, used, stored).await?;
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
    stored: StoredUndo<'_>,
) -> Result<()> {
    let (row, vector, own) = match stored.record {
        UndoRecord::Patch { row, offset, .. } => (row, VectorKind::PatchRow, offset.to_le_bytes()),
        UndoRecord::Row { row, kind, .. } => (row, VectorKind::SetRow, [kind as u8, 0]),
        UndoRecord::NoRow { row } => (row, VectorKind::ClearRow, [0, 0]),
        UndoRecord::Link { .. } | UndoRecord::NoEntry { .. } | UndoRecord::Entry { .. } => {
            unreachable!("neither links nor entries are in slots")
        }
    };
    let addresses = [undo_address, row.address];
    let [undo, data] = sga.cache.get_two(sga, waits, addresses).await?;
    let head = row_head(row.slot, own, stored.previous);
    change(sga, waits, builder, &[&data, &undo], |_, builder| {
        if !sga.settings.has_planted(PlantedFault::UndoNotApplied) {
            builder.push(vector, row.address, &[&head, stored.record.bytes()]);
        }
        push_truncate(builder, undo_address, used);
        Ok(())
    })
    .await?;
    Ok(())
}

/// Undoes what was done to an entry of an index, wherever it is by now.
async fn undo_entry(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    (undo_address, used): (BlockAddress, usize),
    (index, place): (u32, Place<'_>),
    done: (u64, What),
) -> Result<()> {
    let root = Root::find(sga, index).ok_or_else(|| broken_chain(sga, undo_address))?;
    loop {
        let leaf = tree::descend(sga, waits, root, place, 0).await?.address;
        let addresses = [undo_address, leaf];
        let [undo, node] = sga.cache.get_two(sga, waits, addresses).await?;
        let (is_undone, _) = change(sga, waits, builder, &[&node, &undo], |blocks, builder| {
            if !tree::is_leaf_of(sga, &blocks[0], root, place) {
                return Ok(false);
            }
            if !sga.settings.has_planted(PlantedFault::EntriesNotUndone) {
                push_undone(sga, builder, root, (leaf, &blocks[0]), place, done)?;
            }
            push_truncate(builder, undo_address, used);
            Ok(true)
        })
        .await?;
        if is_undone {
            return Ok(());
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
