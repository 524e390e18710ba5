//! The limits that a calibration found are kept for later runs on the same device.

use std::path::PathBuf;

use jiff::Timestamp;
use spindle_calibrate::{
    Cached, Calibration, CutShort, Extreme, MAX_LATENCY_US, TargetFacts, What,
};
use spindle_run::calibrations::{KeptCalibration, default_path, keep};
use spindle_system::calibrated::{CalibratedLimits, DeviceIdentity};
use spindle_system::cgroup::GroupLimits;
use spindle_system::machine::DataPath;
use spindle_system::{Beneath, SystemTree};

/// What became of the limits.
pub enum KeptLimits {
    /// They are in this file.
    In(PathBuf),
    /// They are not kept, for this reason.
    Not(String),
    /// No limit was looked for, or the targets lie on no single device that can be known again.
    Nothing,
}

/// Keeps them, unless they would mislead a later run: those of a search that found no limit.
pub fn keep_limits(found: &Calibration) -> KeptLimits {
    let Some(most) = &found.maximum_iops else {
        return KeptLimits::Nothing;
    };
    if let Some(reason) = why_not(found) {
        return KeptLimits::Not(reason.to_owned());
    }
    if let Some(throttle) = throttle_of(found) {
        return KeptLimits::Not(format!(
            "the control group of this process limits the device ({throttle})"
        ));
    }
    let Some(device) = only_device(found) else {
        return KeptLimits::Nothing;
    };
    if let Some(turned) = found.targets.iter().find(|target| !is_still_there(target)) {
        let path = &turned.path;
        return KeptLimits::Not(format!(
            "{path} no longer leads to the device that was measured"
        ));
    }
    let limits = limits_of(found, most);
    let path = default_path();
    match keep(&path, KeptCalibration { device, limits }) {
        Ok(()) => KeptLimits::In(path),
        Err(error) => KeptLimits::Not(format!("{}: {error}", path.display())),
    }
}

/// Why what a calibration found is no limit of the device.
fn why_not(found: &Calibration) -> Option<&'static str> {
    if found.cache.cached == Cached::Yes {
        Some("a cache answered, and not the device")
    } else if found.cache.cached == Cached::Zeros {
        Some("much of the device holds only zeros, which may need no reads")
    } else if found.matrix.is_some() {
        Some("--run measures fixed points and does not search for a limit")
    } else if found.is_cut_short(What::SmallRandom, CutShort::Time) {
        Some("the time ended before the limit was found: give more with --time")
    } else if found.max_latency_us < MAX_LATENCY_US
        && found.is_cut_short(What::SmallRandom, CutShort::Latency)
    {
        Some("--max-latency ended the search before the limit was found")
    } else {
        None
    }
}

/// A limit of this process's control group on what lies beneath the targets, as the kernel writes it.
fn throttle_of(found: &Calibration) -> Option<String> {
    let tree = SystemTree::default();
    let targets = found.targets.iter();
    let beneath: Vec<Beneath> = targets
        .map(|target| Beneath::of(&tree, target.path.as_ref()))
        .collect();
    let devices = beneath.iter().flat_map(Beneath::devices);
    let numbers: Vec<String> = devices
        .filter_map(|device| Some(device.number?.to_string()))
        .collect();
    let mut limits = GroupLimits::read(&tree).block_io.into_iter();
    limits.find(|limit| {
        let number = limit.split(' ').nth(1);
        number.is_some_and(|number| numbers.iter().any(|of| of == number))
    })
}

/// Whether a target's path leads to the device that was measured.
fn is_still_there(target: &TargetFacts) -> bool {
    let place = DataPath::capture(&SystemTree::default(), target.path.as_ref());
    place.device.map(|device| device.name) == target.device
}

fn limits_of(found: &Calibration, most: &Extreme) -> CalibratedLimits {
    let is_found = !found.is_cut_short(What::LargeSequential, CutShort::Time);
    let most_bytes = found.maximum_mb_per_s.as_ref().filter(|_| is_found);
    let least = found.minimum_latency.as_ref();
    CalibratedLimits {
        at: Timestamp::now(),
        iops: most.point.iops,
        mb_per_s: most_bytes.map(|extreme| extreme.point.mb_per_s),
        latency_us: least.map(|extreme| extreme.point.mean_us),
        write_percent: found.write_percent,
    }
}

/// The device of all targets.
fn only_device(found: &Calibration) -> Option<DeviceIdentity> {
    let tree = SystemTree::default();
    let targets = found.targets.iter();
    let of = |path: &String| DataPath::capture(&tree, path.as_ref()).identity(&tree);
    let mut devices = targets.map(|target| of(&target.path));
    let first = devices.next()??;
    let is_same = |other: Option<DeviceIdentity>| other.is_some_and(|other| other.is_same(&first));
    devices.all(is_same).then_some(first)
}
