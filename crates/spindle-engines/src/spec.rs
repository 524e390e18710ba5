//! Which database is under test, with its own settings only: what one does not have cannot be asked of it. The
//! experiment file is read into these, and they say what the engine takes for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_io::real::{AccessPath, Caching};
use spindle_layout::DatabaseShape;
use spindle_text::quantity::{KIB, MIB, TIB};
use spindle_text::settings;
use spindle_workload::Workload;

use crate::kernel::{
    BLOCK_BYTES_DEFAULT, Delay, InstanceSettings, IoSettings, KernelSettings, TornBlocks,
    double_write_bytes, files_of,
};
use crate::sql::{Address, ServerIo, ServerKind, ServerRequest, SshHost};

/// What a process of a query takes, in sort areas: one that it fills, with the room that vectors and tables have to
/// grow in, and what the step before has left in memory.
const SORT_AREAS_OF_PROCESS: u64 = 6;
/// In addition: its stack, and memory for I/Os, which comes in huge pages.
const QUERY_PROCESS_BYTES: u64 = 8 << 20;

/// Most of the log buffer, bytes: enough for any load.
const LOG_BUFFER_BYTES_MAX: usize = 1 << 20;
/// It is written in whole sectors of devices with large ones.
const SECTOR_BYTES: usize = 4096;

/// Block sizes, as Oracle's.
const BLOCK_SIZES_BYTES: [u64; 5] = [2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB];

/// Size of the blocks in which workloads count on databases that speak SQL, whatever their pages are.
pub const SQL_BLOCK_BYTES: u64 = 8 << 10;

/// What is said of a database, by its kind: its settings, what was made for it, how a trial starts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByKind<K, S, R> {
    /// Of the embedded one.
    Kernel(K),
    /// Of one that speaks SQL, which Spindle makes, starts and stops. SQLite is one: its server is a library.
    Server(S),
    /// Of a server that runs already, reached by its address. Spindle neither starts it nor sets anything of it.
    Remote(R),
}

/// A database under test, with its own settings.
pub type DatabaseSpec = ByKind<KernelSpec, ServerSpec, RemoteSpec>;

/// Memory of a database that Spindle starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseMemory {
    /// Buffer cache, 1 MiB to 16 TiB; smaller than the data.
    pub buffer_cache_bytes: u64,
    /// Buffer cache and page cache together; at least the buffer cache, the same in every case.
    pub memory_bytes: u64,
}

settings! {
    /// The files of the embedded database. The buffer cache and a datafile hold at least 64 blocks, a log file 97.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct FileSettings {
        /// Size of a database block.
        block_size_bytes: u64 = size_among("block_size", BLOCK_BYTES_DEFAULT, &BLOCK_SIZES_BYTES),
        /// Number of datafiles, each of at least 64 blocks. Some file systems let only one process write to a file at a
        /// time: more files, more writes at once.
        datafiles: u32 = number("datafiles", 4, 1..=1000),
        /// Size of one redo log file, at least 97 blocks.
        log_file_size_bytes: u64 = size("log_file_size", 64 * MIB, MIB..=TIB),
        /// Redo log files in the ring. A full ring waits for the checkpoint (`log file switch (checkpoint
        /// incomplete)`).
        log_files: u32 = number("log_files", 3, 2..=255),
        /// Whether io_uring uses buffers registered once; given up, and reported, when locked memory is short.
        fixed_buffers: bool = flag("fixed_buffers", true),
    }
}

/// The embedded database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// Its files.
    #[serde(flatten)]
    pub files: FileSettings,
    /// Its memory.
    #[serde(flatten)]
    pub memory: DatabaseMemory,
    /// What its instance is told.
    #[serde(flatten)]
    pub instance: InstanceSettings,
    /// Directory of the redo log files; beside the data when absent.
    pub redo_path: Option<PathBuf>,
    /// How LGWR writes redo, when the experiment says so; [`KernelSpec::redo_access_path`] tells what holds when it
    /// does not.
    pub redo_io: Option<AccessPath>,
}

/// A database that speaks SQL, of Spindle's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// Which.
    pub kind: ServerKind,
    /// Its memory.
    pub memory: DatabaseMemory,
    /// Directory of its log; beside the data when absent.
    pub redo_path: Option<PathBuf>,
    /// Its own settings by its own names, such as `wal_sync_method` or `innodb_flush_method`.
    pub settings: BTreeMap<String, String>,
    /// Directory of its programs; where such programs usually are when absent.
    pub bin_dir: Option<PathBuf>,
    /// The database that is measured, of a server whose files are copied; the only one when absent.
    pub name: Option<String>,
}

