//! The `[database]` section: which database is under test, how much data it holds, and what it is told.
//!
//! Read once for the whole experiment and once more for every layout with that layout's own values in place, so that
//! each case has complete settings; those that would make the comparison void can only be set here
//! (`SAME_IN_EVERY_CASE`). `kernel` and `server` read the settings that only one kind of database has.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
pub use spindle_engines::kernel::{Commit, TornBlocks, WriteSync};
use spindle_engines::sections::{DataSettings, SIZE_BYTES};
pub use spindle_engines::spec::{DatabaseMemory, DatabaseSpec, KernelSpec, RemoteSpec, ServerSpec};
use spindle_engines::sql::{Address, ServerKind};

use super::document::DocumentTable;
use super::doubts::anywhere;
use super::kernel::{self, check_blocks};
use super::memory::check_memory;
use super::of_workload::OfWorkload;
use super::reader::{Reader, keys_asked_by};
use super::server;
use spindle_text::section::Section;
use spindle_text::word::Word;

/// The database under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseEngine {
    /// The embedded database of this project.
    Kernel,
    /// One that speaks SQL.
    Server(ServerKind),
}

/// Their words: the embedded one's, and those of the servers.
const ENGINES: [(&str, DatabaseEngine); 1 + ServerKind::ALLOWED.len()] = {
    let mut all = [("kernel", DatabaseEngine::Kernel); 1 + ServerKind::ALLOWED.len()];
    let mut number = 1;
    while number < all.len() {
        let (word, kind) = ServerKind::ALLOWED[number - 1];
        all[number] = (word, DatabaseEngine::Server(kind));
        number += 1;
    }
    all
};

impl Word for DatabaseEngine {
    const ALLOWED: &'static [(&'static str, DatabaseEngine)] = &ENGINES;
    const SAYS: &'static [&'static str] = &[];
    const LATER: &'static [&'static str] = &["oracle"];

    fn of_other_word(word: &str) -> Option<DatabaseEngine> {
        let mut engines = ENGINES.iter().map(|(_, engine)| *engine);
        engines.find(|engine| match engine {
            DatabaseEngine::Kernel => word == "embedded",
            DatabaseEngine::Server(kind) => spindle_engines::sql::server(*kind)
                .aliases()
                .contains(&word),
        })
    }
}

impl fmt::Display for DatabaseEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_word())
    }
}

impl Serialize for DatabaseEngine {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_word())
    }
}

impl<'de> Deserialize<'de> for DatabaseEngine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<DatabaseEngine, D::Error> {
        spindle_text::word::deserialize(from)
    }
}

impl DatabaseEngine {
    /// The word as the experiment file spells it.
    pub fn as_str(self) -> &'static str {
        self.as_word()
    }
}
/// Settings that must be equal in every case, with what would be compared if they were not.
pub(super) const SAME_IN_EVERY_CASE: [(&str, &str); 7] = [
    ("engine", "two databases, not two layouts"),
    ("name", "two databases, not two layouts"),
    ("size", "two amounts of data"),
    ("memory", "two amounts of memory"),
    ("write_sync", "two promises of durability"),
    ("commit", "two promises of durability"),
    ("torn_blocks", "two promises of durability"),
];

/// The database of an experiment or, with a layout's own values in place, of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// Loaded data, 4 MiB to 64 TiB.
    pub size_bytes: u64,
    /// Which it is, with its own settings.
    pub spec: DatabaseSpec,
}

/// What a database section does not say itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Inherited {
    /// The budget that a layout has from the experiment.
    pub memory_bytes: Option<u64>,
    /// The data of the workload.
    pub of_workload: OfWorkload,
    /// Whether the layouts say that it is a server that runs already.
    pub is_remote: bool,
}

/// The database section of the experiment, for layouts to change.
pub(super) struct SharedDatabase<'a> {
    /// As it was read.
    pub database: &'a Database,
    /// As it is written.
    pub table: &'a DocumentTable,
    /// What a layout's own does not say itself.
    pub inherited: Inherited,
}

/// The keys of each kind of database, as what reads them asks for them.
struct Keys {
    kernel: Vec<&'static str>,
    server: Vec<&'static str>,
    remote: Vec<&'static str>,
}

impl Keys {
    fn all() -> Keys {
        let kind = ServerKind::Postgres;
        Keys {
            kernel: keys_asked_by(|reader| kernel::read(reader, None)),
            server: keys_asked_by(|reader| server::read(reader, kind, None)),
            remote: keys_asked_by(|reader| server::read_remote(reader, kind)),
        }
    }

