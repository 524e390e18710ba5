//! Whatever files a server makes: for each set of settings that shapes them one golden tree, loaded by the server, and
//! the image of it that trials use.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use spindle_engines::sql::{ServerKind, ServerRequest, create_and_load, server};
use spindle_layout::{
    GoldenTree, GroupedFile, KnownDevice, RawFile, TreeDirectories, TreeImage, check_space,
};

use super::{Databases, Made, MadeDatabase, Making, OfLayout, devices_beneath};
use crate::observe::device_probe::Probed;
use crate::restored::DatabaseError;
use crate::server_files::ServerFiles;
use crate::trial::protocol::{ServerTrial, TrialDatabase};
use spindle_experiment::{PutBack, ServerSpec};
use spindle_system::DeviceNumber;

/// The settings that a database is made with: what takes part in how its files are.
pub(super) type FileShape = BTreeMap<String, String>;

/// What a layout's database is made of.
#[derive(Debug, Clone, PartialEq)]
struct ServerTree {
    kind: ServerKind,
    shape: FileShape,
    /// The place of each kind of file.
    places: BTreeMap<&'static str, PathBuf>,
    /// Datafiles on raw devices.
    raw: Vec<RawFile>,
    /// Datafiles in disk groups.
    grouped: Vec<GroupedFile>,
}

impl ServerTree {
    /// What a layout's files are made of.
    fn of(kind: ServerKind, files: &ServerFiles) -> ServerTree {
        let settings = files.request.settings.iter();
        let shape = settings.filter(|(name, _)| server(kind).shapes_files(name));
        ServerTree {
            kind,
            shape: shape
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            places: files.places.clone(),
            raw: files.raw.clone(),
            grouped: files.grouped.clone(),
        }
    }

    /// The block devices beneath its files, where known.
    fn devices(&self) -> Vec<DeviceNumber> {
        let raw = self.raw.iter().map(|file| file.device.path());
        let disks = self.grouped.iter().flat_map(|file| &file.disks);
        let places = self.places.values().map(PathBuf::as_path).chain(raw);
        devices_beneath(places.chain(disks.map(KnownDevice::path)))
    }

    /// Where the devices beneath its datafiles are probed, when these lie in no file system.
    fn probed_devices(&self) -> Option<Probed> {
        if let Some(raw) = self.raw.first() {
            return Some(Probed::Region {
                device: raw.device.device.clone(),
                first_byte: 0,
                bytes: raw.bytes,
            });
        }
        let file = self.grouped.first()?;
        Some(Probed::Region {
            device: file.disks.first()?.clone(),
            first_byte: 0,
            bytes: file.bytes / file.disks.len() as u64,
        })
    }

    /// Bytes of its files that lie in no directory.
    fn elsewhere_bytes(&self) -> u64 {
        let raw = self.raw.iter().map(|file| file.bytes);
        let grouped = self.grouped.iter().map(|file| file.bytes);
        raw.chain(grouped).sum()
    }

    /// A raw device holds one database only.
    fn check_devices(&self, made: &[Made]) -> Result<(), DatabaseError> {
        let trees = made.iter().filter_map(|made| match &made.database {
            MadeDatabase::Server(made) => Some(&made.wanted),
            MadeDatabase::Kernel(_) | MadeDatabase::Remote(_) => None,
        });
        let taken = trees.flat_map(|tree| &tree.raw);
        let taken: BTreeSet<&Path> = taken.map(|file| file.device.path()).collect();
        let mut devices = self.raw.iter().map(|file| &file.device);
        match devices.find(|device| taken.contains(device.path())) {
            None => Ok(()),
            Some(device) => Err(DatabaseError::Target(format!(
                "{} holds the database of another layout, whose files are made differently: give each its own devices",
                device.called().display()
            ))),
        }
    }
}

/// The files of a server, made for layouts that need the same.
pub(super) struct MadeTree {
    wanted: ServerTree,
    pub put_back: PutBack,
    pub image: TreeImage,
}

impl MadeTree {
    /// Where the devices beneath its data and beneath its redo are probed.
    pub fn probed(&self) -> (Probed, Probed) {
        let directories = self.image.directories();
        let data = self.wanted.probed_devices();
        let data = data.unwrap_or_else(|| Probed::Directory(directories.data.clone()));
        (data, Probed::Directory(directories.redo.clone()))
    }
}

