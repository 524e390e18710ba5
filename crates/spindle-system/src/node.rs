//! One block device as `/sys` shows it: its size, its partitions, what is stacked on it, by which names people know it.
//! Sources: Linux Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-block.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use spindle_io::LINUX_SECTOR_BYTES;

use super::{DeviceNumber, SystemTree, names, text};

impl SystemTree {
    /// The kernel's name (`sdb1`, `dm-0`) of what a path means, links followed; what its path says when there is
    /// nothing (any more).
    pub fn kernel_name(&self, device: &Path) -> Option<String> {
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
}

/// A block device's directory in `/sys`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDeviceNode {
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's name: `sdb`, `sdb1`, `loop0`.
    pub name: String,
    /// Free of links.
    directory: PathBuf,
}

impl BlockDeviceNode {
    /// The device of this number; `None` when the kernel has none, or does not show it.
    pub fn of(tree: &SystemTree, number: DeviceNumber) -> Option<BlockDeviceNode> {
        let link = tree.sys.join("dev/block").join(number.to_string());
        BlockDeviceNode::in_directory(std::fs::canonicalize(link).ok()?, number)
    }

    /// The whole device of this name in `/sys/block`.
    pub fn named(tree: &SystemTree, name: &str) -> Option<BlockDeviceNode> {
        let directory = std::fs::canonicalize(tree.sys.join("block").join(name)).ok()?;
        let number = text(&directory.join("dev"))?.parse().ok()?;
        BlockDeviceNode::in_directory(directory, number)
    }

    /// Every block device that the kernel shows, partitions among them.
    pub fn all(tree: &SystemTree) -> Vec<BlockDeviceNode> {
        let numbers = names(&tree.sys.join("dev/block"));
        let node = |number: String| BlockDeviceNode::of(tree, number.parse().ok()?);
        numbers.into_iter().filter_map(node).collect()
    }

    fn in_directory(directory: PathBuf, number: DeviceNumber) -> Option<BlockDeviceNode> {
        Some(BlockDeviceNode {
            number,
            name: directory.file_name()?.to_str()?.to_owned(),
            directory,
        })
    }

    fn says(&self, file: &str) -> Option<String> {
        text(&self.directory.join(file))
    }

    /// What the kernel calls it in `/dev`.
    pub fn path(&self, tree: &SystemTree) -> PathBuf {
        // The kernel writes `cciss/c0d0` with an exclamation mark.
        tree.dev.join(self.name.replace('!', "/"))
    }

    /// Its size; `None` when the kernel does not tell.
    pub fn size_bytes(&self) -> Option<u64> {
        let sectors: u64 = self.says("size")?.parse().ok()?;
        sectors.checked_mul(LINUX_SECTOR_BYTES)
    }

    /// Whether it takes no writes; also when the kernel does not tell.
    pub fn is_read_only(&self) -> bool {
        self.says("ro").as_deref() != Some("0")
    }

    /// The number the kernel gives a disk when it appears, never twice between two starts of the system; a partition
    /// has its disk's. Kernels before 5.15 have none.
    pub fn sequence(&self) -> Option<u64> {
        let own = self.says("diskseq");
        let disk = || text(&self.directory.parent()?.join("diskseq"));
        let sequence = if self.is_partition() { disk() } else { own };
        sequence?.parse().ok()
    }

    /// Whether it is cut from another device.
    pub fn is_partition(&self) -> bool {
        self.directory.join("partition").exists()
    }

    /// The disk a partition is cut from.
    pub fn disk(&self) -> Option<BlockDeviceNode> {
        if !self.is_partition() {
            return None;
        }
        let directory = self.directory.parent()?.to_owned();
        let number = text(&directory.join("dev"))?.parse().ok()?;
        BlockDeviceNode::in_directory(directory, number)
    }

