//! A block device as `/sys` describes it: the settings that move results, what a partition is cut from, what a stacked
//! device stands on, what a loop device is backed by.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_io::LINUX_SECTOR_BYTES;

use super::{DeviceNumber, SystemTree, flag, number, text};

/// A tower of stacked devices is followed this far down; deeper ones are of no use to a reader.
const DEEPEST_STACK: u32 = 8;

/// A device's directory in `/sys`, free of links; `None` if the kernel has no such device.
pub(super) fn directory_of(files: &SystemTree, number: DeviceNumber) -> Option<PathBuf> {
    fs::canonicalize(files.sys.join("dev/block").join(number.to_string())).ok()
}

/// A block device and its settings. Everything but number and name is `None` where the kernel does not say.
/// Sources: Linux Documentation/ABI/stable/sysfs-block and Documentation/block/queue-sysfs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskFacts {
    /// Its number.
    pub number: DeviceNumber,
    /// Its kernel name, such as `sda1`.
    pub name: String,
    /// The whole disk, when this is a partition; queue settings below are the disk's.
    pub partition_of: Option<String>,
    /// Vendor of the disk (a PCI number for virtio).
    pub vendor: Option<String>,
    /// Model of the disk.
    pub model: Option<String>,
    /// Size of this device (of the partition, when it is one).
    pub size_bytes: Option<u64>,
    /// Whether the kernel takes it for a spinning disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Read-ahead of buffered reads.
    pub read_ahead_kib: Option<u64>,
    /// `write back` (volatile cache, flushes matter) or `write through`.
    pub write_cache: Option<String>,
    /// Requests the queue holds per direction.
    pub nr_requests: Option<u64>,
    /// 0 merges adjacent requests, 1 only simple merges, 2 none.
    pub nomerges: Option<u8>,
    /// Smallest unit of address and direct I/O.
    pub logical_sector_bytes: Option<u32>,
    /// Smallest unit the device writes without reading first.
    pub physical_sector_bytes: Option<u32>,
    /// Whether a write can be made durable without flushing the whole cache.
    pub fua: Option<bool>,
    /// Largest discard; 0 when the device has none.
    pub discard_max_bytes: Option<u64>,
    /// Largest write that is never torn; 0 when the device promises none.
    pub atomic_write_max_bytes: Option<u64>,
    /// The file or device behind a loop device.
    pub loop_backing_file: Option<String>,
    /// Whether a loop device reads and writes its file directly, past the page cache.
    pub loop_direct_io: Option<bool>,
    /// The whole device on which the file behind a loop device lies; `None` where the file, or one device beneath its
    /// file system, cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_file_device: Option<String>,
    /// The devices a stacked one (device-mapper, md) stands on.
    pub stands_on: Vec<DiskFacts>,
}

impl DiskFacts {
    /// Describes the device of that number; `None` if `/sys` does not show it.
    pub fn describe(files: &SystemTree, number: DeviceNumber) -> Option<DiskFacts> {
        DiskFacts::in_directory(files, &directory_of(files, number)?, number, DEEPEST_STACK)
    }

    fn in_directory(
        files: &SystemTree,
        directory: &Path,
        device: DeviceNumber,
        levels_left: u32,
    ) -> Option<DiskFacts> {
        let is_partition = directory.join("partition").exists();
        let disk = if is_partition {
            directory.parent()?
        } else {
            directory
        };
        let queue = |file: &str| disk.join("queue").join(file);
        let loop_backing_file = text(&disk.join("loop/backing_file"));
        Some(DiskFacts {
            number: device,
            name: name_of(directory)?,
            partition_of: if is_partition { name_of(disk) } else { None },
            vendor: text(&disk.join("device/vendor")),
            model: text(&disk.join("device/model")),
            size_bytes: number::<u64>(&directory.join("size"))
                .map(|sectors| sectors.saturating_mul(LINUX_SECTOR_BYTES)),
            rotational: flag(&queue("rotational")),
            scheduler: text(&queue("scheduler")).map(|all| chosen(&all).to_owned()),
            read_ahead_kib: number(&queue("read_ahead_kb")),
            write_cache: text(&queue("write_cache")),
            nr_requests: number(&queue("nr_requests")),
            nomerges: number(&queue("nomerges")),
            logical_sector_bytes: number(&queue("logical_block_size")),
            physical_sector_bytes: number(&queue("physical_block_size")),
            fua: flag(&queue("fua")),
            discard_max_bytes: number(&queue("discard_max_bytes")),
            atomic_write_max_bytes: number(&queue("atomic_write_max_bytes")),
            loop_direct_io: flag(&disk.join("loop/dio")),
            loop_file_device: loop_backing_file
                .as_deref()
                .and_then(|file| disk_beneath_file(files, Path::new(file))),
            loop_backing_file,
            stands_on: slaves(files, disk, levels_left),
        })
    }
}

/// The name of the whole device on which a file's file system lies.
fn disk_beneath_file(files: &SystemTree, file: &Path) -> Option<String> {
    let number = DeviceNumber::of_stat(fs::metadata(file).ok()?.dev());
    let directory = directory_of(files, number)?;
    match directory.join("partition").exists() {
        true => name_of(directory.parent()?),
        false => name_of(&directory),
    }
}

/// The devices named in `slaves/`, by name; none once the depth allowed is used up.
fn slaves(files: &SystemTree, disk: &Path, levels_left: u32) -> Vec<DiskFacts> {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(disk.join("slaves")) else {
        return Vec::new();
    };
    let mut devices: Vec<DiskFacts> = entries
        .filter_map(|entry| {
            let directory = fs::canonicalize(entry.ok()?.path()).ok()?;
            let number = number(&directory.join("dev"))?;
            DiskFacts::in_directory(files, &directory, number, levels_left)
        })
        .collect();
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    devices
}

