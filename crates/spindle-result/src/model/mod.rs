//! The shape of `result.json`: every type here is written to it and read from it as it stands.

mod any_reason;
mod audit;
mod bulk_load;
mod capacity;
mod case_id;
mod cause;
mod clients;
mod conditions;
mod effect;
pub mod experiment;
mod format_1;
mod io_calls;
mod judgement;
mod layout;
mod load;
pub mod machine;
mod promise;
mod system;
mod trial;
mod variance;
mod wait_event;
mod words;

use serde::{Deserialize, Serialize};

use super::mean::mean_of;
use experiment::ExperimentRecord;
use machine::Machine;

pub use audit::{Audit, ClientProcessors, IoCounts, LimitedIo, UsedLimit};
pub use bulk_load::{BulkLoad, LoadStep};
pub use capacity::Capacity;
pub use case_id::{CaseId, CasePair};
pub use cause::{Attribution, Finding, PartDifference};
pub use clients::ClientAudit;
pub use conditions::{
    Conditions, DeviceProbe, Neighbour, ProbedTimes, QuietWait, Standstill, TrialTimes,
};
pub use effect::{Effect, FactorAnswer, FactorName, Interaction};
pub use io_calls::IoCalls;
pub use judgement::{
    Drift, Measure, NoiseFloor, Pair, PairComparison, RankedCase, Ranking, RatioEstimate, Stopping,
};
pub use layout::{
    AccessMethod, DatabaseFacts, Layout, NOT_DIRECT_HERE, PageCache, Price, StackKind, StackPart,
};
pub use load::LoadLevel;
pub use promise::{Promise, PromiseReason};
pub use spindle_stats::RateStep;
pub use spindle_text::keeps::Keeps;
pub use system::{SystemColumn, SystemFigure, SystemMean, SystemSeries};
pub use trial::{
    Arrivals, CacheUse, CpuMicroseconds, CpuShares, Deferred, IoPerTransaction, KindOfTransaction,
    Latency, Memory, QueryRun, QueryTime, ResponseTime, Restore, SegmentSpace, StatementTime,
    TimePart, Trial, TrialFigures, Wait, WarmUp, is_refresh,
};
pub use variance::Variance;
pub use wait_event::{OracleEvent, TimeUse, WaitEvent};

/// Version of the format of `result.json`. It rises when a field changes its meaning or goes away; a new field alone
/// leaves it as it is.
pub const FORMAT_VERSION: u32 = 2;

/// Everything a run found, and under which conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`FORMAT_VERSION`] of the program that wrote the result.
    pub format: u32,
    /// Kind of workload, such as `oltp_mix`: the same for all cases.
    pub workload: String,
    /// The answer in one sentence per load level.
    pub headline: String,
    /// The same without what the settings of a matrix do, for readers that give each of [`RunResult::factor_answers`]
    /// its own line; `None` where the headline does not tell them, and in the results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline_without_settings: Option<String>,
    /// The experiment as it was read, defaults filled in.
    pub experiment: ExperimentRecord,
    /// The machine, its software and the settings that move results; `None` when it was not looked at yet.
    pub machine: Option<Machine>,
    /// Half the width of the band around a ratio of 1 that counts as a draw: 0.03 stands for 3 %.
    pub margin: f64,
    /// Bytes of buffer cache and page cache together that every case was held to; `None` when nothing held them.
    pub memory_budget_bytes: Option<u64>,
    /// What Spindle itself costs; `None` when it was not measured.
    pub own_cost: Option<OwnCost>,
    /// The candidates in the order of the experiment file.
    pub layouts: Vec<Layout>,
    /// Layouts under a workload and a load level, grouped by load level.
    pub cases: Vec<Case>,
    /// Who won under each load level that has a measured case.
    pub rankings: Vec<Ranking>,
    /// For each load level, the best case against every other.
    pub verdicts: Vec<PairComparison>,
    /// For each load level, every case beside every other.
    #[serde(default)]
    pub pairs: Vec<Pair>,
    /// For each load level of a matrix of settings, what each setting does over all others.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// How far these depend on each other.
    #[serde(default)]
    pub interactions: Vec<Interaction>,
    /// Both in words, a sentence for each setting.
    #[serde(default)]
    pub factor_answers: Vec<FactorAnswer>,
    /// The machine's own noise; empty unless the plan asked for it.
    #[serde(default)]
    pub noise: Vec<NoiseFloor>,
    /// Cases whose throughput moved from round to round.
    #[serde(default)]
    pub drifts: Vec<Drift>,
    /// What a plan of `rounds = "auto"` saved.
    #[serde(default)]
    pub stopping: Option<Stopping>,
    /// Why cases differ, in the order of the verdicts.
    #[serde(default)]
    pub attributions: Vec<Attribution>,
    /// What can be acted on, the weightiest first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Where the variance of each verdict is.
    #[serde(default)]
    pub variances: Vec<Variance>,
    /// What was done apart from trials, and how long it took, in the order in which it was done first.
    #[serde(default)]
    pub phases: Vec<Phase>,
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

    /// Reads a `result.json` of this format, or of an older one.
    ///
    /// # Errors
    /// When the text is not JSON or lacks a field of this format.
    pub fn from_json(text: &str) -> Result<RunResult, serde_json::Error> {
        match serde_json::from_str::<Head>(text)?.format {
            1 => format_1::read(text),
            _ => serde_json::from_str(text),
        }
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
            .find(|layout| layout.name == case.id.layout)
    }
}

