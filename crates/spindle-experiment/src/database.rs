//! The `[database]` section: size and shape of the database under test, its processes and its promise of durability.
//!
//! Read once for the whole experiment and once more for every layout with that layout's own values in place, so that
//! each case has complete settings; those that would make the comparison void can only be set here
//! (`SAME_IN_EVERY_CASE`).

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spindle_engines::kernel::InstanceSettings;
pub use spindle_engines::kernel::{Commit, TornBlocks, WriteSync};
use spindle_engines::sql::{Address, ServerKind};
use spindle_text::section::Section;

use super::access_path::{AccessPath, Caching, Method, read_access_path};
use super::error::ExperimentError;
use super::reader::Reader;
use super::server::Server;
use spindle_text::quantity::{GIB, KIB, MIB, TIB, size_text};
use spindle_text::word::Word;
use spindle_workload::Data;

/// The database under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The embedded database of this project.
    Kernel,
    /// One that speaks SQL.
    Server(ServerKind),
}

/// Their words: the embedded one's, and those of the servers.
const ENGINES: [(&str, Engine); 1 + ServerKind::ALLOWED.len()] = {
    let mut all = [("kernel", Engine::Kernel); 1 + ServerKind::ALLOWED.len()];
    let mut number = 1;
    while number < all.len() {
        let (word, kind) = ServerKind::ALLOWED[number - 1];
        all[number] = (word, Engine::Server(kind));
        number += 1;
    }
    all
};

impl Word for Engine {
    const ALLOWED: &'static [(&'static str, Engine)] = &ENGINES;
    const SAYS: &'static [&'static str] = &[];
    const LATER: &'static [&'static str] = &["oracle"];
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_word())
    }
}

impl Serialize for Engine {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_word())
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Engine, D::Error> {
        spindle_text::word::deserialize(from)
    }
}

impl Engine {
    /// The word as the experiment file spells it.
    pub fn as_str(self) -> &'static str {
        self.as_word()
    }

    /// Which server it is; `None` for the embedded database.
    pub fn server(self) -> Option<ServerKind> {
        match self {
            Engine::Kernel => None,
            Engine::Server(kind) => Some(kind),
        }
    }
}
/// Settings that must be equal in every case, with what would be compared if they were not.
pub(super) const SAME_IN_EVERY_CASE: [(&str, &str); 6] = [
    ("engine", "two databases, not two layouts"),
    ("size", "two amounts of data"),
    ("memory", "two amounts of memory"),
    ("write_sync", "two promises of durability"),
    ("commit", "two promises of durability"),
    ("torn_blocks", "two promises of durability"),
];

/// Block sizes of the embedded database, as Oracle's.
const BLOCK_SIZES: [u64; 5] = [2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB];
/// The smallest database.
const SIZE_MIN: u64 = 4 * MIB;
/// Fewest blocks that a buffer cache, a datafile or a log file can work with.
const BLOCKS_MIN: u64 = 64;

/// The database of an experiment or, with a layout's own values in place, of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// The database under test.
    pub engine: Engine,
    /// Loaded data, 4 MiB to 64 TiB.
    pub size_bytes: u64,
    /// Size of a block: a power of two, 2 KiB to 32 KiB.
    pub block_size_bytes: u64,
    /// Buffer cache, 1 MiB to 16 TiB; smaller than the data, holds at least 64 blocks.
    pub buffer_cache_bytes: u64,
    /// One budget for buffer cache and page cache together; at least the buffer cache, the same in every case.
    pub memory_bytes: u64,
    /// Number of datafiles, 1 to 1000.
    pub datafiles: u32,
    /// What the embedded database is told.
    #[serde(flatten)]
    pub instance: InstanceSettings,
    /// Size of one redo log file, 1 MiB to 1 TiB.
    pub log_file_size_bytes: u64,
    /// Number of redo log files in the ring, 2 to 255.
    pub log_files: u32,
    /// Whether io_uring uses buffers registered once; dropped, and reported, when locked memory is short.
    pub fixed_buffers: bool,
    /// Directory of the redo log files; beside the data when absent.
    pub redo_path: Option<PathBuf>,
    /// The server, when the engine is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// How LGWR writes redo, when the experiment says so; [`Database::redo_access_path`] tells what holds when it does
    /// not.
    pub redo_io: Option<AccessPath>,
}

/// What a database section does not say itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Inherited {
    /// The budget that a layout has from the experiment.
    pub memory_bytes: Option<u64>,
    /// The data of a workload that says itself how much there is.
    pub data: Option<Data>,
    /// Whether the experiment says elsewhere that it is an existing server.
    pub is_foreign: bool,
}

