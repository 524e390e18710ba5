//! One point of ORION's matrix: small random requests and large ones under way together, for a fixed time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand_core::RngCore;
use spindle_io::Arena;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, Method};

use crate::draw::{Draw, NextRequest, fresh_seed};
use crate::error::CalibrateError;
use crate::figures::{DeviceShare, Extreme, Point, What, WriteFigures};
use crate::observe::{Observed, Tally, Timing, observe};
use crate::orion::{LargeType, Orion};
use crate::point::{Bench, Opened, PointLoad, histogram, writes};
use crate::result::MatrixPoint;
use crate::slots::RequestPath;
use crate::unit::Unit;

/// Samples of a point; between two at least and at most.
const SAMPLES: u32 = 1000;
const SAMPLE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// Reads under way while a cache is filled with other blocks.
const WARM_DEPTH: u32 = 8;

/// Requests of one length.
struct Group {
    unit: Unit,
    arena: Arc<Arena>,
    /// Requests under way for each thread, and where they lie.
    threads: Vec<(u32, Draw<'static>)>,
    tally: Tally,
    stop: AtomicBool,
    length_bytes: u64,
}

impl Bench<'_> {
    /// Holds `small` requests and `large` ones, or streams of these, under way.
    ///
    /// # Errors
    /// See [`Bench::measure`].
    pub(crate) fn mix(
        &self,
        orion: &Orion,
        method: Method,
        (small, large): (u32, u32),
    ) -> Result<(MatrixPoint, Option<DeviceShare>), CalibrateError> {
        let (opened, percent) = (self.open_to_write()?, self.write_percent);
        let (small_bytes, large_bytes) = (orion.size_small_bytes, orion.size_large_bytes);
        self.replace_cache(orion, method, &opened)?;
        let mut groups = Vec::new();
        if small > 0 {
            groups.push(self.random(method, small, small_bytes, percent, &opened)?);
        }
        if large > 0 {
            groups.push(match orion.large_type {
                LargeType::Rand => self.random(method, large, large_bytes, percent, &opened)?,
                LargeType::Seq => self.streams(method, large, orion, &opened)?,
            });
        }
        let before = self.counters();
        let mut observed = hold(&mut groups, orion.duration, self.interrupted)?;
        self.go_on()?;
        let asked = groups
            .iter()
            .map(|group| group.tally.done_reads() * group.length_bytes);
        let share = self.share_since(before, asked.sum());
        let of_large = (large > 0).then(|| observed.pop()).flatten();
        let of_small = observed.pop();
        Ok((
            point_of(orion, (small, large), of_small.as_ref(), of_large.as_ref()),
            share,
        ))
    }

