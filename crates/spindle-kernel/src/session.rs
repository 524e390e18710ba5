//! A session: one client's connection. It reads and changes rows of a transaction that begins with its first change
//! and ends with commit or roll-back. Reads see the last committed version of a row, or the transaction's own.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::block::{BlockAddress, BlockKind, RowId, heap};
use crate::change::change;
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::redo::{RecordBuilder, VectorKind};
use crate::settings::CommitWait;
use crate::table::{Table, next_insert_block};
use crate::transaction::{self, Ending, Transaction};
use crate::undo::{UNDO_RECORD_OVERHEAD_BYTES, UndoRecord};
use crate::wait_event::ProcessWaits;

/// One client's connection to an instance. To be ended by [`Session::commit`] or [`Session::rollback`]: a session dropped
/// in mid-transaction keeps its row locks until the next start of the instance rolls it back.
pub struct Session {
    shared: Arc<Shared>,
    waits: Arc<ProcessWaits>,
    transaction: Option<Transaction>,
    builder: RecordBuilder,
    /// By segment, the block that this session's inserts go to.
    insert_blocks: FxHashMap<u32, u64>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Session {
        let waits = shared.waits.register();
        Session {
            shared,
            waits,
            transaction: None,
            builder: RecordBuilder::default(),
            insert_blocks: FxHashMap::default(),
        }
    }

    /// Reads a row; `read` gets its bytes, and must be short.
    pub async fn read_row<T>(&mut self, row: RowId, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let shared = &*self.shared;
        let pin = shared.cache.get(shared, &self.waits, row.address).await?;
        let block = pin.read(shared, &self.waits).await?;
        let reader = self.transaction.as_ref().map(|transaction| transaction.id);
        let found = |bytes: Option<&[u8]>| bytes.map(read).ok_or(KernelError::NoSuchRow { row });
        match shared.locks.read_committed(row, reader, found) {
            Ok(value) => value,
            Err(found) => found(heap::row(&block, row.slot)),
        }
    }

    /// Reads every row of `count` blocks from block number `first`, with multi-block reads; `read` gets each row's rowid
    /// and bytes. Ends early at the end of the table.
    pub async fn scan(
        &mut self,
        table: &Table,
        first: u64,
        count: u64,
        mut read: impl FnMut(RowId, &[u8]),
    ) -> Result<()> {
        let shared = &*self.shared;
        let mut number = first;
        let end = first.saturating_add(count);
        while number < end {
            let Some((address, in_extent)) = table.run(number) else {
                break;
            };
            let run = u64::from(in_extent)
                .min(end - number)
                .min(shared.multiblock_read_blocks as u64) as u32;
            let pins = shared
                .cache
                .get_run(shared, &self.waits, address, run)
                .await?;
            let reader = self.transaction.as_ref().map(|transaction| transaction.id);
            for (step, pin) in pins.iter().enumerate() {
                let block = pin.read(shared, &self.waits).await?;
                let address = BlockAddress {
                    block: address.block + step as u32,
                    ..address
                };
                let slots = if heap::is_heap(&block) {
                    heap::slots(&block)
                } else {
                    0
                };
                for slot in 0..slots {
                    let row = RowId { address, slot };
                    let mut give = |bytes: Option<&[u8]>| {
                        if let Some(bytes) = bytes {
                            read(row, bytes);
                        }
                    };
                    if let Err(give) = shared.locks.read_committed(row, reader, &mut give) {
                        give(heap::row(&block, slot));
                    }
                }
            }
            number += pins.len() as u64;
        }
        Ok(())
    }

    /// Changes the bytes `range` of a row: `edit` gets them as they are. Waits for the row's lock up to the lock timeout.
    /// `edit` may be called again, with fresh bytes, when the change had to wait.
    pub async fn update_row(
        &mut self,
        row: RowId,
        range: Range<usize>,
        edit: impl Fn(&mut [u8]),
    ) -> Result<()> {
        let place = [row.slot.to_le_bytes(), (range.start as u16).to_le_bytes()].concat();
        let mut edited = vec![0; range.len()];
        self.change_row(row, range.len(), |bytes, builder| {
            let old = &bytes[range.clone()];
            edited.copy_from_slice(old);
            edit(&mut edited);
            builder.push(VectorKind::PatchRow, row.address, &[&place, &edited]);
            UndoRecord::Patch {
                row,
                offset: range.start as u16,
                bytes: old,
            }
        })
        .await
    }

    /// Deletes a row. Its slot is not used again before the transaction has committed.
    pub async fn delete_row(&mut self, table: &Table, row: RowId) -> Result<()> {
        self.change_row(row, table.row_bytes(), |bytes, builder| {
            builder.push(
                VectorKind::ClearRow,
                row.address,
                &[&row.slot.to_le_bytes()],
            );
            UndoRecord::Row { row, bytes }
        })
        .await
    }

