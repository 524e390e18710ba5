//! Asks a running server what it has counted, on its own connection. What was found is kept for a moment: one look
//! serves those who ask for counts, for waits and for changed blocks one after the other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::connection::Access;
use super::hindrances::LIFT_LIMITS;
use super::waits::{
    COMMIT, DATA_FILE, FileTimes, IO_CACHE, LOG_FILE, OF_MYSQL, ServerFigures, TEMP_FILE, Time,
};
use crate::EngineError;
use crate::engine::{CacheCounts, EngineCounts, SegmentSize};
use spindle_io::real::IoCounts;
use spindle_workload::SessionError;

/// What was found is good for this long.
const GOOD_FOR: Duration = Duration::from_millis(100);
/// A server that does not answer for this long is left alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// The one who counts.
pub(super) struct Monitor {
    looking: Mutex<Looking>,
}

struct Looking {
    /// `None` when the server no longer answers.
    connection: Option<Conn>,
    found: ServerFigures,
    /// Whether `found` is what the server said when it was last asked.
    answers: bool,
    at: Option<Instant>,
}

impl Monitor {
    /// Connects it.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn new(access: &Access) -> Result<Monitor, SessionError> {
        let mut connection = access.connect_for(PATIENCE)?;
        // It waits between its looks. Others that speak the protocol may know no such limits.
        let _ = connection.query_drop(LIFT_LIMITS);
        let found = ServerFigures {
            timed: as_far_as_allowed(connection.query(format!(
                "select name from performance_schema.setup_instruments where enabled = 'YES' and timed = 'YES' \
                 and name in {}",
                instruments()
            )))
            .map_err(|error| SessionError::Lost(error.to_string()))?
            .into_iter()
            .map(as_mariadb_says)
            .collect(),
            ..ServerFigures::default()
        };
        let looking = Looking {
            connection: Some(connection),
            found,
            answers: false,
            at: None,
        };
        Ok(Monitor {
            looking: Mutex::new(looking),
        })
    }

    /// Asks on its connection; `None` when the server does not answer.
    fn ask<T>(&self, what: impl FnOnce(&mut Conn) -> mysql::Result<T>) -> Option<T> {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        looking.ask(what)
    }

    /// What was found just now, or last.
    pub fn found(&self) -> ServerFigures {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        looking.look_again();
        looking.found.clone()
    }

    /// What the server reads and writes; `None` when it does not tell, or no longer.
    pub fn counts(&self) -> Option<EngineCounts> {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        looking.look_again();
        looking.answers.then(|| counts(&looking.found))?
    }

    /// The threads of the system that serve clients.
    pub fn session_threads(&self) -> Vec<u32> {
        let threads = self.ask(|connection| {
            connection.query(
                "select thread_os_id from performance_schema.threads where type = 'FOREGROUND' \
                 and processlist_id <> connection_id() and thread_os_id is not null",
            )
        });
        threads.unwrap_or_default()
    }

    /// Tables and indexes of a database, as its statistics have them.
    pub fn segments(&self, database: &str) -> Vec<SegmentSize> {
        let sizes: Option<Vec<(String, String, u64)>> = self.ask(|connection| {
            connection.exec(
                "select table_name, index_name, stat_value * @@innodb_page_size from mysql.innodb_index_stats \
                 where stat_name = 'size' and database_name = ? order by table_name, index_name",
                (database,),
            )
        });
        let sizes = sizes.unwrap_or_default().into_iter();
        sizes
            .map(|(table, index, bytes)| SegmentSize {
                // The table is its first index.
                name: match index.as_str() {
                    "PRIMARY" | "GEN_CLUST_INDEX" => table,
                    _ => format!("{table}.{index}"),
                },
                extents: 1,
                bytes,
            })
            .collect()
    }

    /// Tables of a database with their indexes, as any user may see them.
    pub fn tables_with_sizes(&self, database: &str) -> Vec<SegmentSize> {
        let sizes: Option<Vec<(String, u64)>> = self.ask(|connection| {
            connection.exec(
                "select table_name, cast(coalesce(data_length + index_length, 0) as unsigned) from information_schema.tables \
                 where table_schema = ? and table_type = 'BASE TABLE' order by table_name",
                (database,),
            )
        });
        let sizes = sizes.unwrap_or_default().into_iter();
        let segment = |(name, bytes)| SegmentSize {
            name,
            extents: 1,
            bytes,
        };
        sizes.map(segment).collect()
    }

    /// The names of a database's tables.
    ///
    /// # Errors
    /// `Failed`; so for the others.
    pub fn tables(&self, database: &str) -> Result<Vec<String>, EngineError> {
        let tables = self.ask(|connection| {
            connection.exec(
                "select table_name from information_schema.tables where table_schema = ? \
                 and table_type = 'BASE TABLE' order by table_name",
                (database,),
            )
        });
        tables
            .ok_or_else(|| EngineError::failed("listing the tables", "the server does not answer"))
    }
}

