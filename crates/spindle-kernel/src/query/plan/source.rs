//! Where the rows of a step come from: a table, an index, groups, or the partitions of a join that did not fit into
//! memory. Slaves take pieces of it in turn, or have their share dealt out to them.

use std::ops::ControlFlow;
use std::sync::Arc;

use spindle_io::sync::Latch;
use spindle_query::{Projection, Row};

use super::group::{GroupShape, Grouper};
use super::join::{JoinShape, Table as JoinTable};
use super::pipeline::Output;
use super::rows::{Collector, DEPTH_MAX, Part, hash, iter};
use crate::error::Result;
use crate::index::Index;
use crate::query::slaves::{Granules, Slaves};
use crate::session::Session;
use crate::settings::PlantedFault;
use crate::table::Table;
use crate::temp::TempWork;

/// Groups after which room is made for what comes of them.
const GROUPS_IN_BATCH: usize = 1024;

/// The shares of slaves.
type Dealt<T> = Latch<Vec<Vec<T>>>;

/// Rows at the beginning of a step.
pub(super) enum Source {
    /// Of a table.
    Table(Arc<Table>),
    /// Groups.
    Groups(Vec<Part>, Arc<GroupShape>),
    /// Pairs of two sides, partition by partition.
    Pairs(Vec<(Part, Part)>, Arc<JoinShape>),
    /// Rows, each with those that an index has for its key.
    Lookup(Vec<Part>, Arc<LookupShape>),
}

/// How rows are looked up.
pub(super) struct LookupShape {
    pub(super) index: Arc<Index>,
    /// The first parts of the key, in rows that were kept.
    pub(super) key: Projection,
    /// Bytes of a whole key.
    pub(super) key_bytes: usize,
}

/// The same, ready for slaves.
pub(super) enum Shared {
    Table(Arc<Table>, Arc<Granules>),
    Groups(Dealt<Part>, Arc<GroupShape>),
    Pairs(Dealt<(Part, Part)>, Arc<JoinShape>),
    Lookup(Dealt<Vec<u8>>, Arc<LookupShape>),
}

impl Source {
    /// Makes it ready.
    pub(super) async fn share(self, slaves: &Slaves, work: &TempWork) -> Result<Shared> {
        Ok(match self {
            Source::Table(table) => {
                let granules = slaves.granules(&table);
                Shared::Table(table, granules)
            }
            Source::Groups(parts, shape) => Shared::Groups(slaves.deal(parts), shape),
            Source::Pairs(pairs, shape) => Shared::Pairs(slaves.deal(pairs), shape),
            Source::Lookup(parts, shape) => {
                let mut batches = Vec::new();
                for part in parts {
                    let mut reader = part.reader(work);
                    while let Some(rows) = reader.next().await? {
                        batches.push(rows);
                    }
                }
                Shared::Lookup(slaves.deal(batches), shape)
            }
        })
    }
}

impl Shared {
    /// Hands a slave's rows on, those of tables as of an SCN.
    pub(super) async fn drive(
        &self,
        work: &TempWork,
        session: &mut Session,
        scn: u64,
        output: &mut Output<'_>,
    ) -> Result<()> {
        match self {
            Shared::Table(table, granules) => {
                while let Some((first, blocks)) = granules.next() {
                    let take = |_, row: &[u8]| output.push(&Row::of(row));
                    session.scan_as_of(table, first, blocks, scn, take).await?;
                    output.make_room().await?;
                }
                Ok(())
            }
            Shared::Groups(dealt, shape) => {
                let mine = dealt.lock().pop().unwrap_or_default();
                fold_partitions(work, shape, mine, output).await
            }
            Shared::Pairs(dealt, shape) => {
                let mine = dealt.lock().pop().unwrap_or_default();
                join_partitions(work, shape, mine, output).await
            }
            Shared::Lookup(dealt, shape) => {
                let mine = dealt.lock().pop().unwrap_or_default();
                for rows in mine {
                    look_up(session, scn, shape, &rows, output).await?;
                }
                Ok(())
            }
        }
    }
}

