//! ext2, ext3 and ext4. Figures were read off `df` after mke2fs 1.47 on devices of 16 MiB to 100 GiB.

use super::kind::{FileSystemKind, upper_u};

const MIB: u64 = 1 << 20;

pub(super) const EXT2: FileSystemKind = FileSystemKind {
    name: "ext2",
    package: "e2fsprogs",
    // -E once: the person's own replaces ours only where they name the same.
    mkfs: &["-q", "-E", "nodiscard,lazy_itable_init=0"],
    // To look only, to write superblocks only, and to tell the version (mke2fs(8)).
    makes_nothing: &["-n", "-S", "-V"],
    identity: Some(upper_u),
    taken_bytes,
    // Tables of inodes: 256 bytes for each 16 KiB.
    written_share: 40,
    spans_devices: false,
    shares_blocks: false,
    has_snapshots: false,
    least_mib: |_| 0,
    check: Some(("e2fsck", "-fn")),
};

pub(super) const EXT3: FileSystemKind = FileSystemKind {
    name: "ext3",
    mkfs: &[
        "-q",
        "-E",
        "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    ],
    taken_bytes: |bytes| taken_bytes(bytes) + journal_bytes(bytes),
    ..EXT2
};

pub(super) const EXT4: FileSystemKind = FileSystemKind {
    name: "ext4",
    ..EXT3
};

/// Inodes, and what is kept for root: 5 % of the rest. Small file systems have four times as many inodes.
fn taken_bytes(bytes: u64) -> u64 {
    let inodes = if bytes < 512 * MIB {
        bytes / 16
    } else {
        bytes / 64
    };
    inodes + (bytes - inodes) / 20
}

/// By the number of blocks, of which small file systems have small ones (`ext2fs_default_journal_size` of e2fsprogs).
fn journal_bytes(bytes: u64) -> u64 {
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
