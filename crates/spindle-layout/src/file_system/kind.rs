//! What a kind of file system is. Its own file says it of each; the list beside them is for all others.

/// One kind of file system.
#[derive(Debug)]
pub struct FileSystemKind {
    /// As `mkfs.NAME` and the mount table write it.
    pub name: &'static str,
    /// The package that its `mkfs` comes with.
    pub package: &'static str,
    /// Arguments of its `mkfs`, before the person's own: what would continue in the background during trials is done at
    /// once, and nothing is discarded.
    pub(crate) mkfs: &'static [&'static str],
    /// Arguments with which its `mkfs` makes nothing.
    pub(crate) makes_nothing: &'static [&'static str],
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
    /// The least size of each device, MiB, when there are this many; a smaller one its `mkfs` refuses. 0 where that is
    /// small or not known.
    pub least_mib: fn(usize) -> u64,
    /// The program, with its options, that looks for damage and changes nothing; the device follows.
    pub check: Option<(&'static str, &'static str)>,
}

/// As most kinds take their identity.
pub(super) fn upper_u(uuid: &str) -> [String; 2] {
    ["-U".to_owned(), uuid.to_owned()]
}
