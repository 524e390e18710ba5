//! Where one file of a database is: a file of a file system, a region of a raw device, or a file of a disk group; and
//! how it is opened. Golden copies and images, the engine and the worker of a trial all open database files here, so
//! that a file is the same thing to each of them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_io::disk_group::{DiskGroup, DiskGroupError, MountOptions};
use spindle_io::real::{
    Caching, CountedDevice, Delay, DelayedDevice, FileDevice, Identified, IoCounts, Queue, RealEnv,
    RunPath, WrittenBlocks,
};
use spindle_io::{BlockDevice, Env};

use crate::error::LayoutError;
use crate::known_device::KnownDevice;

/// Where a database file is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A file of a file system.
    File(PathBuf),
    /// A part of a raw device: a block device, or a plain file that stands in for one.
    Region {
        /// The device.
        device: KnownDevice,
        /// Where it begins there.
        first_byte: u64,
        /// Its size.
        bytes: u64,
    },
    /// A file of a disk group.
    GroupFile {
        /// The group's disks, each a block device or a plain file that stands in for one.
        disks: Vec<KnownDevice>,
        /// Its name in the group.
        file: String,
        /// Its size.
        bytes: u64,
        /// How it is striped when it is made: in stripes of 128 KiB, or else allocation unit by allocation unit.
        fine_stripes: bool,
        /// The failure group whose copies are read where there is one.
        preferred_failure_group: Option<String>,
    },
}

impl Place {
    /// The file, or the devices that hold it.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Place::File(path) => vec![path],
            Place::Region { device, .. } => vec![device.path()],
            Place::GroupFile { disks, .. } => disks.iter().map(KnownDevice::path).collect(),
        }
    }

    /// Opens the file, or each of the devices that hold it, as the system's calls do; with their paths. Errors: the
    /// system's, or a device is another one by now.
    pub(crate) fn open_all(
        &self,
        options: &OpenOptions,
    ) -> Result<Vec<(PathBuf, File)>, LayoutError> {
        let own = |path: &Path| RunPath::to(path)?.open(&mut options.clone(), 0);
        let known = |device: &KnownDevice| {
            let file = device.open_file(options)?;
            Ok((device.path().to_owned(), file))
        };
        match self {
            Place::File(path) => {
                let file = own(path);
                let file = file.map_err(|error| LayoutError::system("open", path, error))?;
                Ok(vec![(path.clone(), file)])
            }
            Place::Region { device, .. } => Ok(vec![known(device)?]),
            Place::GroupFile { disks, .. } => disks.iter().map(known).collect(),
        }
    }

    /// The file, or the first of the devices that hold it.
    pub fn path(&self) -> &Path {
        self.paths()[0]
    }
}

/// An open database file.
pub struct OpenedFile {
    /// For the database.
    pub device: Arc<dyn BlockDevice>,
    /// Blocks written since it was opened, if that was asked for.
    pub written: Option<Arc<WrittenBlocks>>,
    counting: Counting,
}

enum Counting {
    File(Arc<FileDevice>),
    Group(Arc<CountedDevice>),
}

impl OpenedFile {
    fn file(device: FileDevice, block_bytes: Option<u64>) -> OpenedFile {
        let written = tracker(&device, block_bytes);
        let device = Arc::new(match &written {
            Some(written) => device.with_tracker(Arc::clone(written)),
            None => device,
        });
        OpenedFile {
            device: Arc::clone(&device) as Arc<dyn BlockDevice>,
            written,
            counting: Counting::File(device),
        }
    }

    fn in_group(device: Arc<dyn BlockDevice>, bytes: u64, block_bytes: Option<u64>) -> OpenedFile {
        let written = tracker(&*device, block_bytes);
        let device = Arc::new(CountedDevice::new(device, bytes, written.clone()));
        OpenedFile {
            device: Arc::clone(&device) as Arc<dyn BlockDevice>,
            written,
            counting: Counting::Group(device),
        }
    }

    /// Whether it lies in a disk group.
    pub fn is_in_group(&self) -> bool {
        matches!(self.counting, Counting::Group(_))
    }

    /// What the database asked of it since it was opened.
    pub fn counters(&self) -> IoCounts {
        match &self.counting {
            Counting::File(device) => device.counters(),
            Counting::Group(device) => device.counters(),
        }
    }
}

fn tracker(device: &dyn BlockDevice, block_bytes: Option<u64>) -> Option<Arc<WrittenBlocks>> {
    block_bytes.map(|bytes| WrittenBlocks::new(device.limits().capacity_bytes, bytes))
}

