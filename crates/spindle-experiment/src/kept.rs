//! A database as the journal keeps it: all of its settings beside each other, those of a server in a separate table.
//! Journals of older versions say of servers what only the embedded database has; that is not read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use spindle_engines::spec::{DatabaseMemory, DatabaseSpec, KernelSpec, RemoteSpec, ServerSpec};
use spindle_engines::sql::{Address, SshHost};

use super::database::{Database, DatabaseEngine};

/// As it is written.
#[derive(Serialize)]
struct Written<'a> {
    engine: DatabaseEngine,
    size_bytes: u64,
    #[serde(flatten)]
    kernel: Option<&'a KernelSpec>,
    #[serde(flatten)]
    memory: Option<DatabaseMemory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redo_path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<OfServer<'a>>,
}

/// The settings that only servers have.
#[derive(Default, Serialize, Deserialize)]
struct OfServer<'a> {
    settings: Cow<'a, BTreeMap<String, String>>,
    bin_dir: Option<Cow<'a, Path>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    url: Option<Cow<'a, Address>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password_env: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Cow<'a, SshHost>>,
}

/// What every database says.
#[derive(Deserialize)]
struct Head {
    engine: DatabaseEngine,
    size_bytes: u64,
    #[serde(default)]
    server: OfServer<'static>,
}

/// What one of Spindle's own says beside its own settings.
#[derive(Deserialize)]
struct OfOwn {
    #[serde(flatten)]
    memory: DatabaseMemory,
    #[serde(default)]
    redo_path: Option<PathBuf>,
}

impl Serialize for Database {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut written = Written {
            engine: self.engine(),
            size_bytes: self.size_bytes,
            kernel: None,
            memory: None,
            redo_path: None,
            server: None,
        };
        match &self.spec {
            DatabaseSpec::Kernel(kernel) => written.kernel = Some(kernel),
            DatabaseSpec::Server(server) => {
                written.memory = Some(server.memory);
                written.redo_path = server.redo_path.as_deref();
                written.server = Some(OfServer {
                    settings: Cow::Borrowed(&server.settings),
                    bin_dir: server.bin_dir.as_deref().map(Cow::Borrowed),
                    name: server.name.as_deref().map(Cow::Borrowed),
                    ..OfServer::default()
                });
            }
            DatabaseSpec::Remote(remote) => {
                written.server = Some(OfServer {
                    url: Some(Cow::Borrowed(&remote.address)),
                    password_env: remote.password_env.as_deref().map(Cow::Borrowed),
                    agent: remote.agent.as_ref().map(Cow::Borrowed),
                    ..OfServer::default()
                });
            }
        }
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Database {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Database, D::Error> {
        let kept = Value::deserialize(from)?;
        read(&kept).map_err(D::Error::custom)
    }
}

fn read(kept: &Value) -> Result<Database, serde_json::Error> {
    let head = Head::deserialize(kept)?;
    let server = head.server;
    let spec = match (head.engine, server.url) {
        (DatabaseEngine::Kernel, _) => DatabaseSpec::Kernel(KernelSpec::deserialize(kept)?),
        (DatabaseEngine::Server(_), Some(address)) => DatabaseSpec::Remote(RemoteSpec {
            address: address.into_owned(),
            password_env: server.password_env.map(Cow::into_owned),
            agent: server.agent.map(Cow::into_owned),
        }),
        (DatabaseEngine::Server(kind), None) => {
            let own = OfOwn::deserialize(kept)?;
            DatabaseSpec::Server(ServerSpec {
                kind,
                memory: own.memory,
                redo_path: own.redo_path,
                settings: server.settings.into_owned(),
                bin_dir: server.bin_dir.map(Cow::into_owned),
                name: server.name.map(Cow::into_owned),
            })
        }
    };
    Ok(Database {
        size_bytes: head.size_bytes,
        spec,
    })
}

#[cfg(test)]
mod tests {
    use spindle_engines::sql::ServerKind;