    /// Reads as much as a cache of the storage holds, so that it holds nothing of the point before.
    fn replace_cache(
        &self,
        orion: &Orion,
        method: Method,
        opened: &Opened,
    ) -> Result<(), CalibrateError> {
        if orion.cache_size_bytes == 0 {
            return Ok(());
        }
        let group = self.random(method, WARM_DEPTH, orion.size_large_bytes, 0, opened)?;
        let mut groups = [group];
        let wanted = orion.cache_size_bytes / orion.size_large_bytes;
        run(&mut groups, |groups| {
            let is_over =
                || groups[0].2.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed);
            while groups[0].1.done() < wanted && !is_over() {
                std::thread::sleep(SAMPLE.0);
            }
            groups[0].2.store(true, Ordering::Relaxed);
        })?;
        self.go_on()
    }

    fn group(
        &self,
        method: Method,
        depth: u32,
        length_bytes: u64,
        threads: Vec<(u32, Draw<'static>)>,
        opened: &Opened,
    ) -> Result<Group, CalibrateError> {
        let load = PointLoad {
            what: What::SmallRandom,
            method,
            depth,
        };
        let arena = Arena::new(length_bytes as usize, depth as usize)?;
        Ok(Group {
            unit: self.open(load, opened)?,
            arena,
            threads,
            tally: Tally::new(),
            stop: AtomicBool::new(false),
            length_bytes,
        })
    }

    fn random(
        &self,
        method: Method,
        depth: u32,
        length_bytes: u64,
        write_percent: u32,
        opened: &Opened,
    ) -> Result<Group, CalibrateError> {
        let places = self.shape.capacity_bytes() / length_bytes;
        let load = PointLoad {
            what: What::SmallRandom,
            method,
            depth,
        };
        let thread = |(lane, depth): (usize, u32)| {
            let mut rng = seeded_rng(fresh_seed(), lane as u64);
            let mut coverage = self.coverage.of_thread();
            let draw: Draw<'static> = Box::new(move || {
                let offset = rng.next_u64() % places * length_bytes;
                coverage.count(offset);
                NextRequest {
                    offset,
                    is_write: writes(&mut rng, write_percent),
                }
            });
            (depth, draw)
        };
        let threads = load.threads().into_iter().enumerate().map(thread);
        self.group(method, depth, length_bytes, threads.collect(), opened)
    }

    /// A thread for each stream; they begin at equal distances. As with ORION, a stream only reads or only writes.
    fn streams(
        &self,
        method: Method,
        streams: u32,
        orion: &Orion,
        opened: &Opened,
    ) -> Result<Group, CalibrateError> {
        let length_bytes = orion.size_large_bytes;
        let places = self.shape.capacity_bytes() / length_bytes;
        let stream = |stream: u32| {
            let mut at = u64::from(stream) * places / u64::from(streams);
            let is_write = stream_writes(stream, self.write_percent);
            let draw: Draw<'static> = Box::new(move || {
                at = (at + 1) % places;
                NextRequest {
                    offset: at * length_bytes,
                    is_write,
                }
            });
            (orion.num_stream_io, draw)
        };
        let depth = streams * orion.num_stream_io;
        self.group(
            method,
            depth,
            length_bytes,
            (0..streams).map(stream).collect(),
            opened,
        )
    }
}

/// Whether a stream writes: of the first `n`, `write_percent` of 100 do, rounded down.
pub(crate) fn stream_writes(stream: u32, write_percent: u32) -> bool {
    (stream + 1) * write_percent / 100 > stream * write_percent / 100
}

/// What is watched of a group, beside its place in the list.
type Watched<'a> = (usize, &'a Tally, &'a AtomicBool);

