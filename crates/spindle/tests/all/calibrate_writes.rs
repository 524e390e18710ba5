//! `spindle calibrate --write-percent`: what may not be written keeps every byte, whatever is asked; without the option
//! nothing is opened for writing; what was written is given back, also by `spindle clean` after a death.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spindle_harness::Watch;

use crate::calibrate::beside_others;
use crate::flush_honesty::added_zram;
use crate::limits::{output, own_directory};

const MIB: usize = 1 << 20;
const IMAGE_BYTES: usize = 32 * MIB;
/// One point of a second.
const ONE_POINT: [&str; 15] = [
    "--time",
    "10s",
    "--run",
    "advanced",
    "--matrix",
    "point",
    "--num-small",
    "2",
    "--num-large",
    "1",
    "--type",
    "seq",
    "--duration",
    "1s",
    "--json",
];

/// Loop devices in their own directory, with ledgers beside them.
struct Scene {
    directory: tempfile::TempDir,
    undo: Vec<[String; 3]>,
}

impl Scene {
    fn new() -> Scene {
        Scene {
            directory: own_directory(),
            undo: Vec::new(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file that is written as a whole.
    fn image(&self, name: &str, byte: u8) -> PathBuf {
        let file = File::create(self.at(name)).unwrap();
        file.write_all_at(&vec![byte; IMAGE_BYTES], 0).unwrap();
        file.sync_all().unwrap();
        self.at(name)
    }

    fn attach(&mut self, file: &Path, how: &[&str]) -> String {
        let file = file.to_str().unwrap();
        let arguments = [&["--find", "--show"], how, &[file]].concat();
        let device = output("losetup", &arguments).trim().to_owned();
        self.undo
            .push(["losetup", "--detach", &device].map(str::to_owned));
        device
    }

    /// A device in memory that was never written.
    fn zram(&mut self) -> Option<String> {
        let id = added_zram()?;
        // Before anything else may fail.
        let remove = format!("echo {id} > /sys/class/zram-control/hot_remove");
        self.undo.push(["sh".to_owned(), "-c".to_owned(), remove]);
        let size = IMAGE_BYTES.to_string();
        fs::write(format!("/sys/block/zram{id}/disksize"), size).ok()?;
        Some(format!("/dev/zram{id}"))
    }

    fn disk(&mut self, name: &str, byte: u8) -> String {
        let image = self.image(name, byte);
        self.attach(&image, &["--direct-io=on"])
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.at("ledgers"))
            .stdin(Stdio::null());
        command
    }

    fn calibrate(&self, targets: &[&str], more: &[&str]) -> Output {
        let arguments = [&["calibrate", "--no-metadata"], targets, more].concat();
        self.command(&arguments).output().unwrap()
    }

    fn measured(&self, targets: &[&str], more: &[&str]) -> Value {
        let ended = self.calibrate(targets, &[&ONE_POINT, more].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        serde_json::from_slice(&ended.stdout).unwrap()
    }

    /// What the first interrupt and a death meet: a device that is written.
    fn writing(&self, device: &str) -> Child {
        let arguments = [
            &[
                "calibrate",
                device,
                "--no-metadata",
                "--write-percent",
                "50",
            ],
            &ONE_POINT[..12],
            &["--duration", "60s"],
        ];
        let mut child = self
            .command(&arguments.concat())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let told = BufReader::new(child.stderr.take().unwrap());
        let mut lines = told.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("point 1 of 1")));
        child
    }

    fn ledgers(&self) -> usize {
        let entries = fs::read_dir(self.at("ledgers")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .count()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        while let Some([program, how, what]) = self.undo.pop() {
            let _ = Command::new(program).args([how, what]).status();
        }
    }
}

fn can_run() -> bool {
    spindle_harness::is_root_or_skip("loop devices")
}

/// Both ends, and whether there is anything between.
fn ends_are_zero(image: &Path) -> (bool, bool) {
    let bytes = fs::read(image).unwrap();
    let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == 0);
    // The last block of the first MiB may bear Spindle's mark.
    let ends = is_zero(&bytes[..MIB - 4096]) && is_zero(&bytes[IMAGE_BYTES - MIB..]);
    (ends, is_zero(&bytes[MIB..IMAGE_BYTES - MIB]))
}

#[test]
fn what_may_not_be_written_keeps_every_byte() {
    if !can_run() {
        return;
    }
    let _shared = beside_others();
    let mut scene = Scene::new();
    let full = scene.disk("full", 0x5a);
    let other = scene.disk("other", 0);
    let stacked = scene.disk("stacked", 0);
    let above = scene.attach(Path::new(&stacked), &[]);
    let twice = scene.disk("twice", 0);
    let again = scene.attach(&scene.at("twice"), &[]);
    let image = scene.image("only read", 0);
    let only_read = scene.attach(&image, &["--read-only"]);
    let mounted = scene.disk("mounted", 0);
    output("mkfs.ext4", &["-qF", &mounted]);
    fs::create_dir(scene.at("mount")).unwrap();
    let point = scene.at("mount").display().to_string();
    output("mount", &["-o", "ro,noload", &mounted, &point]);
    scene
        .undo
        .push(["umount", "--lazy", &point].map(str::to_owned));
    let held = scene.disk("held", 0);
    let holder = File::open(&held).unwrap();
    let cases: [(&[&str], &[&str], &str); 14] = [
        (&[&full], &[], "it is not empty"),
        (&[&full], &["--erase", &other], "it is not empty"),
        (&[&full], &["--erase", "loop"], "it is not empty"),
        (&[&other, &full], &[], "it is not empty"),
        (&[&stacked], &["--erase", &stacked], "is in use"),
        (&[&above, &stacked], &[], "it lies on"),
        (&[&twice], &["--erase", &twice], "is in use"),
        (&[&twice, &again], &[], "both stand for"),
        (&[&only_read], &[], "is read-only"),
        (&[&mounted], &["--erase", &mounted], "is mounted on"),
        (&[&held], &["--erase", &held], "open for reading by"),
        (
            &["full"],
            &["--erase", "full"],
            "an existing file is never written",
        ),
        (&[&other], &["--caching", "buffered"], "--caching direct"),
        (
            &[&other],
            &["--erase", "mistyped"],
            "--erase mistyped names none of the targets",
        ),
    ];
    let names = [
        "full",
        "other",
        "stacked",
        "twice",
        "only read",
        "mounted",
        "held",
    ];
    let bytes = || names.map(|name| fs::read(scene.at(name)).unwrap());
    let before = bytes();
    for (targets, more, part) in cases {
        let ended = scene.calibrate(targets, &[&["--write-percent", "100"], more].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{targets:?}: {said}");
        assert!(said.contains(part), "{targets:?}: {said}");
    }
    assert!(bytes() == before, "a refused target was written to");
    assert_eq!(scene.ledgers(), 0);
    drop(holder);
}

#[test]
fn an_empty_device_is_written_and_given_back_empty() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run() {
        return;
    }
    let _shared = beside_others();
    let mut scene = Scene::new();
    let device = scene.disk("disk", 0);
    // On a busy machine a second may have too few requests for both.
    let measured = || scene.measured(&[&device], &["--write-percent", "50", "--size", "16MiB"]);
    let is_mixed = |found: &Value| found["matrix"]["points"][0]["small_writes"].is_object();
    let found = (0..3).map(|_| measured()).find(is_mixed).unwrap();
    assert_eq!(found["targets"][0]["is_written"], true);
    assert_eq!(found["targets"][0]["bytes"], 16 * MIB);
    let point = &found["matrix"]["points"][0];
    let (all, written) = (&point["iops"], &point["small_writes"]["per_s"]);
    let share = written.as_f64().unwrap() / all.as_f64().unwrap();
    // Each request is one or the other by chance: four standard deviations, where there are few.
    let off_max = (2.0 / point["requests"].as_f64().unwrap().sqrt()).max(0.1);
    assert!((share - 0.5).abs() < off_max, "{point}");
    assert_eq!(
        point["large_writes"],
        Value::Null,
        "one stream of one reads"
    );
    assert_ne!(
        found["honesty"][0]["flushes"], 0,
        "its flushes are tried, too"
    );
    assert_eq!(ends_are_zero(&scene.at("disk")), (true, false));
    // What was left needs no --erase: the guard knows it for Spindle's own.
    let found = scene.measured(&[&device], &["--write-percent", "100", "--size", "16MiB"]);
    let point = &found["matrix"]["points"][0];
    let (all, written) = (&point["iops"], &point["small_writes"]["per_s"]);
    assert_eq!(all, written, "nothing was read");
    assert_eq!(found["cache"]["device"]["asked_bytes"], 0);
    assert_eq!(scene.ledgers(), 0);
}

#[test]
fn a_device_is_erased_only_when_it_is_named() {
    if !can_run() {
        return;
    }
    let _shared = beside_others();
    let mut scene = Scene::new();
    let device = scene.disk("disk", 0x5a);
    let arguments = [
        "--write-percent",
        "10",
        "--size",
        "16MiB",
        "--erase",
        &device,
    ];
    scene.measured(&[&device], &arguments);
    assert_eq!(ends_are_zero(&scene.at("disk")), (true, false));
}

/// Beside it is named what takes no files, or has no room for one.
#[test]
fn a_device_is_not_erased_for_a_target_that_is_wrong() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run() {
        return;
    }
    let _shared = beside_others();
    let mut scene = Scene::new();
    let device = scene.disk("disk", 0x5a);
    for (name, options) in [("read only", "ro"), ("small", "size=16m")] {
        let point = scene.at(name).display().to_string();
        fs::create_dir(&point).unwrap();
        output("mount", &["-t", "tmpfs", "-o", options, "none", &point]);
        scene
            .undo
            .push(["umount", "--lazy", &point].map(str::to_owned));
    }
    fs::create_dir(scene.at("takes files")).unwrap();
    let before = fs::read(scene.at("disk")).unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["read only"], "mounted read-only"),
        (&["small"], "are free"),
        (
            &["takes files", "--control", "read only"],
            "mounted read-only",
        ),
        (&["takes files", "--control", "small"], "it lies in memory"),
    ];
    for (more, part) in cases {
        let how = ["--write-percent", "10", "--erase", &device];
        let ended = scene.calibrate(&[&device], &[more, &how].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{more:?}: {said}");
        assert!(said.contains(part), "{more:?}: {said}");
    }
    assert!(
        fs::read(scene.at("disk")).unwrap() == before,
        "it was erased"
    );
    assert_eq!(scene.ledgers(), 0);
}

