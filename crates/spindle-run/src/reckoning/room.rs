//! The room that a run takes on each file system and on each device that it makes, as a sum of parts beside what is
//! free.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spindle_engines::sql::{Server, ServerRoom};
use spindle_io::disk_group;
use spindle_io::real::facts::FsFacts;
use spindle_layout::spec::{DeviceSpec, LayoutKind};
use spindle_layout::{
    DatabaseFiles, DatabaseShape, Placement, PlacementTarget, RawDevice, RawSpace,
};

use super::ReckoningInput;
use super::databases::{Databases, Files, ReckonedImage};
use super::destination::Destination;
use spindle_experiment::{DatabaseSpec, DiskGroupSpec, PutBack};
use spindle_text::file_kind::FileKind;
use spindle_text::quantity::size_needed;
use spindle_text::vocabulary::Vocabulary;

/// A run's journal and reports, and what each trial adds to them, about.
const RESULTS_BYTES: u64 = 4 << 20;
const RESULTS_OF_TRIAL_BYTES: u64 = 64 << 10;
const MIB: u64 = 1 << 20;

/// A place, what goes there, and what is free.
pub struct RoomAtPlace {
    /// The place, in words.
    pub place: String,
    /// What is free there.
    pub free_bytes: u64,
    /// Whether what lies there takes memory.
    pub is_in_memory: bool,
    parts: Vec<RoomPart>,
}

/// Something that takes room.
struct RoomPart {
    what: &'static str,
    bytes: u64,
    /// How often.
    count: u64,
    /// It is needed for certain; otherwise trials may come to need it.
    is_sure: bool,
}

impl RoomAtPlace {
    /// What is taken for certain.
    pub fn sure_bytes(&self) -> u64 {
        let sure = self.parts.iter().filter(|part| part.is_sure);
        sure.map(|part| part.bytes).sum()
    }

    /// With what trials may add.
    pub fn all_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// `golden copy 1.2 GiB, data 2 GiB (2 together), growth up to 300 MiB`.
    pub fn parts(&self) -> String {
        let sure = self.parts.iter().filter(|part| part.is_sure);
        let mut said: Vec<String> = sure
            .map(|part| match part.count {
                1 => format!("{} {}", part.what, size_needed(part.bytes)),
                times => format!(
                    "{} {} ({times} together)",
                    part.what,
                    size_needed(part.bytes)
                ),
            })
            .collect();
        let unsure = self.parts.iter().filter(|part| !part.is_sure);
        said.extend(unsure.map(|part| format!("{} up to {}", part.what, size_needed(part.bytes))));
        said.join(", ")
    }

    fn add(&mut self, what: &'static str, bytes: u64, is_sure: bool) {
        let is_same = |part: &&mut RoomPart| (part.what, part.is_sure) == (what, is_sure);
        match self.parts.iter_mut().find(is_same) {
            _ if bytes == 0 => {}
            Some(part) => {
                part.bytes += bytes;
                part.count += 1;
            }
            None => self.parts.push(RoomPart {
                what,
                bytes,
                count: 1,
                is_sure,
            }),
        }
    }
}

/// What a room is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// An existing file system, by its device.
    FileSystem(String),
    /// A file system or a disk group that is made, by its number.
    Made(usize),
    /// Raw devices that are made ready, by their names.
    Devices(Vec<PathBuf>),
}

/// All places.
pub(super) struct Rooms<'a> {
    seen: ReckoningInput<'a>,
    rooms: BTreeMap<Key, RoomAtPlace>,
    raw: RawSpace,
    /// What fits into no single device, though there is room in all together.
    misfits: Vec<String>,
}

impl<'a> Rooms<'a> {
    /// The room that a run takes, and what fits nowhere though its sum would, in words.
    pub fn of(
        seen: ReckoningInput<'a>,
        databases: &Databases,
        trials: u64,
    ) -> (Vec<RoomAtPlace>, Vec<String>) {
        let mut rooms = Rooms {
            seen,
            rooms: BTreeMap::new(),
            raw: RawSpace::default(),
            misfits: Vec::new(),
        };
        rooms.add_device_files();
        if !databases.goldens.is_empty() {
            let place = rooms.golden_place();
            for golden in &databases.goldens {
                rooms.put_in(&place, "golden copy", golden.bytes(), true);
            }
        }
        for image in &databases.images {
            match &databases.goldens[image.golden].files {
                Files::Kernel(shape) => rooms.add_kernel(image, shape),
                files @ Files::Server { data_bytes, .. } => {
                    if let (Some(server), Some(room)) = (files.server(), image.room) {
                        rooms.add_server(image, server, *data_bytes, room);
                    }
                }
            }
        }
        let results_bytes = RESULTS_BYTES + trials * RESULTS_OF_TRIAL_BYTES;
        rooms.put_in(seen.results, "results", results_bytes, false);
        (rooms.rooms.into_values().collect(), rooms.misfits)
    }

