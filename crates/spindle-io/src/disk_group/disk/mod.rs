//! One disk of a group: where things lie on it, and the group's own I/O to it.

pub(crate) mod disk_io;
pub(crate) mod format;
