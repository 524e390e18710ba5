//! Which extent of a file holds a byte, and where in the extent: arithmetic only. The rules are Oracle's (OSTMG 12.1,
//! "About Oracle ASM Extents" and "Striping"): extents of 1 allocation unit, of 4 from extent 20,000 on and of 16 from
//! extent 40,000 on if allocation units are smaller than 4 MB; coarse striping by extents, fine striping by 128 KB over
//! a width of 8.

use serde::{Deserialize, Serialize};
use spindle_text::section::Listing;
use spindle_text::{settings, words};

words! {
    /// How a file's bytes are spread over its extents.
    pub enum Striping {
        /// One extent after the other: for nearly everything.
        Coarse = "coarse",
        /// By 128 KiB over several extents in turn, for files whose latency matters: Oracle's control files, and its
        /// online redo until 10g.
        Fine = "fine",
    }
}

settings! {
    /// How each kind of file lies in a disk group. The defaults are those of Oracle's templates since 11g.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct StripingByKind {
        /// The control file: allocation unit by allocation unit, or in stripes of 128 KiB.
        control: Striping = word("control", Striping::Fine),
        /// Redo log files.
        redo: Striping = word("redo", Striping::Coarse),
        /// The undo datafile.
        undo: Striping = word("undo", Striping::Coarse),
        /// Datafiles.
        data: Striping = word("data", Striping::Coarse),
        /// Temporary files.
        temp: Striping = word("temp", Striping::Coarse),
    }
}

impl Default for StripingByKind {
    fn default() -> StripingByKind {
        Listing::defaults()
    }
}

/// Bytes of a fine stripe.
pub const STRIPE_BYTES: u64 = 128 << 10;
/// Extents over which fine stripes go round, on as many disks where there are as many.
pub const STRIPE_WIDTH: usize = 8;

/// From this allocation unit on, extents have one size.
const VARIABLE_BELOW_BYTES: u64 = 4 << 20;
/// Number of the first extent of a size, and log2 of its allocation units.
const TIERS: [(u64, u32); 3] = [(0, 0), (20_000, 2), (40_000, 4)];

/// The extents of a file: how many, how large, in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileExtents {
    pub(crate) bytes: u64,
    pub(crate) striping: Striping,
    /// Extents over which stripes go round; 1 with coarse striping.
    pub(crate) width: u64,
    au_shift: u32,
    tiers: [Tier; 3],
    tier_count: usize,
}

/// Extents of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tier {
    first_extent: u64,
    first_byte: u64,
    /// Log2 of an extent's bytes.
    shift: u32,
}

/// Where a byte lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) extent: usize,
    /// First byte within the extent.
    pub(crate) offset: u64,
    /// Bytes of the file from here that follow each other on the disk.
    pub(crate) left: u64,
}

impl FileExtents {
    /// A file of `bytes` bytes. `width` is of no meaning with coarse striping.
    pub(crate) fn new(bytes: u64, striping: Striping, width: u64, au_bytes: u64) -> FileExtents {
        let width = match striping {
            Striping::Coarse => 1,
            Striping::Fine => width.max(1),
        };
        let au_shift = au_bytes.trailing_zeros();
        let tier_count = if au_bytes < VARIABLE_BELOW_BYTES {
            3
        } else {
            1
        };
        let mut tiers = [Tier::default(); 3];
        tiers[0].shift = au_shift;
        for tier in 1..tier_count {
            let (from, aus_shift) = TIERS[tier];
            let before = tiers[tier - 1];
            // Stripes go round extents of one size.
            let first_extent = from.next_multiple_of(width);
            let extents = first_extent - before.first_extent;
            tiers[tier] = Tier {
                first_extent,
                first_byte: before.first_byte + (extents << before.shift),
                shift: au_shift + aus_shift,
            };
        }
        FileExtents {
            bytes,
            striping,
            width,
            au_shift,
            tiers,
            tier_count,
        }
    }

    /// Extents of the file.
    pub(crate) fn extents(&self) -> usize {
        if self.bytes == 0 {
            return 0;
        }
        let tier = self.tier_of_byte(self.bytes - 1);
        let set_bytes = self.width << tier.shift;
        let sets = (self.bytes - tier.first_byte).div_ceil(set_bytes);
        (tier.first_extent + sets * self.width) as usize
    }

    /// Allocation units of an extent.
    pub(crate) fn aus(&self, extent: usize) -> u32 {
        let tiers = &self.tiers[..self.tier_count];
        let of = |tier: &&Tier| tier.first_extent <= extent as u64;
        let tier = tiers.iter().rfind(of).expect("the first begins at 0");
        1 << (tier.shift - self.au_shift)
    }

    /// Bytes of an extent.
    pub(crate) fn extent_bytes(&self, extent: usize) -> u64 {
        u64::from(self.aus(extent)) << self.au_shift
    }

    /// The byte of the file that lies at `offset` of an extent: the reverse of [`FileExtents::locate`].
    pub(crate) fn byte_at(&self, extent: usize, offset: u64) -> u64 {
        let extent = extent as u64;
        let of = |tier: &&Tier| tier.first_extent <= extent;
        let tier = self.tiers[..self.tier_count]
            .iter()
            .rfind(of)
            .expect("the first begins at 0");
        let (set, column) = (
            (extent - tier.first_extent) / self.width,
            (extent - tier.first_extent) % self.width,
        );
        let set_at = tier.first_byte + set * (self.width << tier.shift);
        if self.width == 1 {
            return set_at + offset;
        }
        let row = offset / STRIPE_BYTES;
        set_at + (row * self.width + column) * STRIPE_BYTES + offset % STRIPE_BYTES
    }

