//! A device of device-mapper with a table of the caller's own: what writes are recorded on ([`crate::power_cut`]), or
//! what makes a device slower. It bears an identity that only this run knows, by which it is found again.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::StepError;
use super::site::{Site, Undone};
use super::workshop::new_uuid;
use crate::guard::{HeldDevice, Refusal};
use crate::ledger::Ledger;
use crate::record::MappedDevice;
use crate::tool::{ToolError, Tools};
use spindle_system::{BlockDeviceNode, SystemTree};

impl MappedDevice {
    /// Makes the device called `name` with a table as `dmsetup` takes it, the ledger first. Returns its path. Errors:
    /// the tool's, or the ledger's.
    pub fn make(
        ledger: &Ledger,
        tree: &SystemTree,
        name: &str,
        table: &str,
    ) -> Result<PathBuf, StepError> {
        let device = MappedDevice::new(tree, name)?;
        ledger.note(None, device.clone().into())?;
        device.create(&ledger.tools()?, table)?;
        Ok(device.path())
    }

    /// A device that is not made yet, to be noted before it is.
    pub(super) fn new(tree: &SystemTree, name: &str) -> Result<MappedDevice, StepError> {
        Ok(MappedDevice {
            name: name.to_owned(),
            uuid: format!("SPINDLE-{}", new_uuid(tree)?),
        })
    }

    pub(super) fn create(&self, tools: &Tools, table: &str) -> Result<String, ToolError> {
        let arguments = ["create", &self.name, "--uuid", &self.uuid, "--table", table];
        tools.run("dmsetup", &arguments)
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from("/dev/mapper").join(&self.name)
    }

    /// The device, which was made. Errors: it no longer exists.
    pub(super) fn hold(&self, tree: &SystemTree) -> Result<Arc<HeldDevice>, StepError> {
        let called = self.path();
        let missing = || Refusal::Missing {
            path: called.clone(),
            reason: "device-mapper does not show it".to_owned(),
        };
        let (node, uuid) = self.found(tree).ok_or_else(missing)?;
        if uuid != self.uuid {
            return Err(missing().into());
        }
        let held = HeldDevice::of_number(tree, node.number, &called)?;
        Ok(Arc::new(held))
    }

    /// The device that has the name now, and its identity.
    fn found(&self, tree: &SystemTree) -> Option<(BlockDeviceNode, String)> {
        let node = BlockDeviceNode::all(tree)
            .into_iter()
            .find(|node| node.mapped_name().as_ref() == Some(&self.name))?;
        let uuid = node.mapped_uuid().unwrap_or_default();
        Some((node, uuid))
    }

    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        match self.found(&site.tree) {
            None => Ok(Undone::WasNot),
            Some((_, uuid)) if uuid != self.uuid => {
                Ok(Undone::NotOurs(format!("it now has the identity {uuid:?}")))
            }
            Some(_) => {
                // A process that has just closed it may hold it a moment longer.
                site.tools
                    .run("dmsetup", &["remove", "--retry", &self.name])?;
                Ok(Undone::Removed)
            }
        }
    }
}

impl fmt::Display for MappedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the device-mapper device {}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_another_identity_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let tree = SystemTree::default().with_sys(directory.path().to_owned());
        let device = MappedDevice {
            name: "spindle-cut-logged".to_owned(),
            uuid: "SPINDLE-1".to_owned(),
        };
        let site = Site {
            tree: tree.clone(),
            tools: Tools::new(),
            boot_id: None,
            is_of_living_run: true,
            is_going_on: true,
            last_touched: None,
            nodes: None,
            drop_schema: None,
            emptied: Default::default(),
        };
        assert_eq!(device.undo(&site).unwrap(), Undone::WasNot);
        let dm = directory.path().join("block/dm-3/dm");
        std::fs::create_dir_all(&dm).unwrap();
        let numbers = directory.path().join("dev/block");
        std::fs::create_dir_all(&numbers).unwrap();
        std::os::unix::fs::symlink("../../block/dm-3", numbers.join("254:3")).unwrap();
        std::fs::write(dm.join("name"), "spindle-cut-logged\n").unwrap();
        std::fs::write(dm.join("uuid"), "LVM-2\n").unwrap();
        assert!(matches!(device.undo(&site).unwrap(), Undone::NotOurs(_)));
        std::fs::write(dm.join("uuid"), "SPINDLE-1\n").unwrap();
        assert_eq!(device.found(&tree).unwrap().1, "SPINDLE-1");
    }
}
