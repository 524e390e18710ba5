//! Open files, and one I/O on one of them. The modules that carry I/Os out stand above: `queue`, `slaves`,
//! `file_device`.

pub(crate) mod core;
pub(crate) mod identify;
pub(crate) mod open_files;
pub(crate) mod transfer;
