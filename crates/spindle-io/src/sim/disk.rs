//! A simulated disk, and its fault model.
//!
//! Order and time
//! - A read sees every write that completed before it ended; what racing I/Os to the same bytes leave is the order of
//!   their completion.
//! - A disk serves a limited number of I/Os at once; others wait, first come, first served. Each takes a service time
//!   by its kind, and a jitter drawn from the world's seed. Size and place of an I/O do not matter.
//!
//! Power cuts
//! - A completed write sits in a volatile cache. It is on stable storage when it was `durable` (FUA, O_DSYNC), or when
//!   a flush that was submitted after its completion has completed.
//! - A power cut takes each write that is not on stable storage (completed or in flight, durable or not) on its own: it
//!   is kept whole, lost, or torn: each aligned atomic unit of it is kept or lost. Since each is drawn on its own,
//!   later writes may survive earlier ones (reordering). Stable bytes never change, except under a torn write's own
//!   units.
//! - The atomic unit is a sector of 512 bytes, or more for writes that ask for it, as the disk is told.
//! - [`PowerCut::Misdirect`] asks for worse: a write that is not on stable storage may also land, whole, somewhere else
//!   on the same disk, at any place aligned as its own, over stable bytes.
//!
//! I/O errors ([`IoFault`]): any I/O fails once, or it and all like it on that disk from then on. The error comes when
//! the I/O would have ended; devices promise all or an error, so a short transfer is an error, too.
//! - A failed read may have filled any number of sectors of its buffers.
//! - A failed write leaves its range unknown: old, new, or torn, and, even if it was durable, not on stable storage: a
//!   power cut may change it once more. Nothing outside the range changes.
//! - A failed flush takes each write that it covers on its own: it is stable after all; or lost at once, so that reads
//!   see the earlier contents; or still read, but lost at the next power cut. All of them are taken for clean: a later
//!   flush says yes and does nothing for them, as `fsync` of Linux does (Rebello et al., "Can Applications Recover from
//!   fsync Failures?", USENIX ATC 2020).
//!
//! Decay: [`SimDisk::decay`] and [`DiskImage::flip`] change bits of stable bytes.
//!
//! Not modelled, and so not proved against: writes acknowledged and never made (a disk that lies about flushes), reads
//! that return another place's bytes, misdirected writes without a power cut, misdirected writes that are torn as well,
//! writes that spoil their neighbours, decay that no test asks for, an I/O that never ends or takes very long while
//! others continue, a disk that vanishes or comes back smaller, and the cost of seeks and of transfers.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::{
    BlockDevice, Completer, Completion, Fault, IoError, IoFailure, IoOutcome, Limits, Operation,
    Request,
};
use crate::env::Env;
use crate::sim::executor::SimEnv;
use crate::sim::fault::{FailedIo, Fate, IoKind};
use crate::sim::image::DiskImage;
use crate::sim::medium::{Damage, Medium, Ticket};
use crate::sync::{Latch, assert_no_latch_held};

#[cfg(doc)]
use crate::sim::fault::IoFault;

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
    /// I/Os served at the same time, from 1; others wait for their turn.
    pub at_once: usize,
}

impl Default for DiskTiming {
    fn default() -> DiskTiming {
        DiskTiming {
            read_ns: 80_000,
            write_ns: 20_000,
            flush_ns: 100_000,
            jitter_ns: 40_000,
            at_once: 8,
        }
    }
}

/// How a power cut treats writes that are not on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// Each on its own: kept, lost or torn, by this seed.
    Damage(u64),
    /// Each on its own: kept, lost or torn, or written somewhere else on the same disk, by this seed.
    Misdirect(u64),
    /// All of them are lost.
    LoseAll,
    /// All of them are kept, those in flight as well (what the end of a process does on a machine that keeps running).
    KeepAll,
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
    /// For each I/O that can be served at the same time, when the last one given to it will have ended.
    free_at_ns: Latch<Vec<u64>>,
}

/// An I/O between its submission and its end.
struct UnderWay {
    request: Request,
    kind: IoKind,
    /// Of a write.
    ticket: Option<Ticket>,
    /// Of a flush: the writes it covers.
    covered: Vec<u64>,
}