    /// Files that stand in for devices: made whole, whatever lies in them.
    fn add_device_files(&mut self) {
        let mut known: Vec<&Path> = Vec::new();
        let made = self
            .seen
            .destinations
            .specs
            .iter()
            .zip(&self.seen.destinations.plan.layouts);
        let made = made.filter(|(_, plan)| plan.obstacles.is_empty());
        for device in made.flat_map(|((spec, _), _)| &spec.devices) {
            let DeviceSpec::File { path, size_bytes } = device else {
                continue;
            };
            if !known.contains(&path.as_path()) {
                known.push(path);
                let directory = path.parent().unwrap_or(Path::new("/"));
                self.put_in(directory, "files as devices", *size_bytes, true);
            }
        }
    }

    /// As `run` chooses it: beside the data of the first layout that is a directory, unless the experiment says where.
    fn golden_place(&self) -> PathBuf {
        let experiment = self.seen.destinations.experiment;
        let mut layouts = experiment.candidates();
        let is_there =
            |of: &usize| experiment.layouts[*of].made.is_none() && (self.seen.can_be_used)(*of);
        let beside = layouts
            .find(is_there)
            .map(|of| experiment.layouts[of].path.clone());
        let said = experiment.plan.golden_path.clone();
        said.or(beside).unwrap_or_else(|| PathBuf::from("."))
    }

