//! Heap blocks: rows of a table, of any length, in a slotted block. After the block's header: number of slots
//! (2 bytes), where the lowest room begins (2), unused (4); then the slot directory, which grows upwards; free space;
//! and rooms for rows, taken from the end of the block downwards.
//!
//! Slot: where its room begins (2), bytes in the room (2), length of the row in it (2; all ones: no row), kind (1),
//! unused (1), version (16): which change made it so, also for an empty slot. A room is never given back by a row that
//! shrinks or goes, only when a caller who knows that no roll-back will want it has the block compacted: so a change
//! can always be undone in place.

use super::{
    BlockAddress, BlockKind, Damage, HEADER_BYTES, RowId, RowVersion, format, get_u16, kind, put,
};

const FIXED: usize = HEADER_BYTES + 8;
const VERSION_AT: usize = 8;
const SLOT_BYTES: usize = VERSION_AT + RowVersion::BYTES;
const NO_ROW: u16 = u16::MAX;
/// The smallest room: that of a rowid, so that any row can give way to the rowid of the place it has moved to.
const ROOM_BYTES_MIN: usize = RowId::BYTES;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RowKind {
    /// A row.
    Row = 0,
    /// Nothing but the rowid of the place that the row has migrated to.
    Forward = 1,
    /// A migrated row: the rowid by which it is known, then the row.
    Migrated = 2,
}

impl RowKind {
    /// Inverse of `as u8`; what is no kind is a plain row.
    pub fn from_u8(value: u8) -> RowKind {
        match value {
            1 => RowKind::Forward,
            2 => RowKind::Migrated,
            _ => RowKind::Row,
        }
    }
}

/// How a block makes room for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowFit {
    /// The room exists already.
    Now,
    /// After a compaction that cuts the rooms of these slots to what they hold.
    Compacted(Vec<u16>),
    /// Not in this block.
    No,
}

/// Loaded rows in a block of `block_bytes`: as many as fit when each is of the longest kind, `row_bytes`.
pub fn slots_per_block(block_bytes: usize, row_bytes: usize) -> usize {
    (block_bytes - FIXED) / (SLOT_BYTES + room_bytes(row_bytes))
}

/// The longest row of which one fits into a block, also after it migrated.
pub fn row_bytes_max(block_bytes: usize) -> usize {
    block_bytes - FIXED - SLOT_BYTES - RowId::BYTES
}

/// Bytes that a row of `row_bytes` takes.
fn room_bytes(row_bytes: usize) -> usize {
    row_bytes.max(ROOM_BYTES_MIN)
}

/// Makes an empty heap block.
pub fn format_heap(block: &mut [u8], address: BlockAddress, segment: u32) {
    format(block, BlockKind::Heap, address, segment);
    block[HEADER_BYTES..FIXED].fill(0);
    set_rooms_start(block, block.len());
}

/// True when the block is a heap block.
pub fn is_heap(block: &[u8]) -> bool {
    kind(block) == BlockKind::Heap as u8
}

/// Slots in the block, used or not.
pub fn slots(block: &[u8]) -> u16 {
    get_u16(block, HEADER_BYTES)
}

fn rooms_start(block: &[u8]) -> usize {
    usize::from(get_u16(block, HEADER_BYTES + 2))
}

fn set_rooms_start(block: &mut [u8], start: usize) {
    put(block, HEADER_BYTES + 2, &(start as u16).to_le_bytes());
}

/// An entry of the slot directory.
#[derive(Clone, Copy)]
struct Slot {
    start: usize,
    room: usize,
    /// `None`: there is no row.
    length: Option<usize>,
    kind: RowKind,
}

impl Slot {
    const EMPTY: Slot = Slot {
        start: 0,
        room: 0,
        length: None,
        kind: RowKind::Row,
    };

    /// Bytes it needs for what it holds.
    fn needs(&self) -> usize {
        self.length.map_or(0, room_bytes)
    }
}

pub(super) fn slot_at(slot: u16) -> usize {
    FIXED + usize::from(slot) * SLOT_BYTES
}

