//! What a layout is to be made of: plain data, as the experiment file says it. [`crate::ProvisionPlan`] turns it into
//! steps.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
pub use spindle_io::real::Delay;
pub use spindle_system::io_limit::Rates;
use spindle_text::quantity::{KIB, MIB, TIB, size};
use spindle_text::settings;
use spindle_text::word::Word;

use super::file_system;

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
    pub share: Option<DeviceSharing>,
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

const FILE_ALLOWED: &str = "the path of a file, which is made";
const ERASE_ALLOWED: &str =
    "a list of devices by name, each a by-id name, a serial number, a world-wide name or a path";

settings! {
    /// What is said of a file that stands in for a device.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FileDeviceSettings {
        /// It must not exist; a relative path starts where `spindle` is started.
        file: Option<String> = text("file", "none: required", FILE_ALLOWED),
        /// Its size, allocated whole.
        size_bytes: Option<u64> = optional_size("size", "none: required", 16 * MIB..=64 * TIB),
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

/// Types of file systems, as messages say what is allowed.
pub const TYPES_ALLOWED: &str = "the type of a file system: \"ext2\", \"ext3\", \"ext4\", \"xfs\", \"btrfs\", or another that has a mkfs.TYPE";
const MKFS_ALLOWED: &str = "arguments for mkfs, separated by blanks";
const MOUNT_ALLOWED: &str = "mount options, separated by commas";

settings! {
    /// What is said of a file system.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct FileSystemSettings {
        /// The type; `filesystem = "xfs"` is short for it.
        type_name: Option<String> = text("type", "none: required", TYPES_ALLOWED),
        /// More arguments for `mkfs.TYPE`.
        mkfs: Option<String> = text("mkfs", "none", MKFS_ALLOWED),
        /// As for `mount -o`: `"noatime"`, `"data=journal"`, `"nodatacow"`.
        mount: Option<String> = text("mount", "none", MOUNT_ALLOWED),
    }
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

/// Words of `mkfs` and mount options whose values are devices: logs, realtime sections and journals beside the file
/// system, by name, label or number (mkfs.xfs(8), mke2fs(8), ext4(5), xfs(5), btrfs(5)).
const NAMES_OF_DEVICES: [&str; 9] = [
    "logdev",
    "rtdev",
    "device",
    "dev",
    "name",
    "journal_dev",
    "journal_path",
    "metadev",
    "loop",
];

impl FileSystemSpec {
    /// The key, and the part of its value, that lead to a device or file outside of the layout; `None` where there
    /// is none. The guard sees the layout's devices only, and no other may be written to.
    pub fn leads_elsewhere(&self) -> Option<(&'static str, String)> {
        let mkfs = self.mkfs_options.iter().flat_map(|word| word.split(','));
        let mount = self.mount_options.split(',');
        let parts = mkfs.map(|part| ("mkfs", part));
        let mut parts = parts.chain(mount.map(|part| ("mount", part)));
        let leads = parts.find(|(_, part)| {
            let name = part.split('=').next().unwrap_or_default();
            // `-Jdevice=UUID` and `-lname=x` stand without a blank.
            let is_of_device = |known: &&str| {
                name == *known
                    || part.contains('=') && name.starts_with('-') && name.ends_with(*known)
            };
            part.contains('/') || NAMES_OF_DEVICES.iter().any(is_of_device)
        });
        leads.map(|(key, part)| (key, part.to_owned()))
    }

    /// The key, and the part of its value, with which no database could be there: nothing is made, or nothing may be
    /// written. `None` where there is none.
    pub fn takes_no_database(&self) -> Option<(&'static str, String)> {
        let makes_nothing =
            file_system::kind(&self.type_name).map_or(&[][..], |it| it.makes_nothing);
        let mut mkfs = self.mkfs_options.iter();
        let mkfs = mkfs.find(|word| makes_nothing.contains(&word.as_str()));
        let mkfs = mkfs.map(|word| ("mkfs", word.clone()));
        let mut mount = self.mount_options.split(',').map(str::trim);
        let mount = mount.find(|option| *option == "ro");
        mkfs.or(mount.map(|option| ("mount", option.to_owned())))
    }
}

/// Stripe sizes of LVM: powers of two, up to an extent.
const STRIPE_SIZES_BYTES: [u64; 11] = [
    4 * KIB,
    8 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
];

settings! {
    /// A logical volume of LVM, over all devices of the layout.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct VolumeSpec {
        /// Devices that data are striped over; 1 is a linear volume.
        stripes: u32 = number("stripes", 1, 1..=128),
        /// Size of a stripe on one device, a power of two.
        stripe_size_bytes: u64 = size_among("stripe_size", 64 * KIB, &STRIPE_SIZES_BYTES),
        /// Copies beside the first: raid1, with stripes raid10.
        mirrors: u32 = number("mirrors", 0, 0..=9),
        /// A thin volume, as `restore = "snapshot"` takes it; not with `mirrors`.
        thin: bool = flag("thin", false),
    }
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

/// How devices are shared with other layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceSharing {
    /// Equal parts for each, of which as many lie in outer as in inner places.
    Fair,
}

