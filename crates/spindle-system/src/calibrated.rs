//! What `spindle calibrate` found of a device, and what the same device is recognised by on another day. A name such
//! as `sda` may pass to another device, so it does not count.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::block_device::DiskFacts;
use crate::{BlockDeviceNode, DeviceNumber, SystemTree};

/// A device's own limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibratedLimits {
    /// When they were measured.
    pub at: Timestamp,
    /// Most requests of 8 KiB per second.
    pub iops: f64,
    /// Most bytes per second, in millions, by requests of 1 MiB.
    pub mb_per_s: Option<f64>,
    /// Least mean time of a request, microseconds.
    pub latency_us: Option<f64>,
    /// Of 100 requests, how many wrote.
    pub write_percent: u32,
}

/// What a device is recognised by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// Serial number and world-wide name of the hardware; empty where it has none.
    pub hardware: Vec<String>,
    /// The device's number, which is its own until the system starts again; `None` without a device.
    pub device: Option<NumberedDevice>,
    /// Where no device is known: type and source of the file system.
    pub file_system: Option<(String, String)>,
}

/// A device by its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedDevice {
    /// Its number.
    pub number: DeviceNumber,
    /// See [`BlockDeviceNode::sequence`].
    pub sequence: Option<u64>,
    /// The start of the system during which it had this number.
    pub boot_id: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
}

impl DeviceIdentity {
    /// Of a device; `None` where the kernel shows none of that number.
    pub fn of_device(tree: &SystemTree, device: &DiskFacts) -> Option<DeviceIdentity> {
        let node = BlockDeviceNode::of(tree, device.number)?;
        Some(DeviceIdentity {
            hardware: node.hardware_names(),
            device: Some(NumberedDevice {
                number: device.number,
                sequence: node.sequence(),
                boot_id: tree.boot_id(),
                size_bytes: device.size_bytes,
            }),
            file_system: None,
        })
    }

    /// Of a file system without a device here; `None` where nothing marks it, as a file system in memory is another one
    /// after each mount.
    pub fn of_file_system(kind: &str, source: &str) -> Option<DeviceIdentity> {
        source.contains([':', '/']).then(|| DeviceIdentity {
            hardware: Vec::new(),
            device: None,
            file_system: Some((kind.to_owned(), source.to_owned())),
        })
    }

    /// Whether both are of one device. Hardware that names itself decides alone; else the number does, while the system
    /// was not started again; without a device the file system.
    pub fn is_same(&self, other: &DeviceIdentity) -> bool {
        match (&self.device, &other.device) {
            (None, None) => self.file_system.is_some() && self.file_system == other.file_system,
            (Some(own), Some(others)) => {
                match (self.hardware.is_empty(), other.hardware.is_empty()) {
                    (false, false) => {
                        let mut names = self.hardware.iter();
                        names.any(|name| other.hardware.contains(name))
                    }
                    (true, true) => own.boot_id.is_some() && own == others,
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(hardware: &[&str], minor: u32, boot_id: &str) -> DeviceIdentity {
        DeviceIdentity {
            hardware: hardware.iter().map(|name| (*name).to_owned()).collect(),
            device: Some(NumberedDevice {
                number: DeviceNumber { major: 8, minor },
                sequence: Some(3),
                boot_id: Some(boot_id.to_owned()),
                size_bytes: Some(1 << 30),
            }),
            file_system: None,
        }
    }

    #[test]
    fn hardware_that_names_itself_is_known_under_any_number() {
        let disk = device(&["S1", "wwn-1"], 0, "a");
        assert!(disk.is_same(&device(&["wwn-1"], 16, "b")));
        assert!(
            !disk.is_same(&device(&["S2"], 0, "a")),
            "another disk in its place"
        );
        assert!(!disk.is_same(&device(&[], 0, "a")));
    }

    #[test]
    fn a_number_counts_until_the_system_starts_anew() {
        let disk = device(&[], 0, "a");
        assert!(disk.is_same(&device(&[], 0, "a")));
        assert!(!disk.is_same(&device(&[], 0, "b")));
        assert!(!disk.is_same(&device(&[], 16, "a")));
        let mut again = device(&[], 0, "a");
        again.device.as_mut().unwrap().sequence = Some(4);
        assert!(!disk.is_same(&again), "the number passed to another device");
    }

    #[test]
    fn without_a_device_the_file_system_counts() {
        let share = |source: &str| DeviceIdentity {
            hardware: Vec::new(),
            device: None,
            file_system: Some(("nfs4".to_owned(), source.to_owned())),
        };
        assert!(share("host:/a").is_same(&share("host:/a")));
        assert!(!share("host:/a").is_same(&share("host:/b")));
        assert!(!share("host:/a").is_same(&device(&["S1"], 0, "a")));
    }
}
