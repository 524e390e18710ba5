//! One point of a curve: requests of one kind and depth by one access path, held until they are steady. How the depth
//! is made is the access path's own: with `sync` a thread for each request, with slaves as many slaves, and with the
//! asynchronous methods a thread for every sixteen requests, as long as there are processors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand_core::RngCore;
use spindle_io::Arena;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, FileDevice, Identified, Method};
use spindle_stats::LatencyHistogram;

use crate::coverage::CoverageCounts;
use crate::draw::{Draw, NextRequest, fresh_seed};
use crate::error::CalibrateError;
use crate::figures::{DeviceShare, Point, What, WriteFigures};
use crate::observe::{Observed, Tally, Timing, observe};
use crate::read_so_far::ReadSoFar;
use crate::slots::RequestPath;
use crate::target::ReadyTarget;
use crate::unit::{Unit, UnitShape};

/// Requests of an asynchronous method that one thread keeps under way before there is a second.
const DEPTH_PER_THREAD: u32 = 16;
/// Buckets of a histogram that is kept, for each factor of ten.
const BUCKETS_PER_DECADE: f64 = 20.0;

/// What is measured, and how.
pub(crate) struct Bench<'a> {
    pub(crate) targets: &'a [ReadyTarget],
    pub(crate) shape: UnitShape,
    /// Of requests, unless [`Bench::through`] says another.
    pub(crate) caching: Caching,
    /// Where small requests lay.
    pub(crate) coverage: Arc<CoverageCounts>,
    /// Of 100 requests, how many write.
    pub(crate) write_percent: u32,
    /// Set when the measurement is to end.
    pub(crate) interrupted: &'a AtomicBool,
}

/// Targets that are open for writing, once for all threads; `None` for those that are only read.
pub(crate) type Opened = Vec<Option<Identified>>;

/// A load on a [`Bench`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointLoad {
    pub(crate) what: What,
    pub(crate) method: Method,
    pub(crate) depth: u32,
}

impl What {
    /// Bytes of one request.
    pub(crate) fn length_bytes(self) -> u64 {
        match self {
            What::SmallRandom => 8 << 10,
            What::LargeSequential => 1 << 20,
        }
    }
}

impl PointLoad {
    /// Requests under way for each thread.
    pub(crate) fn threads(self) -> Vec<u32> {
        let count = if self.method.is_asynchronous() {
            (self.depth / DEPTH_PER_THREAD).clamp(1, processors())
        } else if self.method.has_slaves() {
            1
        } else {
            self.depth
        };
        (0..count)
            .map(|thread| self.depth / count + u32::from(thread < self.depth % count))
            .collect()
    }
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

impl Bench<'_> {
    /// Holds the load until it is steady. Also what the devices' counters say of it, where all are known.
    ///
    /// # Errors
    /// A device cannot be opened, a request failed, or the system refuses memory or threads.
    pub(crate) fn measure(
        &self,
        load: PointLoad,
        timing: Timing,
    ) -> Result<(Point, Option<DeviceShare>), CalibrateError> {
        let (observed, device) = self.hold(load, timing)?;
        Ok((point_of(load, &observed), device))
    }

    /// As [`Bench::measure`], and all that was observed.
    ///
    /// # Errors
    /// See there.
    pub(crate) fn hold(
        &self,
        load: PointLoad,
        timing: Timing,
    ) -> Result<(Observed, Option<DeviceShare>), CalibrateError> {
        let length_bytes = load.what.length_bytes();
        let arena = Arena::new(length_bytes as usize, load.depth as usize)?;
        let unit = self.open(load, &self.open_to_write()?)?;
        let tally = Tally::new();
        let before = self.counters();
        let how = Holding {
            load,
            timing,
            write_percent: self.write_percent,
            coverage: &self.coverage,
            interrupted: self.interrupted,
        };
        let observed = how.hold(RequestPath::to(&unit), &arena, &tally)?;
        let device = self.share_since(before, tally.done_reads() * length_bytes);
        self.go_on()?;
        Ok((observed, device))
    }

    /// Ends it when that was asked for.
    ///
    /// # Errors
    /// [`CalibrateError::Interrupted`].
    pub(crate) fn go_on(&self) -> Result<(), CalibrateError> {
        CalibrateError::if_asked(self.interrupted)
    }

    /// Opens what may be written, when there is anything to write.
    pub(crate) fn open_to_write(&self) -> Result<Opened, CalibrateError> {
        let open = |target: &ReadyTarget| match self.write_percent {
            0 => Ok(None),
            _ => target.to_mix().map(Some),
        };
        self.targets.iter().map(open).collect()
    }

