//! What a run has made and must take away again, on stable storage before it is made. A ledger is a file of JSON lines:
//! a heading that says whose it is, then for each step what is about to be made, then, when it is gone again, that it
//! is. It is locked while the run lives, and by the tools that it started. [`clean`](crate::clean()) works through the
//! ledgers of dead runs.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spindle_text::file_lock::is_locked_within;
use spindle_text::remedy::with_remedy;

use crate::record::Record;
use crate::tool::Tools;
use spindle_system::SystemTree;

/// The ending of a ledger's name.
pub(crate) const ENDING: &str = "jsonl";

/// Version of the format of a line.
const FORMAT: u32 = 1;

/// Why a ledger cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The system refused.
    #[error("cannot {action} the ledger {}: {}", path.display(), with_remedy(source))]
    System {
        /// An English verb.
        action: &'static str,
        /// The ledger or its directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There can be no directory of ledgers.
    #[error(
        "cannot make the directory {}, where Spindle notes what it makes: {source}; name another one: \
         SPINDLE_LEDGER_DIRECTORY=DIR",
        path.display()
    )]
    NoDirectory {
        /// The directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is a ledger of this run already.
    #[error(
        "there is a ledger {} already: a run of this name is going on, or died; run `spindle clean`",
        path.display()
    )]
    Exists {
        /// The ledger.
        path: PathBuf,
    },
    /// The run's name is no file name.
    #[error(
        "{run:?} cannot name a run: use 1 to 100 letters, digits, hyphens, underscores and dots, no dot first"
    )]
    BadRunId {
        /// The name.
        run: String,
    },
    /// A line has no meaning known here.
    #[error(
        "line {line} of the ledger {} is not understood ({reason}): it is damaged, or of another version of Spindle, \
         and nothing that it names was touched",
        path.display()
    )]
    Line {
        /// The ledger.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// Number of an entry of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryNumber(u32);

/// Something that a run has made, or was about to make when it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// In the order of making.
    pub number: EntryNumber,
    /// The layout it belongs to; `None` for what several share.
    pub layout: Option<String>,
    /// What it is.
    pub record: Record,
}

/// A line of a ledger.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Run(LedgerHeading),
    Making {
        number: EntryNumber,
        layout: Option<String>,
        record: Record,
    },
    Gone {
        number: EntryNumber,
    },
}

/// Whose ledger it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerHeading {
    format: u32,
    /// The run.
    pub run: String,
    /// Its process.
    pub pid: u32,
    /// See `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Option<String>,
}

/// The ledger of a run that is alive. When it is dropped and nothing is left of what it names, its file goes; else the
/// file stays for [`clean`](crate::clean()).
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    heading: LedgerHeading,
    /// A ledger that was taken over is of a dead one.
    is_of_living_run: bool,
    /// Of a dead run: when it wrote its ledger last, or touched it. Stays the time of the file while others clean up.
    last_touched: Option<SystemTime>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    next: u32,
    entries: Vec<LedgerEntry>,
}

/// Where ledgers are: for root `/var/lib/spindle/ledger`, else `$XDG_STATE_HOME/spindle/ledger` (XDG Base Directory
/// Specification), which is below `~/.local/state` when it is not set. `SPINDLE_LEDGER_DIRECTORY` overrides both. As
/// that specification wants, paths that are not absolute are ignored: `clean` would look elsewhere than the run wrote.
pub fn default_directory() -> PathBuf {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(directory) = absolute("SPINDLE_LEDGER_DIRECTORY") {
        return directory;
    }
    if rustix::process::geteuid().is_root() {
        return "/var/lib/spindle/ledger".into();
    }
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .unwrap_or_else(std::env::temp_dir)
        .join("spindle/ledger")
}

