//! Carrying out a plan, and taking away what it made. A layout that fails is undone at once and the others continue.
//! The program calls [`Provision::carry_out`] before the databases are loaded, and [`Provision::teardown`] after they
//! are gone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::clean::{NotOurs, undo_all};
use crate::guard::{Refusal, TakenDevice};
use crate::known_device::KnownDevice;
use crate::ledger::{Ledger, LedgerError};
use crate::placement::{PlacementTarget, RawDevice};
use crate::plan::{DelayedBy, LayoutPlan, Obstacle, PlannedTarget, ProvisionPlan};
use crate::record::Record;
use crate::steps::{DeviceName, ReadyDevice, Site, Step, StepError, ThinVolume, Workshop};
use spindle_system::{BlockDeviceNode, SystemTree};

/// Why a layout was not made.
#[derive(Debug, thiserror::Error)]
pub enum ProvisionError {
    /// The plan says so.
    #[error(transparent)]
    Obstacle(Obstacle),
    /// A step failed.
    #[error("could not {step}: {source}")]
    Step {
        /// The step, as in the plan.
        step: String,
        /// Why.
        source: StepError,
    },
    /// Another layout met a device that is no longer the one that was examined: then nothing more is made.
    #[error("nothing more was made: {reason}")]
    Ended {
        /// What that layout met.
        reason: String,
    },
    /// A step failed that layouts share.
    #[error("a layout that shares its devices failed: {reason}")]
    Shared {
        /// Step and reason.
        reason: String,
    },
}

impl ProvisionError {
    /// Says so if a device was no longer the one that was examined.
    fn changed(&self) -> Option<String> {
        match self {
            ProvisionError::Step {
                source: StepError::Refused(Refusal::Changed { .. }),
                ..
            } => Some(self.to_string()),
            _ => None,
        }
    }
}

/// A layout that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provisioned {
    /// Its name in the experiment.
    pub name: String,
    /// Where its database may be: a directory, or devices (files that stand in for them, without root).
    pub target: PlacementTarget,
    /// From the devices up, in words.
    pub description: String,
    /// What delays its I/O, if that was asked for.
    pub delayed_by: Option<DelayedBy>,
}

/// The layouts of a run, for as long as they exist. Dropping it takes them away as [`Self::teardown`] does, but
/// silently.
#[derive(Debug)]
pub struct Provision {
    ledger: Arc<Ledger>,
    tree: SystemTree,
    /// What the layouts stand on stays the device it is as long as it is open here.
    devices: BTreeMap<DeviceName, ReadyDevice>,
    /// Devices handed out as they are: no other process may take them.
    taken: BTreeMap<DeviceName, TakenDevice>,
    layouts: Vec<Result<Provisioned, ProvisionError>>,
    /// See [`Self::changed`], of what layouts share.
    shared_changed: Option<String>,
    /// Of each layout, the thin volume that its database lies on.
    thin_volumes: Vec<Option<ThinVolume>>,
    is_down: bool,
}

