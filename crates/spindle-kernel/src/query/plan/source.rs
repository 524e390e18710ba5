//! Where the rows of a step come from: a table, an index, groups, or the partitions of a join that did not fit into
//! memory. Slaves take pieces of it in turn, or have their share dealt out to them.

use std::ops::ControlFlow;
use std::sync::Arc;

use spindle_io::sync::Latch;
use spindle_query::{Projection, Row};

use super::group::{GroupShape, Grouper};
use super::join::JoinShape;
use super::pairs::{Pair, join_partitions};
use super::pipeline::Output;
use super::rows::{Chunk, KeptRows};
use crate::error::Result;
use crate::index::Index;
use crate::query::slaves::{Granules, Slaves};
use crate::session::Session;
use crate::table::Table;
use crate::temp::TempWork;

/// Groups after which room is made for what comes of them.
const GROUPS_IN_BATCH: usize = 1024;

/// The shares of slaves.
type Dealt<T> = Latch<Vec<Vec<T>>>;

/// Rows at the beginning of a step: of a table `T`, in parts `P`, or in pairs of parts `Q`.
pub(super) enum Source<T = Arc<Table>, P = Vec<KeptRows>, Q = Vec<Pair>> {
    /// Of a table.
    Table(T),
    /// Groups.
    Groups(P, Arc<GroupShape>),
    /// Pairs of two sides, partition by partition.
    Pairs(Q, Arc<JoinShape>),
    /// Rows, each with those that an index has for its key.
    Lookup(P, Arc<LookupShape>),
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
pub(super) type Shared = Source<(Arc<Table>, Arc<Granules>), Dealt<KeptRows>, Dealt<Pair>>;

impl Source {
    /// Makes it ready.
    pub(super) fn share(self, slaves: &Slaves) -> Shared {
        match self {
            Source::Table(table) => {
                let granules = slaves.granules(&table);
                Source::Table((table, granules))
            }
            Source::Groups(parts, shape) => Source::Groups(slaves.deal(parts), shape),
            Source::Pairs(pairs, shape) => Source::Pairs(slaves.deal(pairs), shape),
            Source::Lookup(parts, shape) => {
                let pieces = parts.into_iter().flat_map(KeptRows::pieces).collect();
                Source::Lookup(slaves.deal(pieces), shape)
            }
        }
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
            Source::Table((table, granules)) => {
                while let Some((first, blocks)) = granules.next() {
                    let take = |_, row: &[u8]| {
                        output.push(&Row::of(row));
                    };
                    session.scan_as_of(table, first, blocks, scn, take).await?;
                    output.make_room().await?;
                }
                Ok(())
            }
            Source::Groups(dealt, shape) => {
                let mine = dealt.lock().pop().unwrap_or_default();
                fold_partitions(work, shape, mine, output).await
            }
            Source::Pairs(dealt, shape) => {
                let mine = dealt.lock().pop().unwrap_or_default();
                join_partitions(work, shape, mine, output).await
            }
            Source::Lookup(dealt, shape) => {
                let mine = dealt.lock().pop().unwrap_or_default();
                for part in mine {
                    let mut reader = part.reader(work);
                    while let Some(rows) = reader.next().await? {
                        look_up(session, scn, shape, &rows, output).await?;
                    }
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
    rows: &Chunk,
    output: &mut Output<'_>,
) -> Result<()> {
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for row in rows.iter() {
        let row = Row::of(row);
        from.clear();
        shape.key.append(&row, &mut from);
        to.clear();
        to.extend_from_slice(&from);
        // Behind every key that begins so.
        to.resize(shape.key_bytes, 0xFF);
        let take = |_: &[u8], _, found: &[u8]| match output.push(&row.and(found)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        session
            .range_as_of(&shape.index, &from, Some(&to), scn, take)
            .await?;
        output.make_room().await?;
    }
    Ok(())
}

/// Folds partitions until each key occurs once, and hands its groups on.
async fn fold_partitions(
    work: &TempWork,
    shape: &Arc<GroupShape>,
    partitions: Vec<KeptRows>,
    output: &mut Output<'_>,
) -> Result<()> {
    let mut waiting: Vec<(KeptRows, u32)> = partitions.into_iter().map(|part| (part, 1)).collect();
    let mut numbers = Vec::new();
    while let Some((part, depth)) = waiting.pop() {
        let mut grouper = Grouper::new(work, shape, depth);
        let mut reader = part.reader(work);
        while let Some(records) = reader.next().await? {
            work.check()?;
            records.iter().for_each(|record| grouper.add_group(record));
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
