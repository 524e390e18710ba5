//! A database under test, whichever it is. An [`Engine`] is looked at, made, loaded, kept, put back and started; a
//! [`RunningEngine`] has clients that work on it, counts and waits ([`Counters`], said once by each database), and
//! ends.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spindle_io::real::IoCounts;
use spindle_io::{Env, ProcessorUse};
use spindle_kernel::SampledWaits;
use spindle_layout::{LayoutError, Place, RestoreMethod, RestoreReport, Verify};
use spindle_workload::Acknowledged;
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::sql::KeptAnswer;

use crate::EngineError;
use crate::promise::{CommitStorage, Promise};

/// An answer that takes a while.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

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

impl EngineCounts {
    /// What was done since `earlier`; `None` when a count has fallen, as those of a server do that were set to zero.
    pub fn since(&self, earlier: &EngineCounts) -> Option<EngineCounts> {
        Some(EngineCounts {
            data: self.data.since(earlier.data)?,
            redo: self.redo.since(earlier.redo)?,
            grouped: self.grouped.since(earlier.grouped)?,
            disks: self.disks.since(earlier.disks)?,
        })
    }
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

impl EngineWait {
    /// Each wait of the second reading that the first has, too, whatever place it has there, with that of the first.
    pub fn pairs<'a>(
        before: &'a [EngineWait],
        after: &'a [EngineWait],
    ) -> impl Iterator<Item = (&'a EngineWait, &'a EngineWait)> {
        let in_place = move |place: usize, event: &str| {
            let there = before.get(place).filter(|other| other.event == event);
            there.or_else(|| before.iter().find(|other| other.event == event))
        };
        let with_first = move |(place, wait): (usize, &'a EngineWait)| {
            Some((in_place(place, &wait.event)?, wait))
        };
        after.iter().enumerate().filter_map(with_first)
    }
}

/// Background work of the database, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Housekeeping {
    /// Checkpoints that ended.
    pub checkpoints: u64,
    /// Switches of redo to another log file; `None` where that means nothing.
    pub log_switches: Option<u64>,
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

/// What a running database tells of itself. Counters count since its start. What a database does not tell is `None`, or
/// not in a list; 0 is a count.
pub trait Counters: Send + Sync {
    /// I/O so far.
    fn counts(&self) -> Option<EngineCounts>;

    /// Waits so far, of sessions and background processes, always the same in the same order.
    fn waits(&self) -> Vec<EngineWait>;

    /// Those of sessions alone.
    fn session_waits(&self) -> Vec<EngineWait>;

    /// Whether waits are seen in samples only: their counts are then of samples.
    fn waits_are_sampled(&self) -> bool {
        false
    }

    /// Checkpoints and the like so far.
    fn housekeeping(&self) -> Option<Housekeeping> {
        None
    }

    /// How often the buffer cache was of use; `None` where the database does not count that.
    fn cache(&self) -> Option<CacheCounts> {
        None
    }

