//! How a session reads: every statement sees what had been committed when it began, and what its own transaction has
//! done. A row that another transaction has changed since is followed back through undo records, which may have to be
//! read from the datafile, to the version that the statement sees. Where the undo has been used again, that is an
//! error.

use super::Session;
use crate::block::heap::{self, RowKind};
use crate::block::{BlockAddress, RowId, RowVersion, transaction_table, undo};
use crate::change::transaction::statement_scn;
use crate::error::{KernelError, Result};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::table::Table;
use crate::transaction::slot_of;
use crate::transaction::undo_record::{RowBefore, StoredUndo, UndoRecord};
use crate::transaction::visibility::Visibility;

/// One statement's view.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    /// Transactions that had ended by this SCN are seen.
    scn: u64,
    began_ns: u64,
    /// So are the changes of this one, which it belongs to.
    own: Option<u64>,
}

/// What a slot holds; `None`: it is empty.
type Held = Option<(RowKind, Vec<u8>)>;

/// Where the way back from a row led.
enum WayBack {
    /// To what the statement sees.
    Seen(Held),
    /// Nowhere: an undo record of this transaction is not where it was.
    Lost(u64),
}

impl Session {
    /// Reads a row; `read` gets its bytes, and must be short.
    pub async fn read_row<T>(&mut self, row: RowId, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let scn = statement_scn(&self.sga);
        let found = self.read_as_of(scn, || self.statement(scn), row, read);
        found.await?.ok_or(KernelError::NoSuchRow { row })
    }

    /// Reads a row as the statement of an SCN sees it; `None`: there is none. `read` gets its bytes where they lie, if
    /// that is what is seen; else the `statement` is asked for.
    pub(super) async fn read_as_of<T>(
        &self,
        scn: u64,
        statement: impl FnOnce() -> Statement,
        row: RowId,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let sga = &*self.sga;
        {
            let pin = sga.cache.get(sga, &self.waits, row.address).await?;
            let block = pin.read(sga, &self.waits).await?;
            if self.sees(heap::version(&block, row.slot), scn) {
                match heap::stored(&block, row.slot) {
                    Some((RowKind::Row, bytes)) => return Ok(Some(read(bytes))),
                    Some((RowKind::Forward, _)) => {}
                    _ => return Ok(None),
                }
            }
        }
        let found = self.row_as_of(statement(), row).await?;
        Ok(found.map(|bytes| read(&bytes)))
    }

    /// Reads every row of `count` blocks from block number `first`, with multi-block reads, all as of one moment;
    /// `read` gets each row's rowid and bytes, those of a block in no order. A row that has migrated is read with the
    /// block of its rowid. Ends early at the end of the table.
    pub async fn scan(
        &mut self,
        table: &Table,
        first: u64,
        count: u64,
        read: impl FnMut(RowId, &[u8]),
    ) -> Result<()> {
        let scn = statement_scn(&self.sga);
        self.scan_as_of(table, first, count, scn, read).await
    }

    /// The same as of an SCN that a statement began at, of which this is a part.
    pub(crate) async fn scan_as_of(
        &mut self,
        table: &Table,
        first: u64,
        count: u64,
        scn: u64,
        mut read: impl FnMut(RowId, &[u8]),
    ) -> Result<()> {
        let planted = self.sga.settings.has_planted(PlantedFault::ScanSeesLatest);
        let statement = self.statement(if planted { u64::MAX } else { scn });
        let mut number = first;
        let end = first.saturating_add(count);
        let mut elsewhere = Vec::new();
        while number < end {
            let Some((address, in_extent)) = table.space.run(number) else {
                break;
            };
            let run = u64::from(in_extent)
                .min(end - number)
                .min(self.sga.multiblock_read_blocks as u64) as u32;
            number += self
                .scan_run(statement.scn, address, run, &mut read, &mut elsewhere)
                .await?;
            // With no block pinned: sessions that hold buffers and want more could wait for each other.
            for row in elsewhere.drain(..) {
                if let Some(bytes) = self.row_as_of(statement, row).await? {
                    read(row, &bytes);
                }
            }
        }
        Ok(())
    }

