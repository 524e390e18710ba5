//! What a device did, and what a process asked of the system: one side of every trial's audit.

use std::path::Path;

use serde::{Deserialize, Serialize};
use spindle_io::LINUX_SECTOR_BYTES;

use super::DeviceNumber;
use super::block_device::directory_of;
use super::{SystemTree, names, number, text};

/// A block device's own counters since boot (Linux Documentation/block/stat.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Reads completed.
    pub reads: u64,
    /// Time that the completed reads were under way, all together, milliseconds.
    #[serde(default)]
    pub read_ms: u64,
    /// Reads that were merged into another before they reached the device.
    pub merged_reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Time that the completed writes were under way, all together, milliseconds.
    #[serde(default)]
    pub write_ms: u64,
    /// Writes that were merged into another before they reached the device.
    pub merged_writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Cache flushes completed; `None` before Linux 5.5. The kernel counts them for whole disks only, so a partition
    /// shows those of its disk.
    pub flushes: Option<u64>,
    /// Requests under way at the moment of reading.
    pub in_flight: u64,
    /// Time with at least one request under way.
    pub busy_ms: u64,
    /// Time that requests were under way, each counted for itself, milliseconds.
    #[serde(default)]
    pub queue_ms: u64,
}

impl DiskCounters {
    /// Reads the counters of a disk or partition from `/sys`, or else from `/proc/diskstats`; `None` if neither shows
    /// the device.
    pub fn read(files: &SystemTree, device: DeviceNumber) -> Option<DiskCounters> {
        directory_of(files, device)
            .and_then(|directory| from_sys(&directory))
            .or_else(|| from_diskstats(&files.proc_text("diskstats")?, device))
    }

    /// Whether the kernel keeps them: it may be told not to (`queue/iostats`), and devices of several paths count on
    /// each path alone, and so show nothing ever read.
    pub fn are_kept(files: &SystemTree, device: DeviceNumber) -> bool {
        let is_asked = directory_of(files, device)
            .is_none_or(|directory| number::<u8>(&directory.join("queue/iostats")) != Some(0));
        let counters = DiskCounters::read(files, device).filter(|_| is_asked);
        counters.is_some_and(|counters| counters.reads + counters.writes > 0)
    }

    /// The sum over several devices, for files spread over them; flushes are known if they are for all.
    pub fn total(devices: &[DiskCounters]) -> DiskCounters {
        let sum = |field: fn(&DiskCounters) -> u64| {
            devices.iter().map(field).fold(0, u64::saturating_add)
        };
        DiskCounters {
            reads: sum(|counters| counters.reads),
            read_ms: sum(|counters| counters.read_ms),
            merged_reads: sum(|counters| counters.merged_reads),
            read_bytes: sum(|counters| counters.read_bytes),
            writes: sum(|counters| counters.writes),
            write_ms: sum(|counters| counters.write_ms),
            merged_writes: sum(|counters| counters.merged_writes),
            written_bytes: sum(|counters| counters.written_bytes),
            flushes: devices.iter().try_fold(0_u64, |all, counters| {
                Some(all.saturating_add(counters.flushes?))
            }),
            in_flight: sum(|counters| counters.in_flight),
            busy_ms: sum(|counters| counters.busy_ms),
            queue_ms: sum(|counters| counters.queue_ms),
        }
    }

    /// Reads the eleven to seventeen numbers of one `stat` file.
    pub(super) fn parse(stat: &str) -> Option<DiskCounters> {
        let fields: Vec<u64> = stat
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        (fields.len() >= 11).then(|| DiskCounters {
            reads: fields[0],
            read_ms: fields[3],
            merged_reads: fields[1],
            read_bytes: fields[2].saturating_mul(LINUX_SECTOR_BYTES),
            writes: fields[4],
            write_ms: fields[7],
            merged_writes: fields[5],
            written_bytes: fields[6].saturating_mul(LINUX_SECTOR_BYTES),
            flushes: fields.get(15).copied(),
            in_flight: fields[8],
            busy_ms: fields[9],
            queue_ms: fields[10],
        })
    }

