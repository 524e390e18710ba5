//! A run on PostgreSQL, as people start it: the write-ahead log flushed in two ways, and settings that the server does
//! not have.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use spindle_engines::ErrorKind;
use spindle_engines::sql::{ServerKind, ServerRequest, server};

const EXPERIMENT: &str = r#"
name = "log"
[database]
engine = "postgres"
size = "8MiB"
buffer_cache = "4MiB"
[workload]
clients = 3
[plan]
quiet = "0s"
warmup = "300ms"
measure = "1500ms"
rounds = 2
[[layout]]
name = "fdatasync"
[[layout]]
name = "open_datasync"
database = { settings = { wal_sync_method = "open_datasync" } }
"#;

/// A slip in a layout's settings, or in what is varied, ends the command before anything is made.
#[test]
fn misspelt_settings_are_told_before_anything_runs() {
    if !is_installed() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let misspelt = "[[layout]]\nname = \"misspelt\"\ndatabase = { settings = { wal_sync_metod = \"fsync\" } }\n";
    fs::write(
        place.path().join("experiment.toml"),
        format!("{EXPERIMENT}{misspelt}"),
    )
    .unwrap();
    fs::write(place.path().join("right.toml"), EXPERIMENT).unwrap();
    for (command, told) in [
        ("run experiment.toml", "misspelt: PostgreSQL"),
        ("plan experiment.toml", "did you mean \"wal_sync_method\"?"),
        (
            "run right.toml --vary settings.wal_level=replcia,minimal",
            "did you mean \"replica\"?",
        ),
        (
            "try . --engine postgres --vary settings.wal_level=replcia,minimal --save kept.toml",
            "Available values: minimal, replica",
        ),
    ] {
        let run = run_spindle(place.path(), command);
        let words = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{command}: {words}");
        assert!(words.contains(told), "{command}: {words}");
    }
    let left = fs::read_dir(place.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name == "runs" || name == "kept.toml"),
        "{left:?}"
    );
}

/// What needs another version is no slip: `plan` shows it among the layouts, made ones and others.
#[test]
fn a_layout_that_needs_another_version_cannot_be_used() {
    let request = ServerRequest {
        settings: [("io_workers".to_owned(), "2".to_owned())].into(),
        bin_dir: None,
        buffer_cache_bytes: 8 << 20,
        data_bytes: 8 << 20,
        clients: 1,
        io: None,
        database: None,
    };
    match server(ServerKind::Postgres).examine(&request) {
        Err(error) if error.kind() == ErrorKind::RefusedSetting => {}
        other => {
            spindle_harness::skip(format!("no PostgreSQL before version 18: {other:?}"));
            return;
        }
    }
    let place = tempfile::tempdir().unwrap();
    let layout = "[[layout]]\nname = \"newer\"\ndatabase = { settings = { io_workers = 2 } }\n";
    let made = "devices = [{ file = \"x.img\", size = \"1GiB\" }]\nfilesystem = \"ext4\"\n";
    for more in ["", made] {
        let text = format!(
            "[database]\nengine = \"postgres\"\nsize = \"8MiB\"\nbuffer_cache = \"4MiB\"\n{layout}{more}"
        );
        fs::write(place.path().join("experiment.toml"), text).unwrap();
        let plan = run_spindle(place.path(), "plan experiment.toml");
        let told = String::from_utf8_lossy(&plan.stdout);
        assert_eq!(plan.status.code(), Some(3), "{told}");
        assert!(
            told.contains("cannot be used: io_workers needs PostgreSQL 18"),
            "{told}"
        );
    }
    assert!(!place.path().join("x.img").exists());
}

/// Whether a server can be started; says that the test is skipped when not.
pub(crate) fn is_installed() -> bool {
    let request = ServerRequest {
        settings: Default::default(),
        bin_dir: None,
        buffer_cache_bytes: 8 << 20,
        data_bytes: 8 << 20,
        clients: 1,
        io: None,
        database: None,
    };
    match server(ServerKind::Postgres).examine(&request) {
        Ok(_) => true,
        Err(error) => {
            spindle_harness::skip(error);
            false
        }
    }
}

/// Processes that work beneath a directory.
fn processes_in(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let works_in = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    works_in.filter(|path| path.starts_with(directory)).count()
}