    pub(crate) fn open(&self, load: PointLoad, opened: &Opened) -> Result<Unit, CalibrateError> {
        let queue = load.method.open(load.depth as usize)?;
        let open = |(target, opened): (&ReadyTarget, &Option<Identified>)| match opened {
            Some(opened) => Ok(FileDevice::on_identified(opened, queue.clone())?),
            None => target.to_read(self.caching, queue.clone()),
        };
        let devices = self.targets.iter().zip(opened).map(open);
        let devices = devices.collect::<Result<_, CalibrateError>>()?;
        Ok(Unit::new(devices, self.shape.clone()))
    }

    /// What the devices beneath have read so far; `None` unless all of them tell.
    pub(crate) fn counters(&self) -> Option<ReadSoFar> {
        ReadSoFar::of(self.targets)
    }

    /// What they have read since then, beside what was asked for.
    pub(crate) fn share_since(
        &self,
        before: Option<ReadSoFar>,
        asked_bytes: u64,
    ) -> Option<DeviceShare> {
        Some(self.counters()?.share_since(&before?, asked_bytes))
    }
}

/// How a load is held.
pub(crate) struct Holding<'a> {
    pub(crate) load: PointLoad,
    pub(crate) timing: Timing,
    pub(crate) write_percent: u32,
    pub(crate) coverage: &'a Arc<CoverageCounts>,
    pub(crate) interrupted: &'a AtomicBool,
}

impl Holding<'_> {
    /// Holds it this way, with buffers of `arena`.
    pub(crate) fn hold(
        &self,
        way: RequestPath<'_>,
        arena: &Arc<Arena>,
        tally: &Tally,
    ) -> Result<Observed, CalibrateError> {
        let load = self.load;
        let length_bytes = load.what.length_bytes();
        let places = way.capacity_bytes() / length_bytes;
        let (stop, cursor) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let threads = load.threads().into_iter().enumerate();
            let spawned = threads.map(|(lane, depth)| {
                let mut rng = seeded_rng(fresh_seed(), lane as u64);
                let (cursor, percent) = (&cursor, self.write_percent);
                let mut coverage = self.coverage.of_thread();
                let draw: Draw<'_> = Box::new(move || {
                    let offset = match load.what {
                        What::SmallRandom => {
                            let offset = rng.next_u64() % places * length_bytes;
                            coverage.count(offset);
                            offset
                        }
                        What::LargeSequential => {
                            cursor.fetch_add(1, Ordering::Relaxed) % places * length_bytes
                        }
                    };
                    NextRequest {
                        offset,
                        is_write: writes(&mut rng, percent),
                    }
                });
                let stop = &stop;
                let body = move || way.keep((arena, depth), draw, (tally, lane), stop);
                std::thread::Builder::new().spawn_scoped(scope, body)
            });
            // A thread that is refused stops those that there are.
            let spawned: Vec<_> = spawned.collect();
            if spawned.iter().any(Result::is_err) {
                stop.store(true, Ordering::Relaxed);
            }
            let observed = observe(tally, self.timing, &stop, self.interrupted);
            for thread in spawned {
                let thread = thread.map_err(CalibrateError::Thread)?;
                thread.join().expect("a reader does not panic")?;
            }
            Ok(observed)
        })
    }
}

/// Draws whether a request writes.
pub(crate) fn writes(rng: &mut impl RngCore, percent: u32) -> bool {
    percent > 0 && rng.next_u64() % 100 < u64::from(percent)
}

fn point_of(load: PointLoad, observed: &Observed) -> Point {
    let latencies = &observed.latencies;
    Point {
        depth: load.depth,
        iops: observed.per_s,
        mb_per_s: observed.per_s * load.what.length_bytes() as f64 / 1e6,
        mean_us: latencies.mean_us(),
        p50_us: latencies.p50_us(),
        p99_us: latencies.p99_us(),
        max_us: latencies.max_us(),
        is_steady: observed.is_steady,
        measured_s: observed.measured_s,
        requests: observed.count,
        writes: WriteFigures::of(observed),
        histogram: histogram(latencies),
    }
}

/// Buckets of equal factors, as upper edge in microseconds and count: enough to draw, and small enough to keep.
pub(crate) fn histogram(latencies: &LatencyHistogram) -> Vec<(f64, u64)> {
    let mut counts = BTreeMap::<i32, u64>::new();
    for (upper_ns, count) in latencies.to_buckets() {
        let upper_us = (upper_ns.max(1) as f64) / 1e3;
        let bucket = (upper_us.log10() * BUCKETS_PER_DECADE).ceil() as i32;
        *counts.entry(bucket).or_default() += count;
    }
    let edge = |bucket: i32| 10_f64.powf(f64::from(bucket) / BUCKETS_PER_DECADE);
    counts
        .into_iter()
        .map(|(bucket, count)| (edge(bucket), count))
        .collect()
}

