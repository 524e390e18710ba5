//! The `diskgroup` table of a layout: a disk group as Oracle's ASM makes it, of the layout's devices.

use serde::{Deserialize, Serialize};
pub use spindle_io::disk_group::{Redundancy, Striping};
use spindle_layout::spec::DeviceSpec;

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
    pub(super) fn read_table(table: &mut Reader<'_>) -> StripingByKind {
        let default = StripingByKind::default();
        StripingByKind {
            control: table.word("control", default.control),
            redo: table.word("redo", default.redo),
            undo: table.word("undo", default.undo),
            data: table.word("data", default.data),
            temp: table.word("temp", default.temp),
        }
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
    pub(super) fn read(reader: &mut Reader<'_>, devices: &[DeviceSpec]) -> Option<DiskGroup> {
        let mut table = reader.section("diskgroup");
        let group = DiskGroup::read_table(&mut table);
        table.finish();
        let given = reader.keys(["devices"]);
        group.check(&table, &given, devices);
        reader.has("diskgroup").then_some(group)
    }

    pub(super) fn read_table(table: &mut Reader<'_>) -> DiskGroup {
        let sizes = [1, 2, 4, 8, 16, 32, 64].map(|mebibytes| mebibytes * MIB);
        let mut striping = table.section("striping");
        let by_kind = StripingByKind::read_table(&mut striping);
        striping.finish();
        DiskGroup {
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
        }
    }

    /// Refuses what these devices cannot be. `given` are the keys that say which they are.
    fn check(&self, table: &Reader<'_>, given: &[String], devices: &[DeviceSpec]) {
        let refuse = |key: &str, title: String, label: &str, help: &str| {
            let refused = table.conflict(&[key], title, label, help);
            table.note(refused.given(given.iter().cloned()));
        };
        let is_device = |name: &str| {
            let mut devices = devices.iter();
            devices.any(|device| device.path().to_str() == Some(name))
        };
        let mut seen: Vec<&str> = Vec::new();
        let mut is_right = true;
        for name in self.failure_groups.iter().flatten() {
            let what = match is_device(name) {
                false => "is not one of `devices`",
                true if seen.contains(&name.as_str()) => "stands in it twice",
                true => {
                    seen.push(name);
                    continue;
                }
            };
            is_right = false;
            let title = format!("failure_groups: {name:?} {what}");
            let help = "name each device once, as it is written in devices";
            refuse("failure_groups", title, what, help);
        }
        if let Some(name) = &self.preferred_read {
            let wrong = match self.redundancy {
                _ if !is_device(name) => Some((
                    "is not one of `devices`",
                    "name a device as it is written in devices",
                )),
                Redundancy::External => Some((
                    "has no copies to choose from",
                    "choose redundancy = \"normal\" or \"high\", or leave preferred_read out",
                )),
                Redundancy::Normal | Redundancy::High => None,
            };
            if let Some((what, help)) = wrong {
                let title = format!("preferred_read: {name:?} {what}");
                let refused = table.conflict(&["preferred_read"], title, what, help);
                let given = given.iter().cloned().chain(table.keys(["redundancy"]));
                table.note(refused.given(given));
            }
        }
        let groups = self.failure_groups.len() + devices.len() - seen.len();
        let least = self.failure_groups_min();
        // Groups of devices that are none cannot be counted.
        if is_right && least > 1 && groups < least {
            refuse(
                "redundancy",
                format!(
                    "{} redundancy takes {least} failure groups, and there are {groups}",
                    self.redundancy
                ),
                "too few devices, or failure groups",
                "add devices, or choose redundancy = \"external\"",
            );
        }
    }

    /// Each copy of an extent lies in another failure group.
    fn failure_groups_min(&self) -> usize {
        match self.redundancy {
            Redundancy::External => 1,
            Redundancy::Normal => 2,
            Redundancy::High => 3,
        }
    }
}
