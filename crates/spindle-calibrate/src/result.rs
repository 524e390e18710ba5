//! What a calibration found, as programs read it (`--json`): figures with their units, and where each was reached.

use serde::{Serialize, Serializer};
use spindle_io::real::{Caching, Method};

use crate::cloud::{Bought, CloudFacts};
use crate::commits::Commits;
use crate::coverage::Coverage;
use crate::figures::{
    Cached, CutShort, DeviceShare, Extreme, FellTo, Flushed, Point, TargetKind, Trust, What,
    WriteFigures,
};
use crate::orion::{LargeType, Run};

/// A target, and what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetFacts {
    /// As written.
    pub path: String,
    /// What it is.
    pub kind: TargetKind,
    /// Bytes that were measured: of the file that was made, of the file, of the device.
    pub bytes: u64,
    /// Type of the file system; `None` for a device.
    pub file_system: Option<String>,
    /// The block device beneath; `None` where the kernel names none.
    pub device: Option<String>,
    /// Why none is named.
    pub device_unknown_because: Option<String>,
    /// Requests wrote to it, not only its flushes.
    pub is_written: bool,
}

/// The points of one access path, in rising depth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathCurve {
    /// How requests are handed over.
    pub method: Method,
    /// Whether they pass through the page cache.
    pub caching: Caching,
    /// What its requests are.
    pub what: What,
    /// The points.
    pub points: Vec<Point>,
    /// Why there are none, or fewer than there should be.
    pub note: Option<String>,
    /// What ended it before its knee was found; `None` when it was found.
    pub cut_short: Option<CutShort>,
}

/// Random reads of 8 KiB that came at a rate, answered or not; times count from when each was due.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatePoint {
    /// Reads asked for per second, with exponential gaps.
    pub rate_per_s: f64,
    /// Reads that were due per second while it was measured; chance makes few reads more or fewer than asked for.
    pub due_per_s: f64,
    /// Reads completed per second.
    pub iops: f64,
    /// At least 95 % of the reads that were due were completed.
    pub is_kept_up: bool,
    /// Mean time of a read, microseconds.
    pub mean_us: f64,
    /// Half of the reads took no longer, microseconds.
    pub p50_us: f64,
    /// 99 of 100 took no longer, microseconds; `None` of fewer than 100 reads.
    pub p99_us: Option<f64>,
    /// The longest, microseconds.
    pub max_us: f64,
    /// Reads measured.
    pub requests: u64,
}

/// A point of ORION's matrix, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MatrixPoint {
    /// Small requests that are kept under way.
    pub small: u32,
    /// Large requests, or streams of them.
    pub large: u32,
    /// Small requests completed per second; `None` without any.
    pub iops: Option<f64>,
    /// Bytes of large requests per second, in millions; `None` without any.
    pub mb_per_s: Option<f64>,
    /// Mean time of a small request, microseconds.
    pub mean_us: Option<f64>,
    /// Half of the small requests took no longer, microseconds.
    pub p50_us: Option<f64>,
    /// 99 of 100 small requests took no longer, microseconds.
    pub p99_us: Option<f64>,
    /// The longest small request, microseconds.
    pub max_us: Option<f64>,
    /// The same of large requests; `None` without any.
    pub large_mean_us: Option<f64>,
    /// Half of the large requests took no longer, microseconds.
    pub large_p50_us: Option<f64>,
    /// 99 of 100 large requests took no longer, microseconds.
    pub large_p99_us: Option<f64>,
    /// The longest large request, microseconds.
    pub large_max_us: Option<f64>,
    /// See [`Point::is_steady`], of both.
    pub is_steady: bool,
    /// Seconds that the figures are of.
    pub measured_s: f64,
    /// Requests in these seconds, of both.
    pub requests: u64,
    /// Small requests that wrote; `None` without any.
    pub small_writes: Option<WriteFigures>,
    /// Large requests that wrote; `None` without any.
    pub large_writes: Option<WriteFigures>,
    /// As [`Point::histogram`], of small requests; kept with the best points alone.
    #[serde(skip)]
    pub histogram: Vec<(f64, u64)>,
    /// The same of large requests.
    #[serde(skip)]
    pub large_histogram: Vec<(f64, u64)>,
}

