//! Run directories as a stranger could leave them: links, pipes and devices in the places of files. Nothing outside is
//! written, nothing hangs, and a directory that holds a stranger's files is not taken for a run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::results::journals::Run;

struct Scene {
    place: tempfile::TempDir,
}

impl Scene {
    /// A run, and a file that must stay what it is.
    fn new() -> Scene {
        let place = tempfile::tempdir().unwrap();
        Run::default().write(&place.path().join("run"));
        fs::write(place.path().join("victim"), "precious").unwrap();
        Scene { place }
    }

    fn run(&self) -> PathBuf {
        self.place.path().join("run")
    }

    fn victim(&self) -> PathBuf {
        self.place.path().join("victim")
    }

    fn is_victim_whole(&self) -> bool {
        fs::read_to_string(self.victim()).unwrap() == "precious"
    }

    /// What the program says; it must end, whatever it was given.
    fn spindle(&self, arguments: &[&str]) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(arguments)
            .current_dir(self.place.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.place.path().join("ledger"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                panic!("{arguments:?} does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.wait_with_output().unwrap()
    }

    fn complaint(&self, arguments: &[&str]) -> String {
        let output = self.spindle(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{arguments:?}: {said}"
        );
        said
    }
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_report_is_written_through_no_link() {
    let scene = Scene::new();
    let written = ["report.html", "report.md", "result.json"];
    for name in written.iter().chain(&["report.new", "result.new"]) {
        symlink(scene.victim(), scene.run().join(name)).unwrap();
    }
    let output = scene.spindle(&["report", "run"]);
    assert!(output.status.success(), "{output:?}");
    assert!(scene.is_victim_whole());
    for name in written {
        assert!(
            scene.run().join(name).symlink_metadata().unwrap().is_file(),
            "{name}"
        );
    }
}

#[test]
fn series_are_not_written_into_another_directory() {
    let scene = Scene::new();
    let elsewhere = scene.place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, scene.run().join("series")).unwrap();
    let said = scene.complaint(&["report", "run"]);
    assert!(
        said.contains("series") && said.contains("symbolic link"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_series_that_is_a_pipe_is_replaced() {
    let scene = Scene::new();
    fs::create_dir(scene.run().join("series")).unwrap();
    let pipe = scene.run().join("series/layout1-clients8-round1.csv");
    make_fifo(&pipe);
    assert!(scene.spindle(&["report", "run"]).status.success());
    assert!(pipe.symlink_metadata().unwrap().is_file());
}

#[test]
fn a_pipe_or_a_socket_makes_no_command_wait() {
    let scene = Scene::new();
    let at = |name: &str| scene.place.path().join(name);
    make_fifo(&at("pipe"));
    let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("dump")).unwrap();
    fs::write(at("dump/toc.dat"), "").unwrap();
    make_fifo(&at("dump/1.dat"));
    fs::write(at("s.sql"), "select 1;").unwrap();
    fs::write(
        at("dump.toml"),
        "[database]\nengine = \"postgres\"\n[workload]\nkind = \"script\"\nscripts = [\"s.sql\"]\n\
         load = [\"dump\"]\n[[layout]]\nname = \"here\"\n",
    )
    .unwrap();
    let by_url = "postgres://u@127.0.0.1:1/d?sslmode=verify-full&sslrootcert=pipe";
    for arguments in [
        &["plan", "pipe"][..],
        &["run", "socket"],
        &["powercut", "pipe"],
        &["try", "pipe"],
        &["try", ".", "--load", "pipe", "--script", "s.sql"],
        &["try", ".", "--load", "s.sql", "--script", "socket"],
        &["plan", "dump.toml"],
        &["calibrate", "pipe"],
        &["calibrate", "socket"],
        &["calibrate", ".", "--control", "pipe", "--flushes"],
        &["calibrate", ".", "--against", "pipe"],
        &["calibrate", "--fio-json", "socket"],
        &["diskgroup", "show", "--disk", "pipe"],
        &["diskgroup", "check", "--disk", "socket"],
        &["diskgroup", "create", "g", "pipe", "socket"],
        &["import", "csvlog", "pipe", "--out", "imported"],
        &["doctor", by_url],
        &["report", "pipe"],
        &["show", "socket"],
        &["compare", "pipe", "pipe"],
        &["resume", "socket"],
        &["export", "pipe", "--format", "csv"],
        &["history", "pipe"],
        &["list", "socket"],
    ] {
        let said = scene.complaint(arguments);
        if arguments[0] == "diskgroup" {
            let code = scene.spindle(arguments).status.code();
            assert_eq!(code, Some(2), "{arguments:?}");
        }
        let name = ["pipe", "socket", "1.dat"]
            .iter()
            .find(|name| said.contains(**name));
        assert!(name.is_some(), "{arguments:?}: {said}");
    }
    let no_address = scene.spindle(&["doctor", "pipe"]);
    let said = String::from_utf8_lossy(&no_address.stderr);
    assert_eq!(no_address.status.code(), Some(2), "{said}");
    assert!(said.contains("postgres://USER@HOST"), "{said}");
}

#[test]
fn a_journal_that_is_no_file_of_the_directory_is_refused_by_every_command() {
    let scene = Scene::new();
    let journal = scene.run().join("journal.jsonl");
    let kept = scene.place.path().join("kept");
    fs::rename(&journal, &kept).unwrap();
    type Making = fn(&Path, &Path);
    let makings: [(&str, Making); 4] = [
        ("symbolic link", |kept, journal| {
            symlink(kept, journal).unwrap()
        }),
        ("symbolic link", |_, journal| {
            symlink("/dev/zero", journal).unwrap()
        }),
        ("pipe", |_, journal| make_fifo(journal)),
        ("directory", |_, journal| fs::create_dir(journal).unwrap()),
    ];
    for (word, make) in makings {
        make(&kept, &journal);
        for command in ["show", "report", "resume", "run"] {
            let said = scene.complaint(&[command, "run"]);
            assert!(said.contains(word), "{command}: {said}");
        }
        for arguments in [
            &["export", "run", "--format", "csv"][..],
            &["compare", "run", "run"],
        ] {
            let said = scene.complaint(arguments);
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
        let listed = scene.spindle(&["list", "."]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains(word), "{listed}");
        let _ = fs::remove_file(&journal).or_else(|_| fs::remove_dir(&journal));
    }
}

#[test]
fn a_journal_with_another_name_elsewhere_is_shown_but_not_gone_on_with() {
    let scene = Scene::new();
    let journal = scene.run().join("journal.jsonl");
    let before = fs::read(&journal).unwrap();
    fs::hard_link(&journal, scene.place.path().join("backup")).unwrap();
    assert!(scene.spindle(&["show", "run"]).status.success());
    let said = scene.complaint(&["resume", "run"]);
    assert!(said.contains("hard link"), "{said}");
    assert_eq!(fs::read(&journal).unwrap(), before);
}

#[test]
fn a_directory_with_files_of_a_user_is_no_run_directory() {
    let scene = Scene::new();
    fs::write(
        scene.place.path().join("e.toml"),
        "[[layout]]\nname = \"a\"\n",
    )
    .unwrap();
    let out = scene.place.path().join("out");
    fs::create_dir(&out).unwrap();
    for name in [
        "report.html",
        "report.md",
        "result.json",
        "experiment.json",
        "machine.json",
    ] {
        fs::write(out.join(name), "mine").unwrap();
        let said = scene.complaint(&["run", "e.toml", "--out", "out"]);
        assert!(
            said.contains(name) && said.contains("must be new or empty"),
            "{said}"
        );
        assert!(!said.contains("resume"), "{said}");
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "mine");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        fs::remove_file(out.join(name)).unwrap();
    }
    let said = scene.complaint(&["run", "e.toml", "--out", "run"]);
    assert!(said.contains("holds a run already"), "{said}");
}

#[test]
fn a_report_that_cannot_be_written_leaves_nothing_half_written() {
    let scene = Scene::new();
    fs::create_dir(scene.run().join("report.md")).unwrap();
    scene.complaint(&["report", "run"]);
    let names = fs::read_dir(scene.run()).unwrap().flatten();
    let mut names: Vec<_> = names
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["journal.jsonl", "report.html", "report.md", "result.json"]
    );
}
