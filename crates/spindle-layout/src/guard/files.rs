//! Regular files that are to be written over, as disks of a disk group: looked at as devices are. A file is known by
//! its inode, so that hard links, loop devices and mappings of it count, under whatever name.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::Guard;
use super::Survey;
use super::content::{Content, probe};
use super::verdict::{Refusal, when_quiet};
use crate::known_device::KnownDevice;
use spindle_system::Storage;

/// What was found about a file that may be written over.
#[derive(Debug)]
pub struct LookedFile {
    /// The file, whatever its path means later.
    pub device: KnownDevice,
    /// What could not be looked at, in words.
    pub unseen: Option<String>,
    /// As long as it is open, no other file has its inode.
    _held: File,
}

impl Guard<'_> {
    /// Whether a file may be written over: nobody else uses it, and it holds nothing, or may be `erase`d. Reads it,
    /// changes nothing.
    pub fn look_at_file(&self, path: &Path, erase: bool) -> Result<LookedFile, Refusal> {
        let unknown = |reason: String| Refusal::Unknown {
            path: path.to_owned(),
            reason,
        };
        let file = open(path)?;
        let metadata = file
            .metadata()
            .map_err(|error| unknown(error.to_string()))?;
        let storage = Storage::of(&metadata)
            .ok_or_else(|| unknown("it is neither a file nor a block device".to_owned()))?;
        let ask = |survey: &Survey| {
            let mut uses = survey.uses(storage);
            uses.extend(survey.uses_by_overlays(self.tree, storage, path));
            (uses, survey.unseen())
        };
        let (uses, unseen) = Survey::take(self.tree)
            .and_then(|mut survey| when_quiet(self.tree, &mut survey, ask))
            .map_err(|error| unknown(error.to_string()))?;
        if !uses.is_empty() {
            let path = path.to_owned();
            return Err(Refusal::InUse { path, uses });
        }
        if !erase {
            match probe(self.tools, &file, metadata.len()) {
                Ok(Content::Empty) => {}
                Ok(content) => {
                    return Err(Refusal::NotEmpty {
                        path: path.to_owned(),
                        content: content.to_string(),
                        identities: Vec::new(),
                    });
                }
                Err(error) => return Err(unknown(error.to_string())),
            }
        }
        let device = KnownDevice::of(&file, path.to_owned(), path);
        let device = device.map_err(|error| unknown(error.to_string()))?;
        Ok(LookedFile {
            device,
            unseen,
            _held: file,
        })
    }
}

fn open(path: &Path) -> Result<File, Refusal> {
    let mut options = OpenOptions::new();
    // A pipe makes nobody wait.
    let options = options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Refusal::Missing {
            path: path.to_owned(),
            reason: error.to_string(),
        },
        _ => Refusal::Unknown {
            path: path.to_owned(),
            reason: format!("it cannot be opened: {error}"),
        },
    })
}
