//! Which files of a database go where: a target for each kind of file (a directory, or raw devices), and from that a
//! place for each file. On raw devices a file is a region; regions are dealt out here, so that two never overlap.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;
use crate::known_device::KnownDevice;
use crate::place::Place;
use crate::shape::{DatabaseFiles, DatabaseShape, FileKind, ShapeFile};

/// Regions begin at multiples of this. The first and the last unit of a device stay untouched: labels, partition tables
/// and the signatures of file systems lie there, and a device that had none has none afterwards.
const REGION_UNIT_BYTES: u64 = 1 << 20;

/// A raw device that database files are put on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RawDevice {
    /// The block device (by a node of the run's own), or the plain file that stands in for one.
    pub device: KnownDevice,
    /// Its size.
    pub bytes: u64,
}

impl RawDevice {
    /// What a path means now, a device or file that is not held.
    ///
    /// # Errors
    /// As [`KnownDevice::look`].
    pub fn look(path: &Path, bytes: u64) -> Result<RawDevice, LayoutError> {
        let device = KnownDevice::look(path)?;
        Ok(RawDevice { device, bytes })
    }

    /// One that is only reckoned with.
    pub fn reckoned(path: PathBuf, bytes: u64) -> RawDevice {
        let device = KnownDevice::never_looked_at(path);
        RawDevice { device, bytes }
    }

    /// Leads to it; for looking, not for opening.
    pub fn path(&self) -> &Path {
        self.device.path()
    }

    /// The path by which people know it.
    pub fn called(&self) -> &Path {
        self.device.called()
    }
}

/// Where files of one kind go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementTarget {
    /// Into a directory, which must exist.
    Directory(PathBuf),
    /// Onto raw devices: file by file onto the one that has most room.
    Devices(Vec<RawDevice>),
    /// Into a disk group, which must exist.
    DiskGroup(DiskGroupTarget),
}

/// A disk group as a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskGroupTarget {
    /// Its disks.
    pub disks: Vec<KnownDevice>,
    /// What names of files begin with, so that several databases can be in the group; may be empty.
    pub prefix: String,
    /// How files are striped.
    pub stripes: GroupStripes,
    /// A failure group whose copies are read where there is one; `None`: primary copies.
    pub preferred_failure_group: Option<String>,
}

/// Which kinds of files a disk group stripes fine (128 KiB); the others lie coarse, allocation unit by allocation unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupStripes {
    /// The control file.
    pub control_fine: bool,
    /// The redo log files.
    pub redo_fine: bool,
    /// The undo datafile.
    pub undo_fine: bool,
    /// The datafiles, and the double write areas.
    pub data_fine: bool,
    /// The tempfiles.
    #[serde(default)]
    pub temp_fine: bool,
}

impl Default for GroupStripes {
    /// As Oracle's templates have it since 11g: the control file fine, all else coarse.
    fn default() -> GroupStripes {
        GroupStripes {
            control_fine: true,
            redo_fine: false,
            undo_fine: false,
            data_fine: false,
            temp_fine: false,
        }
    }
}

impl GroupStripes {
    fn is_fine(&self, kind: FileKind) -> bool {
        match kind {
            FileKind::Control => self.control_fine,
            FileKind::Redo => self.redo_fine,
            FileKind::Undo => self.undo_fine,
            FileKind::Data | FileKind::DoubleWrite => self.data_fine,
            FileKind::Temp => self.temp_fine,
        }
    }
}

impl PlacementTarget {
    /// The directory, or the devices.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            PlacementTarget::Directory(path) => vec![path],
            PlacementTarget::Devices(devices) => devices.iter().map(RawDevice::path).collect(),
            PlacementTarget::DiskGroup(group) => {
                group.disks.iter().map(KnownDevice::path).collect()
            }
        }
    }

    /// Whether the devices are still those that were looked at.
    ///
    /// # Errors
    /// [`FileError::Other`](spindle_io::real::FileError::Other): one is not. Or the system's.
    pub fn check_devices(&self) -> Result<(), LayoutError> {
        let devices: Vec<&KnownDevice> = match self {
            PlacementTarget::Directory(_) => Vec::new(),
            PlacementTarget::Devices(devices) => devices.iter().map(|of| &of.device).collect(),
            PlacementTarget::DiskGroup(group) => group.disks.iter().collect(),
        };
        for device in devices {
            device.open_file(OpenOptions::new().read(true))?;
        }
        Ok(())
    }
}

/// Where each kind of file goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// The control file.
    pub control: PlacementTarget,
    /// The redo log files.
    pub redo: PlacementTarget,
    /// The undo datafile.
    pub undo: PlacementTarget,
    /// The datafiles, and the double write areas.
    pub data: PlacementTarget,
    /// The tempfiles.
    pub temp: PlacementTarget,
}

