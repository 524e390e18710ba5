//! Temporary segments: what sorts and aggregations write for want of memory, in the tempfiles of the temporary
//! tablespace ([`crate::temp_space`]). They are written and read past the buffer cache, several blocks at a time.
//! Nothing in them outlives its query, and there is no redo of them. [`crate::query`] comes here.

pub(crate) mod aggregate;
pub(crate) mod run;
pub(crate) mod sort;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{KernelError, Result};
use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

/// An I/O is at most this part of the memory of its sort.
const MEMORY_PARTS: usize = 32;
/// And at most this long, bytes.
const PIECE_BYTES_MAX: usize = 256 << 10;

/// On whose behalf temporary segments are written and read, and with how much memory.
#[derive(Clone)]
pub(crate) struct TempWork {
    pub(crate) sga: Arc<Sga>,
    /// Of the process that waits.
    pub(crate) waits: Arc<ProcessWaits>,
    /// Of the session's queries, slaves included.
    pub(crate) usage: Arc<Usage>,
    /// What one sort or aggregation may have of memory.
    pub(crate) memory_bytes: usize,
    /// When the query must have ended; `None`: it may take as long as it needs.
    pub(crate) deadline_ns: Option<u64>,
}

/// What the queries of a session use, bytes.
#[derive(Default)]
pub(crate) struct Usage {
    /// Written to temporary segments.
    pub(crate) written: AtomicU64,
    /// Memory that holds rows and the tables over them.
    held: AtomicU64,
    /// The most that it was.
    pub(crate) held_most: AtomicU64,
}

impl Usage {
    /// Counts memory that is about to be held.
    pub(crate) fn hold(self: &Arc<Usage>, bytes: usize) -> Held {
        let (usage, bytes) = (Arc::clone(self), bytes as u64);
        let held = bytes + usage.held.fetch_add(bytes, Ordering::Relaxed);
        usage.held_most.fetch_max(held, Ordering::Relaxed);
        Held { usage, bytes }
    }
}

/// Memory that a query holds, counted until this is dropped.
pub(crate) struct Held {
    usage: Arc<Usage>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.usage.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl TempWork {
    /// True when the query has taken too long.
    pub(crate) fn is_late(&self) -> bool {
        let is_over = |deadline| self.sga.env.now() > deadline;
        self.deadline_ns.is_some_and(is_over)
    }

    /// Error when the query has taken too long, or the instance has ended. Due now and then in whatever takes long.
    pub(crate) fn check(&self) -> Result<()> {
        self.sga.health.check()?;
        match self.is_late() {
            true => Err(KernelError::QueryTooLong),
            false => Ok(()),
        }
    }

    /// Blocks of an I/O: a power of two, so that each lies in one extent.
    pub(crate) fn piece_blocks(&self) -> usize {
        let block_bytes = self.sga.settings.block_bytes;
        let bytes = (self.memory_bytes / MEMORY_PARTS).min(PIECE_BYTES_MAX);
        let blocks = (bytes / block_bytes).max(1);
        1 << blocks.ilog2()
    }
}