impl Looking {
    fn look_again(&mut self) {
        if self.at.is_none_or(|at| at.elapsed() > GOOD_FOR) {
            let seen = self.ask(look);
            self.answers = seen.is_some();
            if let Some(seen) = seen {
                self.found = ServerFigures {
                    timed: std::mem::take(&mut self.found.timed),
                    ..seen
                };
            }
            self.at = Some(Instant::now());
        }
    }

    fn ask<T>(&mut self, what: impl FnOnce(&mut Conn) -> mysql::Result<T>) -> Option<T> {
        let answer = what(self.connection.as_mut()?);
        if matches!(answer, Err(mysql::Error::IoError(_))) {
            self.connection = None;
        }
        answer.ok()
    }
}

/// Not everyone may see performance_schema, nor has everyone one: what it would tell is not known then.
fn as_far_as_allowed<T>(answer: mysql::Result<Vec<T>>) -> mysql::Result<Vec<T>> {
    match answer {
        Err(mysql::Error::MySqlError(_)) => Ok(Vec::new()),
        answer => answer,
    }
}

fn look(connection: &mut Conn) -> mysql::Result<ServerFigures> {
    let mut status = BTreeMap::new();
    for names in ["innodb\\_%", "com\\_commit"] {
        let listed: Vec<(String, String)> =
            connection.query(format!("show global status like '{names}'"))?;
        let numbers = listed.into_iter();
        status.extend(numbers.filter_map(|(name, value)| {
            let number = value.parse::<u64>().ok()?;
            Some((name.to_lowercase(), number))
        }));
    }
    let instruments = instruments();
    let listed: Vec<(String, u64, u64, u64, u64, u64, u64)> =
        as_far_as_allowed(connection.query(format!(
            "select event_name, count_read, sum_timer_read, count_write, sum_timer_write, count_misc, sum_timer_misc \
             from performance_schema.file_summary_by_event_name where event_name in {instruments}"
        )))?;
    let mut files = BTreeMap::<String, FileTimes>::new();
    for (name, reads, read, writes, write, others, other) in listed {
        *files.entry(as_mariadb_says(name)).or_default() += FileTimes {
            read: time(reads, read),
            write: time(writes, write),
            other: time(others, other),
        };
    }
    let mut sessions = BTreeMap::<String, Time>::new();
    // Each connection has a user, here the same for all; background threads have none.
    for kind in ["waits", "stages"] {
        let of_kind: Vec<(String, u64, u64)> = as_far_as_allowed(connection.query(format!(
            "select event_name, count_star, sum_timer_wait \
             from performance_schema.events_{kind}_summary_by_user_by_event_name \
             where user = substring_index(user(), '@', 1) and event_name in {instruments}"
        )))?;
        for (name, count, picoseconds) in of_kind {
            *sessions.entry(as_mariadb_says(name)).or_default() += time(count, picoseconds);
        }
    }
    Ok(ServerFigures {
        status,
        files,
        sessions,
        ..ServerFigures::default()
    })
}

/// The instruments that are asked for, as a list of SQL.
fn instruments() -> String {
    let own = [DATA_FILE, LOG_FILE, TEMP_FILE, IO_CACHE, COMMIT];
    let names: Vec<String> = own
        .into_iter()
        .chain(OF_MYSQL.map(|(name, _)| name))
        .map(|name| format!("'{name}'"))
        .collect();
    format!("({})", names.join(", "))
}

fn as_mariadb_says(name: String) -> String {
    match OF_MYSQL.iter().find(|(of_mysql, _)| *of_mysql == name) {
        Some((_, of_mariadb)) => (*of_mariadb).to_owned(),
        None => name,
    }
}

fn time(count: u64, picoseconds: u64) -> Time {
    Time {
        count,
        total_ns: picoseconds / 1000,
    }
}