    /// What happened between an earlier snapshot and this one; `in_flight` stays that of this one.
    pub fn since(&self, earlier: &DiskCounters) -> DiskCounters {
        DiskCounters {
            reads: self.reads.saturating_sub(earlier.reads),
            read_ms: self.read_ms.saturating_sub(earlier.read_ms),
            merged_reads: self.merged_reads.saturating_sub(earlier.merged_reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            write_ms: self.write_ms.saturating_sub(earlier.write_ms),
            merged_writes: self.merged_writes.saturating_sub(earlier.merged_writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            flushes: self
                .flushes
                .zip(earlier.flushes)
                .map(|(now, then)| now.saturating_sub(then)),
            in_flight: self.in_flight,
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            queue_ms: self.queue_ms.saturating_sub(earlier.queue_ms),
        }
    }
}

/// The disks that stand on no other device and on no file; memory that looks like a disk is not among them.
pub fn whole_disks(files: &SystemTree) -> Vec<DeviceNumber> {
    let top = files.sys.join("block");
    let is_hardware = |name: &String| {
        let is_memory = ["zram", "ram", "nullb"]
            .iter()
            .any(|kind| name.starts_with(kind));
        let stands_on_another =
            name.starts_with("loop") || !names(&top.join(name).join("slaves")).is_empty();
        !is_memory && !stands_on_another
    };
    let found = names(&top).into_iter().filter(is_hardware);
    found
        .filter_map(|name| number(&top.join(name).join("dev")))
        .collect()
}

fn from_sys(directory: &Path) -> Option<DiskCounters> {
    let stat = |directory: &Path| DiskCounters::parse(&text(&directory.join("stat"))?);
    let mut counters = stat(directory)?;
    if directory.join("partition").exists() {
        counters.flushes = directory.parent().and_then(stat)?.flushes;
    }
    Some(counters)
}

/// Lines of `/proc/diskstats`: major, minor, name, then the fields of a `stat` file.
fn from_diskstats(diskstats: &str, device: DeviceNumber) -> Option<DiskCounters> {
    diskstats.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let major: u32 = words.next()?.parse().ok()?;
        let minor: u32 = words.next()?.parse().ok()?;
        words.next()?;
        let fields: Vec<&str> = words.collect();
        (DeviceNumber { major, minor } == device)
            .then(|| DiskCounters::parse(&fields.join(" ")))
            .flatten()
    })
}

/// What one process asked the system for (proc_pid_io(5)), all its threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIo {
    /// Bytes passed by read calls, from page cache or device. Reads through io_uring are not counted here.
    pub read_call_bytes: u64,
    /// Bytes passed by write calls.
    pub write_call_bytes: u64,
    /// Read calls.
    pub read_calls: u64,
    /// Write calls.
    pub write_calls: u64,
    /// Bytes fetched from storage on its behalf, read-ahead included.
    pub read_bytes: u64,
    /// Bytes it sent, or dirtied to be sent, to storage.
    pub written_bytes: u64,
    /// Of `written_bytes`, those whose pages were thrown away before they were written.
    pub cancelled_write_bytes: u64,
}

impl ProcessIo {
    /// Reads a process's counters; `None` if it does not exist or is not ours to look at.
    pub fn read(files: &SystemTree, process_id: u32) -> Option<ProcessIo> {
        ProcessIo::parse(&files.proc_text(&format!("{process_id}/io"))?)
    }

    /// Reads the counters of the process or thread of a directory in `/proc`.
    pub fn of_directory(process: &Path) -> Option<ProcessIo> {
        ProcessIo::parse(&text(&process.join("io"))?)
    }

