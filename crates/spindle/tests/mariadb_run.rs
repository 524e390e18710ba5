//! A short run of the program with MariaDB on two layouts. Without a server it says so and does nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "short"
[database]
engine = "mariadb"
size = "8MiB"
buffer_cache = "6MiB"
settings = { innodb_log_file_size = "8M" }
[workload]
clients = 2
[plan]
warmup = "100ms"
measure = "500ms"
rounds = 1
[[layout]]
name = "buffered"
io = { caching = "buffered" }
[[layout]]
name = "direct"
io = { caching = "direct" }
[[layout]]
name = "direct, a word amiss"
io = { caching = "direct" }
database = { settings = { innodb_doublewrit = "OFF" } }
"#;

fn spindle(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(place)
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .output()
        .unwrap()
}

/// Everything below a directory, but results and ledger.
fn left(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| !["out", "ledger"].contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_measures_what_it_can_and_leaves_nothing() {
    // The server's user must be able to come to it.
    let place = tempfile::tempdir().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path(), open).unwrap();
    fs::create_dir(place.path().join("ledger")).unwrap();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let run = spindle(place.path(), &["run", "experiment.toml", "--out", "out"]);
    let words =
        String::from_utf8_lossy(&run.stderr).into_owned() + &String::from_utf8_lossy(&run.stdout);
    if words.contains("MariaDB is not installed") {
        eprintln!("skipped: MariaDB is not installed");
        return;
    }
    assert!(run.status.success(), "{words}");
    assert!(
        words.contains("did you mean innodb_doublewrite?"),
        "{words}"
    );
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let cases = result["cases"].as_array().unwrap();
    let measured: Vec<&Value> = cases
        .iter()
        .filter(|case| !case["trials"].as_array().unwrap().is_empty())
        .collect();
    assert_eq!(measured.len(), 2, "{words}");
    for case in measured {
        let trial = &case["trials"][0];
        let waits = trial["waits"].as_array().unwrap();
        let waited = |event: &str| {
            let mut waits = waits.iter();
            waits.any(|wait| wait["event"].as_str().unwrap().contains(event))
        };
        assert!(
            waited("(log file sync)") && waited("(db file sequential read)"),
            "{waits:?}"
        );
    }
    assert_eq!(left(place.path()), ["experiment.toml"]);
}
