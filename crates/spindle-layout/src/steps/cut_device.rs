//! A block device cut into equal partitions, for candidates that share it. Real partitions, and not loop devices over
//! ranges: those would be measured, too. The table bears the identity noted when the device was claimed, by which it is
//! removed again. A file that stands in for a device is cut by its loop devices, which it needs anyway.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::claim_device::zero_ends;
use super::error::{DeviceName, StepError};
use super::site::wait_until;
use super::udev;
use super::workshop::{Workshop, run_on_devices};
use crate::guard::{EDGE_BYTES, HeldDevice};
use crate::tool::{Tools, argument};
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
        let file = workshop.to_write(&self.device, &taken)?;
        for start_bytes in self.starts() {
            zero_ends(&file, start_bytes, self.part_bytes)
                .map_err(|error| StepError::system("zero parts of", taken.path(), error))?;
        }
        drop((file, taken));
        // Without a node of the run, what was written until now came by the one that others use.
        workshop.ledger.touch()?;
        let arguments = ["--quiet", "--lock=yes", argument(&path)];
        let script = self.script(&ready.uuid);
        // The kernel reads a new table only when no process holds the disk.
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
        udev::settle(&workshop.site.tools);
        workshop.ledger.touch()?;
        let partitions = partitions();
        if !all_there {
            return Err(StepError::NotCut {
                path,
                wanted: self.parts.len(),
                found: partitions.len(),
            });
        }
        for (number, (name, node)) in self.parts.iter().zip(partitions).enumerate() {
            let tree = &workshop.site.tree;
            let part = HeldDevice::of_number(tree, node.number, &node.path(tree))?;
            let uuid = content_uuid(&ready.uuid, number);
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
        for (number, start) in self.starts().enumerate() {
            let (start_kib, size_kib) = (start >> 10, self.part_bytes >> 10);
            let own = part_uuid(uuid, number);
            script += &format!("start={start_kib}KiB, size={size_kib}KiB, uuid={own}\n");
        }
        script
    }
}

/// The identity of a partition, counted from 0, of a device that was claimed under `uuid`: so the ledger knows it.
pub(super) fn part_uuid(uuid: &str, number: usize) -> String {
    derived(uuid, 1 + number as u64)
}

/// The identity of what the run puts on that partition.
pub(super) fn content_uuid(uuid: &str, number: usize) -> String {
    derived(uuid, (1 << 32) + number as u64)
}

/// Another identity for each number. The last group of an identity has 12 hexadecimal digits (RFC 9562).
fn derived(uuid: &str, number: u64) -> String {
    let (before, last) = uuid.rsplit_once('-').unwrap_or(("", uuid));
    let last = u64::from_str_radix(last, 16).unwrap_or_default() ^ number;
    format!("{before}-{last:012x}")
}

/// A partition as the table names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DevicePartition {
    pub uuid: String,
    /// The bytes of the device that it is.
    pub range: Range<u64>,
}

/// The partitions of a device, in the order of the table.
pub(super) fn partitions(tools: &Tools, device: &File) -> Result<Vec<DevicePartition>, StepError> {
    let printed = tools.run_on("sfdisk", &["--dump", "/dev/stdin"], device)?;
    Ok(parse_partitions(&printed).unwrap_or_default())
}

/// Reads what `sfdisk --dump` printed (sfdisk(8)); `None` when it is of another form.
fn parse_partitions(printed: &str) -> Option<Vec<DevicePartition>> {
    let sector_bytes = printed
        .lines()
        .find_map(|line| line.strip_prefix("sector-size: "));
    let sector_bytes: u64 = sector_bytes.map_or(Some(512), |bytes| bytes.trim().parse().ok())?;
    let lines = printed
        .lines()
        .filter(|line| line.contains("start=") && line.contains(" : "));
    let part = |line: &str| {
        let (_, fields) = line.split_once(" : ")?;
        let field = |name: &str| {
            let mut fields = fields.split(',').map(str::trim);
            fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let sectors = |name: &str| field(name)?.trim().parse::<u64>().ok();
        let start = sectors("start")? * sector_bytes;
        Some(DevicePartition {
            uuid: field("uuid").unwrap_or_default().to_owned(),
            range: start..start + sectors("size")? * sector_bytes,
        })
    };
    lines.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "00719742-3b09-40f7-855e-40d17be8db36";

    #[test]
    fn each_partition_and_what_is_on_it_has_an_identity_that_follows() {
        assert_eq!(part_uuid(OURS, 0), "00719742-3b09-40f7-855e-40d17be8db37");
        assert_eq!(part_uuid(OURS, 1), "00719742-3b09-40f7-855e-40d17be8db34");
        assert_eq!(
            content_uuid(OURS, 0),
            "00719742-3b09-40f7-855e-40d07be8db36"
        );
    }

    #[test]
    fn partitions_are_read_as_they_are_printed() {
        let printed = "label: gpt\nlabel-id: X\ndevice: /dev/stdin\nunit: sectors\nsector-size: 4096\n\n\
            /dev/stdin1 : start=         256, size=        2048, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, uuid=A-1\n\
            /dev/stdin2 : start=        2304, size=        1024, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4\n";
        let found = parse_partitions(printed).unwrap();
        let part = |uuid: &str, range| DevicePartition {
            uuid: uuid.to_owned(),
            range,
        };
        let expected = [part("A-1", 1 << 20..9 << 20), part("", 9 << 20..13 << 20)];
        assert_eq!(found, expected);
        assert_eq!(parse_partitions("/dev/stdin1 : start=x, size=1"), None);
    }
}
