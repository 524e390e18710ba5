//! SQLite, within this process: a database is one file, or lies on a raw device, and every client is a connection on
//! its own thread.

mod connection;
mod elsewhere;
mod observer;
mod raw;
mod restore;
mod settings;
#[cfg_attr(not(feature = "sqlite-devices"), path = "without_vfs.rs")]
mod vfs;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use spindle_layout::{KnownDevice, RawDevice, TreeDirectories};
use spindle_text::file_kind::FileKind;
use spindle_text::load_file::Dump;
use spindle_text::vocabulary;
use spindle_workload::SessionError;
use spindle_workload::sql::{Dialect, SqlConnection};

use crate::EngineError;
use crate::engine::{Counters, EngineCounts, EngineWait, SegmentSize};
use crate::promise::{self, CommitStorage, Promise};
use crate::sql::restore::failed;
use crate::sql::{
    ComparableSettings, FoundServer, InDiskGroup, OnRawDevices, Purpose, RunningServer, Server,
    ServerIo, ServerRequest, ServerRoom, ServerStop,
};
use connection::SqliteConnection;
use observer::Observer;
use settings::SqliteSettings;
use vfs::Attached;

/// Memory of a connection beside its cache, about: statements, and what SQLite allocates for each.
const CONNECTION_BYTES: u64 = 2 << 20;
/// What Spindle's own process takes, about: its program, and the sorts and temporary indexes of queries.
const PROCESS_BYTES: u64 = 48 << 20;

/// SQLite.
pub struct Sqlite;

/// The database's file in the data directory.
const FILE: &str = "spindle.db";

fn database_file(directories: &TreeDirectories) -> PathBuf {
    directories.data.join(FILE)
}

/// Where a database is.
struct Database {
    path: PathBuf,
    /// When it lies on a device, or in a disk group.
    device: Option<Attached>,
}

impl Database {
    /// The one in these directories.
    ///
    /// # Errors
    /// [`EngineError`]: it lies on a device that cannot be opened, or not by this program.
    fn of(directories: &TreeDirectories) -> Result<Database, EngineError> {
        let path = database_file(directories);
        let elsewhere = raw::elsewhere(directories, &path)?;
        let device = elsewhere.map(|elsewhere| Attached::open(&path, &elsewhere));
        let device = device.transpose()?;
        Ok(Database { path, device })
    }
}

