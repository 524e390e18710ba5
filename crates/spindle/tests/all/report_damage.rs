//! Directories that hold no run, or a damaged one: the program says what is wrong and where, and makes no report.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::few_resources::copy_of_program;

fn spindle(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .arg(directory)
        .output()
        .expect("the program starts")
}

/// What the program says when it fails, as it must.
fn complaint(arguments: &[&str], directory: &Path) -> String {
    let output = spindle(arguments, directory);
    assert!(!output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(!directory.join("report.html").exists());
    String::from_utf8(output.stderr).expect("messages are text")
}

#[test]
fn a_foreign_directory_is_no_run() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("holiday.txt"), "sun").expect("a file");
    for command in ["report", "run"] {
        let said = complaint(&[command], directory.path());
        assert!(said.contains("is not a run directory"), "{said}");
        assert!(said.contains("journal.jsonl"), "{said}");
    }
}

#[test]
fn a_damaged_journal_is_named_with_its_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = directory.path().join("journal.jsonl");
    fs::write(&journal, "not a line of a journal\nnor this\n").expect("a journal");
    for command in ["report", "run"] {
        let said = complaint(&[command], directory.path());
        assert!(said.contains("journal.jsonl, line 1"), "{said}");
    }
}

#[test]
fn a_journal_that_was_cut_replaces_no_result() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = include_str!("old_run/journal.jsonl");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("journal.jsonl"), journal).expect("a journal");
    spindle(&["report"], directory.path());
    let made = fs::read_to_string(at("result.json")).expect("a result");
    let head: Vec<&str> = journal.split_inclusive('\n').take(10).collect();
    fs::write(at("journal.jsonl"), head.concat()).expect("a journal");
    for command in ["report", "resume"] {
        let again = spindle(&[command], directory.path());
        let said = String::from_utf8_lossy(&again.stderr);
        assert_eq!(again.status.code(), Some(1), "{said}");
        assert!(
            said.contains("result.json has 4 trials, and the journal only 0"),
            "{said}"
        );
        let kept = fs::read_to_string(at("result.json")).expect("a result");
        assert_eq!(kept, made);
        let left = fs::read_to_string(at("journal.jsonl")).expect("a journal");
        assert_eq!(left, head.concat());
    }
}

#[test]
fn a_run_that_was_stopped_before_it_began_is_to_be_started_again() {
    let directory = tempfile::tempdir().expect("a directory");
    for begun in ["", "{\"event\":\"run_sta"] {
        fs::write(directory.path().join("journal.jsonl"), begun).expect("a journal");
        for command in ["report", "resume", "show"] {
            let said = complaint(&[command], directory.path());
            assert!(said.contains("stopped before it had begun"), "{said}");
        }
    }
}

#[test]
fn a_run_is_run_again_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("journal.jsonl"), "").expect("a journal");
    let said = complaint(&["run", "--set", "plan.rounds=2"], directory.path());
    assert!(said.contains("--set"), "{said}");
}

/// User and group "nobody" of Debian and most others.
const NOBODY: u32 = 65534;

#[test]
fn who_may_not_read_a_run_is_told_what_to_do() {
    if !spindle_harness::is_root_or_skip("another user") {
        return;
    }
    // Where any user may go, which the directory of the tests need not be.
    let place = tempfile::tempdir().expect("a directory");
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("mode");
    let program = copy_of_program(place.path());
    let closed = place.path().join("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::write(closed.join("journal.jsonl"), "").expect("a journal");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("mode");
    for arguments in [
        &["show", "closed"][..],
        &["report", "closed"],
        &["resume", "closed"],
        &["run", "closed"],
        &["compare", "closed", "closed"],
        &["export", "closed", "--format", "csv"],
        &["list", "closed"],
        &["history", "closed"],
        &["try", "closed", "."],
        &["calibrate", "closed", "--time", "10s"],
        &["calibrate", "closed/file", "--time", "10s"],
    ] {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(place.path());
        let output = command.uid(NOBODY).gid(NOBODY).output().expect("it starts");
        let said = String::from_utf8(output.stderr).expect("messages are text");
        assert!(!output.status.success(), "{arguments:?}: {said}");
        for word in ["closed", "Permission denied", "as its owner"] {
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
        // No run is to begin there.
        assert!(!said.contains("--out"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_directory_that_is_not_there_and_a_file_are_no_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("holiday.txt"), "sun").expect("a file");
    for command in ["show", "report", "resume"] {
        let said = complaint(&[command], &directory.path().join("none"));
        assert!(said.contains("there is no directory "), "{said}");
        let said = complaint(&[command], &directory.path().join("holiday.txt"));
        assert!(said.contains("is not a run directory"), "{said}");
    }
}
