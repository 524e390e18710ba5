//! The steps by which a layout is made: one file for each kind. A [`Step`] is planned data; carrying it out notes a
//! [`Record`] in the ledger first, which says exactly what is about to be made, and by which it is undone, by the run
//! itself or, when that died, by `clean`. Undoing looks before it touches: what was never made is no error, and what is
//! not the run's (any more) is left alone.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::guard::{
    Appearance, DeviceState, Guard, HeldDevice, NoNode, NodeDirectory, Refusal, TakenDevice,
};
use crate::ledger::{EntryNumber, Ledger, LedgerError};
use crate::moment;
use crate::tool::{ToolError, Tools};
use spindle_system::SystemTree;
use spindle_text::quantity::size_needed;

mod attach_loop;
mod claim_device;
mod cut_device;
mod delay_device;
mod leftovers;
mod made_nodes;
mod make_directory;
mod make_file;
mod make_file_system;
mod make_volume;
mod make_volume_group;
mod mapped_device;
mod mount_file_system;
mod overwrite_device;
mod server_schema;
mod thin_volume;

pub use attach_loop::{AttachLoop, AttachedLoop};
pub use claim_device::{ClaimDevice, ClaimedDevice};
pub use cut_device::CutDevice;
pub use delay_device::DelayDevice;
pub use leftovers::{ControlGroup, RunDirectory};
pub use made_nodes::MadeNodes;
pub use make_directory::{MadeDirectory, MakeDirectory};
pub use make_file::{MadeFile, MakeFile};
pub use make_file_system::MakeFileSystem;
pub use make_volume::MakeVolume;
pub use make_volume_group::{MadeVolumeGroup, MakeVolumeGroup};
pub use mapped_device::MappedDevice;
pub use mount_file_system::{MountFileSystem, Mounted};
pub use overwrite_device::OverwriteDevice;
pub use server_schema::{DropSchema, SchemaGone, ServerSchema};
pub(crate) use thin_volume::ThinVolume;

/// How long something that is just being let go may take: a mount whose last process is ending, a loop device.
const PATIENCE: Duration = Duration::from_secs(5);

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
        /// What it takes.
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

/// What undoing found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It was there, and is gone.
    Removed,
    /// It was there, and is gone but for this, in words.
    RemovedBut(String),
    /// It was not there.
    WasNot,
    /// Something else is in its place, for this reason.
    NotOurs(String),
}

/// Where steps are undone.
#[derive(Debug)]
pub(crate) struct Site {
    pub tree: SystemTree,
    pub tools: Tools,
    /// The start of the system during which the run lived.
    pub boot_id: Option<String>,
    /// Whether it is the run itself that undoes what it made, and not `clean` after its death.
    pub is_of_living_run: bool,
    /// Whether the run of the ledger is living, or goes on at once.
    pub is_going_on: bool,
    /// Of a dead run: since when it has written to no device by a node that others use.
    pub last_touched: Option<SystemTime>,
    /// What drops schemas of servers; `None` where there are none to drop.
    pub drop_schema: Option<DropSchema>,
}

impl Site {
    /// Whether the system has not been started again since the run.
    pub fn boot_is_the_same(&self) -> bool {
        self.boot_id.is_some() && self.boot_id == self.tree.boot_id()
    }

    /// The device that appeared so, whatever its path means now; when it has been away since, what its path means now.
    /// Errors: see [`HeldDevice::at`].
    pub fn find(&self, noted: Appearance, called: &Path) -> Result<HeldDevice, Refusal> {
        let stayed = noted.sequence.is_some()
            && self.boot_is_the_same()
            && Appearance::now(&self.tree, noted.number) == Some(noted);
        if stayed {
            let found = HeldDevice::of_number(&self.tree, noted.number, called);
            if let Ok(held) = found
                && held.appearance() == noted
            {
                return Ok(held);
            }
        }
        HeldDevice::at(&self.tree, called)
    }
}

/// A device that is ready for the next step, or the file that stands in for one.
#[derive(Debug, Clone)]
pub(crate) struct ReadyDevice {
    /// Leads to it whatever happens to the path by which people know it: a node of the run's own, or the descriptor.
    pub path: PathBuf,
    /// What is made on it gets this identity.
    pub uuid: String,
    /// `None` for a file.
    pub held: Option<Arc<HeldDevice>>,
    /// The file, by whose inode it is known as long as it is open.
    pub file: Option<Arc<File>>,
    /// Why tools that resolve paths cannot be given it.
    no_node: Option<NoNode>,
}

