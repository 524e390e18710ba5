//! Making a group, and mounting one.

pub(crate) mod create;
pub(crate) mod disks;
pub(crate) mod mount;
