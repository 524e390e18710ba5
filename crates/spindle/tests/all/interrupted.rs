//! The first Ctrl-C while files are made or put back: the run ends after a piece or two of them, and not when all are
//! done; nothing is left, and it can be gone on with. How far it went on is seen from what it read and wrote, not from
//! the clock.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use spindle_io::Env;
use spindle_io::disk_group::{Disk, DiskGroup, DiskGroupOptions, Striping, Template};
use spindle_io::real::{Caching, FileDevice, Queue, RealEnv, block_on};

const MIB: u64 = 1 << 20;

/// Half of the files are never written by what goes on after an interrupt.
const EXPERIMENT: &str = r#"
name = "interrupted"
[database]
size = "160MiB"
buffer_cache = "2MiB"
log_file_size = "1MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "50ms"
measure = "1s"
rounds = 1
[[layout]]
name = "files"
"#;

fn spindle(place: &tempfile::TempDir, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command
        .args(arguments)
        .current_dir(place.path())
        .env("SPINDLE_LEDGER_DIRECTORY", place.path().join("ledger"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What a process has read and written so far (proc(5), `io`); `None` when it is gone.
fn transferred_bytes(process: u32) -> Option<u64> {
    let told = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let counts = told.lines().filter_map(|line| {
        line.strip_prefix("rchar: ")
            .or(line.strip_prefix("wchar: "))
    });
    counts.map(|count| count.parse::<u64>().ok()).sum()
}

/// Interrupts a run when it says a line that begins so, and then has transferred so much; what it said, and what it
/// transferred afterwards.
fn interrupted_at(place: &tempfile::TempDir, moment: &str, bytes: u64) -> (String, u64) {
    let mut run = spindle(place, &["run", "experiment.toml", "--out", "out"]);
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let mut told = String::new();
    for line in &mut lines {
        told += &format!("{}\n", line.unwrap());
        if told.lines().last().unwrap().starts_with(moment) {
            break;
        }
    }
    let so_far = || transferred_bytes(run.id());
    let began = so_far().unwrap_or_else(|| panic!("it ended before {moment:?}: {told}"));
    while so_far().is_some_and(|now| now < began + bytes) {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let at = so_far().unwrap_or_default();
    let mut last = at;
    let status = loop {
        last = transferred_bytes(run.id()).unwrap_or(0).max(last);
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    lines.for_each(|line| told += &format!("{}\n", line.unwrap()));
    assert_eq!(status.code(), Some(130), "{moment}: {told}");
    (told, last - at)
}

#[test]
fn files_that_are_made_or_put_back_are_not_waited_for() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (moment, bytes) in [
        // Golden files; the image; the first restore.
        ("loading", 8 * MIB),
        ("making the database files", 8 * MIB),
        ("trial 1/", 0),
    ] {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
        let (told, more) = interrupted_at(&place, moment, bytes);
        assert!(
            more < 96 * MIB,
            "{moment}: {} MiB more were read and written\n{told}",
            more / MIB
        );
        let left = fs::read_dir(place.path()).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        let ours = ["experiment.toml", "ledger", "out"];
        assert!(
            left.iter()
                .all(|name| ours.contains(&name.to_str().unwrap())),
            "{moment}: {left:?}"
        );
        if moment == "loading" {
            let mut resumed = spindle(&place, &["resume", "out"]);
            let said = BufReader::new(resumed.stderr.take().unwrap()).lines();
            let said: Vec<String> = said.map(Result::unwrap).collect();
            assert_eq!(resumed.wait().unwrap().code(), Some(0), "{said:#?}");
        }
    }
}

/// What a command has said and how it ended, after it was interrupted.
fn interrupted_when(mut command: Child, is_time: impl Fn(u32) -> bool) -> (Option<i32>, String) {
    while !is_time(command.id()) {
        assert!(command.try_wait().unwrap().is_none(), "it ended before");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&command), Signal::INT).unwrap();
    let lines = BufReader::new(command.stderr.take().unwrap()).lines();
    let told = lines.map(|line| line.unwrap() + "\n").collect();
    (command.wait().unwrap().code(), told)
}

#[test]
fn files_of_a_disk_group_that_are_made_go_again() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let made = ["diskgroup", "create", "data", "--size", "2GiB", "a", "b"];
    let first = place.path().join("a");
    let (code, told) = interrupted_when(spindle(&place, &made), |_| first.exists());
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("interrupted; nothing was made"), "{told}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_rebalance_ends_with_the_extents_under_way_and_is_gone_on_with() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    make_group(place.path());
    let finished = |arguments: &[&str]| {
        let output = spindle(&place, arguments).wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let add = [
        "diskgroup",
        "add",
        "--disk",
        "a",
        "--disk",
        "b",
        "--size",
        "1GiB",
        "c",
    ];
    let new = place.path().join("c");
    let begun = std::cell::Cell::new(None);
    let (code, told) = interrupted_when(spindle(&place, &add), |process| {
        let now = transferred_bytes(process).unwrap_or_default();
        if new.exists() && begun.get().is_none() {
            begun.set(Some(now));
        }
        begun.get().is_some_and(|then| now > then + 16 * MIB)
    });
    assert_eq!(code, Some(130), "{told}");
    let disks = ["--disk", "a", "--disk", "b", "--disk", "c"];
    let on_all = |verb: &str| finished(&[&["diskgroup", verb], &disks[..]].concat());
    assert_eq!(on_all("check").0, Some(0));
    let mut rest = spindle(&place, &[&["diskgroup", "rebalance"], &disks[..]].concat());
    let mut said = String::new();
    rest.stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(rest.wait().unwrap().code(), Some(0));
    assert!(
        !said.starts_with("0 extents moved"),
        "all was moved before: {said}"
    );
    assert_eq!(on_all("check").0, Some(0));
}

/// A group of two files, with a file in it that is theirs to spread.
fn make_group(directory: &Path) {
    let disk = |name: &str| {
        let path = directory.join(name);
        fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
        let device = FileDevice::open(&path, Caching::Buffered, Queue::sync()).unwrap();
        Disk {
            name: name.to_owned(),
            failure_group: None,
            device: Arc::new(device),
        }
    };
    let env: Arc<dyn Env> = RealEnv::new(1);
    let options = DiskGroupOptions {
        allocation_unit_bytes: MIB,
        ..DiskGroupOptions::default()
    };
    block_on(async {
        let disks = ["a", "b"].map(disk).into();
        let group = DiskGroup::create(&env, "data", disks, options)
            .await
            .unwrap();
        let template = Template {
            striping: Striping::Coarse,
            redundancy: None,
        };
        let creation = group.begin_file("file", 1 << 30, template).await.unwrap();
        creation.commit().await.unwrap();
        group.dismount().await.unwrap();
    });
}
