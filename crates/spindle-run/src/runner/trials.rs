//! One trial of a run: the database put back, the process that measures, and what the journal keeps of it.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::RngCore;
use spindle_engines::EngineError;
use spindle_engines::engine::Restored;
use spindle_experiment::Experiment;
use spindle_io::env::seeded_rng;
use spindle_result::{
    Conditions, DeviceProbe, Doubt, LoadLevel, QuietWait, TRIES_MAX, Trial, TrialTimes, doubt,
};
use spindle_system::DeviceNumber;
use spindle_system::memory::MemoryBudget;
use spindle_system::neighbours::OtherPrograms;

use super::{RunError, Runner};
use crate::answers;
use crate::consequence::{AfterLayout, AfterTrial, after_database, after_trial, told};
use crate::databases::RunDatabases;
use crate::finished_trial::FinishedTrial;
use crate::journal::Event;
use crate::layout_targets::LayoutTargets;
use crate::limits::LayoutLimit;
use crate::listener::Said;
use crate::neighbour;
use crate::observe::device_probe;
use crate::replay::CaseKey;
use crate::schedule::{Planned, has_time_to_repeat};
use crate::trial::protocol::{Task, TrialOutcome};
use crate::trial::supervisor::{self, Bounds};

/// Samples of throughput in a measured time, about; between 100 ms and 3 s apart.
const SAMPLES: u64 = 100;

/// Time between samples of a trial that ends with its last query.
const QUERY_SAMPLE_MS: u64 = 1000;
/// And of a load this many rows for each millisecond between samples: of ten thousand rows a second some hundred
/// samples.
const ROWS_PER_SAMPLE_MS: u64 = 1000;

/// A trial that may begin.
pub(super) struct Prepared {
    pub planned: Planned,
    restored: Restored,
    quiet: Option<QuietWait>,
    probe: Option<DeviceProbe>,
    /// What other programs had done until then.
    others: OtherPrograms,
    pub task: Task,
}

/// The tries that a trial has; true for the last.
pub(super) fn tries() -> impl Iterator<Item = bool> {
    (1..=TRIES_MAX).map(|number| number == TRIES_MAX)
}

impl Runner {
    /// Puts a case's database back to its loaded state; `None` when that failed its trial.
    pub(super) fn put_back(
        &mut self,
        case: CaseKey,
        round: u32,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
    ) -> Result<Option<Restored>, RunError> {
        let (layout, _) = case;
        targets.check_devices()?;
        match databases.restore(layout, targets) {
            Ok(restored) => Ok(Some(restored)),
            // What is interrupted breaks off with errors of many kinds.
            Err(_) if self.interrupted.load(Ordering::Relaxed) => Err(RunError::Interrupted),
            Err(error) => {
                // A device of Spindle's own that fails takes its layout along, and no other; so does an existing
                // server.
                let is_alone = targets.is_made(layout) || databases.are_remote();
                if after_database(&error, is_alone) == AfterLayout::RunEnds {
                    return Err(error.into());
                }
                databases.written(layout, None);
                let reason = format!("restoring the database: {error}");
                self.trial_failed(case, round, reason)?;
                targets.check_devices()?;
                Ok(None)
            }
        }
    }

    pub(super) fn run_trial(
        &mut self,
        planned: Planned,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
        budget: Option<&MemoryBudget>,
    ) -> Result<(), RunError> {
        let (_, load) = planned.case;
        let slowest_per_s = self.state.slowest_per_s(load.clients);
        if load
            .rate
            .is_some_and(|rate| rate.per_s(slowest_per_s).is_none())
        {
            let reason = format!(
                "no layout could be measured without a rate at {}, and {load} is a part of what the slowest did",
                LoadLevel::of(load.clients)
            );
            return self.trial_failed(planned.case, planned.round, reason);
        }
        for is_last_try in tries() {
            let began = Instant::now();
            let Some(prepared) = self.prepare(planned, databases, targets)? else {
                return Ok(());
            };
            let outcome = self.measure(&prepared, budget);
            if !is_last_try && self.must_try_again(planned, &outcome, databases, targets)? {
                continue;
            }
            return self.conclude(prepared, outcome, began.elapsed(), databases, targets);
        }
        Ok(())
    }

    fn measure(
        &mut self,
        prepared: &Prepared,
        budget: Option<&MemoryBudget>,
    ) -> Result<TrialOutcome, EngineError> {
        let (layout, _) = prepared.planned.case;
        let bounds = Bounds {
            memory: budget,
            io: self.limits.get(&layout).map(|limit| &limit.io),
        };
        let watched = self.agents.begin(layout, &prepared.task, &self.interrupted);
        let listener = &mut self.listener;
        let outcome = supervisor::run(&prepared.task, bounds, &self.interrupted, |heard| {
            listener.hear(Said::TrialGoesOn(heard));
        });
        self.agents
            .end(watched, &prepared.task, outcome, &self.interrupted)
    }

