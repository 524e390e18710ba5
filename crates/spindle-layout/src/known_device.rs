//! A device of a run: the path that leads to it, and which one must be found there. Every process (the run, the worker
//! of a trial, a database there) opens devices here, and is told when another one is found. Places, raw devices and
//! disk groups hold nothing else, so that no code has a bare path to open by mistake, and `spindle-io` opens no block
//! device that was not examined.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use spindle_io::real::{
    Caching, FileDevice, FileError, Identified, Queue, StorageIdentity, identify_this,
};
use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

use crate::error::LayoutError;

/// Which device has a number, out of all that have had it since the system started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Appearance {
    /// The number.
    pub number: DeviceNumber,
    /// See [`BlockDeviceNode::sequence`]; `None` on kernels before 5.15.
    pub sequence: Option<u64>,
}

impl Appearance {
    /// The device that has this number now; `None` when the kernel shows none.
    pub fn now(tree: &SystemTree, number: DeviceNumber) -> Option<Appearance> {
        let sequence = BlockDeviceNode::of(tree, number)?.sequence();
        Some(Appearance { number, sequence })
    }

    /// What the device was, and what it is now.
    pub(crate) fn differs_from(self, now: Appearance) -> String {
        let text = |of: Appearance| match of.sequence {
            Some(sequence) => format!("device {} (diskseq {sequence})", of.number),
            None => format!("device {}", of.number),
        };
        format!("it was {} and is {}", text(self), text(now))
    }
}

/// A block device, or a plain file that stands in for one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KnownDevice {
    path: PathBuf,
    called: PathBuf,
    which: Which,
}

/// Which one must be found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Which {
    /// A block device; by its number alone without a sequence.
    Device(Appearance),
    /// A file.
    File {
        /// `st_dev` of its file system.
        file_system: u64,
        /// `st_ino`.
        inode: u64,
    },
    /// It has not been looked at.
    Unknown,
}

