//! Layouts that Spindle makes, as people use them: a run over raw devices, file systems and disk groups of its own, one
//! that is killed at random moments, and what is left of it. As root; what cannot be used is said in one line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The exit code of a run that measured half of the layouts, or fewer.
const HALF_LEFT_OUT: i32 = 3;

/// Small, with redo on its own device in every layout. The disk group shares three devices with a raw layout: each
/// has two parts of each.
const EXPERIMENT: &str = r#"
name = "layouts"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 2
log_file_size = "2MiB"
[workload]
clients = 4
[plan]
quiet = "0s"
warmup = "100ms"
measure = "800ms"
rounds = 1

[[layout]]
name = "raw, async"
devices = [{ file = "raw1.img", size = "32MiB" }, { file = "raw2.img", size = "32MiB" }]
raw = true
io = { method = "async" }
placement = { redo = "logs" }

[[layout]]
name = "raw, libaio"
devices = [{ file = "raw1.img", size = "32MiB" }, { file = "raw2.img", size = "32MiB" }]
raw = true
io = { method = "libaio" }
placement = { redo = "logs" }

[[layout]]
name = "disk group"
devices = [{ file = "asm1.img", size = "192MiB" }, { file = "asm2.img", size = "192MiB" }, { file = "asm3.img", size = "192MiB" }]
share = "fair"
diskgroup = { allocation_unit = "1MiB", redundancy = "normal" }
io = { method = "odm" }
placement = { redo = "logs" }

[[layout]]
name = "ext4"
devices = [{ file = "ext4.img", size = "128MiB" }]
filesystem = { type = "ext4", mount = "noatime" }
io = { caching = "direct", method = "sync" }
placement = { redo = "logs" }

[[layout]]
name = "raw, the other parts"
devices = [{ file = "asm1.img", size = "192MiB" }, { file = "asm2.img", size = "192MiB" }, { file = "asm3.img", size = "192MiB" }]
share = "fair"
raw = true
io = { method = "sync" }
placement = { redo = "logs" }

[[layout]]
name = "no such device"
devices = ["/dev/disk/by-id/there-is-none"]
raw = true

[[layout]]
name = "logs"
devices = [{ file = "logs.img", size = "96MiB" }]
raw = true
candidate = false
"#;

/// Loop devices are the whole machine's: one test at a time, or a run looks at another's while it is being made.
static ALONE: Mutex<()> = Mutex::new(());

struct Scene {
    directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    fn new() -> Scene {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // As people name theirs: tools, the kernel and the ledger take blanks, quotes and letters of any language.
        let directory = tempfile::Builder::new()
            .prefix("Größe \"und\" 'mehr' ")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        fs::write(directory.path().join("layouts.toml"), EXPERIMENT).unwrap();
        Scene {
            directory,
            _alone: alone,
        }
    }

    fn spindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .env(
                "SPINDLE_LEDGER_DIRECTORY",
                self.directory.path().join("ledger"),
            )
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.spindle(arguments).output().unwrap()
    }

    fn result(&self) -> Value {
        let text = fs::read_to_string(self.directory.path().join("out/result.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// What a run could leave: files here, and mounts and loop devices of this directory's files.
    fn traces(&self) -> BTreeSet<String> {
        let here = self.directory.path();
        let mut traces: BTreeSet<String> = files_below(here);
        traces.retain(|path| !path.contains("/out/") && !path.ends_with("layouts.toml"));
        let loops = fs::read_dir("/sys/block").unwrap().flatten();
        for device in loops {
            let backing = fs::read_to_string(device.path().join("loop/backing_file"));
            if let Ok(file) = backing
                && file.starts_with(&here.display().to_string())
            {
                traces.insert(format!("{} on {}", device.path().display(), file.trim()));
                let name = device.file_name().into_string().unwrap();
                let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
                let of_it = mounts
                    .lines()
                    .filter(|line| line.contains(&format!("/dev/{name} ")));
                traces.extend(of_it.map(str::to_owned));
            }
        }
        traces
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either.
        let _ = self.output(&["clean"]);
    }
}

fn files_below(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files_below(&entry.path()));
        } else {
            found.insert(entry.path().display().to_string());
        }
    }
    found
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn is_skipped() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        spindle_harness::skip("loop devices and mounts are root's");
    }
    !is_root
}

