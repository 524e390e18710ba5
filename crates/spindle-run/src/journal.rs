//! The journal of a run: one JSON object a line, on stable storage before the run continues. Whatever happens to the
//! program or the machine, what the journal says has happened; a last line cut short is taken for never written. Each
//! line ends with a checksum. A result and a report are pure functions of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crc32c::crc32c_append;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use spindle_experiment::Experiment;
use spindle_layout::RecordedDevice;
use spindle_result::{
    Layout, LoadLevel, OwnCost, Phase, SystemSeries, Trial, impossible_figure, impossible_series,
    impossible_trial, is_rate,
};
use spindle_system::machine::Machine;
use spindle_system::{OpenFiles, StoragePlace, SystemTree};
use spindle_text::file_lock::{self, is_locked_within};
use spindle_text::files::{self, Directory};
use spindle_text::plain::make_plain;

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
    /// The machine, as found when the run began or was resumed.
    Machine {
        /// What was found.
        machine: Box<Machine>,
    },
    /// The devices that the run will take, before it takes them.
    DevicesExamined {
        /// Each, as it is known again.
        devices: Vec<RecordedDevice>,
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
        #[serde(flatten)]
        load: LoadLevel,
        /// Round, from 1.
        round: u32,
    },
    /// A trial is complete.
    TrialFinished {
        /// Which layout.
        layout: usize,
        /// Load level.
        #[serde(flatten)]
        load: LoadLevel,
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
    /// A trial is complete and in doubt: it is measured again, and counts for nothing.
    TrialSetAside {
        /// Which layout.
        layout: usize,
        /// Load level.
        #[serde(flatten)]
        load: LoadLevel,
        /// What it found.
        trial: Box<Trial>,
        /// Why it is in doubt.
        reason: String,
    },
    /// A trial broke off.
    TrialFailed {
        /// Which layout.
        layout: usize,
        /// Load level.
        #[serde(flatten)]
        load: LoadLevel,
        /// Round, from 1.
        round: u32,
        /// Why.
        reason: String,
    },
    /// What the slowest layout does in a closed loop is known: rates that are parts of it stay what they are from now
    /// on.
    SlowestKnown {
        /// Clients of the closed loop.
        clients: u32,
        /// Name of the layout.
        layout: String,
        /// Transactions a second.
        per_s: f64,
    },
    /// Something other than a trial is done.
    PhaseDone {
        /// What it was.
        phase: Phase,
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
    #[error("{path}: {by} is working on this run: wait until it ends, or stop it with kill -INT")]
    InUse {
        /// The journal.
        path: PathBuf,
        /// Who has it open.
        by: String,
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
    /// The run was stopped before its first line was written.
    #[error(
        "{path}: the run was stopped before it had begun. Start it again: spindle run FILE --out DIR takes this directory if nothing else is in it"
    )]
    NotBegun {
        /// The journal.
        path: PathBuf,
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

/// What ends a line: a checksum of the line and of all that stands before it, so that neither a changed line nor one
/// that is missing, doubled or in another place goes unseen. Journals of earlier versions have none.
const CHECKSUM_KEY: &str = ",\"crc32c\":\"";
const CHECKSUM_DIGITS: usize = 8;
/// What follows the digits.
const CHECKSUM_END: &str = "\"}";
const CHANGED: &str = "this line, or one before it, was changed after it was written";

/// A journal open for writing.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Of the lines that are whole.
    whole: Whole,
}

/// How far a journal is whole.
#[derive(Debug, Clone, Copy, Default)]
struct Whole {
    bytes: u64,
    /// CRC-32C of these bytes.
    checksum: u32,
}

impl Journal {
    /// Begins a journal in a run directory that has none, or has one that nothing was ever written to.
    pub fn create(directory: &Path) -> Result<Journal, JournalError> {
        let opened = Directory::open(directory);
        Journal::create_in(&opened.map_err(|error| wrong(directory, error))?)
    }

    /// As [`Journal::create`].
    pub fn create_in(directory: &Directory) -> Result<Journal, JournalError> {
        let (mut journal, text) = Journal::open(directory, true)?;
        if !is_before_first_line(&text) {
            let error = io::Error::from(ErrorKind::AlreadyExists);
            return Err(wrong(directory.path(), error));
        }
        journal.cut_to(Whole::default())?;
        Ok(journal)
    }

    /// Opens the journal of a run to resume it, and says what it holds. A torn last line is cut off.
    pub fn reopen(directory: &Directory) -> Result<(Journal, Vec<Event>), JournalError> {
        let (mut journal, text) = Journal::open(directory, false)?;
        let (events, whole) = parse(&journal.path, &text)?;
        journal.cut_to(whole)?;
        Ok((journal, events))
    }

    /// The journal, locked before it is read, and its text.
    fn open(directory: &Directory, makes: bool) -> Result<(Journal, Vec<u8>), JournalError> {
        let path = directory.path().join(FILE_NAME);
        let file = directory.open_to_add(FILE_NAME, makes);
        let file = file.map_err(|error| wrong(directory.path(), error))?;
        let is_locked = is_locked_within(&file, file_lock::DYING);
        if !is_locked.map_err(|error| wrong(directory.path(), error))? {
            let by = users_of(&file);
            return Err(JournalError::InUse { path, by });
        }
        let text = files::read_all(&file);
        let text = text.map_err(|error| wrong(directory.path(), error))?;
        let whole = Whole::default();
        Ok((Journal { path, file, whole }, text))
    }

    fn cut_to(&mut self, whole: Whole) -> Result<(), JournalError> {
        self.whole = whole;
        let cut = self.file.set_len(whole.bytes);
        cut.map_err(|error| self.failed(error))
    }

    /// Adds an event; it is on stable storage when this returns. When that fails, nothing of it stays, so that the next
    /// one is not spoilt.
    pub fn append(&mut self, event: &Event) -> Result<(), JournalError> {
        let text = serde_json::to_string(event).map_err(|error| self.failed(error.into()))?;
        let (line, whole) = with_checksum(&text, self.whole);
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.whole = whole,
            Err(error) => {
                // The first error is the one to be told. A part that cannot be cut off is a torn last line.
                let _ = self.cut_to(self.whole);
                return Err(self.failed(error));
            }
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::File {
            path: self.path.clone(),
            error,
        }
    }
}

fn wrong(directory: &Path, error: io::Error) -> JournalError {
    JournalError::File {
        path: directory.join(FILE_NAME),
        error,
    }
}

/// The events of a run.
pub fn replay(directory: &Path) -> Result<Vec<Event>, JournalError> {
    let opened = Directory::open(directory);
    replay_in(&opened.map_err(|error| wrong(directory, error))?)
}

/// As [`replay`].
pub fn replay_in(directory: &Directory) -> Result<Vec<Event>, JournalError> {
    let text = directory.read(FILE_NAME);
    let text = text.map_err(|error| wrong(directory.path(), error))?;
    Ok(parse(&directory.path().join(FILE_NAME), &text)?.0)
}

/// Whether a journal holds nothing, or the beginning of its first line.
pub fn is_before_first_line(text: &[u8]) -> bool {
    const START: &[u8] = b"{\"event\":\"run_started\"";
    !text.contains(&b'\n') && (text.starts_with(START) || START.starts_with(text))
}

/// Whether a process holds a lock on the whole journal of a directory, as a run does, by what the system says of its
/// `locks`. Looking takes none: a run that is about to begin is not disturbed.
pub fn is_in_use(directory: &Path, locks: &str) -> bool {
    let Ok(file) = directory.join(FILE_NAME).symlink_metadata() else {
        return false;
    };
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", file.ino());
    let mut locks = locks.lines();
    locks.any(|lock| {
        let mut words = lock.split_whitespace();
        words.any(|word| word == "FLOCK") && words.any(|word| word == place)
    })
}

/// The processes that have an open file open, too, in words.
fn users_of(file: &File) -> String {
    let storage = file
        .metadata()
        .ok()
        .and_then(|found| StoragePlace::of(&found));
    let users: BTreeSet<String> = storage
        .map(|storage| (storage, OpenFiles::read(&SystemTree::default())))
        .iter()
        .flat_map(|(storage, open)| open.holders(*storage))
        .filter_map(|user| Some(format!("{} (process {})", user.program, user.pid?)))
        .collect();
    match users.is_empty() {
        true => "another spindle".to_owned(),
        false => Vec::from_iter(users).join(" and "),
    }
}

/// The line of an event, and how far the journal is whole with it.
fn with_checksum(text: &str, before: Whole) -> (String, Whole) {
    let body = text.strip_suffix('}').expect("an event is a JSON object");
    let digits = digits(before.checksum, body.as_bytes());
    let line = format!("{body}{CHECKSUM_KEY}{digits}{CHECKSUM_END}\n");
    let whole = Whole {
        bytes: before.bytes + line.len() as u64,
        checksum: crc32c_append(before.checksum, line.as_bytes()),
    };
    (line, whole)
}

/// The events, and the lines they stand in.
fn parse(path: &Path, text: &[u8]) -> Result<(Vec<Event>, Whole), JournalError> {
    let mut whole = Whole::default();
    let mut events = Vec::new();
    let mut has_checksums = false;
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let damaged = |reason: String| JournalError::Damaged {
            path: path.to_owned(),
            line: index + 1,
            reason,
        };
        let Some(content) = line.strip_suffix(b"\n") else {
            // A line that was cut short never holds more than its line feed lacks.
            return match split_checksum(&line[..line.len() - 1]) {
                Some(_) => Err(damaged("another byte stands for its line feed".to_owned())),
                None => checked(path, events, whole),
            };
        };
        match split_checksum(content) {
            Some((body, found)) if found == digits(whole.checksum, body).as_bytes() => {
                has_checksums = true;
            }
            None if !has_checksums => {}
            Some(_) => return Err(damaged(CHANGED.to_owned())),
            None => return Err(damaged(format!("it has no checksum: {CHANGED}"))),
        }
        if !content.is_empty() {
            let event = event_of(content).map_err(|error| damaged(error.to_string()))?;
            if let Some(reason) = impossible(&event) {
                return Err(damaged(reason));
            }
            events.push(event);
        }
        whole.bytes += line.len() as u64;
        whole.checksum = crc32c_append(whole.checksum, line);
    }
    checked(path, events, whole)
}

