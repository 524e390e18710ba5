//! A round whose trials are measured by turns: every database is put back and started, and then one after the other
//! is measured for a moment, again and again, in random order. Whatever happens to the machine meanwhile happens to all
//! of them. While one has its turn, the processes of the others stand still.

use std::time::{Duration, Instant};

use spindle_engines::EngineError;
use spindle_system::memory::MemoryBudget;

use super::trials::{Prepared, tries};
use super::{RunError, Runner};
use crate::databases::RunDatabases;
use crate::layout_targets::LayoutTargets;
use crate::listener::Said;
use crate::schedule::{self, Planned};
use crate::trial::protocol::{TrialOutcome, TrialProgress};
use crate::trial::supervisor::{Bounds, TrialByTurns};

/// A trial under way.
struct Underway {
    prepared: Prepared,
    trial: TrialByTurns,
}

impl Runner {
    /// Measures the trials of a round, those of each load by turns of `turn_ms`.
    pub(super) fn run_by_turns(
        &mut self,
        round: &[Planned],
        turn_ms: u64,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        for trials in schedule::by_load(round) {
            let began = Instant::now();
            let count = trials.len() as u32;
            let mut underway = Vec::new();
            for planned in trials {
                self.check_interrupted()?;
                underway.extend(self.start_by_turns(planned, databases, targets, budget)?);
            }
            let turns = self.state.experiment.plan.measure_ms.div_ceil(turn_ms);
            for turn in 0..turns {
                self.take_turns(&mut underway, turn, databases, targets)?;
            }
            let taking_turns = began.elapsed();
            for Underway { prepared, trial } in underway {
                let began = Instant::now();
                self.say_whose_turn(&prepared);
                let outcome = trial.end(&self.interrupted);
                let whole = taking_turns / count + began.elapsed();
                self.conclude(prepared, outcome, whole, databases, targets)?;
            }
        }
        Ok(())
    }

    /// Starts a trial and lets it warm up; `None` when it failed.
    fn start_by_turns(
        &mut self,
        planned: Planned,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
        budget: Option<&MemoryBudget>,
    ) -> Result<Option<Underway>, RunError> {
        for is_last_try in tries() {
            let began = Instant::now();
            let Some(prepared) = self.prepare(planned, databases, targets)? else {
                return Ok(None);
            };
            let (layout, _) = planned.case;
            let bounds = Bounds {
                memory: budget,
                io: self.limits.get(&layout).map(|limit| &limit.io),
            };
            let listener = &mut self.listener;
            let hear = |heard: &TrialProgress| listener.hear(Said::TrialGoesOn(heard));
            let started = TrialByTurns::start(&prepared.task, bounds, &self.interrupted, hear);
            if !is_last_try && self.must_try_again(planned, &started, databases, targets)? {
                continue;
            }
            let failed: Result<TrialOutcome, EngineError> = match started {
                Ok(trial) => return Ok(Some(Underway { prepared, trial })),
                Err(error) => Err(error),
            };
            self.conclude(prepared, failed, began.elapsed(), databases, targets)?;
            break;
        }
        Ok(None)
    }

    /// Lets each have a turn, in random order. One that fails takes part no longer.
    fn take_turns(
        &mut self,
        underway: &mut Vec<Underway>,
        turn: u64,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
    ) -> Result<(), RunError> {
        let Some(round) = underway.first().map(|one| one.prepared.planned.round) else {
            return Ok(());
        };
        schedule::shuffle_turns(underway, self.state.experiment.seed, round, turn);
        let mut failed = Vec::new();
        for (index, one) in underway.iter_mut().enumerate() {
            self.say_whose_turn(&one.prepared);
            let listener = &mut self.listener;
            let hear = |heard: &TrialProgress| listener.hear(Said::TrialGoesOn(heard));
            if let Err(error) = one.trial.take_turn(&self.interrupted, hear) {
                failed.push((index, error));
            }
        }
        for (index, error) in failed.into_iter().rev() {
            let prepared = underway.remove(index).prepared;
            self.conclude(prepared, Err(error), Duration::ZERO, databases, targets)?;
        }
        Ok(())
    }

    fn say_whose_turn(&mut self, prepared: &Prepared) {
        let (layout, load) = prepared.planned.case;
        let layout = &self.state.experiment.layouts[layout].name;
        self.listener.hear(Said::TrialTakesTurn {
            layout,
            load,
            round: prepared.planned.round,
        });
    }
}
