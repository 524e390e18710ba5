//! What the layouts of a run stand on: existing directories, and what Spindle makes for the run and removes after it.
//! Layouts that are made alike (they differ in access path or database only) stand on the same. Here the words of the
//! experiment (`devices`, `placement`) become targets for files.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spindle_engines::EngineError;
use spindle_io::real::{Caching, Queue, RealEnv, block_on};
use spindle_io::{Env, disk_group};
use spindle_layout::clean::clean_run;
use spindle_layout::guard::{RUN_GROUP, run_disk};
use spindle_layout::ledger;
use spindle_layout::plan::{DelayedBy, LookedAt};
use spindle_layout::spec::DeviceSpec;
use spindle_layout::steps::StepError;
use spindle_layout::{
    DiskGroupTarget, Facts, GroupStripes, KnownDevice, LayoutError, LayoutSpec, Ledger,
    LedgerError, Placement, PlacementTarget, Provision, ProvisionPlan,
};
use spindle_system::SystemTree;
use spindle_text::file_kind::FileKind;

use super::replay::RunState;
use super::schemas::drop_recorded;
use spindle_experiment::{Delay, DiskGroupSpec, Experiment, Layout, PlacedOn, Striping, specs_of};

/// Why nothing can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// What is made could not be noted, so nothing was made.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What the run left when it was killed still exists.
    #[error("what this run left when it ended cannot be removed: {0}; see `spindle clean`")]
    Leftover(String),
    /// A device is no longer the one that was examined.
    #[error("the run ends, for {0}")]
    Changed(String),
    /// There is no current directory.
    #[error("no current directory: {0}")]
    WorkingDirectory(io::Error),
}

/// What a layout stands on.
#[derive(Debug, Clone)]
struct LayoutTarget {
    target: PlacementTarget,
    /// From the devices up, when Spindle made it.
    description: Option<String>,
    /// What delays its I/O, if that was asked for.
    delayed_by: Option<DelayedBy>,
}

/// What the layouts of a run stand on.
pub struct LayoutTargets {
    /// By layout; the reason when it could not be made.
    by_layout: BTreeMap<usize, Result<LayoutTarget, EngineError>>,
    provision: Option<Provision>,
    /// By layout, its number among what was made.
    made: BTreeMap<usize, usize>,
    ledger: Arc<Ledger>,
}

