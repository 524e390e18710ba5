//! Hash aggregation: counters for each key, in memory. When that is full, all groups go into partitions by a hash of
//! their keys, and the table begins again. At the end each partition is folded by itself, its groups then few enough to
//! fit, or partitioned again.

use std::hash::Hasher;
use std::mem;

use rustc_hash::{FxHashMap, FxHasher};

use super::TempWork;
use super::run::{Run, RunReader, RunWriter, arena};
use crate::error::Result;

/// Partitions of a table that is full: their I/Os take a quarter of the memory.
const PARTITIONS: usize = 8;
/// What a group takes in memory beyond its key and counters: its places in the table, two allocations.
const GROUP_BYTES: usize = 96;
/// Tables are partitioned again at most this often: then equal hashes are more likely than many keys.
const DEPTH_MAX: u32 = 8;
/// Bytes of a counter.
const COUNTER_BYTES: usize = 8;

/// A key with its counters, which are added up.
pub(crate) type Group = (Vec<u8>, Vec<u64>);

/// One of the partitions of a table: some groups in memory, the others in a run.
#[derive(Default)]
pub(crate) struct Partition {
    groups: Vec<Group>,
    runs: Vec<Run>,
}

impl Partition {
    /// With what another table has of the same partition.
    pub(crate) fn and(mut self, other: Partition) -> Partition {
        self.groups.extend(other.groups);
        self.runs.extend(other.runs);
        self
    }
}

/// Adds counters up for each key.
pub(crate) struct Aggregator {
    work: TempWork,
    /// How often its keys have been partitioned before.
    depth: u32,
    table: FxHashMap<Vec<u8>, Vec<u64>>,
    table_bytes: usize,
    writers: Vec<RunWriter>,
}

impl Aggregator {
    /// Without groups.
    pub(crate) fn new(work: &TempWork) -> Aggregator {
        Aggregator::at_depth(work, 0)
    }

    fn at_depth(work: &TempWork, depth: u32) -> Aggregator {
        Aggregator {
            work: work.clone(),
            depth,
            table: FxHashMap::default(),
            table_bytes: 0,
            writers: Vec::new(),
        }
    }

    /// Adds to the counters of a key; [`Aggregator::make_room`] is due now and then.
    pub(crate) fn add(&mut self, key: &[u8], counters: &[u64]) {
        if let Some(sums) = self.table.get_mut(key) {
            for (sum, counter) in sums.iter_mut().zip(counters) {
                *sum = sum.wrapping_add(*counter);
            }
            return;
        }
        self.table_bytes += GROUP_BYTES + key.len() + COUNTER_BYTES * counters.len();
        self.table.insert(key.to_vec(), counters.to_vec());
    }

    /// Writes all groups into their partitions when they take all the memory that there may be.
    pub(crate) async fn make_room(&mut self) -> Result<()> {
        if self.table_bytes < self.work.memory_bytes || self.depth >= DEPTH_MAX {
            return Ok(());
        }
        if self.writers.is_empty() {
            let arena = arena(&self.work)?;
            let writer = |_| RunWriter::new(&self.work, &arena);
            self.writers = (0..PARTITIONS).map(writer).collect();
        }
        let mut record = Vec::new();
        for (key, counters) in mem::take(&mut self.table) {
            encode(&mut record, &key, &counters);
            self.writers[partition_of(&key, self.depth)]
                .put(&record)
                .await?;
        }
        self.table_bytes = 0;
        Ok(())
    }

    /// The partitions of all groups. Those of two tables of the same depth belong together one by one.
    pub(crate) async fn finish(mut self) -> Result<Vec<Partition>> {
        let mut partitions: Vec<Partition> = Vec::new();
        partitions.resize_with(PARTITIONS, Partition::default);
        for (key, counters) in mem::take(&mut self.table) {
            let of = partition_of(&key, self.depth);
            partitions[of].groups.push((key, counters));
        }
        for (partition, writer) in partitions.iter_mut().zip(mem::take(&mut self.writers)) {
            partition.runs.push(writer.finish().await?);
        }
        Ok(partitions)
    }
}

/// Folds partitions until each key occurs once, and hands its groups over, table by table.
pub(crate) struct Folding {
    work: TempWork,
    counters: usize,
    /// Partitions to be folded, and how often they have been partitioned.
    waiting: Vec<(Partition, u32)>,
}

impl Folding {
    /// Of partitions that belong to different keys.
    pub(crate) fn new(work: &TempWork, counters: usize, partitions: Vec<Partition>) -> Folding {
        Folding {
            work: work.clone(),
            counters,
            waiting: partitions
                .into_iter()
                .map(|partition| (partition, 1))
                .collect(),
        }
    }

    /// The next groups, which no other table has; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Group>>> {
        while let Some((partition, depth)) = self.waiting.pop() {
            let mut table = Aggregator::at_depth(&self.work, depth);
            for (key, counters) in partition.groups {
                table.add(&key, &counters);
            }
            table.make_room().await?;
            let (mut record, mut counters) = (Vec::new(), Vec::new());
            for run in partition.runs {
                let mut reader = RunReader::new(&self.work, run)?;
                while reader.next(&mut record).await? {
                    let key = decode(&record, self.counters, &mut counters);
                    table.add(key, &counters);
                    table.make_room().await?;
                }
            }
            if table.writers.is_empty() {
                return Ok(Some(table.table.into_iter().collect()));
            }
            let partitions = table.finish().await?.into_iter();
            self.waiting
                .extend(partitions.map(|partition| (partition, depth + 1)));
        }
        Ok(None)
    }
}

/// Another one at each depth.
fn partition_of(key: &[u8], depth: u32) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write_u32(depth);
    hasher.write(key);
    // The highest bits are the best mixed ones, and those by which the table of the next depth does not go.
    (hasher.finish() >> 40) as usize % PARTITIONS
}

/// A group as a record: its key, then its counters, the highest byte first.
pub(crate) fn encode(record: &mut Vec<u8>, key: &[u8], counters: &[u64]) {
    record.clear();
    record.extend_from_slice(key);
    for counter in counters {
        record.extend_from_slice(&counter.to_be_bytes());
    }
}

/// The key of a record; its counters are put into `counters`.
pub(crate) fn decode<'a>(record: &'a [u8], count: usize, counters: &mut Vec<u64>) -> &'a [u8] {
    let (key, bytes) = record.split_at(record.len() - COUNTER_BYTES * count);
    counters.clear();
    let chunks = bytes.chunks_exact(COUNTER_BYTES);
    counters.extend(chunks.map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes"))));
    key
}
