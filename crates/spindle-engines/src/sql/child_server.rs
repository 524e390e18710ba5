//! The server that this program has started: watched, ended, heard. It ends with the thread that started it, so that
//! one is kept for it; it never outlives this program, and is ended when its owner is dropped. Processes that it
//! started itself are known by where they work and what they are called: they have to be gone before its files are
//! touched.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use spindle_system::{SystemTree, processes};

use super::account::{Account, not_launched, with_rights_of};
use super::{ServerStop, said_of_full_disks};
use crate::{EngineError, ErrorKind};

/// A checkpoint of a large cache on a slow disk takes its time, and so does a purge.
const IN_ORDER_LIMIT: Duration = Duration::from_secs(1800);
/// What was killed ends when its I/O under way has, and its memory is given back.
const KILLED_LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);
/// Lines of the log that are told when it has ended.
const LAST_LINES: usize = 8;

/// What is particular to a kind of server.
#[derive(Debug)]
pub(crate) struct Habits {
    /// What it is called in what is said of it.
    pub name: &'static str,
    /// Asks it to end in order.
    pub in_order: Signal,
    /// Asks it to end at once, with nothing saved.
    pub at_once: Signal,
    /// How long its processes may take for that before they are killed.
    pub at_once_limit: Duration,
    /// What its log marks errors with: they are told, and nothing else when there are some.
    pub error_mark: Option<&'static str>,
}

/// What a server says: a file in its own directory, which is read with its own rights.
#[derive(Debug, Clone)]
pub(crate) struct ServerLog {
    /// Where.
    pub path: PathBuf,
    /// Its owner; `None`: the user who runs this program.
    pub account: Option<Account>,
}

impl ServerLog {
    /// Opens it to be read. Errors: the system's; it is not a file.
    pub fn open(&self) -> io::Result<File> {
        let no_waiting = OFlags::NONBLOCK.bits() as i32;
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(no_waiting).open(&self.path)
        };
        let file = with_rights_of(self.account.as_ref(), open);
        let file = file.map_err(|error| io::Error::other(error.to_string()))??;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// All of it so far; nothing when it cannot be read.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        let read = self
            .open()
            .and_then(|mut file| file.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes[..read.unwrap_or(0)]).into_owned()
    }
}

/// A server's first process.
pub(crate) struct ChildServer {
    habits: &'static Habits,
    child: Mutex<Child>,
    process_id: u32,
    /// Where its processes work.
    home: PathBuf,
    /// What they are called.
    program: OsString,
    log: ServerLog,
    /// Dropped last: the thread that started the server ends then, and the server with it at the latest.
    _keeper: Sender<()>,
}

impl ChildServer {
    /// Starts `program` by a command of [`super::account::launch_bound`]; whether it comes up is for the caller to see.
    /// It works in `home`, and what it says goes into `log`.
    ///
    /// # Errors
    /// [`EngineError`]: it cannot be run.
    pub fn start(
        habits: &'static Habits,
        mut command: Command,
        program: &Path,
        home: &Path,
        log: ServerLog,
    ) -> Result<ChildServer, EngineError> {
        let what = format!("starting {}", habits.name);
        // A terminal's interrupt is for this program, which stops its servers itself.
        command.process_group(0);
        let (started, child) = channel();
        let (keeper, end) = channel::<()>();
        let thread = std::thread::Builder::new().name("server".to_owned());
        let thread = thread.spawn(move || {
            let spawned = command.spawn();
            // Only the server holds its log: files are put back only when no process has them open for writing.
            drop(command);
            if started.send(spawned).is_ok() {
                // Returns when the other end is gone.
                let _ = end.recv();
            }
        });
        thread.map_err(|error| EngineError::failed(&*what, error))?;
        let child = child.recv();
        let child =
            child.map_err(|_| EngineError::failed(&*what, "the thread for it has ended"))?;
        let child = child.map_err(|error| not_launched(&what, error))?;
        Ok(ChildServer {
            habits,
            process_id: child.id(),
            child: Mutex::new(child),
            home: home.canonicalize().unwrap_or_else(|_| home.to_path_buf()),
            program: program.file_name().unwrap_or_default().to_owned(),
            log,
            _keeper: keeper,
        })
    }

