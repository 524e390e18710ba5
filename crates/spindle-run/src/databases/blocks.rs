//! Files of the embedded database, whose blocks are known: which shape of them a layout needs, its golden copy, loaded
//! by the engine, and the image of it that trials use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_engines::database::{BlockImage, KernelDatabase};
use spindle_engines::engine::Engine;
use spindle_layout::{
    ChangedBlocks, DataDirectory, DatabaseFiles, DatabaseShape, FileManager, Golden, GoldenSource,
    ImageSpec, KnownDevice, LayoutError, Place, Placement, check_space,
};

use super::recipe::{Making, Recipe, Store, devices_beneath};
use crate::database_error::DatabaseError;
use crate::layout_targets::LayoutTargets;
use crate::observe::device_probe::Probed;
use crate::trial::protocol::WrittenRuns;
use spindle_experiment::{DatabaseMemory, DatabaseSpec, Experiment, KernelSpec, PutBack};
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::cgroup::GroupLimits;
use spindle_system::sampler::MemoryState;
use spindle_text::quantity::size;

/// What a layout's database is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockFiles {
    shape: DatabaseShape,
    /// Directories are those in which the run's own are.
    placement: Placement,
    manager: FileManager,
}

impl BlockFiles {
    /// What a layout needs; or why it cannot be used.
    pub(super) fn by(
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

    /// Where the files of the next image go, in its own directories.
    fn place_files(
        &self,
        make: impl Fn(&DataDirectory, u32) -> Result<PathBuf, LayoutError>,
        store: &mut Store,
    ) -> Result<DatabaseFiles, DatabaseError> {
        let number = store.next_image;
        let mut directories: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for place in self.placement.directories(&self.shape).into_keys() {
            let directory = make(store.directories.of(&place), number)?;
            store.of_image.push(directory.clone());
            directories.insert(place, directory);
        }
        let inside = self.placement.within(&format!("image{number}/"), |place| {
            directories[place].clone()
        });
        Ok(DatabaseFiles::place(
            &self.shape,
            &inside,
            &mut store.space,
        )?)
    }
}

/// Refuses before anything is written when a place has too little room for what will be made there. Directories that
/// Spindle made hold one layout, which fails alone.
pub(super) fn check_room(
    experiment: &Experiment,
    layouts: &[usize],
    targets: &LayoutTargets,
    golden_place: &Path,
) -> Result<(), DatabaseError> {
    let mut needed: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut goldens: Vec<DatabaseShape> = Vec::new();
    let mut images: Vec<(BlockFiles, PutBack)> = Vec::new();
    for (layout, spec) in kernels_of(experiment, layouts) {
        let Ok(files) = BlockFiles::by(spec, experiment, layout, targets) else {
            continue;
        };
        let image = (files, experiment.put_back(layout));
        let (files, put_back) = &image;
        if !goldens.contains(&files.shape) {
            let place = golden_place.to_path_buf();
            *needed.entry(place).or_default() += files.shape.total_bytes();
            goldens.push(files.shape.clone());
        }
        let is_shared = experiment.plan.interleave_ms.is_none() && images.contains(&image);
        if !is_shared && !targets.is_made(layout) {
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

/// The engine that makes and loads the database of a layout.
pub(crate) fn engine(experiment: &Experiment, layout: usize, spec: &KernelSpec) -> KernelDatabase {
    let size_bytes = experiment.database_of(layout).size_bytes;
    KernelDatabase {
        spec: spec.clone(),
        io: experiment.layouts[layout].io,
        delay: None,
        redo_delay: None,
        workload: Arc::from(
            experiment
                .workload
                .of_rows(size_bytes, spec, experiment.seed),
        ),
        clients: experiment.workload.connections_max() as usize,
        number: experiment.seed,
    }
}

impl Recipe for BlockFiles {
    type Engine = KernelDatabase;

    fn golden(
        &self,
        engine: &KernelDatabase,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<Arc<Golden>, DatabaseError> {
        let shape = &self.shape;
        if let Some(made) = store.goldens.iter().find(|made| made.shape() == shape) {
            return Ok(Arc::clone(made));
        }
        let data_bytes: u64 = shape.data_bytes.iter().sum();
        (making.note)(&format!("loading {} of data", size(data_bytes)));
        let number = store.goldens.len() as u32 + 1;
        let own = store.directories.of(making.golden_place);
        let directory = own.make_golden_directory(number)?;
        let golden = make_golden(engine, shape, &directory, &store.interrupted);
        let golden = golden.inspect_err(|_| store.directories.take_back(&[directory]))?;
        store.goldens.push(Arc::clone(&golden));
        Ok(golden)
    }

    fn site(
        &self,
        _: &Golden,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<ImageSpec, DatabaseError> {
        for (place, bytes) in self.directories(making.put_back) {
            store.directories.make(&place, making.owner())?;
            if making.put_back == PutBack::Clones {
                check_space(&place, bytes)?;
            }
        }
        let files = self.place_files(DataDirectory::make_image_directory, store)?;
        let name = making.name();
        (making.note)(&format!(
            "making the database files for {name} ({})",
            match (files.is_raw(), self.manager) {
                (true, _) => "without a file system",
                (false, FileManager::Plain) => "plain files",
                (false, FileManager::Odm) => "preallocated, committed whole",
            }
        ));
        Ok(ImageSpec {
            files,
            manager: self.manager,
            originals: match making.put_back {
                PutBack::Clones => {
                    Some(self.place_files(DataDirectory::make_original_directory, store)?)
                }
                PutBack::Copy | PutBack::ThinVolumes => None,
            },
        })
    }

    fn home(image: &BlockImage) -> DatabaseFiles {
        image.files().clone()
    }

    fn devices(&self, files: &DatabaseFiles) -> Vec<DeviceNumber> {
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

/// A golden copy in `directory`, loaded.
fn make_golden(
    engine: &KernelDatabase,
    shape: &DatabaseShape,
    directory: &Path,
    interrupted: &Arc<AtomicBool>,
) -> Result<Arc<Golden>, DatabaseError> {
    let loading = Golden::create(directory, shape, engine.number, interrupted)?;
    engine.create(loading.files())?;
    engine.load(loading.files(), interrupted)?;
    Ok(loading.seal(kept(engine.spec.memory, shape))?)
}

/// Where the devices beneath data and beneath redo are probed.
pub(super) fn probed(files: &DatabaseFiles) -> Option<(Probed, Probed)> {
    let data = files.data.first()?;
    let redo = files.redo.first().unwrap_or(data);
    Some((probed_by(data)?, probed_by(redo)?))
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

/// Golden copies in memory take at most this part of it, counted without what trials may have: a database that lives on
/// the page cache, for want of a memory budget, is to notice nothing.
const MEMORY_SHARE: u64 = 4;

/// Whether a golden copy can be kept in memory.
fn kept(memory: DatabaseMemory, shape: &DatabaseShape) -> GoldenSource {
    let files = SystemTree::default();
    let available = MemoryState::read(&files).map_or(0, |memory| memory.available_bytes);
    let allowed = GroupLimits::read(&files).memory_bytes;
    kept_in(
        available.min(allowed.unwrap_or(u64::MAX)),
        memory.memory_bytes,
        shape.total_bytes(),
    )
}

fn kept_in(available_bytes: u64, budget_bytes: u64, golden_bytes: u64) -> GoldenSource {
    match is_kept_in_memory(available_bytes, budget_bytes, golden_bytes) {
        true => GoldenSource::InMemory,
        false => GoldenSource::OnDisk,
    }
}

/// Whether a golden copy is kept in memory, given the available memory and the share of it that trials may use.
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
pub(crate) fn shape_of(experiment: &Experiment, layout: usize, spec: &KernelSpec) -> DatabaseShape {
    // Layouts that differ only in their writers share their files.
    let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
    let kernels = kernels_of(experiment, &layouts);
    let writers = kernels.map(|(_, kernel)| kernel.instance.writers);
    let writers = writers.max().unwrap_or(spec.instance.writers);
    let size_bytes = experiment.database_of(layout).size_bytes;
    let workload = experiment
        .workload
        .of_rows(size_bytes, spec, experiment.seed);
    spec.shape(
        &*workload,
        experiment.workload.connections_max() as usize,
        writers,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_trials_may_need_is_left_to_them() {
        assert_eq!(kept_in(9 << 30, 1 << 30, 2 << 30), GoldenSource::InMemory);
        assert_eq!(
            kept_in(9 << 30, 1 << 30, (2 << 30) + 1),
            GoldenSource::OnDisk
        );
        assert_eq!(kept_in(1 << 30, 2 << 30, 1), GoldenSource::OnDisk);
        assert_eq!(kept_in(0, 0, 1), GoldenSource::OnDisk);
    }
}
