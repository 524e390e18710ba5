//! The space of the temporary tablespace, dealt out in memory: after a crash, and after a restart, all of it is free.
//! [`crate::temp`] takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spindle_io::BlockDevice;
use spindle_io::sync::Latch;

use crate::block::BlockAddress;
use crate::error::{KernelError, Result};
use crate::storage::Storage;

/// Length of an extent.
const EXTENT_BYTES: usize = 1 << 20;

/// A run of blocks of a tempfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TempExtent {
    file: u16,
    first_block: u32,
}

impl TempExtent {
    /// Address of one of its blocks.
    pub(crate) fn block(self, number: u32) -> BlockAddress {
        BlockAddress {
            file: self.file,
            block: self.first_block + number,
        }
    }
}

/// The space of the temporary tablespace.
pub(crate) struct TempSpace {
    free: Latch<Vec<TempExtent>>,
    extents: usize,
    extent_blocks: u32,
    /// The number by which blocks of a run know each other.
    next_stamp: AtomicU64,
}

impl TempSpace {
    /// All of it is free.
    pub(crate) fn new(storage: &Storage, block_bytes: usize) -> TempSpace {
        let extents =
            |device: &Arc<dyn BlockDevice>| device.limits().capacity_bytes / EXTENT_BYTES as u64;
        let extent_blocks = (EXTENT_BYTES / block_bytes) as u32;
        let first_file = storage.datafiles().count();
        let largest = storage.temp.iter().map(extents).max().unwrap_or(0);
        let mut free = Vec::new();
        // From the files in turn; extents are taken from the end.
        for number in (0..largest).rev() {
            for (file, device) in storage.temp.iter().enumerate().rev() {
                if number < extents(device) {
                    free.push(TempExtent {
                        file: (first_file + file) as u16,
                        first_block: number as u32 * extent_blocks,
                    });
                }
            }
        }
        TempSpace {
            extents: free.len(),
            free: Latch::new(free),
            extent_blocks,
            next_stamp: AtomicU64::new(1),
        }
    }

    /// Blocks of an extent.
    pub(crate) fn extent_blocks(&self) -> u32 {
        self.extent_blocks
    }

    /// Takes an extent.
    pub(crate) fn take(&self) -> Result<TempExtent> {
        let extent = self.free.lock().pop();
        extent.ok_or(KernelError::TempFull {
            extents: self.extents,
        })
    }

    /// An extent is free again.
    pub(crate) fn give_back(&self, extent: TempExtent) {
        self.free.lock().push(extent);
    }

    /// Extents that runs have; none when no query runs.
    pub(crate) fn in_use(&self) -> usize {
        self.extents - self.free.lock().len()
    }

    /// The number of another run.
    pub(crate) fn stamp(&self) -> u64 {
        self.next_stamp.fetch_add(1, Ordering::Relaxed)
    }
}
