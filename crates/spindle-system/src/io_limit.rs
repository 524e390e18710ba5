//! The limit of a layout: a control group that holds the processes in it to this many requests and bytes per second on
//! each of some devices. Throttles are the kernel's, per whole disk: those of a partition are its disk's.
//!
//! What they hold is what the group's own processes submit, and what a loop device does on their behalf. In version 1,
//! dirty pages that the kernel's flusher or another process writes belong to no group and pass unthrottled. So does a
//! file system's journal, and the flush that ends a durable direct write which was submitted asynchronously. Whether a
//! limit really holds must therefore be tried, and looked at after each trial: the caller's part, with
//! [`Rates::exceeded`] and [`held_to_account`]. Sources: Linux Documentation/admin-guide/cgroup-v1/blkio-controller.rst
//! and cgroup-v2.rst, "IO".

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_text::quantity::{KIB, TIB};
use spindle_text::settings;

use super::DeviceNumber;
use super::cgroup::{CgroupVersion, Hierarchy};
use super::disk::DiskCounters;
use super::own_group::{self, Controller, GroupsUnavailable, Refused};
use super::{SystemTree, number, text};

/// What is seen may exceed a limit by this share: clocks and counters are not read at one instant.
const TOLERANCE: f64 = 0.05;
/// The kernel grants I/O in slices of time, of which one may fall to either side of the time looked at
/// (`DFL_THROTL_SLICE` in block/blk-throttle.c, a tenth of a second).
const SLICE: Duration = Duration::from_millis(100);

/// A slower rate than the least would measure little more than itself. Version 1 control groups keep requests per
/// second in 32 bits: more than these wrap round, and the last means no limit.
const IOPS: RangeInclusive<u64> = 10..=1_000_000_000;
const BYTES_PER_S: RangeInclusive<u64> = 64 * KIB..=TIB;

settings! {
    /// Rates per second that are not to be exceeded on a device; `None` where there is no limit.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Rates {
        /// Reads per second.
        read_iops: Option<u64> = optional_number("read_iops", "none", IOPS),
        /// Writes per second. A flush is one, too, so that a durable write on a device without FUA counts as two; but
        /// not with asynchronous direct I/O, see below.
        write_iops: Option<u64> = optional_number("write_iops", "none", IOPS),
        /// Bytes read per second, a size such as `"40MiB"`.
        read_bps: Option<u64> = optional_size("read_bps", "none", BYTES_PER_S),
        /// Bytes written per second.
        write_bps: Option<u64> = optional_size("write_bps", "none", BYTES_PER_S),
    }
}

impl Rates {
    /// The first rate that what was `done` in `time` exceeded, beyond what measuring explains, in words such as `811
    /// writes per second where 500 are allowed`; `None` when all were kept.
    pub fn exceeded(&self, done: &DiskCounters, time: Duration) -> Option<String> {
        let counted = [
            (self.read_iops, done.reads, "reads"),
            (self.write_iops, done.writes, "writes"),
            (self.read_bps, done.read_bytes, "bytes read"),
            (self.write_bps, done.written_bytes, "bytes written"),
        ];
        counted.into_iter().find_map(|(limit, count, what)| {
            let limit = limit?;
            let allowed = limit as f64 * (1.0 + TOLERANCE) * (time + SLICE).as_secs_f64();
            let rate = count as f64 / time.as_secs_f64();
            (count as f64 > allowed)
                .then(|| format!("{rate:.0} {what} per second where {limit} are allowed"))
        })
    }

