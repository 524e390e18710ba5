//! Deliberate bugs of disk groups that their tests must catch; never there outside this crate's own tests. A bug is
//! planted for the calling thread, which in the simulated world is the whole world.

/// A deliberate bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    /// A write is acknowledged while the disk that failed it is online in the metadata.
    AcknowledgesBeforeOffline,
    /// Only the first copy is written.
    MirrorNotWritten,
    /// The change map is not written before the first write to an extent.
    ChangeMapNotWritten,
    /// A mount does not make the copies equal that a crash may have left different.
    MountSkipsResync,
    /// A moved extent counts before its bytes are on stable storage.
    MovesUnflushed,
    /// A moved extent's old place is given away before the move is in the metadata.
    FreesBeforeMoved,
    /// Writes continue to an extent that is being moved.
    MovesUnlocked,
    /// Fine stripes are looked up one too far.
    StripeOffByOne,
    /// A flush reaches only the first disk.
    FlushesOneDisk,
    /// A file can be seen before its creation is in the metadata of any disk.
    CommitsInMemory,
    /// Bits of the change map are cleared without flushing what they stood for.
    ClearsUnflushed,
}

#[cfg(test)]
std::thread_local! {
    static PLANTED: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug, or pulls it out.
#[cfg(test)]
pub(crate) fn plant(planted: Option<Planted>) {
    PLANTED.set(planted);
}

/// Whether any bug is planted.
#[cfg(test)]
pub(crate) fn is_any() -> bool {
    PLANTED.get().is_some()
}

/// Whether the bug is planted.
#[cfg(test)]
pub(crate) fn has_planted(planted: Planted) -> bool {
    PLANTED.get() == Some(planted)
}

/// Whether the bug is planted: never.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn has_planted(_planted: Planted) -> bool {
    false
}
