//! A loop device: a file, or a range of it, as a block device. Which one is chosen, and noted, before it is attached, so
//! that a run that dies in between is found out.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{DeviceName, Site, StepError, Undone, Workshop, new_uuid, wait_until};
use crate::spec::size_text;
use crate::system::SystemTree;
use crate::system::block_device::{BlockDeviceNode, LoopBacking};
use crate::tool::argument;

/// Others may take a free loop device before we do; they will not do so for ever.
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

/// A loop device that was attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedLoop {
    device: PathBuf,
    file: PathBuf,
    offset_bytes: u64,
    size_bytes: u64,
}

impl fmt::Display for AttachLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attach {} ", self.file)?;
        if self.device != self.file {
            let (size, offset) = (size_text(self.size_bytes), size_text(self.offset_bytes));
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
        let file = workshop.device(&self.file)?.path.clone();
        for _ in 0..TRIES {
            let device = PathBuf::from(workshop.site.tools.run("losetup", &["--find"])?);
            let attached = AttachedLoop {
                device: device.clone(),
                file: file.clone(),
                offset_bytes: self.offset_bytes,
                size_bytes: self.size_bytes,
            };
            let entry = workshop.note(attached.clone())?;
            let result = self.attach(workshop, &device, &file);
            let backing = backing(&workshop.site.tree, &device);
            if backing
                .as_ref()
                .is_some_and(|backing| attached.is_ours(backing))
            {
                result?;
                if !backing.is_some_and(|backing| backing.direct) {
                    return Err(StepError::NotDirect { device, file });
                }
                let uuid = new_uuid(&workshop.site.tree)?;
                workshop.ready(&self.device, device, uuid);
                return Ok(());
            }
            workshop.ledger.gone(entry)?;
            // Not ours, though it was free a moment ago: somebody was quicker.
            if backing.is_none() {
                result?;
            }
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

fn backing(tree: &SystemTree, device: &Path) -> Option<LoopBacking> {
    BlockDeviceNode::named(tree, device.file_name()?.to_str()?)?.loop_backing()
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
    fn is_ours(&self, backing: &LoopBacking) -> bool {
        // As the kernel writes the name of a file that was removed meanwhile.
        let removed = format!("{} (deleted)", self.file.display());
        let same_file = backing.file == self.file || backing.file.as_os_str() == removed.as_str();
        same_file
            && backing.offset_bytes == self.offset_bytes
            && backing.size_limit_bytes == self.size_bytes
    }

    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        match backing(&site.tree, &self.device) {
            None => return Ok(Undone::WasNot),
            Some(backing) if !self.is_ours(&backing) => {
                let now = format!("it now stands for {}", backing.file.display());
                return Ok(Undone::NotOurs(now));
            }
            Some(_) => {}
        }
        site.tools
            .run("losetup", &["--detach", argument(&self.device)])?;
        let is_gone =
            || !backing(&site.tree, &self.device).is_some_and(|backing| self.is_ours(&backing));
        if wait_until(is_gone) {
            Ok(Undone::Removed)
        } else {
            Err(StepError::Busy {
                path: self.device.clone(),
                by: "it goes by itself when its last user ends".to_owned(),
            })
        }
    }
}
