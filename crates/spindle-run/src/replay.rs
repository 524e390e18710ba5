//! From the events of a journal to what they add up to: the record that results and reports are made from, and what is
//! left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::description::describe;
use super::journal::Event;
use super::recorded_machine::recorded;
use super::trial_time;
use spindle_experiment::{Experiment, FactorMatrix};
use spindle_layout::RecordedDevice;
use spindle_result::experiment::ExperimentRecord;
use spindle_result::{
    AutoPlan, CaseId, CaseRecord, CaseStatus, Layout, LoadLevel, MatrixRecord, OwnCost, Phase,
    RunRecord, SampledTrial, SetAside, SystemSeries, TRIES_MAX, Trial, Warning,
};
use spindle_system::machine::Machine;

/// A case: layout and load level.
pub type CaseKey = (usize, LoadLevel);

/// A trial and its samples of throughput.
struct Finished {
    trial: Trial,
    sample_ms: u64,
    samples: Vec<f64>,
    system: SystemSeries,
}

/// The state of a run, as its journal tells it.
pub struct RunState {
    /// Names the run's directories of data.
    pub run: String,
    /// When it began, UTC.
    pub started_at: String,
    /// Where relative paths begin.
    pub working_directory: PathBuf,
    /// The experiment.
    pub experiment: Experiment,
    /// Every trial of the plan is done.
    pub finished: bool,
    /// The machine as first seen.
    pub machine: Option<Machine>,
    /// The devices that the run takes, once it looked at them.
    pub devices: Vec<RecordedDevice>,
    /// What Spindle itself costs, once measured.
    pub own_cost: Option<OwnCost>,
    budget_bytes: Option<u64>,
    layouts: BTreeMap<usize, (Layout, Option<String>)>,
    trials: BTreeMap<CaseKey, BTreeMap<u32, Finished>>,
    failures: BTreeMap<CaseKey, String>,
    set_aside: BTreeMap<CaseKey, Vec<SetAside>>,
    warnings: Vec<String>,
    phases: Vec<Phase>,
    /// Transactions a second of the slowest layout in a closed loop, by its clients.
    slowest_per_s: BTreeMap<u32, f64>,
}

impl RunState {
    /// Adds the events up. `None` when they do not begin with a run's start.
    pub fn of(events: &[Event]) -> Option<RunState> {
        let Some(Event::RunStarted {
            run,
            at,
            working_directory,
            experiment,
            ..
        }) = events.first()
        else {
            return None;
        };
        let mut state = RunState {
            run: run.clone(),
            started_at: at.clone(),
            working_directory: working_directory.clone(),
            experiment: (**experiment).clone(),
            finished: false,
            machine: None,
            devices: Vec::new(),
            own_cost: None,
            budget_bytes: None,
            layouts: BTreeMap::new(),
            trials: BTreeMap::new(),
            failures: BTreeMap::new(),
            set_aside: BTreeMap::new(),
            warnings: Vec::new(),
            phases: Vec::new(),
            slowest_per_s: BTreeMap::new(),
        };
        events.iter().for_each(|event| state.add(event));
        Some(state)
    }