/// Files of a database while they are opened. Regions of one device share one open file, and files of a disk group its
/// one mount: either can be open but once.
#[derive(Default)]
pub struct Opening {
    /// Of the disks of disk groups. (Other files are delayed by the code that opens them.)
    disk_delay: Delay,
    devices: BTreeMap<KnownDevice, Identified>,
    groups: BTreeMap<Vec<KnownDevice>, OpenGroup>,
}

struct OpenGroup {
    group: DiskGroup,
    disks: Vec<Arc<FileDevice>>,
}

impl Opening {
    /// Nothing is open yet.
    pub fn new() -> Opening {
        Opening::default()
    }

    /// Nothing is open yet, and each disk of a disk group takes longer by `disk_delay` when it is.
    pub fn with_disk_delay(disk_delay: Delay) -> Opening {
        Opening {
            disk_delay,
            ..Opening::default()
        }
    }

    /// Opens and locks a database file; with `block_bytes`, notes which blocks of that size are written. Raw devices
    /// and disk groups are direct whatever `caching` says: there is no file system to cache. The disks of a group work
    /// by the method of the first file opened. Errors: [`LayoutError::File`], [`LayoutError::DiskGroup`].
    pub async fn open(
        &mut self,
        place: &Place,
        caching: Caching,
        method: Queue,
        block_bytes: Option<u64>,
    ) -> Result<OpenedFile, LayoutError> {
        match place {
            Place::File(path) => {
                let device = FileDevice::open(path, caching, method)?;
                Ok(OpenedFile::file(device, block_bytes))
            }
            Place::Region {
                device,
                first_byte,
                bytes,
            } => {
                let whole = self.identified(device)?;
                let device = FileDevice::on_region(whole, *first_byte, *bytes, method)?;
                Ok(OpenedFile::file(device, block_bytes))
            }
            Place::GroupFile {
                disks,
                file,
                bytes,
                preferred_failure_group: preferred,
                ..
            } => {
                let group = self.group(disks, preferred.as_deref(), method).await?;
                let device = group.open_file(file)?;
                Ok(OpenedFile::in_group(device, *bytes, block_bytes))
            }
        }
    }

    /// The disk group of these disks, mounted if it is not yet; then copies of `preferred` are read where there are
    /// some. Errors: see [`Opening::open`].
    pub(crate) async fn group(
        &mut self,
        disks: &[KnownDevice],
        preferred: Option<&str>,
        method: Queue,
    ) -> Result<&DiskGroup, LayoutError> {
        if !self.groups.contains_key(disks) {
            let open =
                |disk: &KnownDevice| disk.open(Caching::Direct, method.clone()).map(Arc::new);
            let members = disks.iter().map(open).collect::<Result<Vec<_>, _>>()?;
            let delayed = |disk: &Arc<FileDevice>| -> Arc<dyn BlockDevice> {
                let device = Arc::clone(disk) as Arc<dyn BlockDevice>;
                if self.disk_delay.is_none() {
                    return device;
                }
                Arc::new(DelayedDevice::new(device, self.disk_delay, &method))
            };
            let devices: Vec<_> = members.iter().map(delayed).collect();
            let env: Arc<dyn Env> = RealEnv::new(0);
            let options = MountOptions {
                force: false,
                preferred_failure_group: preferred.map(str::to_owned),
            };
            let open = OpenGroup {
                group: DiskGroup::mount_with(&env, &devices, &options).await?,
                disks: members,
            };
            self.groups.insert(disks.to_vec(), open);
        }
        Ok(&self.groups[disks].group)
    }

    /// What the disks of all disk groups did since they were opened: each copy of each write, and metadata.
    pub fn disk_counters(&self) -> IoCounts {
        let disks = self.groups.values().flat_map(|open| &open.disks);
        disks.fold(IoCounts::default(), |sum, disk| sum + disk.counters())
    }

    fn identified(&mut self, device: &KnownDevice) -> Result<&Identified, LayoutError> {
        if !self.devices.contains_key(device) {
            self.devices.insert(device.clone(), device.identify()?);
        }
        Ok(&self.devices[device])
    }

    /// Dismounts disk groups in order, after their files were closed. Errors: a file is still open, or the last
    /// metadata could not be written; the next mount then does what was left.
    pub async fn close(self) -> Result<(), DiskGroupError> {
        for open in self.groups.into_values() {
            open.group.dismount().await?;
        }
        Ok(())
    }
}