impl Databases {
    /// The database of a server for a layout, made if no other layout has made it.
    pub(super) fn server_for(
        &mut self,
        making: &mut Making<'_>,
        layout: usize,
        spec: &ServerSpec,
    ) -> Result<OfLayout, DatabaseError> {
        let experiment = making.experiment();
        let files = ServerFiles::of(spec, experiment, layout, making.targets);
        let files = files.map_err(DatabaseError::Target)?;
        let (wanted, put_back) = (
            ServerTree::of(spec.kind, &files),
            experiment.put_back(layout),
        );
        let there = self.found(|made| match &made.database {
            MadeDatabase::Server(made) if made.wanted == wanted && made.put_back == put_back => {
                Some(made.image.directories().clone())
            }
            _ => None,
        });
        let (made, directories) = match there {
            Some(there) => there,
            None => {
                let devices = wanted.devices();
                let image = self.tree_image(making, layout, (&wanted, put_back), &files.request)?;
                let directories = image.directories().clone();
                let database = MadeDatabase::Server(MadeTree {
                    wanted,
                    put_back,
                    image,
                });
                (self.push(making, layout, database, devices), directories)
            }
        };
        let trial = TrialDatabase::Server(Box::new(ServerTrial {
            kind: spec.kind,
            memory_bytes: spec.memory.memory_bytes,
            caching: experiment.layouts[layout].io.caching,
            request: files.request,
            directories,
        }));
        Ok(OfLayout { made, trial })
    }

    /// An image of what is wanted, in its own directories.
    fn tree_image(
        &mut self,
        making: &mut Making<'_>,
        layout: usize,
        (wanted, put_back): (&ServerTree, PutBack),
        request: &ServerRequest,
    ) -> Result<TreeImage, DatabaseError> {
        wanted.check_devices(&self.made)?;
        let golden = self.golden_tree_for(making, layout, wanted, request)?;
        let name = &making.experiment().layouts[layout].name;
        let copying = format!("copying the database for {name}");
        (making.note)(&copying);
        // Files that share their blocks with originals take as much again when they are overwritten.
        let copies = match put_back {
            PutBack::Clones => 2,
            PutBack::Copy | PutBack::ThinVolumes => 1,
        };
        let bytes = golden.bytes().saturating_sub(wanted.elsewhere_bytes());
        for place in wanted.places.values().collect::<BTreeSet<_>>() {
            self.directories.make(place, making.owner(layout))?;
            check_space(place, copies * bytes)?;
        }
        let directories = self.make_directories(|kind| wanted.places[kind].clone())?;
        Ok(match put_back {
            PutBack::Clones => {
                let originals = self.make_directories(|kind| wanted.places[kind].clone())?;
                TreeImage::provision_clones(&golden, directories, originals)?
            }
            PutBack::Copy | PutBack::ThinVolumes if wanted.grouped.is_empty() => {
                TreeImage::provision_on(&golden, directories, &wanted.raw)?
            }
            PutBack::Copy | PutBack::ThinVolumes => {
                let prefix = format!("{}-", self.made.len() + 1);
                TreeImage::provision_in_groups(&golden, directories, &wanted.grouped, &prefix)?
            }
        })
    }

    /// The golden tree for what is asked of a server, loaded if there is none yet.
    fn golden_tree_for(
        &mut self,
        making: &mut Making<'_>,
        layout: usize,
        wanted: &ServerTree,
        request: &ServerRequest,
    ) -> Result<Arc<GoldenTree>, DatabaseError> {
        let mut there = self.golden_trees.iter();
        if let Some((_, golden)) = there.find(|(shape, _)| *shape == wanted.shape) {
            return Ok(Arc::clone(golden));
        }
        let (server, place) = (server(wanted.kind), making.golden_place.clone());
        let database = making.experiment().database_of(layout);
        let own_bytes = server.room(request).own_bytes;
        check_space(&place, database.size_bytes + own_bytes)?;
        let data_mib = database.size_bytes >> 20;
        (making.note)(&format!("loading {data_mib} MiB of data"));
        let directories = self.make_directories(|_| place.clone())?;
        let experiment = making.experiment();
        let workload =
            experiment
                .workload
                .in_sql(database.size_bytes, wanted.kind, experiment.seed);
        let began = Instant::now();
        create_and_load(server, request, &directories, &*workload, &self.interrupted)?;
        self.loading += began.elapsed();
        let golden = GoldenTree::seal_unless(directories, &self.interrupted)?;
        let shape = wanted.shape.clone();
        self.golden_trees.push((shape, Arc::clone(&golden)));
        Ok(golden)
    }

    /// Directories for one database, each kind's in its place.
    fn make_directories(
        &mut self,
        place: impl Fn(&'static str) -> PathBuf,
    ) -> Result<TreeDirectories, DatabaseError> {
        self.server_directories += 1;
        let mut made: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for kind in ["data", "index", "redo", "undo", "temp"] {
            let place = place(kind);
            if let Entry::Vacant(entry) = made.entry(place) {
                let directory = self.directories.of(entry.key());
                let made = directory.make_server_directory(self.server_directories)?;
                entry.insert(made);
            }
        }
        let directories = TreeDirectories::within(|kind| made[&place(kind)].clone());
        directories.make()?;
        Ok(directories)
    }
}
