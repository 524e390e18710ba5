//! Rows that a step keeps for the next one: in memory, in partitions by a hash of their keys, and beyond the memory
//! that there may be in temporary segments.

use std::sync::Arc;

use crate::error::Result;
use crate::temp::run::{Run, RunReader, RunWriter, arena};
use crate::temp::{Held, TempWork, Usage};

/// Partitions of rows that are kept by their keys: the I/Os of their runs take a quarter of the memory.
pub(super) const PARTITIONS: usize = 8;
/// Bits of a hash that tell partitions apart, the highest first.
const PARTITION_BITS: u32 = 3;
/// Rows are partitioned again at most this often: then equal keys are more likely than many.
pub(super) const DEPTH_MAX: u32 = 8;
/// Bytes of a row's length.
const LENGTH_BYTES: usize = 4;
/// What a row takes in a table beyond its bytes: two slots.
pub(super) const SLOT_BYTES: usize = 2 * size_of::<u64>();
/// Chunks into which a partition's share of the memory is divided, so that little of it stays empty.
const CHUNKS_OF_PARTITION: usize = 4;
/// Room for rows in a chunk, at least and at most; one row may be longer.
const CHUNK_BYTES_MIN: usize = 256;
pub(super) const CHUNK_BYTES_MAX: usize = 64 << 10;

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

/// Rows one after the other, the length of each before it. None begins beyond [`CHUNK_BYTES_MAX`].
pub(super) struct Chunk {
    rows: Vec<u8>,
    _held: Held,
}

impl Chunk {
    /// With room for rows of a query, one of `row_bytes` among them.
    pub(super) fn new(work: &TempWork, row_bytes: usize) -> Chunk {
        let usual_bytes = work.memory_bytes / (CHUNKS_OF_PARTITION * PARTITIONS);
        let usual_bytes = usual_bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Chunk::of_bytes(&work.usage, usual_bytes.max(row_bytes + LENGTH_BYTES))
    }

    fn of_bytes(usage: &Arc<Usage>, bytes: usize) -> Chunk {
        let rows = Vec::with_capacity(bytes);
        Chunk {
            _held: usage.hold(rows.capacity()),
            rows,
        }
    }

    /// With one row.
    #[cfg(test)]
    pub(super) fn of_row(usage: &Arc<Usage>, row: &[u8]) -> Chunk {
        let mut chunk = Chunk::of_bytes(usage, row.len() + LENGTH_BYTES);
        chunk.put(row);
        chunk
    }

    /// Whether a row fits in.
    pub(super) fn fits(&self, row_bytes: usize) -> bool {
        self.rows.capacity() - self.rows.len() >= row_bytes + LENGTH_BYTES
    }

    /// Puts a row behind the others.
    pub(super) fn put(&mut self, row: &[u8]) {
        self.rows
            .extend_from_slice(&(row.len() as u32).to_le_bytes());
        self.rows.extend_from_slice(row);
    }

    /// The memory it takes, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity()
    }

    /// The row at a place, and where the next begins; `None` at the end.
    pub(super) fn row_at(&self, at: usize) -> Option<(&[u8], usize)> {
        let length = self.rows.get(at..at + LENGTH_BYTES)?;
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let start = at + LENGTH_BYTES;
        Some((&self.rows[start..start + length], start + length))
    }

    /// The rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (row, next) = self.row_at(at)?;
            at = next;
            Some(row)
        })
    }
}

/// Rows that have been kept: some in memory, the others in runs.
#[derive(Default)]
pub(super) struct KeptRows {
    pub(super) chunks: Vec<Chunk>,
    pub(super) runs: Vec<Run>,
}

impl KeptRows {
    /// With what another process has kept of the same.
    pub(super) fn add(&mut self, other: KeptRows) {
        self.chunks.extend(other.chunks);
        self.runs.extend(other.runs);
    }

    /// All of it in memory, with a table over its rows, bytes.
    pub(super) fn table_bytes(&self) -> u64 {
        let of_chunks = self.chunks.iter();
        let in_memory: usize = of_chunks
            .map(|chunk| chunk.bytes() + SLOT_BYTES * chunk.iter().count())
            .sum();
        let of_runs = self.runs.iter();
        let in_runs: u64 = of_runs
            .map(|run| run.bytes() + SLOT_BYTES as u64 * run.records())
            .sum();
        in_memory as u64 + in_runs
    }

    /// The same rows in parts, each of which can be read by itself.
    pub(super) fn pieces(self) -> impl Iterator<Item = KeptRows> {
        let chunk = |chunk| KeptRows {
            chunks: vec![chunk],
            runs: Vec::new(),
        };
        let run = |run| KeptRows {
            chunks: Vec::new(),
            runs: vec![run],
        };
        self.chunks
            .into_iter()
            .map(chunk)
            .chain(self.runs.into_iter().map(run))
    }

    /// The same rows with none of them in memory.
    pub(super) async fn spilled(mut self, work: &TempWork) -> Result<KeptRows> {
        let mut writer = RunWriter::new(work, &arena(work)?);
        for chunk in self.chunks.drain(..) {
            for row in chunk.iter() {
                writer.put(row).await?;
            }
        }
        self.runs.push(writer.finish().await?);
        Ok(self)
    }

    /// Reads it from front to back, and lets go of what has been read.
    pub(super) fn reader(self, work: &TempWork) -> PartReader {
        PartReader {
            work: work.clone(),
            part: self,
            run: None,
            row: Vec::new(),
            is_waiting: false,
        }
    }
}

