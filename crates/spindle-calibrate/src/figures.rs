//! The words and figures that everything here speaks in: what a target is, what its requests are, a point, a flush. All
//! of the crate may use them, and they use nothing of it.

use std::time::Duration;

use serde::Serialize;
use spindle_io::real::{Caching, Method};
use spindle_stats::Fall;
use spindle_text::words;

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A file without a name is made in it, and goes again.
    Directory,
    /// An existing file, which is only read.
    File,
    /// A block device.
    Device,
}

/// What the requests of a point are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// 8 KiB at random places.
    SmallRandom,
    /// 1 MiB, one after the other.
    LargeSequential,
}

/// What ended a search while more requests still gained: more may be possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CutShort {
    /// The time was over.
    Time,
    /// Requests took longer than they may.
    Latency,
}

/// Writes among the requests of a point. They are not flushed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WriteFigures {
    /// Writes completed per second.
    pub per_s: f64,
    /// Mean time of a write, microseconds.
    pub mean_us: f64,
    /// Half of the writes took no longer, microseconds.
    pub p50_us: f64,
    /// 99 of 100 took no longer, microseconds.
    pub p99_us: f64,
    /// The longest, microseconds.
    pub max_us: f64,
}

/// A load, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Requests that are kept under way.
    pub depth: u32,
    /// Requests completed per second.
    pub iops: f64,
    /// Bytes moved per second, in millions.
    pub mb_per_s: f64,
    /// Mean time of a request, microseconds.
    pub mean_us: f64,
    /// Half of the requests took no longer, microseconds.
    pub p50_us: f64,
    /// 99 of 100 took no longer, microseconds.
    pub p99_us: f64,
    /// The longest, microseconds.
    pub max_us: f64,
    /// The throughput had come to a steady state (MSER-5), and its mean is known to 2 %.
    pub is_steady: bool,
    /// Seconds that the figures are of.
    pub measured_s: f64,
    /// Requests in these seconds.
    pub requests: u64,
    /// Those that wrote; `None` without any.
    pub writes: Option<WriteFigures>,
    /// Of the best points: upper edge of a bucket, microseconds, and requests in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(f64, u64)>,
}

/// A shorter hold falls by chance when other programs come. That of the usual time is longer.
pub(crate) const TELLING_HOLD_S: f64 = 5.0;

/// One of ORION's three figures, and the point where it was reached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extreme {
    /// How requests were handed over.
    pub method: Method,
    /// Whether they passed through the page cache.
    pub caching: Caching,
    /// The point, measured once more and for longer where time allowed.
    pub point: Point,
    /// Requests of the other size that were kept under way meanwhile, by a run type of ORION's.
    #[serde(skip_serializing_if = "is_none")]
    pub beside: u32,
    /// It was measured a second time, so that the best of many is not best by chance.
    pub is_confirmed: bool,
}

/// Whether there are none.
fn is_none(requests: &u32) -> bool {
    *requests == 0
}

/// A throughput that fell for good while a load was held: credit that ran out, or a cache that was full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FellTo {
    /// Time since the begin, seconds.
    pub after_s: f64,
    /// Median before it, in the unit of the throughput.
    pub before: f64,
    /// Median after it.
    pub after: f64,
}

impl FellTo {
    /// A fall in samples of this length, each counted `factor` times.
    pub(crate) fn of(fall: Fall, sample: Duration, factor: f64) -> FellTo {
        FellTo {
            after_s: sample.as_secs_f64() * fall.at as f64,
            before: fall.before * factor,
            after: fall.after * factor,
        }
    }
}

words! {
    /// How a write becomes durable.
    pub enum DurableBy {
        /// `fdatasync` after a write through the page cache.
        Fdatasync = "fdatasync",
        /// `fdatasync` after a direct write.
        DirectFdatasync = "direct_fdatasync",
        /// A direct write that is durable when it ends (RWF_DSYNC): one with FUA, where the device has that, else a
        /// write and a flush.
        DirectDsync = "direct_dsync",
    }
}

/// Writes of 8 KiB made durable one by one, in a file that was made or on a device that is written. Times are those of
/// the flush alone; where there is none (`direct_dsync`), of the write.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flushed {
    /// The target, as written.
    pub target: String,
    /// How writes became durable.
    pub by: DurableBy,
    /// Threads that write and flush.
    pub writers: u32,
    /// Flushes per second, of all together.
    pub flushes_per_s: f64,
    /// Mean time of a flush, microseconds.
    pub mean_us: f64,
    /// Half took no longer, microseconds.
    pub p50_us: f64,
    /// 99 of 100 took no longer, microseconds.
    pub p99_us: f64,
    /// The longest, microseconds.
    pub max_us: f64,
    /// See [`Point::is_steady`].
    pub is_steady: bool,
    /// Flushes measured.
    pub flushes: u64,
}

/// What a flush of a target is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Flushes reach a disk.
    Arrives,
    /// Flushes are acknowledged, and do not reach the disk beneath.
    Ignored,
    /// Memory keeps it, or a part of it.
    Memory,
    /// Nothing here tells.
    Unknown,
}

/// Whether reads were answered by memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cached {
    /// They were, in whole or in part: the figures are not the device's.
    Yes,
    /// A good part of a device that is only read holds nothing but zeros: what was never written needs no storage.
    Zeros,
    /// The device read what was asked for, and no faster the second time.
    NotSeen,
    /// Nothing here tells.
    Unknown,
}

impl Cached {
    /// Whether figures are not the device's, or may not be: something else answered reads.
    pub(crate) fn is_of_others(self) -> bool {
        match self {
            Cached::Yes | Cached::Zeros => true,
            Cached::NotSeen | Cached::Unknown => false,
        }
    }
}

/// What counters of devices say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceShare {
    /// Bytes that were asked for.
    pub asked_bytes: u64,
    /// Bytes that the devices of the targets read meanwhile, for whomever.
    pub device_bytes: u64,
    /// The same of the disks at the bottom, where those are others and known: a loop device reads a file, and a volume
    /// lies on disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_bytes: Option<u64>,
}

impl DeviceShare {
    /// Device over asked; 1 when every read reached the device and nothing else was read.
    pub fn ratio(&self) -> f64 {
        self.device_bytes as f64 / self.asked_bytes.max(1) as f64
    }

    /// The same of the disks at the bottom.
    pub fn disks_ratio(&self) -> Option<f64> {
        Some(self.disks_bytes? as f64 / self.asked_bytes.max(1) as f64)
    }
}
