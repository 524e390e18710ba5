//! The instance: the embedded database, its processes and its public face. Made of a world ([`Env`]) and the devices of
//! a database ([`Storage`]); knows no files, no SQL and no terminal.

use std::sync::Arc;

use spindle_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spindle_io::sync::{Latch, Semaphore, has_planted};
use spindle_io::{Arena, BlockDevice, Env, Join, Request, Submission};

use crate::block::{self, BlockAddress, BlockKind, transaction_table};
use crate::buffer_cache::BufferCache;
use crate::buggify::{Buggify, Switch};
use crate::checkpoint::{self, Checkpoint, hold_back};
use crate::control_file::{CheckpointRecord, Contents, ControlFile, Extent, Segment, read_bytes};
use crate::dbwr::Dbwr;
use crate::double_write;
use crate::error::{KernelError, Result};
use crate::invariant::are_checked;
use crate::lgwr::{LOG_FILE_HEADER_BYTES, LogFiles, seal_file_header};
use crate::log::{FIRST_POSITION, Log};
use crate::pmon::{self, Pmon};
use crate::processes::start_processes;
use crate::recovery::{RecoveryReport, recover};
use crate::ring_marks::Location;
use crate::row_lock::RowLocks;
use crate::session::Session;
use crate::settings::{PlantedFault, Settings, TornBlocks};
use crate::statistics::{Statistics, StatisticsSnapshot};
use crate::table::{self, Table, format_unused, write_extent};
use crate::undo::{UNDO_FILE, UNDO_SEGMENT, UndoSegment, table_blocks};
use crate::wait_event::{ProcessWaits, WaitEvents, WaitTotal};

/// The devices of a database.
#[derive(Clone)]
pub struct Storage {
    /// The control file, at least [`crate::CONTROL_FILE_BYTES`] long.
    pub control: Arc<dyn BlockDevice>,
    /// The online log files, at least two.
    pub redo: Vec<Arc<dyn BlockDevice>>,
    /// The undo tablespace's datafile.
    pub undo: Arc<dyn BlockDevice>,
    /// The data tablespace's datafiles, at least one.
    pub data: Vec<Arc<dyn BlockDevice>>,
    /// The areas of [`TornBlocks::DoubleWrite`], [`crate::double_write_bytes`] long; looked at by every recovery when
    /// there.
    pub double_write: Option<Arc<dyn BlockDevice>>,
}

impl Storage {
    /// The datafile of a number: 0 is undo's.
    pub(crate) fn datafile(&self, file: u16) -> &Arc<dyn BlockDevice> {
        if file == UNDO_FILE {
            &self.undo
        } else {
            &self.data[usize::from(file) - 1]
        }
    }

    /// All datafiles, undo's first.
    pub(crate) fn datafiles(&self) -> impl Iterator<Item = &Arc<dyn BlockDevice>> {
        std::iter::once(&self.undo).chain(&self.data)
    }
}

/// Whether the instance can go on.
#[derive(Default)]
pub(crate) struct Health {
    failed: AtomicBool,
    stopping: AtomicBool,
    reason: Latch<Option<String>>,
}

impl Health {
    /// Error when the instance has failed or stops.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_stopping() {
            Err(self.why())
        } else {
            Ok(())
        }
    }

    /// Error when the instance has failed.
    pub(crate) fn check_failed(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            Err(self.why())
        } else {
            Ok(())
        }
    }

    /// True when the processes shall end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire) || self.failed.load(Ordering::Acquire)
    }

    /// Why not.
    pub(crate) fn why(&self) -> KernelError {
        match &*self.reason.lock() {
            Some(reason) => KernelError::Aborted {
                reason: reason.clone(),
            },
            None => KernelError::ShuttingDown,
        }
    }
}

