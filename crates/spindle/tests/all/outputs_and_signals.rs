//! What the system may do to the program while it works: an output that is full or closed, a signal, a limit on the
//! size of files, a ledger that cannot be kept. It ends with a code and a reason, never with a panic, and says what it
//! leaves.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::results::journals::Run;

const EXPERIMENT: &str = r#"
name = "short"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 1
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
warmup = "200ms"
measure = "600ms"
rounds = 1
quiet = "0s"
[[layout]]
name = "a"
"#;
const PANICKED: i32 = 101;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new(experiment: &str) -> Place {
        // Beside the program: /tmp may be a tmpfs.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(directory.path().join("e.toml"), experiment).unwrap();
        Place { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The program, started by a line of the shell in which `$0` is it.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", line, env!("CARGO_BIN_EXE_spindle")])
            .current_dir(self.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.path().join("ledger"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A run into `out` that has begun a trial of a minute.
    fn begun(&self, line: &str, out: &str) -> Child {
        let mut child = self.shell(line).spawn().unwrap();
        let began = Instant::now();
        let journal = self.path().join(out).join("journal.jsonl");
        while !fs::read_to_string(&journal)
            .unwrap_or_default()
            .contains("trial_started")
        {
            assert!(
                child.try_wait().unwrap().is_none(),
                "the run ended before a trial"
            );
            assert!(
                began.elapsed() < Duration::from_secs(180),
                "no trial begins"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }

    /// Files of the database that are left.
    fn leftovers(&self) -> usize {
        let entries = fs::read_dir(self.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names
            .filter(|name| !["e.toml", "ledger"].contains(&name.as_str()))
            .filter(|name| !name.starts_with("out"))
            .count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.shell("exec \"$0\" clean").output();
    }
}

fn long_trial() -> String {
    EXPERIMENT.replace("600ms", "60s")
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_full_standard_output_is_told_in_a_line() {
    let place = Place::new(EXPERIMENT);
    Run::default().write(&place.path().join("run"));
    for arguments in [
        "show run",
        "export run --format csv",
        "list .",
        "compare run run",
        "report run",
        "report run --json",
        "plan e.toml",
        "clean",
        "--help",
        "run --help",
        "--version",
    ] {
        let output = place
            .shell(&format!("exec \"$0\" {arguments} > /dev/full"))
            .output()
            .unwrap();
        let told = said(&output);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{arguments}: {output:?}"
        );
        assert!(
            told.contains("cannot write to standard output"),
            "{arguments}: {told}"
        );
        assert_eq!(told.lines().count(), 1, "{arguments}: {told}");
        // Nobody is listening: quiet, and as if a reader were there.
        let mut child = place.shell(&format!("sleep 0.2; exec \"$0\" {arguments}"));
        let mut child = child.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| code < PANICKED),
            "{arguments}: {output:?}"
        );
        assert_eq!(said(&output), "", "{arguments}");
    }
}

#[test]
fn a_run_whose_outputs_are_full_is_done_all_the_same() {
    let place = Place::new(EXPERIMENT);
    let line = "exec \"$0\" run e.toml --out out > /dev/full 2> /dev/full";
    let output = place.shell(line).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(place.path().join("out/report.html").exists());
    assert_eq!(place.leftovers(), 0);
}

#[test]
fn a_current_directory_that_was_removed_is_told_as_that() {
    let place = Place::new(EXPERIMENT);
    let from_nowhere = |arguments: &str| {
        let line = format!("mkdir gone && cd gone && rmdir ../gone && exec \"$0\" {arguments}");
        place.shell(&line).output().unwrap()
    };
    for arguments in [
        "plan ../e.toml",
        "doctor",
        "try .",
        "calibrate .",
        "clean",
        "list",
    ] {
        let output = from_nowhere(arguments);
        let told = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {told}");
        assert!(
            told.contains("the current directory was removed"),
            "{arguments}: {told}"
        );
        assert_eq!(told.lines().count(), 1, "{arguments}: {told}");
    }
    assert!(from_nowhere("explain redo").status.success());
}

#[test]
fn a_name_that_is_no_text_is_told() {
    let place = Place::new("");
    let line = "exec \"$0\" try . \"$(printf 'n\\377m')\"";
    let output = place.shell(line).output().unwrap();
    let told = said(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("m is not UTF-8"), "{told}");
}

#[test]
fn a_failure_is_told_by_its_code_where_standard_error_is_full() {
    let place = Place::new("");
    for arguments in ["show nothing", "plan e.toml", "--wrong"] {
        let output = place
            .shell(&format!("exec \"$0\" {arguments} 2> /dev/full"))
            .output()
            .unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
        assert_ne!(output.status.code(), Some(PANICKED));
    }
}

#[test]
fn a_closed_terminal_ends_a_run_as_a_signal_to_end_does() {
    for signal in [Signal::HUP, Signal::TERM] {
        let place = Place::new(&long_trial());
        // Under nohup the tests, and so their children, ignore the signal.
        let line = "exec env --default-signal=HUP \"$0\" run e.toml --out out";
        let child = place.begun(line, "out");
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert!(said(&output).contains("spindle resume"), "{output:?}");
        assert_eq!(place.leftovers(), 0);
    }
}

#[test]
fn a_run_below_nohup_outlives_its_terminal() {
    let place = Place::new(&long_trial());
    let mut child = place.begun("trap '' HUP; exec \"$0\" run e.toml --out out", "out");
    let handled = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap()
    };
    assert_eq!(handled(child.id()) & 1, 0, "SIGHUP is not handled");
    send(&child, Signal::HUP);
    assert!(child.try_wait().unwrap().is_none());
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn an_interrupt_while_databases_are_made_waits_for_one_and_not_for_all() {
    const LAYOUTS: usize = 16;
    let layout = |number| {
        format!("[[layout]]\nname = \"{number}\"\ndatabase = {{ datafiles = {number} }}\n")
    };
    let layouts: String = (1..=LAYOUTS).map(layout).collect();
    let place = Place::new(&EXPERIMENT.replace("[[layout]]\nname = \"a\"\n", &layouts));
    let mut child = place
        .shell("exec \"$0\" run e.toml --out out")
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut made = 0;
    for line in lines {
        if line.starts_with("making the database files for") {
            if made == 0 {
                send(&child, Signal::INT);
            }
            made += 1;
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!((1..LAYOUTS).contains(&made), "{made} were made");
    assert_eq!(place.leftovers(), 0);
}

#[test]
fn a_second_interrupt_says_what_stays_and_how_it_goes() {
    for first in [Signal::INT, Signal::TERM] {
        let place = Place::new(&long_trial());
        // It may end before it stands still, on a busy machine: then it has taken all away.
        let told = (0..20).find_map(|attempt| {
            let (code, told) = interrupted_twice(&place, &format!("out{attempt}"), first);
            assert_eq!(code, Some(130), "{told}");
            if told.contains("ended at once") {
                return Some(told);
            }
            assert_eq!(place.leftovers(), 0, "{told}");
            None
        });
        let told = told.expect("twenty runs ended in order");
        assert!(told.contains("spindle clean"), "{told}");
        assert!(told.contains("Still there:"), "{told}");
        let cleaned = place.shell("exec \"$0\" clean").output().unwrap();
        assert!(cleaned.status.success(), "{cleaned:?}");
        assert_eq!(place.leftovers(), 0);
    }
}

/// A run that is told to stop, stands still once it has said so, and is interrupted: its code, and what it said.
fn interrupted_twice(place: &Place, out: &str, first: Signal) -> (Option<i32>, String) {
    let mut child = place.begun(&format!("exec \"$0\" run e.toml --out {out}"), out);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    send(&child, first);
    assert!(lines.any(|line| line.unwrap().starts_with("interrupted: what the run made")));
    send(&child, Signal::STOP);
    std::thread::sleep(Duration::from_millis(300));
    send(&child, Signal::INT);
    send(&child, Signal::CONT);
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    (child.wait().unwrap().code(), told.join("\n"))
}

/// As a shell does whose terminal has gone, and `timeout`.
#[test]
fn what_is_sent_twice_takes_away_what_was_made() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let signals = [
        (Signal::TERM, 0),
        (Signal::TERM, 30),
        (Signal::HUP, 30),
        (Signal::INT, 0),
    ];
    for (signal, after_ms) in signals {
        let place = Place::new(&long_trial());
        // Under nohup, or in the background of a script, the tests and their children ignore signals.
        let line = "exec env --default-signal=HUP,INT \"$0\" run e.toml --out out";
        let child = place.begun(line, "out");
        send(&child, signal);
        std::thread::sleep(Duration::from_millis(after_ms));
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(130), "{told}");
        assert!(!told.contains("ended at once"), "{signal:?}: {told}");
        assert_eq!(place.leftovers(), 0, "{signal:?}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_a_reason() {
    let place = Place::new(EXPERIMENT);
    let line = "ulimit -f 1000; exec \"$0\" run e.toml --out out";
    let output = place.shell(line).output().unwrap();
    let told = said(&output);
    assert!(matches!(output.status.code(), Some(1 | 3)), "{output:?}");
    assert!(told.contains("File too large"), "{told}");
    assert!(told.contains("ulimit -f"), "{told}");
    assert_eq!(place.leftovers(), 0);
}

#[test]
fn a_ledger_that_cannot_be_kept_leaves_no_run_directory() {
    let place = Place::new(EXPERIMENT);
    File::create(place.path().join("ledger")).unwrap();
    for (out, left) in [("out", false), ("own", true)] {
        let out_path = place.path().join(out);
        if left {
            fs::create_dir(&out_path).unwrap();
        }
        let line = format!("exec \"$0\" run e.toml --out {out}");
        let output = place.shell(&line).output().unwrap();
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains("ledger") && !told.contains("resume"),
            "{told}"
        );
        assert_eq!(out_path.exists(), left);
        assert!(!left || fs::read_dir(&out_path).unwrap().count() == 0);
    }
}

#[test]
fn runs_of_one_name_and_second_have_directories_of_their_own() {
    let place = Place::new(EXPERIMENT);
    let mut children: Vec<Child> = (0..3)
        .map(|_| place.shell("exec \"$0\" run e.toml").spawn().unwrap())
        .collect();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert_eq!(fs::read_dir(place.path().join("runs")).unwrap().count(), 3);
}
