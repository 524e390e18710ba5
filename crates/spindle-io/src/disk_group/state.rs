//! What a group's metadata say: its disks and files, and the changes to them. Every disk of the group carries all of it, as
//! a snapshot and a log of changes (`store`), so any disk that has the newest step knows everything. The bytes:
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
//! | disk | name, failure group, incarnation (8), AUs (4), AUs of a slot (4), flags (1: online 1, leaving 2), mount (8) and step (8) at which it was last in the group |
//! | file | name, bytes (8), fine (1), width (1), copies (1), extents (4), for each copy of each: disk (2), AU (4) |
//!
//! A change is its kind (1) and its fields, in the order of [`Change`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disk_group::encoding::{Decoder, Encoder};
use crate::disk_group::extent_map::{COPIES_MAX, ExtentMap, Place};
use crate::disk_group::format::{DISKS_MAX, DiskLayout, is_allocation_unit};
use crate::disk_group::space::{Candidate, DiskSpace, Space};
use crate::disk_group::striping::{STRIPE_WIDTH, Shape, Striping};

/// How often a group keeps each extent, unless a file's template says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redundancy {
    /// Once: the storage below sees to it.
    External,
    /// Twice, in different failure groups.
    Normal,
    /// Three times, in different failure groups.
    High,
}

impl Redundancy {
    /// Copies of each extent.
    pub fn copies(self) -> usize {
        match self {
            Redundancy::External => 1,
            Redundancy::Normal => 2,
            Redundancy::High => 3,
        }
    }

    /// `external`, `normal` or `high`.
    pub fn name(self) -> &'static str {
        match self {
            Redundancy::External => "external",
            Redundancy::Normal => "normal",
            Redundancy::High => "high",
        }
    }

    pub(super) fn of_copies(copies: u8) -> Option<Redundancy> {
        let all = [Redundancy::External, Redundancy::Normal, Redundancy::High];
        all.into_iter()
            .find(|one| one.copies() == usize::from(copies))
    }
}

/// A moment in the life of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Identity of the mount, drawn when it began.
    pub(super) mount: u64,
    /// Number of the last change.
    pub(super) step: u64,
}

/// A disk, as the group knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskEntry {
    pub(super) name: String,
    pub(super) failure_group: String,
    pub(super) incarnation: u64,
    pub(super) total_aus: u32,
    pub(super) slot_aus: u32,
    /// Its copies are good and may be read.
    pub(super) is_online: bool,
    /// It is to be emptied and then to leave the group.
    pub(super) is_leaving: bool,
    /// When it was last online; of no meaning while it is.
    pub(super) last_online: Moment,
}

/// A file of the group.
#[derive(Clone)]
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) map: Arc<ExtentMap>,
}

/// The metadata of a group.
#[derive(Clone)]
pub(super) struct State {
    pub(super) group_id: [u8; 16],
    pub(super) group_name: String,
    pub(super) au_bytes: u64,
    pub(super) redundancy: Redundancy,
    /// Number of the last change.
    pub(super) step: u64,
    /// How often the group was mounted.
    pub(super) epoch: u64,
    /// Identity of the last mount: tells histories of the same length apart.
    pub(super) mount: u64,
    pub(super) next_disk: u16,
    pub(super) next_file: u32,
    pub(super) disks: BTreeMap<u16, DiskEntry>,
    pub(super) files: BTreeMap<u32, FileEntry>,
}

/// One change of the metadata.
#[derive(Clone)]
pub(super) enum Change {
    DiskAdded {
        disk: u16,
        entry: DiskEntry,
    },
    DiskOffline {
        disk: u16,
        last_online: Moment,
    },
    DiskOnline {
        disk: u16,
    },
    DiskLeaving {
        disk: u16,
    },
    DiskRemoved {
        disk: u16,
    },
    FileCreated {
        file: u32,
        entry: FileEntry,
    },
    FileRemoved {
        file: u32,
    },
    CopyMoved {
        file: u32,
        extent: u32,
        copy: u8,
        to: Place,
    },
}

