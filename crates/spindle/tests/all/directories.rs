//! Directories that are not what their names say: one that two layouts name by different paths, as with a bind mount,
//! and one in memory, where direct writes pass through the page cache. All are measured, and nothing is left in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use spindle_harness::is_root_or_skip;
use spindle_io::real::facts::{DirectProbe, direct_probe};

const EXPERIMENT: &str = r#"
name = "directories"
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
"#;

/// The result of a run of two layouts in these directories, which ends well.
fn run(place: &Path, paths: [&Path; 2]) -> Value {
    let layout = |path: &Path| {
        let path = path.display();
        format!("[[layout]]\nname = \"{path}\"\npath = \"{path}\"\n")
    };
    let layouts = paths.map(layout).concat();
    fs::write(
        place.join("experiment.toml"),
        format!("{EXPERIMENT}{layouts}"),
    )
    .unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "experiment.toml", "--out", "out"])
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let result = fs::read_to_string(place.join("out/result.json")).unwrap();
    serde_json::from_str(&result).unwrap()
}

fn assert_both_measured(result: &Value) {
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert_eq!(case["status"], "measured", "{case}");
        assert_eq!(case["trials"].as_array().unwrap().len(), 2, "{case}");
    }
}

fn assert_empty(directory: &Path) {
    let left: Vec<_> = fs::read_dir(directory).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A directory on another, until it is dropped.
struct Bound {
    at: PathBuf,
}

impl Bound {
    fn new(directory: &Path, at: &Path) -> Bound {
        fs::create_dir_all(directory).unwrap();
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.arg("--bind").args([directory, at]).status();
        assert!(mounted.unwrap().success());
        Bound { at: at.to_owned() }
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
    let mounted = Bound::new(&data, &bound);
    assert_both_measured(&run(place.path(), [&data, &bound]));
    drop(mounted);
    assert_empty(&data);
}

/// Nobody asked for direct writes of redo: where the file system buffers them, that is noted.
#[test]
fn where_redo_is_not_direct_the_layout_is_measured_with_a_note() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        spindle_harness::skip("/dev/shm");
        return;
    };
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = place.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let result = run(place.path(), [&disk, memory.path()]);
    assert_both_measured(&result);
    let notes = |at: usize| result["layouts"][at]["notes"].to_string();
    let told = "redo: not direct here: tmpfs accepts O_DIRECT";
    assert!(notes(1).contains(told), "{}", notes(1));
    let is_direct = direct_probe(&disk).unwrap() == DirectProbe::Direct;
    assert_eq!(!notes(0).contains("not direct"), is_direct, "{}", notes(0));
    assert_empty(memory.path());
}
