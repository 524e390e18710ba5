//! Extents: which of them holds a byte of a file, where they lie, and where new ones go.

pub(crate) mod map;
pub(crate) mod space;
pub(crate) mod striping;
