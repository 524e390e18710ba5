//! A run on PostgreSQL, as people start it: the write-ahead log flushed in two ways, and a layout that the server
//! cannot have.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
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
[[layout]]
name = "misspelt"
database = { settings = { wal_sync_metod = "fdatasync" } }
"#;

fn is_installed() -> bool {
    let request = ServerRequest {
        settings: Default::default(),
        bin_dir: None,
        buffer_cache_bytes: 8 << 20,
        data_bytes: 8 << 20,
        clients: 1,
        io: None,
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

#[test]
fn two_ways_to_flush_are_compared_and_nothing_is_left() {
    if !is_installed() {
        return;
    }
    // Where the server's own user gets to.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "experiment.toml", "--out", "out"])
        .current_dir(place.path())
        .env("SPINDLE_LEDGER_DIRECTORY", place.path().join("ledger"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in &cases[..2] {
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
    let skipped = cases[2].to_string();
    assert!(skipped.contains("did you mean"), "{skipped}");
    let left: Vec<String> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["experiment.toml", "ledger", "out"].contains(&name.as_str()))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(processes_in(&place.path().canonicalize().unwrap()), 0);
}
