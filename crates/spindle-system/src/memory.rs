//! The memory budget: a control group that holds buffer cache and page cache together to one limit, so that no case of
//! an experiment gets more memory than another. A page is charged to the group of the process that first touches it,
//! so the files' pages must be dropped from the page cache after a process joins and before it reads.
//!
//! Groups are removed when dropped, once their processes are gone; see [`super::own_group`].
//! Sources: Linux Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cgroup::CgroupVersion;
use super::own_group::{self, Controller, GroupsUnavailable, Refused};
use super::{SystemTree, keyed_number, text};

/// A step on a memory group that the system refused.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// A file or directory of the group could not be read or written.
    #[error("memory group: cannot {action} {}: {source}", .path.display())]
    Refused {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The group already uses more than the limit and the kernel could not reclaim the rest.
    #[error(
        "memory group {}: {usage_bytes} bytes are in use, so it cannot be limited to {limit_bytes}: raise the limit, \
         or set it before the process allocates",
        .path.display()
    )]
    InUse {
        /// The group.
        path: PathBuf,
        /// The limit asked for.
        limit_bytes: u64,
        /// What was in use.
        usage_bytes: u64,
    },
    /// Processes still run in the group.
    #[error("memory group {} still holds processes {processes}: end them first", .path.display())]
    StillHolds {
        /// The group.
        path: PathBuf,
        /// Their ids.
        processes: String,
    },
}

/// Where groups with a memory limit can be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBudget {
    /// The interface.
    pub version: CgroupVersion,
    /// The group in which ours are made: our own where possible; in version 2, where a group with processes cannot
    /// hand the controller down, the nearest above that does.
    pub parent: PathBuf,
}

impl MemoryBudget {
    /// Finds the place for our groups, without changing anything.
    pub fn available(files: &SystemTree) -> Result<MemoryBudget, GroupsUnavailable> {
        let (version, parent) = own_group::parent_of_ours(files, Controller::Memory)?;
        Ok(MemoryBudget { version, parent })
    }

    /// Makes a new, empty group without a limit.
    pub fn create_group(&self) -> Result<MemoryGroup, MemoryError> {
        if self.version == CgroupVersion::V2 {
            own_group::hand_down(&self.parent, "memory")?;
        }
        Ok(MemoryGroup {
            version: self.version,
            path: own_group::create_in(&self.parent)?,
            removed: false,
        })
    }
}

/// What a group holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUsage {
    /// Everything charged, kernel memory included.
    pub total_bytes: u64,
    /// Memory of programs that belongs to no file.
    pub anonymous_bytes: u64,
    /// Shared memory and tmpfs, which the kernel files under page cache.
    pub shared_bytes: u64,
    /// Page cache of files, without `shared_bytes`.
    pub file_bytes: u64,
    /// Of `file_bytes`, what is yet to be written.
    pub dirty_bytes: u64,
    /// Processes the kernel killed because the limit left no other way; `None` when it does not count them.
    pub out_of_memory_kills: Option<u64>,
}

/// A control group of ours; removed when dropped.
#[derive(Debug)]
pub struct MemoryGroup {
    version: CgroupVersion,
    path: PathBuf,
    removed: bool,
}

