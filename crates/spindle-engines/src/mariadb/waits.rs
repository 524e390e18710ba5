//! What the server waited for, in the order in which results list it. Its own names stand in front, the nearest of
//! Oracle's behind them; what it calls a file or a stage is timed by performance_schema, in picoseconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use spindle_kernel::SampledWaits;

use crate::engine::EngineWait;

/// How often, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Time {
    pub count: u64,
    pub total_ns: u64,
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.count += other.count;
        self.total_ns += other.total_ns;
    }
}

/// Reads, writes and the rest (flushes above all) of one kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileTimes {
    pub read: Time,
    pub write: Time,
    pub other: Time,
}

impl AddAssign for FileTimes {
    fn add_assign(&mut self, other: FileTimes) {
        self.read += other.read;
        self.write += other.write;
        self.other += other.other;
    }
}

/// Instruments that are switched on.
pub(super) const DATA_FILE: &str = "wait/io/file/innodb/innodb_data_file";
pub(super) const LOG_FILE: &str = "wait/io/file/innodb/innodb_log_file";
pub(super) const TEMP_FILE: &str = "wait/io/file/innodb/innodb_temp_file";
pub(super) const IO_CACHE: &str = "wait/io/file/sql/io_cache";
pub(super) const COMMIT: &str = "stage/sql/Commit";
/// What MySQL calls otherwise: its name, and MariaDB's. MariaDB has its doublewrite buffer in a datafile.
pub(super) const OF_MYSQL: [(&str, &str); 2] = [
    ("stage/sql/waiting for handler commit", COMMIT),
    ("wait/io/file/innodb/innodb_dblwr_file", DATA_FILE),
];

/// A part of what files took.
type TimesPart = fn(&FileTimes) -> Time;
/// Events of files, each with its instrument and its part of that.
const OF_FILES: [(&str, &str, TimesPart); 9] = [
    (
        "innodb_data_file read (db file sequential read)",
        DATA_FILE,
        |data| data.read,
    ),
    (
        "innodb_data_file write (db file parallel write)",
        DATA_FILE,
        |data| data.write,
    ),
    ("innodb_data_file flush", DATA_FILE, |data| data.other),
    (
        "innodb_log_file write (log file parallel write)",
        LOG_FILE,
        |log| log.write,
    ),
    ("innodb_log_file flush", LOG_FILE, |log| log.other),
    (
        "innodb_temp_file read (direct path read temp)",
        TEMP_FILE,
        |temp| temp.read,
    ),
    (
        "innodb_temp_file write (direct path write temp)",
        TEMP_FILE,
        |temp| temp.write,
    ),
    ("io_cache read (direct path read temp)", IO_CACHE, |cache| {
        cache.read
    }),
    (
        "io_cache write (direct path write temp)",
        IO_CACHE,
        |cache| cache.write,
    ),
];
/// The same of sessions.
const OF_SESSIONS: [(&str, &str); 3] = [
    ("innodb_data_file read (db file sequential read)", DATA_FILE),
    ("innodb_temp_file (direct path write temp)", TEMP_FILE),
    ("io_cache (direct path write temp)", IO_CACHE),
];

/// What was found at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerFigures {
    /// `SHOW GLOBAL STATUS`, in small letters, numbers only.
    pub status: BTreeMap<String, u64>,
    /// Of the whole server, by instrument.
    pub files: BTreeMap<String, FileTimes>,
    /// Of sessions alone, by instrument; files are not told apart by reads and writes there.
    pub sessions: BTreeMap<String, Time>,
    /// Instruments that the server times. Of the others it would tell zeros.
    pub timed: BTreeSet<String>,
}

impl ServerFigures {
    pub fn number(&self, name: &str) -> u64 {
        self.told(name).unwrap_or(0)
    }

    /// What the server says of it; `None` when it says nothing.
    pub fn told(&self, name: &str) -> Option<u64> {
        self.status.get(name).copied()
    }

    fn files(&self, instrument: &str) -> FileTimes {
        self.files.get(instrument).copied().unwrap_or_default()
    }

    fn session(&self, instrument: &str) -> Time {
        self.sessions.get(instrument).copied().unwrap_or_default()
    }

