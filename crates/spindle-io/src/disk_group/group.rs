//! A mounted group as others have it, and what is said when it is made or mounted. What it can do stands beside how
//! that is done: `mount`, `file`, `maintenance`, `description`.

use std::sync::Arc;

use crate::device::BlockDevice;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::metadata::state::Redundancy;
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Member;

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
pub struct DiskGroupOptions {
    /// 1, 2, 4, 8, 16, 32 or 64 MiB.
    pub allocation_unit_bytes: u64,
    /// Copies of each extent, unless a file's template says otherwise.
    pub redundancy: Redundancy,
    /// What tells this group from all others; `None`: drawn from the world's chance and time, and the disks.
    pub identity: Option<[u8; 16]>,
}

impl Default for DiskGroupOptions {
    fn default() -> DiskGroupOptions {
        DiskGroupOptions {
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
    pub(crate) core: Arc<Core>,
}

impl DiskGroup {
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
                let mut member = Member::clone(member);
                member.is_preferred = is_it(&member.failure_group);
                members.set(member);
            }
        });
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
