//! A file system, by the `mkfs.TYPE` of the system. It gets an identity that was noted when its device was claimed.
//! What would go on in the background during trials is done at once; blocks are discarded only when the experiment asks
//! for it.

use std::fmt;

use super::{DeviceName, StepError, Workshop, run_on_devices};
use crate::spec::FileSystemSpec;
use crate::tool::argument;

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

/// Whether we choose the identity of a file system of this type.
pub(crate) fn takes_our_uuid(type_name: &str) -> bool {
    matches!(type_name, "ext2" | "ext3" | "ext4" | "xfs" | "btrfs")
}

/// The arguments that Spindle gives a `mkfs`, before the person's own.
fn own_arguments(type_name: &str, uuid: Option<&str>) -> Vec<String> {
    let words: &[&str] = match type_name {
        // -E once: the person's own replaces ours only where they name the same.
        "ext2" => &["-q", "-E", "nodiscard,lazy_itable_init=0"],
        "ext3" | "ext4" => &[
            "-q",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ],
        "xfs" => &["-q", "-K"],
        "btrfs" => &["-q", "--nodiscard"],
        _ => &[],
    };
    let mut arguments: Vec<String> = words.iter().map(ToString::to_string).collect();
    if let Some(uuid) = uuid {
        match type_name {
            "xfs" => arguments.extend(["-m".to_owned(), format!("uuid={uuid}")]),
            _ if takes_our_uuid(type_name) => arguments.extend(["-U".to_owned(), uuid.to_owned()]),
            _ => {}
        }
    }
    arguments
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
    /// About: tables of inodes (ext: 256 bytes for each 16 KiB), the journal.
    pub(super) fn written_bytes(&self) -> u64 {
        let share = if self.spec.type_name.starts_with("ext") {
            40
        } else {
            200
        };
        self.size_bytes / share
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
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
