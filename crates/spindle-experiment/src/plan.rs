//! The `[plan]` section: how long, how often, and how small a difference counts as none.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_layout::Verify;
use spindle_stats::{Looks, ROUNDS_MIN, ROUNDS_TO_JUDGE, Standard};

use super::error::ExperimentError;
use super::reader::Reader;
use super::restore::RestoreBy;
use super::workload::{Workload, WorkloadKind};
use super::{DatabaseSpec, Layout, WriteSync};

/// How long a trial waits for quiet where nothing is said of it.
const QUIET_MS: u64 = 30_000;

fn one_run() -> u32 {
    1
}

fn quiet_ms() -> u64 {
    QUIET_MS
}

fn copy() -> RestoreBy {
    RestoreBy::Copy
}

const DAY_MS: u64 = 86_400_000;
const MINUTE_MS: u64 = 60_000;
/// A warm-up that ends by itself takes at least as long: as many samples as a steady state is told from.
const WARMUP_MIN_MS: u64 = 5_000;
/// How many rounds there may be.
pub(super) const ROUNDS: RangeInclusive<u32> = 1..=1000;
/// How many runs there may be.
pub(super) const RUNS: RangeInclusive<u32> = 1..=100;

/// Runs of [`ROUNDS_TO_JUDGE`] rounds, from which a plan that chooses both learns where the variance is.
pub const RUNS_TO_ESTIMATE: u32 = 3;

/// How the trials are run and judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Time a trial runs before it is measured, up to 24 h; the least of it when there is a `warmup_max_ms`.
    pub warmup_ms: u64,
    /// The warm-up lasts until the throughput is steady, and this long at most; `None`: it is as long as `warmup_ms`.
    #[serde(default)]
    pub warmup_max_ms: Option<u64>,
    /// Time a trial is measured, 100 ms to 24 h.
    pub measure_ms: u64,
    /// The trials of a round are measured by turns of this length, in random order, with all databases started; 200 ms
    /// to 1 min. `None`: one trial after the other.
    #[serde(default)]
    pub interleave_ms: Option<u64>,
    /// Rounds of a run, each one trial of every case in random order, 1 to 1000; the most of them when the rounds are
    /// `auto`.
    pub rounds: u32,
    /// How often the rounds are repeated as a whole, after a pause, with files and file systems made again, 1 to 100;
    /// the most runs when these are `auto`.
    #[serde(default = "one_run")]
    pub runs: u32,
    /// The pause between two runs, up to 24 h.
    #[serde(default)]
    pub pause_ms: u64,
    /// When rounds or runs themselves say how many it takes; `None`: it takes all of `rounds` and `runs`.
    #[serde(default)]
    pub auto: Option<Auto>,
    /// Two cases are a draw when their ratio surely lies within this many per cent of 1; 0 to 50.
    pub margin_percent: f64,
    /// How databases are put back before each trial.
    #[serde(default = "copy")]
    pub restore: RestoreBy,
    /// Whether the first candidate is measured twice, under two names, to learn the machine's own noise.
    #[serde(default)]
    pub noise_check: bool,
    /// How a restore is verified.
    pub restore_verify: Verify,
    /// The longest wait before each trial until the devices are at rest, up to 10 min; 0: none.
    #[serde(default = "quiet_ms")]
    pub quiet_ms: u64,
    /// A directory for the golden copies of layouts that Spindle makes; `None`: where the program was started.
    #[serde(default)]
    pub golden_path: Option<PathBuf>,
}

/// A pair of cases is measured until it is decided or known well enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Auto {
    /// How far the ends of the interval of a ratio may lie from it, per cent, 0.1 to 50.
    pub precision_percent: f64,
    /// No round begins that would end later than this after the begin of loading, going by the rounds so far; three are
    /// run in any case. `None`: however long it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// What is repeated until pairs are settled.
    #[serde(default)]
    pub repeats: Repeats,
}

/// What a plan repeats that ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeats {
    /// Rounds, in each run until its pairs are settled: `rounds = "auto"`.
    #[default]
    Rounds,
    /// Runs of a fixed number of rounds: `runs = "auto"`.
    Runs,
    /// Runs, of as many rounds as narrow the interval most for their time: both are `"auto"`.
    RunsAndRounds,
}

