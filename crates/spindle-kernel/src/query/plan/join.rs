//! Hash joins. The rows of one side are kept by their keys, partition by partition; each row of the other finds those
//! with its key. Where they take more memory than there may be, both sides go to temporary segments, and each partition
//! is joined by itself, partitioned again if it must be.

use std::sync::Arc;

use spindle_query::{Columns, JoinKind, Projection, Row, Type};

use super::rows::{CHUNK_BYTES_MAX, Chunk, SLOT_BYTES, hash, partition_of};
use crate::error::Result;
use crate::temp::{Held, TempWork};

/// Bits of a slot that say where its row is; the others are some of the row's hash.
const PLACE_BITS: u32 = 40;
/// Bits of a place that say where in its chunk the row begins.
const WITHIN_BITS: u32 = CHUNK_BYTES_MAX.ilog2();

/// The rows of a partition, by their keys. Each is its key, then the row.
pub(super) struct JoinTable {
    chunks: Vec<Chunk>,
    /// Two for each row. Of a row its place plus 1, and bits of its hash; 0: no row.
    slots: Vec<u64>,
    key_bytes: usize,
    _held: Held,
}

/// Where a row is: its chunk, and its beginning there.
type Spot = (usize, usize);

/// What a slot has of a row.
fn slot_of((chunk, within): Spot, hash: u64) -> u64 {
    let place = 1 + ((chunk as u64) << WITHIN_BITS | within as u64);
    debug_assert!(within < CHUNK_BYTES_MAX && place < 1 << PLACE_BITS);
    hash << PLACE_BITS | place
}

/// Where the row of a slot is; `None` where the hash is another one.
fn spot_of(slot: u64, hash: u64) -> Option<Spot> {
    let place = (slot & ((1 << PLACE_BITS) - 1)) - 1;
    let spot = || {
        let within = place & (CHUNK_BYTES_MAX as u64 - 1);
        ((place >> WITHIN_BITS) as usize, within as usize)
    };
    ((slot ^ hash << PLACE_BITS) >> PLACE_BITS == 0).then(spot)
}

impl JoinTable {
    /// Of rows in memory.
    pub(super) fn new(work: &TempWork, chunks: Vec<Chunk>, key_bytes: usize) -> Result<JoinTable> {
        let rows: usize = chunks.iter().map(|chunk| chunk.iter().count()).sum();
        let held = work.usage.hold(SLOT_BYTES * rows);
        let mut table = JoinTable::empty(chunks, rows, key_bytes, held);
        for chunk in 0..table.chunks.len() {
            work.check()?;
            table.enter(chunk);
        }
        Ok(table)
    }

    fn empty(chunks: Vec<Chunk>, rows: usize, key_bytes: usize, held: Held) -> JoinTable {
        JoinTable {
            chunks,
            slots: vec![0; 2 * rows],
            key_bytes,
            _held: held,
        }
    }

    /// Enters the rows of a chunk.
    fn enter(&mut self, chunk: usize) {
        let mut within = 0;
        while let Some((row, next)) = self.chunks[chunk].row_at(within) {
            let hash = hash(&row[..self.key_bytes]);
            let mut at = self.first(hash);
            while self.slots[at] != 0 {
                at = self.after(at);
            }
            self.slots[at] = slot_of((chunk, within), hash);
            within = next;
        }
    }

    /// The first slot of a hash: by those of its bits that neither partitions have used nor slots have.
    fn first(&self, hash: u64) -> usize {
        let shifted = u128::from(hash << (u64::BITS - PLACE_BITS));
        ((shifted * self.slots.len() as u128) >> u64::BITS) as usize
    }

    fn after(&self, slot: usize) -> usize {
        match slot + 1 < self.slots.len() {
            true => slot + 1,
            false => 0,
        }
    }

