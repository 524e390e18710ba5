//! What `[database]` says of a database server: where it is, and its own settings. Only engines that speak SQL have it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_engines::sql::{ServerIo, ServerIoMethod, ServerKind};

use super::access_path::{AccessPath, Caching, Method};
use super::database::Engine;
use super::error::ExperimentError;
use super::reader::Reader;

/// Keys of `[database]` that the embedded database alone understands.
const KERNEL_KEYS: [&str; 14] = [
    "block_size",
    "datafiles",
    "writers",
    "write_sync",
    "commit",
    "torn_blocks",
    "log_file_size",
    "log_files",
    "checkpoint_interval",
    "lock_timeout",
    "fixed_buffers",
    "redo_io",
    "filesystemio_options",
    "slaves",
];
/// And those that it does not.
const SERVER_KEYS: [&str; 3] = ["settings", "bin_dir", "url"];

/// A database server, as the experiment describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its own settings by its own names, such as `wal_sync_method` or `innodb_flush_method`.
    pub settings: BTreeMap<String, String>,
    /// Directory of its programs; where such programs usually are when absent.
    pub bin_dir: Option<PathBuf>,
    /// A server that somebody else runs, such as `postgres://user@host/database`; one of Spindle's own when absent.
    pub url: Option<String>,
}

impl Server {
    /// Reads the keys of a server; `None` for the embedded database, which has none of them.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        engine: Engine,
    ) -> Result<Option<Server>, ExperimentError> {
        let server = Server {
            settings: reader.settings("settings")?,
            bin_dir: reader.directory("bin_dir")?,
            url: reader
                .text("url", "the address of a server that is running")?
                .map(str::to_owned),
        };
        let (foreign, whose, help): (&[&'static str], _, _) = match engine {
            Engine::Kernel => (
                &SERVER_KEYS,
                "a key for database servers",
                "leave it out, or choose another engine: \"sqlite\", \"postgres\", \"mariadb\"",
            ),
            _ => (
                &KERNEL_KEYS,
                "a key of the embedded database",
                "leave it out; a server's own settings go into settings = { NAME = VALUE }",
            ),
        };
        if let Some(key) = foreign.iter().find(|key| reader.has(key)) {
            let title = format!("{key} means nothing to engine = \"{engine}\"");
            return Err(reader.conflict(&[key], title, whose, help));
        }
        if server.url.is_some() && (server.bin_dir.is_some() || engine == Engine::Sqlite) {
            return Err(reader.conflict(
                &["url"],
                "url names a server that somebody else runs",
                "Spindle starts no programs then, and SQLite is no server",
                "leave out url, or bin_dir",
            ));
        }
        Ok((engine != Engine::Kernel).then_some(server))
    }
}

impl Engine {
    /// Which server it is; `None` for the embedded database.
    pub fn server(self) -> Option<ServerKind> {
        match self {
            Engine::Kernel => None,
            Engine::Sqlite => Some(ServerKind::Sqlite),
            Engine::Postgres => Some(ServerKind::Postgres),
            Engine::MariaDb => Some(ServerKind::MariaDb),
        }
    }
}

/// What an `io` table asks of a server: only what is written in it.
pub(super) fn server_io(
    reader: &Reader<'_>,
    io: AccessPath,
) -> Result<Option<ServerIo>, ExperimentError> {
    let whole = reader.has("filesystemio_options");
    let method = match io.method {
        Method::Sync => ServerIoMethod::Sync,
        Method::Slaves => ServerIoMethod::Slaves(io.slaves),
        Method::Async => ServerIoMethod::Async,
        Method::Libaio => ServerIoMethod::Libaio,
        Method::Odm => {
            return Err(reader.conflict(
                &["method"],
                "only the embedded database works through a disk manager (ODM)",
                "not allowed with this engine",
                "choose \"sync\", \"slaves\", \"async\" or \"libaio\", or leave it to the server",
            ));
        }
    };
    let asked = ServerIo {
        direct: (whole || reader.has("caching")).then_some(io.caching == Caching::Direct),
        method: (whole || reader.has("method")).then_some(method),
    };
    Ok((asked.direct.is_some() || asked.method.is_some()).then_some(asked))
}