    /// Takes one more event into account.
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::RunStarted { .. } | Event::TrialStarted { .. } => {}
            Event::Machine { machine } => {
                self.machine.get_or_insert((**machine).clone());
            }
            Event::DevicesExamined { devices } => self.devices.extend(devices.iter().cloned()),
            Event::MemoryBudget { bytes } => self.budget_bytes = *bytes,
            Event::OwnCost { own_cost } => self.own_cost = Some(*own_cost),
            Event::LayoutExamined {
                index,
                layout,
                skip,
            } => {
                let layout = layout.clone().of_any_version();
                self.layouts.insert(*index, (layout, skip.clone()));
            }
            Event::TrialFinished {
                layout,
                load,
                trial,
                sample_ms,
                samples,
                system,
            } => {
                let key = (*layout, *load);
                self.failures.remove(&key);
                let trials = self.trials.entry(key).or_default();
                let finished = Finished {
                    trial: (**trial).clone(),
                    sample_ms: *sample_ms,
                    samples: samples.clone(),
                    system: system.clone(),
                };
                trials.insert(trial.round, finished);
            }
            Event::TrialFailed {
                layout,
                load,
                reason,
                ..
            } => {
                self.failures.insert((*layout, *load), reason.clone());
            }
            Event::TrialSetAside {
                layout,
                load,
                trial,
                reason,
            } => {
                let set_aside = self.set_aside.entry((*layout, *load)).or_default();
                set_aside.push(SetAside {
                    reason: reason.clone(),
                    trial: (**trial).clone(),
                });
            }
            Event::SlowestKnown { clients, per_s, .. } => {
                self.slowest_per_s.insert(*clients, *per_s);
            }
            Event::PhaseDone { phase } => self.add_phase(phase),
            Event::Warning { text } if !self.warnings.contains(text) => {
                self.warnings.push(text.clone())
            }
            Event::Warning { .. } => {}
            Event::RunFinished => self.finished = true,
        }
    }

    fn add_phase(&mut self, phase: &Phase) {
        let mut phases = self.phases.iter_mut();
        match phases.find(|known| known.what == phase.what) {
            Some(known) => known.ms += phase.ms,
            None => self.phases.push(phase.clone()),
        }
    }

    /// Every case of the plan: layouts in order, load levels within.
    pub fn cases(&self) -> Vec<CaseKey> {
        let loads = self.experiment.workload.loads();
        let layouts = self.experiment.candidates();
        let of_layout = |layout| {
            let loads = loads.iter();
            loads.map(move |&(clients, rate)| (layout, LoadLevel { clients, rate }))
        };
        layouts.flat_map(of_layout).collect()
    }

    /// What the slowest layout does in a closed loop with this many clients, transactions a second; `None` until that
    /// is known for good.
    pub fn slowest_per_s(&self, clients: u32) -> Option<f64> {
        self.slowest_per_s.get(&clients).copied()
    }

    /// Cases that this machine cannot run.
    pub fn skipped(&self) -> BTreeSet<CaseKey> {
        let is_skipped = |(layout, _): &CaseKey| {
            self.layouts
                .get(layout)
                .is_some_and(|(_, skip)| skip.is_some())
        };
        self.cases().into_iter().filter(is_skipped).collect()
    }

    /// True when a layout was looked at, or more.
    pub fn has_anything(&self) -> bool {
        !self.layouts.is_empty() || self.finished
    }

    /// True when the trial of a round is done, or was in doubt as often as it may be tried.
    pub fn is_done(&self, case: CaseKey, round: u32) -> bool {
        let trials = self.trials.get(&case);
        trials.is_some_and(|trials| trials.contains_key(&round))
            || self.tries(case, round) >= TRIES_MAX
    }

    /// How often the trial of a round was set aside.
    pub fn tries(&self, case: CaseKey, round: u32) -> usize {
        let set_aside = self.set_aside.get(&case).into_iter().flatten();
        set_aside.filter(|of| of.trial.round == round).count()
    }

    /// True when a trial of the case broke off and none has succeeded since.
    pub fn has_failed(&self, case: CaseKey) -> bool {
        self.failures.contains_key(&case)
    }

    /// The trials of a case that are done, in the order of rounds.
    pub fn finished(&self, case: CaseKey) -> impl Iterator<Item = &Trial> {
        let trials = self.trials.get(&case).into_iter().flatten();
        trials.map(|(_, finished)| &finished.trial)
    }

    /// The trials of a case that were set aside, in the order in which they were measured.
    pub fn set_aside(&self, case: CaseKey) -> impl Iterator<Item = &Trial> {
        let set_aside = self.set_aside.get(&case).into_iter().flatten();
        set_aside.map(|of| &of.trial)
    }

    /// Lets cases that failed be tried again.
    pub fn forgive(&mut self) {
        self.failures.clear();
    }

    /// What results and reports are made from.
    pub fn record(&self) -> RunRecord {
        let experiment = &self.experiment;
        let layouts: Vec<Layout> = (0..experiment.layouts.len())
            .map(|index| self.layout(index))
            .collect();
        let mut series = Vec::new();
        let cases = self
            .cases()
            .into_iter()
            .map(|key| self.case_record(key, &layouts, &mut series))
            .collect();
        RunRecord {
            experiment: asked(experiment),
            workload: experiment.workload.kind().to_string(),
            machine: self.machine.as_ref().map(recorded),
            margin: experiment.plan.margin_percent / 100.0,
            planned_rounds: self.planned_rounds(),
            auto: experiment.plan.auto.map(|auto| AutoPlan {
                precision: auto.precision_percent / 100.0,
                is_finished: self.finished,
                warmup_s: experiment.plan.warmup_ms as f64 / 1e3,
                ended_by_time_ms: auto.time_ms.filter(|_| self.is_cut_short()),
                runs_max: Some(experiment.plan.runs).filter(|_| experiment.plan.repeats_runs()),
            }),
            noise_check: noise_check(experiment),
            matrix: experiment.matrix.as_ref().map(matrix),
            is_quick: experiment.is_quick,
            memory_budget_bytes: self.budget_bytes,
            own_cost: self.own_cost,
            layouts,
            cases,
            series,
            phases: self.phases.clone(),
            warnings: self
                .warnings
                .iter()
                .map(|text| Warning { text: text.clone() })
                .collect(),
        }
    }

    /// What was done apart from trials.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Whether the run has ended before its limit of rounds.
    fn is_cut_short(&self) -> bool {
        self.planned_rounds() < self.experiment.plan.all_rounds()
    }

    /// What a run took so far, loading and trials that were set aside included, and what a trial takes on average, in
    /// milliseconds; at least one.
    pub(crate) fn spent(&self) -> (u64, u64) {
        let cases = self.cases();
        let trials = cases
            .iter()
            .flat_map(|case| self.finished(*case).chain(self.set_aside(*case)));
        let times: Vec<u64> = trials
            .filter_map(|trial| Some(trial.conditions.times?.whole_ms))
            .collect();
        let trials_ms: u64 = times.iter().sum();
        let phases_ms: u64 = self.phases().iter().map(|phase| phase.ms).sum();
        let trial_ms = match times.len() as u64 {
            0 => trial_time::trial_ms(&self.experiment),
            count => trials_ms / count,
        };
        (phases_ms + trials_ms, trial_ms.max(1))
    }

    /// Whether the plan's time, where it has one, has no room for one more round, or run where these are repeated.
    fn has_used_its_time(&self) -> bool {
        let plan = &self.experiment.plan;
        let Some(time_ms) = plan.auto.and_then(|auto| auto.time_ms) else {
            return false;
        };
        let (spent_ms, trial_ms) = self.spent();
        let skipped = self.skipped();
        let runs_on = |case: &CaseKey| !skipped.contains(case) && !self.has_failed(*case);
        let rounds = self.trials.values().flatten().map(|(round, _)| *round);
        let next_ms = match plan.repeats_runs() {
            true => spent_ms / u64::from(rounds.max().map_or(1, |last| plan.run_of(last))),
            false => trial_ms * self.cases().into_iter().filter(runs_on).count() as u64,
        };
        spent_ms + next_ms > time_ms
    }

    /// How many rounds the plan asks for; of one that ended with its time, how many that was.
    fn planned_rounds(&self) -> u32 {
        let plan = &self.experiment.plan;
        let finished = self.trials.values().flatten();
        let last = finished.map(|(round, _)| *round).max();
        match last {
            Some(last) if self.finished && self.has_used_its_time() => last.min(plan.all_rounds()),
            _ => plan.all_rounds(),
        }
    }

    /// A candidate, with what was found out about it. Journals of older versions lack what the experiment says.
    pub fn layout(&self, index: usize) -> Layout {
        let described = describe(&self.experiment, index);
        match self.layouts.get(&index) {
            Some((layout, _)) if layout.database.is_none() => Layout {
                database: described.database,
                stack: described.stack,
                ..layout.clone()
            },
            Some((layout, _)) => layout.clone(),
            None => described,
        }
    }

    fn case_record(
        &self,
        key: CaseKey,
        layouts: &[Layout],
        series: &mut Vec<SampledTrial>,
    ) -> CaseRecord {
        let (layout, load) = key;
        let skip = self.layouts.get(&layout).and_then(|(_, skip)| skip.clone());
        let outcome = match (skip, self.failures.get(&key)) {
            (Some(reason), _) => CaseStatus::Skipped { reason },
            (None, Some(reason)) => CaseStatus::Failed {
                reason: reason.clone(),
            },
            (None, None) => CaseStatus::Measured,
        };
        let mut trials = Vec::new();
        for (round, finished) in self.trials.get(&key).into_iter().flatten() {
            trials.push(finished.trial.clone());
            series.push(SampledTrial {
                case: CaseId::new(&layouts[layout].name, load),
                round: *round,
                interval_ms: finished.sample_ms,
                tps: finished.samples.clone(),
                system: finished.system.clone(),
            });
        }
        CaseRecord {
            layout,
            load,
            outcome,
            trials,
            set_aside: self.set_aside.get(&key).cloned().unwrap_or_default(),
        }
    }
}

