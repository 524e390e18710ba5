//! Open files, and one I/O on one of them. Who carries I/Os out stands above: `queue`, `slaves`, `file_device`.

pub(crate) mod core;
pub(crate) mod identify;
pub(crate) mod open_files;
pub(crate) mod transfer;