impl KnownDevice {
    /// Looks at what a path means now.
    ///
    /// # Errors
    /// The system's; it is neither a block device nor a file.
    pub fn look(path: &Path) -> Result<KnownDevice, LayoutError> {
        let mut options = OpenOptions::new();
        // Opening a pipe must not block.
        let options = options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path);
        let file = file.map_err(|error| LayoutError::system("open", path, error))?;
        KnownDevice::of(&file, path.to_owned(), path)
    }

    /// What an open file is of; `path` leads to it, and people know it as `called`.
    ///
    /// # Errors
    /// As [`KnownDevice::look`].
    pub fn of(file: &File, path: PathBuf, called: &Path) -> Result<KnownDevice, LayoutError> {
        let which = StorageIdentity::of(file);
        let which = which.map_err(|error| LayoutError::system("examine", called, error))?;
        Ok(KnownDevice {
            path,
            called: called.to_owned(),
            which: Which::from(which),
        })
    }

    /// A block device that has appeared so.
    pub(crate) fn appeared(path: PathBuf, called: &Path, appearance: Appearance) -> KnownDevice {
        KnownDevice {
            path,
            called: called.to_owned(),
            which: Which::Device(appearance),
        }
    }

    /// A device that is only reckoned with: it cannot be opened.
    pub fn never_looked_at(path: PathBuf) -> KnownDevice {
        KnownDevice {
            called: path.clone(),
            path,
            which: Which::Unknown,
        }
    }

    /// The same device, to be known by its number alone: a thin volume that is put back is another one under its
    /// number.
    pub(crate) fn by_number(mut self) -> KnownDevice {
        if let Which::Device(appearance) = &mut self.which {
            appearance.sequence = None;
        }
        self
    }

    /// The same device, to which another path leads, too.
    pub(crate) fn through(&self, path: PathBuf) -> KnownDevice {
        KnownDevice {
            path,
            ..self.clone()
        }
    }

    /// Leads to it; for looking, not for opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path by which people know it.
    pub fn called(&self) -> &Path {
        &self.called
    }

    /// The block device; `None` for a file.
    pub(crate) fn appearance(&self) -> Option<Appearance> {
        match self.which {
            Which::Device(appearance) => Some(appearance),
            Which::File { .. } | Which::Unknown => None,
        }
    }

    /// Opens and locks it.
    ///
    /// # Errors
    /// [`FileError::Other`]: another one is found. Or see [`FileDevice::open`].
    pub fn open(&self, caching: Caching, method: Queue) -> Result<FileDevice, LayoutError> {
        let (path, called, which) = (&self.path, &self.called, self.which()?);
        Ok(FileDevice::open_this(path, called, which, caching, method)?)
    }

    /// Opens it for reading only, without a lock: others may have it in use.
    ///
    /// # Errors
    /// As [`KnownDevice::open`].
    pub fn open_to_read(&self, caching: Caching, method: Queue) -> Result<FileDevice, LayoutError> {
        let (path, called, which) = (&self.path, &self.called, self.which()?);
        Ok(FileDevice::open_to_read(
            path, called, which, caching, method,
        )?)
    }

    /// Opens, locks and identifies it, for direct I/O.
    ///
    /// # Errors
    /// As [`KnownDevice::open`].
    pub fn identify(&self) -> Result<Identified, LayoutError> {
        let (path, called, which) = (&self.path, &self.called, self.which()?);
        Ok(identify_this(path, called, which, Caching::Direct)?)
    }

    /// Opens it as the system's calls do.
    ///
    /// # Errors
    /// As [`KnownDevice::open`].
    pub fn open_file(&self, options: &OpenOptions) -> Result<File, LayoutError> {
        let which = self.which()?;
        let opened = options.open(&self.path);
        let file = opened.map_err(|error| LayoutError::system("open", &self.called, error))?;
        which.check(&file, &self.called)?;
        Ok(file)
    }

    /// Whether a file that was opened elsewhere is of this device.
    ///
    /// # Errors
    /// [`FileError::Other`]: it is not.
    pub(crate) fn check(&self, file: &File) -> Result<(), LayoutError> {
        Ok(self.which()?.check(file, &self.called)?)
    }

    fn which(&self) -> Result<StorageIdentity, LayoutError> {
        match self.which {
            Which::Device(Appearance { number, sequence }) => Ok(StorageIdentity::Device {
                major: number.major,
                minor: number.minor,
                sequence,
            }),
            Which::File { file_system, inode } => Ok(StorageIdentity::File { file_system, inode }),
            Which::Unknown => {
                let path = self.called.clone();
                Err(FileError::NotLookedAt { path }.into())
            }
        }
    }
}

impl From<StorageIdentity> for Which {
    fn from(which: StorageIdentity) -> Which {
        match which {
            StorageIdentity::Device {
                major,
                minor,
                sequence,
            } => Which::Device(Appearance {
                number: DeviceNumber { major, minor },
                sequence,
            }),
            StorageIdentity::File { file_system, inode } => Which::File { file_system, inode },
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_io::BlockDevice as _;

    use super::*;

    #[test]
    fn what_took_the_place_of_a_file_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (
            directory.path().join("disk"),
            directory.path().join("other"),
        );
        for file in [&path, &other] {
            std::fs::write(file, vec![1; 8192]).unwrap();
        }
        let known = KnownDevice::look(&path).unwrap();
        let opened = known.open(Caching::Buffered, Queue::sync()).unwrap();
        assert_eq!(opened.limits().capacity_bytes, 8192);
        drop(opened);
        // As it comes out of the task of a worker.
        let text = serde_json::to_string(&known).unwrap();
        let known: KnownDevice = serde_json::from_str(&text).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let told = known.open(Caching::Buffered, Queue::sync()).err().unwrap();
        assert!(
            told.to_string().contains("changed since it was checked"),
            "{told}"
        );
        assert!(known.identify().is_err());
        assert!(known.open_file(OpenOptions::new().read(true)).is_err());
        assert!(known.check(&File::open(&path).unwrap()).is_err());
    }

    #[test]
    fn what_nobody_has_looked_at_is_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        std::fs::write(&path, [1; 512]).unwrap();
        let reckoned = KnownDevice::never_looked_at(path);
        assert!(reckoned.open_file(OpenOptions::new().read(true)).is_err());
        assert!(reckoned.open(Caching::Buffered, Queue::sync()).is_err());
    }
}
