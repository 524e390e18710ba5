//! Disk groups, as Oracle's ASM makes them: files spread and mirrored over disks, without a file system. A file of a
//! group is a `BlockDevice` made of `BlockDevice`s: an I/O looks its place up in memory and goes straight to the disk.
//! The same code runs on real devices and on simulated ones. Layouts and the program make, mount and change groups
//! here; the database sees only the devices of its files.
//!
//! Each line stands on those above it:
//!
//! | module | holds |
//! | --- | --- |
//! | `error`, `planted` | what can go wrong; bugs for the tests to find |
//! | `disk` | one disk: where things lie on it, its header and change map; the group's own I/O to it |
//! | `extents` | which extent holds a byte, where extents lie, and where new ones go |
//! | `metadata` | what the group knows of its disks and files, and how every disk carries it: a snapshot and a log |
//! | `mounted` | the group in memory: its metadata and how they change, its disks, which extents may differ, copying
//! extents |
//! | `group` | [`DiskGroup`] and its options |
//! | `file` | the way of an I/O; opening, making and removing files |
//! | `mount` | making and mounting groups |
//! | `maintenance` | disks that join, leave and return; spreading files evenly again; whether everything is as it
//! should be, also without a mount |
//! | `description` | a group for people |

mod description;
mod disk;
mod error;
mod extents;
mod file;
mod group;
mod maintenance;
mod metadata;
mod mount;
mod mounted;
mod planted;

pub use description::{DiskDescription, FileDescription, GroupDescription};
pub use disk::format::{
    ALLOCATION_UNIT_BYTES_MAX, ALLOCATION_UNIT_BYTES_MIN, backup_places, names_in_header,
    room_bytes,
};
pub use error::DiskGroupError;
pub use extents::striping::{STRIPE_BYTES, STRIPE_WIDTH, Striping, StripingByKind};
pub use file::creation::{FileCreation, Template};
pub use group::{Disk, DiskGroup, DiskGroupOptions, MountOptions};
pub use maintenance::check::{CheckReport, GroupFinding};
pub use maintenance::rebalance::{GoOn, POWER_MAX, Rebalanced};
pub use maintenance::view::GroupView;
pub use metadata::state::Redundancy;

#[cfg(test)]
mod tests;
