//! Disk groups.
mod disk_io;
mod encoding;
mod error;
mod extent_map;
mod format;
mod space;
mod state;
mod store;
mod striping;