impl Plan {
    /// Reads the plan section.
    pub(super) fn read(reader: &mut Reader<'_>) -> Plan {
        let warmup = reader.duration_ms_or_auto("warmup", 0..=DAY_MS);
        let warmup_max_ms = reader.duration_ms("warmup_max", MINUTE_MS, 1_000..=DAY_MS);
        let measure_ms = reader.duration_ms("measure", 20_000, 100..=DAY_MS);
        let fixed_rounds = reader.number_or_auto("rounds", 3, ROUNDS);
        let margin_percent = reader.percent("margin", 3.0, 0.0..=50.0);
        let precision_percent =
            reader.percent("precision", (margin_percent / 2.0).max(0.1), 0.1..=50.0);
        let time_ms = reader.duration_ms("time", 0, 1_000..=30 * DAY_MS);
        let interleave_ms = reader.duration_ms("interleave", 0, 200..=MINUTE_MS);
        let rounds_max = reader.number("max", 30, ROUNDS_MIN..=*ROUNDS.end());
        let fixed_runs = reader.number_or_auto("runs", 1, RUNS);
        let runs_max = reader.number("max_runs", 20, ROUNDS_MIN..=*RUNS.end());
        let repeats = match (fixed_rounds, fixed_runs) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some(Repeats::Rounds),
            (Some(_), None) => Some(Repeats::Runs),
            (None, None) => Some(Repeats::RunsAndRounds),
        };
        let plan = Plan {
            warmup_ms: warmup.unwrap_or((measure_ms / 4).max(WARMUP_MIN_MS).min(warmup_max_ms)),
            warmup_max_ms: warmup.is_none().then_some(warmup_max_ms),
            measure_ms,
            interleave_ms: Some(interleave_ms).filter(|interleave_ms| *interleave_ms > 0),
            rounds: fixed_rounds.unwrap_or(rounds_max),
            runs: fixed_runs.unwrap_or(runs_max),
            pause_ms: reader.duration_ms("pause", MINUTE_MS, 0..=DAY_MS),
            auto: repeats.map(|repeats| Auto {
                precision_percent,
                time_ms: Some(time_ms).filter(|time_ms| *time_ms > 0),
                repeats,
            }),
            margin_percent,
            restore: reader.word("restore", RestoreBy::Copy),
            noise_check: reader.flag("noise_check", false),
            restore_verify: reader.word("restore_verify", Verify::Full),
            quiet_ms: reader.duration_ms("quiet", QUIET_MS, 0..=10 * MINUTE_MS),
            golden_path: reader.directory("golden_path"),
        };
        reader.finish();
        plan.check(reader);
        plan
    }

    /// Keys that say nothing without another.
    fn check(&self, reader: &Reader<'_>) {
        let without = |key: &'static str, others: &[&'static str]| {
            let other = others[0];
            let are_not = match others {
                [_] => format!("{other} is not"),
                _ => format!("neither {} is", others.join(" nor ")),
            };
            let message = format!("{key} is set, and {are_not} \"auto\"");
            let label = format!("it says how far {other} = \"auto\" goes");
            let help = format!("write {other} = \"auto\", or leave it out");
            let refused = reader.conflict(&[key], message, label, help);
            reader.note(refused.given(others.iter().flat_map(|other| reader.keys([*other]))));
        };
        let repeats = self.auto.map(|auto| auto.repeats);
        let repeats_rounds = matches!(repeats, Some(Repeats::Rounds | Repeats::RunsAndRounds));
        for (key, others, is_auto) in [
            ("precision", &["rounds", "runs"][..], repeats.is_some()),
            ("time", &["rounds", "runs"], repeats.is_some()),
            ("max", &["rounds"], repeats_rounds),
            ("max_runs", &["runs"], self.repeats_runs()),
            ("warmup_max", &["warmup"], self.warmup_max_ms.is_some()),
        ] {
            if !is_auto && reader.has(key) {
                without(key, others);
            }
        }
    }

    /// Keys that do not apply to trials which end with their last query, or their last row.
    pub(super) fn check_counted(reader: &Reader<'_>, kind: WorkloadKind) {
        for key in ["measure", "interleave", "warmup", "warmup_max"] {
            if reader.has(key) {
                reader.refuse(
                    &[key],
                    format!("{key} does not apply to kind = \"{kind}\""),
                    "a trial begins with the first query or row, and ends when every client has done its last",
                    "leave it out; a layout is put back before each trial, so that all begin with cold caches of the database",
                );
            }
        }
    }

    /// What trials that are measured by turns ask of their database and of its clients: that they do nothing while
    /// others have their turn.
    pub(super) fn check_interleaved(
        &self,
        reader: &Reader<'_>,
        workload: &Workload,
        layouts: &[Layout],
    ) {
        let Some(interleave_ms) = self.interleave_ms else {
            return;
        };
        let refused = |message: &str, label: &str, help: &str| -> ExperimentError {
            reader.conflict(&["interleave"], message.to_owned(), label, help)
        };
        let refuse =
            |message: &str, label: &str, help: &str| reader.note(refused(message, label, help));
        if interleave_ms * 2 > self.measure_ms {
            let refused = refused(
                "interleave is more than half of measure",
                "a trial needs at least two turns",
                "write a longer measure, or a shorter interleave",
            );
            reader.note(refused.given(reader.keys(["measure"])));
        }
        if workload.has_pace() {
            refuse(
                "interleave cannot be combined with rate or think_time",
                "with rate and think_time, time passes for clients while others have their turn",
                "leave out rate and think_time, or interleave",
            );
        }
        if let Some(key) = workload.transactions.settings().pause_key() {
            refuse(
                &format!("interleave cannot be combined with {key}"),
                "clients would go on keying in and thinking while other layouts have their turn",
                &format!("leave out {key}, or interleave"),
            );
        }
        let is_held = |layout: &Layout| match &layout.database.spec {
            DatabaseSpec::Kernel(spec) => spec.instance.write_sync == WriteSync::Dsync,
            DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => false,
        };
        if !layouts.iter().all(is_held) {
            refuse(
                "interleave is for the embedded database with write_sync = \"dsync\"",
                "other databases write their files during another layout's turn",
                "leave it out",
            );
        }
    }

    /// Keys that do not apply to existing servers.
    pub(super) fn check_foreign(reader: &Reader<'_>) {
        for key in ["golden_path", "restore_verify"] {
            if reader.has(key) {
                reader.refuse(
                    &[key],
                    format!("{key} is set for an existing server"),
                    "such a server puts its tables back itself: there is no copy to be kept here, and no file to be compared",
                    "leave it out",
                );
            }
        }
    }

    /// Rounds of all runs together; they are numbered through.
    pub fn all_rounds(&self) -> u32 {
        self.rounds * self.runs
    }

    /// Rounds of all runs that a plan has at least, if its time allows.
    pub fn fewest_rounds(&self) -> u32 {
        let to_estimate = RUNS_TO_ESTIMATE * ROUNDS_TO_JUDGE.min(self.rounds);
        match self.auto.map(|auto| auto.repeats) {
            None => self.all_rounds(),
            Some(Repeats::Rounds) => ROUNDS_MIN * self.runs,
            Some(Repeats::Runs) => ROUNDS_MIN * self.rounds,
            Some(Repeats::RunsAndRounds) => to_estimate + ROUNDS_MIN - RUNS_TO_ESTIMATE,
        }
    }

    /// Runs that a plan has at least, if its time allows.
    pub fn fewest_runs(&self) -> u32 {
        match self.repeats_runs() {
            true => ROUNDS_MIN,
            false => self.runs,
        }
    }

    /// The rounds that a run may have, the first run being 1.
    pub fn rounds_of(&self, run: u32) -> RangeInclusive<u32> {
        (run - 1) * self.rounds + 1..=run * self.rounds
    }

    /// The run that a round belongs to, from 1.
    pub fn run_of(&self, round: u32) -> u32 {
        (round - 1) / self.rounds + 1
    }

    /// Whether runs are repeated until pairs are settled.
    pub fn repeats_runs(&self) -> bool {
        let repeats = self.auto.map(|auto| auto.repeats);
        matches!(repeats, Some(Repeats::Runs | Repeats::RunsAndRounds))
    }

    /// What a comparison has to meet that decides whether one more round or run is needed.
    pub fn standard(&self) -> Standard {
        Standard {
            looks: match self.auto {
                Some(_) => Looks::EveryRound,
                None => Looks::Once,
            },
            ..Standard::fixed(self.margin_percent / 100.0)
        }
    }
}

#[cfg(test)]
mod tests;
