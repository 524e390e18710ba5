//! The `diskgroup` table of a layout: a disk group as Oracle's ASM makes it, of the layout's devices.

use serde::{Deserialize, Serialize};
pub use spindle_io::disk_group::{Redundancy, Striping};
use spindle_layout::spec::DeviceSpec;

use crate::error::ExperimentError;
use crate::reader::Reader;
use spindle_text::quantity::MIB;

/// How each kind of file lies in a disk group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripingByKind {
    /// The control file.
    pub control: Striping,
    /// Redo log files.
    pub redo: Striping,
    /// The undo datafile.
    pub undo: Striping,
    /// Datafiles.
    pub data: Striping,
    /// Temporary files.
    pub temp: Striping,
}

impl Default for StripingByKind {
    /// As Oracle's templates have it since 11g.
    fn default() -> StripingByKind {
        StripingByKind {
            control: Striping::Fine,
            redo: Striping::Coarse,
            undo: Striping::Coarse,
            data: Striping::Coarse,
            temp: Striping::Coarse,
        }
    }
}

impl StripingByKind {
    pub(super) fn read_table(table: &mut Reader<'_>) -> Result<StripingByKind, ExperimentError> {
        let default = StripingByKind::default();
        Ok(StripingByKind {
            control: table.word("control", default.control),
            redo: table.word("redo", default.redo),
            undo: table.word("undo", default.undo),
            data: table.word("data", default.data),
            temp: table.word("temp", default.temp),
        })
    }
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
    /// How files lie in it.
    #[serde(default)]
    pub striping: StripingByKind,
    /// A device, as written in `devices`, whose failure group's copies are read where there are some.
    #[serde(default)]
    pub preferred_read: Option<String>,
}

impl DiskGroup {
    /// Whether the other group would be made of its devices as this one is. How files lie in it and are read is not its
    /// own affair.
    pub fn is_made_as(&self, other: &DiskGroup) -> bool {
        self.allocation_unit_bytes == other.allocation_unit_bytes
            && self.redundancy == other.redundancy
            && self.failure_groups == other.failure_groups
    }

    /// Reads the table, if there is one, for a group of these devices.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        devices: &[DeviceSpec],
    ) -> Result<Option<DiskGroup>, ExperimentError> {
        let mut table = reader.section("diskgroup");
        let group = DiskGroup::read_table(&mut table)?;
        table.finish();
        group.check(&table, devices)?;
        Ok(reader.has("diskgroup").then_some(group))
    }

    pub(super) fn read_table(table: &mut Reader<'_>) -> Result<DiskGroup, ExperimentError> {
        let sizes = [1, 2, 4, 8, 16, 32, 64].map(|mebibytes| mebibytes * MIB);
        let mut striping = table.section("striping");
        let by_kind = StripingByKind::read_table(&mut striping)?;
        striping.finish();
        Ok(DiskGroup {
            striping: by_kind,
            preferred_read: table
                .text(
                "preferred_read",
                "a device as it is written in devices, such as \"disk1.img\"",
            )
            .map(str::to_owned),
            allocation_unit_bytes: table.size_among("allocation_unit", MIB, &sizes),
            redundancy: table.word("redundancy", Redundancy::External),
            failure_groups: table.lists_of_texts(
                "failure_groups",
                "a list of lists of devices as they are written in devices, such as [[\"disk1.img\"], [\"disk2.img\"]]",
            ),
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
                    "is not one of `devices`"
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
        if let Some(name) = &self.preferred_read {
            let is_device = devices
                .iter()
                .any(|device| device.path().to_str() == Some(name));
            let (what, help) = match self.redundancy {
                _ if !is_device => (
                    "is not one of `devices`",
                    "name a device as it is written in devices",
                ),
                Redundancy::External => (
                    "has no copies to choose from",
                    "choose redundancy = \"normal\" or \"high\", or leave preferred_read out",
                ),
                Redundancy::Normal | Redundancy::High => {
                    return self.check_count(table, devices.len() - seen.len().min(devices.len()));
                }
            };
            return Err(table.conflict(
                &["preferred_read"],
                format!("preferred_read: {name:?} {what}"),
                what,
                help,
            ));
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