fn get_slot(block: &[u8], slot: u16) -> Slot {
    let at = slot_at(slot);
    let length = get_u16(block, at + 4);
    Slot {
        start: usize::from(get_u16(block, at)),
        room: usize::from(get_u16(block, at + 2)),
        length: (length != NO_ROW).then_some(usize::from(length)),
        kind: RowKind::from_u8(block[at + 6]),
    }
}

fn put_slot(block: &mut [u8], slot: u16, entry: Slot) {
    let at = slot_at(slot);
    let length = entry.length.map_or(NO_ROW, |length| length as u16);
    put(block, at, &(entry.start as u16).to_le_bytes());
    put(block, at + 2, &(entry.room as u16).to_le_bytes());
    put(block, at + 4, &length.to_le_bytes());
    put(block, at + 6, &[entry.kind as u8, 0]);
}

/// What a slot holds; `None` when it is empty, or when there is no such slot.
pub fn stored(block: &[u8], slot: u16) -> Option<(RowKind, &[u8])> {
    if !is_heap(block) || slot >= slots(block) {
        return None;
    }
    let entry = get_slot(block, slot);
    let length = entry.length?;
    Some((entry.kind, &block[entry.start..entry.start + length]))
}

/// Which of the first `count` slots hold no row.
pub fn empty_slots(block: &[u8], count: u16) -> impl Iterator<Item = u16> {
    (0..count).filter(|slot| get_u16(block, slot_at(*slot) + 4) == NO_ROW)
}

/// Checks that directory and rooms lie where they can, and take no more than there is.
pub fn check(block: &[u8]) -> Result<(), Damage> {
    let (count, rooms) = (slots(block), rooms_start(block));
    if slot_at(count) > rooms || rooms > block.len() {
        return Err(Damage(format!(
            "its {count} slots end at byte {}, its rooms begin at byte {rooms} of its {}",
            slot_at(count),
            block.len()
        )));
    }
    // Without a branch in the loop: every block passes here before it is written.
    let (mut taken, mut fits) = (0, true);
    for slot in block[FIXED..slot_at(count)].chunks_exact(SLOT_BYTES) {
        let number = |at: usize| usize::from(u16::from_le_bytes([slot[at], slot[at + 1]]));
        let (start, room, length) = (number(0), number(2), number(4));
        fits &= (room == 0) | ((start >= rooms) & (start + room <= block.len()));
        fits &= (length == usize::from(NO_ROW)) | (room_bytes(length) <= room);
        // Both other kinds begin with a rowid.
        fits &= (slot[6] == RowKind::Row as u8) | (length >= RowId::BYTES);
        taken += room;
    }
    if fits && taken <= block.len() - rooms {
        return Ok(());
    }
    Err(Damage(format!(
        "the rooms of its {count} slots, {taken} bytes, are not all within the {} at its end, or too small for their rows",
        block.len() - rooms
    )))
}

/// Which change made a slot what it is. A slot that does not exist has never been changed.
pub fn version(block: &[u8], slot: u16) -> RowVersion {
    if !is_heap(block) || slot >= slots(block) {
        return RowVersion::LOADED;
    }
    RowVersion::from_bytes(&block[slot_at(slot) + VERSION_AT..])
}

fn set_version(block: &mut [u8], slot: u16, version: RowVersion) {
    put(block, slot_at(slot) + VERSION_AT, &version.to_bytes());
}

/// Bytes that no row needs, wherever they lie, once a slot holds this many bytes (`None`: no row) instead of what it
/// does; and whether there is a row then.
pub fn spare(block: &[u8], slot: u16, holds: Option<usize>) -> (usize, bool) {
    let count = slots(block);
    let (mut needs, mut has_rows) = (0, false);
    for other in 0..count {
        let entry = get_slot(block, other);
        let length = if other == slot { holds } else { entry.length };
        needs += length.map_or(0, room_bytes);
        has_rows |= length.is_some();
    }
    let beside = slot_at(count) + needs;
    (block.len().saturating_sub(beside), has_rows)
}

