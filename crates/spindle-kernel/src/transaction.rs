//! Transactions: beginning, ending and undoing them. A transaction is a slot of the transaction table and a chain of
//! undo records; it is committed when the redo that frees its slot is on stable storage, and one whose slot is found in
//! use after a crash is undone.

use crate::block::{BlockAddress, RowId, Version, transaction_table, undo};
use crate::buffer_cache::Pin;
use crate::buggify::Switch;
use crate::change::change;
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::redo::{RecordBuilder, VectorKind, row_head};
use crate::settings::{CommitWait, PlantedFault};
use crate::undo::{StoredUndo, UNDO_SEGMENT, UndoRecord};
use crate::wait_event::{ProcessWaits, WaitEvent};

/// A running transaction.
pub(crate) struct Transaction {
    /// Slot and wrap number in one: never the same twice.
    pub(crate) id: u64,
    /// Rows it has locked.
    pub(crate) locks: Vec<RowId>,
    /// A roll-back has begun: all that can be done is to go on with it.
    pub(crate) rolling_back: bool,
    /// Undo blocks it has written to, the present one last.
    touched: Vec<BlockAddress>,
    /// Bytes left in the present one.
    undo_room: usize,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Committed,
    RolledBack,
}

impl Transaction {
    /// Error when a roll-back has begun and has not come to its end.
    pub(crate) fn check_not_rolling_back(&self) -> Result<()> {
        if self.rolling_back {
            Err(KernelError::RollBackUnfinished)
        } else {
            Ok(())
        }
    }

    /// The undo block it writes to.
    pub(crate) fn undo_block(&self) -> BlockAddress {
        *self
            .touched
            .last()
            .expect("a transaction has an undo block from its beginning")
    }
}

/// Slot and wrap number of a transaction.
pub(crate) fn slot_of(id: u64) -> (usize, u32) {
    ((id >> 32) as usize, id as u32)
}

/// Names the transaction of a slot and wrap number.
pub(crate) fn id_of(slot: usize, wrap: u32) -> u64 {
    (slot as u64) << 32 | u64::from(wrap)
}

/// The SCN of a statement that begins now: it sees the transactions that have ended by then. A commit is seen when it
/// is on stable storage and nothing can take it back, unless commits do not wait for that.
pub(crate) fn statement_scn(shared: &Shared) -> u64 {
    match shared.settings.commit_wait {
        CommitWait::Wait => shared.log.flushed(),
        CommitWait::NoWait => shared.log.appended(),
    }
}

