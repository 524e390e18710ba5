//! Disk groups, as Oracle's ASM makes them: files spread and mirrored over disks, without a file system. A file of a
//! group is a `BlockDevice` made of `BlockDevice`s: an I/O looks its place up in memory and goes straight to the disk.
//! The same code runs on real devices and on simulated ones. Layouts and the program make, mount and change groups
//! here; the database sees only the devices of its files.
//!
//! | module | holds |
//! | --- | --- |
//! | `format`, `store`, `snapshot`, `state` | what is on the disks: headers and change maps; snapshots and logs, and their bytes; what they say |
//! | `striping`, `space`, `extent_map` | which extent holds a byte; where extents go; where they lie |
//! | `group_file`, `pieces`, `mirrored_write`, `mend` | the way of an I/O |
//! | `core`, `members`, `change_map` | the group in memory, its disks, and which extents may differ |
//! | `mount`, `creation`, `copying` | making and mounting groups; making files; copying extents |
//! | `membership`, `rebalance`, `plan` | disks that join, leave and return; spreading files evenly again |
//! | `check`, `description` | whether everything is as it should be; a group for people |
//! | `planted` | bugs for the tests to find |

mod change_map;
mod check;
mod copying;
mod core;
mod creation;
mod description;
mod disk_io;
mod encoding;
mod error;
mod extent_map;
mod format;
mod group_file;
mod members;
mod membership;
mod mend;
mod mirrored_write;
mod mount;
mod pieces;
mod plan;
mod planted;
mod rebalance;
mod snapshot;
mod space;
mod state;
mod store;
mod striping;

use std::sync::{Arc, Weak};

pub use check::{CheckReport, Finding};
pub use creation::{FileCreation, Template};
pub use description::{DiskDescription, FileDescription, GroupDescription};
pub use error::DiskGroupError;
pub use format::{
    ALLOCATION_UNIT_BYTES_MAX, ALLOCATION_UNIT_BYTES_MIN, names_in_header, room_bytes,
};
pub use rebalance::{POWER_MAX, Rebalanced};
pub use state::Redundancy;
pub use striping::{STRIPE_BYTES, STRIPE_WIDTH, Striping};

use crate::device::BlockDevice;
use crate::disk_group::core::{Book, Core};
use crate::disk_group::group_file::GroupFile;
use crate::disk_group::state::Change;
use crate::env::Env;

/// A disk that joins a group.
pub struct Disk {
    /// Its name in the group: 1 to 30 letters, digits, `_`, `-`, `.`.
    pub name: String,
    /// Disks that fail together, such as those of one controller; `None`: the disk alone.
    pub failure_group: Option<String>,
    /// The device. What it holds is lost.
    pub device: Arc<dyn BlockDevice>,
}

/// How a group is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// 1, 2, 4, 8, 16, 32 or 64 MiB.
    pub allocation_unit_bytes: u64,
    /// Copies of each extent, unless a file's template says otherwise.
    pub redundancy: Redundancy,
    /// What tells this group from all others; `None`: drawn from the world's chance and time, and the disks.
    pub identity: Option<[u8; 16]>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // As Oracle recommends since 11.2; also: extents have one size from here on.
            allocation_unit_bytes: 4 << 20,
            redundancy: Redundancy::External,
            identity: None,
        }
    }
}

/// How a group is mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Mount although the missing disks may have newer metadata, and leave out disks whose metadata are old. What was
    /// written to the missing disks alone is lost.
    pub force: bool,
    /// The failure group whose copies are read where there is one; `None`: primary copies.
    pub preferred_failure_group: Option<String>,
}

/// A mounted group.
pub struct DiskGroup {
    core: Arc<Core>,
}

impl DiskGroup {
    /// Makes a group of these disks and mounts it; what the disks held is lost. Errors: names, sizes, too few failure
    /// groups, or a disk that cannot be written.
    pub async fn create(
        env: &Arc<dyn Env>,
        name: &str,
        disks: Vec<Disk>,
        options: Options,
    ) -> Result<DiskGroup, DiskGroupError> {
        mount::create(env, name, disks, options).await
    }

