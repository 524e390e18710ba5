//! What a calibration came to, as a page shows it. The program fills it in from what it measured: reports know neither
//! devices nor access paths.

/// What the page shows; texts are for people, times in microseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CalibrationSheet {
    /// The answer in a line.
    pub headline: String,
    /// What was measured, a line for each target, and the day.
    pub context: Vec<String>,
    /// What weakens the figures, gravest first.
    pub cautions: Vec<String>,
    /// What was demanded, and what came of it.
    pub needs: Vec<NeedLine>,
    /// ORION's three lines.
    pub extremes: Vec<ExtremeLine>,
    /// Curves of small requests, then of large ones.
    pub curves: Vec<LimitCurve>,
    /// Latency at fixed rates.
    pub at_rates: Vec<RateLine>,
    /// The points of a run type of ORION's.
    pub matrix: Option<LoadMatrix>,
    /// Latencies of the best points.
    pub histograms: Vec<LatencyBars>,
    /// How long flushes take.
    pub flushes: Vec<FlushLine>,
    /// What else commits meet, in sentences.
    pub commits: Vec<String>,
    /// Whether flushes arrive, of each target.
    pub trust: Vec<TrustLine>,
    /// Whether a cache answered.
    pub cache: String,
    /// Figures of another program beside these.
    pub beside: Option<BesideTable>,
    /// What could not be known or done.
    pub notes: Vec<String>,
}

/// One of ORION's three figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtremeLine {
    /// What it is called.
    pub name: String,
    /// The figure with its unit.
    pub figure: String,
    /// Where it was reached.
    pub reached: String,
}

/// The points of one access path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitCurve {
    /// The access path.
    pub name: String,
    /// Why there are no points, or fewer than there should be.
    pub note: String,
    /// The access path without the way through the page cache: those of one method have one colour.
    pub method: String,
    /// Through the page cache.
    pub is_buffered: bool,
    /// Large requests, else small ones.
    pub is_large: bool,
    /// How long they are and where they lie, such as `8 KiB at random`.
    pub requests: String,
    /// In rising depth.
    pub points: Vec<LimitPoint>,
    /// The depth of the best point of all, where it is of this curve.
    pub best_depth: Option<u32>,
}

/// A point of a curve.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitPoint {
    /// Requests under way.
    pub depth: u32,
    /// Requests per second.
    pub iops: f64,
    /// Megabytes per second.
    pub mb_per_s: f64,
    /// Mean time.
    pub mean_us: f64,
    /// Half took no longer.
    pub p50_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// The same of requests that wrote; `None` without any.
    pub write_p99_us: Option<f64>,
    /// Its mean was not known well enough in its time.
    pub is_unsteady: bool,
}

/// Reads that came at a rate; times count from when each was due.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateLine {
    /// Reads due per second.
    pub rate_per_s: f64,
    /// Half took no longer.
    pub p50_us: f64,
    /// 99 of 100 took no longer; `None` of fewer than 100 reads.
    pub p99_us: Option<f64>,
    /// The rate was kept up.
    pub is_kept_up: bool,
}

/// Points of small and large requests together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadMatrix {
    /// The run type, and what its requests are.
    pub title: String,
    /// The points.
    pub cells: Vec<LoadCell>,
}

/// A point of a matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadCell {
    /// Small requests under way.
    pub small: u32,
    /// Large requests or streams under way.
    pub large: u32,
    /// Small requests per second.
    pub iops: Option<f64>,
    /// Megabytes per second of large ones.
    pub mb_per_s: Option<f64>,
    /// Mean time of a small request.
    pub mean_us: Option<f64>,
}

/// Latencies of a point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyBars {
    /// Which point.
    pub name: String,
    /// Upper edge of each bucket, and how many fell into it.
    pub buckets: Vec<(f64, u64)>,
}

/// Flushes by this many writers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlushLine {
    /// How writes became durable.
    pub name: String,
    /// Threads that write and flush.
    pub writers: u32,
    /// Flushes per second, of all together.
    pub per_s: f64,
    /// Half took no longer.
    pub p50_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// A demand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NeedLine {
    /// As written.
    pub need: String,
    /// What came of it.
    pub answer: String,
    /// It is met.
    pub is_met: bool,
}

/// Whether the flushes of a target arrive.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrustLine {
    /// The answer in a word or two, and of which target.
    pub answer: String,
    /// Why.
    pub because: String,
    /// What lies beneath it, and what its flushes were compared with.
    pub witnesses: Vec<String>,
}

/// Figures of another program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BesideTable {
    /// The program, with its version.
    pub program: String,
    /// The points that both measured.
    pub lines: Vec<BesideLine>,
    /// What of it is not compared, and why.
    pub not_compared: Vec<String>,
}

/// A point that two programs measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BesideLine {
    /// The point.
    pub name: String,
    /// Requests per second: ours, the other's.
    pub iops: (f64, f64),
    /// Mean times: ours, the other's.
    pub mean_us: (Option<f64>, f64),
    /// 99 of 100 took no longer: ours, the other's.
    pub p99_us: (Option<f64>, Option<f64>),
}
