//! The databases of a run, whichever the engine. For each shape of database there is one golden copy, loaded by the
//! engine; for each place one image of it, which all layouts that agree in these share, so that they differ in nothing
//! else. An image is put back before every trial: by its known blocks, by whole files, by sharing blocks again, by a
//! snapshot of the volume beneath it, or by loading it again. All of it lies in directories of the run's own (or in a
//! schema of its own, on existing servers) and goes away with it. What is particular is in `blocks` (files whose blocks
//! are known, of the embedded database), `tree` (whatever files a server makes) and [`crate::schemas`].

pub(crate) mod blocks;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spindle_engines::spec::ByKind;
use spindle_layout::{
    ChangedBlocks, Golden, GoldenTree, KnownDevice, LayoutError, Place, RawSpace, RestoreMethod,
    RestoreReport, Verify,
};

use super::layout_targets::LayoutTargets;
use super::own_directories::OwnDirectories;
use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use super::schedule::order_of_making;
use super::schemas::{OwnSchema, Way, way_of};
use super::volumes;
use crate::observe::device_probe::Probed;
use crate::trial::protocol::{TrialDatabase, WrittenRuns};
use blocks::MadeBlocks;
use spindle_experiment::{DatabaseSpec, Experiment, PutBack, RemoteSpec};
use spindle_result::Restore;
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::machine::DataPath;
use tree::{FileShape, MadeTree};

/// A database of the run. Layouts that need the same share one.
struct Made {
    database: MadeDatabase,
    /// The volumes that its files lie on, where they are put back as a whole.
    volumes: Vec<usize>,
    devices: Vec<DeviceNumber>,
}

/// What is put back before a trial, with what it was made of.
type MadeDatabase = ByKind<MadeBlocks, MadeTree, OwnSchema>;

impl Made {
    /// Whether the volumes beneath it are put back as a whole.
    fn is_rolled_back(&self) -> bool {
        let put_back = match &self.database {
            MadeDatabase::Kernel(made) => made.put_back,
            MadeDatabase::Server(made) => made.put_back,
            MadeDatabase::Remote(_) => return false,
        };
        put_back == PutBack::ThinVolumes
    }
}

impl Made {
    /// Whether a layout may as well have the other; where it is not known, it may not.
    fn is_alike(&self, other: &Made) -> bool {
        match (&self.database, &other.database) {
            (MadeDatabase::Kernel(one), MadeDatabase::Kernel(other)) => one.is_alike(other),
            _ => false,
        }
    }
}

/// What belongs to a layout.
struct OfLayout {
    /// Its place among those made.
    made: usize,
    /// Its database, as trials use it.
    trial: TrialDatabase,
}

/// What databases are made for, and on.
struct Making<'a> {
    state: &'a RunState,
    targets: &'a LayoutTargets,
    /// Where golden copies go; nowhere, when there are existing servers only.
    golden_place: PathBuf,
    /// How existing servers put their tables back.
    way: Way,
    /// Hears what is being done.
    note: &'a mut dyn FnMut(&str),
}

impl<'a> Making<'a> {
    fn experiment(&self) -> &'a Experiment {
        &self.state.experiment
    }

    /// A layout's name, when what is made for it is for it alone.
    fn owner(&self, layout: usize) -> Option<&str> {
        let name = self.experiment().layouts[layout].name.as_str();
        self.targets.is_made(layout).then_some(name)
    }
}

/// The databases of a run.
pub struct Databases {
    verify: Verify,
    // In this order: files go before the directories they lie in.
    made: Vec<Made>,
    goldens: Vec<Arc<Golden>>,
    golden_trees: Vec<(FileShape, Arc<GoldenTree>)>,
    of_layout: BTreeMap<usize, OfLayout>,
    space: RawSpace,
    directories: OwnDirectories,
    /// Directories of servers made so far.
    server_directories: u32,
    /// Time that loading took.
    loading: Duration,
    /// Ends loading.
    interrupted: Arc<AtomicBool>,
}

