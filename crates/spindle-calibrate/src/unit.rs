//! Several targets as one unit, as ORION's `simulate` has it: one after the other, or in stripes of 1 MiB or a multiple
//! of that. Requests are at most 1 MiB and aligned to their length, so that none crosses a stripe.

use spindle_io::real::FileDevice;
use spindle_io::{BlockDevice, Completion, Limits, Request};
use spindle_text::quantity::size;
use spindle_text::words;

/// The usual length of a stripe: ORION's default.
pub const STRIPE_BYTES: u64 = 1 << 20;

words! {
    /// How several targets make one unit.
    pub enum Simulate {
        /// One after the other.
        Concat = "concat",
        /// In stripes.
        Raid0 = "raid0",
    }
}

/// Where the bytes of several targets lie.
#[derive(Debug, Clone)]
pub(crate) struct UnitShape {
    /// Whole stripes of each target, in bytes.
    bytes: Vec<u64>,
    simulate: Simulate,
    stripe_bytes: u64,
}

impl UnitShape {
    pub(crate) fn new(
        bytes: impl Iterator<Item = u64>,
        (simulate, stripe_bytes): (Simulate, u64),
    ) -> UnitShape {
        // A concatenation has no stripes, and targets of whole large requests.
        let piece_bytes = match simulate {
            Simulate::Concat => STRIPE_BYTES,
            Simulate::Raid0 => stripe_bytes,
        };
        let whole = bytes.map(|bytes| bytes / piece_bytes * piece_bytes);
        UnitShape {
            bytes: whole.collect(),
            simulate,
            stripe_bytes,
        }
    }

    /// Targets one after the other, or one alone.
    pub(crate) fn one_after_the_other(bytes: impl Iterator<Item = u64>) -> UnitShape {
        UnitShape::new(bytes, (Simulate::Concat, STRIPE_BYTES))
    }

    /// All that can be asked for.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        match self.simulate {
            Simulate::Concat => self.bytes.iter().sum(),
            Simulate::Raid0 => {
                let least = self.bytes.iter().min().copied().unwrap_or(0);
                least * self.bytes.len() as u64
            }
        }
    }

    /// What a unit of stripes leaves out of targets that are larger than its smallest, in words.
    pub(crate) fn left_out(&self) -> Option<String> {
        let all: u64 = self.bytes.iter().sum();
        let measured = self.capacity_bytes();
        (measured < all).then(|| format!("{} of {} are measured", size(measured), size(all)))
    }

    /// The target that holds a byte of the unit, and where there.
    fn locate(&self, offset: u64) -> (usize, u64) {
        match self.simulate {
            Simulate::Raid0 => {
                let stripe_bytes = self.stripe_bytes;
                let (stripe, within) = (offset / stripe_bytes, offset % stripe_bytes);
                let targets = self.bytes.len() as u64;
                let place = stripe / targets * stripe_bytes + within;
                ((stripe % targets) as usize, place)
            }
            Simulate::Concat => {
                let mut left = offset;
                for (index, bytes) in self.bytes.iter().enumerate() {
                    if left < *bytes {
                        return (index, left);
                    }
                    left -= bytes;
                }
                unreachable!("the offset lies in the unit")
            }
        }
    }
}

/// Opened targets as one device.
pub(crate) struct Unit {
    devices: Vec<FileDevice>,
    shape: UnitShape,
}

impl Unit {
    pub(crate) fn new(devices: Vec<FileDevice>, shape: UnitShape) -> Unit {
        Unit { devices, shape }
    }

    /// The targets, in order.
    pub(crate) fn files(&self) -> &[FileDevice] {
        &self.devices
    }

    /// The target that holds a byte of the unit, and where there.
    pub(crate) fn locate(&self, offset: u64) -> (usize, u64) {
        self.shape.locate(offset)
    }
}

impl BlockDevice for Unit {
    fn name(&self) -> &str {
        self.devices[0].name()
    }

    fn limits(&self) -> Limits {
        Limits {
            capacity_bytes: self.shape.capacity_bytes(),
            ..self.devices[0].limits()
        }
    }

    fn submit(&self, request: Request) -> Completion {
        let (index, offset) = self.shape.locate(request.offset);
        self.devices[index].submit(Request { offset, ..request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_unit_covers_each_block_of_its_targets_once() {
        for (simulate, capacity_mib) in [(Simulate::Concat, 5), (Simulate::Raid0, 4)] {
            // The half at the end of the second is no whole stripe.
            let bytes = [2 * MIB, 3 * MIB + MIB / 2];
            let shape = UnitShape::new(bytes.into_iter(), (simulate, MIB));
            assert_eq!(shape.capacity_bytes(), capacity_mib * MIB);
            let mut places: Vec<(usize, u64)> =
                (0..capacity_mib).map(|at| shape.locate(at * MIB)).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len() as u64, capacity_mib, "{simulate}");
        }
    }

    #[test]
    fn stripes_go_round_and_a_concatenation_fills_up() {
        let shape = |simulate| UnitShape::new([2 * MIB, 2 * MIB].into_iter(), (simulate, MIB));
        let raid = shape(Simulate::Raid0);
        assert_eq!(raid.locate(MIB + 8192), (1, 8192));
        assert_eq!(raid.locate(2 * MIB + 8192), (0, MIB + 8192));
        assert_eq!(shape(Simulate::Concat).locate(2 * MIB + 8192), (1, 8192));
        let wide = UnitShape::new([5 * MIB; 2].into_iter(), (Simulate::Raid0, 2 * MIB));
        assert_eq!(
            wide.capacity_bytes(),
            8 * MIB,
            "the fifth is no whole stripe"
        );
        assert_eq!(wide.locate(MIB), (0, MIB));
        assert_eq!(wide.locate(2 * MIB), (1, 0));
        assert_eq!(wide.locate(5 * MIB), (0, 3 * MIB));
    }
}
