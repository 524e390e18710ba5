//! The `diskgroup` table of a layout: a disk group as Oracle's ASM makes it, of the layout's devices.

use serde::{Deserialize, Serialize};
pub use spindle_io::disk_group::{Redundancy, Striping, StripingByKind};
use spindle_layout::spec::DeviceSpec;
use spindle_text::section::Section;
use spindle_text::settings;

use crate::reader::Reader;
use spindle_text::quantity::MIB;

const UNIT_SIZES: [u64; 7] = [MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB];
const PREFERRED_READ: &str = "a device as it is written in devices, such as \"disk1.img\"";
const FAILURE_GROUPS: &str = "a list of lists of devices as they are written in devices, such as [[\"disk1.img\"], [\"disk2.img\"]]";

settings! {
    /// What a disk group is made of, and how its files are read.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct DiskGroupSpec {
        /// What space is given out in.
        allocation_unit_bytes: u64 = size_among("allocation_unit", MIB, &UNIT_SIZES),
        /// One, two or three copies of each extent.
        redundancy: Redundancy = word("redundancy", Redundancy::External),
        /// Devices that fail together: copies lie in different groups. A device in none of them is its own.
        failure_groups: Vec<Vec<String>> = lists_of_texts("failure_groups", FAILURE_GROUPS),
        /// How files lie on the disks, see below.
        #[serde(default)]
        striping: StripingByKind = table_or("striping", "`{}`"),
        /// Copies in its failure group are read, where there are some, instead of the first ones: ASM's preferred read
        /// failure group. Needs `redundancy`.
        #[serde(default)]
        preferred_read: Option<String> = text("preferred_read", "none", PREFERRED_READ),
    }
}

impl DiskGroupSpec {
    /// Whether the other group would be made of its devices as this one is. How files lie in it and are read is not its
    /// own affair.
    pub fn is_made_as(&self, other: &DiskGroupSpec) -> bool {
        self.allocation_unit_bytes == other.allocation_unit_bytes
            && self.redundancy == other.redundancy
            && self.failure_groups == other.failure_groups
    }

    /// Reads the table, if there is one, for a group of these devices.
    pub(super) fn of(reader: &mut Reader<'_>, devices: &[DeviceSpec]) -> Option<DiskGroupSpec> {
        let mut table = reader.section("diskgroup");
        let group: DiskGroupSpec = Section::read(&mut table);
        table.finish();
        let given = reader.keys(["devices"]);
        group.check(&table, &given, devices);
        reader.has("diskgroup").then_some(group)
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