    /// Changed blocks in the buffer cache, bytes.
    fn dirty_bytes(&self) -> Option<u64> {
        None
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

    /// Processor time of its processes that served clients and have ended.
    fn ended_processes(&self) -> ProcessorUse {
        ProcessorUse::default()
    }

    /// What it keeps when the power goes, by its settings in force for a client's session, on what lies beneath its
    /// files. `sent` is what clients send that may set others for themselves ([`crate::promise::scripts::words`]).
    fn promise(&self, storage: &CommitStorage, sent: &[String]) -> Promise;

    /// What was noticed, in words.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What was found of a server on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServer {
    /// Name and version, in words.
    pub version: String,
    /// Settings that it will run with beyond its defaults, in words: `name = value`.
    pub settings: Vec<String>,
    /// What is to be known of it.
    pub notes: Vec<String>,
}

/// Why a database cannot be kept, or put back.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// Its files.
    #[error(transparent)]
    Files(#[from] LayoutError),
    /// The database itself.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// How an image is put back.
#[derive(Debug, Clone, Copy)]
pub enum PutBackBy {
    /// The engine puts it back: known blocks, whole files, shared blocks, or loading again.
    Itself(Verify),
    /// The volume beneath it has been put back to its snapshot, which began at that time.
    Volume(Verify, Instant),
}

/// What putting a database back came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// How, in words.
    pub method: &'static str,
    /// Blocks that differed from the loaded state.
    pub changed_blocks: u64,
    /// Whether all of it was found to be as it was loaded.
    pub is_verified: bool,
    /// How long it took.
    pub took: Duration,
    /// What was noticed, in words.
    pub warnings: Vec<String>,
}

impl From<RestoreReport> for Restored {
    fn from(report: RestoreReport) -> Restored {
        let mut warnings = Vec::new();
        if !report.moved_files.is_empty() {
            warnings.push(format!(
                "restoring moved {} on the device (a file system that copies on write): trials pay for that",
                report.moved_files.join(", ")
            ));
        }
        if report.resident_pages > 0 {
            warnings.push(format!(
                "{} pages stayed in the page cache before the trial",
                report.resident_pages
            ));
        }
        Restored {
            method: match report.method {
                RestoreMethod::Listed => "changed blocks copied back in place",
                RestoreMethod::Compared => {
                    "every block compared, changed ones copied back in place"
                }
                RestoreMethod::Cloned => {
                    "files share the blocks of their originals again (reflink)"
                }
                RestoreMethod::Files => "files compared, changed blocks copied back in place",
                RestoreMethod::RolledBack => "thin volume put back to its snapshot (LVM)",
            },
            changed_blocks: report.changed_blocks,
            is_verified: report.verified == Verify::Full,
            took: Duration::from_micros(report.duration_us),
            warnings,
        }
    }
}

/// A database under test with the workload that it is for. It is made and loaded once, as the golden copy; snapshots of
/// that are images; a trial starts an image, and before each trial the image is put back. It keeps nothing between
/// calls.
pub trait Engine {
    /// What a database of it lies in: files, directories, or a schema on a server.
    type Home;
    /// A loaded database, which images are made of and put back to.
    type Golden;
    /// Where an image is to lie.
    type Site;
    /// A copy of the golden one, for trials.
    type Image;

    /// Looks whether what is asked of it is possible here, wherever its files go; changes nothing. `None`: it is a part
    /// of Spindle, of which there is nothing to tell.
    ///
    /// # Errors
    /// `Unavailable`, in words.
    fn examine(&self) -> Result<Option<FoundServer>, EngineError>;

    /// Makes an empty database.
    ///
    /// # Errors
    /// [`EngineError`]; so for the others.
    fn create(&self, home: &Self::Home) -> Result<(), EngineError>;

    /// Loads the workload and stops the database in order. Ends early, with an error, once `interrupted`.
    fn load(&self, home: &Self::Home, interrupted: &Arc<AtomicBool>) -> Result<(), EngineError>;

    /// Makes an image of what was loaded.
    ///
    /// # Errors
    /// [`KeepError`].
    fn snapshot(
        &self,
        golden: &Arc<Self::Golden>,
        site: Self::Site,
    ) -> Result<Self::Image, KeepError>;

    /// Puts an image back to the loaded state.
    ///
    /// # Errors
    /// [`KeepError`].
    fn restore(
        &self,
        image: &mut Self::Image,
        by: PutBackBy,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Restored, KeepError>;

    /// Starts the database of an image for a trial.
    fn start<'a>(
        &'a self,
        home: &'a Self::Home,
        env: &'a Arc<dyn Env>,
    ) -> EngineFuture<'a, Result<Arc<dyn RunningEngine>, EngineError>>;
}

/// A database under test, running, with the workload that it was loaded for.
pub trait RunningEngine: Send + Sync {
    /// What it tells of itself.
    fn counters(&self) -> &dyn Counters;

    /// What it keeps when the power goes, on what lies beneath its files.
    fn promise(&self, storage: &CommitStorage) -> Promise {
        self.counters().promise(storage, &[])
    }

    /// Lets clients begin the workload.
    fn start_clients(&self, env: &Arc<dyn Env>, behaviour: Behaviour) -> Running;

    /// Looks at the whole database and says whether anything was lost; `acknowledged` has, for each client, what it was
    /// promised.
    ///
    /// # Errors
    /// Of the kind `LostRows`, or it cannot be looked at.
    fn check(
        &self,
        acknowledged: Vec<Acknowledged>,
    ) -> EngineFuture<'_, Result<String, EngineError>>;

    /// Answers that clients were given, where the workload keeps them.
    fn kept_answers(&self) -> Vec<KeptAnswer> {
        Vec::new()
    }

    /// Makes everything durable that was left for later.
    ///
    /// # Errors
    /// A device refuses it.
    fn flush(&self) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Stops the database where it is, with nothing to save: its files are put back before they are used again.
    ///
    /// # Errors
    /// It did not end.
    fn stop(self: Arc<Self>) -> EngineFuture<'static, Result<Written, EngineError>>;
}