    #[inline]
    fn tier_of_byte(&self, at: u64) -> &Tier {
        let mut tier = &self.tiers[0];
        for next in &self.tiers[1..self.tier_count] {
            if at >= next.first_byte {
                tier = next;
            }
        }
        tier
    }

    /// Where byte `at` of the file lies; it must be within the file.
    #[inline]
    pub(crate) fn locate(&self, at: u64) -> Spot {
        let tier = self.tier_of_byte(at);
        let within = at - tier.first_byte;
        let extent_bytes = 1 << tier.shift;
        if self.width == 1 {
            let offset = within & (extent_bytes - 1);
            return Spot {
                extent: (tier.first_extent + (within >> tier.shift)) as usize,
                offset,
                left: extent_bytes - offset,
            };
        }
        let set_bytes = self.width << tier.shift;
        let (set, in_set) = (within / set_bytes, within % set_bytes);
        let stripe = in_set / STRIPE_BYTES;
        let (row, column) = (stripe / self.width, stripe % self.width);
        let in_stripe = in_set % STRIPE_BYTES;
        Spot {
            extent: (tier.first_extent + set * self.width + column) as usize,
            offset: row * STRIPE_BYTES + in_stripe,
            left: STRIPE_BYTES - in_stripe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn extents_grow_at_20_000_and_40_000() {
        let coarse = |bytes| FileExtents::new(bytes, Striping::Coarse, 8, MIB);
        assert_eq!(coarse(20_000 * MIB).extents(), 20_000);
        assert_eq!(coarse(20_000 * MIB + 1).extents(), 20_001);
        assert_eq!(coarse(20_004 * MIB + 1).extents(), 20_002);
        let large = coarse(200_000 * MIB);
        assert_eq!([0, 19_999].map(|extent| large.aus(extent)), [1, 1]);
        assert_eq!([20_000, 39_999].map(|extent| large.aus(extent)), [4, 4]);
        assert_eq!([40_000, 45_000].map(|extent| large.aus(extent)), [16, 16]);
        // 20,000 of 1 MiB and 20,000 of 4 MiB come first.
        let spot = large.locate(100_000 * MIB + 17 * MIB + 5);
        assert_eq!(
            (spot.extent, spot.offset, spot.left),
            (40_001, MIB + 5, 15 * MIB - 5)
        );
        let fixed = FileExtents::new(200_000 * MIB, Striping::Coarse, 1, 4 * MIB);
        assert_eq!((fixed.extents(), fixed.aus(49_999)), (50_000, 1));
    }

    #[test]
    fn fine_stripes_go_round() {
        let shape = FileExtents::new(20 * MIB, Striping::Fine, 8, MIB);
        assert_eq!(shape.extents(), 24);
        let at = |at| {
            let spot = shape.locate(at);
            (spot.extent, spot.offset, spot.left)
        };
        assert_eq!(at(0), (0, 0, STRIPE_BYTES));
        assert_eq!(at(STRIPE_BYTES + 7), (1, 7, STRIPE_BYTES - 7));
        assert_eq!(at(8 * STRIPE_BYTES), (0, STRIPE_BYTES, STRIPE_BYTES));
        assert_eq!(at(8 * MIB - 1), (7, MIB - 1, 1));
        assert_eq!(at(8 * MIB), (8, 0, STRIPE_BYTES));
    }

    /// Every byte of a file has its own place, in whatever shape.
    #[test]
    fn no_two_stripes_share_a_place() {
        for (width, bytes) in [
            (1, 30 * MIB),
            (3, 30 * MIB),
            (8, 33 * MIB + 512),
            (5, MIB / 2),
        ] {
            for striping in [Striping::Coarse, Striping::Fine] {
                let shape = FileExtents::new(bytes, striping, width, MIB);
                let mut seen = std::collections::BTreeSet::new();
                let mut at = 0;
                while at < bytes {
                    let spot = shape.locate(at);
                    assert!(spot.extent < shape.extents());
                    assert_eq!(shape.byte_at(spot.extent, spot.offset), at);
                    assert!(spot.offset + spot.left <= shape.extent_bytes(spot.extent));
                    for step in 0..spot.left / STRIPE_BYTES {
                        let place = spot.offset + step * STRIPE_BYTES;
                        assert!(
                            seen.insert((spot.extent, place)),
                            "byte {at} lies on another"
                        );
                    }
                    at += spot.left;
                }
            }
        }
    }

    /// Around the borders of sizes, with a width that does not divide them.
    #[test]
    fn fine_stripes_of_any_width_meet_the_borders() {
        for width in 2..=8 {
            let shape = FileExtents::new(150_000 * MIB, Striping::Fine, width, MIB);
            for border in [shape.tiers[1], shape.tiers[2]] {
                assert!(border.first_extent % width == 0);
                let before = shape.locate(border.first_byte - 1);
                assert_eq!(before.extent as u64, border.first_extent - 1);
                assert_eq!(before.offset + 1, shape.extent_bytes(before.extent));
                let after = shape.locate(border.first_byte);
                assert_eq!(
                    (after.extent as u64, after.offset),
                    (border.first_extent, 0)
                );
            }
        }
    }
}
