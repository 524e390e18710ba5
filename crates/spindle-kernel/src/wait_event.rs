//! Wait events under Oracle's names: how often and how long processes waited, and for what; and what they read, which
//! is counted as often as anything is. Each process counts into a table of its own, so that counting costs an addition
//! or two and no two processors write to the same memory; [`WaitEvents`] adds them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spindle_io::sync::Latch;

macro_rules! wait_events {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// What a process waits for (Oracle Database Reference, "Descriptions of Wait Events").
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WaitEvent {
            $($(#[$doc])* $variant,)*
        }

        impl WaitEvent {
            /// Every event, in the order of the enumeration.
            pub const ALL: &'static [WaitEvent] = &[$(WaitEvent::$variant,)*];

            /// Oracle's name of the event.
            pub fn name(self) -> &'static str {
                match self { $(WaitEvent::$variant => $name,)* }
            }
        }
    };
}

wait_events! {
    /// A session reads one block.
    DbFileSequentialRead => "db file sequential read",
    /// A session reads several adjacent blocks in one call.
    DbFileScatteredRead => "db file scattered read",
    /// DBWR writes a batch.
    DbFileParallelWrite => "db file parallel write",
    /// DBWR writes copies of a batch to its double write area (Oracle has no such event).
    DoubleWrite => "double write",
    /// LGWR writes redo.
    LogFileParallelWrite => "log file parallel write",
    /// A commit waits for its redo to be stable.
    LogFileSync => "log file sync",
    /// A change waits for room in the log buffer.
    LogBufferSpace => "log buffer space",
    /// The next log file cannot be reused before its checkpoint is complete.
    LogFileSwitchCheckpoint => "log file switch (checkpoint incomplete)",
    /// No clean buffer is free; DBWR is behind.
    FreeBufferWaits => "free buffer waits",
    /// Another session has the buffer in an incompatible mode.
    BufferBusyWaits => "buffer busy waits",
    /// Another session is reading the block into the cache.
    ReadByOtherSession => "read by other session",
    /// The buffer to change is being written.
    WriteCompleteWaits => "write complete waits",
    /// Another transaction has the row locked.
    RowLockContention => "enq: TX - row lock contention",
    /// CKPT or a foreground writes the control file.
    ControlFileWrite => "control file parallel write",
}

const EVENTS: usize = WaitEvent::ALL.len();

/// Counts and times of one process. Aligned, so that two of them never share what processors fetch together (two cache
/// lines of 64 bytes).
#[derive(Default)]
#[repr(align(128))]
pub struct ProcessWaits {
    counts: [AtomicU64; EVENTS],
    total_ns: [AtomicU64; EVENTS],
    logical_reads: AtomicU64,
    physical_read_ios: AtomicU64,
    physical_read_blocks: AtomicU64,
}

impl ProcessWaits {
    /// Adds one wait of `waited_ns`.
    pub fn add(&self, event: WaitEvent, waited_ns: u64) {
        self.counts[event as usize].fetch_add(1, Ordering::Relaxed);
        self.total_ns[event as usize].fetch_add(waited_ns, Ordering::Relaxed);
    }

    /// Counts a block looked for in the buffer cache.
    pub(crate) fn add_logical_read(&self) {
        self.logical_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read of so many blocks.
    pub(crate) fn add_physical_read(&self, blocks: usize) {
        self.physical_read_ios.fetch_add(1, Ordering::Relaxed);
        self.physical_read_blocks
            .fetch_add(blocks as u64, Ordering::Relaxed);
    }
}

/// What all processes have read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reads {
    /// Blocks looked for in the buffer cache.
    pub(crate) logical: u64,
    /// Read I/Os.
    pub(crate) physical_ios: u64,
    /// Blocks they read.
    pub(crate) physical_blocks: u64,
}

/// Count and time of one event over all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTotal {
    /// The event.
    pub event: WaitEvent,
    /// Waits ended.
    pub count: u64,
    /// Time waited, nanoseconds.
    pub total_ns: u64,
}

/// The tables of every process that ever was in the instance.
#[derive(Default)]
pub struct WaitEvents {
    processes: Latch<Vec<Arc<ProcessWaits>>>,
}

impl WaitEvents {
    /// A table for a new process.
    pub fn register(&self) -> Arc<ProcessWaits> {
        let waits = Arc::new(ProcessWaits::default());
        self.processes.lock().push(Arc::clone(&waits));
        waits
    }

    /// What has been read since the instance started.
    pub(crate) fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        for process in self.processes.lock().iter() {
            let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            reads.logical += get(&process.logical_reads);
            reads.physical_ios += get(&process.physical_read_ios);
            reads.physical_blocks += get(&process.physical_read_blocks);
        }
        reads
    }

    /// Sums since the instance started, every event in order of the enumeration.
    pub fn totals(&self) -> Vec<WaitTotal> {
        let processes = self.processes.lock();
        let sum = |field: fn(&ProcessWaits) -> &[AtomicU64; EVENTS], event: WaitEvent| {
            processes
                .iter()
                .map(|process| field(process)[event as usize].load(Ordering::Relaxed))
                .sum()
        };
        WaitEvent::ALL
            .iter()
            .map(|&event| WaitTotal {
                event,
                count: sum(|process| &process.counts, event),
                total_ns: sum(|process| &process.total_ns, event),
            })
            .collect()
    }
}