    /// Changes a row that exists. `plan` gets its bytes, adds the vector of the change and says how to undo it, keeping
    /// at most `kept_bytes` of the row.
    async fn change_row(
        &mut self,
        row: RowId,
        kept_bytes: usize,
        mut plan: impl for<'a> FnMut(&'a [u8], &mut RecordBuilder) -> UndoRecord<'a>,
    ) -> Result<()> {
        let undo_bytes = UNDO_RECORD_OVERHEAD_BYTES + kept_bytes;
        let (id, undo_address) = self.prepare(Some(row), undo_bytes).await?;
        let shared = &*self.shared;
        let [undo, data] = shared
            .cache
            .get_two(shared, &self.waits, [undo_address, row.address])
            .await?;
        let pins = [&data, &undo];
        change(
            shared,
            &self.waits,
            &mut self.builder,
            &pins,
            |blocks, builder| {
                let bytes =
                    heap::row(&blocks[0], row.slot).ok_or(KernelError::NoSuchRow { row })?;
                shared.locks.keep_before(row, Some(bytes));
                let record = plan(bytes, builder);
                builder.push(
                    VectorKind::UndoAppend,
                    undo_address,
                    &[&record.header(id), record.bytes()],
                );
                Ok(())
            },
        )
        .await?;
        Ok(())
    }

    /// Adds a row, which must be of the table's row length.
    pub async fn insert_row(&mut self, table: &Table, row_bytes: &[u8]) -> Result<RowId> {
        assert_eq!(
            row_bytes.len(),
            table.row_bytes(),
            "rows of {} have a fixed length",
            table.name()
        );
        loop {
            let number = *self
                .insert_blocks
                .entry(table.segment)
                .or_insert_with(|| next_insert_block(table));
            let Some(address) = table.block(number) else {
                table.extend(&self.shared, number).await?;
                continue;
            };
            match self.insert_into(table, address, row_bytes).await? {
                Some(row) => return Ok(row),
                None => {
                    self.insert_blocks
                        .insert(table.segment, next_insert_block(table));
                }
            }
        }
    }

    /// Adds a row to a block; `None` when the block has no slot to give.
    async fn insert_into(
        &mut self,
        table: &Table,
        address: BlockAddress,
        row_bytes: &[u8],
    ) -> Result<Option<RowId>> {
        let (id, undo_address) = self.prepare(None, UNDO_RECORD_OVERHEAD_BYTES).await?;
        let shared = &*self.shared;
        let [undo, data] = shared
            .cache
            .get_two(shared, &self.waits, [undo_address, address])
            .await?;
        let mut locked = Vec::new();
        let inserted = change(
            shared,
            &self.waits,
            &mut self.builder,
            &[&data, &undo],
            |blocks, builder| {
                let fresh = crate::block::kind(&blocks[0]) == BlockKind::Unused as u8;
                let slots = if fresh {
                    table.rows_per_block() as u16
                } else {
                    heap::slots(&blocks[0])
                };
                let free = |slot: &u16| fresh || heap::row(&blocks[0], *slot).is_none();
                // A slot may be empty because a transaction that has not ended emptied it.
                let row = (0..slots)
                    .filter(free)
                    .map(|slot| RowId { address, slot })
                    .find(|row| {
                        let lock = shared.locks.try_lock(*row, id);
                        if matches!(lock, Ok(true)) {
                            locked.push(*row);
                        }
                        lock.is_ok()
                    });
                let Some(row) = row else { return Ok(None) };
                shared.locks.keep_before(row, None);
                if fresh {
                    let row_length = (table.row_bytes() as u16).to_le_bytes();
                    let segment = table.segment.to_le_bytes();
                    builder.push(VectorKind::FormatHeap, address, &[&segment, &row_length]);
                }
                builder.push(
                    VectorKind::UndoAppend,
                    undo_address,
                    &[&UndoRecord::NoRow { row }.header(id)],
                );
                builder.push(
                    VectorKind::SetRow,
                    address,
                    &[&row.slot.to_le_bytes(), row_bytes],
                );
                Ok(Some(row))
            },
        )
        .await;
        if let Some(transaction) = &mut self.transaction {
            transaction.locks.extend(locked);
        }
        Ok(inserted?.0)
    }

    /// Begins a transaction if there is none, locks the row, and makes room for an undo record. Returns the transaction
    /// and its undo block.
    async fn prepare(
        &mut self,
        row: Option<RowId>,
        undo_bytes: usize,
    ) -> Result<(u64, BlockAddress)> {
        let shared = &*self.shared;
        if self.transaction.is_none() {
            self.transaction =
                Some(transaction::begin(shared, &self.waits, &mut self.builder).await?);
        }
        let transaction = self.transaction.as_mut().expect("begun above");
        transaction.check_not_rolling_back()?;
        if let Some(row) = row
            && shared
                .locks
                .lock(shared, &self.waits, row, transaction.id)
                .await?
        {
            transaction.locks.push(row);
        }
        transaction::make_room(
            shared,
            &self.waits,
            &mut self.builder,
            transaction,
            undo_bytes,
        )
        .await?;
        Ok((transaction.id, transaction.undo_block()))
    }

    /// True while the session has changes that are not committed.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Ends the transaction; returns when its redo is on stable storage (unless the instance was told not to wait). Nothing
    /// to do when there were no changes. After an error [`Session::in_transaction`] says whether the transaction goes on,
    /// to be committed again or rolled back; if not, whether it survives is known only after recovery.
    pub async fn commit(&mut self) -> Result<()> {
        let Some(transaction) = &self.transaction else {
            return Ok(());
        };
        transaction.check_not_rolling_back()?;
        let shared = &*self.shared;
        let end = transaction::end(shared, &self.waits, &mut self.builder, transaction).await?;
        let transaction = self.transaction.take().expect("looked at above");
        match shared.settings.commit_wait {
            CommitWait::Wait => transaction::wait_stable(shared, &self.waits, end).await?,
            CommitWait::NoWait => shared.log.request(end),
        }
        transaction::forget(shared, &transaction, Ending::Committed);
        shared.statistics.add_commit();
        Ok(())
    }

    /// Undoes every change of the transaction. Nothing to do when there were none. After an error the transaction goes on,
    /// with its locks, and can only be rolled back again.
    pub async fn rollback(&mut self) -> Result<()> {
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        transaction.rolling_back = true;
        let shared = &*self.shared;
        transaction::roll_back(shared, &self.waits, &mut self.builder, transaction.id).await?;
        let transaction = self.transaction.take().expect("looked at above");
        transaction::forget(shared, &transaction, Ending::RolledBack);
        shared.statistics.add_rollback();
        Ok(())
    }
}
