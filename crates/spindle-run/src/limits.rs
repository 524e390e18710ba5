//! The limits of a run's layouts: made ready, and tried before anything is measured with them. A limit that cannot be
//! had here, or that does not hold, makes its layout skipped; no trial ever runs without it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{Mode, OFlags};
use spindle_engines::EngineError;
use spindle_layout::{KnownDevice, LayoutError};

use crate::trial::limit_probe::{LimitProbe, ProbedWrites, SCRATCH_BYTES};
use crate::trial::protocol::Limited;
use crate::trial::supervisor;
use spindle_experiment::{Caching, DatabaseSpec, Experiment, Layout, WriteSync};
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::block_device::DiskFacts;
use spindle_system::io_limit::{IoLimit, Rates, whole_disk};
use spindle_system::machine::DataPath;
use spindle_text::vocabulary::Vocabulary;

/// What files of a layout lie on: the layout itself, the directory that its redo is in, or another layout that its
/// `placement` names.
pub struct LayoutPart {
    /// What messages call it; `None` for the layout itself.
    name: Option<String>,
    limit: Option<Rates>,
    /// Its directory or devices.
    paths: Vec<PathBuf>,
    /// How the database's writes reach it.
    writes: ProbedWrites,
}

/// What files of a layout lie on, itself first. `paths_of` knows the directories and devices of layouts. Redo in its
/// own directory belongs to the layout, and so is held to its limit.
pub fn parts_of(
    experiment: &Experiment,
    index: usize,
    paths_of: impl Fn(usize) -> Vec<PathBuf>,
) -> Vec<LayoutPart> {
    let layout = &experiment.layouts[index];
    let (writes, redo_writes) = writes_of(experiment, index);
    let mut parts = vec![LayoutPart {
        name: None,
        limit: layout.limit,
        paths: paths_of(index),
        writes,
    }];
    parts.extend(experiment.redo_apart(index).map(|path| LayoutPart {
        name: Some("redo_path".to_owned()),
        limit: layout.limit,
        paths: vec![path],
        writes: redo_writes,
    }));
    let others = (0..experiment.layouts.len()).filter(|other| *other != index);
    for other in others {
        let name = &experiment.layouts[other].name;
        if layout.placement.layouts().any(|placed| placed == name) {
            parts.push(LayoutPart {
                name: Some(name.clone()),
                limit: experiment.layouts[other].limit,
                paths: paths_of(other),
                writes,
            });
        }
    }
    parts
}

/// Limits that can be set: the layout's own, and those of the layouts that its files are placed on.
pub struct LayoutLimit {
    /// What sets them.
    pub io: IoLimit,
    /// The devices that hold the layout's files, whose counts are looked at.
    limited: Vec<Limited>,
    flushes: Flushes,
}

impl LayoutLimit {
    /// What a trial's process looks at when it is over.
    pub fn to_be_checked(&self) -> Vec<Limited> {
        self.limited.clone()
    }

    /// How the flushes of durable writes count.
    pub fn flushes(&self) -> Flushes {
        self.flushes
    }
}

/// How a limit of writes per second takes the flush that ends each durable write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushes {
    /// There is no such limit, or the device needs no separate flush.
    None,
    /// As a write: the process makes it.
    Counted,
    /// Not at all: a worker of the kernel makes it when an asynchronous direct write has ended.
    Free,
}

impl Flushes {
    /// Of writes by the access path of `layout` to a device that is held to `limit`.
    fn of(layout: &Layout, limit: Rates, device: &DiskFacts) -> Flushes {
        let limits_writes = limit.write_iops.is_some();
        let is_cached = device.write_cache.as_deref() != Some("write through");
        if !limits_writes || !is_cached || device.fua == Some(true) {
            return Flushes::None;
        }
        match (layout.io.caching, layout.io.method.is_asynchronous()) {
            (Caching::Direct, true) => Flushes::Free,
            _ => Flushes::Counted,
        }
    }

    /// What is to be said of the layout.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Flushes::None => None,
            Flushes::Counted => {
                Some("under its limit a durable write counts as two: the write and its flush")
            }
            Flushes::Free => Some(
                "under its limit a durable write counts as one: the kernel charges its flush to no process",
            ),
        }
    }
}

/// The limits of a layout's parts, if there are any. Error: why they cannot be used here.
pub fn prepare(
    experiment: &Experiment,
    index: usize,
    parts: &[LayoutPart],
) -> Result<Option<LayoutLimit>, EngineError> {
    if parts.iter().all(|part| part.limit.is_none()) {
        return Ok(None);
    }
    let files = SystemTree::default();
    let name = |part: &LayoutPart| {
        part.name
            .clone()
            .unwrap_or_else(|| experiment.layouts[index].name.clone())
    };
    let mut found: Option<LayoutLimit> = None;
    for part in parts {
        let Some(limit) = part.limit else { continue };
        let one = part_limit(&files, &experiment.layouts[index], limit, &part.paths)?;
        found = Some(match found {
            None => one,
            Some(mut all) => {
                all.io = all.io.and(&one.io).map_err(|disk| {
                    no_limit(format!(
                        "{} lies on disk {disk}, which is held to another limit already, and a disk has but one",
                        name(part)
                    ))
                })?;
                all.limited.extend(one.limited);
                if all.flushes == Flushes::None {
                    all.flushes = one.flushes;
                }
                all
            }
        });
    }
    // A layout without a limit would be held to its neighbour's.
    for part in parts.iter().filter(|part| part.limit.is_none()) {
        let limited = found.iter().flat_map(|limit| limit.io.disks());
        let disks: Vec<_> = part
            .paths
            .iter()
            .filter_map(|path| disk_of(&files, path))
            .collect();
        if let Some((disk, _)) = limited.into_iter().find(|(disk, _)| disks.contains(disk)) {
            return Err(no_limit(format!(
                "{} has none, and lies on disk {disk}, which is held to one; give both the same limit, or \
                 separate disks",
                name(part)
            )));
        }
    }
    Ok(found)
}

