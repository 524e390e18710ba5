//! The run directory: the experiment as read, `machine.json`, the journal, and what is made from it: series as CSV,
//! `result.json`, `report.html`, `report.md`. Everything but the journal can be made again at any time.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::journal::{self, JournalError};
use super::replay::RunState;
use spindle_result::{RecordError, StoredRun};
use spindle_system::SystemTree;
use spindle_text::files::Directory;
use spindle_text::plain::make_plain;
use spindle_text::remedy::with_remedy;

/// Why a run directory cannot be made or filled.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system refused.
    #[error(
        "{path}: {error}. A run needs a new or empty directory where you may write: --out DIR names one"
    )]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// A file is where the directory should be, or above it.
    #[error("{path} is a file, and a run needs a directory: --out DIR names a new or empty one")]
    IsFile {
        /// The file.
        path: PathBuf,
    },
    /// The system does not let a run be read.
    #[error("{path} cannot be read: {}", with_remedy(error))]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// The system does not let a file of a run be written.
    #[error("{path} cannot be written: {}", with_remedy(error))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// There is no such directory.
    #[error(
        "there is no directory {path}. spindle list DIR shows the runs below DIR, which is runs/ when left out"
    )]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// It holds a run already.
    #[error(
        "{path} holds a run already: choose another directory, or go on with it: spindle resume {path}"
    )]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// A run is going on in it.
    #[error("{path}: a run is going on in it now: choose another directory")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// It holds files that no run of ours put there.
    #[error(
        "{path} holds {found}: a run directory must be new or empty, so that no file of yours is replaced. Name another one"
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// Some of what is in it.
        found: String,
    },
    /// It holds no run.
    #[error(
        "{path} is not a run directory: there is no {name} in it. spindle list DIR shows the runs below DIR, which is runs/ when left out",
        name = journal::FILE_NAME
    )]
    NoRun {
        /// The directory.
        path: PathBuf,
    },
    /// The journal was cut after results were made from it.
    #[error(
        "{path}: result.json has {kept} trials, and the journal only {found}: it was cut. Nothing was written. Put the journal back, or move result.json away to go on with what is left"
    )]
    Cut {
        /// The directory.
        path: PathBuf,
        /// Trials of the existing result.
        kept: usize,
        /// Trials of the journal.
        found: usize,
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

impl DirectoryError {
    /// Whether another directory must be named: this one holds no run, or cannot take a new one.
    pub fn is_of_command_line(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::IsFile { .. }
                | Self::NoRun { .. }
                | Self::Taken { .. }
                | Self::NotEmpty { .. }
        )
    }
}

fn system(path: &Path) -> impl Fn(io::Error) -> DirectoryError + '_ {
    move |error| DirectoryError::System {
        path: path.to_path_buf(),
        error,
    }
}

/// Why no run can be made at `path`.
fn not_made(path: &Path) -> impl Fn(io::Error) -> DirectoryError + '_ {
    move |error| {
        let mut above = path.ancestors();
        match above.find(|path| path.is_file()) {
            Some(file) => DirectoryError::IsFile {
                path: file.to_path_buf(),
            },
            None => system(path)(error),
        }
    }
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> DirectoryError + '_ {
    move |error| DirectoryError::Unwritable {
        path: path.to_path_buf(),
        error,
    }
}

/// Makes the directory of a new run, or takes one that is empty. A run that ended before it wrote anything may have
/// left its journal there, empty.
pub fn create(path: &Path) -> Result<Directory, DirectoryError> {
    let directory = Directory::make(path).map_err(not_made(path))?;
    let names = directory.names().map_err(system(path))?;
    if names.is_empty() || (names == [journal::FILE_NAME] && is_empty(&directory)) {
        return Ok(directory);
    }
    let path = path.to_path_buf();
    if names.iter().any(|name| name == journal::FILE_NAME) {
        return Err(
            match journal::is_in_use(&path, &SystemTree::default().locks()) {
                true => DirectoryError::InUse { path },
                false => DirectoryError::Taken { path },
            },
        );
    }
    let found = name_some(&names);
    Err(DirectoryError::NotEmpty { path, found })
}

/// Makes the directory of a new run in `parent`: `name`, or the next name that is free.
pub fn create_named(parent: &Path, name: &str) -> Result<Directory, DirectoryError> {
    let (mut path, mut number) = (parent.join(name), 1);
    loop {
        match Directory::make_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                number += 1;
                path = parent.join(format!("{name}-{number}"));
            }
            made => return made.map_err(not_made(&path)),
        }
    }
}