#[test]
fn layouts_are_made_measured_and_taken_away() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new();
    // Long enough that what the file system writes by itself is a small part.
    let longer = EXPERIMENT.replace("800ms", "2s");
    fs::write(scene.directory.path().join("layouts.toml"), longer).unwrap();
    let plan = words(&scene.output(&["plan", "layouts.toml"]));
    assert!(plan.contains("raw, async; raw, libaio: "), "{plan}");
    assert!(plan.contains("there-is-none"), "{plan}");
    assert_eq!(scene.traces(), BTreeSet::new(), "a plan touches nothing");

    let run = scene.output(&["run", "layouts.toml", "--out", "out", "--quiet"]);
    assert!(run.status.success(), "{}", words(&run));
    let result = scene.result();
    let layouts = result["layouts"].as_array().unwrap();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6, "what only holds files is not measured");
    for case in cases {
        match case["layout"].as_str().unwrap() {
            "no such device" => {
                let reason = case["reason"].as_str().unwrap();
                assert!(reason.contains("there-is-none"), "{reason}");
            }
            name => {
                assert_eq!(case["status"], "measured", "{name}: {case:#}");
                let trial = &case["trials"][0];
                assert_eq!(trial["restore"]["verified"], true, "{name}");
                let ratio = trial["audit"]["write_ratio"].as_f64().unwrap();
                assert!((0.8..=1.2).contains(&ratio), "{name}: {ratio}");
            }
        }
    }
    let described = |index: usize| layouts[index]["description"].as_str().unwrap().to_owned();
    assert!(described(2).contains("disk group"), "{}", described(2));
    assert!(described(3).contains("ext4 (noatime)"), "{}", described(3));
    assert_eq!(scene.traces(), BTreeSet::new());
    let cleaned = words(&scene.output(&["clean"]));
    assert!(cleaned.contains("nothing to clean"), "{cleaned}");
}

/// Layouts that differ in their access path share files. When these cannot be made, each is told why, and the second
/// not what the first has left.
#[test]
fn files_that_cannot_be_made_leave_nothing_in_the_way_of_the_next() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let scene = Scene::new();
    let (head, _) = EXPERIMENT.split_once("[[layout]]").unwrap();
    let layout = |name: &str, stands_on: &str, method: &str| {
        format!(
            "[[layout]]\nname = \"{name}\"\n{stands_on}\nio = {{ caching = \"direct\", method = \"{method}\" }}\n"
        )
    };
    // A journal this large is not reckoned with.
    let small = "devices = [{ file = \"small.img\", size = \"64MiB\" }]\n\
                 filesystem = { type = \"ext4\", mkfs = \"-J size=24\" }";
    let text = head.to_owned()
        + &layout("small, sync", small, "sync")
        + &layout("small, libaio", small, "libaio")
        + &layout("here", "path = \".\"", "sync");
    fs::write(scene.directory.path().join("layouts.toml"), text).unwrap();
    let run = scene.output(&["run", "layouts.toml", "--out", "out", "--quiet"]);
    assert_eq!(run.status.code(), Some(HALF_LEFT_OUT), "{}", words(&run));
    for case in scene.result()["cases"].as_array().unwrap() {
        let name = case["layout"].as_str().unwrap();
        if name == "here" {
            assert_eq!(case["status"], "measured", "{case:#}");
            continue;
        }
        let reason = case["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("no space for"), "{name}: {reason}");
    }
    assert_eq!(scene.traces(), BTreeSet::new());
}

/// A tool that a killed run had started, mkfs say, holds its ledger until it ends. On a busy machine that takes a
/// while.
const TOOLS_END_WITHIN: Duration = Duration::from_secs(60);

