//! What can go wrong with a disk group apart from a single I/O: making, mounting and changing it.

use spindle_text::quantity::size_free;

use crate::device::IoError;

/// Why a disk group cannot do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskGroupError {
    /// A disk refused an I/O of the group's own.
    #[error(transparent)]
    Io(#[from] IoError),
    /// Names, sizes or options that no group can have.
    #[error("disk group {group}: {what}")]
    Invalid {
        /// The group.
        group: String,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// A device that is no disk of any group.
    #[error(
        "{device} is not a disk of a disk group: neither its header nor the copy of it can be read as one"
    )]
    NoDisk {
        /// The device.
        device: String,
    },
    /// A device that has lost its header, and was in several groups.
    #[error(
        "the header of {device} cannot be read, and it bears copies of several: {}. Nothing says which of them is the last: \
             leave the device out, or make a new group of it", copies.join(", ")
    )]
    Several {
        /// The device.
        device: String,
        /// Disks and groups.
        copies: Vec<String>,
    },
    /// A device that belongs elsewhere.
    #[error(
        "{device} is disk {disk} of disk group {group} ({id}), not of {expected}: mount each group by its own disks"
    )]
    OtherGroup {
        /// The device.
        device: String,
        /// The disk's name.
        disk: String,
        /// The name of its group.
        group: String,
        /// The identity of its group.
        id: String,
        /// The group that was expected, with its identity.
        expected: String,
    },
    /// The same disk under two names.
    #[error(
        "{first} and {second} are both disk {disk} of disk group {group}: one is a copy of the other, or the same device \
             under another path; give only the one that is in use"
    )]
    Twice {
        /// One device.
        first: String,
        /// The other.
        second: String,
        /// The disk's name.
        disk: String,
        /// The group.
        group: String,
    },
    /// Too few disks to be sure, or to have all data.
    #[error("disk group {group} cannot be mounted: missing {}: {why}", missing.join(", "))]
    Missing {
        /// The group.
        group: String,
        /// Names of the missing disks.
        missing: Vec<String>,
        /// Why it cannot go without them, and what may be done.
        why: String,
    },
    /// A disk whose metadata are older than those of the others.
    #[error(
        "disk {disk} ({device}) of disk group {group} has metadata of step {has}, the others of step {others}: it is an \
             old copy, or its metadata are damaged; leave it out, mount with the others, and bring it online again"
    )]
    Stale {
        /// The group.
        group: String,
        /// The disk's name.
        disk: String,
        /// The device.
        device: String,
        /// The step of this disk.
        has: u64,
        /// The step of the newest.
        others: u64,
    },
    /// Metadata that verify and make no sense, or cannot be found.
    #[error("the metadata of disk group {group} are damaged: {what}")]
    Damaged {
        /// The group.
        group: String,
        /// What was found.
        what: String,
    },
    /// There is no room.
    #[error(
        "disk group {group} has no room for {what}: {} are free on the disks that could take it; remove \
         files or add disks", size_free(*free_bytes)
    )]
    NoSpace {
        /// The group.
        group: String,
        /// What was to be placed.
        what: String,
        /// Bytes free where it might have gone.
        free_bytes: u64,
    },
    /// No file of that name.
    #[error("disk group {group} has no file {file}; it has: {}", has.join(", "))]
    NoSuchFile {
        /// The group.
        group: String,
        /// The name.
        file: String,
        /// The files there are.
        has: Vec<String>,
    },
    /// A file of that name exists.
    #[error(
        "disk group {group} has a file {file} already: it is never overwritten; remove it or choose another name"
    )]
    FileExists {
        /// The group.
        group: String,
        /// The name.
        file: String,
    },
    /// A file is open.
    #[error("file {file} of disk group {group} is in use: close it first")]
    FileInUse {
        /// The group.
        group: String,
        /// The name.
        file: String,
    },
    /// No disk of that name.
    #[error("disk group {group} has no disk {disk}; it has: {}", has.join(", "))]
    NoSuchDisk {
        /// The group.
        group: String,
        /// The name.
        disk: String,
        /// The disks there are.
        has: Vec<String>,
    },
    /// Going on without a disk would lose data.
    #[error("disk {disk} of disk group {group} cannot be taken offline: {why}")]
    BeyondRedundancy {
        /// The group.
        group: String,
        /// The disk's name.
        disk: String,
        /// What would be lost.
        why: String,
    },
    /// The group is no longer mounted.
    #[error("disk group {group} is dismounted: {reason}")]
    Dismounted {
        /// The group.
        group: String,
        /// Why.
        reason: String,
    },
}