    /// Mounts the group whose disks these are, in any order, and repairs what a crash left. Disks may be missing if the
    /// others have every extent and are more than half. Errors: disks that are of no group, of another, given twice,
    /// out of date or missing. That nobody else has mounted the group is for the caller to see to: a `FileDevice` holds
    /// a lock.
    pub async fn mount(
        env: &Arc<dyn Env>,
        devices: &[Arc<dyn BlockDevice>],
    ) -> Result<DiskGroup, DiskGroupError> {
        mount::mount(env, devices, &MountOptions::default()).await
    }

    /// As [`DiskGroup::mount`], with options.
    pub async fn mount_with(
        env: &Arc<dyn Env>,
        devices: &[Arc<dyn BlockDevice>],
        options: &MountOptions,
    ) -> Result<DiskGroup, DiskGroupError> {
        mount::mount(env, devices, options).await
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Reads copies of a failure group where there is one, from now on; `None`: primary copies. Errors: no such failure
    /// group.
    pub fn prefer_failure_group(&self, preferred: Option<&str>) -> Result<(), DiskGroupError> {
        let members = self.core.members.load_full();
        let is_it = |failure_group: &str| preferred == Some(failure_group);
        if let Some(preferred) = preferred
            && !members.all().any(|member| is_it(&member.failure_group))
        {
            return Err(self.core.invalid(format!(
                "no disk that is online is of failure group {preferred}"
            )));
        }
        self.core.change_members(|members| {
            for member in members.clone().all() {
                let mut member = members::Member::clone(member);
                member.is_preferred = is_it(&member.failure_group);
                members.set(member);
            }
        });
        Ok(())
    }

    /// Opens a file; all who open it share one device. Errors: there is no such file.
    pub fn open_file(&self, name: &str) -> Result<Arc<dyn BlockDevice>, DiskGroupError> {
        self.core.check_mounted()?;
        let mut book = self.core.book.lock();
        let (number, file) = self.core.find_file(&book, name)?;
        if let Some(open) = book.open.get(&number).and_then(Weak::upgrade) {
            return Ok(open);
        }
        let file = GroupFile::new(&self.core, name, &file.map);
        book.open.insert(number, Arc::downgrade(&file));
        Ok(file)
    }

    /// Removes a file. Errors: there is none, or somebody has it open.
    pub async fn remove_file(&self, name: &str) -> Result<(), DiskGroupError> {
        let turn = self.core.turn().await?;
        let mut removed = None;
        let decide = |book: &mut Book| {
            let (number, file) = self.core.find_file(book, name)?;
            if book
                .open
                .get(&number)
                .is_some_and(|open| open.strong_count() > 0)
            {
                return Err(DiskGroupError::FileInUse {
                    group: self.core.name.clone(),
                    file: name.to_owned(),
                });
            }
            removed = Some(Arc::clone(&file.map));
            book.open.remove(&number);
            Ok(Change::FileRemoved { file: number })
        };
        self.core.change(&turn, decide).await?;
        let map = removed.expect("decided to remove it");
        let mut book = self.core.book.lock();
        for (extent, places) in map.extents().iter().enumerate() {
            for place in places.places() {
                book.space.free(place, map.shape.aus(extent));
            }
        }
        Ok(())
    }

    /// Lets the disks go. Errors: a file is open, or a flush failed; then the group stays mounted.
    pub async fn dismount(self) -> Result<(), DiskGroupError> {
        {
            let book = self.core.book.lock();
            let open = book.open.iter().find(|(_, file)| file.strong_count() > 0);
            if let Some((number, _)) = open {
                return Err(DiskGroupError::FileInUse {
                    group: self.core.name.clone(),
                    file: book.state.files[number].name.clone(),
                });
            }
        }
        let cleared = {
            let _turn = self.core.marking.acquire().await.expect("never closed");
            self.core.clear_bits(false).await
        };
        self.core.end("it was dismounted");
        cleared
    }
}

impl Core {
    fn find_file<'a>(
        &self,
        book: &'a Book,
        name: &str,
    ) -> Result<(u32, &'a state::FileEntry), DiskGroupError> {
        let found = book.state.files.iter().find(|(_, file)| file.name == name);
        let (number, file) = found.ok_or_else(|| DiskGroupError::NoSuchFile {
            group: self.name.clone(),
            file: name.to_owned(),
            has: book
                .state
                .files
                .values()
                .map(|file| file.name.clone())
                .collect(),
        })?;
        Ok((*number, file))
    }
}

#[cfg(test)]
mod tests;
