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

use spindle_engines::sql::{ServerRequest, server};
use spindle_layout::{
    ChangedBlocks, Golden, GoldenTree, KnownDevice, LayoutError, Place, RawSpace, RestoreMethod,
    RestoreReport, TreeImage, Verify,
};
use spindle_workload::sql::SqlWorkload;

use super::grounds::Grounds;
use super::own_directories::OwnDirectories;
use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use super::schedule::order_of_making;
use super::schemas::OwnSchema;
use super::server_files::ServerFiles;
use super::volumes;
use crate::observe::SystemFiles;
use crate::observe::block_device::DeviceNumber;
use crate::observe::device_probe::Probed;
use crate::observe::machine::DataPath;
use crate::trial::protocol::{TrialFiles, WrittenRuns, server_request, sql_workload_of};
use blocks::BlockFiles;
use spindle_experiment::{Experiment, PutBack};
use spindle_result::Restore;
use tree::{FileShape, ServerTree};

/// What a layout's database is made of. Layouts that need the same share one.
#[derive(PartialEq)]
enum Wanted {
    /// Files whose blocks are known, and how they are put back.
    Blocks(Box<BlockFiles>, PutBack),
    /// Whatever files a server makes, and how they are put back.
    Tree(ServerTree, PutBack),
    /// A schema on an existing server.
    Schema(Box<spindle_engines::sql::Address>),
}

impl Wanted {
    /// Whether the volumes beneath it are put back as a whole.
    fn is_rolled_back(&self) -> bool {
        match self {
            Wanted::Blocks(_, put_back) | Wanted::Tree(_, put_back) => {
                *put_back == PutBack::ThinVolumes
            }
            Wanted::Schema(_) => false,
        }
    }
}

/// What is put back before a trial.
enum Image {
    Blocks {
        image: Box<spindle_layout::Image>,
        /// What the last trial wrote; `None` when that is not known.
        changed: Option<ChangedBlocks>,
    },
    Tree(TreeImage),
    /// Loaded again by its workload.
    Schema(OwnSchema, Arc<dyn SqlWorkload>),
}

struct Made {
    wanted: Wanted,
    image: Image,
    /// The volumes that its files lie on, where they are put back as a whole.
    volumes: Vec<usize>,
    devices: Vec<DeviceNumber>,
}

/// What belongs to a layout.
struct OfLayout {
    /// Its place among those made.
    made: usize,
    /// What is asked of its server.
    request: Option<ServerRequest>,
}

/// What databases are made for, and on.
struct Making<'a> {
    state: &'a RunState,
    grounds: &'a Grounds,
    /// Where golden copies go; nowhere, when there are existing servers only.
    golden_place: PathBuf,
    /// Hears what is being done.
    note: &'a mut dyn FnMut(&str),
}

