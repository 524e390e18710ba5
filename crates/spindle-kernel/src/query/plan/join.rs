//! Hash joins. The rows of one side are kept by their keys, partition by partition; each row of the other finds those
//! with its key. Where they take more memory than there may be, both sides go to temporary segments, and each partition
//! is joined by itself, partitioned again if it must be.

use std::sync::Arc;

use spindle_query::{Columns, JoinKind, Projection, Row, Type};

use super::rows::{hash, iter, partition_of, row_at};

/// Bits of a hash that a slot has beside the place of its row.
const TAG: u64 = 0xFFFF_FFFF_0000_0000;

/// The rows of a partition, by their keys. Each is its key, then the row.
#[derive(Default)]
pub(super) struct Table {
    rows: Vec<u8>,
    /// Of each row its place plus 1, and half of its hash; 0: no row. A power of two, twice as many as rows at least.
    slots: Vec<u64>,
    key_bytes: usize,
}

impl Table {
    /// Of rows in memory.
    pub(super) fn new(chunks: Vec<Vec<u8>>, key_bytes: usize) -> Table {
        let mut chunks = chunks.into_iter();
        let mut rows = chunks.next().unwrap_or_default();
        chunks.for_each(|chunk| rows.extend_from_slice(&chunk));
        let count = iter(&rows).count();
        let mut slots = vec![0; (2 * count).next_power_of_two()];
        let mask = slots.len() - 1;
        let mut at = 0;
        while let Some((row, next)) = row_at(&rows, at) {
            let hash = hash(&row[..key_bytes]);
            let mut slot = hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = hash & TAG | (at as u64 + 1);
            at = next;
        }
        Table {
            rows,
            slots,
            key_bytes,
        }
    }

    /// Calls `visit` with each row of a key until it says that it has seen enough; whether there was one.
    fn find<'t>(&'t self, hash: u64, key: &[u8], mut visit: impl FnMut(&'t [u8]) -> bool) -> bool {
        if self.rows.is_empty() {
            return false;
        }
        let mask = self.slots.len() - 1;
        let (mut slot, mut found) = (hash as usize & mask, false);
        while self.slots[slot] != 0 {
            let entry = self.slots[slot];
            slot = (slot + 1) & mask;
            if (entry ^ hash) & TAG != 0 {
                continue;
            }
            let at = (entry & !TAG) as usize - 1;
            let (row, _) = row_at(&self.rows, at).expect("it was put there");
            let (of_row, row) = row.split_at(self.key_bytes);
            if of_row == key {
                found = true;
                if !visit(row) {
                    break;
                }
            }
        }
        found
    }
}

/// What a join is, but for its rows.
pub(super) struct JoinShape {
    kind: JoinKind,
    /// The key of a row of the side that is read.
    key: Projection,
    pub(super) key_bytes: usize,
    /// Of an outer join, what stands in the place of a row that is missing.
    missing: Vec<u8>,
    /// Of an outer join, the rows that say whether one was found: no, yes.
    found: [Vec<u8>; 2],
}

impl JoinShape {
    pub(super) fn new(kind: &JoinKind, key: Projection, with: &Columns) -> JoinShape {
        let key_bytes = key.lengths().iter().sum();
        let mut missing = Vec::new();
        put_nothing(with, &mut missing);
        let found = [0, 1].map(|number| {
            let mut row = Vec::new();
            found_column("").encoder(&mut row).number(number);
            row
        });
        JoinShape {
            kind: kind.clone(),
            key,
            key_bytes,
            missing,
            found,
        }
    }

    /// Puts the key of a row into `key`; its hash.
    pub(super) fn key_of(&self, row: &Row<'_>, key: &mut Vec<u8>) -> u64 {
        key.clear();
        self.key.append(row, key);
        hash(key)
    }

    /// Joins a row with those of a table.
    pub(super) fn join(
        &self,
        table: &Table,
        (hash, key): (u64, &[u8]),
        row: &Row<'_>,
        mut push: impl FnMut(&Row<'_>),
    ) {
        match &self.kind {
            JoinKind::Inner => {
                table.find(hash, key, |other| {
                    push(&row.and(other));
                    true
                });
            }
            JoinKind::Semi => {
                if table.find(hash, key, |_| false) {
                    push(row);
                }
            }
            JoinKind::Anti => {
                if !table.find(hash, key, |_| false) {
                    push(row);
                }
            }
            JoinKind::Outer(_) => {
                let [no, yes] = &self.found;
                let found = table.find(hash, key, |other| {
                    push(&row.and(other).and(yes));
                    true
                });
                if !found {
                    push(&row.and(&self.missing).and(no));
                }
            }
        }
    }
}

/// The column by which an outer join tells whether there was a row.
pub(super) fn found_column(name: &str) -> Columns {
    Columns::new([(name, Type::Integer)])
}

/// A row of zeros and empty texts.
fn put_nothing(columns: &Columns, row: &mut Vec<u8>) {
    let mut encoder = columns.encoder(row);
    while let Some(of) = encoder.next_type() {
        match of.scale() {
            Some(_) => encoder.number(0),
            None => encoder.text(b""),
        }
    }
}

/// A join whose kept side is in memory: a table for each partition.
pub(super) struct InMemory {
    pub(super) tables: Vec<Table>,
    pub(super) shape: Arc<JoinShape>,
}

impl InMemory {
    /// Joins a row; `key` is room to work in.
    pub(super) fn push(&self, row: &Row<'_>, key: &mut Vec<u8>, push: impl FnMut(&Row<'_>)) {
        let hash = self.shape.key_of(row, key);
        let table = &self.tables[partition_of(hash, 0)];
        self.shape.join(table, (hash, key), row, push);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::put;
    use super::*;

    #[test]
    fn a_table_finds_every_row_of_a_key_and_no_other() {
        let mut chunks = vec![Vec::new(); 2];
        for number in 0..1000_u32 {
            let chunk = &mut chunks[number as usize % 2];
            put(chunk, |row| {
                row.extend_from_slice(&(number % 100).to_be_bytes());
                row.extend_from_slice(&number.to_be_bytes());
            });
        }
        let table = Table::new(chunks, 4);
        for key in 0..110_u32 {
            let key = key.to_be_bytes();
            let mut rows = Vec::new();
            let found = table.find(hash(&key), &key, |row| {
                rows.push(u32::from_be_bytes(row.try_into().unwrap()));
                true
            });
            rows.sort_unstable();
            let key = u32::from_be_bytes(key);
            let wanted: Vec<u32> = (0..1000).filter(|number| number % 100 == key).collect();
            assert_eq!((found, rows), (key < 100, wanted));
        }
        assert!(!Table::default().find(1, b"", |_| true));
    }
}
