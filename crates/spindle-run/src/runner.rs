//! The whole story of a run. Examine the candidates, make their databases, then round by round every case once in
//! random order (`schedule` says which): put the database back, run the trial, write down what it found. Interrupted or
//! killed at any moment, a run goes on later where it was; what its trials wrote is thrown away.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_layout::plan::LookedAt;

use super::databases::Databases;
use super::directory::{self, DirectoryError};
use super::examine::examine;
use super::finished_trial::FinishedTrial;
use super::grounds::{GroundError, Grounds};
use super::journal::{Event, Journal, JournalError};
use super::limits::{self, Flushes, LayoutLimit};
use super::listener::{Listener, Nobody, Said};
use super::quiet::Quiet;
use super::reckoning::Reckoning;
use super::replay::{CaseKey, RunState};
use super::restored::{DatabaseError, Restored};
use super::same_place;
use super::schedule::{self, Planned};
use crate::observe::SystemFiles;
use crate::observe::block_device::DeviceNumber;
use crate::observe::device_probe;
use crate::observe::machine::Machine;
use crate::observe::memory::MemoryBudget;
use crate::observe::own_group;
use crate::trial::own_cost::OwnCostTask;
use crate::trial::protocol::Task;
use crate::trial::supervisor::{self, Bounds, TrialError};
use spindle_experiment::Experiment;
use spindle_result::{Conditions, Doubt, Phase, QuietWait, TRIES_MAX, TrialTimes, doubt};
use spindle_text::files::Directory;

