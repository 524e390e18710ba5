//! Why a database of a run cannot be made or put back, whichever its engine.

use std::path::PathBuf;

use spindle_engines::engine::KeepError;
use spindle_engines::{Cause, EngineError, ErrorKind};
use spindle_layout::steps::StepError;
use spindle_layout::{LayoutError, LedgerError};

use super::own_directories::OwnDirectoryError;

/// Why a database cannot be made or put back.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its files.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Making it, loading it, or preparing the statements of its clients.
    #[error("preparing the database: {0}")]
    Engine(#[from] EngineError),
    /// What the layout stands on.
    #[error("{0}")]
    Target(EngineError),
    /// A volume cannot be kept or put back.
    #[error(transparent)]
    Volume(#[from] StepError),
    /// What is made could not be noted.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A directory.
    #[error("{path}: {error}")]
    Place {
        /// The directory.
        path: PathBuf,
        /// The system's own words.
        error: std::io::Error,
    },
}

impl DatabaseError {
    /// What kind of thing went wrong.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            DatabaseError::Layout(error) => Cause::kind(error),
            DatabaseError::Engine(error) | DatabaseError::Target(error) => error.kind(),
            DatabaseError::Place { error, .. } => Cause::kind(error),
            DatabaseError::Volume(_) | DatabaseError::Ledger(_) => ErrorKind::Failed,
        }
    }
}

impl From<KeepError> for DatabaseError {
    fn from(error: KeepError) -> DatabaseError {
        match error {
            KeepError::Files(error) => error.into(),
            KeepError::Engine(error) => error.into(),
        }
    }
}

impl From<OwnDirectoryError> for DatabaseError {
    fn from(error: OwnDirectoryError) -> DatabaseError {
        match error {
            OwnDirectoryError::Layout(error) => error.into(),
            OwnDirectoryError::Ledger(error) => error.into(),
        }
    }
}
