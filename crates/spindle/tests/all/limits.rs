//! Limits as the kernel holds them, on loop devices of the tests' own, and delays, through the program as people use
//! it. What needs root says so in one line when it is not had.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_layout::KnownDevice;
use spindle_run::trial::limit_probe::{LimitProbe, ProbedWrites, SCRATCH_BYTES};
use spindle_run::trial::protocol::{Order, WorkerReport};
use spindle_run::trial::supervisor::WORKER_COMMAND;
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::disk::DiskCounters;
use spindle_system::io_limit::{IoLimit, Rates};

const IOPS: Rates = Rates {
    read_iops: Some(300),
    write_iops: Some(300),
    read_bps: None,
    write_bps: None,
};
const BPS: Rates = Rates {
    read_iops: None,
    write_iops: None,
    read_bps: Some(4 << 20),
    write_bps: Some(4 << 20),
};

/// A directory beside the program (/tmp may be memory), or where `SPINDLE_TEST_SCRATCH` says.
pub(crate) fn own_directory() -> tempfile::TempDir {
    let place = std::env::var("SPINDLE_TEST_SCRATCH");
    let place = place.as_deref().unwrap_or(env!("CARGO_TARGET_TMPDIR"));
    tempfile::tempdir_in(place).unwrap()
}

/// A directory with a loop device, and a file system on it if asked for; all of it goes with the test.
pub(crate) struct Disk {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) device: PathBuf,
    mounted: bool,
}

impl Disk {
    pub(crate) fn new(bytes: u64) -> Disk {
        Disk::in_directory(own_directory(), bytes)
    }

    fn in_directory(directory: tempfile::TempDir, bytes: u64) -> Disk {
        let image = directory.path().join("disk.img");
        let mut file = File::create(&image).unwrap();
        // Written, so that no read is answered without I/O.
        for _ in 0..bytes >> 20 {
            file.write_all(&vec![0x5a; 1 << 20]).unwrap();
        }
        file.sync_all().unwrap();
        let image = image.to_str().unwrap();
        let device = output("losetup", &["--find", "--show", "--direct-io=on", image]);
        Disk {
            directory,
            device: device.trim().into(),
            mounted: false,
        }
    }

    fn formatted(bytes: u64) -> Disk {
        Disk::new(bytes).format()
    }

    /// Formatted, with its image in memory: no other test has anything on it, nor beneath it.
    pub(crate) fn in_memory(bytes: u64) -> Disk {
        Disk::in_directory(tempfile::tempdir_in("/dev/shm").unwrap(), bytes).format()
    }

    fn format(self) -> Disk {
        let mut disk = self;
        let device = disk.device.to_str().unwrap().to_owned();
        // Nothing is left to be initialised while a trial measures.
        let eager = "lazy_itable_init=0,lazy_journal_init=0";
        output("mkfs.ext4", &["-q", "-E", eager, &device]);
        fs::create_dir(disk.mount_point()).unwrap();
        output("mount", &[&device, disk.mount_point().to_str().unwrap()]);
        disk.mounted = true;
        disk
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    pub(crate) fn number(&self) -> DeviceNumber {
        let name = self.device.file_name().unwrap();
        let number = Path::new("/sys/block").join(name).join("dev");
        fs::read_to_string(number).unwrap().trim().parse().unwrap()
    }

    fn counters(&self) -> DiskCounters {
        DiskCounters::read(&SystemTree::default(), self.number()).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.mounted {
            let umount = |how: &[&str]| {
                let mut command = Command::new("umount");
                let status = command.args(how).arg(self.mount_point()).status();
                status.is_ok_and(|status| status.success())
            };
            // Should a process still hold a file: gone when that one ends.
            let _ = umount(&[]) || umount(&["--lazy"]);
        }
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.device)
            .status();
    }
}

pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Whether limits on a loop device can be tried here; if not, says so.
pub(crate) fn can_limit() -> bool {
    if !rustix::process::geteuid().is_root() {
        spindle_harness::skip("limits need root, for a loop device and a control group");
        return false;
    }
    let any = DeviceNumber { major: 7, minor: 0 };
    match IoLimit::available(&SystemTree::default(), IOPS, &[any]) {
        Err(reason) if !reason.to_string().contains("/sys") => {
            spindle_harness::skip(format_args!("limits: {reason}"));
            false
        }
        _ => true,
    }
}

