//! How an instance is set up: plain data with documented defaults, given once at start.

use serde::{Deserialize, Serialize};
use spindle_text::section::Listing;
use spindle_text::{settings, words};

use crate::buggify::Switches;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

words! {
    /// When a written block is on stable storage.
    pub enum WriteSync {
        /// When the write returns (`O_DSYNC`), as Oracle opens its datafiles.
        Dsync = "dsync",
        /// When the checkpoint flushes the files, before it advances, as PostgreSQL and InnoDB do.
        Checkpoint = "checkpoint",
    }
}

words! {
    /// What protects from a block that a power cut has left half written.
    pub enum TornBlocks {
        /// The redo holds the whole block before it may be torn, as PostgreSQL's.
        Images = "images",
        /// Each batch is first written to an area of its writer, as InnoDB's.
        DoubleWrite = "double_write",
        /// The devices of the datafiles promise not to tear a block.
        Atomic = "atomic",
    }
}

words! {
    /// When a commit returns.
    pub enum Commit {
        /// When its redo is on stable storage.
        Wait = "wait",
        /// At once: the redo is asked to be written, and a crash may lose it (Oracle's `COMMIT WRITE IMMEDIATE
        /// NOWAIT`).
        NoWait = "nowait",
    }
}

settings! {
    /// What an experiment sets of an instance. A setting is a line here, and where the instance obeys it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct InstanceSettings {
        /// Number of DBWR processes, which write changed blocks.
        writers: u32 = number("writers", 1, 1..=100),
        /// When a written block is on stable storage: when the write returns (`O_DSYNC`, as Oracle opens its
        /// datafiles), or before the checkpoint advances (as PostgreSQL and InnoDB flush).
        write_sync: WriteSync = word("write_sync", WriteSync::Dsync),
        /// Whether a commit waits until its redo is on stable storage. `"nowait"` shows what waiting costs; a crash
        /// then loses commits.
        commit: Commit = word("commit", Commit::Wait),
        /// What protects from half-written blocks: the whole block goes into the redo before it may be torn (as
        /// PostgreSQL's); each batch is written to an area beside the datafiles first (as InnoDB's); or the device
        /// promises never to tear a block, which takes direct I/O and Linux 6.11, and without which the case is
        /// skipped.
        torn_blocks: TornBlocks = word("torn_blocks", TornBlocks::Images),
        /// A changed block is written when its change is this old; earlier when recovery would have to read more than
        /// nine tenths of a log file.
        #[serde(rename = "checkpoint_interval_ms", with = "spindle_text::milliseconds")]
        checkpoint_interval_ns: u64 = duration_ns("checkpoint_interval", 60 * SECOND_NS, SECOND_NS / 10..=DAY_NS),
        /// How long a transaction waits for a row lock before it gives up and is rolled back; a deadlock is found at
        /// once.
        #[serde(rename = "lock_timeout_ms", with = "spindle_text::milliseconds")]
        lock_timeout_ns: u64 = duration_ns("lock_timeout", 5 * SECOND_NS, SECOND_NS / 1000..=DAY_NS / 24),
        /// Memory of one sort or aggregation of a query; what does not fit goes to temporary segments (Oracle's
        /// `SORT_AREA_SIZE`). Each slave of a query has as much.
        sort_area_bytes: u64 = size("sort_area", 4 << 20, 1 << 20..=1 << 30),
    }
}

/// What a journal says of a setting that is newer than itself.
impl Default for InstanceSettings {
    fn default() -> InstanceSettings {
        Listing::defaults()
    }
}

/// Database block size where nothing is said of it, bytes.
pub const BLOCK_BYTES_DEFAULT: u64 = 8 << 10;
/// Buffer cache where nothing is said of it, bytes.
pub const BUFFER_CACHE_BYTES_DEFAULT: u64 = 64 << 20;

