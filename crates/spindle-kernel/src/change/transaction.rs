//! Transactions: beginning and ending them. A transaction is a slot of the transaction table and a chain of undo
//! records; it is committed when the redo that frees its slot is on stable storage, and one whose slot is found in use
//! after a crash is undone.

use crate::block::{BlockAddress, RowVersion, transaction_table, undo};
use crate::buggify::Switch;
use crate::cache::Pin;
use crate::control_file::UNDO_SEGMENT;
use crate::error::Result;
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::settings::{Commit, PlantedFault};
use crate::sga::Sga;
use crate::space::extend_undo;
use crate::transaction::undo_record::UndoRecord;
use crate::transaction::{Ending, Transaction, id_of, slot_of};
use crate::wait_event::{ProcessWaits, WaitEvent};

use super::blocks::change;

/// The SCN of a statement that begins now: it sees the transactions that have ended by then. A commit is seen when it
/// is on stable storage and nothing can take it back, unless commits do not wait for that.
pub(crate) fn statement_scn(sga: &Sga) -> u64 {
    match sga.settings.instance.commit {
        Commit::Wait => sga.log.flushed(),
        Commit::NoWait => sga.log.appended(),
    }
}

/// Enters that the transaction runs and wrote to `undo_block` last.
pub(super) fn push_slot(
    builder: &mut RecordBuilder,
    sga: &Sga,
    table: &[u8],
    id: u64,
    undo_block: BlockAddress,
) {
    let (slot, wrap) = slot_of(id);
    let (table_block, place) = sga.undo.slot_place(slot);
    let before = transaction_table::entry(table, usize::from(place));
    let (ended, ended_before) = if before.wrap == wrap {
        (before.ended, before.ended_before)
    } else {
        (0, before.ended)
    };
    let entry = transaction_table::TransactionSlot {
        active: true,
        wrap,
        undo_block,
        ended,
        ended_before,
    };
    builder.push(
        VectorKind::SetSlot,
        table_block,
        &[&place.to_le_bytes(), &entry.to_bytes()],
    );
}

/// Enters that the transaction has ended.
pub(super) fn push_end(builder: &mut RecordBuilder, sga: &Sga, id: u64) {
    let (table_block, place) = sga.undo.slot_place(slot_of(id).0);
    builder.push(VectorKind::EndSlot, table_block, &[&place.to_le_bytes()]);
}

pub(super) async fn table_pin(sga: &Sga, waits: &ProcessWaits, id: u64) -> Result<Pin> {
    let (block, _) = sga.undo.slot_place(slot_of(id).0);
    sga.cache.get(sga, waits, block).await
}

/// Begins a transaction: takes a slot and an undo block.
pub(crate) async fn begin(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
) -> Result<Transaction> {
    let (slot, wrap) = sga.undo.take_slot()?;
    let id = id_of(slot, wrap);
    let mut transaction = Transaction {
        id,
        locks: Vec::new(),
        rolling_back: false,
        touched: Vec::new(),
        undo_room: 0,
    };
    match enter_block(sga, waits, builder, &mut transaction).await {
        Ok(()) => Ok(transaction),
        Err(error) => {
            sga.undo.endings().end(slot, None);
            sga.undo.give_slot(slot);
            Err(error)
        }
    }
}

/// Moves on to another undo block, linked to the present one if there is one.
async fn enter_block(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &mut Transaction,
) -> Result<()> {
    let (address, fresh) = loop {
        match sga.undo.take_block() {
            Some(taken) => break taken,
            None => extend_undo(sga, waits).await?,
        }
    };
    let linked = link_block(sga, waits, builder, transaction, address, fresh).await;
    if linked.is_err() {
        sga.undo.give_blocks(&[address], !fresh);
    }
    linked
}

async fn link_block(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &mut Transaction,
    address: BlockAddress,
    fresh: bool,
) -> Result<()> {
    let id = transaction.id;
    // The table's block first: it is everyone's, so that pinning it while waiting for another takes no buffer away.
    let table = table_pin(sga, waits, id).await?;
    let undo_pin = if fresh {
        sga.cache.get_new(sga, waits, address).await?
    } else {
        sga.cache.get(sga, waits, address).await?
    };
    let link = UndoRecord::Link {
        previous: transaction.touched.last().copied(),
    }
    .header(id, RowVersion::LOADED);
    let (used, _) = change(
        sga,
        waits,
        builder,
        &[&undo_pin, &table],
        |blocks, builder| {
            if fresh {
                builder.push(
                    VectorKind::FormatUndo,
                    address,
                    &[&UNDO_SEGMENT.to_le_bytes()],
                );
            }
            builder.push(VectorKind::UndoAppend, address, &[&link]);
            push_slot(builder, sga, &blocks[1], id, address);
            Ok(if fresh {
                undo::EMPTY_BYTES
            } else {
                undo::used(&blocks[0])
            })
        },
    )
    .await?;
    transaction.touched.push(address);
    transaction.undo_room = sga.settings.block_bytes - used - undo::stored_bytes(link.len());
    Ok(())
}

/// Makes room for an undo record of `record_bytes`, and counts it as used.
pub(crate) async fn make_room(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &mut Transaction,
    record_bytes: usize,
) -> Result<()> {
    let needed = undo::stored_bytes(record_bytes);
    while transaction.undo_room < needed {
        // In a box, for this future is a part of many, which are moved about.
        Box::pin(enter_block(sga, waits, builder, transaction)).await?;
    }
    transaction.undo_room -= needed;
    Ok(())
}

/// Counts room for an undo record as free again: the record was shorter than it might have been, by this many bytes.
pub(crate) fn give_room(transaction: &mut Transaction, record_bytes: usize) {
    transaction.undo_room += record_bytes;
}

/// Frees the transaction's slot: with this record on stable storage it is committed. Returns the position after it.
pub(crate) async fn end(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &Transaction,
) -> Result<u64> {
    let table = table_pin(sga, waits, transaction.id).await?;
    let (slot, _) = slot_of(transaction.id);
    let ended = change(sga, waits, builder, &[&table], |_, builder| {
        if !sga.settings.has_planted(PlantedFault::CommitWithoutSlot) {
            push_end(builder, sga, transaction.id);
        }
        // Others may see the commit as soon as LGWR has written it, which may be before this session continues.
        sga.undo.endings().set_ending(slot, true);
        Ok(())
    })
    .await;
    match ended {
        Ok(((), end)) => {
            sga.undo.endings().end(slot, Some(end));
            Ok(end)
        }
        Err(error) => {
            sga.undo.endings().set_ending(slot, false);
            Err(error)
        }
    }
}

/// Waits until the commit is on stable storage.
pub(crate) async fn wait_stable(sga: &Sga, waits: &ProcessWaits, position: u64) -> Result<()> {
    sga.pause(Switch::CommitPauses).await;
    let wait = waits.begin(&*sga.env);
    let flushed = sga.log.flush_to(sga, position).await;
    wait.end(WaitEvent::LogFileSync);
    flushed
}

/// Gives back what an ended transaction held in memory.
pub(crate) fn forget(sga: &Sga, transaction: &Transaction, ending: Ending) {
    sga.locks.release(&transaction.locks);
    // A quarter of a block is worth sharing with a later transaction.
    let has_room = transaction.undo_room > sga.settings.block_bytes / 4;
    sga.undo.give_blocks(
        &transaction.touched,
        ending == Ending::Committed && has_room,
    );
    sga.undo.give_slot(slot_of(transaction.id).0);
}