impl State {
    /// Carries a change out in memory. `None` when it does not fit the state, which then is damaged.
    pub(super) fn apply(&mut self, change: &Change) -> Option<()> {
        match change {
            Change::DiskAdded { disk, entry } => {
                self.disks.insert(*disk, entry.clone());
                self.next_disk = self.next_disk.max(disk + 1);
            }
            Change::DiskOffline { disk, last_online } => {
                let entry = self.disks.get_mut(disk)?;
                entry.is_online = false;
                entry.last_online = *last_online;
            }
            Change::DiskOnline { disk } => self.disks.get_mut(disk)?.is_online = true,
            Change::DiskLeaving { disk } => self.disks.get_mut(disk)?.is_leaving = true,
            Change::DiskRemoved { disk } => drop(self.disks.remove(disk)?),
            Change::FileCreated { file, entry } => {
                self.files.insert(*file, entry.clone());
                self.next_file = self.next_file.max(file + 1);
            }
            Change::FileRemoved { file } => drop(self.files.remove(file)?),
            Change::CopyMoved {
                file,
                extent,
                copy,
                to,
            } => {
                let map = &self.files.get(file)?.map;
                let extent = map.extents().get(*extent as usize)?;
                (usize::from(*copy) < map.copies()).then_some(())?;
                extent.set_place(usize::from(*copy), *to);
            }
        }
        Some(())
    }

