//! Options that several commands have.

use clap::Args;
use spindle_experiment::Changes;

/// Where runs are made and looked for, unless told otherwise.
pub(super) const RUNS: &str = "runs";

/// What is changed of an experiment file.
#[derive(Args)]
pub(super) struct Changed {
    /// Overrides a setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
    /// Measures every layout with each of these values; several make a matrix, and the effect of each is reported.
    #[arg(long, value_name = "KEY=A,B,...")]
    pub(super) vary: Vec<String>,
    /// Measures these layouts only.
    #[arg(long, value_name = "NAME,...")]
    pub(super) only: Vec<String>,
    /// A first look: three rounds of 2 seconds.
    #[arg(long)]
    pub(super) quick: bool,
    /// Keeps the answers to the queries of tpch and tpcd, as CSV files in the run directory.
    #[arg(long)]
    pub(super) keep_answers: bool,
}

impl Changed {
    pub(super) fn changes(&mut self) -> Changes<'_> {
        if self.keep_answers {
            self.sets.push("workload.keep_answers=true".to_owned());
        }
        Changes {
            sets: &self.sets,
            vary: &self.vary,
            only: &self.only,
            is_quick: self.quick,
            written_for: None,
        }
    }
}

#[derive(Args)]
pub(super) struct Show {
    /// Print result.json instead of the table.
    #[arg(long)]
    pub(super) json: bool,
    /// No progress, no warnings on the way: only the result.
    #[arg(long)]
    pub(super) quiet: bool,
    /// A dozen lines in place of the table.
    #[arg(skip)]
    pub(super) brief: bool,
}

#[derive(Args)]
pub(super) struct Watch {
    /// A dashboard on the terminal while it goes on: throughput, waits, time left.
    #[arg(long, conflicts_with = "quiet")]
    pub(super) watch: bool,
}
