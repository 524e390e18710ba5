//! The databases of a run: for each shape of database one golden copy, loaded by the engine; for each place and file
//! manager one image of it, which all layouts that agree in these share, so that they differ in nothing else. All of
//! it lies in directories of the run's own and goes away with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spindle_layout::{
    ChangedBlocks, DataDirectory, DatabaseFiles, FileManager, Golden, Image, ImageSpec,
    LayoutError, Place, RawSpace, RestoreMethod, RestoreReport, Shape, Verify, check_space,
};

pub(crate) mod golden;
mod wanted;

use super::grounds::Grounds;
use super::own_directories::OwnDirectories;
use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use super::schedule::order_of_making;
use super::volumes;
use crate::observe::SystemFiles;
use crate::observe::block_device::DeviceNumber;
use crate::observe::machine::DataPath;
use crate::trial::protocol::WrittenRuns;
use spindle_experiment::{Database, Experiment, PutBack};
use spindle_result::Restore;
use wanted::{Wanted, check_room};

struct MadeGolden {
    shape: Shape,
    golden: Arc<Golden>,
}

struct MadeImage {
    wanted: Wanted,
    image: Image,
    /// The volumes that its files lie on, where they are put back as a whole.
    volumes: Vec<usize>,
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
    directories: OwnDirectories,
    /// Time that loading took.
    loading: Duration,
    /// Ends loading.
    interrupted: Arc<AtomicBool>,
}

