//! A simulated disk, and its fault model.
//!
//! - A read sees every write that completed before it was submitted; the result of racing I/Os to the same bytes is the
//!   order of their completion.
//! - A completed write sits in a volatile cache. It is on stable storage when it was `durable` (FUA, O_DSYNC), or when a
//!   flush that was submitted after its completion has completed.
//! - A power cut takes each write that is not on stable storage (completed or in flight, durable or not) on its own: it is
//!   kept whole, lost, or torn: each aligned atomic unit of it is kept or lost. Since each is drawn on its own, later
//!   writes may survive earlier ones (reordering). Stable bytes never change, except under a torn write's own units.
//! - Not modelled yet, and so not proved against: decaying stable bytes, misdirected writes, errors returned by the disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use crate::device::{BlockDevice, Completer, Completion, Limits, Operation, Outcome, Request};
use crate::env::seeded_rng;
use crate::sim::executor::SimEnv;
use crate::sim::image::DiskImage;
use crate::sync::{Latch, assert_no_latch_held};

/// How long a simulated disk takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskTiming {
    /// Service time of a read, nanoseconds.
    pub read_ns: u64,
    /// Service time of a write into the cache, nanoseconds.
    pub write_ns: u64,
    /// What a flush, or a durable write's own flush, adds, nanoseconds.
    pub flush_ns: u64,
    /// Up to this much is added to each, drawn evenly, nanoseconds.
    pub jitter_ns: u64,
}

impl Default for DiskTiming {
    fn default() -> DiskTiming {
        DiskTiming {
            read_ns: 80_000,
            write_ns: 20_000,
            flush_ns: 100_000,
            jitter_ns: 40_000,
        }
    }
}

/// How a power cut treats writes that are not on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// Each on its own: kept, lost or torn, by this seed.
    Damage(u64),
    /// All of them are lost.
    LoseAll,
    /// All of them are kept (what a process crash does).
    KeepAll,
}

#[derive(Clone)]
struct UnstableWrite {
    offset: usize,
    bytes: Arc<[u8]>,
}

#[derive(Clone)]
struct Medium {
    /// What reads see.
    current: DiskImage,
    /// What a power cut cannot take.
    stable: DiskImage,
    /// Writes not on stable storage by number, oldest first; in flight or completed.
    unstable: BTreeMap<u64, UnstableWrite>,
    /// Numbers of the completed ones among them.
    completed: Vec<u64>,
    next_write: u64,
}

/// What the damage of a power cut depends on, besides its seed.
#[derive(Debug, Clone, Copy)]
struct Damage {
    /// Stream of chance: disks are damaged independently.
    stream: u64,
    /// Atomic write unit.
    unit_bytes: usize,
}

/// A disk at one moment of its life.
#[derive(Clone)]
pub struct DiskMoment {
    medium: Medium,
    damage: Damage,
}

impl DiskMoment {
    /// The bytes that a power cut at that moment leaves.
    pub fn image_after(&self, cut: PowerCut) -> DiskImage {
        self.medium.image_after(cut, self.damage)
    }
}

/// A simulated disk of one world.
pub struct SimDisk {
    name: String,
    number: u64,
    limits: Limits,
    timing: DiskTiming,
    env: Arc<SimEnv>,
    medium: Arc<Latch<Medium>>,
}

impl SimDisk {
    /// A disk holding `image`. `number` tells it from others in the trace; writes of up to `atomic_write_bytes`
    /// (a power of two), aligned to that, are never torn.
    pub fn new(
        env: Arc<SimEnv>,
        number: u64,
        image: DiskImage,
        atomic_write_bytes: u32,
        timing: DiskTiming,
    ) -> Arc<SimDisk> {
        let limits = Limits {
            capacity_bytes: image.capacity_bytes() as u64,
            alignment_bytes: 512,
            atomic_write_bytes,
        };
        let medium = Medium {
            current: image.clone(),
            stable: image,
            unstable: BTreeMap::new(),
            completed: Vec::new(),
            next_write: 0,
        };
        let medium = Arc::new(Latch::new(medium));
        Arc::new(SimDisk {
            name: format!("disk{number}"),
            number,
            limits,
            timing,
            env,
            medium,
        })
    }