/// Goes on with a run that was killed, or starts it again.
fn when_tools_have_ended(scene: &Scene, command: &[&str]) -> Output {
    let began = Instant::now();
    loop {
        let resumed = scene.output(command);
        let is_held = words(&resumed).contains("a run of this name is going on");
        if !is_held || began.elapsed() > TOOLS_END_WITHIN {
            return resumed;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_killed_run_is_cleaned_up_and_goes_on() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let kills: u32 = std::env::var("SPINDLE_KILLS").map_or(6, |kills| kills.parse().unwrap());
    for kill in 0..kills {
        let scene = Scene::new();
        let mut child = scene
            .spindle(&["run", "layouts.toml", "--out", "out", "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over all that a run does.
        std::thread::sleep(Duration::from_millis(u64::from(60 + 700 * kill % 5200)));
        child.kill().unwrap();
        child.wait().unwrap();
        let finished = finished(&scene);
        if kill % 2 == 0 {
            let began = Instant::now();
            loop {
                let cleaned = scene.output(&["clean"]);
                assert!(cleaned.status.success(), "kill {kill}: {}", words(&cleaned));
                let is_late = began.elapsed() > TOOLS_END_WITHIN;
                if scene.traces().is_empty() || is_late {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            assert_eq!(scene.traces(), BTreeSet::new(), "kill {kill}");
        }
        let journal = fs::read(scene.directory.path().join("out/journal.jsonl"));
        let has_begun = journal.is_ok_and(|journal| journal.contains(&b'\n'));
        let command: &[&str] = match has_begun {
            true => &["resume", "out", "--quiet"],
            false => &["run", "layouts.toml", "--out", "out", "--quiet"],
        };
        let resumed = when_tools_have_ended(&scene, command);
        assert!(resumed.status.success(), "kill {kill}: {}", words(&resumed));
        assert_eq!(scene.traces(), BTreeSet::new(), "kill {kill}");
        let now = self::finished(&scene);
        assert!(
            now.len() == 5 && now.starts_with(&finished),
            "kill {kill}: {now:?} after {finished:?}: {}",
            reasons(&scene)
        );
    }
}

#[test]
fn a_device_that_vanishes_takes_its_layouts_along_and_no_other() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let scene = Scene::new();
    let arguments = ["run", "layouts.toml", "--out", "out", "--quiet"];
    let mut child = scene
        .spindle(&arguments)
        .args(["--set", "plan.rounds=3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Layouts 0 and 1 stand on these devices. A loop device beyond the end of its file fails every I/O.
    let began = Instant::now();
    while !finished(&scene).contains(&0) {
        assert!(began.elapsed() < Duration::from_secs(120), "no trial ends");
        assert_eq!(child.try_wait().unwrap(), None, "the run ended early");
        std::thread::sleep(Duration::from_millis(10));
    }
    let device = scene.directory.path().join("raw1.img");
    let file = fs::OpenOptions::new().write(true).open(device).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(HALF_LEFT_OUT));
    let result = scene.result();
    for case in result["cases"].as_array().unwrap() {
        let name = case["layout"].as_str().unwrap();
        match name {
            "no such device" => {}
            "raw, async" | "raw, libaio" => {
                assert_eq!(case["status"], "failed", "{name}: {case:#}");
                let reason = case["reason"].as_str().unwrap();
                let is_told = reason.contains("Input/output error") || reason.contains("I/O error");
                assert!(is_told, "{name}: {reason}");
                println!("{name}: {reason}");
            }
            _ => {
                assert_eq!(case["status"], "measured", "{name}: {case:#}");
                let trials = case["trials"].as_array().unwrap();
                assert_eq!(trials.len(), 3, "{name} went on");
            }
        }
    }
    assert_eq!(scene.traces(), BTreeSet::new());
}

/// btrfs without checksums: since Linux 6.15 direct writes of files that have them are buffered.
const REFLINK: &str = r#"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 2
log_file_size = "2MiB"
[workload]
clients = 4
[plan]
quiet = "0s"
restore = "reflink"
warmup = "100ms"
measure = "800ms"
rounds = 2

[[layout]]
name = "xfs"
devices = [{ file = "xfs.img", size = "320MiB" }]
filesystem = "xfs"
io = { caching = "direct", method = "sync" }

[[layout]]
name = "btrfs"
devices = [{ file = "btrfs.img", size = "256MiB" }]
filesystem = { type = "btrfs", mount = "nodatacow" }
io = { caching = "direct", method = "sync" }

[[layout]]
name = "old xfs"
devices = [{ file = "old.img", size = "320MiB" }]
filesystem = { type = "xfs", mkfs = "-m reflink=0" }
io = { caching = "direct", method = "sync" }

[[layout]]
name = "here"
io = { caching = "direct", method = "sync" }
"#;

#[test]
fn databases_are_put_back_by_sharing_blocks_when_asked() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let scene = Scene::new();
    fs::write(scene.directory.path().join("layouts.toml"), REFLINK).unwrap();
    let plan = words(&scene.output(&["plan", "layouts.toml"]));
    assert!(plan.contains("Warning: restore = \"reflink\": "), "{plan}");
    let run = scene.output(&["run", "layouts.toml", "--out", "out", "--quiet"]);
    assert_eq!(run.status.code(), Some(HALF_LEFT_OUT), "{}", words(&run));
    let result = scene.result();
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("first overwrite"), "{warnings}");
    for case in result["cases"].as_array().unwrap() {
        let name = case["layout"].as_str().unwrap();
        match name {
            "old xfs" => {
                let reason = case["reason"].as_str().unwrap();
                assert!(reason.contains("cannot be restored by reflink"), "{reason}");
            }
            // Whatever it is on.
            "here" => {}
            name => {
                assert_eq!(case["status"], "measured", "{name}: {case:#}");
                let trials = case["trials"].as_array().unwrap();
                let restore = &trials[1]["restore"];
                assert_eq!(restore["verified"], true, "{name}");
                let changed = restore["changed_blocks"].as_u64().unwrap();
                assert!(changed > 0, "{name}: the first trial wrote");
                let method = restore["method"].as_str().unwrap();
                assert!(method.contains("reflink"), "{name}: {method}");
                let warnings = trials[1]["warnings"].to_string();
                assert!(!warnings.contains("moved"), "{name}: {warnings}");
            }
        }
    }
    assert_eq!(scene.traces(), BTreeSet::new());
}

/// A server's files on a file system that shares blocks, and on one that does not.
const SERVER_REFLINK: &str = r#"
[database]
engine = "sqlite"
size = "4MiB"
buffer_cache = "1MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
restore = "reflink"
warmup = "100ms"
measure = "800ms"
rounds = 2

[[layout]]
name = "xfs"
devices = [{ file = "xfs.img", size = "320MiB" }]
filesystem = "xfs"

[[layout]]
name = "old xfs"
devices = [{ file = "old.img", size = "320MiB" }]
filesystem = { type = "xfs", mkfs = "-m reflink=0" }
"#;

#[test]
fn files_of_servers_are_put_back_by_sharing_blocks_when_asked() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let scene = Scene::new();
    fs::write(scene.directory.path().join("layouts.toml"), SERVER_REFLINK).unwrap();
    let run = scene.output(&["run", "layouts.toml", "--out", "out", "--quiet"]);
    assert_eq!(run.status.code(), Some(HALF_LEFT_OUT), "{}", words(&run));
    let result = scene.result();
    let [shared, not] = &result["cases"].as_array().unwrap()[..] else {
        panic!("{result:#}");
    };
    let reason = not["reason"].as_str().unwrap();
    assert!(reason.contains("cannot be restored by reflink"), "{reason}");
    assert_eq!(shared["status"], "measured", "{shared:#}");
    for trial in shared["trials"].as_array().unwrap() {
        let restore = &trial["restore"];
        assert_eq!(restore["verified"], true);
        let method = restore["method"].as_str().unwrap();
        assert!(method.contains("reflink"), "{method}");
    }
    assert_eq!(scene.traces(), BTreeSet::new());
}

/// Why cases were left out or broke off.
fn reasons(scene: &Scene) -> String {
    let result = scene.result();
    let cases = result["cases"].as_array().unwrap().iter();
    let reasons =
        cases.filter_map(|case| Some(format!("{}: {}", case["layout"], case.get("reason")?)));
    reasons.collect::<Vec<_>>().join("; ")
}

/// Layouts of the trials that are done, in order.
fn finished(scene: &Scene) -> Vec<u64> {
    let journal = fs::read_to_string(scene.directory.path().join("out/journal.jsonl"));
    let journal = journal.unwrap_or_default();
    let events = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events
        .filter(|event| event["event"] == "trial_finished")
        .map(|event| event["layout"].as_u64().unwrap())
        .collect()
}

/// The examples are read, and nothing in them is wrong on any machine; what a machine lacks is said.
#[test]
fn every_example_can_be_planned() {
    let scene = Scene::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut planned = 0;
    for entry in fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        let plan = scene.output(&["plan", path.to_str().unwrap()]);
        let words = words(&plan);
        let cannot_all = ["cannot be made", "cannot be used"];
        let is_planned =
            plan.status.success() || cannot_all.iter().any(|part| words.contains(part));
        assert!(is_planned, "{}: {words}", path.display());
        let tells_trials = words.contains("trials (") || words.contains("no trials");
        assert!(tells_trials, "{}: {words}", path.display());
        planned += 1;
    }
    assert!(planned >= 6);
    assert_eq!(scene.traces(), BTreeSet::new(), "a plan touches nothing");
}