impl Images {
    /// Makes the databases of the layouts `wanted` on what they stand on. `note` hears what is being done. Returns the
    /// layouts made by Spindle that turned out not to hold theirs, with the reason; what goes wrong elsewhere is an
    /// error.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        grounds: &Grounds,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Images, Vec<(usize, String)>), DatabaseError> {
        let verify = state.experiment.plan.restore_verify;
        let mut images = Images {
            verify,
            images: Vec::new(),
            goldens: Vec::new(),
            of_layout: BTreeMap::new(),
            loading: Duration::ZERO,
            interrupted: Arc::clone(interrupted),
            space: RawSpace::default(),
            directories: OwnDirectories::new(&state.run, grounds.ledger()),
        };
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let experiment = &state.experiment;
        let golden_place = golden::golden_place(experiment, &wanted, grounds)?;
        images.directories.make(&golden_place, None)?;
        check_room(experiment, &wanted, grounds, &golden_place)?;
        let mut failed = Vec::new();
        for layout in order_of_making(state, &wanted) {
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            match images.image_for(experiment, layout, grounds, &golden_place, note) {
                Ok(made) => {
                    images.of_layout.insert(layout, made);
                }
                Err(_) if interrupted.load(Ordering::Relaxed) => break,
                Err(error) if grounds.is_made(layout) => failed.push((layout, error.to_string())),
                Err(error) => return Err(error),
            }
        }
        failed.extend(images.keep_volumes(grounds, note));
        failed.sort_by_key(|(layout, _)| *layout);
        Ok((images, failed))
    }

    /// Keeps the volumes that are to be put back as a whole, now that every database on them is loaded. Returns the
    /// layouts that lie on one which cannot be kept, with the reason.
    fn keep_volumes(
        &mut self,
        grounds: &Grounds,
        note: &mut dyn FnMut(&str),
    ) -> Vec<(usize, String)> {
        let beneath = self.images.iter().map(|made| &made.volumes);
        let lost = volumes::keep(beneath, &mut self.directories, grounds, note);
        let images = &self.images;
        let reason = |image: &usize| images[*image].volumes.iter().find_map(|of| lost.get(of));
        let of_layout = self.of_layout.iter();
        let failed: Vec<(usize, String)> = of_layout
            .filter_map(|(layout, image)| Some((*layout, reason(image)?.clone())))
            .collect();
        for (layout, _) in &failed {
            self.of_layout.remove(layout);
        }
        failed
    }

    /// The files of a layout's database.
    pub fn files(&self, layout: usize) -> DatabaseFiles {
        self.images[self.of_layout[&layout]].image.files().clone()
    }

    /// The devices beneath them, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        self.images[self.of_layout[&layout]].devices.clone()
    }

    /// Puts a layout's database back to the loaded state.
    pub fn restore(&mut self, layout: usize, grounds: &Grounds) -> Result<Restored, DatabaseError> {
        let index = self.of_layout[&layout];
        let changed = self.images[index].changed.take();
        let mut warnings = Vec::new();
        let report = match self.images[index].wanted.put_back {
            PutBack::ThinVolumes => self.roll_back(index, changed.as_ref(), grounds)?,
            PutBack::Copy | PutBack::Clones => {
                let image = &self.images[index].image;
                match image.restore(changed.as_ref(), self.verify) {
                    Err(missed @ LayoutError::RestoreMissed { .. }) => {
                        warnings.push(format!("restored a second time, block by block: {missed}"));
                        image.restore(None, self.verify)?
                    }
                    report => report?,
                }
            }
        };
        let made = &mut self.images[index];
        made.changed = Some(ChangedBlocks::new());
        warnings.extend(warnings_of(&report));
        Ok(Restored {
            restore: restore_of(&report),
            warnings,
        })
    }

    fn roll_back(
        &mut self,
        index: usize,
        changed: Option<&ChangedBlocks>,
        grounds: &Grounds,
    ) -> Result<RestoreReport, DatabaseError> {
        let started = Instant::now();
        let beneath = &self.images[index].volumes;
        volumes::roll_back(beneath, &mut self.directories, grounds)?;
        let image = &self.images[index].image;
        Ok(image.rolled_back(changed, self.verify, started)?)
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

    /// Time that loading took.
    pub fn loading(&self) -> Duration {
        self.loading
    }

    /// Takes everything away. Returns what could not be, in words.
    pub fn remove(self) -> Vec<String> {
        drop(self.images);
        drop(self.goldens);
        self.directories.remove()
    }

    /// The image for a layout, made if no other layout has made it.
    fn image_for(
        &mut self,
        experiment: &Experiment,
        layout: usize,
        grounds: &Grounds,
        golden_place: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<usize, DatabaseError> {
        let wanted = Wanted::by(experiment, layout, grounds)?;
        if let Some(made) = self.images.iter().position(|made| made.wanted == wanted) {
            return Ok(made);
        }
        let database = experiment.database_of(layout);
        let golden = self.golden_for(experiment, &database, &wanted.shape, golden_place, note)?;
        let name = &experiment.layouts[layout].name;
        let owner = grounds.is_made(layout).then_some(name.as_str());
        for (place, bytes) in wanted.directories() {
            self.directories.make(&place, owner)?;
            if wanted.put_back == PutBack::Clones {
                check_space(&place, bytes)?;
            }
        }
        let (space, mut made) = (self.space.clone(), Vec::new());
        let image = self.make_image(&wanted, &golden, name, &mut made, note);
        let image = image.inspect_err(|_| {
            self.directories.take_back(&made);
            self.space = space;
        })?;
        let devices = devices_of(image.files());
        let volumes = match wanted.put_back {
            PutBack::ThinVolumes => grounds.thin_volumes(experiment, layout),
            PutBack::Copy | PutBack::Clones => Vec::new(),
        };
        self.images.push(MadeImage {
            wanted,
            image,
            volumes,
            changed: Some(ChangedBlocks::new()),
            devices,
        });
        Ok(self.images.len() - 1)
    }

    /// The next image, in directories of its own, which are added to `made`.
    fn make_image(
        &mut self,
        wanted: &Wanted,
        golden: &Arc<Golden>,
        name: &str,
        made: &mut Vec<PathBuf>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Image, DatabaseError> {
        let files = self.place_files(wanted, DataDirectory::make_image_directory, made)?;
        note(&format!(
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
        Ok(match wanted.put_back {
            PutBack::Clones => {
                let originals =
                    self.place_files(wanted, DataDirectory::make_original_directory, made)?;
                Image::provision_clones(golden, &spec, originals)?
            }
            PutBack::Copy | PutBack::ThinVolumes => Image::provision(golden, &spec)?,
        })
    }

    /// Where the files of the next image go, in directories of its own, which are added to `made`.
    fn place_files(
        &mut self,
        wanted: &Wanted,
        make: impl Fn(&DataDirectory, u32) -> Result<PathBuf, LayoutError>,
        made: &mut Vec<PathBuf>,
    ) -> Result<DatabaseFiles, DatabaseError> {
        let number = self.images.len() as u32 + 1;
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
        experiment: &Experiment,
        database: &Database,
        shape: &Shape,
        place: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Arc<Golden>, DatabaseError> {
        if let Some(made) = self.goldens.iter().find(|made| made.shape == *shape) {
            return Ok(Arc::clone(&made.golden));
        }
        let data_bytes: u64 = shape.data_bytes.iter().sum();
        note(&format!("loading {} MiB of data", data_bytes >> 20));
        let number = self.goldens.len() as u32 + 1;
        let directory = self.directories.of(place).make_golden_directory(number)?;
        let began = Instant::now();
        let golden = golden::make(experiment, database, shape, &directory, &self.interrupted);
        self.loading += began.elapsed();
        let golden = golden.inspect_err(|_| self.directories.take_back(&[directory]))?;
        self.goldens.push(MadeGolden {
            shape: shape.clone(),
            golden: Arc::clone(&golden),
        });
        Ok(golden)
    }
}

/// The block devices beneath a database's files, where known.
fn devices_of(files: &DatabaseFiles) -> Vec<DeviceNumber> {
    let system = SystemFiles::default();
    let places: BTreeSet<&Path> = files
        .named()
        .into_iter()
        .flat_map(|(_, place)| match place {
            Place::File(path) => vec![path.parent().unwrap_or(path)],
            _ => place.paths(),
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

pub(super) fn restore_of(report: &RestoreReport) -> Restore {
    let method = match report.method {
        RestoreMethod::Listed => "changed blocks copied back in place",
        RestoreMethod::Compared => "every block compared, changed ones copied back in place",
        RestoreMethod::Cloned => "files share the blocks of their originals again (reflink)",
        RestoreMethod::Files => "files compared, changed blocks copied back in place",
        RestoreMethod::RolledBack => "thin volume put back to its snapshot (LVM)",
    };
    Restore {
        method: method.to_string(),
        changed_blocks: report.changed_blocks,
        verified: report.verified == Verify::Full,
        duration_ms: report.duration_us / 1000,
    }
}

pub(super) fn warnings_of(report: &RestoreReport) -> Vec<String> {
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
