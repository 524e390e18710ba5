//! `spindle calibrate` as people use it: a throttled device is measured at its limits, a cached file is called cached,
//! mistakes are told before anything is touched.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spindle_harness::Watch;
use spindle_system::SystemTree;
use spindle_system::io_limit::{IoLimit, Rates};

use crate::limits::{Disk, can_limit, output, own_directory};

/// A measurement that is held to a limit, or whose flushes are counted, has no other measurement beside it.
static MEASUREMENTS: RwLock<()> = RwLock::new(());

pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MEASUREMENTS.write().unwrap_or_else(PoisonError::into_inner)
}

/// For a measurement that may run beside others like it, but not beside one that is [`alone`].
pub(crate) fn beside_others() -> RwLockReadGuard<'static, ()> {
    MEASUREMENTS.read().unwrap_or_else(PoisonError::into_inner)
}

/// No ledger can be there, and no limits are kept for later runs: what is measured here is measured beside builds.
pub(crate) const NOWHERE: (&str, &str) = ("SPINDLE_LEDGER_DIRECTORY", "/dev/null/none");

fn calibrate(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .arg("calibrate")
        .args(arguments)
        .arg("--no-metadata")
        .current_dir(directory)
        .env(NOWHERE.0, NOWHERE.1)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn found(ended: &Output) -> Value {
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    serde_json::from_slice(&ended.stdout).unwrap()
}

/// A file that is written as a whole, and is on its device.
fn written(path: &Path, bytes: usize) {
    let mut file = File::create(path).unwrap();
    let piece: Vec<u8> = (0..1_u32 << 20).map(|at| ((at * 31) >> 3) as u8).collect();
    for _ in 0..bytes >> 20 {
        file.write_all(&piece).unwrap();
    }
    file.sync_all().unwrap();
}

const IOPS_MAX: u64 = 400;
const BYTES_PER_S_MAX: u64 = 32 << 20;
/// Part of a limit by which what is found may be off.
const OFF_MAX: f64 = 0.03;
/// Other tests may keep the machine from reading as much as it may; it never reads much more.
const LOOKS_MAX: u32 = 8;

/// What is found of a device that may do so much.
fn throttled(disk: &Disk) -> Value {
    let rates = Rates {
        read_iops: Some(IOPS_MAX),
        read_bps: Some(BYTES_PER_S_MAX),
        ..Rates::default()
    };
    let limit = IoLimit::available(&SystemTree::default(), rates, &[disk.number()]).unwrap();
    // It waits until it is in its group.
    let program = env!("CARGO_BIN_EXE_spindle");
    let mut shell = Command::new("sh")
        .args(["-c", "read go; exec \"$@\"", "sh", program, "calibrate"])
        .arg(&disk.device)
        .args(["--time", "30s", "--json", "--quiet", "--no-metadata"])
        .env(NOWHERE.0, NOWHERE.1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _group = limit.hold(shell.id(), None).unwrap();
    writeln!(shell.stdin.take().unwrap(), "go").unwrap();
    found(&shell.wait_with_output().unwrap())
}

#[test]
fn a_throttled_device_is_measured_at_its_limits() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_limit() {
        return;
    }
    let disk = Disk::new(64 << 20);
    let mut off = [f64::INFINITY; 2];
    for _ in 0..LOOKS_MAX {
        let found = throttled(&disk);
        let part = |name: &str, figure: &str, limit: f64| {
            found[name]["point"][figure].as_f64().unwrap() / limit
        };
        let parts = [
            part("maximum_iops", "iops", IOPS_MAX as f64),
            part("maximum_mb_per_s", "mb_per_s", BYTES_PER_S_MAX as f64 / 1e6),
        ];
        println!("parts of the limits that were reached: {parts:?}");
        off = [0, 1].map(|which| (parts[which] - 1.0).abs().min(off[which]));
        assert_eq!(found["cache"]["cached"], "not_seen", "{}", found["cache"]);
        let flushes = found["flushes"].as_array().unwrap();
        assert!(flushes.is_empty(), "a device is not written");
        if off.iter().all(|off| *off <= OFF_MAX) {
            return;
        }
    }
    panic!("parts of the limits by which they were missed: {off:?}");
}

/// Requests per second while there is credit, and afterwards.
const CREDIT_IOPS: (u64, u64) = (600, 150);

/// A volume whose credit runs out while its best point is held; meanwhile the program's memory stays as it is.
#[test]
fn credit_that_runs_out_is_told_with_both_levels() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_limit() {
        return;
    }
    let disk = Disk::new(32 << 20);
    let rates = |iops| Rates {
        read_iops: Some(iops),
        ..Rates::default()
    };
    let limit = |iops| IoLimit::available(&SystemTree::default(), rates(iops), &[disk.number()]);
    let program = env!("CARGO_BIN_EXE_spindle");
    let mut shell = Command::new("sh")
        .args(["-c", "read go; exec \"$@\"", "sh", program, "calibrate"])
        .arg(&disk.device)
        .args(["--time", "10s", "--hold", "20s", "--json", "--no-metadata"])
        .env(NOWHERE.0, NOWHERE.1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (rich, poor) = (limit(CREDIT_IOPS.0).unwrap(), limit(CREDIT_IOPS.1).unwrap());
    let rich = rich.hold(shell.id(), None).unwrap();
    writeln!(shell.stdin.take().unwrap(), "go").unwrap();
    let mut told = BufReader::new(shell.stderr.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().contains("is held for 20")));
    std::thread::sleep(Duration::from_secs(3));
    let early_kib = memory_kib(shell.id());
    std::thread::sleep(Duration::from_secs(2));
    let _poor = poor.hold(shell.id(), None).unwrap();
    std::thread::sleep(Duration::from_secs(5));
    let late_kib = memory_kib(shell.id());
    assert!(
        late_kib < early_kib + 512,
        "{early_kib} KiB, {late_kib} KiB"
    );
    let found = found(&shell.wait_with_output().unwrap());
    drop(rich);
    let fell = &found["held"]["fell"];
    let level = |name: &str| {
        fell[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{}", found["held"]))
    };
    // How fast each level is on a busy machine is not the question.
    assert!(level("before") > 2.0 * level("after"), "{fell}");
    assert!(level("after") < 1.2 * CREDIT_IOPS.1 as f64, "{fell}");
    assert!((1.0..19.0).contains(&level("after_s")), "{fell}");
}

/// What a process has in memory.
fn memory_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    words[1].parse().unwrap()
}

