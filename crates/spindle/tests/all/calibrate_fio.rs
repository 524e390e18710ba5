//! `spindle calibrate` beside fio: job files that the real fio takes, what it writes read again, and both side by side.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::calibrate::{NOWHERE, beside_others};
use crate::limits::own_directory;

fn run(program: &str, arguments: &[&str], directory: &Path) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env(NOWHERE.0, NOWHERE.1)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn calibrate(arguments: &[&str], directory: &Path) -> Output {
    let more: &[&str] = match arguments.contains(&"--fio-json") {
        true => &[],
        false => &["--no-metadata"],
    };
    let arguments = [&["calibrate"], arguments, more].concat();
    run(env!("CARGO_BIN_EXE_spindle"), &arguments, directory)
}

fn has_fio() -> bool {
    let is_there = spindle_layout::tool::find("fio").is_some();
    if !is_there {
        spindle_harness::skip("fio is not installed");
    }
    is_there
}

/// Writes the job file of these arguments.
fn emulated(arguments: &[&str], directory: &Path) -> String {
    let ended = calibrate(&[arguments, &["--emulate"]].concat(), directory);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{arguments:?}: {said}");
    let text = String::from_utf8(ended.stdout).unwrap();
    fs::write(directory.join("jobs.fio"), &text).unwrap();
    text
}

#[test]
fn fio_takes_every_job_file() {
    if !has_fio() {
        return;
    }
    let directory = own_directory();
    let at = directory.path();
    for name in ["data", "a:b"] {
        fs::write(at.join(name), vec![1; 16 << 20]).unwrap();
    }
    fs::create_dir(at.join("deeper")).unwrap();
    let simple = ["--run", "simple", "--num-disks", "4"];
    let advanced = ["--run", "advanced", "--matrix", "max", "--num-small", "19"];
    let streams = ["--num-large", "3", "--type", "seq", "--write-percent", "40"];
    let cases: [&[&str]; 6] = [
        &["."],
        &["data", "a:b", "--caching", "buffered"],
        &[
            ".",
            "deeper",
            "--simulate",
            "raid0",
            "--write-percent",
            "100",
        ],
        &[".", "--flushes"],
        &[&["data"], &simple[..]].concat(),
        &[&["."], &advanced[..], &streams].concat(),
    ];
    for arguments in cases {
        let text = emulated(arguments, at);
        let ended = run("fio", &["--parse-only", "jobs.fio"], at);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.is_empty(), "{said}\n{text}");
    }
    let names = |text: &str| text.matches("\n[").count();
    assert!(names(&emulated(&["data"], at)) > 20);
    // Nothing but the job file was made.
    assert_eq!(fs::read_dir(at).unwrap().count(), 4);
}

/// A job file must not write to a file that no one named, nor fill a disk.
#[test]
fn a_job_file_says_the_name_of_its_target_or_there_is_none() {
    let directory = own_directory();
    let at = directory.path();
    let victim = at.join("victim").display().to_string().replace('/', "_");
    for name in [
        &format!("e\n[evil]\nrw=randwrite\nfilename={victim}\n;x"),
        "${HOME}",
        "a;b",
        "blank ",
    ] {
        fs::create_dir(at.join(name)).unwrap();
        let ended = calibrate(&[name, "--emulate"], at);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{name:?}: {said}");
        assert!(said.contains("job file of fio cannot say"), "{said}");
        assert!(ended.stdout.is_empty());
    }
    let text = emulated(&[".", "--size", "64TiB"], at);
    let size = text.lines().find_map(|line| line.strip_prefix("filesize="));
    let free = rustix::fs::statvfs(at).unwrap();
    let free_bytes = free.f_bfree * free.f_frsize;
    assert!(size.unwrap().parse::<u64>().unwrap() <= free_bytes / 3);
}

#[test]
fn figures_of_the_real_fio_stand_beside_ours() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !has_fio() {
        return;
    }
    let _shared = beside_others();
    let directory = own_directory();
    let at = directory.path();
    let point = ["--run", "advanced", "--matrix", "point", "--num-small", "2"];
    let usual = ["--num-large", "1", "--duration", "1s", "--size", "16MiB"];
    let asked = [&[".", "--time", "10s", "--quiet"], &point[..], &usual].concat();
    emulated(&asked, at);
    let output = ["--output-format=json", "--output=fio.json", "jobs.fio"];
    let ended = run("fio", &output, at);
    let said = String::from_utf8_lossy(&ended.stderr);
    if said.contains("io_uring") || said.contains("Invalid argument") {
        spindle_harness::skip(format_args!("fio here: {said}"));
        return;
    }
    assert!(ended.status.success(), "{said}");
    let ended = calibrate(&["--fio-json", "fio.json"], at);
    let told = String::from_utf8_lossy(&ended.stdout);
    for name in [
        "fio-",
        "mix-2-1-small",
        "mix-2-1-large",
        "flush-1 ",
        "flush-16",
    ] {
        assert!(told.contains(name), "{told}");
    }
    let ended = calibrate(
        &[&asked[..], &["--against", "fio.json", "--json"]].concat(),
        at,
    );
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let rows = found["against"]["rows"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["mix-2-1-small", "mix-2-1-large", "flush-1", "flush-16"]
    );
    for row in rows {
        let figure = |index: usize| row["iops"][index].as_f64().unwrap();
        let ratio = row["iops_ratio"].as_f64().unwrap();
        assert!((figure(0) / figure(1) - ratio).abs() < 1e-9, "{row}");
    }
    let own = &found["matrix"]["points"][0];
    assert_eq!(rows[0]["iops"][0], own["iops"]);
    assert_eq!(rows[0]["p99_us"][0], own["p99_us"]);
}

#[test]
fn what_is_no_result_of_fio_is_refused_before_anything_is_measured() {
    let directory = own_directory();
    let at = directory.path();
    fs::write(at.join("data"), vec![1; 16 << 20]).unwrap();
    fs::write(at.join("no json"), "fio: done").unwrap();
    let job = r#"{"jobname": "NAME", "error": 0, "read": {"iops": 1.5, "lat_ns": {"mean": 1.0}}}"#;
    let document = format!(r#"{{"fio version": "fio-\u001b[31m9", "jobs": [{job}]}}"#);
    fs::write(at.join("foreign"), document.replace("NAME", "mine")).unwrap();
    for (arguments, part) in [
        (["data", "--against", "missing"], "No such file"),
        (["data", "--against", "no json"], "not a result of fio"),
        (
            ["data", "--against", "foreign"],
            "none of its jobs is a point of ours",
        ),
        (["data", "--emulate", "--json"], "cannot be used with"),
        (["data", "--fio-json", "foreign"], "cannot be used with"),
    ] {
        let ended = calibrate(&arguments, at);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert!(ended.stdout.is_empty());
    }
    let json = calibrate(&["--fio-json", "foreign", "--json"], at).stdout;
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["points"][0]["iops"], 1.5, "{json}");
    let piped = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["calibrate", "--fio-json", "-"])
        .stdin(File::open(at.join("foreign")).unwrap())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&piped.stdout).contains("mine"));
    let told = calibrate(&["--fio-json", "foreign"], at).stdout;
    assert!(!told.contains(&0x1b), "no control character comes through");
    assert!(String::from_utf8(told).unwrap().contains("mine"));
}
