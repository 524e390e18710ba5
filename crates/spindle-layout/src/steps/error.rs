//! Why a step failed. Every step uses it.

use std::io;
use std::path::{Path, PathBuf};

use spindle_system::mounts::TableError;
use spindle_text::quantity::size_needed;

use crate::guard::Refusal;
use crate::ledger::LedgerError;
use crate::tool::ToolError;

/// The name by which the steps of a plan speak of a device, as people do: a path, or `disk1.img`, `/dev/sdb part 2 of
/// 4`.
pub type DeviceName = String;

/// Why a step failed, or could not be undone.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The guard does not let the device be written to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A tool failed; its own words are in it.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The ledger cannot be kept: then nothing is made.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A table of the kernel.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A run's data directory.
    #[error(transparent)]
    Layout(#[from] crate::LayoutError),
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// An English verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// An option of `mkfs` or `mount` leads to a device or file outside of the layout.
    #[error(
        "{option:?} of {key} may lead to a device that the layout does not name, and Spindle writes to no other: leave it out"
    )]
    LeadsElsewhere {
        /// `mkfs` or `mount`.
        key: &'static str,
        /// The part of its options.
        option: String,
    },
    /// There is no room for it.
    #[error("no room for {} in {}: free some, or choose another place or a smaller size", size_needed(*needed_bytes), path.display())]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// The room that it needs.
        needed_bytes: u64,
    },
    /// A file is to be made where there is one.
    #[error("{} exists already, and Spindle makes its own: name another file, or remove it", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// A loop device goes through the page cache, which would be measured in place of the device.
    #[error(
        "{} goes through the page cache, for the file system of {} has no direct I/O: put the file on one that has",
        device.display(), file.display()
    )]
    NotDirect {
        /// The loop device.
        device: PathBuf,
        /// Its file.
        file: PathBuf,
    },
    /// `/sys` does not show a device that was made.
    #[error(
        "/sys does not show {}, so nothing could be known of it: it was detached; look at what is mounted on /sys",
        device.display()
    )]
    Unseen {
        /// The device.
        device: PathBuf,
    },
    /// No loop device is free.
    #[error("no loop device is free: {0} were taken by others while they were asked for")]
    NoLoopDevice(u32),
    /// Partitions do not appear.
    #[error(
        "{} was cut into {wanted} partitions, but the kernel shows {found}: this device cannot be partitioned; use it \
         without share, or another one", path.display()
    )]
    NotCut {
        /// The device.
        path: PathBuf,
        /// Parts asked for.
        wanted: usize,
        /// Partitions that appeared.
        found: usize,
    },
    /// A tool cannot be given a device.
    #[error(
        "{} cannot be given to {tool}: {reason}; Spindle gives tools a node of the device's own, for a path may come to mean \
         another device", device.display()
    )]
    NoNode {
        /// The device.
        device: PathBuf,
        /// Which tool.
        tool: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The file beneath a loop device is not the one that was made.
    #[error(
        "{} is no longer the file that Spindle made: nothing was written to it; look who replaced it, and run again",
        file.display()
    )]
    OtherFile {
        /// The file.
        file: PathBuf,
    },
    /// A thin pool would run full in the middle of a trial.
    #[error(
        "the thin pool {pool} is {used_percent:.0} % full, and a trial that overwrites everything takes as much again: use \
         larger devices or a smaller database size"
    )]
    PoolTooSmall {
        /// The pool.
        pool: String,
        /// How much of it is in use.
        used_percent: f64,
    },
    /// A volume group holds what the run did not make.
    #[error(
        "{group} holds what this run did not make ({what}), so it stays: move that elsewhere, then run `spindle clean`"
    )]
    HoldsOthers {
        /// The group.
        group: String,
        /// Volumes and devices, in words.
        what: String,
    },
    /// It is still in use.
    #[error("{} is still in use ({by}): end what uses it, then run `spindle clean`", path.display())]
    Busy {
        /// A mount point or a device.
        path: PathBuf,
        /// By what.
        by: String,
    },
    /// A schema cannot be dropped.
    #[error("{reason}")]
    Schema {
        /// Why, in words.
        reason: String,
    },
    /// The plan speaks of a device that no step has made.
    #[error("there is no device {name:?}, for an earlier step failed")]
    NoSuchDevice {
        /// Its name in the plan.
        name: DeviceName,
    },
}

impl StepError {
    pub(crate) fn system(
        action: &'static str,
        path: &Path,
        source: impl Into<io::Error>,
    ) -> StepError {
        StepError::System {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}
