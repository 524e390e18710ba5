//! A block device cut into equal partitions, for candidates that share it. Real partitions, and not loop devices over
//! ranges: those would be measured, too. The table bears the identity noted when the device was claimed, by which it is
//! removed again. A file that stands in for a device is cut by its loop devices, which it needs anyway.

use std::fmt;
use std::sync::Arc;

use super::claim_device::zero_ends;
use super::error::{DeviceName, StepError};
use super::site::wait_until;
use super::workshop::{Workshop, new_uuid, run_on_devices};
use crate::guard::{EDGE_BYTES, HeldDevice};
use crate::tool::argument;
use spindle_system::node::BlockDeviceNode;
use spindle_text::quantity::size;

/// Cuts a claimed device into equal partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutDevice {
    /// Its name among the devices.
    pub device: DeviceName,
    /// Names of the parts, from its beginning (the outer tracks of a disk) on.
    pub parts: Vec<DeviceName>,
    /// Size of each, a multiple of 1 MiB.
    pub part_bytes: u64,
}

impl fmt::Display for CutDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, size) = (self.parts.len(), size(self.part_bytes));
        write!(
            f,
            "cut {} into {parts} partitions of {size} (GPT)",
            self.device
        )
    }
}

impl CutDevice {
    pub(super) fn written_bytes(&self) -> u64 {
        2 * EDGE_BYTES * (1 + self.parts.len() as u64)
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let ready = workshop.device(&self.device)?.clone();
        let path = workshop.path_for("sfdisk", &self.device)?;
        let taken = workshop.take(&self.device)?;
        let number = taken.state().number;
        // The device counts as empty, but inside it file systems of earlier partitions and volumes may have left their
        // signatures, which would come to light where a part begins.
        for start_bytes in self.starts() {
            zero_ends(taken.file(), start_bytes, self.part_bytes)
                .map_err(|error| StepError::system("zero parts of", taken.path(), error))?;
        }
        drop(taken);
        let arguments = ["--quiet", "--lock=yes", argument(&path)];
        let script = self.script(&ready.uuid);
        // The kernel takes in a new table only when nobody holds the disk.
        run_on_devices(workshop, std::slice::from_ref(&self.device), |tools| {
            tools.run_with("sfdisk", &arguments, &script)
        })?;
        // Not every kernel reads such a table itself (it may be built without); where it did, this changes nothing.
        let update = ["--update", argument(&path)];
        workshop.site.tools.run("partx", &update)?;
        let tree = &workshop.site.tree;
        let partitions =
            || BlockDeviceNode::of(tree, number).map_or_else(Vec::new, |node| node.partitions());
        let all_there = || {
            let partitions = partitions();
            partitions.len() == self.parts.len()
                && partitions.iter().all(|node| node.path(tree).exists())
        };
        let all_there = wait_until(all_there);
        let partitions = partitions();
        if !all_there {
            return Err(StepError::NotCut {
                path,
                wanted: self.parts.len(),
                found: partitions.len(),
            });
        }
        for (name, node) in self.parts.iter().zip(partitions) {
            let tree = &workshop.site.tree;
            let part = HeldDevice::of_number(tree, node.number, &node.path(tree))?;
            let uuid = new_uuid(tree)?;
            workshop.ready(name, Arc::new(part), uuid)?;
        }
        Ok(())
    }

    /// Where the parts begin, in bytes.
    fn starts(&self) -> impl Iterator<Item = u64> {
        (0..self.parts.len() as u64).map(|part| EDGE_BYTES + part * self.part_bytes)
    }

    /// What sfdisk(8) is to make.
    fn script(&self, uuid: &str) -> String {
        let mut script = format!("label: gpt\nlabel-id: {uuid}\n");
        for start in self.starts() {
            let size = self.part_bytes;
            script += &format!("start={}KiB, size={}KiB\n", start >> 10, size >> 10);
        }
        script
    }
}
