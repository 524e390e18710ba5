//! What a run looks at before its first trial: the machine, the budget of memory, each layout, and what Spindle itself
//! costs.

use std::collections::BTreeSet;

use spindle_engines::EngineError;
use spindle_experiment::Experiment;
use spindle_system::machine::Machine;
use spindle_system::memory::MemoryBudget;
use spindle_system::{SystemTree, own_group};
use spindle_text::vocabulary::Vocabulary;

use super::{RunError, Runner};
use crate::calibrations;
use crate::consequence::{AfterLayout, after_look};
use crate::directory;
use crate::examine::examine;
use crate::journal::Event;
use crate::layout_targets::LayoutTargets;
use crate::limits::{self, Flushes};
use crate::same_place;
use crate::trial::own_cost::OwnCostTask;
use crate::trial::supervisor;

impl Runner {
    pub(super) fn record_machine(
        &mut self,
        targets: &LayoutTargets,
        wanted: &[usize],
    ) -> Result<(), RunError> {
        let paths = targets.paths(wanted);
        let tree = SystemTree::default();
        let mut machine = Machine::capture(&tree, &paths);
        calibrations::add_to(&mut machine, &tree);
        if let Some(before) = &self.state.machine {
            same_place::directories(&self.state.experiment, before, &machine)?;
            if same_place::is_another_machine(before, &machine) {
                let text =
                    "the run continued on another machine or kernel: its trials are not comparable";
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
    pub(super) fn record_budget(&mut self) -> Result<Option<MemoryBudget>, RunError> {
        let files = SystemTree::default();
        for leftover in own_group::remove_leftovers(&files) {
            self.say(&format!(
                "removed {}, left by a dead run",
                leftover.path.display()
            ));
        }
        let Some(memory) = self.state.experiment.spec().memory() else {
            self.note(Event::MemoryBudget { bytes: None })?;
            return Ok(None);
        };
        match MemoryBudget::available(&files) {
            Ok(budget) => {
                let bytes = Some(memory.memory_bytes);
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

    pub(super) fn examine_layouts(
        &mut self,
        targets: &LayoutTargets,
        wanted: &[usize],
    ) -> Result<(), RunError> {
        let mut by_load_machines = self.examine_load_machines(wanted)?;
        for &index in wanted {
            let mut examined = examine(&self.state.experiment, targets, index);
            if examined.skip.is_none() {
                examined.skip = self.make_limit_ready(index, targets)?;
                let limit = self.limits.get(&index);
                let notes = &mut examined.layout.notes;
                notes.extend(
                    limit
                        .and_then(|limit| limit.flushes().note())
                        .map(str::to_owned),
                );
                notes.extend(limits::note_on_redo(&self.state.experiment, index));
            }
            if examined.skip.is_none() {
                match self.examine_by_agent(index) {
                    Ok(notes) => examined.layout.notes.extend(notes),
                    Err(reason) => examined.skip = Some(why_left_out(&reason)?),
                }
            }
            if examined.skip.is_none() {
                match by_load_machines.remove(&index) {
                    Some(Ok(notes)) => examined.layout.notes.extend(notes),
                    Some(Err(reason)) => examined.skip = Some(why_left_out(&reason)?),
                    None => {}
                }
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
    pub(super) fn make_limit_ready(
        &mut self,
        index: usize,
        targets: &LayoutTargets,
    ) -> Result<Option<String>, RunError> {
        let experiment = &self.state.experiment;
        let parts = limits::parts_of(experiment, index, |layout| targets.paths(&[layout]));
        let limit = match limits::prepare(experiment, index, &parts) {
            Ok(None) => return Ok(None),
            Ok(Some(limit)) => limit,
            Err(reason) => return Ok(Some(reason.to_string())),
        };
        let name = &experiment.layouts[index].name;
        self.say(&format!("testing the limit of {name}"));
        match limits::try_out(&parts, &limit, &self.interrupted) {
            Ok(()) => {
                self.limits.insert(index, limit);
                Ok(None)
            }
            Err(reason) => why_left_out(&reason).map(Some),
        }
    }

    /// Redo is held constant unless the experiment varies it; left beside the data of layouts in several places it is
    /// not.
    pub(super) fn check_redo_place(&mut self) -> Result<(), RunError> {
        let skipped: BTreeSet<usize> = self.state.skipped().into_iter().map(|(of, _)| of).collect();
        match redo_places(&self.state.experiment, &skipped) {
            0 | 1 => Ok(()),
            places => {
                let engine = self.state.experiment.database.engine();
                self.warn(log_is_compared(Vocabulary::of(engine.as_str()), places))
            }
        }
    }

    /// What trials pay for the way in which their databases are put back.
    pub(super) fn warn_of_restore(&mut self) -> Result<(), RunError> {
        match self.state.experiment.plan.restore.price() {
            Some(price) => self.warn(price.to_string()),
            None => Ok(()),
        }
    }

    /// A limit that counts flushes in one layout and not in another gives the two different amounts of durable writes.
    pub(super) fn check_flushes(&mut self) -> Result<(), RunError> {
        let some = |kind| self.limits.values().any(|limit| limit.flushes() == kind);
        if !(some(Flushes::Counted) && some(Flushes::Free)) {
            return Ok(());
        }
        self.warn(
            "layouts with a limit of writes per second are not equal: a durable write counts as two with blocking or buffered \
             calls, and as one with asynchronous direct ones, whose flush the kernel charges to no process. Compare \
             layouts \
             of one kind, or limit bytes per second"
                .to_string(),
        )
    }

    /// Once a run: a resumed run has it in its journal.
    pub(super) fn measure_own_cost(&mut self) -> Result<(), RunError> {
        if self.state.own_cost.is_some() {
            return Ok(());
        }
        let Some(task) = OwnCostTask::of(&self.state.experiment) else {
            return Ok(());
        };
        self.say("measuring what Spindle itself costs");
        match supervisor::own_cost(&task, &self.interrupted) {
            Ok(own_cost) => self.note(Event::OwnCost { own_cost }),
            Err(error) => {
                let why = why_left_out(&error)?;
                self.warn(format!("what Spindle itself costs is not known: {why}"))
            }
        }
    }
}

/// Why something is left out of the run, in words; an error when the run ends instead.
fn why_left_out(reason: &EngineError) -> Result<String, RunError> {
    match after_look(reason) {
        AfterLayout::LeftOut => Ok(reason.to_string()),
        AfterLayout::RunEnds => Err(RunError::Interrupted),
    }
}

/// That the log is compared together with the data, and what holds it constant.
fn log_is_compared(words: &Vocabulary, places: usize) -> String {
    let Vocabulary { log, log_path, .. } = words;
    let said = format!(
        "each layout has its {log} beside its data, in {places} places, so the log is part of the comparison"
    );
    match log_path {
        Some(key) => format!("{said}. Set database.{key} to hold it constant"),
        None => said,
    }
}

/// In how many places redo of the layouts that are not skipped lies only because the data do.
fn redo_places(experiment: &Experiment, skipped: &BTreeSet<usize>) -> usize {
    if experiment.workload.transactions.settings().only_reads() {
        return 0;
    }
    let beside_data = |index: &usize| {
        let is_placed = experiment.layouts[*index].placement.redo.is_some();
        !is_placed && experiment.database_of(*index).spec.redo_path().is_none()
    };
    let place_of = |index: usize| {
        let layout = &experiment.layouts[index];
        let made = layout.made.as_ref().map(|made| &made.spec.devices);
        (made, made.is_none().then_some(layout.path.as_path()))
    };
    let places: BTreeSet<_> = experiment
        .candidates()
        .filter(|index| !skipped.contains(index))
        .filter(beside_data)
        .map(place_of)
        .collect();
    places.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_compared_is_called_as_its_database_calls_it() {
        let told = |engine: &str| log_is_compared(Vocabulary::of(engine), 2);
        assert_eq!(
            told("kernel"),
            "each layout has its redo log beside its data, in 2 places, so the log is part of the comparison. Set \
             database.redo_path to hold it constant"
        );
        assert!(told("postgres").contains("its WAL beside"));
        assert!(told("postgres").ends_with("Set database.wal_path to hold it constant"));
        assert!(told("mariadb").ends_with("Set database.redo_path to hold it constant"));
        assert!(told("sqlite").ends_with("part of the comparison"));
        for engine in ["postgres", "mariadb"] {
            let key = Vocabulary::of(engine).log_path.unwrap();
            let text = format!(
                "[database]\nengine = \"{engine}\"\n{key} = \"/log\"\n[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\npath = \"/mnt\"\n"
            );
            let experiment = Experiment::parse("x.toml", &text, &[]).unwrap();
            assert_eq!(redo_places(&experiment, &BTreeSet::new()), 0);
        }
    }

    #[test]
    fn redo_in_several_places_is_seen_unless_it_is_put_somewhere() {
        let places_without = |database: &str, second: &str, skipped: &[usize]| {
            let text = format!(
                "[database]\n{database}\n[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\npath = \"{second}\"\n"
            );
            let skipped = skipped.iter().copied().collect();
            redo_places(&Experiment::parse("x.toml", &text, &[]).unwrap(), &skipped)
        };
        let places = |database: &str, second: &str| places_without(database, second, &[]);
        assert_eq!(places_without("", "/mnt", &[1]), 1);
        assert_eq!(places("", "."), 1);
        assert_eq!(places("", "/mnt"), 2);
        assert_eq!(places("redo_path = \"/redo\"", "/mnt"), 0);
        for reads in [
            "kind = \"oltp_mix\"\nread_percent = 100",
            "kind = \"slob\"\nupdate_percent = 0",
        ] {
            let workload = format!("[workload]\n{reads}");
            assert_eq!(places(&workload, "/mnt"), 0, "{reads} writes no redo");
        }
    }
}
