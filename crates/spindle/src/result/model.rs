//! The shape of `result.json`: every type here is written to it and read from it as it stands.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use spindle_stats::Verdict;

use super::{Audit, summary::mean_of};

/// How a layout's note begins when direct I/O was asked for and the file system buffered it all the same. Such a note is
/// raised to a warning and shown in the table.
pub const NOT_DIRECT_HERE: &str = "not direct here";

/// Version of the format of `result.json`. It rises when a field changes its meaning or goes away; a new field alone
/// leaves it as it is.
pub const FORMAT_VERSION: u32 = 1;

/// Everything a run found, and under which conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`FORMAT_VERSION`] of the program that wrote the result.
    pub format: u32,
    /// The answer in one sentence per workload and load level.
    pub headline: String,
    /// The experiment as it was read, defaults filled in.
    pub experiment: Value,
    /// The machine, its software and the settings that move results.
    pub machine: Value,
    /// Half the width of the band around a ratio of 1 that counts as a draw: 0.03 stands for 3 %.
    pub margin: f64,
    /// Bytes of buffer cache and page cache together that every case was held to; `None` when nothing held them.
    pub memory_budget_bytes: Option<u64>,
    /// What Spindle itself costs; `None` when it was not measured.
    pub own_cost: Option<OwnCost>,
    /// The candidates in the order of the experiment file.
    pub layouts: Vec<Layout>,
    /// Layouts under a workload and a load level, grouped by workload and load.
    pub cases: Vec<Case>,
    /// Who won under each workload and load level that has a measured case.
    pub rankings: Vec<Ranking>,
    /// For each workload and load level, the best case against every other.
    pub verdicts: Vec<Comparison>,
    /// What weakens the answer, the gravest first.
    pub warnings: Vec<Warning>,
}

impl RunResult {
    /// The text of `result.json`: indented, ended by a line feed.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a result holds only strings, numbers and lists");
        text.push('\n');
        text
    }

    /// Reads a `result.json`.
    ///
    /// # Errors
    /// When the text is not JSON or lacks a field of this format.
    pub fn from_json(text: &str) -> Result<RunResult, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Number of a layout as people see it, from 1; `None` when no layout has that name.
    pub fn layout_number(&self, name: &str) -> Option<usize> {
        let index = self.layouts.iter().position(|layout| layout.name == name)?;
        Some(index + 1)
    }

    /// The layout of a case.
    pub fn layout_of(&self, case: &Case) -> Option<&Layout> {
        self.layouts
            .iter()
            .find(|layout| layout.name == case.layout)
    }

    /// The cases of each workload and load level, in the order of [`RunResult::cases`]: only cases of one group were
    /// compared with each other.
    pub fn groups(&self) -> Vec<Vec<&Case>> {
        let mut groups: Vec<Vec<&Case>> = Vec::new();
        for case in &self.cases {
            match groups
                .iter_mut()
                .find(|group| group[0].shares_load_with(case))
            {
                Some(group) => group.push(case),
                None => groups.push(vec![case]),
            }
        }
        groups
    }
}

/// One candidate: where the database stood and how its blocks were read and written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Name from the experiment file, unique in it.
    pub name: String,
    /// Directory or device that held the datafiles.
    pub path: String,
    /// `buffered` or `direct`.
    pub caching: String,
    /// `sync`, `slaves`, `async` or `odm`.
    pub method: String,
    /// The whole layout in words, for people.
    pub description: String,
    /// How the devices were made slower than they are, such as "limited by Spindle (500 reads/s)" or "delayed by Spindle
    /// (read 5 ms)"; empty when they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulated: Vec<String>,
    /// What was found about the layout on this machine, such as "not direct here: tmpfs keeps files in memory".
    pub notes: Vec<String>,
}

impl Layout {
    /// The note that direct I/O was asked for and not had; it begins with [`NOT_DIRECT_HERE`].
    pub fn not_direct_note(&self) -> Option<&str> {
        let mut notes = self.notes.iter();
        notes
            .find(|note| note.starts_with(NOT_DIRECT_HERE))
            .map(String::as_str)
    }
}

