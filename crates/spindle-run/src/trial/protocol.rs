//! What the run and the process of a trial say to each other: lines of JSON. The run sends one [`Order`] and then, when
//! the worker is [`Report::Opened`], a line to say that measuring may begin. A worker whose standard input ends has
//! lost its run, and exits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_engines::EngineError;
use spindle_engines::kernel::{self, IoSettings, Settings};
use spindle_engines::sql::{Schema, ServerIo, ServerRequest};
use spindle_layout::{DatabaseFiles, Place, TreeDirectories};
use spindle_workload::Workload;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::SqlWorkload;

use super::limit_probe::LimitProbe;
use super::own_cost::OwnCostTask;
use crate::observe::block_device::DeviceNumber;
use crate::observe::io_limit::Rates;
use spindle_experiment::{AccessPath, Database, Delay, TornBlocks};
use spindle_result::{
    Arrivals, CacheUse, ClientAudit, CpuMicroseconds, CpuShares, IoCalls, IoCounts,
    KindOfTransaction, Latency, Memory, OwnCost, Promise, QueryRun, ResponseTime, SegmentSpace,
    Standstill, StatementTime, SystemSeries, TrialTimes, Wait, WarmUp,
};

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

/// What a trial does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Where everything random starts from.
    pub seed: u64,
    /// Where the loaded rows start from.
    #[serde(default)]
    pub data_seed: u64,
    /// The database.
    pub database: Database,
    /// The access path of the datafiles.
    pub io: AccessPath,
    /// How much longer the I/O of all files but redo takes.
    pub delay: Option<Delay>,
    /// How much longer that of redo takes.
    pub redo_delay: Option<Delay>,
    /// Which devices are held to a limit.
    pub limited: Vec<Limited>,
    /// What the clients do.
    pub workload: spindle_experiment::Workload,
    /// How many of them.
    pub clients: u32,
    /// Time before measuring, the least of it when there is a `warmup_max_ms`.
    pub warmup_ms: u64,
    /// Measuring begins when the throughput is steady, after so long at the latest; `None`: after `warmup_ms`.
    pub warmup_max_ms: Option<u64>,
    /// Time measured.
    pub measure_ms: u64,
    /// Time between samples of throughput.
    pub sample_ms: u64,
    /// The files of the database.
    pub files: TrialFiles,
    /// What is asked of the server, when the database is one.
    #[serde(default)]
    pub server: Option<ServerRequest>,
    /// The devices beneath them, where known.
    pub devices: Vec<DeviceNumber>,
}

/// Where the database of a trial is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialFiles {
    /// The files of the embedded database.
    Blocks(DatabaseFiles),
    /// The directories of a server.
    Tree(TreeDirectories),
    /// A schema on an existing server.
    Schema(Schema),
}

