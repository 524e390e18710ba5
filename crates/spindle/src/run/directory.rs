//! The run directory: the experiment as read, `machine.json`, the journal, and what is made from it: series as CSV,
//! `result.json`, `report.html`, `report.md`. Everything but the journal can be made again at any time.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::journal::{self, JournalError};
use super::replay::RunState;
use crate::report;
use crate::result::{self, RecordError, RunRecord, RunResult};

/// Why a run directory cannot be made or filled.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system refused.
    #[error("{path}: {error}")]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// It holds a run already.
    #[error(
        "{path} holds a run already: choose another directory, or go on with it: spindle resume {path}"
    )]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// It holds no run.
    #[error(
        "{path} is no run directory: there is no {name} in it. spindle list DIR shows the runs below DIR, which is runs/ when left out",
        name = journal::FILE_NAME
    )]
    NoRun {
        /// The directory.
        path: PathBuf,
    },
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What the journal says does not add up.
    #[error("{path}: {error}")]
    Record {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        error: RecordError,
    },
}

fn system(path: &Path) -> impl Fn(io::Error) -> DirectoryError + '_ {
    move |error| DirectoryError::System {
        path: path.to_path_buf(),
        error,
    }
}

/// Makes the directory of a new run.
pub fn create(path: &Path) -> Result<(), DirectoryError> {
    fs::create_dir_all(path).map_err(system(path))?;
    if path.join(journal::FILE_NAME).exists() {
        return Err(DirectoryError::Taken {
            path: path.to_path_buf(),
        });
    }
    Ok(())
}

/// Writes a file of the directory as a whole: a reader sees the old one or the new one.
pub fn write(path: &Path, text: &str) -> Result<(), DirectoryError> {
    let hidden = path.with_extension("new");
    fs::write(&hidden, text)
        .and_then(|()| fs::rename(&hidden, path))
        .map_err(system(path))
}

/// A run as its journal tells it.
pub struct StoredRun {
    /// The run directory, as it was named.
    pub directory: PathBuf,
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
    /// Reads the run of a directory; writes nothing.
    ///
    /// # Errors
    /// The directory holds no run, or its journal is damaged or cannot be read.
    pub fn read(directory: &Path) -> Result<StoredRun, DirectoryError> {
        let path = directory.to_path_buf();
        let journal = directory.join(journal::FILE_NAME);
        if !journal.try_exists().map_err(system(&journal))? {
            return Err(DirectoryError::NoRun { path });
        }
        let events = journal::replay(directory)?;
        let state = RunState::of(&events).expect("a replayed journal begins with a run's start");
        let record = state.record();
        let result = result::build(&record).map_err(|error| DirectoryError::Record {
            path: path.clone(),
            error,
        })?;
        Ok(StoredRun {
            directory: path,
            started_at: whole_seconds(&state.started_at),
            is_finished: state.finished,
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

/// Writes everything that is made from the journal, and returns the result.
pub fn write_reports(directory: &Path) -> Result<RunResult, DirectoryError> {
    let StoredRun { record, result, .. } = StoredRun::read(directory)?;
    write(&directory.join("result.json"), &result.to_json())?;
    write(
        &directory.join("report.html"),
        &report::html(&result, &record.series),
    )?;
    write(
        &directory.join("report.md"),
        &report::markdown(&result, &record.series),
    )?;
    let series = directory.join("series");
    fs::create_dir_all(&series).map_err(system(&series))?;
    for trial in &record.series {
        let mut text = String::from("seconds,transactions_per_second\n");
        for (index, tps) in trial.tps.iter().enumerate() {
            let seconds = (index + 1) as f64 * trial.interval_ms as f64 / 1e3;
            writeln!(text, "{seconds:.3},{tps:.3}").expect("a string takes any text");
        }
        let name = format!(
            "layout{}-clients{}-round{}.csv",
            trial.layout + 1,
            trial.clients,
            trial.round
        );
        write(&series.join(name), &text)?;
    }
    Ok(result)
}
