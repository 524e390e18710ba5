//! The SGA: what the sessions and background processes of an instance share. Its parts know the fixed SGA and what they
//! stand on, but not the whole. What needs several of them takes the whole and stands above it: [`crate::change`],
//! [`crate::processes`], [`crate::session`], [`crate::recovery`].

use std::ops::Deref;
use std::sync::{Arc, Weak};

use spindle_io::Env;
use spindle_io::sync::atomic::{AtomicUsize, Ordering};
use spindle_io::sync::{Notify, Semaphore};

use crate::cache::BufferCache;
use crate::control_file::ControlFile;
use crate::control_file::UNDO_SEGMENT;
use crate::error::Result;
use crate::fixed_sga::{FixedSga, Waiters};
use crate::free_space::FreeSpaces;
use crate::key::Keys;
use crate::log::buffer::{FIRST_POSITION, Log};
use crate::log::files::LogFiles;
use crate::settings::KernelSettings;
use crate::storage::Storage;
use crate::temp_space::TempSpace;
use crate::transaction::abandoned::Abandoned;
use crate::transaction::row_lock::RowLocks;
use crate::transaction::statements::Statements;
use crate::transaction::undo_segment::UndoSegment;

/// All that the processes and sessions of an instance share.
pub(crate) struct Sga {
    fixed: FixedSga,
    pub(crate) control: ControlFile,
    pub(crate) log: Arc<Log>,
    pub(crate) log_files: LogFiles,
    pub(crate) cache: BufferCache,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) undo: UndoSegment,
    pub(crate) locks: RowLocks,
    pub(crate) abandoned: Abandoned,
    pub(crate) statements: Statements,
    /// Of all indexes, for those who know a row but not its table.
    pub(crate) keys: Keys,
    /// Blocks with room, of every segment.
    pub(crate) free_spaces: FreeSpaces,
    /// Space of the temporary tablespace.
    pub(crate) temp: Arc<TempSpace>,
    /// Sessions that have not ended.
    pub(crate) sessions: AtomicUsize,
    /// One change of the space map at a time.
    pub(crate) space_turn: Semaphore,
    /// Blocks of a multi-block read, held down where the cache is tiny.
    pub(crate) multiblock_read_blocks: usize,
}

/// How CKPT is called, and whose turn it is to make a checkpoint.
pub(crate) struct Checkpoint {
    pub(crate) wanted: Notify,
    /// One at a time: CKPT's own work and checkpoints on demand.
    pub(crate) turn: Semaphore,
}

impl Checkpoint {
    /// No checkpoint is under way.
    fn new() -> Checkpoint {
        Checkpoint {
            wanted: Notify::new(),
            turn: Semaphore::new(1),
        }
    }

    /// Asks CKPT to note the position now, and to make room in the ring of log files if that does not.
    pub(crate) fn request(&self) {
        self.wanted.notify_one();
    }
}

/// The fixed SGA is a part of the SGA.
impl Deref for Sga {
    type Target = FixedSga;
    fn deref(&self) -> &FixedSga {
        &self.fixed
    }
}

impl Waiters for Sga {
    fn wake_all(&self) {
        self.locks.wake_all();
        self.log.wake_all();
        self.cache.wake_all();
        self.checkpoint.wanted.notify_one();
        self.abandoned.wake_all();
    }
}

impl Sga {
    /// That of an instance on these devices, whose processes do not run yet.
    pub(crate) fn new(
        env: &Arc<dyn Env>,
        storage: &Storage,
        settings: &KernelSettings,
        control: ControlFile,
    ) -> Result<Arc<Sga>> {
        let log = Arc::new(Log::new(settings.log_buffer_bytes, FIRST_POSITION)?);
        let cache = BufferCache::new(
            settings.buffer_cache_bytes,
            settings.block_bytes,
            settings.instance.writers as usize,
            Arc::clone(&log),
        )?;
        let undo_segment =
            control.read(|contents| contents.segments[UNDO_SEGMENT as usize].clone());
        let free_spaces = FreeSpaces::new(control.read(|contents| contents.has_maps));
        let buffers = cache.buffers();
        let log_files = LogFiles::new(storage.redo.clone(), settings)?;
        Ok(Arc::new_cyclic(|this: &Weak<Sga>| Sga {
            fixed: FixedSga::new(env, storage, settings, this.clone()),
            control,
            log,
            log_files,
            cache,
            checkpoint: Checkpoint::new(),
            undo: UndoSegment::new(&undo_segment, undo_segment.row_bytes, settings.block_bytes),
            locks: RowLocks::new(),
            abandoned: Abandoned::new(),
            statements: Statements::default(),
            keys: Keys::default(),
            free_spaces,
            temp: Arc::new(TempSpace::new(storage, settings.block_bytes)),
            sessions: AtomicUsize::new(0),
            space_turn: Semaphore::new(1),
            multiblock_read_blocks: settings.multiblock_read_blocks.min(buffers / 64).max(1),
        }))
    }

    /// When sessions and processes have ended, nothing of the instance is in use.
    pub(crate) fn check_unused(&self) -> Result<()> {
        if self.sessions.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        self.require_none(self.cache.in_use())?;
        let temp = self.temp.in_use();
        let said = || format!("{temp} extents of temporary segments are in use, and no query runs");
        self.require(|| temp == 0, said)?;
        self.require_none(self.log.in_use())
    }

    /// When sessions have ended, and then PMON has cleaned up behind them, no row is locked, unless something could not
    /// be rolled back. Before the instance stops: a transaction that is cut off by that may keep locks.
    pub(crate) fn check_unlocked(&self) -> Result<()> {
        match self.abandoned.is_done() {
            true => self.require_none(self.locks.in_use()),
            false => Ok(()),
        }
    }

    /// The number by which the files of one database know each other.
    pub(crate) fn database_id(&self) -> u64 {
        self.control.read(|contents| contents.database)
    }
}