/// All that the processes and sessions of an instance share: its SGA.
pub(crate) struct Shared {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) settings: Settings,
    pub(crate) storage: Storage,
    pub(crate) control: ControlFile,
    pub(crate) cache: BufferCache,
    pub(crate) log: Log,
    pub(crate) log_files: LogFiles,
    pub(crate) dbwr: Dbwr,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) pmon: Pmon,
    pub(crate) undo: UndoSegment,
    pub(crate) locks: RowLocks,
    pub(crate) waits: WaitEvents,
    pub(crate) statistics: Statistics,
    pub(crate) health: Health,
    /// One flush of the datafiles at a time.
    flush_turn: Semaphore,
    pub(crate) buggify: Buggify,
    /// Sessions that have not ended.
    pub(crate) sessions: AtomicUsize,
    /// One change of the space map at a time.
    pub(crate) space_turn: Semaphore,
    /// Blocks of a multi-block read, held down where the cache is tiny.
    pub(crate) multiblock_read_blocks: usize,
}

impl Shared {
    /// The instance cannot keep its promises any longer: everyone who waits gets an error.
    pub(crate) fn fail(&self, reason: String) {
        self.health.reason.lock().get_or_insert(reason);
        self.health.failed.store(true, Ordering::Release);
        self.wake_all();
    }

    /// A rare pause, when its switch is on.
    pub(crate) async fn pause(&self, switch: Switch) {
        self.buggify.pause(&*self.env, switch).await;
    }

    /// A process, or a session in its stead, could not do its work.
    pub(crate) fn process_failed(&self, process: &str, error: &KernelError) {
        // Work given up because the instance stops is no failure.
        if *error != KernelError::ShuttingDown {
            self.fail(format!("{process}: {error}"));
        }
    }

    /// Makes every completed write to a datafile durable. A failure fails the instance: the system tells of it once,
    /// and the next flush may succeed although the bytes are lost. So flushes take turns: one that overlaps with a
    /// failed one would succeed before anybody has heard of the failure, and a checkpoint would count on it.
    pub(crate) async fn flush_datafiles(&self) -> Result<()> {
        self.flush(self.storage.datafiles()).await
    }