    /// Of sessions and of threads in the background: what the server does not time is not among them.
    pub fn waits(&self) -> Vec<EngineWait> {
        let timed = OF_FILES.iter().filter(|of| self.timed.contains(of.1));
        let waits = timed.map(|(event, instrument, of)| wait(event, of(&self.files(instrument))));
        waits.chain(self.of_sessions_only()).collect()
    }

    /// Of sessions alone. They read datafiles and do not write them.
    pub fn session_waits(&self) -> Vec<EngineWait> {
        let timed = OF_SESSIONS.iter().filter(|of| self.timed.contains(of.1));
        let waits = timed.map(|(event, instrument)| wait(event, self.session(instrument)));
        waits.chain(self.of_sessions_only()).collect()
    }

    /// What only sessions wait for. Of the last two the server counts how often, and not how long.
    fn of_sessions_only(&self) -> impl Iterator<Item = EngineWait> {
        let time = |name: &str, total_ns: u64| {
            let count = self.told(name)?;
            Some(Time { count, total_ns })
        };
        // Every statement passes through that stage, those within a transaction in no time: only the time is the
        // commits'.
        let commits = time("com_commit", self.session(COMMIT).total_ns);
        let row_locks_ns = self.number("innodb_row_lock_time") * 1_000_000;
        [
            (
                "stage/sql/Commit (log file sync)",
                commits.filter(|_| self.timed.contains(COMMIT)),
            ),
            (
                "innodb_row_lock (enq: TX - row lock contention)",
                time("innodb_row_lock_waits", row_locks_ns),
            ),
            (
                "innodb_buffer_pool_wait_free (free buffer waits)",
                time("innodb_buffer_pool_wait_free", 0),
            ),
            (
                "innodb_log_waits (log buffer space)",
                time("innodb_log_waits", 0),
            ),
        ]
        .into_iter()
        .filter_map(|(event, time)| Some(wait(event, time?)))
    }
}

fn wait(event: &'static str, time: Time) -> EngineWait {
    EngineWait {
        event: Cow::Borrowed(event),
        count: time.count,
        total_ns: time.total_ns,
        sampled: SampledWaits::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(waits: Vec<EngineWait>) -> Vec<Cow<'static, str>> {
        waits.into_iter().map(|wait| wait.event).collect()
    }

    #[test]
    fn the_list_is_the_same_whatever_was_counted() {
        let timed = [DATA_FILE, LOG_FILE, TEMP_FILE, IO_CACHE, COMMIT];
        let counted = [
            "com_commit",
            "innodb_row_lock_waits",
            "innodb_buffer_pool_wait_free",
            "innodb_log_waits",
        ];
        let mut found = ServerFigures {
            timed: timed.map(str::to_owned).into(),
            status: counted.map(|name| (name.to_owned(), 0)).into(),
            ..ServerFigures::default()
        };
        let (all, of_sessions) = (names(found.waits()), names(found.session_waits()));
        assert_eq!((all.len(), of_sessions.len()), (13, 7));
        let read = Time {
            count: 3,
            total_ns: 5,
        };
        let of_data = FileTimes {
            read,
            ..FileTimes::default()
        };
        found.files.insert(DATA_FILE.to_owned(), of_data);
        found.sessions.insert(DATA_FILE.to_owned(), read);
        found.status.insert("innodb_row_lock_time".to_owned(), 2);
        found.status.insert("com_commit".to_owned(), 7);
        assert_eq!(names(found.waits()), all);
        assert_eq!(names(found.session_waits()), of_sessions);
        assert_eq!((found.waits()[0].count, found.waits()[0].total_ns), (3, 5));
        let locks = found.session_waits();
        assert_eq!((locks[3].count, locks[4].total_ns), (7, 2_000_000));
    }

    #[test]
    fn what_is_not_timed_is_no_wait_of_zero() {
        // MariaDB counts commits also where performance_schema is switched off, as it is by default.
        let mut found = ServerFigures::default();
        found.status.insert("com_commit".to_owned(), 7);
        found.status.insert("innodb_row_lock_waits".to_owned(), 1);
        let known = ["innodb_row_lock (enq: TX - row lock contention)"];
        assert_eq!(names(found.waits()), known);
        assert_eq!(names(found.session_waits()), known);
    }
}
