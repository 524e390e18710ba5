//! How much room volumes and file systems will have that are not made yet. Each figure leans to the large side: who
//! reckons with it refuses what cannot fit, and nothing that might. The figures of file systems were read off `df`
//! (what it calls available) after mke2fs 1.47, mkfs.xfs 6.1 and mkfs.btrfs 6.2 on devices of 16 MiB to 100 GiB.

use crate::spec::{FileSystemSpec, VolumeSpec};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// LVM gives room out in extents of this size, and keeps the first of each device.
const EXTENT_BYTES: u64 = 4 * MIB;

/// Part of a device that files get, in per cent, when the experiment says how its file system is made.
const SOMEHOW_PERCENT: u64 = 98;

/// Bytes of a volume over devices of these sizes.
pub(super) fn of_volume(volume: &VolumeSpec, devices_bytes: &[u64]) -> u64 {
    let extents = |bytes: &u64| (bytes / EXTENT_BYTES).saturating_sub(1);
    let bytes = devices_bytes.iter().map(extents).sum::<u64>() * EXTENT_BYTES;
    let bytes = bytes / (u64::from(volume.mirrors) + 1);
    // As the step makes it: the rest is for the pool's metadata.
    if volume.thin { bytes / 10 * 9 } else { bytes }
}

/// Bytes that a file system on devices of these sizes has for files.
pub(super) fn of_file_system(spec: &FileSystemSpec, devices_bytes: &[u64]) -> u64 {
    let bytes: u64 = devices_bytes.iter().sum();
    if !spec.mkfs_options.is_empty() || devices_bytes.len() > 1 {
        return bytes / 100 * SOMEHOW_PERCENT;
    }
    let taken = match spec.type_name.as_str() {
        "ext4" | "ext3" => taken_by_ext(bytes) + journal_of_ext(bytes),
        "ext2" => taken_by_ext(bytes),
        "xfs" => 64 * MIB + bytes.min(GIB) / 33 + bytes / 140,
        "btrfs" if bytes < 512 * MIB => 80 * MIB,
        "btrfs" if bytes < 50 * GIB => (bytes / 9).min(529 * MIB),
        "btrfs" => 2065 * MIB,
        _ => bytes / 50,
    };
    bytes.saturating_sub(taken)
}

/// Inodes, and what is kept for root: 5 % of the rest. Small file systems have four times as many inodes.
fn taken_by_ext(bytes: u64) -> u64 {
    let inodes = if bytes < 512 * MIB {
        bytes / 16
    } else {
        bytes / 64
    };
    inodes + (bytes - inodes) / 20
}

/// By the number of blocks, of which small file systems have small ones (`ext2fs_default_journal_size` of e2fsprogs).
fn journal_of_ext(bytes: u64) -> u64 {
    let block_bytes = if bytes < 512 * MIB { 1024 } else { 4096 };
    let blocks = bytes / block_bytes;
    let journal_blocks = match blocks {
        0..2_048 => 0,
        2_048..32_768 => 1_024,
        32_768..262_144 => 4_096,
        262_144..524_288 => 8_192,
        524_288..4_194_304 => 16_384,
        4_194_304..8_388_608 => 32_768,
        8_388_608..16_777_216 => 65_536,
        16_777_216..33_554_432 => 131_072,
        _ => 262_144,
    };
    journal_blocks * block_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_system(type_name: &str) -> FileSystemSpec {
        FileSystemSpec {
            type_name: type_name.to_owned(),
            mkfs_options: Vec::new(),
            mount_options: String::new(),
        }
    }

    /// What `df` said, in MiB: the size of the device, and what was available.
    const SEEN: [(&str, u64, u64); 22] = [
        ("ext4", 16, 12),
        ("ext4", 32, 22),
        ("ext4", 64, 50),
        ("ext4", 128, 105),
        ("ext4", 300, 252),
        ("ext4", 450, 384),
        ("ext4", 1024, 906),
        ("ext4", 4096, 3730),
        ("ext4", 20480, 18946),
        ("ext4", 102_400, 95084),
        ("xfs", 300, 219),
        ("xfs", 450, 360),
        ("xfs", 1024, 921),
        ("xfs", 4096, 3971),
        ("xfs", 20480, 20241),
        ("xfs", 102_400, 101_590),
        ("btrfs", 300, 219),
        ("btrfs", 450, 369),
        ("btrfs", 1024, 904),
        ("btrfs", 4096, 3567),
        ("btrfs", 20480, 19951),
        ("btrfs", 102_400, 100_335),
    ];

    #[test]
    fn file_systems_have_about_as_much_room_as_is_reckoned() {
        for (type_name, device_mib, seen_mib) in SEEN {
            let bytes = of_file_system(&file_system(type_name), &[device_mib * MIB]);
            let mib = bytes / MIB;
            let most_mib = seen_mib + seen_mib * 3 / 100 + 3;
            let least_mib = seen_mib - seen_mib / 1000;
            assert!(
                (least_mib..=most_mib).contains(&mib),
                "{type_name} on {device_mib} MiB: {mib} reckoned, {seen_mib} seen"
            );
        }
    }

    #[test]
    fn a_volume_has_what_its_copies_and_its_pool_leave() {
        let volume = |mirrors, thin| VolumeSpec {
            stripes: 1,
            stripe_size_bytes: 64 << 10,
            mirrors,
            thin,
        };
        let devices = [64 * MIB, 66 * MIB];
        assert_eq!(of_volume(&volume(0, false), &devices), 120 * MIB);
        assert_eq!(of_volume(&volume(1, false), &devices), 60 * MIB);
        assert_eq!(of_volume(&volume(0, true), &devices), 108 * MIB);
    }
}