impl Placement {
    /// All files to one target.
    pub fn one(target: &PlacementTarget) -> Placement {
        Placement {
            control: target.clone(),
            redo: target.clone(),
            undo: target.clone(),
            data: target.clone(),
            temp: target.clone(),
        }
    }

    /// All files into one directory.
    pub fn in_directory(directory: &Path) -> Placement {
        Placement::one(&PlacementTarget::Directory(directory.to_owned()))
    }

    /// Bytes that the files of a shape take in each directory.
    pub fn directories(&self, shape: &DatabaseShape) -> BTreeMap<PathBuf, u64> {
        let mut bytes = BTreeMap::new();
        for file in shape.files() {
            if let PlacementTarget::Directory(directory) = self.target(file.kind) {
                *bytes.entry(directory.clone()).or_default() += file.bytes;
            }
        }
        bytes
    }

    /// The same for one database of several: `map` gives its own directory in each directory, and in disk groups its
    /// files' names begin with `prefix`.
    pub fn within(&self, prefix: &str, mut map: impl FnMut(&Path) -> PathBuf) -> Placement {
        let mut of = |target: &PlacementTarget| match target {
            PlacementTarget::Directory(directory) => PlacementTarget::Directory(map(directory)),
            PlacementTarget::Devices(_) => target.clone(),
            PlacementTarget::DiskGroup(group) => PlacementTarget::DiskGroup(DiskGroupTarget {
                prefix: prefix.to_owned(),
                ..group.clone()
            }),
        };
        Placement {
            control: of(&self.control),
            redo: of(&self.redo),
            undo: of(&self.undo),
            data: of(&self.data),
            temp: of(&self.temp),
        }
    }

    fn target(&self, kind: FileKind) -> &PlacementTarget {
        match kind {
            FileKind::Control => &self.control,
            FileKind::Redo => &self.redo,
            FileKind::Undo => &self.undo,
            FileKind::Data | FileKind::DoubleWrite => &self.data,
            FileKind::Temp => &self.temp,
        }
    }
}

/// What is taken of raw devices, so that several databases can lie side by side.
#[derive(Debug, Clone, Default)]
pub struct RawSpace {
    /// First byte not taken.
    free_from: BTreeMap<PathBuf, u64>,
}

impl RawSpace {
    fn room_bytes(&self, device: &RawDevice) -> u64 {
        let end = device.bytes / REGION_UNIT_BYTES * REGION_UNIT_BYTES;
        end.saturating_sub(REGION_UNIT_BYTES + self.free_from(device))
    }

    fn free_from(&self, device: &RawDevice) -> u64 {
        let taken = self.free_from.get(device.path());
        taken.copied().unwrap_or(REGION_UNIT_BYTES)
    }

    /// Takes a region for a file on the device that has most room; of equal ones, on the first.
    fn take(&mut self, devices: &[RawDevice], file: &ShapeFile) -> Result<Place, LayoutError> {
        let most = devices
            .iter()
            .rev()
            .max_by_key(|device| self.room_bytes(device));
        let most = most.ok_or_else(|| LayoutError::BadShape {
            reason: format!("there is no device for {}", file.name()),
        })?;
        let room_bytes = self.room_bytes(most);
        if room_bytes < file.bytes {
            return Err(LayoutError::NoRoomOnDevices {
                file: file.name(),
                needed_bytes: file.bytes,
                device: most.called().to_owned(),
                free_bytes: room_bytes,
            });
        }
        let first_byte = self.free_from(most);
        let end = (first_byte + file.bytes).next_multiple_of(REGION_UNIT_BYTES);
        self.free_from.insert(most.path().to_owned(), end);
        Ok(Place::Region {
            device: most.device.clone(),
            first_byte,
            bytes: file.bytes,
        })
    }
}

impl DatabaseFiles {
    /// A place for every file of a shape; regions come out of `space`. Errors: [`LayoutError::NoRoomOnDevices`].
    pub fn place(
        shape: &DatabaseShape,
        placement: &Placement,
        space: &mut RawSpace,
    ) -> Result<DatabaseFiles, LayoutError> {
        DatabaseFiles::of(shape, |file| match placement.target(file.kind) {
            PlacementTarget::Directory(directory) => {
                Ok(Place::File(directory.join(file.file_name())))
            }
            PlacementTarget::Devices(devices) => space.take(devices, file),
            PlacementTarget::DiskGroup(group) => Ok(Place::GroupFile {
                disks: group.disks.clone(),
                file: format!("{}{}", group.prefix, file.name()),
                bytes: file.bytes,
                fine_stripes: group.stripes.is_fine(file.kind),
                preferred_failure_group: group.preferred_failure_group.clone(),
            }),
        })
    }