    /// Its number.
    pub fn process_id(&self) -> u32 {
        self.process_id
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it did.
    pub fn status(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Waits until it has ended; `None` when it has not in that time.
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        wait_until(limit, || self.status().is_some());
        self.status()
    }

    /// The whole log so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// How it ended and what it said last; `None` while it runs.
    pub fn ended(&self) -> Option<EngineError> {
        let status = self.status()?;
        let places = [self.home.as_path()]
            .into_iter()
            .chain(self.log.path.parent());
        let full = said_of_full_disks(places);
        let kind = match full.is_empty() {
            true => ErrorKind::ServerGone,
            false => ErrorKind::NoRoom,
        };
        let said = last_lines(&self.log(), self.habits.error_mark);
        let name = self.habits.name;
        Some(EngineError::new(
            kind,
            format!("{name} has ended ({status}){full}; {said}"),
        ))
    }

    /// Ends it, and waits until every process of it has ended.
    ///
    /// # Errors
    /// `Failed`: it did not end in order, or some process of it does not end.
    pub fn stop(&self, how: ServerStop) -> Result<(), EngineError> {
        let what = format!("stopping {}", self.habits.name);
        let failed = |reason: String| Err(EngineError::failed(&what, reason));
        let (signal, limit) = match how {
            ServerStop::Clean => (self.habits.in_order, IN_ORDER_LIMIT),
            ServerStop::Kill => (self.habits.at_once, self.habits.at_once_limit),
        };
        self.signal(signal);
        let in_time = self.wait(limit);
        if in_time.is_none() {
            self.signal(Signal::KILL);
            self.wait(KILLED_LIMIT);
        }
        if let Some(left) = self.end_family() {
            return failed(format!("processes of it are still there: {left:?}"));
        }
        match (how, in_time) {
            (ServerStop::Kill, _) => Ok(()),
            (ServerStop::Clean, None) => {
                let minutes = IN_ORDER_LIMIT.as_secs() / 60;
                failed(format!("it did not end in {minutes} minutes"))
            }
            (ServerStop::Clean, Some(status)) if status.success() => Ok(()),
            (ServerStop::Clean, Some(status)) => match self.ended() {
                Some(ended) => Err(EngineError::failed(&what, ended)),
                None => failed(status.to_string()),
            },
        }
    }

    /// Sends a signal, if it still exists. A process keeps its number until its parent has waited for it.
    fn signal(&self, signal: Signal) {
        let mut child = self.child();
        if let (Ok(None), Ok(id)) = (child.try_wait(), i32::try_from(self.process_id))
            && let Some(id) = Pid::from_raw(id)
        {
            // It has just ended, then.
            let _ = kill_process(id, signal);
        }
    }

    /// Processes see that their first one has gone, and end; those that do not in time are killed. Returns those that
    /// remain.
    fn end_family(&self) -> Option<Vec<Pid>> {
        let family = || family(&self.home, &self.program);
        if wait_until(self.habits.at_once_limit, || family().is_empty()) {
            return None;
        }
        for process in family() {
            // It has just ended, then.
            let _ = kill_process(process, Signal::KILL);
        }
        match wait_until(KILLED_LIMIT, || family().is_empty()) {
            true => None,
            false => Some(family()),
        }
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        if self.status().is_none() {
            // The caller that drops it without stopping it has an error to tell already.
            let _ = self.stop(ServerStop::Kill);
        }
    }
}

fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > limit {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// Processes of that program that work in a directory of the server's own. Others may look around there.
fn family(home: &Path, program: &OsString) -> Vec<Pid> {
    let program = program.as_encoded_bytes();
    let program = &program[..program.len().min(processes::NAME_BYTES)];
    let tree = SystemTree::default();
    let members = processes::ids(&tree).into_iter().filter_map(|id| {
        let works_in = processes::working_directory(&tree, id)?;
        let is_member = works_in == home && processes::program_of(&tree, id)? == program;
        is_member.then(|| Pid::from_raw(id as i32)).flatten()
    });
    members.collect()
}

/// What a log says last: its errors, or else its last lines.
pub(crate) fn last_lines(log: &str, error_mark: Option<&str>) -> String {
    let is_error = |line: &&str| error_mark.is_some_and(|mark| line.contains(mark));
    let errors: Vec<&str> = log.lines().filter(is_error).collect();
    let lines = match errors.is_empty() {
        true => log.lines().collect(),
        false => errors,
    };
    match lines.is_empty() {
        true => "it said nothing".to_owned(),
        false => format!(
            "it said:\n  {}",
            lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    const HABITS: Habits = Habits {
        name: "the server",
        in_order: Signal::TERM,
        at_once: Signal::KILL,
        at_once_limit: Duration::from_millis(200),
        error_mark: Some("[ERROR]"),
    };

    fn started(words: &[&str], home: &Path, log: PathBuf) -> ChildServer {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(home);
        let (path, account) = (log, None);
        let log = ServerLog { path, account };
        ChildServer::start(&HABITS, command, words[0].as_ref(), home, log).unwrap()
    }

    fn is_there(process_id: u32) -> bool {
        Path::new(&format!("/proc/{process_id}")).exists()
    }

    #[test]
    fn a_process_ends_with_its_owner_and_not_with_the_thread_that_asked_for_it() {
        let start = || started(&["sleep", "1000"], Path::new("/"), "/dev/null".into());
        let server = std::thread::spawn(start).join().unwrap();
        assert_eq!(server.status(), None);
        let process_id = server.process_id();
        drop(server);
        assert!(!is_there(process_id));
    }

    #[test]
    fn an_end_is_told_with_the_last_errors() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        std::fs::write(&log, "a\n[ERROR] no room\nb\n").unwrap();
        let server = started(&["false"], directory.path(), log);
        assert!(server.wait(PATIENCE).is_some());
        let ended = server.ended().unwrap();
        assert_eq!(ended.kind(), ErrorKind::ServerGone);
        let said = ended.to_string();
        assert!(
            said.contains("exit status: 1") && said.contains("[ERROR] no room"),
            "{said}"
        );
        assert!(!said.contains("\n  b"), "{said}");
        assert_eq!(last_lines("", None), "it said nothing");
        assert_eq!(
            last_lines("a [ERROR]\nb", None),
            "it said:\n  a [ERROR]\n  b"
        );
        server.stop(ServerStop::Clean).unwrap_err();
    }

    #[test]
    fn processes_of_the_server_end_with_it_and_those_of_others_stay() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        // The server has a child that outlives it, and another program looks around there.
        let mut visitor = Command::new("tail");
        let visitor = visitor.args(["-f", "/dev/null"]).current_dir(home).spawn();
        let mut visitor = visitor.unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & exec sleep 1000"]);
        command.current_dir(home);
        let log = ServerLog {
            path: PathBuf::from("/dev/null"),
            account: None,
        };
        let server = ChildServer::start(&HABITS, command, "sleep".as_ref(), home, log).unwrap();
        let family = || family(&home.canonicalize().unwrap(), &"sleep".into());
        assert!(wait_until(PATIENCE, || family().len() == 2));
        // The child does not end by itself.
        server.stop(ServerStop::Kill).unwrap();
        assert!(family().is_empty());
        assert!(visitor.try_wait().unwrap().is_none());
        visitor.kill().unwrap();
        visitor.wait().unwrap();
    }
}
