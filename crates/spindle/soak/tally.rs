//! What the runs of the soak add up to, beside what is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::Command;

use jiff::Timestamp;
use spindle_result::{PairComparison, RunResult};

use crate::{Kind, LAYOUTS_OF_SIX, ROUNDS_MAX_SLOWED, RUNS_PER_KIND};

/// False winners among this many equal pairs that a program with 5 % of them stays below in 98 of 100 soaks.
const FALSE_WINNERS_MAX: (u32, u32) = (17, 200);
/// Runs of six equal layouts that call anything different: a program that does so in 1 of 20 stays below in 99 of 100
/// soaks.
const FALSE_RUNS_MAX: (u32, u32) = (4, 25);
/// Kinds whose pairs are counted together: on the same files every winner is false, whatever the plan.
const EQUAL: [Kind; 2] = [Kind::EqualFixed, Kind::EqualAuto];
const SLOWED: [Kind; 2] = [Kind::Slowed, Kind::ImagesSlowed];
/// Kinds of pairs, what they are and their plans, as the tables have them.
const ON_THE_SAME_FILES: [(Kind, &str, &str); 3] = [
    (Kind::EqualFixed, "equal", "3 rounds"),
    (Kind::EqualAuto, "equal", "auto, 10 %"),
    (Kind::Slowed, "slowed by 5 %", "auto, 2.5 %"),
];
const ON_OWN_IMAGES: [(Kind, &str, &str); 2] = [
    (Kind::Images, "equal", "5 rounds"),
    (Kind::ImagesSlowed, "slowed by 5 %", "auto, 2.5 %"),
];
/// Share of the runs that may fail, as a trial of a moment does on a machine that is wholly taken.
const UNMEASURED_MAX: f64 = 0.1;
/// Share of the slowed pairs that are found, of those that the plan settled.
const FOUND_MIN: f64 = 0.95;
/// What the plan of the slowed pairs asks for.
const PRECISION: f64 = 0.025;

/// Pairs of one kind.
#[derive(Debug, Clone, Default)]
struct Pairs {
    all: u32,
    winners: u32,
    /// Of slowed pairs: those that the plan did not give up on.
    settled: u32,
    /// Of those: the first layout was found to be the faster one.
    found: u32,
    rounds: u32,
    /// Of the first layout's throughput over the second's.
    log_ratios: Vec<f64>,
    /// Upper end of the interval over the ratio, less 1.
    half_widths: Vec<f64>,
}

/// All pairs so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    kinds: BTreeMap<Kind, Pairs>,
    /// Runs of six equal layouts.
    six: u32,
    /// Those of them in which any pair is called different in any table.
    six_called: u32,
    runs: u32,
    /// Runs in which a pair has no verdict, and why.
    unmeasured: u32,
    reasons: BTreeSet<String>,
    /// Processors and file systems.
    machines: BTreeSet<String>,
    /// Load averages of one minute when runs began.
    loads: Vec<f64>,
}

impl Tally {
    /// A run in which a pair has no verdict does not count, and is counted as such: nothing is to be learned from what
    /// did not run.
    pub fn add(&mut self, kind: Kind, result: &RunResult) {
        self.runs += 1;
        if result.verdicts.len() != kind.verdicts_per_run() {
            let reasons = result.cases.iter().filter_map(|case| case.outcome.reason());
            self.unmeasured += 1;
            self.reasons.extend(reasons.map(str::to_owned));
            return;
        }
        self.machines.insert(machine_of(result));
        let machine = result.machine.as_ref();
        let averages = machine.and_then(|machine| machine.load.averages);
        self.loads
            .extend(averages.map(|[of_a_minute, ..]| of_a_minute));
        if kind == Kind::Six {
            let of_best = result.verdicts.iter().map(|pair| pair.ci95);
            let mut told = of_best.chain(result.pairs.iter().map(|pair| pair.ci95));
            self.six += 1;
            self.six_called += u32::from(told.any(is_called));
            return;
        }
        let pairs = self.kinds.entry(kind).or_default();
        for comparison in &result.verdicts {
            pairs.add(comparison);
        }
    }

