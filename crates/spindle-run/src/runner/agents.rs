//! The agents of a run: one on each machine of an existing server that the experiment wants looked at, from the look at
//! the layouts to the end of the run. A trial whose agent is gone is marked, and what that did not see is unknown;
//! before the next trial it is started again.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use spindle_engines::EngineError;
use spindle_engines::sql::{ServerHome, SshHost, remote_server};
use spindle_experiment::{DatabaseSpec, RemoteSpec};

use super::Runner;
use crate::agent::Agent;
use crate::agent::connection::WatchingTrial;
use crate::agent::figures::figures;
use crate::agent::protocol::Watching;
use crate::far::FarError;
use crate::trial::protocol::{Task, TrialOutcome};
use crate::trial::series_recorder;

/// An agent looks this many times for each step of a series.
const LOOKS_EACH_STEP: u64 = 4;
/// Of longer trials it looks once for each.
const LONG_TRIAL_MS: u64 = 600_000;

/// Agents at work.
#[derive(Default)]
pub(super) struct Agents {
    at_work: BTreeMap<SshHost, Agent>,
    /// Of each layout that has one: its machine, and where the server is on it.
    of_layout: BTreeMap<usize, (SshHost, ServerHome)>,
}

/// What looks at a trial: the machine, and what was begun there; or why nothing looks at it.
pub(super) struct Begun(Option<(SshHost, Result<WatchingTrial, FarError>)>);

impl Agents {
    /// The agent of a machine, started if need be.
    fn agent(&mut self, host: &SshHost, interrupted: &AtomicBool) -> Result<&mut Agent, FarError> {
        if !self.at_work.contains_key(host) {
            let agent = Agent::start(host, interrupted)?;
            self.at_work.insert(host.clone(), agent);
        }
        Ok(self.at_work.get_mut(host).expect("it is at work"))
    }

    /// Looks for the first time at the machine of a layout's server; what was found, for people.
    fn look(
        &mut self,
        layout: usize,
        (host, home): (&SshHost, ServerHome),
        interrupted: &AtomicBool,
    ) -> Result<Vec<String>, FarError> {
        let agent = self.agent(host, interrupted)?;
        let clock = agent.read_clock(interrupted)?;
        let watching = agent.look(&home, interrupted)?;
        let mut notes = vec![format!(
            "{}, seen by an agent: {}; its clock is known to within {:.2} ms",
            agent.way(),
            agent.machine(),
            clock.uncertainty_ns as f64 / 1e6
        )];
        notes.extend(not_seen(&watching));
        self.of_layout.insert(layout, (host.clone(), home));
        Ok(notes)
    }

    /// Has the machine of a layout's server looked at from now on, if it has an agent.
    pub fn begin(&mut self, layout: usize, task: &Task, interrupted: &AtomicBool) -> Begun {
        let Some((host, home)) = self.of_layout.get(&layout).cloned() else {
            return Begun(None);
        };
        let step_ms = series_recorder::interval_ms(task.measure_ms);
        let interval_ms = match task.measure_ms {
            LONG_TRIAL_MS.. => step_ms,
            _ => step_ms / LOOKS_EACH_STEP,
        };
        let was_at_work = self.at_work.contains_key(&host);
        let mut begun = self.watch(&host, &home, interval_ms, interrupted);
        // One that was lost since the last trial may be started again.
        if begun.is_err() && was_at_work {
            begun = self.watch(&host, &home, interval_ms, interrupted);
        }
        Begun(Some((host, begun)))
    }

    fn watch(
        &mut self,
        host: &SshHost,
        home: &ServerHome,
        interval_ms: u64,
        interrupted: &AtomicBool,
    ) -> Result<WatchingTrial, FarError> {
        let agent = self.agent(host, interrupted)?;
        let begun = agent.watch(home, interval_ms, interrupted);
        if begun.is_err() {
            self.at_work.remove(host);
        }
        begun
    }

    /// Adds what was seen to what the trial found; and that it was not seen, where that is so.
    pub fn end(
        &mut self,
        Begun(begun): Begun,
        task: &Task,
        outcome: Result<TrialOutcome, EngineError>,
        interrupted: &AtomicBool,
    ) -> Result<TrialOutcome, EngineError> {
        let Some((host, watching)) = begun else {
            return outcome;
        };
        let watched = watching.and_then(|trial| {
            let agent = self.agent(&host, interrupted)?;
            Ok(agent.rest(trial, interrupted))
        });
        let mut outcome = outcome?;
        let gone = match watched {
            Ok(watched) => {
                let step_ms = series_recorder::interval_ms(task.measure_ms);
                let transactions = outcome.figures.transactions;
                let seen = figures(&watched, outcome.span, transactions, step_ms);
                outcome = seen.add_to(outcome);
                let uncertain_ms = watched.line.uncertainty_ns() as f64 / 1e6;
                if uncertain_ms > step_ms as f64 / 2.0 {
                    outcome.figures.warnings.push(format!(
                        "the clock of {host} is known to within {uncertain_ms:.0} ms only: what its agent saw may be \
                         that much too early or too late"
                    ));
                }
                watched.gone
            }
            Err(error) => Some(error),
        };
        if let Some(error) = gone {
            self.at_work.remove(&host);
            outcome.figures.warnings.push(format!(
                "the agent was lost, and what its machine did from then on is unknown: {error}"
            ));
        }
        Ok(outcome)
    }
}

/// What an agent does not see, for people.
fn not_seen(watching: &Watching) -> Option<String> {
    let mut not_seen = Vec::new();
    if watching.process.is_none() {
        not_seen.push("the processes of the server".to_owned());
    }
    for directory in &watching.unknown {
        not_seen.push(format!("the device beneath {}", directory.display()));
    }
    if watching.devices.is_empty() && watching.unknown.is_empty() {
        not_seen.push(
            "its devices, as the server does not tell this user where its files are".to_owned(),
        );
    }
    let seen = format!("devices seen there: {}", watching.devices.join(", "));
    match (not_seen.is_empty(), watching.devices.is_empty()) {
        (true, _) => Some(seen),
        (false, true) => Some(format!("not seen there: {}", not_seen.join(", "))),
        (false, false) => Some(format!("{seen}; not seen: {}", not_seen.join(", "))),
    }
}

impl Runner {
    /// Starts the agent that a layout asks for, and looks; notes for people, or why the layout must be skipped.
    pub(super) fn examine_by_agent(&mut self, index: usize) -> Result<Vec<String>, EngineError> {
        let experiment = &self.state.experiment;
        let DatabaseSpec::Remote(remote) = experiment.database_of(index).spec.clone() else {
            return Ok(Vec::new());
        };
        let Some(host) = &remote.agent else {
            return Ok(Vec::new());
        };
        self.say(&format!("bringing an agent to {host}"));
        let home = home_of(&remote)?;
        let looked = self.agents.look(index, (host, home), &self.interrupted);
        looked.map_err(|error| error.in_a_look("agent: "))
    }
}

fn home_of(remote: &RemoteSpec) -> Result<ServerHome, EngineError> {
    let address = &remote.address;
    let password = address.find_password(remote.password_env.as_deref())?;
    remote_server(address.scheme).home(address, password.as_ref())
}