/// Adds the parts of another process to those of the same number.
pub(super) fn add_all(parts: &mut Vec<KeptRows>, others: Vec<KeptRows>) {
    if parts.len() < others.len() {
        parts.resize_with(others.len(), KeptRows::default);
    }
    for (part, other) in parts.iter_mut().zip(others) {
        part.add(other);
    }
}

/// Reads the rows of a part, a chunk at a time.
pub(super) struct PartReader {
    work: TempWork,
    part: KeptRows,
    run: Option<RunReader>,
    row: Vec<u8>,
    /// The row did not fit into the last chunk.
    is_waiting: bool,
}

impl PartReader {
    /// The next rows; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Chunk>> {
        if let Some(chunk) = self.part.chunks.pop() {
            return Ok(Some(chunk));
        }
        let mut chunk: Option<Chunk> = None;
        while self.is_waiting || self.read_row().await? {
            let chunk = chunk.get_or_insert_with(|| Chunk::new(&self.work, self.row.len()));
            self.is_waiting = !chunk.fits(self.row.len());
            if self.is_waiting {
                break;
            }
            chunk.put(&self.row);
        }
        Ok(chunk)
    }

    /// The next row of a run; false at the end.
    async fn read_row(&mut self) -> Result<bool> {
        loop {
            if let Some(run) = &mut self.run
                && run.next(&mut self.row).await?
            {
                return Ok(true);
            }
            let Some(run) = self.part.runs.pop() else {
                return Ok(false);
            };
            self.run = Some(RunReader::new(&self.work, run)?);
        }
    }
}

/// Keeps rows in partitions. When they fill the memory, all of them go to runs.
pub(super) struct Collector {
    work: TempWork,
    depth: u32,
    partitions: Vec<Vec<Chunk>>,
    /// What a row takes in memory beyond its bytes.
    bytes_beside: usize,
    /// The memory of all rows.
    held_bytes: usize,
    writers: Vec<RunWriter>,
    row: Vec<u8>,
}

impl Collector {
    fn new(work: &TempWork, depth: u32, partitions: usize, bytes_beside: usize) -> Collector {
        let mut collector = Collector {
            work: work.clone(),
            depth,
            partitions: Vec::new(),
            bytes_beside,
            held_bytes: 0,
            writers: Vec::new(),
            row: Vec::new(),
        };
        collector.partitions.resize_with(partitions, Vec::new);
        collector
    }

    /// For rows in one part.
    pub(super) fn of_rows(work: &TempWork) -> Collector {
        Collector::new(work, 0, 1, 0)
    }

    /// For a side of a join whose rows have been partitioned `depth` times before: there will be tables over them.
    pub(super) fn of_join(work: &TempWork, depth: u32) -> Collector {
        Collector::new(work, depth, PARTITIONS, SLOT_BYTES)
    }

    /// For groups that have been partitioned `depth` times before.
    pub(super) fn of_groups(work: &TempWork, depth: u32) -> Collector {
        Collector::new(work, depth, PARTITIONS, 0)
    }

    /// Adds a row; [`Collector::make_room`] is due now and then.
    pub(super) fn add(&mut self, hash: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        self.row.clear();
        fill(&mut self.row);
        let of = match self.partitions.len() {
            1 => 0,
            _ => partition_of(hash, self.depth),
        };
        let chunks = &mut self.partitions[of];
        if !chunks.last().is_some_and(|last| last.fits(self.row.len())) {
            let chunk = Chunk::new(&self.work, self.row.len());
            self.held_bytes += chunk.bytes();
            chunks.push(chunk);
        }
        let last = chunks.last_mut().expect("there is one with room");
        last.put(&self.row);
        self.held_bytes += self.bytes_beside;
    }

    /// Writes the rows in memory to runs when they take all the memory that there may be.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        match self.held_bytes < self.work.memory_bytes {
            true => Ok(()),
            false => self.spill().await,
        }
    }

    async fn spill(&mut self) -> Result<()> {
        if self.writers.is_empty() {
            let arena = arena(&self.work)?;
            let writer = |_: &Vec<Chunk>| RunWriter::new(&self.work, &arena);
            self.writers = self.partitions.iter().map(writer).collect();
        }
        for (chunks, writer) in self.partitions.iter_mut().zip(&mut self.writers) {
            for chunk in chunks.drain(..) {
                for row in chunk.iter() {
                    writer.put(row).await?;
                }
            }
        }
        self.held_bytes = 0;
        Ok(())
    }

    /// The partitions: all in memory, or nothing.
    pub(super) async fn finish(self) -> Result<Vec<KeptRows>> {
        match self.writers.is_empty() {
            true => {
                let parts = self.partitions.into_iter().map(|chunks| KeptRows {
                    chunks,
                    runs: Vec::new(),
                });
                Ok(parts.collect())
            }
            false => self.finish_spilled().await,
        }
    }

    /// The partitions, nothing of them in memory.
    pub(super) async fn finish_spilled(mut self) -> Result<Vec<KeptRows>> {
        self.spill().await?;
        let mut parts = Vec::new();
        for writer in self.writers {
            parts.push(KeptRows {
                chunks: Vec::new(),
                runs: vec![writer.finish().await?],
            });
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_and_fill_partitions_fairly() {
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
