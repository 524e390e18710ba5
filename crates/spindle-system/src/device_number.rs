//! A device's number, by which the kernel knows it whatever its path is called.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A device's number, written `major:minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DeviceNumber {
    /// The driver; 0 for file systems without a single block device beneath.
    pub major: u32,
    /// The device among the driver's.
    pub minor: u32,
}

/// A text that is no `major:minor`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a device number: expected major:minor, such as 8:1")]
pub struct NotADeviceNumber(String);

impl DeviceNumber {
    /// Splits what `stat` calls `st_dev` or `st_rdev`.
    pub fn of_stat(device: u64) -> DeviceNumber {
        DeviceNumber {
            major: rustix::fs::major(device),
            minor: rustix::fs::minor(device),
        }
    }

    /// Whether no block device carries this number (btrfs, overlay, tmpfs, network file systems).
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = NotADeviceNumber;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (major, minor) = text.split_once(':')?;
            Some(DeviceNumber {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            })
        };
        parse().ok_or_else(|| NotADeviceNumber(text.to_owned()))
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> String {
        number.to_string()
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = NotADeviceNumber;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
