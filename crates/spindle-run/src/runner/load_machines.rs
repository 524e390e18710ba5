//! A look at the load machines of an experiment before its first trial: each is come to, its clock is read, and it
//! tries to reach every server. In trials the process of the trial comes to them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use spindle_engines::EngineError;
use spindle_experiment::{DatabaseSpec, Experiment, RemoteSpec, deal};

use super::{RunError, Runner};
use crate::consequence::{AfterLayout, after_look};
use crate::trial::load::machine::MachineAtWork;

/// What was found for a layout: notes for people, or why it must be skipped.
pub(super) type NotesOrSkip = Result<Vec<String>, EngineError>;

impl Runner {
    /// Looks at every load machine, for each of these layouts.
    pub(super) fn examine_load_machines(
        &mut self,
        wanted: &[usize],
    ) -> Result<BTreeMap<usize, NotesOrSkip>, RunError> {
        let mut found: BTreeMap<usize, NotesOrSkip> = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let experiment = self.state.experiment.clone();
        for (place, of) in experiment.load.iter().enumerate() {
            self.say(&format!("looking at the load machine {}", of.way));
            let mut machine = MachineAtWork::start(&of.way, &self.interrupted)
                .map_err(|error| error.in_a_look("load machine "));
            for &layout in wanted {
                let DatabaseSpec::Remote(remote) = &experiment.database_of(layout).spec else {
                    continue;
                };
                let noted = match &mut machine {
                    Ok(machine) => look(machine, remote, &self.interrupted)
                        .map(|()| described(machine, &experiment, place)),
                    Err(error) => Err(error.clone()),
                };
                if noted
                    .as_ref()
                    .is_err_and(|error| after_look(error) == AfterLayout::RunEnds)
                {
                    return Err(RunError::Interrupted);
                }
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

/// Has a machine reach a server.
fn look(
    machine: &mut MachineAtWork,
    remote: &RemoteSpec,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let password = remote
        .address
        .find_password(remote.password_env.as_deref())?;
    machine.look(&remote.address, password, interrupted)
}

/// What must be known of a machine, in words.
fn described(machine: &MachineAtWork, experiment: &Experiment, place: usize) -> String {
    let clients = experiment.workload.clients.iter();
    let shares: Vec<String> = clients
        .map(|&clients| format!("{} of {clients}", deal(clients, &experiment.load)[place]))
        .collect();
    format!(
        "load machine {}: {} clients; {}; its clock is known to within {:.2} ms",
        machine.way(),
        shares.join(", "),
        machine.described(),
        machine.first.uncertainty_ns as f64 / 1e6
    )
}
