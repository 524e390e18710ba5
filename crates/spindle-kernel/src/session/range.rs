//! How a session reads by key: the entries of a leaf say which rows may have such keys, and each of these is read as of
//! the statement's SCN, by its rowid. Deleted entries count, for the statement may see their rows; and a row is given
//! only when the version that is seen has the entry's key. So a statement sees through an index just what it would by a
//! scan.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Session;
use crate::block::RowId;
use crate::block::index::{self as node, EntryPlace, IndexEntry};
use crate::change::transaction::statement_scn;
use crate::change::tree::{descend, is_leaf_of, is_spent};
use crate::error::Result;
use crate::index::Index;

/// Some rows of a leaf that may be in a range.
struct Candidates {
    /// Their keys, one after the other.
    keys: Vec<u8>,
    /// Where the key of each ends, and its rowid.
    rows: Vec<(usize, RowId)>,
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
    /// keys, all as of one moment. `read` gets each one's key, rowid and bytes, and says whether to continue.
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
        let mut next = (Cow::Borrowed(from), EntryPlace::FIRST.row);
        loop {
            let place = EntryPlace {
                key: &next.0,
                row: next.1,
            };
            let candidates = self.candidates(index, place, to).await?;
            let mut start = 0;
            for (end, row) in candidates.rows {
                let key = &candidates.keys[std::mem::replace(&mut start, end)..end];
                let read = |bytes: &[u8]| -> Result<ControlFlow<()>> {
                    Ok(match index.key().is_of(bytes, key)? {
                        true => read(key, row, bytes),
                        false => ControlFlow::Continue(()),
                    })
                };
                let done = self.read_as_of(scn, || statement, row, read).await?;
                if done.transpose()?.is_some_and(|done| done.is_break()) {
                    return Ok(());
                }
            }
            match candidates.next {
                Some((key, row)) => next = (Cow::Owned(key), row),
                None => return Ok(()),
            }
        }
    }

    /// What the leaf of a place has from there on.
    async fn candidates(
        &self,
        index: &Index,
        place: EntryPlace<'_>,
        to: Option<&[u8]>,
    ) -> Result<Candidates> {
        let sga = &*self.sga;
        loop {
            let leaf = descend(sga, &self.waits, index.root, place, 0).await?;
            let block = leaf.pin.read(sga, &self.waits).await?;
            if !is_leaf_of(sga, &block, index.root, place) {
                continue;
            }
            let from = node::find(&block, place).unwrap_or_else(|position| position);
            let is_within = |key: &[u8]| to.is_none_or(|to| key <= to);
            let high = node::high(&block);
            let next = high.filter(|high| is_within(high.key));
            let end = match to {
                Some(to) if to < place.key => from,
                Some(key) if next.is_none() => {
                    let last = EntryPlace {
                        key,
                        row: RowId::MAX,
                    };
                    node::find(&block, last).unwrap_or_else(|position| position)
                }
                _ => node::count(&block),
            };
            let entries = (from..end).map(|position| node::entry(&block, position));
            // No statement finds a row by a ghost that every statement sees as deleted.
            let mut spent = None;
            let mut is_gone = |entry: &IndexEntry<'_>| {
                let ghost = entry.number.filter(|_| entry.is_ghost);
                ghost.is_some_and(|number| spent.get_or_insert_with(|| is_spent(sga))(number))
            };
            let count = usize::from(end.saturating_sub(from));
            let mut keys = Vec::with_capacity(count * place.key.len());
            let mut rows = Vec::with_capacity(count);
            let prefix = node::prefix(&block);
            for entry in entries.filter(|entry| !is_gone(entry)) {
                keys.extend_from_slice(prefix);
                keys.extend_from_slice(entry.suffix);
                rows.push((keys.len(), entry.row));
            }
            return Ok(Candidates {
                keys,
                rows,
                next: next.map(|high| (high.key.to_vec(), high.row)),
            });
        }
    }
}