/// Enters that the transaction runs and wrote to `undo_block` last.
fn push_slot(
    builder: &mut RecordBuilder,
    shared: &Shared,
    table: &[u8],
    id: u64,
    undo_block: BlockAddress,
) {
    let (slot, wrap) = slot_of(id);
    let (table_block, place) = shared.undo.slot_place(slot);
    let before = transaction_table::entry(table, usize::from(place));
    let (ended, ended_before) = if before.wrap == wrap {
        (before.ended, before.ended_before)
    } else {
        (0, before.ended)
    };
    let entry = transaction_table::Entry {
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
fn push_end(builder: &mut RecordBuilder, shared: &Shared, id: u64) {
    let (table_block, place) = shared.undo.slot_place(slot_of(id).0);
    builder.push(VectorKind::EndSlot, table_block, &[&place.to_le_bytes()]);
}

async fn table_pin(shared: &Shared, waits: &ProcessWaits, id: u64) -> Result<Pin> {
    let (block, _) = shared.undo.slot_place(slot_of(id).0);
    shared.cache.get(shared, waits, block).await
}

/// Begins a transaction: takes a slot and an undo block.
pub(crate) async fn begin(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
) -> Result<Transaction> {
    let (slot, wrap) = shared.undo.take_slot()?;
    let id = id_of(slot, wrap);
    let mut transaction = Transaction {
        id,
        locks: Vec::new(),
        rolling_back: false,
        touched: Vec::new(),
        undo_room: 0,
    };
    match enter_block(shared, waits, builder, &mut transaction).await {
        Ok(()) => Ok(transaction),
        Err(error) => {
            shared.undo.endings().end(slot, None);
            shared.undo.give_slot(slot);
            Err(error)
        }
    }
}

/// Goes on to another undo block, linked to the present one if there is one.
async fn enter_block(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &mut Transaction,
) -> Result<()> {
    let (address, fresh) = shared.undo.take_block()?;
    let linked = link_block(shared, waits, builder, transaction, address, fresh).await;
    if linked.is_err() {
        shared.undo.give_blocks(&[address], !fresh);
    }
    linked
}

async fn link_block(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &mut Transaction,
    address: BlockAddress,
    fresh: bool,
) -> Result<()> {
    let id = transaction.id;
    // The table's block first: it is everybody's, so that pinning it while waiting for another takes no buffer away.
    let table = table_pin(shared, waits, id).await?;
    let undo_pin = if fresh {
        shared.cache.get_new(shared, waits, address).await?
    } else {
        shared.cache.get(shared, waits, address).await?
    };
    let link = UndoRecord::Link {
        previous: transaction.touched.last().copied(),
    }
    .header(id, Version::LOADED);
    let (used, _) = change(
        shared,
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
            push_slot(builder, shared, &blocks[1], id, address);
            Ok(if fresh {
                undo::EMPTY_BYTES
            } else {
                undo::used(&blocks[0])
            })
        },
    )
    .await?;
    transaction.touched.push(address);
    transaction.undo_room = shared.settings.block_bytes - used - undo::stored_bytes(link.len());
    Ok(())
}

/// Makes room for an undo record of `record_bytes`, and counts it as used.
pub(crate) async fn make_room(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &mut Transaction,
    record_bytes: usize,
) -> Result<()> {
    let needed = undo::stored_bytes(record_bytes);
    while transaction.undo_room < needed {
        enter_block(shared, waits, builder, transaction).await?;
    }
    transaction.undo_room -= needed;
    Ok(())
}

/// Counts room for an undo record as free again: the record was shorter than it might have been, by so many bytes.
pub(crate) fn give_room(transaction: &mut Transaction, record_bytes: usize) {
    transaction.undo_room += record_bytes;
}

/// Frees the transaction's slot: with this record on stable storage it is committed. Returns the position after it.
pub(crate) async fn end(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    transaction: &Transaction,
) -> Result<u64> {
    let table = table_pin(shared, waits, transaction.id).await?;
    let (slot, _) = slot_of(transaction.id);
    let ended = change(shared, waits, builder, &[&table], |_, builder| {
        if !shared.settings.has_planted(PlantedFault::CommitWithoutSlot) {
            push_end(builder, shared, transaction.id);
        }
        // Others may see the commit as soon as LGWR has written it, which may be before this session goes on.
        shared.undo.endings().set_ending(slot, true);
        Ok(())
    })
    .await;
    match ended {
        Ok(((), end)) => {
            shared.undo.endings().end(slot, Some(end));
            Ok(end)
        }
        Err(error) => {
            shared.undo.endings().set_ending(slot, false);
            Err(error)
        }
    }
}

/// Waits until the commit is on stable storage.
pub(crate) async fn wait_stable(
    shared: &Shared,
    waits: &ProcessWaits,
    position: u64,
) -> Result<()> {
    shared.pause(Switch::CommitPauses).await;
    let wait = waits.begin(&*shared.env);
    let flushed = shared.log.flush_to(shared, position).await;
    wait.end(WaitEvent::LogFileSync);
    flushed
}

/// Gives back what an ended transaction held in memory.
pub(crate) fn forget(shared: &Shared, transaction: &Transaction, ending: Ending) {
    shared.locks.release(&transaction.locks);
    // A quarter of a block is worth sharing with a later transaction.
    let has_room = transaction.undo_room > shared.settings.block_bytes / 4;
    shared.undo.give_blocks(
        &transaction.touched,
        ending == Ending::Committed && has_room,
    );
    shared.undo.give_slot(slot_of(transaction.id).0);
}

/// Undoes a transaction, newest change first. Each step forgets its undo record in the same redo record, so that a
/// crash in the middle never undoes a change twice, and after an error this may be called again.
pub(crate) async fn roll_back(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    id: u64,
) -> Result<()> {
    let table = table_pin(shared, waits, id).await?;
    let (slot, wrap) = slot_of(id);
    let (_, place) = shared.undo.slot_place(slot);
    loop {
        let entry = {
            let block = table.read(shared, waits).await?;
            transaction_table::entry(&block, usize::from(place))
        };
        if !entry.active || entry.wrap != wrap {
            shared.undo.endings().end(slot, Some(entry.ended));
            return Ok(());
        }
        undo_block(shared, waits, builder, &table, id, entry.undo_block).await?;
    }
}

/// Undoes what a transaction has in one undo block, and enters in the transaction table where to go on.
async fn undo_block(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    table: &Pin,
    id: u64,
    address: BlockAddress,
) -> Result<()> {
    let mut stored = Vec::new();
    loop {
        let undo_pin = shared.cache.get(shared, waits, address).await?;
        let used = {
            let block = undo_pin.read(shared, waits).await?;
            let (used, last) = undo::last(&block).ok_or_else(|| broken_chain(shared, address))?;
            stored.clear();
            stored.extend_from_slice(last);
            used
        };
        let stored = StoredUndo::parse(&stored).ok_or_else(|| broken_chain(shared, address))?;
        if stored.transaction != id {
            return Err(broken_chain(shared, address));
        }
        let UndoRecord::Link { previous } = stored.record else {
            drop(undo_pin);
            undo_one(shared, waits, builder, address, used, stored).await?;
            continue;
        };
        let pins = [&undo_pin, table];
        change(shared, waits, builder, &pins, |blocks, builder| {
            push_truncate(builder, address, used);
            let previous =
                previous.filter(|_| !shared.settings.has_planted(PlantedFault::UndoChainCut));
            match previous {
                Some(previous) => push_slot(builder, shared, &blocks[1], id, previous),
                None => push_end(builder, shared, id),
            }
            Ok(())
        })
        .await?;
        return Ok(());
    }
}

async fn undo_one(
    shared: &Shared,
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
    let [undo, data] = shared.cache.get_two(shared, waits, addresses).await?;
    let head = row_head(row.slot, own, stored.previous);
    change(shared, waits, builder, &[&data, &undo], |_, builder| {
        if !shared.settings.has_planted(PlantedFault::UndoNotApplied) {
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

fn broken_chain(shared: &Shared, address: BlockAddress) -> KernelError {
    KernelError::DamagedBlock {
        address,
        device: shared.storage.datafile(address.file).name().to_string(),
        reason: "the undo chain of a transaction ends here too early".to_string(),
    }
}