    /// Whether a trial ended for a reason that another try may not meet; that is noted then, and the database made
    /// ready to be put back.
    pub(super) fn must_try_again<T>(
        &mut self,
        planned: Planned,
        outcome: &Result<T, EngineError>,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
    ) -> Result<bool, RunError> {
        let error = match outcome {
            Err(error) if after_trial(error) == AfterTrial::Again => error,
            _ => return Ok(false),
        };
        let (layout, load) = planned.case;
        let reason = error.to_string();
        self.listener.hear(Said::TrialSetAside {
            reason: &reason,
            is_tried_again: true,
        });
        databases.written(layout, None);
        targets.check_devices()?;
        let name = &self.state.experiment.layouts[layout].name;
        let round = planned.round;
        let text = format!("{name}, {load}, round {round} was measured again: {reason}");
        self.note(Event::Warning { text })?;
        Ok(true)
    }

    /// Puts a case's database back and waits until its devices are at rest; `None` when that failed its trial.
    pub(super) fn prepare(
        &mut self,
        planned: Planned,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
    ) -> Result<Option<Prepared>, RunError> {
        let Planned { round, case, .. } = planned;
        let (layout, load) = case;
        let name = self.state.experiment.layouts[layout].name.clone();
        self.listener.hear(Said::TrialBegins {
            layout: &name,
            load,
            round,
        });
        self.note(Event::TrialStarted {
            layout,
            load,
            round,
        })?;
        let Some(restored) = self.put_back(case, round, databases, targets)? else {
            return Ok(None);
        };
        let quiet = self.wait_for_quiet(&databases.devices(layout))?;
        let probed = databases.probed(layout);
        Ok(Some(Prepared {
            planned,
            restored,
            quiet,
            probe: probed.map(|(data, redo)| device_probe::probe(&data, &redo)),
            others: neighbour::others(),
            task: self.task(case, round, databases),
        }))
    }

    /// Writes down what became of a trial, and how long it took with everything that belongs to it.
    pub(super) fn conclude(
        &mut self,
        prepared: Prepared,
        outcome: Result<TrialOutcome, EngineError>,
        whole: Duration,
        databases: &mut RunDatabases,
        targets: &LayoutTargets,
    ) -> Result<(), RunError> {
        let Planned {
            round,
            position,
            case,
        } = prepared.planned;
        let (layout, _) = case;
        let neighbour = neighbour::since(&prepared.others, &prepared.task.database);
        let (quiet, probe) = (prepared.quiet, prepared.probe);
        match outcome {
            Ok(mut outcome) => {
                databases.written(layout, Some(&outcome.written));
                self.keep_answers(case, round, &mut outcome)?;
                let plan = &self.state.experiment.plan;
                let conditions = Conditions {
                    run: (plan.runs > 1).then(|| plan.run_of(round)),
                    asked_ms: asked_ms(&self.state.experiment),
                    standstill: Some(outcome.standstill),
                    times: Some(TrialTimes {
                        restore_ms: prepared.restored.took.as_millis() as u64,
                        probe_ms: probe.map_or(0, |probe| probe.took_ms),
                        quiet_ms: quiet.as_ref().map_or(0, |wait| wait.waited_ms),
                        whole_ms: whole.as_millis() as u64,
                        ..outcome.times
                    }),
                    quiet,
                    probe,
                    neighbour,
                };
                let restored = prepared.restored;
                let finished = FinishedTrial::of(round, position, outcome, restored, conditions);
                self.trial_finished(case, finished, prepared.task.sample_ms)
            }
            Err(error) => match after_trial(&error) {
                AfterTrial::RunEnds => Err(RunError::Interrupted),
                AfterTrial::Again | AfterTrial::Failed => {
                    databases.written(layout, None);
                    self.trial_failed(case, round, told(&error))?;
                    Ok(targets.check_devices()?)
                }
            },
        }
    }

    /// Keeps what queries were answered, where the workload keeps it, and notes what is wrong with it.
    fn keep_answers(
        &self,
        (layout, load): CaseKey,
        round: u32,
        outcome: &mut TrialOutcome,
    ) -> Result<(), RunError> {
        let trial = format!("layout{}-{}-round{round}", layout + 1, load.in_file_names());
        let warnings = answers::keep(&self.directory, &trial, &outcome.answers)?;
        outcome.figures.warnings.extend(warnings);
        if let Some(right) = answers::found_right(&outcome.answers) {
            let check = &mut outcome.figures.check;
            *check = format!("{check}; {right}");
        }
        Ok(())
    }

