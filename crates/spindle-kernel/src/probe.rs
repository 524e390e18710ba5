//! Probes: rare paths that a test must have reached to prove anything. Counted for each thread, which in the simulated
//! world is the whole world; without the feature `planted` they cost nothing. A new one is one line in the list and one
//! call of `hit`: `tests/drawn.rs` and the soak then demand it by themselves.

use std::cell::Cell;

macro_rules! probes {
    ($($(#[$doc:meta])* $variant:ident,)*) => {
        /// A rare path.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Probe {
            $($(#[$doc])* $variant,)*
        }

        impl Probe {
            /// Every probe, in the order of the enumeration.
            pub const ALL: &'static [Probe] = &[$(Probe::$variant,)*];
        }
    };
}

probes! {
    /// LGWR began to write a log file that had been written before.
    LogRingWrapped,
    /// DBWR held writes back that no session waited for.
    WritesPaced,
    /// A session found no clean buffer to use.
    FreeBufferWait,
    /// A session waited for a buffer with another one pinned, because it had come away without both too often.
    PinnedWait,
    /// Changes were held back until a checkpoint freed a log file.
    LogFileWait,
    /// A lock timeout broke a wait.
    LockTimeout,
    /// The undo segment got an extent of the datafiles.
    UndoGrown,
    /// A row outgrew its block and moved to another.
    RowMigrated,
    /// A migrated row came home.
    RowCameHome,
    /// A row and its entries were put in by one record.
    RowInOneRecord,
    /// A row was planned, and an entry of it did not fit: nothing of the row was put in.
    RowTakenBack,
    /// A session took a block for its inserts that others had left with room.
    RoomUsedAgain,
    /// A heap block was compacted to make room for a row.
    BlockCompacted,
    /// A node of an index was split.
    NodeSplit,
    /// The root of an index got a level.
    RootGrown,
    /// A node got room because ghosts went, or because what they left was moved together.
    NodeTidied,
    /// A leaf was taken out of its tree.
    LeafReclaimed,
    /// A session moved on to the right neighbour of a node, which had been split meanwhile.
    MovedRight,
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
    /// A block was changed while its copy was being written.
    WriteCloneChanged,
    /// Blocks that follow each other in a datafile were written as one.
    RunWritten,
    /// CKPT moved the position past redo whose blocks were written, while later changes were not.
    CheckpointAdvanced,
    /// A torn block was restored from the double write area.
    TornBlockRestored,
    /// A crash left a torn block, and recovery repaired it; noted by the test, which saw it before and after.
    TornBlockRepaired,
    /// Recovery was crashed while it rolled back; noted by the test.
    RollBackCrashed,
}

thread_local! {
    static HITS: [Cell<u64>; Probe::ALL.len()] = const { [const { Cell::new(0) }; Probe::ALL.len()] };
}

/// The path was reached.
pub fn hit(probe: Probe) {
    if cfg!(feature = "planted") {
        HITS.with(|hits| hits[probe as usize].set(hits[probe as usize].get() + 1));
    }
}

#[cfg(feature = "planted")]
/// How often this thread has reached the path.
pub fn hits(probe: Probe) -> u64 {
    HITS.with(|hits| hits[probe as usize].get())
}
