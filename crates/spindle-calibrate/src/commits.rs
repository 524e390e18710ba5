//! What storage does to commits beyond the time of one flush: whether a durable write costs a flush of the whole cache,
//! what the page cache gains, what the first write to allocated space costs, how many commits one flush can serve, and
//! what a burst of writes leaves behind. For each target that may be written.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use serde::Serialize;
use spindle_io::real::Method;
use spindle_stats::fall;
use spindle_stats::median;
use spindle_system::block_device::DiskFacts;
use spindle_system::{Beneath, SystemTree};

use crate::below::Below;
use crate::coverage::CoverageCounts;
use crate::error::CalibrateError;
use crate::figures::{DurableBy, FellTo, Flushed, TargetKind, What};
use crate::flush::{self, WRITE_BYTES, WRITERS, Writers};
use crate::observe::Timing;
use crate::point::{Bench, PointLoad};
use crate::target::{ReadyTarget, nameless};
use crate::unit::UnitShape;

/// Commits that one flush serves. A commit is taken for 1 KiB of log: a few changed rows.
const COMMITS_PER_FLUSH: [u32; 4] = [8, 32, 128, 512];
const COMMIT_BYTES: usize = 1 << 10;
/// The log file that they go through.
const LOG_BYTES: u64 = 8 << 20;
/// Writes of 1 MiB under way in a burst, and samples of it.
const BURST_DEPTH: u32 = 8;
const BURST_SAMPLES: u32 = 40;
/// Flushes after a burst; of a turn of first writes.
const AFTER_BURST: u64 = 50;
const FIRST_WRITES: u64 = 50;
/// Turns of first writes and of others.
const TURNS: u64 = 3;

/// A figure that was measured in turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one.
    pub middle: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of some figures; `None` of none.
    fn of(figures: &[f64]) -> Option<Spread> {
        Some(Spread {
            middle: median(figures.iter().copied())?,
            least: figures.iter().copied().reduce(f64::min)?,
            most: figures.iter().copied().reduce(f64::max)?,
        })
    }
}

/// What commits meet on a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Commits {
    /// As written.
    pub target: String,
    /// The disks beneath, and whether each makes a single write durable (FUA); `None` where it does not say.
    pub fua: Vec<(String, Option<bool>)>,
    /// Writes made durable per second by one writer, through the page cache over direct ones; `None` where direct
    /// writes are refused.
    pub buffered_gain: Option<f64>,
    /// Median time of a flush after the first write to allocated space over that after an overwrite, of turns; `None`
    /// on devices, and where the file system does not allocate.
    pub first_write_ratio: Option<Spread>,
    /// Commits by one writer that gathers them.
    pub group: Vec<GroupCommits>,
    /// Writes without a flush for some seconds; `None` where only flushes were asked for.
    pub burst: Option<Burst>,
}

/// One writer that gathers commits: writes them through the page cache, flushes, and writes the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupCommits {
    /// Commits of 1 KiB that one flush serves.
    pub commits_per_flush: u32,
    /// Commits per second.
    pub commits_per_s: f64,
    /// Mean time of a write and its flush, microseconds.
    pub mean_us: f64,
    /// 99 of 100 took no longer, microseconds.
    pub p99_us: f64,
}

/// Direct writes of 1 MiB, and what flushes took afterwards.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Burst {
    /// How long it lasted, seconds.
    pub lasted_s: f64,
    /// Bytes written per second, in millions.
    pub mb_per_s: f64,
    /// Where it fell for good: a cache that was full.
    pub fell: Option<FellTo>,
    /// The first flush after it, microseconds.
    pub first_flush_us: f64,
    /// Median of the flushes after that, microseconds.
    pub p50_after_us: f64,
}

impl Commits {
    /// The most commits per second among group commits whose mean time is within a limit; the first of them, when none
    /// is.
    pub fn ceiling(&self, max_latency_us: f64) -> Option<&GroupCommits> {
        let within = |group: &&GroupCommits| group.mean_us <= max_latency_us;
        let best = self.group.iter().filter(within);
        let best = best.max_by(|a, b| a.commits_per_s.total_cmp(&b.commits_per_s));
        best.or(self.group.first())
    }
}

/// How long to watch, and when to end.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) usual: Timing,
    /// For what is looked at beside the usual.
    pub(crate) brief: Timing,
    /// `None` for no burst.
    pub(crate) burst: Option<Duration>,
    pub(crate) interrupted: &'a AtomicBool,
}

