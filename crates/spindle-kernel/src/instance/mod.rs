//! The instance: the embedded database, its processes and its public face. Made of a world ([`Env`]) and the devices of
//! a database ([`Storage`]); knows no files, no SQL and no terminal.

mod create;
mod devices;
mod recall;

use std::sync::Arc;

use spindle_io::sync::atomic::Ordering;
use spindle_io::sync::{Latch, has_planted};
use spindle_io::{Arena, Env, Join};

use crate::control_file::UNDO_SEGMENT;
use crate::control_file::{ControlFile, Segment};
use crate::error::{KernelError, Result};
use crate::index::{Index, IndexKey};
use crate::index_build;
use crate::processes::checkpoint::{self, hold_back};
use crate::processes::{pmon, start_processes};
use crate::recovery::{RecoveryReport, recover};
use crate::session::Session;
use crate::settings::KernelSettings;
use crate::sga::Sga;
use crate::statistics::StatisticsSnapshot;
use crate::storage::Storage;
use crate::table::{self, RowsOf, Table};
use crate::wait_event::{ProcessWaits, WaitTotal};

pub use create::create_database;
use devices::{check_file_headers, check_fits, check_storage};
use recall::{recall_index, recall_table};

/// Planted race: checkpoints are not held back until recovery is done.
pub(crate) const CHECKPOINT_BEFORE_RECOVERY: &str = "a checkpoint may be made before recovery";

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Make a checkpoint, so that the next start has nothing to recover. Sessions must have ended.
    Normal,
    /// Stop at once; the next start recovers.
    Abort,
}

/// A segment and its space, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSpace {
    /// Its name.
    pub name: String,
    /// Extents it has.
    pub extents: usize,
    /// Bytes in them.
    pub bytes: u64,
}

/// A running instance.
pub struct Instance {
    sga: Arc<Sga>,
    processes: Vec<Join>,
    tables: Latch<Vec<Arc<Table>>>,
    waits: Arc<ProcessWaits>,
    recovery: RecoveryReport,
}

impl Instance {
    /// Starts the instance on an existing database, recovering it if it was not shut down.
    pub async fn startup(
        env: &Arc<dyn Env>,
        storage: &Storage,
        settings: &KernelSettings,
    ) -> Result<Instance> {
        check_storage(storage, settings)?;
        let control = ControlFile::open(Arc::clone(&storage.control)).await?;
        check_fits(&control, storage, settings)?;
        let sga = Sga::new(env, storage, settings, control)?;
        check_file_headers(&sga).await?;
        let waits = sga.waits.register();
        // Before CKPT runs: a checkpoint made now would have recovery begin where nothing has been read yet.
        let held_back = hold_back(&sga).await;
        let held_back = (!has_planted(CHECKPOINT_BEFORE_RECOVERY)).then_some(held_back);
        let processes = start_processes(&sga);
        let mut instance = Instance {
            sga: Arc::clone(&sga),
            processes,
            tables: Latch::default(),
            waits,
            recovery: RecoveryReport::default(),
        };
        instance.recovery = match recover(&sga, &instance.waits, held_back).await {
            Ok(report) => report,
            Err(error) => {
                // The processes have the devices open: they end before anyone learns of the failure.
                instance.shutdown(Shutdown::Abort).await?;
                return Err(error);
            }
        };
        match instance.open_tables().await {
            Ok(()) => Ok(instance),
            Err(error) => {
                instance.shutdown(Shutdown::Abort).await?;
                Err(error)
            }
        }
    }

    /// Opens what the dictionary lists.
    async fn open_tables(&self) -> Result<()> {
        let contents = self.sga.control.read(Clone::clone);
        for segment in &contents.segments {
            let is_index = contents
                .indexes
                .iter()
                .any(|index| index.segment == segment.number);
            if segment.number != UNDO_SEGMENT && !is_index {
                let table = Arc::new(Table::new(&self.sga, segment));
                recall_table(&self.sga, &self.waits, &table).await?;
                self.tables.lock().push(table);
            }
        }
        for of in &contents.indexes {
            let index = Arc::new(Index::new(&self.sga, &contents, of));
            recall_index(&self.sga, &self.waits, &index).await?;
            let tables = self.tables.lock();
            let table = tables.iter().find(|table| table.segment == of.table);
            self.adopt(table.expect("an index has a table"), &index);
        }
        Ok(())
    }

    /// What recovery did at the start.
    pub fn recovery(&self) -> RecoveryReport {
        self.recovery
    }

    /// Makes a table, of rows of a given length or of columns, and loads `rows` rows into it past the buffer cache.
    /// `fill` is called for each in order with as many random bytes as the longest has, to overwrite in part and
    /// perhaps to make fewer.
    ///
    /// # Errors
    /// [`KernelError::RowsTooLong`]; [`KernelError::ControlFile`] when the dictionary has no room for its columns.
    pub async fn create_table(
        &self,
        name: &str,
        of: impl Into<RowsOf>,
        rows: u64,
        fill: impl FnMut(u64, &mut Vec<u8>),
    ) -> Result<Arc<Table>> {
        let never = || false;
        self.create_table_unless(name, of, rows, fill, never).await
    }