impl Making<'_> {
    fn experiment(&self) -> &Experiment {
        &self.state.experiment
    }

    /// A layout's name, when what is made for it is for it alone.
    fn owner(&self, layout: usize) -> Option<&str> {
        let name = self.experiment().layouts[layout].name.as_str();
        self.grounds.is_made(layout).then_some(name)
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
        grounds: &Grounds,
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
            directories: OwnDirectories::new(&state.run, grounds.ledger()),
            server_directories: 0,
            loading: Duration::ZERO,
            interrupted: Arc::clone(interrupted),
        };
        let layouts: BTreeSet<usize> = wanted.iter().copied().collect();
        let layouts: Vec<usize> = layouts.into_iter().collect();
        let mut making = Making {
            state,
            grounds,
            golden_place: match experiment.is_foreign() {
                true => PathBuf::new(),
                false => golden_place(experiment, &layouts, grounds)?,
            },
            note,
        };
        if !experiment.is_foreign() {
            databases.directories.make(&making.golden_place, None)?;
        }
        let is_embedded = experiment.database.engine.server().is_none();
        if is_embedded {
            blocks::check_room(&making, &layouts)?;
        }
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
                Err(error) if !is_embedded || grounds.is_made(layout) => {
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
        let (wanted, request) = wanted_by(making.experiment(), layout, making.grounds)?;
        let there = self.made.iter().position(|made| made.wanted == wanted);
        if let Some(made) = there {
            return Ok(OfLayout { made, request });
        }
        let (image, devices) = match (&wanted, &request) {
            (Wanted::Blocks(files, put_back), _) => {
                let image = self.block_image(making, layout, files, *put_back)?;
                let devices = blocks::devices_of(image.files());
                let changed = Some(ChangedBlocks::new());
                let image = Box::new(image);
                (Image::Blocks { image, changed }, devices)
            }
            (Wanted::Tree(tree, put_back), Some(request)) => {
                let image = self.tree_image(making, layout, (tree, *put_back), request)?;
                (Image::Tree(image), tree.devices())
            }
            (Wanted::Tree(..), None) => {
                let reason = "nothing is asked of its server".to_owned();
                return Err(DatabaseError::Ground(reason));
            }
            (Wanted::Schema(_), _) => {
                let ledger = making.grounds.ledger();
                let schema = OwnSchema::make(making.state, layout, ledger, making.note)?;
                let experiment = making.experiment();
                let database = &experiment.database;
                let workload = sql_workload_of(&experiment.workload, database, experiment.seed);
                (Image::Schema(schema, workload), Vec::new())
            }
        };
        let volumes = match wanted.is_rolled_back() {
            true => making.grounds.thin_volumes(making.experiment(), layout),
            false => Vec::new(),
        };
        self.made.push(Made {
            wanted,
            image,
            volumes,
            devices,
        });
        let made = self.made.len() - 1;
        Ok(OfLayout { made, request })
    }

    /// Keeps the volumes that are to be put back as a whole, now that every database on them is loaded. Returns the
    /// layouts that lie on one which cannot be kept, with the reason.
    fn keep_volumes(&mut self, making: &mut Making<'_>) -> Vec<(usize, String)> {
        let beneath = self.made.iter().map(|made| &made.volumes);
        let lost = volumes::keep(beneath, &mut self.directories, making.grounds, making.note);
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

    /// Where a layout's database is.
    pub fn files(&self, layout: usize) -> TrialFiles {
        match &self.made(layout).image {
            Image::Blocks { image, .. } => TrialFiles::Blocks(image.files().clone()),
            Image::Tree(image) => TrialFiles::Tree(image.directories().clone()),
            Image::Schema(own, _) => TrialFiles::Schema(own.schema().clone()),
        }
    }

    /// What is asked of a layout's server; `None` for the embedded database.
    pub fn server_request(&self, layout: usize) -> Option<ServerRequest> {
        self.of_layout[&layout].request.clone()
    }

    /// The devices beneath it, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        self.made(layout).devices.clone()
    }

    /// Where the devices beneath a layout's data and beneath its redo are probed; `None` for an existing server.
    pub fn probed(&self, layout: usize) -> Option<(Probed, Probed)> {
        let made = self.made(layout);
        match (&made.image, &made.wanted) {
            (Image::Blocks { image, .. }, _) => {
                let data = image.files().data.first()?;
                let redo = image.files().redo.first().unwrap_or(data);
                Some((probed_by(data)?, probed_by(redo)?))
            }
            (Image::Tree(image), Wanted::Tree(tree, _)) => {
                let directories = image.directories();
                let data = tree.probed_devices();
                let data = data.unwrap_or_else(|| Probed::Directory(directories.data.clone()));
                Some((data, Probed::Directory(directories.redo.clone())))
            }
            _ => None,
        }
    }

    /// Time that loading took when they were made, a part of making them.
    pub fn loading(&self) -> Duration {
        self.loading
    }

    /// Whether they are on existing servers.
    pub fn are_foreign(&self) -> bool {
        let is_foreign = |made: &Made| matches!(made.image, Image::Schema(..));
        self.made.iter().any(is_foreign)
    }

    /// Puts a layout's database back to the loaded state.
    pub fn restore(&mut self, layout: usize, grounds: &Grounds) -> Result<Restored, DatabaseError> {
        let started = Instant::now();
        let made = &mut self.made[self.of_layout[&layout].made];
        let listed = match &mut made.image {
            Image::Blocks { changed, .. } => changed.take(),
            _ => None,
        };
        let is_rolled_back = made.wanted.is_rolled_back();
        if is_rolled_back {
            volumes::roll_back(&made.volumes, &mut self.directories, grounds)?;
        }
        let mut warnings = Vec::new();
        let report = match &mut made.image {
            Image::Blocks { image, changed } => {
                let report = match is_rolled_back {
                    true => image.rolled_back(listed.as_ref(), self.verify, started)?,
                    false => put_back(image, listed.as_ref(), self.verify, &mut warnings)?,
                };
                *changed = Some(ChangedBlocks::new());
                report
            }
            Image::Tree(image) if is_rolled_back => image.rolled_back(self.verify, started)?,
            Image::Tree(image) => image.restore(self.verify)?,
            Image::Schema(own, workload) => return own.reload(&**workload, &self.interrupted),
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
        if let Image::Blocks { image, changed } = &mut made.image {
            *changed = written.map(|written| blocks::changed_by(image.files(), written));
        }
    }

    /// Takes everything away. Returns what could not be, in words.
    pub fn remove(self) -> Vec<String> {
        let mut leftovers = Vec::new();
        for made in self.made {
            if let Image::Schema(own, _) = made.image {
                leftovers.extend(own.remove());
            }
        }
        drop(self.goldens);
        drop(self.golden_trees);
        leftovers.extend(self.directories.remove());
        leftovers
    }
}

/// What a layout needs, and what is asked of its server for that; or why it cannot be had.
fn wanted_by(
    experiment: &Experiment,
    layout: usize,
    grounds: &Grounds,
) -> Result<(Wanted, Option<ServerRequest>), DatabaseError> {
    let database = experiment.database_of(layout);
    let put_back = experiment.put_back(layout);
    Ok(match (database.engine.server(), database.address()) {
        (None, _) => {
            let files = BlockFiles::by(experiment, layout, grounds)?;
            (Wanted::Blocks(Box::new(files), put_back), None)
        }
        (Some(_), Some(address)) => {
            let request = server_request(&experiment.workload, &database, None);
            (Wanted::Schema(Box::new(address.clone())), request)
        }
        (Some(kind), None) => {
            let files = ServerFiles::of(server(kind), experiment, layout, grounds);
            let files = files.map_err(DatabaseError::Ground)?;
            let tree = ServerTree::of(kind, &files);
            (Wanted::Tree(tree, put_back), Some(files.request))
        }
    })
}

/// Where golden copies go: beside the data of the first layout that is a directory; else where the experiment says, or
/// where the run was started.
fn golden_place(
    experiment: &Experiment,
    wanted: &[usize],
    grounds: &Grounds,
) -> Result<PathBuf, DatabaseError> {
    let is_there =
        |layout: &&usize| !grounds.is_made(**layout) && experiment.layouts[**layout].made.is_none();
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
    let system = SystemFiles::default();
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
