//! What a process does with each row of a step: filters, other columns, joins with what is in memory, and at the end
//! whatever keeps it. No row is copied on the way but where it is kept.

use std::sync::Arc;

use spindle_query::{Bound, Columns, Projection, Row, Test};

use super::group::{GroupShape, Grouper};
use super::join::{InMemory, JoinShape};
use super::rows::{Collector, KeptRows};
use crate::error::Result;
use crate::temp::TempWork;
use crate::temp::sort::{self, Sorter};

/// Rows beyond twice the limit of an answer after which those that do not belong to it are dropped.
const TOP_SLACK: usize = 64;

/// Rows after which there is a look at the time, and at memory where that can be.
pub(super) const ROWS_BETWEEN_LOOKS: usize = 1024;

/// Something that is done to each row.
pub(super) enum Op {
    /// Only rows for which a condition holds are passed on.
    Filter(Test),
    /// A row of other columns is passed on.
    Select(Columns, Vec<Bound>),
    /// The rows that a join makes of it are passed on.
    Join(InMemory),
}

/// What keeps the rows at the end of a step.
pub(super) enum Keep {
    /// One after the other.
    Rows(Projection),
    /// By their keys; nothing stays in memory where `is_spilled`.
    Keyed {
        shape: Arc<JoinShape>,
        columns: Projection,
        is_spilled: bool,
    },
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
    Parts(Vec<KeptRows>),
    /// Sorted records.
    Sorted(Vec<sort::SortedPart>),
}

enum Keeper<'a> {
    Rows(Collector, &'a Projection),
    Keyed(Collector, &'a JoinShape, &'a Projection, bool),
    Groups(Grouper),
    Top(Vec<Vec<u8>>, usize, &'a Order),
    Sorted(Sorter, &'a Order),
}

/// Where the rows of a process go.
pub(super) struct Output<'a> {
    work: TempWork,
    ops: &'a [Op],
    /// Room for each step to work in.
    rooms: Vec<Vec<u8>>,
    keeper: Keeper<'a>,
    room: Vec<u8>,
    /// Rows that have come since there was a look at memory.
    pushed: usize,
    clock: Clock,
}

/// Looks at the time on behalf of joins, which make many rows of one.
struct Clock {
    work: TempWork,
    rows: usize,
    /// The query has taken too long.
    is_late: bool,
}

impl Clock {
    /// A join has found a row; whether there is time for more.
    fn tick(&mut self) -> bool {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_BETWEEN_LOOKS) {
            self.is_late = self.work.is_late();
        }
        !self.is_late
    }
}

impl<'a> Output<'a> {
    /// Through these steps to what keeps them.
    pub(super) fn new(work: &TempWork, ops: &'a [Op], keep: &'a Keep) -> Output<'a> {
        Output {
            work: work.clone(),
            ops,
            rooms: vec![Vec::new(); ops.len()],
            keeper: match keep {
                Keep::Rows(columns) => Keeper::Rows(Collector::of_rows(work), columns),
                Keep::Keyed {
                    shape,
                    columns,
                    is_spilled,
                } => Keeper::Keyed(Collector::of_join(work, 0), shape, columns, *is_spilled),
                Keep::Groups(shape) => Keeper::Groups(Grouper::new(work, shape, 0)),
                Keep::Sorted(order) => match order.limit {
                    Some(limit) => Keeper::Top(Vec::new(), limit, order),
                    None => Keeper::Sorted(Sorter::new(work), order),
                },
            },
            room: Vec::new(),
            pushed: 0,
            clock: Clock {
                work: work.clone(),
                rows: 0,
                is_late: false,
            },
        }
    }

    /// A row comes; [`Output::make_room`] is due now and then. False when there is no time for more: that will say so.
    pub(super) fn push(&mut self, row: &Row<'_>) -> bool {
        let (keeper, room, pushed) = (&mut self.keeper, &mut self.room, &mut self.pushed);
        let clock = &mut self.clock;
        !clock.is_late
            && through(self.ops, &mut self.rooms, row, clock, &mut |row| {
                keeper.take(row, room);
                *pushed += 1;
            })
    }

    /// Spills what takes too much memory when some rows have come since that was done last.
    pub(super) async fn make_room_if_due(&mut self) -> Result<()> {
        match self.pushed < ROWS_BETWEEN_LOOKS {
            true => Ok(()),
            false => self.make_room().await,
        }
    }

    /// Spills what takes too much memory. Error when the query has taken too long, or the instance has ended.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        self.work.check()?;
        self.pushed = 0;
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
            Keeper::Keyed(collector, .., true) => Kept::Parts(collector.finish_spilled().await?),
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

/// Takes a row through steps; whether more may come.
fn through(
    ops: &[Op],
    rooms: &mut [Vec<u8>],
    row: &Row<'_>,
    clock: &mut Clock,
    last: &mut dyn FnMut(&Row<'_>),
) -> bool {
    let (Some((op, ops)), Some((room, rooms))) = (ops.split_first(), rooms.split_first_mut())
    else {
        last(row);
        return true;
    };
    match op {
        Op::Filter(test) => !test.holds(row) || through(ops, rooms, row, clock, last),
        Op::Select(columns, exprs) => {
            let mut encoder = columns.encoder(room);
            exprs.iter().for_each(|of| of.encode(row, &mut encoder));
            through(ops, rooms, &Row::of(room), clock, last)
        }
        Op::Join(join) => {
            let mut goes_on = true;
            join.push(row, room, |row| {
                goes_on = clock.tick() && through(ops, rooms, row, clock, last);
                goes_on
            });
            goes_on
        }
    }
}

impl Keeper<'_> {
    fn take(&mut self, row: &Row<'_>, room: &mut Vec<u8>) {
        match self {
            Keeper::Rows(collector, columns) => {
                collector.add(0, |into| columns.append(row, into));
            }
            Keeper::Keyed(collector, shape, columns, _) => {
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
