//! The files of a group: the way of an I/O, and opening, making and removing them.

pub(crate) mod creation;
pub(crate) mod group_file;
pub(crate) mod mend;
pub(crate) mod mirrored_write;
pub(crate) mod open;
pub(crate) mod pieces;
