//! The databases of a run: for each shape of database one golden copy, loaded by the engine; for each place and file
//! manager one image of it, which all layouts that agree in these share, so that they differ in nothing else. All of
//! it lies in directories of the run's own and goes away with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::kernel::{self, EngineError};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::{
    ChangedBlocks, DataDirectory, DatabaseFiles, FileManager, Golden, Image, ImageSpec,
    LayoutError, Placement, RawSpace, RestoreMethod, RestoreReport, Shape, Target, Verify,
};

use super::replay::RunState;
use crate::experiment::{AccessPath, Caching, Database, Experiment, Method, RestoreVerify};
use crate::observe::SystemFiles;
use crate::observe::block_device::DeviceNumber;
use crate::observe::caches::wait_until_quiet;
use crate::observe::machine::DataPath;
use crate::result::Restore;
use crate::trial::protocol::{
    WrittenRuns, double_write_bytes_of, engine_path, settings_of, workload_of,
};

/// How long the devices may take to come to rest before a trial.
const QUIET_LIMIT: Duration = Duration::from_secs(30);

/// Why a database cannot be made or put back.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Its files.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Loading it.
    #[error("loading the database: {0}")]
    Load(#[from] EngineError),
    /// A directory.
    #[error("{path}: {error}")]
    Place {
        /// The directory.
        path: PathBuf,
        /// The system's own words.
        error: std::io::Error,
    },
}

/// A database put back before a trial.
pub struct Restored {
    /// For the trial's record.
    pub restore: Restore,
    /// What was noticed, for people.
    pub warnings: Vec<String>,
}

struct MadeGolden {
    shape: Shape,
    golden: Arc<Golden>,
}

struct MadeImage {
    shape: Shape,
    place: PathBuf,
    redo_place: PathBuf,
    manager: FileManager,
    image: Image,
    /// What the last trial wrote; `None` when that is not known.
    changed: Option<ChangedBlocks>,
    devices: Vec<DeviceNumber>,
}

/// The databases of a run.
pub struct Images {
    verify: Verify,
    // In this order: files go before the directories they lie in.
    images: Vec<MadeImage>,
    goldens: Vec<MadeGolden>,
    of_layout: BTreeMap<usize, usize>,
    directories: BTreeMap<PathBuf, DataDirectory>,
}

