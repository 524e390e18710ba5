//! The databases of a run whose engine is a server: for each set of settings that shapes its files one golden tree,
//! loaded by the server; for each place one image of it, which all layouts that agree in both share. See `images` for
//! the same of the embedded database.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spindle_engines::sql::{ServerKind, ServerRequest, create_and_load, server};
use spindle_layout::{
    GoldenTree, GroupedFile, KnownDevice, RawFile, TreeDirectories, TreeImage, Verify, check_space,
};

use super::grounds::Grounds;
use super::images::{golden, restore_of, warnings_of};
use super::own_directories::OwnDirectories;
use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use super::schedule::order_of_making;
use super::server_files::ServerFiles;
use super::volumes;
use crate::observe::SystemFiles;
use crate::observe::block_device::DeviceNumber;
use crate::observe::device_probe::Probed;
use crate::observe::machine::DataPath;
use crate::trial::protocol::sql_workload_of;
use spindle_experiment::{Experiment, PutBack};

/// The settings that a database is made with: what takes part in how its files are.
type FileShape = BTreeMap<String, String>;

/// What a layout's database is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    shape: FileShape,
    /// The place of each kind of file.
    places: BTreeMap<&'static str, PathBuf>,
    /// Datafiles on raw devices.
    raw: Vec<RawFile>,
    /// Datafiles in disk groups.
    grouped: Vec<GroupedFile>,
    put_back: PutBack,
}

struct MadeTree {
    wanted: Wanted,
    image: TreeImage,
    /// The volumes that its files lie on, where they are put back as a whole.
    volumes: Vec<usize>,
    devices: Vec<DeviceNumber>,
}

/// What belongs to a layout.
struct OfLayout {
    /// Its place among the images.
    image: usize,
    request: ServerRequest,
}

/// The databases of a run.
pub struct Trees {
    kind: ServerKind,
    verify: Verify,
    images: Vec<MadeTree>,
    goldens: Vec<(FileShape, Arc<GoldenTree>)>,
    of_layout: BTreeMap<usize, OfLayout>,
    directories: OwnDirectories,
    /// Time that loading took.
    loading: Duration,
    /// Directories of servers made so far.
    made: u32,
    /// Ends loading.
    interrupted: Arc<AtomicBool>,
}

impl Trees {
    /// Makes the databases of the layouts `wanted`. `note` hears what is being done. Returns the layouts that cannot
    /// have theirs, with the reason.
    pub fn prepare(
        kind: ServerKind,
        state: &RunState,
        wanted: &[usize],
        grounds: &Grounds,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Trees, Vec<(usize, String)>), DatabaseError> {
        let experiment = &state.experiment;
        let mut trees = Trees {
            kind,
            verify: experiment.plan.restore_verify,
            images: Vec::new(),
            goldens: Vec::new(),
            of_layout: BTreeMap::new(),
            loading: Duration::ZERO,
            directories: OwnDirectories::new(&state.run, grounds.ledger()),
            made: 0,
            interrupted: Arc::clone(interrupted),
        };
        let wanted: BTreeSet<usize> = wanted.iter().copied().collect();
        let layouts: Vec<usize> = wanted.iter().copied().collect();
        let golden_place = golden::golden_place(experiment, &layouts, grounds)?;
        trees.directories.make(&golden_place, None)?;
        let mut failed = Vec::new();
        for layout in order_of_making(state, &layouts) {
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            match trees.image_for(experiment, layout, grounds, &golden_place, note) {
                Ok(made) => {
                    trees.of_layout.insert(layout, made);
                }
                Err(_) if interrupted.load(Ordering::Relaxed) => break,
                Err(error) => failed.push((layout, error.to_string())),
            }
        }
        failed.extend(trees.keep_volumes(grounds, note));
        failed.sort_by_key(|(layout, _)| *layout);
        Ok((trees, failed))
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
        let reason = |of: &OfLayout| images[of.image].volumes.iter().find_map(|of| lost.get(of));
        let of_layout = self.of_layout.iter();
        let failed: Vec<(usize, String)> = of_layout
            .filter_map(|(layout, of)| Some((*layout, reason(of)?.clone())))
            .collect();
        for (layout, _) in &failed {
            self.of_layout.remove(layout);
        }
        failed
    }

