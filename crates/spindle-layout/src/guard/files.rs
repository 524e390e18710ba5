//! Regular files that are to be written over, as disks of a disk group: looked at as devices are. A file is known by
//! its inode, so that hard links, loop devices and mappings of it count, under whatever name.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::Guard;
use super::GuardSurvey;
use super::content::{DeviceContent, probe};
use super::verdict::{Refusal, Use, cannot_open, when_quiet};
use crate::known_device::KnownDevice;
use spindle_system::StoragePlace;

/// A file or block device, in use or not.
#[derive(Debug)]
pub struct FileUses {
    /// Which it is, whatever its path means later.
    pub device: KnownDevice,
    /// Who uses it, or anything that it comes down to.
    pub uses: Vec<Use>,
    /// What could not be looked at, in words.
    pub unseen: Option<String>,
    /// As long as it is open, no other file has its inode.
    file: File,
}

impl Guard<'_> {
    /// Who uses a file or block device. Reads it, changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Missing`], [`Refusal::NoStorage`], [`Refusal::Unknown`].
    pub fn see(&self, path: &Path) -> Result<FileUses, Refusal> {
        let unknown = |reason: String| Refusal::Unknown {
            path: path.to_owned(),
            reason,
        };
        let (file, storage) = open(path)?;
        let ask = |survey: &GuardSurvey| {
            let mut uses = survey.uses(storage);
            uses.extend(survey.uses_by_overlays(self.tree, storage, path));
            (uses, survey.unseen())
        };
        let (uses, unseen) = GuardSurvey::take(self.tree)
            .and_then(|mut survey| when_quiet(self.tree, &mut survey, ask))
            .map_err(|error| unknown(error.to_string()))?;
        let device = KnownDevice::of(&file, path.to_owned(), path);
        let device = device.map_err(|error| unknown(error.to_string()))?;
        Ok(FileUses {
            device,
            uses,
            unseen,
            file,
        })
    }

    /// Whether a file may be written to: it is not in use, and it holds nothing or `may_hold_data`. Reads it, changes
    /// nothing.
    pub fn look_at_file(&self, path: &Path, may_hold_data: bool) -> Result<FileUses, Refusal> {
        let seen = self.see(path)?;
        if !seen.uses.is_empty() {
            let (path, uses) = (path.to_owned(), seen.uses);
            return Err(Refusal::InUse { path, uses });
        }
        if may_hold_data {
            return Ok(seen);
        }
        let unknown = |reason: String| Refusal::Unknown {
            path: path.to_owned(),
            reason,
        };
        let bytes = seen.file.metadata().map(|metadata| metadata.len());
        let bytes = bytes.map_err(|error| unknown(error.to_string()))?;
        match probe(self.tools, &seen.file, bytes) {
            Ok(DeviceContent::Empty) => Ok(seen),
            Ok(content) => Err(Refusal::NotEmpty {
                path: path.to_owned(),
                content: content.to_string(),
                identities: Vec::new(),
            }),
            Err(error) => Err(unknown(error.to_string())),
        }
    }
}

/// Opens a file or block device. Nothing else is opened: that may have side effects, or wait forever.
fn open(path: &Path) -> Result<(File, StoragePlace), Refusal> {
    let no_storage = || Refusal::NoStorage {
        path: path.to_owned(),
    };
    let missing_or_unknown = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Refusal::Missing {
            path: path.to_owned(),
            reason: error.to_string(),
        },
        _ => cannot_open(path, &error),
    };
    let before = std::fs::metadata(path).map_err(missing_or_unknown)?;
    StoragePlace::of(&before).ok_or_else(no_storage)?;
    let mut options = OpenOptions::new();
    // Opening a path that has just become a pipe must not block.
    let options = options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let file = options.open(path).map_err(missing_or_unknown)?;
    let metadata = file.metadata().map_err(missing_or_unknown)?;
    let storage = StoragePlace::of(&metadata).ok_or_else(no_storage)?;
    Ok((file, storage))
}
