//! A run on SQLite, as people start it: three journal modes side by side, one that cannot be used, killed and gone on
//! with.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "journal"
[database]
engine = "sqlite"
size = "4MiB"
buffer_cache = "1MiB"
[workload]
clients = 3
[plan]
quiet = "0s"
warmup = "200ms"
measure = "600ms"
rounds = 2
[[layout]]
name = "log"
[[layout]]
name = "log, not flushed"
database = { settings = { synchronous = "off" } }
[[layout]]
name = "journal"
database = { settings = { journal_mode = "delete" } }
[[layout]]
name = "delayed"
delay = { read_us = 500 }
"#;

/// The same database in a file, on a raw device and in a disk group.
const ON_RAW: &str = r#"
name = "raw"
[database]
engine = "sqlite"
size = "4MiB"
buffer_cache = "1MiB"
[workload]
clients = 3
[plan]
quiet = "0s"
warmup = "100ms"
measure = "400ms"
rounds = 1
[[layout]]
name = "files"
[[layout]]
name = "raw"
devices = [{ file = "raw.img", size = "32MiB" }]
raw = true
placement = { redo = "files" }
[[layout]]
name = "disk group"
devices = [{ file = "disk1.img", size = "64MiB" }, { file = "disk2.img", size = "64MiB" }]
diskgroup = { allocation_unit = "1MiB", redundancy = "normal" }
placement = { redo = "files" }
[[layout]]
name = "raw, slaves"
devices = [{ file = "raw.img", size = "32MiB" }]
raw = true
io = { method = "slaves", slaves = 4 }
placement = { redo = "files" }
"#;

