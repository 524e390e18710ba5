//! Databases that speak SQL. A [`Server`] is one kind of them: it knows its programs, makes a database in directories,
//! and starts it; a [`RunningServer`] is connected to, counted and stopped. What is the same for all of them is here,
//! such as loading a workload. A new one is one folder, and one entry of the registry. Existing servers are in
//! [`foreign`].

pub(crate) mod account;
pub mod address;
mod certificate;
pub(crate) mod child_server;
mod client_files;
mod connections;
pub(crate) mod copied_files;
pub mod encryption;
pub mod foreign;
mod load;
pub(crate) mod reader;
pub(crate) mod restore;
mod room;
mod scheme;
pub mod ssh_host;
pub mod survey;
pub(crate) mod tls;
mod under_test;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use spindle_io::real::{Caching, Method};
use spindle_layout::{KnownDevice, RawDevice, RawFile, TreeDirectories};
use spindle_text::file_kind::FileKind;
use spindle_text::load_file::Dump;
use spindle_workload::SessionError;
use spindle_workload::sql::{Dialect, Ours, SqlConnection};

pub use crate::registry::{ServerKind, remote_server, server};
pub use address::{Address, Password, Scheme};
pub use foreign::{Copying, ForeignServer, Schema, SchemaGone, SchemaKind, ServerHome};
pub(crate) use foreign::{NOT_TOLD, UNTOLD};
pub use load::create_and_load;
pub(crate) use load::{create, load_into};
pub use reader::{OWN_STATEMENT, Reader};
pub use room::ServerRoom;
pub use room::said_of_full_disks;
pub use ssh_host::{MachineAccess, SshHost};
pub use under_test::SqlUnderTest;

use crate::EngineError;
use crate::engine::Counters;
pub use crate::engine::FoundServer;

/// What is asked of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerRequest {
    /// Its own settings, by their names, as the experiment gives them.
    pub settings: BTreeMap<String, String>,
    /// Directory of its programs; `None`: where such programs usually are.
    pub bin_dir: Option<PathBuf>,
    /// Its buffer cache, bytes.
    pub buffer_cache_bytes: u64,
    /// Bytes of data that will be loaded, about.
    pub data_bytes: u64,
    /// Most clients there will be at once.
    pub clients: u32,
    /// How it is to read and write its datafiles, when the layout says so.
    pub io: Option<ServerIo>,
    /// The database that is measured, of a server whose files are copied; `None`: the only one there.
    #[serde(default)]
    pub database: Option<String>,
}

/// An access path in the words of the experiment, for a server to put into its own settings, or to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerIo {
    /// Whether blocks pass through the page cache; `None`: as the server does.
    pub caching: Option<Caching>,
    /// How it hands several blocks over; `None`: as the server does.
    pub method: Option<Method>,
    /// Number of I/O slaves, threads or processes that make blocking calls; 0 when the method has none.
    pub slaves: u32,
}

/// That a server admits as many connections as there will be at once, where the experiment says how many it does.
pub(crate) fn check_connections(value: &str, needed: u32) -> Result<(), EngineError> {
    match value.trim().parse::<u32>() {
        Ok(admitted) if admitted < needed => Err(EngineError::misspelt(format!(
            "max_connections = {admitted} is too small: the clients of this experiment need {needed}"
        ))),
        // The server judges what else is written there.
        _ => Ok(()),
    }
}

/// Why a server has no such method, in words.
pub(crate) fn no_method(method: Method) -> String {
    format!("it has nothing like method = \"{method}\"")
}

/// A database whose datafiles lie on raw devices.
#[derive(Debug, Clone, PartialEq)]
pub struct OnRawDevices {
    /// What is then asked of its server; the database is made and loaded with plain files by the same request.
    pub request: ServerRequest,
    /// Files of the data directory that lie on the devices.
    pub files: Vec<RawFile>,
    /// Bytes of the devices that it takes, about.
    pub bytes: u64,
    /// What is to be known of it.
    pub notes: Vec<String>,
}

/// Settings of a server that are worth a comparison, where nothing else was chosen to be compared.
#[derive(Debug, PartialEq, Eq)]
pub struct ComparableSettings {
    /// Its name among those of the server.
    pub word: &'static str,
    /// What it compares, in words.
    pub says: &'static str,
    /// The question that it answers, before "for ENGINE in PLACE?".
    pub asks: &'static str,
    /// Keys of the experiment file with their values, as on a command line.
    pub settings: &'static [(&'static str, &'static [&'static str])],
}

/// A database whose datafiles lie in a disk group.
#[derive(Debug, Clone, PartialEq)]
pub struct InDiskGroup {
    /// What is then asked of its server; the database is made and loaded with plain files by the same request.
    pub request: ServerRequest,
    /// Files of the data directory that lie in the group, by name, with the bytes they take there.
    pub files: Vec<(String, u64)>,
    /// What is to be known of it.
    pub notes: Vec<String>,
}

/// What a server is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Loading: nothing need be durable before it is stopped in order.
    Load,
    /// A trial.
    Trial,
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStop {
    /// In order: everything is on the device, and it starts without recovery.
    Clean,
    /// At once.
    Kill,
}

/// One kind of server. It keeps nothing between calls.
pub trait Server: Send + Sync {
    /// What it speaks.
    fn dialect(&self) -> Dialect;

    /// Other words for it that people write on a command line.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it is a library in the process of its clients, with no process to start.
    fn is_library(&self) -> bool {
        false
    }