/// Waits until a process runs this program and waits for a device, in several looks one after the other.
fn wait_until_it_waits(process: u32, program: &str) {
    let began = Instant::now();
    let mut looks = 0;
    while looks < 10 {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let is_waiting = stat.contains(&format!("({program}) D "));
        looks = if is_waiting { looks + 1 } else { 0 };
        assert!(began.elapsed() < Duration::from_secs(60), "{stat}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A megabyte is held back for 16 seconds at this rate, and so is the end of who wrote it.
#[test]
fn who_is_killed_ends_soon_once_the_limit_is_lifted() {
    if !can_limit() {
        return;
    }
    let disk = Disk::new(16 << 20);
    let rates = Rates {
        write_bps: Some(64 << 10),
        ..Rates::default()
    };
    let limit = IoLimit::available(&SystemTree::default(), rates, &[disk.number()]).unwrap();
    let device = disk.device.display();
    let write = format!(
        "read -r line; exec dd if=/dev/zero of={device} bs=4M count=4 oflag=direct conv=notrunc"
    );
    let mut writer = Command::new("sh");
    let writer = writer
        .args(["-c", &write])
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let mut writer = writer.spawn().unwrap();
    let group = limit.hold(writer.id(), None).unwrap();
    writeln!(writer.stdin.take().unwrap()).unwrap();
    wait_until_it_waits(writer.id(), "dd");
    writer.kill().unwrap();
    thread::sleep(Duration::from_millis(500));
    assert!(
        writer.try_wait().unwrap().is_none(),
        "nothing was held back"
    );
    let began = Instant::now();
    group.lift().unwrap();
    writer.wait().unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

/// Has a process that is limited on `limited` work as fast as it can, and returns what it says.
fn probe(probe: LimitProbe, limited: DeviceNumber) -> Option<String> {
    let limit = IoLimit::available(&SystemTree::default(), probe.rates, &[limited]).unwrap();
    let mut worker = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .arg(WORKER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let group = limit.hold(worker.id(), None).unwrap();
    let mut input = worker.stdin.take().unwrap();
    let order = serde_json::to_string(&Order::LimitProbe(Box::new(probe))).unwrap();
    writeln!(input, "{order}").unwrap();
    let mut line = String::new();
    let mut answers = BufReader::new(worker.stdout.take().unwrap());
    answers.read_line(&mut line).unwrap();
    worker.wait().unwrap();
    drop(group);
    match serde_json::from_str(&line).unwrap() {
        WorkerReport::LimitProbed { exceeded } => exceeded,
        other => panic!("{other:?}"),
    }
}

/// Tries a limit on what `scratch` lies on; the device's own counts must agree that it was kept.
fn assert_held(disk: &Disk, rates: Rates, scratch: &Path, writes: ProbedWrites) {
    let began = Instant::now();
    let before = disk.counters();
    let task = LimitProbe {
        rates,
        scratch: KnownDevice::look(scratch).unwrap(),
        writes: Some(writes),
    };
    assert_eq!(probe(task, disk.number()), None, "{rates:?} {writes:?}");
    let (done, time) = (disk.counters().since(&before), began.elapsed());
    assert!(time >= Duration::from_secs(2), "a second for each kind");
    assert!(done.reads > 0 && done.writes > 0, "{done:?}");
    let rate = |count: u64| count as f64 / time.as_secs_f64();
    for (limit, seen) in [
        (rates.read_iops, rate(done.reads)),
        (rates.write_iops, rate(done.writes)),
        (rates.read_bps, rate(done.read_bytes)),
        (rates.write_bps, rate(done.written_bytes)),
    ] {
        let limit = limit.unwrap_or(u64::MAX) as f64;
        assert!(seen <= 1.1 * limit, "{seen} of {limit}: {writes:?}");
    }
}

fn scratch_in(directory: &Path) -> (File, PathBuf) {
    let path = directory.join("scratch");
    let mut file = File::create_new(&path).unwrap();
    file.write_all(&vec![1; SCRATCH_BYTES as usize]).unwrap();
    file.sync_all().unwrap();
    (file, path)
}

#[test]
fn a_raw_device_is_held_to_its_rates() {
    if !can_limit() {
        return;
    }
    let disk = Disk::new(SCRATCH_BYTES);
    for rates in [IOPS, BPS] {
        assert_held(&disk, rates, &disk.device, ProbedWrites::Direct);
    }
}

#[test]
fn files_are_held_direct_and_buffered() {
    if !can_limit() {
        return;
    }
    let disk = Disk::formatted(64 << 20);
    let (_file, scratch) = scratch_in(&disk.mount_point());
    for rates in [IOPS, BPS] {
        for writes in [ProbedWrites::Direct, ProbedWrites::BufferedDurable] {
            assert_held(&disk, rates, &scratch, writes);
        }
    }
}

/// The faults that a probe must find: a limit on another device, and writes that the kernel's flusher makes: with
/// version 1 of control groups in nobody's name, with version 2 in the name of the group that wrote the file first,
/// here the test's own.
#[test]
fn a_limit_that_does_not_hold_is_noticed() {
    if !can_limit() {
        return;
    }
    // In memory, as a disk that others use may be slower than the limit.
    let (disk, other) = (Disk::in_memory(64 << 20), Disk::new(1 << 20));
    let (_file, scratch) = scratch_in(&disk.mount_point());
    for (rates, what) in [(IOPS, "reads per second"), (BPS, "bytes read per second")] {
        let task = LimitProbe {
            rates,
            scratch: KnownDevice::look(&scratch).unwrap(),
            writes: Some(ProbedWrites::Direct),
        };
        let exceeded = probe(task, other.number()).expect("more than allowed");
        assert!(exceeded.contains(what), "{exceeded}");
    }
    let task = LimitProbe {
        rates: Rates {
            write_iops: Some(10),
            ..Rates::default()
        },
        scratch: KnownDevice::look(&scratch).unwrap(),
        writes: Some(ProbedWrites::BufferedLater),
    };
    let exceeded = probe(task, disk.number()).expect("the flusher is not held");
    assert!(exceeded.contains("writes per second"), "{exceeded}");
}

const DATABASE: &str = r#"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 2
log_file_size = "2MiB"
"#;

const PLAN: &str = r#"
[workload]
clients = 4
[plan]
quiet = "0s"
warmup = "200ms"
measure = "1500ms"
rounds = 1
"#;

/// Runs an experiment with these settings of the database and layouts in `place`; returns its result and what was said.
fn run(place: &Path, database: &str, layouts: &str) -> (Value, String) {
    let text = format!("{DATABASE}{database}{PLAN}{layouts}");
    fs::write(place.join("x.toml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "x.toml", "--out", "out"])
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 3 where a test has half of its layouts left out.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let result = fs::read_to_string(place.join("out/result.json")).unwrap();
    (serde_json::from_str(&result).unwrap(), said)
}

fn case<'a>(result: &'a Value, layout: &str) -> &'a Value {
    let cases = result["cases"].as_array().unwrap();
    cases.iter().find(|case| case["layout"] == layout).unwrap()
}

const LIMITED_LAYOUTS: &str = r#"
[[layout]]
name = "free"
io = { caching = "direct", method = "async" }
[[layout]]
name = "async"
io = { caching = "direct", method = "async" }
limit = { read_iops = 200, write_iops = 200 }
[[layout]]
name = "sync"
io = { caching = "direct" }
limit = { read_iops = 200, write_iops = 200 }
"#;

#[test]
fn a_run_keeps_to_its_limits() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_limit() {
        return;
    }
    let disk = Disk::formatted(160 << 20);
    let (result, said) = run(&disk.mount_point(), "", LIMITED_LAYOUTS);
    for (layout, side) in [("async", "tool"), ("sync", "device")] {
        let case = case(&result, layout);
        assert_eq!(case["status"], "measured", "{said}");
        let trial = &case["trials"][0];
        let seconds = trial["measured_s"].as_f64().unwrap();
        for kind in ["reads", "writes"] {
            let rate = trial["audit"][side][kind].as_f64().unwrap() / seconds;
            assert!(rate <= 1.2 * 200.0, "{layout} {kind}: {rate}\n{said}");
        }
    }
    let emulated = "limited by Spindle (200 reads/s, 200 writes/s)";
    assert_eq!(result["layouts"][1]["emulated"][0], emulated);
    assert_eq!(result["layouts"][0]["emulated"], Value::Null);
    assert!(said.contains("a durable write counts as two"), "{said}");
    assert_eq!(groups_left(), Vec::<PathBuf>::new());
}

#[test]
fn redo_is_held_to_the_limit_of_the_layout_that_it_lies_on() {
    if !can_limit() {
        return;
    }
    let (disk, logs) = (Disk::formatted(160 << 20), Disk::formatted(64 << 20));
    let place = disk.mount_point();
    let layouts = r#"
[[layout]]
name = "free"
io = { caching = "direct" }
[[layout]]
name = "slow redo"
io = { caching = "direct" }
placement = { redo = "logs" }
[[layout]]
name = "logs"
path = "LOGS"
candidate = false
limit = { write_iops = 60 }
[[layout]]
name = "two on one disk"
limit = { write_iops = 500 }
placement = { redo = "free" }
"#;
    let path = logs.mount_point();
    let layouts = layouts.replace("LOGS", path.to_str().unwrap());
    let (result, said) = run(&place, "", &layouts);
    assert!(said.contains("testing the limit of slow redo"), "{said}");
    let tpm = |layout| {
        let case = case(&result, layout);
        assert_eq!(case["status"], "measured", "{said}");
        case["tpm"]["mean"].as_f64().unwrap()
    };
    // Each commit waits for LGWR, which writes for up to four clients at once; a durable write counts as two.
    let most = 60.0 / 2.0 * 4.0 * 60.0;
    assert!(tpm("slow redo") < 1.2 * most, "{}", tpm("slow redo"));
    let used = &case(&result, "slow redo")["trials"][0]["audit"]["nearest_limit"];
    assert_eq!(used["of"], "writes", "{used}");
    assert_eq!(used["allowed_per_s"], 60, "{used}");
    // A busy machine uses less.
    let done_per_s = used["done_per_s"].as_f64().unwrap();
    let is_told = result["findings"].to_string().contains("of 60 writes/s");
    assert!(done_per_s < 54.0 || is_told, "{}", result["findings"]);
    assert_eq!(case(&result, "free")["status"], "measured", "{said}");
    let refused = case(&result, "two on one disk")["reason"].to_string();
    assert!(
        refused.contains("free has none, and lies on disk 7:"),
        "{refused}"
    );
    assert_eq!(groups_left(), Vec::<PathBuf>::new());
}

#[test]
fn redo_in_a_directory_of_its_own_is_held_to_the_limit_of_its_layout() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_limit() {
        return;
    }
    let (disk, logs) = (Disk::formatted(160 << 20), Disk::formatted(64 << 20));
    let place = disk.mount_point();
    let layouts = r#"
[[layout]]
name = "held"
io = { caching = "direct" }
limit = { write_iops = 60 }
"#;
    let database = format!("redo_path = {:?}\n", logs.mount_point());
    let (result, said) = run(&place, &database, layouts);
    let case = case(&result, "held");
    assert_eq!(case["status"], "measured", "{said}");
    // Each commit waits for LGWR, which writes for up to four clients at once; a durable write counts as two.
    let most = 60.0 / 2.0 * 4.0 * 60.0;
    let tpm = case["tpm"]["mean"].as_f64().unwrap();
    assert!(tpm < 1.2 * most, "{tpm}");
    let notes = result["layouts"][0]["notes"].to_string();
    assert!(
        notes.contains("the redo log, in redo_path, is held"),
        "{notes}"
    );
    assert_eq!(groups_left(), Vec::<PathBuf>::new());
}

#[test]
fn a_layout_whose_limit_cannot_hold_is_skipped() {
    if !can_limit() {
        return;
    }
    let disk = Disk::formatted(160 << 20);
    let place = disk.mount_point();
    let (result, said) = run(
        &place,
        "write_sync = \"checkpoint\"\nredo_path = \".\"\n",
        r#"
[[layout]]
name = "flushed later"
limit = { write_iops = 10 }
[[layout]]
name = "no device"
path = "/proc"
limit = { write_iops = 50 }
[[layout]]
name = "free"
"#,
    );
    let reason = |layout| {
        case(&result, layout)["reason"]
            .as_str()
            .unwrap_or(&said)
            .to_owned()
    };
    let no_device = reason("no device");
    assert!(
        no_device.contains("no limit here: the device beneath /proc"),
        "{no_device}"
    );
    if Path::new("/sys/fs/cgroup/blkio").exists() {
        let later = reason("flushed later");
        assert!(
            later.contains("the limit does not hold here: when tried"),
            "{later}"
        );
    }
    assert_eq!(groups_left(), Vec::<PathBuf>::new());
}

/// The fault that the look after a trial must find: writes on the limited device that are not the trial's.
#[test]
fn a_trial_whose_device_did_more_than_the_limit_is_measured_again_and_then_fails() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_limit() {
        return;
    }
    let (result, said) = run_beside_writes(|_| true);
    let held = case(&result, "held");
    assert_eq!(held["status"], "failed", "{said}");
    let reason = held["reason"].as_str().unwrap();
    assert!(reason.contains("the limit was not held"), "{reason}");
    assert_eq!(case(&result, "free")["status"], "measured", "{said}");
    let again = said.lines().filter(|line| {
        line.contains("the limit was not held") && line.contains("it will be measured again")
    });
    assert_eq!(again.count(), 2, "{said}");
}

#[test]
fn a_trial_is_measured_again_when_the_limit_was_not_held_for_a_moment() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_limit() {
        return;
    }
    let again = "held, 4 clients, round 1 was measured again: the limit was not held";
    let (result, said) = run_beside_writes(|out| {
        let journal = fs::read_to_string(out.join("journal.jsonl")).unwrap_or_default();
        !journal.contains(again)
    });
    assert_eq!(case(&result, "held")["status"], "measured", "{said}");
    assert!(said.contains("it will be measured again"), "{said}");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains(again), "{warnings}");
}