impl ReadyDevice {
    /// The device. Errors: it is a file.
    pub fn held(&self) -> Result<&Arc<HeldDevice>, Refusal> {
        let path = || self.path.clone();
        self.held
            .as_ref()
            .ok_or_else(|| Refusal::NotABlockDevice { path: path() })
    }
}

/// Where steps are carried out: the ledger, and what earlier steps have made.
pub(crate) struct Workshop<'a> {
    pub ledger: &'a Ledger,
    pub site: &'a Site,
    /// The layout at work; `None` for what several share.
    pub layout: Option<String>,
    pub devices: BTreeMap<DeviceName, ReadyDevice>,
    /// Devices that nobody else may have meanwhile.
    pub taken: BTreeMap<DeviceName, TakenDevice>,
    /// Nodes for tools; or why there are none. `None`: no device was ready yet.
    pub nodes: Option<Result<NodeDirectory, NoNode>>,
}

impl Workshop<'_> {
    pub fn note(&self, record: impl Into<Record>) -> Result<EntryNumber, StepError> {
        let entry = self.ledger.note(self.layout.as_deref(), record.into())?;
        moment::reached("noted");
        Ok(entry)
    }

    pub fn guard(&self) -> Guard<'_> {
        Guard::new(&self.site.tree, &self.site.tools)
    }

    pub fn device(&self, name: &DeviceName) -> Result<&ReadyDevice, StepError> {
        self.devices
            .get(name)
            .ok_or_else(|| StepError::NoSuchDevice { name: name.clone() })
    }

    /// A file is ready that stands in for a device.
    pub fn ready_file(&mut self, name: &DeviceName, path: PathBuf, file: Arc<File>, uuid: String) {
        let ready = ReadyDevice {
            path,
            uuid,
            held: None,
            file: Some(file),
            no_node: None,
        };
        self.devices.insert(name.clone(), ready);
    }

    /// A device is ready, and is held from now on. Errors: the ledger's, or the system's.
    pub fn ready(
        &mut self,
        name: &DeviceName,
        held: Arc<HeldDevice>,
        uuid: String,
    ) -> Result<(), StepError> {
        let site = self.site;
        let node = match self.nodes()? {
            Ok(nodes) => nodes.node(&site.tree, &held),
            Err(reason) => Err(reason.clone()),
        };
        let (path, no_node) = match node {
            Ok(node) => (node, None),
            Err(reason) => (held.path(), Some(reason)),
        };
        let ready = ReadyDevice {
            path,
            uuid,
            held: Some(held),
            file: None,
            no_node,
        };
        self.devices.insert(name.clone(), ready);
        Ok(())
    }

    fn nodes(&mut self) -> Result<&Result<NodeDirectory, NoNode>, StepError> {
        if self.nodes.is_none() {
            let tree = &self.site.tree;
            let unique: String = new_uuid(tree)?.chars().take(8).collect();
            let directory = NodeDirectory::path_for(tree, &self.ledger.heading().run, &unique);
            // It outlives each layout.
            let record = MadeNodes {
                directory: directory.clone(),
            };
            self.ledger.note(None, record.into())?;
            let made = NodeDirectory::make(&directory);
            self.nodes = Some(made.map_err(|error| {
                let parent = directory.display();
                NoNode(format!(
                    "no directory {parent} can be made for nodes of devices: {error}"
                ))
            }));
        }
        Ok(self.nodes.as_ref().expect("made just now"))
    }

    /// The path by which a tool that resolves it is given a device: a node of the run's own, or a file. Errors:
    /// [`StepError::NoNode`], or it is no longer the device that was ready.
    pub fn path_for(&self, tool: &str, name: &DeviceName) -> Result<PathBuf, StepError> {
        let ready = self.device(name)?;
        if let Some(held) = &ready.held {
            held.check(&self.site.tree)?;
            if let Some(reason) = &ready.no_node {
                return Err(StepError::NoNode {
                    device: held.called().to_owned(),
                    tool: tool.to_owned(),
                    reason: reason.to_string(),
                });
            }
        }
        Ok(ready.path.clone())
    }

    /// As [`Self::path_for`], for several devices.
    pub fn paths_for(&self, tool: &str, names: &[DeviceName]) -> Result<Vec<PathBuf>, StepError> {
        names.iter().map(|name| self.path_for(tool, name)).collect()
    }

    /// Takes a device for writing: checked on its descriptor, and ours alone as long as what is returned lives. Tools
    /// that take a device for themselves (`mkfs`, `pvcreate`) are started right after it was let go.
    pub fn take(&mut self, name: &DeviceName) -> Result<TakenDevice, StepError> {
        if let Some(taken) = self.taken.remove(name) {
            self.guard().check_own(&taken)?;
            return Ok(taken);
        }
        let held = Arc::clone(self.device(name)?.held()?);
        Ok(self.guard().take(&held)?)
    }

    /// What the system says of a device.
    pub fn look(&self, name: &DeviceName) -> Result<DeviceState, StepError> {
        Ok(self.guard().state(self.device(name)?.held()?)?)
    }
}

