//! The machine as it is: mounts, swap, block devices and what they stand on, who holds a file open, processors, memory,
//! control groups, what a process used. All of it is read from `/proc`, `/sys`, `/dev` and `/etc` through
//! [`SystemTree`], so that tests stand on fixture trees. Only control groups of our own are made and removed here.
//!
//! A file that is missing or unreadable gives `None`: what a kernel hides is unknown, never guessed. Where a device is
//! at stake ([`mounts`], [`open_files`]), what is not understood is an error.

// Tests make files as they like, and say why they are skipped.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod beneath;
pub mod block_device;
pub mod caches;
pub mod calibrated;
pub mod cgroup;
pub mod cpu;
mod device_mapper;
mod device_number;
pub mod disk;
pub mod file_locks;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod flush_functions;
pub mod io_limit;
pub mod machine;
pub mod memory;
pub mod mounts;
pub mod neighbours;
pub mod node;
pub mod open_files;
pub mod overlays;
pub mod own_group;
pub mod processes;
mod random;
pub mod sampler;
mod storage;
pub mod threads;
mod tree;

pub use beneath::Beneath;
pub use device_mapper::DeviceMapper;
pub use device_number::DeviceNumber;
pub use mounts::Mount;
pub use node::BlockDeviceNode;
pub use open_files::OpenFiles;
pub use storage::StoragePlace;
pub use tree::SystemTree;
use tree::{flag, keyed_number, names, number, text};