    /// Keeps a trial that counts, or sets one aside that is in doubt: its round is not done then, and tries it again.
    pub(super) fn trial_finished(
        &mut self,
        case: CaseKey,
        finished: FinishedTrial,
        sample_ms: u64,
    ) -> Result<(), RunError> {
        let (layout, load) = case;
        let trial = Box::new(finished.trial);
        let is_last = self.state.tries(case, trial.round) + 1 >= TRIES_MAX;
        let is_idle = |trial: &Trial| doubt(trial) == Some(Doubt::Idle);
        let is_idle_case = self.state.finished(case).any(is_idle);
        let doubt = doubt(&trial);
        let is_taken = match doubt {
            // A layout that commits nothing, however often it is tried, has failed; time alone is no reason for that.
            Some(Doubt::Idle) => is_last || is_idle_case,
            _ => is_last || !has_time_to_repeat(&self.state, &trial),
        };
        let reason = match doubt {
            // Its throughput is of the time that it lasted: better than none, and a warning tells.
            Some(Doubt::Overlong { .. } | Doubt::Idle) if is_taken => None,
            doubt => doubt.map(|doubt| doubt.to_string()),
        };
        if let Some(reason) = reason {
            self.listener.hear(Said::TrialSetAside {
                reason: &reason,
                is_tried_again: !is_taken,
            });
            return self.note(Event::TrialSetAside {
                layout,
                load,
                trial,
                reason,
            });
        }
        self.listener.hear(Said::TrialEnds(Ok(&trial)));
        self.note(Event::TrialFinished {
            layout,
            load,
            trial,
            sample_ms,
            samples: finished.samples,
            system: finished.system,
        })
    }

    /// Waits until the devices of the next trial are at rest, or the plan's time for it is up.
    pub(super) fn wait_for_quiet(
        &mut self,
        devices: &[DeviceNumber],
    ) -> Result<Option<QuietWait>, RunError> {
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
        // What lies in memory alone has nothing to wait for, and learns nothing.
        if let Some(note) = waited.as_ref().and_then(|_| self.quiet.note()) {
            self.say(&note);
        }
        Ok(waited)
    }

    pub(super) fn trial_failed(
        &mut self,
        case: CaseKey,
        round: u32,
        reason: String,
    ) -> Result<(), RunError> {
        let (layout, load) = case;
        self.listener.hear(Said::TrialEnds(Err(&reason)));
        self.note(Event::TrialFailed {
            layout,
            load,
            round,
            reason,
        })
    }

    pub(super) fn task(
        &self,
        (layout, load): CaseKey,
        round: u32,
        databases: &RunDatabases,
    ) -> Task {
        let experiment = &self.state.experiment;
        let plan = &experiment.plan;
        Task {
            // The same transactions for every case of a round, others in the next.
            seed: seeded_rng(experiment.seed, u64::from(round)).next_u64(),
            data_seed: experiment.seed,
            size_bytes: experiment.database_of(layout).size_bytes,
            database: databases.of_trial(layout),
            limited: self
                .limits
                .get(&layout)
                .map_or_else(Vec::new, LayoutLimit::to_be_checked),
            workload: experiment
                .workload
                .at(load.rate, self.state.slowest_per_s(load.clients)),
            clients: load.clients,
            load: experiment.load.clone(),
            warmup_ms: plan.warmup_ms,
            warmup_max_ms: plan.warmup_max_ms,
            measure_ms: plan.measure_ms,
            turn_ms: plan.interleave_ms,
            sample_ms: sample_ms(experiment),
            devices: databases.devices(layout),
        }
    }
}

/// Measured time that a trial is asked for; `None` where it ends with its last transaction.
fn asked_ms(experiment: &Experiment) -> Option<u64> {
    let is_counted = experiment.workload.transactions.are_counted();
    (!is_counted).then_some(experiment.plan.measure_ms)
}

/// Time between samples of throughput: how long queries will take is not known, and of a bulk load only how much it is.
fn sample_ms(experiment: &Experiment) -> u64 {
    let measure_ms = experiment.plan.measure_ms;
    let transactions = &experiment.workload.transactions;
    match (transactions.are_counted(), transactions.bulk_load()) {
        (true, Some(load)) => (load.rows / ROWS_PER_SAMPLE_MS).clamp(100, 3000),
        (true, None) => QUERY_SAMPLE_MS,
        (false, _) => (measure_ms / SAMPLES).clamp(100, 3000).min(measure_ms),
    }
}