    pub(super) fn parse(io: &str) -> Option<ProcessIo> {
        let field = |key| super::keyed_number(io, key);
        Some(ProcessIo {
            read_call_bytes: field("rchar")?,
            write_call_bytes: field("wchar")?,
            read_calls: field("syscr")?,
            write_calls: field("syscw")?,
            read_bytes: field("read_bytes")?,
            written_bytes: field("write_bytes")?,
            cancelled_write_bytes: field("cancelled_write_bytes")?,
        })
    }

    /// The sum of two.
    pub fn and(&self, other: &ProcessIo) -> ProcessIo {
        ProcessIo {
            read_call_bytes: self.read_call_bytes + other.read_call_bytes,
            write_call_bytes: self.write_call_bytes + other.write_call_bytes,
            read_calls: self.read_calls + other.read_calls,
            write_calls: self.write_calls + other.write_calls,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            cancelled_write_bytes: self.cancelled_write_bytes + other.cancelled_write_bytes,
        }
    }

    /// What was asked for between an earlier snapshot and this one.
    pub fn since(&self, earlier: &ProcessIo) -> ProcessIo {
        let difference = |now: u64, then: u64| now.saturating_sub(then);
        ProcessIo {
            read_call_bytes: difference(self.read_call_bytes, earlier.read_call_bytes),
            write_call_bytes: difference(self.write_call_bytes, earlier.write_call_bytes),
            read_calls: difference(self.read_calls, earlier.read_calls),
            write_calls: difference(self.write_calls, earlier.write_calls),
            read_bytes: difference(self.read_bytes, earlier.read_bytes),
            written_bytes: difference(self.written_bytes, earlier.written_bytes),
            cancelled_write_bytes: difference(
                self.cancelled_write_bytes,
                earlier.cancelled_write_bytes,
            ),
        }
    }
}

