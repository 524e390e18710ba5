//! Adding is one new file and at most three lines: the folders of `additions` add a workload, an access path, an SQL
//! engine of a known dialect, a file system and a setting of the embedded database to a copy of the workspace, whose
//! tests then pass, and which runs them. `lines` says which line is added behind which; `new` holds the new file. The
//! copy is built by `make test-all` and in CI: it takes minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::root;

const LINES_MAX: usize = 3;
/// What the copy has of the workspace.
const COPIED: [&str; 11] = [
    "crates",
    "docs",
    "examples",
    "workloads",
    "fuzz",
    "scripts",
    "vendor",
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "CONTRIBUTING.md",
];

/// Lines to be added to a file behind one of its lines.
struct Lines {
    file: String,
    behind: String,
    added: Vec<String>,
}

/// What adds one thing.
struct Addition {
    name: String,
    lines: Vec<Lines>,
    /// New files, by their paths in the workspace.
    new: Vec<PathBuf>,
}

fn folder() -> PathBuf {
    root().join("crates/spindle-harness/additions")
}

fn additions() -> Vec<Addition> {
    let entries = fs::read_dir(folder()).expect("the additions are there");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| addition(folder)).collect()
}

fn addition(folder: &Path) -> Addition {
    let text = fs::read_to_string(folder.join("lines")).expect("lines");
    let lines = text.trim().split("\n\n").map(|block| {
        let mut lines = block.lines();
        let file = lines.next().expect("a file").to_owned();
        let behind = lines.next().and_then(|line| line.strip_prefix("behind "));
        let added = lines.map(|line| line.strip_prefix('+').expect("an added line").to_owned());
        Lines {
            file,
            behind: behind.expect("a place").to_owned(),
            added: added.collect(),
        }
    });
    let new = folder.join("new");
    let files = if new.is_dir() {
        files_below(&new)
    } else {
        Vec::new()
    };
    let name = |path: &PathBuf| path.strip_prefix(&new).expect("below").to_owned();
    Addition {
        name: folder.display().to_string(),
        lines: lines.collect(),
        new: files.iter().map(name).collect(),
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The text with the lines added.
fn with_lines(text: &str, lines: &Lines) -> String {
    let at = text.lines().position(|line| line == lines.behind);
    let at = at.unwrap_or_else(|| panic!("{} has no line {:?}", lines.file, lines.behind));
    let mut all: Vec<&str> = text.lines().collect();
    let added: Vec<&str> = lines.added.iter().map(String::as_str).collect();
    all.splice(at + 1..at + 1, added);
    all.join("\n") + "\n"
}

#[test]
fn an_addition_is_one_file_and_three_lines() {
    for addition in additions() {
        let lines: usize = addition.lines.iter().map(|lines| lines.added.len()).sum();
        let name = &addition.name;
        assert!(lines <= LINES_MAX, "{name}: {lines} lines");
        assert!(addition.new.len() <= 1, "{name}: {:?}", addition.new);
        for lines in &addition.lines {
            let text = fs::read_to_string(root().join(&lines.file)).expect("a file");
            assert!(with_lines(&text, lines).len() > text.len());
        }
    }
}

/// Copies what has changed, so that what was built of it before is built no more.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        for file in files_below(from) {
            let name = file.strip_prefix(from).expect("below").to_owned();
            if !name.iter().any(|part| part == "target" || part == "corpus") {
                copy(&file, &to.join(name));
            }
        }
        return;
    }
    let bytes = fs::read(from).expect("a file of the workspace");
    write(to, &bytes);
}

fn write(to: &Path, bytes: &[u8]) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("a scratch folder");
    if fs::read(to).ok().as_deref() != Some(bytes) {
        fs::write(to, bytes).expect("a scratch file");
    }
}

/// The workspace with every addition.
fn scratch_copy() -> PathBuf {
    let copied = Path::new(env!("CARGO_TARGET_TMPDIR")).join("additions");
    let additions = additions();
    let is_changed = |name: &str| {
        additions
            .iter()
            .flat_map(|one| &one.lines)
            .any(|lines| lines.file == name)
    };
    for name in COPIED {
        for file in match root().join(name) {
            place if place.is_dir() => files_below(&place),
            place => vec![place],
        } {
            let name = file.strip_prefix(root()).expect("below").to_owned();
            let is_ours = !name.iter().any(|part| part == "target" || part == "corpus");
            if is_ours && !is_changed(&name.to_string_lossy()) {
                copy(&file, &copied.join(name));
            }
        }
    }
    let lines: Vec<&Lines> = additions.iter().flat_map(|one| &one.lines).collect();
    for file in lines.iter().map(|lines| &lines.file) {
        let text = fs::read_to_string(root().join(file)).expect("a file");
        let of_file = lines.iter().filter(|lines| lines.file == *file);
        let changed = of_file.fold(text, |text, lines| with_lines(&text, lines));
        write(&copied.join(file), changed.as_bytes());
    }
    for addition in &additions {
        for file in &addition.new {
            let from = Path::new(&addition.name).join("new").join(file);
            copy(&from, &copied.join(file));
        }
    }
    remove_what_is_gone(&copied, &additions);
    copied
}

