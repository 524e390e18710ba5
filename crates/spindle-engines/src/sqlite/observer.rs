//! What SQLite's connections do, as the system sees it, since SQLite itself does not tell: the threads of clients are
//! asked many times a second which system call each of them waits in, and on which file (proc_pid_syscall(5)). So the
//! time of each call is known as a share of samples, as with `v$active_session_history`; what they read and wrote the
//! system counts for every thread (`io`, proc_pid_io(5)).

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spindle_io::real::IoCounts;
use spindle_kernel::SampledWaits;
use spindle_system::SystemTree;
use spindle_system::disk::ProcessIo;
use spindle_system::threads::own_threads;

use crate::engine::EngineWait;

/// The name that the threads of clients begin with.
const CLIENT_THREADS: &str = "client";
/// Samples are so far apart: a thousand in a trial of twenty seconds, for about a thousandth of a processor.
const INTERVAL: Duration = Duration::from_millis(20);

/// What a client can be found waiting in, with the nearest of Oracle's events behind it.
const EVENTS: [&str; 9] = [
    "read of the database (db file sequential read)",
    "write of the database (db file parallel write)",
    "sync of the database (checkpoint)",
    "read of the log (log file sequential read)",
    "write of the log (log file parallel write)",
    "sync of the log (log file sync)",
    "waiting for another writer (enq: TX - contention)",
    "lock of a file (enq: TX - contention)",
    "other call",
];
const BUSY: usize = 6;
const LOCK: usize = 7;
const OTHER: usize = 8;

/// Which of a database's files a call is for: the first of its three events.
fn events_of_file(path: &Path) -> Option<usize> {
    let name = path.file_name()?.to_str()?;
    let is_log = name.ends_with("-wal") || name.ends_with("-journal");
    let is_ours = is_log || name.ends_with(".db");
    is_ours.then_some(if is_log { 3 } else { 0 })
}

/// The event of a waiting thread's `syscall` line; `None` when it is running, or waits for something of the client's
/// own.
fn event_of(line: &str, file_of: impl Fn(u64) -> Option<usize>) -> Option<usize> {
    let mut words = line.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let first = words.next().and_then(|word| word.strip_prefix("0x"));
    let descriptor = first.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let on_file = |call: usize| {
        let file = descriptor.and_then(&file_of);
        Some(file.map_or(OTHER, |first| first + call))
    };
    match number {
        libc::SYS_read | libc::SYS_pread64 => on_file(0),
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_ftruncate => on_file(1),
        libc::SYS_fsync | libc::SYS_fdatasync => on_file(2),
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => Some(BUSY),
        libc::SYS_fcntl => Some(LOCK),
        // A client waits for its stop, or for its next transaction.
        libc::SYS_futex => None,
        _ => Some(OTHER),
    }
}

#[derive(Default)]
struct SeenFigures {
    samples: [u64; EVENTS.len()],
    total_ns: [u64; EVENTS.len()],
}

/// The thread that looks.
pub(super) struct Observer {
    seen: Arc<Mutex<SeenFigures>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Looks from now on.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start() -> std::io::Result<Observer> {
        let seen = Arc::new(Mutex::new(SeenFigures::default()));
        let (stop, stopped) = mpsc::channel::<()>();
        let of_thread = Arc::clone(&seen);
        let look = move || {
            let mut before = Instant::now();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let now = Instant::now();
                let passed_ns = (now - before).as_nanos() as u64;
                before = now;
                let mut seen = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                for event in clients().filter_map(|task| waiting_in(&task)) {
                    seen.samples[event] += 1;
                    seen.total_ns[event] += passed_ns;
                }
            }
        };
        let thread = std::thread::Builder::new().name("observer".to_owned());
        Ok(Observer {
            seen,
            stop: Some(stop),
            thread: Some(thread.spawn(look)?),
        })
    }

    /// Waits so far.
    pub fn waits(&self) -> Vec<EngineWait> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = |(event, name): (usize, &&'static str)| EngineWait {
            event: Cow::Borrowed(*name),
            count: seen.samples[event],
            total_ns: seen.total_ns[event],
            sampled: SampledWaits::default(),
        };
        EVENTS.iter().enumerate().map(wait).collect()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic but for a lock that another's panic has poisoned, and those it ignores.
            let _ = thread.join();
        }
    }
}

/// The directories of the clients' threads.
fn clients() -> impl Iterator<Item = PathBuf> {
    own_threads(&SystemTree::default(), CLIENT_THREADS).into_iter()
}

fn waiting_in(task: &Path) -> Option<usize> {
    let line = fs::read_to_string(task.join("syscall")).ok()?;
    event_of(&line, |descriptor| {
        let link = fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
        events_of_file(&link)
    })
}

/// What the clients have read and written so far, by the system's count of their calls.
pub(super) fn counts() -> IoCounts {
    clients().fold(IoCounts::default(), |sum, task| {
        let io = ProcessIo::of_directory(&task).unwrap_or_default();
        sum + IoCounts {
            reads: io.read_calls,
            writes: io.write_calls,
            read_bytes: io.read_call_bytes,
            write_bytes: io.write_call_bytes,
            ..IoCounts::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn event(line: &str) -> Option<&'static str> {
        let file = |descriptor| match descriptor {
            3 => events_of_file(Path::new("/x/spindle.db")),
            4 => events_of_file(Path::new("/x/spindle.db-wal")),
            5 => events_of_file(Path::new("/x/spindle.db-journal")),
            _ => events_of_file(Path::new("/x/other")),
        };
        event_of(line, file).map(|event| EVENTS[event])
    }

    #[test]
    fn calls_are_told_apart_by_number_and_file() {
        let line = |number: i64, descriptor: u64| format!("{number} {descriptor:#x} 0x1 0x2 0x3");
        assert_eq!(event(&line(libc::SYS_pread64, 3)), Some(EVENTS[0]));
        assert_eq!(event(&line(libc::SYS_fdatasync, 4)), Some(EVENTS[5]));
        assert_eq!(event(&line(libc::SYS_pwrite64, 5)), Some(EVENTS[4]));
        assert_eq!(event(&line(libc::SYS_pwrite64, 9)), Some(EVENTS[OTHER]));
        assert_eq!(
            event(&line(libc::SYS_clock_nanosleep, 0)),
            Some(EVENTS[BUSY])
        );
        assert_eq!(event(&line(libc::SYS_futex, 0)), None);
        assert_eq!(event("running\n"), None);
        assert_eq!(event(""), None);
    }

    #[test]
    fn a_client_that_waits_is_seen_waiting() {
        let observer = Observer::start().unwrap();
        let (began, has_seen) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let client = std::thread::Builder::new().name("client0".to_owned());
        let is_over = Arc::clone(&has_seen);
        let client = client.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        // On a busy machine the observer looks rarely.
        let busy = loop {
            let busy = observer.waits().swap_remove(BUSY);
            if busy.count >= 3 && busy.total_ns >= 100_000_000 {
                break busy;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{busy:?}");
            std::thread::sleep(INTERVAL);
        };
        assert!(
            u128::from(busy.total_ns) <= began.elapsed().as_nanos(),
            "{busy:?}"
        );
        has_seen.store(true, Ordering::Relaxed);
        client.unwrap().join().unwrap();
    }
}