/// Data and redo apart. Older MariaDB and MySQL count redo as data as well, and its flushes too: there it is taken off.
fn counts(found: &ServerFigures) -> Option<EngineCounts> {
    found.told("innodb_data_writes")?;
    let of = |name: &str| found.number(name);
    let redo = IoCounts {
        writes: of("innodb_log_writes"),
        write_bytes: of("innodb_os_log_written"),
        flushes: of("innodb_os_log_fsyncs"),
        ..IoCounts::default()
    };
    let counts_twice = found.status.contains_key("innodb_os_log_fsyncs");
    let (writes, bytes, flushes) = match counts_twice {
        true => (redo.writes, redo.write_bytes, redo.flushes),
        false => (0, 0, 0),
    };
    let data = IoCounts {
        reads: of("innodb_data_reads"),
        read_bytes: of("innodb_data_read"),
        writes: of("innodb_data_writes").saturating_sub(writes),
        write_bytes: (of("innodb_data_written") + uncounted_page_bytes(found))
            .saturating_sub(bytes),
        flushes: of("innodb_data_fsyncs").saturating_sub(flushes),
        ..IoCounts::default()
    };
    Some(EngineCounts {
        data,
        redo,
        ..EngineCounts::default()
    })
}

/// Pages looked for in the buffer pool; those read ahead were not waited for.
pub(super) fn cache(found: &ServerFigures) -> Option<CacheCounts> {
    let name = "innodb_buffer_pool_read_requests";
    let missed = found.number("innodb_buffer_pool_reads");
    found.status.contains_key(name).then(|| CacheCounts {
        wanted: found.number(name),
        missed,
        read_in: missed + found.number("innodb_buffer_pool_read_ahead"),
        block_bytes: found.number("innodb_page_size"),
    })
}

/// MySQL with the redo log of 8.0.30 counts the bytes of redo and of the doublewrite buffer, and not those of pages
/// that it writes asynchronously (seen in 9.7): these are as many as the pages.
fn uncounted_page_bytes(found: &ServerFigures) -> u64 {
    let of = |name: &str| found.number(name);
    let page_bytes = of("innodb_page_size");
    let pages_bytes = of("innodb_pages_written") * page_bytes;
    let others_bytes = of("innodb_os_log_written") + of("innodb_dblwr_pages_written") * page_bytes;
    let counts_pages = of("innodb_data_written") >= others_bytes + pages_bytes / 2;
    match found.status.contains_key("innodb_redo_log_current_lsn") && !counts_pages {
        true => pages_bytes,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(status: &[(&str, u64)]) -> ServerFigures {
        let status = status.iter();
        ServerFigures {
            status: status
                .map(|(name, value)| (name.to_string(), *value))
                .collect(),
            ..ServerFigures::default()
        }
    }

    #[test]
    fn redo_is_no_data() {
        let newer = [("innodb_data_writes", 10), ("innodb_log_writes", 4)];
        let counted = counts(&found(&newer)).expect("told");
        assert_eq!((counted.data.writes, counted.redo.writes), (10, 4));
        let older = [newer[0], newer[1], ("innodb_os_log_fsyncs", 1)];
        let counted = counts(&found(&older)).expect("told");
        assert_eq!((counted.data.writes, counted.redo.writes), (6, 4));
    }

    #[test]
    fn counts_that_are_not_told_are_unknown() {
        assert_eq!(counts(&found(&[])), None);
        assert_eq!(counts(&found(&[("innodb_page_size", 16_384)])), None);
    }

    #[test]
    fn pages_that_mysql_leaves_out_are_added() {
        let written = |status: &[(&str, u64)]| {
            let counted = counts(&found(status)).expect("told");
            counted.data.write_bytes
        };
        let mut status = vec![
            ("innodb_data_writes", 1),
            ("innodb_page_size", 10),
            ("innodb_os_log_fsyncs", 1),
            ("innodb_os_log_written", 30),
            ("innodb_dblwr_pages_written", 4),
            ("innodb_pages_written", 5),
            ("innodb_data_written", 75),
        ];
        assert_eq!(written(&status), 45);
        status.push(("innodb_redo_log_current_lsn", 1));
        assert_eq!(written(&status), 45 + 50);
        status[6].1 += 50;
        assert_eq!(written(&status), 95);
    }
}