    /// The bytes that are left after a power cut at this moment.
    pub fn image_after(&self, cut: PowerCut) -> DiskImage {
        self.medium.lock().image_after(cut, self.damage())
    }

    /// All that is needed to say later what a power cut at this moment would leave; shares its bytes with the disk.
    pub fn moment(&self) -> DiskMoment {
        DiskMoment {
            medium: self.medium.lock().clone(),
            damage: self.damage(),
        }
    }

    fn damage(&self) -> Damage {
        Damage {
            stream: self.number,
            unit_bytes: self.limits.atomic_write_bytes as usize,
        }
    }

    fn delay_ns(&self, operation: &Operation) -> u64 {
        let timing = &self.timing;
        let service_ns = match operation {
            Operation::Read(_) => timing.read_ns,
            Operation::Write { durable: true, .. } => timing.write_ns + timing.flush_ns,
            Operation::Write { durable: false, .. } => timing.write_ns,
            Operation::Flush => timing.flush_ns,
        };
        service_ns + self.env.device_chance() % (timing.jitter_ns + 1)
    }

    fn finish_later(&self, request: Request, write: Option<u64>, completer: Completer) {
        let delay_ns = self.delay_ns(&request.operation);
        let medium = Arc::clone(&self.medium);
        let covered = match request.operation {
            Operation::Flush => medium.lock().completed.clone(),
            _ => Vec::new(),
        };
        self.env.call_later(
            delay_ns,
            Box::new(move || {
                let mut operation = request.operation;
                medium
                    .lock()
                    .finish(request.offset as usize, &mut operation, write, &covered);
                completer.complete(Outcome {
                    result: Ok(()),
                    operation,
                });
            }),
        );
    }
}

impl Medium {
    fn image_after(&self, cut: PowerCut, damage: Damage) -> DiskImage {
        let mut chance = match cut {
            PowerCut::Damage(seed) => seeded_rng(seed, damage.stream),
            PowerCut::LoseAll => return self.stable.clone(),
            PowerCut::KeepAll => return self.current.clone(),
        };
        let mut image = self.stable.clone();
        for write in self.unstable.values() {
            match chance.next_u64() % 3 {
                0 => {}
                1 => image.write(write.offset, &write.bytes),
                _ => tear(&mut image, write, damage.unit_bytes, &mut chance),
            }
        }
        image
    }

    fn begin_write(&mut self, offset: usize, operation: &Operation) -> Option<u64> {
        let Operation::Write { from, .. } = operation else {
            return None;
        };
        let bytes = from.iter().flat_map(|hold| hold.iter().copied()).collect();
        let number = self.next_write;
        self.next_write += 1;
        self.unstable
            .insert(number, UnstableWrite { offset, bytes });
        Some(number)
    }

    fn finish(
        &mut self,
        offset: usize,
        operation: &mut Operation,
        write: Option<u64>,
        covered: &[u64],
    ) {
        match operation {
            Operation::Read(into) => {
                let mut at = offset;
                for hold in into {
                    self.current.read(at, hold);
                    at += hold.len();
                }
            }
            Operation::Write { durable, .. } => {
                let number = write.expect("a write was numbered when it began");
                let UnstableWrite { offset, bytes } = &self.unstable[&number];
                self.current.write(*offset, bytes);
                if *durable {
                    self.make_stable(&[number]);
                } else {
                    self.completed.push(number);
                }
            }
            Operation::Flush => {
                self.make_stable(covered);
                self.completed.retain(|number| !covered.contains(number));
            }
        }
    }

