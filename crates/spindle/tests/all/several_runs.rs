//! A plan of several runs: each on files made anew, killed in the middle and gone on with, judged by its runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

#[test]
fn runs_are_made_anew_go_on_after_a_kill_and_are_what_is_judged() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ledger = tempfile::tempdir().unwrap();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let run = ["run", "experiment.toml", "--out", "out"];
    let mut child = spindle(place.path(), ledger.path(), &run).spawn().unwrap();
    let began = Instant::now();
    // In the second run.
    while events(place.path(), "trial_finished") < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
        assert!(began.elapsed() < PATIENCE, "the second run did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = spindle(place.path(), ledger.path(), &["resume", "out"])
        .output()
        .unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
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
