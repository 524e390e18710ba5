//! What replaces `vfs` in a program that was built without it: nothing is ever attached.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::elsewhere::{Elsewhere, not_built};
use crate::EngineError;
use crate::engine::EngineCounts;

/// This program cannot put a database on a device.
pub const IS_BUILT: bool = false;

/// There is none.
pub enum Attached {}

impl Attached {
    /// # Errors
    /// Always: it was not built.
    pub fn open(_: &Path, _: &Elsewhere) -> Result<Attached, EngineError> {
        Err(not_built())
    }

    pub fn connect(&self, _: OpenFlags) -> rusqlite::Result<Connection> {
        match *self {}
    }

    pub fn pages_max(&self) -> u64 {
        match *self {}
    }

    pub fn counts(&self) -> EngineCounts {
        match *self {}
    }

    pub fn failure(&self) -> Option<String> {
        match *self {}
    }
}
