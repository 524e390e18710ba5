//! Queries over all rows of a table, as decision support asks them: a full scan with multi-block reads, then groups or
//! an order, in memory or in temporary segments. Query slaves carry out the parts of a query side by side, each a
//! process with a session; all of them see the rows as of one SCN. Programs call [`ask`].

mod plan;
mod slaves;

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::change::transaction::statement_scn;
use crate::error::Result;
use crate::index::KeyPart;
use crate::session::Session;
use crate::table::Table;
use crate::temp::aggregate::{Aggregator, Folding, Group, Partition, decode, encode};
use crate::temp::sort::{Merge, SortedPart, Sorter};
pub use plan::ask_plan;
use slaves::Slaves;

/// Rows that count: those whose number at some place, the highest byte first, lies in a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFilter {
    /// Where the number is; of up to 8 bytes.
    pub number: KeyPart,
    /// The range.
    pub range: RangeInclusive<u64>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryShape {
    /// The groups of rows with the same key: the number of rows and the sum of each of some numbers.
    Aggregate {
        /// The key; without parts all rows are one group.
        key: Vec<KeyPart>,
        /// The numbers, of up to 8 bytes, the highest first. Sums wrap around.
        sums: Vec<KeyPart>,
        /// In which order the groups come.
        order: GroupOrder,
    },
    /// The rows in the order of a key.
    Sort {
        /// The key.
        key: Vec<KeyPart>,
    },
}

/// In which order groups come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupOrder {
    /// By their keys.
    Key,
    /// By their first sums, the greatest first; where these are equal by their keys.
    LargestSum,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelQuery {
    /// Which rows; `None`: all.
    pub filter: Option<RowFilter>,
    /// What of them.
    pub plan: QueryShape,
    /// Processes that carry it out; 1: the session itself.
    pub slaves: usize,
}

/// One row of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerRow<'a> {
    /// A group.
    Group {
        /// Its key.
        key: &'a [u8],
        /// How many rows it has, and the sums.
        counters: &'a [u64],
    },
    /// A row.
    Row(&'a [u8]),
}

