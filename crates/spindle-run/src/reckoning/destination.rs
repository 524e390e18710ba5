//! What files will be put on, as far as the experiment tells, before any of it is made.

use std::path::{Path, PathBuf};

use spindle_layout::plan::PlannedTarget;
use spindle_layout::spec::LayoutKind;
use spindle_layout::{LayoutSpec, ProvisionPlan, RawDevice};

use spindle_experiment::{DiskGroupSpec, Experiment, PlacedOn};
use spindle_text::file_kind::FileKind;
use spindle_text::word::Word;

/// What files are put on.
#[derive(Debug, Clone, PartialEq)]
pub enum Destination {
    /// An existing directory.
    Directory(PathBuf),
    /// What Spindle makes.
    Made {
        /// Its number among that.
        number: usize,
        /// How it stripes and reads, if it is a disk group.
        group: Option<DiskGroupSpec>,
        /// Which of its devices, as they are written; none: those that are not set aside for other files.
        devices: Vec<String>,
    },
}

impl Destination {
    /// Whether files are made on it, by their names.
    pub fn has_file_system(&self, specs: &[(LayoutSpec, Vec<usize>)]) -> bool {
        match self {
            Destination::Directory(_) => true,
            Destination::Made { number, .. } => {
                matches!(specs[*number].0.kind, LayoutKind::FileSystem(_))
            }
        }
    }
}

/// What an experiment's files are put on: `specs` are what is made, with the layouts that stand on each.
#[derive(Clone, Copy)]
pub struct Destinations<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What is made.
    pub specs: &'a [(LayoutSpec, Vec<usize>)],
    /// How that is made.
    pub plan: &'a ProvisionPlan,
}

impl Destinations<'_> {
    /// What files of a kind are put on that the engine can have elsewhere than with its data.
    pub fn of(&self, layout: usize, kind: FileKind) -> Destination {
        let placement = &self.experiment.layouts[layout].placement;
        // Tempfiles follow the datafiles.
        let placed = match (kind, placement.of(kind)) {
            (FileKind::Temp, None) => placement.of(FileKind::Data),
            (_, placed) => placed,
        };
        match (kind, placed, self.experiment.redo_apart(layout)) {
            (FileKind::Redo, None, Some(path)) => directory(path),
            _ => self.placed(layout, placed),
        }
    }

    /// What files of a server are put on, of a kind that is not its tables, or its own files without a `kind`; `None`:
    /// they need a file system and have none.
    pub fn of_server(
        &self,
        layout: usize,
        kind: Option<FileKind>,
        placed_kinds: &[FileKind],
    ) -> Option<Destination> {
        let data = self.of(layout, FileKind::Data);
        let placement = &self.experiment.layouts[layout].placement;
        let follows_data =
            |kind| matches!(kind, FileKind::Index | FileKind::Temp) && placement.of(kind).is_none();
        if let Some(kind) = kind.filter(|kind| placed_kinds.contains(kind) && !follows_data(*kind))
        {
            let destination = self.of(layout, kind);
            if destination.has_file_system(self.specs) {
                return Some(destination);
            }
        }
        if data.has_file_system(self.specs) {
            return Some(data);
        }
        // Beside datafiles on devices, all else is with the control file or with redo.
        let homes = [FileKind::Control, FileKind::Redo].map(|kind| self.of(layout, kind));
        let mut homes = homes.into_iter();
        homes.find(|destination| destination.has_file_system(self.specs))
    }

    /// What each kind of file is put on: layouts that agree in this, and in their files, share an image.
    pub fn of_all_kinds(&self, layout: usize) -> Vec<Destination> {
        let kinds = FileKind::ALLOWED.iter();
        kinds.map(|(_, kind)| self.of(layout, *kind)).collect()
    }

    /// The raw devices that files lie on; `None` where they lie in a file system or a disk group.
    pub fn devices_of(&self, layout: usize, destination: &Destination) -> Option<Vec<RawDevice>> {
        let Destination::Made {
            number,
            group: None,
            devices,
        } = destination
        else {
            return None;
        };
        let (_, standing) = &self.specs[*number];
        let plan = &self.plan.layouts[*number];
        let PlannedTarget::Devices(names) = &plan.target else {
            return None;
        };
        let of = |(name, bytes): (&String, &u64)| RawDevice::reckoned(PathBuf::from(name), *bytes);
        let all: Vec<RawDevice> = names.iter().zip(&plan.room_bytes).map(of).collect();
        let of = &self.experiment.layouts[layout];
        let Some(made) = of.made.as_ref().filter(|_| standing.contains(&layout)) else {
            return Some(all);
        };
        let is_wanted = |path: &Path| match devices.is_empty() {
            true => !of.placement.devices().any(|name| Path::new(name) == path),
            false => devices.iter().any(|name| Path::new(name) == path),
        };
        let of_each = made.spec.device_of_each(&all);
        let wanted = of_each.filter(|(written, _)| is_wanted(written.path()));
        let wanted: Vec<RawDevice> = wanted.map(|(_, device)| device.clone()).collect();
        Some(if wanted.is_empty() { all } else { wanted })
    }

    fn placed(&self, layout: usize, on: Option<&PlacedOn>) -> Destination {
        let (beneath, devices) = match on {
            Some(PlacedOn::Layout(name)) => {
                let mut layouts = self.experiment.layouts.iter();
                let index = layouts.position(|other| other.name == *name);
                (index.unwrap_or(layout), Vec::new())
            }
            Some(PlacedOn::Devices(devices)) => (layout, devices.clone()),
            None => (layout, Vec::new()),
        };
        let of = &self.experiment.layouts[beneath];
        let mut specs = self.specs.iter();
        let number = specs.position(|(_, layouts)| layouts.contains(&beneath));
        match (number, &of.made) {
            (Some(number), Some(made)) => Destination::Made {
                number,
                group: made.disk_group.clone(),
                devices,
            },
            _ => directory(of.path.clone()),
        }
    }
}

fn directory(path: PathBuf) -> Destination {
    Destination::Directory(path.canonicalize().unwrap_or(path))
}
