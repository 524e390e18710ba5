//! The directory of private device nodes of a run (see [`NodeDirectory`](crate::guard)): noted before it is made, and
//! the last thing to go.

use std::fmt;
use std::fs::DirEntry;
use std::io;
use std::os::unix::fs::FileTypeExt;

use super::error::StepError;
use super::site::{Site, Undone};
use crate::record::MadeNodes;

impl fmt::Display for MadeNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the device nodes in {}", self.directory.display())
    }
}

impl MadeNodes {
    /// Removes the nodes, which does nothing to the devices, and the directory.
    pub(super) fn undo(&self, _: &Site) -> Result<Undone, StepError> {
        let wrong = |error| StepError::system("remove", &self.directory, error);
        let entries = match self.directory.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Undone::WasNot),
            Err(error) => return Err(wrong(error)),
        };
        let entries: Vec<DirEntry> = entries.collect::<io::Result<_>>().map_err(wrong)?;
        for entry in &entries {
            if !entry.file_type().map_err(wrong)?.is_block_device() {
                let found = entry.path().display().to_string();
                return Ok(Undone::NotOurs(format!("{found} is no device node")));
            }
        }
        for entry in &entries {
            std::fs::remove_file(entry.path()).map_err(wrong)?;
        }
        std::fs::remove_dir(&self.directory).map_err(wrong)?;
        if let Some(parent) = self.directory.parent() {
            // It stays while another run has its nodes there.
            let _ = std::fs::remove_dir(parent);
        }
        Ok(Undone::Removed)
    }
}