/// Carries a query out for a session; `take` gets the answer, row by row. It sees what had been committed when it
/// began, and nothing of the session's own transaction: its slaves have their own sessions.
///
/// # Errors
/// [`crate::KernelError::TempFull`], [`crate::KernelError::TempIo`], or a block that cannot be read. The temporary
/// segments of the query are free again in any case.
pub async fn ask(
    session: &mut Session,
    table: &Arc<Table>,
    query: &Arc<KernelQuery>,
    mut take: impl FnMut(AnswerRow<'_>),
) -> Result<()> {
    let work = &session.work();
    let scn = statement_scn(&work.sga);
    let slaves = Slaves::new(work, query.slaves);
    let parts = match &query.plan {
        QueryShape::Sort { key } => sorted_rows(&slaves, table, query, key, scn).await?,
        QueryShape::Aggregate { key, sums, order } => {
            let counters = 1 + sums.len();
            let partitions = partitions(&slaves, table, query, (key, sums), scn).await?;
            sorted_groups(&slaves, partitions, counters, *order).await?
        }
    };
    let mut merge = Merge::new(work, parts).await?;
    let (mut record, mut counters) = (Vec::new(), Vec::new());
    while merge.next(&mut record).await? {
        work.sga.health.check()?;
        match &query.plan {
            QueryShape::Sort { key } => take(AnswerRow::Row(&record[bytes_of(key)..])),
            QueryShape::Aggregate { sums, order, .. } => {
                let record = &record[order.bytes()..];
                let key = decode(record, 1 + sums.len(), &mut counters);
                take(AnswerRow::Group {
                    key,
                    counters: &counters,
                });
            }
        }
    }
    Ok(())
}

/// Every slave sorts the rows of its granules.
async fn sorted_rows(
    slaves: &Slaves,
    table: &Arc<Table>,
    query: &Arc<KernelQuery>,
    key: &[KeyPart],
    scn: u64,
) -> Result<Vec<SortedPart>> {
    let granules = slaves.granules(table);
    let (table, query) = (Arc::clone(table), Arc::clone(query));
    let key: Arc<[KeyPart]> = Arc::from(key);
    let parts = slaves.all(move |work, session| {
        let (table, query) = (Arc::clone(&table), Arc::clone(&query));
        let (granules, key) = (Arc::clone(&granules), Arc::clone(&key));
        Box::pin(async move {
            let mut sorter = Sorter::new(&work);
            let mut record = Vec::new();
            while let Some(granule) = granules.next() {
                let add = |row: &[u8]| {
                    record.clear();
                    put_key(&mut record, &key, row);
                    record.extend_from_slice(row);
                    sorter.add(&record);
                };
                scan(session, &table, &query, granule, scn, add).await?;
                sorter.make_room().await?;
            }
            sorter.finish().await
        })
    });
    Ok(parts.await?.into_iter().flatten().collect())
}

/// Every slave aggregates the rows of its granules, their sums by key; the partitions of all together.
async fn partitions(
    slaves: &Slaves,
    table: &Arc<Table>,
    query: &Arc<KernelQuery>,
    (key, sums): (&[KeyPart], &[KeyPart]),
    scn: u64,
) -> Result<Vec<Partition>> {
    let granules = slaves.granules(table);
    let (table, query) = (Arc::clone(table), Arc::clone(query));
    let (key, sums): (Arc<[KeyPart]>, Arc<[KeyPart]>) = (Arc::from(key), Arc::from(sums));
    let all = slaves.all(move |work, session| {
        let (table, query) = (Arc::clone(&table), Arc::clone(&query));
        let (key, sums) = (Arc::clone(&key), Arc::clone(&sums));
        let granules = Arc::clone(&granules);
        Box::pin(async move {
            let mut aggregator = Aggregator::new(&work);
            let (mut group, mut added) = (Vec::new(), Vec::new());
            while let Some(granule) = granules.next() {
                let add = |row: &[u8]| {
                    group.clear();
                    put_key(&mut group, &key, row);
                    added.clear();
                    added.push(1);
                    added.extend(sums.iter().map(|sum| number(sum, row)));
                    aggregator.add(&group, &added);
                };
                scan(session, &table, &query, granule, scn, add).await?;
                aggregator.make_room().await?;
            }
            aggregator.finish().await
        })
    });
    let mut all = all.await?.into_iter();
    let first = all.next().unwrap_or_default();
    Ok(all.fold(first, |sum, partitions| {
        let pairs = sum.into_iter().zip(partitions);
        pairs.map(|(one, other)| one.and(other)).collect()
    }))
}

/// The slaves fold the partitions, each its own, and sort their groups.
async fn sorted_groups(
    slaves: &Slaves,
    partitions: Vec<Partition>,
    counters: usize,
    order: GroupOrder,
) -> Result<Vec<SortedPart>> {
    let dealt = slaves.deal(partitions);
    let parts = slaves.all(move |work, _| {
        let mine = dealt.lock().pop().unwrap_or_default();
        Box::pin(async move {
            let mut folding = Folding::new(&work, counters, mine);
            let mut sorter = Sorter::new(&work);
            let mut record = Vec::new();
            while let Some(groups) = folding.next().await? {
                for group in groups {
                    order.encode(&mut record, &group);
                    sorter.add(&record);
                    sorter.make_room().await?;
                }
            }
            sorter.finish().await
        })
    });
    Ok(parts.await?.into_iter().flatten().collect())
}

impl GroupOrder {
    /// Bytes before a group's key by which groups are sorted.
    fn bytes(self) -> usize {
        match self {
            GroupOrder::Key => 0,
            GroupOrder::LargestSum => 8,
        }
    }

    fn encode(self, record: &mut Vec<u8>, (key, counters): &Group) {
        encode(record, key, counters);
        if self == GroupOrder::LargestSum {
            let sum = counters.get(1).copied().unwrap_or(counters[0]);
            record.splice(0..0, (!sum).to_be_bytes());
        }
    }
}

/// Reads the rows of a granule that count.
async fn scan(
    session: &mut Session,
    table: &Table,
    query: &KernelQuery,
    (first, blocks): (u64, u64),
    scn: u64,
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    let counts = |row: &[u8]| match &query.filter {
        Some(filter) => filter.range.contains(&number(&filter.number, row)),
        None => true,
    };
    let take = |_, row: &[u8]| {
        if counts(row) {
            take(row);
        }
    };
    session.scan_as_of(table, first, blocks, scn, take).await
}

fn bytes_of(key: &[KeyPart]) -> usize {
    key.iter().map(|part| usize::from(part.bytes)).sum()
}

/// Bytes of a part; those beyond the end of the row are zeros.
fn put_key(key: &mut Vec<u8>, parts: &[KeyPart], row: &[u8]) {
    for part in parts {
        let (start, bytes) = (usize::from(part.offset), usize::from(part.bytes));
        let there = row.get(start..).unwrap_or_default();
        let there = &there[..bytes.min(there.len())];
        key.extend_from_slice(there);
        key.resize(key.len() + bytes - there.len(), 0);
    }
}

/// The number at a place, the highest byte first.
fn number(part: &KeyPart, row: &[u8]) -> u64 {
    let start = usize::from(part.offset);
    let bytes = row.get(start..start + usize::from(part.bytes).min(8));
    let bytes = bytes.unwrap_or_default().iter();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}
