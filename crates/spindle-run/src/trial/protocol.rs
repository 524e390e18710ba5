//! What the run and the process of a trial say to each other: lines of JSON. The run sends one [`Order`] and then, when
//! the worker is [`WorkerReport::Opened`], the [`WordToWorker`] that measuring may begin; where it is measured by
//! turns, one for each of them; and one that the check may begin, when all is measured. A worker whose standard input
//! ends has lost its run, and exits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_engines::EngineError;
use spindle_engines::spec::ByKind;
use spindle_engines::sql::{Schema, ServerKind, ServerRequest};
use spindle_layout::{DatabaseFiles, Place, TreeDirectories};

use super::limit_probe::LimitProbe;
use super::own_cost::OwnCostTask;
use spindle_experiment::{AccessPath, Caching, Delay, KernelSpec, LoadMachine, WorkloadChoice};
use spindle_result::{OwnCost, Standstill, SystemSeries, TrialFigures, TrialTimes, Wait};
use spindle_system::DeviceNumber;
use spindle_system::io_limit::Rates;
use spindle_workload::sql::KeptAnswer;

/// What a worker is started for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// A trial.
    Trial(Box<Task>),
    /// Finding out what Spindle itself costs.
    OwnCost(Box<OwnCostTask>),
    /// Finding out whether a limit holds.
    LimitProbe(Box<LimitProbe>),
}

/// What the run says to the worker of a trial after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WordToWorker {
    /// Memory is limited now: the clients may begin.
    Begin,
    /// Be measured for a turn, and be at rest again.
    Turn,
    /// There are no more turns.
    End,
    /// Memory is no longer limited: the check may begin.
    Check,
}

/// What a trial does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Where everything random starts from.
    pub seed: u64,
    /// Where the loaded rows start from.
    #[serde(default)]
    pub data_seed: u64,
    /// Loaded data, bytes.
    pub size_bytes: u64,
    /// The database.
    pub database: TrialDatabase,
    /// Which devices are held to a limit.
    pub limited: Vec<Limited>,
    /// What the clients do.
    pub workload: WorkloadChoice,
    /// How many of them.
    pub clients: u32,
    /// The machines that they are dealt out to; none: all are in the trial's own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadMachine>,
    /// Time before measuring, the least of it when there is a `warmup_max_ms`.
    pub warmup_ms: u64,
    /// Measuring begins when the throughput is steady, after this long at the latest; `None`: after `warmup_ms`.
    pub warmup_max_ms: Option<u64>,
    /// Time measured.
    pub measure_ms: u64,
    /// It is measured by turns of this length, when it is told to; `None`: in one stretch of `measure_ms`.
    #[serde(default)]
    pub turn_ms: Option<u64>,
    /// Time between samples of throughput.
    pub sample_ms: u64,
    /// The devices beneath its files, where known.
    pub devices: Vec<DeviceNumber>,
}

/// The database of a trial, with where it is and how it is started; of a server that runs already, the schema there.
pub type TrialDatabase = ByKind<Box<KernelTrial>, Box<ServerTrial>, Box<Schema>>;

/// The embedded database in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTrial {
    /// What it is told.
    pub spec: KernelSpec,
    /// The access path of its datafiles.
    pub io: AccessPath,
    /// How much longer the I/O of all files but redo takes.
    pub delay: Option<Delay>,
    /// How much longer that of redo takes.
    pub redo_delay: Option<Delay>,
    /// Its files.
    pub files: DatabaseFiles,
}

/// A server in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerTrial {
    /// Which.
    pub kind: ServerKind,
    /// Its buffer cache and the page cache together, bytes.
    pub memory_bytes: u64,
    /// Whether the layout wants its datafiles to pass through the page cache.
    pub caching: Caching,
    /// What is asked of it.
    pub request: ServerRequest,
    /// Its directories.
    pub directories: TreeDirectories,
}

/// Every file of a database whose bytes outlive it, and the devices of regions, each once.
pub fn file_paths(database: &TrialDatabase) -> BTreeSet<PathBuf> {
    match database {
        TrialDatabase::Kernel(kernel) => {
            let named = kernel.files.named().into_iter();
            let kept = named.filter(|(_, place)| !kernel.files.temp.contains(place));
            let paths = kept.flat_map(|(_, place)| place.paths());
            paths.map(Path::to_path_buf).collect()
        }
        // A server may remove one while we look.
        TrialDatabase::Server(server) => {
            let files = server.directories.files();
            files.unwrap_or_default().into_iter().collect()
        }
        TrialDatabase::Remote(_) => BTreeSet::new(),
    }
}

/// Those that hold data and undo.
pub fn data_paths(database: &TrialDatabase) -> BTreeSet<PathBuf> {
    match database {
        TrialDatabase::Kernel(kernel) => {
            let files = &kernel.files;
            let datafiles = files.data.iter().chain([&files.undo]);
            let places = datafiles.chain(&files.double_write);
            let paths = places.flat_map(Place::paths);
            paths.map(Path::to_path_buf).collect()
        }
        TrialDatabase::Server(_) | TrialDatabase::Remote(_) => file_paths(database),
    }
}

/// A device that is held to a limit, to be looked at when the trial is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limited {
    /// One of the task's devices.
    pub device: DeviceNumber,
    /// The disk on which it is.
    pub disk: DeviceNumber,
    /// What it may do.
    pub rates: Rates,
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum WorkerReport {
    /// The database is open; the worker waits for a word.
    Opened {
        /// What its clients will share, bytes: the instrument's, and not in the budget. 0 where there is none.
        shared_bytes: u64,
    },
    /// How it goes.
    Progress(TrialProgress),
    /// Its clients pause; it waits for a word.
    AtRest,
    /// All is measured, and what clients left is to be checked; it waits for a word.
    Measured,
    /// The trial is over.
    Done(Box<TrialOutcome>),
    /// What Spindle itself costs is known.
    OwnCost(OwnCost),
    /// A limit was tried.
    LimitProbed {
        /// The rate that it did not hold, in words.
        exceeded: Option<String>,
    },
    /// The trial broke off.
    Failed {
        /// Why.
        error: EngineError,
    },
}

/// How a trial goes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrialProgress {
    /// Warm-up is over.
    pub measuring: bool,
    /// Each client of this process has committed, and has all the memory that it needs.
    pub all_at_work: bool,
    /// Transactions per minute since the phase began.
    pub tpm: f64,
    /// Transactions per minute since the last report.
    pub tpm_now: f64,
    /// What sessions and background processes waited for since the phase began, without events that had no waits.
    pub waits: Vec<Wait>,
}

/// A time by this machine's clock (`facts::monotonic_ns`), which is that of the run, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Span {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// For each file, runs of blocks written: first and count.
pub type WrittenRuns = Vec<(Place, Vec<(u64, u64)>)>;

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialOutcome {
    /// What results say of it.
    pub figures: TrialFigures,
    /// When the measured time was, pauses between turns included.
    pub span: Span,
    /// Time taken by the hypervisor for others, percent.
    pub steal_percent: f64,
    /// Time in which nothing could happen, from the first client's start to the end of the flush.
    pub standstill: Standstill,
    /// Where the worker's time went.
    pub times: TrialTimes,
    /// Transactions per second in each interval.
    pub samples: Vec<f64>,
    /// What the system did meanwhile.
    pub system: SystemSeries,
    /// Answers that clients were given, where they are kept.
    pub answers: Vec<KeptAnswer>,
    /// Where it wrote.
    pub written: WrittenRuns,
}