impl LayoutTargets {
    /// Removes what this run left when it was killed, then makes what the layouts `wanted` stand on, and those that
    /// their files are placed on, of the devices that were `looked_at`, if they were. `note` hears what is being done.
    /// What is wrong with one layout is found in [`LayoutTargets::placement`]; the others continue.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        looked_at: &mut LookedAt,
        note: &mut dyn FnMut(&str),
    ) -> Result<LayoutTargets, TargetError> {
        let (directory, tree) = (ledger::default_directory(), SystemTree::default());
        if let Some(cleaned) = clean_run(&directory, &state.run, &tree, Some(drop_recorded))? {
            cleaned
                .removed
                .iter()
                .for_each(|what| note(&format!("took away {what}, left by this run")));
            if !cleaned.left.is_empty() {
                return Err(TargetError::Leftover(cleaned.left.join("; ")));
            }
        }
        let ledger = Arc::new(Ledger::begin(&directory, &state.run, &tree)?);
        let mut targets = LayoutTargets {
            by_layout: BTreeMap::new(),
            provision: None,
            made: BTreeMap::new(),
            ledger,
        };
        let layouts = with_placements(&state.experiment, wanted);
        let specs =
            specs_of(&state.experiment.layouts, &layouts).map_err(TargetError::WorkingDirectory)?;
        targets.take_directories(&state.experiment, &layouts);
        if !specs.is_empty() {
            let plan = plan_of(&specs, &state.run, &tree, looked_at)?;
            targets.make(&state.experiment, &specs, &plan, &tree, note)?;
        }
        Ok(targets)
    }

    fn take_directories(&mut self, experiment: &Experiment, layouts: &[usize]) {
        for &index in layouts {
            let layout = &experiment.layouts[index];
            if layout.made.is_none() && layout.address().is_none() {
                let delayed_by = layout.delay.map(|_| DelayedBy::Database {
                    why: "Spindle did not make what is beneath",
                });
                let of_layout = layout.path.canonicalize().map(|path| LayoutTarget {
                    target: PlacementTarget::Directory(path),
                    description: None,
                    delayed_by,
                });
                let of_layout = of_layout.map_err(|error| {
                    EngineError::unavailable(format!("{}: {error}", layout.path.display()))
                });
                self.by_layout.insert(index, of_layout);
            }
        }
    }

    fn make(
        &mut self,
        experiment: &Experiment,
        specs: &[(LayoutSpec, Vec<usize>)],
        plan: &ProvisionPlan,
        tree: &SystemTree,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), TargetError> {
        let provision = Provision::carry_out(plan, Arc::clone(&self.ledger), tree, note)?;
        if let Some(mut reason) = provision.changed() {
            for left in provision.teardown() {
                reason += &format!("; {left}");
            }
            return Err(TargetError::Changed(reason));
        }
        for (number, ((spec, layouts), made)) in specs.iter().zip(provision.layouts()).enumerate() {
            let of = &experiment.layouts[layouts[0]];
            let group = of.made.as_ref().and_then(|made| made.disk_group.as_ref());
            let of_layout = match made {
                Ok(made) => target_of(spec, group, &made.target).map(|target| LayoutTarget {
                    target,
                    description: Some(made.description.clone()),
                    delayed_by: made.delayed_by,
                }),
                Err(error) => Err(EngineError::unavailable(error.to_string())),
            };
            for layout in layouts {
                self.made.insert(*layout, number);
                let mut of_layout = of_layout.clone();
                let group = experiment.layouts[*layout].made.as_ref();
                let group = group.and_then(|made| made.disk_group.as_ref());
                if let (Ok(of_layout), Some(group)) = (&mut of_layout, group) {
                    of_layout.target = used_as(spec, group, &of_layout.target);
                }
                self.by_layout.insert(*layout, of_layout);
            }
        }
        self.provision = Some(provision);
        Ok(())
    }

    /// The directories and devices of these layouts, each once.
    pub fn paths(&self, layouts: &[usize]) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for layout in layouts {
            let of = self.target(*layout).map(PlacementTarget::paths);
            paths.extend(of.into_iter().flatten().map(Path::to_path_buf));
        }
        paths.sort();
        paths.dedup();
        paths
    }

    /// What is made, for noting more of it.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// From the devices up, when Spindle made it.
    pub fn description(&self, layout: usize) -> Option<&str> {
        let of_layout = self.by_layout.get(&layout)?.as_ref().ok()?;
        of_layout.description.as_deref()
    }

    /// Whether Spindle made what the layout stands on.
    pub fn is_made(&self, layout: usize) -> bool {
        self.description(layout).is_some()
    }

    /// What delays the I/O of a layout, if that was asked for.
    pub fn delayed_by(&self, layout: usize) -> Option<DelayedBy> {
        self.by_layout.get(&layout)?.as_ref().ok()?.delayed_by
    }

    /// How much longer the database is to make the I/O of a layout's datafiles, and that of its redo, where nothing
    /// beneath them does.
    pub fn delays(&self, experiment: &Experiment, layout: usize) -> (Option<Delay>, Option<Delay>) {
        experiment.delays_of(layout, |on| {
            self.delayed_by(on) == Some(DelayedBy::DeviceMapper)
        })
    }

    /// The thin volumes that the files of a layout lie on: its own and those of layouts they are placed on.
    pub fn thin_volumes(&self, experiment: &Experiment, layout: usize) -> Vec<usize> {
        let placed = &experiment.layouts[layout].placement;
        let is_beneath = |index: &usize| {
            *index == layout
                || placed
                    .layouts()
                    .any(|name| name == experiment.layouts[*index].name)
        };
        let layouts = (0..experiment.layouts.len()).filter(is_beneath);
        let volumes = layouts.filter_map(|layout| self.made.get(&layout));
        let provision = self.provision.as_ref();
        let is_thin = |volume: &&usize| provision?.thin_volume(**volume).map(|_| ());
        volumes
            .filter(|volume| is_thin(volume).is_some())
            .copied()
            .collect()
    }

    /// Where a thin volume is mounted.
    pub fn mounted_at(&self, volume: usize) -> Option<&Path> {
        self.provision.as_ref()?.thin_volume(volume)?
    }

    /// Keeps a thin volume as it is now: see [`Provision::keep`].
    ///
    /// # Errors
    /// See there.
    pub fn keep(&self, volume: usize) -> Result<(), StepError> {
        self.provision
            .as_ref()
            .map_or(Ok(()), |made| made.keep(volume))
    }

    /// Puts a thin volume back to what was kept: see [`Provision::roll_back`].
    ///
    /// # Errors
    /// See there.
    pub fn roll_back(&self, volume: usize) -> Result<(), StepError> {
        self.provision
            .as_ref()
            .map_or(Ok(()), |made| made.roll_back(volume))
    }

    /// Where each kind of file of a layout goes; or why the layout cannot be used.
    pub fn placement(
        &self,
        experiment: &Experiment,
        layout: usize,
    ) -> Result<Placement, EngineError> {
        let of = &experiment.layouts[layout];
        let own = self.target(layout)?;
        let rest = without_devices(own, of);
        let mut placement = Placement::one(&rest);
        if let Some(path) = experiment.database_of(layout).spec.redo_path() {
            let path = path.canonicalize();
            placement.redo = PlacementTarget::Directory(
                path.map_err(|error| EngineError::unavailable(error.to_string()))?,
            );
        }
        let mut temp = None;
        for (kind, on) in of.placement.kinds() {
            let target = self.placed_on(experiment, layout, kind, on)?;
            match kind {
                FileKind::Control => placement.control = target,
                FileKind::Redo => placement.redo = target,
                FileKind::Undo => placement.undo = target,
                FileKind::Data => placement.data = target,
                FileKind::Temp => temp = Some(target),
                // Those of the embedded database lie with its tables.
                FileKind::Index => {}
            }
        }
        placement.temp = temp.unwrap_or_else(|| placement.data.clone());
        Ok(placement)
    }

    /// Where each kind of file of a server's database goes; or why the layout cannot be used.
    pub fn places(
        &self,
        experiment: &Experiment,
        layout: usize,
    ) -> Result<Vec<(FileKind, PlacementTarget)>, EngineError> {
        let of = &experiment.layouts[layout];
        let placement = self.placement(experiment, layout)?;
        let index = match &of.placement.index {
            Some(on) => self.placed_on(experiment, layout, FileKind::Index, on)?,
            None => placement.data.clone(),
        };
        Ok(vec![
            (FileKind::Index, index),
            (FileKind::Temp, placement.temp),
            (FileKind::Data, placement.data),
            (FileKind::Redo, placement.redo),
            (FileKind::Undo, placement.undo),
        ])
    }

    /// What files of one kind are put on that are placed elsewhere than on the layout itself.
    fn placed_on(
        &self,
        experiment: &Experiment,
        layout: usize,
        kind: FileKind,
        on: &PlacedOn,
    ) -> Result<PlacementTarget, EngineError> {
        match on {
            PlacedOn::Layout(name) => {
                let mut layouts = experiment.layouts.iter();
                let index = layouts.position(|layout| layout.name == *name);
                let index = index.expect("placements were checked when the experiment was read");
                let target = self.target(index);
                Ok(target
                    .map_err(|reason| {
                        EngineError::failed(format!("{name}, where {kind} goes"), reason)
                    })?
                    .clone())
            }
            PlacedOn::Devices(devices) => Ok(only_devices(
                self.target(layout)?,
                &experiment.layouts[layout],
                devices,
            )),
        }
    }

    fn target(&self, layout: usize) -> Result<&PlacementTarget, EngineError> {
        match self.by_layout.get(&layout) {
            Some(Ok(of_layout)) => Ok(&of_layout.target),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err(EngineError::unavailable("it was not made")),
        }
    }

    /// Whether every device is still the one that was looked at.
    ///
    /// # Errors
    /// [`TargetError::Changed`]: one is not; then it is unknown which one is meant.
    pub fn check_devices(&self) -> Result<(), TargetError> {
        let mut by_layout = self.by_layout.values().flatten();
        let checked = by_layout.try_for_each(|of_layout| of_layout.target.check_devices());
        checked.map_err(|error| TargetError::Changed(error.to_string()))
    }

    /// Removes what was made. Returns what could not be, in words.
    pub fn teardown(self) -> Vec<String> {
        self.provision.map_or_else(Vec::new, Provision::teardown)
    }
}