    /// The four files of version 1 and what each takes.
    fn version_1(&self) -> [(&'static str, Option<u64>); 4] {
        [
            ("blkio.throttle.read_iops_device", self.read_iops),
            ("blkio.throttle.write_iops_device", self.write_iops),
            ("blkio.throttle.read_bps_device", self.read_bps),
            ("blkio.throttle.write_bps_device", self.write_bps),
        ]
    }

    /// A line of `io.max` without the device.
    fn version_2(&self) -> String {
        let rates = [
            ("riops", self.read_iops),
            ("wiops", self.write_iops),
            ("rbps", self.read_bps),
            ("wbps", self.write_bps),
        ];
        let set = rates
            .iter()
            .filter_map(|(name, rate)| Some(format!("{name}={}", (*rate)?)));
        set.collect::<Vec<_>>().join(" ")
    }
}

/// What a group was charged with on a disk, in the words of the disk's own counters: requests and bytes, the rest is 0.
/// Read by a process for its own group; `None` where the kernel keeps no account.
pub fn charged_to_self(files: &SystemTree, disk: DeviceNumber) -> Option<DiskCounters> {
    if let Some(hierarchy) = Hierarchy::of_self(files, "blkio") {
        let figure = |file: &str, kind: &str| {
            let lines = text(&hierarchy.own.join(file))?;
            let words = format!("{disk} {kind} ");
            lines
                .lines()
                .find_map(|line| line.strip_prefix(&words)?.parse().ok())
        };
        let (requests, bytes) = (
            "blkio.throttle.io_serviced",
            "blkio.throttle.io_service_bytes",
        );
        return Some(DiskCounters {
            reads: figure(requests, "Read")?,
            writes: figure(requests, "Write")?,
            read_bytes: figure(bytes, "Read")?,
            written_bytes: figure(bytes, "Write")?,
            ..DiskCounters::default()
        });
    }
    let hierarchy = Hierarchy::of_self(files, "io")?;
    let account = text(&hierarchy.own.join("io.stat"))?;
    let start = format!("{disk} ");
    let line = account.lines().find_map(|line| line.strip_prefix(&start))?;
    let figure = |key: &str| {
        line.split_whitespace()
            .find_map(|pair| pair.strip_prefix(key)?.parse().ok())
    };
    Some(DiskCounters {
        reads: figure("rios=")?,
        writes: figure("wios=")?,
        read_bytes: figure("rbytes=")?,
        written_bytes: figure("wbytes=")?,
        ..DiskCounters::default()
    })
}

/// What is to be compared with a limit: what the device did, but of its writes only those charged to the group when
/// (nearly) all bytes written were. What else the device counts is then flushes, which carry no bytes and may be made
/// in the name of the kernel.
pub fn held_to_account(device: DiskCounters, charged: Option<DiskCounters>) -> DiskCounters {
    let writes = match charged {
        Some(charged)
            if charged.written_bytes as f64 * (1.0 + TOLERANCE) >= device.written_bytes as f64 =>
        {
            charged.writes
        }
        _ => device.writes,
    };
    DiskCounters { writes, ..device }
}

/// Why I/O cannot be limited here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLimit {
    /// No group of ours can have a limit.
    #[error(transparent)]
    Unavailable(#[from] GroupsUnavailable),
    /// There is nothing that a throttle could be set on.
    #[error("no block device {0} that could be limited is in /sys")]
    NoDevice(DeviceNumber),
}

/// Rates to which groups can be held on some devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoLimit {
    version: CgroupVersion,
    parent: PathBuf,
    /// Each disk once.
    disks: Vec<(DeviceNumber, Rates)>,
}

impl IoLimit {
    /// Finds the place for groups that are held to `rates` on each of `devices`, without changing anything. A partition
    /// stands for its disk.
    pub fn available(
        files: &SystemTree,
        rates: Rates,
        devices: &[DeviceNumber],
    ) -> Result<IoLimit, NoLimit> {
        let (version, parent) = own_group::parent_of_ours(files, Controller::BlockIo)?;
        let disk =
            |device: &DeviceNumber| whole_disk(files, *device).ok_or(NoLimit::NoDevice(*device));
        let mut disks = devices.iter().map(disk).collect::<Result<Vec<_>, _>>()?;
        disks.sort_unstable();
        disks.dedup();
        Ok(IoLimit {
            version,
            parent,
            disks: disks.into_iter().map(|disk| (disk, rates)).collect(),
        })
    }