    /// How it stands, in a line.
    pub fn line(&self) -> String {
        let count = |pairs: Pairs| (pairs.winners, pairs.all);
        let (false_winners, equal) = count(self.together(EQUAL));
        let (false_on_images, on_images) = count(self.of(Kind::Images));
        let slowed = self.together(SLOWED);
        format!(
            "{false_winners} false winners of {equal}, {false_on_images} of {on_images} on images of their own, {} slowed found of {}, \
             {} of {} runs of {LAYOUTS_OF_SIX} equal layouts call anything different",
            slowed.found, slowed.settled, self.six_called, self.six
        )
    }

    /// Fails when what is promised was not kept.
    pub fn judge(&self) -> Result<(), String> {
        if f64::from(self.unmeasured) > UNMEASURED_MAX * f64::from(self.runs) {
            return Err(format!(
                "{} of {} runs measured nothing that counts: {:?}",
                self.unmeasured, self.runs, self.reasons
            ));
        }
        let (most, of) = FALSE_WINNERS_MAX;
        for (pairs, what) in [
            (self.together(EQUAL), "equal pairs"),
            (self.of(Kind::Images), "equal pairs on images of their own"),
        ] {
            if pairs.winners > most && pairs.winners * of > most * pairs.all {
                return Err(format!(
                    "{} false winners of {} {what} are too many",
                    pairs.winners, pairs.all
                ));
            }
        }
        let (most, of) = FALSE_RUNS_MAX;
        if self.six_called > most && self.six_called * of > most * self.six {
            return Err(format!(
                "{} of {} runs of equal layouts call something different: too many",
                self.six_called, self.six
            ));
        }
        SLOWED
            .into_iter()
            .try_for_each(|kind| self.judge_slowed(kind))
    }

    fn judge_slowed(&self, kind: Kind) -> Result<(), String> {
        let slowed = self.of(kind);
        if f64::from(slowed.found) < FOUND_MIN * f64::from(slowed.settled) {
            return Err(format!(
                "only {} of {} slowed pairs found ({})",
                slowed.found,
                slowed.settled,
                kind.name()
            ));
        }
        let is_complete = slowed.all as usize >= planned(kind);
        if is_complete && slowed.settled * 2 < slowed.all {
            return Err(format!(
                "only {} of {} slowed pairs were settled: this machine is too noisy to tell whether they are found",
                slowed.settled, slowed.all
            ));
        }
        Ok(())
    }

    fn of(&self, kind: Kind) -> Pairs {
        self.kinds.get(&kind).cloned().unwrap_or_default()
    }

    fn together(&self, kinds: [Kind; 2]) -> Pairs {
        let [first, second] = kinds.map(|kind| self.of(kind));
        first.and(second)
    }

    /// The page that is kept.
    pub fn document(&self) -> String {
        let (equal, on_images) = (self.together(EQUAL), self.of(Kind::Images));
        let (most, of) = FALSE_WINNERS_MAX;
        let machines: Vec<&str> = self.machines.iter().map(String::as_str).collect();
        format!(
            "# The last soak of the verdicts\n\n\
             Written by `make soak-verdicts` (`ARGS=--record` while it is unfinished). Real runs of a small database: pairs of one \
             layout under two names, in which every winner is false, and pairs of which one has its I/O slowed by 5 %, while \
             transactions only read and wait for little else. No margin: nothing is a draw.\n\n\
             ## Pairs on the same files\n\n\
             {}\n\
             False winners: {} of {}; at most {most} of {of} are allowed. A slowed pair counts when its plan settled it within \
             {ROUNDS_MAX_SLOWED} rounds; {:.0} % of those must be found. The four load levels of a run share the 5 %.\n\n\
             ## Pairs on own images\n\n\
             Each layout is its own ext4 file system, on a loop device and an image made for the run, which has one load \
             level.\n\n\
             {}\n\
             False winners: {} of {}; at most {most} of {of} are allowed.\n\n\
             ## Six equal layouts\n\n\
             Each in a directory with files made for it, five rounds: {} of {} runs ({RUNS_PER_KIND} planned) called \
             anything different, in any table; at most {} of {} are allowed.\n\n\
             ## Of this record\n\n\
             Runs that do not count, as a trial of theirs committed nothing: {} of {}.\n\n\
             Machine: {}; its load was {:.1} to {:.1} when runs began. Recorded by the code of git tree `{}` (`crates/`) on {}; runs \
             done before are of the code of their day.\n",
            self.table(&ON_THE_SAME_FILES),
            equal.winners,
            equal.all,
            100.0 * FOUND_MIN,
            self.table(&ON_OWN_IMAGES),
            on_images.winners,
            on_images.all,
            self.six_called,
            self.six,
            FALSE_RUNS_MAX.0,
            FALSE_RUNS_MAX.1,
            self.unmeasured,
            self.runs,
            machines.join("; "),
            least(&self.loads),
            greatest(&self.loads),
            code(),
            Timestamp::now().strftime("%Y-%m-%d")
        )
    }

