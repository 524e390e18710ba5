//! What a layout says about its rings, and what it learns: whether there were fixed buffers and registered files.

use std::fmt;
use std::sync::Arc;

use crate::arena::Arena;
use crate::real::file::open_files;
use crate::sync::Latch;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How the rings of a layout are made: their size, and the memory to register with them. What came of the registering
/// is recorded here for the report. A thread has one ring, of the size in the first config it met.
pub struct RingConfig {
    entries: u32,
    arenas: Latch<Vec<Arc<Arena>>>,
    /// Whether there are arenas: asked for each I/O, without the latch.
    has_arenas: AtomicBool,
    record: Latch<Record>,
}

#[derive(Default)]
struct Record {
    fixed: Option<Result<(), String>>,
    unregistered_files: Option<String>,
}

/// Whether I/O uses fixed buffers (memory registered with the ring).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixedBuffers {
    /// The config does not ask for them.
    NotAsked,
    /// No ring has been made with the config so far.
    NotYet,
    /// Every ring has registered the memory. A request of several buffers that are not neighbours goes without.
    Used,
    /// At least one ring could not; its I/O goes on without.
    Dropped {
        /// Why, in words.
        reason: String,
    },
}

impl RingConfig {
    /// Entries of a submission queue unless set otherwise; the completion queue has four times as many.
    pub const DEFAULT_ENTRIES: u32 = 256;

    /// Rings of the default size, no fixed buffers.
    pub fn new() -> RingConfig {
        RingConfig {
            entries: RingConfig::DEFAULT_ENTRIES,
            arenas: Latch::default(),
            has_arenas: AtomicBool::new(false),
            record: Latch::default(),
        }
    }

    /// The same with `entries` entries, 1 to 4096; the kernel rounds up to a power of two.
    pub fn with_entries(mut self, entries: u32) -> RingConfig {
        assert!(
            (1..=4096).contains(&entries),
            "a ring has 1 to 4096 entries"
        );
        self.entries = entries;
        self
    }

    /// The same, registering `arena` as fixed buffers with every ring. Each ring's registration counts towards the
    /// limit of locked memory, unless the process may exceed it.
    pub fn with_fixed_buffers(self, arena: Arc<Arena>) -> RingConfig {
        self.register(arena);
        self
    }

    /// Registers `arena` as fixed buffers with every ring made from now on: for memory that is allocated after the
    /// devices were opened.
    pub fn register(&self, arena: Arc<Arena>) {
        self.arenas.lock().push(arena);
        self.has_arenas.store(true, Ordering::Release);
    }

    /// What came of the fixed buffers.
    pub fn fixed_buffers(&self) -> FixedBuffers {
        match &self.record.lock().fixed {
            _ if !self.has_arenas() => FixedBuffers::NotAsked,
            None => FixedBuffers::NotYet,
            Some(Ok(())) => FixedBuffers::Used,
            Some(Err(reason)) => FixedBuffers::Dropped {
                reason: reason.clone(),
            },
        }
    }

    /// Why some identified file is used without being registered with a ring; `None` when all are.
    pub fn unregistered_files(&self) -> Option<String> {
        self.record.lock().unregistered_files.clone()
    }

    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    pub(crate) fn has_arenas(&self) -> bool {
        self.has_arenas.load(Ordering::Acquire)
    }

    pub(crate) fn arenas(&self) -> Vec<Arc<Arena>> {
        self.arenas.lock().clone()
    }

    pub(crate) fn note_unregistered_file(&self, reason: String) {
        self.record.lock().unregistered_files = Some(reason);
    }

    /// Records one ring's registering; a failure is never overwritten.
    pub(crate) fn note_fixed(&self, answer: Result<(), String>) {
        let mut record = self.record.lock();
        if !matches!(record.fixed, Some(Err(_))) {
            record.fixed = Some(answer);
        }
    }
}

impl Default for RingConfig {
    fn default() -> RingConfig {
        RingConfig::new()
    }
}

impl Drop for RingConfig {
    fn drop(&mut self) {
        open_files::let_go();
    }
}

impl fmt::Debug for RingConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "RingConfig({} entries, {} arenas)",
            self.entries,
            self.arenas.lock().len()
        )
    }
}