/// The experiment as results know it. A document that they do not read, from an experiment that was read, is a mistake
/// of this program: one of an older version was brought up to date when it was read.
fn asked(experiment: &Experiment) -> ExperimentRecord {
    let document = serde_json::to_value(experiment).expect("plain data becomes JSON");
    let asked = ExperimentRecord::try_from(document);
    asked.expect("results read what experiments write")
}

/// What was varied, as results know it.
fn matrix(matrix: &FactorMatrix) -> MatrixRecord {
    let factors = matrix.factors.iter();
    let cells = matrix.cells.iter();
    MatrixRecord {
        factors: factors
            .map(|factor| (factor.name.as_str().into(), factor.levels.clone()))
            .collect(),
        cells: cells
            .map(|cell| (cell.layout.clone(), cell.levels.clone()))
            .collect(),
        is_half: matrix.is_half,
    }
}

/// The layout that is measured under two names, and the one with the other name.
fn noise_check(experiment: &Experiment) -> Option<(usize, usize)> {
    let layouts = || experiment.layouts.iter();
    let again = layouts().position(|layout| layout.repeats.is_some())?;
    let repeated = experiment.layouts[again].repeats.as_ref();
    let first = layouts().position(|layout| Some(&layout.name) == repeated)?;
    Some((first, again))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(experiment: Experiment) -> RunRecord {
        let started = Event::RunStarted {
            run: "r".to_owned(),
            version: String::new(),
            at: String::new(),
            working_directory: PathBuf::new(),
            experiment: Box::new(experiment),
        };
        RunState::of(&[started]).expect("a run").record()
    }

    /// What results read of an experiment is what it says. A key that changes its name fails here.
    #[test]
    fn results_know_of_an_experiment_what_it_says() {
        let directory = tempfile::tempdir().unwrap();
        let rows = directory.path().join("rows.sql");
        std::fs::write(&rows, "create table t (a integer);").unwrap();
        let text = format!(
            "name = \"asked\"\n[database]\nengine = \"sqlite\"\n[plan]\nmeasure = \"7s\"\nwarmup = \"3s\"\n\
             [workload]\nkind = \"script\"\nscripts = [{rows:?}]\nload = [{rows:?}]\n\
             [[layout]]\nname = \"a\"\n"
        );
        let mut experiment = Experiment::parse("x.toml", &text, &[]).unwrap();
        experiment.plan.interleave_ms = Some(500);
        let record = started(experiment.clone());
        let asked = record.experiment.facts();
        assert_eq!(asked.name, experiment.name);
        assert_eq!(asked.database.engine, "sqlite");
        assert_eq!(asked.database.size_bytes, experiment.database.size_bytes);
        let plan = (
            asked.plan.warmup_ms,
            asked.plan.measure_ms,
            asked.plan.interleave_ms,
        );
        assert_eq!(plan, (3_000, 7_000, Some(500)));
        assert_eq!(asked.workload.loaded_from, [rows.display().to_string()]);
        assert_eq!(
            (asked.layouts.len(), asked.layouts[0].name.as_str()),
            (1, "a")
        );
        assert_eq!((asked.matrix.is_none(), record.machine), (true, None));
    }

    #[test]
    fn results_know_which_combinations_were_left_out() {
        let text = "[vary]\nio.method = [\"sync\", \"slaves\", \"async\"]\ndatabase.writers = [1, 4]\n\
                    [[layout]]\nname = \"a\"\n";
        let mut experiment = Experiment::parse("x.toml", text, &[]).unwrap();
        let matrix = experiment.matrix.as_mut().expect("it varies");
        matrix.is_half = true;
        let matrix = matrix.clone();
        let record = started(experiment);
        let asked = record.experiment.facts().matrix.as_ref().expect("the same");
        assert!(asked.is_half);
        assert_eq!(asked.cells.len(), matrix.cells.len());
        let left_out = |layout: &str, reason: &str| (layout.to_owned(), reason.to_owned());
        let told: Vec<_> = asked
            .left_out
            .iter()
            .map(|out| left_out(&out.layout, &out.reason))
            .collect();
        let wanted: Vec<_> = matrix
            .left_out
            .iter()
            .map(|out| left_out(&out.layout, &out.reason))
            .collect();
        assert_eq!((told.len(), told), (1, wanted));
    }

    /// Settings that two runs may differ in are told by their keys: these are still the experiment's.
    #[test]
    fn what_two_runs_may_differ_in_is_not_among_the_settings() {
        let text = "[database]\nredo_path = \".\"\n[workload]\nrate = [\"30%\"]\nclients = [3]\n\
                    [[layout]]\nname = \"a\"\n";
        let record = started(Experiment::parse("x.toml", text, &[]).unwrap());
        let (document, asked) = (record.experiment.document(), record.experiment.facts());
        let (workload, layout) = (&document["workload"], &document["layouts"][0]);
        for key in ["clients", "levels"] {
            assert!(
                workload.get(key).is_some() && asked.workload.settings.get(key).is_none(),
                "{key}"
            );
        }
        let settings = &asked.layouts[0].settings;
        for key in ["name", "path", "candidate"] {
            assert!(
                layout.get(key).is_some() && settings.get(key).is_none(),
                "{key}"
            );
        }
        let key = "redo_path";
        assert!(layout["database"].get(key).is_some() && settings["database"].get(key).is_none());
    }
}
