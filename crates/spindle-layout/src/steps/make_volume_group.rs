//! A volume group of LVM. It bears a tag that only this run knows, and its devices identities noted before: what has
//! another is never removed.

use std::fmt;
use std::path::PathBuf;

use super::error::{DeviceName, StepError};
use super::lvm::Lvm;
use super::make_volume::{POOL, VOLUME};
use super::site::{Site, Undone};
use super::thin_volume::KEPT;
use super::workshop::{Workshop, run_on_devices};
use crate::guard::{HeldDevice, Refusal};
use crate::record::MadeVolumeGroup;
use crate::tool::{ToolError, argument};

/// Makes a volume group of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeVolumeGroup {
    /// The devices.
    pub devices: Vec<DeviceName>,
    /// The group's name.
    pub group: String,
}

/// An identity in LVM's own form: 32 letters and digits, 6-4-4-4-4-4-6 of them.
pub(super) fn physical_volume_uuid(uuid: &str) -> String {
    let mut characters = uuid.chars().filter(|character| *character != '-');
    let groups =
        [6, 4, 4, 4, 4, 4, 6].map(|length| characters.by_ref().take(length).collect::<String>());
    groups.join("-")
}

impl fmt::Display for MakeVolumeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "make the volume group {} of {}",
            self.group,
            self.devices.join(", ")
        )
    }
}

impl MakeVolumeGroup {
    pub(super) fn written_bytes(&self) -> u64 {
        self.devices.len() as u64 * (2 << 20)
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        workshop.site.tools.load_device_mapper(&workshop.site.tree);
        let (mut called, mut appearances, mut uuids) = (Vec::new(), Vec::new(), Vec::new());
        for name in &self.devices {
            let ready = workshop.device(name)?;
            called.push(ready.held()?.called().to_owned());
            appearances.push(ready.held()?.appearance());
            uuids.push(physical_volume_uuid(&ready.uuid));
        }
        let devices = workshop.paths_for("lvm", &self.devices)?;
        workshop.note(MadeVolumeGroup {
            group: self.group.clone(),
            tag: tag_of(&uuids),
            devices: called,
            uuids: uuids.clone(),
            appearances,
        })?;
        for ((name, path), uuid) in self.devices.iter().zip(&devices).zip(&uuids) {
            let arguments = ["--norestorefile", "--uuid", uuid, argument(path)];
            run_on_devices(workshop, std::slice::from_ref(name), |tools| {
                Lvm::on(tools, &devices).run("pvcreate", &arguments)
            })?;
        }
        let tag = tag_of(&uuids);
        let mut arguments = vec!["--addtag", &tag, &self.group];
        arguments.extend(devices.iter().map(|path| argument(path)));
        Lvm::on(&workshop.site.tools, &devices).run("vgcreate", &arguments)?;
        Ok(())
    }
}

/// Known to no other program: it comes from a random identity.
fn tag_of(uuids: &[String]) -> String {
    format!("spindle-{}", uuids.first().map_or("", String::as_str))
}

impl fmt::Display for MadeVolumeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the volume group {} with its volumes", self.group)
    }
}

