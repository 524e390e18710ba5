//! A loop device: a file, or a range of it, as a block device. Which one is chosen, and noted, before it is attached,
//! so that a run that dies in between is found out.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{DeviceName, StepError};
use super::site::{Site, Undone, wait_until};
use super::workshop::{ReadyDevice, Workshop, new_uuid};
use crate::guard::HeldDevice;
use crate::record::{AttachedLoop, Inode};
use crate::tool::argument;
use spindle_system::node::{BlockDeviceNode, LoopBacking};
use spindle_system::{DeviceNumber, SystemTree};
use spindle_text::quantity::size;

/// Others may take a free loop device before we do, but not every time.
const TRIES: u32 = 16;

/// Attaches a range of a file to a loop device, past the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachLoop {
    /// The file's name among the devices.
    pub file: DeviceName,
    /// The loop device's.
    pub device: DeviceName,
    /// Where the range begins.
    pub offset_bytes: u64,
    /// Its length.
    pub size_bytes: u64,
}

impl fmt::Display for AttachLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attach {} ", self.file)?;
        if self.device != self.file {
            let (size, offset) = (size(self.size_bytes), size(self.offset_bytes));
            write!(f, "({size} at {offset}) ")?;
        }
        write!(f, "to a loop device, with direct I/O")
    }
}

impl AttachLoop {
    pub(super) fn written_bytes(&self) -> u64 {
        0
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let ready = workshop.device(&self.file)?.clone();
        let inode = inode_of(&ready)?;
        let file = ready.path;
        for _ in 0..TRIES {
            let device = PathBuf::from(workshop.site.tools.run("losetup", &["--find"])?);
            let attached = AttachedLoop {
                device: device.clone(),
                file: file.clone(),
                offset_bytes: self.offset_bytes,
                size_bytes: self.size_bytes,
                inode: Some(inode),
            };
            let entry = workshop.note(attached.clone())?;
            let result = self.attach(workshop, &device, &file);
            let Some(held) = hold(&workshop.site.tree, &device)? else {
                if result.is_ok() {
                    // It is attached, and what cannot be seen cannot be known again.
                    let arguments = ["--detach", argument(&device)];
                    workshop.site.tools.run("losetup", &arguments)?;
                    workshop.ledger.gone(entry)?;
                    return Err(StepError::Unseen { device });
                }
                workshop.ledger.gone(entry)?;
                result?;
                continue;
            };
            let backing = backing(&workshop.site.tree, &device);
            match &backing {
                Some(backing) if attached.names(backing) => {}
                other => {
                    workshop.ledger.gone(entry)?;
                    // Not ours, though it was free a moment ago: another process was faster.
                    if other.is_none() {
                        result?;
                    }
                    continue;
                }
            }
            result?;
            if inode_behind(workshop.site, &held)? != Some(inode) {
                detach(workshop.site, held)?;
                return Err(StepError::OtherFile { file });
            }
            if !backing.is_some_and(|backing| backing.direct) {
                return Err(StepError::NotDirect { device, file });
            }
            let uuid = new_uuid(&workshop.site.tree)?;
            return workshop.ready(&self.device, Arc::new(held), uuid);
        }
        Err(StepError::NoLoopDevice(TRIES))
    }

    fn attach(&self, workshop: &Workshop<'_>, device: &Path, file: &Path) -> Result<(), StepError> {
        let (offset, size) = (self.offset_bytes.to_string(), self.size_bytes.to_string());
        let arguments = [
            "--direct-io=on",
            "--offset",
            &offset,
            "--sizelimit",
            &size,
            argument(device),
            argument(file),
        ];
        workshop.site.tools.run("losetup", &arguments)?;
        Ok(())
    }
}

fn node(tree: &SystemTree, device: &Path) -> Option<BlockDeviceNode> {
    BlockDeviceNode::named(tree, device.file_name()?.to_str()?)
}

fn backing(tree: &SystemTree, device: &Path) -> Option<LoopBacking> {
    node(tree, device)?.loop_backing()
}

/// The loop device of this name, which no other file can be attached to as long as it is held; `None` when there is
/// none.
fn hold(tree: &SystemTree, device: &Path) -> Result<Option<HeldDevice>, StepError> {
    let Some(node) = node(tree, device) else {
        return Ok(None);
    };
    Ok(Some(HeldDevice::of_number(tree, node.number, device)?))
}

fn inode_of(ready: &ReadyDevice) -> Result<Inode, StepError> {
    let metadata = match &ready.file {
        Some(file) => file.metadata(),
        None => ready.path.metadata(),
    };
    let metadata = metadata.map_err(|error| StepError::system("examine", &ready.path, error))?;
    Ok(Inode {
        file_system: DeviceNumber::of_stat(metadata.dev()),
        number: metadata.ino(),
    })
}

/// Which file a loop device stands for, as the kernel tells losetup(8); `None` when that is not to be understood.
fn inode_behind(site: &Site, held: &HeldDevice) -> Result<Option<Inode>, StepError> {
    let path = held.kernel_path(&site.tree)?;
    let columns = [
        "--list",
        "--noheadings",
        "--output",
        "BACK-INO,BACK-MAJ:MIN",
        argument(&path),
    ];
    let said = site.tools.run("losetup", &columns)?;
    let mut words = said.split_whitespace();
    let mut inode = || {
        Some(Inode {
            number: words.next()?.parse().ok()?,
            file_system: words.next()?.parse().ok()?,
        })
    };
    Ok(inode())
}

/// Detaches a loop device. The kernel does it when the last that has it open lets it go: ourselves, as a rule.
fn detach(site: &Site, held: HeldDevice) -> Result<(), StepError> {
    let path = held.kernel_path(&site.tree)?;
    site.tools.run("losetup", &["--detach", argument(&path)])?;
    drop(held);
    Ok(())
}

impl fmt::Display for AttachedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the loop device {} on {}",
            self.device.display(),
            self.file.display()
        )
    }
}

impl AttachedLoop {
    /// Whether a loop device stands for a file of this name, and the same part of it.
    fn names(&self, backing: &LoopBacking) -> bool {
        // As the kernel writes the name of a file that was removed meanwhile.
        let removed = format!("{} (deleted)", self.file.display());
        let same_file = backing.file == self.file || backing.file.as_os_str() == removed.as_str();
        same_file
            && backing.offset_bytes == self.offset_bytes
            && backing.size_limit_bytes == self.size_bytes
    }

    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        let now = || backing(&site.tree, &self.device);
        let is_named = || now().is_some_and(|backing| self.names(&backing));
        // Looked at before it is opened, for others may wait for it to go; and again when it is held.
        let held = match is_named() {
            true => hold(&site.tree, &self.device)?,
            false => None,
        };
        let is_ours = match &held {
            Some(held) if is_named() => {
                self.inode.is_none() || inode_behind(site, held)? == self.inode
            }
            _ => false,
        };
        match (held, now()) {
            (_, None) => return Ok(Undone::WasNot),
            (Some(held), Some(_)) if is_ours => detach(site, held)?,
            (_, Some(backing)) => {
                let now = format!("it now stands for {}", backing.file.display());
                return Ok(Undone::NotOurs(now));
            }
        }
        if wait_until(|| !is_named()) {
            Ok(Undone::Removed)
        } else {
            Err(StepError::Busy {
                path: self.device.clone(),
                by: "it goes by itself when its last user ends".to_owned(),
            })
        }
    }
}
