//! Undoing a transaction: for a session that asks for it, for one that died, and after a crash.

use crate::block::{BlockAddress, transaction_table, undo};
use crate::cache::Pin;
use crate::error::{KernelError, Result};
use crate::log::redo::{RecordBuilder, VectorKind, row_head};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::transaction::slot_of;
use crate::transaction::undo_record::{StoredUndo, UndoRecord};
use crate::wait_event::ProcessWaits;

use super::blocks::change;
use super::transaction::{push_end, push_slot, table_pin};

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
        let UndoRecord::Link { previous } = stored.record else {
            drop(undo_pin);
            undo_one(sga, waits, builder, address, used, stored).await?;
            continue;
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
        UndoRecord::Link { .. } => unreachable!("links are followed, not applied"),
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
