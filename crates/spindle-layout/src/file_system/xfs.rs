//! XFS. Figures were read off `df` after mkfs.xfs 6.1 on devices of 300 MiB to 100 GiB; the least size is what it
//! demands.

use super::kind::FileSystemKind;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(super) const KIND: FileSystemKind = FileSystemKind {
    name: "xfs",
    package: "xfsprogs",
    mkfs: &["-q", "-K"],
    makes_nothing: &["-N", "-V"],
    identity: Some(|uuid| ["-m".to_owned(), format!("uuid={uuid}")]),
    taken_bytes: |bytes| 64 * MIB + bytes.min(GIB) / 33 + bytes / 140,
    written_share: 200,
    spans_devices: false,
    shares_blocks: true,
    has_snapshots: false,
    least_mib: |_| 300,
    check: Some(("xfs_repair", "-nf")),
};
