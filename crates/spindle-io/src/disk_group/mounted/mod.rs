//! A mounted group in memory.

pub(crate) mod change_map;
pub(crate) mod copying;
pub(crate) mod core;
pub(crate) mod marking;
pub(crate) mod members;
