//! What the server's processes wait for. PostgreSQL does not time its waits; it shows what each process waits for at
//! the moment (`pg_stat_activity`), so a thread looks again and again. An event that `n` looks have seen counts `n`,
//! and the time between two looks for each. Names are PostgreSQL's with the nearest of Oracle's behind them
//! (https://www.postgresql.org/docs/current/monitoring-stats.html, "Wait Events").

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use crate::engine::EngineWait;
use crate::kernel::SampledWaits;

const INTERVAL: Duration = Duration::from_millis(100);
/// A session waits when it is in the middle of a call; other processes, when it is not for work.
const LOOK: &str = "select backend_type = 'client backend', wait_event_type, wait_event, count(*) \
     from pg_stat_activity \
     where wait_event is not null and wait_event_type <> 'Activity' and pid <> pg_backend_pid() \
     and (state = 'active' or backend_type <> 'client backend')";
/// Of the sessions those that are called as the one that asks, and come to the same database; of the others none that
/// serve a client.
const OWN: &str = "and (application_name = current_setting('application_name') and datname = current_database() \
     or backend_type not in ('client backend', 'parallel worker', 'walsender'))";
const GROUPED: &str = "group by 1, 2, 3";

/// Whose waits are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Everyone's.
    All,
    /// Those of sessions with the name of the one that looks, and of the server's own processes.
    Own,
}

/// Events by type and name, with the nearest of Oracle's. A list, so that two looks have the same events in the same
/// order.
const KNOWN: [(&str, &str, &str); 53] = [
    ("IO", "DataFileRead", "db file sequential read"),
    ("IO", "DataFilePrefetch", "db file scattered read"),
    ("IO", "AioIoCompletion", "db file scattered read"),
    ("IO", "AioIoUringExecution", "db file scattered read"),
    ("IPC", "AioIoCompletion", "db file scattered read"),
    ("IO", "DataFileWrite", "db file parallel write"),
    ("IO", "DataFileFlush", "db file parallel write"),
    ("IO", "DataFileSync", "db file parallel write"),
    ("IO", "DataFileImmediateSync", "db file single write"),
    ("IO", "DataFileExtend", "Data file init write"),
    ("IO", "DataFileTruncate", ""),
    ("IO", "WALWrite", "log file parallel write"),
    ("IO", "WALSync", "log file sync"),
    ("IO", "WALRead", "log file sequential read"),
    ("IO", "WALInitWrite", "log file switch completion"),
    ("IO", "WALInitSync", "log file switch completion"),
    ("LWLock", "WALWrite", "log file sync"),
    ("LWLock", "WALInsert", "latch: redo allocation"),
    ("LWLock", "WALBufMapping", "log buffer space"),
    ("IO", "BufFileRead", "direct path read temp"),
    ("IO", "BufFileWrite", "direct path write temp"),
    ("IO", "BufFileTruncate", ""),
    ("IO", "SLRURead", "db file sequential read"),
    ("IO", "SLRUWrite", "db file single write"),
    ("IO", "SLRUSync", "db file single write"),
    ("IO", "SLRUFlushSync", "db file single write"),
    ("IO", "ControlFileRead", "control file sequential read"),
    ("IO", "ControlFileSync", "control file parallel write"),
    ("IO", "ControlFileSyncUpdate", "control file parallel write"),
    ("IO", "ControlFileWrite", "control file parallel write"),
    (
        "IO",
        "ControlFileWriteUpdate",
        "control file parallel write",
    ),
    ("IO", "RelationMapRead", ""),
    ("IO", "VersionFileSync", ""),
    ("IPC", "BufferIO", "read by other session"),
    ("LWLock", "BufferContent", "buffer busy waits"),
    ("Buffer", "BufferExclusive", "buffer busy waits"),
    ("Buffer", "BufferShared", "buffer busy waits"),
    ("BufferPin", "BufferPin", "buffer busy waits"),
    ("LWLock", "BufferMapping", "latch: cache buffers chains"),
    ("LWLock", "ProcArray", ""),
    ("IPC", "ProcArrayGroupUpdate", ""),
    ("IPC", "XactGroupUpdate", ""),
    ("LWLock", "XactSLRU", ""),
    ("LWLock", "LockManager", ""),
    ("Lock", "transactionid", "enq: TX - row lock contention"),
    ("Lock", "tuple", "enq: TX - row lock contention"),
    ("Lock", "relation", "enq: TM - contention"),
    ("Lock", "extend", "enq: HW - contention"),
    ("IPC", "CheckpointDone", "checkpoint completed"),
    ("Client", "ClientRead", "SQL*Net more data from client"),
    ("Client", "ClientWrite", "SQL*Net more data to client"),
    ("Timeout", "CheckpointWriteDelay", ""),
    ("Timeout", "VacuumDelay", ""),
];
/// Those that are not in the list, by type.
const OTHERS: [&str; 8] = [
    "IO",
    "LWLock",
    "Lock",
    "IPC",
    "Client",
    "Timeout",
    "Extension",
    "others",
];
const EVENTS: usize = KNOWN.len() + OTHERS.len();