    fn add_kernel(&mut self, image: &ReckonedImage, shape: &DatabaseShape) {
        let copies = copies_of(image.put_back);
        let redo_bytes = shape.redo_bytes.iter().sum();
        let data_bytes = shape.data_bytes.iter().sum::<u64>() + shape.double_write_bytes;
        let kinds = [
            (FileKind::Control, shape.control_bytes),
            (FileKind::Redo, redo_bytes),
            (FileKind::Undo, shape.undo_bytes),
            (FileKind::Data, data_bytes),
            (FileKind::Temp, shape.temp_bytes.iter().sum()),
        ];
        for (kind, bytes) in kinds.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let destination = self.seen.destinations.of(image.layout, kind);
            let what = kind.as_str();
            self.put_on(image.layout, &destination, what, copies * bytes, true);
            if image.put_back == PutBack::ThinVolumes {
                // What is overwritten is kept in the snapshot.
                self.put_on(image.layout, &destination, "snapshot", bytes, false);
            }
        }
        self.try_to_place(image, shape);
    }

    /// Places files on raw devices as `run` does, where a whole file lies on one device.
    fn try_to_place(&mut self, image: &ReckonedImage, shape: &DatabaseShape) {
        let target =
            |kind| self.target_of(image.layout, &self.seen.destinations.of(image.layout, kind));
        let placement = Placement {
            control: target(FileKind::Control),
            redo: target(FileKind::Redo),
            undo: target(FileKind::Undo),
            data: target(FileKind::Data),
            temp: target(FileKind::Temp),
        };
        if let Err(error) = DatabaseFiles::place(shape, &placement, &mut self.raw) {
            let name = &self.seen.destinations.experiment.layouts[image.layout].name;
            self.misfits.push(format!("{name}: {error}"));
        }
    }

    fn target_of(&self, layout: usize, destination: &Destination) -> PlacementTarget {
        match self.seen.destinations.devices_of(layout, destination) {
            Some(devices) => PlacementTarget::Devices(devices),
            None => PlacementTarget::Directory(PathBuf::from("/")),
        }
    }

    fn add_server(
        &mut self,
        image: &ReckonedImage,
        server: &dyn Server,
        data_bytes: u64,
        room: ServerRoom,
    ) {
        let (layout, destinations) = (image.layout, self.seen.destinations);
        let of = |kind| destinations.of_server(layout, kind, server.placed_kinds());
        let data = destinations.of(layout, FileKind::Data);
        let others = (
            of(None),
            of(Some(FileKind::Redo)),
            of(Some(FileKind::Index)),
        );
        let (Some(home), Some(redo), Some(index)) = others else {
            // It is not for this layout: the run says so.
            return;
        };
        let copies = copies_of(image.put_back);
        if let Some(bytes) = image.on_devices_bytes {
            self.put_on(layout, &data, "data", bytes, true);
        } else if index == data {
            self.put_on(layout, &data, "data", copies * data_bytes, true);
        } else {
            // How much of it are indexes depends on the workload.
            self.put_on(layout, &data, "data", copies * data_bytes / 2, true);
            self.put_on(layout, &data, "more data", copies * data_bytes / 2, false);
            self.put_on(layout, &index, "indexes", copies * data_bytes / 2, false);
        }
        let own_bytes = copies * room.own_bytes;
        self.put_on(layout, &home, "server's own files", own_bytes, true);
        let words = Vocabulary::of(destinations.experiment.database.engine().as_str());
        self.put_on(layout, &redo, words.log, room.redo_bytes, true);
        self.put_on(layout, &home, "growth", room.growth_bytes, false);
        if image.put_back == PutBack::ThinVolumes {
            self.put_on(layout, &data, "snapshot", data_bytes, false);
        }
    }

    fn put_on(
        &mut self,
        layout: usize,
        destination: &Destination,
        what: &'static str,
        bytes: u64,
        is_sure: bool,
    ) {
        let number = match destination {
            Destination::Directory(path) => return self.put_in(path, what, bytes, is_sure),
            Destination::Made { number, .. } => *number,
        };
        let (spec, _) = &self.seen.destinations.specs[number];
        let plan = &self.seen.destinations.plan.layouts[number];
        let (key, place, free_bytes) = match self.seen.destinations.devices_of(layout, destination)
        {
            Some(devices) => {
                let paths: Vec<PathBuf> = devices.iter().map(|of| of.path().to_owned()).collect();
                let names: Vec<String> = paths.iter().map(|of| of.display().to_string()).collect();
                let spec = self.seen.destinations.experiment.spec();
                let usable = |device: &RawDevice| match spec {
                    DatabaseSpec::Kernel(_) => usable_bytes(device.bytes),
                    // Its file is the device.
                    DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => device.bytes,
                };
                let free_bytes = devices.iter().map(usable).sum();
                (Key::Devices(paths), names.join(", "), free_bytes)
            }
            None => {
                let kind = match &spec.kind {
                    LayoutKind::FileSystem(of) => of.type_name.as_str(),
                    _ => "disk group",
                };
                let free_bytes = match destination {
                    Destination::Made {
                        group: Some(group), ..
                    } => room_of_group(group, &plan.room_bytes),
                    _ => plan.room_bytes.iter().sum(),
                };
                let place = format!("{}, {kind}", plan.name);
                (Key::Made(number), place, free_bytes)
            }
        };
        self.room(key, || (place, free_bytes, false))
            .add(what, bytes, is_sure);
    }

    fn put_in(&mut self, directory: &Path, what: &'static str, bytes: u64, is_sure: bool) {
        let Some(found) = (self.seen.file_system)(directory) else {
            return;
        };
        let key = Key::FileSystem(match found.type_name.as_str() {
            // Each subvolume has its own device number, and all have the same room.
            "btrfs" => found.source.clone(),
            _ => format!("{}:{}", found.device_major, found.device_minor),
        });
        let room = self.room(key, || {
            let is_in_memory = ["tmpfs", "ramfs"].contains(&found.type_name.as_str());
            (called(&found), found.free_bytes, is_in_memory)
        });
        room.add(what, bytes, is_sure);
    }

    fn room(&mut self, key: Key, make: impl FnOnce() -> (String, u64, bool)) -> &mut RoomAtPlace {
        self.rooms.entry(key).or_insert_with(|| {
            let (place, free_bytes, is_in_memory) = make();
            RoomAtPlace {
                place,
                free_bytes,
                is_in_memory,
                parts: Vec::new(),
            }
        })
    }
}

/// Copies of a file that lie beside each other.
fn copies_of(put_back: PutBack) -> u64 {
    match put_back {
        // What shares blocks with an original takes as much again when it is overwritten.
        PutBack::Clones => 2,
        PutBack::Copy | PutBack::ThinVolumes => 1,
    }
}

/// What a disk group of these disks has for files, each in as many copies as it keeps.
fn room_of_group(group: &DiskGroupSpec, disks_bytes: &[u64]) -> u64 {
    let of_disk = |bytes: &u64| disk_group::room_bytes(*bytes, group.allocation_unit_bytes);
    disks_bytes.iter().map(of_disk).sum::<u64>() / group.redundancy.copies() as u64
}

/// The first and the last mebibyte of a raw device stay untouched.
fn usable_bytes(device_bytes: u64) -> u64 {
    (device_bytes / MIB * MIB).saturating_sub(2 * MIB)
}

fn called(found: &FsFacts) -> String {
    match found.mount_point.as_os_str().is_empty() {
        true => found.type_name.clone(),
        false => format!("{}, {}", found.mount_point.display(), found.type_name),
    }
}