/// How layouts are made, of the devices that were looked at before; those that were not are added to them.
fn plan_of(
    specs: &[(LayoutSpec, Vec<usize>)],
    run: &str,
    tree: &SystemTree,
    looked_at: &mut LookedAt,
) -> Result<ProvisionPlan, TargetError> {
    let wanted: Vec<LayoutSpec> = specs.iter().map(|(spec, _)| spec.clone()).collect();
    let plan = ProvisionPlan::of(&wanted, &Facts::gather(&wanted, tree), run);
    if let Some(changed) = plan.changed_since(looked_at) {
        return Err(TargetError::Changed(changed.to_string()));
    }
    looked_at.extend(plan.looked_at());
    Ok(plan)
}

/// These layouts and those that their files are placed on, in order.
fn with_placements(experiment: &Experiment, wanted: &[usize]) -> Vec<usize> {
    let is_needed = |index: &usize| {
        let name = experiment.layouts[*index].name.as_str();
        let mut placements = wanted.iter().map(|by| &experiment.layouts[*by].placement);
        wanted.contains(index)
            || placements.any(|placement| placement.layouts().any(|on| on == name))
    };
    (0..experiment.layouts.len()).filter(is_needed).collect()
}

/// What files are put on; a disk group is made here, of devices that were made ready for it.
pub fn target_of(
    spec: &LayoutSpec,
    group: Option<&DiskGroupSpec>,
    made: &PlacementTarget,
) -> Result<PlacementTarget, EngineError> {
    let (PlacementTarget::Devices(devices), Some(group)) = (made, group) else {
        return Ok(made.clone());
    };
    let disks: Vec<KnownDevice> = devices.iter().map(|of| of.device.clone()).collect();
    make_group(spec, group, &disks)?;
    let target = PlacementTarget::DiskGroup(DiskGroupTarget {
        disks,
        prefix: String::new(),
        stripes: GroupStripes::default(),
        preferred_failure_group: None,
    });
    Ok(used_as(spec, group, &target))
}

