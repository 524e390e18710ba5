//! A group as plain data, for messages and reports.

use crate::disk_group::DiskGroup;
use crate::disk_group::disk::format::id_words;
use crate::disk_group::extents::striping::Striping;
use crate::disk_group::metadata::state::Redundancy;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name.
    pub name: String,
    /// Its identity, 32 hexadecimal digits.
    pub id: String,
    /// Bytes of an allocation unit.
    pub allocation_unit_bytes: u64,
    /// Copies of each extent, unless a file has its own.
    pub redundancy: Redundancy,
    /// Its disks, by number.
    pub disks: Vec<DiskDescription>,
    /// Its files, in the order of their creation.
    pub files: Vec<FileDescription>,
}

/// A disk of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskDescription {
    /// Its number in the group.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// Its failure group.
    pub failure_group: String,
    /// The device it is attached by, if it is.
    pub device: Option<String>,
    /// `online`, `offline`, `leaving` or `leaving, offline`.
    pub state: &'static str,
    /// Bytes of the whole disk.
    pub capacity_bytes: u64,
    /// Bytes in extents.
    pub used_bytes: u64,
    /// Bytes free for extents.
    pub free_bytes: u64,
}

/// A file of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDescription {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// How it is striped.
    pub striping: Striping,
    /// Copies of each extent.
    pub redundancy: Redundancy,
    /// Extents, each counted once.
    pub extents: usize,
    /// Allocation units on each disk, all copies, by number of the disk.
    pub allocation_units: Vec<(u16, u64)>,
}

impl DiskGroup {
    /// What the group is made of, and what is in it.
    pub fn describe(&self) -> GroupDescription {
        let members = self.core.members.load_full();
        let book = self.core.book.lock();
        let state = &book.state;
        let disks = state.disks.iter().map(|(number, entry)| {
            let member = members.get(*number);
            let space = &book.space.disks[number];
            let words = match (entry.is_leaving, member) {
                (true, None) => "leaving, offline",
                (true, Some(_)) => "leaving",
                (false, Some(_)) => "online",
                (false, None) => "offline",
            };
            DiskDescription {
                number: *number,
                name: entry.name.clone(),
                failure_group: entry.failure_group.clone(),
                device: member.map(|member| member.device.name().to_owned()),
                state: words,
                capacity_bytes: u64::from(entry.total_aus) * state.au_bytes,
                used_bytes: u64::from(space.used_aus()) * state.au_bytes,
                free_bytes: u64::from(space.free_aus()) * state.au_bytes,
            }
        });
        let files = state.files.values().map(|file| {
            let map = &file.map;
            let mut units: std::collections::BTreeMap<u16, u64> = std::collections::BTreeMap::new();
            for (number, extent) in map.extents().iter().enumerate() {
                for place in extent.places() {
                    *units.entry(place.disk).or_default() += u64::from(map.shape.aus(number));
                }
            }
            FileDescription {
                name: file.name.clone(),
                bytes: map.shape.bytes,
                striping: map.shape.striping,
                redundancy: Redundancy::of_copies(map.copies() as u8).expect("1 to 3 copies"),
                extents: map.extents().len(),
                allocation_units: units.into_iter().collect(),
            }
        });
        GroupDescription {
            name: state.group_name.clone(),
            id: id_words(&state.group_id),
            allocation_unit_bytes: state.au_bytes,
            redundancy: state.redundancy,
            disks: disks.collect(),
            files: files.collect(),
        }
    }
}
