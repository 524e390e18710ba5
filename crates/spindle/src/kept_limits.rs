//! The limits that a calibration found are kept for later runs on the same device.

use std::path::PathBuf;

use jiff::Timestamp;
use spindle_calibrate::{Cached, Calibration};
use spindle_run::calibrations::{KeptCalibration, default_path, keep};
use spindle_system::SystemTree;
use spindle_system::calibrated::{CalibratedLimits, DeviceIdentity};
use spindle_system::machine::DataPath;

/// Keeps them; `None` where there is nothing to keep: nothing was read, memory answered, or the targets lie on several
/// devices or on none that can be known again.
///
/// # Errors
/// The file cannot be written, in words.
pub fn keep_limits(found: &Calibration) -> Option<Result<PathBuf, String>> {
    let kept = KeptCalibration {
        device: only_device(found)?,
        limits: limits_of(found)?,
    };
    let path = default_path();
    Some(match keep(&path, kept) {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("{}: {error}", path.display())),
    })
}

fn limits_of(found: &Calibration) -> Option<CalibratedLimits> {
    if found.cache.cached == Cached::Yes {
        return None;
    }
    let most_bytes = found.maximum_mb_per_s.as_ref();
    let least = found.minimum_latency.as_ref();
    Some(CalibratedLimits {
        at: Timestamp::now(),
        iops: found.maximum_iops.as_ref()?.point.iops,
        mb_per_s: most_bytes.map(|extreme| extreme.point.mb_per_s),
        latency_us: least.map(|extreme| extreme.point.mean_us),
        write_percent: found.write_percent,
    })
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
