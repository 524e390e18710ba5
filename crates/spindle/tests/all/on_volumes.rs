//! Whole runs on volumes and slow devices, in a virtual machine whose kernel has device-mapper: `make test-vm` names
//! empty disks in `SPINDLE_TEST_DISKS`. Without them nothing is done here. Everything on these disks is lost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SMALL: &str = r#"
[database]
size = "4MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 1
log_file_size = "1MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "100ms"
measure = "500ms"
rounds = 2
"#;

fn disks() -> Vec<String> {
    let named = std::env::var("SPINDLE_TEST_DISKS").expect("scripts/test-vm names the disks");
    named.split(' ').map(str::to_owned).collect()
}

fn spindle(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .env("SPINDLE_LEDGER_DIRECTORY", directory.join("ledger"))
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn run(directory: &Path, experiment: &str) -> Value {
    fs::write(directory.join("it.toml"), experiment).unwrap();
    let run = spindle(directory, &["run", "it.toml", "--out", "out", "--quiet"]);
    let cleaned = words(&spindle(directory, &["clean"]));
    assert!(run.status.success(), "{}{cleaned}", words(&run));
    assert!(cleaned.contains("nothing to clean"), "{cleaned}");
    let text = fs::read_to_string(directory.join("out/result.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn thin_volumes_are_put_back_before_each_trial() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let experiment = format!(
        r#"{}
restore = "snapshot"

[[layout]]
name = "ext4 on thin"
devices = ["{}"]
volume = {{ thin = true }}
filesystem = "ext4"
placement = {{ redo = "logs" }}

[[layout]]
name = "raw on thin"
devices = ["{}"]
volume = {{ thin = true }}
raw = true
io = {{ caching = "direct" }}
placement = {{ redo = "logs" }}

[[layout]]
name = "logs"
devices = ["{}"]
volume = {{ thin = true }}
raw = true
candidate = false
"#,
        SMALL, disks[0], disks[1], disks[2]
    );
    let result = run(directory.path(), &experiment);
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert_eq!(case["status"], "measured", "{case:#}");
        for trial in case["trials"].as_array().unwrap() {
            let restore = &trial["restore"];
            let method = restore["method"].as_str().unwrap();
            assert!(method.contains("snapshot"), "{method}");
            assert_eq!(restore["verified"], true);
            // udev reads devices through the page cache there, which is not the database's doing.
            let warnings = trial["warnings"].to_string();
            assert!(!warnings.contains("not direct here"), "{warnings}");
            eprintln!(
                "{}: put back in {} ms",
                case["layout"], restore["duration_ms"]
            );
        }
    }
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn files_of_servers_on_thin_volumes_are_put_back_before_each_trial() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let experiment = format!(
        r#"
[database]
engine = "sqlite"
size = "4MiB"
buffer_cache = "1MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "100ms"
measure = "500ms"
rounds = 2
restore = "snapshot"

[[layout]]
name = "ext4 on thin"
devices = ["{}"]
volume = {{ thin = true }}
filesystem = "ext4"
"#,
        disks[0]
    );
    let result = run(directory.path(), &experiment);
    let case = &result["cases"][0];
    assert_eq!(case["status"], "measured", "{case:#}");
    for trial in case["trials"].as_array().unwrap() {
        let restore = &trial["restore"];
        let method = restore["method"].as_str().unwrap();
        assert!(method.contains("snapshot"), "{method}");
        assert_eq!(restore["verified"], true);
    }
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn a_delay_is_beneath_the_layout_where_it_can_be() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let experiment = format!(
        r#"{}
[[layout]]
name = "slow disk"
devices = ["{}"]
filesystem = "ext4"
io = {{ caching = "direct", method = "sync" }}
delay = {{ read_us = 20000 }}

[[layout]]
name = "half a millisecond"
devices = ["{}"]
raw = true
delay = {{ read_us = 500 }}
"#,
        SMALL, disks[0], disks[1]
    );
    fs::write(directory.path().join("it.toml"), &experiment).unwrap();
    let plan = words(&spindle(directory.path(), &["plan", "it.toml"]));
    assert!(plan.contains("with dm-delay (read 20 ms)"), "{plan}");
    assert!(plan.contains("whole milliseconds only"), "{plan}");
    let result = run(directory.path(), &experiment);
    let emulated = |index: usize| result["layouts"][index]["emulated"].to_string();
    assert!(emulated(0).contains("by dm-delay"), "{}", emulated(0));
    assert!(emulated(1).contains("in the database"), "{}", emulated(1));
    for case in result["cases"].as_array().unwrap() {
        assert_eq!(case["status"], "measured", "{case:#}");
    }
    let trial = &result["cases"][0]["trials"][0];
    let waits = trial["waits"].as_array().unwrap();
    let read = waits
        .iter()
        .find(|wait| wait["event"] == "db file sequential read");
    let read = read.unwrap_or_else(|| panic!("{trial:#}"));
    // A tick of the kernel's clock may be missing.
    assert!(read["mean_us"].as_f64().unwrap() >= 16_000.0, "{read}");
    eprintln!("{read}");
}

/// A file system on a disk, for as long as the test lasts.
struct Mounted {
    directory: tempfile::TempDir,
    disk: String,
}

impl Mounted {
    fn on(disk: &str) -> Mounted {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Mounted {
            directory,
            disk: disk.to_owned(),
        };
        let path = mounted.path();
        let commands: [(&str, &[&str]); 2] = [
            ("mkfs.ext4", &["-q", "-F", disk]),
            ("mount", &[disk, path.to_str().unwrap()]),
        ];
        for (program, arguments) in commands {
            let status = Command::new(program).args(arguments).status().unwrap();
            assert!(status.success(), "{program} {arguments:?}");
        }
        mounted
    }

    fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.directory.path()).status();
        let _ = Command::new("wipefs")
            .args(["-q", "-a", &self.disk])
            .status();
    }
}

