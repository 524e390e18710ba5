//! Rows and their indexes: what clients ask for is a row put in, replaced or deleted; the entries of every index of its
//! table go with it. A key that must be unique is locked until the transaction ends, under a name made of its hash; so
//! a session that looks for it sees what stays.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::Session;
use super::whole_row::can_be_whole;
use crate::block::heap::RowKind;
use crate::block::index::{self as node, EntryPlace, Holds};

use crate::block::{BlockAddress, RowId};
use crate::buggify::Switch;
use crate::change::tree::descend;
use crate::change::tree::entries::{What, change_entry};
use crate::error::{KernelError, Result};
use crate::index::Index;
use crate::settings::PlantedFault;
use crate::table::Table;
use crate::transaction::undo_record::UNDO_RECORD_OVERHEAD_BYTES;

/// An entry to be removed or added.
pub(super) struct EntryChange<'a> {
    pub(super) index: &'a Index,
    pub(super) key: Vec<u8>,
    what: What,
    /// Most likely the entry's leaf.
    pub(super) leaf: Option<BlockAddress>,
    /// Nothing stands in its way: the key need not be unique, or was looked for and is not there.
    pub(super) is_free: bool,
}

impl<'a> EntryChange<'a> {
    fn new(index: &'a Index, key: Vec<u8>, what: What) -> EntryChange<'a> {
        EntryChange {
            is_free: !(index.is_unique() && what == What::Add),
            index,
            key,
            what,
            leaf: None,
        }
    }
}

impl Session {
    /// Adds a row, of any length up to the table's longest.
    ///
    /// # Errors
    /// [`KernelError::DuplicateKey`] when another row has its key in a unique index: the transaction is as
    /// it was. Waits for a transaction that has put in or deleted such a row, up to the lock timeout. After another
    /// error in the middle of the change the transaction can only be rolled back.
    pub async fn insert_row(&mut self, table: &Table, row_bytes: &[u8]) -> Result<RowId> {
        table.check_row_bytes(row_bytes.len())?;
        let indexes = table.indexes();
        let mut changes = SmallVec::<[_; 2]>::new();
        for index in indexes.iter() {
            changes.push(EntryChange::new(index, index.key_of(row_bytes)?, What::Add));
        }
        self.lock_keys(&changes).await?;
        if can_be_whole(&changes) && !self.sga.buggify.fires(Switch::RowInSteps) {
            self.find_leaves(&mut changes).await?;
            let whole = self.insert_whole(table, row_bytes, &changes).await;
            if let Some(row) = self.done_or_broken(whole)? {
                self.note_leaves(&changes);
                return Ok(row);
            }
            self.forget_leaves(&mut changes);
        }
        self.check_keys(&mut changes).await?;
        let inserted = self.insert_with(table, row_bytes, &changes).await;
        self.whole_or_broken(&changes, inserted)
    }

    /// Puts another row, perhaps longer or shorter, in a row's place; its rowid stays. Where its block has no room for
    /// it the row migrates to another one. Waits for the row's lock up to the lock timeout. Errors when the row is
    /// longer than the table allows, and as [`Session::insert_row`].
    pub async fn replace_row(&mut self, table: &Table, row: RowId, row_bytes: &[u8]) -> Result<()> {
        let before = match table.indexes().is_empty() {
            true => None,
            false => Some(self.lock_and_read(row).await?),
        };
        self.replace_from(table, row, before.as_deref(), row_bytes)
            .await
    }

