//! What a path or an open file leads to: a block device, known by its number, or a regular file, known by file system
//! and inode. Paths are never compared: links, second nodes of one device, and other mount namespaces give one thing
//! many names.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{BlockDeviceNode, DeviceNumber, SystemTree};

/// A place where bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoragePlace {
    /// A block device.
    Device(DeviceNumber),
    /// A regular file.
    File {
        /// `st_dev` of its file system.
        file_system: u64,
        /// `st_ino`.
        inode: u64,
    },
}

impl StoragePlace {
    /// What `stat` answered for; `None` for directories, pipes, character devices and the like.
    pub fn of(metadata: &Metadata) -> Option<StoragePlace> {
        let kind = metadata.file_type();
        if kind.is_block_device() {
            let number = DeviceNumber::of_stat(metadata.rdev());
            return Some(StoragePlace::Device(number));
        }
        kind.is_file().then(|| StoragePlace::File {
            file_system: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

impl fmt::Display for StoragePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoragePlace::Device(number) => write!(f, "device {number}"),
            StoragePlace::File { file_system, inode } => {
                let on = DeviceNumber::of_stat(*file_system);
                write!(f, "file {inode} of file system {on}")
            }
        }
    }
}

impl SystemTree {
    /// What a path leads to, links followed. A fixture's `/dev` has regular files in place of nodes.
    pub fn storage_at(&self, path: &Path) -> Option<StoragePlace> {
        let here = match path.strip_prefix("/dev") {
            Ok(rest) => self.dev.join(rest),
            Err(_) => path.to_owned(),
        };
        self.storage_of(&here, &std::fs::metadata(&here).ok()?)
    }

    /// What a path leads to that `stat` has answered for.
    pub fn storage_of(&self, path: &Path, metadata: &Metadata) -> Option<StoragePlace> {
        let storage = StoragePlace::of(metadata)?;
        match storage {
            StoragePlace::File { file_system, .. } if self.stands_in_for_dev(file_system) => {
                Some(self.node_stood_in_for(path).unwrap_or(storage))
            }
            _ => Some(storage),
        }
    }

    /// Whether regular files on this file system may stand in for nodes: never where `/dev` is the system's own.
    fn stands_in_for_dev(&self, file_system: u64) -> bool {
        self.dev != Path::new("/dev")
            && std::fs::metadata(&self.dev).is_ok_and(|dev| dev.dev() == file_system)
    }

    fn node_stood_in_for(&self, path: &Path) -> Option<StoragePlace> {
        let real = path.canonicalize().ok()?;
        real.strip_prefix(self.dev.canonicalize().ok()?).ok()?;
        let name = self.kernel_name(&real)?;
        BlockDeviceNode::all(self)
            .into_iter()
            .find(|node| node.name == name)
            .map(|node| StoragePlace::Device(node.number))
    }
}
