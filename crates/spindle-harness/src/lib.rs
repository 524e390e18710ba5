//! What the tests of every crate share: the one way to skip a test, the one way to start a test as a process, and the
//! one to write a program ([`write_program()`]). Also a [`Watch`] over what is never written to, and the words that
//! nothing says of a server ([`foreign_words()`]).
//! A development dependency only; the program never sees it.
//!
//! Long proofs try a part of their cases in `make test`, more of them in CI, and all in `make test-all` ([`stride`]).
//!
//! A skipped test is not a passed one. Two environment variables say what becomes of a skip:
//! - `SPINDLE_REQUIRE=all`: it fails the test. Set where the machine has everything, as in CI.
//! - `SPINDLE_SKIPPED=FILE`: it adds a line to that file, the test's name and the reason, so that `scripts/test` can
//!   count them.

mod foreign_words;
mod watch;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;

pub use foreign_words::foreign_words;
pub use watch::Watch;

/// Says that this test, or a part of it, cannot run here. The caller then returns or continues with the rest.
///
/// # Panics
/// With `SPINDLE_REQUIRE=all`, so that the test fails; when the file of `SPINDLE_SKIPPED` cannot be written.
pub fn skip(reason: impl Display) {
    let current = thread::current();
    let test = current.name().unwrap_or("a thread without a name");
    assert!(
        !may_not_skip(),
        "{test} was skipped, and SPINDLE_REQUIRE=all allows no skip: {reason}"
    );
    eprintln!("skipped: {test}: {reason}");
    if let Some(path) = std::env::var_os("SPINDLE_SKIPPED") {
        let line = format!("{test}\t{}\n", reason.to_string().replace('\n', " "));
        let opened = OpenOptions::new().create(true).append(true).open(&path);
        opened
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// Whether the tests run as root. If not, the test is skipped with `reason`.
pub fn is_root_or_skip(reason: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(reason);
    }
    is_root
}

/// Whether this test runs though it takes long: in `make test-all`, in CI, and where no skip is allowed. If not, it is
/// skipped, as `make test` is to end within ten minutes.
pub fn is_long_or_skip() -> bool {
    let is_asked = std::env::var_os("SPINDLE_THOROUGH").is_some() || may_not_skip();
    if !is_asked {
        skip("it takes long: `make test-all` runs it");
    }
    is_asked
}

fn may_not_skip() -> bool {
    std::env::var("SPINDLE_REQUIRE").as_deref() == Ok("all")
}

/// How far apart the cases lie that a long proof tries: one of `usual` in `make test`, and with `SPINDLE_THOROUGH=N` at
/// least one of N: each of them in `make test-all` (1), one of four in CI. The cases are the same in every run.
///
/// # Panics
/// When `SPINDLE_THOROUGH` is not a number from 1 on.
#[must_use]
pub fn stride(usual: usize) -> usize {
    match std::env::var("SPINDLE_THOROUGH") {
        Ok(number) => {
            let stride = number.parse().ok().filter(|&stride| stride > 0);
            usual.min(stride.expect("SPINDLE_THOROUGH is a number from 1 on"))
        }
        Err(_) => usual,
    }
}

/// Whether long proofs try each of their cases, as in `make test-all`.
#[must_use]
pub fn is_thorough() -> bool {
    stride(usize::MAX) == 1
}

/// The command that runs one ignored test of the module it stands in as a process, for a test that kills or limits one.
/// The compiler sees to it that there is such a function: a wrong name would run nothing and succeed.
#[macro_export]
macro_rules! child {
    ($test:ident) => {{
        let _: fn() = $test;
        $crate::child_named(module_path!(), stringify!($test))
    }};
}

/// What [`child!`] expands to: this program, told to run that one ignored test and to show what it prints.
///
/// # Panics
/// When the system does not tell where this program is.
#[must_use]
pub fn child_named(module: &str, test: &str) -> Command {
    // The name of a test begins below the crate.
    let path = match module.split_once("::") {
        Some((_, below)) => format!("{below}::{test}"),
        None => test.to_owned(),
    };
    let program = std::env::current_exe().expect("the system tells where this program is");
    let mut command = Command::new(program);
    command.args([
        "--exact",
        &path,
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
}

/// Writes a program that anyone may run, a script for one. A process of its own writes it. Were the file open in this
/// process, a program that another thread starts would inherit it for a moment, and running it fails: "Text file busy".
///
/// # Panics
/// When it cannot be written.
pub fn write_program(path: &Path, text: &str) {
    let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
    let mut shell = Command::new("sh");
    let written = shell.args(["-c", write]).arg(path).arg(text).status();
    let is_written = written.expect("a shell").success();
    assert!(is_written, "{} cannot be written", path.display());
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Runs the test below in a process with its own environment.
    fn skipping(variable: &str, value: &str) -> std::process::Output {
        crate::child!(skips)
            .env_remove("SPINDLE_REQUIRE")
            .env_remove("SPINDLE_SKIPPED")
            .env(variable, value)
            .output()
            .unwrap()
    }

    #[test]
    #[ignore = "run by the tests beside it"]
    fn skips() {
        super::skip("nothing is here");
    }

    #[test]
    fn a_skip_fails_the_test_where_nothing_may_be_skipped() {
        assert!(skipping("SPINDLE_REQUIRE", "").status.success());
        let failed = skipping("SPINDLE_REQUIRE", "all");
        assert!(!failed.status.success());
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert!(said.contains("tests::skips was skipped"), "{said}");
    }

    #[test]
    fn a_skip_is_noted_with_the_name_of_its_test() {
        let directory = tempfile::tempdir().unwrap();
        let noted = directory.path().join("skipped");
        assert!(
            skipping("SPINDLE_SKIPPED", noted.to_str().unwrap())
                .status
                .success()
        );
        let text = std::fs::read_to_string(noted).unwrap();
        assert_eq!(text, "tests::skips\tnothing is here\n");
    }

    #[test]
    fn a_program_runs_at_once_though_other_threads_start_programs() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        Command::new("true").status().unwrap();
                    }
                });
            }
            let said = scope.spawn(|| {
                let said = (0..50).map(|number| {
                    let text = format!("#!/bin/sh\necho \"it's %s {number}\"\n");
                    super::write_program(&program, &text);
                    Command::new(&program).output()
                });
                said.collect::<Vec<_>>()
            });
            let said = said.join();
            is_done.store(true, Ordering::Relaxed);
            for (number, output) in said.unwrap().into_iter().enumerate() {
                let said = String::from_utf8(output.unwrap().stdout).unwrap();
                assert_eq!(said, format!("it's %s {number}\n"));
            }
        });
    }
}
