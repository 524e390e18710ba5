//! The whole story of a run. Examine the candidates, make their databases, then round by round every case once in random
//! order: put the database back, run the trial, write down what it found. Interrupted or killed at any moment, a run goes
//! on later where it was; what its trials wrote is thrown away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;

use super::directory::{self, DirectoryError};
use super::examine::examine;
use super::grounds::{GroundError, Grounds};
use super::images::{ImageError, Images, Restored};
use super::journal::{Event, Journal, JournalError};
use super::limits::{self, Flushes, LayoutLimit};
use super::progress::{Progress, Shown};
use super::replay::{CaseKey, RunState};
use crate::experiment::Experiment;
use crate::observe::SystemFiles;
use crate::observe::disk::page_cache_share_of_reads;
use crate::observe::machine::Machine;
use crate::observe::memory::MemoryBudget;
use crate::observe::own_group;
use crate::result::{Audit, RunResult, SystemSeries, Trial};
use crate::trial::own_cost::OwnCostTask;
use crate::trial::protocol::{Outcome, Task};
use crate::trial::supervisor::{self, Bounds, TrialError};
use crate::watch::{CaseView, Scene, UnderWay};

/// Streams of chance from here on are the orders of rounds.
const ORDER_STREAMS: u64 = 1 << 40;
/// What a trial takes besides warm-up and measured time, before one has been seen.
const TRIAL_OVERHEAD: Duration = Duration::from_secs(3);
/// Samples of throughput in a measured time, about; between 100 ms and 3 s apart.
const SAMPLES: u64 = 100;

/// Why a run stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What the layouts stand on cannot be made.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The database's files cannot be made or put back.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The place where the run was started is gone.
    #[error("{path}, where the run was started: {error}")]
    WorkingDirectory {
        /// The place.
        path: PathBuf,
        /// The system's own words.
        error: std::io::Error,
    },
    /// The dashboard that was asked for cannot be shown.
    #[error("the terminal on standard output cannot be taken for --watch: {0}")]
    Terminal(std::io::Error),
    /// The person asked for it.
    #[error("interrupted")]
    Interrupted,
}

/// A run under way.
pub struct Runner {
    directory: PathBuf,
    journal: Journal,
    state: RunState,
    progress: Progress,
    /// Limits of layouts that have one and can be measured here.
    limits: BTreeMap<usize, LayoutLimit>,
    interrupted: Arc<AtomicBool>,
}