/// Recorded and cut on one machine, on loop devices of files, as `spindle powercut FILE` does by itself.
#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn the_power_is_cut_where_device_mapper_is() {
    let disks = disks();
    let mounted = Mounted::on(&disks[4]);
    let layout = r#"
[[layout]]
name = "ext4, direct"
devices = [{ file = "ext4.img", size = "1GiB" }]
filesystem = "ext4"
io = { caching = "direct", method = "sync" }
"#;
    fs::write(mounted.path().join("it.toml"), layout).unwrap();
    let arguments = ["powercut", "it.toml", "--out", "out", "--cuts", "6"];
    let cut = spindle(&mounted.path(), &arguments);
    let told = words(&cut);
    eprintln!("{told}");
    assert!(cut.status.success(), "{told}");
    let rows = told
        .lines()
        .filter(|line| line.starts_with("| ext4, direct |"));
    let promised = rows.filter(|row| row.ends_with("| yes |"));
    // With commits that wait, and with commits that do not.
    assert_eq!(promised.count(), 2, "{told}");
    let again = words(&spindle(&mounted.path(), &arguments));
    assert!(again.contains("as promised"), "rows are kept: {again}");
    let cleaned = words(&spindle(&mounted.path(), &["clean"]));
    assert!(cleaned.contains("nothing to clean"), "{cleaned}");
}

/// Interrupted while a case is recorded, and while its power is cut.
#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn power_cuts_that_are_interrupted_leave_nothing() {
    let disks = disks();
    let mounted = Mounted::on(&disks[4]);
    let layout = "[[layout]]\nname = \"raw\"\ndevices = [{ file = \"raw.img\", size = \"1GiB\" }]\nraw = true\n";
    fs::write(mounted.path().join("it.toml"), layout).unwrap();
    for moment in ["recording", "cutting the power of"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(["powercut", "it.toml", "--out", "out", "--cuts", "2000"])
            .env("SPINDLE_LEDGER_DIRECTORY", mounted.path().join("ledger"))
            .current_dir(mounted.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let is_time = lines.any(|line| line.unwrap().starts_with(moment));
        assert!(is_time, "{moment}: it ended before");
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let told: Vec<String> = lines.map(Result::unwrap).collect();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(130),
            "{moment}: {told:#?}"
        );
        let left = fs::read_dir(mounted.path().join("out")).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        let is_file = |name: &std::ffi::OsString| name.to_str().unwrap().ends_with(".jsonl");
        assert!(left.iter().all(is_file), "{moment}: {left:?}");
        let cleaned = words(&spindle(&mounted.path(), &["clean"]));
        assert!(cleaned.contains("nothing to clean"), "{moment}: {cleaned}");
    }
}