    /// The directories of a layout's database.
    pub fn directories(&self, layout: usize) -> TreeDirectories {
        self.image(layout).image.directories().clone()
    }

    /// The devices beneath them, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        self.image(layout).devices.clone()
    }

    /// Where the devices beneath a layout's data and redo are probed.
    pub fn probed(&self, layout: usize) -> (Probed, Probed) {
        let made = self.image(layout);
        let directories = made.image.directories().named();
        let directory = |wanted| {
            let mut named = directories.iter();
            let found = named.find(|(kind, _)| *kind == wanted);
            let (_, path) = found.expect("a server has directories of all kinds");
            Probed::Directory(path.to_path_buf())
        };
        let data = match (made.wanted.raw.first(), made.wanted.grouped.first()) {
            (Some(raw), _) => Probed::Region {
                device: raw.device.device.clone(),
                first_byte: 0,
                bytes: raw.bytes,
            },
            (None, Some(file)) if !file.disks.is_empty() => Probed::Region {
                device: file.disks[0].clone(),
                first_byte: 0,
                bytes: file.bytes / file.disks.len() as u64,
            },
            _ => directory("data"),
        };
        (data, directory("redo"))
    }

    /// What is asked of a layout's server.
    pub fn request(&self, layout: usize) -> ServerRequest {
        self.of_layout[&layout].request.clone()
    }

    fn image(&self, layout: usize) -> &MadeTree {
        &self.images[self.of_layout[&layout].image]
    }

    /// Puts a layout's database back to the loaded state.
    pub fn restore(&mut self, layout: usize, grounds: &Grounds) -> Result<Restored, DatabaseError> {
        let made = &self.images[self.of_layout[&layout].image];
        let report = match made.wanted.put_back {
            PutBack::Copy | PutBack::Clones => made.image.restore(self.verify)?,
            PutBack::ThinVolumes => {
                let started = Instant::now();
                volumes::roll_back(&made.volumes, &mut self.directories, grounds)?;
                made.image.rolled_back(self.verify, started)?
            }
        };
        Ok(Restored {
            restore: restore_of(&report),
            warnings: warnings_of(&report),
        })
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

    fn image_for(
        &mut self,
        experiment: &Experiment,
        layout: usize,
        grounds: &Grounds,
        golden_place: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<OfLayout, DatabaseError> {
        let files = ServerFiles::of(server(self.kind), experiment, layout, grounds);
        let files = files.map_err(DatabaseError::Ground)?;
        let wanted = self.wanted_by(&files, experiment.put_back(layout));
        let request = files.request;
        if let Some(image) = self.images.iter().position(|made| made.wanted == wanted) {
            return Ok(OfLayout { image, request });
        }
        self.check_devices(&wanted)?;
        let golden = self.golden_for(
            experiment,
            layout,
            &request,
            &wanted.shape,
            golden_place,
            note,
        )?;
        let name = &experiment.layouts[layout].name;
        note(&format!("copying the database for {name}"));
        let owner = grounds.is_made(layout).then_some(name.as_str());
        let raw = wanted.raw.iter().map(|file| file.bytes);
        let grouped = wanted.grouped.iter().map(|file| file.bytes);
        let elsewhere_bytes: u64 = raw.chain(grouped).sum();
        for place in wanted.places.values().collect::<BTreeSet<_>>() {
            self.directories.make(place, owner)?;
            // Files that share their blocks with originals take as much again when they are overwritten.
            let copies = match wanted.put_back {
                PutBack::Clones => 2,
                PutBack::Copy | PutBack::ThinVolumes => 1,
            };
            let bytes = golden.bytes().saturating_sub(elsewhere_bytes);
            check_space(place, copies * bytes)?;
        }
        let directories = self.make_directories(|kind| wanted.places[kind].clone())?;
        let devices = devices_of(&wanted);
        let image = match wanted.put_back {
            PutBack::Clones => {
                let originals = self.make_directories(|kind| wanted.places[kind].clone())?;
                TreeImage::provision_clones(&golden, directories, originals)?
            }
            PutBack::Copy | PutBack::ThinVolumes if wanted.grouped.is_empty() => {
                TreeImage::provision_on(&golden, directories, &wanted.raw)?
            }
            PutBack::Copy | PutBack::ThinVolumes => {
                let prefix = format!("{}-", self.images.len() + 1);
                TreeImage::provision_in_groups(&golden, directories, &wanted.grouped, &prefix)?
            }
        };
        let volumes = match wanted.put_back {
            PutBack::ThinVolumes => grounds.thin_volumes(experiment, layout),
            PutBack::Copy | PutBack::Clones => Vec::new(),
        };
        self.images.push(MadeTree {
            wanted,
            image,
            volumes,
            devices,
        });
        let image = self.images.len() - 1;
        Ok(OfLayout { image, request })
    }

    fn wanted_by(&self, files: &ServerFiles, put_back: PutBack) -> Wanted {
        let settings = files.request.settings.iter();
        let shape = settings.filter(|(name, _)| server(self.kind).shapes_files(name));
        Wanted {
            shape: shape
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            places: files.places.clone(),
            raw: files.raw.clone(),
            grouped: files.grouped.clone(),
            put_back,
        }
    }

    /// A raw device holds one database only.
    fn check_devices(&self, wanted: &Wanted) -> Result<(), DatabaseError> {
        let taken = self.images.iter().flat_map(|made| &made.wanted.raw);
        let taken: BTreeSet<&Path> = taken.map(|file| file.device.path()).collect();
        let mut devices = wanted.raw.iter().map(|file| &file.device);
        match devices.find(|device| taken.contains(device.path())) {
            None => Ok(()),
            Some(device) => Err(DatabaseError::Ground(format!(
                "{} holds the database of another layout, whose files are made differently: give each its own devices",
                device.called().display()
            ))),
        }
    }

    /// Directories for one database, each kind's in its place.
    fn make_directories(
        &mut self,
        place: impl Fn(&'static str) -> PathBuf,
    ) -> Result<TreeDirectories, DatabaseError> {
        self.made += 1;
        let mut made: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for kind in ["data", "index", "redo", "undo", "temp"] {
            let place = place(kind);
            if let Entry::Vacant(entry) = made.entry(place) {
                let directory = self.directories.of(entry.key());
                let made = directory.make_server_directory(self.made)?;
                entry.insert(made);
            }
        }
        let directories = TreeDirectories::within(|kind| made[&place(kind)].clone());
        directories.make()?;
        Ok(directories)
    }

    /// The golden tree for what is asked of a server, loaded if there is none yet.
    fn golden_for(
        &mut self,
        experiment: &Experiment,
        layout: usize,
        request: &ServerRequest,
        shape: &FileShape,
        place: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Arc<GoldenTree>, DatabaseError> {
        if let Some((_, golden)) = self.goldens.iter().find(|(of, _)| of == shape) {
            return Ok(Arc::clone(golden));
        }
        let database = experiment.database_of(layout);
        let own_bytes = server(self.kind).room(request).own_bytes;
        check_space(place, database.size_bytes + own_bytes)?;
        note(&format!(
            "loading {} MiB of data",
            database.size_bytes >> 20
        ));
        let directories = self.make_directories(|_| place.to_path_buf())?;
        let workload = sql_workload_of(&experiment.workload, &database, experiment.seed);
        let began = Instant::now();
        let server = server(self.kind);
        create_and_load(server, request, &directories, &*workload, &self.interrupted)?;
        self.loading += began.elapsed();
        let golden = GoldenTree::seal_unless(directories, &self.interrupted)?;
        self.goldens.push((shape.clone(), Arc::clone(&golden)));
        Ok(golden)
    }
}

fn devices_of(wanted: &Wanted) -> Vec<DeviceNumber> {
    let system = SystemFiles::default();
    let device = |place: &Path| {
        let device = DataPath::capture(&system, place).device;
        device.map(|device| device.number)
    };
    let raw = wanted.raw.iter().map(|file| file.device.path());
    let disks = wanted.grouped.iter().flat_map(|file| &file.disks);
    let places = wanted.places.values().map(PathBuf::as_path).chain(raw);
    let places = places.chain(disks.map(KnownDevice::path));
    let devices: BTreeSet<DeviceNumber> = places.filter_map(device).collect();
    devices.into_iter().collect()
}
