//! The `[plan]` section: how long, how often, and how small a difference counts as none.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::ExperimentError;
use super::reader::Reader;
use super::restore::RestoreBy;
use super::word::words;

words! {
    /// How much of the database is read back to prove that it was restored before a trial.
    pub enum RestoreVerify {
        /// Every block.
        Full = "full",
        /// The blocks that the trial before had changed.
        Changed = "changed",
    }
    later: []
}

fn copy() -> RestoreBy {
    RestoreBy::Copy
}

const DAY_MS: u64 = 86_400_000;

/// How the trials are run and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Time a trial runs before it is measured, up to 24 h.
    pub warmup_ms: u64,
    /// Time a trial is measured, 100 ms to 24 h.
    pub measure_ms: u64,
    /// Rounds, each one trial of every case in random order, 1 to 1000.
    pub rounds: u32,
    /// Two cases are a draw when their ratio surely lies within this many per cent of 1; 0 to 50.
    pub margin_percent: f64,
    /// How databases are put back before each trial.
    #[serde(default = "copy")]
    pub restore: RestoreBy,
    /// How a restore is verified.
    pub restore_verify: RestoreVerify,
    /// A directory for the golden copies of layouts that Spindle makes; `None`: where the program was started.
    #[serde(default)]
    pub golden_path: Option<PathBuf>,
}

impl Plan {
    /// Reads the plan section.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Plan, ExperimentError> {
        let today = "rounds = a whole number from 1 to 1000";
        reader.word_not_built_yet("rounds", "auto", &format!("allowed today: {today}"))?;
        reader.not_built_yet(&["precision"], today)?;
        let plan = Plan {
            warmup_ms: reader.duration_ms("warmup", 5_000, 0..=DAY_MS)?,
            measure_ms: reader.duration_ms("measure", 20_000, 100..=DAY_MS)?,
            rounds: reader.number("rounds", 3, 1..=1000)?,
            margin_percent: reader.percent("margin", 3.0, 0.0..=50.0)?,
            restore: reader.word("restore", RestoreBy::Copy)?,
            restore_verify: reader.word("restore_verify", RestoreVerify::Full)?,
            golden_path: reader.directory("golden_path")?,
        };
        reader.finish()?;
        Ok(plan)
    }
}
