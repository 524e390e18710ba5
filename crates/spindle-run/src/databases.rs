//! The databases of a run, whichever its engine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use spindle_engines::sql::ServerRequest;
use spindle_layout::{KnownDevice, Place};

use super::grounds::Grounds;
use super::images::Images;
use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use super::schemas::Schemas;
use super::trees::Trees;
use crate::observe::block_device::DeviceNumber;
use crate::observe::device_probe::Probed;
use crate::trial::protocol::{TrialFiles, WrittenRuns, server_request};
use spindle_experiment::Experiment;

/// The databases of a run.
pub enum Databases {
    /// Of the embedded database.
    Images(Images),
    /// Of a server.
    Trees(Trees),
    /// On existing servers.
    Schemas(Schemas),
}

impl Databases {
    /// Makes the databases of the layouts `wanted` on what they stand on. `note` hears what is being done. Returns the
    /// layouts that turned out not to hold theirs, with the reason; what goes wrong elsewhere is an error. Once
    /// `interrupted`, loading ends and no further one is made: the run looks at that itself before it uses any.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        grounds: &Grounds,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Databases, Vec<(usize, String)>), DatabaseError> {
        Ok(match state.experiment.database.engine.server() {
            None => {
                let (images, failed) = Images::prepare(state, wanted, grounds, interrupted, note)?;
                (Databases::Images(images), failed)
            }
            Some(_) if state.experiment.is_foreign() => {
                let (schemas, failed) =
                    Schemas::prepare(state, wanted, grounds.ledger(), interrupted, note)?;
                (Databases::Schemas(schemas), failed)
            }
            Some(kind) => {
                let (trees, failed) =
                    Trees::prepare(kind, state, wanted, grounds, interrupted, note)?;
                (Databases::Trees(trees), failed)
            }
        })
    }

    /// Where a layout's database is.
    pub fn files(&self, layout: usize) -> TrialFiles {
        match self {
            Databases::Images(images) => TrialFiles::Blocks(images.files(layout)),
            Databases::Trees(trees) => TrialFiles::Tree(trees.directories(layout)),
            Databases::Schemas(schemas) => TrialFiles::Schema(schemas.schema(layout).clone()),
        }
    }

    /// What is asked of a layout's server; `None` for the embedded database.
    pub fn server_request(&self, experiment: &Experiment, layout: usize) -> Option<ServerRequest> {
        match self {
            Databases::Images(_) => None,
            Databases::Trees(trees) => Some(trees.request(layout)),
            Databases::Schemas(_) => {
                let database = experiment.database_of(layout);
                server_request(&experiment.workload, &database, None)
            }
        }
    }

    /// The devices beneath it, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        match self {
            Databases::Images(images) => images.devices(layout),
            Databases::Trees(trees) => trees.devices(layout),
            Databases::Schemas(_) => Vec::new(),
        }
    }

    /// Where the devices beneath a layout's data and beneath its redo are probed; `None` for an existing server.
    pub fn probed(&self, layout: usize) -> Option<(Probed, Probed)> {
        match self {
            Databases::Images(images) => {
                let files = images.files(layout);
                let data = files.data.first()?;
                let redo = files.redo.first().unwrap_or(data);
                Some((probed_by(data)?, probed_by(redo)?))
            }
            Databases::Trees(trees) => Some(trees.probed(layout)),
            Databases::Schemas(_) => None,
        }
    }

    /// Time that loading took when they were made, a part of making them.
    pub fn loading(&self) -> Duration {
        match self {
            Databases::Images(images) => images.loading(),
            Databases::Trees(trees) => trees.loading(),
            Databases::Schemas(_) => Duration::ZERO,
        }
    }

    /// Whether they are on existing servers.
    pub fn are_foreign(&self) -> bool {
        matches!(self, Databases::Schemas(_))
    }

    /// Puts a layout's database back to the loaded state.
    pub fn restore(&mut self, layout: usize, grounds: &Grounds) -> Result<Restored, DatabaseError> {
        match self {
            Databases::Images(images) => images.restore(layout, grounds),
            Databases::Trees(trees) => trees.restore(layout, grounds),
            Databases::Schemas(schemas) => schemas.restore(layout),
        }
    }

    /// A trial has written to a layout's database; `None` when it is not known where.
    pub fn written(&mut self, layout: usize, written: Option<&WrittenRuns>) {
        match self {
            Databases::Images(images) => images.written(layout, written),
            // Files say themselves that they were written to, and what is loaded again need not know.
            Databases::Trees(_) | Databases::Schemas(_) => {}
        }
    }

    /// Takes everything away. Returns what could not be, in words.
    pub fn remove(self) -> Vec<String> {
        match self {
            Databases::Images(images) => images.remove(),
            Databases::Trees(trees) => trees.remove(),
            Databases::Schemas(schemas) => schemas.remove(),
        }
    }
}

/// Where the device beneath a file is probed.
fn probed_by(place: &Place) -> Option<Probed> {
    let region = |device: &KnownDevice, first_byte, bytes| Probed::Region {
        device: device.clone(),
        first_byte,
        bytes,
    };
    match place {
        Place::File(path) => Some(Probed::Directory(path.parent()?.to_path_buf())),
        Place::Region {
            device,
            first_byte,
            bytes,
        } => Some(region(device, *first_byte, *bytes)),
        // Where on its disks a file of a group lies is the group's affair; it has filled the beginning of them first.
        Place::GroupFile { disks, bytes, .. } => {
            let each_bytes = bytes / disks.len() as u64;
            Some(region(disks.first()?, 0, each_bytes))
        }
    }
}