/// An older copy may hold sources that the workspace no longer has: a module would have two files.
fn remove_what_is_gone(copied: &Path, additions: &[Addition]) {
    let sources = files_below(&copied.join("crates")).into_iter();
    for file in sources.filter(|file| file.extension().is_some_and(|it| it == "rs")) {
        let name = file.strip_prefix(copied).expect("below");
        let is_added = additions
            .iter()
            .any(|one| one.new.iter().any(|new| new == name));
        if !is_added && !root().join(name).exists() {
            fs::remove_file(&file).expect("a scratch file goes");
        }
    }
}

/// Gives the copy the libraries of others that this workspace was built with, so that only the workspace is compiled.
fn link_libraries(copied: &Path) {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../debug");
    for (folder, how) in [("deps", "-al"), ("build", "-al"), (".fingerprint", "-a")] {
        let to = copied.join("target/debug").join(folder);
        if to.exists() {
            continue;
        }
        fs::create_dir_all(&to).expect("a scratch folder");
        let entries = fs::read_dir(built.join(folder)).expect("this test was built there");
        let names = entries.map(|entry| entry.expect("an entry").path());
        let of_others = names.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !["spindle", "libspindle", "all-"]
                .iter()
                .any(|own| name.starts_with(own))
        });
        let done = Command::new("cp")
            .arg(how)
            .args(of_others)
            .arg(&to)
            .status();
        assert!(done.expect("cp starts").success(), "{folder}");
    }
}

/// Crates that tests of the workspace have optimised: here they are compiled once and work for seconds.
const OPTIMISED: [&str; 5] = [
    "spindle-engines",
    "spindle-io",
    "spindle-kernel",
    "spindle-query",
    "spindle-stats",
];

/// `cargo` in the copy, which is built for itself and not optimised.
fn cargo_in(copied: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    // Set for times of tests alone (`scripts/test`): builds would look for what a nightly compiler has.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    cargo
        .current_dir(copied)
        .env("CARGO_TARGET_DIR", copied.join("target"))
        .env_remove("SPINDLE_THOROUGH");
    for name in OPTIMISED {
        let level = format!("profile.dev.package.{name}.opt-level=0");
        cargo.args(["--config", &level]);
    }
    cargo
}

#[test]
fn what_is_added_so_is_documented_tested_and_run() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let copied = scratch_copy();
    link_libraries(&copied);
    let cargo = |arguments: &[&str]| {
        let done = cargo_in(&copied)
            .args(arguments)
            .output()
            .expect("cargo starts");
        let told = String::from_utf8_lossy(&done.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}:\n{told}\n{wrong}");
        told
    };
    let written = cargo_in(&copied)
        .args([
            "test",
            "--locked",
            "-p",
            "spindle-experiment",
            "reference::",
        ])
        .env("SPINDLE_WRITE_REFERENCE", "1")
        .output()
        .expect("cargo starts");
    assert!(
        written.status.success(),
        "{}",
        String::from_utf8_lossy(&written.stderr)
    );
    let page = fs::read_to_string(copied.join("docs/experiment-file.md")).expect("the reference");
    for word in [
        "`kind = \"one_row\"`",
        "| `times` |",
        "| `\"in_turn\"` |",
        "| `multiblock_read_blocks` |",
        "`\"sqlite_mapped\"`",
    ] {
        assert!(page.contains(word), "the reference does not say {word}");
    }
    cargo(&["test", "--locked", "-p", "spindle-experiment"]);
    cargo(&[
        "test",
        "--locked",
        "-p",
        "spindle-io",
        "--test",
        "all",
        "real_device::",
    ]);
    let plan = folder().join("plan.toml").display().to_string();
    let told = cargo(&["run", "--locked", "-p", "spindle", "--", "plan", &plan]);
    assert!(told.contains("mkfs.minix -3"), "{told}");
    let run = |experiment: &str, out: &str| {
        let out = copied.join("target").join(out);
        let _ = fs::remove_dir_all(&out);
        let (experiment, out) = (folder().join(experiment), out.display().to_string());
        let experiment = experiment.display().to_string();
        let program = ["run", "--locked", "-p", "spindle", "--"];
        cargo(&[&program[..], &["run", &experiment, "--out", &out]].concat())
    };
    let told = run("experiment.toml", "run");
    assert!(told.contains("in turn"), "{told}");
    let told = run("sql.toml", "sql");
    assert!(told.contains(", mapped ·"), "{told}");
}
