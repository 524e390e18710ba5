//! What `[database]` says of a database server: where it is, and its own settings. Only engines that speak SQL have it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_engines::kernel::InstanceSettings;
use spindle_engines::sql::{Address, ServerIo, ServerKind, server};
use spindle_text::section::Listing;

use super::access_path::AccessPath;
use super::database::Engine;
use super::error::ExperimentError;
use super::reader::Reader;

/// Keys of `[database]` that the embedded database alone understands, beside those of its instance.
const KERNEL_KEYS: [&str; 8] = [
    "block_size",
    "datafiles",
    "log_file_size",
    "log_files",
    "fixed_buffers",
    "redo_io",
    "filesystemio_options",
    "slaves",
];
/// And those that it does not.
const SERVER_KEYS: [&str; 4] = ["settings", "bin_dir", "url", "password_env"];
/// Keys of `[database]` that say how a server is made and started.
const OF_OWN_SERVERS: [&str; 5] = ["settings", "bin_dir", "buffer_cache", "memory", "redo_path"];
/// Keys of a layout that say what a server stands on, and how it reads and writes there.
pub(super) const OF_OWN_GROUND: [&str; 14] = [
    "path",
    "devices",
    "raw",
    "filesystem",
    "diskgroup",
    "volume",
    "share",
    "erase",
    "discard",
    "precondition",
    "placement",
    "io",
    "limit",
    "delay",
];

/// A database server, as the experiment describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its own settings by its own names, such as `wal_sync_method` or `innodb_flush_method`.
    pub settings: BTreeMap<String, String>,
    /// Directory of its programs; where such programs usually are when absent.
    pub bin_dir: Option<PathBuf>,
    /// An existing server, such as `postgres://user@host/database`; one of Spindle's own when absent. Its
    /// password is never written down.
    pub url: Option<Address>,
    /// The environment variable that its password is in; where the server's own clients look for one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
}

impl Server {
    /// Reads the keys of a server; `None` for the embedded database, which has none of them.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        engine: Engine,
    ) -> Result<Option<Server>, ExperimentError> {
        let server = Server {
            settings: reader.settings("settings", |name, value| match engine.server() {
                Some(kind) => {
                    let checked = server(kind).check_setting(name, value);
                    checked.map_err(|error| error.to_string())
                }
                None => Ok(()),
            }),
            bin_dir: reader.directory("bin_dir"),
            url: read_url(reader, engine)?,
            password_env: reader
                .text("password_env", "the name of an environment variable")
                .map(str::to_owned),
        };
        let of_instance = Listing::of::<InstanceSettings>();
        let kernel_keys = of_instance.iter().map(|row| row.key).chain(KERNEL_KEYS);
        let (foreign, whose, help): (Vec<&'static str>, _, _) = match engine {
            Engine::Kernel => (
                SERVER_KEYS.to_vec(),
                "a key for database servers",
                "leave it out, or choose another engine: \"sqlite\", \"postgres\", \"mariadb\"",
            ),
            _ => (
                kernel_keys.collect(),
                "a key of the embedded database",
                "leave it out; a server's own settings go into settings = { NAME = VALUE }",
            ),
        };
        if let Some(key) = foreign.into_iter().find(|key| reader.has(key)) {
            let title = format!("{key} means nothing to engine = \"{engine}\"");
            return Err(reader.conflict(&[key], title, whose, help));
        }
        let of_own = || OF_OWN_SERVERS.into_iter().find(|key| reader.has(key));
        if let (Some(address), Some(key)) = (&server.url, of_own()) {
            return Err(reader.conflict(
                &[key],
                format!("{key} is set for an existing server, {address}"),
                "Spindle neither starts such a server nor sets anything of it",
                format!("leave {key} out; what the server says of its settings is recorded"),
            ));
        }
        if server.url.is_none() && server.password_env.is_some() {
            return Err(reader.conflict(
                &["password_env"],
                "password_env is set, and url is not",
                "it says where the password for url is",
                "leave it out, or set url",
            ));
        }
        Ok((engine != Engine::Kernel).then_some(server))
    }
}

/// Reads `url`.
fn read_url(reader: &mut Reader<'_>, engine: Engine) -> Result<Option<Address>, ExperimentError> {
    const ALLOWED: &str = "the address of a server that is running: \"postgres://user:password@host:port/database\", or \
                           \"mysql://user:password@host:port\"";
    let Some(text) = reader.text("url", ALLOWED) else {
        return Ok(None);
    };
    let refused = |title: String, label: String| {
        reader.conflict(&["url"], title, label, format!("allowed: {ALLOWED}"))
    };
    let address = Address::parse(text)
        .map_err(|error| refused("url cannot be used".to_owned(), error.to_string()))?;
    if engine.server().is_some_and(|kind| kind != address.kind) {
        return Err(refused(
            format!("url is no address of engine = \"{engine}\""),
            "it names another kind of server, or the engine is not a server".to_owned(),
        ));
    }
    Ok(Some(address))
}

