//! What the runs of the soak add up to, beside what is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::Command;

use jiff::Timestamp;
use spindle::result::{Comparison, RunResult, Verdict};

use crate::{Kind, LAYOUTS_OF_SIX, PAIRS_PER_RUN, ROUNDS_MAX_SLOWED, RUNS_PER_KIND};

/// False winners among so many equal pairs that a program with 5 % of them stays below in 98 of 100 soaks.
const FALSE_WINNERS_MAX: (u32, u32) = (17, 200);
/// Runs of six equal layouts that call anything different: a program that does so in 1 of 20 stays below in 99 of 100 soaks.
const FALSE_RUNS_MAX: (u32, u32) = (4, 25);
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
    /// Processors and file systems.
    machines: BTreeSet<String>,
    /// Load averages of one minute when runs began.
    loads: Vec<f64>,
}

impl Tally {
    /// Fails when a pair of the run has no verdict, as nothing is to be learned from what did not run.
    pub fn add(&mut self, kind: Kind, result: &RunResult) -> Result<(), String> {
        let wanted = kind.verdicts_per_run();
        if result.verdicts.len() != wanted {
            let reasons = result.cases.iter().filter_map(|case| case.outcome.reason());
            let reasons: BTreeSet<&str> = reasons.collect();
            return Err(format!(
                "a run measured {} pairs of {wanted}: {reasons:?}",
                result.verdicts.len()
            ));
        }
        self.machines.insert(machine_of(result));
        let load = result.machine.pointer("/load/averages/0");
        self.loads.extend(load.and_then(|load| load.as_f64()));
        if kind == Kind::Six {
            let of_best = result.verdicts.iter().map(|pair| pair.verdict);
            let mut told = of_best.chain(result.pairs.iter().map(|pair| pair.verdict));
            self.six += 1;
            self.six_called += u32::from(told.any(is_called));
            return Ok(());
        }
        let pairs = self.kinds.entry(kind).or_default();
        for comparison in &result.verdicts {
            pairs.add(comparison);
        }
        Ok(())
    }

    /// How it stands, in a line.
    pub fn line(&self) -> String {
        let (false_winners, equal) = self.equal();
        let slowed = self.of(Kind::Slowed);
        format!(
            "{false_winners} false winners of {equal}, {} slowed found of {}, {} of {} runs of {LAYOUTS_OF_SIX} equal layouts call \
             anything different",
            slowed.found, slowed.settled, self.six_called, self.six
        )
    }

    /// Fails when what is promised was not kept.
    pub fn judge(&self) -> Result<(), String> {
        let (false_winners, equal) = self.equal();
        let (most, of) = FALSE_WINNERS_MAX;
        if false_winners > most && false_winners * of > most * equal {
            return Err(format!(
                "{false_winners} false winners of {equal} are too many"
            ));
        }
        let (most, of) = FALSE_RUNS_MAX;
        if self.six_called > most && self.six_called * of > most * self.six {
            return Err(format!(
                "{} of {} runs of equal layouts call something different: too many",
                self.six_called, self.six
            ));
        }
        let slowed = self.of(Kind::Slowed);
        if f64::from(slowed.found) < FOUND_MIN * f64::from(slowed.settled) {
            return Err(format!(
                "only {} of {} slowed pairs found",
                slowed.found, slowed.settled
            ));
        }
        let is_complete = slowed.all as usize >= RUNS_PER_KIND * PAIRS_PER_RUN;
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

    /// False winners, and pairs that could have had one.
    fn equal(&self) -> (u32, u32) {
        let equal = [Kind::EqualFixed, Kind::EqualAuto].map(|kind| self.of(kind));
        let sum = |count: fn(&Pairs) -> u32| equal.iter().map(count).sum();
        (sum(|pairs| pairs.winners), sum(|pairs| pairs.all))
    }

    /// The page that is kept.
    pub fn document(&self) -> String {
        let planned = RUNS_PER_KIND * PAIRS_PER_RUN;
        let mut text = "# The last soak of the verdicts\n\n\
            Written by `make soak-verdicts` (`ARGS=--record` while it is unfinished). Real runs of a small database: pairs of one \
            layout under two names, in which every winner is false, and pairs of which one has its I/O slowed by 5 %, while \
            transactions only read and wait for little else. No margin: nothing is a draw.\n\n\
            | pairs | plan | measured | planned | called faster or slower | found of those settled | half width of the interval, median | \
            rounds, mean | ratio, geometric mean |\n\
            | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_string();
        for (kind, what, plan) in [
            (Kind::EqualFixed, "equal", "3 rounds"),
            (Kind::EqualAuto, "equal", "auto, 10 %"),
            (Kind::Slowed, "slowed by 5 %", "auto, 2.5 %"),
        ] {
            let pairs = self.of(kind);
            if pairs.all == 0 {
                let _ = writeln!(
                    text,
                    "| {what} | {plan} | 0 | {planned} | - | - | - | - | - |"
                );
                continue;
            }
            let found = match kind {
                Kind::Slowed => format!("{} of {}", pairs.found, pairs.settled),
                _ => String::new(),
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
        let (false_winners, equal) = self.equal();
        let (most, of) = FALSE_WINNERS_MAX;
        let machines: Vec<&str> = self.machines.iter().map(String::as_str).collect();
        let _ = write!(
            text,
            "\nFalse winners: {false_winners} of {equal}; at most {most} of {of} are allowed. A slowed pair counts when its plan \
             settled it within {ROUNDS_MAX_SLOWED} rounds; {:.0} % of those must be found. The four load levels of a run share the 5 %.\n\n\
             Six equal layouts, each in a directory with files made for it, five rounds: {} of {} runs ({RUNS_PER_KIND} planned) called \
             anything different, in any table; at most {} of {} are allowed.\n\n\
             Machine: {}; its load was {:.1} to {:.1} when runs began. Recorded by the code of git tree `{}` (`crates/`) on {}; runs \
             done before are of the code of their day.\n",
            100.0 * FOUND_MIN,
            self.six_called,
            self.six,
            FALSE_RUNS_MAX.0,
            FALSE_RUNS_MAX.1,
            machines.join("; "),
            least(&self.loads),
            greatest(&self.loads),
            code(),
            Timestamp::now().strftime("%Y-%m-%d")
        );
        text
    }
}

impl Pairs {
    fn add(&mut self, comparison: &Comparison) {
        let Some((low, _)) = comparison.ci95 else {
            return;
        };
        let half_width = comparison.ratio / low - 1.0;
        let is_first_ahead = comparison.a == "a";
        let is_winner = is_called(comparison.verdict);
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
    let text = |path: &str| match result.machine.pointer(path) {
        Some(value) => value.to_string().trim_matches('"').to_string(),
        None => "unknown".to_string(),
    };
    format!(
        "{} x {}, {}",
        text("/processor/logical_processors"),
        text("/processor/model"),
        text("/data_paths/0/file_system/kind")
    )
}

fn is_called(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
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
