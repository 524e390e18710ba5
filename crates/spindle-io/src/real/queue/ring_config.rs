//! What a layout says about its rings, and what it learns: whether there were fixed buffers and registered files.

use std::fmt;
use std::sync::Arc;

use super::unavailable::NotRegistered;
use crate::arena::Arena;
use crate::real::file::open_files;
use crate::sync::Latch;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How the rings of a layout are made: the memory to register with them. What came of the registering is recorded here
/// for the report. A thread has one ring.
pub struct RingConfig {
    arenas: Latch<Vec<Arc<Arena>>>,
    /// Whether there are arenas: asked for each I/O, without the latch.
    has_arenas: AtomicBool,
    record: Latch<Record>,
}

#[derive(Default)]
struct Record {
    fixed: Option<Result<(), NotRegistered>>,
    unregistered_files: Option<NotRegistered>,
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
    /// At least one ring could not; its I/O continues without.
    Dropped {
        /// Why.
        reason: NotRegistered,
    },
}

impl RingConfig {
    /// Entries of a submission queue; the completion queue has four times as many.
    pub(crate) const ENTRIES: u32 = 256;

    /// Rings without fixed buffers.
    pub fn new() -> RingConfig {
        RingConfig {
            arenas: Latch::default(),
            has_arenas: AtomicBool::new(false),
            record: Latch::default(),
        }
    }

    /// Registers `arena` as fixed buffers with every ring made from now on: for memory that is allocated after the
    /// devices were opened. Each ring's registration counts towards the limit of locked memory, unless the process may
    /// exceed it.
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
    pub fn unregistered_files(&self) -> Option<NotRegistered> {
        self.record.lock().unregistered_files.clone()
    }

    pub(crate) fn has_arenas(&self) -> bool {
        self.has_arenas.load(Ordering::Acquire)
    }

    pub(crate) fn arenas(&self) -> Vec<Arc<Arena>> {
        self.arenas.lock().clone()
    }

    pub(crate) fn note_unregistered_file(&self, reason: NotRegistered) {
        self.record.lock().unregistered_files = Some(reason);
    }

    /// Records one ring's registering; a failure is never overwritten.
    pub(crate) fn note_fixed(&self, answer: Result<(), NotRegistered>) {
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
        write!(formatter, "RingConfig({} arenas)", self.arenas.lock().len())
    }
}
