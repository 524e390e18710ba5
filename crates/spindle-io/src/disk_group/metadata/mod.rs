//! What a group knows of its disks and files, and how every disk carries all of it.

pub(crate) mod encoding;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod store;