    /// Changes the row of a key, the first of them when several have it: waits for its lock, then has `edit` change it
    /// as it is by then. False when there is no such row. Errors as [`Session::replace_row`].
    pub async fn update_by_key(
        &mut self,
        table: &Table,
        index: &Index,
        key: &[u8],
        edit: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool> {
        let Some((row, before)) = self.lock_by_key(index, key).await? else {
            return Ok(false);
        };
        let mut after = before.clone();
        edit(&mut after);
        table.check_row_bytes(after.len())?;
        self.replace_from(table, row, Some(&before), &after).await?;
        Ok(true)
    }

    /// Deletes the row of a key, the first of them when several have it; false when there is none. Waits for its lock.
    pub async fn delete_by_key(
        &mut self,
        table: &Table,
        index: &Index,
        key: &[u8],
    ) -> Result<bool> {
        let Some((row, _)) = self.lock_by_key(index, key).await? else {
            return Ok(false);
        };
        self.delete_row(table, row).await?;
        Ok(true)
    }

    /// Finds and locks the row of a key; it stays as it is returned.
    async fn lock_by_key(&mut self, index: &Index, key: &[u8]) -> Result<Option<(RowId, Vec<u8>)>> {
        loop {
            let Some(row) = self.get(index, key, |row, _| row).await? else {
                return Ok(None);
            };
            match self.lock_and_read(row).await {
                Ok(bytes) if index.key().is_of(&bytes, key).is_ok_and(|is_same| is_same) => {
                    return Ok(Some((row, bytes)));
                }
                // While this session waited the row got another key, or went and left its place to another row.
                Ok(_) | Err(KernelError::NoSuchRow { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Replaces a locked row; where there are indexes, `before` is the old row. Of a row that keeps its length and its
    /// keys only the bytes that differ are changed.
    async fn replace_from(
        &mut self,
        table: &Table,
        row: RowId,
        before: Option<&[u8]>,
        row_bytes: &[u8],
    ) -> Result<()> {
        let indexes = table.indexes();
        let mut changes = Vec::new();
        if let Some(before) = before {
            for index in indexes.iter() {
                let (old, new) = (index.key_of(before)?, index.key_of(row_bytes)?);
                if old != new {
                    changes.push(EntryChange::new(index, old, What::Remove));
                    changes.push(EntryChange::new(index, new, What::Add));
                }
            }
            self.lock_keys(&changes).await?;
            self.check_keys(&mut changes).await?;
        }
        match before {
            Some(before) if changes.is_empty() && before.len() == row_bytes.len() => {
                let range = differing(before, row_bytes);
                self.patch_locked(table, row, range, row_bytes).await
            }
            _ => {
                let replaced = self.replace_with(table, row, row_bytes, &changes).await;
                self.whole_or_broken(&changes, replaced)
            }
        }
    }

    /// Deletes a row. Its slot is not used by other transactions before this one has committed.
    pub async fn delete_row(&mut self, table: &Table, row: RowId) -> Result<()> {
        let indexes = table.indexes();
        let mut changes = Vec::with_capacity(indexes.len());
        if !indexes.is_empty() {
            let before = self.lock_and_read(row).await?;
            for index in indexes.iter() {
                let key = index.key_of(&before)?;
                changes.push(EntryChange::new(index, key, What::Remove));
            }
            self.lock_keys(&changes).await?;
        }
        let deleted = self.delete_with(table, row, &changes).await;
        self.whole_or_broken(&changes, deleted)
    }

    async fn insert_with(
        &mut self,
        table: &Table,
        row_bytes: &[u8],
        changes: &[EntryChange<'_>],
    ) -> Result<RowId> {
        let row = self.insert(table, RowKind::Row, row_bytes).await?;
        self.change_entries(row, changes).await?;
        Ok(row)
    }

    async fn replace_with(
        &mut self,
        table: &Table,
        row: RowId,
        row_bytes: &[u8],
        changes: &[EntryChange<'_>],
    ) -> Result<()> {
        self.replace(table, row, row_bytes).await?;
        self.change_entries(row, changes).await
    }

    async fn delete_with(
        &mut self,
        table: &Table,
        row: RowId,
        changes: &[EntryChange<'_>],
    ) -> Result<()> {
        self.delete(table, row).await?;
        self.change_entries(row, changes).await
    }

    /// After an error in the middle of a change a row and its entries may differ: that must never be committed.
    fn whole_or_broken<T>(&mut self, changes: &[EntryChange<'_>], changed: Result<T>) -> Result<T> {
        match changes.is_empty() {
            true => changed,
            false => self.done_or_broken(changed),
        }
    }

    /// The same of a step that others came before.
    pub(super) fn done_or_broken<T>(&mut self, step: Result<T>) -> Result<T> {
        if step.is_err()
            && let Some(transaction) = &mut self.transaction
        {
            transaction.rolling_back = true;
        }
        step
    }

    /// Locks a row, and reads it as it then stays.
    async fn lock_and_read(&mut self, row: RowId) -> Result<Vec<u8>> {
        self.lock(Some(row)).await?;
        self.read_row(row, <[u8]>::to_vec).await
    }

    /// Locks the keys of unique indexes that will change.
    async fn lock_keys(&mut self, changes: &[EntryChange<'_>]) -> Result<()> {
        if self.sga.settings.has_planted(PlantedFault::KeyUnlocked) {
            return Ok(());
        }
        let unique = changes.iter().filter(|change| change.index.is_unique());
        let keys = unique.map(|change| lock_of(change.index, &change.key));
        self.lock(keys).await
    }

    /// Error when a key to be added, which is locked, exists already, and will not be removed.
    async fn check_keys(&mut self, changes: &mut [EntryChange<'_>]) -> Result<()> {
        for change in changes.iter_mut().filter(|change| !change.is_free) {
            change.leaf = Some(self.leaf_without(change.index, &change.key).await?);
            change.is_free = true;
        }
        self.note_leaves(changes);
        Ok(())
    }

    /// Finds where entries to be added are likely to go: to the leaf of the last one, or else on the way from the root.
    /// Error as in [`Session::check_keys`], unless that is left to the caller.
    async fn find_leaves(&mut self, changes: &mut [EntryChange<'_>]) -> Result<()> {
        for change in changes {
            let (index, key) = (change.index, &change.key);
            let likely = self.last_leaves.likely(index.root.segment);
            change.leaf = match likely {
                Some(_) => likely,
                None if change.is_free => {
                    // Behind other rows of the key: a new one is mostly the last in the table, too.
                    let row = RowId::MAX;
                    let place = EntryPlace { key, row };
                    let found = descend(&self.sga, &self.waits, index.root, place, 0);
                    Some(found.await?.pin.address())
                }
                None => {
                    change.is_free = true;
                    Some(self.leaf_without(index, key).await?)
                }
            };
        }
        Ok(())
    }

    /// Remembers where entries went.
    fn note_leaves(&mut self, changes: &[EntryChange<'_>]) {
        for change in changes {
            if let Some(leaf) = change.leaf {
                self.last_leaves.note(change.index.root.segment, leaf);
            }
        }
    }

    /// Leaves that may be the wrong ones, or full, are looked for again from the root.
    fn forget_leaves(&mut self, changes: &mut [EntryChange<'_>]) {
        for change in changes {
            self.last_leaves.forget(change.index.root.segment);
            change.leaf = None;
        }
    }

    /// The leaf in which a key would be. Error when it exists: when there is an entry that is not deleted.
    async fn leaf_without(&self, index: &Index, key: &[u8]) -> Result<BlockAddress> {
        let sga = &*self.sga;
        let mut place = EntryPlace {
            key,
            ..EntryPlace::FIRST
        };
        loop {
            let leaf = descend(sga, &self.waits, index.root, place, 0).await?.pin;
            let block = leaf.read(sga, &self.waits).await?;
            if !crate::change::tree::is_leaf_of(sga, &block, index.root, place) {
                continue;
            }
            match node::holds(&block, place) {
                Holds::Nothing => return Ok(leaf.address()),
                Holds::PerhapsRight(row) => place = EntryPlace { key, row },
                Holds::Key => {
                    return Err(KernelError::DuplicateKey {
                        index: index.name().to_string(),
                    });
                }
            }
        }
    }

    async fn change_entries(&mut self, row: RowId, changes: &[EntryChange<'_>]) -> Result<()> {
        for change in changes {
            let undo_bytes = UNDO_RECORD_OVERHEAD_BYTES + change.key.len();
            let undo = self.prepare(None, undo_bytes).await?;
            let (sga, key, index) = (Arc::clone(&self.sga), &change.key, change.index);
            let (builder, place) = (&mut self.builder, EntryPlace { key, row });
            let what = (change.what, change.leaf);
            change_entry(&sga, &self.waits, builder, undo, index, place, what).await?;
        }
        Ok(())
    }
}

/// From the first to the last byte in which two rows of the same length differ.
fn differing(left: &[u8], right: &[u8]) -> Range<usize> {
    let differ = |(left, right): (&u8, &u8)| left != right;
    let first = left.iter().zip(right).position(differ);
    let last = left.iter().zip(right).rposition(differ);
    first
        .zip(last)
        .map_or(0..0, |(first, last)| first..last + 1)
}

/// The name under which a key is locked: rows of a datafile that no database has.
fn lock_of(index: &Index, key: &[u8]) -> RowId {
    let mut hasher = FxHasher::default();
    hasher.write_u32(index.root.segment);
    hasher.write(key);
    let hash = hasher.finish();
    RowId {
        address: BlockAddress {
            file: BlockAddress::OF_KEYS,
            block: (hash >> 32) as u32,
        },
        slot: (hash >> 16) as u16,
    }
}
