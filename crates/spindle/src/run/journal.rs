//! The journal of a run: one JSON object a line, on stable storage before the run goes on. Whatever happens to the
//! program or the machine, what the journal says has happened; a last line cut short is taken for never written. A
//! result and a report are pure functions of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::observe::machine::Machine;
use crate::result::{Layout, OwnCost, SystemSeries, Trial};

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted {
        /// Names the run's directories of data.
        run: String,
        /// Version of the program.
        version: String,
        /// When, UTC.
        at: String,
        /// Where it was started: relative paths of the experiment begin here.
        working_directory: PathBuf,
        /// The experiment, defaults filled in.
        experiment: Box<Experiment>,
    },
    /// The machine, as found when the run began or went on.
    Machine {
        /// What was found.
        machine: Box<Machine>,
    },
    /// What holds every case to one amount of memory.
    MemoryBudget {
        /// The budget, bytes; `None` when nothing holds it.
        bytes: Option<u64>,
    },
    /// What Spindle itself costs is known.
    OwnCost {
        /// It.
        own_cost: OwnCost,
    },
    /// A candidate was looked at on this machine.
    LayoutExamined {
        /// Which, from 0.
        index: usize,
        /// What it is, in words.
        layout: Layout,
        /// Why it cannot be measured here, if so.
        skip: Option<String>,
    },
    /// A trial began.
    TrialStarted {
        /// Which layout.
        layout: usize,
        /// Load level.
        clients: u32,
        /// Round, from 1.
        round: u32,
    },
    /// A trial is complete.
    TrialFinished {
        /// Which layout.
        layout: usize,
        /// Load level.
        clients: u32,
        /// What it found.
        trial: Box<Trial>,
        /// Time between samples.
        sample_ms: u64,
        /// Transactions per second in each interval of the measured time.
        samples: Vec<f64>,
        /// What the system did in the measured time.
        #[serde(default)]
        system: SystemSeries,
    },
    /// A trial broke off.
    TrialFailed {
        /// Which layout.
        layout: usize,
        /// Load level.
        clients: u32,
        /// Round, from 1.
        round: u32,
        /// Why.
        reason: String,
    },
    /// Something was noticed that belongs to no single trial.
    Warning {
        /// What.
        text: String,
    },
    /// Every trial of the plan is done.
    RunFinished,
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The journal.
        path: PathBuf,
        /// The system's own words.
        error: io::Error,
    },
    /// Another process writes it.
    #[error("{path}: another spindle is working on this run")]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// A line in the middle cannot be understood.
    #[error(
        "{path}, line {line}: {reason}: the file is damaged, or another version of spindle wrote it (this is {version})",
        version = env!("CARGO_PKG_VERSION")
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no run in it.
    #[error("{path}: this is not the journal of a run: it does not begin with the run's start")]
    NoRun {
        /// The journal.
        path: PathBuf,
    },
}

/// The name of the file in a run directory.
pub const FILE_NAME: &str = "journal.jsonl";

/// A journal open for writing.
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins a journal in a run directory that has none.
    pub fn create(directory: &Path) -> Result<Journal, JournalError> {
        let path = directory.join(FILE_NAME);
        let wrap = |error| JournalError::File {
            path: path.clone(),
            error,
        };
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(wrap)?;
        let journal = Journal { path, file };
        journal.lock()?;
        Ok(journal)
    }

    /// Opens the journal of a run to go on with it, and says what it holds. A torn last line is cut off.
    pub fn reopen(directory: &Path) -> Result<(Journal, Vec<Event>), JournalError> {
        let path = directory.join(FILE_NAME);
        let wrap = |error| JournalError::File {
            path: path.clone(),
            error,
        };
        let file = OpenOptions::new()
            .append(true)
            .read(true)
            .open(&path)
            .map_err(wrap)?;
        let journal = Journal {
            path: path.clone(),
            file,
        };
        journal.lock()?;
        let (events, whole_bytes) = read(directory)?;
        journal.file.set_len(whole_bytes).map_err(wrap)?;
        Ok((journal, events))
    }

    fn lock(&self) -> Result<(), JournalError> {
        rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            JournalError::InUse {
                path: self.path.clone(),
            }
        })
    }

    /// Adds an event; it is on stable storage when this returns.
    pub fn append(&mut self, event: &Event) -> Result<(), JournalError> {
        let mut line =
            serde_json::to_string(event).expect("an event holds only strings, numbers and lists");
        line.push('\n');
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| JournalError::File {
            path: self.path.clone(),
            error,
        })
    }
}

/// The events of a run.
pub fn replay(directory: &Path) -> Result<Vec<Event>, JournalError> {
    read(directory).map(|(events, _)| events)
}

/// The events and the length of the lines they stand in.
fn read(directory: &Path) -> Result<(Vec<Event>, u64), JournalError> {
    let path = directory.join(FILE_NAME);
    let mut text = Vec::new();
    File::open(&path)
        .and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|error| JournalError::File {
            path: path.clone(),
            error,
        })?;
    let whole_bytes = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let mut events = Vec::new();
    for (index, line) in text[..whole_bytes].split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let event = serde_json::from_slice(line).map_err(|error| JournalError::Damaged {
            path: path.clone(),
            line: index + 1,
            reason: error.to_string(),
        })?;
        events.push(event);
    }
    match events.first() {
        Some(Event::RunStarted { .. }) => Ok((events, whole_bytes as u64)),
        _ => Err(JournalError::NoRun { path }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> Event {
        let text = "[[layout]]\nname = \"a\"\n";
        Event::RunStarted {
            run: "r".to_string(),
            version: "0".to_string(),
            at: "2026-01-01T00:00:00Z".to_string(),
            working_directory: PathBuf::from("/"),
            experiment: Box::new(Experiment::parse("x.toml", text, &[]).unwrap()),
        }
    }

    #[test]
    fn a_torn_last_line_is_cut_off_and_the_rest_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path()).unwrap();
        journal.append(&started()).unwrap();
        journal.append(&Event::RunFinished).unwrap();
        drop(journal);
        let path = directory.path().join(FILE_NAME);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"event\":\"warn");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(
            replay(directory.path()).unwrap(),
            vec![started(), Event::RunFinished]
        );
        let (mut journal, events) = Journal::reopen(directory.path()).unwrap();
        assert_eq!(events.len(), 2);
        journal
            .append(&Event::Warning {
                text: "w".to_string(),
            })
            .unwrap();
        drop(journal);
        assert_eq!(replay(directory.path()).unwrap().len(), 3);
    }

    #[test]
    fn damage_in_the_middle_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path()).unwrap();
        journal.append(&started()).unwrap();
        let path = directory.path().join(FILE_NAME);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"rubbish\n{\"event\":\"run_finished\"}\n");
        std::fs::write(&path, &text).unwrap();
        let error = replay(directory.path()).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        std::fs::write(&path, "{\"event\":\"run_finished\"}\n").unwrap();
        assert!(
            replay(directory.path())
                .unwrap_err()
                .to_string()
                .contains("not the journal")
        );
    }

    #[test]
    fn one_writer_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path()).unwrap();
        journal.append(&started()).unwrap();
        let error = Journal::reopen(directory.path()).err().unwrap();
        assert!(matches!(error, JournalError::InUse { .. }));
    }
}
