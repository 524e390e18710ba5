//! The file system of Minix, version 3.

use super::kind::FileSystemKind;

pub(super) const KIND: FileSystemKind = FileSystemKind {
    name: "minix",
    package: "util-linux",
    mkfs: &["-3"],
    makes_nothing: &["-V", "--version", "-h", "--help"],
    identity: None,
    taken_bytes: |bytes| bytes / 10,
    written_share: 20,
    spans_devices: false,
    shares_blocks: false,
    has_snapshots: false,
    least_mib: |_| 0,
    check: Some(("fsck.minix", "-f")),
};