impl SimDisk {
    /// A disk holding `image`. `number` tells it from others in the trace; writes of up to `atomic_write_bytes`
    /// (a power of two, at least 512), aligned to that, are never torn.
    pub fn new(
        env: Arc<SimEnv>,
        number: u64,
        image: DiskImage,
        atomic_write_bytes: u32,
        timing: DiskTiming,
    ) -> Arc<SimDisk> {
        assert!(
            atomic_write_bytes.is_power_of_two() && atomic_write_bytes >= 512,
            "an atomic unit of {atomic_write_bytes} bytes is not whole sectors"
        );
        let limits = Limits {
            capacity_bytes: image.capacity_bytes() as u64,
            alignment_bytes: 512,
            atomic_write_bytes,
        };
        Arc::new(SimDisk {
            name: format!("disk{number}"),
            number,
            limits,
            free_at_ns: Latch::new(vec![0; timing.at_once]),
            timing,
            env,
            medium: Arc::new(Latch::new(Medium::new(image))),
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

    /// Changes the bits of `mask` in the byte at `at`, on stable storage and for every later read.
    pub fn decay(&self, at: usize, mask: u8) {
        self.medium.lock().decay(at, mask);
    }

    fn damage(&self) -> Damage {
        Damage {
            stream: self.number,
            unit_bytes: self.limits.atomic_write_bytes as usize,
        }
    }

    fn service_ns(&self, kind: IoKind) -> u64 {
        let timing = &self.timing;
        let service_ns = match kind {
            IoKind::Read => timing.read_ns,
            IoKind::Write => timing.write_ns,
            IoKind::DurableWrite => timing.write_ns + timing.flush_ns,
            IoKind::Flush => timing.flush_ns,
        };
        service_ns + self.env.device_chance() % (timing.jitter_ns + 1)
    }

    /// How long from now until an I/O submitted now has ended: it takes the first of the free places, or of those that
    /// will be.
    fn delay_ns(&self, kind: IoKind) -> u64 {
        let (service_ns, now_ns) = (self.service_ns(kind), self.env.now());
        let mut free_at_ns = self.free_at_ns.lock();
        let place = free_at_ns.iter_mut().min().expect("at least one at once");
        *place = now_ns.max(*place) + service_ns;
        *place - now_ns
    }

    fn begin(&self, request: Request) -> UnderWay {
        let mut medium = self.medium.lock();
        let kind = IoKind::of(&request.operation);
        let covered = match kind {
            IoKind::Flush => medium.covered(),
            _ => Vec::new(),
        };
        UnderWay {
            kind,
            ticket: medium.begin_write(request.offset as usize, &request.operation),
            covered,
            request,
        }
    }

    fn end_later(&self, io: UnderWay, fails: Option<Xoshiro256PlusPlus>, to: Completer) {
        let delay_ns = self.delay_ns(io.kind);
        let end = self.ending(io, fails);
        self.env
            .call_later(delay_ns, Box::new(move || to.complete(end())));
    }

    /// What the end of an I/O does.
    fn ending(
        &self,
        mut io: UnderWay,
        fails: Option<Xoshiro256PlusPlus>,
    ) -> impl FnOnce() -> IoOutcome + Send + use<> {
        let medium = Arc::clone(&self.medium);
        let unit_bytes = self.damage().unit_bytes;
        let error = IoError::from(IoFailure {
            device: self.name.clone(),
            operation: io.kind.word(),
            offset: io.request.offset,
            bytes: io.request.bytes(),
            reason: "the simulated disk was told to fail".to_string(),
            fault: Fault::Other,
        });
        move || {
            let result = match fails {
                None => {
                    io.succeed(&mut medium.lock());
                    Ok(())
                }
                Some(mut chance) => {
                    io.fail(&mut medium.lock(), unit_bytes, &mut chance);
                    Err(error)
                }
            };
            IoOutcome {
                result,
                operation: io.request.operation,
            }
        }
    }

    /// As [`BlockDevice::submit`], but the I/O has ended when this returns, and took no time: so a synchronous method
    /// looks to the process that it blocks.
    pub fn submit_at_once(&self, request: Request) -> Completion {
        match self.take(request) {
            Some((io, Fate::Succeeds)) => Completion::ready(self.ending(io, None)()),
            Some((io, Fate::Fails(chance))) => Completion::ready(self.ending(io, Some(chance))()),
            Some((_, Fate::NeverEnds)) | None => Completion::pending().1,
        }
    }

    /// Takes a request in, unless the power is off.
    fn take(&self, request: Request) -> Option<(UnderWay, Fate)> {
        assert_no_latch_held();
        let (offset, bytes) = (request.offset, request.bytes() as u64);
        assert!(
            offset + bytes <= self.limits.capacity_bytes,
            "an I/O beyond the end of {}",
            self.name
        );
        if self.env.power_is_off() {
            return None;
        }
        let io = self.begin(request);
        let taken = FailedIo {
            disk: self.number,
            kind: io.kind,
        };
        let fate = self.env.count_io(taken, [offset, bytes]);
        Some((io, fate))
    }
}

impl UnderWay {
    fn succeed(&mut self, medium: &mut Medium) {
        let (offset, operation) = (self.request.offset as usize, &mut self.request.operation);
        match (operation, self.ticket) {
            (Operation::Read(into), _) => medium.finish_read(offset, into),
            (Operation::Flush, _) => medium.finish_flush(&self.covered),
            (Operation::Write { durable, .. }, ticket) => {
                let ticket = ticket.expect("a write was noted when it began");
                medium.finish_write(ticket, *durable);
            }
        }
    }

    fn fail(&mut self, medium: &mut Medium, unit_bytes: usize, chance: &mut Xoshiro256PlusPlus) {
        let (offset, operation) = (self.request.offset as usize, &mut self.request.operation);
        match (operation, self.ticket) {
            (Operation::Read(into), _) => medium.fail_read(offset, into, chance),
            (Operation::Flush, _) => medium.fail_flush(&self.covered, chance),
            (Operation::Write { .. }, ticket) => {
                let ticket = ticket.expect("a write was noted when it began");
                medium.fail_write(ticket, unit_bytes, chance);
            }
        }
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
        let (completer, completion) = Completion::pending();
        match self.take(request) {
            Some((io, Fate::Succeeds)) => self.end_later(io, None, completer),
            Some((io, Fate::Fails(chance))) => self.end_later(io, Some(chance), completer),
            Some((_, Fate::NeverEnds)) | None => {}
        }
        completion
    }
}

#[cfg(test)]
mod tests;
