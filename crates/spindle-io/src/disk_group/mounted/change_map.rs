//! The change map: which extents may differ from copy to copy. It does two things with one bit for each allocation
//! unit (or some, on large disks) of each disk:
//!
//! - **After a crash** the copies of an extent that was being written may differ, and a reader must not see one and
//!   then the other. Before the first write to a mirrored extent its bits are set, durably, on all disks that hold a
//!   copy. A mount makes the copies of all extents with a bit set equal before any read.
//! - **Cheaply**: a write whose bits are set looks them up in memory and proceeds. Bits are cleared lazily, with a map
//!   that is written anyway, when their extents have not been written for a while and everything written is on stable
//!   storage.

use crate::device::IoError;
use crate::disk_group::disk::disk_io;
use crate::disk_group::disk::format::{BLOCK_BYTES, DiskLayout, MAP_WORDS, MapBlock, map_at};
use crate::disk_group::planted::{Planted, has_planted};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Bits are not looked through for ones to clear more often than this, nanoseconds.
pub(crate) const SWEEP_NS: u64 = 10_000_000_000;

/// The change map of one attached disk.
pub(crate) struct ChangeMap {
    incarnation: u64,
    shift: u32,
    step: AtomicU64,
    /// Bits on the disk: writes may proceed.
    pub(crate) set: Box<[AtomicU64]>,
    /// Bits to be written with the next map.
    wanted: Box<[AtomicU64]>,
    /// Bits of extents written since the last sweep.
    pub(crate) touched: Box<[AtomicU64]>,
}

fn words(of: impl Fn(usize) -> u64) -> Box<[AtomicU64]> {
    (0..MAP_WORDS)
        .map(|word| AtomicU64::new(of(word)))
        .collect()
}

impl ChangeMap {
    /// A map with all bits clear, or all set.
    pub(crate) fn new(incarnation: u64, layout: DiskLayout, is_set: bool) -> ChangeMap {
        let all = if is_set { u64::MAX } else { 0 };
        ChangeMap {
            incarnation,
            shift: layout.map_shift(),
            step: AtomicU64::new(0),
            set: words(|_| all),
            wanted: words(|_| 0),
            touched: words(|_| 0),
        }
    }

    /// The newer whole map on a disk; all bits set when there is none.
    pub(crate) async fn read(
        device: &disk_io::Device,
        incarnation: u64,
        layout: DiskLayout,
    ) -> Result<ChangeMap, IoError> {
        let mut newest: Option<MapBlock> = None;
        for which in [0, 1] {
            let block = disk_io::read(device, map_at(which), BLOCK_BYTES).await?;
            let found = MapBlock::decode(&block)
                .filter(|map| map.incarnation == incarnation && map.shift == layout.map_shift());
            if let Some(map) = found
                && newest.as_ref().is_none_or(|other| map.step > other.step)
            {
                newest = Some(map);
            }
        }
        let map = ChangeMap::new(incarnation, layout, newest.is_none());
        if let Some(newest) = newest {
            map.step.store(newest.step, Ordering::Relaxed);
            for (word, bits) in map.set.iter().zip(newest.words) {
                word.store(bits, Ordering::Relaxed);
            }
        }
        Ok(map)
    }

    #[inline]
    pub(crate) fn bit(&self, au: u32) -> (usize, u64) {
        let bit = au >> self.shift;
        (bit as usize / 64, 1 << (bit % 64))
    }

    /// Whether the bit of an extent that begins there is on the disk.
    #[inline]
    pub(crate) fn is_set(&self, au: u32) -> bool {
        let (word, bit) = self.bit(au);
        self.set[word].load(Ordering::SeqCst) & bit != 0
    }

    /// Notes a write.
    #[inline]
    pub(crate) fn touch(&self, au: u32) {
        let (word, bit) = self.bit(au);
        if self.touched[word].load(Ordering::Relaxed) & bit == 0 {
            self.touched[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Asks for a bit with the next map.
    pub(crate) fn want(&self, au: u32) {
        let (word, bit) = self.bit(au);
        self.wanted[word].fetch_or(bit, Ordering::SeqCst);
    }

    pub(crate) fn next_block(&self) -> MapBlock {
        let words = self.set.iter().zip(&self.wanted);
        let both = |(set, wanted): (&AtomicU64, &AtomicU64)| {
            set.load(Ordering::SeqCst) | wanted.load(Ordering::SeqCst)
        };
        MapBlock {
            incarnation: self.incarnation,
            step: self.step.fetch_add(1, Ordering::Relaxed) + 1,
            shift: self.shift,
            words: words.map(both).collect(),
        }
    }

    /// The bits of `block` are on the disk.
    pub(crate) fn has_written(&self, block: &MapBlock) {
        for (at, bits) in block.words.iter().enumerate() {
            self.set[at].fetch_or(*bits, Ordering::SeqCst);
            self.wanted[at].fetch_and(!bits, Ordering::SeqCst);
        }
    }

    /// Writes the map with all bits that are wanted.
    pub(crate) async fn write(&self, device: &disk_io::Device) -> Result<(), IoError> {
        let block = self.next_block();
        let mut on_disk = block.clone();
        if has_planted(Planted::ChangeMapNotWritten) {
            on_disk.words.fill(0);
        }
        disk_io::write(device, map_at(block.step), &on_disk.encode()).await?;
        self.has_written(&block);
        Ok(())
    }
}
