//! Why there is no table of power cuts. All of it, and the command line, use this.

use std::io;
use std::path::{Path, PathBuf};

use spindle_engines::EngineError;
use spindle_io::real::FileError;
use spindle_layout::guard::Refusal;
use spindle_layout::power_cut::{LogError, MapError};
use spindle_layout::steps::StepError;
use spindle_layout::tool::ToolError;
use spindle_layout::{LayoutError, LedgerError};

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum PowerCutError {
    /// A layout of a kind whose power cuts cannot be replayed.
    #[error("layout {layout:?} has no power cuts: {reason}")]
    CannotBeCut {
        /// Its name.
        layout: String,
        /// Why.
        reason: String,
    },
    /// Nothing can be recorded on this machine.
    #[error(
        "writes cannot be recorded here: {reason}. A kernel with device-mapper and dm-log-writes is needed, and root; \
         `scripts/test-vm` of Spindle's sources boots one"
    )]
    NoRecording {
        /// What is missing.
        reason: String,
    },
    /// The layout was not made.
    #[error("layout {layout:?} was not made: {reason}")]
    NotMade {
        /// Its name.
        layout: String,
        /// The step and its reason.
        reason: String,
    },
    /// Something that was made still exists.
    #[error("could not be removed: {what}. Run `spindle clean`")]
    Left {
        /// What.
        what: String,
    },
    /// The person asked for it.
    #[error("interrupted; finished cases are kept. Go on with the same command")]
    Interrupted,
    /// Clients broke off.
    #[error("a client broke off: {0}")]
    Clients(String),
    /// A log without the workload.
    #[error("the log of {case:?} holds no workload: record it again")]
    NothingRecorded {
        /// The case.
        case: String,
    },
    /// Cuts would show nothing.
    #[error(
        "the log of {case:?} holds no flush: the device it was recorded on has no write cache, so that no power cut \
         could show a missing one"
    )]
    NoWriteCache {
        /// The case.
        case: String,
    },
    /// The directory belongs to another table.
    #[error("{} holds a table of something else ({reason}): name another directory with --out", path.display())]
    OtherTable {
        /// The file.
        path: PathBuf,
        /// What is different.
        reason: String,
    },
    /// A file that would be replaced is no document of ours.
    #[error(
        "{} is not a table of power cuts, and --document would replace it: name a new file, or remove this one",
        path.display()
    )]
    ForeignDocument {
        /// The file.
        path: PathBuf,
    },
    /// A device that may not be written to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A device was not made.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A tool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A volume cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file could not be made or opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// The database's files have no place.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The ledger cannot be kept.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The database refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// An English verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl PowerCutError {
    pub(super) fn system(action: &'static str, path: &Path, source: io::Error) -> PowerCutError {
        PowerCutError::System {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