/// All settings of an instance: those of an experiment, and those that follow from them or are none of its business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSettings {
    /// What an experiment sets.
    pub instance: InstanceSettings,
    /// Database block size, bytes: a power of two from 2048 to 32768.
    pub block_bytes: usize,
    /// Buffer cache, bytes.
    pub buffer_cache_bytes: u64,
    /// Blocks in one DBWR batch at most (default 128).
    pub write_batch_blocks: usize,
    /// Each of the two halves of the log buffer, bytes (default 1 MiB).
    pub log_buffer_bytes: usize,
    /// LGWR hands a write to its device in pieces of at most this many bytes, to be under way together where the
    /// device's method allows (default 256 KiB).
    pub log_write_bytes_max: usize,
    /// Redo that recovery should have to read at most, bytes as written to the log files. `None` (the default), and at
    /// most, is 90 % of what the smallest log file takes.
    pub checkpoint_lag_bytes: Option<u64>,
    /// CKPT notes this often how far DBWR has come, nanoseconds (default 3 s, as Oracle's).
    pub checkpoint_progress_ns: u64,
    /// Blocks of a multi-block read (default 16; Oracle's `db_file_multiblock_read_count`).
    pub multiblock_read_blocks: usize,
    /// Faults planted to prove that the checks can fail; none outside tests.
    pub planted: Option<PlantedFault>,
    /// Rare behaviour that is to happen often; none outside tests.
    pub switches: Switches,
}

impl Default for KernelSettings {
    fn default() -> KernelSettings {
        KernelSettings {
            instance: InstanceSettings::default(),
            block_bytes: BLOCK_BYTES_DEFAULT as usize,
            buffer_cache_bytes: BUFFER_CACHE_BYTES_DEFAULT,
            write_batch_blocks: 128,
            log_buffer_bytes: 1 << 20,
            log_write_bytes_max: 256 << 10,
            checkpoint_lag_bytes: None,
            checkpoint_progress_ns: 3_000_000_000,
            multiblock_read_blocks: 16,
            planted: None,
            switches: Switches::OFF,
        }
    }
}

