//! The `diskgroup` table of a layout: a disk group as Oracle's ASM makes it, of the layout's devices.

use serde::{Deserialize, Serialize};
use spindle_layout::spec::DeviceSpec;

use crate::experiment::error::ExperimentError;
use crate::experiment::quantity::MIB;
use crate::experiment::reader::Reader;
use crate::experiment::word::words;

words! {
    /// How many copies of each extent there are, in ASM's words.
    pub enum Redundancy {
        /// One: the devices themselves are safe, or do not matter.
        External = "external",
        /// Two.
        Normal = "normal",
        /// Three.
        High = "high",
    }
    later: []
}

/// A disk group to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskGroup {
    /// Size of an allocation unit: 1 to 64 MiB, a power of two.
    pub allocation_unit_bytes: u64,
    /// Copies.
    pub redundancy: Redundancy,
    /// Devices that fail together, as written in `devices`; a device in none of them is its own.
    pub failure_groups: Vec<Vec<String>>,
}

impl DiskGroup {
    /// Reads the table, if there is one, for a group of these devices.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        devices: &[DeviceSpec],
    ) -> Result<Option<DiskGroup>, ExperimentError> {
        let mut table = reader.section("diskgroup")?;
        let group = DiskGroup::read_table(&mut table)?;
        table.finish()?;
        group.check(&table, devices)?;
        Ok(reader.has("diskgroup").then_some(group))
    }

    pub(super) fn read_table(table: &mut Reader<'_>) -> Result<DiskGroup, ExperimentError> {
        let sizes = [1, 2, 4, 8, 16, 32, 64].map(|mebibytes| mebibytes * MIB);
        Ok(DiskGroup {
            allocation_unit_bytes: table.size_among("allocation_unit", MIB, &sizes)?,
            redundancy: table.word("redundancy", Redundancy::External)?,
            failure_groups: table.lists_of_texts(
                "failure_groups",
                "a list of lists of devices as they are written in devices, such as [[\"disk1.img\"], [\"disk2.img\"]]",
            )?,
        })
    }

    fn check(&self, table: &Reader<'_>, devices: &[DeviceSpec]) -> Result<(), ExperimentError> {
        let mut seen: Vec<&str> = Vec::new();
        for name in self.failure_groups.iter().flatten() {
            let is_device = devices
                .iter()
                .any(|device| device.path().to_str() == Some(name));
            if !is_device || seen.contains(&name.as_str()) {
                let what = if is_device {
                    "stands in it twice"
                } else {
                    "is none of the devices"
                };
                return Err(table.conflict(
                    &["failure_groups"],
                    format!("failure_groups: {name:?} {what}"),
                    what,
                    "name each device once, as it is written in devices",
                ));
            }
            seen.push(name);
        }
        self.check_count(table, devices.len() - seen.len().min(devices.len()))
    }

    /// Each copy of an extent lies in another failure group.
    fn check_count(&self, table: &Reader<'_>, alone: usize) -> Result<(), ExperimentError> {
        let least = match self.redundancy {
            Redundancy::External => 1,
            Redundancy::Normal => 2,
            Redundancy::High => 3,
        };
        let groups = self.failure_groups.len() + alone;
        if least == 1 || groups >= least {
            return Ok(());
        }
        Err(table.conflict(
            &["redundancy"],
            format!(
                "{} redundancy takes {least} failure groups, and there are {groups}",
                self.redundancy
            ),
            "too few devices, or failure groups",
            "add devices, or choose redundancy = \"external\"",
        ))
    }
}
