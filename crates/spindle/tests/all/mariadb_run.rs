//! Short runs of the program with MariaDB, in files and on a raw device. Without a server they say so and do nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

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
quiet = "0s"
warmup = "100ms"
measure = "2s"
rounds = 1
[[layout]]
name = "buffered"
io = { caching = "buffered" }
[[layout]]
name = "direct"
io = { caching = "direct" }
"#;

/// The same database on a raw device and in a file.
const ON_RAW: &str = r#"
name = "raw"
[database]
engine = "mariadb"
size = "8MiB"
buffer_cache = "6MiB"
[database.settings]
innodb_log_file_size = "8M"
innodb_file_per_table = "OFF"
innodb_data_file_path = "ibdata1:48M"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "100ms"
measure = "2s"
rounds = 1
[[layout]]
name = "raw"
devices = [{ file = "raw.img", size = "64MiB" }]
raw = true
placement = { redo = "files" }
[[layout]]
name = "files"
io = { caching = "direct" }
[[layout]]
name = "raw, and no file system"
devices = [{ file = "other.img", size = "64MiB" }]
raw = true
"#;

fn command(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command
        .args(arguments)
        .current_dir(place)
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"));
    command
}

fn spindle(place: &Path, arguments: &[&str]) -> Output {
    command(place, arguments).output().unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stderr[..], &output.stdout[..]].concat()).into_owned()
}

/// A directory that the server's user can come to, with an experiment in it.
fn place(experiment: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path(), open).unwrap();
    fs::create_dir(place.path().join("ledger")).unwrap();
    fs::write(place.path().join("experiment.toml"), experiment).unwrap();
    place
}

fn result(place: &Path) -> Value {
    let result = fs::read_to_string(place.join("out/result.json")).unwrap();
    serde_json::from_str(&result).unwrap()
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
    let place = place(EXPERIMENT);
    let run = spindle(place.path(), &["run", "experiment.toml", "--out", "out"]);
    let words = words(&run);
    if words.contains("MariaDB is not installed") {
        spindle_harness::skip("MariaDB is not installed");
        return;
    }
    assert!(run.status.success(), "{words}");
    let vary = "settings.innodb_doublewrit=ON,OFF";
    let misspelt = spindle(place.path(), &["run", "experiment.toml", "--vary", vary]);
    let told = self::words(&misspelt);
    assert_eq!(misspelt.status.code(), Some(2), "{told}");
    assert!(told.contains("did you mean innodb_doublewrite?"), "{told}");
    let result = result(place.path());
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

/// Loop devices on files below a directory.
fn loop_devices(place: &Path) -> Vec<String> {
    let devices = fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices
        .filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files
        .filter(|file| file.starts_with(place.to_str().unwrap()))
        .collect()
}

/// Detaches what a test that failed has left.
struct NoLoopDevices<'a>(&'a Path);

impl Drop for NoLoopDevices<'_> {
    fn drop(&mut self) {
        for file in loop_devices(self.0) {
            let found = Command::new("losetup")
                .args(["--noheadings", "--output", "NAME", "--associated"])
                .arg(file.trim())
                .output();
            let names = found.map(|found| found.stdout).unwrap_or_default();
            for name in String::from_utf8_lossy(&names).split_whitespace() {
                let _ = Command::new("losetup").args(["--detach", name]).status();
            }
        }
    }
}

/// Processes that work below a directory, as servers do in that of their data.
fn servers(place: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let directories =
        processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    directories
        .filter(|directory| directory.starts_with(place) && directory != place)
        .count()
}

fn is_skipped() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        spindle_harness::skip(
            "raw devices under MariaDB need root, for loop devices and their nodes",
        );
    }
    !is_root
}

#[test]
fn a_run_with_a_raw_device_is_killed_cleaned_up_and_goes_on() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let place = place(ON_RAW);
    let _detached = NoLoopDevices(place.path());
    let mut run = command(place.path(), &["run", "experiment.toml", "--out", "out"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Until a trial goes on: the journal says so, and there is a server.
    let journal = place.path().join("out/journal.jsonl");
    let goes_on = || {
        let told = fs::read_to_string(&journal).unwrap_or_default();
        told.contains("trial_started") && servers(place.path()) > 0
    };
    let began = Instant::now();
    while !goes_on() && run.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let told = fs::read_to_string(&journal).unwrap_or_default();
    if told.contains("MariaDB is not installed") {
        spindle_harness::skip("MariaDB is not installed");
        return;
    }
    let cleaned = spindle(place.path(), &["clean"]);
    assert!(cleaned.status.success(), "{}", words(&cleaned));
    assert_eq!(servers(place.path()), 0);
    assert_eq!(loop_devices(place.path()), [""; 0]);
    assert_eq!(left(place.path()), ["experiment.toml"]);
    let resumed = spindle(place.path(), &["resume", "out"]);
    assert!(resumed.status.success(), "{}", words(&resumed));
    // A layout with a file and one with a raw device have the same loaded database.
    let told = words(&resumed);
    assert_eq!(told.matches("loading 8 MiB").count(), 1, "{told}");
    let result = result(place.path());
    let notes = result["layouts"][0]["notes"].as_array().unwrap();
    let is_told = |note: &Value| note.as_str().unwrap().contains("ibdata1 on /dev/loop");
    assert!(notes.iter().any(is_told), "{notes:?}");
    for case in result["cases"].as_array().unwrap() {
        match case["layout"].as_str().unwrap() {
            "raw, and no file system" => {
                let reason = case["reason"].as_str().unwrap();
                assert!(reason.contains("add placement = { redo ="), "{reason}");
            }
            name => {
                assert_eq!(case["status"], "measured", "{name}: {case:#}");
                assert_eq!(case["trials"][0]["restore"]["verified"], true, "{name}");
            }
        }
    }
    assert_eq!(left(place.path()), ["experiment.toml"]);
    assert_eq!(loop_devices(place.path()), [""; 0]);
}
