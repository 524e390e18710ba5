//! May this device be written to? The answer from what the system says of it ([`DeviceState`]) and what is on it
//! ([`DeviceContent`]): pure functions, so that fixtures and random texts can stand in for a machine. Whatever is not
//! known or not understood is a no.

use std::fmt;
use std::path::{Path, PathBuf};

use std::time::{Duration, Instant};

use spindle_system::mounts::TableError;
use spindle_system::node::{BlockDeviceNode, by_id_names};
use spindle_system::open_files::Holder;
use spindle_system::overlays::OverlayLayer;
use spindle_system::{DeviceNumber, StoragePlace, SystemTree};
use spindle_text::quantity::{size_free, size_needed};

use super::content::DeviceContent;
use super::stack::Footprint;
use super::survey::GuardSurvey;

/// How long a process may have a device open without counting. udev, blkid and others look at a device when it changes,
/// for a moment. They are not known by name, which any program may give itself: a process that stays is a holder.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks at who has a device open.
const PAUSE: Duration = Duration::from_millis(50);

/// How many uses of a device a refusal tells.
const USES_TOLD: usize = 4;

/// What another program does with a device, its partitions, or what it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// A file system on it is mounted.
    Mounted {
        /// The device itself or a partition.
        device: String,
        /// Where.
        at: PathBuf,
    },
    /// It is swap.
    Swap {
        /// The device itself or a partition.
        device: String,
    },
    /// Another device stands on it.
    Held {
        /// The device itself or a partition.
        device: String,
        /// What stands on it: `dm-0`, `md0`, `loop3`, a file system of several devices.
        by: String,
    },
    /// A process has it open.
    Open {
        /// The device itself, a partition, or what it stands on.
        device: String,
        /// Who, and how.
        by: Holder,
    },
    /// Another user has what is beneath alone (`O_EXCL`), and no other table of the kernel says which.
    Alone {
        /// What it stands on.
        device: String,
    },
    /// A file belongs to a layer of an overlay, where it has another identity: its users there are not seen.
    InLayer {
        /// The file.
        file: PathBuf,
        /// The layer's directory, and where the overlay is mounted.
        of: OverlayLayer,
    },
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Use::Mounted { device, at } => write!(f, "{device} is mounted on {}", at.display()),
            Use::Swap { device } => write!(f, "{device} is swap"),
            Use::Held { device, by } => write!(f, "{device} is part of {by}"),
            Use::Open { device, by } => write!(f, "{device} is {by}"),
            Use::Alone { device } => write!(
                f,
                "the kernel gives {device}, which lies beneath, to no other user (O_EXCL): it may be mounted where no \
                 process shows it"
            ),
            Use::InLayer { file, of } => write!(
                f,
                "{} belongs to {}, a layer of the overlay that is mounted on {}",
                file.display(),
                of.directory.display(),
                of.mounted_on.display()
            ),
        }
    }
}

/// What the system says of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceState {
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// Who uses it.
    pub uses: Vec<Use>,
    /// Names of this very piece of hardware: by-id names, serial number, world-wide name.
    pub identities: Vec<String>,
    /// See [`BlockDeviceNode::sequence`].
    pub sequence: Option<u64>,
    /// What it comes down to: its own bytes, those of the disk it is cut from, of the file behind it.
    pub footprint: Footprint,
    /// What could not be looked at, in words.
    pub unseen: Option<String>,
}