/// What an `io` table asks of a server of this kind, with datafiles in a file system or on devices: only what is
/// written in it.
pub(super) fn server_io(
    reader: &Reader<'_>,
    io: AccessPath,
    kind: ServerKind,
    is_on_devices: bool,
) -> Result<Option<ServerIo>, ExperimentError> {
    let whole = reader.has("filesystemio_options");
    if io.method.identifies_files() {
        return Err(reader.conflict(
            &["method"],
            "only the embedded database works through a disk manager (ODM)",
            "not allowed with this engine",
            "choose \"sync\", \"slaves\", \"async\" or \"libaio\", or leave it to the server",
        ));
    }
    let asked = ServerIo {
        caching: (whole || reader.has("caching")).then_some(io.caching),
        method: (whole || reader.has("method")).then_some(io.method),
        slaves: io.slaves,
    };
    let asked = (asked.caching.is_some() || asked.method.is_some()).then_some(asked);
    if let Some(Err(reason)) = asked.map(|asked| server(kind).check_io(asked, is_on_devices)) {
        reader.refuse(
            &["caching", "method", "filesystemio_options", "slaves"],
            "this engine cannot read and write so",
            reason.to_string(),
            "leave io out, and the engine does as it usually does",
        );
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use miette::GraphicalReportHandler;

    use super::super::Experiment;

    const PASSWORD: &str = "sesame-4711";
    const LAYOUT: &str = "[[layout]]\nname = \"there\"\n";

    /// What a person is told of a mistake, with all of the file that is shown.
    fn told(text: &str, sets: &[String]) -> String {
        let error = Experiment::parse("wrong.toml", text, sets).expect_err("it is wrong");
        let mut told = String::new();
        let handler = GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
        handler.render_report(&mut told, &error).unwrap();
        assert!(!told.contains(PASSWORD), "{told}");
        told
    }

    fn database(more: &str) -> String {
        format!(
            "[database]\nengine = \"postgres\"\nsize = \"8MiB\"\n{more}\n{LAYOUT}database = {{ url = \"postgres://a:{PASSWORD}@h/d\" }}\n"
        )
    }

    #[test]
    fn a_url_is_kept_without_its_password() {
        let experiment = Experiment::parse("right.toml", &database(""), &[]).unwrap();
        let address = experiment.layouts[0].address().expect("it has a url");
        assert_eq!(address.password.as_ref().unwrap().text(), PASSWORD);
        let json = serde_json::to_string(&experiment).unwrap();
        assert!(json.contains("postgres://a@h:5432/d"), "{json}");
        assert!(!json.contains(PASSWORD), "{json}");
        let again: Experiment = serde_json::from_str(&json).unwrap();
        assert!(again.is_foreign());
        assert_eq!(again.layouts[0].address().unwrap().password, None);
    }

    #[test]
    fn what_an_existing_server_does_not_have_is_refused() {
        for (more, key) in [
            ("settings = { work_mem = \"1MB\" }", "settings"),
            ("buffer_cache = \"4MiB\"", "buffer_cache"),
            ("memory = \"256MiB\"", "memory"),
        ] {
            let told = told(&database(more), &[]);
            assert!(
                told.contains(&format!("{key} is set for an existing server")),
                "{told}"
            );
        }
        for (more, key) in [
            ("path = \"/tmp\"", "path"),
            ("io = { caching = \"direct\" }", "io"),
            ("limit = { read_iops = 500 }", "limit"),
            ("delay = { read_us = 500 }", "delay"),
            ("placement = { redo = \"there\" }", "placement"),
        ] {
            let text = format!("{}{more}\n", database(""));
            let told = told(&text, &[]);
            assert!(
                told.contains(&format!("{key} is set for an existing server")),
                "{told}"
            );
        }
        let sets = ["plan.restore=reflink".to_owned()];
        assert!(told(&database(""), &sets).contains("loaded again"));
        let mixed = format!(
            "{}{}",
            database("").replace("8MiB", "128MiB"),
            LAYOUT.replace("there", "own")
        );
        assert!(told(&mixed, &[]).contains("not on equal terms"));
    }

    #[test]
    fn a_mistake_beside_a_password_does_not_show_it() {
        for (from, to, said) in [
            ("name = ", "nam = ", "nam is not a setting"),
            ("\"postgres\"", "\"mariadb\"", "no address of engine"),
            ("\"postgres\"", "\"sqlite\"", "no address of engine"),
            ("@h/d", "@h/d?sslmode=require", "encrypted"),
            ("url = ", "password_env = ", "url is not"),
            ("@h/d\" }", "@h/d }", "not TOML"),
        ] {
            let text = database("").replace("8MiB", "128MiB").replace(from, to);
            let told = told(&text, &[]);
            assert!(told.contains(said), "{told}");
        }
        let set = format!("database.url=http://a:{PASSWORD}@h/d");
        assert!(told(&database(""), &[set]).contains("no server"));
    }
}
