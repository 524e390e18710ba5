//! Mounting what was made, and unmounting it: only that which the run has mounted there.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::error::{DeviceName, StepError};
use super::make_file_system::options_stay_here;
use super::site::{Site, Undone, wait_until};
use super::workshop::Workshop;
use crate::guard::Appearance;
use crate::record::Mounted;
use crate::spec::FileSystemSpec;
use crate::tool::argument;
use spindle_system::mounts::{Mount, mounts};
use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

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
        let device = workshop.path_for("mount", &self.device)?;
        let held = Arc::clone(workshop.device(&self.device)?.held()?);
        let mounted = self.mounted(&workshop.site.tree, held.called(), held.appearance());
        workshop.note(mounted.clone())?;
        self.mount(workshop.site, &device)?;
        let there = mounted.topmost(&workshop.site.tree)?;
        if there.is_some_and(|mount| mounted.is_ours(&workshop.site.tree, &mount)) {
            return Ok(());
        }
        // Only just mounted by ourselves.
        let _ = unmount(&self.at, UnmountFlags::NOFOLLOW);
        let what = "mounting it led to another device".to_owned();
        Err(held.changed(what).into())
    }

    /// The mount of a device here, there or not.
    fn mounted(&self, tree: &SystemTree, called: &Path, appearance: Appearance) -> Mounted {
        let name = BlockDeviceNode::of(tree, appearance.number).map(|node| node.name);
        // A thin volume that was put back has its number, but is another device.
        let is_mapped = name.is_some_and(|name| name.starts_with("dm-"));
        Mounted {
            at: self.at.clone(),
            device: called.to_owned(),
            number: appearance.number,
            sequence: appearance.sequence.filter(|_| !is_mapped),
        }
    }

    pub(super) fn mount(&self, site: &Site, device: &Path) -> Result<(), StepError> {
        options_stay_here(&self.spec)?;
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
        let (number, sequence) = (number_of(device)?, None);
        let appearance = Appearance { number, sequence };
        match self.mounted(&site.tree, device, appearance).undo(site)? {
            Undone::Removed | Undone::RemovedBut(_) | Undone::WasNot => Ok(()),
            Undone::NotOurs(by) => Err(StepError::Busy {
                path: self.at.clone(),
                by,
            }),
        }
    }
}

/// The number that a node has.
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
        Ok(mounts(tree)?
            .into_iter()
            .rfind(|mount| mount.mount_point == self.at))
    }

    /// btrfs shows no number of a device, only what was mounted.
    fn is_ours(&self, tree: &SystemTree, mount: &Mount) -> bool {
        let has_number = mount.device == self.number
            || mount.device.is_anonymous()
                && tree.kernel_name(&mount.source)
                    == BlockDeviceNode::of(tree, self.number).map(|node| node.name);
        let now = || Appearance::now(tree, self.number)?.sequence;
        has_number && (self.sequence.is_none() || self.sequence == now())
    }
}
