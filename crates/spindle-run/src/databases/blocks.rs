//! Files of the embedded database, whose blocks are known: which shape of them a layout needs, its golden copy, loaded
//! by the engine, and the image of it that trials use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use spindle_engines::EngineError;
use spindle_engines::kernel;
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::{
    ChangedBlocks, DataDirectory, DatabaseFiles, FileManager, Golden, Image, ImageSpec, Kept,
    LayoutError, Place, Placement, Shape, check_space,
};

use super::{Databases, MadeDatabase, Making, OfLayout, devices_beneath};
use crate::layout_targets::LayoutTargets;
use crate::restored::DatabaseError;
use crate::trial::protocol::{KernelTrial, TrialDatabase, WrittenRuns};
use spindle_experiment::{
    AccessPath, Caching, DatabaseMemory, DatabaseSpec, Experiment, KernelSpec, Method, PutBack,
};
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::cgroup::GroupLimits;
use spindle_system::sampler::MemoryState;

/// What a layout's database is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BlockFiles {
    shape: Shape,
    /// Directories are those in which the run's own are.
    placement: Placement,
    manager: FileManager,
}

impl BlockFiles {
    /// What a layout needs; or why it cannot be had.
    fn by(
        spec: &KernelSpec,
        experiment: &Experiment,
        layout: usize,
        targets: &LayoutTargets,
    ) -> Result<BlockFiles, DatabaseError> {
        let placement = targets
            .placement(experiment, layout)
            .map_err(DatabaseError::Target)?;
        let shape = shape_of(experiment, layout, spec);
        // A file manager has nothing to do where there is no file system.
        let is_managed = !placement.directories(&shape).is_empty();
        let is_odm = experiment.layouts[layout].io.method.identifies_files();
        Ok(BlockFiles {
            shape,
            placement,
            manager: match is_managed && is_odm {
                true => FileManager::Odm,
                false => FileManager::Plain,
            },
        })
    }

    /// Bytes that it takes in each directory: what shares blocks with originals takes as much again when it is
    /// overwritten.
    fn directories(&self, put_back: PutBack) -> BTreeMap<PathBuf, u64> {
        let mut directories = self.placement.directories(&self.shape);
        if put_back == PutBack::Clones {
            directories.values_mut().for_each(|bytes| *bytes *= 2);
        }
        directories
    }
}

