//! Rows that a step keeps for the next one: in memory, in partitions by a hash of their keys, and beyond the memory
//! that there may be in temporary segments.

use std::mem;

use crate::error::Result;
use crate::temp::TempWork;
use crate::temp::run::{Run, RunReader, RunWriter, arena};

/// Partitions of rows that are kept by their keys: the I/Os of their runs take a quarter of the memory.
pub(super) const PARTITIONS: usize = 8;
/// Bits of a hash that tell partitions apart, the highest first.
const PARTITION_BITS: u32 = 3;
/// Rows are partitioned again at most so often: then equal keys are more likely than many.
pub(super) const DEPTH_MAX: u32 = 8;
/// Bytes of a row's length.
const LENGTH_BYTES: usize = 4;
/// Rows of a run are handed on in batches of about this size, bytes.
const BATCH_BYTES: usize = 256 << 10;

/// A hash of a key: its highest bits choose partitions, its lowest a place in a table.
pub(super) fn hash(key: &[u8]) -> u64 {
    // As wyhash has it: multiplied to 128 bits, both halves together.
    const FACTORS: [u64; 2] = [0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB];
    let mix = |left: u64, right: u64| {
        let product = u128::from(left) * u128::from(right);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = FACTORS[0] ^ key.len() as u64;
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        let number = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        hash = mix(hash ^ number, FACTORS[1]);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = mix(hash ^ u64::from_le_bytes(last), FACTORS[1]);
    }
    mix(hash, FACTORS[0])
}

/// The partition of a hash, another one at each depth.
pub(super) fn partition_of(hash: u64, depth: u32) -> usize {
    let used = PARTITION_BITS * (depth + 1);
    (hash >> (u64::BITS - used)) as usize % PARTITIONS
}

/// Puts a row behind others, its length before it.
pub(super) fn put(rows: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = rows.len();
    rows.extend_from_slice(&[0; LENGTH_BYTES]);
    fill(rows);
    let length = (rows.len() - start - LENGTH_BYTES) as u32;
    rows[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// The row at a place, and where the next begins; `None` at the end.
pub(super) fn row_at(rows: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = rows.get(at..at + LENGTH_BYTES)?;
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let start = at + LENGTH_BYTES;
    Some((&rows[start..start + length], start + length))
}

/// Rows one after the other.
pub(super) fn iter(rows: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (row, next) = row_at(rows, at)?;
        at = next;
        Some(row)
    })
}

/// Rows that have been kept: some in memory, the others in runs.
#[derive(Default)]
pub(super) struct Part {
    pub(super) chunks: Vec<Vec<u8>>,
    pub(super) runs: Vec<Run>,
}

impl Part {
    /// With what another process has kept of the same.
    pub(super) fn add(&mut self, other: Part) {
        self.chunks.extend(other.chunks);
        self.runs.extend(other.runs);
    }

    /// All of it, bytes.
    pub(super) fn bytes(&self) -> u64 {
        let in_memory: usize = self.chunks.iter().map(Vec::len).sum();
        in_memory as u64 + self.runs.iter().map(Run::bytes).sum::<u64>()
    }

    /// Reads it from front to back, and lets go of what has been read.
    pub(super) fn reader(self, work: &TempWork) -> PartReader {
        PartReader {
            work: work.clone(),
            part: self,
            run: None,
        }
    }
}

/// Adds the parts of another process to those of the same number.
pub(super) fn add_all(parts: &mut Vec<Part>, others: Vec<Part>) {
    if parts.len() < others.len() {
        parts.resize_with(others.len(), Part::default);
    }
    for (part, other) in parts.iter_mut().zip(others) {
        part.add(other);
    }
}

/// Reads the rows of a part, a batch at a time.
pub(super) struct PartReader {
    work: TempWork,
    part: Part,
    run: Option<RunReader>,
}

impl PartReader {
    /// The next rows; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(chunk) = self.part.chunks.pop() {
                if chunk.is_empty() {
                    continue;
                }
                return Ok(Some(chunk));
            }
            if self.run.is_none() {
                let Some(run) = self.part.runs.pop() else {
                    return Ok(None);
                };
                self.run = Some(RunReader::new(&self.work, run)?);
            }
            let run = self.run.as_mut().expect("opened above");
            let (mut rows, mut record) = (Vec::new(), Vec::new());
            while rows.len() < BATCH_BYTES && run.next(&mut record).await? {
                put(&mut rows, |rows| rows.extend_from_slice(&record));
            }
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
            self.run = None;
        }
    }
}

/// Keeps rows in partitions. When they fill the memory, all of them go to runs.
pub(super) struct Collector {
    work: TempWork,
    depth: u32,
    partitions: Vec<Vec<u8>>,
    writers: Vec<RunWriter>,
}

impl Collector {
    /// For rows that have been partitioned `depth` times before; `is_keyed`: by their keys, else there is one.
    pub(super) fn new(work: &TempWork, depth: u32, is_keyed: bool) -> Collector {
        let count = if is_keyed { PARTITIONS } else { 1 };
        Collector {
            work: work.clone(),
            depth,
            partitions: vec![Vec::new(); count],
            writers: Vec::new(),
        }
    }

    /// Adds a row; [`Collector::make_room`] is due now and then.
    pub(super) fn add(&mut self, hash: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        let of = match self.partitions.len() {
            1 => 0,
            _ => partition_of(hash, self.depth),
        };
        put(&mut self.partitions[of], fill);
    }

    /// Writes the rows in memory to runs when they take all the memory that there may be.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        let bytes: usize = self.partitions.iter().map(Vec::len).sum();
        if bytes < self.work.memory_bytes {
            return Ok(());
        }
        if self.writers.is_empty() {
            let arena = arena(&self.work)?;
            let writer = |_: &Vec<u8>| RunWriter::new(&self.work, &arena);
            self.writers = self.partitions.iter().map(writer).collect();
        }
        for (rows, writer) in self.partitions.iter_mut().zip(&mut self.writers) {
            for row in iter(rows) {
                writer.put(row).await?;
            }
            rows.clear();
        }
        Ok(())
    }

    /// The partitions.
    pub(super) async fn finish(mut self) -> Result<Vec<Part>> {
        let chunks = mem::take(&mut self.partitions).into_iter();
        let mut parts: Vec<Part> = chunks
            .map(|chunk| Part {
                chunks: vec![chunk],
                runs: Vec::new(),
            })
            .collect();
        for (part, writer) in parts.iter_mut().zip(mem::take(&mut self.writers)) {
            part.runs.push(writer.finish().await?);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_one_after_the_other_and_hashes_differ() {
        let mut rows = Vec::new();
        for row in [&b"one"[..], b"", b"three"] {
            put(&mut rows, |rows| rows.extend_from_slice(row));
        }
        let all: Vec<&[u8]> = iter(&rows).collect();
        assert_eq!(all, [&b"one"[..], b"", b"three"]);
        let hashes: std::collections::BTreeSet<u64> = (0..10_000_u64)
            .map(|key| hash(&key.to_be_bytes()))
            .collect();
        assert_eq!(hashes.len(), 10_000);
        for depth in 0..DEPTH_MAX {
            let mut counts = [0; PARTITIONS];
            for hash in &hashes {
                counts[partition_of(*hash, depth)] += 1;
            }
            let fair = 10_000 / PARTITIONS;
            assert!(
                counts
                    .iter()
                    .all(|count| (fair / 2..2 * fair).contains(count)),
                "{counts:?}"
            );
        }
    }
}
