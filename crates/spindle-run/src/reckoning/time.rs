//! How long a run takes, about. What the plan says is certain; how fast the machine reads, writes and loads is assumed,
//! and said.

use std::fmt;

use spindle_stats::ROUNDS_TO_JUDGE;

use super::ReckoningInput;
use super::databases::{Databases, ReckonedImage};
use crate::trial_time::{
    BYTES_PER_S, SERVER_LOADS_PER_S, ends_ms, ms_of, put_back_ms, search_ms, there_ms,
};
use spindle_experiment::{DatabaseSpec, Experiment};
use spindle_text::quantity::about_time;

/// Assumed: what the embedded database loads in a second.
const KERNEL_LOADS_PER_S: u64 = 100 << 20;

/// Beginning and ending a turn, of trials that are measured by turns.
const TURN_ENDS_MS: u64 = 150;

/// How long a run takes.
pub struct Time {
    /// What is done once in each run of the plan.
    once: Vec<(&'static str, u64)>,
    /// What each trial takes.
    trial: Vec<(&'static str, u64)>,
    /// Fewest runs, and most.
    runs: (u64, u64),
    pause_ms: u64,
    cases: u64,
    /// Fewest trials, and most.
    trials: (u64, u64),
    /// The longest wait before each trial for quiet devices.
    quiet_ms: u64,
    /// The plan ends with this.
    limit_ms: Option<u64>,
    /// Trials last as long as what they ask takes, which is unknown.
    is_open: bool,
}

/// Fewest and most trials of a plan that measures this many cases.
pub(super) fn trials_of(experiment: &Experiment, cases: usize) -> (u64, u64) {
    let plan = &experiment.plan;
    let trials = |rounds: u32| cases as u64 * u64::from(rounds);
    (trials(plan.fewest_rounds()), trials(plan.all_rounds()))
}

impl Time {
    /// The time to run this many trials.
    pub(super) fn of(seen: ReckoningInput<'_>, databases: &Databases, trials: (u64, u64)) -> Time {
        let experiment = seen.destinations.experiment;
        let plan = &experiment.plan;
        let loads_per_s = match experiment.spec() {
            DatabaseSpec::Kernel(_) => KERNEL_LOADS_PER_S,
            DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => SERVER_LOADS_PER_S,
        };
        let (mut loaded_bytes, mut copied_bytes) = (0, 0);
        for golden in &databases.goldens {
            loaded_bytes += golden.files.bytes();
        }
        for image in &databases.images {
            copied_bytes += databases.goldens[image.golden].bytes();
        }
        let is_made = !seen.destinations.specs.is_empty();
        let making_ms = if is_made {
            seen.destinations.plan.estimated_time().as_millis() as u64
        } else {
            0
        };
        let images = databases.images.len().max(1) as u64;
        let restores = databases.images.iter();
        let restores_ms: u64 = restores
            .map(|image| restore_ms(experiment, databases, image))
            .sum();
        let is_open = experiment.workload.transactions.are_counted();
        let (warmup_ms, measure_ms) = match is_open {
            true => (0, 0),
            false => (plan.warmup_ms, plan.measure_ms),
        };
        let turns = plan
            .interleave_ms
            .map_or(0, |turn_ms| measure_ms.div_ceil(turn_ms));
        let restore_ms = match experiment.spec() {
            DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => restores_ms / images,
            DatabaseSpec::Remote(remote) => there_ms(experiment, remote.address.kind()),
        };
        let time = Time {
            once: vec![
                ("making layouts", making_ms),
                ("loading", ms_of(loaded_bytes, loads_per_s)),
                ("copying", ms_of(copied_bytes, BYTES_PER_S)),
            ],
            trial: vec![
                ("restore", restore_ms),
                ("warm-up", warmup_ms),
                ("search", search_ms(experiment)),
                ("measured", measure_ms),
                ("turns", turns * TURN_ENDS_MS),
                ("start, flush, check and stop", ends_ms(experiment)),
            ],
            runs: (u64::from(plan.fewest_runs()), u64::from(plan.runs)),
            pause_ms: plan.pause_ms,
            cases: trials.1 / u64::from(plan.all_rounds()),
            trials,
            quiet_ms: plan.quiet_ms,
            limit_ms: plan.auto.and_then(|auto| auto.time_ms),
            is_open,
        };
        time.limited()
    }

    /// No more trials than the plan's time allows, and three of each case in any case.
    fn limited(mut self) -> Time {
        let Some(limit_ms) = self.limit_ms else {
            return self;
        };
        let sum = |parts: &[(&str, u64)]| parts.iter().map(|(_, ms)| ms).sum::<u64>();
        let (once_ms, trial_ms) = (sum(&self.once), sum(&self.trial).max(1));
        let judged = u64::from(ROUNDS_TO_JUDGE);
        let (trials, runs) = match self.runs {
            (least, most) if least == most => {
                let in_time = limit_ms.saturating_sub(once_ms) / trial_ms;
                let rounds = (in_time / self.cases.max(1)).max(judged);
                (rounds * self.cases, most)
            }
            (_, most) => {
                let of_run = self.trials.1 / most;
                let run_ms = once_ms + self.pause_ms + of_run * trial_ms;
                let runs = (limit_ms / run_ms.max(1)).clamp(judged, most);
                (runs * of_run, runs)
            }
        };
        self.trials = (self.trials.0.min(trials), self.trials.1.min(trials));
        self.runs = (self.runs.0.min(runs), runs);
        self
    }

    /// Rounds of this many cases that are expected at most, and milliseconds that they take with all else.
    pub fn most(&self, cases: usize) -> (u32, u64) {
        let rounds = self.trials.1 / (cases as u64).max(1);
        (rounds as u32, self.most_ms())
    }

    fn least_ms(&self) -> u64 {
        self.ms(self.runs.0, self.trials.0)
    }

    fn most_ms(&self) -> u64 {
        self.ms(self.runs.1, self.trials.1)
    }

    fn ms(&self, runs: u64, trials: u64) -> u64 {
        let sum = |parts: &[(&str, u64)]| parts.iter().map(|(_, ms)| ms).sum::<u64>();
        let pauses_ms = self.pause_ms * runs.saturating_sub(1);
        runs * sum(&self.once) + pauses_ms + trials * sum(&self.trial)
    }
}

/// Time to put an image back, mean of all trials.
fn restore_ms(experiment: &Experiment, databases: &Databases, image: &ReckonedImage) -> u64 {
    let bytes = databases.goldens[image.golden].bytes();
    put_back_ms(experiment, bytes, image.put_back)
}

impl fmt::Display for Time {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.trials;
        let whole = match least == most {
            true => about_time(self.most_ms()),
            false => format!(
                "{} to {}",
                about_time(self.least_ms()),
                about_time(self.most_ms())
            ),
        };
        let said = |parts: &[(&str, u64)]| {
            let parts = parts.iter().filter(|(_, ms)| *ms > 0);
            let parts = parts.map(|(what, ms)| format!("{what} {}", about_time(*ms)));
            parts.collect::<Vec<_>>().join(" + ")
        };
        let trials = match least == most {
            true if most == 1 => "1 trial".to_owned(),
            true => format!("{most} trials"),
            false => format!("{least} to {most} trials"),
        };
        write!(text, "Time: about {whole}")?;
        if self.is_open {
            write!(text, " beside what the transactions themselves take")?;
        }
        write!(text, ": ")?;
        let once = said(&self.once);
        let runs = match self.runs {
            (least, most) if least == most => most.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        if !once.is_empty() && self.runs.1 > 1 {
            write!(text, "{runs} x ({once}) + ")?;
        } else if !once.is_empty() {
            write!(text, "{once} + ")?;
        }
        write!(text, "{trials} x ({})", said(&self.trial))?;
        let pauses_ms = self.pause_ms * self.runs.1.saturating_sub(1);
        if pauses_ms > 0 {
            write!(text, " + pauses of {}", about_time(pauses_ms))?;
        }
        write!(
            text,
            ". An estimate: 200 MiB/s are assumed for copies and restores"
        )?;
        if self.quiet_ms > 0 {
            write!(
                text,
                ", and waits for quiet devices (up to {} each) come on top",
                about_time(self.quiet_ms)
            )?;
        }
        Ok(())
    }
}
