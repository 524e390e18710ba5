//! What a device has done: counters that every thread adds to without a lock, and an optional bitmap of the blocks
//! written since it was cleared, from which a restore knows what to copy back.

use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::Operation;

/// I/Os that a device completed without error, since it was opened or between two readings (subtract them). Counted are
/// requests, not system calls: a short read that was continued is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Reads of any size.
    pub reads: u64,
    /// Those of `reads` that had more than one buffer.
    pub multi_block_reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes of any size.
    pub writes: u64,
    /// Those of `writes` that had more than one buffer.
    pub multi_block_writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes (`fdatasync`); a durable write is not one.
    pub flushes: u64,
}

impl IoCounts {
    /// What was done since `earlier`; `None` when a count has fallen, as those of a server do that were set to zero.
    pub fn since(self, earlier: IoCounts) -> Option<IoCounts> {
        let mut has_fallen = false;
        let done = self.combine(earlier, |now, then| {
            has_fallen |= now < then;
            now.saturating_sub(then)
        });
        (!has_fallen).then_some(done)
    }

    fn combine(self, other: IoCounts, mut with: impl FnMut(u64, u64) -> u64) -> IoCounts {
        IoCounts {
            reads: with(self.reads, other.reads),
            multi_block_reads: with(self.multi_block_reads, other.multi_block_reads),
            read_bytes: with(self.read_bytes, other.read_bytes),
            writes: with(self.writes, other.writes),
            multi_block_writes: with(self.multi_block_writes, other.multi_block_writes),
            write_bytes: with(self.write_bytes, other.write_bytes),
            flushes: with(self.flushes, other.flushes),
        }
    }
}

impl Sub for IoCounts {
    type Output = IoCounts;
    /// What was done since `earlier`, an earlier reading of the same device.
    fn sub(self, earlier: IoCounts) -> IoCounts {
        self.combine(earlier, |now, then| now - then)
    }
}

impl Add for IoCounts {
    type Output = IoCounts;
    /// The work of two devices.
    fn add(self, other: IoCounts) -> IoCounts {
        self.combine(other, |one, another| one + another)
    }
}

/// The live counters behind [`IoCounts`].
#[derive(Default)]
pub(super) struct Counters {
    reads: AtomicU64,
    multi_block_reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    multi_block_writes: AtomicU64,
    write_bytes: AtomicU64,
    flushes: AtomicU64,
}

impl Counters {
    /// Counts one completed operation of `bytes` bytes.
    pub(super) fn count(&self, operation: &Operation, bytes: usize) {
        let add = |counter: &AtomicU64, amount| counter.fetch_add(amount, Ordering::Relaxed);
        match operation {
            Operation::Read(into) => {
                add(&self.reads, 1);
                add(&self.read_bytes, bytes as u64);
                if into.len() > 1 {
                    add(&self.multi_block_reads, 1);
                }
            }
            Operation::Write { from, .. } => {
                add(&self.writes, 1);
                add(&self.write_bytes, bytes as u64);
                if from.len() > 1 {
                    add(&self.multi_block_writes, 1);
                }
            }
            Operation::Flush => {
                add(&self.flushes, 1);
            }
        }
    }

    pub(super) fn read(&self) -> IoCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoCounts {
            reads: get(&self.reads),
            multi_block_reads: get(&self.multi_block_reads),
            read_bytes: get(&self.read_bytes),
            writes: get(&self.writes),
            multi_block_writes: get(&self.multi_block_writes),
            write_bytes: get(&self.write_bytes),
            flushes: get(&self.flushes),
        }
    }
}

/// Which blocks of a device were written since the last [`WrittenBlocks::clear`]. A write is marked before it is
/// issued, so a failed or torn one is marked too. Reading or clearing it makes sense only while no write is under way.
pub struct WrittenBlocks {
    block_bytes: u64,
    blocks: u64,
    bits: Box<[AtomicU64]>,
}

impl WrittenBlocks {
    /// Nothing written, for a device of `capacity_bytes` in blocks of `block_bytes` (at least 1; the last block may be
    /// cut short).
    pub fn new(capacity_bytes: u64, block_bytes: u64) -> Arc<WrittenBlocks> {
        let blocks = capacity_bytes.div_ceil(block_bytes);
        let bits = (0..blocks.div_ceil(64))
            .map(|_| AtomicU64::new(0))
            .collect();
        Arc::new(WrittenBlocks {
            block_bytes,
            blocks,
            bits,
        })
    }

    /// Bytes in a block.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Marks every block touched by `bytes` bytes at `offset`. Bytes past the capacity are ignored.
    pub fn mark(&self, offset: u64, bytes: u64) {
        let end = (offset + bytes).div_ceil(self.block_bytes).min(self.blocks);
        for block in offset / self.block_bytes..end {
            let (word, bit) = (&self.bits[(block / 64) as usize], 1 << (block % 64));
            // A block is written again and again: looking first keeps the cache line shared.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Numbers of the written blocks, ascending.
    pub fn written(&self) -> impl Iterator<Item = u64> + '_ {
        (0u64..).zip(&self.bits).flat_map(|(index, word)| {
            let mut word = word.load(Ordering::Relaxed);
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| u64::from(word.trailing_zeros()))?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// How many blocks are marked.
    pub fn count(&self) -> u64 {
        self.bits
            .iter()
            .map(|word| u64::from(word.load(Ordering::Relaxed).count_ones()))
            .sum()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.bits
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_touched_is_marked_and_no_other() {
        let written = WrittenBlocks::new(1000 * 100 + 1, 100);
        written.mark(0, 1);
        written.mark(199, 2); // the last byte of block 1, the first of block 2
        written.mark(6300, 200); // across the edge of a word
        written.mark(100_000, 100); // the last block is cut short
        written.mark(500, 0);
        assert_eq!(
            written.written().collect::<Vec<_>>(),
            [0, 1, 2, 63, 64, 1000]
        );
        assert_eq!(written.count(), 6);
        written.clear();
        assert_eq!((written.count(), written.written().next()), (0, None));
    }

    #[test]
    fn counts_subtract_field_by_field() {
        let counters = Counters::default();
        counters.count(&Operation::Flush, 0);
        let before = counters.read();
        counters.count(&Operation::Read(Vec::new()), 512);
        counters.count(
            &Operation::Write {
                from: Vec::new(),
                durable: true,
                atomic: false,
            },
            1024,
        );
        let expected = IoCounts {
            reads: 1,
            read_bytes: 512,
            writes: 1,
            write_bytes: 1024,
            ..IoCounts::default()
        };
        assert_eq!(counters.read() - before, expected);
        assert_eq!((expected + before).flushes, 1);
    }
}