/// A server that runs already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSpec {
    /// Where it is, such as `postgres://user@host/database`. Its password is never written down.
    pub address: Address,
    /// The environment variable that its password is in; where the server's own clients look for one when absent.
    pub password_env: Option<String>,
    /// Its own machine, where Spindle is to look at it by `ssh`; what is not looked at is unknown.
    pub agent: Option<SshHost>,
}

impl DatabaseSpec {
    /// The memory that Spindle gives it; `None`: a server that runs already has its own.
    pub fn memory(&self) -> Option<DatabaseMemory> {
        match self {
            DatabaseSpec::Kernel(kernel) => Some(kernel.memory),
            DatabaseSpec::Server(server) => Some(server.memory),
            DatabaseSpec::Remote(_) => None,
        }
    }

    /// The directory that its redo is to lie in, if it says one.
    pub fn redo_path(&self) -> Option<&Path> {
        match self {
            DatabaseSpec::Kernel(kernel) => kernel.redo_path.as_deref(),
            DatabaseSpec::Server(server) => server.redo_path.as_deref(),
            DatabaseSpec::Remote(_) => None,
        }
    }
}

impl KernelSpec {
    /// How LGWR writes redo in a case whose datafiles are written as `io` says: as `redo_io` says, else direct whatever
    /// the case's caching, and by the case's own method, because a method is also how LGWR hands its writes over.
    pub fn redo_access_path(&self, io: AccessPath) -> AccessPath {
        self.redo_io.unwrap_or(AccessPath {
            caching: Caching::Direct,
            ..io
        })
    }

    /// Memory that the queries of a workload take, carried out by this many processes at once.
    pub fn query_bytes(&self, processes: u64) -> u64 {
        processes * (SORT_AREAS_OF_PROCESS * self.instance.sort_area_bytes + QUERY_PROCESS_BYTES)
    }

    /// How it reads and writes files by an access path, on devices delayed or not.
    pub fn io(&self, path: AccessPath, delay: Option<Delay>) -> IoSettings {
        IoSettings {
            path,
            fixed_buffers: self.files.fixed_buffers,
            delay: delay.unwrap_or_default(),
        }
    }

    /// The settings of its instance.
    pub fn settings(&self) -> KernelSettings {
        let block_bytes = self.files.block_size_bytes as usize;
        // An eighth of a log file, so that the ring always has room for what is in memory.
        let log_buffer_bytes =
            self.files.log_file_size_bytes as usize / 8 / SECTOR_BYTES * SECTOR_BYTES;
        KernelSettings {
            instance: self.instance,
            block_bytes,
            buffer_cache_bytes: self.memory.buffer_cache_bytes,
            log_buffer_bytes: log_buffer_bytes
                .min(LOG_BUFFER_BYTES_MAX)
                .max(16 * block_bytes),
            ..KernelSettings::default()
        }
    }

    /// The files of a workload's database for this many clients, with double write areas for this many writers.
    pub fn shape(&self, workload: &dyn Workload, clients: usize, writers: u32) -> DatabaseShape {
        DatabaseShape {
            double_write_bytes: match self.instance.torn_blocks {
                TornBlocks::DoubleWrite => {
                    double_write_bytes(self.files.block_size_bytes as usize, writers as usize)
                }
                TornBlocks::Images | TornBlocks::Atomic => 0,
            },
            ..files_of(
                workload,
                clients,
                self.files.block_size_bytes as usize,
                self.files.datafiles as usize,
                self.files.log_files as usize,
                self.files.log_file_size_bytes,
            )
        }
    }
}

impl ServerSpec {
    /// What is asked of it for this much data and this many clients at once, with the access path that the layout asks
    /// of it, if any.
    pub fn request(&self, data_bytes: u64, clients: u32, io: Option<ServerIo>) -> ServerRequest {
        ServerRequest {
            settings: self.settings.clone(),
            bin_dir: self.bin_dir.clone(),
            buffer_cache_bytes: self.memory.buffer_cache_bytes,
            data_bytes,
            clients,
            io,
            database: self.name.clone(),
        }
    }
}