impl Databases {
    /// Makes the databases of the layouts `wanted` on what they stand on. `note` hears what is being done. Returns the
    /// layouts that turned out not to hold theirs, with the reason; what goes wrong elsewhere is an error. Once
    /// `interrupted`, loading ends and no further one is made: the run looks at that itself before it uses any.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        targets: &LayoutTargets,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Databases, Vec<(usize, String)>), DatabaseError> {
        let experiment = &state.experiment;
        let mut databases = Databases {
            verify: experiment.plan.restore_verify,
            made: Vec::new(),
            goldens: Vec::new(),
            golden_trees: Vec::new(),
            of_layout: BTreeMap::new(),
            space: RawSpace::default(),
            directories: OwnDirectories::new(&state.run, targets.ledger()),
            server_directories: 0,
            loading: Duration::ZERO,
            interrupted: Arc::clone(interrupted),
        };
        let layouts: BTreeSet<usize> = wanted.iter().copied().collect();
        let layouts: Vec<usize> = layouts.into_iter().collect();
        let mut making = Making {
            state,
            targets,
            golden_place: match experiment.spec() {
                DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => {
                    let place = golden_place(experiment, &layouts, targets)?;
                    databases.directories.make(&place, None)?;
                    place
                }
                DatabaseSpec::Remote(_) => PathBuf::new(),
            },
            way: match experiment.spec() {
                DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => Way::Reload { why: None },
                DatabaseSpec::Remote(_) => way_of(experiment),
            },
            note,
        };
        if let Way::Reload { why: Some(why) } = &making.way {
            let said = format!("the database is loaded again before each trial: {why}");
            (making.note)(&said);
        }
        blocks::check_room(&making, &layouts)?;
        let is_embedded = matches!(experiment.spec(), DatabaseSpec::Kernel(_));
        let mut failed = Vec::new();
        for layout in order_of_making(state, &layouts) {
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            match databases.database_for(&mut making, layout) {
                Ok(made) => _ = databases.of_layout.insert(layout, made),
                Err(_) if interrupted.load(Ordering::Relaxed) => break,
                Err(error @ DatabaseError::Ledger(_)) => return Err(error),
                // A server refuses what another layout may ask of it; the embedded database has no such ways.
                Err(error) if !is_embedded || targets.is_made(layout) => {
                    failed.push((layout, error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        failed.extend(databases.keep_volumes(&mut making));
        failed.sort_by_key(|(layout, _)| *layout);
        Ok((databases, failed))
    }

    /// The database for a layout, made if no other layout has made it.
    fn database_for(
        &mut self,
        making: &mut Making<'_>,
        layout: usize,
    ) -> Result<OfLayout, DatabaseError> {
        match &making.experiment().database_of(layout).spec {
            DatabaseSpec::Kernel(spec) => self.kernel_for(making, layout, spec),
            DatabaseSpec::Server(spec) => self.server_for(making, layout, spec),
            DatabaseSpec::Remote(spec) => self.schema_for(making, layout, spec),
        }
    }

    /// A schema for a layout, the same for all layouts on its server.
    fn schema_for(
        &mut self,
        making: &mut Making<'_>,
        layout: usize,
        spec: &RemoteSpec,
    ) -> Result<OfLayout, DatabaseError> {
        let there = self.found(|made| match &made.database {
            MadeDatabase::Remote(own) if own.schema().address == spec.address => {
                Some(own.schema().clone())
            }
            _ => None,
        });
        let (made, schema) = match there {
            Some(there) => there,
            None => {
                let (ledger, experiment) = (making.targets.ledger(), making.experiment());
                let size_bytes = experiment.database_of(layout).size_bytes;
                let workload = &experiment.workload;
                let workload = workload.in_sql(size_bytes, spec.address.kind(), experiment.seed);
                let began = Instant::now();
                let own = OwnSchema::make(
                    making.state,
                    (layout, spec, &making.way),
                    ledger,
                    workload,
                    &self.interrupted,
                    making.note,
                )?;
                self.loading += began.elapsed();
                let schema = own.schema().clone();
                let database = MadeDatabase::Remote(own);
                (self.push(making, layout, database, Vec::new()), schema)
            }
        };
        let trial = TrialDatabase::Remote(Box::new(schema));
        Ok(OfLayout { made, trial })
    }

    /// The first database that is as wanted, by its place, with what is needed of it.
    fn found<T>(&self, wanted: impl Fn(&Made) -> Option<T>) -> Option<(usize, T)> {
        let mut made = self.made.iter().enumerate();
        made.find_map(|(place, made)| Some((place, wanted(made)?)))
    }

    /// Adds a database that was made for a layout. Returns its place.
    fn push(
        &mut self,
        making: &Making<'_>,
        layout: usize,
        database: MadeDatabase,
        devices: Vec<DeviceNumber>,
    ) -> usize {
        let mut made = Made {
            database,
            volumes: Vec::new(),
            devices,
        };
        if made.is_rolled_back() {
            made.volumes = making.targets.thin_volumes(making.experiment(), layout);
        }
        self.made.push(made);
        self.made.len() - 1
    }

    /// Keeps the volumes that are to be put back as a whole, now that every database on them is loaded. Returns the
    /// layouts that lie on one which cannot be kept, with the reason.
    fn keep_volumes(&mut self, making: &mut Making<'_>) -> Vec<(usize, String)> {
        let beneath = self.made.iter().map(|made| &made.volumes);
        let lost = volumes::keep(beneath, &mut self.directories, making.targets, making.note);
        let made = &self.made;
        let reason = |of: &OfLayout| made[of.made].volumes.iter().find_map(|of| lost.get(of));
        let of_layout = self.of_layout.iter();
        let failed: Vec<(usize, String)> = of_layout
            .filter_map(|(layout, of)| Some((*layout, reason(of)?.clone())))
            .collect();
        for (layout, _) in &failed {
            self.of_layout.remove(layout);
        }
        failed
    }

    fn made(&self, layout: usize) -> &Made {
        &self.made[self.of_layout[&layout].made]
    }

    /// A layout's database, as trials use it.
    pub fn of_trial(&self, layout: usize) -> TrialDatabase {
        self.of_layout[&layout].trial.clone()
    }

    /// The devices beneath it, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        self.made(layout).devices.clone()
    }

    /// Where the devices beneath a layout's data and beneath its redo are probed; `None` for an existing server.
    pub fn probed(&self, layout: usize) -> Option<(Probed, Probed)> {
        match &self.made(layout).database {
            MadeDatabase::Kernel(made) => {
                let files = made.image.files();
                let data = files.data.first()?;
                let redo = files.redo.first().unwrap_or(data);
                Some((probed_by(data)?, probed_by(redo)?))
            }
            MadeDatabase::Server(made) => Some(made.probed()),
            MadeDatabase::Remote(_) => None,
        }
    }

    /// Lets layouts whose images are alike take each other's, each that of the one before it. So none keeps one that
    /// lies better than the others.
    pub fn exchange_images(&mut self) {
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for (layout, of) in &self.of_layout {
            let is_alike = |circle: &&mut Vec<usize>| {
                let other = &self.made[self.of_layout[&circle[0]].made];
                self.made[of.made].is_alike(other)
            };
            match circles.iter_mut().find(is_alike) {
                Some(circle) => circle.push(*layout),
                None => circles.push(vec![*layout]),
            }
        }
        for circle in circles {
            let mut places: Vec<usize> = circle.iter().map(|it| self.of_layout[it].made).collect();
            places.rotate_right(1);
            for (layout, made) in circle.iter().zip(places) {
                let of = self.of_layout.get_mut(layout).expect("it was just listed");
                of.made = made;
                if let (TrialDatabase::Kernel(trial), MadeDatabase::Kernel(made)) =
                    (&mut of.trial, &self.made[made].database)
                {
                    trial.files = made.image.files().clone();
                }
            }
        }
    }

    /// Time that loading took when they were made, a part of making them.
    pub fn loading(&self) -> Duration {
        self.loading
    }

    /// Whether they are on servers that run already.
    pub fn are_remote(&self) -> bool {
        let is_remote = |made: &Made| matches!(made.database, MadeDatabase::Remote(_));
        self.made.iter().any(is_remote)
    }

    /// Puts a layout's database back to the loaded state.
    pub fn restore(
        &mut self,
        layout: usize,
        targets: &LayoutTargets,
    ) -> Result<Restored, DatabaseError> {
        let started = Instant::now();
        let made = &mut self.made[self.of_layout[&layout].made];
        let is_rolled_back = made.is_rolled_back();
        let listed = match &mut made.database {
            MadeDatabase::Kernel(made) => made.changed.take(),
            MadeDatabase::Server(_) | MadeDatabase::Remote(_) => None,
        };
        if is_rolled_back {
            volumes::roll_back(&made.volumes, &mut self.directories, targets)?;
        }
        let mut warnings = Vec::new();
        let report = match &mut made.database {
            MadeDatabase::Kernel(made) => {
                let (image, listed) = (&made.image, listed.as_ref());
                let report = match is_rolled_back {
                    true => image.rolled_back(listed, self.verify, started)?,
                    false => put_back(image, listed, self.verify, &mut warnings)?,
                };
                made.changed = Some(ChangedBlocks::new());
                report
            }
            MadeDatabase::Server(made) if is_rolled_back => {
                made.image.rolled_back(self.verify, started)?
            }
            MadeDatabase::Server(made) => made.image.restore(self.verify)?,
            MadeDatabase::Remote(own) => return own.restore(&self.interrupted),
        };
        warnings.extend(warnings_of(&report));
        Ok(Restored {
            restore: restore_of(&report),
            warnings,
        })
    }

    /// A trial has written to a layout's database; `None` when it is not known where. Whole files say themselves that
    /// they were written to, and what is loaded again need not know.
    pub fn written(&mut self, layout: usize, written: Option<&WrittenRuns>) {
        let made = &mut self.made[self.of_layout[&layout].made];
        if let MadeDatabase::Kernel(made) = &mut made.database {
            let files = made.image.files();
            made.changed = written.map(|written| blocks::changed_by(files, written));
        }
    }

    /// Takes everything away. Returns what could not be, in words.
    pub fn remove(self) -> Vec<String> {
        let mut leftovers = Vec::new();
        for made in self.made {
            if let MadeDatabase::Remote(own) = made.database {
                leftovers.extend(own.remove());
            }
        }
        drop(self.goldens);
        drop(self.golden_trees);
        leftovers.extend(self.directories.remove());
        leftovers
    }
}

/// Where golden copies go: beside the data of the first layout that is a directory; else where the experiment says, or
/// where the run was started.
fn golden_place(
    experiment: &Experiment,
    wanted: &[usize],
    targets: &LayoutTargets,
) -> Result<PathBuf, DatabaseError> {
    let is_there =
        |layout: &&usize| !targets.is_made(**layout) && experiment.layouts[**layout].made.is_none();
    let path = match (&experiment.plan.golden_path, wanted.iter().find(is_there)) {
        (Some(path), _) => path.as_path(),
        (None, Some(layout)) => &experiment.layouts[*layout].path,
        (None, None) => Path::new("."),
    };
    path.canonicalize().map_err(|error| DatabaseError::Place {
        path: path.to_path_buf(),
        error,
    })
}

/// Puts an image back by its list; every block of it when the list missed one.
fn put_back(
    image: &spindle_layout::Image,
    listed: Option<&ChangedBlocks>,
    verify: Verify,
    warnings: &mut Vec<String>,
) -> Result<RestoreReport, LayoutError> {
    match image.restore(listed, verify) {
        Err(missed @ LayoutError::RestoreMissed { .. }) => {
            warnings.push(format!("restored a second time, block by block: {missed}"));
            image.restore(None, verify)
        }
        report => report,
    }
}

/// The block devices beneath some places, where known.
fn devices_beneath<'a>(places: impl IntoIterator<Item = &'a Path>) -> Vec<DeviceNumber> {
    let system = SystemTree::default();
    let places: BTreeSet<&Path> = places.into_iter().collect();
    let device = |place: &Path| {
        let device = DataPath::capture(&system, place).device;
        device.map(|device| device.number)
    };
    let devices: BTreeSet<DeviceNumber> = places.into_iter().filter_map(device).collect();
    devices.into_iter().collect()
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

fn restore_of(report: &RestoreReport) -> Restore {
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