    /// The whole disks that are limited, and to what.
    pub fn disks(&self) -> &[(DeviceNumber, Rates)] {
        &self.disks
    }

    /// What this and the other one hold, together. Error: a disk that they hold to different rates, since a disk is one
    /// device for the kernel, whatever lies on it.
    pub fn and(mut self, other: &IoLimit) -> Result<IoLimit, DeviceNumber> {
        for (disk, rates) in &other.disks {
            match self.disks.iter().find(|(held, _)| held == disk) {
                Some((_, same)) if same == rates => {}
                Some(_) => return Err(*disk),
                None => self.disks.push((*disk, *rates)),
            }
        }
        Ok(self)
    }

    /// Moves a process into a group that is held to the rates. In version 2 a process is in one group only:
    /// `memory_group` is the one that holds its memory, if there is one, and that is then limited, too.
    pub fn hold(
        &self,
        process_id: u32,
        memory_group: Option<(CgroupVersion, &Path)>,
    ) -> Result<IoGroup, Refused> {
        let (parent, shared) = match memory_group {
            Some((CgroupVersion::V2, path)) if self.version == CgroupVersion::V2 => {
                (path.parent().unwrap_or(&self.parent), Some(path))
            }
            _ => (self.parent.as_path(), None),
        };
        if self.version == CgroupVersion::V2 {
            own_group::hand_down(parent, "io")?;
        }
        let group = IoGroup {
            path: match shared {
                Some(path) => path.to_path_buf(),
                None => own_group::create_in(parent)?,
            },
            is_own: shared.is_none(),
            limit: self.clone(),
        };
        self.throttle(&group.path)?;
        if group.is_own {
            own_group::add_process(&group.path, process_id)?;
        }
        Ok(group)
    }

    fn throttle(&self, group: &Path) -> Result<(), Refused> {
        for (disk, rates) in &self.disks {
            if self.version == CgroupVersion::V2 {
                let line = format!("{disk} {}", rates.version_2());
                own_group::write(&group.join("io.max"), &line)?;
                continue;
            }
            for (file, rate) in rates.version_1() {
                if let Some(rate) = rate {
                    own_group::write(&group.join(file), &format!("{disk} {rate}"))?;
                }
            }
        }
        Ok(())
    }

    /// Of each disk, whatever became of the others; the first error.
    fn lift(&self, group: &Path) -> Result<(), Refused> {
        let mut lifted = Ok(());
        for (disk, rates) in &self.disks {
            if self.version == CgroupVersion::V2 {
                let line = format!("{disk} rbps=max wbps=max riops=max wiops=max");
                lifted = lifted.and(own_group::write(&group.join("io.max"), &line));
                continue;
            }
            for (file, rate) in rates.version_1() {
                if rate.is_some() {
                    let line = format!("{disk} 0");
                    lifted = lifted.and(own_group::write(&group.join(file), &line));
                }
            }
        }
        lifted
    }
}

/// The disk that a device is, or is a partition of.
pub fn whole_disk(files: &SystemTree, device: DeviceNumber) -> Option<DeviceNumber> {
    let directory = super::block_device::directory_of(files, device)?;
    if directory.join("partition").exists() {
        return number(&directory.parent()?.join("dev"));
    }
    Some(device)
}

/// A control group with a limit; one that Spindle made is removed when dropped, its processes having ended.
#[derive(Debug)]
pub struct IoGroup {
    path: PathBuf,
    is_own: bool,
    limit: IoLimit,
}

impl IoGroup {
    /// Lifts the limit: what the group's processes have asked for and was held back goes to the devices now. A process
    /// that was killed ends when that is done.
    ///
    /// # Errors
    /// The group does not take it.
    pub fn lift(&self) -> Result<(), Refused> {
        self.limit.lift(&self.path)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for IoGroup {
    fn drop(&mut self) {
        if self.is_own {
            // A group that cannot go now is found by `own_group::remove_leftovers` when its process has ended.
            let _ = own_group::patiently(|| fs::remove_dir(&self.path));
        }
    }
}

#[cfg(test)]
mod tests;