/// Bytes that a row of `row_bytes` and its slot take.
pub fn needed_bytes(row_bytes: usize) -> usize {
    room_bytes(row_bytes) + SLOT_BYTES
}

/// Free bytes between directory and rooms.
fn gap(block: &[u8]) -> usize {
    rooms_start(block) - slot_at(slots(block))
}

/// How `row_bytes` get a room in a slot, which may be one that does not exist yet. Room that another row has beyond its
/// needs is taken unless the slot `is_kept`. After that `reserve_bytes` must be left free, unless the block has no
/// other row.
pub fn fit(
    block: &[u8],
    slot: u16,
    row_bytes: usize,
    reserve_bytes: usize,
    mut is_kept: impl FnMut(u16) -> bool,
) -> RowFit {
    let count = slots(block);
    if slot < count && get_slot(block, slot).room >= room_bytes(row_bytes) {
        return RowFit::Now;
    }
    let directory_bytes = slot_at(count.max(slot + 1)) - slot_at(count);
    let needs = room_bytes(row_bytes) + directory_bytes;
    if gap(block) >= needs + reserve_bytes {
        return RowFit::Now;
    }
    let mut others = 0;
    let mut cut = Vec::new();
    for other in (0..count).filter(|other| *other != slot) {
        let entry = get_slot(block, other);
        if entry.room > entry.needs() && !is_kept(other) {
            cut.push(other);
            others += entry.needs();
        } else {
            others += entry.room;
        }
    }
    let free = block.len() - slot_at(count) - others;
    let reserve_bytes = if others == 0 { 0 } else { reserve_bytes };
    if free < needs + reserve_bytes {
        RowFit::No
    } else if gap(block) >= needs {
        RowFit::Now
    } else {
        RowFit::Compacted(cut)
    }
}

/// Moves all rooms to the end of the block, those of the slots in `cut` made as small as what they hold. Slot `emptied`
/// loses its row and its room: another is about to be put there.
pub fn compact(block: &mut [u8], emptied: u16, cut: impl Iterator<Item = u16>) {
    let count = slots(block);
    if emptied < count {
        let kind = get_slot(block, emptied).kind;
        put_slot(
            block,
            emptied,
            Slot {
                kind,
                ..Slot::EMPTY
            },
        );
    }
    for slot in cut {
        let mut entry = get_slot(block, slot);
        entry.room = entry.needs();
        put_slot(block, slot, entry);
    }
    let mut order: Vec<(usize, u16)> = (0..count)
        .map(|slot| (get_slot(block, slot).start, slot))
        .collect();
    // From the end of the block on, so that no room is moved onto one that has yet to move.
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut end = block.len();
    for (_, slot) in order {
        let mut entry = get_slot(block, slot);
        if entry.room == 0 {
            entry.start = 0;
        } else {
            end -= entry.room;
            block.copy_within(entry.start..entry.start + entry.room, end);
            entry.start = end;
        }
        put_slot(block, slot, entry);
    }
    set_rooms_start(block, end);
}

/// Puts a row into a slot: into the room it has or, when that is too small, into a new one, for which there must be
/// space ([`fit`]). Makes the slot if there is none.
pub fn put_row(block: &mut [u8], slot: u16, kind: RowKind, version: RowVersion, row: &[u8]) {
    let count = slots(block);
    if slot >= count {
        for new in count..=slot {
            put_slot(block, new, Slot::EMPTY);
            set_version(block, new, RowVersion::LOADED);
        }
        put(block, HEADER_BYTES, &(slot + 1).to_le_bytes());
    }
    let mut entry = get_slot(block, slot);
    if entry.room < room_bytes(row.len()) {
        entry.room = room_bytes(row.len());
        assert!(
            rooms_start(block) >= slot_at(slots(block)) + entry.room,
            "a row is put where there is room for it"
        );
        entry.start = rooms_start(block) - entry.room;
        set_rooms_start(block, entry.start);
    }
    entry.length = Some(row.len());
    entry.kind = kind;
    put(block, entry.start, row);
    put_slot(block, slot, entry);
    set_version(block, slot, version);
}