impl Server for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn is_library(&self) -> bool {
        true
    }

    fn file_words(&self) -> &'static [(FileKind, &'static str)] {
        &[(FileKind::Redo, vocabulary::SQLITE.log)]
    }

    fn comparisons(&self) -> &'static [ComparableSettings] {
        &[ComparableSettings {
            word: "journal",
            says: "rollback journal or write-ahead log, flushed at each commit or not",
            asks: "which is faster, a rollback journal or a write-ahead log, flushed at each commit or not",
            settings: &[
                ("settings.journal_mode", &["wal", "delete"]),
                ("settings.synchronous", &["full", "normal"]),
            ],
        }]
    }

    fn examine(&self, request: &ServerRequest) -> Result<FoundServer, EngineError> {
        let settings = SqliteSettings::of(request)?;
        Ok(FoundServer {
            version: format!("SQLite {}", rusqlite::version()),
            settings: settings.described(),
            notes: vec![
                "SQLite has a cache in every connection: the buffer cache is divided among the clients".to_owned(),
            ],
        })
    }

    fn examine_dump(
        &self,
        request: &ServerRequest,
        dump: &Dump,
    ) -> Result<Vec<String>, EngineError> {
        restore::examine(request, dump).map(|()| Vec::new())
    }

    fn check_setting(&self, name: &str, value: &str) -> Result<(), EngineError> {
        settings::check(name, value)
    }

    fn check_io(&self, _: ServerIo, is_on_devices: bool) -> Result<(), EngineError> {
        match is_on_devices {
            // There its reads and writes go by way of Spindle.
            true => Ok(()),
            false => Err(EngineError::refused(settings::NO_IO)),
        }
    }

    fn placed_kinds(&self) -> &'static [FileKind] {
        &[FileKind::Temp]
    }

    fn on_raw_devices(
        &self,
        request: &ServerRequest,
        devices: &[RawDevice],
    ) -> Result<OnRawDevices, EngineError> {
        raw::on_raw_devices(request, devices, FILE)
    }

    fn in_disk_group(
        &self,
        request: &ServerRequest,
        disks: &[KnownDevice],
    ) -> Result<InDiskGroup, EngineError> {
        let bytes = request.data_bytes + self.room(request).total_bytes();
        raw::in_disk_group(request, disks, FILE, bytes)
    }

    fn shapes_files(&self, setting: &str) -> bool {
        matches!(setting, "page_size" | "auto_vacuum" | "encoding")
    }

    fn room(&self, request: &ServerRequest) -> ServerRoom {
        ServerRoom {
            own_bytes: 0,
            redo_bytes: 0,
            // A log that no checkpoint gets to the end of may grow as long as the data.
            growth_bytes: request.data_bytes,
        }
    }

    fn overhead_bytes(&self, request: &ServerRequest) -> u64 {
        PROCESS_BYTES + u64::from(request.clients) * CONNECTION_BYTES
    }

    fn create(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<(), EngineError> {
        let settings = SqliteSettings::of(request)?;
        let made = Connection::open(database_file(directories));
        let made = made.and_then(|connection| settings.make(&connection));
        made.map_err(|error| EngineError::failed("making the database", error))
    }

    fn start(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError> {
        let mut settings = SqliteSettings::of(request)?;
        if purpose == Purpose::Load {
            settings.load();
        }
        let database = Database::of(directories)?;
        let first = settings.open(&database)?;
        // For every connection of this process, which are those of this database.
        let placed = first.pragma_update(None, "temp_store_directory", directories.temp.to_str());
        placed.map_err(|error| EngineError::failed("placing temporary files", error))?;
        let observer = Observer::start()
            .map_err(|error| EngineError::failed("starting the thread that observes", error))?;
        Ok(Arc::new(RunningSqlite {
            settings,
            open: Mutex::new(Some(Open { first, database })),
            observer,
        }))
    }

    fn verify(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<String, EngineError> {
        let database = Database::of(directories)?;
        let connection = SqliteSettings::of(request)?.open(&database)?;
        let answer: rusqlite::Result<String> =
            connection.query_row("pragma integrity_check", [], |row| row.get(0));
        match answer {
            Ok(answer) if answer == "ok" => Ok("integrity_check found nothing wrong".to_owned()),
            Ok(answer) => Err(EngineError::failed("integrity_check", answer)),
            Err(error) => Err(EngineError::failed("integrity_check", error)),
        }
    }
}

/// A database that is open.
struct RunningSqlite {
    settings: SqliteSettings,
    /// Gone when it was stopped.
    open: Mutex<Option<Open>>,
    observer: Observer,
}

struct Open {
    /// Holds the database open, so that a client that ends does not close its log.
    first: Connection,
    database: Database,
}

impl RunningSqlite {
    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(&self, what: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Option<T> {
        let open = self.open();
        open.as_ref().and_then(|open| what(&open.first).ok())
    }
}

impl Counters for RunningSqlite {
    fn counts(&self) -> Option<EngineCounts> {
        let open = self.open();
        let device = open.as_ref().and_then(|open| open.database.device.as_ref());
        Some(match device {
            Some(device) => device.counts(),
            // The system counts calls and not their files: redo is among them.
            None => EngineCounts {
                data: observer::counts(),
                ..EngineCounts::default()
            },
        })
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.observer.waits()
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.observer.waits()
    }

    fn waits_are_sampled(&self) -> bool {
        true
    }

    fn segments(&self) -> Vec<SegmentSize> {
        let sizes = |connection: &Connection| {
            let mut statement =
                connection.prepare("select name, sum(pgsize) from dbstat group by name")?;
            let size = |row: &rusqlite::Row<'_>| {
                Ok(SegmentSize {
                    name: row.get(0)?,
                    extents: 1,
                    bytes: row.get::<_, i64>(1)?.unsigned_abs(),
                })
            };
            statement.query_map([], size)?.collect()
        };
        self.ask(sizes).unwrap_or_default()
    }

    fn promise(&self, storage: &CommitStorage, sent: &[String]) -> Promise {
        let value = |connection: &Connection, name: &str| {
            connection.pragma_query_value(None, name, |row| {
                Ok(match row.get_ref(0)? {
                    ValueRef::Integer(number) => number.to_string(),
                    value => value.as_str()?.to_lowercase(),
                })
            })
        };
        // Every connection is opened as the first one was.
        let told = promise::sqlite::ASKED.iter().filter_map(|name| {
            let value = self.ask(|connection| value(connection, name))?;
            Some(((*name).to_owned(), value))
        });
        let set = promise::scripts::set_by(Dialect::Sqlite, sent);
        promise::scripts::weakest(&told.collect(), &set, |settings| {
            promise::sqlite::promise(settings, storage)
        })
    }

    fn warnings(&self) -> Vec<String> {
        let open = self.open();
        let device = open.as_ref().and_then(|open| open.database.device.as_ref());
        device.and_then(Attached::failure).into_iter().collect()
    }
}

impl RunningServer for RunningSqlite {
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let open = self.open();
        let open = open
            .as_ref()
            .ok_or_else(|| SessionError::Failed("the database was stopped".to_owned()))?;
        let connection = self.settings.open(&open.database);
        let connection = connection.map_err(|error| SessionError::Failed(error.to_string()))?;
        Ok(Box::new(SqliteConnection::new(connection)))
    }

    fn restore(&self, dump: &Dump, interrupted: &AtomicBool) -> Result<(), EngineError> {
        let mut open = self.open();
        let open = open
            .as_mut()
            .ok_or_else(|| failed(dump, "the database was stopped"))?;
        restore::restore(&mut open.first, dump, interrupted)
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        connection.run("analyze")?;
        Ok(())
    }

    fn stop(&self, _: ServerStop) -> Result<(), EngineError> {
        let open = self.open().take();
        match open {
            None => Ok(()),
            Some(open) => open
                .first
                .close()
                .map_err(|(_, error)| EngineError::failed("closing the database", error)),
        }
    }
}
