//! The simulated world: one seeded, single-threaded executor in virtual time ([`World`]) and disks that live in it
//! ([`SimDisk`]), with a volatile write cache that a power cut empties as badly as the fault model of
//! [`disk`] allows. The kernel that runs here is the one that runs on threads and files; a crash is a world dropped.

pub mod disk;
pub mod executor;
pub mod fault;
pub mod image;
mod medium;

pub use disk::{DiskMoment, DiskTiming, PowerCut, SimDisk};
pub use executor::{SimEnv, Stop, World};
pub use fault::{FailedIo, IoFault, IoKind, Lasts};
pub use image::DiskImage;