#[test]
fn a_device_that_takes_no_writes_is_enough() {
    let _shared = beside_others();
    if !spindle_harness::is_root_or_skip("a loop device") {
        return;
    }
    let directory = own_directory();
    let image = directory.path().join("disk.img");
    written(&image, 16 << 20);
    let image = image.to_str().unwrap();
    let arguments = ["--find", "--show", "--read-only", "--direct-io=on", image];
    let device = output("losetup", &arguments);
    let device = device.trim();
    let ended = calibrate(&[device, "--time", "10s", "--json"], directory.path());
    output("losetup", &["--detach", device]);
    let found = found(&ended);
    assert_eq!(found["targets"][0]["kind"], "device");
    assert!(found["maximum_iops"]["point"]["iops"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_cached_file_is_called_cached() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let directory = own_directory();
    written(&directory.path().join("data"), 32 << 20);
    let arguments = ["data", "--caching", "buffered", "--time", "10s"];
    let ended = calibrate(&arguments, directory.path());
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{ended:?}");
    assert!(said.contains("CACHED: "), "{said}");
    assert!(said.contains("Maximum small IOPS"), "{said}");
}

#[test]
fn a_loop_device_on_a_cached_file_is_called_cached() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !spindle_harness::is_root_or_skip("a loop device") {
        return;
    }
    let directory = own_directory();
    let image = directory.path().join("disk.img");
    written(&image, 32 << 20);
    fs::read(&image).unwrap();
    let arguments = ["--find", "--show", "--read-only", image.to_str().unwrap()];
    let device = output("losetup", &arguments);
    let device = device.trim();
    let second = output("losetup", &arguments);
    let second = second.trim();
    let twice = calibrate(&[device, second], directory.path());
    output("losetup", &["--detach", second]);
    let ended = calibrate(&[device, "--time", "10s"], directory.path());
    let both = [[device, "disk.img"], ["disk.img", device]]
        .map(|targets| calibrate(&targets, directory.path()));
    output("losetup", &["--detach", device]);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("CACHED: the disks beneath read"), "{said}");
    for refused in both {
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("it lies on disk.img"), "{said}");
    }
    let said = String::from_utf8_lossy(&twice.stderr);
    assert_eq!(twice.status.code(), Some(2), "{said}");
    assert!(said.contains("both stand for"), "{said}");
}

