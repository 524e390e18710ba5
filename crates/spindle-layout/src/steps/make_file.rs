//! A file that stands in for a device. It is made without a name, and gets its name only when the ledger knows its
//! inode and its birth. So no other file is taken for it, however the run ends.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rustix::fs::{AtFlags, CWD, FallocateFlags, OFlags};
use rustix::io::Errno;
use spindle_text::quantity::size;

use super::error::{DeviceName, StepError};
use super::site::{Site, Undone};
use super::workshop::{Workshop, new_uuid};
use crate::record::MadeFile;

/// Makes a file of a given size, its space allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeFile {
    /// Its name among the devices.
    pub device: DeviceName,
    /// Where.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
}

impl fmt::Display for MakeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "make the file {} of {}",
            self.path.display(),
            size(self.size_bytes)
        )
    }
}

impl MakeFile {
    pub(super) fn written_bytes(&self) -> u64 {
        0
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let name = self.path.file_name().unwrap_or_default();
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        // As the kernel will call it; loop devices are known by that.
        let path = parent
            .canonicalize()
            .map_err(|error| StepError::system("find", parent, error))?
            .join(name);
        if path.symlink_metadata().is_ok() {
            return Err(StepError::FileExists { path });
        }
        let file = self.without_name(parent)?;
        let metadata = file
            .metadata()
            .map_err(|error| StepError::system("examine", &path, error))?;
        workshop.note(MadeFile {
            path: path.clone(),
            file_system: metadata.dev(),
            inode: metadata.ino(),
            born_ns: born_ns(&metadata),
            size_bytes: Some(self.size_bytes),
        })?;
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        match rustix::fs::linkat(CWD, unnamed, CWD, &path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(StepError::FileExists { path }),
            Err(error) => return Err(StepError::system("make", &path, error)),
        }
        let uuid = new_uuid(&workshop.site.tree)?;
        workshop.ready_file(&self.device, path, Arc::new(file), uuid);
        Ok(())
    }

    fn without_name(&self, directory: &Path) -> Result<File, StepError> {
        let wrong = |error: std::io::Error| match Errno::from_io_error(&error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => StepError::NoSpace {
                path: directory.to_owned(),
                needed_bytes: self.size_bytes,
            },
            _ => StepError::system("make an allocated file in", directory, error),
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(OFlags::TMPFILE.bits() as i32)
            .open(directory)
            .map_err(wrong)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.size_bytes)
            .map_err(|error| wrong(error.into()))?;
        file.sync_all().map_err(wrong)?;
        Ok(file)
    }
}

impl fmt::Display for MadeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file {}", self.path.display())
    }
}

/// When a file was made, where its file system knows (`stx_btime` of statx(2)).
fn born_ns(metadata: &Metadata) -> Option<u64> {
    let since = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

impl MadeFile {
    /// Whether this is the file, and not another one that was given its inode. Where its birth is not known, its size
    /// must do.
    fn is(&self, found: &Metadata) -> bool {
        let same_inode = (found.dev(), found.ino()) == (self.file_system, self.inode);
        let is_old = match self.born_ns {
            Some(born) => born_ns(found) == Some(born),
            None => self.size_bytes.is_none_or(|bytes| found.len() == bytes),
        };
        same_inode && found.is_file() && is_old
    }

    pub(super) fn undo(&self, _: &Site) -> Result<Undone, StepError> {
        let metadata = match self.path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Undone::WasNot);
            }
            Err(error) => return Err(StepError::system("examine", &self.path, error)),
        };
        if !self.is(&metadata) {
            return Ok(Undone::NotOurs(
                "it is another file of that name".to_owned(),
            ));
        }
        std::fs::remove_file(&self.path)
            .map_err(|error| StepError::system("remove", &self.path, error))?;
        Ok(Undone::Removed)
    }
}