/// How often a tool is started on a device that another program holds for a moment.
const TRIES: u32 = 5;

/// Runs a tool that takes these devices for itself (`O_EXCL`), each checked and let go just before. A tool that finds
/// one taken has done nothing yet, and is started again: others may have it so for a moment.
pub(crate) fn run_on_devices(
    workshop: &mut Workshop<'_>,
    devices: &[DeviceName],
    run: impl Fn(&Tools) -> Result<String, ToolError>,
) -> Result<(), StepError> {
    for left in (0..TRIES).rev() {
        for name in devices {
            drop(workshop.take(name)?);
        }
        match run(&workshop.site.tools) {
            Err(ToolError::Failed { said, .. }) if left > 0 && says_taken(&said) => {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    Ok(())
}

/// The words of mkfs.ext4 and sfdisk, of mkfs.xfs and mkfs.btrfs, and of LVM.
fn says_taken(said: &str) -> bool {
    ["in use", "Device or resource busy", "exclusively"]
        .iter()
        .any(|words| said.contains(words))
}

/// A new random identity, as the kernel makes them.
pub(crate) fn new_uuid(tree: &SystemTree) -> Result<String, StepError> {
    let file = tree.proc.join("sys/kernel/random/uuid");
    let text =
        std::fs::read_to_string(&file).map_err(|error| StepError::system("read", &file, error))?;
    Ok(text.trim().to_owned())
}

/// Waits until `done` says so, for a little while; whether it did.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if done() {
            return true;
        }
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

macro_rules! kinds {
    ($($step:ident),+; $($record:ident),+ $(,)?) => {
        /// One step of a plan.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Step {
            $(#[allow(missing_docs)] $step($step),)+
        }

        impl Step {
            /// Does it, the ledger first.
            pub(crate) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
                match self { $(Step::$step(step) => step.carry_out(workshop),)+ }
            }

            /// About how much it writes.
            pub fn written_bytes(&self) -> u64 {
                match self { $(Step::$step(step) => step.written_bytes(),)+ }
            }
        }

        impl fmt::Display for Step {
            /// What it does, in words, in the imperative.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Step::$step(step) => step.fmt(f),)+ }
            }
        }

        $(impl From<$step> for Step {
            fn from(step: $step) -> Step { Step::$step(step) }
        })+

        /// What was made, or was about to be: all that is needed to find it again and take it away.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "made", rename_all = "snake_case")]
        pub enum Record {
            $(#[allow(missing_docs)] $record($record),)+
        }

        impl Record {
            /// Takes it away, if it is there and the run's.
            pub(crate) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
                match self { $(Record::$record(record) => record.undo(site),)+ }
            }

            /// What it is, in words.
            pub fn describe(&self) -> String {
                match self { $(Record::$record(record) => record.to_string(),)+ }
            }
        }

        $(impl From<$record> for Record {
            fn from(record: $record) -> Record { Record::$record(record) }
        })+
    };
}

kinds! {
    MakeFile, AttachLoop, ClaimDevice, OverwriteDevice, CutDevice, DelayDevice, MakeVolumeGroup, MakeVolume,
    MakeFileSystem, MakeDirectory, MountFileSystem;
    MadeFile, AttachedLoop, ClaimedDevice, MadeVolumeGroup, MadeDirectory, Mounted, RunDirectory, ControlGroup,
    MappedDevice, ServerSchema, MadeNodes
}
