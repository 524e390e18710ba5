//! Where a trial's database lives: the [`DataDirectory`] of a run, the [`Golden`] copy of the loaded database, and the
//! [`Image`] that trials use, put back in place to the loaded state before every trial, and verified. And what it lives
//! on, when Spindle makes that itself: [`LayoutSpec`] says what is wanted, [`ProvisionPlan`] what will be done,
//! [`Provision`] does it and takes it away again, the [`guard`] stands before every device, and the [`Ledger`]
//! remembers what a dead run left for [`clean()`]. Only the program calls this crate, from one thread, between trials;
//! everything here blocks. The database itself knows neither this crate nor files.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod block_files;
mod changed;
pub mod clean;
mod creation;
mod data_directory;
mod directory_rights;
mod error;
pub mod file_system;
mod golden;
pub mod guard;
mod image;
mod known_device;
pub mod ledger;
mod moment;
mod open_directory;
mod place;
mod placement;
pub mod plan;
pub mod power_cut;
mod provision;
pub mod record;
mod recorded_device;
mod reflink;
mod removal;
mod shape;
pub mod spec;
pub mod steps;
pub mod tool;
mod tree;
#[cfg(test)]
mod turned_paths;

pub use changed::{ChangedBlocks, ranges};
pub use clean::{Cleaned, clean};
pub use creation::create_file;
pub use data_directory::{DataDirectory, check_space};
pub use directory_rights::why_no_file;
pub use error::LayoutError;
pub use golden::{Golden, GoldenSource, LoadingGolden};
pub use image::{Image, ImageSpec, RestoreMethod, RestoreReport, Verify};
pub use known_device::KnownDevice;
pub use ledger::{Ledger, LedgerError};
pub use place::{OpenedFile, Opening, Place};
pub use placement::{
    DiskGroupTarget, GroupStripes, Placement, PlacementTarget, RawDevice, RawSpace,
};
pub use plan::{Facts, ProvisionPlan};
pub use provision::{Provision, ProvisionError, Provisioned};
pub use recorded_device::RecordedDevice;
pub use reflink::reflink_refusal;
pub use removal::Removal;
pub use shape::{DatabaseFiles, DatabaseShape, FileManager};
pub use spec::LayoutSpec;
pub use tree::{GoldenTree, GroupedFile, RawFile, TreeDirectories, TreeImage, TreeSite, place_of};