    fn table(&self, rows: &[(Kind, &str, &str)]) -> String {
        let mut text = "| pairs | plan | measured | planned | called faster or slower | found of those settled | half width of the \
            interval, median | rounds, mean | ratio, geometric mean |\n\
            | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_string();
        for &(kind, what, plan) in rows {
            let pairs = self.of(kind);
            let planned = planned(kind);
            if pairs.all == 0 {
                let _ = writeln!(
                    text,
                    "| {what} | {plan} | 0 | {planned} | - | - | - | - | - |"
                );
                continue;
            }
            let found = match kind.is_slowed() {
                true => format!("{} of {}", pairs.found, pairs.settled),
                false => String::new(),
            };
            let _ = writeln!(
                text,
                "| {what} | {plan} | {} | {planned} | {} | {found} | {:.1} % | {:.1} | {:.3} |",
                pairs.all,
                pairs.winners,
                100.0 * median(&pairs.half_widths),
                f64::from(pairs.rounds) / f64::from(pairs.all),
                mean(&pairs.log_ratios).exp(),
            );
        }
        text
    }
}

/// Pairs of one kind that a whole soak measures.
fn planned(kind: Kind) -> usize {
    kind.runs() * kind.verdicts_per_run()
}

impl Pairs {
    fn and(mut self, other: Pairs) -> Pairs {
        self.all += other.all;
        self.winners += other.winners;
        self.settled += other.settled;
        self.found += other.found;
        self
    }

    fn add(&mut self, comparison: &PairComparison) {
        let Some((low, _)) = comparison.ci95 else {
            return;
        };
        let half_width = comparison.ratio / low - 1.0;
        let is_first_ahead = comparison.cases.a == "a";
        let is_winner = is_called(comparison.ci95);
        let is_settled = comparison.rounds < ROUNDS_MAX_SLOWED || half_width <= PRECISION;
        let log_ratio = comparison.ratio.ln();
        self.all += 1;
        self.winners += u32::from(is_winner);
        self.settled += u32::from(is_settled);
        self.found += u32::from(is_settled && is_winner && is_first_ahead);
        self.rounds += comparison.rounds;
        self.half_widths.push(half_width);
        self.log_ratios.push(if is_first_ahead {
            log_ratio
        } else {
            -log_ratio
        });
    }
}

/// Processors and file system, as the run noted them.
fn machine_of(result: &RunResult) -> String {
    const UNKNOWN: &str = "unknown";
    let machine = result.machine.as_ref();
    let processor = machine.map(|machine| &machine.processor);
    let count = processor.and_then(|processor| processor.logical_processors);
    let count = count.map_or(UNKNOWN.to_owned(), |count| count.to_string());
    let model = processor.map_or(UNKNOWN, |processor| &processor.model);
    let place = machine.and_then(|machine| machine.data_paths.first());
    let file_system = place.and_then(|place| place.file_system.as_ref());
    let file_system = file_system.map_or(UNKNOWN, |files| &files.kind);
    format!("{count} x {model}, {file_system}")
}

/// Whether an interval calls two layouts different.
fn is_called(ci95: Option<(f64, f64)>) -> bool {
    ci95.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::min).unwrap_or_default()
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::max).unwrap_or_default()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// What was run; the runs are made from the directory of the project, or below it.
fn code() -> String {
    let answer = Command::new("git")
        .args([
            "-C",
            env!("CARGO_MANIFEST_DIR"),
            "rev-parse",
            "--short=12",
            "HEAD:crates",
        ])
        .output();
    match answer {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_string()
        }
        _ => "unknown".to_string(),
    }
}