/// Each access path direct and through the page cache, in one table; limits are those of direct reads.
#[test]
fn access_paths_are_measured_direct_and_buffered_side_by_side() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let directory = own_directory();
    let arguments = [".", "--caching", "both", "--size", "16MiB"];
    let more = ["--time", "15s", "--json", "--quiet"];
    let found = found(&calibrate(
        &[&arguments[..], &more].concat(),
        directory.path(),
    ));
    let curves = found["curves"].as_array().unwrap();
    assert_eq!(
        curves.len(),
        12,
        "4 small and 2 large access paths, each both ways"
    );
    for pair in curves.chunks(2) {
        let part = |of: &Value, name: &str| of[name].as_str().unwrap().to_owned();
        assert_eq!(part(&pair[0], "method"), part(&pair[1], "method"));
        let ways = [part(&pair[0], "caching"), part(&pair[1], "caching")];
        assert_eq!(ways, ["direct", "buffered"]);
    }
    let is_told = |curve: &&Value| {
        let note = curve["note"].as_str().unwrap_or_default();
        note.contains("the page cache answered")
    };
    let has_counters = found["cache"]["device"].is_object();
    let told = curves.iter().filter(is_told).count();
    assert_eq!(told > 0, has_counters, "{}", found["cache"]);
    for figure in ["maximum_iops", "maximum_mb_per_s", "minimum_latency"] {
        assert_eq!(found[figure]["caching"], "direct", "{figure}");
    }
    let coverage = &found["cache"]["coverage"];
    assert_eq!(coverage["reached_share"], 1.0, "{coverage}");
}