impl TrialFiles {
    /// Every file, and the devices of regions, each once.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        match self {
            TrialFiles::Blocks(files) => {
                let named = files.named().into_iter();
                let paths = named.flat_map(|(_, place)| place.paths());
                paths.map(Path::to_path_buf).collect()
            }
            // A server may remove one while we look.
            TrialFiles::Tree(directories) => directories
                .files()
                .unwrap_or_default()
                .into_iter()
                .collect(),
            TrialFiles::Schema(_) => BTreeSet::new(),
        }
    }

    /// Those that hold data and undo.
    pub fn data_paths(&self) -> BTreeSet<PathBuf> {
        match self {
            TrialFiles::Blocks(files) => {
                let datafiles = files.data.iter().chain([&files.undo]);
                let places = datafiles.chain(&files.double_write);
                let paths = places.flat_map(Place::paths);
                paths.map(Path::to_path_buf).collect()
            }
            TrialFiles::Tree(_) | TrialFiles::Schema(_) => self.paths(),
        }
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
pub enum Report {
    /// The database is open; the worker waits for a line.
    Opened,
    /// How it goes.
    Progress(Progress),
    /// The trial is over.
    Done(Box<Outcome>),
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
pub struct Progress {
    /// Warm-up is over.
    pub measuring: bool,
    /// Transactions per minute since the phase began.
    pub tpm: f64,
    /// Transactions per minute since the last report.
    pub tpm_now: f64,
    /// What sessions and background processes waited for since the phase began; none that nobody waited for.
    pub waits: Vec<Wait>,
}

/// For each file, runs of blocks written: first and count.
pub type WrittenRuns = Vec<(Place, Vec<(u64, u64)>)>;

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Transactions committed in the measured time.
    pub transactions: u64,
    /// Transactions tried again in it.
    pub retries: u64,
    /// Those of them that a deadlock led to.
    pub deadlocks: u64,
    /// Transactions that failed for good in it.
    #[serde(default)]
    pub errors: u64,
    /// Times that clients connected anew in it.
    #[serde(default)]
    pub reconnects: u64,
    /// The kinds of transactions apart; empty when there is one kind only.
    #[serde(default)]
    pub kinds: Vec<KindOfTransaction>,
    /// The statements apart.
    #[serde(default)]
    pub statements: Vec<StatementTime>,
    /// What became of queries, for a workload of them.
    #[serde(default)]
    pub queries: Option<QueryRun>,
    /// The measured time, the flush at its end included; for a workload of queries without it.
    pub measured: Duration,
    /// I/O of the database.
    pub tool: IoCounts,
    /// The same with every copy that disk groups wrote, as it should arrive at the devices.
    pub physical: IoCounts,
    /// I/O of the devices, where known.
    pub device: Option<IoCounts>,
    /// Bytes that the process fetched from storage, by the system's account of it; `None` when hidden.
    pub fetched_bytes: Option<u64>,
    /// Transaction times.
    pub latency_us: Latency,
    /// What the clients did, all together.
    #[serde(default)]
    pub clients: Option<ClientAudit>,
    /// The load that came at a rate, if it did.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    /// How often the buffer cache was of use.
    #[serde(default)]
    pub cache: Option<CacheUse>,
    /// Wait events.
    pub waits: Vec<Wait>,
    /// What became of a transaction's time; `None` when the system does not tell enough.
    pub response_time: Option<ResponseTime>,
    /// How the machine's processors spent the time; `None` when unknown, as where the database is somewhere else.
    pub cpu: Option<CpuShares>,
    /// Time taken by the hypervisor for others, percent.
    pub steal_percent: f64,
    /// Processor time of a transaction.
    pub cpu_us_per_transaction: Option<CpuMicroseconds>,
    /// Memory of the process; `None` when unknown.
    pub memory: Option<Memory>,
    /// Bytes of the files not yet on the device when the clock stopped; `None` when unknown.
    pub dirty_bytes: Option<u64>,
    /// How long their flush took.
    pub flush: Option<Duration>,
    /// Time in which nothing could happen, from the first client's start to the end of the flush.
    #[serde(default)]
    pub standstill: Option<Standstill>,
    /// Where the worker's time went.
    #[serde(default)]
    pub times: TrialTimes,
    /// The time before the measured one, when it was not told how long.
    pub warm_up: Option<WarmUp>,
    /// Transactions per second in each interval.
    pub samples: Vec<f64>,
    /// What the system did meanwhile.
    pub system: SystemSeries,
    /// Changed blocks still in the buffer cache when the clock stopped, bytes; `None` when unknown.
    pub dirty_buffer_bytes: Option<u64>,
    /// Pages of the data and undo files in the page cache after the clients had stopped; `None` when unknown, or when
    /// the case is buffered.
    pub cached_pages: Option<u64>,
    /// Bytes of the same files in the page cache, of a case that is not direct; `None` when unknown.
    #[serde(default)]
    pub page_cache_bytes: Option<u64>,
    /// By how many system calls the I/O was done; of the embedded database only.
    #[serde(default)]
    pub io_calls: Option<IoCalls>,
    /// What the workload's check said.
    pub check: String,
    /// Space of every segment in the end.
    pub space: Vec<SegmentSpace>,
    /// Where it wrote.
    pub written: WrittenRuns,
    /// What the database keeps when the power goes.
    #[serde(default)]
    pub promise: Promise,
    /// What was noticed, for people.
    pub warnings: Vec<String>,
}

/// The workload of row operations of an experiment, for its database.
///
/// # Panics
/// When it is one that only SQL can say: experiments with such a workload have a server, and [`sql_workload_of`] makes
/// it.
pub fn workload_of(
    workload: &spindle_experiment::Workload,
    database: &Database,
) -> Box<dyn Workload> {
    let settings = workload.transactions.settings();
    let made = settings.make(&workload.ground(database, 0)).of_rows();
    made.expect("the embedded database is refused this workload when the file is read")
}

/// The workload of an experiment in SQL; its rows are drawn from `seed`.
pub fn sql_workload_of(
    workload: &spindle_experiment::Workload,
    database: &Database,
    seed: u64,
) -> Arc<dyn SqlWorkload> {
    let settings = workload.transactions.settings();
    settings.make(&workload.ground(database, seed)).in_sql(seed)
}

/// What is asked of the server of an experiment; `None` for the embedded database.
pub fn server_request(
    workload: &spindle_experiment::Workload,
    database: &Database,
    io: Option<ServerIo>,
) -> Option<ServerRequest> {
    let server = database.server.as_ref()?;
    Some(ServerRequest {
        settings: server.settings.clone(),
        bin_dir: server.bin_dir.clone(),
        buffer_cache_bytes: database.buffer_cache_bytes,
        data_bytes: database.size_bytes,
        clients: workload.sessions(workload.clients_max()),
        io,
    })
}

/// How the clients of a trial behave.
pub fn behaviour_of(workload: &spindle_experiment::Workload, clients: u32) -> Behaviour {
    Behaviour {
        clients: workload.sessions(clients) as usize,
        transactions: None,
        reconnect: workload.reconnect,
        think_time_ns: workload.think_time_ms * 1_000_000,
        arrivals: workload.arrivals,
    }
}

/// A row lock: its entry in a hash table that may be half empty, and in the transaction's list.
const ROW_LOCK_BYTES: u64 = 192;
/// Rows, each of a block at most, that a session has copies of at once: two on the way to an earlier version, two in
/// redo and undo.
const ROW_COPIES: u64 = 4;

/// Memory that the transactions of all clients may take at once, besides what the clients themselves do: a lock for
/// each row they change, and copies of rows on the way.
pub fn transaction_bytes(task: &Task) -> u64 {
    let rows = task.workload.transactions.settings().locked_rows();
    // The ledger's row comes on top.
    let locks_bytes = (u64::from(rows) + 1) * ROW_LOCK_BYTES;
    let copies_bytes = ROW_COPIES * task.database.block_size_bytes;
    u64::from(task.clients) * (locks_bytes + copies_bytes)
}

/// An access path as the engine takes it, on devices delayed or not.
pub fn engine_path(io: AccessPath, database: &Database, delay: Option<Delay>) -> IoSettings {
    IoSettings {
        path: io,
        fixed_buffers: database.fixed_buffers,
        delay: delay.unwrap_or_default(),
    }
}

/// Size of the file of double write areas for so many writers: 0 when the database has none.
pub fn double_write_bytes_of(database: &Database, writers: u32) -> u64 {
    match database.instance.torn_blocks {
        TornBlocks::DoubleWrite => {
            kernel::double_write_bytes(database.block_size_bytes as usize, writers as usize)
        }
        TornBlocks::Images | TornBlocks::Atomic => 0,
    }
}

/// The instance's settings for a database.
pub fn settings_of(database: &Database) -> Settings {
    let block_bytes = database.block_size_bytes as usize;
    // An eighth of a log file, so that the ring always has room for what is in memory; a mebibyte is enough for anyone.
    let log_buffer_bytes = (database.log_file_size_bytes as usize / 8 / 4096 * 4096).min(1 << 20);
    let mut settings = Settings {
        block_bytes,
        buffer_cache_bytes: database.buffer_cache_bytes,
        log_buffer_bytes: log_buffer_bytes.max(16 * block_bytes),
        ..Settings::default()
    };
    database.instance.apply(&mut settings);
    settings
}
