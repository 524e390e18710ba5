//! How a session reads by key: the entries of a leaf say which rows may have such keys, and each of these is read as of
//! the statement's SCN, by its rowid. Deleted entries count, for the statement may see their rows; and a row is given
//! only when the version that is seen has the entry's key. So a statement sees through an index just what it would by a
//! scan.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::Session;
use crate::block::RowId;
use crate::block::index::{self as node, Entry, Place};
use crate::change::transaction::statement_scn;
use crate::change::tree::{descend, is_leaf_of, is_spent};
use crate::error::Result;
use crate::index::Index;

/// Some rows of a leaf that may be in a range.
struct Candidates {
    rows: Vec<(Vec<u8>, RowId)>,
    /// Where the next leaf begins; `None`: the range ends here.
    next: Option<(Vec<u8>, RowId)>,
}

impl Session {
    /// Reads the row of a key, the first of them when several have it; `None` when there is none.
    pub async fn get<T>(
        &mut self,
        index: &Index,
        key: &[u8],
        read: impl FnOnce(RowId, &[u8]) -> T,
    ) -> Result<Option<T>> {
        let (mut read, mut value) = (Some(read), None);
        self.range(index, key, Some(key), |_, row, bytes| {
            value = read.take().map(|read| read(row, bytes));
            ControlFlow::Break(())
        })
        .await?;
        Ok(value)
    }

    /// Reads the rows whose keys are `from` or more, and not more than `to` if there is one, in the order of their
    /// keys, all as of one moment; `read` gets each one's key, rowid and bytes, and says whether to go on.
    pub async fn range(
        &mut self,
        index: &Index,
        from: &[u8],
        to: Option<&[u8]>,
        read: impl FnMut(&[u8], RowId, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let sga = Arc::clone(&self.sga);
        let running = sga.statements.begin(|| statement_scn(&sga));
        self.range_as_of(index, from, to, running.scn(), read).await
    }

    /// The same as of an SCN that a statement began at, of which this is a part.
    pub(crate) async fn range_as_of(
        &mut self,
        index: &Index,
        from: &[u8],
        to: Option<&[u8]>,
        scn: u64,
        mut read: impl FnMut(&[u8], RowId, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let statement = self.statement(scn);
        let mut next = Some((from.to_vec(), Place::FIRST.row));
        while let Some((key, row)) = next {
            let place = Place { key: &key, row };
            let candidates = self.candidates(index, place, to).await?;
            for (key, row) in candidates.rows {
                let Some(bytes) = self.row_as_of(statement, row).await? else {
                    continue;
                };
                if index.key_of(&bytes)? == key && read(&key, row, &bytes).is_break() {
                    return Ok(());
                }
            }
            next = candidates.next;
        }
        Ok(())
    }

    /// What the leaf of a place has from there on.
    async fn candidates(
        &self,
        index: &Index,
        place: Place<'_>,
        to: Option<&[u8]>,
    ) -> Result<Candidates> {
        let sga = &*self.sga;
        loop {
            let leaf = descend(sga, &self.waits, index.root, place, 0).await?;
            let pin = sga.cache.get(sga, &self.waits, leaf.address).await?;
            let block = pin.read(sga, &self.waits).await?;
            if !is_leaf_of(sga, &block, index.root, place) {
                continue;
            }
            let from = node::find(&block, place).unwrap_or_else(|position| position);
            let entries = (from..node::count(&block)).map(|position| node::entry(&block, position));
            // Nobody finds a row by a ghost of which every statement sees that it is deleted.
            let mut spent = None;
            let mut is_gone = |entry: &Entry<'_>| {
                let ghost = entry.number.filter(|_| entry.is_ghost);
                ghost.is_some_and(|number| spent.get_or_insert_with(|| is_spent(sga))(number))
            };
            let entries = entries.filter(|entry| !is_gone(entry));
            let rows = entries.map(|entry| (node::key_of(&block, &entry), entry.row));
            let is_within = |key: &[u8]| to.is_none_or(|to| key <= to);
            let rows = rows.take_while(|(key, _)| is_within(key)).collect();
            let high = node::high(&block).filter(|high| is_within(high.key));
            return Ok(Candidates {
                rows,
                next: high.map(|high| (high.key.to_vec(), high.row)),
            });
        }
    }
}