/// Refuses before anything is written when a place has too little room for what will be made there. Directories that
/// Spindle made hold one layout, which fails alone.
pub(super) fn check_room(making: &Making<'_>, layouts: &[usize]) -> Result<(), DatabaseError> {
    let experiment = making.experiment();
    let mut needed: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut goldens: Vec<Shape> = Vec::new();
    let mut images: Vec<(BlockFiles, PutBack)> = Vec::new();
    for (layout, spec) in kernels_of(experiment, layouts) {
        let Ok(files) = BlockFiles::by(spec, experiment, layout, making.targets) else {
            continue;
        };
        let image = (files, experiment.put_back(layout));
        let (files, put_back) = &image;
        if !goldens.contains(&files.shape) {
            let place = making.golden_place.clone();
            *needed.entry(place).or_default() += files.shape.total_bytes();
            goldens.push(files.shape.clone());
        }
        let is_shared = experiment.plan.interleave_ms.is_none() && images.contains(&image);
        if !is_shared && !making.targets.is_made(layout) {
            for (place, bytes) in files.directories(*put_back) {
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

/// Files of the embedded database, made for layouts that need the same.
pub(super) struct MadeBlocks {
    wanted: BlockFiles,
    pub put_back: PutBack,
    pub image: Box<Image>,
    /// What the last trial wrote; `None` when that is not known.
    pub changed: Option<ChangedBlocks>,
}

impl MadeBlocks {
    /// Whether both are made for the same.
    pub(super) fn is_alike(&self, other: &MadeBlocks) -> bool {
        self.wanted == other.wanted && self.put_back == other.put_back
    }
}

impl Databases {
    /// The embedded database for a layout, made if no other layout has made it.
    pub(super) fn kernel_for(
        &mut self,
        making: &mut Making<'_>,
        layout: usize,
        spec: &KernelSpec,
    ) -> Result<OfLayout, DatabaseError> {
        let experiment = making.experiment();
        let wanted = BlockFiles::by(spec, experiment, layout, making.targets)?;
        let put_back = experiment.put_back(layout);
        let is_shared = experiment.plan.interleave_ms.is_none();
        let there = self.found(|made| match &made.database {
            _ if !is_shared => None,
            MadeDatabase::Kernel(made) if made.wanted == wanted && made.put_back == put_back => {
                Some(made.image.files().clone())
            }
            _ => None,
        });
        let (made, files) = match there {
            Some(there) => there,
            None => {
                let image = self.block_image(making, (layout, spec), &wanted, put_back)?;
                let files = image.files().clone();
                let database = MadeDatabase::Kernel(MadeBlocks {
                    wanted,
                    put_back,
                    image: Box::new(image),
                    changed: Some(ChangedBlocks::new()),
                });
                let devices = devices_of(&files);
                (self.push(making, layout, database, devices), files)
            }
        };
        let (delay, redo_delay) = making.targets.delays(experiment, layout);
        let trial = TrialDatabase::Kernel(Box::new(KernelTrial {
            spec: spec.clone(),
            io: experiment.layouts[layout].io,
            delay,
            redo_delay,
            files,
        }));
        Ok(OfLayout { made, trial })
    }

    /// An image of what is wanted, in its own directories.
    fn block_image(
        &mut self,
        making: &mut Making<'_>,
        (layout, spec): (usize, &KernelSpec),
        wanted: &BlockFiles,
        put_back: PutBack,
    ) -> Result<Image, DatabaseError> {
        let golden = self.golden_for(making, (layout, spec), &wanted.shape)?;
        for (place, bytes) in wanted.directories(put_back) {
            self.directories.make(&place, making.owner(layout))?;
            if put_back == PutBack::Clones {
                check_space(&place, bytes)?;
            }
        }
        let name = making.experiment().layouts[layout].name.clone();
        let (space, mut made) = (self.space.clone(), Vec::new());
        let image = self.copy(making, (wanted, put_back), &golden, &name, &mut made);
        image.inspect_err(|_| {
            self.directories.take_back(&made);
            self.space = space;
        })
    }

    /// The next image, in its own directories, which are added to `made`.
    fn copy(
        &mut self,
        making: &mut Making<'_>,
        (wanted, put_back): (&BlockFiles, PutBack),
        golden: &Arc<Golden>,
        name: &str,
        made: &mut Vec<PathBuf>,
    ) -> Result<Image, DatabaseError> {
        let files = self.place_files(wanted, DataDirectory::make_image_directory, made)?;
        (making.note)(&format!(
            "making the database files for {name} ({})",
            match (files.is_raw(), wanted.manager) {
                (true, _) => "without a file system",
                (false, FileManager::Plain) => "plain files",
                (false, FileManager::Odm) => "preallocated, committed whole",
            }
        ));
        let spec = ImageSpec {
            files,
            manager: wanted.manager,
        };
        Ok(match put_back {
            PutBack::Clones => {
                let originals =
                    self.place_files(wanted, DataDirectory::make_original_directory, made)?;
                Image::provision_clones(golden, &spec, originals)?
            }
            PutBack::Copy | PutBack::ThinVolumes => Image::provision(golden, &spec)?,
        })
    }

    /// Where the files of the next image go, in its own directories, which are added to `made`.
    fn place_files(
        &mut self,
        wanted: &BlockFiles,
        make: impl Fn(&DataDirectory, u32) -> Result<PathBuf, LayoutError>,
        made: &mut Vec<PathBuf>,
    ) -> Result<DatabaseFiles, DatabaseError> {
        let number = self.made.len() as u32 + 1;
        let mut directories: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for place in wanted.placement.directories(&wanted.shape).into_keys() {
            let directory = make(self.directories.of(&place), number)?;
            made.push(directory.clone());
            directories.insert(place, directory);
        }
        let inside = wanted
            .placement
            .within(&format!("image{number}/"), |place| {
                directories[place].clone()
            });
        Ok(DatabaseFiles::place(
            &wanted.shape,
            &inside,
            &mut self.space,
        )?)
    }

    /// The golden copy of a shape, loaded if there is none yet.
    fn golden_for(
        &mut self,
        making: &mut Making<'_>,
        (layout, spec): (usize, &KernelSpec),
        shape: &Shape,
    ) -> Result<Arc<Golden>, DatabaseError> {
        if let Some(made) = self.goldens.iter().find(|made| made.shape() == shape) {
            return Ok(Arc::clone(made));
        }
        let data_bytes: u64 = shape.data_bytes.iter().sum();
        (making.note)(&format!("loading {} MiB of data", data_bytes >> 20));
        let number = self.goldens.len() as u32 + 1;
        let own = self.directories.of(&making.golden_place);
        let directory = own.make_golden_directory(number)?;
        let experiment = making.experiment();
        let began = Instant::now();
        let loaded = (layout, spec);
        let golden = make_golden(experiment, loaded, shape, &directory, &self.interrupted);
        self.loading += began.elapsed();
        let golden = golden.inspect_err(|_| self.directories.take_back(&[directory]))?;
        self.goldens.push(Arc::clone(&golden));
        Ok(golden)
    }
}

/// The blocks that a trial has written to these files.
pub(super) fn changed_by(files: &DatabaseFiles, written: &WrittenRuns) -> ChangedBlocks {
    let named = files.named();
    let mut changed = ChangedBlocks::new();
    for (place, runs) in written {
        if let Some((name, _)) = named.iter().find(|(_, of)| *of == place) {
            let ranges = runs.iter().map(|(first, count)| *first..first + count);
            changed.insert(name.clone(), ranges.collect());
        }
    }
    changed
}

/// The block devices beneath a database's files, where known.
fn devices_of(files: &DatabaseFiles) -> Vec<DeviceNumber> {
    let places: BTreeSet<&Path> = files
        .named()
        .into_iter()
        .flat_map(|(_, place)| match place {
            Place::File(path) => vec![path.parent().unwrap_or(path)],
            _ => place.paths(),
        })
        .collect();
    devices_beneath(places)
}

/// A golden copy in `directory`, loaded.
fn make_golden(
    experiment: &Experiment,
    (layout, spec): (usize, &KernelSpec),
    shape: &Shape,
    directory: &Path,
    interrupted: &Arc<AtomicBool>,
) -> Result<Arc<Golden>, DatabaseError> {
    let loading = Golden::create_unless(directory, shape, experiment.seed, interrupted)?;
    load(experiment, (layout, spec), loading.files(), interrupted)?;
    Ok(loading.seal(kept(spec.memory, shape))?)
}

/// Has the engine make and load the database in the golden copy's files.
fn load(
    experiment: &Experiment,
    (layout, spec): (usize, &KernelSpec),
    files: &DatabaseFiles,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let env: Arc<dyn Env> = RealEnv::new(experiment.seed);
    let size_bytes = experiment.database_of(layout).size_bytes;
    let workload = experiment
        .workload
        .of_rows(size_bytes, spec, experiment.seed);
    let path = AccessPath {
        caching: Caching::Buffered,
        method: Method::Sync,
        slaves: 0,
    };
    let clients = clients_max(experiment);
    // What trials ask of their devices is not asked of the golden copy's; it is shut down in order.
    let settings = kernel::Settings {
        torn_blocks: kernel::TornBlocks::Images,
        ..spec.settings()
    };
    let path = spec.io(path, None);
    let load = kernel::Load {
        workload: &*workload,
        database: experiment.seed,
        clients,
        interrupted,
    };
    block_on(kernel::create_and_load(&env, files, path, &settings, load))
}

/// Golden copies in memory take at most this part of it, counted without what trials may have: a database that lives on
/// the page cache, for want of a memory budget, is to notice nothing.
const MEMORY_SHARE: u64 = 4;

/// Whether a golden copy can be kept in memory.
fn kept(memory: DatabaseMemory, shape: &Shape) -> Kept {
    let files = SystemTree::default();
    let available = MemoryState::read(&files).map_or(0, |memory| memory.available_bytes);
    let allowed = GroupLimits::read(&files).memory_bytes;
    kept_in(
        available.min(allowed.unwrap_or(u64::MAX)),
        memory.memory_bytes,
        shape.total_bytes(),
    )
}

fn kept_in(available_bytes: u64, budget_bytes: u64, golden_bytes: u64) -> Kept {
    match is_kept_in_memory(available_bytes, budget_bytes, golden_bytes) {
        true => Kept::InMemory,
        false => Kept::OnDisk,
    }
}

/// Whether a golden copy is kept in memory when so much is there and trials may have so much of it.
pub(crate) fn is_kept_in_memory(
    available_bytes: u64,
    budget_bytes: u64,
    golden_bytes: u64,
) -> bool {
    golden_bytes <= available_bytes.saturating_sub(budget_bytes) / MEMORY_SHARE
}

/// Those of these layouts that are of the embedded database, with what it is told.
fn kernels_of<'a>(
    experiment: &'a Experiment,
    layouts: &'a [usize],
) -> impl Iterator<Item = (usize, &'a KernelSpec)> {
    layouts.iter().filter_map(|layout| {
        let spec = &experiment.database_of(*layout).spec;
        match spec {
            DatabaseSpec::Kernel(kernel) => Some((*layout, kernel)),
            DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => None,
        }
    })
}

/// The sizes of a layout's files.
pub(crate) fn shape_of(experiment: &Experiment, layout: usize, spec: &KernelSpec) -> Shape {
    // Layouts that differ only in their writers share their files.
    let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
    let kernels = kernels_of(experiment, &layouts);
    let writers = kernels.map(|(_, kernel)| kernel.instance.writers);
    let writers = writers.max().unwrap_or(spec.instance.writers);
    let size_bytes = experiment.database_of(layout).size_bytes;
    let workload = experiment
        .workload
        .of_rows(size_bytes, spec, experiment.seed);
    spec.shape(&*workload, clients_max(experiment), writers)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_trials_may_need_is_left_to_them() {
        assert_eq!(kept_in(9 << 30, 1 << 30, 2 << 30), Kept::InMemory);
        assert_eq!(kept_in(9 << 30, 1 << 30, (2 << 30) + 1), Kept::OnDisk);
        assert_eq!(kept_in(1 << 30, 2 << 30, 1), Kept::OnDisk);
        assert_eq!(kept_in(0, 0, 1), Kept::OnDisk);
    }
}