impl Provision {
    /// Does what `plan` says. `note` hears each step before it is done. Errors: the ledger cannot be kept; then nothing
    /// was done. What goes wrong with a layout is in [`Self::layouts`].
    pub fn carry_out(
        plan: &ProvisionPlan,
        ledger: Arc<Ledger>,
        tree: &SystemTree,
        note: &mut dyn FnMut(&str),
    ) -> Result<Provision, LedgerError> {
        let site = site(&ledger, tree)?;
        let mut provision = Provision {
            ledger: Arc::clone(&ledger),
            tree: tree.clone(),
            devices: BTreeMap::new(),
            taken: BTreeMap::new(),
            layouts: Vec::new(),
            shared_changed: None,
            thin_volumes: Vec::new(),
            is_down: false,
        };
        let mut workshop = Workshop {
            ledger: &ledger,
            site: &site,
            layout: None,
            devices: BTreeMap::new(),
            taken: BTreeMap::new(),
            nodes: None,
        };
        if let Some(unseen) = &plan.unseen {
            note(&format!(
                "continuing although these could not be checked: {unseen}"
            ));
        }
        let shared = carry_out_steps(&plan.shared, &mut workshop, note).err();
        for layout in &plan.layouts {
            let made = match (&shared, layout.obstacles.first()) {
                (_, Some(obstacle)) => Err(ProvisionError::Obstacle(obstacle.clone())),
                (Some(error), None) if layout.is_shared || error.changed().is_some() => {
                    Err(ProvisionError::Shared {
                        reason: error.to_string(),
                    })
                }
                _ if provision.changed().is_some() => Err(ProvisionError::Ended {
                    reason: provision.changed().unwrap_or_default(),
                }),
                _ => provision.make(layout, &mut workshop, note),
            };
            let thin_volume = made
                .is_ok()
                .then(|| ThinVolume::of(&layout.steps, &workshop));
            provision.thin_volumes.push(thin_volume.flatten());
            provision.layouts.push(made);
        }
        provision.shared_changed = shared.as_ref().and_then(ProvisionError::changed);
        provision.devices = workshop.devices;
        provision.taken = workshop.taken;
        // A thin volume goes and comes back under the same number when it is put back.
        for volume in provision.thin_volumes.iter().flatten() {
            provision.devices.remove(volume.device());
        }
        Ok(provision)
    }

    fn make(
        &self,
        plan: &LayoutPlan,
        workshop: &mut Workshop<'_>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Provisioned, ProvisionError> {
        workshop.layout = Some(plan.name.clone());
        let ready_before = workshop.devices.clone();
        let taken_before: Vec<DeviceName> = workshop.taken.keys().cloned().collect();
        let made = carry_out_steps(&plan.steps, workshop, note);
        if let Err(error) = made {
            // What is open cannot be removed.
            workshop.devices = ready_before;
            workshop.taken.retain(|name, _| taken_before.contains(name));
            // What cannot be undone stays in the ledger, and is told at the teardown.
            undo_all(
                &self.ledger,
                &self.tree,
                None,
                NotOurs::Forgotten,
                |entry| entry.layout.as_deref() == Some(plan.name.as_str()),
            );
            return Err(error);
        }
        let target = match &plan.target {
            PlannedTarget::Directory(path) => PlacementTarget::Directory(path.clone()),
            PlannedTarget::Devices(names) => {
                let device = |name| raw_device(workshop, name);
                let devices: Result<Vec<RawDevice>, StepError> = names.iter().map(device).collect();
                PlacementTarget::Devices(devices.map_err(|source| ProvisionError::Step {
                    step: "hand over the devices".to_owned(),
                    source,
                })?)
            }
        };
        Ok(Provisioned {
            name: plan.name.clone(),
            target,
            description: plan.description.clone(),
            delayed_by: plan.delayed_by,
        })
    }

    /// Each layout of the plan, in its order: made, or why not.
    pub fn layouts(&self) -> &[Result<Provisioned, ProvisionError>] {
        &self.layouts
    }

    /// A device that was no longer the one that was examined, in words, if one was met. The run must end then: it is
    /// unknown which device is meant.
    pub fn changed(&self) -> Option<String> {
        let errors = self.layouts.iter().filter_map(|made| made.as_ref().err());
        let of_layouts = errors.filter_map(ProvisionError::changed).next();
        of_layouts.or_else(|| self.shared_changed.clone())
    }

    /// Whether the database of a layout of the plan lies on a thin volume, which can be kept and put back; and where
    /// that is mounted.
    pub fn thin_volume(&self, layout: usize) -> Option<Option<&Path>> {
        let volume = self.thin_volumes.get(layout)?.as_ref()?;
        Some(volume.mounted_at())
    }

    /// Keeps the thin volume of a layout as it is now, if it has one. No file on it may be open. Errors: the pool is
    /// too small, or a tool's.
    pub fn keep(&self, layout: usize) -> Result<(), StepError> {
        self.on_thin_volume(layout, ThinVolume::keep)
    }

    /// Puts the thin volume of a layout back to what was kept. No file on it may be open. Errors: one is, or a tool's;
    /// then the volume is not to be used any more.
    pub fn roll_back(&self, layout: usize) -> Result<(), StepError> {
        self.on_thin_volume(layout, ThinVolume::roll_back)
    }

