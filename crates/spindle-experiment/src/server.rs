//! What `[database]` says of a database that speaks SQL: of one that Spindle makes and starts, or of one that runs
//! already and is reached by its address.

use spindle_engines::EngineError;
use spindle_engines::sections::{
    RemoteSettings, ServerSettings, StartedSettings, URL_ALLOWED, note_server_settings,
};
use spindle_engines::spec::{RemoteSpec, ServerSpec};
use spindle_engines::sql::address::Reach;
use spindle_engines::sql::{Address, ServerIo, ServerKind, SshHost, server, ssh_host};

use super::access_path::{AccessPath, IO_KEYS};
use super::memory::memory_of;
use super::reader::Reader;
use spindle_text::section::Section;

/// Reads the keys of a database that Spindle makes and starts. `memory_bytes` is the budget that a layout has from the
/// experiment.
pub(super) fn read(
    reader: &mut Reader<'_>,
    kind: ServerKind,
    memory_bytes: Option<u64>,
) -> ServerSpec {
    let said: StartedSettings = Section::read(reader);
    note_server_settings(reader);
    let ServerSettings { bin_dir, name } = Section::read(reader);
    ServerSpec {
        kind,
        memory: memory_of(&said, memory_bytes),
        redo_path: said.redo_path,
        settings: reader.settings("settings", |name, value| {
            server(kind).check_setting(name, value)
        }),
        bin_dir,
        name,
    }
}

/// Reads the keys of a server that runs already; `None` when there is no `url`.
pub(super) fn read_remote(reader: &mut Reader<'_>, kind: ServerKind) -> Option<RemoteSpec> {
    let RemoteSettings {
        url,
        password_env,
        agent,
    } = Section::read(reader);
    let address = url.and_then(|url| address_of(reader, &url, kind));
    let agent = agent
        .zip(address.as_ref())
        .and_then(|(agent, address)| agent_of(reader, &agent, address));
    address.map(|address| RemoteSpec {
        address,
        password_env,
        agent,
    })
}

/// What `agent` means for a server of this address.
fn agent_of(reader: &Reader<'_>, text: &str, address: &Address) -> Option<SshHost> {
    let host = match (text, &address.reach) {
        ("ssh", Reach::Host { host, .. }) => SshHost::of(None, host, None),
        ("ssh", Reach::Socket(_)) => Err(EngineError::refused(
            "url names a socket of this machine, and no host: say which, as \"ssh://localhost\"",
        )),
        (text, _) => SshHost::parse(text),
    };
    let refused = |error: EngineError| {
        let help = format!("allowed: {}", ssh_host::ALLOWED);
        reader.refuse_meaning("agent", "agent cannot be used", error.to_string(), help);
    };
    host.map_err(refused).ok()
}

/// What `url` means.
fn address_of(reader: &Reader<'_>, text: &str, kind: ServerKind) -> Option<Address> {
    let help = format!("allowed: {URL_ALLOWED}");
    let address = match Address::complete(text) {
        Ok(address) => address,
        Err(error) => {
            reader.refuse_meaning("url", "url cannot be used", error.to_string(), help);
            return None;
        }
    };
    if kind != address.kind() {
        let title = format!("url is not an address of engine = \"{kind}\"");
        let label = "it names another kind of server, or the engine is not a server";
        let refused = reader.conflict(&["url"], title, label, help);
        let refused = refused.given(reader.keys(["engine"]));
        // Which of the two is meant is not known.
        reader.note(refused.doubting(reader.keys(["url"])));
    }
    Some(address)
}

