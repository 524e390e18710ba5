//! What a simulated disk holds: the bytes that reads see, the bytes that a power cut cannot take, and the writes
//! between the two. The rules are those of the fault model at the head of [`super::disk`].

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use super::disk::PowerCut;
use super::image::DiskImage;
use crate::arena::WriteHold;
use crate::device::{Operation, WHOLE_SECTOR_BYTES};
use crate::env::seeded_rng;

/// Failed reads end after a whole number of these, and no write is torn within one.
const SECTOR_BYTES: usize = WHOLE_SECTOR_BYTES as usize;

/// Bytes on their way to stable storage.
#[derive(Clone)]
struct Write {
    offset: usize,
    bytes: Arc<[u8]>,
    /// It asked not to be torn: its unit is the disk's, else a sector.
    is_atomic: bool,
}

/// What the damage of a power cut depends on, apart from its seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Damage {
    /// Stream of chance: disks are damaged independently.
    pub(super) stream: u64,
    /// Atomic write unit.
    pub(super) unit_bytes: usize,
}

#[derive(Clone)]
pub(super) struct Medium {
    /// What reads see.
    current: DiskImage,
    /// What a power cut cannot take.
    stable: DiskImage,
    /// Completed writes that are not on stable storage, in the order of their completion.
    cached: BTreeMap<u64, Write>,
    /// Submitted writes, in the order of their submission.
    in_flight: BTreeMap<u64, Write>,
    next: u64,
}

/// A write under way, by which the medium knows it.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

