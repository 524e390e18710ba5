//! Wait events under Oracle's names: how often and how long processes waited, and for what; and what they read, which
//! is counted as often as anything is. Each process counts into its own table, so that counting costs an addition
//! or two and no two processors write to the same memory; [`WaitEvents`] adds them up.
//!
//! A wait is elapsed time, as in Oracle. A session that reads with a blocking call is on the processor for a part of
//! it, and in the run queue for another, when no processor was free. What parts those are is looked up in one of
//! [`SAMPLED_EVERY`] waits of each session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spindle_io::sync::Latch;
use spindle_io::{Env, ProcessorUse};

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
    /// No buffer is free, and most are dirty: DBWR is behind.
    FreeBufferWaits => "free buffer waits",
    /// Another session has the buffer in an incompatible mode; or no buffer is free, and others have most of them
    /// pinned.
    BufferBusyWaits => "buffer busy waits",
    /// Another session is reading the block into the cache.
    ReadByOtherSession => "read by other session",
    /// The buffer to change is being written.
    WriteCompleteWaits => "write complete waits",
    /// Another transaction has the row locked.
    RowLockContention => "enq: TX - row lock contention",
    /// A query writes a temporary segment.
    DirectPathWriteTemp => "direct path write temp",
    /// A query reads what it has written to a temporary segment.
    DirectPathReadTemp => "direct path read temp",
    /// A session extends a segment: it formats the new blocks and enters them in the control file.
    DataFileInitWrite => "data file init write",
    /// Another session extends the segment.
    SpaceContention => "enq: HW - contention",
    /// CKPT or a foreground writes the control file.
    ControlFileWrite => "control file parallel write",
}

const EVENTS: usize = WaitEvent::ALL.len();

/// In one of this many waits a session looks at what the processors gave it meanwhile, which takes six microseconds.
/// A prime, so that it keeps no step with what transactions repeat.
pub const SAMPLED_EVERY: u64 = 31;

/// Counts and times of one process. Aligned, so that two of them never share what processors fetch together (two cache
/// lines of 64 bytes).
#[derive(Default)]
#[repr(align(128))]
pub struct ProcessWaits {
    counts: [AtomicU64; EVENTS],
    total_ns: [AtomicU64; EVENTS],
    is_session: bool,
    begun: AtomicU64,
    sampled: [Sampled; EVENTS],
    logical_reads: AtomicU64,
    physical_read_ios: AtomicU64,
    physical_read_blocks: AtomicU64,
}

#[derive(Default)]
struct Sampled {
    total_ns: AtomicU64,
    running_ns: AtomicU64,
    run_queue_ns: AtomicU64,
}

/// A wait that has begun; it counts when it ends.
pub(crate) struct Waiting<'a> {
    waits: &'a ProcessWaits,
    env: &'a dyn Env,
    began_ns: u64,
    before: Option<ProcessorUse>,
}

impl Waiting<'_> {
    /// Counts the wait, under the name that it turned out to have.
    pub(crate) fn end(self, event: WaitEvent) {
        let waited_ns = self.env.now() - self.began_ns;
        let add = |sum: &AtomicU64, amount| sum.fetch_add(amount, Ordering::Relaxed);
        add(&self.waits.counts[event as usize], 1);
        add(&self.waits.total_ns[event as usize], waited_ns);
        let Some(before) = self.before else {
            return;
        };
        if let Some(after) = self.env.processor_use() {
            let sampled = &self.waits.sampled[event as usize];
            add(&sampled.total_ns, waited_ns);
            add(&sampled.running_ns, after.running_ns - before.running_ns);
            add(
                &sampled.run_queue_ns,
                after.run_queue_ns - before.run_queue_ns,
            );
        }
    }
}

impl ProcessWaits {
    /// A wait begins now.
    pub(crate) fn begin<'a>(&'a self, env: &'a dyn Env) -> Waiting<'a> {
        let is_sampled = self.is_session
            && self
                .begun
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(SAMPLED_EVERY);
        let before = if is_sampled {
            env.processor_use()
        } else {
            None
        };
        Waiting {
            waits: self,
            env,
            began_ns: env.now(),
            before,
        }
    }

    /// Counts a block looked for in the buffer cache.
    pub(crate) fn add_logical_read(&self) {
        self.logical_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read of this many blocks.
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

/// Count and time of one event over several processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTotal {
    /// The event.
    pub event: WaitEvent,
    /// Waits ended.
    pub count: u64,
    /// Time waited, nanoseconds.
    pub total_ns: u64,
    /// Those of the waits that were looked at more closely.
    pub sampled: SampledWaits,
}

/// What sessions had of the processors in some of their waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampledWaits {
    /// Time waited in them, nanoseconds.
    pub total_ns: u64,
    /// Time on a processor in them, as in a blocking call, nanoseconds.
    pub running_ns: u64,
    /// Time ready to run in them, with no processor free, nanoseconds.
    pub run_queue_ns: u64,
}

