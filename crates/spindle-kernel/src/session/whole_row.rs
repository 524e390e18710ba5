//! A row put in together with its entries, in one redo record of all their blocks: nearly every row can be. Otherwise,
//! where a block is full or new, where a leaf was split since it was found, or where the key may be there, nothing is
//! changed, and the row and its entries are put in one after another.

use smallvec::SmallVec;

use super::Session;
use super::insert::{Inserted, NewRow};
use super::rows::EntryChange;
use crate::block::heap::RowKind;
use crate::block::index::EntryPlace;
use crate::block::{BlockAddress, RowId, undo};
use crate::cache::{ExclusiveBlock, Pin, Wanted};
use crate::change::blocks::{BLOCKS_MAX, change};
use crate::change::transaction;
use crate::change::tree::entries::plan_new;
use crate::error::Result;
use crate::log::redo::RecordBuilder;
use crate::probe::{self, Probe};
use crate::sga::Sga;
use crate::table::Table;
use crate::transaction::undo_record::UNDO_RECORD_OVERHEAD_BYTES;
use crate::wait_event::ProcessWaits;

/// Beside the leaves of the entries a change has the row's block and the undo block.
const ENTRIES_MAX: usize = BLOCKS_MAX - 2;

/// True when a row has entries, and not too many for one change.
pub(super) fn can_be_whole(changes: &[EntryChange<'_>]) -> bool {
    (1..=ENTRIES_MAX).contains(&changes.len())
}

impl Session {
    /// Puts a row into the block that this session's inserts go to, and its entries into the leaves where they are
    /// likely to belong. `None`: that cannot be done just so, and nothing is changed.
    pub(super) async fn insert_whole(
        &mut self,
        table: &Table,
        bytes: &[u8],
        changes: &[EntryChange<'_>],
    ) -> Result<Option<RowId>> {
        let Some(address) = self.used_insert_block(table) else {
            return Ok(None);
        };
        let entry_bytes = |change: &EntryChange<'_>| {
            undo::stored_bytes(UNDO_RECORD_OVERHEAD_BYTES + change.key.len())
        };
        let more_bytes: usize = changes.iter().map(entry_bytes).sum();
        let undo_bytes = UNDO_RECORD_OVERHEAD_BYTES + more_bytes;
        let (id, undo_address) = self.prepare(None, undo_bytes).await?;
        let (sga, waits) = (&*self.sga, &self.waits);
        let row = NewRow {
            table,
            kind: RowKind::Row,
            bytes,
            transaction: id,
            address,
            undo_address,
            tells_map: false,
        };
        let leaf = |change: &EntryChange<'_>| change.leaf.expect("the leaves were found");
        let leaves = changes.iter().map(leaf);
        let pins = pins(sga, waits, [address, undo_address], leaves).await?;
        let pins: SmallVec<[&Pin; BLOCKS_MAX]> = pins.iter().collect();
        let transaction = self.transaction.as_mut().expect("begun by the change");
        let locked = &mut transaction.locks;
        let planned = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
            let placed = row.plan(sga, (&blocks[0], &blocks[1]), builder, locked);
            let Inserted::At { row, .. } = placed else {
                builder.clear();
                return Ok(None);
            };
            for (change, block) in changes.iter().zip(&blocks[2..]) {
                let key = &change.key;
                let place = (EntryPlace { key, row }, change.is_free);
                let (undo, node) = ((id, undo_address), (leaf(change), &**block));
                if !plan_new(sga, builder, undo, change.index.root, node, place)? {
                    probe::hit(Probe::RowTakenBack);
                    builder.clear();
                    return Ok(None);
                }
            }
            Ok(Some(row))
        };
        let put = change(sga, waits, &mut self.builder, &pins, planned).await;
        let row = put?.0;
        match row {
            Some(_) => probe::hit(Probe::RowInOneRecord),
            None => transaction::give_room(transaction, undo::stored_bytes(undo_bytes)),
        }
        Ok(row)
    }
}

/// The blocks of such a change, pinned: the row's, the undo block, and the leaves.
async fn pins(
    sga: &Sga,
    waits: &ProcessWaits,
    [row, undo]: [BlockAddress; 2],
    mut leaves: impl Iterator<Item = BlockAddress>,
) -> Result<SmallVec<[Pin; BLOCKS_MAX]>> {
    let first = leaves.next().expect("a row with entries");
    let wanted = [row, undo, first].map(Wanted::Present);
    let Some(second) = leaves.next() else {
        let pins = sga.cache.get_all(sga, waits, wanted).await?;
        return Ok(pins.into_iter().collect());
    };
    let wanted = [row, undo, first, second].map(Wanted::Present);
    let pins = sga.cache.get_all(sga, waits, wanted).await?;
    Ok(pins.into())
}