    /// What is known of this moment.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            mount: self.mount,
            step: self.step,
        }
    }

    /// Where things lie on a disk of the group.
    pub(super) fn layout_of(&self, entry: &DiskEntry) -> DiskLayout {
        DiskLayout {
            au_bytes: self.au_bytes,
            total_aus: entry.total_aus,
            slot_aus: entry.slot_aus,
        }
    }

    /// Disks that new extents may go to.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let takes = |entry: &&DiskEntry| entry.is_online && !entry.is_leaving;
        let disks = self.disks.iter().filter(|(_, entry)| takes(entry));
        let candidate = |(disk, entry): (&u16, &DiskEntry)| Candidate {
            disk: *disk,
            failure_group: entry.failure_group.clone(),
            data_aus: self.layout_of(entry).data_aus(),
        };
        disks.map(candidate).collect()
    }

    /// The allocation table that the extent maps make; in words which extents lie where they cannot.
    pub(super) fn space(&self) -> Result<Space, String> {
        let mut space = Space::default();
        for (disk, entry) in &self.disks {
            space
                .disks
                .insert(*disk, DiskSpace::new(self.layout_of(entry)));
        }
        for file in self.files.values() {
            for (number, extent) in file.map.extents().iter().enumerate() {
                for place in extent.places() {
                    if !space.take(place, file.map.shape.aus(number)) {
                        return Err(format!(
                            "extent {number} of file {} lies where there is no free space (disk {}, allocation unit {})",
                            file.name, place.disk, place.au
                        ));
                    }
                }
            }
        }
        Ok(space)
    }

    /// The bytes of a snapshot.
    pub(super) fn encode(&self) -> Vec<u8> {
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
    pub(super) fn decode(bytes: &[u8]) -> Option<State> {
        let mut from = Decoder(bytes);
        let mut state = State {
            group_id: from.bytes(16)?.try_into().ok()?,
            group_name: from.name()?,
            au_bytes: u64::from(from.u32()?),
            redundancy: Redundancy::of_copies(from.u8()?)?,
            step: from.u64()?,
            epoch: from.u64()?,
            mount: from.u64()?,
            next_disk: from.u16()?,
            next_file: from.u32()?,
            disks: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        is_allocation_unit(state.au_bytes).then_some(())?;
        for _ in 0..from.u16()? {
            let disk = from.u16().filter(|disk| *disk < DISKS_MAX)?;
            state.disks.insert(disk, decode_disk(&mut from)?);
        }
        for _ in 0..from.u32()? {
            let file = from.u32()?;
            let entry = decode_file(&mut from, state.au_bytes)?;
            state.files.insert(file, entry);
        }
        from.0.is_empty().then_some(state)
    }
}

impl Change {
    /// The bytes of a change.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        match self {
            Change::DiskAdded { disk, entry } => {
                to.u8(1);
                to.u16(*disk);
                encode_disk(entry, &mut to);
            }
            Change::DiskOffline { disk, last_online } => {
                to.u8(2);
                to.u16(*disk);
                to.u64(last_online.mount);
                to.u64(last_online.step);
            }
            Change::DiskOnline { disk } => {
                to.u8(3);
                to.u16(*disk);
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
    pub(super) fn decode(bytes: &[u8], au_bytes: u64) -> Option<Change> {
        let mut from = Decoder(bytes);
        let change = match from.u8()? {
            1 => Change::DiskAdded {
                disk: from.u16().filter(|disk| *disk < DISKS_MAX)?,
                entry: decode_disk(&mut from)?,
            },
            2 => Change::DiskOffline {
                disk: from.u16()?,
                last_online: Moment {
                    mount: from.u64()?,
                    step: from.u64()?,
                },
            },
            3 => Change::DiskOnline { disk: from.u16()? },
            4 => Change::DiskLeaving { disk: from.u16()? },
            5 => Change::DiskRemoved { disk: from.u16()? },
            6 => Change::FileCreated {
                file: from.u32()?,
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

const ONLINE: u8 = 1;
const LEAVING: u8 = 2;

fn encode_disk(entry: &DiskEntry, to: &mut Encoder) {
    to.name(&entry.name);
    to.name(&entry.failure_group);
    to.u64(entry.incarnation);
    to.u32(entry.total_aus);
    to.u32(entry.slot_aus);
    to.u8((u8::from(entry.is_online) * ONLINE) | (u8::from(entry.is_leaving) * LEAVING));
    to.u64(entry.last_online.mount);
    to.u64(entry.last_online.step);
}

fn decode_disk(from: &mut Decoder<'_>) -> Option<DiskEntry> {
    let (name, failure_group, incarnation) = (from.name()?, from.name()?, from.u64()?);
    let (total_aus, slot_aus, flags) = (from.u32()?, from.u32()?, from.u8()?);
    Some(DiskEntry {
        name,
        failure_group,
        incarnation,
        total_aus,
        slot_aus,
        is_online: flags & ONLINE != 0,
        is_leaving: flags & LEAVING != 0,
        last_online: Moment {
            mount: from.u64()?,
            step: from.u64()?,
        },
    })
}

fn encode_place(place: Place, to: &mut Encoder) {
    to.u16(place.disk);
    to.u32(place.au);
}

fn decode_place(from: &mut Decoder<'_>) -> Option<Place> {
    Some(Place {
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
    let shape = Shape::new(bytes, striping, u64::from(width), au_bytes);
    let extents = from.u32()? as usize;
    (extents == shape.extents()).then_some(())?;
    let mut places = Vec::with_capacity(extents.min(from.0.len()));
    for _ in 0..extents {
        let copies: Option<Vec<Place>> = (0..copies).map(|_| decode_place(from)).collect();
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

    fn disk(name: &str) -> DiskEntry {
        DiskEntry {
            name: name.to_owned(),
            failure_group: format!("of {name}"),
            incarnation: 77,
            total_aus: 100,
            slot_aus: 1,
            is_online: true,
            is_leaving: false,
            last_online: Moment { mount: 0, step: 0 },
        }
    }

    fn state() -> State {
        State {
            group_id: [9; 16],
            group_name: "data".to_owned(),
            au_bytes: 1 << 20,
            redundancy: Redundancy::Normal,
            step: 4,
            epoch: 2,
            mount: 99,
            next_disk: 0,
            next_file: 0,
            disks: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    fn file(places: &[[Place; 2]]) -> FileEntry {
        let shape = Shape::new(
            places.len() as u64 * (1 << 20),
            Striping::Coarse,
            1,
            1 << 20,
        );
        let places: Vec<Vec<Place>> = places.iter().map(|places| places.to_vec()).collect();
        FileEntry {
            name: "users01".to_owned(),
            map: Arc::new(ExtentMap::new(shape, 2, &places)),
        }
    }

    fn place(disk: u16, au: u32) -> Place {
        Place { disk, au }
    }

    /// All kinds of changes, by way of their bytes; the snapshot after them says the same.
    #[test]
    fn changes_and_snapshots_are_read_as_they_were_written() {
        let entry = file(&[[place(0, 4), place(1, 4)], [place(1, 5), place(0, 5)]]);
        let last_online = Moment { mount: 99, step: 3 };
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
            Change::DiskOffline {
                disk: 0,
                last_online,
            },
            Change::DiskOnline { disk: 0 },
            Change::DiskOffline {
                disk: 1,
                last_online,
            },
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
        assert_eq!(
            (entry.is_online, entry.is_leaving, entry.last_online),
            (false, true, last_online)
        );
        for end in 0..bytes.len() {
            assert!(State::decode(&bytes[..end]).is_none());
        }
    }

    #[test]
    fn two_extents_in_one_place_are_damage() {
        let mut state = state();
        for disk_number in 0..2 {
            let entry = disk("d");
            state
                .apply(&Change::DiskAdded {
                    disk: disk_number,
                    entry,
                })
                .unwrap();
        }
        let entry = file(&[[place(0, 4), place(1, 4)], [place(1, 5), place(0, 4)]]);
        state
            .apply(&Change::FileCreated { file: 0, entry })
            .unwrap();
        assert!(
            state
                .space()
                .err()
                .unwrap()
                .contains("extent 1 of file users01")
        );
    }
}