    /// All files in one directory.
    pub fn in_directory(shape: &DatabaseShape, directory: &Path) -> DatabaseFiles {
        let placement = Placement::in_directory(directory);
        DatabaseFiles::place(shape, &placement, &mut RawSpace::default())
            .expect("only regions can be short of room")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn shape() -> DatabaseShape {
        DatabaseShape {
            block_bytes: 8192,
            control_bytes: MIB / 2,
            redo_bytes: vec![MIB; 2],
            undo_bytes: MIB,
            data_bytes: vec![3 * MIB; 4],
            double_write_bytes: 0,
            temp_bytes: Vec::new(),
        }
    }

    fn devices(bytes: &[u64]) -> Vec<RawDevice> {
        let names = ["/dev/sdx", "/dev/sdy", "/dev/sdz"];
        let devices = names
            .iter()
            .zip(bytes)
            .map(|(path, bytes)| RawDevice::reckoned(PathBuf::from(path), *bytes));
        devices.collect()
    }

    #[test]
    fn regions_never_overlap_and_leave_the_ends_of_a_device_alone() {
        let devices = devices(&[14 * MIB + 512, 12 * MIB]);
        let placement = Placement::one(&PlacementTarget::Devices(devices.clone()));
        let mut space = RawSpace::default();
        let files = DatabaseFiles::place(&shape(), &placement, &mut space).unwrap();
        let mut regions: Vec<_> = files
            .named()
            .into_iter()
            .map(|(_, place)| match place {
                Place::Region {
                    device,
                    first_byte,
                    bytes,
                } => (device.clone(), *first_byte, *bytes),
                other => panic!("{other:?}"),
            })
            .collect();
        regions.sort();
        for (device, first_byte, bytes) in &regions {
            let size = devices
                .iter()
                .find(|of| of.device == *device)
                .unwrap()
                .bytes;
            assert!(*first_byte >= MIB && first_byte + bytes <= size - MIB);
            assert!(first_byte.is_multiple_of(MIB));
        }
        for pair in regions.windows(2) {
            assert!(
                pair[0].0 != pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1,
                "{pair:?}"
            );
        }
        let told = DatabaseFiles::place(&shape(), &placement, &mut space).unwrap_err();
        assert!(told.to_string().contains("no room for data"), "{told}");
    }

    #[test]
    fn redo_can_have_a_device_of_its_own() {
        let all = devices(&[40 * MIB, 40 * MIB, 8 * MIB]);
        let placement = Placement {
            redo: PlacementTarget::Devices(all[2..].to_vec()),
            ..Placement::one(&PlacementTarget::Devices(all[..2].to_vec()))
        };
        let files = DatabaseFiles::place(&shape(), &placement, &mut RawSpace::default()).unwrap();
        assert!(files.redo.iter().all(|place| place.path() == all[2].path()));
        let on = |device: &RawDevice| {
            let data = files.data.iter();
            data.filter(|place| place.path() == device.path()).count()
        };
        assert_eq!((on(&all[0]), on(&all[1])), (2, 2));
    }

    #[test]
    fn tempfiles_can_have_devices_of_their_own() {
        let all = devices(&[40 * MIB, 8 * MIB, 8 * MIB]);
        let shape = DatabaseShape {
            temp_bytes: vec![2 * MIB; 2],
            ..shape()
        };
        let placement = Placement {
            temp: PlacementTarget::Devices(all[1..].to_vec()),
            ..Placement::one(&PlacementTarget::Devices(all[..1].to_vec()))
        };
        let files = DatabaseFiles::place(&shape, &placement, &mut RawSpace::default()).unwrap();
        let on: Vec<&Path> = files.temp.iter().map(Place::path).collect();
        assert_eq!(on, [all[1].path(), all[2].path()]);
        assert!(files.data.iter().all(|place| place.path() == all[0].path()));
    }

    #[test]
    fn files_of_a_group_are_striped_by_their_kind() {
        let target = PlacementTarget::DiskGroup(DiskGroupTarget {
            disks: vec![KnownDevice::never_looked_at("/dev/sdx".into())],
            prefix: String::new(),
            stripes: GroupStripes {
                redo_fine: true,
                temp_fine: true,
                ..GroupStripes::default()
            },
            preferred_failure_group: None,
        });
        let placement = Placement::one(&target);
        let shape = DatabaseShape {
            temp_bytes: vec![MIB],
            ..shape()
        };
        let files = DatabaseFiles::place(&shape, &placement, &mut RawSpace::default()).unwrap();
        let fine: Vec<String> = files
            .named()
            .into_iter()
            .filter(|(_, place)| {
                matches!(
                    place,
                    Place::GroupFile {
                        fine_stripes: true,
                        ..
                    }
                )
            })
            .map(|(name, _)| name)
            .collect();
        assert_eq!(fine, ["control", "redo1", "redo2", "temp1"]);
    }
}
