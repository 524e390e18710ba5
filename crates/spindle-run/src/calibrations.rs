//! What `spindle calibrate` found, kept beside the ledgers for later runs on the same devices: one file for all. The
//! command writes it, a run looks up the devices of its layouts.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use spindle_layout::ledger;
use spindle_system::SystemTree;
use spindle_system::calibrated::{CalibratedLimits, DeviceIdentity};
use spindle_system::machine::Machine;
use spindle_text::files;

/// The file's name.
const FILE_NAME: &str = "calibrations.json";
/// It is never larger, bytes.
const BYTES_MAX: u64 = 4 << 20;
/// Devices that are kept; those that were calibrated first go first.
const DEVICES_MAX: usize = 1000;

/// Limits of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptCalibration {
    /// What it is recognised by.
    pub device: DeviceIdentity,
    /// What was found.
    pub limits: CalibratedLimits,
}

/// Where they are kept: beside the ledgers.
pub fn default_path() -> PathBuf {
    ledger::default_directory().join(FILE_NAME)
}

/// Keeps limits, replacing older ones of the same device.
///
/// # Errors
/// The file cannot be written.
pub fn keep(path: &Path, calibration: KeptCalibration) -> io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    files::Directory::make(directory)?;
    // Another calibration that ends at the same moment would write over what this one adds.
    let alone = File::open(directory)?;
    flock(&alone, FlockOperation::LockExclusive)?;
    let mut all = read(path);
    all.retain(|other| !other.device.is_same(&calibration.device));
    all.push(calibration);
    let excess = all.len().saturating_sub(DEVICES_MAX);
    all.drain(..excess);
    files::write(path, &serde_json::to_string_pretty(&all)?)
}

/// What is kept of a device.
pub fn find(path: &Path, device: &DeviceIdentity) -> Option<CalibratedLimits> {
    let all = read(path);
    let found = all
        .into_iter()
        .rev()
        .find(|kept| kept.device.is_same(device))?;
    Some(found.limits)
}

/// Adds what is kept to the places of a machine.
pub(crate) fn add_to(machine: &mut Machine, tree: &SystemTree) {
    let path = default_path();
    for place in &mut machine.data_paths {
        place.calibrated = place.identity(tree).and_then(|device| find(&path, &device));
    }
}

/// A file that is missing or not understood holds nothing: it is only ever made by this program.
fn read(path: &Path) -> Vec<KeptCalibration> {
    let text = files::read_text(path, BYTES_MAX).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use spindle_system::DeviceNumber;
    use spindle_system::calibrated::NumberedDevice;

    use super::*;

    fn kept(serial: &str, iops: f64) -> KeptCalibration {
        KeptCalibration {
            device: DeviceIdentity {
                hardware: vec![serial.to_owned()],
                device: Some(NumberedDevice {
                    number: DeviceNumber { major: 8, minor: 0 },
                    sequence: None,
                    boot_id: None,
                    size_bytes: None,
                }),
                file_system: None,
            },
            limits: CalibratedLimits {
                at: "2026-01-01T00:00:00Z".parse().unwrap(),
                iops,
                mb_per_s: None,
                latency_us: None,
                write_percent: 0,
            },
        }
    }

    #[test]
    fn calibrations_that_end_at_one_moment_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        std::thread::scope(|scope| {
            for disk in 0..16 {
                let path = &path;
                scope.spawn(move || keep(path, kept(&format!("S{disk}"), 1.0)).unwrap());
            }
        });
        assert_eq!(read(&path).len(), 16);
    }

    #[test]
    fn the_latest_limits_of_a_device_are_found_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deeper").join(FILE_NAME);
        let iops = |serial| find(&path, &kept(serial, 0.0).device).map(|limits| limits.iops);
        assert_eq!(iops("S1"), None);
        for (serial, iops) in [("S1", 1.0), ("S2", 2.0), ("S1", 3.0)] {
            keep(&path, kept(serial, iops)).unwrap();
        }
        // The same number, another disk.
        assert_eq!(
            (iops("S1"), iops("S2"), iops("S3")),
            (Some(3.0), Some(2.0), None)
        );
        assert_eq!(read(&path).len(), 2);
        std::fs::write(&path, "no json").unwrap();
        assert_eq!(iops("S1"), None);
    }
}
