//! Where steps are carried out: the ledger that they note in first, and the devices that earlier steps have made ready.
//! Steps use it; the code that provides a layout makes one.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use spindle_system::SystemTree;

use super::error::{DeviceName, StepError};
use super::site::Site;
use crate::guard::{DeviceState, Guard, HeldDevice, NoNode, NodeDirectory, Refusal, TakenDevice};
use crate::ledger::{EntryNumber, Ledger};
use crate::moment;
use crate::record::{MadeNodes, Record};
use crate::tool::{ToolError, Tools};

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
    /// Devices that no other process may hold meanwhile.
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

    /// A device that was taken, opened for writing: by the run's own node, where it has one. Errors: the system's.
    pub fn to_write(&self, name: &DeviceName, taken: &TakenDevice) -> Result<File, StepError> {
        let node = self.path_for("writing", name).ok();
        let file = taken.to_write(node.as_deref());
        file.map_err(|error| StepError::system("write to", taken.path(), error))
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
    Ok(tree.random_uuid()?)
}