    fn on_thin_volume(
        &self,
        layout: usize,
        work: impl FnOnce(&ThinVolume, &Site) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        let Some(Some(volume)) = self.thin_volumes.get(layout) else {
            return Ok(());
        };
        work(volume, &site(&self.ledger, &self.tree)?)
    }

    /// Lets everything lie as a killed run does, whose descriptors the kernel closes: for tests of what is found then.
    #[doc(hidden)]
    pub fn abandon(mut self) {
        self.is_down = true;
    }

    /// Takes everything away, last made first. Returns what could not be, or was no longer the run's, in words; what
    /// could not be stays in the ledger for `spindle clean`.
    pub fn teardown(mut self) -> Vec<String> {
        self.take_away()
    }

    fn take_away(&mut self) -> Vec<String> {
        self.is_down = true;
        self.taken.clear();
        self.devices.clear();
        let undone = undo_all(
            &self.ledger,
            &self.tree,
            None,
            NotOurs::Forgotten,
            |entry| {
                !matches!(
                    entry.record,
                    Record::RunDirectory(_) | Record::ControlGroup(_) | Record::ServerSchema(_)
                )
            },
        );
        [undone.left, undone.not_ours].concat()
    }
}

impl Provision {
    /// Devices that were claimed are going to be written from their first byte to their last, and keep no stamp.
    /// Errors: the ledger's.
    pub fn gives_up_stamps(&self) -> Result<(), LedgerError> {
        for entry in self.ledger.entries() {
            if let Record::ClaimedDevice(claimed) = &entry.record {
                let record = claimed.without_stamp().into();
                self.ledger.note(entry.layout.as_deref(), record)?;
                self.ledger.gone(entry.number)?;
            }
        }
        Ok(())
    }
}

impl Drop for Provision {
    fn drop(&mut self) {
        if !self.is_down {
            // The error cannot be reported; the ledger keeps what is left.
            self.take_away();
        }
    }
}

fn site(ledger: &Ledger, tree: &SystemTree) -> Result<Site, LedgerError> {
    Ok(Site {
        tree: tree.clone(),
        tools: ledger.tools()?,
        boot_id: ledger.heading().boot_id.clone(),
        is_of_living_run: ledger.is_of_living_run(),
        is_going_on: true,
        last_touched: ledger.last_touched(),
        nodes: ledger.nodes(),
        drop_schema: None,
        emptied: Default::default(),
    })
}

/// A device, or the file that stands in for one, with its size.
fn raw_device(workshop: &Workshop<'_>, name: &DeviceName) -> Result<RawDevice, StepError> {
    let ready = workshop.device(name)?;
    let path = ready.path.clone();
    let tree = &workshop.site.tree;
    let measured = |mut file: &File| {
        let size = file.seek(SeekFrom::End(0));
        size.map_err(|error| StepError::system("measure", &path, error))
    };
    let (device, bytes) = match (&ready.held, &ready.file) {
        (Some(held), _) => {
            let node = BlockDeviceNode::of(tree, held.appearance().number);
            let is_mapped = node.is_some_and(|node| node.mapped_name().is_some());
            let device = held.known_at(path.clone());
            // A thin volume that was put back has its number, but is another device.
            let device = if is_mapped {
                device.by_number()
            } else {
                device
            };
            (device, measured(held.file())?)
        }
        (None, Some(file)) => {
            let device = KnownDevice::of(file, path.clone(), &path);
            (device?, measured(file)?)
        }
        (None, None) => return Err(StepError::NoSuchDevice { name: name.clone() }),
    };
    Ok(RawDevice { device, bytes })
}

fn carry_out_steps(
    steps: &[Step],
    workshop: &mut Workshop<'_>,
    note: &mut dyn FnMut(&str),
) -> Result<(), ProvisionError> {
    for step in steps {
        let words = step.to_string();
        note(&words);
        let carried_out = step
            .carry_out(workshop)
            .and_then(|()| Ok(workshop.ledger.touch()?));
        carried_out.map_err(|source| ProvisionError::Step {
            step: words,
            source,
        })?;
    }
    Ok(())
}