    /// The partitions cut from it, in the order of their numbers.
    pub fn partitions(&self) -> Vec<BlockDeviceNode> {
        let mut partitions: Vec<(u32, BlockDeviceNode)> = names(&self.directory)
            .into_iter()
            .filter_map(|name| {
                let directory = self.directory.join(name);
                let order = text(&directory.join("partition"))?.parse().ok()?;
                let number = text(&directory.join("dev"))?.parse().ok()?;
                Some((order, BlockDeviceNode::in_directory(directory, number)?))
            })
            .collect();
        partitions.sort_by_key(|(order, _)| *order);
        partitions.into_iter().map(|(_, node)| node).collect()
    }

    /// Names of the devices that stand on it: volumes, arrays, caches.
    pub fn holders(&self) -> Vec<String> {
        names(&self.directory.join("holders"))
    }

    /// Names of the devices it stands on: members of an array, physical volumes, what a cache caches.
    pub fn slaves(&self) -> Vec<String> {
        names(&self.directory.join("slaves"))
    }

    /// Where a partition begins on its disk.
    pub fn start_bytes(&self) -> Option<u64> {
        let sectors: u64 = self.says("start")?.parse().ok()?;
        sectors.checked_mul(LINUX_SECTOR_BYTES)
    }

    /// The name that device-mapper gave it; `None` when it is not device-mapper's.
    pub fn mapped_name(&self) -> Option<String> {
        self.says("dm/name")
    }

    /// The identity that its maker gave it with device-mapper; `None` when it has none.
    pub fn mapped_uuid(&self) -> Option<String> {
        self.says("dm/uuid")
    }

    /// The serial number and the world-wide name of the hardware. A partition has its disk's.
    pub fn hardware_names(&self) -> Vec<String> {
        let disk = self.disk();
        let node = disk.as_ref().unwrap_or(self);
        let files = ["serial", "device/serial", "wwid", "device/wwid", "dm/uuid"];
        let mut found: Vec<String> = files.iter().filter_map(|file| node.says(file)).collect();
        found.dedup();
        found
    }

    /// What a loop device stands for: a file or a device, with the range of it.
    pub fn loop_backing(&self) -> Option<LoopBacking> {
        let number = |file: &str| self.says(file)?.parse().ok();
        Some(LoopBacking {
            file: PathBuf::from(self.says("loop/backing_file")?),
            offset_bytes: number("loop/offset")?,
            size_limit_bytes: number("loop/sizelimit")?,
            direct: self.says("loop/dio").as_deref() == Some("1"),
        })
    }
}

/// What a loop device stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopBacking {
    /// The file, as the kernel names it; a file that was removed has ` (deleted)` behind its name.
    pub file: PathBuf,
    /// Where the range begins.
    pub offset_bytes: u64,
    /// Its length; 0 for all the rest.
    pub size_limit_bytes: u64,
    /// Whether it passes by the page cache.
    pub direct: bool,
}

/// The number of the device that the kernel calls so, partitions among them.
pub fn number_of_name(tree: &SystemTree, name: &str) -> Option<DeviceNumber> {
    text(&tree.sys.join("class/block").join(name).join("dev"))?
        .parse()
        .ok()
}

/// Devices that file systems of several devices have taken, by file system: btrfs names but one of them in the mount
/// table.
pub fn btrfs_members(tree: &SystemTree) -> Vec<(String, Vec<String>)> {
    let top = tree.sys.join("fs/btrfs");
    names(&top)
        .into_iter()
        .map(|id| {
            let members = names(&top.join(&id).join("devices"));
            (id, members)
        })
        .filter(|(_, members)| !members.is_empty())
        .collect()
}

/// Names under `/dev/disk/by-id` that udev makes from what is on a device, not from what it is.
const NAMES_OF_CONTENT: &str = "lvm-pv-uuid-";

/// The names under `/dev/disk/by-id` that mean this device.
pub fn by_id_names(tree: &SystemTree, name: &str) -> Vec<String> {
    let directory = tree.dev.join("disk/by-id");
    names(&directory)
        .into_iter()
        .filter(|id| !id.starts_with(NAMES_OF_CONTENT))
        .filter(|id| kernel_name_of_link(&directory.join(id)).as_deref() == Some(name))
        .collect()
}

fn kernel_name_of_link(link: &Path) -> Option<String> {
    let target = std::fs::read_link(link).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}
