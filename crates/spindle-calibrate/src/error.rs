//! Why storage cannot be measured, in words.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_io::IoError;
use spindle_io::real::FileError;
use spindle_layout::{LayoutError, LedgerError};
use spindle_text::plain;
use spindle_text::remedy::with_remedy;

/// What went wrong with a target, or while it was measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A target cannot be measured; found before anything was made or measured.
    #[error("{}: {reason}", named(path))]
    Target {
        /// As written.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The guard or the system does not let a target be written to; found before anything was made or measured.
    #[error("{0}")]
    Refused(String),
    /// Settings do not fit each other; found before anything was made or measured.
    #[error("{0}")]
    Settings(String),
    /// The file to measure could not be made.
    #[error(
        "cannot make a file to measure in {}: {}",
        named(path),
        with_remedy(source)
    )]
    Make {
        /// The directory.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A device or file could not be opened.
    #[error(transparent)]
    Open(#[from] LayoutError),
    /// The same, as the I/O crate says it.
    #[error(transparent)]
    File(#[from] FileError),
    /// A request failed.
    #[error("{0}")]
    Request(IoError),
    /// A device that is to be written could not be taken.
    #[error("{0}")]
    Take(String),
    /// What is made on a device could not be noted.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// It was asked to end.
    #[error("interrupted; nothing was kept")]
    Interrupted,
    /// A thread was refused.
    #[error(
        "the system refuses a thread ({0}): allow more by `ulimit -u`, or by the pids limit of the control group"
    )]
    Thread(std::io::Error),
    /// Memory or files were refused.
    #[error("the system refuses what the measurement needs: {0}")]
    System(#[from] std::io::Error),
}

/// A path that cannot end a line of a message.
fn named(path: &Path) -> String {
    plain::one_line(&path.display().to_string()).into_owned()
}

impl CalibrateError {
    /// A target that cannot be measured.
    pub(crate) fn target(path: &Path, reason: impl Into<String>) -> CalibrateError {
        CalibrateError::Target {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    /// Ends what is under way when that was asked for.
    ///
    /// # Errors
    /// [`CalibrateError::Interrupted`].
    pub(crate) fn if_asked(interrupted: &AtomicBool) -> Result<(), CalibrateError> {
        match interrupted.load(Ordering::Relaxed) {
            true => Err(CalibrateError::Interrupted),
            false => Ok(()),
        }
    }

    /// Whether it was found before anything was made or measured.
    pub fn is_about_target(&self) -> bool {
        matches!(
            self,
            CalibrateError::Target { .. }
                | CalibrateError::Refused(_)
                | CalibrateError::Settings(_)
        )
    }
}
