//! What can go wrong with files before any I/O is asked for: opening, identifying, creating, examining them.

use std::io;
use std::path::{Path, PathBuf};

use spindle_text::quantity::size_needed;

use super::storage_identity::StorageIdentity;

/// Why a file cannot be opened, made, removed or examined. I/O on an open device fails with `IoError`.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file stands where a new one was to be made.
    #[error("{} exists already and is never overwritten: remove it or choose another place", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// Another process (or another owner in this one) has the file open.
    #[error("{} is in use: a running instance has it open; stop that first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// What was found is not what was looked at.
    #[error("{} changed since it was checked: it was {noted}, and is now {found}; nothing was written to it", path.display())]
    Other {
        /// By which people know it.
        path: PathBuf,
        /// What was looked at.
        noted: StorageIdentity,
        /// What it is now.
        found: StorageIdentity,
    },
    /// A block device that was not examined.
    #[error("{} is a block device that was not examined before it was opened: nothing was written to it", path.display())]
    NotLookedAt {
        /// The device.
        path: PathBuf,
    },
    /// The file system does not open this file for direct I/O.
    #[error("{} cannot be opened for direct I/O: its file system ({file_system}) refuses O_DIRECT; use buffered I/O or \
             another file system", path.display())]
    DirectRefused {
        /// The file or directory.
        path: PathBuf,
        /// Name of the file system's type.
        file_system: String,
    },
    /// There is not enough space.
    #[error("no space for {} ({}): free some or choose another place", path.display(), size_needed(*needed_bytes))]
    NoSpace {
        /// The file that was to be made.
        path: PathBuf,
        /// Its size.
        needed_bytes: u64,
    },
    /// A part of a device that the device has not, or that its sectors cut through.
    #[error("{} has no region of {bytes} bytes at byte {first_byte}: it has {capacity_bytes} bytes, and a region begins and \
             ends at a multiple of {alignment_bytes}", path.display())]
    BadRegion {
        /// The device.
        path: PathBuf,
        /// Where the region was to begin.
        first_byte: u64,
        /// How long it was to be.
        bytes: u64,
        /// Size of the device.
        capacity_bytes: u64,
        /// Where regions may begin and end.
        alignment_bytes: u64,
    },
    /// Anything else the system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// What was tried, an English verb: `open`, `lock`, ...
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl FileError {
    /// The same of a file that people know by another path than that it was opened by.
    #[must_use]
    pub fn of(mut self, called: &Path) -> FileError {
        match &mut self {
            FileError::AlreadyExists { path }
            | FileError::InUse { path }
            | FileError::Other { path, .. }
            | FileError::NotLookedAt { path }
            | FileError::DirectRefused { path, .. }
            | FileError::NoSpace { path, .. }
            | FileError::BadRegion { path, .. }
            | FileError::System { path, .. } => called.clone_into(path),
        }
        self
    }

    /// Wraps the system's answer to `action` on `path`.
    pub(super) fn system(
        action: &'static str,
        path: &Path,
        source: impl Into<io::Error>,
    ) -> FileError {
        FileError::System {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}
