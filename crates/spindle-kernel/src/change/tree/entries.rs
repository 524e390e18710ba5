//! Entries of leaves: put in, made ghosts of, and both undone. Who changes an entry has its row locked, and in a unique
//! index its key, too. A deleted entry stays as a ghost: a roll-back wakes it where it lies, without needing room, and
//! statements that began before the commit find their rows by it.

use crate::block::index::{self, Entry, Fit, Place};
use crate::block::{BlockAddress, RowId, Version};
use crate::change::blocks::change;
use crate::error::Result;
use crate::index::{Index, Root};
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::sga::Sga;
use crate::transaction::undo_record::UndoRecord;
use crate::wait_event::ProcessWaits;

use super::split::make_room;
use super::{descend, is_damaged, is_leaf_of, is_spent, push_put, push_tidy};

/// More attempts than any race takes: the index is damaged.
const ATTEMPTS_MAX: usize = 10_000;

/// What is done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Add,
    Remove,
}

/// What became of an attempt.
enum Attempt {
    /// Done; the leaf begins at this place and has nothing but ghosts now.
    Done(Option<(Vec<u8>, RowId)>),
    /// The place is another leaf's by now.
    Raced,
    /// The leaf has no room.
    NoRoom,
}

/// Adds an entry, or removes it. The transaction has room for the undo record in its undo block.
pub(crate) async fn change_entry(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    (id, undo_address): (u64, BlockAddress),
    index: &Index,
    place: Place<'_>,
    what: What,
) -> Result<()> {
    let root = index.root;
    for _ in 0..ATTEMPTS_MAX {
        let leaf = descend(sga, waits, root, place, 0).await?.address;
        let addresses = [undo_address, leaf];
        let [undo, node] = sga.cache.get_two(sga, waits, addresses).await?;
        let (attempt, _) = change(sga, waits, builder, &[&node, &undo], |blocks, builder| {
            let attempt = plan(sga, builder, root, (leaf, &blocks[0]), place, (id, what))?;
            if let Attempt::Done(_) = attempt {
                let (row, index, key) = (place.row, root.segment, place.key);
                let record = match what {
                    What::Add => UndoRecord::NoEntry { row, index, key },
                    What::Remove => UndoRecord::Entry { row, index, key },
                };
                let header = record.header(id, Version::LOADED);
                builder.push(VectorKind::UndoAppend, undo_address, &[&header, key]);
            }
            Ok(attempt)
        })
        .await?;
        drop((undo, node));
        match attempt {
            Attempt::Done(None) => return Ok(()),
            Attempt::Done(Some(emptied)) => {
                index.emptied.lock().push_back(emptied);
                return Ok(());
            }
            Attempt::Raced => {}
            Attempt::NoRoom => make_room(sga, waits, builder, index, place).await?,
        }
    }
    Err(is_damaged(
        sga,
        root,
        root.address,
        "no room can be made where a key belongs",
    ))
}

/// Adds the vectors that change the entry in its leaf.
fn plan(
    sga: &Sga,
    builder: &mut RecordBuilder,
    root: Root,
    (address, block): (BlockAddress, &[u8]),
    place: Place<'_>,
    (id, what): (u64, What),
) -> Result<Attempt> {
    if !is_leaf_of(sga, block, root, place) {
        return Ok(Attempt::Raced);
    }
    let found = index::find(block, place);
    let (mut position, before) = match found {
        Ok(position) => (position, Some(index::entry(block, position))),
        Err(position) => (position, None),
    };
    let is_there = before.is_some_and(|entry| !entry.is_ghost);
    if is_there != (what == What::Remove) {
        let reason = format!(
            "it has {} entry of row {}",
            if is_there { "an" } else { "no" },
            place.row
        );
        return Err(is_damaged(sga, root, address, reason));
    }
    let entry = Entry {
        suffix: &place.key[index::prefix(block).len()..],
        row: place.row,
        number: before.map(|_| id),
        is_ghost: what == What::Remove,
    };
    if before.is_none_or(|before| before.number.is_none()) {
        let spent = is_spent(sga);
        let bytes = index::stored_bytes(entry.suffix.len(), entry.number.is_some());
        match index::fit(block, bytes, before.is_none(), found.ok(), spent) {
            Fit::Now => {}
            Fit::Tidied(gone, bare) => {
                push_tidy(builder, address, &gone, &bare);
                position -= gone.iter().filter(|&&before| before < position).count() as u16;
            }
            Fit::No => return Ok(Attempt::NoRoom),
        }
    }
    push_put(
        builder,
        address,
        position,
        before.is_some(),
        &entry.to_bytes(),
    );
    let is_emptied = what == What::Remove
        && address != root.address
        && index::entries(block).all(|entry| entry.is_ghost || entry.row == place.row);
    let low = index::low(block);
    Ok(Attempt::Done(
        is_emptied.then(|| (low.key.to_vec(), low.row)),
    ))
}

/// Adds the vector that undoes what a transaction did to an entry: takes it out, or wakes it. An entry that the
/// transaction found as a ghost becomes one again.
pub(crate) fn push_undone(
    sga: &Sga,
    builder: &mut RecordBuilder,
    root: Root,
    (address, block): (BlockAddress, &[u8]),
    place: Place<'_>,
    (id, what): (u64, What),
) -> Result<()> {
    let Ok(position) = index::find(block, place) else {
        let reason = format!(
            "it has no entry of row {}, which is to be undone",
            place.row
        );
        return Err(is_damaged(sga, root, address, reason));
    };
    let entry = index::entry(block, position);
    if what == What::Add && entry.number.is_none() {
        builder.push(VectorKind::DropEntry, address, &[&position.to_le_bytes()]);
        return Ok(());
    }
    let undone = Entry {
        number: entry.number.map(|_| id),
        is_ghost: what == What::Add,
        ..entry
    };
    push_put(builder, address, position, true, &undone.to_bytes());
    Ok(())
}