    /// Its words for kinds of its files: as the experiment places them, and as it calls them.
    fn file_words(&self) -> &'static [(FileKind, &'static str)];

    /// Its settings that are worth a comparison, the first by default.
    fn comparisons(&self) -> &'static [ComparableSettings];

    /// Looks whether what is asked is possible here, and changes nothing.
    ///
    /// # Errors
    /// `Unavailable`, in words.
    fn examine(&self, request: &ServerRequest) -> Result<FoundServer, EngineError>;

    /// Looks whether a dump can be restored here, or files copied, and changes nothing. Returns the settings that files
    /// bring with them, in words: `name = value`.
    ///
    /// # Errors
    /// `Unavailable`: a tool is missing, or does not take the dump; or the files cannot be copied.
    fn examine_dump(
        &self,
        request: &ServerRequest,
        dump: &Dump,
    ) -> Result<Vec<String>, EngineError>;

    /// Looks at one of its settings, as far as its name and value tell, on no machine and for no version.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn check_setting(&self, name: &str, value: &str) -> Result<(), EngineError>;

    /// The same for an access path, for datafiles in a file system or on devices (raw, or in a disk group).
    ///
    /// # Errors
    /// Why no version has it, in words.
    fn check_io(&self, io: ServerIo, is_on_devices: bool) -> Result<(), EngineError>;

    /// Kinds of files that it can have elsewhere than in its data directory.
    fn placed_kinds(&self) -> &'static [FileKind] {
        &[
            FileKind::Index,
            FileKind::Redo,
            FileKind::Undo,
            FileKind::Temp,
        ]
    }

    /// What is asked of it when its datafiles lie on raw devices: a file on each, and nothing else there.
    ///
    /// # Errors
    /// `Unavailable`: it cannot do that, or not so.
    fn on_raw_devices(
        &self,
        _: &ServerRequest,
        _: &[RawDevice],
    ) -> Result<OnRawDevices, EngineError> {
        Err(EngineError::unavailable(
            "it keeps its files in a file system, and this layout is raw; InnoDB (engine = \"mariadb\"), SQLite and the \
             embedded database can lie on raw devices"
                .to_owned(),
        ))
    }

    /// What is asked of it when its datafiles lie in a disk group of these disks.
    ///
    /// # Errors
    /// `Unavailable`: it cannot do that, or not so.
    fn in_disk_group(
        &self,
        _: &ServerRequest,
        _: &[KnownDevice],
    ) -> Result<InDiskGroup, EngineError> {
        Err(EngineError::unavailable(
            "it keeps its files in a file system, and this layout is a disk group; SQLite and the embedded database can lie in \
             disk groups"
                .to_owned(),
        ))
    }

    /// Whether a setting takes part in how the database is made: databases that differ in no such setting are loaded
    /// once.
    fn shapes_files(&self, setting: &str) -> bool;

    /// What its files take beside the loaded data, about: a guard against full devices.
    fn room(&self, request: &ServerRequest) -> ServerRoom;

    /// Makes an empty database in existing, empty directories.
    ///
    /// # Errors
    /// [`EngineError`]; so for the others.
    fn create(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<(), EngineError>;

    /// Makes a database of the files of another server, in existing, empty directories. Ends early, with an error, once
    /// `interrupted`.
    fn adopt(
        &self,
        _: &ServerRequest,
        dump: &Dump,
        _: &TreeDirectories,
        _: &AtomicBool,
    ) -> Result<(), EngineError> {
        Err(EngineError::failed(
            format!("copying {}", dump.name),
            "this engine makes no database of files",
        ))
    }

    /// Memory that it takes beside its buffer cache, about: its own, and that of its sessions.
    fn overhead_bytes(&self, request: &ServerRequest) -> u64;

    /// Starts a database that [`Server::create`] made, in these directories or in others that it was copied from, and
    /// waits until it takes connections. It ends with this process at the latest.
    fn start(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError>;

    /// Looks through the files of a database that is stopped, or at the database itself, with the server's own checker;
    /// what was found, in words.
    fn verify(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<String, EngineError>;
}

/// A server at work: beside what every database tells of itself, clients can be connected to it.
pub trait RunningServer: Counters {
    /// Connects a client.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError>;

    /// Connects for what is not measured: no limit of time that a server sets its users ends what is done there.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn connect_unlimited(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        self.connect()
    }

    /// Restores a dump of this kind of database. Ends early, with an error, once `interrupted`.
    ///
    /// # Errors
    /// What the tool said that could not do it.
    fn restore(&self, dump: &Dump, _interrupted: &AtomicBool) -> Result<(), EngineError> {
        Err(EngineError::failed(
            format!("restoring {}", dump.name),
            "dumps are not loaded into existing servers",
        ))
    }

    /// How much of it is Spindle's own, and is put back before each trial.
    fn ours(&self) -> Ours {
        Ours::Server
    }

    /// The schemas or databases there that are not Spindle's, in small letters.
    ///
    /// # Errors
    /// The server does not tell.
    fn others(&self, _: &mut dyn SqlConnection) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }

    /// That the statements of a load have left nothing open that outlives their session.
    ///
    /// # Errors
    /// What is open; so for the others, see [`EngineError`].
    fn check_ended(&self, _: &mut dyn SqlConnection) -> Result<(), EngineError> {
        Ok(())
    }

    /// What is to be done between tables and indexes: from now on what is made goes where indexes go.
    fn before_indexes(&self, _: &mut dyn SqlConnection) -> Result<(), EngineError> {
        Ok(())
    }

    /// What is to be done when a workload is loaded: statistics for the optimizer, a checkpoint.
    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError>;

    /// Ends it, and waits until it has ended.
    fn stop(&self, how: ServerStop) -> Result<(), EngineError>;
}
