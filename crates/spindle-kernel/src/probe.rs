//! Probes: rare paths that a test must have reached to prove anything. Counted for each thread, which in the simulated world
//! is the whole world; without the feature `planted` they cost nothing.

use std::cell::Cell;

/// A rare path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// LGWR began to write a log file that had been written before.
    LogRingWrapped,
    /// A session found no clean buffer to use.
    FreeBufferWait,
    /// Changes were held back until a checkpoint freed a log file.
    LogFileWait,
    /// A lock timeout broke a wait.
    LockTimeout,
    /// A row outgrew its block and moved to another.
    RowMigrated,
    /// A heap block was compacted to make room for a row.
    BlockCompacted,
    /// A wait was refused because it would have closed a circle of waits.
    DeadlockBroken,
    /// A reader went back to an earlier version of a row.
    EarlierVersionRead,
    /// A reader did not find the undo it needed.
    SnapshotTooOld,
    /// Recovery found transactions to roll back.
    RollBackBegun,
    /// Recovery has rolled them back.
    RollBackEnded,
    /// Recovery met a damaged block before the image that replaced it.
    ImageCameLater,
    /// A block became dirty again, and its last image still protected it.
    ImageUsedAgain,
    /// CKPT moved the position past redo whose blocks were written, while later changes were not.
    CheckpointAdvanced,
    /// A torn block was restored from the double write area.
    TornBlockRestored,
}

const PROBES: usize = Probe::TornBlockRestored as usize + 1;

thread_local! {
    static HITS: [Cell<u64>; PROBES] = const { [const { Cell::new(0) }; PROBES] };
}

/// The path was reached.
pub(crate) fn hit(probe: Probe) {
    if cfg!(feature = "planted") {
        HITS.with(|hits| hits[probe as usize].set(hits[probe as usize].get() + 1));
    }
}

#[cfg(feature = "planted")]
/// How often this thread has reached the path.
pub fn hits(probe: Probe) -> u64 {
    HITS.with(|hits| hits[probe as usize].get())
}
