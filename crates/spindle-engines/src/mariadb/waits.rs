//! What the server waited for, in the order in which results list it. Its own names stand in front, the nearest of
//! Oracle's behind them; what it calls a file or a stage is timed by performance_schema, in picoseconds.

use std::borrow::Cow;
use std::collections::BTreeMap;
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

/// What was found at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// `SHOW GLOBAL STATUS`, in small letters, numbers only.
    pub status: BTreeMap<String, u64>,
    /// Of the whole server, by instrument.
    pub files: BTreeMap<String, FileTimes>,
    /// Of sessions alone, by instrument; files are not told apart by reads and writes there.
    pub sessions: BTreeMap<String, Time>,
}

impl Found {
    pub fn number(&self, name: &str) -> u64 {
        self.status.get(name).copied().unwrap_or(0)
    }

    fn files(&self, instrument: &str) -> FileTimes {
        self.files.get(instrument).copied().unwrap_or_default()
    }

    fn session(&self, instrument: &str) -> Time {
        self.sessions.get(instrument).copied().unwrap_or_default()
    }

    /// Of sessions and of threads in the background.
    pub fn waits(&self) -> Vec<EngineWait> {
        let (data, log) = (self.files(DATA_FILE), self.files(LOG_FILE));
        let (temp, cache) = (self.files(TEMP_FILE), self.files(IO_CACHE));
        let mut waits = vec![
            wait("innodb_data_file read (db file sequential read)", data.read),
            wait(
                "innodb_data_file write (db file parallel write)",
                data.write,
            ),
            wait("innodb_data_file flush", data.other),
            wait("innodb_log_file write (log file parallel write)", log.write),
            wait("innodb_log_file flush", log.other),
            wait("innodb_temp_file read (direct path read temp)", temp.read),
            wait(
                "innodb_temp_file write (direct path write temp)",
                temp.write,
            ),
            wait("io_cache read (direct path read temp)", cache.read),
            wait("io_cache write (direct path write temp)", cache.write),
        ];
        waits.extend(self.of_sessions_only());
        waits
    }

    /// Of sessions alone. They read datafiles and do not write them.
    pub fn session_waits(&self) -> Vec<EngineWait> {
        let mut waits = vec![
            wait(
                "innodb_data_file read (db file sequential read)",
                self.session(DATA_FILE),
            ),
            wait(
                "innodb_temp_file (direct path write temp)",
                self.session(TEMP_FILE),
            ),
            wait("io_cache (direct path write temp)", self.session(IO_CACHE)),
        ];
        waits.extend(self.of_sessions_only());
        waits
    }

    /// What only sessions wait for. Of the last two the server counts how often, and not how long.
    fn of_sessions_only(&self) -> [EngineWait; 4] {
        let counted = |name| Time {
            count: self.number(name),
            total_ns: 0,
        };
        let row_locks = Time {
            count: self.number("innodb_row_lock_waits"),
            total_ns: self.number("innodb_row_lock_time") * 1_000_000,
        };
        // Every statement passes through that stage, those within a transaction in no time: only the time is the
        // commits'.
        let commits = Time {
            count: self.number("com_commit"),
            total_ns: self.session(COMMIT).total_ns,
        };
        [
            wait("stage/sql/Commit (log file sync)", commits),
            wait("innodb_row_lock (enq: TX - row lock contention)", row_locks),
            wait(
                "innodb_buffer_pool_wait_free (free buffer waits)",
                counted("innodb_buffer_pool_wait_free"),
            ),
            wait(
                "innodb_log_waits (log buffer space)",
                counted("innodb_log_waits"),
            ),
        ]
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

    #[test]
    fn the_list_is_the_same_whatever_was_found() {
        let names = |waits: Vec<EngineWait>| -> Vec<_> {
            waits.into_iter().map(|wait| wait.event).collect()
        };
        let mut found = Found::default();
        let (all, of_sessions) = (names(found.waits()), names(found.session_waits()));
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
}