#[test]
fn an_interrupt_and_spindle_clean_give_a_device_back() {
    if !can_run() {
        return;
    }
    let _shared = beside_others();
    let mut scene = Scene::new();
    let device = scene.disk("disk", 0);
    let mut child = scene.writing(&device);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(ends_are_zero(&scene.at("disk")).0);
    assert_eq!(scene.ledgers(), 0);
    let mut child = scene.writing(&device);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!ends_are_zero(&scene.at("disk")).0, "it was written");
    let ended = scene.command(&["clean"]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("removed: what Spindle put on"), "{said}");
    assert!(ends_are_zero(&scene.at("disk")).0);
    assert_eq!(scene.ledgers(), 0);
}

#[test]
fn a_device_that_was_never_written_gives_no_figures_of_storage() {
    if !can_run() {
        return;
    }
    let _shared = beside_others();
    let mut scene = Scene::new();
    let image = scene.image("holes", 0x5a);
    let file = File::options().write(true).open(&image).unwrap();
    file.set_len(2 * IMAGE_BYTES as u64).unwrap();
    let holes = scene.attach(&image, &[]);
    let offset = (IMAGE_BYTES / 4).to_string();
    let both = scene.attach(&image, &["--offset", &offset]);
    let above = scene.attach(Path::new(&holes), &["--offset", &offset]);
    for device in [&holes, &both, &above] {
        let ended = scene.command(&["calibrate", device]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{said}");
        let part = "32 MiB of the file were never written, and reads of these reach no device";
        assert!(said.contains(part), "{said}");
    }
    // What has no place on the disk yet was written, also where it is zeros: the file system says so.
    let half = IMAGE_BYTES.to_string();
    let written = scene.attach(&image, &["--sizelimit", &half]);
    fs::write(scene.at("fresh"), vec![0; IMAGE_BYTES]).unwrap();
    let fresh = scene.attach(&scene.at("fresh"), &[]);
    for device in [&written, &fresh] {
        let found = scene.measured(&[device], &[]);
        assert_eq!(found["cache"]["zero_share"], Value::Null, "{found}");
    }
    let Some(zeros) = scene.zram() else {
        return spindle_harness::skip("this kernel has no zram");
    };
    let ended = scene.calibrate(
        &[&zeros],
        &[&ONE_POINT[..], &["--need", "iops > 1"]].concat(),
    );
    assert_eq!(ended.status.code(), Some(4), "not known");
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(found["cache"]["cached"], "zeros", "{}", found["cache"]);
    assert_eq!(found["cache"]["zero_share"], 1.0);
    assert_eq!(found["needs"][0]["answer"], "unknown");
}

#[test]
fn nothing_is_opened_for_writing_without_the_option() {
    let _shared = beside_others();
    let mut scene = Scene::new();
    let image = scene.image("file", 0x5a);
    let mut targets = vec!["file".to_owned()];
    if rustix::process::geteuid().is_root() {
        targets.push(scene.disk("disk", 0));
    }
    let paths: Vec<PathBuf> = targets.iter().map(|target| scene.at(target)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let is_left_alone = Watch::sees_none(&paths, || {
        scene.measured(&targets, &["--caching", "buffered"]);
    });
    assert!(is_left_alone);
    // Who opens one for writing is seen.
    let watch = Watch::new(&paths);
    drop(File::options().write(true).open(image).unwrap());
    assert_eq!(watch.count(), 1);
}