/// Events that are those of a run.
fn checked(
    path: &Path,
    events: Vec<Event>,
    whole: Whole,
) -> Result<(Vec<Event>, Whole), JournalError> {
    match events.first() {
        Some(Event::RunStarted { .. }) => Ok((events, whole)),
        None => Err(JournalError::NotBegun {
            path: path.to_owned(),
        }),
        Some(_) => Err(JournalError::NoRun {
            path: path.to_owned(),
        }),
    }
}

/// What a line says without its checksum, and the digits of that; `None` when it has none.
fn split_checksum(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = content.strip_suffix(CHECKSUM_END.as_bytes())?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(CHECKSUM_DIGITS)?)?;
    Some((rest.strip_suffix(CHECKSUM_KEY.as_bytes())?, digits))
}

fn digits(before: u32, body: &[u8]) -> String {
    format!("{:08x}", crc32c_append(before, body))
}

/// The event of a line, in which no text is obeyed by a terminal.
fn event_of(content: &[u8]) -> serde_json::Result<Event> {
    // Most lines are long and hold figures only.
    let is_harmless = |byte: &u8| *byte != b'\\' && *byte < 0x7f;
    if content.iter().all(is_harmless) {
        return serde_json::from_slice(content);
    }
    let mut value: Value = serde_json::from_slice(content)?;
    make_plain(&mut value);
    serde_json::from_value(value)
}

