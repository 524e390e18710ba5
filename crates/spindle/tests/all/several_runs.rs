//! A plan of several runs: each on files made again, killed in the middle and gone on with, judged by its runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "runs"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
warmup = "100ms"
measure = "300ms"
rounds = 1
runs = 3
pause = "100ms"
quiet = "0s"
[[layout]]
name = "buffered"
[[layout]]
name = "async"
io = { method = "async" }
"#;
const PATIENCE: Duration = Duration::from_secs(120);

fn spindle(place: &Path, ledger: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command
        .args(arguments)
        .env("SPINDLE_LEDGER_DIRECTORY", ledger)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn events(place: &Path, kind: &str) -> usize {
    let text = fs::read_to_string(place.join("out/journal.jsonl")).unwrap_or_default();
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["event"] == kind).count()
}

/// When the datafile that trials use was made, if it is there now. The number of an inode may come again, a time does
/// not.
fn births(place: &Path) -> Vec<SystemTime> {
    let of_runs = fs::read_dir(place).unwrap().flatten();
    let images = of_runs.map(|run| run.path().join("image-1/data1.dbf"));
    let born = images.filter_map(|path| fs::metadata(path).ok()?.created().ok());
    born.collect()
}

/// Waits until this many trials have finished or the run has ended, and keeps all births that were seen meanwhile.
fn watch(
    child: &mut Child,
    place: &Path,
    trials: usize,
    seen: &mut BTreeSet<SystemTime>,
) -> Option<ExitStatus> {
    let began = Instant::now();
    while events(place, "trial_finished") < trials {
        seen.extend(births(place));
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        assert!(began.elapsed() < PATIENCE, "the trials did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

#[test]
fn runs_are_made_anew_go_on_after_a_kill_and_are_what_is_judged() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ledger = tempfile::tempdir().unwrap();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let run = ["run", "experiment.toml", "--out", "out"];
    let mut child = spindle(place.path(), ledger.path(), &run).spawn().unwrap();
    let mut seen = BTreeSet::new();
    // In the second run.
    let ended = watch(&mut child, place.path(), 3, &mut seen);
    assert_eq!(ended, None, "it ended too soon");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut resumed = spindle(place.path(), ledger.path(), &["resume", "out"])
        .spawn()
        .unwrap();
    let ended = watch(&mut resumed, place.path(), usize::MAX, &mut seen);
    assert!(ended.unwrap().success());
    // Of three runs, and of the one that was killed.
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(events(place.path(), "trial_finished"), 6);

    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    for case in result["cases"].as_array().unwrap() {
        let trials = case["trials"].as_array().unwrap().iter();
        let runs: Vec<(u64, u64)> = trials
            .map(|trial| {
                let run = trial["conditions"]["run"].as_u64().unwrap();
                (trial["round"].as_u64().unwrap(), run)
            })
            .collect();
        assert_eq!(runs, [(1, 1), (2, 2), (3, 3)]);
    }
    let phases = result["phases"].to_string();
    assert!(phases.contains("pausing between runs"), "{phases}");
    assert_eq!(result["verdicts"][0]["rounds"], 3, "{}", result["verdicts"]);
    let mut left = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(left.all(|name| name == "experiment.toml" || name == "out"));
}

/// One layout waits for each I/O, so six runs are certain of it, the fewest of the plan. A busy machine needs some
/// more.
#[test]
fn runs_end_when_they_settle_what_was_asked() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ledger = tempfile::tempdir().unwrap();
    let slowed = EXPERIMENT
        .replace("runs = 3", "runs = \"auto\"\nmax_runs = 40")
        .replace("pause = \"100ms\"", "pause = \"0s\"")
        .replace(
            "{ method = \"async\" }",
            "{ method = \"async\" }\ndelay = { write_us = 20000 }",
        );
    fs::write(place.path().join("experiment.toml"), slowed).unwrap();
    let run = ["run", "experiment.toml", "--out", "out"];
    let status = spindle(place.path(), ledger.path(), &run).status().unwrap();
    assert!(status.success());
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let stopping = &result["stopping"];
    let runs = stopping["runs"].as_u64().unwrap();
    assert_eq!(stopping["runs_max"], 40);
    assert!((6..40).contains(&runs), "{stopping}");
    let verdict = &result["verdicts"][0];
    assert_eq!(
        (&verdict["verdict"], &verdict["rounds"]),
        (&"faster".into(), &runs.into())
    );
    let trials = &result["cases"][0]["trials"];
    assert_eq!(trials.as_array().unwrap().len() as u64, runs);
    let report = fs::read_to_string(place.path().join("out/report.md")).unwrap();
    assert!(
        report.contains(&format!("{runs} runs of at most 40")),
        "{report}"
    );
}
