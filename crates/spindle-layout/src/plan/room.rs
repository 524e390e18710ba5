//! How much room volumes and file systems will have that are not made yet. Each figure leans to the large side: who
//! reckons with it refuses what cannot fit, and nothing that might. What file systems take for themselves is said by
//! each kind.

use crate::file_system;
use crate::spec::{FileSystemSpec, VolumeSpec};

const MIB: u64 = 1 << 20;

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
    let kind = file_system::kind(&spec.type_name);
    let taken_bytes = kind.map_or(file_system::taken_by_unknown as fn(u64) -> u64, |kind| {
        kind.taken_bytes
    });
    bytes.saturating_sub(taken_bytes(bytes))
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