/// More than the names of all layouts of an experiment have, bytes. Every pair of layouts names both.
const NAMES_BYTES_MAX: usize = 512 << 10;

/// Why no run can have noted this; `None` where one can. Code that draws the figures need not check again.
fn impossible(event: &Event) -> Option<String> {
    match event {
        Event::RunStarted { experiment, .. } => {
            let names = experiment.layouts.iter().map(|layout| layout.name.len());
            let are_long = names.sum::<usize>() > NAMES_BYTES_MAX;
            match experiment.outside() {
                _ if are_long => {
                    Some("the names of the layouts are longer than any experiment's".to_owned())
                }
                key => key.map(|key| format!("no experiment has such a value of {key}")),
            }
        }
        Event::LayoutExamined { layout, .. } => {
            let has_empty_row = layout.stack.iter().any(Vec::is_empty);
            has_empty_row.then(|| "a row of the layout's parts is empty".to_owned())
        }
        Event::TrialFinished { samples, .. } if !samples.iter().all(|per_s| is_rate(*per_s)) => {
            Some("no run has such a throughput".to_owned())
        }
        Event::TrialFinished { trial, system, .. } => {
            impossible_trial(trial).or_else(|| impossible_series(system))
        }
        Event::TrialSetAside { trial, .. } => impossible_trial(trial),
        Event::OwnCost { own_cost } => impossible_figure(own_cost),
        Event::SlowestKnown { per_s, .. } => impossible_figure(per_s),
        Event::PhaseDone { phase } => impossible_figure(phase),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use spindle_result::sample;

    use super::*;

    fn started() -> Event {
        let text = "[[layout]]\nname = \"a\"\n";
        start_of(Experiment::parse("x.toml", text, &[]).unwrap())
    }

    fn start_of(experiment: Experiment) -> Event {
        Event::RunStarted {
            run: "r".to_string(),
            version: "0".to_string(),
            at: "2026-01-01T00:00:00Z".to_string(),
            working_directory: PathBuf::from("/"),
            experiment: Box::new(experiment),
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
        let opened = Directory::open(directory.path()).unwrap();
        let (mut journal, events) = Journal::reopen(&opened).unwrap();
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
    fn a_journal_in_use_is_known_by_device_and_inode() {
        let directory = tempfile::tempdir().unwrap();
        let is_in_use = || is_in_use(directory.path(), &SystemTree::default().locks());
        assert!(!is_in_use());
        let journal = Journal::create(directory.path()).unwrap();
        assert!(is_in_use());
        drop(journal);
        assert!(!is_in_use());
    }

    #[test]
    fn one_writer_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path()).unwrap();
        journal.append(&started()).unwrap();
        let opened = Directory::open(directory.path()).unwrap();
        let error = Journal::reopen(&opened).err().unwrap();
        assert!(matches!(error, JournalError::InUse { .. }));
    }

    #[test]
    fn who_holds_a_journal_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(directory.path()).unwrap();
        journal.append(&started()).unwrap();
        let opened = Directory::open(directory.path()).unwrap();
        let shared = journal.file.try_clone().unwrap();
        let sleeping = std::process::Command::new("sleep")
            .arg("600")
            .stdin(shared)
            .spawn();
        let mut holder = sleeping.unwrap();
        drop(journal);
        let error = Journal::reopen(&opened)
            .err()
            .map(|error| error.to_string());
        holder.kill().unwrap();
        holder.wait().unwrap();
        let by = format!("sleep (process {}) is working on this run", holder.id());
        assert!(
            error.as_ref().is_some_and(|error| error.contains(&by)),
            "{error:?}"
        );
        Journal::reopen(&opened).unwrap();
    }

    fn written(directory: &Path, events: &[Event]) -> Vec<u8> {
        let mut journal = Journal::create(directory).unwrap();
        for event in events {
            journal.append(event).unwrap();
        }
        std::fs::read(directory.join(FILE_NAME)).unwrap()
    }

    fn warning(text: &str) -> Event {
        Event::Warning {
            text: text.to_owned(),
        }
    }

    #[test]
    fn every_flipped_bit_is_named_with_its_line_or_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let events = [
            started(),
            warning("12 of 34"),
            warning("56 of 78"),
            Event::RunFinished,
        ];
        let text = written(directory.path(), &events);
        let path = Path::new("journal");
        assert_eq!(parse(path, &text).unwrap().0.len(), 4);
        let line_of = |at: usize| 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
        for at in 0..text.len() {
            // All bits of the short lines, one of each byte of the long one.
            for bit in if line_of(at) == 1 {
                at % 8..at % 8 + 1
            } else {
                0..8
            } {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                match parse(path, &changed) {
                    Err(JournalError::Damaged { line, .. }) => {
                        assert!(
                            (line_of(at)..line_of(at) + 2).contains(&line),
                            "{at} {line}"
                        );
                    }
                    Err(JournalError::NoRun { .. } | JournalError::NotBegun { .. }) => {
                        assert_eq!(line_of(at), 1);
                    }
                    other => panic!("bit {bit} of byte {at}: {:?}", other.map(|it| it.0)),
                }
            }
        }
    }

    #[test]
    fn lines_that_are_missing_or_twice_or_in_another_order_are_damage() {
        let directory = tempfile::tempdir().unwrap();
        let text = written(
            directory.path(),
            &[started(), warning("a"), warning("b"), warning("c")],
        );
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let damaged_at = |order: &[usize]| {
            let text = order.iter().map(|index| lines[*index]).collect::<Vec<_>>();
            match parse(Path::new("journal"), &text.concat()) {
                Err(JournalError::Damaged { line, .. }) => Some(line),
                _ => None,
            }
        };
        assert_eq!(damaged_at(&[0, 1, 2, 3]), None);
        assert_eq!(damaged_at(&[0, 2, 3]), Some(2));
        assert_eq!(damaged_at(&[0, 1, 1, 2, 3]), Some(3));
        assert_eq!(damaged_at(&[0, 2, 1, 3]), Some(2));
    }

    #[test]
    fn a_line_cut_short_anywhere_was_never_written() {
        let directory = tempfile::tempdir().unwrap();
        let text = written(directory.path(), &[started(), warning("a"), warning("b")]);
        let last = text[..text.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n');
        for length in last.unwrap() + 1..text.len() {
            let (events, whole) = parse(Path::new("journal"), &text[..length]).unwrap();
            assert_eq!((events.len(), whole.bytes), (2, last.unwrap() as u64 + 1));
        }
    }

    #[test]
    fn a_journal_without_checksums_still_reads_and_goes_on_with_them() {
        let directory = tempfile::tempdir().unwrap();
        let old =
            [started(), warning("old")].map(|event| serde_json::to_string(&event).unwrap() + "\n");
        let path = directory.path().join(FILE_NAME);
        std::fs::write(&path, old.concat()).unwrap();
        assert_eq!(replay(directory.path()).unwrap().len(), 2);
        let opened = Directory::open(directory.path()).unwrap();
        let (mut journal, _) = Journal::reopen(&opened).unwrap();
        journal.append(&warning("new")).unwrap();
        drop(journal);
        assert_eq!(replay(directory.path()).unwrap().len(), 3);
        let text = std::fs::read_to_string(&path)
            .unwrap()
            .replace("old", "odd");
        std::fs::write(&path, text).unwrap();
        let error = replay(directory.path()).unwrap_err().to_string();
        assert!(
            error.contains("line 3: this line, or one before it"),
            "{error}"
        );
    }

    /// The line that is refused, and why.
    fn refused(event: Event) -> String {
        let directory = tempfile::tempdir().unwrap();
        written(directory.path(), &[started(), event]);
        replay(directory.path()).unwrap_err().to_string()
    }

    #[test]
    fn what_no_run_can_have_noted_is_damage() {
        let finished = |tpm: f64, sample: f64| Event::TrialFinished {
            layout: 0,
            load: LoadLevel::default(),
            trial: Box::new(sample::trial(1, tpm)),
            sample_ms: 1000,
            samples: vec![10.0, sample],
            system: SystemSeries::default(),
        };
        for (tpm, sample) in [(600.0, 1e307), (600.0, -1.0), (1e307, 10.0)] {
            let told = refused(finished(tpm, sample));
            assert!(
                told.contains("line 2: no run has such a throughput"),
                "{told}"
            );
        }
        let mut trial = sample::trial(1, 600.0);
        trial.latency_us.mean = -1e308;
        let told = refused(Event::TrialSetAside {
            layout: 0,
            load: LoadLevel::default(),
            trial: Box::new(trial),
            reason: String::new(),
        });
        assert!(
            told.contains("line 2: latency_us.mean cannot be -1e308"),
            "{told}"
        );
        let text = "[[layout]]\nname = \"a\"\n";
        let experiment = Experiment::parse("x.toml", text, &[]).unwrap();
        let mut long = experiment.clone();
        long.layouts[0].name = "x".repeat(NAMES_BYTES_MAX + 1);
        let directory = tempfile::tempdir().unwrap();
        written(directory.path(), &[start_of(long)]);
        let told = replay(directory.path()).unwrap_err().to_string();
        assert!(told.contains("line 1: the names of the layouts"), "{told}");
        let mut layout = crate::description::describe(&experiment, 0);
        layout.stack = vec![Vec::new()];
        let (index, skip) = (0, None);
        let told = refused(Event::LayoutExamined {
            index,
            layout,
            skip,
        });
        assert!(
            told.contains("line 2: a row of the layout's parts is empty"),
            "{told}"
        );
        let directory = tempfile::tempdir().unwrap();
        written(directory.path(), &[started(), finished(600.0, 11.0)]);
        assert_eq!(replay(directory.path()).unwrap().len(), 2);
    }

    #[test]
    fn what_a_terminal_would_obey_is_read_as_text() {
        let directory = tempfile::tempdir().unwrap();
        let harmful = "\u{1b}]0;x\u{7}\u{9b}31m\r\0\u{7f}\u{202e}";
        written(directory.path(), &[started(), warning(harmful)]);
        let events = replay(directory.path()).unwrap();
        let Event::Warning { text } = &events[1] else {
            panic!("{events:?}")
        };
        assert!(!text.contains(spindle_text::plain::is_harmful), "{text:?}");
        assert!(text.contains("\\u{1b}]0;x"), "{text}");
    }
}
