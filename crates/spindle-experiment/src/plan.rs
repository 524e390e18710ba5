//! The `[plan]` section: how long, how often, and how small a difference counts as none.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_layout::Verify;
use spindle_stats::{Looks, ROUNDS_MIN, ROUNDS_TO_JUDGE, Standard};
use spindle_text::section::Section;
use spindle_text::settings;

use super::error::ExperimentError;
use super::reader::Reader;
use super::restore::RestoreBy;
use super::workload::{WorkloadChoice, WorkloadKind};
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

/// Most rounds of `"auto"` where nothing is said of them.
const ROUNDS_OF_AUTO: u32 = 30;
/// Most runs of `"auto"` where nothing is said of them.
const RUNS_OF_AUTO: u32 = 20;
const PRECISION_PERCENT: RangeInclusive<f64> = 0.1..=50.0;
const GOLDEN_PATH: &str = "beside the first layout with a `path`, else `\".\"`";

settings! {
    /// What is said of how trials are run and judged.
    pub(crate) struct PlanSettings {
        /// Time a trial runs before it is measured. `"auto"`: until the throughput is steady, at least 5s or a quarter
        /// of `measure`.
        warmup_ms: Option<u64> = duration_ms_or_auto("warmup", 0..=DAY_MS),
        /// The longest warm-up of `"auto"`. A trial that is not steady by then is measured all the same, and marked.
        warmup_max_ms: u64 = duration_ms("warmup_max", MINUTE_MS, 1_000..=DAY_MS),
        /// Time a trial is measured.
        measure_ms: u64 = duration_ms("measure", 20_000, 100..=DAY_MS),
        /// Trials of a round are measured by turns of so long each, all databases being started, see below; at most
        /// half of `measure`.
        interleave_ms: Option<u64> = optional_duration_ms("interleave", "none", 200..=MINUTE_MS),
        /// Rounds: each is one trial of every case, in random order. `"auto"`: until each ratio is known, see below.
        rounds: Option<u32> = number_or_auto("rounds", 3, ROUNDS),
        /// With `rounds` or `runs` of `"auto"`: how well a ratio is to be known.
        precision_percent: Option<f64> = optional_percent("precision", "half of `margin`", PRECISION_PERCENT),
        /// The most rounds of `"auto"`, in each run.
        rounds_max: Option<u32> = optional_number("max", "30, with `rounds = \"auto\"`", ROUNDS_MIN..=*ROUNDS.end()),
        /// With `rounds` or `runs` of `"auto"`: no round (or run) begins that would end later than this after the begin
        /// of loading; three are run in any case.
        time_ms: Option<u64> = optional_duration_ms("time", "none", 1_000..=30 * DAY_MS),
        /// Two cases are a draw when their ratio surely lies within this much of 1.
        margin_percent: f64 = percent("margin", 3.0, 0.0..=50.0),
        /// The first layout that is measured is measured once more under another name; by as much as it differs from
        /// itself, nothing is called faster or slower.
        noise_check: bool = flag("noise_check", false),
        /// Where the loaded database is kept, from which every layout is restored; not with `url`.
        golden_path: Option<PathBuf> = directory("golden_path", GOLDEN_PATH),
        /// How every database is put back before each trial: changed blocks copied back in place; files that share the
        /// blocks of an original again; or volumes put back to a snapshot, see below. Of an [existing
        /// server](#an-existing-server): copied there, cloned there, or loaded again.
        restore: RestoreBy = word("restore", RestoreBy::Copy),
        /// How the restore before each trial is proved: by reading back every block, or those the trial before had
        /// changed; not with `url`.
        restore_verify: Verify = word("restore_verify", Verify::Full),
        /// How often all rounds are repeated: after a pause, on new file systems and files, in a new order. With
        /// several, cases are compared by their runs, see below. `"auto"`: until each ratio is known.
        runs: Option<u32> = number_or_auto("runs", 1, RUNS),
        /// The most runs of `"auto"`.
        runs_max: Option<u32> = optional_number("max_runs", "20, with `runs = \"auto\"`", ROUNDS_MIN..=*RUNS.end()),
        /// The pause between two runs.
        pause_ms: u64 = duration_ms("pause", MINUTE_MS, 0..=DAY_MS),
        /// The longest wait before each trial until its devices are at rest; `"0s"`: none. When it has run out twice in
        /// a row, later waits take a tenth of it.
        quiet_ms: u64 = duration_ms("quiet", QUIET_MS, 0..=10 * MINUTE_MS),
    }
}

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
        let said = PlanSettings::read(reader);
        let (fixed_rounds, fixed_runs) = (said.rounds, said.runs);
        let half = (said.margin_percent / 2.0).max(*PRECISION_PERCENT.start());
        let warmup_ms = (said.measure_ms / 4).max(WARMUP_MIN_MS);
        let repeats = match (fixed_rounds, fixed_runs) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some(Repeats::Rounds),
            (Some(_), None) => Some(Repeats::Runs),
            (None, None) => Some(Repeats::RunsAndRounds),
        };
        let plan = Plan {
            warmup_ms: said.warmup_ms.unwrap_or(warmup_ms.min(said.warmup_max_ms)),
            warmup_max_ms: said.warmup_ms.is_none().then_some(said.warmup_max_ms),
            measure_ms: said.measure_ms,
            interleave_ms: said.interleave_ms,
            rounds: fixed_rounds.unwrap_or(said.rounds_max.unwrap_or(ROUNDS_OF_AUTO)),
            runs: fixed_runs.unwrap_or(said.runs_max.unwrap_or(RUNS_OF_AUTO)),
            pause_ms: said.pause_ms,
            auto: repeats.map(|repeats| Auto {
                precision_percent: said.precision_percent.unwrap_or(half),
                time_ms: said.time_ms,
                repeats,
            }),
            margin_percent: said.margin_percent,
            restore: said.restore,
            noise_check: said.noise_check,
            restore_verify: said.restore_verify,
            quiet_ms: said.quiet_ms,
            golden_path: said.golden_path,
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
        workload: &WorkloadChoice,
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
