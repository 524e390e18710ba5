//! A logical volume over all devices of a volume group. Copies are not brought into step first (`--nosync`): nothing is
//! read that was not written, and copying in the background would be measured.

use std::fmt;
use std::sync::Arc;

use super::error::{DeviceName, StepError};
use super::lvm::Lvm;
use super::site::Site;
use super::workshop::{Workshop, new_uuid};
use crate::guard::{HeldDevice, Refusal};
use crate::spec::VolumeSpec;

/// The volume's name in its group.
pub(super) const VOLUME: &str = "data";

/// The pool's name, for a thin volume.
pub(super) const POOL: &str = "pool";

/// Makes a logical volume that takes the whole group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeVolume {
    /// The group's name.
    pub group: String,
    /// The group's devices.
    pub devices: Vec<DeviceName>,
    /// What it is.
    pub volume: VolumeSpec,
    /// Its name among the devices.
    pub device: DeviceName,
}

impl fmt::Display for MakeVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "make a {} in {}", self.volume, self.group)
    }
}

impl MakeVolume {
    pub(super) fn written_bytes(&self) -> u64 {
        4 << 20
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let devices = workshop.paths_for("lvm", &self.devices)?;
        let lvm = Lvm::on(&workshop.site.tools, &devices);
        let create = |arguments: &[&str]| lvm.run("lvcreate", &[&["--yes"], arguments].concat());
        let shape = self.shape();
        let shape: Vec<&str> = shape.iter().map(String::as_str).collect();
        if self.volume.thin {
            // The rest is for the pool's metadata and their spare.
            let pool = ["--extents", "90%FREE", "--thinpool", POOL];
            create(&[&shape[..], &pool, &[&self.group]].concat())?;
            let pool = format!("{}/{POOL}", self.group);
            let bytes = ["--nosuffix", "--units", "b", &pool];
            let size = lvm.report("lvs", " ", "lv_size", &bytes)?;
            create(&[
                "--virtualsize",
                &format!("{}b", size.trim()),
                "--thin",
                "--name",
                VOLUME,
                &pool,
            ])?;
        } else {
            create(
                &[
                    &shape[..],
                    &["--extents", "100%FREE", "--name", VOLUME, &self.group],
                ]
                .concat(),
            )?;
        }
        let volume = self.hold(workshop.site, &lvm)?;
        let uuid = new_uuid(&workshop.site.tree)?;
        workshop.ready(&self.device, Arc::new(volume), uuid)
    }

    /// The volume, which was made: by its number, for its name is a link that others make.
    fn hold(&self, site: &Site, lvm: &Lvm<'_>) -> Result<HeldDevice, StepError> {
        let volume = format!("{}/{VOLUME}", self.group);
        let called = site.tree.dev.join(&volume);
        let numbers = "lv_kernel_major,lv_kernel_minor";
        let said = lvm.report("lvs", ":", numbers, &[&volume])?;
        let missing = |_| Refusal::Missing {
            path: called.clone(),
            reason: format!("LVM tells no number of it, but {said:?}"),
        };
        let number = said.trim().parse().map_err(missing)?;
        Ok(HeldDevice::of_number(&site.tree, number, &called)?)
    }

    /// Arguments of lvcreate(8) for stripes and copies.
    fn shape(&self) -> Vec<String> {
        let VolumeSpec {
            stripes,
            stripe_size_bytes,
            mirrors,
            thin,
        } = self.volume;
        let mut arguments = Vec::new();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(ToString::to_string));
        match (mirrors, stripes) {
            // The type of a thin volume is the pool's affair.
            _ if thin => {}
            (0, 1) => add(&["--type", "linear"]),
            (0, _) => add(&["--type", "striped"]),
            (_, 1) => add(&["--type", "raid1"]),
            (_, _) => add(&["--type", "raid10"]),
        }
        if stripes > 1 {
            let (stripes, kibibytes) =
                (stripes.to_string(), format!("{}k", stripe_size_bytes >> 10));
            add(&["--stripes", &stripes, "--stripesize", &kibibytes]);
        }
        if mirrors > 0 {
            add(&["--mirrors", &mirrors.to_string(), "--nosync"]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(stripes: u32, mirrors: u32, thin: bool) -> String {
        let step = MakeVolume {
            group: "group".to_owned(),
            devices: Vec::new(),
            volume: VolumeSpec {
                stripes,
                stripe_size_bytes: 64 << 10,
                mirrors,
                thin,
            },
            device: "volume".to_owned(),
        };
        step.shape().join(" ")
    }

    #[test]
    fn stripes_and_mirrors_are_told_lvm_in_its_words() {
        assert_eq!(shape(1, 0, false), "--type linear");
        assert_eq!(
            shape(4, 0, false),
            "--type striped --stripes 4 --stripesize 64k"
        );
        assert_eq!(shape(1, 1, false), "--type raid1 --mirrors 1 --nosync");
        assert_eq!(
            shape(2, 1, false),
            "--type raid10 --stripes 2 --stripesize 64k --mirrors 1 --nosync"
        );
        assert_eq!(shape(2, 0, true), "--stripes 2 --stripesize 64k");
    }
}
