//! Groups: numbers that are added up for each key, in a table. When it fills the memory all groups go to partitions by
//! a hash of their keys; at the end each partition is folded by itself, partitioned again if it must be.

use std::mem;
use std::sync::Arc;

use spindle_query::{Aggregate, Bound, Columns, Projection, Row, Type};

use super::rows::{Collector, DEPTH_MAX, KeptRows, hash};
use crate::error::Result;
use crate::temp::TempWork;

/// Bytes of a number of a group in a temporary segment.
const NUMBER_BYTES: usize = 16;

/// How a number is made of those of rows.
#[derive(Clone, Copy)]
enum Fold {
    Sum,
    Least,
    Greatest,
}

/// What groups are made of.
pub(super) struct GroupShape {
    key: Projection,
    /// What each number is made of; `None`: rows are counted.
    numbers: Vec<(Fold, Option<Bound>)>,
    columns: Columns,
}

impl GroupShape {
    /// Of a key, and numbers with their names and types.
    pub(super) fn new(key: Projection, of: Vec<(String, Type, &Aggregate, Option<Bound>)>) -> Self {
        let fold = |of: &Aggregate| match of {
            Aggregate::Count | Aggregate::Sum(_) => Fold::Sum,
            Aggregate::Least(_) => Fold::Least,
            Aggregate::Greatest(_) => Fold::Greatest,
        };
        GroupShape {
            key,
            columns: Columns::new(of.iter().map(|(name, type_, ..)| (name.clone(), *type_))),
            numbers: of
                .into_iter()
                .map(|(.., of, expr)| (fold(of), expr))
                .collect(),
        }
    }

    /// The columns of a group: those of its key, and its numbers.
    pub(super) fn columns(&self) -> [&Columns; 2] {
        [self.key.columns(), &self.columns]
    }

    fn record_bytes(&self) -> usize {
        NUMBER_BYTES * self.numbers.len()
    }
}

/// Groups by their keys.
struct GroupTable {
    keys: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    hashes: Vec<u64>,
    /// As many for each group as its shape has.
    numbers: Vec<i128>,
    /// Of each group its place plus 1; 0: none. A power of two.
    slots: Vec<u32>,
}

impl GroupTable {
    fn new() -> GroupTable {
        GroupTable {
            keys: Vec::new(),
            ends: Vec::new(),
            hashes: Vec::new(),
            numbers: Vec::new(),
            slots: vec![0; 64],
        }
    }

    fn count(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        self.keys.len() + 16 * self.count() + 16 * self.numbers.len() + 4 * self.slots.len()
    }

    fn key(&self, group: usize) -> &[u8] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[group]]
    }

    /// The group of a key, which may be a new one.
    fn group(&mut self, hash: u64, key: &[u8], shape: &GroupShape) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 {
            let group = self.slots[slot] as usize - 1;
            if self.hashes[group] == hash && self.key(group) == key {
                return group;
            }
            slot = (slot + 1) & mask;
        }
        let group = self.count();
        self.slots[slot] = group as u32 + 1;
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.hashes.push(hash);
        self.numbers
            .extend(shape.numbers.iter().map(|(fold, _)| match fold {
                Fold::Sum => 0,
                Fold::Least => i128::MAX,
                Fold::Greatest => i128::MIN,
            }));
        if 2 * self.count() > self.slots.len() {
            self.grow();
        }
        group
    }

    fn grow(&mut self) {
        let mut slots = vec![0; 2 * self.slots.len()];
        let mask = slots.len() - 1;
        for (group, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = group as u32 + 1;
        }
        self.slots = slots;
    }

    fn numbers_of(&self, group: usize, shape: &GroupShape) -> &[i128] {
        let count = shape.numbers.len();
        &self.numbers[group * count..(group + 1) * count]
    }

    fn fold(&mut self, group: usize, number: usize, shape: &GroupShape, value: i128) {
        let at = group * shape.numbers.len() + number;
        let folded = &mut self.numbers[at];
        match shape.numbers[number].0 {
            Fold::Sum => *folded += value,
            Fold::Least => *folded = value.min(*folded),
            Fold::Greatest => *folded = value.max(*folded),
        }
    }
}

