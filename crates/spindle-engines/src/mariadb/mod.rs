//! MariaDB, and MySQL by the same means: a server that Spindle makes in its own directories, starts for a trial and
//! ends after it. `programs` finds it, `settings` and `check` say what it is started with, `instance` makes and starts
//! it, `raw` has its datafiles on raw devices; `connection`, `values` and `load` are the client; `restore` loads dumps,
//! `copied` makes a database of another's files; `monitor` and `waits` what is counted. `foreign` is an existing one,
//! `hindrances` what keeps a run there from its end.

mod check;
mod connection;
mod copied;
mod foreign;
mod hindrances;
mod instance;
mod kept;
mod load;
mod monitor;
mod prepared;
mod programs;
mod raw;
mod restore;
mod running;
mod settings;
mod survey;
mod tables;
mod values;
mod waits;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_layout::{RawDevice, TreeDirectories};
use spindle_text::file_kind::FileKind;
use spindle_text::load_file::Dump;
use spindle_text::vocabulary;
use spindle_workload::sql::Dialect;

use crate::EngineError;
use crate::sql::account::Account;
use crate::sql::{
    ComparableSettings, FoundServer, OnRawDevices, Purpose, RunningServer, Server, ServerIo,
    ServerRequest, ServerRoom, ServerStop,
};
use connection::DATABASE;
use instance::Instance;
use programs::{Make, Programs};
use running::RunningMariaDb;
use settings::MariaDbSettings;

/// Memory of the server beside its buffer pool, as seen in 10.11 and in 9.7: programs (25 and 50 MiB, which the system
/// holds as page cache), dictionary, performance_schema. What is too much here, a buffered case gets as page cache.
const MARIADB_BYTES: u64 = 160 << 20;
const MYSQL_BYTES: u64 = 350 << 20;
/// And of each session: its stack, its buffers, its share of caches.
const SESSION_BYTES: u64 = 1 << 20;
/// The server's own files: system tablespace, undo, temporary tablespace, dictionary.
const OWN_BYTES: u64 = 96 << 20;
/// What they grow by in a trial beside the data: undo, temporary tables.
const GROWTH_BYTES: u64 = 64 << 20;

/// Users that a server may run as when Spindle is root, the better first.
const USERS: [&str; 2] = ["mysql", "nobody"];
/// What is said where none of them exists.
const NO_USER: &str =
    "the server must not run as root, and there is neither a user mysql nor nobody";

/// MariaDB and MySQL.
pub struct MariaDb;

impl MariaDb {
    fn start_server(
        request: &ServerRequest,
        directories: &TreeDirectories,
        purpose: Purpose,
    ) -> Result<Arc<RunningMariaDb>, EngineError> {
        let programs = Programs::find(request.bin_dir.as_deref())?;
        let account = Account::of_servers(&USERS, NO_USER)?;
        let mut settings = MariaDbSettings::of(request, &programs)?;
        settings.purpose(purpose, request);
        settings.find_raw_files(directories)?;
        let instance = Instance {
            programs: &programs,
            account: account.as_ref(),
            settings: &settings,
            directories,
            database: copied::database(directories, account.as_ref())?,
        };
        instance.start()
    }
}