    /// The same, until `is_interrupted`, which is asked before each extent.
    ///
    /// # Errors
    /// [`KernelError::LoadInterrupted`] then.
    pub async fn create_table_unless(
        &self,
        name: &str,
        of: impl Into<RowsOf>,
        rows: u64,
        fill: impl FnMut(u64, &mut Vec<u8>),
        is_interrupted: impl Fn() -> bool,
    ) -> Result<Arc<Table>> {
        let table = table::create(&self.sga, name, of.into(), rows, fill, is_interrupted);
        let table = table.await?;
        self.tables.lock().push(Arc::clone(&table));
        Ok(table)
    }

    fn adopt(&self, table: &Table, index: &Arc<Index>) {
        table.add_index(index);
        self.sga.keys.add(index.key());
    }

    /// Makes an index of a table and of the rows that it has. Its key is put together from columns of the table, or
    /// from bytes of the row where the table has none, in their order; it must not be longer than an eighth of a block.
    /// Rows of the table must not change meanwhile.
    ///
    /// # Errors
    /// [`KernelError::DuplicateKey`] when it shall be unique and two rows have the same key;
    /// [`KernelError::KeysTooLong`]; [`KernelError::Columns`], [`KernelError::KeyOfBytes`] and
    /// [`KernelError::NoColumns`] when the table has no such key.
    pub async fn create_index(
        &self,
        table: &Table,
        name: &str,
        is_unique: bool,
        key: IndexKey<'_>,
    ) -> Result<Arc<Index>> {
        let mut session = self.session();
        let index =
            index_build::create(&self.sga, &mut session, table, name, is_unique, key).await?;
        self.adopt(table, &index);
        Ok(index)
    }

    /// Every table, in the order in which they were made. Columns and indexes are theirs.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.tables.lock().clone()
    }

    /// The table of a name.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        let tables = self.tables.lock();
        let found = tables.iter().find(|table| table.name() == name);
        found.cloned().ok_or_else(|| KernelError::NoSuchTable {
            name: name.to_string(),
        })
    }

    /// A new session.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.sga))
    }

    /// Makes a checkpoint and returns when it is complete.
    pub async fn checkpoint(&self) -> Result<()> {
        checkpoint::perform(&self.sga, &self.waits).await
    }

    /// Waits so far, every event.
    pub fn wait_events(&self) -> Vec<WaitTotal> {
        self.sga.waits.totals()
    }

    /// Those of sessions alone.
    pub fn session_wait_events(&self) -> Vec<WaitTotal> {
        self.sga.waits.session_totals()
    }

    /// Counters so far.
    pub fn statistics(&self) -> StatisticsSnapshot {
        let reads = self.sga.waits.reads();
        let block_bytes = self.sga.settings.block_bytes;
        self.sga.statistics.snapshot(reads, block_bytes)
    }

    /// Bytes in the buffer cache that are changed and not yet written.
    pub fn dirty_bytes(&self) -> u64 {
        (self.sga.cache.dirty_buffers() * self.sga.settings.block_bytes) as u64
    }

    /// Space of every segment.
    pub fn segments(&self) -> Vec<SegmentSpace> {
        let block_bytes = self.sga.settings.block_bytes as u64;
        self.sga.control.read(|contents| {
            let space = |segment: &Segment| SegmentSpace {
                name: segment.name.clone(),
                extents: segment.extents.len(),
                bytes: segment.blocks() * block_bytes,
            };
            contents.segments.iter().map(space).collect()
        })
    }

    /// The memory that I/Os read into and write from, to be registered with devices that want that.
    pub fn arenas(&self) -> Vec<Arc<Arena>> {
        vec![
            Arc::clone(self.sga.cache.arena()),
            Arc::clone(self.sga.log.arena()),
        ]
    }

    /// Why the instance failed, if it did.
    pub fn failure(&self) -> Option<KernelError> {
        self.sga.health.check_failed().err()
    }

    /// Stops the instance and returns when its processes have ended.
    pub async fn shutdown(mut self, how: Shutdown) -> Result<()> {
        let checkpointed = match how {
            Shutdown::Normal => {
                let have_ended = self.sga.sessions.load(Ordering::SeqCst) == 0;
                // What cannot be rolled back now, the next start will.
                let _ = pmon::clean_up(&self.sga, &self.waits).await;
                let unlocked = match have_ended {
                    true => self.sga.check_unlocked(),
                    false => Ok(()),
                };
                match unlocked {
                    Ok(()) => checkpoint::perform(&self.sga, &self.waits).await,
                    broken => broken,
                }
            }
            Shutdown::Abort => {
                self.sga.fail("shut down with abort".to_string());
                Ok(())
            }
        };
        self.sga.health.stop();
        for process in std::mem::take(&mut self.processes) {
            // A process that panicked has said so itself.
            let _ = process.ended().await;
        }
        checkpointed?;
        match how {
            Shutdown::Normal => self.sga.check_unused(),
            Shutdown::Abort => Ok(()),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.sga.health.stop();
    }
}