impl MemoryGroup {
    /// The interface it was made through.
    pub fn version(&self) -> CgroupVersion {
        self.version
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves a process, with all its threads, into the group. What it has touched before stays charged where it was.
    pub fn add_process(&self, process_id: u32) -> Result<(), MemoryError> {
        write(&self.path.join("cgroup.procs"), &process_id.to_string())
    }

    /// Limits the group, page cache included. The kernel reclaims page cache down to the limit; if a program's own
    /// memory exceeds it, version 1 refuses and version 2 kills, so set it before the process allocates.
    pub fn set_limit(&self, limit_bytes: u64) -> Result<(), MemoryError> {
        write(&self.limit_file(), &limit_bytes.to_string()).map_err(|error| match error {
            MemoryError::Refused { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
                MemoryError::InUse {
                    path: self.path.clone(),
                    limit_bytes,
                    usage_bytes: self.usage().map_or(0, |usage| usage.total_bytes),
                }
            }
            other => other,
        })
    }

    /// Takes the limit away.
    ///
    /// # Errors
    /// The system refuses.
    pub fn lift_limit(&self) -> Result<(), MemoryError> {
        let none = match self.version {
            CgroupVersion::V1 => "-1",
            CgroupVersion::V2 => "max",
        };
        write(&self.limit_file(), none)
    }

    /// Keeps the limit from pushing the group's memory to swap: `memory.swap.max` of 0, or in version 1 a swappiness
    /// of 0, which there "really prevents from any swapping" (cgroup-v1/memory.rst, 5.3).
    pub fn forbid_swap(&self) -> Result<(), MemoryError> {
        let file = match self.version {
            CgroupVersion::V1 => "memory.swappiness",
            CgroupVersion::V2 => "memory.swap.max",
        };
        write(&self.path.join(file), "0")
    }

    /// What the group holds now. The kernel's figures may lag by some hundred KiB per processor.
    pub fn usage(&self) -> Result<MemoryUsage, MemoryError> {
        let read = |name: &str| {
            let path = self.path.join(name);
            fs::read_to_string(&path).map_err(|error| refused("read", &path, error))
        };
        let (total, stat) = match self.version {
            CgroupVersion::V1 => (read("memory.usage_in_bytes")?, read("memory.stat")?),
            CgroupVersion::V2 => (read("memory.current")?, read("memory.stat")?),
        };
        let (anonymous, cache, dirty, kills) = match self.version {
            CgroupVersion::V1 => (
                "total_rss",
                "total_cache",
                "total_dirty",
                "memory.oom_control",
            ),
            CgroupVersion::V2 => ("anon", "file", "file_dirty", "memory.events"),
        };
        let shared = match self.version {
            CgroupVersion::V1 => "total_shmem",
            CgroupVersion::V2 => "shmem",
        };
        let figure = |key| keyed_number(&stat, key).unwrap_or(0);
        Ok(MemoryUsage {
            total_bytes: total.trim().parse().unwrap_or(0),
            anonymous_bytes: figure(anonymous),
            shared_bytes: figure(shared),
            file_bytes: figure(cache).saturating_sub(figure(shared)),
            dirty_bytes: figure(dirty),
            out_of_memory_kills: read(kills)
                .ok()
                .and_then(|events| keyed_number(&events, "oom_kill")),
        })
    }

    /// Removes the group. Its processes must have ended; those that are just ending are waited for, half
    /// a second at most.
    pub fn remove(mut self) -> Result<(), MemoryError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), MemoryError> {
        self.removed = true;
        own_group::patiently(|| self.try_removal())
    }

    fn try_removal(&self) -> Result<(), MemoryError> {
        if let Some(processes) = text(&self.path.join("cgroup.procs")) {
            return Err(MemoryError::StillHolds {
                path: self.path.clone(),
                processes: processes.split_whitespace().collect::<Vec<_>>().join(", "),
            });
        }
        // Page cache charged to a removed group stays charged to its ghost, and a later group would read it for free. A
        // limit of nothing makes the kernel drop it; where some pages are held by others, removal continues regardless.
        let _ = write(&self.limit_file(), "0");
        fs::remove_dir(&self.path).map_err(|error| refused("remove", &self.path, error))
    }

    fn limit_file(&self) -> PathBuf {
        self.path.join(match self.version {
            CgroupVersion::V1 => "memory.limit_in_bytes",
            CgroupVersion::V2 => "memory.max",
        })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        if !self.removed {
            // A group that cannot go now is found by `remove_leftovers` when its process has ended.
            let _ = self.take_away();
        }
    }
}

fn write(path: &Path, value: &str) -> Result<(), MemoryError> {
    Ok(own_group::write(path, value)?)
}

fn refused(action: &'static str, path: &Path, source: io::Error) -> MemoryError {
    Refused::new(action, path, source).into()
}

impl From<Refused> for MemoryError {
    fn from(refused: Refused) -> MemoryError {
        MemoryError::Refused {
            action: refused.action,
            path: refused.path,
            source: refused.source,
        }
    }
}

#[cfg(test)]
mod tests;