/// Removes what a run wrote before it found out anything, and the directory if that was made for it.
pub fn discard(directory: &Directory) {
    for name in [journal::FILE_NAME, "experiment.json", "machine.json"] {
        // What cannot be removed does no harm.
        let _ = directory.remove(name);
    }
    directory.remove_if_made();
}

/// Whether the journal is that of a run which ended before it wrote anything.
fn is_empty(directory: &Directory) -> bool {
    let text = directory.read(journal::FILE_NAME);
    text.is_ok_and(|text| journal::is_before_first_line(&text))
}

/// `a, b, c and 2 more`.
fn name_some(names: &[String]) -> String {
    const NAMED_MAX: usize = 3;
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Reads the run of a directory; writes nothing.
///
/// # Errors
/// The directory holds no run, or its journal is damaged or cannot be read.
pub fn read(directory: &Path) -> Result<StoredRun, DirectoryError> {
    read_in(&open_run(directory)?)
}

/// As [`read`], of a directory that is open.
pub fn read_in(directory: &Directory) -> Result<StoredRun, DirectoryError> {
    let path = directory.path();
    let events = journal::replay_in(directory)?;
    let state = RunState::of(&events).expect("a replayed journal begins with a run's start");
    let RunState {
        run, started_at, ..
    } = &state;
    let run = StoredRun::of(path, run, started_at, state.finished, state.record());
    run.map_err(|error| DirectoryError::Record {
        path: path.to_path_buf(),
        error,
    })
}

/// Opens a directory that holds a run.
pub fn open_run(path: &Path) -> Result<Directory, DirectoryError> {
    let path = path.to_path_buf();
    match Directory::open(&path) {
        Ok(directory) if directory.has(journal::FILE_NAME) => Ok(directory),
        Ok(_) => Err(DirectoryError::NoRun { path }),
        Err(error) => Err(match error.kind() {
            ErrorKind::NotFound => DirectoryError::Missing { path },
            ErrorKind::NotADirectory => DirectoryError::NoRun { path },
            _ => DirectoryError::Unreadable { path, error },
        }),
    }
}

/// Writes a file of a run directory.
pub fn write(directory: &Directory, name: &str, text: &str) -> Result<(), DirectoryError> {
    let written = directory.write(name, text);
    written.map_err(unwritable(&directory.path().join(name)))
}

/// Opens a directory in a run directory, and makes it where there is none.
pub fn subdirectory(directory: &Directory, name: &str) -> Result<Directory, DirectoryError> {
    let opened = directory.subdirectory(name);
    opened.map_err(unwritable(&directory.path().join(name)))
}

/// Writes data of a run as JSON, its texts harmless.
pub fn write_json(
    directory: &Directory,
    name: &str,
    data: &impl Serialize,
) -> Result<(), DirectoryError> {
    let mut value = serde_json::to_value(data).expect("plain data becomes JSON");
    make_plain(&mut value);
    let text = serde_json::to_string_pretty(&value).expect("a value becomes JSON");
    write(directory, name, &text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_name_that_is_taken_gives_the_next_one() {
        let place = tempfile::tempdir().unwrap();
        let name = || {
            create_named(place.path(), "a")
                .unwrap()
                .path()
                .to_path_buf()
        };
        let names = [name(), name(), name()].map(|path| path.file_name().unwrap().to_owned());
        assert_eq!(names, ["a", "a-2", "a-3"]);
    }

    #[test]
    fn only_what_is_new_or_empty_or_has_a_journal_without_a_line_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        create(&path).unwrap();
        create(&path).unwrap();
        for begun in ["", "{\"eve", "{\"event\":\"run_started\",\"ru"] {
            fs::write(path.join(journal::FILE_NAME), begun).unwrap();
            create(&path).unwrap();
        }
        for kept in ["mine", "{\"event\":\"run_started\"}\n", "\n"] {
            fs::write(path.join(journal::FILE_NAME), kept).unwrap();
            assert!(matches!(create(&path), Err(DirectoryError::Taken { .. })));
        }
        let opened = Directory::open(&path).unwrap();
        let file = opened.open_to_add(journal::FILE_NAME, false).unwrap();
        let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, lock).unwrap();
        assert!(matches!(create(&path), Err(DirectoryError::InUse { .. })));
        fs::remove_file(path.join(journal::FILE_NAME)).unwrap();
        fs::write(path.join("holiday.txt"), "sun").unwrap();
        let error = create(&path).err().unwrap().to_string();
        assert!(error.contains("holds holiday.txt: "), "{error}");
    }
}