/// What a run type of ORION's came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatrixResult {
    /// The run type.
    pub run: Run,
    /// How requests were handed over.
    pub method: Method,
    /// Length of small requests, bytes.
    pub size_small_bytes: u64,
    /// Length of large requests, bytes.
    pub size_large_bytes: u64,
    /// Where large requests lay.
    pub large_type: LargeType,
    /// The points, in the order in which they were measured.
    pub points: Vec<MatrixPoint>,
}

/// The point of the most requests per second, held for longer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// How requests were handed over.
    pub method: Method,
    /// Requests that were kept under way.
    pub depth: u32,
    /// How long, seconds.
    pub lasted_s: f64,
    /// Requests completed per second, over all of it.
    pub iops: f64,
    /// Where it fell for good.
    pub fell: Option<FellTo>,
}

/// Whether the flushes of a target arrive, and what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Honesty {
    /// The target, as written.
    pub target: String,
    /// The answer.
    pub trust: Trust,
    /// Why, in words.
    pub because: String,
    /// File systems and devices beneath it, from the top down.
    pub beneath: Vec<String>,
    /// Flushes of one writer, asked of the kernel; 0 for a target that is only read.
    pub flushes: u64,
    /// Flushes that the disks completed meanwhile, for whomever; writes, of disks without a volatile cache. `None` when
    /// the kernel does not count them.
    pub counted_by_disks: Option<u64>,
    /// Flushes beside those on the storage beneath; `None` when there is no place for it.
    pub control: Option<Control>,
    /// How that place was found, or why there is none.
    pub control_because: String,
}

/// Flushes of a target beside those in a control directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// The control directory.
    pub path: String,
    /// The fastest median of the control over the slowest of the target.
    pub times_sooner: f64,
    /// At least 3 times sooner: the target's flushes cannot have reached the control's disk.
    pub is_suspect: bool,
    /// The same in words, about the target.
    pub says: String,
    /// Median time of a flush in each turn: of the target and of the control, microseconds.
    pub turns_us: Vec<(f64, f64)>,
    /// Flush latency of the control, by one writer and by many.
    pub flushes: Vec<Flushed>,
}

/// A cache in the path of reads, and what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheFinding {
    /// The answer.
    pub cached: Cached,
    /// Why, in words.
    pub because: String,
    /// What the devices' counters say; `None` where the kernel does not tell.
    pub device: Option<DeviceShare>,
    /// Median time of blocks read for the first time over that of the same blocks read again.
    pub repeat_ratio: Option<f64>,
    /// Share of the blocks looked at that hold only zeros, 0 to 1; `None` where a file system says what was written.
    pub zero_share: Option<f64>,
    /// Share of what was measured that lies in the page cache afterwards, 0 to 1.
    pub resident_share: Option<f64>,
    /// Where small requests lay; `None` without any.
    pub coverage: Option<Coverage>,
}

/// What came of a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DemandAnswer {
    /// The figure is as demanded.
    Met,
    /// It is not.
    Missed,
    /// It was not measured, or it is memory's and not the device's.
    Unknown,
}

/// Why a demand is neither met nor missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotJudged {
    /// There is no such figure.
    #[error("it was not measured")]
    NotMeasured,
    /// More may be possible: the search for it was not over.
    #[error(
        "the time was over before the most was found, which may meet it; give more with --time"
    )]
    OutOfTime,
    /// Memory answered, and not the storage.
    #[error("reads were cached")]
    Cached,
    /// Zeros may have been read from nowhere.
    #[error("much of what was read holds only zeros")]
    Zeros,
    /// There is one time for both.
    #[error("the times of reads and writes are told together")]
    WithWrites,
    /// Their times say nothing about a disk.
    #[error("flushes do not reach a disk")]
    FlushesIgnored,
}

