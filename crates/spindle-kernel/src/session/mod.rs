//! A session: one client's connection. It reads and changes rows of a transaction that begins with its first change
//! and ends with commit or roll-back. Reads see the last committed version of a row, or the transaction's own.

mod change;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::block::heap::{self, RowKind};
use crate::block::{BlockAddress, RowId};
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::redo::RecordBuilder;
use crate::settings::{CommitWait, PlantedFault};
use crate::table::Table;
use crate::transaction::{self, Ending, Transaction};
use crate::wait_event::ProcessWaits;

/// One client's connection to an instance. A transaction is to be ended by [`Session::commit`] or [`Session::rollback`]; that
/// of a session dropped in its middle is rolled back by PMON, and keeps its row locks until then.
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
        let mut read = Some(read);
        let mut call = |bytes: &[u8]| read.take().expect("a row is read once")(bytes);
        loop {
            let home = self.look(row, |stored| match stored {
                Some((RowKind::Row, bytes)) => Ok(call(bytes)),
                Some((RowKind::Forward, bytes)) => Err(Some(RowId::from_bytes(bytes))),
                _ => Err(None),
            });
            let place = match home.await? {
                Ok(value) => return Ok(value),
                Err(place) => place.ok_or(KernelError::NoSuchRow { row })?,
            };
            let migrated = self.look(place, |stored| match stored {
                Some((RowKind::Migrated, bytes)) if RowId::from_bytes(bytes) == row => {
                    Some(call(&bytes[RowId::BYTES..]))
                }
                // It has moved on since.
                _ => None,
            });
            if let Some(value) = migrated.await? {
                return Ok(value);
            }
        }
    }

    /// Looks at the last committed version of what a slot holds, or at the transaction's own.
    async fn look<T>(
        &self,
        place: RowId,
        look: impl FnOnce(Option<(RowKind, &[u8])>) -> T,
    ) -> Result<T> {
        let shared = &*self.shared;
        let pin = shared.cache.get(shared, &self.waits, place.address).await?;
        let block = pin.read(shared, &self.waits).await?;
        let reader = self.transaction.as_ref().map(|transaction| transaction.id);
        Ok(
            match shared.locks.read_committed(shared, place, reader, look) {
                Ok(value) => value,
                Err(look) => look(heap::stored(&block, place.slot)),
            },
        )
    }

    /// Reads every row of `count` blocks from block number `first`, with multi-block reads; `read` gets each row's rowid
    /// and bytes. A row that has migrated is read when its rowid's block is. Ends early at the end of the table.
    pub async fn scan(
        &mut self,
        table: &Table,
        first: u64,
        count: u64,
        mut read: impl FnMut(RowId, &[u8]),
    ) -> Result<()> {
        let mut number = first;
        let end = first.saturating_add(count);
        let mut migrated = Vec::new();
        while number < end {
            let Some((address, in_extent)) = table.run(number) else {
                break;
            };
            let run = u64::from(in_extent)
                .min(end - number)
                .min(self.shared.multiblock_read_blocks as u64) as u32;
            number += self
                .scan_run(address, run, &mut read, &mut migrated)
                .await?;
            for row in migrated.drain(..) {
                match self.read_row(row, |bytes| read(row, bytes)).await {
                    Err(KernelError::NoSuchRow { .. }) => {}
                    result => result?,
                }
            }
        }
        Ok(())
    }

    /// Reads the rows of up to `count` blocks from `first`; notes those that have migrated. Returns how many blocks it were.
    async fn scan_run(
        &self,
        first: BlockAddress,
        count: u32,
        read: &mut impl FnMut(RowId, &[u8]),
        migrated: &mut Vec<RowId>,
    ) -> Result<u64> {
        let shared = &*self.shared;
        let pins = shared
            .cache
            .get_run(shared, &self.waits, first, count)
            .await?;
        let reader = self.transaction.as_ref().map(|transaction| transaction.id);
        for pin in &pins {
            let block = pin.read(shared, &self.waits).await?;
            let address = pin.address();
            let slots = if heap::is_heap(&block) {
                heap::slots(&block)
            } else {
                0
            };
            for slot in 0..slots {
                let row = RowId { address, slot };
                let mut give = |stored: Option<(RowKind, &[u8])>| match stored {
                    Some((RowKind::Row, bytes)) => read(row, bytes),
                    Some((RowKind::Forward, _)) => migrated.push(row),
                    Some((RowKind::Migrated, _)) | None => {}
                };
                if let Err(give) = shared.locks.read_committed(shared, row, reader, &mut give) {
                    give(heap::stored(&block, slot));
                }
            }
        }
        Ok(pins.len() as u64)
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
        if shared
            .settings
            .has_planted(PlantedFault::RowLockReleasedEarly)
        {
            shared
                .locks
                .release(&std::mem::take(&mut transaction.locks));
        }
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

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            self.shared.pmon.adopt(transaction);
        }
    }
}
