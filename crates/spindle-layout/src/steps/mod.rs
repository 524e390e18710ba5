//! The steps by which a layout is made: one file for each kind. A [`Step`] is planned data; carrying it out notes a
//! [`Record`] in the ledger first, which says exactly what is about to be made, and by which it is undone, by the run
//! itself or, when that died, by `clean`. Undoing looks before it touches: what was never made is no error, and what is
//! not the run's (any more) is left alone.

use std::fmt;

use crate::record::Record;

mod attach_loop;
mod claim_device;
mod cut_device;
mod delay_device;
mod error;
mod join_group;
mod leftovers;
mod lvm;
mod made_nodes;
mod make_directory;
mod make_file;
mod make_file_system;
mod make_volume;
mod make_volume_group;
mod mapped_device;
mod mount_file_system;
mod overwrite_device;
mod server_schema;
mod site;
mod thin_volume;
mod udev;
mod workshop;

pub use attach_loop::AttachLoop;
pub use claim_device::ClaimDevice;
pub use cut_device::CutDevice;
pub use delay_device::DelayDevice;
pub use error::{DeviceName, StepError};
pub use join_group::{empty_device, empty_file};
pub use make_directory::MakeDirectory;
pub use make_file::MakeFile;
pub use make_file_system::MakeFileSystem;
pub use make_volume::MakeVolume;
pub use make_volume_group::MakeVolumeGroup;
pub use mount_file_system::MountFileSystem;
pub use overwrite_device::OverwriteDevice;
pub use site::{DropSchema, SchemaGone};
pub(crate) use site::{Site, Undone};
pub(crate) use thin_volume::ThinVolume;
pub(crate) use workshop::{ReadyDevice, Workshop};

macro_rules! kinds {
    ($($step:ident),+ $(,)?) => {
        /// One step of a plan.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Step {
            $(#[allow(missing_docs)] $step($step),)+
        }

        impl Step {
            /// Does it, the ledger first.
            pub(crate) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
                match self { $(Step::$step(step) => step.carry_out(workshop),)+ }
            }

            /// About how much it writes.
            pub fn written_bytes(&self) -> u64 {
                match self { $(Step::$step(step) => step.written_bytes(),)+ }
            }
        }

        impl fmt::Display for Step {
            /// What it does, in words, in the imperative.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Step::$step(step) => step.fmt(f),)+ }
            }
        }

        $(impl From<$step> for Step {
            fn from(step: $step) -> Step { Step::$step(step) }
        })+
    };
}

kinds! {
    MakeFile, AttachLoop, ClaimDevice, OverwriteDevice, CutDevice, DelayDevice, MakeVolumeGroup, MakeVolume,
    MakeFileSystem, MakeDirectory, MountFileSystem,
}

impl Record {
    /// Removes it, if it exists and is the run's.
    pub(crate) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        match self {
            Record::MadeFile(record) => record.undo(site),
            Record::AttachedLoop(record) => record.undo(site),
            Record::ClaimedDevice(record) => record.undo(site),
            Record::MadeVolumeGroup(record) => record.undo(site),
            Record::MadeDirectory(record) => record.undo(site),
            Record::Mounted(record) => record.undo(site),
            Record::RunDirectory(record) => record.undo(site),
            Record::ControlGroup(record) => record.undo(site),
            Record::MappedDevice(record) => record.undo(site),
            Record::ServerSchema(record) => record.undo(site),
            Record::MadeNodes(record) => record.undo(site),
        }
    }

    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self {
            Record::MadeFile(record) => record.to_string(),
            Record::AttachedLoop(record) => record.to_string(),
            Record::ClaimedDevice(record) => record.to_string(),
            Record::MadeVolumeGroup(record) => record.to_string(),
            Record::MadeDirectory(record) => record.to_string(),
            Record::Mounted(record) => record.to_string(),
            Record::RunDirectory(record) => record.to_string(),
            Record::ControlGroup(record) => record.to_string(),
            Record::MappedDevice(record) => record.to_string(),
            Record::ServerSchema(record) => record.to_string(),
            Record::MadeNodes(record) => record.to_string(),
        }
    }
}