/// Adds rows up.
pub(super) struct Grouper {
    shape: Arc<GroupShape>,
    work: TempWork,
    depth: u32,
    table: GroupTable,
    key: Vec<u8>,
    /// Once the table has been full.
    spilled: Option<Collector>,
}

impl Grouper {
    /// Without groups; their keys have been partitioned `depth` times.
    pub(super) fn new(work: &TempWork, shape: &Arc<GroupShape>, depth: u32) -> Grouper {
        Grouper {
            shape: Arc::clone(shape),
            work: work.clone(),
            depth,
            table: GroupTable::new(),
            key: Vec::new(),
            spilled: None,
        }
    }

    /// Adds a row; [`Grouper::make_room`] is due now and then.
    pub(super) fn add(&mut self, row: &Row<'_>) {
        let shape = &*self.shape;
        self.key.clear();
        shape.key.append(row, &mut self.key);
        let group = self.table.group(hash(&self.key), &self.key, shape);
        for (number, (_, of)) in shape.numbers.iter().enumerate() {
            let value = of.as_ref().map_or(1, |of| of.number(row));
            self.table.fold(group, number, shape, value);
        }
    }

    /// Adds a group of another table.
    pub(super) fn add_group(&mut self, record: &[u8]) {
        let (numbers, key) = record.split_at(self.shape.record_bytes());
        let group = self.table.group(hash(key), key, &self.shape);
        for (number, bytes) in numbers.chunks_exact(NUMBER_BYTES).enumerate() {
            let value = i128::from_le_bytes(bytes.try_into().expect("sixteen bytes"));
            self.table.fold(group, number, &self.shape, value);
        }
    }

    /// Sends all groups to their partitions when they take all the memory that there may be.
    pub(super) async fn make_room(&mut self) -> Result<()> {
        if self.table.bytes() < self.work.memory_bytes || self.depth >= DEPTH_MAX {
            return Ok(());
        }
        let mut collector = self.spilled.take().unwrap_or_else(|| self.collector());
        let table = mem::replace(&mut self.table, GroupTable::new());
        let made = self.send(&table, &mut collector).await;
        self.spilled = Some(collector);
        made
    }

    fn collector(&self) -> Collector {
        Collector::of_groups(&self.work, self.depth)
    }

    async fn send(&self, table: &GroupTable, collector: &mut Collector) -> Result<()> {
        for group in 0..table.count() {
            collector.add(table.hashes[group], |record| {
                for number in table.numbers_of(group, &self.shape) {
                    record.extend_from_slice(&number.to_le_bytes());
                }
                record.extend_from_slice(table.key(group));
            });
            if group % 1024 == 0 {
                self.work.check()?;
                collector.make_room().await?;
            }
        }
        Ok(())
    }

    /// Its groups, if the table never was full; else their partitions.
    pub(super) async fn groups(self) -> Result<std::result::Result<Groups, Vec<KeptRows>>> {
        if self.spilled.is_some() {
            return Ok(Err(self.finish().await?));
        }
        Ok(Ok(Groups {
            shape: self.shape,
            table: self.table,
        }))
    }

    /// The partitions of all groups. Those of two tables of the same depth belong together one by one.
    pub(super) async fn finish(mut self) -> Result<Vec<KeptRows>> {
        let mut collector = self.spilled.take().unwrap_or_else(|| self.collector());
        let table = mem::replace(&mut self.table, GroupTable::new());
        self.send(&table, &mut collector).await?;
        drop(table);
        collector.finish().await
    }
}

/// Groups, each key once.
pub(super) struct Groups {
    shape: Arc<GroupShape>,
    table: GroupTable,
}

impl Groups {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.table.count()
    }

    /// The key of a group; its numbers are put into `numbers`, as a row.
    pub(super) fn group(&self, group: usize, numbers: &mut Vec<u8>) -> &[u8] {
        let mut encoder = self.shape.columns.encoder(numbers);
        for number in self.table.numbers_of(group, &self.shape) {
            encoder.number(*number);
        }
        self.table.key(group)
    }
}