/// One layout under one workload at one load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the layout.
    pub layout: String,
    /// Kind of workload, such as `oltp_mix`.
    pub workload: String,
    /// Sessions that worked at the same time, 1 or more.
    pub clients: u32,
    /// Whether the case was measured: `status` and, unless it was, `reason`.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The measured runs in the order of rounds.
    pub trials: Vec<Trial>,
    /// Throughput over all trials; `None` without trials.
    pub tpm: Option<Throughput>,
}

impl Case {
    /// Whether both ran the same workload at the same load level, and so may be compared.
    pub fn shares_load_with(&self, other: &Case) -> bool {
        self.workload == other.workload && self.clients == other.clients
    }

    /// Whether a ranking is the one of this case's workload and load level.
    pub fn is_ranked_in(&self, ranking: &Ranking) -> bool {
        self.workload == ranking.workload && self.clients == ranking.clients
    }

    /// Share of the bytes read by the database that never reached the device, 0 to 1: mean of the trials that know.
    pub fn page_cache_share(&self) -> Option<f64> {
        mean_of(
            self.trials
                .iter()
                .filter_map(|trial| trial.audit.page_cache_share),
        )
    }

    /// Whether the case takes part in verdicts: it was measured without failing, at least once.
    pub fn is_compared(&self) -> bool {
        self.outcome == Outcome::Measured && !self.trials.is_empty()
    }
}

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Outcome {
    /// Its trials ran.
    Measured,
    /// It was never tried, because this machine cannot run it or the run ended before it.
    Skipped {
        /// Why, for people.
        reason: String,
    },
    /// A trial broke off. Trials that finished are kept, but the case is not compared.
    Failed {
        /// Why, for people.
        reason: String,
    },
}

impl Outcome {
    /// The word in the field `status`.
    pub fn status(&self) -> &'static str {
        match self {
            Outcome::Measured => "measured",
            Outcome::Skipped { .. } => "skipped",
            Outcome::Failed { .. } => "failed",
        }
    }

    /// Why there is no measurement; `None` when there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Measured => None,
            Outcome::Skipped { reason } | Outcome::Failed { reason } => Some(reason),
        }
    }
}

/// Throughput of a case in transactions per minute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Arithmetic mean over the trials.
    pub mean: f64,
    /// 95 % interval of the mean (Student's t over the trials); `None` with a single trial.
    pub ci95: Option<(f64, f64)>,
}

/// One measured run of a case. The journal holds it in this form too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Round, from 1.
    pub round: u32,
    /// Place in the random order of its round, from 1.
    pub position: u32,
    /// Transactions committed per minute of measured time.
    pub tpm: f64,
    /// Transactions committed in the measured time.
    pub transactions: u64,
    /// Transactions tried again in the measured time: after a lock timeout or a deadlock.
    pub retries: u64,
    /// Those of them that a deadlock led to.
    pub deadlocks: u64,
    /// Measured time in seconds, the flush at the end included.
    pub measured_s: f64,
    /// Reads per second that the database issued.
    pub read_iops: f64,
    /// Writes per second that the database issued, redo included.
    pub write_iops: f64,
    /// KiB per second that the database read and wrote together.
    pub kib_per_s: f64,
    /// Time from the begin of a transaction to the end of its commit.
    pub latency_us: Latency,
    /// What sessions and background processes waited for.
    pub waits: Vec<Wait>,
    /// How the machine's processors spent the measured time.
    pub cpu: CpuShares,
    /// Processor time that one transaction cost; `None` when no transaction was committed.
    pub cpu_us_per_transaction: Option<CpuMicroseconds>,
    /// Memory of the trial's process; `None` when unknown.
    pub memory: Option<Memory>,
    /// The program's own counts beside the device's.
    pub audit: Audit,
    /// How the database was put back to its loaded state before this trial.
    pub restore: Restore,
    /// What the check of the whole database said after the trial: nothing was lost, and how much was looked at.
    pub check: String,
    /// Space that each segment of the database had in the end.
    pub space: Vec<SegmentSpace>,
    /// What the runner noticed during this trial, for people.
    pub warnings: Vec<String>,
}