#[test]
fn a_measurement_that_is_told_to_end_leaves_nothing() {
    let _shared = beside_others();
    let directory = own_directory();
    let mut child = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["calibrate", ".", "--size", "16MiB", "--time", "60s"])
        .args(["--out", "measured", "--no-metadata"])
        .current_dir(directory.path())
        .env(NOWHERE.0, NOWHERE.1)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = child.stderr.take().unwrap();
    let mut lines = BufReader::new(said).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("random reads")));
    assert!(directory.path().join("measured").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_directory_is_measured_and_left_as_it_was() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let directory = own_directory();
    let arguments = [".", "--time", "10s", "--size", "32MiB", "--json"];
    // A disk that stands still for as long as a load lasts has no figures of it: then it is asked again.
    let mut ended = calibrate(&arguments, directory.path());
    for _ in 0..3 {
        let said = String::from_utf8_lossy(&ended.stdout);
        if !(said.contains("\"flushes_per_s\": 0.0,") || said.contains("\"flushes_per_s\":0.0,")) {
            break;
        }
        ended = calibrate(&arguments, directory.path());
    }
    if String::from_utf8_lossy(&ended.stderr).contains("refuses O_DIRECT") {
        spindle_harness::skip("direct I/O in the tests' directory");
        return;
    }
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    let found = found(&ended);
    assert!(told.contains("filling a file of up to 32 MiB"), "{told}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    flushes_were_measured_in_each_way(&found);
    for flushed in found["flushes"].as_array().unwrap() {
        let (p50, p99) = (&flushed["p50_us"], &flushed["p99_us"]);
        assert!(0.0 < p50.as_f64().unwrap() && p50.as_f64() <= p99.as_f64());
    }
    let rate = &found["at_rates"][0];
    let figure = |name: &str| rate[name].as_f64().unwrap();
    assert!(
        figure("requests") > 0.0 && figure("p50_us") <= figure("p99_us"),
        "{rate}"
    );
    for name in ["maximum_iops", "maximum_mb_per_s", "minimum_latency"] {
        assert!(
            found[name]["point"]["requests"].as_u64().unwrap() > 0,
            "{name}"
        );
    }
}

/// Each way by one writer and by many, and what else commits meet.
fn flushes_were_measured_in_each_way(found: &Value) {
    let flushes = found["flushes"].as_array().unwrap();
    let ways: Vec<(&str, u64)> = flushes
        .iter()
        .map(|of| (of["by"].as_str().unwrap(), of["writers"].as_u64().unwrap()))
        .collect();
    let expected = ["fdatasync", "direct_fdatasync", "direct_dsync"]
        .map(|by| [(by, 1), (by, 16)])
        .concat();
    assert_eq!(ways, expected);
    let commits = &found["commits"][0];
    let group = commits["group"].as_array().unwrap();
    assert_eq!(group.len(), 4, "{commits}");
    assert!(commits["buffered_gain"].as_f64().unwrap() > 0.0);
    let ratio = |which: &str| commits["first_write_ratio"][which].as_f64().unwrap();
    assert!(
        ratio("least") <= ratio("middle") && ratio("middle") <= ratio("most"),
        "{commits}"
    );
    assert!(commits["burst"]["mb_per_s"].as_f64().unwrap() > 0.0);
    assert!(found["held"]["iops"].as_f64().unwrap() > 0.0);
}

/// A file system in memory flushes nothing; a disk beside itself is honest.
#[test]
fn what_flushes_sooner_than_the_disk_is_suspect_and_needs_decide_the_code() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    let disk = own_directory();
    let at = disk.path().to_str().unwrap();
    fs::create_dir(disk.path().join("control")).unwrap();
    let measure = |target: &str, what: &[&str], need: &str| {
        let arguments = [target, "--control", "control", "--caching", "buffered"];
        let usual = ["--need", need, "--time", "10s", "--size", "16MiB", "--json"];
        let ended = calibrate(&[&arguments[..], what, &usual].concat(), disk.path());
        let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
        (ended.status.code(), found)
    };
    // Others that flush may make one look at it far slower than the next.
    let is_honest = (0..LOOKS_MAX).any(|_| {
        let (code, honest) = measure(at, &["--flushes"], "fdatasync p50 < 1us");
        assert_eq!(code, Some(3), "{}", honest["needs"]);
        let control = &honest["honesty"][0]["control"];
        println!("the disk beside itself: {control}");
        control["is_suspect"] == false
    });
    assert!(is_honest, "an honest disk is always suspect");
    let memory = tempfile::tempdir_in("/dev/shm");
    let Ok(memory) = memory else {
        spindle_harness::skip("/dev/shm");
        return;
    };
    let loads = ["--num-small", "1", "--num-large", "0", "--duration", "1s"];
    let point = [&["--run", "advanced", "--matrix", "point"][..], &loads].concat();
    let (code, liar) = measure(memory.path().to_str().unwrap(), &point, "iops > 1");
    assert_eq!(
        code,
        Some(4),
        "reads of memory meet no need: {}",
        liar["needs"]
    );
    let honesty = &liar["honesty"][0];
    assert_eq!(honesty["control"]["is_suspect"], true, "{honesty}");
    assert_eq!(honesty["trust"], "memory", "{honesty}");
}

