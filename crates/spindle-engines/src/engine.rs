//! What a trial needs of a database under test, whichever it is: clients that work on it, what it counts and waits for
//! ([`Counters`], said once by each database), and its end.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use spindle_io::real::IoCounts;
use spindle_io::{Env, ProcessorUse};
use spindle_kernel::SampledWaits;
use spindle_layout::Place;
use spindle_workload::Acknowledged;
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::sql::KeptAnswer;

use crate::EngineError;
use crate::promise::{Promise, Storage};

/// An answer that takes a while.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// For each file, the numbers of the blocks written since the start.
pub type Written = Vec<(Place, Vec<u64>)>;

/// Counts of I/O, as the database knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EngineCounts {
    /// On datafiles, double write areas and control file.
    pub data: IoCounts,
    /// On log files.
    pub redo: IoCounts,
    /// Those of `data` and `redo` that were on files of disk groups.
    pub grouped: IoCounts,
    /// On the disks of disk groups: what became of `grouped`, every copy counted.
    pub disks: IoCounts,
}

/// What was waited for under one event since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineWait {
    /// Its name: Oracle's, or the database's own with the nearest of Oracle's behind it.
    pub event: Cow<'static, str>,
    /// How often; of events that are seen in samples only, how many samples saw it.
    pub count: u64,
    /// How long, nanoseconds.
    pub total_ns: u64,
    /// A sample of these waits that says what of them was no waiting; zeros where there is none.
    pub sampled: SampledWaits,
}

/// What the database did of its own, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Housekeeping {
    /// Checkpoints that ended.
    pub checkpoints: u64,
    /// Times redo went on in another log file; 0 where that means nothing.
    pub log_switches: u64,
}

/// Blocks that were looked for in the buffer cache, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Blocks looked for.
    pub wanted: u64,
    /// Those of them that were not there, and had to be read.
    pub missed: u64,
    /// Blocks read into it, those that were read ahead included.
    pub read_in: u64,
    /// Size of a block, bytes.
    pub block_bytes: u64,
}

/// Space of one table or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSize {
    /// Its name.
    pub name: String,
    /// Extents it has; 1 where there is no such thing.
    pub extents: u64,
    /// Bytes it takes.
    pub bytes: u64,
}

/// A thread of some process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadOf {
    /// The process.
    pub process_id: u32,
    /// The thread.
    pub thread_id: u32,
}

/// What a running database tells of itself. Counters count since its start. What a database does not tell is said by a
/// default: nothing, or zero.
pub trait Counters: Send + Sync {
    /// I/O so far.
    fn counts(&self) -> EngineCounts;

    /// Waits so far, of sessions and background processes, always in the same order.
    fn waits(&self) -> Vec<EngineWait>;

    /// Those of sessions alone.
    fn session_waits(&self) -> Vec<EngineWait>;

    /// Whether waits are seen in samples only: their counts are then of samples.
    fn waits_are_sampled(&self) -> bool {
        false
    }

    /// Checkpoints and the like so far.
    fn housekeeping(&self) -> Housekeeping {
        Housekeeping::default()
    }

    /// How often the buffer cache was of use; `None` where the database does not count that.
    fn cache(&self) -> Option<CacheCounts> {
        None
    }

    /// Changed blocks in the buffer cache, bytes.
    fn dirty_bytes(&self) -> u64 {
        0
    }

    /// Why the database failed or ended, if it did. Of an existing server only its clients notice.
    fn failure(&self) -> Option<EngineError> {
        None
    }

    /// Space of every table and index.
    fn segments(&self) -> Vec<SegmentSize>;

    /// Space of all of them, bytes; `None` where asking for it takes the database's time.
    fn segments_bytes(&self) -> Option<u64> {
        None
    }

    /// The processes of a server, of which every descendant belongs to the database; none when it runs in this process,
    /// or their place is unknown.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Threads of a server that serve the clients, one after the other or one each.
    fn session_threads(&self) -> Vec<ThreadOf> {
        Vec::new()
    }

    /// What processes of its own that served clients have had of the processors, those that have ended.
    fn ended_processes(&self) -> ProcessorUse {
        ProcessorUse::default()
    }

    /// What it keeps when the power goes, by its settings in force for a client's session, on what lies beneath its
    /// files.
    fn promise(&self, storage: &Storage) -> Promise;

    /// What was noticed, for people.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A database under test, running, with the workload that it was loaded for.
pub trait Engine: Send + Sync {
    /// What it tells of itself.
    fn counters(&self) -> &dyn Counters;

    /// Lets clients begin the workload.
    fn start_clients(&self, env: &Arc<dyn Env>, behaviour: Behaviour) -> Running;

    /// Looks at the whole database and says whether anything was lost; `acknowledged` has, for each client, what it was
    /// promised.
    ///
    /// # Errors
    /// Of the kind `LostRows`, or it cannot be looked at.
    fn check(&self, acknowledged: Vec<Acknowledged>) -> Answer<'_, Result<String, EngineError>>;

    /// Answers that clients were given, where the workload keeps them.
    fn kept_answers(&self) -> Vec<KeptAnswer> {
        Vec::new()
    }

    /// Makes everything durable that was left for later.
    ///
    /// # Errors
    /// A device refuses it.
    fn flush(&self) -> Answer<'_, Result<(), EngineError>>;

    /// Stops the database where it is, with nothing to save: its files are put back before they are used again.
    ///
    /// # Errors
    /// It did not end.
    fn stop(self: Arc<Self>) -> Answer<'static, Result<Written, EngineError>>;
}
