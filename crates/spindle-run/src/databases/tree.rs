//! Whatever files a server makes: for each set of settings that shapes them one golden tree, loaded by the server, and
//! the image of it that trials use.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spindle_engines::EngineError;
use spindle_engines::database::ServerDatabase;
use spindle_engines::engine::Engine;
use spindle_engines::sql::{ServerKind, server};
use spindle_layout::{
    GoldenTree, GroupedFile, KnownDevice, RawFile, TreeDirectories, TreeImage, TreeSite,
    check_space,
};

use super::recipe::{FileShape, Making, Recipe, Store, devices_beneath};
use crate::database_error::DatabaseError;
use crate::layout_targets::LayoutTargets;
use crate::observe::device_probe::Probed;
use crate::server_files::ServerFiles;
use spindle_experiment::{Experiment, PutBack, ServerSpec};
use spindle_system::DeviceNumber;
use spindle_text::file_kind::FileKind;
use spindle_text::load_file::LoadFile;
use spindle_text::quantity::{size, size_free};

/// What a layout's database is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerTree {
    kind: ServerKind,
    shape: FileShape,
    /// The place of each kind of file.
    places: BTreeMap<FileKind, PathBuf>,
    /// Datafiles on raw devices.
    raw: Vec<RawFile>,
    /// Datafiles in disk groups.
    grouped: Vec<GroupedFile>,
}

impl ServerTree {
    /// What a layout needs, and the engine that makes it; or why it cannot be used.
    pub(super) fn of(
        spec: &ServerSpec,
        experiment: &Experiment,
        layout: usize,
        targets: &LayoutTargets,
    ) -> Result<(ServerTree, ServerDatabase), DatabaseError> {
        let files = ServerFiles::of(spec, experiment, layout, targets);
        let files = files.map_err(DatabaseError::Target)?;
        let engine = files.engine(spec, experiment, layout);
        let kind = spec.kind;
        let shape = files.request.settings.into_iter();
        let tree = ServerTree {
            kind,
            shape: shape
                .filter(|(name, _)| server(kind).shapes_files(name))
                .collect(),
            places: files.places,
            raw: files.raw,
            grouped: files.grouped,
        };
        Ok((tree, engine))
    }

    /// Where the devices beneath its data and beneath its redo are probed.
    pub(super) fn probed(&self, directories: &TreeDirectories) -> (Probed, Probed) {
        let data = self.probed_devices();
        let data = data.unwrap_or_else(|| Probed::Directory(directories.data.clone()));
        (data, Probed::Directory(directories.redo.clone()))
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
}

impl Recipe for ServerTree {
    type Engine = ServerDatabase;

    /// A raw device holds one database only.
    fn check(&self, made: &[&ServerTree]) -> Result<(), DatabaseError> {
        let taken = made.iter().flat_map(|made| &made.raw);
        let taken: BTreeSet<&Path> = taken.map(|file| file.device.path()).collect();
        let mut devices = self.raw.iter().map(|file| &file.device);
        match devices.find(|device| taken.contains(device.path())) {
            None => Ok(()),
            Some(device) => Err(DatabaseError::Target(EngineError::unavailable(format!(
                "{} holds the database of another layout, whose files are made differently: give each its own devices",
                device.called().display()
            )))),
        }
    }

