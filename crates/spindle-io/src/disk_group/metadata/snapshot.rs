//! The bytes of a group's metadata: of a snapshot of all of them, and of one change.
//!
//! | snapshot | |
//! | --- | --- |
//! | group | identity (16), name, bytes of an AU (4), redundancy (1) |
//! | step | number of the last change (8), epoch of the mount (8), identity of the mount (8) |
//! | next numbers | disk (2), file (4) |
//! | disks | count (2), each: number (2), entry |
//! | files | count (4), each: number (4), entry |
//!
//! | entry | |
//! | --- | --- |
//! | disk | name, failure group, incarnation (8), AUs (4), AUs of a slot (4), flags (1: online 1, leaving 2), mount (8)
//! and step (8) at which it was last in the group |
//! | file | name, bytes (8), fine (1), width (1), copies (1), extents (4), for each copy of each: disk (2), AU (4) |
//!
//! A change is its kind (1) and its fields, in the order of [`Change`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk_group::disk::format::{DISKS_MAX, DiskLayout, is_allocation_unit};
use crate::disk_group::extents::map::{COPIES_MAX, ExtentMap, UnitPlace};
use crate::disk_group::extents::striping::{FileExtents, STRIPE_WIDTH, Striping};
use crate::disk_group::metadata::encoding::{Decoder, Encoder};
use crate::disk_group::metadata::state::{Change, DiskEntry, FileEntry, Redundancy, State};

/// More than there ever will be: what is counted from a damaged number on would overflow.
const COUNT_MAX: u64 = 1 << 62;
/// The same for files.
const FILES_MAX: u32 = 1 << 31;

impl State {
    /// The bytes of a snapshot.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        to.0.extend(self.group_id);
        to.name(&self.group_name);
        to.u32(self.au_bytes as u32);
        to.u8(self.redundancy.copies() as u8);
        for number in [self.step, self.epoch, self.mount] {
            to.u64(number);
        }
        to.u16(self.next_disk);
        to.u32(self.next_file);
        to.u16(self.disks.len() as u16);
        for (disk, entry) in &self.disks {
            to.u16(*disk);
            encode_disk(entry, &mut to);
        }
        to.u32(self.files.len() as u32);
        for (file, entry) in &self.files {
            to.u32(*file);
            encode_file(entry, &mut to);
        }
        to.0
    }

    /// `None` when the bytes are no snapshot.
    pub(crate) fn decode(bytes: &[u8]) -> Option<State> {
        let mut from = Decoder(bytes);
        let mut state = State {
            group_id: from.bytes(16)?.try_into().ok()?,
            group_name: from.name()?,
            au_bytes: u64::from(from.u32()?),
            redundancy: Redundancy::of_copies(from.u8()?)?,
            step: from.u64().filter(|step| *step < COUNT_MAX)?,
            epoch: from.u64().filter(|epoch| *epoch < COUNT_MAX)?,
            mount: from.u64()?,
            next_disk: from.u16()?,
            next_file: from.u32()?,
            disks: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        is_allocation_unit(state.au_bytes).then_some(())?;
        for _ in 0..from.u16()? {
            let disk = from.u16().filter(|disk| *disk < DISKS_MAX)?;
            state
                .disks
                .insert(disk, decode_disk(&mut from, state.au_bytes)?);
        }
        for _ in 0..from.u32()? {
            let file = from.u32().filter(|file| *file < FILES_MAX)?;
            let entry = decode_file(&mut from, state.au_bytes)?;
            state.files.insert(file, entry);
        }
        from.0.is_empty().then_some(state)
    }
}

impl Change {
    /// The bytes of a change.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        match self {
            Change::DiskAdded { disk, entry } => {
                to.u8(1);
                to.u16(*disk);
                encode_disk(entry, &mut to);
            }
            Change::DiskOffline { disk } => {
                to.u8(2);
                to.u16(*disk);
                to.0.extend(UNUSED);
            }
            Change::DiskLeaving { disk } => {
                to.u8(4);
                to.u16(*disk);
            }
            Change::DiskRemoved { disk } => {
                to.u8(5);
                to.u16(*disk);
            }
            Change::FileCreated { file, entry } => {
                to.u8(6);
                to.u32(*file);
                encode_file(entry, &mut to);
            }
            Change::FileRemoved { file } => {
                to.u8(7);
                to.u32(*file);
            }
            Change::CopyMoved {
                file,
                extent,
                copy,
                to: place,
            } => {
                to.u8(8);
                to.u32(*file);
                to.u32(*extent);
                to.u8(*copy);
                encode_place(*place, &mut to);
            }
        }
        to.0
    }

    /// `None` when the bytes are no change.
    pub(crate) fn decode(bytes: &[u8], au_bytes: u64) -> Option<Change> {
        let mut from = Decoder(bytes);
        let change = match from.u8()? {
            1 => Change::DiskAdded {
                disk: from.u16().filter(|disk| *disk < DISKS_MAX)?,
                entry: decode_disk(&mut from, au_bytes)?,
            },
            2 => {
                let disk = from.u16()?;
                from.bytes(UNUSED.len())?;
                Change::DiskOffline { disk }
            }
            4 => Change::DiskLeaving { disk: from.u16()? },
            5 => Change::DiskRemoved { disk: from.u16()? },
            6 => Change::FileCreated {
                file: from.u32().filter(|file| *file < FILES_MAX)?,
                entry: decode_file(&mut from, au_bytes)?,
            },
            7 => Change::FileRemoved { file: from.u32()? },
            8 => Change::CopyMoved {
                file: from.u32()?,
                extent: from.u32()?,
                copy: from.u8()?,
                to: decode_place(&mut from)?,
            },
            _ => return None,
        };
        from.0.is_empty().then_some(change)
    }
}

