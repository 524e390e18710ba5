//! btrfs. Figures were read off `df` after mkfs.btrfs 6.2 on devices of 300 MiB to 100 GiB; the least sizes are those
//! that it demands.

use super::kind::{FileSystemKind, upper_u};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(super) const KIND: FileSystemKind = FileSystemKind {
    name: "btrfs",
    package: "btrfs-progs",
    mkfs: &["-q", "--nodiscard"],
    makes_nothing: &["-V", "--version", "--help"],
    identity: Some(upper_u),
    taken_bytes,
    written_share: 200,
    spans_devices: true,
    shares_blocks: true,
    has_snapshots: true,
    // On one device all metadata is kept twice.
    least_mib: |devices| if devices == 1 { 109 } else { 69 },
    check: None,
};

fn taken_bytes(bytes: u64) -> u64 {
    if bytes < 512 * MIB {
        80 * MIB
    } else if bytes < 50 * GIB {
        (bytes / 9).min(529 * MIB)
    } else {
        2065 * MIB
    }
}
