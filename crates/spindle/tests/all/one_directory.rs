//! One directory that two layouts name by different paths, as with a bind mount: both are measured, and nothing is left
//! in it. As root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use spindle_harness::is_root_or_skip;

const EXPERIMENT: &str = r#"
name = "one"
[database]
size = "8MiB"
buffer_cache = "1MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
warmup = "100ms"
measure = "300ms"
rounds = 2
quiet = "0s"
[[layout]]
name = "by its name"
path = "data"
[[layout]]
name = "by a bind mount"
path = "bound"
"#;

/// A directory on another, until it is dropped.
struct Bound {
    at: PathBuf,
}

impl Bound {
    fn new(directory: &Path, at: PathBuf) -> Bound {
        fs::create_dir_all(directory).unwrap();
        fs::create_dir_all(&at).unwrap();
        let mount = Command::new("mount")
            .arg("--bind")
            .args([directory, &at])
            .status();
        assert!(mount.unwrap().success());
        Bound { at }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

#[test]
fn a_directory_and_its_bind_mount_are_both_measured() {
    if !is_root_or_skip("a bind mount needs root") {
        return;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (data, bound) = (place.path().join("data"), place.path().join("bound"));
    let mounted = Bound::new(&data, bound);
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "experiment.toml", "--out", "out"])
        .env("SPINDLE_LEDGER_DIRECTORY", place.path().join("ledger"))
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert_eq!(case["status"], "measured", "{case}");
        assert_eq!(case["trials"].as_array().unwrap().len(), 2, "{case}");
    }
    drop(mounted);
    let left: Vec<_> = fs::read_dir(&data).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