impl Runner {
    /// Begins a run in a directory that has none.
    pub fn begin(
        experiment: Experiment,
        directory: &Path,
        shown: Shown,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Runner, RunError> {
        directory::create(directory)?;
        let working_directory =
            std::env::current_dir().map_err(|error| RunError::WorkingDirectory {
                path: PathBuf::from("."),
                error,
            })?;
        let started = Event::RunStarted {
            run: run_name(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            at: Timestamp::now().to_string(),
            working_directory,
            experiment: Box::new(experiment),
        };
        let mut journal = Journal::create(directory)?;
        journal.append(&started)?;
        let state = RunState::of(&[started]).expect("the start was just made");
        let text =
            serde_json::to_string_pretty(&state.experiment).expect("plain data becomes JSON");
        directory::write(&directory.join("experiment.json"), &text)?;
        Runner::new(directory, journal, state, shown, interrupted)
    }

    /// Goes on with the run of a directory.
    pub fn go_on(
        directory: &Path,
        shown: Shown,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Runner, RunError> {
        // The run's paths begin elsewhere.
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_path_buf());
        let (journal, events) = Journal::reopen(&directory)?;
        let mut state =
            RunState::of(&events).expect("a journal that opens begins with a run's start");
        state.forgive();
        let path = state.working_directory.clone();
        std::env::set_current_dir(&path)
            .map_err(|error| RunError::WorkingDirectory { path, error })?;
        Runner::new(&directory, journal, state, shown, interrupted)
    }

    fn new(
        directory: &Path,
        journal: Journal,
        state: RunState,
        shown: Shown,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Runner, RunError> {
        let plan = &state.experiment.plan;
        let estimate = Duration::from_millis(plan.warmup_ms + plan.measure_ms) + TRIAL_OVERHEAD;
        let scene = scene_of(&state, Arc::clone(&interrupted));
        let progress = Progress::new(shown, scene, estimate).map_err(RunError::Terminal)?;
        Ok(Runner {
            directory: directory.to_path_buf(),
            journal,
            state,
            progress,
            limits: BTreeMap::new(),
            interrupted,
        })
    }

    /// Runs what is left of the plan and writes the reports, also when it is interrupted after a trial.
    pub fn run(&mut self) -> Result<RunResult, RunError> {
        let run = self.run_trials();
        if run.is_ok() && !self.state.finished {
            self.note(Event::RunFinished)?;
        }
        let reports = directory::write_reports(&self.directory);
        run?;
        self.progress.ends();
        Ok(reports?)
    }

    fn note(&mut self, event: Event) -> Result<(), RunError> {
        self.journal.append(&event)?;
        self.state.add(&event);
        Ok(())
    }

    fn warn(&mut self, text: String) -> Result<(), RunError> {
        self.progress.note(&format!("warning: {text}"));
        self.note(Event::Warning { text })
    }

    fn check_interrupted(&self) -> Result<(), RunError> {
        if self.interrupted.load(Ordering::Relaxed) {
            Err(RunError::Interrupted)
        } else {
            Ok(())
        }
    }

    fn run_trials(&mut self) -> Result<(), RunError> {
        let budget = self.record_budget()?;
        self.check_redo_place()?;
        let wanted = layouts_not_done(&self.state);
        if wanted.is_empty() {
            return Ok(());
        }
        let progress = &mut self.progress;
        let mut note = |text: &str| progress.note(text);
        let grounds = Grounds::prepare(&self.state, &wanted, &mut note)?;
        let run = self.run_on(&grounds, &wanted, budget.as_ref());
        for leftover in grounds.teardown() {
            self.warn(leftover)?;
        }
        run
    }

    fn run_on(
        &mut self,
        grounds: &Grounds,
        wanted: &[usize],
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        self.record_machine(grounds, wanted)?;
        self.examine_layouts(grounds, wanted)?;
        self.check_flushes()?;
        if trials_left(&self.state).is_empty() {
            return Ok(());
        }
        self.check_interrupted()?;
        self.measure_own_cost()?;
        let left = trials_left(&self.state);
        let wanted: Vec<usize> = left.iter().map(|(_, _, (layout, _))| *layout).collect();
        let progress = &mut self.progress;
        let mut note = |text: &str| progress.note(text);
        let (mut images, failed) = Images::prepare(&self.state, &wanted, grounds, &mut note)?;
        let skipped = failed
            .into_iter()
            .try_for_each(|(layout, reason)| self.skip(layout, reason));
        let run = skipped.and_then(|()| {
            let left = trials_left(&self.state);
            self.run_rounds(&left, &mut images, grounds, budget)
        });
        for leftover in images.remove() {
            self.warn(leftover)?;
        }
        run
    }

    /// A layout whose database cannot be had after all.
    fn skip(&mut self, index: usize, reason: String) -> Result<(), RunError> {
        let layout = self.state.layout(index);
        self.progress
            .note(&format!("skipped: {}: {reason}", layout.name));
        self.note(Event::LayoutExamined {
            index,
            layout,
            skip: Some(reason),
        })
    }

    fn run_rounds(
        &mut self,
        left: &[(u32, u32, CaseKey)],
        images: &mut Images,
        grounds: &Grounds,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        for &(round, position, case) in left {
            self.check_interrupted()?;
            if self.state.has_failed(case) {
                continue;
            }
            self.run_trial(round, position, case, images, grounds, budget)?;
        }
        Ok(())
    }

    fn record_machine(&mut self, grounds: &Grounds, wanted: &[usize]) -> Result<(), RunError> {
        let paths = grounds.paths(wanted);
        let machine = Machine::capture(&SystemFiles::default(), &paths);
        if let Some(before) = &self.state.machine {
            let differs = before.kernel_release != machine.kernel_release
                || before.processor != machine.processor
                || before.host != machine.host;
            if differs {
                let text =
                    "the run went on on another machine or kernel: its trials are not comparable";
                self.warn(text.to_string())?;
            }
        } else {
            let text = serde_json::to_string_pretty(&machine).expect("plain data becomes JSON");
            directory::write(&self.directory.join("machine.json"), &text)?;
        }
        self.note(Event::Machine {
            machine: Box::new(machine),
        })
    }

    /// The means to hold every trial to its memory budget, or a word to the person that there is none.
    fn record_budget(&mut self) -> Result<Option<MemoryBudget>, RunError> {
        let files = SystemFiles::default();
        for leftover in own_group::remove_leftovers(&files) {
            self.progress.note(&format!(
                "removed {}, left by a dead run",
                leftover.path.display()
            ));
        }
        match MemoryBudget::available(&files) {
            Ok(budget) => {
                let bytes = Some(self.state.experiment.database.memory_bytes);
                self.note(Event::MemoryBudget { bytes })?;
                Ok(Some(budget))
            }
            Err(reason) => {
                self.note(Event::MemoryBudget { bytes: None })?;
                self.progress
                    .note(&format!("the page cache is not held to a budget: {reason}"));
                Ok(None)
            }
        }
    }

    fn examine_layouts(&mut self, grounds: &Grounds, wanted: &[usize]) -> Result<(), RunError> {
        for &index in wanted {
            let mut examined = examine(&self.state.experiment, grounds, index);
            if examined.skip.is_none() {
                examined.skip = self.make_limit_ready(index, grounds)?;
                let limit = self.limits.get(&index);
                let note = limit.and_then(|limit| limit.flushes().note());
                examined.layout.notes.extend(note.map(str::to_owned));
            }
            if let Some(reason) = &examined.skip {
                self.progress
                    .note(&format!("skipped: {}: {reason}", examined.layout.name));
            }
            self.note(Event::LayoutExamined {
                index,
                layout: examined.layout,
                skip: examined.skip,
            })?;
        }
        Ok(())
    }

    /// Why a layout must be skipped because of its limit, if so.
    fn make_limit_ready(
        &mut self,
        index: usize,
        grounds: &Grounds,
    ) -> Result<Option<String>, RunError> {
        let experiment = &self.state.experiment;
        let layout = &experiment.layouts[index];
        let paths = grounds.paths(&[index]);
        let limit = match limits::prepare(layout, &paths) {
            Ok(None) => return Ok(None),
            Ok(Some(limit)) => limit,
            Err(reason) => return Ok(Some(reason)),
        };
        self.progress
            .note(&format!("trying the limit of {}", layout.name));
        match limits::try_out(experiment, index, &paths, &limit, &self.interrupted) {
            Ok(None) => {
                self.limits.insert(index, limit);
                Ok(None)
            }
            Ok(skip) => Ok(skip),
            Err(_) => Err(RunError::Interrupted),
        }
    }

    /// Redo is held constant unless the experiment varies it; left beside the data of layouts in several places it is not.
    fn check_redo_place(&mut self) -> Result<(), RunError> {
        match redo_places(&self.state.experiment) {
            0 | 1 => Ok(()),
            places => self.warn(format!(
                "redo lies beside the data, in {places} places: a part of any difference may be redo's. \
                 Set database.redo_path to hold it constant"
            )),
        }
    }

    /// A limit that counts flushes in one layout and not in another gives the two different amounts of durable writes.
    fn check_flushes(&mut self) -> Result<(), RunError> {
        let some = |kind| self.limits.values().any(|limit| limit.flushes() == kind);
        if !(some(Flushes::Counted) && some(Flushes::Free)) {
            return Ok(());
        }
        self.warn(
            "layouts with a limit of writes per second are not equal: a durable write counts as two with blocking or buffered \
             calls, and as one with asynchronous direct ones, whose flush the kernel makes in nobody's name. Compare layouts \
             of one kind, or limit bytes per second"
                .to_string(),
        )
    }

    /// Once a run: a run that goes on has it in its journal.
    fn measure_own_cost(&mut self) -> Result<(), RunError> {
        if self.state.own_cost.is_some() {
            return Ok(());
        }
        self.progress.note("measuring what Spindle itself costs");
        let task = OwnCostTask::of(&self.state.experiment);
        match supervisor::own_cost(&task, &self.interrupted) {
            Ok(own_cost) => self.note(Event::OwnCost { own_cost }),
            Err(TrialError::Interrupted) => Err(RunError::Interrupted),
            Err(TrialError::Failed(reason)) => {
                self.warn(format!("what Spindle itself costs is not known: {reason}"))
            }
        }
    }

    fn run_trial(
        &mut self,
        round: u32,
        position: u32,
        case: CaseKey,
        images: &mut Images,
        grounds: &Grounds,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let (layout, clients) = case;
        let name = self.state.experiment.layouts[layout].name.clone();
        self.progress.trial_begins(&name, clients, round);
        self.note(Event::TrialStarted {
            layout,
            clients,
            round,
        })?;
        let restored = match images.restore(layout) {
            Ok(restored) => restored,
            // A device of Spindle's own that fails takes its layout along, and no other.
            Err(error) if grounds.is_made(layout) => {
                images.written(layout, None);
                return self.trial_failed(case, round, format!("restoring the database: {error}"));
            }
            Err(error) => return Err(error.into()),
        };
        let task = self.task(case, round, images);
        let progress = &mut self.progress;
        let bounds = Bounds {
            memory: budget,
            io: self.limits.get(&layout).map(|limit| &limit.io),
        };
        let outcome = supervisor::run(&task, bounds, &self.interrupted, |heard| {
            progress.trial_goes_on(heard);
        });
        match outcome {
            Ok(outcome) => {
                images.written(layout, Some(&outcome.written));
                let (trial, samples) = trial_of(round, position, outcome, restored);
                self.progress.trial_ends(Ok(trial.tpm));
                let (trial, sample_ms) = (Box::new(trial), task.sample_ms);
                self.note(Event::TrialFinished {
                    layout,
                    clients,
                    trial,
                    sample_ms,
                    samples,
                    system: SystemSeries::default(),
                })
            }
            Err(TrialError::Interrupted) => Err(RunError::Interrupted),
            Err(TrialError::Failed(reason)) => {
                images.written(layout, None);
                self.trial_failed(case, round, reason)
            }
        }
    }

    fn trial_failed(&mut self, case: CaseKey, round: u32, reason: String) -> Result<(), RunError> {
        let (layout, clients) = case;
        self.progress.trial_ends(Err(&reason));
        self.note(Event::TrialFailed {
            layout,
            clients,
            round,
            reason,
        })
    }

    fn task(&self, (layout, clients): CaseKey, round: u32, images: &Images) -> Task {
        let experiment = &self.state.experiment;
        let plan = &experiment.plan;
        let (delay, redo_delay) = experiment.delays_of(layout);
        Task {
            // The same transactions for every case of a round, others in the next.
            seed: seeded_rng(experiment.seed, u64::from(round)).next_u64(),
            database: experiment.database_of(layout),
            io: experiment.layouts[layout].io,
            delay,
            redo_delay,
            limit: self.limits.get(&layout).map(LayoutLimit::to_be_checked),
            workload: experiment.workload.clone(),
            clients,
            warmup_ms: plan.warmup_ms,
            measure_ms: plan.measure_ms,
            sample_ms: (plan.measure_ms / SAMPLES)
                .clamp(100, 3000)
                .min(plan.measure_ms),
            files: images.files(layout),
            devices: images.devices(layout),
        }
    }
}

/// What a dashboard shows of a run before it goes on.
fn scene_of(state: &RunState, interrupted: Arc<AtomicBool>) -> Scene {
    let case_view = |case: CaseKey| CaseView {
        layout: state.layout(case.0).name,
        clients: case.1,
        finished_tpm: state.throughput(case),
        ..CaseView::default()
    };
    Scene {
        experiment: state.experiment.name.clone(),
        began: Instant::now(),
        trials_done: 0,
        trials: trials_left(state).len(),
        ends: None,
        rounds: state.experiment.plan.rounds,
        cases: state.cases().into_iter().map(case_view).collect(),
        under_way: UnderWay::Preparing,
        notes: Vec::new(),
        interrupted,
    }
}

/// In how many places redo lies only because the data do.
fn redo_places(experiment: &Experiment) -> usize {
    let beside_data = |index: &usize| {
        let is_placed = experiment.layouts[*index].placement.redo.is_some();
        !is_placed && experiment.database_of(*index).redo_path.is_none()
    };
    let place_of = |index: usize| {
        let layout = &experiment.layouts[index];
        let made = layout.made.as_ref().map(|made| &made.spec.devices);
        (made, made.is_none().then_some(layout.path.as_path()))
    };
    let places: BTreeSet<_> = experiment
        .candidates()
        .filter(beside_data)
        .map(place_of)
        .collect();
    places.len()
}

/// Layouts with trials that are not done, whether or not they could be had before.
fn layouts_not_done(state: &RunState) -> Vec<usize> {
    let rounds = || 1..=state.experiment.plan.rounds;
    let is_left = |case: &CaseKey| rounds().any(|round| !state.is_done(*case, round));
    let left = state.cases().into_iter().filter(is_left);
    let layouts: BTreeSet<usize> = left.map(|(layout, _)| layout).collect();
    layouts.into_iter().collect()
}

/// A name that no other run bears: the time, and the process.
fn run_name() -> String {
    format!(
        "{}-{}",
        Timestamp::now().strftime("%Y%m%d-%H%M%S"),
        std::process::id()
    )
}

/// The trials that are not done, in order: round, place in it, case. Skipped and failed cases have none.
fn trials_left(state: &RunState) -> Vec<(u32, u32, CaseKey)> {
    let skipped = state.skipped();
    let mut left = Vec::new();
    for round in 1..=state.experiment.plan.rounds {
        for (position, case) in order(state, round).into_iter().enumerate() {
            let out =
                skipped.contains(&case) || state.has_failed(case) || state.is_done(case, round);
            if !out {
                left.push((round, position as u32 + 1, case));
            }
        }
    }
    left
}

/// The order of a round: a shuffle (Fisher and Yates) that the seed decides, the same when the run goes on later.
fn order(state: &RunState, round: u32) -> Vec<CaseKey> {
    let mut cases = state.cases();
    let mut rng = seeded_rng(state.experiment.seed, ORDER_STREAMS + u64::from(round));
    for last in (1..cases.len()).rev() {
        cases.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    cases
}

/// A trial as the journal keeps it, and its samples.
fn trial_of(round: u32, position: u32, outcome: Outcome, restored: Restored) -> (Trial, Vec<f64>) {
    let measured_s = outcome.measured.as_secs_f64();
    let per_second = |count: u64| count as f64 / measured_s;
    let tool = outcome.tool;
    let mut audit = Audit::of_counts(outcome.physical, outcome.device);
    // The process's own account is better than the device's, which others use as well.
    let by_process = |fetched_bytes| page_cache_share_of_reads(tool.read_bytes, fetched_bytes);
    audit.page_cache_share = outcome
        .fetched_bytes
        .and_then(by_process)
        .or(audit.page_cache_share);
    audit.dirty_bytes_at_end = outcome.dirty_bytes;
    audit.dirty_buffer_bytes_at_end = Some(outcome.dirty_buffer_bytes);
    audit.cached_pages_at_end = outcome.cached_pages;
    audit.flush_at_end_us = outcome.flush.map(|flush| flush.as_secs_f64() * 1e6);
    let mut warnings = restored.warnings;
    warnings.extend(outcome.warnings);
    if outcome.steal_percent >= 5.0 {
        warnings.push(format!(
            "the hypervisor took {:.0} % of processor time for others",
            outcome.steal_percent
        ));
    }
    let trial = Trial {
        round,
        position,
        tpm: outcome.transactions as f64 * 60.0 / measured_s,
        transactions: outcome.transactions,
        retries: outcome.retries,
        deadlocks: outcome.deadlocks,
        measured_s,
        read_iops: per_second(tool.reads),
        write_iops: per_second(tool.writes),
        kib_per_s: per_second(tool.read_bytes + tool.write_bytes) / 1024.0,
        latency_us: outcome.latency_us,
        waits: outcome.waits,
        cpu: outcome.cpu,
        cpu_us_per_transaction: outcome.cpu_us_per_transaction,
        memory: outcome.memory,
        audit,
        restore: restored.restore,
        check: outcome.check,
        space: outcome.space,
        warnings,
        warm_up: None,
        arrivals: outcome.arrivals,
        response_time: None,
    };
    (trial, outcome.samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{CpuShares, IoCounts, Latency, Restore};
    use crate::run::journal::Event;

    fn state(clients: &str) -> RunState {
        let text = format!(
            "[workload]\nclients = {clients}\n[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\n[[layout]]\nname = \"c\"\n"
        );
        let experiment = Experiment::parse("x.toml", &text, &[]).unwrap();
        let started = Event::RunStarted {
            run: "r".to_string(),
            version: String::new(),
            at: String::new(),
            working_directory: PathBuf::new(),
            experiment: Box::new(experiment),
        };
        RunState::of(&[started]).unwrap()
    }

    #[test]
    fn every_round_has_every_case_once_in_an_order_of_its_own() {
        let state = state("[4, 8]");
        let rounds: Vec<Vec<CaseKey>> = (1..=3).map(|round| order(&state, round)).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, state.cases());
        }
        assert!(rounds[0] != rounds[1] || rounds[1] != rounds[2]);
        assert_eq!(trials_left(&state).len(), 18);
    }

    #[test]
    fn a_trial_keeps_what_its_process_found() {
        let outcome = Outcome {
            transactions: 30,
            retries: 7,
            deadlocks: 2,
            measured: Duration::from_secs(2),
            tool: IoCounts::default(),
            physical: IoCounts::default(),
            device: None,
            fetched_bytes: None,
            latency_us: Latency {
                p50: 1.0,
                p95: 2.0,
                p99: 3.0,
                max: 4.0,
                mean: 1.5,
            },
            arrivals: None,
            waits: Vec::new(),
            cpu: CpuShares {
                user: 25.0,
                system: 25.0,
                iowait: 25.0,
                idle: 25.0,
            },
            steal_percent: 6.0,
            cpu_us_per_transaction: None,
            memory: None,
            dirty_bytes: Some(4096),
            flush: Some(Duration::from_millis(3)),
            samples: vec![15.0],
            dirty_buffer_bytes: 65_536,
            cached_pages: Some(12),
            check: String::new(),
            space: Vec::new(),
            written: Vec::new(),
            warnings: vec!["from the process".to_string()],
        };
        let restored = Restored {
            restore: Restore {
                method: "m".to_string(),
                changed_blocks: 0,
                verified: true,
                duration_ms: 0,
            },
            warnings: vec!["from the restore".to_string()],
        };
        let (trial, samples) = trial_of(2, 3, outcome, restored);
        assert_eq!((trial.round, trial.position), (2, 3));
        assert_eq!(trial.tpm, 900.0);
        assert_eq!((trial.retries, trial.deadlocks), (7, 2));
        assert_eq!(trial.audit.dirty_bytes_at_end, Some(4096));
        assert_eq!(trial.audit.dirty_buffer_bytes_at_end, Some(65_536));
        assert_eq!(trial.audit.cached_pages_at_end, Some(12));
        assert_eq!(trial.audit.flush_at_end_us, Some(3000.0));
        assert_eq!(
            trial.warnings,
            [
                "from the restore",
                "from the process",
                "the hypervisor took 6 % of processor time for others"
            ]
        );
        assert_eq!(samples, [15.0]);
    }

    #[test]
    fn redo_in_several_places_is_seen_unless_it_is_put_somewhere() {
        let places = |database: &str, second: &str| {
            let text = format!(
                "[database]\n{database}\n[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\npath = \"{second}\"\n"
            );
            redo_places(&Experiment::parse("x.toml", &text, &[]).unwrap())
        };
        assert_eq!(places("", "."), 1);
        assert_eq!(places("", "/mnt"), 2);
        assert_eq!(places("redo_path = \"/redo\"", "/mnt"), 0);
    }

    #[test]
    fn a_failed_case_is_left_out_until_the_run_goes_on() {
        let mut state = state("8");
        let failed = Event::TrialFailed {
            layout: 1,
            clients: 8,
            round: 1,
            reason: "r".to_string(),
        };
        state.add(&failed);
        assert_eq!(trials_left(&state).len(), 6);
        state.forgive();
        assert_eq!(trials_left(&state).len(), 9);
    }
}