/// A disk group as a layout uses it: of several that stand on one group, each may stripe its files and read them as it
/// likes.
fn used_as(spec: &LayoutSpec, group: &DiskGroupSpec, target: &PlacementTarget) -> PlacementTarget {
    let PlacementTarget::DiskGroup(target) = target else {
        return target.clone();
    };
    let preferred = group.preferred_read.as_ref().and_then(|name| {
        let mut devices = spec.devices.iter();
        let written = devices.find(|device| device.path().ends_with(name))?;
        Some(failure_group_of(spec, group, written))
    });
    let is_fine = |striping| striping == Striping::Fine;
    PlacementTarget::DiskGroup(DiskGroupTarget {
        stripes: GroupStripes {
            control_fine: is_fine(group.striping.control),
            redo_fine: is_fine(group.striping.redo),
            undo_fine: is_fine(group.striping.undo),
            data_fine: is_fine(group.striping.data),
            temp_fine: is_fine(group.striping.temp),
        },
        preferred_failure_group: preferred,
        ..target.clone()
    })
}

/// The failure group of a device: the one that the experiment puts it into, or its own. Parts of a device fail
/// together.
fn failure_group_of(spec: &LayoutSpec, group: &DiskGroupSpec, device: &DeviceSpec) -> String {
    let is_in = |names: &Vec<String>| names.iter().any(|name| device.path().ends_with(name));
    match group.failure_groups.iter().position(is_in) {
        Some(number) => format!("failure_group{}", number + 1),
        None => {
            let number = spec.devices.iter().position(|other| other == device);
            format!("device{}", number.unwrap_or_default() + 1)
        }
    }
}

fn make_group(
    spec: &LayoutSpec,
    group: &DiskGroupSpec,
    disks: &[KnownDevice],
) -> Result<(), LayoutError> {
    let mut members = Vec::new();
    for (number, (written, disk)) in spec.device_of_each(disks).enumerate() {
        members.push(disk_group::Disk {
            name: run_disk(number),
            failure_group: Some(failure_group_of(spec, group, written)),
            device: Arc::new(disk.open(Caching::Direct, Queue::sync())?),
        });
    }
    let options = disk_group::DiskGroupOptions {
        allocation_unit_bytes: group.allocation_unit_bytes,
        redundancy: group.redundancy,
        identity: draw_identity().ok(),
    };
    let env: Arc<dyn Env> = RealEnv::new(u64::from(std::process::id()));
    block_on(async {
        let made = disk_group::DiskGroup::create(&env, RUN_GROUP, members, options).await?;
        made.dismount().await
    })?;
    Ok(())
}

/// The devices of a raw layout that are not set aside for some kind of file; all of them when none would be left.
fn without_devices(own: &PlacementTarget, layout: &Layout) -> PlacementTarget {
    let set_aside: Vec<PathBuf> = layout.placement.devices().map(PathBuf::from).collect();
    let rest = pick(own, layout, |path| {
        !set_aside.iter().any(|device| device == path)
    });
    match rest {
        PlacementTarget::Devices(devices) if devices.is_empty() => own.clone(),
        rest => rest,
    }
}

fn only_devices(own: &PlacementTarget, layout: &Layout, names: &[String]) -> PlacementTarget {
    pick(own, layout, |path| {
        names.iter().any(|name| Path::new(name) == path)
    })
}

/// The devices of a raw layout whose path in the experiment is wanted.
fn pick(
    own: &PlacementTarget,
    layout: &Layout,
    is_wanted: impl Fn(&Path) -> bool,
) -> PlacementTarget {
    let (PlacementTarget::Devices(devices), Some(made)) = (own, &layout.made) else {
        return own.clone();
    };
    let picked = made
        .spec
        .device_of_each(devices)
        .filter(|(written, _)| is_wanted(written.path()));
    PlacementTarget::Devices(picked.map(|(_, device)| device.clone()).collect())
}

/// An identity for a group, which no other has.
///
/// # Errors
/// The system has no chance to give.
pub fn draw_identity() -> io::Result<[u8; 16]> {
    let mut identity = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut identity)?;
    Ok(identity)
}
