//! What a run takes is reckoned before anything is made: what cannot fit ends in `plan` and in `run` alike, with the
//! sum, and what just fits runs to its end. On small file systems in memory, as root; without root those tests say so
//! and do nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use spindle_harness::is_root_or_skip;

const MIB: u64 = 1 << 20;

fn spindle(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command
        .args(arguments)
        .current_dir(directory)
        .env("SPINDLE_LEDGER_DIRECTORY", directory.join("ledger"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A file system in memory, unmounted when dropped.
struct Small {
    place: tempfile::TempDir,
}

impl Small {
    fn new(size_mib: u64) -> Small {
        let place = tempfile::tempdir().unwrap();
        let small = Small { place };
        fs::create_dir(small.mount()).unwrap();
        small.tool(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={size_mib}m"), "tmpfs"],
        );
        small
    }

    fn mount(&self) -> PathBuf {
        self.place.path().join("small")
    }

    fn tool(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        let status = command.args(arguments).arg(self.mount()).status().unwrap();
        assert!(status.success(), "{program}: {status}");
    }

    fn used_bytes(&self) -> u64 {
        let found = rustix::fs::statvfs(self.mount()).unwrap();
        (found.f_blocks - found.f_bfree) * found.f_frsize
    }

    fn write(&self, experiment: &str) {
        fs::write(self.place.path().join("e.toml"), experiment).unwrap();
    }

    fn output(&self, arguments: &[&str]) -> Output {
        spindle(self.place.path(), arguments).output().unwrap()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.mount()).status();
    }
}

fn experiment(engine: &str, size: &str, layouts: &[&str]) -> String {
    let mut own = String::new();
    if engine == "kernel" {
        own += "log_file_size = \"1MiB\"\nlog_files = 2\n";
        // There is no direct I/O in memory.
        own += if layouts.is_empty() {
            ""
        } else {
            "redo_io = { caching = \"buffered\" }\n"
        };
    }
    let layouts: Vec<String> = layouts
        .iter()
        .map(|path| format!("[[layout]]\nname = {path:?}\npath = {path:?}\n"))
        .collect();
    format!(
        "[database]\nengine = \"{engine}\"\nsize = \"{size}\"\nbuffer_cache = \"2MiB\"\n{own}\
         [workload]\nclients = 1\n\
         [plan]\nrounds = 1\nwarmup = \"100ms\"\nmeasure = \"500ms\"\nquiet = \"0s\"\n{}",
        layouts.concat()
    )
}

fn words(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// `plan` and `run` of `e.toml` in a directory refuse it alike, with these words, and make nothing.
fn both_refuse(directory: &Path, expected: &[&str]) {
    let list = || {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = list();
    for arguments in [&["plan", "e.toml"][..], &["run", "e.toml", "--out", "out"]] {
        let output = spindle(directory, arguments).output().unwrap();
        let told = words(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        for words in expected {
            assert!(told.contains(words), "{arguments:?}: {words}: {told}");
        }
    }
    assert_eq!(list(), before);
}

#[test]
fn what_no_file_system_holds_ends_before_anything_is_made() {
    if !is_root_or_skip("a small file system needs root") {
        return;
    }
    let small = Small::new(64);
    for engine in ["kernel", "sqlite", "postgres", "mariadb"] {
        small.write(&experiment(engine, "48MiB", &["small"]));
        let place = small.mount();
        let place = place.to_str().unwrap();
        both_refuse(
            small.place.path(),
            &[
                "too little",
                place,
                "golden copy ",
                "data ",
                "64 MiB are free",
            ],
        );
        assert_eq!(small.used_bytes(), 0, "{engine}");
    }
}

#[test]
fn layouts_that_fit_one_by_one_are_added_up() {
    if !is_root_or_skip("a small file system needs root") {
        return;
    }
    let small = Small::new(96);
    for name in ["a", "b"] {
        fs::create_dir(small.mount().join(name)).unwrap();
    }
    small.write(&experiment("kernel", "8MiB", &["small/a"]));
    let plan = small.output(&["plan", "e.toml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", words(&plan.stderr));
    small.write(&experiment("kernel", "8MiB", &["small/a", "small/b"]));
    both_refuse(
        small.place.path(),
        &["undo 32 MiB (2 together)", "96 MiB are free"],
    );
}

/// The row of a place in what `plan` prints: what is sure, and what trials may add, in MiB.
fn reckoned_mib(plan: &str, place: &str) -> (u64, u64) {
    let row = plan.lines().find(|line| line.starts_with(place));
    let row = row.unwrap_or_else(|| panic!("{place}: {plan}"));
    let mib_after = |start: usize| {
        let mut words = row[start..].split_whitespace();
        let number = words.next().unwrap().replace(',', "");
        let per_mib = match words.next().unwrap().trim_end_matches(',') {
            "bytes" => 1_048_576.0,
            "KiB" => 1024.0,
            "MiB" => 1.0,
            unit => panic!("{unit}: {plan}"),
        };
        (number.parse::<f64>().unwrap() / per_mib).ceil() as u64
    };
    let sure_mib = mib_after(row.find("tmpfs").unwrap() + "tmpfs".len());
    let growth = row.find("growth up to ");
    let growth_mib = growth.map_or(0, |at| mib_after(at + "growth up to ".len()));
    (sure_mib, growth_mib)
}

#[test]
fn what_just_fits_runs_to_its_end() {
    if !is_root_or_skip("a small file system needs root") {
        return;
    }
    for engine in ["kernel", "sqlite"] {
        let small = Small::new(1024);
        small.write(&experiment(engine, "16MiB", &["small"]));
        let plan = words(&small.output(&["plan", "e.toml"]).stdout);
        let (sure_mib, growth_mib) = reckoned_mib(&plan, small.mount().to_str().unwrap());
        let all_mib = sure_mib + growth_mib;
        small.tool("mount", &["-o", &format!("remount,size={all_mib}m")]);
        let mut run = spindle(
            small.place.path(),
            &["run", "e.toml", "--out", "out", "--quiet"],
        );
        let mut run = run.spawn().unwrap();
        let mut most_bytes = 0;
        while run.try_wait().unwrap().is_none() {
            most_bytes = most_bytes.max(small.used_bytes());
            std::thread::sleep(Duration::from_millis(5));
        }
        let ended = run.wait_with_output().unwrap();
        assert_eq!(
            ended.status.code(),
            Some(0),
            "{engine}: {}",
            words(&ended.stderr)
        );
        println!(
            "{engine}: {} MiB used of {sure_mib} + {growth_mib} reckoned",
            most_bytes / MIB
        );
        assert!(
            most_bytes <= all_mib * MIB,
            "{engine}: {most_bytes}: {plan}"
        );
        assert!(
            most_bytes >= all_mib * MIB / 2,
            "{engine}: {most_bytes}: {plan}"
        );
        assert_eq!(small.used_bytes(), 0, "{engine}");
    }
}

#[test]
fn a_device_that_is_too_small_ends_in_the_plan() {
    let place = tempfile::tempdir().unwrap();
    let layout = |devices: &str| {
        let text = experiment("kernel", "64MiB", &[]);
        fs::write(
            place.path().join("e.toml"),
            format!("{text}[[layout]]\nname = \"it\"\n{devices}\n"),
        )
        .unwrap();
    };
    layout("raw = true\ndevices = [{ file = \"raw.img\", size = \"64MiB\" }]");
    both_refuse(place.path(), &["raw.img", "data ", "62 MiB are free"]);
    // Room enough in all, and on neither device for a whole datafile.
    layout(
        "raw = true\ndatabase = { datafiles = 1 }\n\
         devices = [{ file = \"a.img\", size = \"66MiB\" }, { file = \"b.img\", size = \"66MiB\" }]",
    );
    both_refuse(place.path(), &["data1", "62 MiB free", "a.img"]);
    layout(
        "diskgroup = { redundancy = \"normal\" }\ndevices = [{ file = \"a.img\", size = \"96MiB\" }, { file = \"b.img\", size = \"96MiB\" }]",
    );
    both_refuse(place.path(), &["it, disk group", "data "]);
    if is_root_or_skip("a file system on a device needs root") {
        layout("filesystem = \"ext4\"\ndevices = [{ file = \"it.img\", size = \"80MiB\" }]");
        both_refuse(place.path(), &["it, ext4", "data "]);
    }
}

#[test]
fn files_that_stand_in_for_devices_count_where_they_lie() {
    if !is_root_or_skip("a small file system needs root") {
        return;
    }
    let small = Small::new(64);
    let text = experiment("kernel", "8MiB", &[]);
    small.write(&format!(
        "{text}[[layout]]\nname = \"it\"\nraw = true\ndevices = [{{ file = \"small/raw.img\", size = \"100MiB\" }}]\n"
    ));
    both_refuse(
        small.place.path(),
        &["files as devices 100 MiB", "64 MiB are free"],
    );
}

#[test]
fn more_memory_than_the_machine_has_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let text = experiment("kernel", "8MiB", &["."]);
    let text = text.replace("buffer_cache", "memory = \"60TiB\"\nbuffer_cache");
    fs::write(place.path().join("e.toml"), text).unwrap();
    both_refuse(place.path(), &["Memory: about 60.1 TiB", "database.memory"]);
}

/// A device that holds data leaves no answer: `plan` says so with the same exit code as `run`.
#[test]
fn a_device_that_holds_data_ends_plan_and_run_alike() {
    if !is_root_or_skip("a loop device needs root") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("disk");
    fs::write(&file, vec![0xA5; 64 << 20]).unwrap();
    let attached = Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&file)
        .output()
        .unwrap();
    let device = words(&attached.stdout).trim().to_owned();
    let text = experiment("kernel", "8MiB", &[]);
    let text = format!("{text}[[layout]]\nname = \"it\"\nraw = true\ndevices = [{device:?}]\n");
    fs::write(place.path().join("e.toml"), text).unwrap();
    let codes = [&["plan", "e.toml"][..], &["run", "e.toml", "--out", "out"]].map(|arguments| {
        let output = spindle(place.path(), arguments).output().unwrap();
        println!("{}", words(&output.stderr));
        output.status.code()
    });
    let detached = Command::new("losetup").args(["--detach", &device]).status();
    assert!(detached.is_ok_and(|status| status.success()));
    assert_eq!(codes, [Some(3); 2]);
}

/// Tempfiles alone lie in memory: what they take there is reckoned there, and the run has them there.
#[test]
fn tempfiles_lie_where_they_are_placed() {
    if !is_root_or_skip("a small file system needs root") {
        return;
    }
    let small = Small::new(4);
    let data = small.place.path().join("data");
    fs::create_dir(&data).unwrap();
    let base = experiment("kernel", "4MiB", &["data", "small"]);
    let queries = base.replace("clients = 1", "kind = \"dss\"\nclients = 1");
    let queries = queries.replace("warmup = \"100ms\"\nmeasure = \"500ms\"\n", "");
    let placed = queries
        .replace(
            "path = \"data\"\n",
            "path = \"data\"\nplacement = { temp = \"small\" }\n",
        )
        .replace(
            "path = \"small\"\n",
            "path = \"small\"\ncandidate = false\n",
        );
    small.write(&placed);
    let place = small.mount();
    both_refuse(
        small.place.path(),
        &[
            "too little",
            place.to_str().unwrap(),
            "temp ",
            "4 MiB are free",
        ],
    );
    small.tool("mount", &["-o", "remount,size=1g"]);
    let mut run = spindle(
        small.place.path(),
        &["run", "e.toml", "--out", "out", "--quiet"],
    );
    let mut run = run.spawn().unwrap();
    let mut has_tempfile = false;
    while run.try_wait().unwrap().is_none() {
        has_tempfile |= small.used_bytes() > 0;
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", words(&ended.stderr));
    assert!(has_tempfile, "nothing was ever on the small file system");
    let result = fs::read_to_string(small.place.path().join("out/result.json")).unwrap();
    assert!(result.contains("on layout small"), "the report says where");
    assert_eq!(small.used_bytes(), 0, "nothing is left there");
}

#[test]
fn a_place_that_takes_no_files_leaves_a_plan_without_an_answer() {
    if !is_root_or_skip("a file system mounted read-only") {
        return;
    }
    let small = Small::new(16);
    let mount = small.mount();
    small.tool("mount", &["-o", "remount,ro"]);
    let in_missing = r#"devices = [{ file = "/none/such/a.img", size = "1GiB" }]
filesystem = { type = "ext4" }"#;
    let places = [
        (format!("path = {mount:?}"), "mounted read-only"),
        ("path = \"/sys/kernel\"".to_owned(), "which holds no files"),
        (
            in_missing.to_owned(),
            "where /none/such/a.img is to be: /none/such: No such file",
        ),
    ];
    for (place, expected) in places {
        small.write(&format!("[[layout]]\nname = \"a\"\n{place}\n"));
        let plan = small.output(&["plan", "e.toml"]);
        let told = words(&plan.stdout);
        assert!(
            told.contains("  cannot be ") && told.contains(expected),
            "{told}"
        );
        assert_eq!(plan.status.code(), Some(3), "{told}");
    }
}

/// A value that the server does not have ends `plan`, in whatever way a layout comes to be.
#[test]
fn values_that_the_server_does_not_have_are_told_before_anything_is_made() {
    if Command::new("mariadbd").arg("--version").output().is_err() {
        spindle_harness::skip("MariaDB is not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let refused = "database = { settings = { innodb_flush_log_at_trx_commit = 7 } }\n";
    let whole = experiment("mariadb", "8MiB", &["."]);
    let made = "[[layout]]\nname = \"made\"\ndevices = [{ file = \"x.img\", size = \"1GiB\" }]\nfilesystem = \"ext4\"\n";
    for (layouts, name) in [
        (format!("{whole}{refused}"), "."),
        (
            format!("{}{made}{refused}", experiment("mariadb", "8MiB", &[])),
            "made",
        ),
    ] {
        fs::write(place.path().join("e.toml"), layouts).unwrap();
        let output = spindle(place.path(), &["plan", "e.toml"]).output().unwrap();
        let told = words(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {told}");
        assert!(
            told.contains("innodb-flush-log-at-trx-commit"),
            "{name}: {told}"
        );
    }
    assert!(!place.path().join("x.img").exists());
}
