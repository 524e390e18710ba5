//! Joins of two sides that went to temporary segments, partition by partition. One that does not fit into memory is
//! partitioned again. Where that does not part its rows, because many have the same key, they come into memory a part
//! after the other, and the other side is read once for each.

use spindle_query::Row;

use super::join::{JoinShape, JoinTable, Pass};
use super::pipeline::Output;
use super::rows::{Collector, DEPTH_MAX, KeptRows, PartReader, SLOT_BYTES, hash};
use crate::error::Result;
use crate::settings::PlantedFault;
use crate::temp::TempWork;
use crate::temp::run::{RunWriter, arena};

/// The same partition of both sides.
pub(super) struct Pair {
    kept: KeptRows,
    read: KeptRows,
    /// How often both have been partitioned.
    depth: u32,
    /// What the kept side needed in memory before it was partitioned last.
    whole_bytes: u64,
}

impl Pair {
    /// Partitioned once.
    pub(super) fn new(kept: KeptRows, read: KeptRows) -> Pair {
        Pair {
            kept,
            read,
            depth: 1,
            whole_bytes: u64::MAX,
        }
    }

    /// Whether it should be partitioned once more: it is too long, and the last time an eighth or more went elsewhere.
    fn is_to_be_parted(&self, work: &TempWork) -> bool {
        let bytes = self.kept.table_bytes();
        bytes > work.memory_bytes as u64
            && bytes <= self.whole_bytes - self.whole_bytes / 8
            && self.depth < DEPTH_MAX
    }

    async fn parted(self, work: &TempWork, key_bytes: usize) -> Result<Vec<Pair>> {
        let (depth, whole_bytes) = (self.depth, self.kept.table_bytes());
        let kept = partitioned(work, self.kept, depth, key_bytes).await?;
        let read = partitioned(work, self.read, depth, key_bytes).await?;
        let pairs = kept.into_iter().zip(read);
        let pair = |(kept, read)| Pair {
            kept,
            read,
            depth: depth + 1,
            whole_bytes,
        };
        Ok(pairs.map(pair).collect())
    }
}

/// A partition, partitioned again.
async fn partitioned(
    work: &TempWork,
    part: KeptRows,
    depth: u32,
    key_bytes: usize,
) -> Result<Vec<KeptRows>> {
    let mut collector = Collector::of_join(work, depth);
    let mut reader = part.reader(work);
    while let Some(rows) = reader.next().await? {
        work.check()?;
        for row in rows.iter() {
            collector.add(hash(&row[..key_bytes]), |into| into.extend_from_slice(row));
        }
        collector.make_room().await?;
    }
    collector.finish_spilled().await
}

/// Joins pairs of partitions, as far as they are one process's.
pub(super) async fn join_partitions(
    work: &TempWork,
    shape: &JoinShape,
    mut waiting: Vec<Pair>,
    output: &mut Output<'_>,
) -> Result<()> {
    let planted = PlantedFault::JoinPartitionLost;
    if work.sga.settings.has_planted(planted) {
        waiting.pop();
    }
    while let Some(pair) = waiting.pop() {
        match pair.is_to_be_parted(work) {
            true => waiting.extend(pair.parted(work, shape.key_bytes).await?),
            false => join_pair(work, shape, pair, output).await?,
        }
    }
    Ok(())
}

/// Joins a pair: with one table, or with as many as the kept side needs.
async fn join_pair(
    work: &TempWork,
    shape: &JoinShape,
    pair: Pair,
    output: &mut Output<'_>,
) -> Result<()> {
    let mut kept = pair.kept.reader(work);
    let (mut read, mut is_first) = (pair.read, true);
    loop {
        let (table, is_last) = next_table(work, shape.key_bytes, &mut kept).await?;
        let carried = join_table(work, shape, &table, read, (is_first, is_last), output);
        read = carried.await?;
        if is_last {
            return Ok(());
        }
        is_first = false;
    }
}

/// A table of as many rows as fit into memory, and whether there are no more.
async fn next_table(
    work: &TempWork,
    key_bytes: usize,
    kept: &mut PartReader,
) -> Result<(JoinTable, bool)> {
    let (mut chunks, mut bytes, mut is_last) = (Vec::new(), 0, false);
    while !is_last && bytes < work.memory_bytes {
        match kept.next().await? {
            Some(chunk) => {
                bytes += chunk.bytes() + SLOT_BYTES * chunk.iter().count();
                chunks.push(chunk);
            }
            None => is_last = true,
        }
    }
    Ok((JoinTable::new(work, chunks, key_bytes)?, is_last))
}

/// Joins rows with a table, the first of several, or the last. Those that further tables must see are carried on, each
/// with whether one was found behind it.
async fn join_table(
    work: &TempWork,
    shape: &JoinShape,
    table: &JoinTable,
    read: KeptRows,
    (is_first, is_last): (bool, bool),
    output: &mut Output<'_>,
) -> Result<KeptRows> {
    let mut carried = match is_last {
        true => None,
        false => Some(RunWriter::new(work, &arena(work)?)),
    };
    let (mut reader, mut record) = (read.reader(work), Vec::new());
    while let Some(rows) = reader.next().await? {
        for kept in rows.iter() {
            let (key, row) = kept.split_at(shape.key_bytes);
            let (row, was_found) = match row.split_last() {
                Some((found, row)) if !is_first => (row, *found != 0),
                _ => (row, false),
            };
            let pass = Pass { was_found, is_last };
            let push = |row: &Row<'_>| output.push(row);
            let found = shape.join(table, (hash(key), key), &Row::of(row), pass, push);
            output.make_room_if_due().await?;
            if let Some(carried) = &mut carried
                && shape.goes_on(found)
            {
                record.clear();
                record.extend_from_slice(key);
                record.extend_from_slice(row);
                record.push(u8::from(found));
                carried.put(&record).await?;
            }
        }
        output.make_room().await?;
    }
    let mut rest = KeptRows::default();
    if let Some(carried) = carried {
        rest.runs.push(carried.finish().await?);
    }
    Ok(rest)
}
