//! The whole story of a run. Examine the candidates, make their databases, then round by round every case once in
//! random order (`schedule` says which): put the database back, run the trial, write down what it found. Interrupted or
//! killed at any moment, a run resumes later where it was; what its trials wrote is thrown away.

mod agents;
mod examination;
mod load_machines;
mod trials;
mod turns;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agents::Agents;
use jiff::Timestamp;
use spindle_engines::ErrorKind;
use spindle_experiment::Experiment;
use spindle_layout::plan::LookedAt;
use spindle_layout::{clean, ledger};
use spindle_result::{LoadLevel, Phase};
use spindle_system::SystemTree;
use spindle_system::memory::MemoryBudget;
use spindle_text::files::Directory;

use crate::database_error::DatabaseError;
use crate::databases::RunDatabases;
use crate::directory::{self, DirectoryError};
use crate::journal::{Event, Journal, JournalError};
use crate::layout_targets::{LayoutTargets, TargetError};
use crate::limits::LayoutLimit;
use crate::listener::{Listener, Nobody, Said};
use crate::panics::{self, Panicked};
use crate::quiet::Quiet;
use crate::reckoning::{self, Reckoning};
use crate::refusals::Refusals;
use crate::replay::RunState;
use crate::same_place;
use crate::schedule;
use crate::schemas::drop_recorded;

/// Interval between checks in a pause whether the person wants to stop.
const PAUSE_LOOK: Duration = Duration::from_millis(100);

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
    Target(#[from] TargetError),
    /// The database's files cannot be made or put back.
    #[error(transparent)]
    Image(DatabaseError),
    /// The place where the run was started is gone.
    #[error(
        "{path}, where the run was started: {error}. Its relative paths start there. Make that directory again, with what the \
         experiment names in it, or begin a new run"
    )]
    WorkingDirectory {
        /// The place.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// There is no current directory to start in.
    #[error("the current directory: {0}. Change to an existing one")]
    NoWorkingDirectory(io::Error),
    /// The dashboard that was asked for cannot be shown.
    #[error("the terminal on standard output cannot be taken for --watch: {0}")]
    Terminal(io::Error),
    /// The system gave no thread, or a mistake of the program's own.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The system does not give the threads or open files of a trial; found before anything was made.
    #[error("this machine has too little for the experiment, and nothing was made.\n{0}")]
    TooLittle(String),
    /// Signals cannot be waited for.
    #[error(
        "no thread that waits for Ctrl-C can be started: {0} (see ulimit -u and ulimit -n). Nothing was made"
    )]
    Signals(io::Error),
    /// The person asked for it.
    #[error("interrupted")]
    Interrupted,
}

impl From<DatabaseError> for RunError {
    fn from(error: DatabaseError) -> RunError {
        match error.kind() {
            ErrorKind::Interrupted => RunError::Interrupted,
            _ => RunError::Image(error),
        }
    }
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
    /// Those that look at the machines of existing servers.
    agents: Agents,
    /// Paths of devices keep meaning these.
    looked_at: LookedAt,
    /// An earlier process began it.
    goes_on: bool,
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
        let working_directory = std::env::current_dir().map_err(RunError::NoWorkingDirectory)?;
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

    /// Whether its files stay when it fails: it found out something, or an earlier process began it. What stands in its
    /// way may be gone in a moment.
    pub fn is_kept(&self) -> bool {
        self.goes_on || self.has_anything()
    }

    /// Removes the run's files and the directory that was made for them. For a run that found out nothing.
    pub fn discard(self) {
        directory::discard(&self.directory);
    }

    /// Resumes the run of a directory.
    pub fn go_on(
        directory: Directory,
        interrupted: Arc<AtomicBool>,
        listen: impl FnOnce(&RunState) -> io::Result<Box<dyn Listener>>,
    ) -> Result<Runner, RunError> {
        let (journal, events) = Journal::reopen(&directory)?;
        let mut state =
            RunState::of(&events).expect("a journal that opens begins with a run's start");
        state.forgive();
        let short = reckoning::short_of(&state.experiment);
        if !short.is_empty() {
            return Err(RunError::TooLittle(short.join("\n")));
        }
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
            goes_on: true,
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
            agents: Agents::default(),
            looked_at: LookedAt::new(),
            goes_on: false,
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
        // Also what a panic breaks off is removed: all that was made goes with what holds it.
        let run = panics::told(|_| (), || self.run_trials());
        self.agents = Agents::default();
        if run.is_err() {
            self.take_away_again();
        }
        run?;
        if !self.state.finished {
            self.note(Event::RunFinished)?;
        }
        self.listener.hear(Said::RunEnds);
        Ok(())
    }