/// The share (0 to 1) of the bytes a tool read that the page cache answered, so that no device was asked: 1 - (bytes
/// fetched from storage) / (bytes read). Unused read-ahead makes it too small; a file system that fetches in another
/// process's name (FUSE, network) makes it too large. `None` when the tool read nothing.
pub fn page_cache_share_of_reads(tool_read_bytes: u64, process_read_bytes: u64) -> Option<f64> {
    (tool_read_bytes > 0)
        .then(|| (1.0 - process_read_bytes as f64 / tool_read_bytes as f64).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const DEVICE: DeviceNumber = DeviceNumber { major: 8, minor: 1 };
    const STAT: &str = "  100  5 1600 20 50 7 800 30  2 400 60  3 0 100 1  9 4\n";

    #[test]
    fn disks_are_what_stands_on_nothing_else() {
        let fixture = Fixture::empty();
        for (name, number) in [
            ("sda", "8:0"),
            ("loop0", "7:0"),
            ("zram0", "253:0"),
            ("dm-0", "252:0"),
        ] {
            fixture.write(&format!("sys/block/{name}/dev"), number);
        }
        fixture.write("sys/block/dm-0/slaves/sda/dev", "8:0");
        let sda = DeviceNumber { major: 8, minor: 0 };
        assert_eq!(whole_disks(&fixture.files()), [sda]);
    }

    #[test]
    fn counters_that_the_kernel_was_told_not_to_keep_are_none() {
        let fixture = Fixture::empty();
        fixture.write("sys/devices/sda1/stat", STAT);
        fixture.link("sys/dev/block/8:1", "sys/devices/sda1");
        assert!(DiskCounters::are_kept(&fixture.files(), DEVICE));
        fixture.write("sys/devices/sda1/queue/iostats", "0\n");
        assert!(!DiskCounters::are_kept(&fixture.files(), DEVICE));
        fixture.write("sys/devices/sda1/queue/iostats", "1\n");
        fixture.write("sys/devices/sda1/stat", "0 0 0 0 0 0 0 0 0 0 0");
        assert!(!DiskCounters::are_kept(&fixture.files(), DEVICE));
    }

    #[test]
    fn counters_come_from_sys_and_else_from_diskstats() {
        let fixture = Fixture::with(&[(
            "proc/diskstats",
            "   8 0 sda 1 1 1 1 1 1 1 1 1 1 1\n   8 1 sda1 11 0 22 0 33 0 44 0 5 6 0\n",
        )]);
        let old = DiskCounters::read(&fixture.files(), DEVICE).expect("in diskstats");
        assert_eq!((old.reads, old.writes, old.flushes), (11, 33, None));
        assert_eq!((old.in_flight, old.busy_ms), (5, 6));

        fixture.write("sys/devices/sda1/stat", STAT);
        fixture.link("sys/dev/block/8:1", "sys/devices/sda1");
        let counters = DiskCounters::read(&fixture.files(), DEVICE).expect("in sys");
        assert_eq!(
            counters,
            DiskCounters {
                reads: 100,
                read_ms: 20,
                merged_reads: 5,
                read_bytes: 1600 * 512,
                writes: 50,
                write_ms: 30,
                merged_writes: 7,
                written_bytes: 800 * 512,
                flushes: Some(9),
                in_flight: 2,
                busy_ms: 400,
                queue_ms: 60,
            }
        );
        let unknown = DeviceNumber {
            major: 0,
            minor: 45,
        };
        assert_eq!(DiskCounters::read(&fixture.files(), unknown), None);
    }

    #[test]
    fn a_partition_shows_the_flushes_of_its_disk() {
        let disk = "1 0 8 0 1 0 8 0 0 1 1 0 0 0 0 77 1";
        let fixture = Fixture::with(&[
            ("sys/devices/sda/stat", disk),
            ("sys/devices/sda/sda1/stat", STAT),
            ("sys/devices/sda/sda1/partition", "1"),
        ]);
        fixture.link("sys/dev/block/8:1", "sys/devices/sda/sda1");
        let counters = DiskCounters::read(&fixture.files(), DEVICE).expect("counters");
        assert_eq!((counters.reads, counters.flushes), (100, Some(77)));
    }

    #[test]
    fn a_total_knows_flushes_only_if_every_device_does() {
        let known = DiskCounters::parse(STAT).expect("counters");
        let unknown = DiskCounters {
            flushes: None,
            ..known
        };
        let both = DiskCounters::total(&[known, known]);
        assert_eq!((both.writes, both.flushes), (100, Some(18)));
        assert_eq!(DiskCounters::total(&[known, unknown]).flushes, None);
    }

    #[test]
    fn a_difference_keeps_the_requests_under_way() {
        let earlier = DiskCounters::parse(STAT).expect("counters");
        let later = DiskCounters {
            reads: 130,
            flushes: Some(12),
            in_flight: 1,
            ..earlier
        };
        let between = later.since(&earlier);
        assert_eq!((between.reads, between.writes), (30, 0));
        assert_eq!((between.flushes, between.in_flight), (Some(3), 1));
    }

    #[test]
    fn the_page_cache_share_is_what_storage_did_not_deliver() {
        assert_eq!(page_cache_share_of_reads(1000, 250), Some(0.75));
        assert_eq!(page_cache_share_of_reads(1000, 0), Some(1.0));
        assert_eq!(page_cache_share_of_reads(1000, 5000), Some(0.0));
        assert_eq!(page_cache_share_of_reads(0, 0), None);
    }

    #[test]
    fn a_process_counts_are_read_and_subtracted() {
        let io = |n: u64| {
            format!(
                "rchar: {n}\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n"
            )
        };
        let fixture = Fixture::with(&[("proc/9/io", &io(10))]);
        let earlier = ProcessIo::read(&fixture.files(), 9).expect("counters");
        fixture.write("proc/9/io", &io(25));
        let later = ProcessIo::read(&fixture.files(), 9).expect("counters");
        assert_eq!(later.since(&earlier).read_call_bytes, 15);
        assert_eq!(later.cancelled_write_bytes, 7);
        assert_eq!(ProcessIo::read(&fixture.files(), 8), None);
        assert_eq!(ProcessIo::parse("rchar: 1\n"), None);
    }
}
