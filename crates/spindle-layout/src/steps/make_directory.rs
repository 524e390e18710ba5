//! A directory to mount on. It goes again only when it is empty.

use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::error::StepError;
use super::site::{Site, Undone};
use super::workshop::Workshop;
use crate::record::MadeDirectory;

/// Makes a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakeDirectory {
    /// Where.
    pub path: PathBuf,
}

impl fmt::Display for MakeDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "make the directory {}", self.path.display())
    }
}

impl MakeDirectory {
    pub(super) fn written_bytes(&self) -> u64 {
        0
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let missing: Vec<PathBuf> = self
            .path
            .ancestors()
            .take_while(|path| !path.exists())
            .map(PathBuf::from)
            .collect();
        for path in missing.into_iter().rev() {
            workshop.note(MadeDirectory { path: path.clone() })?;
            DirBuilder::new()
                .mode(0o755)
                .create(&path)
                .map_err(|error| StepError::system("make the directory", &path, error))?;
        }
        Ok(())
    }
}

impl fmt::Display for MadeDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the directory {}", self.path.display())
    }
}

impl MadeDirectory {
    pub(super) fn undo(&self, _: &Site) -> Result<Undone, StepError> {
        match rustix::fs::rmdir(&self.path) {
            Ok(()) => Ok(Undone::Removed),
            Err(Errno::NOENT) => Ok(Undone::WasNot),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Ok(Undone::NotOurs("something else is in it".to_owned()))
            }
            Err(error) => Err(StepError::system("remove the directory", &self.path, error)),
        }
    }
}