/// Two queries of a small database, asked in two journal modes.
const QUERIES: &str = r#"
name = "queries"
[database]
engine = "sqlite"
buffer_cache = "4MiB"
[workload]
kind = "tpch"
scale = 0.01
queries = [4, 6]
[plan]
quiet = "0s"
rounds = 1
[[layout]]
name = "log"
[[layout]]
name = "journal"
database = { settings = { journal_mode = "delete" } }
"#;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new(experiment: &str) -> Place {
        // Beside the program: /tmp may be a tmpfs.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(directory.path().join("experiment.toml"), experiment).unwrap();
        Place { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn spindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.path().join("ledger"))
            .stdin(Stdio::null());
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.spindle(arguments).output().unwrap()
    }

    fn result(&self) -> Value {
        let text = fs::read_to_string(self.path().join("out/result.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn finished_trials(&self) -> usize {
        let journal = fs::read_to_string(self.path().join("out/journal.jsonl"));
        journal
            .unwrap_or_default()
            .matches("\"trial_finished\"")
            .count()
    }

    /// What is there besides the experiment, the ledger and the run.
    fn leftovers(&self) -> Vec<String> {
        let names = fs::read_dir(self.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let ours = ["experiment.toml", "ledger", "out"];
        names
            .filter(|name| !ours.contains(&name.as_str()))
            .collect()
    }
}

#[test]
fn journal_modes_are_compared_and_nothing_is_left() {
    let place = Place::new(EXPERIMENT);
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(place.leftovers(), Vec::<String>::new());
    let result = place.result();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in &cases[..3] {
        assert_eq!(case["status"], "measured", "{case}");
        for trial in case["trials"].as_array().unwrap() {
            assert!(trial["transactions"].as_u64().unwrap() > 0);
            assert_eq!(trial["errors"], 0);
            assert!(trial["write_iops"].as_f64().unwrap() > 0.0);
            assert!(
                trial["restore"]["method"]
                    .as_str()
                    .unwrap()
                    .contains("files compared")
            );
            assert!(
                trial["check"]
                    .as_str()
                    .unwrap()
                    .contains("agree with the ledger")
            );
        }
    }
    let skipped = cases[3].to_string();
    assert!(skipped.contains("does not delay its own I/O"), "{skipped}");
    // A flush that is waited for is seen, if not in each short trial: waits are sampled.
    let waits = |case: &Value| -> f64 {
        let trials = case["trials"].as_array().unwrap().iter();
        let waits = trials.flat_map(|trial| trial["waits"].as_array().unwrap());
        waits
            .filter(|wait| wait["event"] == "sync of the log (log file sync)")
            .map(|wait| wait["total_us"].as_f64().unwrap())
            .sum()
    };
    assert!(waits(&cases[0]) > 0.0);
    assert_eq!(waits(&cases[1]), 0.0);
}

#[test]
fn a_run_that_was_killed_goes_on_and_leaves_nothing() {
    let place = Place::new(EXPERIMENT);
    let mut run = place.spindle(&["run", "experiment.toml", "--out", "out"]);
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while place.finished_trials() < 2 {
        assert!(began.elapsed() < Duration::from_secs(240), "no trial ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let output = place.output(&["resume", "out"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(place.finished_trials(), 6);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn answers_are_kept_once_and_one_that_differs_is_told() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = Place::new(QUERIES);
    let output = place.output(&["run", "experiment.toml", "--keep-answers", "--out", "out"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("answers: "), "{output:?}");
    let answers = place.path().join("out/answers");
    let mut names: Vec<_> = fs::read_dir(&answers)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["stream0-q04.csv", "stream0-q06.csv"]);
    let priorities = fs::read_to_string(answers.join("stream0-q04.csv")).unwrap();
    let lines: Vec<&str> = priorities.lines().collect();
    assert_eq!(lines[0], "o_orderpriority,order_count");
    assert!(lines[1].starts_with("1-URGENT,"), "{priorities}");
    assert_eq!(lines.len(), 6);
    let warnings = |result: &Value| {
        result["cases"]
            .to_string()
            .matches("answered otherwise")
            .count()
    };
    assert_eq!(warnings(&place.result()), 0);

    // A trial that gets another answer than the first is told.
    fs::write(answers.join("stream0-q06.csv"), "revenue\n1\n").unwrap();
    drop_last_trial(&place);
    let output = place.output(&["resume", "out"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(warnings(&place.result()), 1);
    assert_eq!(fs::read_dir(&answers).unwrap().count(), 3);
}

/// Cuts the journal before the last trial, as if the run had been killed there.
fn drop_last_trial(place: &Place) {
    let path = place.path().join("out/journal.jsonl");
    let journal = fs::read_to_string(&path).unwrap();
    let last = journal.rfind("\"trial_finished\"").unwrap();
    let begins = journal[..last].rfind('\n').unwrap() + 1;
    fs::write(&path, &journal[..begins]).unwrap();
    fs::remove_file(place.path().join("out/result.json")).unwrap();
}

/// Detaches what a test that failed has left.
struct NoLoopDevices<'a>(&'a Path);

impl NoLoopDevices<'_> {
    /// Loop devices on files below the directory.
    fn names(&self) -> Vec<String> {
        let is_ours = |device: &fs::DirEntry| {
            let file = fs::read_to_string(device.path().join("loop/backing_file"));
            file.is_ok_and(|file| file.starts_with(self.0.to_str().unwrap()))
        };
        let devices = fs::read_dir("/sys/block").unwrap().flatten();
        let ours = devices.filter(is_ours);
        ours.map(|device| device.file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for NoLoopDevices<'_> {
    fn drop(&mut self) {
        for name in self.names() {
            let device = format!("/dev/{name}");
            let _ = Command::new("losetup").args(["--detach", &device]).status();
        }
    }
}

#[cfg(not(feature = "sqlite-devices"))]
#[test]
fn a_program_without_raw_devices_for_it_says_how_to_have_them() {
    let place = Place::new(ON_RAW);
    let left = NoLoopDevices(place.path());
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let told = String::from_utf8_lossy(&output.stderr);
    // One of four was measured.
    assert_eq!(output.status.code(), Some(3), "{told}");
    let result = place.result();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases[0]["status"], "measured");
    for case in &cases[1..] {
        let reason = case["reason"].as_str().unwrap();
        assert!(reason.contains("--features sqlite-devices"), "{reason}");
    }
    assert_eq!(place.leftovers(), Vec::<String>::new());
    assert_eq!(left.names(), Vec::<String>::new());
}

#[cfg(feature = "sqlite-devices")]
#[test]
fn a_file_a_raw_device_and_a_disk_group_are_compared() {
    if !rustix::process::geteuid().is_root() {
        spindle_harness::skip(
            "raw devices under SQLite need root, for loop devices and their nodes",
        );
        return;
    }
    let place = Place::new(ON_RAW);
    let left = NoLoopDevices(place.path());
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("loading 4 MiB").count(), 1, "{told}");
    let result = place.result();
    let notes = result["layouts"][1]["notes"].as_array().unwrap();
    let is_told = |note: &Value| {
        note.as_str()
            .unwrap()
            .contains("spindle.db is on /dev/loop")
    };
    assert!(notes.iter().any(is_told), "{notes:?}");
    let cases = result["cases"].as_array().unwrap();
    for case in &cases[..3] {
        assert_eq!(case["status"], "measured", "{case:#}");
        let trial = &case["trials"][0];
        assert!(trial["transactions"].as_u64().unwrap() > 0);
        assert_eq!(trial["restore"]["verified"], true);
        let check = trial["check"].as_str().unwrap();
        assert!(check.contains("agree with the ledger"), "{check}");
    }
    let reason = cases[3]["reason"].as_str().unwrap();
    assert!(reason.contains("\"sync\" only"), "{reason}");
    assert_eq!(place.leftovers(), Vec::<String>::new());
    assert_eq!(left.names(), Vec::<String>::new());
}