/// Why a device is not written to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nothing at this path.
    #[error("there is no device {}: {reason}", path.display())]
    Missing {
        /// As written.
        path: PathBuf,
        /// The system's answer.
        reason: String,
    },
    /// It is no block device.
    #[error(
        "{} is not a block device; a file to stand in for one is written {{ file = \"NAME\", size = \"SIZE\" }}, and a \
         directory of an existing file system goes into path",
        path.display()
    )]
    NotABlockDevice {
        /// As written.
        path: PathBuf,
    },
    /// It is neither a block device nor a file.
    #[error("{} is neither a block device nor a file", path.display())]
    NoStorage {
        /// As written.
        path: PathBuf,
    },
    /// It is in use. Nothing overrides this.
    #[error("{} is in use: {}; take it out of use first, or name another device", path.display(), listed(uses))]
    InUse {
        /// As written.
        path: PathBuf,
        /// By whom.
        uses: Vec<Use>,
    },
    /// The kernel does not give it to us alone. Nothing overrides this.
    #[error(
        "{} is in use: the kernel does not give it to one user alone (O_EXCL: {reason}); find the user with \
         lsblk, or name another device",
        path.display()
    )]
    Held {
        /// As written.
        path: PathBuf,
        /// The system's answer.
        reason: String,
    },
    /// It takes no writes.
    #[error("{} is read-only; name another device", path.display())]
    ReadOnly {
        /// As written.
        path: PathBuf,
    },
    /// It has too little room.
    #[error("{} has {}, and at least {} are needed", path.display(), size_free(*size_bytes), size_needed(*least_bytes))]
    TooSmall {
        /// As written.
        path: PathBuf,
        /// What it has.
        size_bytes: u64,
        /// What is needed.
        least_bytes: u64,
    },
    /// There is something on it, and its identity is not in `erase`.
    #[error("{} is not empty: it contains {content}; {}", path.display(), remedy(identities, path))]
    NotEmpty {
        /// As written.
        path: PathBuf,
        /// What is on it.
        content: String,
        /// The name it may be given.
        identities: Vec<String>,
    },
    /// It is no longer the device that was looked at.
    #[error(
        "{} is no longer the device that was examined: {what}; Spindle writes nothing to the other device: find out which \
         device is meant, name it by its link in /dev/disk/by-id, and run again", path.display()
    )]
    Changed {
        /// As written.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// It cannot be told whether it is free.
    #[error("it cannot be told whether {} is free: {reason}", path.display())]
    Unknown {
        /// As written.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// As many as a person reads; processes come last, as there may be hundreds.
fn listed(uses: &[Use]) -> String {
    let is_open = |found: &&Use| matches!(found, Use::Open { .. });
    let others = uses.iter().filter(|found| !is_open(found));
    let mut words: Vec<String> = others
        .chain(uses.iter().filter(is_open))
        .take(USES_TOLD)
        .map(Use::to_string)
        .collect();
    if uses.len() > USES_TOLD {
        words.push(format!("and {} more", uses.len() - USES_TOLD));
    }
    words.join("; ")
}

fn remedy(identities: &[String], path: &Path) -> String {
    let name = match identities.first() {
        Some(identity) => identity.clone(),
        None => path.display().to_string(),
    };
    format!("to have everything on it erased, write erase = [{name:?}] in the layout")
}

/// Leave to write to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    /// There is nothing on it, or only what an earlier run of Spindle left there.
    Empty,
    /// What is on it may be erased, for the experiment names it.
    Erase {
        /// What is on it.
        content: String,
        /// Its name in the experiment.
        identity: String,
    },
}

impl DeviceState {
    /// Reads what `tree` says of a device that people call `path`. Waits a moment for processes that have it open; the
    /// survey is taken again meanwhile. Errors: [`Refusal::Unknown`].
    pub fn read(
        tree: &SystemTree,
        survey: &mut GuardSurvey,
        number: DeviceNumber,
        path: &Path,
    ) -> Result<DeviceState, Refusal> {
        let state = when_quiet(tree, survey, |survey| {
            let state = DeviceState::of(tree, survey, number, path);
            let uses = state
                .as_ref()
                .map_or_else(|_| Vec::new(), |state| state.uses.clone());
            (uses, state)
        });
        state.map_err(|error| unknown(path, error.to_string()))?.1
    }

    /// What a survey of `tree` says of a device that people call `path`. Errors: [`Refusal::Unknown`].
    pub fn of(
        tree: &SystemTree,
        survey: &GuardSurvey,
        number: DeviceNumber,
        path: &Path,
    ) -> Result<DeviceState, Refusal> {
        let node = BlockDeviceNode::of(tree, number)
            .ok_or_else(|| unknown(path, format!("/sys does not show device {number}")))?;
        let size_bytes = node.size_bytes().ok_or_else(|| {
            unknown(
                path,
                format!("/sys does not tell the size of {}", node.name),
            )
        })?;
        let mut identities = by_id_names(tree, &node.name);
        identities.extend(node.hardware_names());
        let storage = StoragePlace::Device(number);
        Ok(DeviceState {
            number,
            size_bytes,
            read_only: node.is_read_only(),
            uses: survey.uses(storage),
            identities,
            sequence: node.sequence(),
            footprint: survey.footprint(storage),
            unseen: survey.unseen(),
            name: node.name,
        })
    }

    /// Whether one of these names is this device's. (Links below `/dev` may come and go; the hardware's own names do
    /// not.)
    pub(crate) fn has_identity_of(&self, identities: &[String]) -> bool {
        let is_known = |identity: &String| self.identities.contains(identity);
        identities.iter().any(is_known)
    }

    /// By which of these words the experiment names this device for erasing: a by-id name (with or without its
    /// directory), a serial number, a world-wide name, or a path that is this device now.
    pub fn named_in(&self, tree: &SystemTree, erase: &[String]) -> Option<String> {
        let is_this = |word: &&String| {
            let word = word.trim();
            let short = word.strip_prefix("/dev/disk/by-id/").unwrap_or(word);
            let is_path = word.starts_with("/dev/");
            !word.is_empty()
                && (self.identities.iter().any(|identity| identity == short)
                    || is_path && tree.kernel_name(Path::new(word)).as_ref() == Some(&self.name))
        };
        erase.iter().find(is_this).cloned()
    }
}

/// Asks a survey who uses something. While it is only processes that have it open, asks new surveys for a moment.
pub(super) fn when_quiet<T>(
    tree: &SystemTree,
    survey: &mut GuardSurvey,
    mut ask: impl FnMut(&GuardSurvey) -> (Vec<Use>, T),
) -> Result<(Vec<Use>, T), TableError> {
    let began = Instant::now();
    loop {
        let found = ask(survey);
        if !are_open_only(&found.0) || began.elapsed() > PATIENCE {
            return Ok(found);
        }
        std::thread::sleep(PAUSE);
        *survey = GuardSurvey::take(tree)?;
    }
}

/// Whether there are users, all of them processes that have it open: these may be gone in a moment.
pub(super) fn are_open_only(uses: &[Use]) -> bool {
    let is_open = |found: &Use| matches!(found, Use::Open { .. });
    !uses.is_empty() && uses.iter().all(is_open)
}

/// What is said of a device or file that the system does not open, with what may be done.
pub(super) fn cannot_open(path: &Path, error: &std::io::Error) -> Refusal {
    let remedy = match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "; run as root, or as a member of the group that owns it (usually `disk`)"
        }
        _ => "",
    };
    unknown(path, format!("it cannot be opened: {error}{remedy}"))
}

