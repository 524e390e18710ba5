//! The server's first process, which PostgreSQL calls postmaster: started, watched, ended. It ends with the thread that
//! started it, so that one is kept for it; every process of a server works in its data directory, by which those that
//! outlive it are found.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::cluster::Cluster;
use super::programs::Programs;
use crate::sql::{ServerError, Stop, said_of_full_disks};

/// A checkpoint of a large cache on a slow disk takes its time.
const CLEAN_LIMIT: Duration = Duration::from_secs(1800);
/// The postmaster itself kills what has not ended five seconds after it said so.
const KILL_LIMIT: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(5);
/// Lines of the log that are told when it has ended.
const LAST_LINES: usize = 6;

/// A server's first process.
pub(super) struct Postmaster {
    child: Mutex<Child>,
    process_id: u32,
    data: PathBuf,
    log: PathBuf,
    /// Dropped last: the thread that started the server ends then, and the server with it at the latest.
    _keeper: Sender<()>,
}

impl Postmaster {
    /// Starts it; whether it comes up is for the caller to see.
    ///
    /// # Errors
    /// [`ServerError::Failed`].
    pub fn start(cluster: &Cluster, programs: &Programs) -> Result<Postmaster, ServerError> {
        let log = cluster.open_log()?;
        let failed = |error: std::io::Error| ServerError::failed("starting PostgreSQL", error);
        let mut command = programs.command_of_thread("postgres");
        command.arg("-D").arg(cluster.data());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        // A terminal's interrupt is for Spindle, which stops its servers itself.
        command.process_group(0);
        let (started, child) = channel();
        let (keeper, end) = channel::<()>();
        let thread = std::thread::Builder::new().name("postgres".to_owned());
        let thread = thread.spawn(move || {
            if started.send(command.spawn()).is_ok() {
                // Returns when the other end is gone.
                let _ = end.recv();
            }
        });
        thread.map_err(failed)?;
        let child = child.recv().map_err(|_| {
            ServerError::failed("starting PostgreSQL", "the thread for it has ended")
        })?;
        let child = child.map_err(|error| {
            ServerError::failed(
                "running setpriv (of util-linux), which runs PostgreSQL",
                error,
            )
        })?;
        Ok(Postmaster {
            process_id: child.id(),
            child: Mutex::new(child),
            data: cluster.data(),
            log: cluster.log(),
            _keeper: keeper,
        })
    }

    /// Its number.
    pub fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Why it ended, if it has: the last lines of its log.
    pub fn ended(&self) -> Option<String> {
        let status = self.status()?;
        Some(format!(
            "the PostgreSQL server has ended ({status}){}. The end of its log:\n{}",
            said_of_full_disks([self.data.as_path()].into_iter().chain(self.log.parent())),
            last_lines(&self.log)
        ))
    }

    fn status(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.try_wait().ok().flatten()
    }

    /// Sends a signal, if it is still there. A process that nobody has waited for keeps its number.
    fn signal(&self, signal: Signal) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Ok(None), Ok(id)) = (child.try_wait(), i32::try_from(self.process_id))
            && let Some(id) = Pid::from_raw(id)
        {
            // It has just ended, then.
            let _ = kill_process(id, signal);
        }
    }

    /// Ends it, and waits until every process of it has ended.
    ///
    /// # Errors
    /// [`ServerError::Failed`]: it did not end in order, or had ended before.
    pub fn stop(&self, how: Stop) -> Result<(), ServerError> {
        let had_ended = self.ended();
        let (signal, limit) = match how {
            // "Fast" and "immediate" shutdown (https://www.postgresql.org/docs/current/server-shutdown.html).
            Stop::Clean => (Signal::INT, CLEAN_LIMIT),
            Stop::Kill => (Signal::QUIT, KILL_LIMIT),
        };
        self.signal(signal);
        let in_time = wait_until(limit, || self.status().is_some());
        if !in_time {
            self.signal(Signal::KILL);
            wait_until(KILL_LIMIT, || self.status().is_some());
        }
        self.wait_for_family()?;
        match (how, had_ended) {
            (Stop::Kill, _) => Ok(()),
            (Stop::Clean, Some(reason)) => Err(ServerError::failed("stopping PostgreSQL", reason)),
            (Stop::Clean, None) => match self.status() {
                Some(status) if status.success() && in_time => Ok(()),
                _ => Err(ServerError::failed(
                    "stopping PostgreSQL",
                    self.ended().unwrap_or_default(),
                )),
            },
        }
    }

    /// Processes see that their postmaster has gone, and end; those that do not in time are killed.
    fn wait_for_family(&self) -> Result<(), ServerError> {
        if wait_until(KILL_LIMIT, || family(&self.data).is_empty()) {
            return Ok(());
        }
        for process in family(&self.data) {
            // It has just ended, then.
            let _ = kill_process(process, Signal::KILL);
        }
        match wait_until(KILL_LIMIT, || family(&self.data).is_empty()) {
            true => Ok(()),
            false => Err(ServerError::failed(
                "stopping PostgreSQL",
                format!("processes of it are still there: {:?}", family(&self.data)),
            )),
        }
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.status().is_none() {
            // Whoever lets go of it without stopping it has an error to tell already.
            let _ = self.stop(Stop::Kill);
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

/// Processes that work in a server's data directory, which only that server's do.
fn family(data: &Path) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let members = processes.filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        let works_in = std::fs::read_link(entry.path().join("cwd")).ok()?;
        (works_in == data).then(|| Pid::from_raw(id)).flatten()
    });
    members.collect()
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
