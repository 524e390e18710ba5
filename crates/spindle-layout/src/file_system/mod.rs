//! What Spindle knows of each kind of file system: how it is made, how much room it leaves, what it can do, how it is
//! checked. A kind that is not in the list is made all the same, by its `mkfs.TYPE` with the person's own options. A
//! new kind is a file and a line in [`KINDS`]; what it keeps when the power goes is a line in the table of promises.

mod btrfs;
mod ext;
mod xfs;

/// Every kind that is known.
#[rustfmt::skip]
const KINDS: &[Kind] = &[
    ext::EXT2,
    ext::EXT3,
    ext::EXT4,
    xfs::KIND,
    btrfs::KIND,
];

/// One kind of file system.
#[derive(Debug)]
pub struct Kind {
    /// As `mkfs.NAME` and the mount table write it.
    pub name: &'static str,
    /// The package that its `mkfs` comes with.
    pub package: &'static str,
    /// Arguments of its `mkfs`, before the person's own: what would go on in the background during trials is done at
    /// once, and nothing is discarded.
    pub(crate) mkfs: &'static [&'static str],
    /// The arguments that give it an identity of our choice; `None` where it takes none.
    pub(crate) identity: Option<fn(&str) -> [String; 2]>,
    /// How much of a device of this many bytes is not for files, by the figures of `df`; leans to the small side.
    pub(crate) taken_bytes: fn(u64) -> u64,
    /// Its `mkfs` writes about one byte of this many of the device.
    pub(crate) written_share: u64,
    /// It can be made over several devices without a volume manager.
    pub spans_devices: bool,
    /// Files can share blocks (reflink, `FICLONE`).
    pub shares_blocks: bool,
    /// It has snapshots.
    pub has_snapshots: bool,
    /// It wants devices of some hundred MiB.
    pub is_for_large_devices: bool,
    /// The program, with its options, that looks for damage and changes nothing; the device follows.
    pub check: Option<(&'static str, &'static str)>,
}

/// What is known of a kind, by its name.
pub fn kind(name: &str) -> Option<&'static Kind> {
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

/// As most kinds take their identity.
fn upper_u(uuid: &str) -> [String; 2] {
    ["-U".to_owned(), uuid.to_owned()]
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
