//! A session: one client's connection. It reads and changes rows of a transaction that begins with its first change
//! and ends with commit or roll-back. The isolation level is read committed.

mod change;
mod check;
mod check_table;
mod insert;
mod last_leaf;
mod range;
mod read;
mod rows;
mod temporary;
mod typed;
mod whole_row;

pub use check::IndexShape;
pub use check_table::TableShape;
pub use typed::TypedTable;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use spindle_io::sync::assert_no_latch_held;
use spindle_io::sync::atomic::Ordering;

use crate::block::{BlockAddress, RowId};
use crate::change::roll_back::roll_back;
use crate::change::transaction;
use crate::error::Result;
use crate::log::redo::RecordBuilder;
use crate::settings::{Commit, PlantedFault};
use crate::sga::Sga;
use crate::temp::Usage;
use crate::transaction::{Ending, Transaction};
use crate::wait_event::ProcessWaits;

/// One client's connection to an instance. A transaction is to be ended by [`Session::commit`] or
/// [`Session::rollback`]; that of a session dropped in its middle is rolled back by PMON, and keeps its row locks until
/// then.
pub struct Session {
    sga: Arc<Sga>,
    waits: Arc<ProcessWaits>,
    transaction: Option<Transaction>,
    builder: RecordBuilder,
    /// By segment, the block that this session's inserts go to.
    insert_blocks: FxHashMap<u32, insert::InsertBlock>,
    last_leaves: last_leaf::LastLeaves,
    /// What its queries use.
    usage: Arc<Usage>,
}

impl Session {
    pub(crate) fn new(sga: Arc<Sga>) -> Session {
        let waits = sga.waits.register_session();
        Session::waiting_as(sga, waits)
    }

    fn waiting_as(sga: Arc<Sga>, waits: Arc<ProcessWaits>) -> Session {
        sga.sessions.fetch_add(1, Ordering::SeqCst);
        Session {
            sga,
            waits,
            transaction: None,
            builder: RecordBuilder::default(),
            insert_blocks: FxHashMap::default(),
            last_leaves: last_leaf::LastLeaves::default(),
            usage: Arc::default(),
        }
    }

    /// Begins a transaction if there is none, locks the row, and makes room for an undo record. Returns the transaction
    /// and its undo block.
    async fn prepare(
        &mut self,
        row: Option<RowId>,
        undo_bytes: usize,
    ) -> Result<(u64, BlockAddress)> {
        self.lock(row).await?;
        let sga = &*self.sga;
        let transaction = self.transaction.as_mut().expect("begun above");
        transaction::make_room(sga, &self.waits, &mut self.builder, transaction, undo_bytes)
            .await?;
        Ok((transaction.id, transaction.undo_block()))
    }

    /// Begins a transaction if there is none, and locks rows.
    async fn lock(&mut self, rows: impl IntoIterator<Item = RowId>) -> Result<()> {
        let sga = &*self.sga;
        if self.transaction.is_none() {
            let begun = transaction::begin(sga, &self.waits, &mut self.builder);
            self.transaction = Some(Box::pin(begun).await?);
        }
        let transaction = self.transaction.as_mut().expect("begun above");
        transaction.check_not_rolling_back()?;
        if sga.settings.has_planted(PlantedFault::RowLockReleasedEarly) {
            sga.locks.release(&std::mem::take(&mut transaction.locks));
        }
        for row in rows {
            let locked = sga.locks.lock(sga, &self.waits, row, transaction.id);
            if locked.await? {
                transaction.locks.push(row);
            }
        }
        Ok(())
    }

    /// True while the session has changes that are not committed.
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Ends the transaction; returns when its redo is on stable storage (unless the instance was told not to wait).
    /// Nothing to do when there were no changes. After an error [`Session::in_transaction`] says whether the
    /// transaction continues, to be committed again or rolled back; if not, whether it survives is known only after
    /// recovery.
    pub async fn commit(&mut self) -> Result<()> {
        let Some(transaction) = &self.transaction else {
            return Ok(());
        };
        transaction.check_not_rolling_back()?;
        let sga = &*self.sga;
        let end = transaction::end(sga, &self.waits, &mut self.builder, transaction).await?;
        let transaction = self.transaction.take().expect("looked at above");
        match sga.settings.instance.commit {
            Commit::Wait => transaction::wait_stable(sga, &self.waits, end).await?,
            Commit::NoWait => sga.log.request(end),
        }
        transaction::forget(sga, &transaction, Ending::Committed);
        sga.statistics.add_commit();
        Ok(())
    }

    /// Undoes every change of the transaction. Nothing to do when there were none. After an error the transaction
    /// continues, with its locks, and can only be rolled back again.
    pub async fn rollback(&mut self) -> Result<()> {
        let Some(transaction) = &mut self.transaction else {
            return Ok(());
        };
        transaction.rolling_back = true;
        let sga = &*self.sga;
        roll_back(sga, &self.waits, &mut self.builder, transaction.id).await?;
        let transaction = self.transaction.take().expect("looked at above");
        transaction::forget(sga, &transaction, Ending::RolledBack);
        sga.statistics.add_rollback();
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for (_, block) in self.insert_blocks.drain() {
            block.give_back();
        }
        if let Some(transaction) = self.transaction.take() {
            self.sga.abandoned.adopt(transaction);
        }
        self.sga.sessions.fetch_sub(1, Ordering::SeqCst);
        if !std::thread::panicking() {
            assert_no_latch_held();
        }
    }
}