    /// Reads the rows of up to `count` blocks from `first`; notes those that have to be looked for elsewhere. Returns
    /// how many blocks it were.
    async fn scan_run(
        &self,
        scn: u64,
        first: BlockAddress,
        count: u32,
        read: &mut impl FnMut(RowId, &[u8]),
        elsewhere: &mut Vec<RowId>,
    ) -> Result<u64> {
        let sga = &*self.sga;
        let pins = sga.cache.get_run(sga, &self.waits, first, count).await?;
        for pin in &pins {
            let block = pin.read(sga, &self.waits).await?;
            let address = pin.address();
            let slots = if heap::is_heap(&block) {
                heap::slots(&block)
            } else {
                0
            };
            for slot in 0..slots {
                let row = RowId { address, slot };
                if !self.sees(heap::version(&block, slot), scn) {
                    elsewhere.push(row);
                    continue;
                }
                match heap::stored(&block, slot) {
                    Some((RowKind::Row, bytes)) => read(row, bytes),
                    Some((RowKind::Forward, _)) => elsewhere.push(row),
                    Some((RowKind::Migrated, _)) | None => {}
                }
            }
        }
        Ok(pins.len() as u64)
    }

    pub(super) fn statement(&self, scn: u64) -> Statement {
        Statement {
            scn,
            began_ns: self.sga.env.now(),
            own: self.transaction.as_ref().map(|transaction| transaction.id),
        }
    }

    /// True when a version is seen for certain; false when more must be looked at.
    fn sees(&self, version: RowVersion, scn: u64) -> bool {
        let transaction = version.transaction;
        if transaction == 0 || self.reads_dirty() {
            return true;
        }
        if self
            .transaction
            .as_ref()
            .is_some_and(|own| own.id == transaction)
        {
            return true;
        }
        let (slot, wrap) = slot_of(transaction);
        self.sga.undo.endings().visibility(slot, wrap, scn) == Visibility::Visible
    }

    fn reads_dirty(&self) -> bool {
        self.sga.settings.has_planted(PlantedFault::DirtyRead)
    }

    /// Whether the statement sees what a transaction has done, at any cost.
    async fn visibility(&self, statement: Statement, transaction: u64) -> Result<Visibility> {
        let is_own = statement.own == Some(transaction);
        if transaction == 0 || is_own || self.reads_dirty() {
            return Ok(Visibility::Visible);
        }
        let sga = &*self.sga;
        let (slot, wrap) = slot_of(transaction);
        let look = || sga.undo.endings().visibility(slot, wrap, statement.scn);
        if look() != Visibility::Ending {
            return Ok(look());
        }
        let (address, place) = sga.undo.slot_place(slot);
        let pin = sga.cache.get(sga, &self.waits, address).await?;
        let block = pin.read(sga, &self.waits).await?;
        let entry = transaction_table::entry(&block, usize::from(place));
        Ok(if entry.wrap != wrap {
            look()
        } else if entry.active || entry.ended > statement.scn {
            Visibility::Later
        } else {
            Visibility::Visible
        })
    }

    /// A row as the statement sees it, wherever it was then; `None`: there was none.
    async fn row_as_of(&self, statement: Statement, row: RowId) -> Result<Option<Vec<u8>>> {
        let place = match self.slot_as_of(statement, row).await? {
            Some((RowKind::Row, bytes)) => return Ok(Some(bytes)),
            Some((RowKind::Forward, bytes)) => RowId::from_bytes(&bytes),
            _ => return Ok(None),
        };
        match self.slot_as_of(statement, place).await? {
            Some((RowKind::Migrated, mut bytes)) if RowId::from_bytes(&bytes) == row => {
                bytes.drain(..RowId::BYTES);
                Ok(Some(bytes))
            }
            _ => {
                let what = format!("is not row {row}, which has migrated there");
                Err(self.damaged(place, &what))
            }
        }
    }

    /// What a slot of a block that was read says cannot be.
    fn damaged(&self, place: RowId, what: &str) -> KernelError {
        let device = self.sga.storage.datafile(place.address.file);
        KernelError::DamagedBlock {
            address: place.address,
            device: device.name().to_string(),
            reason: format!("what slot {} holds {what}", place.slot),
        }
    }

    fn has_slot_of(&self, transaction: u64) -> bool {
        self.sga.undo.endings().has_slot(slot_of(transaction).0)
    }