fn unknown(path: &Path, reason: String) -> Refusal {
    Refusal::Unknown {
        path: path.to_owned(),
        reason,
    }
}

/// What a layout wants of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want<'a> {
    /// The device, as written.
    pub path: &'a Path,
    /// The size it must have.
    pub least_bytes: u64,
    /// Identities that the experiment allows to be erased.
    pub erase: &'a [String],
}

/// Whether a device in this state, with this on it, may be written to.
pub fn verdict(
    tree: &SystemTree,
    want: &Want<'_>,
    state: &DeviceState,
    content: &DeviceContent,
) -> Result<Permit, Refusal> {
    check_free(want, state)?;
    if matches!(content, DeviceContent::Empty | DeviceContent::Left) {
        return Ok(Permit::Empty);
    }
    match state.named_in(tree, want.erase) {
        Some(identity) => Ok(Permit::Erase {
            content: content.to_string(),
            identity,
        }),
        None => Err(Refusal::NotEmpty {
            path: want.path.to_owned(),
            content: content.to_string(),
            identities: state.identities.clone(),
        }),
    }
}

/// What no word in the experiment overrides: use, write protection, size.
pub fn check_free(want: &Want<'_>, state: &DeviceState) -> Result<(), Refusal> {
    let path = want.path.to_owned();
    if !state.uses.is_empty() {
        let uses = state.uses.clone();
        return Err(Refusal::InUse { path, uses });
    }
    if state.read_only {
        return Err(Refusal::ReadOnly { path });
    }
    if state.size_bytes < want.least_bytes.max(1) {
        return Err(Refusal::TooSmall {
            path,
            size_bytes: state.size_bytes,
            least_bytes: want.least_bytes.max(1),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use spindle_system::open_files::OpenFor;

    use super::*;

    #[test]
    fn a_device_with_hundreds_of_users_is_told_in_a_line() {
        let open = |pid| Use::Open {
            device: "sda".to_owned(),
            by: Holder {
                pid: Some(pid),
                program: "reader".to_owned(),
                open_for: OpenFor::Reading,
            },
        };
        let mut uses: Vec<Use> = (1..=300).map(open).collect();
        uses.push(Use::Mounted {
            device: "sda".to_owned(),
            at: "/srv".into(),
        });
        let path = PathBuf::from("/dev/sda");
        let told = Refusal::InUse { path, uses }.to_string();
        assert!(
            told.starts_with("/dev/sda is in use: sda is mounted on /srv; sda is open"),
            "{told}"
        );
        assert!(
            told.contains("; and 297 more; take it out of use"),
            "{told}"
        );
        assert!(told.len() < 300, "{told}");
    }
}