fn name_of(directory: &Path) -> Option<String> {
    Some(directory.file_name()?.to_string_lossy().into_owned())
}

/// The choice in a list such as `none [mq-deadline] kyber`; the whole text when none is marked.
pub(super) fn chosen(list: &str) -> &str {
    list.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(list, |(choice, _)| choice)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    fn number_of(text: &str) -> DeviceNumber {
        text.parse().expect("a device number")
    }

    #[test]
    fn numbers_are_read_written_and_refused() {
        assert_eq!(number_of("254:16").to_string(), "254:16");
        assert_eq!(serde_json::to_string(&number_of("8:1")).unwrap(), "\"8:1\"");
        assert_eq!(
            serde_json::from_str::<DeviceNumber>("\"8:1\"").unwrap(),
            number_of("8:1")
        );
        for wrong in ["8", "8:", "a:1", "8:1:2", ""] {
            assert!(wrong.parse::<DeviceNumber>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_partition_takes_its_queue_from_its_disk_and_its_size_from_itself() {
        let fixture = Fixture::with(&[
            ("sys/devices/block/sda/size", "1000\n"),
            ("sys/devices/block/sda/device/model", "FAST DISK   \n"),
            (
                "sys/devices/block/sda/queue/scheduler",
                "none [mq-deadline] kyber\n",
            ),
            ("sys/devices/block/sda/queue/read_ahead_kb", "128\n"),
            ("sys/devices/block/sda/queue/write_cache", "write back\n"),
            ("sys/devices/block/sda/queue/rotational", "0\n"),
            ("sys/devices/block/sda/queue/fua", "1\n"),
            ("sys/devices/block/sda/sda1/partition", "1\n"),
            ("sys/devices/block/sda/sda1/size", "600\n"),
        ]);
        fixture.link("sys/dev/block/8:1", "sys/devices/block/sda/sda1");
        let device = DiskFacts::describe(&fixture.files(), number_of("8:1")).expect("a device");
        assert_eq!(device.name, "sda1");
        assert_eq!(device.partition_of.as_deref(), Some("sda"));
        assert_eq!(device.model.as_deref(), Some("FAST DISK"));
        assert_eq!(device.size_bytes, Some(600 * 512));
        assert_eq!(device.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(device.read_ahead_kib, Some(128));
        assert_eq!(device.write_cache.as_deref(), Some("write back"));
        assert_eq!(device.rotational, Some(false));
        assert_eq!(device.fua, Some(true));
        assert_eq!(device.nr_requests, None);
        assert_eq!(device.loop_backing_file, None);
    }

    #[test]
    fn a_stacked_device_lists_what_it_stands_on_and_a_ring_ends() {
        let fixture = Fixture::with(&[
            ("sys/devices/block/dm-0/size", "8\n"),
            ("sys/devices/block/sdb/dev", "8:16\n"),
            ("sys/devices/block/sda/sda2/dev", "8:2\n"),
            ("sys/devices/block/sda/sda2/partition", "2\n"),
            ("sys/devices/block/dm-0/dev", "253:0\n"),
        ]);
        fixture.link("sys/dev/block/253:0", "sys/devices/block/dm-0");
        fixture.link("sys/devices/block/dm-0/slaves/sdb", "sys/devices/block/sdb");
        fixture.link(
            "sys/devices/block/dm-0/slaves/sda2",
            "sys/devices/block/sda/sda2",
        );
        fixture.link(
            "sys/devices/block/sdb/slaves/dm-0",
            "sys/devices/block/dm-0",
        );
        let device = DiskFacts::describe(&fixture.files(), number_of("253:0")).expect("device");
        let names: Vec<&str> = device.stands_on.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["sda2", "sdb"]);
        assert_eq!(device.stands_on[0].partition_of.as_deref(), Some("sda"));
    }

    #[test]
    fn a_loop_device_names_its_file_and_mode() {
        let fixture = Fixture::with(&[
            (
                "sys/devices/block/loop0/loop/backing_file",
                "/data/disk image\n",
            ),
            ("sys/devices/block/loop0/loop/dio", "1\n"),
        ]);
        fixture.link("sys/dev/block/7:0", "sys/devices/block/loop0");
        let device = DiskFacts::describe(&fixture.files(), number_of("7:0")).expect("a device");
        assert_eq!(
            device.loop_backing_file.as_deref(),
            Some("/data/disk image")
        );
        assert_eq!(device.loop_direct_io, Some(true));
        assert_eq!(device.loop_file_device, None, "the file is not there");
    }

    #[test]
    fn a_loop_device_names_the_disk_beneath_its_file() {
        let fixture = Fixture::with(&[
            ("image", ""),
            ("sys/devices/block/sdb/sdb1/partition", "1\n"),
        ]);
        let image = fixture.path("image");
        let file = "sys/devices/block/loop0/loop/backing_file";
        fixture.write(file, &format!("{}\n", image.display()));
        fixture.link("sys/dev/block/7:0", "sys/devices/block/loop0");
        let beneath = DeviceNumber::of_stat(fs::metadata(&image).unwrap().dev());
        fixture.link(
            &format!("sys/dev/block/{beneath}"),
            "sys/devices/block/sdb/sdb1",
        );
        let device = DiskFacts::describe(&fixture.files(), number_of("7:0")).expect("a device");
        assert_eq!(device.loop_file_device.as_deref(), Some("sdb"));
    }

    #[test]
    fn an_unknown_number_gives_nothing() {
        assert_eq!(
            DiskFacts::describe(&Fixture::empty().files(), number_of("8:1")),
            None
        );
    }
}
