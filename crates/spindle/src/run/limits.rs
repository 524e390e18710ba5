//! The limits of a run's layouts: made ready, and tried before anything is measured with them. A limit that cannot be had
//! here, or that does not hold, makes its layout skipped; no trial ever runs without it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{Mode, OFlags};

use crate::experiment::{Caching, Experiment, Layout, Limit, Method, WriteSync};
use crate::observe::SystemFiles;
use crate::observe::block_device::{BlockDevice, DeviceNumber};
use crate::observe::io_limit::{IoLimit, Rates};
use crate::observe::machine::DataPath;
use crate::trial::limit_probe::{LimitProbe, ProbedWrites, SCRATCH_BYTES};
use crate::trial::protocol::Limited;
use crate::trial::supervisor::{self, TrialError};

/// A limit that can be set.
pub struct LayoutLimit {
    /// What sets it.
    pub io: IoLimit,
    /// The devices that hold the layout's files, whose counts are looked at, each with its disk.
    devices: Vec<(DeviceNumber, DeviceNumber)>,
    flushes: Flushes,
}

impl LayoutLimit {
    /// What a trial's process looks at when it is over.
    pub fn to_be_checked(&self) -> Limited {
        Limited {
            rates: self.io.rates(),
            devices: self.devices.clone(),
        }
    }

    /// How the flushes of durable writes count.
    pub fn flushes(&self) -> Flushes {
        self.flushes
    }
}

/// How a limit of writes per second takes the flush that ends each durable write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushes {
    /// There is no such limit, or the device needs no flush of its own.
    None,
    /// As a write: the process makes it.
    Counted,
    /// Not at all: a worker of the kernel makes it when an asynchronous direct write has ended.
    Free,
}

impl Flushes {
    fn of(layout: &Layout, device: &BlockDevice) -> Flushes {
        let limits_writes = layout.limit.is_some_and(|limit| limit.write_iops.is_some());
        let is_cached = device.write_cache.as_deref() != Some("write through");
        if !limits_writes || !is_cached || device.fua == Some(true) {
            return Flushes::None;
        }
        match (layout.io.caching, layout.io.method) {
            (Caching::Direct, Method::Async | Method::Libaio | Method::Odm) => Flushes::Free,
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
                "under its limit a durable write counts as one: the kernel flushes in nobody's name",
            ),
        }
    }
}

/// The limit of a layout on the devices beneath these paths, if it has one. Error: why it cannot be had here.
pub fn prepare(layout: &Layout, paths: &[PathBuf]) -> Result<Option<LayoutLimit>, String> {
    let Some(limit) = layout.limit else {
        return Ok(None);
    };
    let files = SystemFiles::default();
    let mut devices = Vec::new();
    let mut flushes = Flushes::None;
    for path in paths {
        let place = DataPath::capture(&files, path);
        let Some(device) = place.device else {
            let why = place.device_unknown_because.unwrap_or_default();
            return Err(format!(
                "no limit here: the device beneath {} is unknown: {why}",
                path.display()
            ));
        };
        let one = IoLimit::available(&files, rates_of(limit), &[device.number])
            .map_err(|reason| format!("no limit here: {reason}"))?;
        devices.extend(one.disks().iter().map(|disk| (device.number, *disk)));
        flushes = Flushes::of(layout, &device);
    }
    let numbers: Vec<DeviceNumber> = devices.iter().map(|(device, _)| *device).collect();
    let io = IoLimit::available(&files, rates_of(limit), &numbers)
        .map_err(|reason| format!("no limit here: {reason}"))?;
    Ok(Some(LayoutLimit {
        io,
        devices,
        flushes,
    }))
}

fn rates_of(limit: Limit) -> Rates {
    Rates {
        read_iops: limit.read_iops,
        write_iops: limit.write_iops,
        read_bps: limit.read_bps,
        write_bps: limit.write_bps,
    }
}

/// Has a process in the limited group do I/O in the layout's directory (on a raw device only reads). Returns why the
/// layout must be skipped, if so.
pub fn try_out(
    experiment: &Experiment,
    index: usize,
    paths: &[PathBuf],
    limit: &LayoutLimit,
    interrupted: &AtomicBool,
) -> Result<Option<String>, TrialError> {
    let Some(place) = paths.first() else {
        return Ok(Some(
            "the limit cannot be tried: there is nothing to try it on".to_string(),
        ));
    };
    let scratch = match Scratch::at(place) {
        Ok(scratch) => scratch,
        Err(error) => return Ok(Some(format!("the limit cannot be tried: {error}"))),
    };
    let probe = LimitProbe {
        rates: limit.io.rates(),
        scratch: scratch.path.clone(),
        writes: scratch.file.is_some().then(|| writes_of(experiment, index)),
    };
    match supervisor::probe_limit(&probe, &limit.io, interrupted) {
        Ok(None) => Ok(None),
        Ok(Some(exceeded)) => Ok(Some(format!(
            "the limit does not hold here: when tried, there were {exceeded}"
        ))),
        Err(TrialError::Failed(reason)) => Ok(Some(format!("the limit cannot be tried: {reason}"))),
        Err(TrialError::Interrupted) => Err(TrialError::Interrupted),
    }
}

fn writes_of(experiment: &Experiment, index: usize) -> ProbedWrites {
    let write_sync = experiment.database_of(index).write_sync;
    match (experiment.layouts[index].io.caching, write_sync) {
        (Caching::Direct, _) => ProbedWrites::Direct,
        (Caching::Buffered, WriteSync::Dsync) => ProbedWrites::BufferedDurable,
        (Caching::Buffered, WriteSync::Checkpoint) => ProbedWrites::BufferedLater,
    }
}

/// What the probe works on: a file without a name, which goes with this process whatever happens, or a raw device.
struct Scratch {
    /// How another process of ours finds it.
    path: PathBuf,
    file: Option<File>,
}

impl Scratch {
    fn at(place: &Path) -> io::Result<Scratch> {
        if !place.is_dir() {
            return Ok(Scratch {
                path: place.to_path_buf(),
                file: None,
            });
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(place, flags, Mode::RUSR | Mode::WUSR)?);
        let piece = vec![0x5a; 1 << 20];
        for _ in 0..SCRATCH_BYTES / piece.len() as u64 {
            file.write_all(&piece)?;
        }
        file.sync_all()?;
        Ok(Scratch {
            path: format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into(),
            file: Some(file),
        })
    }
}