/// Samples of throughput in a measured time, about; between 100 ms and 3 s apart.
const SAMPLES: u64 = 100;
/// Whether the person wants to stop is looked at as often in a pause.
const PAUSE_LOOK: Duration = Duration::from_millis(100);
/// Time between samples of a trial that ends with its last query.
const QUERY_SAMPLE_MS: u64 = 1000;

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
    Image(#[from] DatabaseError),
    /// The place where the run was started is gone.
    #[error("{path}, where the run was started: {error}")]
    WorkingDirectory {
        /// The place.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// The dashboard that was asked for cannot be shown.
    #[error("the terminal on standard output cannot be taken for --watch: {0}")]
    Terminal(io::Error),
    /// The person asked for it.
    #[error("interrupted")]
    Interrupted,
}

/// A run under way.
pub struct Runner {
    directory: Directory,
    journal: Journal,
    state: RunState,
    listener: Box<dyn Listener>,
    /// Limits of layouts that have one and can be measured here.
    limits: BTreeMap<usize, LayoutLimit>,
    quiet: Quiet,
    /// Paths of devices go on meaning these.
    looked_at: LookedAt,
    interrupted: Arc<AtomicBool>,
}

impl Runner {
    /// Begins a run in a directory that was made for it.
    pub fn begin(
        experiment: Experiment,
        directory: Directory,
        interrupted: Arc<AtomicBool>,
        listen: impl FnOnce(&RunState) -> io::Result<Box<dyn Listener>>,
    ) -> Result<Runner, RunError> {
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
        let journal = Journal::create_in(&directory)?;
        let state = RunState::of(std::slice::from_ref(&started)).expect("the start was just made");
        let mut runner = Runner::new(directory, journal, state, interrupted, listen)?;
        match runner.note_start(&started) {
            Ok(()) => Ok(runner),
            Err(error) => {
                runner.discard();
                Err(error)
            }
        }
    }

    fn note_start(&mut self, started: &Event) -> Result<(), RunError> {
        self.journal.append(started)?;
        let experiment = &self.state.experiment;
        directory::write_json(&self.directory, "experiment.json", experiment)?;
        Ok(())
    }

    /// Says what the run will take, unless that `is_told` already, and keeps what may go wrong with that.
    pub fn foretell(mut self, reckoning: &Reckoning, is_told: bool) -> Result<Runner, RunError> {
        self.looked_at = reckoning.looked_at.clone();
        for line in reckoning.lines().iter().filter(|_| !is_told) {
            self.say(line);
        }
        let mut warnings = reckoning.warnings().into_iter();
        let recorded = self.record_devices();
        match recorded.and_then(|()| warnings.try_for_each(|warning| self.warn(warning))) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.discard();
                Err(error)
            }
        }
    }

    /// A later process of this run takes the same devices, or none.
    fn record_devices(&mut self) -> Result<(), RunError> {
        let devices = same_place::not_recorded(&self.looked_at, &self.state.devices);
        match devices.is_empty() {
            true => Ok(()),
            false => self.note(Event::DevicesExamined { devices }),
        }
    }

    /// Whether the run has found out anything: a layout was looked at. Before that nothing is made.
    pub fn has_anything(&self) -> bool {
        self.state.has_anything()
    }

    /// Removes the run's files and the directory that was made for them. For a run that found out nothing.
    pub fn discard(self) {
        directory::discard(&self.directory);
    }

    /// Goes on with the run of a directory.
    pub fn go_on(
        directory: Directory,
        interrupted: Arc<AtomicBool>,
        listen: impl FnOnce(&RunState) -> io::Result<Box<dyn Listener>>,
    ) -> Result<Runner, RunError> {
        let (journal, events) = Journal::reopen(&directory)?;
        let mut state =
            RunState::of(&events).expect("a journal that opens begins with a run's start");
        state.forgive();
        let path = state.working_directory.clone();
        std::env::set_current_dir(&path)
            .map_err(|error| RunError::WorkingDirectory { path, error })?;
        let looked_at = match state.finished {
            true => LookedAt::new(),
            false => same_place::devices(&state.devices)?,
        };
        let runner = Runner::new(directory, journal, state, interrupted, listen)?;
        Ok(Runner {
            looked_at,
            ..runner
        })
    }

    fn new(
        directory: Directory,
        journal: Journal,
        state: RunState,
        interrupted: Arc<AtomicBool>,
        listen: impl FnOnce(&RunState) -> io::Result<Box<dyn Listener>>,
    ) -> Result<Runner, RunError> {
        let listener = listen(&state).map_err(RunError::Terminal)?;
        let quiet = Quiet::new(state.experiment.plan.quiet_ms);
        Ok(Runner {
            directory,
            journal,
            state,
            listener,
            limits: BTreeMap::new(),
            quiet,
            looked_at: LookedAt::new(),
            interrupted,
        })
    }

    /// Runs what is left of the plan. What was found is in the journal, also when this fails.
    pub fn run(&mut self) -> Result<(), RunError> {
        let run = self.run_and_finish();
        // What is said of the run from now on is to stand on the terminal as it was.
        self.listener = Box::new(Nobody);
        run
    }

    fn run_and_finish(&mut self) -> Result<(), RunError> {
        self.run_trials()?;
        if !self.state.finished {
            self.note(Event::RunFinished)?;
        }
        self.listener.hear(Said::RunEnds);
        Ok(())
    }

    /// The run directory.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    fn say(&mut self, text: &str) {
        self.listener.hear(Said::Note(text));
    }

    fn note(&mut self, event: Event) -> Result<(), RunError> {
        self.journal.append(&event)?;
        self.state.add(&event);
        Ok(())
    }

    /// Keeps how long something took that is no trial.
    fn phase_done(&mut self, what: &str, took: Duration) -> Result<(), RunError> {
        let phase = Phase {
            what: what.to_owned(),
            ms: took.as_millis() as u64,
        };
        self.note(Event::PhaseDone { phase })
    }

    fn warn(&mut self, text: String) -> Result<(), RunError> {
        self.say(&format!("warning: {text}"));
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
        self.warn_of_restore()?;
        let mut left_before = None;
        loop {
            let wanted = schedule::layouts_not_done(&self.state);
            let left = schedule::trials_left(&self.state);
            // What cannot be measured is left for ever.
            if wanted.is_empty() || left_before.is_some_and(|before| left == 0 || left >= before) {
                return Ok(());
            }
            if left_before.is_some() {
                self.pause_before_run()?;
            }
            self.run_once(&wanted, budget.as_ref())?;
            left_before = Some(left);
        }
    }

    /// What is left of one run of the plan, on layouts made for it and taken away again.
    fn run_once(
        &mut self,
        wanted: &[usize],
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let listener = &mut self.listener;
        let mut note = |text: &str| listener.hear(Said::Note(text));
        let began = Instant::now();
        let grounds = Grounds::prepare(&self.state, wanted, &mut self.looked_at, &mut note)?;
        let run = self.record_devices();
        let run = run.and_then(|()| self.phase_done("making layouts", began.elapsed()));
        let run = run.and_then(|()| self.run_on(&grounds, wanted, budget));
        for leftover in grounds.teardown() {
            self.warn(leftover)?;
        }
        run
    }

    /// Lets some time pass before the next run, so that it meets another machine.
    fn pause_before_run(&mut self) -> Result<(), RunError> {
        let plan = &self.state.experiment.plan;
        let pause = Duration::from_millis(plan.pause_ms);
        let run = schedule::next_run(&self.state).unwrap_or(plan.runs);
        let seconds = pause.as_secs();
        self.say(&format!("run {run} of {} begins in {seconds} s", plan.runs));
        let began = Instant::now();
        while began.elapsed() < pause {
            self.check_interrupted()?;
            std::thread::sleep(PAUSE_LOOK.min(pause.saturating_sub(began.elapsed())));
        }
        self.phase_done("pausing between runs", began.elapsed())
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
        if schedule::next_round(&self.state).is_empty() {
            return Ok(());
        }
        self.check_interrupted()?;
        self.measure_own_cost()?;
        let wanted = schedule::layouts_needed(&self.state);
        let listener = &mut self.listener;
        let mut note = |text: &str| listener.hear(Said::Note(text));
        let began = Instant::now();
        let (mut databases, failed) =
            Databases::prepare(&self.state, &wanted, grounds, &self.interrupted, &mut note)?;
        let (whole, loading) = (began.elapsed(), databases.loading());
        let noted = self.phase_done("loading databases", loading);
        let copying = whole.saturating_sub(loading);
        let noted = noted.and_then(|()| self.phase_done("copying databases", copying));
        let skipped = failed
            .into_iter()
            .try_for_each(|(layout, reason)| self.skip(layout, reason));
        let run = noted
            .and(skipped)
            .and_then(|()| self.run_rounds(&mut databases, grounds, budget));
        for leftover in databases.remove() {
            self.warn(leftover)?;
        }
        run
    }

    /// A layout whose database cannot be had after all.
    fn skip(&mut self, index: usize, reason: String) -> Result<(), RunError> {
        let layout = self.state.layout(index);
        self.say(&format!("skipped: {}: {reason}", layout.name));
        self.note(Event::LayoutExamined {
            index,
            layout,
            skip: Some(reason),
        })
    }

    fn run_rounds(
        &mut self,
        databases: &mut Databases,
        grounds: &Grounds,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let run = schedule::next_run(&self.state);
        loop {
            let round = schedule::next_round(&self.state);
            if round.is_empty() || schedule::next_run(&self.state) != run {
                return Ok(());
            }
            let left = schedule::trials_left(&self.state);
            self.listener.hear(Said::TrialsLeft(left));
            for planned in round {
                self.check_interrupted()?;
                self.run_trial(planned, databases, grounds, budget)?;
            }
        }
    }

    fn record_machine(&mut self, grounds: &Grounds, wanted: &[usize]) -> Result<(), RunError> {
        let paths = grounds.paths(wanted);
        let machine = Machine::capture(&SystemFiles::default(), &paths);
        if let Some(before) = &self.state.machine {
            same_place::directories(&self.state.experiment, before, &machine)?;
            if same_place::is_another_machine(before, &machine) {
                let text =
                    "the run went on on another machine or kernel: its trials are not comparable";
                self.warn(text.to_string())?;
            }
        } else {
            directory::write_json(&self.directory, "machine.json", &machine)?;
        }
        self.note(Event::Machine {
            machine: Box::new(machine),
        })
    }

    /// The means to hold every trial to its memory budget, or a word to the person that there is none.
    fn record_budget(&mut self) -> Result<Option<MemoryBudget>, RunError> {
        let files = SystemFiles::default();
        for leftover in own_group::remove_leftovers(&files) {
            self.say(&format!(
                "removed {}, left by a dead run",
                leftover.path.display()
            ));
        }
        if self.state.experiment.is_foreign() {
            self.note(Event::MemoryBudget { bytes: None })?;
            return Ok(None);
        }
        match MemoryBudget::available(&files) {
            Ok(budget) => {
                let bytes = Some(self.state.experiment.database.memory_bytes);
                self.note(Event::MemoryBudget { bytes })?;
                Ok(Some(budget))
            }
            Err(reason) => {
                self.note(Event::MemoryBudget { bytes: None })?;
                self.say(&format!("the page cache is not held to a budget: {reason}"));
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
                let notes = &mut examined.layout.notes;
                notes.extend(
                    limit
                        .and_then(|limit| limit.flushes().note())
                        .map(str::to_owned),
                );
                notes.extend(limits::note_on_redo(&self.state.experiment, index));
            }
            if let Some(reason) = &examined.skip {
                self.say(&format!("skipped: {}: {reason}", examined.layout.name));
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
        let parts = limits::parts_of(experiment, index, |layout| grounds.paths(&[layout]));
        let limit = match limits::prepare(experiment, index, &parts) {
            Ok(None) => return Ok(None),
            Ok(Some(limit)) => limit,
            Err(reason) => return Ok(Some(reason)),
        };
        let name = &experiment.layouts[index].name;
        self.say(&format!("trying the limit of {name}"));
        match limits::try_out(&parts, &limit, &self.interrupted) {
            Ok(None) => {
                self.limits.insert(index, limit);
                Ok(None)
            }
            Ok(skip) => Ok(skip),
            Err(_) => Err(RunError::Interrupted),
        }
    }

    /// Redo is held constant unless the experiment varies it; left beside the data of layouts in several places it is
    /// not.
    fn check_redo_place(&mut self) -> Result<(), RunError> {
        match redo_places(&self.state.experiment) {
            0 | 1 => Ok(()),
            places => self.warn(format!(
                "each layout has its redo log beside its data, in {places} places, so the log is part of the comparison. \
                 Set database.redo_path to hold it constant"
            )),
        }
    }

    /// What trials pay for the way in which their databases are put back.
    fn warn_of_restore(&mut self) -> Result<(), RunError> {
        match self.state.experiment.plan.restore.price() {
            Some(price) => self.warn(price.to_string()),
            None => Ok(()),
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
        // A server's is in its own processes, and they are counted.
        let is_server = self.state.experiment.database.engine.server().is_some();
        if self.state.own_cost.is_some() || is_server {
            return Ok(());
        }
        self.say("measuring what Spindle itself costs");
        let task = OwnCostTask::of(&self.state.experiment);
        match supervisor::own_cost(&task, &self.interrupted) {
            Ok(own_cost) => self.note(Event::OwnCost { own_cost }),
            Err(TrialError::Interrupted) => Err(RunError::Interrupted),
            Err(TrialError::Failed(reason)) => {
                self.warn(format!("what Spindle itself costs is not known: {reason}"))
            }
        }
    }

    /// Puts a case's database back to its loaded state; `None` when that failed its trial.
    fn put_back(
        &mut self,
        case: (usize, u32),
        round: u32,
        databases: &mut Databases,
        grounds: &Grounds,
    ) -> Result<Option<Restored>, RunError> {
        let (layout, _) = case;
        grounds.check_devices()?;
        match databases.restore(layout, grounds) {
            Ok(restored) => Ok(Some(restored)),
            Err(_) if self.interrupted.load(Ordering::Relaxed) => Err(RunError::Interrupted),
            // A device of Spindle's own that fails takes its layout along, and no other; so does an existing server.
            Err(error) if grounds.is_made(layout) || databases.are_foreign() => {
                databases.written(layout, None);
                let reason = format!("restoring the database: {error}");
                self.trial_failed(case, round, reason).map(|()| None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn run_trial(
        &mut self,
        planned: Planned,
        databases: &mut Databases,
        grounds: &Grounds,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let Planned {
            round,
            position,
            case,
        } = planned;
        let (layout, clients) = case;
        let name = self.state.experiment.layouts[layout].name.clone();
        let began = Instant::now();
        self.listener.hear(Said::TrialBegins {
            layout: &name,
            clients,
            round,
        });
        self.note(Event::TrialStarted {
            layout,
            clients,
            round,
        })?;
        let Some(restored) = self.put_back(case, round, databases, grounds)? else {
            return Ok(());
        };
        let quiet = self.wait_for_quiet(&databases.devices(layout))?;
        let probed = databases.probed(layout);
        let probe = probed.map(|(data, redo)| device_probe::probe(&data, &redo));
        let task = self.task(case, round, databases, grounds);
        let listener = &mut self.listener;
        let bounds = Bounds {
            memory: budget,
            io: self.limits.get(&layout).map(|limit| &limit.io),
        };
        let outcome = supervisor::run(&task, bounds, &self.interrupted, |heard| {
            listener.hear(Said::TrialGoesOn(heard));
        });
        match outcome {
            Ok(outcome) => {
                databases.written(layout, Some(&outcome.written));
                let plan = &self.state.experiment.plan;
                let conditions = Conditions {
                    run: (plan.runs > 1).then(|| plan.run_of(round)),
                    asked_ms: asked_ms(&self.state.experiment),
                    standstill: outcome.standstill,
                    times: Some(TrialTimes {
                        restore_ms: restored.restore.duration_ms,
                        probe_ms: probe.map_or(0, |probe| probe.took_ms),
                        quiet_ms: quiet.as_ref().map_or(0, |wait| wait.waited_ms),
                        whole_ms: began.elapsed().as_millis() as u64,
                        ..outcome.times
                    }),
                    quiet,
                    probe,
                };
                let finished = FinishedTrial::of(round, position, outcome, restored, conditions);
                self.trial_finished(case, finished, task.sample_ms)
            }
            Err(TrialError::Interrupted) => Err(RunError::Interrupted),
            Err(TrialError::Failed(error)) => {
                databases.written(layout, None);
                self.trial_failed(case, round, error.to_string())?;
                Ok(grounds.check_devices()?)
            }
        }
    }

    /// Keeps a trial that counts, or sets one aside that is in doubt: its round is not done then, and tries it again.
    fn trial_finished(
        &mut self,
        case: CaseKey,
        finished: FinishedTrial,
        sample_ms: u64,
    ) -> Result<(), RunError> {
        let (layout, clients) = case;
        let trial = Box::new(finished.trial);
        let is_last = self.state.tries(case, trial.round) + 1 >= TRIES_MAX;
        let reason = match doubt(&trial) {
            // Its throughput is of the time that it lasted: better than none, and a warning tells.
            Some(Doubt::Overlong { .. }) if is_last => None,
            doubt => doubt.map(|doubt| doubt.to_string()),
        };
        if let Some(reason) = reason {
            self.listener.hear(Said::TrialSetAside {
                reason: &reason,
                is_tried_again: !is_last,
            });
            return self.note(Event::TrialSetAside {
                layout,
                clients,
                trial,
                reason,
            });
        }
        self.listener.hear(Said::TrialEnds(Ok(&trial)));
        self.note(Event::TrialFinished {
            layout,
            clients,
            trial,
            sample_ms,
            samples: finished.samples,
            system: finished.system,
        })
    }

    /// Waits until the devices of the next trial are at rest, or the plan's time for it is up.
    fn wait_for_quiet(&mut self, devices: &[DeviceNumber]) -> Result<Option<QuietWait>, RunError> {
        let began = Instant::now();
        let (listener, interrupted) = (&mut self.listener, &self.interrupted);
        let waited = self.quiet.wait(devices, |activity, limit| {
            listener.hear(Said::TrialWaits {
                waited: began.elapsed(),
                limit,
                activity,
            });
            match interrupted.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        self.check_interrupted()?;
        if let Some(note) = self.quiet.note() {
            self.say(&note);
        }
        Ok(waited)
    }

    fn trial_failed(&mut self, case: CaseKey, round: u32, reason: String) -> Result<(), RunError> {
        let (layout, clients) = case;
        self.listener.hear(Said::TrialEnds(Err(&reason)));
        self.note(Event::TrialFailed {
            layout,
            clients,
            round,
            reason,
        })
    }

    fn task(
        &self,
        (layout, clients): CaseKey,
        round: u32,
        databases: &Databases,
        grounds: &Grounds,
    ) -> Task {
        let experiment = &self.state.experiment;
        let plan = &experiment.plan;
        let (delay, redo_delay) = grounds.delays(experiment, layout);
        Task {
            // The same transactions for every case of a round, others in the next.
            seed: seeded_rng(experiment.seed, u64::from(round)).next_u64(),
            data_seed: experiment.seed,
            database: experiment.database_of(layout),
            io: experiment.layouts[layout].io,
            delay,
            redo_delay,
            limited: self
                .limits
                .get(&layout)
                .map_or_else(Vec::new, LayoutLimit::to_be_checked),
            workload: experiment.workload.clone(),
            clients,
            warmup_ms: plan.warmup_ms,
            warmup_max_ms: plan.warmup_max_ms,
            measure_ms: plan.measure_ms,
            sample_ms: sample_ms(experiment),
            files: databases.files(layout),
            server: databases.server_request(layout),
            devices: databases.devices(layout),
        }
    }
}

/// Measured time that a trial is asked for; `None` where it ends with its last transaction.
fn asked_ms(experiment: &Experiment) -> Option<u64> {
    let is_counted = experiment.workload.transactions.are_counted();
    (!is_counted).then_some(experiment.plan.measure_ms)
}

/// Time between samples of throughput: how long queries will take is not known.
fn sample_ms(experiment: &Experiment) -> u64 {
    let measure_ms = experiment.plan.measure_ms;
    match experiment.workload.transactions.are_counted() {
        true => QUERY_SAMPLE_MS,
        false => (measure_ms / SAMPLES).clamp(100, 3000).min(measure_ms),
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

/// A name that no other run bears: the time, and the process.
fn run_name() -> String {
    format!(
        "{}-{}",
        Timestamp::now().strftime("%Y%m%d-%H%M%S"),
        std::process::id()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
