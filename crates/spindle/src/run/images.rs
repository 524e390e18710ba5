//! The databases of a run: for each shape of database one golden copy, loaded by the engine; for each place and file
//! manager one image of it, which all layouts that agree in these share, so that they differ in nothing else. All of
//! it lies in directories of the run's own and goes away with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::kernel::{self, EngineError};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::ledger::EntryNumber;
use spindle_layout::steps::RunDirectory;
use spindle_layout::{
    ChangedBlocks, DataDirectory, DatabaseFiles, FileManager, Golden, Image, ImageSpec,
    LayoutError, Ledger, LedgerError, Place, Placement, RawSpace, RestoreMethod, RestoreReport,
    Shape, Verify, check_space,
};

use super::grounds::Grounds;
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
    /// What the layout stands on.
    #[error("{0}")]
    Ground(String),
    /// What is made could not be noted.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
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
    /// Directories are those in which the run's own are.
    placement: Placement,
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
    space: RawSpace,
    directories: BTreeMap<PathBuf, (DataDirectory, EntryNumber)>,
    ledger: Arc<Ledger>,
}

/// What a layout's database is made of.
struct Wanted {
    shape: Shape,
    placement: Placement,
    manager: FileManager,
}

impl Images {
    /// Makes the databases of the layouts `wanted` on what they stand on. `note` hears what is being done. Returns the
    /// layouts made by Spindle that turned out not to hold theirs, with the reason; what goes wrong elsewhere is an error.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        grounds: &Grounds,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Images, Vec<(usize, String)>), ImageError> {
        let verify = match state.experiment.plan.restore_verify {
            RestoreVerify::Full => Verify::Full,
            RestoreVerify::Changed => Verify::Changed,
        };
        let mut images = Images {
            verify,
            images: Vec::new(),
            goldens: Vec::new(),
            of_layout: BTreeMap::new(),
            space: RawSpace::default(),
            directories: BTreeMap::new(),
            ledger: Arc::clone(grounds.ledger()),
        };
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let golden_place = golden_place(&state.experiment, &wanted, grounds)?;
        images.make_directory(&golden_place, None, &state.run)?;
        images.check_space(state, &wanted, grounds, &golden_place)?;
        let mut failed = Vec::new();
        for layout in wanted {
            match images.image_for(state, layout, grounds, &golden_place, note) {
                Ok(made) => {
                    images.of_layout.insert(layout, made);
                }
                Err(error) if grounds.is_made(layout) => failed.push((layout, error.to_string())),
                Err(error) => return Err(error),
            }
        }
        Ok((images, failed))
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
            ledger,
            ..
        } = self;
        drop(images);
        drop(goldens);
        let mut leftovers = Vec::new();
        for (_, (directory, number)) in directories {
            let path = directory.path().display().to_string();
            match directory.remove() {
                Ok(removal) if removal.foreign.is_empty() => {
                    let noted = ledger.gone(number);
                    leftovers.extend(noted.err().map(|error| error.to_string()));
                }
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

    /// Makes the run's directory in a place, noted before it is there.
    fn make_directory(
        &mut self,
        place: &Path,
        layout: Option<&str>,
        run: &str,
    ) -> Result<(), ImageError> {
        if self.directories.contains_key(place) {
            return Ok(());
        }
        // Left by this run when it was killed.
        if let Some(leftover) = DataDirectory::leftover(place, run)? {
            leftover.remove()?;
        }
        let noted = RunDirectory {
            parent: place.to_path_buf(),
            run: run.to_string(),
        };
        let number = self.ledger.note(layout, noted.into())?;
        let directory = DataDirectory::create(place, run)?;
        self.directories
            .insert(place.to_path_buf(), (directory, number));
        Ok(())
    }

    /// Refuses before anything is written when a place has too little room for what will be made there. Directories that
    /// Spindle made hold one layout, which fails alone.
    fn check_space(
        &self,
        state: &RunState,
        wanted: &[usize],
        grounds: &Grounds,
        golden_place: &Path,
    ) -> Result<(), ImageError> {
        let mut needed: BTreeMap<PathBuf, u64> = BTreeMap::new();
        let mut goldens: Vec<Shape> = Vec::new();
        let mut images: Vec<Wanted> = Vec::new();
        for &layout in wanted {
            let Ok(image) = wanted_image(&state.experiment, layout, grounds) else {
                continue;
            };
            if !goldens.contains(&image.shape) {
                *needed.entry(golden_place.to_path_buf()).or_default() += image.shape.total_bytes();
                goldens.push(image.shape.clone());
            }
            let is_same = |other: &Wanted| other.is_same(&image);
            if !images.iter().any(is_same) && !grounds.is_made(layout) {
                for (place, bytes) in image.placement.directories(&image.shape) {
                    *needed.entry(place).or_default() += bytes;
                }
            }
            images.push(image);
        }
        for (place, bytes) in needed {
            check_space(&place, bytes)?;
        }
        Ok(())
    }

    /// The image for a layout, made if no other layout has made it.
    fn image_for(
        &mut self,
        state: &RunState,
        layout: usize,
        grounds: &Grounds,
        golden_place: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<usize, ImageError> {
        let experiment = &state.experiment;
        let wanted = wanted_image(experiment, layout, grounds)?;
        let same = |made: &MadeImage| {
            (&made.shape, &made.placement, made.manager)
                == (&wanted.shape, &wanted.placement, wanted.manager)
        };
        if let Some(made) = self.images.iter().position(same) {
            return Ok(made);
        }
        let database = experiment.database_of(layout);
        let golden = self.golden_for(experiment, &database, &wanted.shape, golden_place, note)?;
        let name = &experiment.layouts[layout].name;
        let owner = grounds.is_made(layout).then_some(name.as_str());
        let number = self.images.len() as u32 + 1;
        let mut made: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let parents = wanted.placement.directories(&wanted.shape);
        for place in parents.into_keys() {
            self.make_directory(&place, owner, &state.run)?;
            let (directory, _) = &self.directories[&place];
            made.insert(place, directory.make_image_directory(number)?);
        }
        let inside = wanted
            .placement
            .within(&format!("image{number}/"), |place| made[place].clone());
        let files = DatabaseFiles::place(&wanted.shape, &inside, &mut self.space)?;
        note(&format!(
            "making the database files for {name} ({})",
            match (files.is_raw(), wanted.manager) {
                (true, _) => "without a file system",
                (false, FileManager::Plain) => "plain files",
                (false, FileManager::Odm) => "preallocated, committed whole",
            }
        ));
        let devices = devices_of(&files);
        let spec = ImageSpec {
            files,
            manager: wanted.manager,
        };
        let image = Image::provision(&golden, &spec)?;
        self.images.push(MadeImage {
            shape: wanted.shape,
            placement: wanted.placement,
            manager: wanted.manager,
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
        let (directory, _) = &self.directories[place];
        let directory = directory.make_golden_directory(number)?;
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

impl Wanted {
    fn is_same(&self, other: &Wanted) -> bool {
        (&self.shape, &self.placement, self.manager)
            == (&other.shape, &other.placement, other.manager)
    }
}

fn wanted_image(
    experiment: &Experiment,
    layout: usize,
    grounds: &Grounds,
) -> Result<Wanted, ImageError> {
    let placement = grounds
        .placement(experiment, layout)
        .map_err(ImageError::Ground)?;
    let shape = shape_of(experiment, &experiment.database_of(layout));
    // A file manager has nothing to do where there is no file system.
    let manager = if placement.directories(&shape).is_empty() {
        FileManager::Plain
    } else {
        manager_of(experiment, layout)
    };
    Ok(Wanted {
        shape,
        placement,
        manager,
    })
}

/// Where golden copies go: beside the data of the first layout that is a directory; else where the experiment says, or
/// where the run was started.
fn golden_place(
    experiment: &Experiment,
    wanted: &[usize],
    grounds: &Grounds,
) -> Result<PathBuf, ImageError> {
    let is_there =
        |layout: &&usize| !grounds.is_made(**layout) && experiment.layouts[**layout].made.is_none();
    let path = match (&experiment.plan.golden_path, wanted.iter().find(is_there)) {
        (Some(path), _) => path.as_path(),
        (None, Some(layout)) => &experiment.layouts[*layout].path,
        (None, None) => Path::new("."),
    };
    path.canonicalize().map_err(|error| ImageError::Place {
        path: path.to_path_buf(),
        error,
    })
}

/// The block devices beneath a database's files, where known.
fn devices_of(files: &DatabaseFiles) -> Vec<DeviceNumber> {
    let system = SystemFiles::default();
    let places: BTreeSet<&Path> = files
        .named()
        .into_iter()
        .flat_map(|(_, place)| match place {
            Place::File(path) => vec![path.parent().unwrap_or(path)],
            _ => place.paths().iter().map(PathBuf::as_path).collect(),
        })
        .collect();
    let device = |place: &Path| {
        DataPath::capture(&system, place)
            .device
            .map(|device| device.number)
    };
    let mut devices: Vec<DeviceNumber> = places.into_iter().filter_map(device).collect();
    devices.sort_unstable();
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
