//! The entries of an index that is being made, in order. Rows are loaded in an order that their keys often share, at
//! least in the key's first parts. So a first look finds how many parts that are; then only rows that agree in these
//! are sorted in memory, a group at a time.

use crate::block::RowId;
use crate::control_file::KeyPart;
use crate::error::Result;
use crate::key::Key;
use crate::session::Session;
use crate::table::Table;

/// Blocks looked at in one go.
const BATCH_BLOCKS: u64 = 64;

/// An entry: its key and its row.
pub(super) type KeyAndRow = (Vec<u8>, RowId);

/// The entries of a table's rows.
pub(super) struct Sorted<'a> {
    session: &'a mut Session,
    table: &'a Table,
    key: &'a Key,
    /// First bytes of the keys by which the rows come in order.
    ordered_bytes: usize,
    next_block: u64,
    /// Of one group, as far as it has been read.
    group: Vec<KeyAndRow>,
}

impl<'a> Sorted<'a> {
    /// Looks at the rows once.
    pub(super) async fn new(
        session: &'a mut Session,
        table: &'a Table,
        key: &'a Key,
    ) -> Result<Sorted<'a>> {
        let mut sorted = Sorted {
            session,
            table,
            key,
            ordered_bytes: usize::MAX,
            next_block: 0,
            group: Vec::new(),
        };
        let mut parts = key.parts.len();
        let mut last: Vec<u8> = Vec::new();
        while let Some(entries) = sorted.read().await? {
            for (key, _) in entries {
                while first(&last, sorted.ordered_bytes) > first(&key, sorted.ordered_bytes) {
                    parts -= 1;
                    sorted.ordered_bytes = parts_bytes(&sorted.key.parts[..parts]);
                }
                last = key;
            }
        }
        sorted.next_block = 0;
        Ok(sorted)
    }

    /// The next entries, in order, none of which comes after one of a later batch; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<KeyAndRow>>> {
        let mut done = Vec::new();
        let Some(entries) = self.read().await? else {
            self.close_group(&mut done);
            return Ok((!done.is_empty()).then_some(done));
        };
        for (key, row) in entries {
            let is_another = self.group.last().is_some_and(|(last, _)| {
                first(last, self.ordered_bytes) != first(&key, self.ordered_bytes)
            });
            if is_another {
                self.close_group(&mut done);
            }
            self.group.push((key, row));
        }
        Ok(Some(done))
    }

    fn close_group(&mut self, done: &mut Vec<KeyAndRow>) {
        self.group.sort_unstable();
        done.append(&mut self.group);
    }

    /// The entries of the next rows, as they lie; `None` when there are no more blocks.
    async fn read(&mut self) -> Result<Option<Vec<KeyAndRow>>> {
        if self.next_block >= self.table.blocks() {
            return Ok(None);
        }
        let mut entries = Vec::new();
        let mut failed = None;
        let (key, from) = (self.key, self.next_block);
        let take = |row, bytes: &[u8]| match key.of(bytes) {
            Ok(key) => entries.push((key, row)),
            Err(error) => failed = Some(error),
        };
        self.session
            .scan(self.table, from, BATCH_BLOCKS, take)
            .await?;
        self.next_block += BATCH_BLOCKS;
        failed.map_or(Ok(Some(entries)), Err)
    }
}

fn first(key: &[u8], bytes: usize) -> &[u8] {
    &key[..bytes.min(key.len())]
}

fn parts_bytes(parts: &[KeyPart]) -> usize {
    parts.iter().map(|part| usize::from(part.bytes)).sum()
}