/// A deliberate bug, which a test must catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedFault {
    /// A commit returns before its redo is on stable storage.
    AcknowledgeBeforeFlush,
    /// DBWR writes blocks whose redo is not yet on stable storage.
    WriteAheadOfRedo,
    /// DBWR takes a write for durable that is in the device's cache.
    DatafileWriteNotDurable,
    /// A checkpoint leaves out the flush of the datafiles ([`WriteSync::Checkpoint`]).
    DatafilesNotFlushed,
    /// A full checkpoint does not wait for DBWR.
    CheckpointDoesNotWait,
    /// A checkpoint looks for its position after it has flushed the datafiles, not before ([`WriteSync::Checkpoint`]).
    CheckpointTakenLate,
    /// CKPT notes the position that DBWR was asked to reach, not the one it has reached.
    CheckpointPositionTooFar,
    /// No double write: a torn block has no copy.
    DoubleWriteLeftOut,
    /// The double write area is used again before its last batch is on stable storage ([`WriteSync::Checkpoint`]).
    DoubleWriteReusedEarly,
    /// DBWR does not ask for writes that are never torn ([`TornBlocks::Atomic`]).
    AtomicNotAsked,
    /// A block gets no new image although recovery would begin after its last one.
    ImageTooOld,
    /// The control file is written without waiting for stable storage.
    ControlFileNotDurable,
    /// LGWR takes a write for durable that is in the device's cache.
    LogWriteNotDurable,
    /// The header of the next log file is taken for durable while it is in the device's cache.
    LogHeaderNotDurable,
    /// LGWR switches to the next log file although recovery may still need it.
    LogFileReusedEarly,
    /// No block images in the redo: a torn block stays torn.
    ImagesLeftOut,
    /// The first block of a change is not marked dirty.
    DirtyFlagLost,
    /// A block that was changed while its copy was written is taken for written.
    CloneTakenForBlock,
    /// A commit leaves its slot of the transaction table in use.
    CommitWithoutSlot,
    /// Recovery does not roll back.
    UndoSkipped,
    /// Roll-back forgets undo records without carrying them out.
    UndoNotApplied,
    /// Roll-back stops at the end of the transaction's last undo block.
    UndoChainCut,
    /// Recovery carries each change vector out twice.
    RedoAppliedTwice,
    /// Recovery notes its checkpoint before DBWR has written the blocks.
    RecoveryNotWritten,
    /// Recovery takes a torn write of LGWR for redo.
    BatchChecksumUnverified,
    /// A block is used without its checksum and its address being compared.
    BlockChecksumUnverified,
    /// Space that a transaction has freed is given to others before it has ended.
    FreedSpaceNotKept,
    /// A failed flush of the datafiles is taken for a successful one.
    FlushErrorIgnored,
    /// LGWR takes a failed write for a successful one.
    LogWriteErrorIgnored,
    /// Recovery takes damage in the middle of the redo for its end.
    RedoEndUnverified,
    /// Circles among the waits for row locks are not detected.
    DeadlockUnseen,
    /// Readers get rows as they are, committed or not.
    DirtyRead,
    /// A transaction keeps no row lock but that of the row it changed last.
    RowLockReleasedEarly,
    /// A scan takes each row's latest committed version, whenever that was committed.
    ScanSeesLatest,
    /// A reader who does not find the undo record it needs takes the row as it is.
    OverwrittenUndoServed,
    /// A record is given the position at which the one before it ended.
    ScnHandedOutTwice,
    /// A heap block bears the address of another when it is about to be written.
    BlockMisplaced,
    /// A session that has used a block does not let its buffer go.
    PinKept,
    /// LGWR is wrong by one about where its batch ended.
    RedoEndMiscounted,
    /// Changes are let in although no log file is free for their redo.
    RoomOverstated,
    /// CKPT notes a position that LGWR has not reached.
    CheckpointBeyondRedo,
    /// The branch above a node is not told that the node was split.
    SplitUntold,
    /// A session takes a node for the one it looks for although it was split meanwhile.
    NeighbourIgnored,
    /// Roll-back leaves the entries of indexes as they are.
    EntriesNotUndone,
    /// A deleted entry goes when its transaction has ended, and statements that began before may want it.
    GhostGoneEarly,
    /// Two transactions may put the same key into a unique index.
    KeyUnlocked,
    /// The map is not told that a delete has left a block with room.
    RoomUntold,
    /// The map is not told that a block is in use.
    UseUntold,
    /// The map is not told that a leaf holds nothing any longer.
    EmptyLeafUntold,
    /// A migrated row that comes home stays where it was, too.
    LeftRowKept,
    /// An undo record names as the version before the change the one that the change makes.
    UndoInCircle,
    /// The dictionary is not told that the undo segment has grown.
    UndoGrownUntold,
    /// A join that does not fit into memory forgets a partition of each process.
    JoinPartitionLost,
    /// A background process of that name ends when others need it.
    ProcessEnds(&'static str),
    /// A background process of that name panics.
    ProcessPanics(&'static str),
}

#[cfg(feature = "planted")]
impl PlantedFault {
    /// Every fault that power cuts, or the statements before one, bring to light. For the others a device must fail or
    /// misdirect, transactions must get in each other's way, or space must be used again (`tests/all/space.rs`).
    pub const ALL: [PlantedFault; 33] = [
        PlantedFault::AcknowledgeBeforeFlush,
        PlantedFault::WriteAheadOfRedo,
        PlantedFault::DatafileWriteNotDurable,
        PlantedFault::DatafilesNotFlushed,
        PlantedFault::CheckpointDoesNotWait,
        PlantedFault::CheckpointTakenLate,
        PlantedFault::CheckpointPositionTooFar,
        PlantedFault::ImageTooOld,
        PlantedFault::CloneTakenForBlock,
        PlantedFault::DoubleWriteLeftOut,
        PlantedFault::DoubleWriteReusedEarly,
        PlantedFault::AtomicNotAsked,
        PlantedFault::ControlFileNotDurable,
        PlantedFault::LogWriteNotDurable,
        PlantedFault::LogHeaderNotDurable,
        PlantedFault::LogFileReusedEarly,
        PlantedFault::ImagesLeftOut,
        PlantedFault::DirtyFlagLost,
        PlantedFault::CommitWithoutSlot,
        PlantedFault::UndoSkipped,
        PlantedFault::UndoNotApplied,
        PlantedFault::UndoChainCut,
        PlantedFault::RedoAppliedTwice,
        PlantedFault::RecoveryNotWritten,
        PlantedFault::BatchChecksumUnverified,
        PlantedFault::BlockChecksumUnverified,
        PlantedFault::FreedSpaceNotKept,
        PlantedFault::ScanSeesLatest,
        PlantedFault::SplitUntold,
        PlantedFault::NeighbourIgnored,
        PlantedFault::EntriesNotUndone,
        PlantedFault::GhostGoneEarly,
        PlantedFault::KeyUnlocked,
    ];
}

impl KernelSettings {
    /// True when `fault` is planted. Compiled to `false` unless the crate is built for tests (feature `planted`).
    pub(crate) fn has_planted(&self, fault: PlantedFault) -> bool {
        cfg!(feature = "planted") && self.planted == Some(fault)
    }
}
