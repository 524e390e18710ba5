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

/// The result of a run directory, made from its journal.
pub fn result_of(directory: &Path) -> Result<(RunResult, RunRecord), DirectoryError> {
    let events = journal::replay(directory)?;
    let no_run = || JournalError::NoRun {
        path: directory.join(journal::FILE_NAME),
    };
    let record = RunState::of(&events).ok_or_else(no_run)?.record();
    let result = result::build(&record).map_err(|error| DirectoryError::Record {
        path: directory.to_path_buf(),
        error,
    })?;
    Ok((result, record))
}

/// Writes everything that is made from the journal, and returns the result.
pub fn write_reports(directory: &Path) -> Result<RunResult, DirectoryError> {
    let (result, record) = result_of(directory)?;
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