/// The tables of every process that ever was in the instance.
#[derive(Default)]
pub struct WaitEvents {
    processes: Latch<Vec<Arc<ProcessWaits>>>,
}

impl WaitEvents {
    /// A table for a new background process.
    pub fn register(&self) -> Arc<ProcessWaits> {
        self.enter(ProcessWaits::default())
    }

    /// A table for a new session.
    pub fn register_session(&self) -> Arc<ProcessWaits> {
        self.enter(ProcessWaits {
            is_session: true,
            ..ProcessWaits::default()
        })
    }

    fn enter(&self, waits: ProcessWaits) -> Arc<ProcessWaits> {
        let waits = Arc::new(waits);
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

    /// Sums over all processes since the instance started, every event in order of the enumeration.
    pub fn totals(&self) -> Vec<WaitTotal> {
        self.totals_of(|_| true)
    }

    /// The same over sessions alone: what clients waited for.
    pub fn session_totals(&self) -> Vec<WaitTotal> {
        self.totals_of(|process| process.is_session)
    }

    fn totals_of(&self, is_asked: impl Fn(&ProcessWaits) -> bool) -> Vec<WaitTotal> {
        let processes = self.processes.lock();
        let sum = |figure: &dyn Fn(&ProcessWaits) -> &AtomicU64| {
            let asked = processes.iter().filter(|process| is_asked(process));
            asked
                .map(|process| figure(process).load(Ordering::Relaxed))
                .sum()
        };
        let total = |&event: &WaitEvent| {
            let index = event as usize;
            WaitTotal {
                event,
                count: sum(&|process| &process.counts[index]),
                total_ns: sum(&|process| &process.total_ns[index]),
                sampled: SampledWaits {
                    total_ns: sum(&|process| &process.sampled[index].total_ns),
                    running_ns: sum(&|process| &process.sampled[index].running_ns),
                    run_queue_ns: sum(&|process| &process.sampled[index].run_queue_ns),
                },
            }
        };
        WaitEvent::ALL.iter().map(total).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use spindle_io::env::{LocalFuture, ProcessStart};
    use spindle_io::{Env, Join};

    use super::*;

    /// A world in which every look at the clock takes 10 ns, 3 of them on the processor and 2 in the run queue.
    #[derive(Default)]
    struct Ticking(AtomicU64);

    impl Env for Ticking {
        fn now(&self) -> u64 {
            self.0.fetch_add(10, Ordering::Relaxed) + 10
        }

        fn sleep(&self, _duration_ns: u64) -> LocalFuture {
            unreachable!("nobody sleeps")
        }

        fn spawn(&self, _name: &str, _start: ProcessStart) -> Join {
            unreachable!("nobody spawns")
        }

        fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
            spindle_io::env::seeded_rng(0, stream)
        }

        fn processor_use(&self) -> Option<ProcessorUse> {
            let looks = self.0.load(Ordering::Relaxed) / 10;
            Some(ProcessorUse {
                running_ns: 3 * looks,
                run_queue_ns: 2 * looks,
            })
        }
    }

    #[test]
    fn sessions_are_told_from_background_processes_and_sampled() {
        let env = Ticking::default();
        let events = WaitEvents::default();
        let (session, dbwr) = (events.register_session(), events.register());
        for _ in 0..=SAMPLED_EVERY {
            session.begin(&env).end(WaitEvent::DbFileSequentialRead);
        }
        dbwr.begin(&env).end(WaitEvent::DbFileSequentialRead);
        let first = |totals: Vec<WaitTotal>| totals[WaitEvent::DbFileSequentialRead as usize];
        let of_sessions = first(events.session_totals());
        assert_eq!(of_sessions.count, SAMPLED_EVERY + 1);
        assert_eq!(of_sessions.total_ns, 10 * (SAMPLED_EVERY + 1));
        // The first and the last; each look at the clock is one step.
        let expected = SampledWaits {
            total_ns: 20,
            running_ns: 12,
            run_queue_ns: 8,
        };
        assert_eq!(of_sessions.sampled, expected);
        let all = first(events.totals());
        assert_eq!(all.count, SAMPLED_EVERY + 2);
        assert_eq!(all.sampled, expected);
    }
}
