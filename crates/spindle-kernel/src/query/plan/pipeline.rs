//! What a process does with each row of a step: filters, other columns, joins with what is in memory, and at the end
//! whatever keeps it. No row is copied on the way but where it is kept.

use std::sync::Arc;

use spindle_query::{Bound, Columns, Projection, Row, Test};

use super::group::{GroupShape, Grouper};
use super::join::{InMemory, JoinShape};
use super::rows::{Collector, Part};
use crate::error::{KernelError, Result};
use crate::temp::TempWork;
use crate::temp::sort::{self, Sorter};

/// Rows beyond twice the limit of an answer after which those that do not belong to it are dropped.
const TOP_SLACK: usize = 64;

/// Something that is done to each row.
pub(super) enum Op {
    /// Only those for which a condition holds go on.
    Filter(Test),
    /// A row of other columns goes on.
    Select(Columns, Vec<Bound>),
    /// Those go on that a join makes of it.
    Join(InMemory),
}

/// What keeps the rows at the end of a step.
pub(super) enum Keep {
    /// One after the other.
    Rows(Projection),
    /// By their keys.
    Keyed(Arc<JoinShape>, Projection),
    /// Added up.
    Groups(Arc<GroupShape>),
    /// In an order.
    Sorted(Order),
}

/// An order of rows.
pub(super) struct Order {
    /// What decides, and whether the greatest comes first.
    pub(super) by: Vec<(Bound, bool)>,
    /// The columns that are kept.
    pub(super) columns: Projection,
    /// How many rows are wanted.
    pub(super) limit: Option<usize>,
}

impl Order {
    /// A record whose bytes are in the order: the key, the row, and the key's length.
    fn encode(&self, row: &Row<'_>, record: &mut Vec<u8>) {
        record.clear();
        for (of, is_descending) in &self.by {
            of.put_in_order(row, *is_descending, record);
        }
        let key_bytes = record.len() as u32;
        self.columns.append(row, record);
        record.extend_from_slice(&key_bytes.to_le_bytes());
    }

    /// The row of a record.
    pub(super) fn row_of(record: &[u8]) -> &[u8] {
        let (rest, length) = record.split_at(record.len() - 4);
        let key_bytes = u32::from_le_bytes(length.try_into().expect("four bytes"));
        &rest[key_bytes as usize..]
    }
}

/// What a process has kept.
pub(super) enum Kept {
    /// Rows, partition by partition.
    Parts(Vec<Part>),
    /// Sorted records.
    Sorted(Vec<sort::Part>),
}

enum Keeper<'a> {
    Rows(Collector, &'a Projection),
    Keyed(Collector, &'a JoinShape, &'a Projection),
    Groups(Grouper),
    Top(Vec<Vec<u8>>, usize, &'a Order),
    Sorted(Sorter, &'a Order),
}

/// Where the rows of a process go.
pub(super) struct Output<'a> {
    work: TempWork,
    deadline_ns: Option<u64>,
    ops: &'a [Op],
    /// Room for each step to work in.
    rooms: Vec<Vec<u8>>,
    keeper: Keeper<'a>,
    room: Vec<u8>,
}

impl<'a> Output<'a> {
    /// Through these steps to what keeps them.
    pub(super) fn new(
        work: &TempWork,
        deadline_ns: Option<u64>,
        ops: &'a [Op],
        keep: &'a Keep,
    ) -> Output<'a> {
        let collector = |is_keyed| Collector::new(work, 0, is_keyed);
        Output {
            work: work.clone(),
            deadline_ns,
            ops,
            rooms: vec![Vec::new(); ops.len()],
            keeper: match keep {
                Keep::Rows(columns) => Keeper::Rows(collector(false), columns),
                Keep::Keyed(shape, columns) => Keeper::Keyed(collector(true), shape, columns),
                Keep::Groups(shape) => Keeper::Groups(Grouper::new(work, shape, 0)),
                Keep::Sorted(order) => match order.limit {
                    Some(limit) => Keeper::Top(Vec::new(), limit, order),
                    None => Keeper::Sorted(Sorter::new(work), order),
                },
            },
            room: Vec::new(),
        }
    }

    /// A row comes; [`Output::make_room`] is due now and then.
    pub(super) fn push(&mut self, row: &Row<'_>) {
        let (keeper, room) = (&mut self.keeper, &mut self.room);
        through(self.ops, &mut self.rooms, row, &mut |row| {
            keeper.take(row, room);
        });
    }

    /// Spills what takes too much memory. Error when the query has taken too long, or the instance has ended.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        let sga = &self.work.sga;
        sga.health.check()?;
        if self
            .deadline_ns
            .is_some_and(|deadline| sga.env.now() > deadline)
        {
            return Err(KernelError::QueryTooLong);
        }
        match &mut self.keeper {
            Keeper::Rows(collector, _) | Keeper::Keyed(collector, ..) => {
                collector.make_room().await
            }
            Keeper::Groups(grouper) => grouper.make_room().await,
            Keeper::Sorted(sorter, _) => sorter.make_room().await,
            Keeper::Top(..) => Ok(()),
        }
    }

    /// What has been kept.
    pub(super) async fn finish(self) -> Result<Kept> {
        Ok(match self.keeper {
            Keeper::Rows(collector, _) | Keeper::Keyed(collector, ..) => {
                Kept::Parts(collector.finish().await?)
            }
            Keeper::Groups(grouper) => Kept::Parts(grouper.finish().await?),
            Keeper::Sorted(sorter, _) => Kept::Sorted(sorter.finish().await?),
            Keeper::Top(records, ..) => {
                let mut sorter = Sorter::new(&self.work);
                records.iter().for_each(|record| sorter.add(record));
                Kept::Sorted(sorter.finish().await?)
            }
        })
    }
}

/// Takes a row through steps.
fn through(ops: &[Op], rooms: &mut [Vec<u8>], row: &Row<'_>, last: &mut dyn FnMut(&Row<'_>)) {
    let (Some((op, ops)), Some((room, rooms))) = (ops.split_first(), rooms.split_first_mut())
    else {
        return last(row);
    };
    match op {
        Op::Filter(test) => {
            if test.holds(row) {
                through(ops, rooms, row, last);
            }
        }
        Op::Select(columns, exprs) => {
            let mut encoder = columns.encoder(room);
            exprs.iter().for_each(|of| of.encode(row, &mut encoder));
            through(ops, rooms, &Row::of(room), last);
        }
        Op::Join(join) => join.push(row, room, |row| through(ops, rooms, row, last)),
    }
}

impl Keeper<'_> {
    fn take(&mut self, row: &Row<'_>, room: &mut Vec<u8>) {
        match self {
            Keeper::Rows(collector, columns) => {
                collector.add(0, |into| columns.append(row, into));
            }
            Keeper::Keyed(collector, shape, columns) => {
                let hash = shape.key_of(row, room);
                collector.add(hash, |into| {
                    into.extend_from_slice(room);
                    columns.append(row, into);
                });
            }
            Keeper::Groups(grouper) => grouper.add(row),
            Keeper::Sorted(sorter, order) => {
                order.encode(row, room);
                sorter.add(room);
            }
            Keeper::Top(records, limit, order) => {
                order.encode(row, room);
                records.push(room.clone());
                if records.len() > 2 * *limit + TOP_SLACK {
                    records.sort_unstable();
                    records.truncate(*limit);
                }
            }
        }
    }
}
