//! A file system, by the `mkfs.TYPE` of the system. It gets an identity that was noted when its device was claimed.
//! What would continue in the background during trials is done at once; blocks are discarded only when the experiment
//! asks for it.

use std::fmt;

use super::error::{DeviceName, StepError};
use super::workshop::{Workshop, run_on_devices};
use crate::file_system;
use crate::spec::FileSystemSpec;
use crate::tool::argument;

/// A kind that is not known writes about one byte of this many.
const WRITTEN_SHARE: u64 = 200;

/// Makes a file system on one device, or btrfs on several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeFileSystem {
    /// The devices.
    pub devices: Vec<DeviceName>,
    /// What kind, and how.
    pub spec: FileSystemSpec,
    /// Size of the devices together, for the estimate.
    pub size_bytes: u64,
}

/// Whatever was read: an experiment is read, and so is a run that is resumed.
pub(super) fn options_stay_here(spec: &FileSystemSpec) -> Result<(), StepError> {
    match spec.leads_elsewhere() {
        Some((key, option)) => Err(StepError::LeadsElsewhere { key, option }),
        None => Ok(()),
    }
}

/// The arguments that Spindle gives a `mkfs`, before the person's own.
fn own_arguments(type_name: &str, uuid: Option<&str>) -> Vec<String> {
    let Some(kind) = file_system::kind(type_name) else {
        return Vec::new();
    };
    let words = kind.mkfs.iter().map(ToString::to_string);
    let identity = uuid
        .zip(kind.identity)
        .map(|(uuid, identity)| identity(uuid));
    words.chain(identity.into_iter().flatten()).collect()
}

impl fmt::Display for MakeFileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileSystemSpec {
            type_name,
            mkfs_options,
            ..
        } = &self.spec;
        let arguments = [own_arguments(type_name, None), mkfs_options.clone()].concat();
        write!(
            f,
            "format {} with {type_name} ({})",
            self.devices.join(", "),
            [vec![format!("mkfs.{type_name}")], arguments]
                .concat()
                .join(" ")
        )
    }
}

impl MakeFileSystem {
    /// About: tables of inodes, the journal.
    pub(super) fn written_bytes(&self) -> u64 {
        let kind = file_system::kind(&self.spec.type_name);
        let share = kind.map_or(WRITTEN_SHARE, |kind| kind.written_share);
        self.size_bytes / share
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        options_stay_here(&self.spec)?;
        let type_name = &self.spec.type_name;
        let uuid = match self.devices.first() {
            Some(first) => workshop.device(first)?.uuid.clone(),
            None => String::new(),
        };
        let mut arguments = own_arguments(type_name, Some(&uuid));
        arguments.extend(self.spec.mkfs_options.clone());
        let program = format!("mkfs.{type_name}");
        let paths = workshop.paths_for(&program, &self.devices)?;
        arguments.extend(paths.iter().map(|path| argument(path).to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run_on_devices(workshop, &self.devices, |tools| {
            tools.run(&program, &arguments)
        })
    }
}