// Not by `words!`: journals have it as a variant, not as a word.
impl Word for DeviceSharing {
    const ALLOWED: &'static [(&'static str, DeviceSharing)] = &[("fair", DeviceSharing::Fair)];
    const SAYS: &'static [&'static str] =
        &["Equal parts for each, of which as many lie in outer as in inner places."];
    const LATER: &'static [&'static str] = &[];
}

settings! {
    /// How devices are overwritten.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Precondition {
        /// How often every block is written, with data that do not compress.
        passes: u32 = number("passes", 1, 1..=10),
    }
}

settings! {
    /// What is said of how devices are cut up and treated.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DeviceSettings {
        /// The database lies on the devices, or the volume, themselves.
        raw: bool = flag("raw", false),
        /// Layouts that name the same devices get equal parts of them, outer and inner places in turn, so that none is
        /// favoured.
        share: Option<DeviceSharing> = optional_word("share", "none"),
        /// Devices that may be erased though there is something on them.
        erase: Vec<String> = texts("erase", ERASE_ALLOWED),
        /// Tell devices first that all their blocks are free.
        discard: bool = flag("discard", false),
        /// Overwrite all devices first, so that a solid-state device is measured as it is in use and not as it is new.
        precondition: Option<Precondition> = table("precondition"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn leads_elsewhere(mkfs: &str, mount: &str) -> Option<(&'static str, String)> {
        let spec = FileSystemSpec {
            type_name: "xfs".to_owned(),
            mkfs_options: mkfs.split_whitespace().map(str::to_owned).collect(),
            mount_options: mount.to_owned(),
        };
        spec.leads_elsewhere()
    }

    #[test]
    fn options_lead_to_no_other_device() {
        for mkfs in [
            "-l logdev=/dev/sdb,size=64m",
            "-llogdev=sdb",
            "-l size=64m,logdev=sdb",
            "-r rtdev=sdb",
            "-d name=x",
            "-J device=UUID=00719742-3b09-40f7-855e-40d17be8db36",
            "-Jdevice=LABEL=x",
            "-f /dev/sdb",
            "-f ../sdb",
        ] {
            let found = leads_elsewhere(mkfs, "noatime");
            assert_eq!(found.map(|(key, _)| key), Some("mkfs"), "{mkfs}");
        }
        for mount in [
            "noatime,logdev=/dev/sdb",
            "device=sdb",
            "journal_dev=0x811",
            "rtdev=sdb",
            "loop",
        ] {
            let found = leads_elsewhere("", mount);
            assert_eq!(found.map(|(key, _)| key), Some("mount"), "{mount}");
        }
        let usual = "-b 4096 -O ^has_journal -E stride=16,lazy_itable_init=0 -L data -d su=64k,sw=4 -l size=64m";
        let mount =
            "noatime,data=writeback,commit=30,compress=zstd:3,barrier=0,logbufs=8,nodiscard";
        assert_eq!(leads_elsewhere(usual, mount), None);
    }

    #[test]
    fn options_leave_a_file_system_that_takes_a_database() {
        for (type_name, mkfs, mount, found) in [
            ("ext4", "-n", "", Some(("mkfs", "-n"))),
            ("xfs", "-n ftype=1", "", None),
            ("xfs", "-N", "", Some(("mkfs", "-N"))),
            ("btrfs", "--help", "", Some(("mkfs", "--help"))),
            ("f2fs", "-n", "noatime", None),
            ("ext4", "", "noatime, ro", Some(("mount", "ro"))),
            ("ext4", "", "noload", None),
            ("ext4", "-N 4096", "errors=remount-ro,data=journal", None),
        ] {
            let spec = FileSystemSpec {
                type_name: type_name.to_owned(),
                mkfs_options: mkfs.split_whitespace().map(str::to_owned).collect(),
                mount_options: mount.to_owned(),
            };
            let found = found.map(|(key, option)| (key, option.to_owned()));
            assert_eq!(
                spec.takes_no_database(),
                found,
                "{type_name} {mkfs} {mount}"
            );
        }
    }
}