/// Bytes of a disk that earlier versions wrote and nothing reads.
const UNUSED: [u8; 16] = [0; 16];
const ONLINE: u8 = 1;
const LEAVING: u8 = 2;

fn encode_disk(entry: &DiskEntry, to: &mut Encoder) {
    to.name(&entry.name);
    to.name(&entry.failure_group);
    to.u64(entry.incarnation);
    to.u32(entry.total_aus);
    to.u32(entry.slot_aus);
    to.u8((u8::from(entry.is_online) * ONLINE) | (u8::from(entry.is_leaving) * LEAVING));
    to.0.extend(UNUSED);
}

fn decode_disk(from: &mut Decoder<'_>, au_bytes: u64) -> Option<DiskEntry> {
    let (name, failure_group, incarnation) = (from.name()?, from.name()?, from.u64()?);
    let (total_aus, slot_aus, flags) = (from.u32()?, from.u32()?, from.u8()?);
    let layout = DiskLayout {
        au_bytes,
        total_aus,
        slot_aus,
    };
    layout.is_sane().then_some(())?;
    from.bytes(UNUSED.len())?;
    Some(DiskEntry {
        name,
        failure_group,
        incarnation,
        total_aus,
        slot_aus,
        is_online: flags & ONLINE != 0,
        is_leaving: flags & LEAVING != 0,
    })
}

fn encode_place(place: UnitPlace, to: &mut Encoder) {
    to.u16(place.disk);
    to.u32(place.au);
}

fn decode_place(from: &mut Decoder<'_>) -> Option<UnitPlace> {
    Some(UnitPlace {
        disk: from.u16().filter(|disk| *disk < DISKS_MAX)?,
        au: from.u32()?,
    })
}

fn encode_file(entry: &FileEntry, to: &mut Encoder) {
    let (map, shape) = (&entry.map, &entry.map.shape);
    to.name(&entry.name);
    to.u64(shape.bytes);
    to.u8(u8::from(shape.striping == Striping::Fine));
    to.u8(shape.width as u8);
    to.u8(map.copies() as u8);
    to.u32(map.extents().len() as u32);
    for extent in map.extents() {
        extent.places().for_each(|place| encode_place(place, to));
    }
}

fn decode_file(from: &mut Decoder<'_>, au_bytes: u64) -> Option<FileEntry> {
    let (name, bytes) = (from.name()?, from.u64()?);
    let striping = match from.u8()? {
        0 => Striping::Coarse,
        1 => Striping::Fine,
        _ => return None,
    };
    let width = from
        .u8()
        .filter(|width| (1..=STRIPE_WIDTH).contains(&usize::from(*width)))?;
    let copies = from
        .u8()
        .map(usize::from)
        .filter(|copies| (1..=COPIES_MAX).contains(copies))?;
    let shape = FileExtents::new(bytes, striping, u64::from(width), au_bytes);
    let extents = from.u32()? as usize;
    (extents == shape.extents()).then_some(())?;
    let mut places = Vec::with_capacity(extents.min(from.0.len()));
    for _ in 0..extents {
        let copies: Option<Vec<UnitPlace>> = (0..copies).map(|_| decode_place(from)).collect();
        places.push(copies?);
    }
    Some(FileEntry {
        name,
        map: Arc::new(ExtentMap::new(shape, copies, &places)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_group::metadata::state::tests::{disk, file, place, state};

    /// All kinds of changes, by way of their bytes; the snapshot after them says the same.
    #[test]
    fn changes_and_snapshots_are_read_as_they_were_written() {
        let entry = file(&[[place(0, 4), place(1, 4)], [place(1, 5), place(0, 5)]]);
        let moved = Change::CopyMoved {
            file: 3,
            extent: 1,
            copy: 1,
            to: place(0, 9),
        };
        let changes = [
            Change::DiskAdded {
                disk: 0,
                entry: disk("a"),
            },
            Change::DiskAdded {
                disk: 1,
                entry: disk("b"),
            },
            Change::DiskAdded {
                disk: 2,
                entry: disk("c"),
            },
            Change::FileCreated {
                file: 3,
                entry: entry.clone(),
            },
            Change::FileCreated { file: 4, entry },
            Change::FileRemoved { file: 4 },
            moved,
            Change::DiskOffline { disk: 1 },
            Change::DiskLeaving { disk: 1 },
            Change::DiskRemoved { disk: 2 },
        ];
        let (mut direct, mut read) = (state(), state());
        for change in &changes {
            direct.apply(change).unwrap();
            let again = Change::decode(&change.encode(), 1 << 20).unwrap();
            read.apply(&again).unwrap();
        }
        let bytes = direct.encode();
        assert!(read.encode() == bytes);
        let decoded = State::decode(&bytes).unwrap();
        assert!(decoded.encode() == bytes);
        assert_eq!(
            decoded.files[&3].map.extents()[1].place(1),
            Some(place(0, 9))
        );
        assert_eq!((decoded.next_disk, decoded.next_file), (3, 5));
        let entry = &decoded.disks[&1];
        assert_eq!((entry.is_online, entry.is_leaving), (false, true));
        for end in 0..bytes.len() {
            assert!(State::decode(&bytes[..end]).is_none());
        }
    }
}
