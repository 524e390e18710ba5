//! Where a trial's database lives: the [`DataDirectory`] of a run, the [`Golden`] copy of the loaded database, and the
//! [`Image`] that trials use, put back in place to the loaded state before every trial, and verified. Only the program
//! calls this crate, from one thread, between trials; everything here blocks. The database itself knows neither this
//! crate nor files.

mod block_files;
mod changed;
mod creation;
mod data_directory;
mod error;
mod golden;
mod image;
mod place;
mod placement;
mod removal;
mod shape;

pub use changed::{ChangedBlocks, ranges};
pub use data_directory::DataDirectory;
pub use error::LayoutError;
pub use golden::{Golden, LoadingGolden, PackedShare};
pub use image::{Image, ImageSpec, RestoreMethod, RestoreReport, Verify};
pub use place::{Opening, Place};
pub use placement::{Placement, RawDevice, RawSpace, Target};
pub use removal::Removal;
pub use shape::{DatabaseFiles, FileManager, Shape};