/// A run of a layout with a limit and one without, beside writes to their device while `goes_on` says so of the
/// directory of the run.
fn run_beside_writes(goes_on: impl Fn(&Path) -> bool + Sync) -> (Value, String) {
    let disk = Disk::in_memory(160 << 20);
    let place = disk.mount_point();
    let (noise, _) = scratch_in(&place);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) && goes_on(&place.join("out")) {
                noise.write_all_at(&[2; 4096], 0).unwrap();
                noise.sync_data().unwrap();
            }
        });
        let _over = Over(&is_over);
        run(
            &place,
            "",
            r#"
[[layout]]
name = "free"
[[layout]]
name = "held"
limit = { write_iops = 50 }
"#,
        )
    })
}

/// Says at its end, also by a panic, that something is over.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Control groups of processes that have ended: a program that cleans up leaves none. Those of other tests' programs
/// may still be on their way.
fn groups_left() -> Vec<PathBuf> {
    let began = Instant::now();
    loop {
        let left = groups_of_the_dead();
        if left.is_empty() || began.elapsed() > Duration::from_secs(60) {
            return left;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn groups_of_the_dead() -> Vec<PathBuf> {
    let groups = fs::read_dir("/sys/fs/cgroup/blkio").into_iter().flatten();
    let paths = groups.map(|group| group.unwrap().path());
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let process = name
            .strip_prefix("spindle-")
            .and_then(|rest| rest.split_once('-'));
        process.is_some_and(|(process, _)| !Path::new("/proc").join(process).exists())
    };
    paths.filter(is_left).collect()
}

#[test]
fn a_delayed_layout_is_slower_and_says_so() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = own_directory();
    let (result, _) = run(
        place.path(),
        "",
        r#"
[[layout]]
name = "as it is"
[[layout]]
name = "slow disk"
delay = { read_us = 10_000 }
"#,
    );
    let waits = case(&result, "slow disk")["trials"][0]["waits"].as_array();
    let reads = waits
        .unwrap()
        .iter()
        .find(|wait| wait["event"] == "db file sequential read")
        .unwrap();
    assert!(reads["mean_us"].as_f64().unwrap() >= 10_000.0, "{reads}");
    let layout = &result["layouts"][1];
    let emulated = "delayed by Spindle (read 10 ms)";
    let labelled = layout["emulated"][0].as_str().unwrap();
    let is_labelled = labelled.starts_with(emulated) && labelled.contains("in the database");
    assert!(is_labelled, "{labelled}");
    assert!(layout["description"].as_str().unwrap().contains(emulated));
    for report in ["report.md", "report.html"] {
        let text = fs::read_to_string(place.path().join("out").join(report)).unwrap();
        assert!(text.contains(emulated), "{report}");
        assert!(text.contains("as a slower disk does"), "{report}");
    }
}

#[test]
fn redo_in_a_directory_of_its_own_is_delayed_as_its_layout() {
    let place = own_directory();
    let redo = own_directory();
    let (result, said) = run(
        place.path(),
        &format!("redo_path = {:?}\n", redo.path()),
        "[[layout]]\nname = \"slow disk\"\ndelay = { write_us = 10_000 }\n",
    );
    let waits = &case(&result, "slow disk")["trials"][0]["waits"];
    let mut waits = waits.as_array().expect(&said).iter();
    let written = waits.find(|wait| wait["event"] == "log file parallel write");
    let mean_us = written.unwrap()["mean_us"].as_f64().unwrap();
    assert!(mean_us >= 10_000.0, "{mean_us}");
}

#[test]
fn a_server_whose_io_cannot_be_delayed_is_not_measured() {
    let place = own_directory();
    let path = place.path().join("experiment.toml");
    let text = "[database]\nengine = \"sqlite\"\nsize = \"16MiB\"\nbuffer_cache = \"1MiB\"\n\
                [[layout]]\nname = \"slow\"\ndelay = { write_us = 10_000 }\n";
    fs::write(&path, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "experiment.toml", "--out", "out"])
        .current_dir(place.path())
        .env("SPINDLE_LEDGER_DIRECTORY", place.path().join("ledger"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("sqlite does not delay its own I/O"), "{said}");
}