impl Database {
    /// Reads a database section.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        inherited: Inherited,
    ) -> Result<Database, ExperimentError> {
        let engine = reader.word("engine", Engine::Kernel);
        let of_workload = inherited.data;
        let given_bytes = reader.size("size", GIB, SIZE_MIN..=64 * TIB);
        if of_workload.is_some() && reader.has("size") {
            return Err(reader.conflict(
                &["size"],
                "size is set, and the workload says how much data there is",
                "its scale, its warehouses or its rows do",
                "leave size out",
            ));
        }
        let size_bytes = of_workload.map_or(given_bytes, |data| data.bytes.max(SIZE_MIN));
        let block_size_bytes = reader.size_among("block_size", 8 * KIB, &BLOCK_SIZES);
        let buffer_cache_bytes = reader.size("buffer_cache", 64 * MIB, MIB..=16 * TIB);
        let memory_default_bytes = inherited.memory_bytes.unwrap_or(2 * buffer_cache_bytes);
        let database = Database {
            engine,
            size_bytes,
            block_size_bytes,
            buffer_cache_bytes,
            memory_bytes: reader.size("memory", memory_default_bytes, MIB..=64 * TIB),
            datafiles: reader.number("datafiles", 4, 1..=1000),
            instance: Section::read(reader),
            log_file_size_bytes: reader.size("log_file_size", 64 * MIB, MIB..=TIB),
            log_files: reader.number("log_files", 3, 2..=255),
            fixed_buffers: reader.flag("fixed_buffers", true),
            redo_path: reader.directory("redo_path"),
            redo_io: read_redo_io(reader)?,
            server: Server::read(reader, engine)?,
        };
        reader.finish();
        // Nobody here knows the buffer cache of an existing server.
        if !inherited.is_foreign && database.address().is_none() {
            database.check(reader, inherited.data);
        }
        Ok(database)
    }

    /// The existing server, if it is one.
    pub fn address(&self) -> Option<&Address> {
        self.server.as_ref()?.url.as_ref()
    }

    /// How LGWR writes redo in a case whose datafiles are written as `io` says: as `redo_io` says, else direct whatever
    /// the case's caching, and by the case's own method, because a method is also how LGWR hands its writes over.
    pub fn redo_access_path(&self, io: AccessPath) -> AccessPath {
        self.redo_io.unwrap_or(AccessPath {
            caching: Caching::Direct,
            ..io
        })
    }

    /// Checks what no single setting can know.
    fn check(&self, reader: &Reader<'_>, of_workload: Option<Data>) {
        let [data, cache, memory, block, log_file] = [
            self.size_bytes,
            self.buffer_cache_bytes,
            self.memory_bytes,
            self.block_size_bytes,
            self.log_file_size_bytes,
        ]
        .map(size_text);
        let is_loaded = of_workload.is_none_or(|data| data.is_loaded);
        if self.buffer_cache_bytes >= self.size_bytes && is_loaded {
            let (label, help) = match of_workload {
                None => (
                    "buffer_cache must be smaller than size",
                    "nothing would be read from storage: make size several times the buffer cache",
                ),
                Some(_) => (
                    "the workload says how much data there is, and it must be more than buffer_cache",
                    "nothing would be read from storage: set a larger scale or more warehouses in [workload], or a smaller \
                     buffer_cache",
                ),
            };
            reader.refuse(
                &["buffer_cache", "size"],
                format!("a buffer cache of {cache} holds all the data, {data}"),
                label,
                help,
            );
        }
        if self.memory_bytes < self.buffer_cache_bytes {
            reader.refuse(
                &["memory", "buffer_cache"],
                format!("memory is {memory}, less than the buffer cache of {cache}"),
                "memory is the budget for buffer cache and page cache together",
                "set memory to at least buffer_cache; left out, it is twice the buffer_cache of [database]",
            );
        }
        let least = size_text(BLOCKS_MIN * self.block_size_bytes);
        let holds_too_little = |key: &'static str, what: &str, size: &str| {
            reader.refuse(
                &[key, "block_size"],
                format!("{what} of {size} holds fewer than {BLOCKS_MIN} blocks of {block}"),
                format!("{key} must be at least {least} with this block_size"),
                format!("make {key} larger or block_size smaller"),
            )
        };
        if self.buffer_cache_bytes < BLOCKS_MIN * self.block_size_bytes {
            holds_too_little("buffer_cache", "a buffer cache", &cache);
        }
        if self.log_file_size_bytes < BLOCKS_MIN * self.block_size_bytes {
            holds_too_little("log_file_size", "a log file", &log_file);
        }
        let datafile_bytes = self.size_bytes / u64::from(self.datafiles);
        if datafile_bytes < BLOCKS_MIN * self.block_size_bytes {
            reader.refuse(
                &["datafiles", "size", "block_size"],
                format!(
                    "{} datafiles for {data} hold fewer than {BLOCKS_MIN} blocks of {block} each",
                    self.datafiles
                ),
                format!(
                    "at most {} datafiles with this size and block_size",
                    self.datafiles_max()
                ),
                "set fewer datafiles or a larger size",
            );
        }
    }

    fn datafiles_max(&self) -> u64 {
        (self.size_bytes / (BLOCKS_MIN * self.block_size_bytes)).clamp(1, 1000)
    }
}

/// Reads `redo_io`; `None` when it is left out. A key left out of it has a fixed default, so that a path given once for
/// the whole experiment is the same path in every case.
fn read_redo_io(reader: &mut Reader<'_>) -> Result<Option<AccessPath>, ExperimentError> {
    let is_given = reader.has("redo_io");
    let default = AccessPath::new(Caching::Direct, Method::Sync);
    let path = read_access_path(&mut reader.section("redo_io"), default)?;
    Ok(is_given.then_some(path))
}
