//! A run as it was found on disk: what was recorded, and what follows from it.

use std::path::{Path, PathBuf};

use super::{RecordError, RunRecord, RunResult, build};

/// A run as its journal tells it.
pub struct StoredRun {
    /// The run directory, as it was named.
    pub directory: PathBuf,
    /// By which the run is known, wherever its directory is: its name, and when exactly it began.
    pub id: String,
    /// When the run began, UTC, to the second.
    pub started_at: String,
    /// Every trial of the plan is done.
    pub is_finished: bool,
    /// What was recorded.
    pub record: RunRecord,
    /// What follows from it.
    pub result: RunResult,
}

impl StoredRun {
    /// From what the journal of a directory adds up to; `name` of the run and `started_at` as the journal has them.
    ///
    /// # Errors
    /// What was recorded does not add up.
    pub fn of(
        directory: &Path,
        name: &str,
        started_at: &str,
        is_finished: bool,
        record: RunRecord,
    ) -> Result<StoredRun, RecordError> {
        let result = build(&record)?;
        Ok(StoredRun {
            directory: directory.to_path_buf(),
            id: format!("{name} {started_at}"),
            started_at: whole_seconds(started_at),
            is_finished,
            record,
            result,
        })
    }
}

/// A time of the journal without the part of a second.
fn whole_seconds(at: &str) -> String {
    at.split_once('.')
        .map_or_else(|| at.to_owned(), |(seconds, _)| format!("{seconds}Z"))
}