/// Runs the groups' threads while `watch` looks on; ends when it has told them all to stop.
fn run<T>(
    groups: &mut [Group],
    watch: impl FnOnce(&[Watched<'_>]) -> T,
) -> Result<T, CalibrateError> {
    std::thread::scope(|scope| {
        let mut spawned = Vec::new();
        let mut watched = Vec::new();
        for (index, group) in groups.iter_mut().enumerate() {
            let Group {
                unit,
                arena,
                threads,
                tally,
                stop,
                ..
            } = group;
            let (way, arena, tally, stop) = (RequestPath::to(unit), &*arena, &*tally, &*stop);
            for (lane, (depth, draw)) in std::mem::take(threads).into_iter().enumerate() {
                let body = move || way.keep((arena, depth), draw, (tally, lane), stop);
                spawned.push(std::thread::Builder::new().spawn_scoped(scope, body));
            }
            watched.push((index, tally, stop));
        }
        if spawned.iter().any(Result::is_err) {
            watched
                .iter()
                .for_each(|(_, _, stop)| stop.store(true, Ordering::Relaxed));
        }
        let seen = watch(&watched);
        for thread in spawned {
            let thread = thread.map_err(CalibrateError::Thread)?;
            thread.join().expect("a reader does not panic")?;
        }
        Ok(seen)
    })
}

/// Holds the groups' loads for a time, and watches each.
fn hold(
    groups: &mut [Group],
    duration: Duration,
    interrupted: &AtomicBool,
) -> Result<Vec<Observed>, CalibrateError> {
    let timing = Timing {
        sample: (duration / SAMPLES).clamp(SAMPLE.0, SAMPLE.1),
        least: duration,
        most: duration,
        requests: 0,
    };
    run(groups, |watched| {
        std::thread::scope(|scope| {
            let watch = |(_, tally, stop): &Watched<'_>| observe(tally, timing, stop, interrupted);
            let watchers: Vec<_> = watched
                .iter()
                .map(|one| scope.spawn(move || watch(one)))
                .collect();
            let seen = watchers
                .into_iter()
                .map(|one| one.join().expect("a watcher does not panic"));
            seen.collect()
        })
    })
}

fn point_of(
    orion: &Orion,
    (small, large): (u32, u32),
    of_small: Option<&Observed>,
    of_large: Option<&Observed>,
) -> MatrixPoint {
    let both = [of_small, of_large];
    let mut seen = both.iter().flatten();
    MatrixPoint {
        small,
        large,
        iops: of_small.map(|observed| observed.per_s),
        mb_per_s: of_large.map(|observed| observed.per_s * orion.size_large_bytes as f64 / 1e6),
        mean_us: of_small.map(|observed| observed.latencies.mean_us()),
        p50_us: of_small.map(|observed| observed.latencies.p50_us()),
        p99_us: of_small.map(|observed| observed.latencies.p99_us()),
        max_us: of_small.map(|observed| observed.latencies.max_us()),
        large_mean_us: of_large.map(|observed| observed.latencies.mean_us()),
        large_p50_us: of_large.map(|observed| observed.latencies.p50_us()),
        large_p99_us: of_large.map(|observed| observed.latencies.p99_us()),
        large_max_us: of_large.map(|observed| observed.latencies.max_us()),
        is_steady: seen.clone().all(|observed| observed.is_steady),
        measured_s: seen.next().map_or(0.0, |observed| observed.measured_s),
        requests: both.iter().flatten().map(|observed| observed.count).sum(),
        small_writes: of_small.and_then(WriteFigures::of),
        large_writes: of_large.and_then(WriteFigures::of),
        histogram: of_small.map_or_else(Vec::new, |observed| histogram(&observed.latencies)),
        large_histogram: of_large.map_or_else(Vec::new, |observed| histogram(&observed.latencies)),
    }
}

/// The point of the largest figure.
pub(crate) fn extreme_of(
    points: &[MatrixPoint],
    figure: &dyn Fn(&MatrixPoint) -> Option<f64>,
    is_small: bool,
    ((method, caching), orion): ((Method, Caching), &Orion),
) -> Option<Extreme> {
    let told = points
        .iter()
        .filter_map(|point| Some((figure(point)?, point)));
    let (_, best) = told.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (iops, mb_per_s) = match is_small {
        true => {
            let iops = best.iops?;
            (iops, iops * orion.size_small_bytes as f64 / 1e6)
        }
        false => {
            let mb_per_s = best.mb_per_s?;
            (mb_per_s * 1e6 / orion.size_large_bytes as f64, mb_per_s)
        }
    };
    let of_small = [best.mean_us, best.p50_us, best.p99_us, best.max_us];
    let of_large = [
        best.large_mean_us,
        best.large_p50_us,
        best.large_p99_us,
        best.large_max_us,
    ];
    let [mean_us, p50_us, p99_us, max_us] = if is_small { of_small } else { of_large };
    Some(Extreme {
        method,
        caching,
        point: Point {
            depth: if is_small { best.small } else { best.large },
            iops,
            mb_per_s,
            mean_us: mean_us?,
            p50_us: p50_us?,
            p99_us: p99_us?,
            max_us: max_us?,
            is_steady: best.is_steady,
            measured_s: best.measured_s,
            requests: best.requests,
            writes: match is_small {
                true => best.small_writes.clone(),
                false => best.large_writes.clone(),
            },
            histogram: match is_small {
                true => best.histogram.clone(),
                false => best.large_histogram.clone(),
            },
        },
        beside: if is_small { best.large } else { best.small },
        is_confirmed: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_reads_or_writes() {
        let writing = |streams, percent| {
            (0..streams)
                .filter(|stream| stream_writes(*stream, percent))
                .count()
        };
        assert_eq!((writing(4, 0), writing(4, 100)), (0, 4));
        assert_eq!((writing(4, 50), writing(10, 30), writing(1, 50)), (2, 3, 0));
    }
}