impl Images {
    /// Makes the databases of the layouts `wanted`. `note` hears what is being done.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        note: &mut dyn FnMut(&str),
    ) -> Result<Images, ImageError> {
        let verify = match state.experiment.plan.restore_verify {
            RestoreVerify::Full => Verify::Full,
            RestoreVerify::Changed => Verify::Changed,
        };
        let mut images = Images {
            verify,
            images: Vec::new(),
            goldens: Vec::new(),
            of_layout: BTreeMap::new(),
            directories: BTreeMap::new(),
        };
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        images.make_directories(state, &wanted)?;
        images.check_space(&state.experiment, &wanted)?;
        for layout in wanted {
            let made = images.image_for(&state.experiment, layout, note)?;
            images.of_layout.insert(layout, made);
        }
        Ok(images)
    }

    /// The files of a layout's database.
    pub fn files(&self, layout: usize) -> DatabaseFiles {
        self.images[self.of_layout[&layout]].image.files().clone()
    }

    /// The devices beneath them, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        self.images[self.of_layout[&layout]].devices.clone()
    }

    /// Puts a layout's database back to the loaded state and waits until its devices are at rest.
    pub fn restore(&mut self, layout: usize) -> Result<Restored, ImageError> {
        let made = &mut self.images[self.of_layout[&layout]];
        let changed = made.changed.take();
        let mut warnings = Vec::new();
        let report = match made.image.restore(changed.as_ref(), self.verify) {
            Err(missed @ LayoutError::RestoreMissed { .. }) => {
                warnings.push(format!("restored a second time, block by block: {missed}"));
                made.image.restore(None, self.verify)?
            }
            report => report?,
        };
        made.changed = Some(ChangedBlocks::new());
        for device in &made.devices {
            let quiet = wait_until_quiet(&SystemFiles::default(), Some(*device), QUIET_LIMIT);
            if !quiet.reached {
                warnings.push(format!(
                    "device {device} was busy with something else before the trial"
                ));
            }
        }
        warnings.extend(warnings_of(&report));
        Ok(Restored {
            restore: restore_of(&report),
            warnings,
        })
    }

    /// A trial has written to a layout's database; `None` when it is not known where.
    pub fn written(&mut self, layout: usize, written: Option<&WrittenRuns>) {
        let made = &mut self.images[self.of_layout[&layout]];
        let Some(written) = written else {
            made.changed = None;
            return;
        };
        let named = made.image.files().named();
        let mut changed = ChangedBlocks::new();
        for (place, runs) in written {
            if let Some((name, _)) = named.iter().find(|(_, of)| *of == place) {
                let ranges = runs.iter().map(|(first, count)| *first..first + count);
                changed.insert(name.clone(), ranges.collect());
            }
        }
        made.changed = Some(changed);
    }

    /// Takes everything away. Returns what could not be, in words.
    pub fn remove(self) -> Vec<String> {
        let Images {
            images,
            goldens,
            directories,
            ..
        } = self;
        drop(images);
        drop(goldens);
        let mut leftovers = Vec::new();
        for (_, directory) in directories {
            let path = directory.path().display().to_string();
            match directory.remove() {
                Ok(removal) if removal.foreign.is_empty() => {}
                Ok(removal) => {
                    let foreign: Vec<String> = removal
                        .foreign
                        .iter()
                        .map(|path| path.display().to_string())
                        .collect();
                    leftovers.push(format!(
                        "{path} was left: it holds what is not ours: {}",
                        foreign.join(", ")
                    ));
                }
                Err(error) => leftovers.push(format!("{path} was left: {error}")),
            }
        }
        leftovers
    }

    fn make_directories(&mut self, state: &RunState, wanted: &[usize]) -> Result<(), ImageError> {
        for &layout in wanted {
            let (place, redo_place) = places(&state.experiment, layout)?;
            for place in [place, redo_place] {
                if self.directories.contains_key(&place) {
                    continue;
                }
                // Left by this run when it was killed.
                if let Some(leftover) = DataDirectory::leftover(&place, &state.run)? {
                    leftover.remove()?;
                }
                let directory = DataDirectory::create(&place, &state.run)?;
                self.directories.insert(place, directory);
            }
        }
        Ok(())
    }

    /// Refuses before anything is written when a place has too little room for what will be made there.
    fn check_space(&self, experiment: &Experiment, wanted: &[usize]) -> Result<(), ImageError> {
        let mut needed: BTreeMap<PathBuf, u64> = BTreeMap::new();
        let mut goldens: Vec<Shape> = Vec::new();
        let mut images: Vec<(Shape, PathBuf, PathBuf, FileManager)> = Vec::new();
        for &layout in wanted {
            let (place, redo_place) = places(experiment, layout)?;
            let shape = shape_of(experiment, &experiment.database_of(layout));
            let image = (
                shape.clone(),
                place.clone(),
                redo_place.clone(),
                manager_of(experiment, layout),
            );
            if !goldens.contains(&shape) {
                *needed.entry(place.clone()).or_default() += shape.total_bytes();
                goldens.push(shape.clone());
            }
            if !images.contains(&image) {
                let redo_bytes: u64 = shape.redo_bytes.iter().sum();
                *needed.entry(place).or_default() += shape.total_bytes() - redo_bytes;
                *needed.entry(redo_place).or_default() += redo_bytes;
                images.push(image);
            }
        }
        for (place, bytes) in needed {
            self.directories[&place].check_space(bytes)?;
        }
        Ok(())
    }

    /// The image for a layout, made if no other layout has made it.
    fn image_for(
        &mut self,
        experiment: &Experiment,
        layout: usize,
        note: &mut dyn FnMut(&str),
    ) -> Result<usize, ImageError> {
        let (place, redo_place) = places(experiment, layout)?;
        let database = experiment.database_of(layout);
        let shape = shape_of(experiment, &database);
        let manager = manager_of(experiment, layout);
        let same = |made: &MadeImage| {
            (&made.shape, &made.place, &made.redo_place, made.manager)
                == (&shape, &place, &redo_place, manager)
        };
        if let Some(made) = self.images.iter().position(same) {
            return Ok(made);
        }
        let golden = self.golden_for(experiment, &database, &shape, &place, note)?;
        let number = self.images.len() as u32 + 1;
        let directory = self.directories[&place].make_image_directory(number)?;
        let redo_directory = if redo_place == place {
            directory.clone()
        } else {
            self.directories[&redo_place].make_image_directory(number)?
        };
        let placement = Placement {
            redo: Target::Directory(redo_directory),
            ..Placement::in_directory(&directory)
        };
        let files = DatabaseFiles::place(&shape, &placement, &mut RawSpace::default())?;
        note(&format!(
            "making the database files for {} ({})",
            experiment.layouts[layout].name,
            match manager {
                FileManager::Plain => "plain files",
                FileManager::Odm => "preallocated, committed whole",
            }
        ));
        let image = Image::provision(&golden, &ImageSpec { files, manager })?;
        let devices = devices_of([&place, &redo_place]);
        self.images.push(MadeImage {
            shape,
            place,
            redo_place,
            manager,
            image,
            changed: Some(ChangedBlocks::new()),
            devices,
        });
        Ok(self.images.len() - 1)
    }

    /// The golden copy of a shape, loaded if there is none yet.
    fn golden_for(
        &mut self,
        experiment: &Experiment,
        database: &Database,
        shape: &Shape,
        place: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Arc<Golden>, ImageError> {
        if let Some(made) = self.goldens.iter().find(|made| made.shape == *shape) {
            return Ok(Arc::clone(&made.golden));
        }
        let data_bytes: u64 = shape.data_bytes.iter().sum();
        note(&format!("loading {} MiB of data", data_bytes >> 20));
        let number = self.goldens.len() as u32 + 1;
        let directory = self.directories[place].make_golden_directory(number)?;
        let loading = Golden::create(&directory, shape, experiment.seed)?;
        load(experiment, database, loading.files())?;
        let golden = loading.seal()?;
        self.goldens.push(MadeGolden {
            shape: shape.clone(),
            golden: Arc::clone(&golden),
        });
        Ok(golden)
    }
}