    /// Makes every completed write to these datafiles durable, as [`Shared::flush_datafiles`].
    pub(crate) async fn flush(
        &self,
        datafiles: impl Iterator<Item = &Arc<dyn BlockDevice>>,
    ) -> Result<()> {
        let turn = self.flush_turn.acquire().await;
        let _turn = turn.expect("the semaphore is never closed");
        self.health.check_failed()?;
        let ignored = self.settings.has_planted(PlantedFault::FlushErrorIgnored);
        for device in datafiles {
            if let Err(error) = device.submit(Request::flush()).await.result
                && !ignored
            {
                self.fail(error.to_string());
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn wake_all(&self) {
        self.locks.wake_all();
        self.log.wake_all();
        self.cache.wake_all();
        self.dbwr.wake_all();
        self.checkpoint.wake_all();
        self.pmon.wake_all();
    }

    /// When sessions and processes have ended, nobody has anything of the instance.
    fn check_unused(&self) -> Result<()> {
        if self.sessions.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        self.require_ok(self.cache.check_unused())?;
        self.require_ok(self.log.check_unused())
    }

    /// When sessions have ended, and then PMON has cleaned up behind them, no row is locked, unless something could not
    /// be rolled back. Before the instance stops: who is cut off by that may keep locks.
    fn check_unlocked(&self) -> Result<()> {
        match self.pmon.is_done() {
            true => self.require_ok(self.locks.check_unused()),
            false => Ok(()),
        }
    }

    /// Fails the instance unless `holds` says yes; `otherwise` says what is wrong.
    #[inline]
    pub(crate) fn require(
        &self,
        holds: impl FnOnce() -> bool,
        otherwise: impl FnOnce() -> String,
    ) -> Result<()> {
        if !are_checked() || holds() {
            return Ok(());
        }
        Err(self.is_broken(otherwise()))
    }

    /// Fails the instance if something was found broken.
    pub(crate) fn require_ok(&self, found: std::result::Result<(), String>) -> Result<()> {
        found.map_err(|what| self.is_broken(what))
    }

    #[cold]
    fn is_broken(&self, what: String) -> KernelError {
        self.fail(format!("the database found itself broken: {what}"));
        self.health.why()
    }

    /// The number by which the files of one database know each other.
    pub(crate) fn database_id(&self) -> u64 {
        self.control.read(|contents| contents.database)
    }
}

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
    shared: Arc<Shared>,
    processes: Vec<Join>,
    tables: Latch<Vec<Arc<Table>>>,
    waits: Arc<ProcessWaits>,
    recovery: RecoveryReport,
}

/// Formats the devices as a new, empty database. Whatever they held is lost. `database` is the number by which the
/// files will know each other; `transactions` at once can change data.
pub async fn create_database(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &Settings,
    database: u64,
    transactions: usize,
) -> Result<()> {
    check_storage(storage, settings)?;
    let block_bytes = settings.block_bytes;
    let blocks_of = |device: &Arc<dyn BlockDevice>| {
        (device.limits().capacity_bytes / block_bytes as u64) as u32
    };
    let file_blocks: Vec<u32> = storage.datafiles().map(blocks_of).collect();
    let table_blocks = table_blocks(block_bytes, transactions);
    let undo_extent = Extent {
        file: UNDO_FILE,
        first_block: 1,
        blocks: file_blocks[0] - 1,
    };
    if undo_extent.blocks < table_blocks + transactions as u32 {
        return Err(KernelError::Storage {
            device: storage.undo.name().to_string(),
            reason: format!(
                "{} blocks of undo are too few for {transactions} transactions",
                undo_extent.blocks
            ),
        });
    }
    let mut next_free = vec![1; file_blocks.len()];
    next_free[0] = file_blocks[0];
    let start = Location {
        position: FIRST_POSITION,
        file: 0,
        sequence: 1,
        offset: LOG_FILE_HEADER_BYTES,
    };
    let undo_segment = Segment {
        number: UNDO_SEGMENT,
        name: "undo".to_string(),
        row_bytes: table_blocks,
        loaded_rows: 0,
        extents: vec![undo_extent],
    };
    let contents = Contents {
        database,
        block_bytes: block_bytes as u32,
        checkpoint: CheckpointRecord {
            position: FIRST_POSITION,
            location: start,
        },
        next_free,
        file_blocks,
        segments: vec![undo_segment],
    };
    write_log_headers(storage, database).await?;
    let control = ControlFile::create(Arc::clone(&storage.control), contents);
    let shared = make_shared(env, storage, settings, control)?;
    write_file_headers(&shared).await?;
    if let Some(areas) = &storage.double_write {
        double_write::create(&**areas, block_bytes).await?;
    }
    format_undo_file(&shared, undo_extent, table_blocks).await?;
    shared.flush_datafiles().await?;
    // Both copies, so that none of an earlier database's control file is left.
    shared.control.update_both(&shared, |_| Ok(())).await
}

fn check_storage(storage: &Storage, settings: &Settings) -> Result<()> {
    let block_bytes = settings.block_bytes;
    assert!(
        block_bytes.is_power_of_two() && (2048..=32768).contains(&block_bytes),
        "a block has 2, 4, 8, 16 or 32 KiB, not {block_bytes} bytes"
    );
    // A record holds at most three images and the vectors of one change.
    assert!(
        settings.log_buffer_bytes >= 16 * block_bytes
            && settings.log_buffer_bytes.is_multiple_of(4096),
        "a log buffer of {} bytes is too small for blocks of {block_bytes}",
        settings.log_buffer_bytes
    );
    for device in storage.datafiles() {
        let sector_bytes = device.limits().alignment_bytes;
        if sector_bytes as usize > block_bytes {
            return Err(KernelError::Storage {
                device: device.name().to_string(),
                reason: format!(
                    "blocks of {block_bytes} bytes are smaller than its sectors of {sector_bytes}"
                ),
            });
        }
    }
    match settings.torn_blocks {
        TornBlocks::Images => {}
        TornBlocks::DoubleWrite => double_write::check(storage, settings)?,
        TornBlocks::Atomic => check_atomic(storage, block_bytes)?,
    }
    let control = storage.control.limits();
    if control.capacity_bytes < crate::CONTROL_FILE_BYTES || control.alignment_bytes > 4096 {
        return Err(KernelError::Storage {
            device: storage.control.name().to_string(),
            reason: format!("a control file takes {} bytes", crate::CONTROL_FILE_BYTES),
        });
    }
    Ok(())
}

fn check_atomic(storage: &Storage, block_bytes: usize) -> Result<()> {
    for device in storage.datafiles() {
        let promised_bytes = device.limits().atomic_write_bytes;
        if (promised_bytes as usize) < block_bytes {
            return Err(KernelError::Storage {
                device: device.name().to_string(),
                reason: format!(
                    "torn_blocks is `atomic`, but the device promises not to tear writes of up to {promised_bytes} bytes \
                     only, and a block has {block_bytes}: choose `images` or `double_write`"
                ),
            });
        }
    }
    Ok(())
}

async fn write_log_headers(storage: &Storage, database: u64) -> Result<()> {
    for (index, device) in storage.redo.iter().enumerate() {
        // Only the first file is in use; the others bear a number that no later one continues.
        let (sequence, position) = if index == 0 {
            (1, FIRST_POSITION)
        } else {
            (0, 0)
        };
        write_header(&**device, LOG_FILE_HEADER_BYTES as usize, |bytes| {
            seal_file_header(bytes, database, sequence, position);
        })
        .await?;
    }
    Ok(())
}

async fn write_file_headers(shared: &Shared) -> Result<()> {
    for (file, device) in shared.storage.datafiles().enumerate() {
        let address = BlockAddress {
            file: file as u16,
            block: 0,
        };
        write_header(&**device, shared.settings.block_bytes, |bytes| {
            bytes.fill(0);
            block::format(bytes, BlockKind::FileHeader, address, 0);
            bytes[block::HEADER_BYTES..block::HEADER_BYTES + 8]
                .copy_from_slice(&shared.database_id().to_le_bytes());
            block::seal(bytes);
        })
        .await?;
    }
    Ok(())
}

async fn write_header(
    device: &dyn BlockDevice,
    length: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Result<()> {
    let arena = Arena::new(length, 1).map_err(|error| KernelError::Memory {
        what: "a file header",
        reason: error.to_string(),
    })?;
    let frame = arena.allocate().expect("the arena has a frame");
    let mut hold = frame.try_write_hold().expect("the frame is ours");
    fill(&mut hold);
    let request = Request::write(0, vec![hold.share(length)], true, Submission::Alone);
    Ok(device.submit(request).await.result?)
}

async fn format_undo_file(shared: &Shared, extent: Extent, table_blocks: u32) -> Result<()> {
    let mut filler = shared.env.rng(u64::from(UNDO_SEGMENT));
    write_extent(shared, extent, |step, address, bytes| {
        if step < table_blocks {
            transaction_table::format_table(bytes, address, UNDO_SEGMENT);
            block::seal(bytes);
        } else {
            format_unused(address, bytes, &mut filler);
        }
    })
    .await
}

pub(crate) fn make_shared(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &Settings,
    control: ControlFile,
) -> Result<Shared> {
    let dbwr = Dbwr::new(settings.writers);
    let cache = BufferCache::new(
        settings.buffer_cache_bytes,
        settings.block_bytes,
        dbwr.calls(),
    )?;
    let undo_segment = control.read(|contents| contents.segments[UNDO_SEGMENT as usize].clone());
    let buffers = cache.arena().frames();
    Ok(Shared {
        env: Arc::clone(env),
        log: Log::new(settings.log_buffer_bytes, FIRST_POSITION)?,
        log_files: LogFiles::new(storage.redo.clone(), settings)?,
        dbwr,
        checkpoint: Checkpoint::new(),
        pmon: Pmon::new(),
        undo: UndoSegment::new(&undo_segment, undo_segment.row_bytes, settings.block_bytes),
        locks: RowLocks::new(),
        waits: WaitEvents::default(),
        statistics: Statistics::default(),
        health: Health::default(),
        flush_turn: Semaphore::new(1),
        buggify: Buggify::new(&**env, settings.switches),
        sessions: AtomicUsize::new(0),
        space_turn: Semaphore::new(1),
        multiblock_read_blocks: settings.multiblock_read_blocks.min(buffers / 64).max(1),
        settings: settings.clone(),
        storage: storage.clone(),
        control,
        cache,
    })
}

impl Instance {
    /// Starts the instance on an existing database, recovering it if it was not shut down.
    pub async fn startup(
        env: &Arc<dyn Env>,
        storage: &Storage,
        settings: &Settings,
    ) -> Result<Instance> {
        check_storage(storage, settings)?;
        let control = ControlFile::open(Arc::clone(&storage.control)).await?;
        check_fits(&control, storage, settings)?;
        let shared = Arc::new(make_shared(env, storage, settings, control)?);
        check_file_headers(&shared).await?;
        let waits = shared.waits.register();
        // Before CKPT runs: a checkpoint made now would have recovery begin where nothing has been read yet.
        let held_back = hold_back(&shared).await;
        let held_back = (!has_planted(CHECKPOINT_BEFORE_RECOVERY)).then_some(held_back);
        let processes = start_processes(&shared);
        let mut instance = Instance {
            shared: Arc::clone(&shared),
            processes,
            tables: Latch::default(),
            waits,
            recovery: RecoveryReport::default(),
        };
        instance.recovery = match recover(&shared, &instance.waits, held_back).await {
            Ok(report) => report,
            Err(error) => {
                // The processes have the devices open: they end before anyone hears of the failure.
                instance.shutdown(Shutdown::Abort).await?;
                return Err(error);
            }
        };
        let block_bytes = settings.block_bytes;
        let tables = instance.shared.control.read(|contents| {
            let tables = contents
                .segments
                .iter()
                .filter(|segment| segment.number != UNDO_SEGMENT);
            tables
                .map(|segment| Arc::new(Table::new(segment, block_bytes)))
                .collect()
        });
        *instance.tables.lock() = tables;
        Ok(instance)
    }

    /// What recovery did at the start.
    pub fn recovery(&self) -> RecoveryReport {
        self.recovery
    }

    /// Makes a table of rows of up to `row_bytes` and loads `rows` rows into it past the buffer cache; `fill` is called
    /// for each in order with `row_bytes` random bytes, to overwrite in part and perhaps to make fewer.
    pub async fn create_table(
        &self,
        name: &str,
        row_bytes: usize,
        rows: u64,
        fill: impl FnMut(u64, &mut Vec<u8>),
    ) -> Result<Arc<Table>> {
        let never = || false;
        self.create_table_unless(name, row_bytes, rows, fill, never)
            .await
    }

    /// The same, until `is_interrupted`, which is asked before each extent.
    ///
    /// # Errors
    /// [`KernelError::LoadInterrupted`] then.
    pub async fn create_table_unless(
        &self,
        name: &str,
        row_bytes: usize,
        rows: u64,
        fill: impl FnMut(u64, &mut Vec<u8>),
        is_interrupted: impl Fn() -> bool,
    ) -> Result<Arc<Table>> {
        let table = table::create(&self.shared, name, row_bytes, rows, fill, is_interrupted);
        let table = table.await?;
        self.tables.lock().push(Arc::clone(&table));
        Ok(table)
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
        Session::new(Arc::clone(&self.shared))
    }

    /// Makes a checkpoint and returns when it is complete.
    pub async fn checkpoint(&self) -> Result<()> {
        checkpoint::perform(&self.shared, &self.waits).await
    }

    /// Waits so far, every event.
    pub fn wait_events(&self) -> Vec<WaitTotal> {
        self.shared.waits.totals()
    }

    /// Those of sessions alone.
    pub fn session_wait_events(&self) -> Vec<WaitTotal> {
        self.shared.waits.session_totals()
    }

    /// Counters so far.
    pub fn statistics(&self) -> StatisticsSnapshot {
        let reads = self.shared.waits.reads();
        let block_bytes = self.shared.settings.block_bytes;
        self.shared.statistics.snapshot(reads, block_bytes)
    }

    /// Bytes in the buffer cache that are changed and not yet written.
    pub fn dirty_bytes(&self) -> u64 {
        (self.shared.cache.dirty_buffers() * self.shared.settings.block_bytes) as u64
    }

    /// Space of every segment.
    pub fn segments(&self) -> Vec<SegmentSpace> {
        let block_bytes = self.shared.settings.block_bytes as u64;
        self.shared.control.read(|contents| {
            let space = |segment: &Segment| SegmentSpace {
                name: segment.name.clone(),
                extents: segment.extents.len(),
                bytes: segment
                    .extents
                    .iter()
                    .map(|extent| u64::from(extent.blocks) * block_bytes)
                    .sum(),
            };
            contents.segments.iter().map(space).collect()
        })
    }

    /// The memory that I/Os read into and write from, to be registered with devices that want that.
    pub fn arenas(&self) -> Vec<Arc<Arena>> {
        vec![
            Arc::clone(self.shared.cache.arena()),
            Arc::clone(self.shared.log.arena()),
        ]
    }

    /// Why the instance failed, if it did.
    pub fn failure(&self) -> Option<KernelError> {
        self.shared.health.check_failed().err()
    }

    /// Stops the instance and returns when its processes have ended.
    pub async fn shutdown(mut self, how: Shutdown) -> Result<()> {
        let checkpointed = match how {
            Shutdown::Normal => {
                let have_ended = self.shared.sessions.load(Ordering::SeqCst) == 0;
                // What cannot be rolled back now, the next start will.
                let _ = pmon::clean_up(&self.shared, &self.waits).await;
                let unlocked = match have_ended {
                    true => self.shared.check_unlocked(),
                    false => Ok(()),
                };
                match unlocked {
                    Ok(()) => checkpoint::perform(&self.shared, &self.waits).await,
                    broken => broken,
                }
            }
            Shutdown::Abort => {
                self.shared.fail("shut down with abort".to_string());
                Ok(())
            }
        };
        self.shared.health.stopping.store(true, Ordering::Release);
        self.shared.wake_all();
        for process in std::mem::take(&mut self.processes) {
            // A process that panicked has said so itself.
            let _ = process.ended().await;
        }
        checkpointed?;
        match how {
            Shutdown::Normal => self.shared.check_unused(),
            Shutdown::Abort => Ok(()),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.shared.health.stopping.store(true, Ordering::Release);
        self.shared.wake_all();
    }
}

fn check_fits(control: &ControlFile, storage: &Storage, settings: &Settings) -> Result<()> {
    let (block_bytes, files) =
        control.read(|contents| (contents.block_bytes, contents.file_blocks.len()));
    let reason = if block_bytes as usize != settings.block_bytes {
        format!(
            "the database has blocks of {block_bytes} bytes, not {}",
            settings.block_bytes
        )
    } else if files != storage.datafiles().count() {
        format!(
            "the database has {files} datafiles, not {}",
            storage.datafiles().count()
        )
    } else {
        return Ok(());
    };
    Err(KernelError::ControlFile {
        device: storage.control.name().to_string(),
        reason,
    })
}

async fn check_file_headers(shared: &Shared) -> Result<()> {
    for (file, device) in shared.storage.datafiles().enumerate() {
        let address = BlockAddress {
            file: file as u16,
            block: 0,
        };
        let bytes = read_bytes(&**device, 0, shared.settings.block_bytes).await?;
        let damaged = |reason: String| KernelError::DamagedBlock {
            address,
            device: device.name().to_string(),
            reason,
        };
        block::verify(&bytes, address).map_err(damaged)?;
        if bytes[block::HEADER_BYTES..block::HEADER_BYTES + 8] != shared.database_id().to_le_bytes()
        {
            return Err(damaged("it belongs to another database".to_string()));
        }
    }
    Ok(())
}