/// A layout cannot be held to its limit.
fn no_limit(reason: impl fmt::Display) -> EngineError {
    EngineError::unavailable(format!("no limit here: {reason}"))
}

/// The disk beneath a path, where known.
fn disk_of(files: &SystemTree, path: &Path) -> Option<DeviceNumber> {
    whole_disk(files, DataPath::capture(files, path).device?.number)
}

/// One limit on the devices beneath these paths.
fn part_limit(
    files: &SystemTree,
    layout: &Layout,
    rates: Rates,
    paths: &[PathBuf],
) -> Result<LayoutLimit, EngineError> {
    let (mut limited, mut flushes) = (Vec::new(), Flushes::None);
    for path in paths {
        let place = DataPath::capture(files, path);
        let Some(device) = place.device else {
            let why = place.device_unknown_because.unwrap_or_default();
            return Err(no_limit(format!(
                "the device beneath {} is unknown: {why}",
                path.display()
            )));
        };
        let one = IoLimit::available(files, rates, &[device.number]).map_err(no_limit)?;
        limited.extend(one.disks().iter().map(|(disk, rates)| Limited {
            device: device.number,
            disk: *disk,
            rates: *rates,
        }));
        flushes = Flushes::of(layout, rates, &device);
    }
    let numbers: Vec<DeviceNumber> = limited.iter().map(|limited| limited.device).collect();
    let io = IoLimit::available(files, rates, &numbers).map_err(no_limit)?;
    Ok(LayoutLimit {
        io,
        limited,
        flushes,
    })
}

/// What is to be said of redo that lies in its own directory while the layout is slowed.
pub fn note_on_redo(experiment: &Experiment, index: usize) -> Option<String> {
    experiment.redo_apart(index)?;
    let layout = &experiment.layouts[index];
    let slowed = match (layout.limit, layout.delay) {
        (None, None) => return None,
        (Some(_), None) => "held to the layout's limit",
        (None, Some(_)) => "delayed as the layout is, by the database",
        (Some(_), Some(_)) => "held to the layout's limit and, by the database, delayed as it is",
    };
    let words = Vocabulary::of(experiment.database.engine().as_str());
    let (log, key) = (words.log, words.log_path?);
    Some(format!(
        "the {log}, in {key}, is {slowed}, too; on a layout that placement names it has that layout's"
    ))
}

/// Has a process in the limited group do I/O in the directory of each limited part (on a raw device only reads).
///
/// # Errors
/// Why the layout must be skipped.
pub fn try_out(
    parts: &[LayoutPart],
    limit: &LayoutLimit,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let untried = "the limit cannot be tried";
    for part in parts {
        let Some(rates) = part.limit else {
            continue;
        };
        let Some(place) = part.paths.first() else {
            return Err(EngineError::failed(
                untried,
                "there is nothing to try it on",
            ));
        };
        let scratch = Scratch::at(place).map_err(|error| EngineError::failed(untried, error))?;
        let probe = LimitProbe {
            rates,
            scratch: scratch.known.clone(),
            writes: scratch.file.is_some().then_some(part.writes),
        };
        let exceeded = supervisor::probe_limit(&probe, &limit.io, interrupted)
            .map_err(|error| EngineError::failed(untried, error))?;
        if let Some(exceeded) = exceeded {
            let of = part.name.as_ref().map(|name| format!(" of {name}"));
            return Err(EngineError::unavailable(format!(
                "the limit{} does not hold here: when tried, there were {exceeded}",
                of.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// How a layout's datafiles are written, and its redo, which is always durable.
fn writes_of(experiment: &Experiment, index: usize) -> (ProbedWrites, ProbedWrites) {
    let io = experiment.layouts[index].io;
    let durable = |caching| match caching {
        Caching::Direct => ProbedWrites::Direct,
        Caching::Buffered => ProbedWrites::BufferedDurable,
    };
    match &experiment.database_of(index).spec {
        DatabaseSpec::Kernel(kernel) => {
            let of_data = match (io.caching, kernel.instance.write_sync) {
                (Caching::Buffered, WriteSync::Checkpoint) => ProbedWrites::BufferedLater,
                (caching, _) => durable(caching),
            };
            let redo = kernel.redo_access_path(io);
            (of_data, durable(redo.caching))
        }
        // What they write, and when it is durable, is up to them: the limit is tried as if at once.
        DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => {
            (durable(io.caching), ProbedWrites::Direct)
        }
    }
}

/// A file without a name, written.
fn scratch_file(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?);
    let piece = vec![0x5a; 1 << 20];
    for _ in 0..SCRATCH_BYTES / piece.len() as u64 {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// What the probe works on: a file without a name, which goes with this process whatever happens, or a raw device.
struct Scratch {
    /// How another process of ours finds it, and which it must find.
    known: KnownDevice,
    file: Option<File>,
}

impl Scratch {
    fn at(place: &Path) -> Result<Scratch, LayoutError> {
        if !place.is_dir() {
            return Ok(Scratch {
                known: KnownDevice::look(place)?,
                file: None,
            });
        }
        let made = |source| LayoutError::System {
            action: "make a scratch file in",
            path: place.to_path_buf(),
            source,
        };
        let file = scratch_file(place).map_err(made)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Scratch {
            known: KnownDevice::of(&file, path.into(), place)?,
            file: Some(file),
        })
    }
}