/// Has the engine make and load the database in the golden copy's files.
fn load(
    experiment: &Experiment,
    database: &Database,
    files: &DatabaseFiles,
) -> Result<(), EngineError> {
    let env: Arc<dyn Env> = RealEnv::new(experiment.seed);
    let workload = workload_of(&experiment.workload, database);
    let path = AccessPath {
        caching: Caching::Buffered,
        method: Method::Sync,
        slaves: 0,
    };
    let clients = clients_max(experiment);
    // What trials ask of their devices is not asked of the golden copy's; it is shut down in order.
    let settings = kernel::Settings {
        torn_blocks: kernel::TornBlocks::Images,
        ..settings_of(database)
    };
    let path = engine_path(path, database, None);
    block_on(kernel::create_and_load(
        &env,
        files,
        path,
        &settings,
        &*workload,
        experiment.seed,
        clients,
    ))
}

fn shape_of(experiment: &Experiment, database: &Database) -> Shape {
    // Layouts that differ only in their writers share their files.
    let layouts = 0..experiment.layouts.len();
    let writers = layouts.map(|layout| experiment.database_of(layout).writers);
    let writers = writers.max().unwrap_or(database.writers);
    let shape = kernel::files_of(
        &*workload_of(&experiment.workload, database),
        clients_max(experiment),
        database.block_size_bytes as usize,
        database.datafiles as usize,
        database.log_files as usize,
        database.log_file_size_bytes,
    );
    Shape {
        double_write_bytes: double_write_bytes_of(database, writers),
        ..shape
    }
}

/// The highest load level.
fn clients_max(experiment: &Experiment) -> usize {
    experiment
        .workload
        .clients
        .iter()
        .copied()
        .max()
        .unwrap_or(1) as usize
}

fn manager_of(experiment: &Experiment, layout: usize) -> FileManager {
    match experiment.layouts[layout].io.method {
        Method::Odm => FileManager::Odm,
        Method::Sync | Method::Slaves | Method::Async | Method::Libaio => FileManager::Plain,
    }
}

/// Where a layout's data and redo go, without symbolic links.
fn places(experiment: &Experiment, layout: usize) -> Result<(PathBuf, PathBuf), ImageError> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| ImageError::Place {
            path: path.to_path_buf(),
            error,
        })
    };
    let place = real(&experiment.layouts[layout].path)?;
    let redo_place = match &experiment.database_of(layout).redo_path {
        Some(path) => real(path)?,
        None => place.clone(),
    };
    Ok((place, redo_place))
}

fn devices_of(places: [&PathBuf; 2]) -> Vec<DeviceNumber> {
    let files = SystemFiles::default();
    let device = |place: &PathBuf| {
        DataPath::capture(&files, place)
            .device
            .map(|device| device.number)
    };
    let mut devices: Vec<DeviceNumber> = places.into_iter().filter_map(device).collect();
    devices.dedup();
    devices
}

fn restore_of(report: &RestoreReport) -> Restore {
    let method = match report.method {
        RestoreMethod::Listed => "changed blocks copied back in place",
        RestoreMethod::Compared => "every block compared, changed ones copied back in place",
    };
    Restore {
        method: method.to_string(),
        changed_blocks: report.changed_blocks,
        verified: report.verified == Verify::Full,
        duration_ms: report.duration_us / 1000,
    }
}

fn warnings_of(report: &RestoreReport) -> Vec<String> {
    let mut warnings = Vec::new();
    if !report.moved_files.is_empty() {
        warnings.push(format!(
            "restoring moved {} on the device (a file system that copies on write): trials pay for that",
            report.moved_files.join(", ")
        ));
    }
    if report.resident_pages > 0 {
        warnings.push(format!(
            "{} pages stayed in the page cache before the trial",
            report.resident_pages
        ));
    }
    warnings
}
