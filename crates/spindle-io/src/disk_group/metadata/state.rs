//! What a group's metadata say: its disks and files, and the changes to them. Every disk of the group carries all of
//! it, as a snapshot and a log of changes (`store`, whose bytes are in `snapshot`), so any disk that has the newest
//! step knows everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_text::words;

use crate::disk_group::disk::format::DiskLayout;
use crate::disk_group::extents::map::{ExtentMap, UnitPlace};
use crate::disk_group::extents::space::{Candidate, DiskSpace, Space};

words! {
    /// How often a group keeps each extent, unless a file's template says otherwise.
    pub enum Redundancy {
        /// Once: the devices themselves are safe, or do not matter.
        External = "external",
        /// Twice, in different failure groups.
        Normal = "normal",
        /// Three times, in different failure groups.
        High = "high",
    }
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

    pub(crate) fn of_copies(copies: u8) -> Option<Redundancy> {
        let all = [Redundancy::External, Redundancy::Normal, Redundancy::High];
        all.into_iter()
            .find(|one| one.copies() == usize::from(copies))
    }
}

/// A disk, as the group knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskEntry {
    pub(crate) name: String,
    pub(crate) failure_group: String,
    pub(crate) incarnation: u64,
    pub(crate) total_aus: u32,
    pub(crate) slot_aus: u32,
    /// Its copies are good. Once it is offline it stays so, and can only be dropped.
    pub(crate) is_online: bool,
    /// It is to be emptied and then to leave the group.
    pub(crate) is_leaving: bool,
}

/// A file of the group.
#[derive(Clone)]
pub(crate) struct FileEntry {
    pub(crate) name: String,
    pub(crate) map: Arc<ExtentMap>,
}

/// The metadata of a group.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) group_id: [u8; 16],
    pub(crate) group_name: String,
    pub(crate) au_bytes: u64,
    pub(crate) redundancy: Redundancy,
    /// Number of the last change.
    pub(crate) step: u64,
    /// How often the group was mounted.
    pub(crate) epoch: u64,
    /// Identity of the last mount: tells histories of the same length apart.
    pub(crate) mount: u64,
    pub(crate) next_disk: u16,
    pub(crate) next_file: u32,
    pub(crate) disks: BTreeMap<u16, DiskEntry>,
    pub(crate) files: BTreeMap<u32, FileEntry>,
}

/// One change of the metadata.
#[derive(Clone)]
pub(crate) enum Change {
    DiskAdded {
        disk: u16,
        entry: DiskEntry,
    },
    DiskOffline {
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
        to: UnitPlace,
    },
}

impl State {
    /// Carries a change out in memory. `None` when it does not fit the state, which then is damaged.
    pub(crate) fn apply(&mut self, change: &Change) -> Option<()> {
        match change {
            Change::DiskAdded { disk, entry } => {
                self.disks.insert(*disk, entry.clone());
                self.next_disk = self.next_disk.max(disk + 1);
            }
            Change::DiskOffline { disk } => self.disks.get_mut(disk)?.is_online = false,
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

    /// Where things lie on a disk of the group.
    pub(crate) fn layout_of(&self, entry: &DiskEntry) -> DiskLayout {
        DiskLayout {
            au_bytes: self.au_bytes,
            total_aus: entry.total_aus,
            slot_aus: entry.slot_aus,
        }
    }

    /// Disks that new extents may go to.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let takes = |entry: &&DiskEntry| entry.is_online && !entry.is_leaving;
        let disks = self.disks.iter().filter(|(_, entry)| takes(entry));
        let candidate = |(disk, entry): (&u16, &DiskEntry)| Candidate {
            disk: *disk,
            failure_group: entry.failure_group.clone(),
            data_aus: self.layout_of(entry).data_aus(),
        };
        disks.map(candidate).collect()
    }

    /// The allocation table that the extent maps make.
    pub(crate) fn space(&self) -> Result<Space, Misplaced> {
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
                        return Err(Misplaced {
                            extent: number,
                            file: file.name.clone(),
                            disk: place.disk,
                            au: place.au,
                        });
                    }
                }
            }
        }
        Ok(space)
    }
}

/// An extent that lies where no free space is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "extent {extent} of file {file} lies where there is no free space (disk {disk}, allocation unit {au})"
)]
pub(crate) struct Misplaced {
    extent: usize,
    file: String,
    disk: u16,
    au: u32,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::disk_group::extents::striping::{FileExtents, Striping};

    pub(in crate::disk_group) fn disk(name: &str) -> DiskEntry {
        DiskEntry {
            name: name.to_owned(),
            failure_group: format!("of {name}"),
            incarnation: 77,
            total_aus: 100,
            slot_aus: 1,
            is_online: true,
            is_leaving: false,
        }
    }

    pub(in crate::disk_group) fn state() -> State {
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

    pub(in crate::disk_group) fn file(places: &[[UnitPlace; 2]]) -> FileEntry {
        let shape = FileExtents::new(
            places.len() as u64 * (1 << 20),
            Striping::Coarse,
            1,
            1 << 20,
        );
        let places: Vec<Vec<UnitPlace>> = places.iter().map(|places| places.to_vec()).collect();
        FileEntry {
            name: "users01".to_owned(),
            map: Arc::new(ExtentMap::new(shape, 2, &places)),
        }
    }

    pub(in crate::disk_group) fn place(disk: u16, au: u32) -> UnitPlace {
        UnitPlace { disk, au }
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
        let found = state.space().err().unwrap();
        assert_eq!((found.extent, &*found.file), (1, "users01"));
    }
}