    use super::*;

    /// As versions before this one wrote it, of a database, with the settings of a server last.
    fn old(engine: &str, redo_path: &str, server: &str) -> String {
        format!(
            "{{\"engine\":\"{engine}\",\"size_bytes\":4194304,\"block_size_bytes\":8192,\"buffer_cache_bytes\":1048576,\
             \"memory_bytes\":2097152,\"datafiles\":4,\"writers\":1,\"write_sync\":\"dsync\",\"commit\":\"wait\",\
             \"torn_blocks\":\"images\",\"checkpoint_interval_ms\":60000,\"lock_timeout_ms\":5000,\
             \"log_file_size_bytes\":67108864,\"log_files\":3,\"fixed_buffers\":true,\"redo_path\":{redo_path},{server}\
             \"redo_io\":null}}"
        )
    }

    fn read(text: &str) -> DatabaseSpec {
        let database: Database = serde_json::from_str(text).expect("it is a database");
        assert_eq!(database.size_bytes, 4 << 20);
        let again = serde_json::to_string(&database).unwrap();
        assert_eq!(serde_json::from_str::<Database>(&again).unwrap(), database);
        database.spec
    }

    fn written(text: &str) -> String {
        let database: Database = serde_json::from_str(text).expect("it is a database");
        serde_json::to_string(&database).unwrap()
    }

    #[test]
    fn the_embedded_database_is_written_as_ever() {
        let text = old("kernel", "null", "");
        assert!(matches!(read(&text), DatabaseSpec::Kernel(_)));
        // A setting that came later is not in it.
        let known: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        let mut now: serde_json::Map<String, Value> =
            serde_json::from_str(&written(&text)).unwrap();
        now.retain(|key, _| known.contains_key(key));
        assert_eq!(now, known);
    }

    #[test]
    fn a_server_of_an_old_journal_is_read_and_keeps_what_it_has() {
        let server =
            "\"server\":{\"settings\":{\"journal_mode\":\"wal\"},\"bin_dir\":null,\"url\":null},";
        let text = old("sqlite", "\"/redo\"", server);
        let DatabaseSpec::Server(spec) = read(&text) else {
            panic!("it is a server of Spindle's own");
        };
        assert_eq!(spec.kind, ServerKind::Sqlite);
        assert_eq!(spec.memory.buffer_cache_bytes, 1 << 20);
        assert_eq!(spec.redo_path, Some(PathBuf::from("/redo")));
        assert_eq!(spec.settings["journal_mode"], "wal");
        assert_eq!(
            written(&text),
            "{\"engine\":\"sqlite\",\"size_bytes\":4194304,\"buffer_cache_bytes\":1048576,\"memory_bytes\":2097152,\
             \"redo_path\":\"/redo\",\"server\":{\"settings\":{\"journal_mode\":\"wal\"},\"bin_dir\":null,\"url\":null}}"
        );
    }

    #[test]
    fn a_server_that_runs_already_has_an_address_and_nothing_else() {
        let server = "\"server\":{\"settings\":{},\"bin_dir\":null,\"url\":\"postgres://ann@h:5432/lab\",\
                      \"password_env\":\"SECRET\"},";
        let text = old("postgres", "null", server);
        let DatabaseSpec::Remote(spec) = read(&text) else {
            panic!("it is a server that runs already");
        };
        assert_eq!(spec.address.to_string(), "postgres://ann@h:5432/lab");
        assert_eq!(spec.password_env.as_deref(), Some("SECRET"));
        assert!(
            !written(&text).contains("buffer_cache"),
            "{}",
            written(&text)
        );
    }

    #[test]
    fn a_database_without_its_settings_is_refused() {
        let text = "{\"engine\":\"kernel\",\"size_bytes\":4194304}";
        let refused = serde_json::from_str::<Database>(text).unwrap_err();
        assert!(
            refused.to_string().contains("block_size_bytes"),
            "{refused}"
        );
    }
}
