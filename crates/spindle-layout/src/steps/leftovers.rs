//! What a run makes outside its layouts, noted so that `clean` finds it: its data directories and its control groups.
//! The program makes them itself.

use std::fmt;

use rustix::io::Errno;

use super::error::StepError;
use super::site::{Site, Undone, wait_until};
use crate::data_directory::DataDirectory;
use crate::error::LayoutError;
use crate::record::{ControlGroup, RunDirectory};

impl fmt::Display for RunDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the data directory of {} in {}",
            self.run,
            self.parent.display()
        )
    }
}

impl RunDirectory {
    pub(super) fn undo(&self, _: &Site) -> Result<Undone, StepError> {
        let directory = match DataDirectory::leftover(&self.parent, &self.run) {
            Ok(Some(directory)) => directory,
            Ok(None) => return Ok(Undone::WasNot),
            Err(error @ LayoutError::NotADataDirectory { .. }) => {
                return Ok(Undone::NotOurs(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let removal = directory.remove()?;
        let foreign: Vec<String> = removal
            .foreign
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        if foreign.is_empty() {
            Ok(Undone::Removed)
        } else {
            Ok(Undone::NotOurs(format!(
                "it holds what is not ours: {}",
                foreign.join(", ")
            )))
        }
    }
}

impl fmt::Display for ControlGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the control group {}", self.path.display())
    }
}

impl ControlGroup {
    /// A control group goes by `rmdir`, which the kernel refuses while a process is in it; a directory that is no
    /// control group and has files in it stays, too.
    pub(super) fn undo(&self, _: &Site) -> Result<Undone, StepError> {
        let mut answer = Ok(());
        wait_until(|| {
            answer = rustix::fs::rmdir(&self.path);
            answer != Err(Errno::BUSY)
        });
        match answer {
            Ok(()) => Ok(Undone::Removed),
            Err(Errno::NOENT) => Ok(Undone::WasNot),
            Err(Errno::BUSY) => Err(StepError::Busy {
                path: self.path.clone(),
                by: "a process is in it".to_owned(),
            }),
            Err(error) => Err(StepError::system("remove", &self.path, error)),
        }
    }
}
