//! What Spindle knows of each kind of file system: how it is made, how much room it leaves, what it can do, how it is
//! checked. A kind that is not in the list is made all the same, by its `mkfs.TYPE` with the person's own options. A
//! new kind is a file and a line in [`KINDS`]; what it keeps when the power goes is a line in the table of promises.

mod btrfs;
mod ext;
mod kind;
mod xfs;

pub use kind::FileSystemKind;

/// Every kind that is known.
#[rustfmt::skip]
const KINDS: &[FileSystemKind] = &[
    ext::EXT2,
    ext::EXT3,
    ext::EXT4,
    xfs::KIND,
    btrfs::KIND,
];

/// What is known of a kind, by its name.
pub fn kind(name: &str) -> Option<&'static FileSystemKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The names of all, in the order of the list.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// What a kind that is not known takes of a device, bytes.
pub(crate) fn taken_by_unknown(device_bytes: u64) -> u64 {
    device_bytes / 50
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_that_no_other_has() {
        let mut sorted: Vec<&str> = names().collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), KINDS.len());
        assert_eq!(kind("xfs").map(|kind| kind.name), Some("xfs"));
        assert!(kind("f2fs").is_none());
    }

    #[test]
    fn what_has_snapshots_shares_blocks() {
        assert!(
            KINDS
                .iter()
                .all(|kind| !kind.has_snapshots || kind.shares_blocks)
        );
    }
}