    /// What the statement sees in a slot.
    async fn slot_as_of(&self, statement: Statement, place: RowId) -> Result<Held> {
        let mut lost_before = None;
        loop {
            let (version, held) = self.copy_slot(place).await?;
            let lost = match self
                .way_back(statement, place, version, held.clone())
                .await?
            {
                WayBack::Seen(held) => return Ok(held),
                WayBack::Lost(transaction) => transaction,
            };
            // A roll-back takes undo records away, and gives the row an earlier version with each: look again.
            if lost == version.transaction && lost_before != Some(version) {
                lost_before = Some(version);
                continue;
            }
            let planted = PlantedFault::OverwrittenUndoServed;
            if self.sga.settings.has_planted(planted) {
                return Ok(held);
            }
            return Err(self.snapshot_too_old(statement, place));
        }
    }

    fn snapshot_too_old(&self, statement: Statement, row: RowId) -> KernelError {
        probe::hit(Probe::SnapshotTooOld);
        KernelError::SnapshotTooOld {
            row,
            ran_ms: (self.sga.env.now() - statement.began_ns) / 1_000_000,
            undo_blocks: self.sga.undo.undo_blocks(),
        }
    }

    async fn copy_slot(&self, place: RowId) -> Result<(RowVersion, Held)> {
        let sga = &*self.sga;
        let pin = sga.cache.get(sga, &self.waits, place.address).await?;
        let block = pin.read(sga, &self.waits).await?;
        let held = heap::stored(&block, place.slot).map(|(kind, bytes)| (kind, bytes.to_vec()));
        Ok((heap::version(&block, place.slot), held))
    }

    /// Goes back from what a slot holds, change by change, to what the statement sees. Error when damaged undo leads in
    /// a circle: no version comes twice on an honest way (Brent 1980, "An Improved Monte Carlo Factorization
    /// Algorithm", for finding that out without keeping all of them).
    async fn way_back(
        &self,
        statement: Statement,
        place: RowId,
        mut version: RowVersion,
        mut held: Held,
    ) -> Result<WayBack> {
        let (mut landmark, mut steps, mut steps_to_next) = (version, 0_u64, 1);
        loop {
            match self.visibility(statement, version.transaction).await? {
                Visibility::Visible => return Ok(WayBack::Seen(held)),
                Visibility::Unknown if !self.has_slot_of(version.transaction) => {
                    return Err(self.damaged(place, "was changed by a transaction that cannot be"));
                }
                // To be on the safe side of a bound: it may have ended before the statement began.
                Visibility::Unknown => return Err(self.snapshot_too_old(statement, place)),
                Visibility::Later | Visibility::Ending => {}
            }
            probe::hit(Probe::EarlierVersionRead);
            match self.undo_change(place, version, &mut held).await? {
                Some(previous) if previous == landmark => {
                    return Err(self.damaged(place, "has undo that leads back to itself"));
                }
                Some(previous) => version = previous,
                None => return Ok(WayBack::Lost(version.transaction)),
            }
            steps += 1;
            if steps == steps_to_next {
                (landmark, steps, steps_to_next) = (version, 0, 2 * steps_to_next);
            }
        }
    }

    /// Undoes the change that made a version in the copy of what its slot held; returns the version before. `None` when
    /// the undo record is not where it was written. That is told by the contents of that place: a whole record, of that
    /// transaction, for that row. No transaction's name is used twice, and it writes to no place of the undo segment
    /// twice unless it rolls back.
    async fn undo_change(
        &self,
        place: RowId,
        version: RowVersion,
        held: &mut Held,
    ) -> Result<Option<RowVersion>> {
        let sga = &*self.sga;
        let pin = sga.cache.get(sga, &self.waits, version.undo_block).await?;
        let block = pin.read(sga, &self.waits).await?;
        let stored = undo::starting_at(&block, usize::from(version.undo_offset));
        let Some(stored) = stored.and_then(StoredUndo::parse) else {
            return Ok(None);
        };
        let was = match stored.record {
            UndoRecord::Row { row, was } if row == place => was,
            _ => return Ok(None),
        };
        if stored.transaction != version.transaction {
            return Ok(None);
        }
        sga.statistics.add_undo_record_applied();
        match was {
            RowBefore::Whole { kind, bytes } => *held = Some((kind, bytes.to_vec())),
            RowBefore::Patch { offset, bytes } => {
                let offset = usize::from(offset);
                let row = held.as_mut().map(|(_, row)| row);
                let patched = row.and_then(|row| row.get_mut(offset..offset + bytes.len()));
                let other = || self.damaged(place, "is not what its undo is of");
                patched.ok_or_else(other)?.copy_from_slice(bytes);
            }
            RowBefore::Nothing => *held = None,
        }
        Ok(Some(stored.previous))
    }
}
