//! A thin volume that is kept as it is by a snapshot, and put back to it: the volume is removed, and a new snapshot of
//! what was kept takes its name and number. The file system on it is unmounted meanwhile. Later writers pay for each
//! first overwrite of a chunk of the pool, which is copied.

use std::path::{Path, PathBuf};

use super::Step;
use super::error::{DeviceName, StepError};
use super::lvm::Lvm;
use super::make_volume::{POOL, VOLUME};
use super::mount_file_system::MountFileSystem;
use super::mount_file_system::number_of;
use super::site::Site;
use super::workshop::Workshop;

/// The name of what is kept.
pub(super) const KEPT: &str = "golden";

/// A trial may overwrite everything, which then takes its place in the pool once more; the rest is for the file system.
const USED_PERCENT_MAX: f64 = 48.0;

/// A thin volume of a layout, with what is mounted on it.
#[derive(Debug)]
pub(crate) struct ThinVolume {
    group: String,
    /// What the group is made of.
    devices: Vec<PathBuf>,
    device: DeviceName,
    path: PathBuf,
    mount: Option<MountFileSystem>,
}

impl ThinVolume {
    /// The thin volume that these steps have made, if there is one.
    pub(crate) fn of(steps: &[Step], workshop: &Workshop<'_>) -> Option<ThinVolume> {
        let made = steps.iter().find_map(|step| match step {
            Step::MakeVolume(made) if made.volume.thin => Some(made),
            _ => None,
        })?;
        let path_of = |name| Some(workshop.device(name).ok()?.path.clone());
        let mount = steps.iter().find_map(|step| match step {
            Step::MountFileSystem(mount) => Some(mount.clone()),
            _ => None,
        });
        Some(ThinVolume {
            group: made.group.clone(),
            devices: made.devices.iter().map(path_of).collect::<Option<_>>()?,
            path: path_of(&made.device)?,
            device: made.device.clone(),
            mount,
        })
    }

    /// Its name among the devices.
    pub(crate) fn device(&self) -> &DeviceName {
        &self.device
    }

    /// Where its file system is mounted.
    pub(crate) fn mounted_at(&self) -> Option<&Path> {
        self.mount.as_ref().map(|mount| mount.at.as_path())
    }

    /// Keeps it as it is now. Errors: the pool has no room for overwriting all that was written, or a tool's.
    pub(crate) fn keep(&self, site: &Site) -> Result<(), StepError> {
        self.unmounted(site, || {
            let pool = format!("{}/{POOL}", self.group);
            let used = self
                .lvm(site)
                .report("lvs", " ", "data_percent", &[&pool])?;
            let used_percent: f64 = used.trim().parse().unwrap_or(f64::INFINITY);
            if used_percent > USED_PERCENT_MAX {
                return Err(StepError::PoolTooSmall { pool, used_percent });
            }
            self.snapshot(site, VOLUME, &["--name", KEPT])
        })
    }

    /// Puts it back to what was kept. Errors: a process is still in its file system, or a tool's.
    pub(crate) fn roll_back(&self, site: &Site) -> Result<(), StepError> {
        let number = number_of(&self.path)?;
        self.unmounted(site, || {
            let volume = format!("{}/{VOLUME}", self.group);
            self.lvm(site).run("lvremove", &["--yes", &volume])?;
            let (major, minor) = (number.major.to_string(), number.minor.to_string());
            // Limits and counts are known by the number. Snapshots of thin volumes are not activated unless told to.
            let same = ["--persistent", "y", "--major", &major, "--minor", &minor];
            let named = ["--setactivationskip", "n", "--name", VOLUME];
            self.snapshot(site, KEPT, &[&same[..], &named].concat())
        })
    }

    fn unmounted(
        &self,
        site: &Site,
        work: impl FnOnce() -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        if let Some(mount) = &self.mount {
            mount.unmount(site, &self.path)?;
        }
        work()?;
        match &self.mount {
            Some(mount) => mount.mount(site, &self.path),
            None => Ok(()),
        }
    }

    fn snapshot(&self, site: &Site, of: &str, arguments: &[&str]) -> Result<(), StepError> {
        let of = format!("{}/{of}", self.group);
        let arguments = [&["--yes", "--snapshot"], arguments, &[of.as_str()]].concat();
        self.lvm(site).run("lvcreate", &arguments)?;
        Ok(())
    }

    fn lvm<'a>(&self, site: &'a Site) -> Lvm<'a> {
        Lvm::on(&site.tools, &self.devices)
    }
}