/// True when [`put_row`] has space for a row of `row_bytes`.
pub fn takes_row(block: &[u8], slot: u16, row_bytes: usize) -> bool {
    let (count, needs) = (slots(block), room_bytes(row_bytes));
    if slot < count && get_slot(block, slot).room >= needs {
        return true;
    }
    let directory_end = slot_at(count).max(slot_at(slot) + SLOT_BYTES);
    rooms_start(block) >= directory_end + needs
}

/// True when the slot holds something that has `bytes` bytes or more.
pub fn takes_patch(block: &[u8], slot: u16, bytes: usize) -> bool {
    stored(block, slot).is_some_and(|(_, stored)| bytes <= stored.len())
}

/// Empties a slot, which keeps its room.
pub fn clear_row(block: &mut [u8], slot: u16, version: RowVersion) {
    let entry = get_slot(block, slot);
    put_slot(
        block,
        slot,
        Slot {
            length: None,
            ..entry
        },
    );
    set_version(block, slot, version);
}

/// Overwrites some bytes of what a slot holds.
pub fn patch_row(block: &mut [u8], slot: u16, offset: u16, version: RowVersion, bytes: &[u8]) {
    let start = get_slot(block, slot).start;
    put(block, start + usize::from(offset), bytes);
    set_version(block, slot, version);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::RngCore;
    use spindle_io::env::seeded_rng;

    const ADDRESS: BlockAddress = BlockAddress { file: 3, block: 77 };

    fn empty(block_bytes: usize) -> Vec<u8> {
        let mut block = vec![0x5A; block_bytes];
        format_heap(&mut block, ADDRESS, 1);
        block
    }

    fn put_plain(block: &mut [u8], slot: u16, row: &[u8]) {
        put_row(block, slot, RowKind::Row, RowVersion::LOADED, row);
    }

    #[test]
    fn a_block_takes_as_many_of_the_longest_rows_as_it_says() {
        for (block_bytes, row_bytes) in [
            (2048, 1),
            (2048, 7),
            (8192, 128),
            (8192, 200),
            (32768, 1000),
            (8192, row_bytes_max(8192)),
        ] {
            let mut block = empty(block_bytes);
            let count = slots_per_block(block_bytes, row_bytes) as u16;
            assert!(count > 0);
            for slot in 0..count {
                assert_eq!(fit(&block, slot, row_bytes, 0, |_| true), RowFit::Now);
                put_plain(&mut block, slot, &vec![slot as u8; row_bytes]);
            }
            assert_eq!(fit(&block, count, row_bytes, 0, |_| false), RowFit::No);
            for slot in 0..count {
                let row = vec![slot as u8; row_bytes];
                assert_eq!(stored(&block, slot), Some((RowKind::Row, &row[..])));
            }
            assert_eq!(stored(&block, count), None);
        }
    }

    #[test]
    fn a_row_grows_into_what_others_have_left_and_may_be_taken() {
        let mut block = empty(2048);
        for slot in 0..4 {
            put_plain(&mut block, slot, &[slot as u8; 470]);
        }
        put_plain(&mut block, 1, &[1; 20]);
        clear_row(&mut block, 2, RowVersion::LOADED);
        assert_eq!(fit(&block, 0, 1000, 0, |_| true), RowFit::No);
        assert_eq!(fit(&block, 0, 1400, 0, |slot| slot == 1), RowFit::No);
        assert_eq!(
            fit(&block, 0, 900, 0, |slot| slot == 1),
            RowFit::Compacted(vec![2])
        );
        let RowFit::Compacted(cut) = fit(&block, 0, 1400, 0, |_| false) else {
            panic!("it fits when both give their room")
        };
        compact(&mut block, 0, cut.into_iter());
        put_plain(&mut block, 0, &[9; 1400]);
        assert_eq!(stored(&block, 0).unwrap().1, [9; 1400]);
        assert_eq!(stored(&block, 1).unwrap().1, [1; 20]);
        assert_eq!(stored(&block, 2), None);
        assert_eq!(stored(&block, 3).unwrap().1, [3; 470]);
    }

    #[test]
    fn inserts_leave_a_reserve_but_for_the_first() {
        let mut block = empty(2048);
        let longest = row_bytes_max(2048);
        assert_eq!(fit(&block, 0, longest, 200, |_| false), RowFit::Now);
        put_plain(&mut block, 0, &[0; 1000]);
        assert_eq!(fit(&block, 1, 800, 200, |_| false), RowFit::No);
        assert_eq!(fit(&block, 1, 700, 200, |_| false), RowFit::Now);
        assert_eq!(fit(&block, 1, 800, 0, |_| false), RowFit::Now);
    }

    #[test]
    fn the_shortest_row_can_give_way_to_a_rowid() {
        let mut block = empty(2048);
        let count = slots_per_block(2048, 1) as u16;
        (0..count).for_each(|slot| put_plain(&mut block, slot, &[slot as u8]));
        for slot in 0..count {
            let rowid = RowId {
                address: ADDRESS,
                slot,
            };
            let version = RowVersion {
                transaction: 7,
                undo_block: ADDRESS,
                undo_offset: u16::from(slot as u8),
            };
            put_row(
                &mut block,
                slot,
                RowKind::Forward,
                version,
                &rowid.to_bytes(),
            );
            assert_eq!(super::version(&block, slot), version);
            let (kind, bytes) = stored(&block, slot).unwrap();
            assert_eq!((kind, RowId::from_bytes(bytes)), (RowKind::Forward, rowid));
        }
    }

    /// A slot and what it held, or that it was empty.
    type Undo = (u16, Option<Vec<u8>>);

    /// Random rows put, patched and deleted in transactions of which some are rolled back, against a plain list of
    /// rows.
    #[test]
    fn random_changes_and_roll_backs_do_what_they_do_to_a_list() {
        for seed in 0..200 {
            let mut rng = seeded_rng(seed, 0);
            let mut below = |limit: usize| (rng.next_u64() % limit as u64) as usize;
            let mut block = empty([2048, 4096][below(2)]);
            let mut model: Vec<Option<Vec<u8>>> = Vec::new();
            let mut undo: Vec<Undo> = Vec::new();
            for step in 0..400 {
                let slot = below(model.len().min(12) + 1);
                let present = model.get(slot).is_some_and(Option::is_some);
                let before = model.get(slot).cloned().flatten();
                match below(8) {
                    0 if present => {
                        clear_row(&mut block, slot as u16, RowVersion::LOADED);
                        model[slot] = None;
                        undo.push((slot as u16, before));
                    }
                    1 if before.as_ref().is_some_and(|row| row.len() > 1) => {
                        let at = below(model[slot].as_ref().unwrap().len());
                        patch_row(
                            &mut block,
                            slot as u16,
                            at as u16,
                            RowVersion::LOADED,
                            &[step as u8],
                        );
                        model[slot].as_mut().unwrap()[at] = step as u8;
                        undo.push((slot as u16, before));
                    }
                    2 => undo.clear(),
                    3 => {
                        for (slot, before) in undo.drain(..).rev() {
                            match &before {
                                Some(row) => put_plain(&mut block, slot, row),
                                None => clear_row(&mut block, slot, RowVersion::LOADED),
                            }
                            model[usize::from(slot)] = before;
                        }
                    }
                    _ => {
                        let row = vec![step as u8; below(600)];
                        let is_kept = |other| undo.iter().any(|(slot, _)| *slot == other);
                        match fit(&block, slot as u16, row.len(), 0, is_kept) {
                            RowFit::No => continue,
                            RowFit::Now => {}
                            RowFit::Compacted(cut) => {
                                compact(&mut block, slot as u16, cut.into_iter());
                            }
                        }
                        put_plain(&mut block, slot as u16, &row);
                        model.resize(model.len().max(slot + 1), None);
                        model[slot] = Some(row);
                        undo.push((slot as u16, before));
                    }
                }
                for (slot, row) in model.iter().enumerate() {
                    let is = stored(&block, slot as u16).map(|(_, row)| row.to_vec());
                    assert_eq!(is, *row, "seed {seed}, step {step}, slot {slot}");
                }
            }
        }
    }
}