/// Space of a table or of the undo segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSpace {
    /// Name of the segment.
    pub segment: String,
    /// Extents it had.
    pub extents: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// Distribution of a time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50: f64,
    /// 95 of 100 took no longer.
    pub p95: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// One wait event under Oracle's name for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Name, such as `db file sequential read`.
    pub event: String,
    /// How often someone waited.
    pub count: u64,
    /// Time waited by all together, in microseconds.
    pub total_us: f64,
    /// `total_us / count`; 0 when nobody waited.
    pub mean_us: f64,
}

/// Shares of the machine's processor time in percent, all processors together; they add up to about 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Running programs, niced ones included.
    pub user: f64,
    /// Running the kernel, interrupts included.
    pub system: f64,
    /// Idle with an I/O outstanding.
    pub iowait: f64,
    /// Idle without.
    pub idle: f64,
}

/// Processor time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuMicroseconds {
    /// In programs.
    pub user: f64,
    /// In the kernel on their behalf.
    pub system: f64,
}

/// What Spindle itself costs: clients, database and bookkeeping, measured with one client on a small database whose
/// devices are memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OwnCost {
    /// Processor time of one transaction.
    pub cpu_us_per_transaction: CpuMicroseconds,
    /// Transactions it is the mean of.
    pub transactions: u64,
    /// Time they took, in seconds.
    pub measured_s: f64,
    /// Data of the small database.
    pub data_bytes: u64,
    /// Its buffer cache: the same share of the data as in the experiment.
    pub buffer_cache_bytes: u64,
}

/// Memory that belongs to the trial's process alone, not to files: the page cache is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The buffer cache, as configured.
    pub buffer_cache_bytes: u64,
    /// All else that the process had before there were clients: log buffers, headers of buffers, code's own data.
    pub instance_bytes: u64,
    /// What it had grown by when the measured time ended, for each session: its thread and session, and its share of all
    /// that grew with use.
    pub session_bytes: u64,
}

/// How the database was put back to its loaded state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// Name of the method, the same for every trial of a run.
    pub method: String,
    /// Blocks copied back.
    pub changed_blocks: u64,
    /// Whether the files were compared with the loaded state afterwards and found equal.
    pub verified: bool,
    /// Time it took, in milliseconds; not part of the measured time.
    pub duration_ms: u64,
}

/// The outcome of one workload at one load level.
///
/// It is stricter than the verdicts: the best was picked because it came out best, so a winner must beat every other
/// case at a level that allows for the number of cases (see `spindle_stats::rank`). A case may be tied here and still `slower` in its own
/// comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranking {
    /// Kind of workload.
    pub workload: String,
    /// Load level.
    pub clients: u32,
    /// Name of the layout with the highest throughput.
    pub best: String,
    /// Name of the layout that stands as the winner, always `best`; `None` when none does.
    pub winner: Option<String>,
    /// Names of the layouts that `best` was not shown to beat.
    pub tied: Vec<String>,
}

/// Case `a` beside case `b`; both ran the same workload at the same load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Kind of workload.
    pub workload: String,
    /// Load level.
    pub clients: u32,
    /// Name of the layout that the verdict is said of: the best of its workload and load.
    pub a: String,
    /// Name of the layout it is compared with.
    pub b: String,
    /// Throughput of `a` over that of `b`: geometric mean of the ratios of the rounds that both finished.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` with fewer than two common rounds.
    pub ci95: Option<(f64, f64)>,
    /// What may be said of `a`.
    pub verdict: Verdict,
    /// For an undecided comparison: how many rounds in all would probably decide it; `None` when decided or unknown.
    pub rounds_needed: Option<u32>,
}

/// Something that weakens the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What was seen, where, and what to do about it.
    pub text: String,
}