impl Server for MariaDb {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["mysql"]
    }

    fn file_words(&self) -> &'static [(FileKind, &'static str)] {
        &[
            (FileKind::Redo, vocabulary::MARIADB.log),
            (FileKind::Undo, "undo"),
        ]
    }

    fn comparisons(&self) -> &'static [ComparableSettings] {
        &[
            ComparableSettings {
                word: "flush",
                says: "through the page cache or past it, with the doublewrite buffer or without",
                asks: "which is faster, through the page cache or past it, with or without the doublewrite buffer",
                settings: &[
                    ("settings.innodb_flush_method", &["O_DIRECT", "fsync"]),
                    ("settings.innodb_doublewrite", &["ON", "OFF"]),
                ],
            },
            ComparableSettings {
                word: "commit",
                says: "what waiting for each commit costs",
                asks: "what does waiting for each commit cost",
                settings: &[("settings.innodb_flush_log_at_trx_commit", &["1", "2"])],
            },
        ]
    }

    fn examine(&self, request: &ServerRequest) -> Result<FoundServer, EngineError> {
        let programs = Programs::find(request.bin_dir.as_deref())?;
        let account = Account::of_servers(&USERS, NO_USER)?;
        let settings = MariaDbSettings::of(request, &programs)?;
        check::check(&programs, &settings, request)?;
        let mut notes = settings.notes.clone();
        if let Some(account) = account {
            let name = account.name;
            notes.push(format!("the server runs as {name}, who owns its files"));
        }
        notes.push(
            "performance_schema is on, for waits: file I/O and commits are timed, nothing else"
                .to_owned(),
        );
        notes.push(
            "InnoDB keeps indexes in the files of their tables: an index placement changes nothing"
                .to_owned(),
        );
        Ok(FoundServer {
            version: programs.title.clone(),
            settings: settings.described(),
            notes,
        })
    }

    fn examine_dump(
        &self,
        request: &ServerRequest,
        dump: &Dump,
    ) -> Result<Vec<String>, EngineError> {
        let programs = Programs::find(request.bin_dir.as_deref())?;
        match dump.form.is_of_files() {
            true => copied::look(&programs, dump).map(|_| ()),
            false => restore::Client::of(&programs, None, "", DATABASE).map(|_| ()),
        }?;
        Ok(Vec::new())
    }

    fn check_setting(&self, name: &str, value: &str) -> Result<(), EngineError> {
        settings::check_setting(name, value)
    }

    fn check_io(&self, io: ServerIo, _: bool) -> Result<(), EngineError> {
        settings::check_io(io)
    }

    fn on_raw_devices(
        &self,
        request: &ServerRequest,
        devices: &[RawDevice],
    ) -> Result<OnRawDevices, EngineError> {
        let bytes = request.data_bytes + self.room(request).total_bytes();
        raw::on_raw_devices(request, devices, bytes)
    }

    fn shapes_files(&self, setting: &str) -> bool {
        settings::shapes_files(setting)
    }

    fn room(&self, request: &ServerRequest) -> ServerRoom {
        ServerRoom {
            own_bytes: OWN_BYTES,
            redo_bytes: settings::redo_bytes(request),
            growth_bytes: GROWTH_BYTES + request.data_bytes / 4,
        }
    }

    fn overhead_bytes(&self, request: &ServerRequest) -> u64 {
        let server_bytes = match Programs::find(request.bin_dir.as_deref()) {
            Ok(programs) if programs.make == Make::MySql => MYSQL_BYTES,
            _ => MARIADB_BYTES,
        };
        server_bytes + u64::from(request.clients) * SESSION_BYTES
    }

    fn create(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<(), EngineError> {
        let programs = Programs::find(request.bin_dir.as_deref())?;
        let account = Account::of_servers(&USERS, NO_USER)?;
        let settings = MariaDbSettings::of(request, &programs)?;
        let instance = Instance {
            programs: &programs,
            account: account.as_ref(),
            settings: &settings,
            directories,
            database: DATABASE.to_owned(),
        };
        instance.create()
    }

    fn adopt(
        &self,
        request: &ServerRequest,
        dump: &Dump,
        directories: &TreeDirectories,
        interrupted: &AtomicBool,
    ) -> Result<(), EngineError> {
        let programs = Programs::find(request.bin_dir.as_deref())?;
        let account = Account::of_servers(&USERS, NO_USER)?;
        let mut settings = MariaDbSettings::of(request, &programs)?;
        settings.purpose(Purpose::Load, request);
        let found = copied::look(&programs, dump)?;
        let instance = Instance {
            programs: &programs,
            account: account.as_ref(),
            settings: &settings,
            directories,
            database: copied::OWN.to_owned(),
        };
        let files = (directories, account.as_ref());
        copied::take(files, dump, &found, interrupted)?;
        let running = instance.start()?;
        copied::check_log(&instance.log().text(), dump)?;
        let mut connection = running.connect()?;
        let database = copied::choose(&mut *connection, request.database.as_deref(), dump)?;
        drop(connection);
        running.stop(ServerStop::Clean)?;
        copied::note(directories, account.as_ref(), &database)
    }

    fn start(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError> {
        let running = MariaDb::start_server(request, directories, purpose)?;
        Ok(running)
    }

    fn verify(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<String, EngineError> {
        let running = MariaDb::start_server(request, directories, Purpose::Trial)?;
        let found = running.check_tables()?;
        running.stop(ServerStop::Clean)?;
        Ok(found)
    }
}
