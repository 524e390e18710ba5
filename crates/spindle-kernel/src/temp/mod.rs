//! Temporary segments: what sorts and aggregations write for want of memory, in the tempfiles of the temporary
//! tablespace ([`crate::temp_space`]). They are written and read past the buffer cache, several blocks at a time.
//! Nothing in them outlives its query, and there is no redo of them. [`crate::query`] comes here.

pub(crate) mod aggregate;
pub(crate) mod run;
pub(crate) mod sort;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

/// An I/O is at most this part of the memory of its sort.
const MEMORY_PARTS: usize = 32;
/// And at most so long, bytes.
const PIECE_BYTES_MAX: usize = 256 << 10;

/// On whose behalf temporary segments are written and read, and with how much memory.
#[derive(Clone)]
pub(crate) struct TempWork {
    pub(crate) sga: Arc<Sga>,
    /// Of the process that waits.
    pub(crate) waits: Arc<ProcessWaits>,
    /// What the session's queries have written, bytes.
    pub(crate) written_bytes: Arc<AtomicU64>,
    /// What one sort or aggregation may have of memory.
    pub(crate) memory_bytes: usize,
}

impl TempWork {
    /// Blocks of an I/O: a power of two, so that each lies in one extent.
    pub(crate) fn piece_blocks(&self) -> usize {
        let block_bytes = self.sga.settings.block_bytes;
        let bytes = (self.memory_bytes / MEMORY_PARTS).min(PIECE_BYTES_MAX);
        let blocks = (bytes / block_bytes).max(1);
        1 << blocks.ilog2()
    }
}