/// Looks that saw an event, of sessions alone and of all processes, and the time that they stand for.
#[derive(Clone, Copy, Default)]
struct EventLooks {
    sessions: (u64, u64),
    all: (u64, u64),
}

/// The thread that looks.
pub(super) struct WaitSampler {
    /// `None` where the server does not tell what its processes wait for.
    seen: Option<Arc<Mutex<[EventLooks; EVENTS]>>>,
    end: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WaitSampler {
    /// Looks through its own connection until it is stopped, or the server is gone. Errors: the system's.
    pub fn start(mut connection: PostgresConnection, whose: Whose) -> std::io::Result<WaitSampler> {
        let end = Arc::new(AtomicBool::new(false));
        let look_at = match whose {
            Whose::All => format!("{LOOK} {GROUPED}"),
            Whose::Own => format!("{LOOK} {OWN} {GROUPED}"),
        };
        // A user who may not ask, or a server that is no PostgreSQL, shows at the first look.
        let tried = connection.prepare(&[look_at]).and_then(|()| {
            look(
                &mut connection,
                &Mutex::new([EventLooks::default(); EVENTS]),
                0,
            )
        });
        if tried.is_err() {
            return Ok(WaitSampler {
                seen: None,
                end,
                thread: Mutex::new(None),
            });
        }
        let seen = Arc::new(Mutex::new([EventLooks::default(); EVENTS]));
        let (of_thread, told) = (Arc::clone(&seen), Arc::clone(&end));
        let thread = std::thread::Builder::new().name("waits".to_owned());
        let thread = thread.spawn(move || {
            let mut last = Instant::now();
            while !told.load(Ordering::Relaxed) {
                std::thread::park_timeout(INTERVAL.saturating_sub(last.elapsed()));
                if last.elapsed() < INTERVAL {
                    continue;
                }
                let between_ns = last.elapsed().as_nanos() as u64;
                last = Instant::now();
                if look(&mut connection, &of_thread, between_ns).is_err() {
                    return;
                }
            }
        })?;
        Ok(WaitSampler {
            seen: Some(seen),
            end,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What was seen of sessions alone, or of all processes.
    pub fn waits(&self, sessions_only: bool) -> Vec<EngineWait> {
        let Some(seen) = &self.seen else {
            return Vec::new();
        };
        let seen = *seen.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = seen.iter().enumerate().map(|(place, seen)| {
            let (count, total_ns) = if sessions_only {
                seen.sessions
            } else {
                seen.all
            };
            EngineWait {
                event: name_of(place),
                count,
                total_ns,
                sampled: SampledWaits::default(),
            }
        });
        waits.collect()
    }

    /// Ends the thread, and waits until it has ended.
    pub fn stop(&self) {
        self.end.store(true, Ordering::Relaxed);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            thread.thread().unpark();
            // A thread that panicked has nothing to tell that the panic did not.
            let _ = thread.join();
        }
    }
}

impl Drop for WaitSampler {
    fn drop(&mut self) {
        self.stop();
    }
}

fn look(
    connection: &mut PostgresConnection,
    seen: &Mutex<[EventLooks; EVENTS]>,
    between_ns: u64,
) -> Result<(), spindle_workload::SessionError> {
    let mut found = Vec::new();
    connection.query(0, &[], &mut |row| {
        let place = place_of(&row.text(1)?, &row.text(2)?);
        found.push((place, row.int(0)? != 0, row.int(3)?.unsigned_abs()));
        Ok(())
    })?;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, is_session, processes) in found {
        let add = |(count, total_ns): &mut (u64, u64)| {
            *count += processes;
            *total_ns += processes * between_ns;
        };
        add(&mut seen[place].all);
        if is_session {
            add(&mut seen[place].sessions);
        }
    }
    Ok(())
}

fn place_of(of_type: &str, event: &str) -> usize {
    let known = KNOWN
        .iter()
        .position(|(of, name, _)| *of == of_type && *name == event);
    known.unwrap_or_else(|| {
        let other = OTHERS.iter().position(|of| *of == of_type);
        KNOWN.len() + other.unwrap_or(OTHERS.len() - 1)
    })
}

fn name_of(place: usize) -> Cow<'static, str> {
    let Some((of_type, event, oracle)) = KNOWN.get(place) else {
        return match OTHERS[place - KNOWN.len()] {
            "others" => Cow::Borrowed("other waits"),
            of_type => Cow::Owned(format!("other waits: {of_type}")),
        };
    };
    // Events of input and output have their plain names; others may have the same.
    let name = match *of_type {
        "IO" => (*event).to_owned(),
        of_type => format!("{of_type}:{event}"),
    };
    match *oracle {
        "" => Cow::Owned(name),
        oracle => Cow::Owned(format!("{name} ({oracle})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = (0..EVENTS).map(name_of).collect();
        assert_eq!(names.len(), EVENTS);
        assert!(names.contains("DataFileRead (db file sequential read)"));
        assert!(names.contains("LWLock:WALWrite (log file sync)"));
    }

    #[test]
    fn unknown_events_are_counted_by_their_type() {
        assert_eq!(name_of(place_of("IO", "New")), "other waits: IO");
        assert_eq!(name_of(place_of("Strange", "New")), "other waits");
    }
}