/// What an `io` table asks of a server of this kind, with datafiles in a file system or on devices: only what is
/// written in it. `given` are the keys that say which server it is, and where.
pub(super) fn server_io(
    reader: &Reader<'_>,
    io: AccessPath,
    kind: ServerKind,
    given: Vec<String>,
    is_on_devices: bool,
) -> Option<ServerIo> {
    let whole = reader.has("filesystemio_options");
    if io.method.identifies_files() {
        let refused = reader.conflict(
            &["method"],
            "only the embedded database works through a disk manager (ODM)",
            "not allowed with this engine",
            "choose \"sync\", \"slaves\", \"async\" or \"libaio\", or leave it to the server",
        );
        reader.note(refused.given(given));
        return None;
    }
    let asked = ServerIo {
        caching: (whole || reader.has("caching")).then_some(io.caching),
        method: (whole || reader.has("method")).then_some(io.method),
        slaves: io.slaves,
    };
    let asked = (asked.caching.is_some() || asked.method.is_some()).then_some(asked);
    if let Some(Err(reason)) = asked.map(|asked| server(kind).check_io(asked, is_on_devices)) {
        let refused = reader.conflict(
            &IO_KEYS,
            "this engine cannot do I/O this way",
            reason.to_string(),
            "leave io out to use the engine's default",
        );
        reader.note(refused.given(given));
    }
    asked
}

#[cfg(test)]
mod tests {
    use miette::GraphicalReportHandler;

    use super::super::{DatabaseSpec, Experiment};

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
        assert_eq!(again.layouts[0].address().unwrap().password, None);
    }

    #[test]
    fn an_agent_is_on_the_host_of_the_url_or_on_another() {
        let agent = |url: &str, agent: &str| {
            let text = format!(
                "[database]\nengine = \"postgres\"\n{LAYOUT}database = {{ url = \"{url}\", agent = \"{agent}\" }}\n"
            );
            let experiment =
                Experiment::parse("agent.toml", &text, &[]).map_err(|_| told(&text, &[]))?;
            let json = serde_json::to_string(&experiment).unwrap();
            let again: Experiment = serde_json::from_str(&json).unwrap();
            assert_eq!(again.layouts[0].database, experiment.layouts[0].database);
            match &experiment.layouts[0].database.spec {
                DatabaseSpec::Remote(remote) => Ok(remote.agent.clone().unwrap().to_string()),
                other => panic!("{other:?}"),
            }
        };
        let by_host = "postgres://a@db1:5433/d";
        assert_eq!(agent(by_host, "ssh"), Ok("ssh://db1".to_owned()));
        let other = "ssh://lab@db2:2222";
        assert_eq!(agent(by_host, other), Ok(other.to_owned()));
        let by_socket = "postgres://a@localhost/d?host=/run";
        assert_eq!(agent(by_socket, other), Ok(other.to_owned()));
        for (url, text, said) in [
            (by_socket, "ssh", "names a socket of this machine"),
            (by_host, "db1", "does not begin with ssh://"),
            (by_host, "ssh://-oProxyCommand=x", "no host name"),
        ] {
            let told: String = agent(url, text).unwrap_err();
            assert!(
                told.contains("agent cannot be used") && told.contains(said),
                "{told}"
            );
        }
        let alone = format!("[database]\nengine = \"postgres\"\nagent = \"ssh\"\n{LAYOUT}");
        assert!(told(&alone, &[]).contains("agent is set, and url is not"));
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
        let sets = ["plan.restore=snapshot".to_owned()];
        assert!(told(&database(""), &sets).contains("are not Spindle's"));
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
            ("\"postgres\"", "\"mariadb\"", "not an address of engine"),
            ("\"postgres\"", "\"sqlite\"", "not an address of engine"),
            ("@h/d", "@h/d?sslmode=requir", "its sslmode is not one of"),
            ("url = ", "password_env = ", "url is not"),
            ("@h/d\" }", "@h/d }", "not TOML"),
        ] {
            let text = database("").replace("8MiB", "128MiB").replace(from, to);
            let told = told(&text, &[]);
            assert!(told.contains(said), "{told}");
        }
        let set = format!("database.url=http://a:{PASSWORD}@h/d");
        assert!(told(&database(""), &[set]).contains("not a server"));
    }
}
