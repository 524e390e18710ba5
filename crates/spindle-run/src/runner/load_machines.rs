//! A look at the load machines of an experiment before its first trial: each is come to, its clock is read, and it
//! tries to reach every server. In trials the process of the trial comes to them.

use std::collections::BTreeMap;

use spindle_engines::EngineError;
use spindle_experiment::{DatabaseSpec, Experiment, RemoteSpec, deal};

use super::{RunError, Runner};
use crate::far::FarError;
use crate::trial::load::machine::Machine;
use crate::trial::load::words::{LoadSaid, LoadWord};

/// What was found for a layout: notes for people, or why it must be skipped.
pub(super) type Found = Result<Vec<String>, EngineError>;

impl Runner {
    /// Looks at every load machine, for each of these layouts.
    pub(super) fn examine_load_machines(
        &mut self,
        wanted: &[usize],
    ) -> Result<BTreeMap<usize, Found>, RunError> {
        let mut found: BTreeMap<usize, Found> = BTreeMap::new();
        let experiment = self.state.experiment.clone();
        for (place, of) in experiment.load.iter().enumerate() {
            self.say(&format!("looking at the load machine {}", of.way));
            let machine = match Machine::start(&of.way, &self.interrupted) {
                Err(FarError::Interrupted) => return Err(RunError::Interrupted),
                machine => machine,
            };
            let mut machine =
                machine.map_err(|error| EngineError::unavailable(format!("load machine {error}")));
            for &layout in wanted {
                let DatabaseSpec::Remote(remote) = &experiment.database_of(layout).spec else {
                    continue;
                };
                let noted = match &mut machine {
                    Ok(machine) => look(machine, remote, &experiment, place),
                    Err(error) => Err(error.clone()),
                };
                // The first that cannot be used is the reason.
                let so_far = found.entry(layout).or_insert_with(|| Ok(Vec::new()));
                match (so_far.as_mut(), noted) {
                    (Ok(notes), Ok(note)) => notes.push(note),
                    (Ok(_), Err(error)) => *so_far = Err(error),
                    (Err(_), _) => {}
                }
            }
        }
        Ok(found)
    }
}

/// Has a machine reach a server; what must be known of it, in words.
fn look(
    machine: &mut Machine,
    remote: &RemoteSpec,
    experiment: &Experiment,
    place: usize,
) -> Result<String, EngineError> {
    let address = Box::new(remote.address.clone());
    let password = address.find_password(remote.password_env.as_deref())?;
    machine.tell(LoadWord::Look { address, password })?;
    match machine.hear(None)? {
        LoadSaid::Looked(Ok(_)) => {}
        LoadSaid::Looked(Err(reason)) => {
            return Err(EngineError::unavailable(format!(
                "load machine {}: {reason}",
                machine.way()
            )));
        }
        other => {
            return Err(EngineError::from(format!(
                "load machine {} said {other:?}",
                machine.way()
            )));
        }
    }
    let clients = experiment.workload.clients.iter();
    let shares: Vec<String> = clients
        .map(|&clients| format!("{} of {clients}", deal(clients, &experiment.load)[place]))
        .collect();
    Ok(format!(
        "load machine {}: {} clients; {}; its clock is known to within {:.2} ms",
        machine.way(),
        shares.join(", "),
        machine.described(),
        machine.first.uncertainty_ns as f64 / 1e6
    ))
}
