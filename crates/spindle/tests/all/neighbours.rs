//! Programs that use the device of a layout while it is measured: they are named.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::limits::Disk;

const EXPERIMENT: &str = r#"
[database]
size = "8MiB"
buffer_cache = "4MiB"
memory = "32MiB"
log_file_size = "2MiB"
[workload]
clients = 4
[plan]
quiet = "0s"
warmup = "200ms"
measure = "2s"
rounds = 2
[[layout]]
name = "here"
io = { caching = "direct" }
"#;

/// A program that only writes and flushes, with all that it starts. It ends with the test.
struct Noise(Child);

impl Noise {
    fn on(disk: &Disk) -> Noise {
        let writes =
            "while :; do dd if=/dev/zero of=noise bs=64k count=16 conv=fsync 2>/dev/null; done";
        let mut shell = Command::new("sh");
        let shell = shell
            .args(["-c", writes])
            .current_dir(disk.mount_point())
            .process_group(0)
            .stdin(Stdio::null());
        Noise(shell.spawn().unwrap())
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        // It ends with the signal, or has ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

fn run(disk: &Disk) -> (Value, String) {
    let place = disk.mount_point();
    fs::write(place.join("x.toml"), EXPERIMENT).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "x.toml", "--out", "out"])
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .current_dir(&place)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let result = fs::read_to_string(place.join("out/result.json")).unwrap();
    (serde_json::from_str(&result).unwrap(), said)
}

#[test]
fn a_program_that_only_flushes_on_the_same_device_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !spindle_harness::is_root_or_skip("loop devices and mounts") {
        return;
    }
    let disk = Disk::in_memory(160 << 20);
    let noise = Noise::on(&disk);
    let process = format!("sh (process {})", noise.0.id());
    let (result, said) = run(&disk);
    for trial in result["cases"][0]["trials"].as_array().unwrap() {
        let neighbour = &trial["conditions"]["neighbour"];
        assert_eq!(neighbour["process_id"], noise.0.id(), "{trial}");
        assert!(neighbour["written_bytes_per_s"].as_f64() > Some(0.0));
    }
    drop(noise);
    let finding = result["findings"].to_string();
    assert!(finding.contains(&process), "{finding}");
    assert!(said.contains(&process), "{said}");
    fs::remove_dir_all(disk.mount_point().join("out")).unwrap();
    let (alone, _) = run(&disk);
    for trial in alone["cases"][0]["trials"].as_array().unwrap() {
        assert!(trial["conditions"]["neighbour"].is_null(), "{trial}");
    }
}
