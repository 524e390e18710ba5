//! Too few threads or open files, or too small a stack: an error for people, and nothing is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const EXPERIMENT: &str = "[database]\nsize = \"8MiB\"\nbuffer_cache = \"1MiB\"\nlog_file_size = \"1MiB\"\n[workload]\n\
                          clients = 30\n[plan]\nrounds = 1\nwarmup = \"100ms\"\nmeasure = \"200ms\"\nquiet = \"0s\"\n[[layout]]\n\
                          name = \"here\"\n";
/// Who is bound by a number of processes: root is not. No other test has processes of this user, which would count.
const NOBODY: u32 = 65533;

/// What the program says within limits that a shell sets.
/// The program in a directory where another user may start it. A child copies it. As long as this process had it open
/// for writing, a process that another test starts at that moment would have it open, too, and nobody could run it.
pub(crate) fn copy_of_program(place: &Path) -> PathBuf {
    let program = place.join("spindle");
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_spindle"))
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    program
}

fn limited(place: &Path, limit: &str, arguments: &str) -> Output {
    let program = place.join("spindle");
    let program = if program.exists() {
        program
    } else {
        env!("CARGO_BIN_EXE_spindle").into()
    };
    let script = format!("{limit} && exec {} {arguments}", program.display());
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(place);
    command.env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"));
    if limit.starts_with("ulimit -u") {
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    }
    command.output().unwrap()
}

fn scene() -> tempfile::TempDir {
    let place = crate::limits::own_directory();
    fs::write(place.path().join("e.toml"), EXPERIMENT).unwrap();
    place
}

fn must_be_refused_and_gone(place: &Path, output: &Output, word: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(word) && said.contains("nothing was made"),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    let names = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = names
        .filter(|name| name != "e.toml" && name != "spindle")
        .collect();
    left.retain(|name| name != "ledger" || fs::read_dir(place.join(name)).unwrap().count() > 0);
    assert!(left.is_empty(), "{left:?} is left; {said}");
}

#[test]
fn too_few_open_files_are_told_before_anything_is_made() {
    let place = scene();
    for files in [12, 16, 24] {
        for arguments in ["run e.toml", "plan e.toml"] {
            let output = limited(place.path(), &format!("ulimit -n {files}"), arguments);
            must_be_refused_and_gone(place.path(), &output, "ulimit -n");
        }
    }
}

#[test]
fn too_few_threads_are_told_before_anything_is_made() {
    if !spindle_harness::is_root_or_skip("a user whom a number of processes binds needs root") {
        return;
    }
    // Where that user may look.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(place.path().join("e.toml"), EXPERIMENT).unwrap();
    copy_of_program(place.path());
    std::os::unix::fs::chown(place.path(), Some(NOBODY), None).unwrap();
    for threads in [5, 20, 40] {
        let output = limited(place.path(), &format!("ulimit -u {threads}"), "run e.toml");
        must_be_refused_and_gone(place.path(), &output, "ulimit -u");
    }
}

#[test]
fn too_small_a_stack_is_told_and_overflows_nowhere() {
    let place = scene();
    for stack_kib in [64, 256, 512] {
        for arguments in ["--version", "plan e.toml"] {
            let output = limited(place.path(), &format!("ulimit -s {stack_kib}"), arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            // Root may raise the limit where nothing keeps it from that.
            match output.status.code() {
                Some(2) => assert!(said.contains("raise `ulimit -s`"), "{said}"),
                code => assert_eq!(code, Some(0), "{said}"),
            }
        }
    }
}
