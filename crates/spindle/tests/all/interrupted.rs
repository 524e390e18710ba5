//! The first Ctrl-C while files are made or put back: the run ends after a piece or two of them, and not when all are
//! done; nothing is left, and it can be gone on with. How far it went on is seen from what it read and wrote, not from
//! the clock.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

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
measure = "100ms"
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
        .stdout(Stdio::null())
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
            more < 48 * MIB,
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
