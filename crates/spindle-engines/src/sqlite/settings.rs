//! SQLite's settings: its pragmas, as far as they matter to storage (https://www.sqlite.org/pragma.html).

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use spindle_text::nearest::nearest;

use super::Database;
use super::vfs::Attached;
use crate::EngineError;
use crate::sql::ServerRequest;

/// How long a connection waits for a lock before it gives up: another's transaction, or a checkpoint.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Prepared statements that a connection keeps.
const STATEMENTS_MAX: usize = 256;

const JOURNAL_MODES: &[&str] = &["delete", "truncate", "persist", "wal", "memory", "off"];
const SYNCHRONOUS: &[&str] = &["off", "normal", "full", "extra"];
const LOCKING_MODES: &[&str] = &["normal", "exclusive"];
const TEMP_STORES: &[&str] = &["default", "file", "memory"];
const AUTO_VACUUM: &[&str] = &["none", "full", "incremental"];
const PAGE_SIZES: &[&str] = &[
    "512", "1024", "2048", "4096", "8192", "16384", "32768", "65536",
];
const FLAGS: &[&str] = &["on", "off"];
const NUMBER: &[&str] = &[];

/// Every pragma that may be set, with its values; none listed: any whole number.
const PRAGMAS: [(&str, &[&str]); 12] = [
    ("auto_vacuum", AUTO_VACUUM),
    ("cache_spill", FLAGS),
    ("checkpoint_fullfsync", FLAGS),
    ("foreign_keys", FLAGS),
    ("fullfsync", FLAGS),
    ("journal_mode", JOURNAL_MODES),
    ("journal_size_limit", NUMBER),
    ("locking_mode", LOCKING_MODES),
    ("mmap_size", NUMBER),
    ("page_size", PAGE_SIZES),
    ("synchronous", SYNCHRONOUS),
    ("temp_store", TEMP_STORES),
];
/// And one that is written with its number only.
const WAL_AUTOCHECKPOINT: &str = "wal_autocheckpoint";

/// Why it takes no access path.
pub(super) const NO_IO: &str = "SQLite reads and writes as it does, buffered and one call at a time: leave io out, or set mmap_size";

/// Pragmas, by name.
#[derive(Debug, Clone)]
pub(super) struct SqliteSettings {
    pragmas: BTreeMap<String, String>,
    /// Of one connection, KiB.
    cache_kib: u64,
}

impl SqliteSettings {
    /// What is asked for, checked; what is left out is SQLite's own default, but for `journal_mode`, which is `wal`,
    /// and `synchronous`, which is `full`: a commit that returns is kept.
    ///
    /// # Errors
    /// `Unavailable`: no such pragma, or no such value.
    pub fn of(request: &ServerRequest) -> Result<SqliteSettings, EngineError> {
        if request.io.is_some() {
            return Err(EngineError::refused(NO_IO.to_owned()));
        }
        let mut pragmas = BTreeMap::from([
            ("journal_mode".to_owned(), "wal".to_owned()),
            ("synchronous".to_owned(), "full".to_owned()),
        ]);
        for (name, value) in &request.settings {
            check(name, value)?;
            pragmas.insert(name.clone(), value.to_lowercase());
        }
        let clients = u64::from(request.clients.max(1));
        Ok(SqliteSettings {
            pragmas,
            cache_kib: (request.buffer_cache_bytes / clients / 1024).max(1),
        })
    }

    /// For loading: durable when it is closed.
    pub fn load(&mut self) {
        self.pragmas
            .insert("synchronous".to_owned(), "off".to_owned());
    }

    /// `name = value`, in words.
    pub fn described(&self) -> Vec<String> {
        let pragmas = self.pragmas.iter();
        let cache = format!("cache_size = {} KiB a connection", self.cache_kib);
        pragmas
            .map(|(name, value)| format!("{name} = {value}"))
            .chain([cache])
            .collect()
    }

    /// Makes the database of a new file: what shapes it must be said before there is anything in it.
    pub fn make(&self, connection: &Connection) -> rusqlite::Result<()> {
        for name in ["page_size", "auto_vacuum"] {
            if let Some(value) = self.pragmas.get(name) {
                connection.pragma_update(None, name, value)?;
            }
        }
        connection.execute_batch("create table made (at integer); drop table made;")
    }

    /// Opens the database.
    ///
    /// # Errors
    /// `Failed`.
    pub fn open(&self, database: &Database) -> Result<Connection, EngineError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match &database.device {
            None => Connection::open_with_flags(&database.path, flags),
            Some(device) => device.connect(flags),
        };
        let set = opened.and_then(|connection| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            if let Some(device) = &database.device {
                connection.pragma_update(None, "max_page_count", device.pages_max() as i64)?;
            }
            connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            connection.pragma_update(None, "cache_size", -(self.cache_kib as i64))?;
            for (name, value) in &self.pragmas {
                match value.parse::<i64>() {
                    Ok(number) => connection.pragma_update(None, name, number)?,
                    Err(_) => connection.pragma_update(None, name, value)?,
                }
            }
            Ok(connection)
        });
        set.map_err(|error| {
            let what = format!("opening {}", database.path.display());
            match database.device.as_ref().and_then(Attached::failure) {
                None => EngineError::failed(what, error),
                Some(failure) => EngineError::failed(what, format!("{error}: {failure}")),
            }
        })
    }
}

/// What is wrong with a pragma or its value.
pub(super) fn check(name: &str, value: &str) -> Result<(), EngineError> {
    let names = || {
        let names = PRAGMAS.iter().map(|(name, _)| *name);
        names.chain([WAL_AUTOCHECKPOINT])
    };
    let found = PRAGMAS.iter().find(|(known, _)| *known == name);
    let allowed = match (found, name) {
        (Some((_, values)), _) => *values,
        (None, WAL_AUTOCHECKPOINT) => NUMBER,
        (None, "cache_size") => {
            return Err(EngineError::refused(
                "buffer_cache in [database], or in database of a layout, says it: its connections share that much",
            ));
        }
        (None, _) => {
            let instead = match nearest(name, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", names().collect::<Vec<_>>().join(", ")),
            };
            return Err(EngineError::refused(format!(
                "SQLite has no setting {name:?} here; {instead}"
            )));
        }
    };
    let is_allowed = match allowed {
        [] => value.parse::<i64>().is_ok(),
        words => words.contains(&value.to_lowercase().as_str()),
    };
    if is_allowed {
        return Ok(());
    }
    let words = match allowed {
        [] => "a whole number".to_owned(),
        words => words.join(", "),
    };
    let near = nearest(&value.to_lowercase(), allowed.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    Err(EngineError::refused(format!(
        "SQLite does not accept {name} = {value}; allowed: {words}{near}"
    )))
}
