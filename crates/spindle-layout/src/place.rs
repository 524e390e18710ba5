//! Where one file of a database is: a file of a file system, or a region of a raw device; and how it is opened.
//! Golden copies and images, the engine and the worker of a trial all open database files here, so that a file is the
//! same thing to each of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_io::real::{Caching, FileDevice, FileError, Identified, Method, identify};

/// Where a database file is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A file of a file system.
    File(PathBuf),
    /// A part of a raw device: a block device, or a plain file that stands in for one.
    Region {
        /// The device.
        device: PathBuf,
        /// Where it begins there.
        first_byte: u64,
        /// Its size.
        bytes: u64,
    },
}

impl Place {
    /// The file, or the device that the region is a part of.
    pub fn path(&self) -> &Path {
        match self {
            Place::File(path) => path,
            Place::Region { device, .. } => device,
        }
    }
}

/// Files of a database while they are opened: regions of one device share one open file, because a device can be open
/// but once.
#[derive(Default)]
pub struct Opening {
    devices: BTreeMap<PathBuf, Identified>,
}

impl Opening {
    /// Nothing is open yet.
    pub fn new() -> Opening {
        Opening::default()
    }

    /// Opens and locks a database file. A region is direct whatever `caching` says: raw means no page cache. Errors: see
    /// [`FileError`].
    pub fn open(
        &mut self,
        place: &Place,
        caching: Caching,
        method: Method,
    ) -> Result<FileDevice, FileError> {
        match place {
            Place::File(path) => FileDevice::open(path, caching, method),
            Place::Region {
                device,
                first_byte,
                bytes,
            } => FileDevice::on_region(self.identified(device)?, *first_byte, *bytes, method),
        }
    }

    fn identified(&mut self, device: &Path) -> Result<&Identified, FileError> {
        if !self.devices.contains_key(device) {
            let identified = identify(device, Caching::Direct)?;
            self.devices.insert(device.to_owned(), identified);
        }
        Ok(&self.devices[device])
    }
}