    /// Refuses what is set and does not apply to the database that `spec` is.
    fn check(&self, reader: &Reader<'_>, spec: &DatabaseSpec) {
        let of_servers = || self.server.iter().chain(&self.remote);
        let set = |key: &&&'static str| reader.has(key);
        let refused = |key: &'static str, title: String, label: &str, help: &str| {
            let refused = reader.conflict(&[key], title, label, help);
            reader.note(refused.given(which_it_is(reader)));
        };
        let of_another = |key: &'static str, whose: &str, help: &str| {
            let title = format!("{key} does not apply to engine = \"{}\"", engine_of(spec));
            refused(key, title, whose, help);
        };
        if let DatabaseSpec::Kernel(_) = spec {
            let mut others: Vec<_> = of_servers().filter(set).collect();
            others.retain(|key| !self.kernel.contains(key));
            let mut seen = BTreeSet::new();
            for key in others.into_iter().filter(|key| seen.insert(**key)) {
                let help =
                    "leave it out, or choose another engine: \"sqlite\", \"postgres\", \"mariadb\"";
                of_another(key, "a key for database servers", help);
            }
            return;
        }
        let is_kernels = |key: &&&'static str| !of_servers().any(|other| other == *key);
        for key in self.kernel.iter().filter(is_kernels).filter(set) {
            let help = "leave it out; a server's own settings go into settings = { NAME = VALUE }";
            of_another(key, "a key of the embedded database", help);
        }
        if let DatabaseSpec::Remote(remote) = spec {
            for key in self.server.iter().filter(set) {
                let title = format!("{key} is set for an existing server, {}", remote.address);
                let label = "Spindle neither starts such a server nor sets anything of it";
                let help =
                    format!("leave {key} out; what the server says of its settings is recorded");
                refused(key, title, label, &help);
            }
            return;
        }
        for (key, label) in [
            ("password_env", "it says where the password for url is"),
            ("agent", "it says how the machine of url is looked at"),
        ] {
            if reader.has(key) {
                let title = format!("{key} is set, and url is not");
                refused(key, title, label, "leave it out, or set url");
            }
        }
    }
}

/// The keys, in full, that say which database it is.
pub(super) fn which_it_is(reader: &Reader<'_>) -> Vec<String> {
    let own = reader.keys(["engine", "url"]);
    [own.to_vec(), vec![anywhere("engine")]].concat()
}

fn engine_of(spec: &DatabaseSpec) -> DatabaseEngine {
    match spec {
        DatabaseSpec::Kernel(_) => DatabaseEngine::Kernel,
        DatabaseSpec::Server(server) => DatabaseEngine::Server(server.kind),
        DatabaseSpec::Remote(remote) => DatabaseEngine::Server(remote.address.kind()),
    }
}

impl Database {
    /// Reads a database section.
    pub(super) fn read(reader: &mut Reader<'_>, inherited: Inherited) -> Database {
        let engine = reader.word("engine").unwrap_or(DatabaseEngine::Kernel);
        let size_bytes = read_size(reader, &inherited.of_workload);
        let keys = Keys::all();
        for keys in [&keys.kernel, &keys.server, &keys.remote] {
            reader.know(keys);
        }
        let memory_bytes = inherited.memory_bytes;
        let spec = match engine {
            DatabaseEngine::Kernel => DatabaseSpec::Kernel(kernel::read(reader, memory_bytes)),
            DatabaseEngine::Server(kind) => match server::read_remote(reader, kind) {
                Some(remote) => DatabaseSpec::Remote(remote),
                None => DatabaseSpec::Server(server::read(reader, kind, memory_bytes)),
            },
        };
        keys.check(reader, &spec);
        if inherited.of_workload.copied_bytes == 0 && reader.has("name") {
            let refused = reader.conflict(
                &["name"],
                "name is set, and load copies no server",
                "it says which database of a copied server is measured",
                "leave it out, or name the directory of a stopped server in load",
            );
            reader.note(refused.given(inherited.of_workload.keys()));
        }
        reader.finish();
        let database = Database { size_bytes, spec };
        // Where layouts name existing servers, their memory is not known.
        if !inherited.is_remote {
            database.check(reader, &inherited.of_workload);
        }
        database
    }

    /// Checks what no single setting can know.
    fn check(&self, reader: &Reader<'_>, of_workload: &OfWorkload) {
        if let Some(memory) = self.spec.memory() {
            check_memory(reader, memory, self.size_bytes, of_workload);
        }
        if let DatabaseSpec::Kernel(kernel) = &self.spec {
            check_blocks(reader, kernel, self.size_bytes, of_workload);
        }
    }

    /// Which it is, as the experiment file says it.
    pub fn engine(&self) -> DatabaseEngine {
        engine_of(&self.spec)
    }

    /// The server that runs already, if it is one.
    pub fn address(&self) -> Option<&Address> {
        match &self.spec {
            DatabaseSpec::Remote(remote) => Some(&remote.address),
            DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => None,
        }
    }
}

fn read_size(reader: &mut Reader<'_>, of_workload: &OfWorkload) -> u64 {
    let DataSettings {
        size_bytes: given_bytes,
    } = Section::read(reader);
    let least_bytes = *SIZE_BYTES.start();
    if of_workload.data.is_some() && reader.has("size") {
        let refused = reader.conflict(
            &["size"],
            "size is set, and the workload says how much data there is",
            "its scale, its warehouses or its rows do",
            "leave size out",
        );
        reader.note(refused.given(["workload.kind".to_owned()]));
    }
    match (of_workload.data, of_workload.copied_bytes) {
        (Some(data), _) => data.bytes.max(least_bytes),
        // A copy takes what it takes, whatever else is said.
        (None, copied_bytes) if copied_bytes > 0 && !reader.has("size") => {
            copied_bytes.max(least_bytes)
        }
        (None, copied_bytes) => given_bytes.max(copied_bytes),
    }
}
