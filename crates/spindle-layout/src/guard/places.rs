//! Where a device is read to see whether it is empty. A small one is read whole. Of a larger one: both ends, where
//! known formats also keep something, and a block in each of some hundred parts of equal length, at a place in the part
//! that is drawn again for each look. No pattern of data can avoid it, and what is as long as two parts is always met.

use std::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// How much of each end is read.
pub const EDGE_BYTES: u64 = 1 << 20;

/// Devices up to this size are read whole.
pub const WHOLE_BYTES: u64 = 256 << 20;

/// Parts of a larger device, in each of which a block is read.
pub const PARTS: u64 = 512;

/// What is read at each place.
pub const BLOCK_BYTES: u64 = 4096;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Where formats keep copies and headers, other than at the ends of a device. Sources: btrfs-progs `btrfs_sb_offset`,
/// cryptsetup's LUKS2 format (second headers), Ceph BlueStore (`bdev_label_multi`), VMware VMFS (header), NTFS
/// (`$MFT` of large volumes), Oracle ASM (copy of the header by size of the allocation unit), F2FS (checkpoint).
const KNOWN: [u64; 22] = [
    64 * MIB,
    256 * GIB,
    1 << 50,
    MIB,
    2 * MIB,
    4 * MIB,
    GIB,
    10 * GIB,
    100 * GIB,
    1000 * GIB,
    16 * MIB,
    18 * MIB,
    3 * GIB,
    2 * MIB - 8 * KIB,
    4 * MIB - 8 * KIB,
    8 * MIB - 8 * KIB,
    16 * MIB - 8 * KIB,
    32 * MIB - 8 * KIB,
    64 * MIB - 8 * KIB,
    128 * MIB - 8 * KIB,
    2 * MIB + 4 * KIB,
    2 * MIB - 4 * KIB,
];

/// Groups of ext2-4 that have a copy of the superblock where not all have (`sparse_super`): powers of 3, 5 and 7.
const GROUPS: [u64; 12] = [1, 3, 5, 7, 9, 25, 27, 49, 81, 125, 243, 343];

/// The places on a device of that size for a seed: in order, none overlapping, within the device.
pub fn places(size_bytes: u64, seed: u64) -> Vec<Range<u64>> {
    if size_bytes <= WHOLE_BYTES {
        return std::iter::once(0..size_bytes).collect();
    }
    let mut places = vec![0..EDGE_BYTES, size_bytes - EDGE_BYTES..size_bytes];
    let blocks = known(size_bytes).into_iter().chain(drawn(size_bytes, seed));
    places.extend(blocks.map(|at| {
        let at = at.min(size_bytes - BLOCK_BYTES);
        at..at + BLOCK_BYTES
    }));
    merged(places)
}

/// Places in order, those that touch made one.
pub(super) fn merged(mut places: Vec<Range<u64>>) -> Vec<Range<u64>> {
    places.sort_by_key(|place| (place.start, place.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

fn known(size_bytes: u64) -> Vec<u64> {
    let mut places: Vec<u64> = KNOWN.to_vec();
    for block_bytes in [KIB, 2 * KIB, 4 * KIB, 64 * KIB] {
        // A group is what one block of bits stands for.
        let group_bytes = 8 * block_bytes * block_bytes;
        places.extend(GROUPS.iter().map(|group| group * group_bytes));
    }
    // Allocation groups of XFS, as many as mkfs makes on disks and arrays.
    for groups in [4, 16, 32] {
        let group_blocks = (size_bytes / BLOCK_BYTES).div_ceil(groups);
        places.extend((1..groups).map(|group| group * group_blocks * BLOCK_BYTES));
    }
    places.retain(|place| place + BLOCK_BYTES <= size_bytes);
    places
}

fn drawn(size_bytes: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..PARTS).map(move |part| {
        let bound = |part: u64| {
            (u128::from(size_bytes) * u128::from(part) / u128::from(PARTS)) as u64 / BLOCK_BYTES
        };
        let (first, end) = (bound(part), bound(part + 1));
        (first + random.next_u64() % (end - first).max(1)) * BLOCK_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_within_the_device_and_in_order() {
        for size in [
            1,
            4096,
            WHOLE_BYTES,
            WHOLE_BYTES + 512,
            3 * GIB + 12_345_344,
            1 << 44,
        ] {
            let places = places(size, 7);
            assert!(
                places.windows(2).all(|pair| pair[0].end < pair[1].start),
                "{size}"
            );
            assert_eq!((places[0].start, places.last().unwrap().end), (0, size));
        }
    }

    #[test]
    fn whatever_is_as_long_as_two_parts_is_met_by_every_seed() {
        let size = 100 * GIB;
        for seed in 0..50 {
            let places = places(size, seed);
            let longest = places
                .windows(2)
                .map(|pair| pair[1].start - pair[0].end)
                .max();
            assert!(longest.unwrap() < 2 * size / PARTS, "{seed}");
        }
    }

    #[test]
    fn every_look_reads_other_places() {
        assert_ne!(places(GIB, 1), places(GIB, 2));
    }

    #[test]
    fn copies_of_superblocks_are_among_them() {
        let places = places(300 * GIB, 1);
        for at in [64 * MIB, 256 * GIB, 128 * MIB, 8 * MIB, 75 * GIB, 4 * MIB] {
            assert!(places.iter().any(|place| place.contains(&at)), "{at}");
        }
    }
}
