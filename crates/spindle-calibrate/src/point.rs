//! One point of a curve: reads of one kind and depth by one access path, held until they are steady. How the depth is
//! made is the access path's own: with `sync` a thread for each request, with slaves as many slaves, and with the
//! asynchronous methods a thread for every sixteen requests, as long as there are processors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, Method, Queue, RingConfig, block_on};
use spindle_io::{Arena, BlockDevice};

use crate::error::CalibrateError;
use crate::observe::{Observed, Tally, Timing, observe};
use crate::result::{DeviceShare, Point, What};
use crate::slots::{Draw, Slots};
use crate::target::Made;
use crate::unit::{Shape, Unit};
use spindle_system::SystemTree;
use spindle_system::disk::DiskCounters;

/// Requests of an asynchronous method that one thread keeps under way before there is a second.
const DEPTH_PER_THREAD: u32 = 16;

/// What is measured, and how.
pub(crate) struct Bench<'a> {
    pub(crate) targets: &'a [Made],
    pub(crate) shape: Shape,
    pub(crate) caching: Caching,
}

/// A load on a [`Bench`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) what: What,
    pub(crate) method: Method,
    pub(crate) depth: u32,
}

impl What {
    /// Bytes of one request.
    pub(crate) fn length_bytes(self) -> u64 {
        match self {
            What::SmallRandomReads => 8 << 10,
            What::LargeSequentialReads => 1 << 20,
        }
    }
}

impl Load {
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
        load: Load,
        timing: Timing,
    ) -> Result<(Point, Option<DeviceShare>), CalibrateError> {
        let length_bytes = load.what.length_bytes();
        let arena = Arena::new(length_bytes as usize, load.depth as usize)?;
        let unit = self.open(load, &arena)?;
        let places = self.shape.capacity_bytes() / length_bytes;
        let (tally, stop, cursor) = (Tally::new(), AtomicBool::new(false), AtomicU64::new(0));
        let before = self.counters();
        let observed = std::thread::scope(|scope| {
            let threads = load.threads().into_iter().enumerate();
            let spawned = threads.map(|(lane, depth)| {
                let draw: Draw<'_> = match load.what {
                    What::SmallRandomReads => {
                        let mut rng = seeded_rng(fresh_seed(), lane as u64);
                        Box::new(move || rng.next_u64() % places * length_bytes)
                    }
                    What::LargeSequentialReads => {
                        let cursor = &cursor;
                        Box::new(move || {
                            cursor.fetch_add(1, Ordering::Relaxed) % places * length_bytes
                        })
                    }
                };
                let device: &dyn BlockDevice = &unit;
                let slots = Slots::new(device, &arena, depth as usize, draw, (&tally, lane), &stop);
                let stop = &stop;
                let body =
                    move || block_on(slots).inspect_err(|_| stop.store(true, Ordering::Relaxed));
                std::thread::Builder::new().spawn_scoped(scope, body)
            });
            // A thread that is refused stops those that there are.
            let spawned: Vec<_> = spawned.collect();
            if spawned.iter().any(Result::is_err) {
                stop.store(true, Ordering::Relaxed);
            }
            let observed = observe(&tally, timing, &stop);
            for thread in spawned {
                thread?.join().expect("a reader does not panic")?;
            }
            Ok::<Observed, CalibrateError>(observed)
        })?;
        let device = before
            .zip(self.counters())
            .map(|(before, after)| DeviceShare {
                asked_bytes: tally.done() * length_bytes,
                device_bytes: after.since(&before).read_bytes,
            });
        Ok((point_of(load, &observed), device))
    }

    pub(crate) fn open(&self, load: Load, arena: &Arc<Arena>) -> Result<Unit, CalibrateError> {
        let queue = match load.method {
            Method::Async => {
                let ring = RingConfig::new().with_fixed_buffers(Arc::clone(arena));
                Queue::uring(Arc::new(ring))
            }
            method => method.open(load.depth as usize)?,
        };
        let devices = self
            .targets
            .iter()
            .map(|target| target.to_read(self.caching, queue.clone()));
        Ok(Unit {
            devices: devices.collect::<Result<_, _>>()?,
            shape: self.shape.clone(),
        })
    }

    /// The counters of all devices beneath, each once; `None` unless all are known.
    pub(crate) fn counters(&self) -> Option<DiskCounters> {
        let mut numbers: Vec<_> = self
            .targets
            .iter()
            .map(Made::device)
            .collect::<Option<_>>()?;
        numbers.sort_unstable();
        numbers.dedup();
        let files = SystemTree::default();
        let counters: Option<Vec<_>> = numbers
            .into_iter()
            .map(|number| DiskCounters::read(&files, number))
            .collect();
        Some(DiskCounters::total(&counters?))
    }
}

/// A seed that differs from point to point: the same places again would be answered by caches.
pub(crate) fn fresh_seed() -> u64 {
    static POINTS: AtomicU64 = AtomicU64::new(0);
    POINTS.fetch_add(1, Ordering::Relaxed) ^ (u64::from(std::process::id()) << 32)
}

fn point_of(load: Load, observed: &Observed) -> Point {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_load_keep_its_depth() {
        for method in [Method::Sync, Method::Slaves, Method::Async, Method::Libaio] {
            for depth in [1, 2, 16, 33, 256] {
                let load = Load {
                    what: What::SmallRandomReads,
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