    /// What a failed run could not take away while it lacked the same thing that it failed for, such as open files: it
    /// has let go of everything by now.
    fn take_away_again(&mut self) {
        let (ledgers, tree) = (ledger::default_directory(), SystemTree::default());
        match clean::clean_run(&ledgers, &self.state.run, &tree, Some(drop_recorded)) {
            Ok(None) => {}
            Ok(Some(cleaned)) => {
                let left = cleaned.not_ours.iter().chain(&cleaned.left);
                let left: Vec<String> = left.map(|what| format!("warning: {what}")).collect();
                left.iter().for_each(|what| self.say(what));
            }
            Err(error) => self.say(&format!("warning: {error}")),
        }
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
            // What cannot be measured stays left forever.
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

    /// What is left of one run of the plan, on layouts made for it and removed again.
    fn run_once(
        &mut self,
        wanted: &[usize],
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let wanted = &self.those_worth_making(wanted)?[..];
        let listener = &mut self.listener;
        let mut note = |text: &str| listener.hear(Said::Note(text));
        let began = Instant::now();
        let targets = LayoutTargets::prepare(&self.state, wanted, &mut self.looked_at, &mut note)?;
        let run = self.record_devices();
        let run = run.and_then(|()| self.phase_done("making layouts", began.elapsed()));
        let run = run.and_then(|()| self.run_on(&targets, wanted, budget));
        for leftover in targets.teardown() {
            self.warn(leftover)?;
        }
        run
    }

    /// Skips the layouts whose database refuses them: nothing is made for those, and no device is erased.
    fn those_worth_making(&mut self, wanted: &[usize]) -> Result<Vec<usize>, RunError> {
        let is_made = |index: &usize| self.state.experiment.layouts[*index].made.is_some();
        if !wanted.iter().any(is_made) {
            return Ok(wanted.to_vec());
        }
        let mut refused = Refusals::of(&self.state.experiment).reasons();
        refused.retain(|index, _| wanted.contains(index) && is_made(index));
        let mut worth = wanted.to_vec();
        worth.retain(|index| !refused.contains_key(index));
        for (index, reason) in refused {
            self.skip(index, reason)?;
        }
        Ok(worth)
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
        targets: &LayoutTargets,
        wanted: &[usize],
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        self.record_machine(targets, wanted)?;
        self.examine_layouts(targets, wanted)?;
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
            RunDatabases::prepare(&self.state, &wanted, targets, &self.interrupted, &mut note)?;
        let (whole, loading) = (began.elapsed(), databases.loading());
        let noted = self.phase_done("loading databases", loading);
        let copying = whole.saturating_sub(loading);
        let noted = noted.and_then(|()| self.phase_done("copying databases", copying));
        let skipped = failed
            .into_iter()
            .try_for_each(|(layout, reason)| self.skip(layout, reason));
        let mut warnings = databases.take_warnings().into_iter();
        let warned = warnings.try_for_each(|warning| self.warn(warning));
        let run = noted
            .and(skipped)
            .and(warned)
            .and_then(|()| self.run_rounds(&mut databases, targets, budget));
        for leftover in databases.remove() {
            self.warn(leftover)?;
        }
        run
    }

    /// A layout whose database cannot be used after all.
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
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let run = schedule::next_run(&self.state);
        let mut exchanged = None;
        loop {
            let round = schedule::next_round(&self.state);
            if round.is_empty() || schedule::next_run(&self.state) != run {
                return Ok(());
            }
            if schedule::maxima_left(&self.state).is_empty() {
                self.fix_rates()?;
            }
            self.say_what_is_left();
            if let Some(turn_ms) = self.state.experiment.plan.interleave_ms {
                // A trial that is measured again has the image that it had.
                let number = round.first().map(|planned| planned.round);
                if exchanged != number {
                    databases.exchange_images();
                    exchanged = number;
                }
                self.run_by_turns(&round, turn_ms, databases, targets, budget)?;
                continue;
            }
            for planned in round {
                self.check_interrupted()?;
                self.run_trial(planned, databases, targets, budget)?;
                self.say_what_is_left();
            }
        }
    }

    fn say_what_is_left(&mut self) {
        self.listener.hear(Said::TrialsLeft {
            trials: schedule::trials_left(&self.state),
            each: schedule::trial_time(&self.state),
        });
    }
}

impl Runner {
    /// Notes what the slowest layout does in a closed loop, where rates are parts of it, once all have shown it.
    fn fix_rates(&mut self) -> Result<(), RunError> {
        let workload = &self.state.experiment.workload;
        let Some(levels) = workload.levels.clone() else {
            return Ok(());
        };
        for clients in workload.clients.clone() {
            let is_known = self.state.slowest_per_s(clients).is_some();
            let Some((layout, per_s)) = schedule::slowest(&self.state, clients) else {
                continue;
            };
            if is_known || !self.state.experiment.workload.has_rates_of_slowest() {
                continue;
            }
            let layout = self.state.experiment.layouts[layout].name.clone();
            let rates = levels.rates.iter();
            let rates =
                rates.filter_map(|rate| Some(format!("{rate} = {}/s", rate.per_s(Some(per_s))?)));
            self.say(&format!(
                "{layout} is slowest without a rate at {}: {per_s:.0} transactions a second. Rates are now {}",
                LoadLevel::of(clients),
                rates.collect::<Vec<_>>().join(", ")
            ));
            self.note(Event::SlowestKnown {
                clients,
                layout,
                per_s,
            })?;
        }
        Ok(())
    }
}

/// A name that no other run bears: the time, and the process.
fn run_name() -> String {
    format!(
        "{}-{}",
        Timestamp::now().strftime("%Y%m%d-%H%M%S"),
        std::process::id()
    )
}