impl Medium {
    pub(super) fn new(image: DiskImage) -> Medium {
        Medium {
            current: image.clone(),
            stable: image,
            cached: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            next: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A write was submitted.
    pub(super) fn begin_write(&mut self, offset: usize, operation: &Operation) -> Option<Ticket> {
        let Operation::Write { from, atomic, .. } = operation else {
            return None;
        };
        let bytes = match &from[..] {
            [one] => Arc::from(&one[..]),
            many => Arc::from(
                many.iter()
                    .map(|hold| &hold[..])
                    .collect::<Vec<_>>()
                    .concat(),
            ),
        };
        let number = self.number();
        let is_atomic = *atomic;
        let write = Write {
            offset,
            bytes,
            is_atomic,
        };
        self.in_flight.insert(number, write);
        Some(Ticket(number))
    }

    /// What a flush submitted now covers: every write completed so far.
    pub(super) fn covered(&self) -> Vec<u64> {
        self.cached.keys().copied().collect()
    }

    /// A read has ended.
    pub(super) fn finish_read(&self, offset: usize, into: &mut [WriteHold]) {
        let mut at = offset;
        for hold in into {
            self.current.read(at, hold);
            at += hold.len();
        }
    }

    /// A read has failed: it filled its buffers up to some sector, and they must not be used.
    pub(super) fn fail_read(
        &self,
        offset: usize,
        into: &mut [WriteHold],
        chance: &mut Xoshiro256PlusPlus,
    ) {
        let total: usize = into.iter().map(|hold| hold.len()).sum();
        let sectors = chance.next_u64() as usize % (total / SECTOR_BYTES + 1);
        let mut rest = sectors * SECTOR_BYTES;
        let mut at = offset;
        for hold in into {
            let length = rest.min(hold.len());
            self.current.read(at, &mut hold[..length]);
            at += length;
            rest -= length;
        }
    }

    /// A write has ended.
    pub(super) fn finish_write(&mut self, ticket: Ticket, durable: bool) {
        let number = self.number();
        let write = self.take(ticket);
        self.current.write(write.offset, &write.bytes);
        self.cached.insert(number, write);
        if durable {
            self.make_stable(number);
        }
    }

    /// A write has failed: what reads see is the old, the new, or unit by unit either of them, and none of it is on
    /// stable storage.
    pub(super) fn fail_write(
        &mut self,
        ticket: Ticket,
        unit_bytes: usize,
        chance: &mut Xoshiro256PlusPlus,
    ) {
        let write = self.take(ticket);
        let kept = match chance.next_u64() % 3 {
            0 => Vec::new(),
            1 => vec![write],
            _ => write.some_units(unit_bytes, chance),
        };
        for part in kept {
            let number = self.number();
            self.current.write(part.offset, &part.bytes);
            self.cached.insert(number, part);
        }
    }

    fn take(&mut self, ticket: Ticket) -> Write {
        let write = self.in_flight.remove(&ticket.0);
        write.expect("a write ends once")
    }

    /// A flush has ended.
    pub(super) fn finish_flush(&mut self, covered: &[u64]) {
        for &number in covered {
            self.make_stable(number);
        }
    }

    /// A flush has failed: each write it covered is stable, or lost at once, or still to be read but lost at the next
    /// power cut. Whatever it is, the disk takes it for clean: no later flush does anything for it.
    pub(super) fn fail_flush(&mut self, covered: &[u64], chance: &mut Xoshiro256PlusPlus) {
        for number in covered {
            let outcome = chance.next_u64() % 3;
            if outcome == 0 {
                self.make_stable(*number);
            } else if let Some(write) = self.cached.remove(number)
                && outcome == 1
            {
                self.fall_back(&write);
            }
        }
    }

    /// Reads of a lost write's bytes see again what there was without it.
    fn fall_back(&mut self, lost: &Write) {
        let mut bytes = vec![0; lost.bytes.len()];
        self.stable.read(lost.offset, &mut bytes);
        self.current.write(lost.offset, &bytes);
        for write in self.cached.values() {
            if let Some((start, part)) = write.within(lost) {
                self.current.write(start, part);
            }
        }
    }

    fn make_stable(&mut self, number: u64) {
        // Another flush that covered it may have ended first.
        let Some(write) = self.cached.remove(&number) else {
            return;
        };
        self.stable.write(write.offset, &write.bytes);
        // The cache holds one copy of a byte: an older write to it can no longer come back.
        for (_, older) in self.cached.range_mut(..number) {
            older.supersede(&write);
        }
    }

    /// Changes bits of a byte, wherever it is, as time or radiation would.
    pub(super) fn decay(&mut self, at: usize, bits: u8) {
        for image in [&mut self.current, &mut self.stable] {
            image.flip(at, bits);
        }
    }

    pub(super) fn image_after(&self, cut: PowerCut, damage: Damage) -> DiskImage {
        let unstable = self.cached.values().chain(self.in_flight.values());
        let mut image = self.stable.clone();
        match cut {
            PowerCut::LoseAll => {}
            PowerCut::KeepAll => {
                image = self.current.clone();
                for write in self.in_flight.values() {
                    image.write(write.offset, &write.bytes);
                }
            }
            PowerCut::Damage(seed) => {
                let mut chance = seeded_rng(seed, damage.stream);
                for write in unstable {
                    write.damage(&mut image, damage.unit_bytes, &mut chance);
                }
            }
            PowerCut::Misdirect(seed) => {
                let mut chance = seeded_rng(seed, damage.stream);
                for write in unstable {
                    if chance.next_u64().is_multiple_of(2) {
                        write.damage(&mut image, damage.unit_bytes, &mut chance);
                    } else {
                        write.misdirect(&mut image, &mut chance);
                    }
                }
            }
        }
        image
    }
}

impl Write {
    fn end(&self) -> usize {
        self.offset + self.bytes.len()
    }

    /// The part of this write that lies within another's range, and where it is.
    fn within(&self, other: &Write) -> Option<(usize, &[u8])> {
        let start = self.offset.max(other.offset);
        let end = self.end().min(other.end());
        let part = |at: usize| at - self.offset;
        (start < end).then(|| (start, &self.bytes[part(start)..part(end)]))
    }

    fn supersede(&mut self, newer: &Write) {
        if let Some((start, part)) = newer.within(self) {
            let at = start - self.offset;
            Arc::make_mut(&mut self.bytes)[at..at + part.len()].copy_from_slice(part);
        }
    }

    /// Kept, lost or torn.
    fn damage(&self, image: &mut DiskImage, unit_bytes: usize, chance: &mut Xoshiro256PlusPlus) {
        let kept = match chance.next_u64() % 3 {
            0 => Vec::new(),
            1 => vec![self.clone()],
            _ => self.some_units(unit_bytes, chance),
        };
        for part in kept {
            image.write(part.offset, &part.bytes);
        }
    }

    /// Each atomic unit of it, or not.
    fn some_units(&self, unit_bytes: usize, chance: &mut Xoshiro256PlusPlus) -> Vec<Write> {
        let unit_bytes = if self.is_atomic {
            unit_bytes
        } else {
            SECTOR_BYTES
        };
        let mut kept = Vec::new();
        let mut at = self.offset;
        while at < self.end() {
            let next = ((at / unit_bytes + 1) * unit_bytes).min(self.end());
            if chance.next_u64().is_multiple_of(2) {
                let bytes = Arc::from(&self.bytes[at - self.offset..next - self.offset]);
                kept.push(Write {
                    offset: at,
                    bytes,
                    is_atomic: self.is_atomic,
                });
            }
            at = next;
        }
        kept
    }

    /// Whole, but somewhere else, at a place aligned as its own is.
    fn misdirect(&self, image: &mut DiskImage, chance: &mut Xoshiro256PlusPlus) {
        let aligned_bytes = 1 << (self.offset | self.bytes.len()).trailing_zeros();
        let places = (image.capacity_bytes() - self.bytes.len()) / aligned_bytes + 1;
        let place = chance.next_u64() as usize % places;
        image.write(place * aligned_bytes, &self.bytes);
    }
}