impl Ledger {
    /// Begins the ledger of a run in `directory`, which is made if need be. Errors: [`LedgerError::Exists`],
    /// [`LedgerError::BadRunId`], or the system's.
    pub fn begin(directory: &Path, run: &str, tree: &SystemTree) -> Result<Ledger, LedgerError> {
        let path = path_of(directory, run)?;
        let wrong = |action| {
            let path = path.clone();
            move |source: io::Error| LedgerError::System {
                action,
                path,
                source,
            }
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| LedgerError::NoDirectory {
                path: directory.to_owned(),
                source,
            })?;
        let file = match OpenOptions::new()
            .append(true)
            .read(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LedgerError::Exists { path });
            }
            Err(error) => return Err(wrong("make")(error)),
        };
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| wrong("lock")(error.into()))?;
        let heading = LedgerHeading {
            format: FORMAT,
            run: run.to_owned(),
            pid: std::process::id(),
            boot_id: tree.boot_id(),
        };
        let ledger = Ledger {
            state: Mutex::new(State {
                file,
                next: 1,
                entries: Vec::new(),
            }),
            is_of_living_run: true,
            last_touched: None,
            heading: heading.clone(),
            path: path.clone(),
        };
        ledger.write(&mut ledger.state(), &Line::Run(heading))?;
        sync_directory(directory).map_err(wrong("keep"))?;
        Ok(ledger)
    }

    /// The ledger of a dead run, for undoing; `None` when the run is alive, or when its last entry was removed
    /// meanwhile. Errors: [`LedgerError::Line`], or the system's.
    pub(crate) fn take_over(path: &Path) -> Result<Option<Ledger>, LedgerError> {
        let Some((file, replayed)) = open_of_dead(path)? else {
            return Ok(None);
        };
        let last_touched = file.metadata().and_then(|found| found.modified());
        let last_touched = last_touched.map_err(|source| LedgerError::System {
            action: "examine",
            path: path.to_owned(),
            source,
        })?;
        // A line that broke off would spoil the next one.
        file.set_len(replayed.whole_bytes)
            .and_then(|()| file.set_modified(last_touched))
            .map_err(|source| LedgerError::System {
                action: "mend",
                path: path.to_owned(),
                source,
            })?;
        Ok(Some(Ledger {
            path: path.to_owned(),
            heading: replayed.heading,
            is_of_living_run: false,
            last_touched: Some(last_touched),
            state: Mutex::new(State {
                file,
                next: replayed.next,
                entries: replayed.entries,
            }),
        }))
    }

    /// What a dead run's ledger names, nothing changed; `None` as for [`Self::take_over`].
    pub(crate) fn peek(path: &Path) -> Result<Option<Vec<LedgerEntry>>, LedgerError> {
        Ok(open_of_dead(path)?.map(|(_, replayed)| replayed.entries))
    }

    /// Whose it is.
    pub fn heading(&self) -> &LedgerHeading {
        &self.heading
    }

    /// Whether it is kept by the run that began it, and not by another process after that run's death.
    pub(crate) fn is_of_living_run(&self) -> bool {
        self.is_of_living_run
    }

    /// See [`Site::last_touched`](crate::steps::Site).
    pub(crate) fn last_touched(&self) -> Option<SystemTime> {
        self.last_touched
    }

    /// The run's own directory of device nodes, if it has one.
    pub(crate) fn nodes(&self) -> Option<PathBuf> {
        self.entries().iter().find_map(|entry| match &entry.record {
            Record::MadeNodes(nodes) => Some(nodes.directory.clone()),
            _ => None,
        })
    }

    /// Says that the run has written to its devices until now.
    pub(crate) fn touch(&self) -> Result<(), LedgerError> {
        let touched = self.state().file.set_modified(SystemTime::now());
        touched.map_err(|source| self.wrong("touch", source))
    }

    /// Tools that hold this ledger's lock while they are at work.
    pub fn tools(&self) -> Result<Tools, LedgerError> {
        let lock = self.state().file.try_clone();
        lock.map(Tools::holding)
            .map_err(|source| self.wrong("share", source))
    }

    /// Notes what is about to be made, on stable storage when this returns.
    pub fn note(&self, layout: Option<&str>, record: Record) -> Result<EntryNumber, LedgerError> {
        let mut state = self.state();
        let number = EntryNumber(state.next);
        let line = Line::Making {
            number,
            layout: layout.map(str::to_owned),
            record,
        };
        self.write(&mut state, &line)?;
        state.next += 1;
        if let Line::Making {
            number,
            layout,
            record,
        } = line
        {
            state.entries.push(LedgerEntry {
                number,
                layout,
                record,
            });
        }
        Ok(number)
    }

    /// Notes that something is gone again, or was never made.
    pub fn gone(&self, number: EntryNumber) -> Result<(), LedgerError> {
        let mut state = self.state();
        self.write(&mut state, &Line::Gone { number })?;
        state.entries.retain(|entry| entry.number != number);
        Ok(())
    }

    /// What still exists, in the order of making.
    pub fn entries(&self) -> Vec<LedgerEntry> {
        self.state().entries.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &mut State, line: &Line) -> Result<(), LedgerError> {
        let text = serde_json::to_string(line).expect("plain data becomes JSON") + "\n";
        let written = state
            .file
            .write_all(text.as_bytes())
            .and_then(|()| match self.last_touched {
                Some(moment) => state.file.set_modified(moment),
                None => Ok(()),
            })
            .and_then(|()| state.file.sync_data());
        written.map_err(|source| self.wrong("write", source))
    }

    fn wrong(&self, action: &'static str, source: io::Error) -> LedgerError {
        LedgerError::System {
            action,
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if self.state().entries.is_empty() {
            // The error cannot be reported; an empty ledger does no harm, and `clean` removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    // The directory itself may be new, too.
    let absolute = std::path::absolute(directory)?;
    for directory in absolute.ancestors().take(3) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

pub(crate) fn path_of(directory: &Path, run: &str) -> Result<PathBuf, LedgerError> {
    if !crate::data_directory::is_run_id(run) {
        return Err(LedgerError::BadRunId {
            run: run.to_owned(),
        });
    }
    Ok(directory.join(format!("{run}.{ENDING}")))
}

/// What a ledger says.
pub(crate) struct Replayed {
    pub(crate) heading: LedgerHeading,
    /// What still exists.
    pub(crate) entries: Vec<LedgerEntry>,
    pub(crate) next: u32,
    /// Length of the whole lines.
    pub(crate) whole_bytes: u64,
}

/// Opens a ledger: what it says is removed, so it must be a file of this user. No link is followed, and opening a pipe
/// does not block.
pub(crate) fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match options.custom_flags(flags.bits() as i32).open(path) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err(io::Error::other(
                "it is a link, and a ledger is a file; remove the link if it is not needed",
            ));
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.uid() != user {
        return Err(io::Error::other(format!(
            "it belongs to user {}, and this is user {user}; run `spindle clean` as its owner",
            metadata.uid()
        )));
    }
    Ok(file)
}

/// Opens, locks and reads the ledger of a dead run; `None` when it is held, or it has just gone.
fn open_of_dead(path: &Path) -> Result<Option<(File, Replayed)>, LedgerError> {
    let wrong = |action| {
        let path = path.to_owned();
        move |source: io::Error| LedgerError::System {
            action,
            path,
            source,
        }
    };
    let file = match open_own(path, OpenOptions::new().append(true).read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong("open")(error)),
    };
    if !is_locked_within(&file, LOCK_PATIENCE).map_err(wrong("lock"))? {
        return Ok(None);
    }
    // Another that cleans may have removed it between opening and locking.
    if file.metadata().map_err(wrong("examine"))?.nlink() == 0 {
        return Ok(None);
    }
    let replayed = replay(path, &file)?;
    Ok(Some((file, replayed)))
}

/// A child of ours has it from its fork to its exec. Cleaning looks at the ledgers of runs that go on, too, so it does
/// not wait long for each.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// More than any run notes: each step takes some hundred bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Reads a ledger. A last line without an end was being written when the run died: its step was never begun.
pub(crate) fn replay(path: &Path, file: &File) -> Result<Replayed, LedgerError> {
    let wrong = |source| LedgerError::System {
        action: "read",
        path: path.to_owned(),
        source,
    };
    let bytes = file.metadata().map_err(wrong)?.len();
    if bytes > BYTES_MAX {
        return Err(LedgerError::Line {
            path: path.to_owned(),
            line: 1,
            reason: format!("the file has {bytes} bytes, and no run notes more than {BYTES_MAX}"),
        });
    }
    let mut reader = BufReader::new(file);
    let (mut heading, mut entries, mut next, mut whole_bytes) = (None, Vec::new(), 1, 0);
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        let length = reader.read_until(b'\n', &mut text).map_err(wrong)?;
        if length == 0 || !text.ends_with(b"\n") {
            break;
        }
        let not_understood = |reason: String| LedgerError::Line {
            path: path.to_owned(),
            line,
            reason,
        };
        match serde_json::from_slice(&text).map_err(|error| not_understood(error.to_string()))? {
            Line::Run(run) if line == 1 && run.format == FORMAT => heading = Some(run),
            Line::Run(_) => return Err(not_understood("a heading out of place".to_owned())),
            Line::Making {
                number,
                layout,
                record,
            } if heading.is_some() => {
                next = number.0 + 1;
                entries.push(LedgerEntry {
                    number,
                    layout,
                    record,
                });
            }
            Line::Gone { number } => entries.retain(|entry: &LedgerEntry| entry.number != number),
            Line::Making { .. } => {
                return Err(not_understood("it stands before the heading".to_owned()));
            }
        }
        whole_bytes += length as u64;
    }
    // A run that died before its heading was written has made nothing.
    let nobody = || LedgerHeading {
        format: FORMAT,
        run: run_of(path),
        pid: 0,
        boot_id: None,
    };
    Ok(Replayed {
        heading: heading.unwrap_or_else(nobody),
        entries,
        next,
        whole_bytes,
    })
}

pub(crate) fn run_of(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
