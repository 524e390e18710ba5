//! What the ledger notes before it is made: for each kind of thing, all that is needed to find it again and take it
//! away. Data only; the steps that make such things know how they are undone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_system::DeviceNumber;

use crate::guard::Appearance;

/// A file that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFile {
    pub(crate) path: PathBuf,
    /// `st_dev` of its file system.
    pub(crate) file_system: u64,
    pub(crate) inode: u64,
    /// When the inode began to be this file, nanoseconds since 1970: its number is given again to another one. `None`
    /// where the file system does not tell; also in ledgers of earlier versions.
    #[serde(default)]
    pub(crate) born_ns: Option<u64>,
    /// Its size, which it keeps; `None` in ledgers of earlier versions.
    #[serde(default)]
    pub(crate) size_bytes: Option<u64>,
}

/// A loop device that was attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedLoop {
    pub(crate) device: PathBuf,
    pub(crate) file: PathBuf,
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
    /// Which file that is; `None` in ledgers of earlier versions.
    #[serde(default)]
    pub(crate) inode: Option<Inode>,
}

/// A file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inode {
    /// The number of its file system's device, as `stat` tells it.
    pub(crate) file_system: DeviceNumber,
    /// Its number there.
    pub(crate) number: u64,
}

/// A block device that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedDevice {
    pub(crate) path: PathBuf,
    pub(crate) number: DeviceNumber,
    pub(crate) sequence: Option<u64>,
    pub(crate) identities: Vec<String>,
    pub(crate) uuid: String,
    pub(crate) file_system_type: Option<String>,
    /// Its size when it was claimed. Records of older runs have none.
    #[serde(default)]
    pub(crate) size_bytes: Option<u64>,
    /// Whether a stamp is put on it, and stays. Records of older runs have none.
    #[serde(default)]
    pub(crate) is_stamped: bool,
}

/// A volume group that was made, with the volumes in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeVolumeGroup {
    pub(crate) group: String,
    pub(crate) tag: String,
    pub(crate) devices: Vec<PathBuf>,
    /// Of each device, the identity it got as a part of the group.
    pub(crate) uuids: Vec<String>,
    /// Which device each was; none in ledgers of earlier versions.
    #[serde(default)]
    pub(crate) appearances: Vec<Appearance>,
}

/// A directory that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeDirectory {
    pub(crate) path: PathBuf,
}

/// A file system that was mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    pub(crate) at: PathBuf,
    pub(crate) device: PathBuf,
    pub(crate) number: DeviceNumber,
    /// `None`: it is not known, or may change; also in ledgers of earlier versions.
    #[serde(default)]
    pub(crate) sequence: Option<u64>,
}

/// The data directory of a run in a place: see [`DataDirectory`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDirectory {
    /// The place.
    pub parent: PathBuf,
    /// The run.
    pub run: String,
}

/// A control group that a run has made for its trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its directory.
    pub path: PathBuf,
}

/// A device that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedDevice {
    pub(crate) name: String,
    pub(crate) uuid: String,
}

/// A schema that a run has made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSchema {
    /// Which, and where, in words.
    pub title: String,
    /// All that the program needs to come to it, in the program's words. There may be a password in it: it is for the
    /// ledger, which this user alone can read, and shown nowhere.
    pub access: String,
}

/// A directory of device nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeNodes {
    pub(crate) directory: PathBuf,
}

macro_rules! kinds {
    ($($record:ident),+ $(,)?) => {
        /// What was made, or was about to be: all that is needed to find it again and take it away.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "made", rename_all = "snake_case")]
        pub enum Record {
            $(#[allow(missing_docs)] $record($record),)+
        }

        $(impl From<$record> for Record {
            fn from(record: $record) -> Record { Record::$record(record) }
        })+
    };
}

kinds! {
    MadeFile, AttachedLoop, ClaimedDevice, MadeVolumeGroup, MadeDirectory, Mounted, RunDirectory, ControlGroup,
    MappedDevice, ServerSchema, MadeNodes,
}
