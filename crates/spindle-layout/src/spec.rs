//! What a layout is to be made of: plain data, as the experiment file says it. [`crate::ProvisionPlan`] turns it into
//! steps.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
pub use spindle_io::real::Delay;
use spindle_text::quantity::size;

/// One candidate that Spindle makes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutSpec {
    /// Its name in the experiment.
    pub name: String,
    /// What it stands on, at least one.
    pub devices: Vec<DeviceSpec>,
    /// A logical volume between devices and use.
    pub volume: Option<VolumeSpec>,
    /// What the devices, or the volume, become.
    pub kind: LayoutKind,
    /// Whether the devices are cut into parts, one share for each candidate that names them.
    pub share: Option<Share>,
    /// Identities of devices whose content may be erased: by-id names, serial numbers, world-wide names, or paths.
    pub erase: Vec<String>,
    /// How the devices are brought into a known state first.
    pub preparation: Preparation,
    /// How much longer than they take the devices are to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
}

/// What a layout stands on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DeviceSpec {
    /// A block device, by a path such as `/dev/disk/by-id/...`.
    Existing(PathBuf),
    /// A file that is made, and stands in for a device: through a loop device, or as it is when there are no rights for
    /// one.
    File {
        /// Where.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
    },
}

impl DeviceSpec {
    /// The device or the file.
    pub fn path(&self) -> &Path {
        match self {
            DeviceSpec::Existing(path) | DeviceSpec::File { path, .. } => path,
        }
    }
}

impl LayoutSpec {
    /// Each of the devices that the layout came to stand on, with the device of the experiment that it is, or that it
    /// is a part of: `made` has equally many of each, in the order of [`LayoutSpec::devices`].
    pub fn device_of_each<'a, T>(
        &'a self,
        made: &'a [T],
    ) -> impl Iterator<Item = (&'a DeviceSpec, &'a T)> {
        let parts = (made.len() / self.devices.len().max(1)).max(1);
        let of_each = self
            .devices
            .iter()
            .flat_map(move |device| std::iter::repeat_n(device, parts));
        of_each.zip(made)
    }
}

/// What devices, or a volume, become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayoutKind {
    /// They are used as they are.
    Raw,
    /// A file system is made and mounted.
    FileSystem(FileSystemSpec),
    /// They are handed over, empty, to a disk group, which is not made here.
    DiskGroup,
}

/// A file system to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemSpec {
    /// `ext2`, `ext3`, `ext4`, `xfs`, `btrfs`, or any other for which there is a `mkfs.TYPE`.
    pub type_name: String,
    /// More arguments for `mkfs`.
    pub mkfs_options: Vec<String>,
    /// Mount options, separated by commas; may be empty.
    pub mount_options: String,
}

/// A logical volume of LVM, over all devices of the layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Number of devices that data are striped over; 1 for none.
    pub stripes: u32,
    /// Size of a stripe on one device.
    pub stripe_size_bytes: u64,
    /// Copies beside the first: 0 for none.
    pub mirrors: u32,
    /// Whether the volume lies in a thin pool, from which snapshots can be taken.
    pub thin: bool,
}

impl fmt::Display for VolumeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.mirrors, self.stripes) {
            (0, 1) => "linear volume".to_owned(),
            (0, stripes) => format!(
                "volume of {stripes} stripes of {}",
                size(self.stripe_size_bytes)
            ),
            (mirrors, 1) => format!("mirrored volume (raid1, {} copies)", mirrors + 1),
            (mirrors, stripes) => format!(
                "mirrored volume (raid10, {} copies, {stripes} stripes of {})",
                mirrors + 1,
                size(self.stripe_size_bytes)
            ),
        };
        f.write_str(if self.thin { "thin " } else { "" })?;
        f.write_str(&kind)
    }
}

/// How devices are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Share {
    /// Each candidate gets equal parts, of which as many lie in outer as in inner places.
    Fair,
}

/// What is done to devices before they are used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Tell the device that all its blocks are free.
    pub discard: bool,
    /// Overwrite every block this many times with data that do not compress, so that a solid-state device is measured
    /// as it is in use and not as it is new.
    pub overwrite_passes: u32,
}