/// Hands on each row with those that an index has for it.
async fn look_up(
    session: &mut Session,
    scn: u64,
    shape: &LookupShape,
    rows: &[u8],
    output: &mut Output<'_>,
) -> Result<()> {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for row in iter(rows) {
        let row = Row::of(row);
        from.clear();
        shape.key.append(&row, &mut from);
        to.clear();
        to.extend_from_slice(&from);
        // Behind every key that begins so.
        to.resize(shape.key_bytes, 0xFF);
        let take = |_: &[u8], _, found: &[u8]| {
            output.push(&row.and(found));
            ControlFlow::Continue(())
        };
        session
            .range_as_of(&shape.index, &from, Some(&to), scn, take)
            .await?;
        output.make_room().await?;
    }
    Ok(())
}

/// Joins the partitions of two sides that do not fit into memory, as far as they are one process's.
async fn join_partitions(
    work: &TempWork,
    shape: &JoinShape,
    partitions: Vec<(Part, Part)>,
    output: &mut Output<'_>,
) -> Result<()> {
    let mut waiting: Vec<(Part, Part, u32)> = partitions
        .into_iter()
        .map(|(kept, read)| (kept, read, 1))
        .collect();
    if work
        .sga
        .settings
        .has_planted(PlantedFault::JoinPartitionLost)
    {
        waiting.pop();
    }
    while let Some((kept, read, depth)) = waiting.pop() {
        if kept.bytes() > work.memory_bytes as u64 && depth < DEPTH_MAX {
            let kept = partitioned(work, kept, depth, shape.key_bytes).await?;
            let read = partitioned(work, read, depth, shape.key_bytes).await?;
            let pairs = kept.into_iter().zip(read);
            waiting.extend(pairs.map(|(kept, read)| (kept, read, depth + 1)));
            continue;
        }
        let mut chunks = Vec::new();
        let mut reader = kept.reader(work);
        while let Some(rows) = reader.next().await? {
            chunks.push(rows);
        }
        let table = JoinTable::new(chunks, shape.key_bytes);
        let mut reader = read.reader(work);
        while let Some(rows) = reader.next().await? {
            for row in iter(&rows) {
                let (key, row) = row.split_at(shape.key_bytes);
                let hashed = (hash(key), key);
                shape.join(&table, hashed, &Row::of(row), |row| output.push(row));
            }
            output.make_room().await?;
        }
    }
    Ok(())
}

/// A partition, partitioned again.
async fn partitioned(
    work: &TempWork,
    part: Part,
    depth: u32,
    key_bytes: usize,
) -> Result<Vec<Part>> {
    let mut collector = Collector::new(work, depth, true);
    let mut reader = part.reader(work);
    while let Some(rows) = reader.next().await? {
        for row in iter(&rows) {
            collector.add(hash(&row[..key_bytes]), |into| into.extend_from_slice(row));
        }
        collector.make_room().await?;
    }
    collector.finish().await
}

/// Folds partitions until each key is there once, and hands its groups on.
async fn fold_partitions(
    work: &TempWork,
    shape: &Arc<GroupShape>,
    partitions: Vec<Part>,
    output: &mut Output<'_>,
) -> Result<()> {
    let mut waiting: Vec<(Part, u32)> = partitions.into_iter().map(|part| (part, 1)).collect();
    let mut numbers = Vec::new();
    while let Some((part, depth)) = waiting.pop() {
        let mut grouper = Grouper::new(work, shape, depth);
        let mut reader = part.reader(work);
        while let Some(records) = reader.next().await? {
            iter(&records).for_each(|record| grouper.add_group(record));
            grouper.make_room().await?;
        }
        let groups = match grouper.groups().await? {
            Ok(groups) => groups,
            Err(parts) => {
                waiting.extend(parts.into_iter().map(|part| (part, depth + 1)));
                continue;
            }
        };
        for group in 0..groups.count() {
            let key = groups.group(group, &mut numbers);
            output.push(&Row::of(key).and(&numbers));
            if group % GROUPS_IN_BATCH == 0 {
                output.make_room().await?;
            }
        }
        output.make_room().await?;
    }
    Ok(())
}
