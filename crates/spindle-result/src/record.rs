//! What replaying a journal gives: the whole input of a result and a report, and nothing that they derive.

use super::experiment::ExperimentRecord;
use super::machine::Machine;
use super::{
    CaseId, CaseStatus, FactorName, Layout, LoadLevel, OwnCost, Phase, SetAside, SystemSeries,
    Trial, Warning,
};

/// A run as recorded. Cases and layouts stand in the order in which they are to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The experiment as it was read, defaults filled in.
    pub experiment: ExperimentRecord,
    /// Kind of workload, such as `oltp_mix`: the same for all cases.
    pub workload: String,
    /// The machine, its software and the settings that move results; `None` when it was not looked at yet.
    pub machine: Option<Machine>,
    /// Half the width of the band around a ratio of 1 that counts as a draw, 0 to below 1; 0.03 stands for 3 %.
    pub margin: f64,
    /// Rounds that the plan asks for, or the most of them; fewer finished ones make the result one of an unfinished
    /// run, unless there is an `auto`.
    pub planned_rounds: u32,
    /// What a plan adds whose rounds said themselves when they sufficed.
    pub auto: Option<AutoPlan>,
    /// The layout that was measured under two names, and the one that bears the other name; indices into
    /// [`RunRecord::layouts`].
    pub noise_check: Option<(usize, usize)>,
    /// What was varied, if the layouts are combinations of settings.
    pub matrix: Option<MatrixRecord>,
    /// Whether the plan was cut down to a first look.
    pub is_quick: bool,
    /// Bytes of buffer cache and page cache together that every case was held to; `None` when nothing held them.
    pub memory_budget_bytes: Option<u64>,
    /// What Spindle itself costs; `None` when it was not measured.
    pub own_cost: Option<OwnCost>,
    /// The candidates.
    pub layouts: Vec<Layout>,
    /// Every case of the plan, measured or not.
    pub cases: Vec<CaseRecord>,
    /// Throughput over time of the trials that were sampled, in any order.
    pub series: Vec<SampledTrial>,
    /// What the runner noticed that belongs to no single trial.
    pub warnings: Vec<Warning>,
    /// What was done besides trials.
    pub phases: Vec<Phase>,
}

impl RunRecord {
    /// What a case is known by in results; `None` when it is of no layout of the record.
    pub fn id_of(&self, case: &CaseRecord) -> Option<CaseId> {
        let layout = self.layouts.get(case.layout)?;
        Some(CaseId::new(&layout.name, case.load))
    }
}

/// The factors of an experiment whose layouts are combinations of their levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixRecord {
    /// Name and levels of each factor.
    pub factors: Vec<(FactorName, Vec<String>)>,
    /// Name of each layout of the matrix, with its level of each factor.
    pub cells: Vec<(String, Vec<usize>)>,
    /// Whether they are half of all combinations.
    pub is_half: bool,
}

impl MatrixRecord {
    /// The levels of a layout; `None` of one that is not of the matrix.
    pub fn levels_of(&self, layout: &str) -> Option<&[usize]> {
        let mut cells = self.cells.iter();
        let (_, levels) = cells.find(|(name, _)| name == layout)?;
        Some(levels)
    }
}

/// A plan that ends by itself: `rounds = "auto"`, `runs = "auto"`, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoPlan {
    /// How far the ends of the interval of a ratio were to lie from it, as a fraction.
    pub precision: f64,
    /// Whether the run ended because there was nothing left to measure.
    pub is_finished: bool,
    /// The warm-up of a trial that does not tell its own, in seconds.
    pub warmup_s: f64,
    /// The time that the plan gave, where that ended the run before its limit of rounds did, milliseconds.
    pub ended_by_time_ms: Option<u64>,
    /// The most runs, where these are repeated until pairs are settled; `None`: rounds are.
    pub runs_max: Option<u32>,
}

/// One case of the plan and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRecord {
    /// Its layout, an index into [`RunRecord::layouts`].
    pub layout: usize,
    /// Its load level.
    pub load: LoadLevel,
    /// Whether it could be measured. [`CaseStatus::Measured`] for a case that has not had its turn yet, too: without
    /// trials it appears in the result as skipped because the run ended.
    pub outcome: CaseStatus,
    /// Its finished trials, in any order; no two of the same round.
    pub trials: Vec<Trial>,
    /// Those that were in doubt, in the order in which they were measured.
    pub set_aside: Vec<SetAside>,
}

/// Throughput over the measured time of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledTrial {
    /// Of which case.
    pub case: CaseId,
    /// Its round, from 1.
    pub round: u32,
    /// Time that one sample covers, in milliseconds, 1 or more.
    pub interval_ms: u64,
    /// Transactions committed per second in each interval, in the order of time.
    pub tps: Vec<f64>,
    /// What the system did in the same time.
    pub system: SystemSeries,
}