impl Serialize for NotJudged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A demand and its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// As written.
    pub need: String,
    /// The answer.
    pub answer: DemandAnswer,
    /// The figure: per second, millions of bytes per second, or microseconds; `None` when it is not known.
    pub found: Option<f64>,
    /// Whether that is a time.
    #[serde(skip)]
    pub is_time: bool,
    /// Why it is not known; `None` when it is.
    pub unknown_because: Option<NotJudged>,
}

impl Calibration {
    /// Whether this ended a search of such requests: any of its access paths may come to more.
    pub fn is_cut_short(&self, what: What, by: CutShort) -> bool {
        let of_limits = self.maximum_iops.as_ref().map(|most| most.caching);
        let mut curves = self.curves.iter();
        curves.any(|curve| {
            let is_of_limits = of_limits.is_none_or(|caching| curve.caching == caching);
            is_of_limits && curve.what == what && curve.cut_short == Some(by)
        })
    }
}

/// A point that both measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioComparisonRow {
    /// Its name, which is that of fio's job.
    pub name: String,
    /// Requests, or flushes, per second: ours and fio's.
    pub iops: (f64, f64),
    /// Ours over fio's.
    pub iops_ratio: f64,
    /// Mean time, microseconds: ours, which large requests of a matrix do not have, and fio's.
    pub mean_us: (Option<f64>, f64),
    /// Ours over fio's.
    pub mean_ratio: Option<f64>,
    /// 99 of 100 took no longer, microseconds: ours and fio's, where they are kept.
    pub p99_us: (Option<f64>, Option<f64>),
}

/// A job of fio's whose figures are not told or not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FioLeftOut {
    /// Its name.
    pub job: String,
    /// Why, in words.
    pub why: String,
}

/// All points that both measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioComparison {
    /// Of fio.
    pub version: String,
    /// The points.
    pub rows: Vec<FioComparisonRow>,
    /// Jobs of fio that are none of the points that were measured.
    pub not_compared: Vec<String>,
    /// Jobs of fio that are not compared for another reason.
    pub left_out: Vec<FioLeftOut>,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Of this document.
    pub format: u32,
    /// What was measured, as one unit.
    pub targets: Vec<TargetFacts>,
    /// Of 100 requests, how many wrote; 0 when all was only read.
    pub write_percent: u32,
    /// How long it took, seconds.
    pub took_s: f64,
    /// Points with a longer mean time than this do not count for the most requests, microseconds.
    pub max_latency_us: f64,
    /// ORION's "maximum small IOPS".
    pub maximum_iops: Option<Extreme>,
    /// ORION's "maximum large MB/s".
    pub maximum_mb_per_s: Option<Extreme>,
    /// ORION's "minimum small latency".
    pub minimum_latency: Option<Extreme>,
    /// The point of the most requests per second, held; `None` with a run type of ORION's.
    pub held: Option<Held>,
    /// Flush latency, of each target that may be written.
    pub flushes: Vec<Flushed>,
    /// What else commits meet there.
    pub commits: Vec<Commits>,
    /// Whether flushes arrive, of each target.
    pub honesty: Vec<Honesty>,
    /// What was demanded, and the answers.
    pub needs: Vec<Judged>,
    /// A cache in the path.
    pub cache: CacheFinding,
    /// Every point; empty with a run type of ORION's.
    pub curves: Vec<PathCurve>,
    /// Reads at fixed rates; empty with a run type of ORION's, with writes, and where time did not allow them.
    pub at_rates: Vec<RatePoint>,
    /// The points of a run type of ORION's; `None` without.
    pub matrix: Option<MatrixResult>,
    /// What the cloud says of its volumes; `None` where the machine is of no cloud, or was not to be asked.
    pub cloud: Option<CloudFacts>,
    /// What was bought, as far as it is known.
    pub bought: Bought,
    /// Figures of fio beside these; `None` where none were given.
    pub against: Option<FioComparison>,
    /// What could not be known or done, in words.
    pub notes: Vec<String>,
}