    /// Calls `visit` with each row of a key until it says that it has seen enough; whether there was one.
    fn find<'t>(&'t self, hash: u64, key: &[u8], mut visit: impl FnMut(&'t [u8]) -> bool) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let (mut at, mut found) = (self.first(hash), false);
        while self.slots[at] != 0 {
            let spot = spot_of(self.slots[at], hash);
            at = self.after(at);
            let Some((chunk, within)) = spot else {
                continue;
            };
            let (row, _) = self.chunks[chunk].row_at(within).expect("it was put there");
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
    /// Of an outer join, what stands in for a missing row.
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

    /// Joins a row with those of a table, which may be one of several; whether there was one of its key. `push` says
    /// whether to continue.
    pub(super) fn join(
        &self,
        table: &JoinTable,
        (hash, key): (u64, &[u8]),
        row: &Row<'_>,
        pass: Pass,
        mut push: impl FnMut(&Row<'_>) -> bool,
    ) -> bool {
        match &self.kind {
            JoinKind::Inner => table.find(hash, key, |other| push(&row.and(other))),
            JoinKind::Semi => {
                let found = table.find(hash, key, |_| false);
                if found {
                    push(row);
                }
                found
            }
            JoinKind::Anti => {
                let found = table.find(hash, key, |_| false);
                if pass.is_last && !found {
                    push(row);
                }
                found
            }
            JoinKind::Outer(_) => {
                let [no, yes] = &self.found;
                let found = table.find(hash, key, |other| push(&row.and(other).and(yes)));
                let found = found || pass.was_found;
                if pass.is_last && !found {
                    push(&row.and(&self.missing).and(no));
                }
                found
            }
        }
    }

    /// Whether a row is to be joined with further tables.
    pub(super) fn goes_on(&self, found: bool) -> bool {
        match self.kind {
            JoinKind::Inner | JoinKind::Outer(_) => true,
            JoinKind::Semi | JoinKind::Anti => !found,
        }
    }
}

/// Which of several tables a row meets.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    /// One of those before had a row of its key.
    pub(super) was_found: bool,
    /// No other comes.
    pub(super) is_last: bool,
}

impl Pass {
    /// There is one table.
    pub(super) const ONLY: Pass = Pass {
        was_found: false,
        is_last: true,
    };
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
    pub(super) tables: Vec<JoinTable>,
    pub(super) shape: Arc<JoinShape>,
}

impl InMemory {
    /// Joins a row; `key` is room to work in. `push` says whether to continue.
    pub(super) fn push(
        &self,
        row: &Row<'_>,
        key: &mut Vec<u8>,
        push: impl FnMut(&Row<'_>) -> bool,
    ) {
        let hash = self.shape.key_of(row, key);
        let table = &self.tables[partition_of(hash, 0)];
        self.shape.join(table, (hash, key), row, Pass::ONLY, push);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_table_finds_every_row_of_a_key_and_no_other() {
        let usage = Arc::default();
        let chunk = |number: u32| {
            let mut row = (number % 100).to_be_bytes().to_vec();
            row.extend_from_slice(&number.to_be_bytes());
            Chunk::of_row(&usage, &row)
        };
        let chunks = (0..1000).map(chunk).collect();
        let mut table = JoinTable::empty(chunks, 1000, 4, usage.hold(0));
        (0..1000).for_each(|chunk| table.enter(chunk));
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
        let nothing = JoinTable::empty(Vec::new(), 0, 4, usage.hold(0));
        assert!(!nothing.find(1, b"", |_| true));
    }

    #[test]
    fn places_beyond_four_gibibytes_are_told_apart() {
        let chunks_of_gib = (1 << 30) / CHUNK_BYTES_MAX;
        for gib in [0, 3, 4, 5, 1000] {
            let spot = (gib * chunks_of_gib, CHUNK_BYTES_MAX - 1);
            let (hash, other) = (u64::MAX / 3, u64::MAX / 5);
            assert_eq!(spot_of(slot_of(spot, hash), hash), Some(spot));
            assert_eq!(spot_of(slot_of(spot, hash), other), None);
        }
    }
}