    fn make_stable(&mut self, numbers: &[u64]) {
        for number in numbers {
            // Another flush that covered it may have ended first.
            let Some(write) = self.unstable.remove(number) else {
                continue;
            };
            self.stable.write(write.offset, &write.bytes);
            // The cache holds one copy of a byte: an older write to it can no longer come back.
            for (_, older) in self.unstable.range_mut(..number) {
                older.supersede(&write);
            }
        }
    }
}

impl UnstableWrite {
    fn supersede(&mut self, newer: &UnstableWrite) {
        let start = self.offset.max(newer.offset);
        let end = (self.offset + self.bytes.len()).min(newer.offset + newer.bytes.len());
        if start < end {
            Arc::make_mut(&mut self.bytes)[start - self.offset..end - self.offset]
                .copy_from_slice(&newer.bytes[start - newer.offset..end - newer.offset]);
        }
    }
}

fn tear(
    image: &mut DiskImage,
    write: &UnstableWrite,
    unit: usize,
    chance: &mut Xoshiro256PlusPlus,
) {
    let end = write.offset + write.bytes.len();
    let mut at = write.offset;
    while at < end {
        let next = ((at / unit + 1) * unit).min(end);
        if chance.next_u64().is_multiple_of(2) {
            image.write(at, &write.bytes[at - write.offset..next - write.offset]);
        }
        at = next;
    }
}

impl BlockDevice for SimDisk {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        assert_no_latch_held();
        let bytes = request.bytes() as u64;
        assert!(
            request.offset + bytes <= self.limits.capacity_bytes,
            "an I/O beyond the end of {}",
            self.name
        );
        let kind = match request.operation {
            Operation::Read(_) => 1,
            Operation::Write { durable: false, .. } => 2,
            Operation::Write { durable: true, .. } => 3,
            Operation::Flush => 4,
        };
        let (completer, completion) = Completion::pending();
        if self.env.power_is_off() {
            return completion;
        }
        let write = self
            .medium
            .lock()
            .begin_write(request.offset as usize, &request.operation);
        if self
            .env
            .count_io(&[self.number, kind, request.offset, bytes])
        {
            self.finish_later(request, write, completer);
        }
        completion
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::device::Submission;
    use crate::sim::executor::World;

    fn write_two(durable: bool, flush: bool, cut: PowerCut) -> (u8, u8) {
        let mut world = World::new(7);
        let image = DiskImage::zeroed(4096);
        let disk = SimDisk::new(world.env(), 0, image, 512, DiskTiming::default());
        let writer = Arc::clone(&disk);
        world
            .run(async move {
                let arena = Arena::new(512, 2).unwrap();
                for (block, fill) in [(0u64, 1u8), (1, 2)] {
                    let frame = arena.allocate().unwrap();
                    frame.try_write().unwrap().fill(fill);
                    let hold = frame.try_read_hold().unwrap();
                    let request =
                        Request::write(block * 512, vec![hold], durable, Submission::Batched);
                    writer.submit(request).await.result.unwrap();
                }
                if flush {
                    writer.submit(Request::flush()).await.result.unwrap();
                }
            })
            .unwrap();
        let image = disk.image_after(cut);
        let mut bytes = [0; 1024];
        image.read(0, &mut bytes);
        (bytes[0], bytes[512])
    }

    #[test]
    fn only_flushed_or_durable_writes_survive() {
        assert_eq!(write_two(false, false, PowerCut::LoseAll), (0, 0));
        assert_eq!(write_two(false, true, PowerCut::LoseAll), (1, 2));
        assert_eq!(write_two(true, false, PowerCut::LoseAll), (1, 2));
        assert_eq!(write_two(false, false, PowerCut::KeepAll), (1, 2));
    }

    #[test]
    fn damage_loses_writes_in_any_order() {
        let seen: std::collections::BTreeSet<(u8, u8)> = (0..64)
            .map(|seed| write_two(false, false, PowerCut::Damage(seed)))
            .collect();
        assert_eq!(
            seen.into_iter().collect::<Vec<_>>(),
            vec![(0, 0), (0, 2), (1, 0), (1, 2)]
        );
    }
}
