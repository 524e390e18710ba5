//! Files of a server's database that lie on raw devices. Where the golden tree has a regular file, the image then has
//! its own node of the device, in the server's directory and for the server's user alone. So no user gets a new right
//! to a device, the node in `/dev` stays as it is, and the image's directory takes the node along when it goes.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dev, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fstat, makedev, mknodat, openat,
    statat,
};
use rustix::io::Errno;

use super::removal::remove_entry;
use crate::error::LayoutError;
use crate::guard::Appearance;
use crate::known_device::KnownDevice;
use crate::placement::RawDevice;

/// A file of a server's data directory that lies on a raw device, from the device's first byte on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFile {
    /// Its name in the data directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The block device. It must not be in use.
    pub device: RawDevice,
}

/// Which device a node stands for.
#[derive(Debug, Clone)]
pub(super) struct DeviceNode {
    device: KnownDevice,
    number: Dev,
}

impl DeviceNode {
    /// Of a block device.
    ///
    /// # Errors
    /// [`LayoutError::NoDeviceNode`]: it is none. [`FileError::Other`](spindle_io::real::FileError::Other): it is
    /// another one by now. Or the system's.
    pub fn of(raw: &RawDevice) -> Result<DeviceNode, LayoutError> {
        let device = raw.device.clone();
        device.open_file(OpenOptions::new().read(true))?;
        let Some(Appearance { number, .. }) = device.appearance() else {
            return Err(LayoutError::NoDeviceNode {
                device: device.called().to_owned(),
                reason: "it is a plain file that stands in for a device; as root, Spindle makes a loop device of it"
                    .to_owned(),
            });
        };
        Ok(DeviceNode {
            device,
            number: makedev(number.major, number.minor),
        })
    }

    /// The device, by the node at this path.
    pub fn known(&self, node: PathBuf) -> KnownDevice {
        self.device.through(node)
    }

    fn is(&self, found: &Stat) -> bool {
        FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice
            && found.st_rdev == self.number
    }

    /// Opens the node of this name in an open directory, which is made if it does not exist or is something else; it
    /// belongs to the owner of `like`.
    ///
    /// # Errors
    /// [`LayoutError::NoDeviceNode`], or the system's.
    pub fn open(
        &self,
        directory: &File,
        name: &CStr,
        path: &Path,
        like: &File,
    ) -> Result<File, LayoutError> {
        let wrong = |action, error| LayoutError::system(action, path, error);
        let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Some(found),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(wrong("examine", error)),
        };
        if !found.as_ref().is_some_and(|found| self.is(found)) {
            if found.is_some() {
                remove_entry(directory, name, path)?;
            }
            let mode = Mode::RUSR | Mode::WUSR;
            let made = mknodat(directory, name, FileType::BlockDevice, mode, self.number);
            made.map_err(|error| self.refused(path, error))?;
        }
        let owner = fstat(like).map_err(|error| wrong("examine", error))?;
        let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        chownat(
            directory,
            name,
            Some(uid),
            Some(gid),
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .map_err(|error| wrong("change the owner of", error))?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(directory, name, flags, Mode::empty()).map(File::from);
        let opened = opened.map_err(|error| self.refused(path, error))?;
        // The server's user owns the directory, and a number may pass on: what is written to is what was meant.
        self.device.check(&opened)?;
        Ok(opened)
    }

    fn refused(&self, node: &Path, error: Errno) -> LayoutError {
        let directory = node.parent().unwrap_or(node).display();
        let reason = match error {
            Errno::PERM => format!(
                "no node of it can be made in {directory}: that takes root, and a container that lets root do it"
            ),
            Errno::ACCESS => format!(
                "a node of it cannot be used in {directory}, a file system mounted with nodev: put the server's other files \
                 on another"
            ),
            other => format!("its node in {directory}: {}", std::io::Error::from(other)),
        };
        LayoutError::NoDeviceNode {
            device: self.device.called().to_owned(),
            reason,
        }
    }
}