fn run_spindle(place: &Path, arguments: &str) -> Output {
    // Where the server's own user gets to.
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments.split(' '))
        .current_dir(place)
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn two_ways_to_flush_are_compared_and_nothing_is_left() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let run = run_spindle(place.path(), "run experiment.toml --out out");
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert_eq!(case["status"], "measured", "{case}");
        for trial in case["trials"].as_array().unwrap() {
            assert!(trial["transactions"].as_u64().unwrap() > 0);
            assert!(trial["write_iops"].as_f64().unwrap() > 0.0, "{trial}");
            let check = trial["check"].as_str().unwrap();
            assert!(check.contains("agree with the ledger"), "{check}");
            let waits = trial["waits"].as_array().unwrap();
            let names = waits.iter().filter_map(|wait| wait["event"].as_str());
            let logs = names.filter(|name| name.contains("log file"));
            assert!(logs.count() > 0, "{trial}");
        }
    }
    let left: Vec<String> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["experiment.toml", "ledger", "out"].contains(&name.as_str()))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(processes_in(&place.path().canonicalize().unwrap()), 0);
}

/// The server takes connections again after it, and clients could go on as if nothing had been.
#[test]
fn a_session_that_the_kernel_killed_for_its_memory_is_told() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() || !spindle_harness::is_root_or_skip("a memory budget needs root") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
    write("schema.sql", "create table t (id integer primary key);\n");
    write(
        "grow.sql",
        "select length(string_agg(repeat(md5(i::text), 100), '')) from generate_series(1, 200000) i;\n",
    );
    let run = run_spindle(
        place.path(),
        "try . --engine postgres --load schema.sql --script grow.sql --clients 1 --time 30s \
         --vary settings.jit=on,off",
    );
    let told = String::from_utf8_lossy(&run.stdout).replace('\n', " ");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success(), "{told}{said}");
    assert!(
        said.contains("the kernel killed a process of the server"),
        "{told}{said}"
    );
    assert!(said.contains("set database.memory higher"), "{told}{said}");
    assert_eq!(processes_in(&place.path().canonicalize().unwrap()), 0);
}

/// What the server refuses is known before its devices are touched.
#[test]
fn nothing_is_made_for_a_layout_that_the_server_refuses() {
    if !is_installed() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let refused = "[[layout]]\nname = \"refused\"\nraw = false\nfilesystem = \"ext4\"\n\
                   devices = [{ file = \"disk.img\", size = \"64MiB\" }]\n\
                   database = { settings = { wal_sync_method = \"fsync_writethrough\" } }\n";
    let text = format!("{EXPERIMENT}{refused}");
    fs::write(place.path().join("experiment.toml"), text).unwrap();
    let run = run_spindle(
        place.path(),
        "run experiment.toml --only fdatasync,refused --quick --out out",
    );
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("skipped: refused: "), "{said}");
    assert!(!said.contains("disk.img"), "{said}");
}

/// SQL runs programs as the server's user, who may put a link in the place of any of the server's files.
#[test]
fn sql_leads_root_to_no_other_file() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() || !spindle_harness::is_root_or_skip("files of root") {
        return;
    }
    let top = tempfile::tempdir().unwrap();
    let place = top.path().canonicalize().unwrap();
    let secret = place.join("secret");
    fs::write(&secret, "root's alone").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o711)).unwrap();
    let experiment = r#"
[database]
engine = "postgres"
size = "16MiB"
buffer_cache = "8MiB"
[workload]
kind = "script"
scripts = ["script.sql"]
load = ["load.sql"]
clients = 1
[plan]
warmup = "0s"
measure = "300ms"
rounds = 2
quiet = "0s"
[[layout]]
name = "it"
"#;
    fs::write(place.join("x.toml"), experiment).unwrap();
    for file in ["../run/server.log", "postgresql.conf", "../tablespaces"] {
        // A load leaves no such file, so that none is put back before the link that a trial makes.
        let load = format!(
            "create table t (a int);\ncopy (select 1) to program 'cat > /dev/null; rm -f {file}';\n"
        );
        let script = format!(
            "copy (select 1) to program 'cat > /dev/null; ln -sfn {} {file}';\n",
            secret.display()
        );
        fs::write(place.join("load.sql"), load).unwrap();
        fs::write(place.join("script.sql"), script).unwrap();
        let run = run_spindle(&place, "run x.toml");
        let told = String::from_utf8_lossy(&run.stdout);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(
            fs::read_to_string(&secret).unwrap(),
            "root's alone",
            "{file}"
        );
        assert!(
            !told.contains("root's alone") && !said.contains("root's alone"),
            "{file}"
        );
        assert!(said.contains("Permission denied"), "{file}: {told}{said}");
        assert_eq!(processes_in(&place), 0);
    }
}
