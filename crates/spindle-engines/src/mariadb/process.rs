//! The process of a server: started, watched, ended. It never outlives this program, and is ended when its owner is
//! dropped.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sql::said_of_full_disks;

/// How often a process that is to end is looked at.
const PAUSE: Duration = Duration::from_millis(10);
/// Lines of the log that are told when a server ends.
const LAST_LINES: usize = 8;

/// A server's process.
pub(super) struct Process {
    child: Mutex<Child>,
    pid: u32,
    log: PathBuf,
    /// Where it works, and where its log is.
    places: Vec<PathBuf>,
    /// The thread that started it stays until this is dropped: the kernel ends the process with that thread.
    _keeper: Sender<()>,
}

impl Process {
    /// Starts it; `log` is the file that its standard error goes to.
    pub fn start(mut command: Command, log: PathBuf) -> io::Result<Process> {
        let works_in = command.get_current_dir().into_iter();
        let places = works_in
            .chain(log.parent())
            .map(Path::to_path_buf)
            .collect();
        let (started, child) = channel();
        let (keeper, end) = channel::<()>();
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                let is_told = started.send(command.spawn());
                if is_told.is_ok() {
                    // An error: the other end is gone, and so is the process.
                    let _ = end.recv();
                }
            })?;
        let child = child
            .recv()
            .map_err(|_| io::Error::other("the starting thread ended"))??;
        Ok(Process {
            pid: child.id(),
            child: Mutex::new(child),
            log,
            places,
            _keeper: keeper,
        })
    }

    pub fn id(&self) -> u32 {
        self.pid
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it did.
    pub fn status(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Asks it to end in order.
    pub fn terminate(&self) {
        let mut child = self.child();
        // Only while it is not yet waited for is the number surely its own.
        if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(self.pid as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Ends it at once and waits until it has ended.
    pub fn kill(&self) {
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Waits until it has ended; `None` when it has not in that time.
    pub fn wait(&self, patience: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            match self.status() {
                Some(status) => return Some(status),
                None if began.elapsed() > patience => return None,
                None => std::thread::sleep(PAUSE),
            }
        }
    }

    /// How it ended and what it said last, for people; `None` while it runs.
    pub fn last_words(&self) -> Option<String> {
        let status = self.status()?;
        Some(format!(
            "the server ended ({status}){}; {}",
            said_of_full_disks(self.places.iter().map(PathBuf::as_path)),
            last_lines(&self.log)
        ))
    }

    /// The whole log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a log says last: its errors, or else its last lines.
pub(super) fn last_lines(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("[ERROR]"))
        .collect();
    let lines = match errors.is_empty() {
        true => text.lines().collect(),
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

    #[test]
    fn a_process_ends_with_its_owner_and_not_with_the_thread_that_asked_for_it() {
        let start = || {
            let mut command = Command::new("sleep");
            command.arg("1000");
            Process::start(command, PathBuf::from("/dev/null")).unwrap()
        };
        let process = std::thread::spawn(start).join().unwrap();
        assert_eq!(process.status(), None);
        let pid = process.id();
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn an_end_is_told_with_the_last_errors() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        std::fs::write(&log, "a\n[ERROR] no room\nb\n").unwrap();
        let process = Process::start(Command::new("false"), log).unwrap();
        assert!(process.wait(Duration::from_secs(10)).is_some());
        let said = process.last_words().unwrap();
        assert!(
            said.contains("exit status: 1") && said.contains("[ERROR] no room"),
            "{said}"
        );
        assert!(!said.contains("\n  b"), "{said}");
    }
}
