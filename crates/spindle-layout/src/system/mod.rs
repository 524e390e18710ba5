//! What the system says of mounts, swap and block devices, read from `/proc`, `/sys` and `/dev` through [`SystemTree`],
//! so that tests stand on fixture trees. The guard and the undoing of steps call it; nothing here changes anything.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

pub mod beneath;
pub mod block_device;
mod device_mapper;
pub mod device_number;
pub mod mounts;
pub mod open_files;
mod storage;

pub use beneath::Beneath;
pub use block_device::BlockDeviceNode;
pub use device_mapper::DeviceMapper;
pub use device_number::DeviceNumber;
pub use mounts::Mount;
pub use open_files::OpenFiles;
pub use storage::Storage;

/// Where the system's own trees are found: `/proc`, `/sys`, `/dev` and `/lib/modules`, or fixtures standing in for
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemTree {
    /// Stands for `/proc`.
    pub proc: PathBuf,
    /// Stands for `/sys`.
    pub sys: PathBuf,
    /// Stands for `/dev`.
    pub dev: PathBuf,
    /// Stands for `/lib/modules`.
    pub modules: PathBuf,
}

impl Default for SystemTree {
    /// The running system's own.
    fn default() -> Self {
        SystemTree {
            proc: "/proc".into(),
            sys: "/sys".into(),
            dev: "/dev".into(),
            modules: "/lib/modules".into(),
        }
    }
}

impl SystemTree {
    /// The kernel's name (`sdb1`, `dm-0`) of what a path means, links followed; what its path says when there is
    /// nothing (any more).
    pub(crate) fn kernel_name(&self, device: &Path) -> Option<String> {
        let here = match device.strip_prefix("/dev") {
            Ok(rest) => self.dev.join(rest),
            Err(_) => device.to_owned(),
        };
        let real = std::fs::canonicalize(&here).unwrap_or(here);
        let is_device = |metadata: &Metadata| metadata.file_type().is_block_device();
        if let Some(metadata) = std::fs::metadata(&real).ok().filter(is_device) {
            return Some(BlockDeviceNode::of(self, DeviceNumber::of_stat(metadata.rdev()))?.name);
        }
        // The kernel writes `cciss/c0d0` with an exclamation mark.
        let below = std::fs::canonicalize(&self.dev).ok();
        match below.and_then(|dev| Some(real.strip_prefix(dev).ok()?.to_owned())) {
            Some(name) => Some(name.to_str()?.replace('/', "!")),
            None => Some(real.file_name()?.to_str()?.to_owned()),
        }
    }

    /// The time the system was started, as a name that no other start has; `None` when the kernel does not tell.
    pub(crate) fn boot_id(&self) -> Option<String> {
        text(&self.proc.join("sys/kernel/random/boot_id"))
    }
}

/// A file's text without the white space around it; `None` if it cannot be read or says nothing.
pub(crate) fn text(file: &Path) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Names in a directory, sorted; empty when there is no such directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