/// One point of ORION's matrix, as files under its names.
#[test]
fn a_run_type_of_orion_writes_its_files() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let directory = own_directory();
    written(&directory.path().join("data"), 16 << 20);
    let knobs = [
        "--run",
        "advanced",
        "--matrix",
        "max",
        "--num_small",
        "2",
        "--num_large",
        "1",
    ];
    let more = [
        "--type",
        "seq",
        "--num_streamIO",
        "2",
        "--cache_size",
        "4",
        "--duration",
        "1",
    ];
    let output = [
        "--caching",
        "buffered",
        "--json",
        "--quiet",
        "--out",
        "measured",
    ];
    let arguments = [&["data"][..], &knobs, &more, &output].concat();
    let found = found(&calibrate(&arguments, directory.path()));
    let points = found["matrix"]["points"].as_array().unwrap();
    let loads: Vec<_> = points
        .iter()
        .map(|point| (point["small"].as_u64(), point["large"].as_u64()))
        .collect();
    assert_eq!(
        loads,
        [(2, 0), (0, 1), (2, 1)].map(|(small, large)| (Some(small), Some(large)))
    );
    for point in points {
        assert_eq!(point["iops"].is_number(), point["small"] != 0, "{point}");
        assert_eq!(
            point["mb_per_s"].is_number(),
            point["large"] != 0,
            "{point}"
        );
        assert!(point["requests"].as_u64().unwrap() > 0, "{point}");
    }
    for (figure, is_of) in [("maximum_iops", "small"), ("maximum_mb_per_s", "large")] {
        for part in ["iops", "mb_per_s", "mean_us", "p50_us", "p99_us"] {
            let told = found[figure]["point"][part].as_f64();
            assert!(told > Some(0.0), "{part} of {is_of} requests: {told:?}");
        }
    }
    let measured = directory.path().join("measured");
    let kept: Value =
        serde_json::from_slice(&fs::read(measured.join("result.json")).unwrap()).unwrap();
    assert_eq!(kept, found);
    let file = |end: &str| {
        let all = fs::read_dir(&measured)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut fitting = all.filter(|path| path.to_str().unwrap().ends_with(end));
        fs::read_to_string(fitting.next().unwrap()).unwrap()
    };
    assert!(file("_iops.csv").starts_with("Large/Small,2\n0,"));
    assert!(file("_hist.txt").contains("Maximum Small IOPS\n"));
    assert!(file("_mbps.csv").contains("\n1,"));
    assert!(file("_lat.csv").starts_with("Large/Small"));
    assert!(file("_summary.txt").contains("Maximum Small IOPS="));
    assert!(file("_trace.txt").contains("run advanced"));
    let page = file("report.html");
    for part in ["Maximum small IOPS", "--heat: 100%", "id=\"latencies-0\""] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_page_of_a_run_type_has_curves_matrix_and_latencies() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let directory = own_directory();
    written(&directory.path().join("data"), 16 << 20);
    let run = ["data", "--run", "simple", "--num-disks", "1"];
    let more = ["--duration", "1s", "--json", "--out", "measured"];
    found(&calibrate(&[&run[..], &more].concat(), directory.path()));
    let page = fs::read_to_string(directory.path().join("measured/report.html")).unwrap();
    for part in [
        "id=\"small-requests\"",
        "8 KiB at random: time of a request over requests per second",
        "id=\"large-requests\"",
        "1 MiB at random: time of a request over MB per second",
        "--heat: 100%",
        "id=\"latencies-0\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// What is wrong, and a part of what is said.
const WRONG: [(&[&str], &str); 70] = [
    (&[], "<TARGET>"),
    (&["missing"], "No such file or directory"),
    (&["missing/deeper"], "No such file or directory"),
    (&["good", "missing"], "No such file or directory"),
    (&["dangling"], "No such file or directory"),
    (
        &["/dev/null"],
        "neither a block device nor a file nor a directory",
    ),
    (
        &["socket"],
        "neither a block device nor a file nor a directory",
    ),
    (&["empty"], "8 MiB are needed at least"),
    (&["small"], "8 MiB are needed at least"),
    (&["sparse"], "were never written"),
    (&["good", "good"], "it is the same as good"),
    (&["good", "link"], "it is the same as good"),
    (&["good", "other name"], "it is the same as good"),
    (&[".", "./"], "it is the same as ."),
    (&["/proc"], "which holds no files"),
    (&["good", "--time", "5s"], "10s to 24h"),
    (&["good", "--time", "2"], "10s to 24h"),
    (
        &["good", "--time", "2m", "--time", "3m"],
        "cannot be used multiple times",
    ),
    (&["good", "--hold", "1ms"], "1s to 24h"),
    (
        &["good", "--hold", "5s", "--flushes"],
        "cannot be used with",
    ),
    (&["good", "--bought-iops", "many"], "such as 3000"),
    (&["good", "--bought-mbps", "0"], "such as 3000"),
    (&["good", "--size", "1KiB"], "16MiB to 64TiB"),
    (&["good", "--size", "1GB"], "16MiB to 64TiB"),
    (&["good", "--max-latency", "0ms"], "10us to 10s"),
    (&["good", "--max-latency", "20"], "10us to 10s"),
    (&["good", "--simulate", "raid5"], "concat, raid0"),
    (&["good", "--caching", "none"], "direct, buffered"),
    (
        &["good", "--need", "fdatasync < 10ms"],
        "allowed: FIGURE < VALUE",
    ),
    (
        &[".", "--flushes", "--need", "iops > 5"],
        "--flushes measures flushes only",
    ),
    (
        &[".", "--write-percent", "50", "--need", "read p99 < 1ms"],
        "the times of reads and writes are told together",
    ),
    (&["good", "--control", "good"], "a control is a directory"),
    (
        &["good", "--control", "."],
        "name a directory beside --control",
    ),
    (&[".", "--control", "/dev/shm"], "it lies in memory"),
    (&[".", "--control", "./"], "it is its own control"),
    (&["good", "--flushes"], "name a directory on it"),
    (
        &["good", "--need", "fdatasync p99 < 1ms"],
        "flushes need a file that is made",
    ),
    (
        &["good", "--run", "oltp", "--need", "mbps > 1"],
        "this run has no large requests",
    ),
    (
        &["good", "--run", "dss", "--need", "iops > 1"],
        "this run has no small requests",
    ),
    (&["no\nsuch: file"], "no such: file: No such file"),
    (&["missing", "--out", "new/deeper/still"], "No such file"),
    (&["good", "--write", "101"], "from 0 to 100"),
    (
        &["good", "--run", "simple", "--duration", "0"],
        "from 1s to 1h",
    ),
    (
        &["good", "--run", "advanced", "--size_small", "12"],
        "a power of two",
    ),
    (
        &["good", "--run", "quick"],
        "simple, normal, advanced, oltp, dss",
    ),
    (&["good", "--num-disks", "2"], "--run"),
    (
        &["good", "--run", "simple", "--num-disks", "0"],
        "from 1 to 128",
    ),
    (
        &["good", "--run", "simple", "--type", "seq"],
        "--type needs --run advanced",
    ),
    (
        &["good", "--run", "advanced", "--size-small", "12KiB"],
        "a power of two",
    ),
    (
        &[
            "good",
            "--run",
            "advanced",
            "--size-small",
            "1MiB",
            "--size-large",
            "4KiB",
        ],
        "small reads are the shorter ones",
    ),
    (
        &["good", "--run", "advanced", "--matrix", "point"],
        "needs --num-small",
    ),
    (
        &["good", "--run", "advanced", "--num-small", "2"],
        "--num-small has no meaning here",
    ),
    (&["missing", "--out", "new"], "No such file or directory"),
    (&["good", "--out", "."], "a new or an empty directory"),
    (&["good", "--wirte-percent", "50"], "unexpected argument"),
    (&["good", "--write-percent", "101"], "from 0 to 100"),
    (
        &["good", "--write-percent", "50"],
        "an existing file is never written",
    ),
    (
        &[".", "--write-percent", "50", "--caching", "buffered"],
        "needs --caching direct",
    ),
    (
        &[".", "--write-percent", "50", "--erase", "S1"],
        "no target is one",
    ),
    (&["good", "--erase", "S1"], "--write-percent"),
    (
        &["good", "--write-percent", "0", "--erase", "S1"],
        "--write-percent above 0",
    ),
    (
        &[".", "--write-percent", "9", "--flushes"],
        "cannot be used with",
    ),
    (
        &["good", "--caching", "both", "--run", "simple"],
        "one --caching",
    ),
    (
        &["good", "--size", "64MiB"],
        "these targets are read as a whole",
    ),
    (
        &["--fio-json", "good", "--time", "15s"],
        "cannot be used with",
    ),
    (&["good", "--caching", "both", "--emulate"], "one --caching"),
    (
        &["good", "--stripe", "2"],
        "--stripe needs --simulate raid0",
    ),
    (
        &["good", "second", "--simulate", "raid0", "--stripe", "64MiB"],
        "less than a stripe of 64 MiB",
    ),
    (
        &["good", "--simulate", "raid0"],
        "needs at least two targets",
    ),
    (
        &["good", "--simulate", "raid0", "--stripe", "64KiB"],
        "from 1MiB to 1GiB",
    ),
];

#[test]
fn mistakes_are_told_before_anything_is_touched() {
    let directory = own_directory();
    let at = |name: &str| directory.path().join(name);
    written(&at("good"), 8 << 20);
    written(&at("second"), 8 << 20);
    fs::write(at("empty"), "").unwrap();
    fs::write(at("small"), [1; 4096]).unwrap();
    File::create(at("sparse"))
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    symlink("good", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    fs::hard_link(at("good"), at("other name")).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    // Of the directory and all that is in it.
    let watch = Watch::new(&[directory.path()]);
    for (arguments, part) in WRONG {
        let ended = calibrate(arguments, directory.path());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(ended.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(watch.count(), 0, "nothing was opened for writing");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 9);
    drop(File::options().write(true).open(at("good")).unwrap());
    assert_eq!(watch.count(), 1, "the test sees what it looks for");
}