impl WriteFigures {
    /// Writes among what was observed; `None` without any.
    pub(crate) fn of(observed: &Observed) -> Option<WriteFigures> {
        let latencies = &observed.write_latencies;
        let part = latencies.count() as f64 / observed.latencies.count().max(1) as f64;
        (latencies.count() > 0).then(|| WriteFigures {
            per_s: observed.per_s * part,
            mean_us: latencies.mean_us(),
            p50_us: latencies.p50_us(),
            p99_us: latencies.p99_us(),
            max_us: latencies.max_us(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spindle_io::real::{Delay, DelayedDevice};

    use super::*;

    #[test]
    fn so_many_of_a_hundred_requests_write() {
        let mut rng = seeded_rng(1, 1);
        let mut share = |percent| (0..10_000).filter(|_| writes(&mut rng, percent)).count();
        assert_eq!((share(0), share(100)), (0, 10_000));
        assert!((2_800..3_200).contains(&share(30)));
    }

    #[test]
    fn a_histogram_that_is_kept_holds_all_requests() {
        let mut latencies = LatencyHistogram::new();
        for ns in [90_000, 91_000, 2_000_000] {
            latencies.record_ns(ns);
        }
        let kept = histogram(&latencies);
        assert_eq!(kept.iter().map(|(_, count)| count).sum::<u64>(), 3);
        assert!(kept[0].0 >= 91.0 && kept[0].0 < 101.0, "{kept:?}");
    }

    /// What a device of a known latency takes. So long that what a busy machine adds is a small part of it.
    const LATENCY: Duration = Duration::from_millis(100);
    /// Sixty requests at depth 1: one more or less is a small part of them, too.
    const HELD: Duration = Duration::from_secs(6);
    /// Part of what is known by which what is found may be off.
    const OFF_MAX: f64 = 0.05;
    /// A busy machine may add more at times; it never removes.
    const LOOKS_MAX: usize = 10;

    /// By how much IOPS and mean time of a load are off, as parts of what they must be.
    fn off(file: &std::path::Path, load: PointLoad) -> f64 {
        let arena = Arena::new(8 << 10, load.depth as usize).unwrap();
        let queue = load.method.open(load.depth as usize).unwrap();
        let inner = FileDevice::open(file, Caching::Buffered, queue.clone()).unwrap();
        let delay = Delay {
            read_us: LATENCY.as_micros() as u64,
            ..Delay::default()
        };
        let device = DelayedDevice::new(Arc::new(inner), delay, &queue);
        let how = Holding {
            load,
            timing: Timing::fixed(HELD, 120),
            write_percent: 0,
            coverage: &CoverageCounts::new(1 << 20),
            interrupted: &AtomicBool::new(false),
        };
        let observed = how
            .hold(RequestPath::Device(&device), &arena, &Tally::new())
            .unwrap();
        let point = point_of(load, &observed);
        let iops = f64::from(load.depth) / LATENCY.as_secs_f64();
        let mean_us = LATENCY.as_micros() as f64;
        let part = |found: f64, known: f64| (found / known - 1.0).abs();
        part(observed.all_per_s, iops).max(part(point.mean_us, mean_us))
    }

    #[test]
    fn the_curve_of_a_device_of_known_latency_is_found() {
        let look = |method, depth| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
            let load = PointLoad {
                what: What::SmallRandom,
                method,
                depth,
            };
            let mut looks = Vec::new();
            while looks.len() < LOOKS_MAX && !looks.iter().any(|off| *off <= OFF_MAX) {
                looks.push(off(file.path(), load));
            }
            assert!(
                looks.iter().any(|off| *off <= OFF_MAX),
                "{method}, depth {depth}: off by {looks:?}"
            );
        };
        // They only wait, so they do so together.
        std::thread::scope(|scope| {
            for (method, depth) in [(Method::Sync, 1), (Method::Sync, 8), (Method::Slaves, 4)] {
                let look = &look;
                scope.spawn(move || look(method, depth));
            }
        });
    }

    #[test]
    fn the_threads_of_a_load_keep_its_depth() {
        for method in [Method::Sync, Method::Slaves, Method::Async, Method::Libaio] {
            for depth in [1, 2, 16, 33, 256] {
                let load = PointLoad {
                    what: What::SmallRandom,
                    method,
                    depth,
                };
                assert_eq!(
                    load.threads().iter().sum::<u32>(),
                    depth,
                    "{method} {depth}"
                );
            }
        }
    }
}