/// What a reader looks at first.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

/// One layout at one load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Which case.
    #[serde(flatten)]
    pub id: CaseId,
    /// Whether the case was measured: `status` and, unless it was, `reason`.
    #[serde(flatten)]
    pub outcome: CaseStatus,
    /// What it keeps when the power goes: the weakest that its trials found.
    #[serde(default)]
    pub promise: Promise,
    /// The measured runs in the order of rounds.
    pub trials: Vec<Trial>,
    /// Trials that were in doubt, in the order in which they were measured: they count for nothing.
    #[serde(default)]
    pub set_aside: Vec<SetAside>,
    /// Throughput over all trials; `None` without trials.
    pub tpm: Option<Throughput>,
    /// NOPM: new orders per minute over all trials, by [`TrialFigures::nopm`]; `None` for workloads other than TPC-C.
    #[serde(default)]
    pub nopm: Option<Throughput>,
    /// How a bulk load went; `None` for other workloads.
    #[serde(default)]
    pub load: Option<BulkLoad>,
    /// What a transaction's time went to, the mean of the trials that know.
    #[serde(default)]
    pub response_time: Option<ResponseTime>,
    /// What the system did meanwhile.
    #[serde(default)]
    pub system: Vec<SystemMean>,
}

impl Case {
    /// Mean of a figure of its series.
    pub fn mean_of(&self, figure: &SystemFigure) -> Option<f64> {
        let mut means = self.system.iter();
        Some(means.find(|mean| mean.name == *figure)?.mean)
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
        self.outcome == CaseStatus::Measured && !self.trials.is_empty()
    }
}

/// A trial that counts for nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetAside {
    /// Why, in words.
    pub reason: String,
    /// What it found.
    pub trial: Trial,
}

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum CaseStatus {
    /// Its trials ran.
    Measured,
    /// It was never tried, because this machine cannot run it or the run ended before it.
    Skipped {
        /// Why, in words.
        reason: String,
    },
    /// A trial broke off. Trials that finished are kept, but the case is not compared.
    Failed {
        /// Why, in words.
        reason: String,
    },
}

impl CaseStatus {
    /// The word in the field `status`.
    pub fn status(&self) -> &'static str {
        match self {
            CaseStatus::Measured => "measured",
            CaseStatus::Skipped { .. } => "skipped",
            CaseStatus::Failed { .. } => "failed",
        }
    }

    /// Why there is no measurement; `None` when there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            CaseStatus::Measured => None,
            CaseStatus::Skipped { reason } | CaseStatus::Failed { reason } => Some(reason),
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

/// Something that a run did apart from its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// What, in words.
    pub what: String,
    /// How long it took, milliseconds, all sittings of a run together.
    pub ms: u64,
}

/// Something that weakens the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What was seen, where, and what to do about it.
    pub text: String,
}