/// Measures flushes of a target in every way, and what else commits meet; `None` where it may not be written.
///
/// # Errors
/// The target cannot be opened, a request failed, or the system refuses memory or threads.
pub(crate) fn measure(
    target: &ReadyTarget,
    watch: Watch<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Option<(Vec<Flushed>, Commits)>, CalibrateError> {
    let Some(file) = target.writable() else {
        return Ok(None);
    };
    let path = target.target().path();
    let name = path.display().to_string();
    let ways = [
        (DurableBy::Fdatasync, watch.usual),
        (DurableBy::DirectFdatasync, watch.brief),
        (DurableBy::DirectDsync, watch.brief),
    ];
    let flushes = flushes(target, &ways, watch.interrupted, tell)?;
    tell(&format!("group commit on {name}"));
    let mut group = Vec::new();
    for commits in COMMITS_PER_FLUSH {
        group.extend(gathered(target, commits, watch)?);
    }
    let first_write_ratio = match target.target().kind() {
        TargetKind::Directory => first_write_ratio(path, file)?,
        TargetKind::File | TargetKind::Device => None,
    };
    let burst = match watch.burst {
        None => None,
        Some(time) => {
            tell(&format!("a burst of writes on {name}"));
            Some(burst(target, file, time, watch.interrupted)?)
        }
    };
    let commits = Commits {
        fua: fua(&SystemTree::default(), path),
        buffered_gain: buffered_gain(&flushes),
        first_write_ratio,
        group,
        burst,
        target: name,
    };
    Ok(Some((flushes, commits)))
}

/// Flushes of a control: as databases ask for them, and as a device with FUA spares them.
///
/// # Errors
/// See [`measure`].
pub(crate) fn of_control(
    control: &ReadyTarget,
    watch: Watch<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Flushed>, CalibrateError> {
    let ways = [
        (DurableBy::Fdatasync, watch.brief),
        (DurableBy::DirectDsync, watch.brief),
    ];
    flushes(control, &ways, watch.interrupted, tell)
}

/// In these ways, each for its time, by one writer and by many.
fn flushes(
    target: &ReadyTarget,
    ways: &[(DurableBy, Timing)],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Flushed>, CalibrateError> {
    let name = target.target().path().display().to_string();
    let mut flushes = Vec::new();
    for (by, timing) in ways {
        for count in WRITERS {
            tell(&format!("{by} on {name}, writers: {count}"));
            let writers = Writers::usual(*by, count);
            let observed = flush::measure(target, writers, *timing, interrupted)?;
            flushes.extend(observed.map(|of| Flushed::of(name.clone(), writers, &of)));
        }
    }
    Ok(flushes)
}

/// Through the page cache over direct, by one writer.
fn buffered_gain(flushes: &[Flushed]) -> Option<f64> {
    let per_s = |by| {
        let is_it = |flushed: &&Flushed| flushed.by == by && flushed.writers == WRITERS[0];
        Some(flushes.iter().find(is_it)?.flushes_per_s)
    };
    let direct = per_s(DurableBy::DirectFdatasync).filter(|per_s| *per_s > 0.0)?;
    Some(per_s(DurableBy::Fdatasync)? / direct)
}

fn gathered(
    target: &ReadyTarget,
    commits: u32,
    watch: Watch<'_>,
) -> Result<Option<GroupCommits>, CalibrateError> {
    let writers = Writers {
        by: DurableBy::Fdatasync,
        count: 1,
        write_bytes: commits as usize * COMMIT_BYTES,
        part_bytes: LOG_BYTES,
        with_write: true,
    };
    let observed = flush::measure(target, writers, watch.brief, watch.interrupted)?;
    Ok(observed.map(|observed| GroupCommits {
        commits_per_flush: commits,
        commits_per_s: observed.per_s * f64::from(commits),
        mean_us: observed.latencies.mean_us(),
        p99_us: observed.latencies.p99_us(),
    }))
}

/// Flushes after first writes and after overwrites, by turns; `None` where no space can be allocated.
fn first_write_ratio(directory: &Path, written: &File) -> Result<Option<Spread>, CalibrateError> {
    let fresh = nameless(directory)?;
    let bytes = TURNS * FIRST_WRITES * WRITE_BYTES as u64;
    if rustix::fs::fallocate(&fresh, FallocateFlags::empty(), 0, bytes).is_err() {
        return Ok(None);
    }
    fresh.sync_all()?;
    let mut ratios = Vec::new();
    for turn in 0..TURNS {
        let first = turn * FIRST_WRITES;
        let first_us = flush_each(&fresh, first..first + FIRST_WRITES)?;
        let again_us = flush_each(written, 0..FIRST_WRITES)?;
        let middle = |times_us: Vec<f64>| median(times_us.into_iter());
        let both = middle(first_us).zip(middle(again_us));
        ratios.extend(both.map(|(first, again)| first / again.max(0.1)));
    }
    Ok(Spread::of(&ratios))
}

/// Writes these blocks through the page cache and flushes after each: how long the flushes took, microseconds.
fn flush_each(file: &File, blocks: std::ops::Range<u64>) -> std::io::Result<Vec<f64>> {
    let mut block = vec![0; WRITE_BYTES];
    let mut times_us = Vec::new();
    for at in blocks {
        block[..8].copy_from_slice(&(at + 1).to_le_bytes());
        file.write_all_at(&block, at * WRITE_BYTES as u64)?;
        let began = Instant::now();
        rustix::fs::fdatasync(file)?;
        times_us.push(began.elapsed().as_nanos() as f64 / 1e3);
    }
    Ok(times_us)
}

fn burst(
    target: &ReadyTarget,
    file: &File,
    time: Duration,
    interrupted: &AtomicBool,
) -> Result<Burst, CalibrateError> {
    let bench = Bench {
        targets: std::slice::from_ref(target),
        shape: UnitShape::one_after_the_other(std::iter::once(target.bytes())),
        caching: spindle_io::real::Caching::Direct,
        coverage: CoverageCounts::new(target.bytes()),
        write_percent: 100,
        interrupted,
    };
    let load = PointLoad {
        what: What::LargeSequential,
        method: Method::Sync,
        depth: BURST_DEPTH,
    };
    let timing = Timing::fixed(time, BURST_SAMPLES);
    let (observed, _) = bench.hold(load, timing)?;
    let began = Instant::now();
    file.sync_data()?;
    let first_flush_us = began.elapsed().as_nanos() as f64 / 1e3;
    let mb = load.what.length_bytes() as f64 / 1e6;
    Ok(Burst {
        lasted_s: time.as_secs_f64(),
        mb_per_s: observed.all_per_s * mb,
        fell: fall(&observed.rates).map(|fall| FellTo::of(fall, timing.sample, mb)),
        first_flush_us,
        p50_after_us: median(flush_each(file, 0..AFTER_BURST)?.into_iter()).unwrap_or_default(),
    })
}

/// What the disks beneath say of single durable writes.
fn fua(tree: &SystemTree, path: &Path) -> Vec<(String, Option<bool>)> {
    let disks = Below::of(&Beneath::of(tree, path)).disks;
    let of = |(name, number)| {
        let device = DiskFacts::describe(tree, number);
        (name, device.and_then(|device| device.fua))
    };
    let mut all: Vec<_> = disks.into_iter().flatten().map(of).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn commits(group: &[(u32, f64, f64)]) -> Commits {
        let of = |(commits_per_flush, commits_per_s, mean_us): &(u32, f64, f64)| GroupCommits {
            commits_per_flush: *commits_per_flush,
            commits_per_s: *commits_per_s,
            mean_us: *mean_us,
            p99_us: *mean_us,
        };
        Commits {
            target: String::new(),
            fua: Vec::new(),
            buffered_gain: None,
            first_write_ratio: None,
            group: group.iter().map(of).collect(),
            burst: None,
        }
    }

    #[test]
    fn the_ceiling_is_the_most_commits_that_do_not_wait_too_long() {
        let found = commits(&[(8, 8e3, 1e3), (32, 3e4, 1.1e3), (512, 4e4, 1.3e4)]);
        let at = |limit_us| found.ceiling(limit_us).unwrap().commits_per_flush;
        assert_eq!((at(2e4), at(5e3), at(1.0)), (512, 32, 8));
        assert!(commits(&[]).ceiling(1.0).is_none());
    }

    #[test]
    fn first_writes_are_timed_beside_others_and_leave_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let written = tempfile::tempfile().unwrap();
        let ratio = first_write_ratio(directory.path(), &written).unwrap();
        assert!(ratio.is_none_or(|ratio| ratio.least > 0.0), "{ratio:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
