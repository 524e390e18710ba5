//! Directories that hold no run, or a damaged one: the program says what is wrong and where, and makes no report.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

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
        assert!(said.contains("is not the directory of a run"), "{said}");
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
fn an_empty_journal_is_no_run() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("journal.jsonl"), "").expect("a journal");
    let said = complaint(&["report"], directory.path());
    assert!(said.contains("not the journal of a run"), "{said}");
}

#[test]
fn a_run_is_run_again_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("journal.jsonl"), "").expect("a journal");
    let said = complaint(&["run", "--set", "plan.rounds=2"], directory.path());
    assert!(said.contains("--set"), "{said}");
}