    fn golden(
        &self,
        engine: &ServerDatabase,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<Arc<GoldenTree>, DatabaseError> {
        let mut there = store.golden_trees.iter();
        if let Some((_, golden)) = there.find(|(shape, _)| *shape == self.shape) {
            return Ok(Arc::clone(golden));
        }
        let own_bytes = server(self.kind).room(&engine.request).own_bytes;
        let size_bytes = making.experiment().database_of(making.layout).size_bytes;
        check_space(making.golden_place, size_bytes + own_bytes)?;
        let loaded_from = making.experiment().workload.loaded_from();
        (making.note)(&match names_of(loaded_from) {
            Some(names) => format!("loading {names}"),
            None => format!("loading {} of data", size(size_bytes)),
        });
        let directories = store.make_server_directories(|_| making.golden_place.to_path_buf())?;
        engine.create(&directories)?;
        engine.load(&directories, &store.interrupted)?;
        let golden = GoldenTree::seal(directories, &store.interrupted)?;
        let warning = other_size(loaded_from, size_bytes, golden.data_bytes()?, own_bytes);
        store.warnings.extend(warning);
        let shape = self.shape.clone();
        store.golden_trees.push((shape, Arc::clone(&golden)));
        Ok(golden)
    }

    fn site(
        &self,
        golden: &GoldenTree,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<TreeSite, DatabaseError> {
        let name = making.name();
        (making.note)(&format!("copying the database for {name}"));
        // Files that share their blocks with originals take as much again when they are overwritten.
        let copies = match making.put_back {
            PutBack::Clones => 2,
            PutBack::Copy | PutBack::ThinVolumes => 1,
        };
        let bytes = golden.bytes().saturating_sub(self.elsewhere_bytes());
        for place in self.places.values().collect::<BTreeSet<_>>() {
            store.directories.make(place, making.owner())?;
            check_space(place, copies * bytes)?;
        }
        let place = |kind| self.places[&kind].clone();
        Ok(TreeSite {
            directories: store.make_server_directories(place)?,
            originals: match making.put_back {
                PutBack::Clones => Some(store.make_server_directories(place)?),
                PutBack::Copy | PutBack::ThinVolumes => None,
            },
            raw: self.raw.clone(),
            grouped: self.grouped.clone(),
            prefix: format!("{}-", store.next_image),
        })
    }

    fn home(image: &TreeImage) -> TreeDirectories {
        image.directories().clone()
    }

    fn devices(&self, _: &TreeDirectories) -> Vec<DeviceNumber> {
        let raw = self.raw.iter().map(|file| file.device.path());
        let disks = self.grouped.iter().flat_map(|file| &file.disks);
        let places = self.places.values().map(PathBuf::as_path).chain(raw);
        devices_beneath(places.chain(disks.map(KnownDevice::path)))
    }
}

impl Store {
    /// Directories of a server for one database, each kind's in its place.
    fn make_server_directories(
        &mut self,
        place: impl Fn(FileKind) -> PathBuf,
    ) -> Result<TreeDirectories, DatabaseError> {
        self.server_directories += 1;
        let mut made: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let kinds = [
            FileKind::Data,
            FileKind::Index,
            FileKind::Redo,
            FileKind::Undo,
            FileKind::Temp,
        ];
        for place in kinds.map(&place) {
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

/// What is to be said when the files of `load` make far more or less data than the experiment expects. `found_bytes`
/// are of tables, indexes and all that the server has in their directories, which takes up to `own_bytes`.
fn other_size(
    loaded_from: &[LoadFile],
    expected_bytes: u64,
    found_bytes: u64,
    own_bytes: u64,
) -> Option<String> {
    let least_bytes = found_bytes.saturating_sub(own_bytes);
    let made = match () {
        () if least_bytes > 2 * expected_bytes => {
            format!("about {} of data", size_free(least_bytes))
        }
        () if 2 * found_bytes < expected_bytes => format!(
            "less than {} of data, as that is all of the database with what the server makes itself",
            size_free(found_bytes)
        ),
        () => return None,
    };
    Some(format!(
        "{} made {made}, and size is {}: caches, memory and room were reckoned by that. Set database.size (with try: \
         --size) to what is loaded",
        names_of(loaded_from)?,
        size(expected_bytes)
    ))
}

/// The files of `load`, if there are any.
fn names_of(loaded_from: &[LoadFile]) -> Option<String> {
    let names: Vec<&str> = loaded_from.iter().map(LoadFile::name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use spindle_text::load_file::TextFile;

    use super::*;

    #[test]
    fn a_load_of_another_size_is_told() {
        let files = [LoadFile::Text(TextFile {
            name: "schema.sql".to_owned(),
            weight: 1,
            text: String::new(),
        })];
        let told = |files, found_mib: u64| other_size(files, 256 << 20, found_mib << 20, 100 << 20);
        for about_right in [128, 256, 612] {
            assert_eq!(told(&files[..], about_right), None);
        }
        let more = told(&files[..], 700).unwrap();
        assert!(more.starts_with("schema.sql made about 600 MiB of data, and size is 256 MiB"));
        let less = told(&files[..], 8).unwrap();
        assert!(less.contains("made less than 8 MiB"), "{less}");
        assert_eq!(told(&[], 8), None, "Spindle loads what size says");
    }
}