impl MadeVolumeGroup {
    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        let mut undone = Undone::WasNot;
        let held = self.find(site)?;
        let path = |held: &HeldDevice| site.path_for_tools(held);
        let present: Vec<PathBuf> = held.iter().map(path).collect::<Result<_, _>>()?;
        if present.is_empty() {
            return Ok(undone);
        }
        let lvm = Lvm::on(&site.tools, &present);
        let groups = match lvm.report("vgs", " ", "vg_name,vg_tags", &["--select", "all"]) {
            // Without LVM there was never a group.
            Err(ToolError::Missing { .. }) => return Ok(undone),
            groups => groups?,
        };
        if let Some(tags) = value_of(&groups, &self.group) {
            if !tags.split(',').any(|tag| tag == self.tag) {
                return Ok(Undone::NotOurs(
                    "a volume group of that name has another identity".to_owned(),
                ));
            }
            if let Some(what) = self.of_others(&lvm)? {
                let group = self.group.clone();
                return Err(StepError::HoldsOthers { group, what });
            }
            lvm.run("vgremove", &["--yes", "--force", &self.group])?;
            undone = Undone::Removed;
        }
        for (device, path) in held.iter().zip(&present) {
            // Alone with it: LVM calls a device by whichever name it likes.
            let lvm = Lvm::on(&site.tools, std::slice::from_ref(path));
            let found = lvm.report("pvs", " ", "pv_uuid", &["--select", "all"])?;
            if !self.uuids.iter().any(|ours| ours == found.trim()) {
                continue;
            }
            lvm.run("pvremove", &["--yes", argument(path)])?;
            let number = device.appearance().number;
            site.emptied.borrow_mut().insert(number);
            undone = Undone::Removed;
        }
        Ok(undone)
    }

    /// Volumes that a person made in the group, and devices that a person added to it, in words; `None` where there are
    /// none. Removing the group would remove them.
    fn of_others(&self, lvm: &Lvm<'_>) -> Result<Option<String>, StepError> {
        let volumes = lvm.report("lvs", " ", "lv_name", &[&self.group])?;
        let mut others = volumes_of_others(volumes.lines().map(str::trim));
        let devices = lvm.report("vgs", " ", "pv_count", &[&self.group])?;
        let devices: usize = devices.trim().parse().unwrap_or_default();
        match devices.saturating_sub(self.uuids.len()) {
            0 => {}
            1 => others.push("another device".to_owned()),
            more => others.push(format!("{more} other devices")),
        }
        Ok((!others.is_empty()).then(|| others.join(", ")))
    }

    /// The group's existing devices, held.
    fn find(&self, site: &Site) -> Result<Vec<HeldDevice>, StepError> {
        let mut held = Vec::new();
        for (position, called) in self.devices.iter().enumerate() {
            let found = match self.appearances.get(position) {
                Some(noted) => site.find(*noted, called),
                None => HeldDevice::at(&site.tree, called),
            };
            match found {
                Ok(device) => held.push(device),
                Err(Refusal::Missing { .. }) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        Ok(held)
    }
}

/// Names of volumes that no step of a run gives. Until its own volume exists, those that LVM names itself are parts of
/// it: a run that was killed leaves them.
fn volumes_of_others<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let is_whole = names.contains(&VOLUME);
    let is_ours = |name: &str| {
        let number = name.strip_prefix("lvol");
        let is_numbered =
            number.is_some_and(|of| !of.is_empty() && of.bytes().all(|byte| byte.is_ascii_digit()));
        [VOLUME, POOL, KEPT].contains(&name) || is_numbered && !is_whole
    };
    let others = names.iter().filter(|name| !is_ours(name));
    others.map(|name| format!("volume {name}")).collect()
}

/// The second column of the line that begins with `name`.
fn value_of<'a>(report: &'a str, name: &str) -> Option<&'a str> {
    report.lines().find_map(|line| {
        let (first, rest) = line.trim().split_once(' ')?;
        (first == name).then_some(rest.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_takes_the_form_of_lvm() {
        let uuid = physical_volume_uuid("01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(uuid, "012345-6789-abcd-ef01-2345-6789-abcdef");
    }

    #[test]
    fn volumes_that_no_step_names_are_of_others() {
        let of = |names: &[&str]| volumes_of_others(names.iter().copied()).join(", ");
        assert_eq!(of(&["data", "pool", "golden", ""]), "");
        assert_eq!(of(&["lvol0"]), "", "a part of what was never finished");
        assert_eq!(of(&["data", "lvol0"]), "volume lvol0");
        assert_eq!(of(&["mine", "data", "pool"]), "volume mine");
        assert_eq!(of(&["lvol", "lvolx"]), "volume lvol, volume lvolx");
    }

    #[test]
    fn columns_are_found_by_the_first() {
        let report = "  vg1 a,spindle-1\n  vg2 ";
        assert_eq!(value_of(report, "vg1"), Some("a,spindle-1"));
        assert_eq!(value_of(report, "vg"), None);
        assert_eq!(value_of(report, "vg2"), None);
    }
}
