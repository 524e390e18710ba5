//! Runs on the copy of a stopped PostgreSQL: measured, interrupted and gone on with, and refused by `plan` and `run`
//! before anything is made.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "copied"
[database]
engine = "postgres"
buffer_cache = "4MiB"
[workload]
kind = "script"
scripts = ["add.sql"]
load = ["original"]
check = ["check.sql"]
clients = 2
[plan]
quiet = "0s"
warmup = "100ms"
measure = "500ms"
rounds = 1
[[layout]]
name = "here"
[[layout]]
name = "log there"
placement = { redo = "there" }
[[layout]]
name = "there"
path = "there"
candidate = false
"#;
const USER: &str = "postgres";
const PATIENCE: Duration = Duration::from_secs(120);

/// A program of the newest PostgreSQL here, as its own user where root runs the test.
fn tool(name: &str) -> Option<Command> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let programs = versions.map(|version| version.path().join("bin").join(name));
    let newest = programs.filter(|program| program.is_file()).max()?;
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.arg("--").arg(newest).current_dir("/");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Some(command)
}

/// A directory with an experiment, and the cluster that it names.
fn scene() -> Option<tempfile::TempDir> {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let original = place.path().join("original");
    let Some(mut initdb) = tool("initdb") else {
        spindle_harness::skip("PostgreSQL is not installed");
        return None;
    };
    let made = initdb.arg("--no-sync").arg("-D").arg(&original).status();
    assert!(made.unwrap().success());
    let mut single = tool("postgres").unwrap();
    single
        .args(["--single", "-D"])
        .arg(&original)
        .arg("postgres");
    let mut single = single.stdin(Stdio::piped()).spawn().unwrap();
    let sql = b"create table items (id integer, stock integer)\ninsert into items values (1, 10)\n";
    single.stdin.take().unwrap().write_all(sql).unwrap();
    assert!(single.wait().unwrap().success());
    for (name, text) in [
        ("experiment.toml", EXPERIMENT),
        (
            "add.sql",
            "update items set stock = stock + 0 where id = 1;",
        ),
        ("check.sql", "select sum(stock) from items;"),
    ] {
        fs::write(place.path().join(name), text).unwrap();
    }
    fs::create_dir(place.path().join("there")).unwrap();
    Some(place)
}

fn spindle(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command
        .args(arguments)
        .current_dir(place)
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    let words = String::from_utf8_lossy(&both).into_owned();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names, modes, sizes and times of all that is below a directory.
fn state_of(directory: &Path) -> Vec<(PathBuf, u32, u64, i64, i64)> {
    let mut state = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let times = (found.mtime(), found.mtime_nsec());
        state.push((path, found.mode(), found.size(), times.0, times.1));
    }
    state.sort();
    state
}

#[test]
fn a_run_on_a_copy_is_interrupted_and_goes_on() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(place) = scene() else { return };
    let original = place.path().join("original");
    let before = state_of(&original);
    let mut command = spindle(place.path(), &["run", "experiment.toml", "--out", "out"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let trials = place.path().join("out/journal.jsonl");
    let is_measured =
        || fs::read_to_string(&trials).is_ok_and(|text| text.contains("trial_finished"));
    while !is_measured() {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none() && began.elapsed() < PATIENCE, "{ended:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let resumed = spindle(place.path(), &["resume", "out"]).output().unwrap();
    assert!(resumed.status.success(), "{}", said(&resumed));
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    for case in result["cases"].as_array().unwrap() {
        assert_eq!(case["status"], "measured", "{case}");
        assert_eq!(case["trials"].as_array().unwrap().len(), 1);
    }
    assert!(before == state_of(&original), "the original has changed");
    let there = fs::read_dir(place.path().join("there")).unwrap();
    assert_eq!(there.count(), 0);
}

#[test]
fn what_cannot_be_copied_is_told_before_anything_is_made() {
    let Some(place) = scene() else { return };
    let told = |arguments: &[&str]| {
        let output = spindle(place.path(), arguments).output().unwrap();
        assert!(!output.status.success(), "{}", said(&output));
        said(&output)
    };
    let version = place.path().join("original/PG_VERSION");
    let right = fs::read(&version).unwrap();
    fs::write(&version, "9.6\n").unwrap();
    for arguments in [
        &["plan", "experiment.toml"][..],
        &["run", "experiment.toml", "--out", "out"],
    ] {
        let told = told(arguments);
        let wanted = "original cannot be copied: its files are of PostgreSQL 9.6, and the server is PostgreSQL";
        assert!(told.contains(wanted), "{told}");
    }
    fs::write(&version, right).unwrap();
    let path = [
        "run",
        "experiment.toml",
        "--set",
        "layout.here.path=original/base",
        "--set",
        "layout.\"log there\".path=original/base",
    ];
    let within = told(&path);
    assert!(
        within.contains("lies within original, which is copied and only read"),
        "{within}"
    );
    let path = [
        "plan",
        "experiment.toml",
        "--set",
        "workload.load=['add.sql','original']",
    ];
    let late = told(&path);
    assert!(
        late.contains("files of a database are copied as a whole"),
        "{late}"
    );
    fs::write(
        place.path().join("other.toml"),
        EXPERIMENT.replace("\"original\"", "\"add.sql\""),
    )
    .unwrap();
    let name = told(&["plan", "other.toml", "--set", "database.name=shop"]);
    assert!(
        name.contains("name is set, and load copies no server"),
        "{name}"
    );
}
