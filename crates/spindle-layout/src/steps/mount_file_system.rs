//! Mounting what was made, and unmounting it: only that which the run has mounted there.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use super::{DeviceName, Site, StepError, Undone, Workshop, wait_until};
use crate::spec::FileSystemSpec;
use crate::system::mounts::{Mount, mounts};
use crate::system::{DeviceNumber, SystemTree};
use crate::tool::argument;

/// Mounts a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountFileSystem {
    /// The device, or the first of them.
    pub device: DeviceName,
    /// Where.
    pub at: PathBuf,
    /// Type and options.
    pub spec: FileSystemSpec,
}

/// A file system that was mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    at: PathBuf,
    device: PathBuf,
    number: DeviceNumber,
}

impl fmt::Display for MountFileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount it on {}", self.at.display())?;
        if self.spec.mount_options.is_empty() {
            return Ok(());
        }
        write!(f, " with {}", self.spec.mount_options)
    }
}

impl MountFileSystem {
    pub(super) fn written_bytes(&self) -> u64 {
        0
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let device = workshop.device(&self.device)?.path.clone();
        workshop.note(self.mounted(&device)?)?;
        self.mount(workshop.site, &device)
    }

    /// The mount of a device here, there or not.
    fn mounted(&self, device: &Path) -> Result<Mounted, StepError> {
        Ok(Mounted {
            at: self.at.clone(),
            device: device.to_owned(),
            number: number_of(device)?,
        })
    }

    pub(super) fn mount(&self, site: &Site, device: &Path) -> Result<(), StepError> {
        let mut arguments = vec!["-t", &self.spec.type_name];
        if !self.spec.mount_options.is_empty() {
            arguments.extend(["-o", &self.spec.mount_options]);
        }
        arguments.extend([argument(device), argument(&self.at)]);
        site.tools.run("mount", &arguments)?;
        Ok(())
    }

    /// Takes the mount of a device away for a while; it stays in the ledger.
    pub(super) fn unmount(&self, site: &Site, device: &Path) -> Result<(), StepError> {
        match self.mounted(device)?.undo(site)? {
            Undone::Removed | Undone::WasNot => Ok(()),
            Undone::NotOurs(by) => Err(StepError::Busy {
                path: self.at.clone(),
                by,
            }),
        }
    }
}

/// The number of the device that has this path now.
pub(super) fn number_of(device: &Path) -> Result<DeviceNumber, StepError> {
    let metadata =
        std::fs::metadata(device).map_err(|error| StepError::system("examine", device, error))?;
    Ok(DeviceNumber::of_stat(metadata.rdev()))
}

impl fmt::Display for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the mount of {} on {}",
            self.device.display(),
            self.at.display()
        )
    }
}

impl Mounted {
    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        let Some(mount) = self.topmost(&site.tree)? else {
            return Ok(Undone::WasNot);
        };
        if !self.is_ours(&site.tree, &mount) {
            return Ok(Undone::NotOurs(format!(
                "{} is mounted there now",
                mount.source.display()
            )));
        }
        let mut answer = Ok(());
        wait_until(|| {
            answer = unmount(&self.at, UnmountFlags::NOFOLLOW);
            answer != Err(Errno::BUSY)
        });
        match answer {
            Ok(()) => Ok(Undone::Removed),
            Err(Errno::BUSY) => Err(StepError::Busy {
                path: self.at.clone(),
                by: "a process has a file open there, or stands in it".to_owned(),
            }),
            Err(error) => Err(StepError::system("unmount", &self.at, error)),
        }
    }

    /// What is mounted there, last of all.
    fn topmost(&self, tree: &SystemTree) -> Result<Option<Mount>, StepError> {
        let table = mounts(tree)
            .map_err(|error| StepError::system("read", &tree.proc, std::io::Error::other(error)))?;
        Ok(table
            .into_iter()
            .rfind(|mount| mount.mount_point == self.at))
    }

    /// btrfs shows no number of a device, only what was mounted.
    fn is_ours(&self, tree: &SystemTree, mount: &Mount) -> bool {
        mount.device == self.number
            || mount.device.is_anonymous()
                && tree.kernel_name(&mount.source) == tree.kernel_name(&self.device)
    }
}
