//! Rounds whose trials are measured by turns: while one goes on the others stand still, what is counted is of the turns
//! alone, layouts change their files, and a run that is killed leaves nothing and goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "turns"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
warmup = "200ms"
measure = "1500ms"
interleave = "250ms"
rounds = 2
quiet = "0s"
[[layout]]
name = "one"
[[layout]]
name = "two"
io = { method = "slaves", slaves = 2 }
database = { writers = 1 }
"#;
const PATIENCE: Duration = Duration::from_secs(120);

fn spindle(place: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .env("SPINDLE_LEDGER_DIRECTORY", place.join("ledger"))
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    place
}

/// What a process is seen to do.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    is_stopped: bool,
    /// What it asked of the system so far (proc_pid_io(5)).
    io: String,
}

impl Seen {
    fn now(process: u32) -> Option<Seen> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        Some(Seen {
            is_stopped: state == 'T',
            io: fs::read_to_string(format!("/proc/{process}/io")).ok()?,
        })
    }
}

/// The workers of a run at this moment.
fn workers_of(run: u32) -> BTreeMap<u32, Seen> {
    let tasks = fs::read_dir(format!("/proc/{run}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children = children.collect::<String>();
    let processes = children.split_whitespace().filter_map(|it| it.parse().ok());
    let workers = processes.filter(|process| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("trial-worker")
    });
    workers
        .filter_map(|process| Some((process, Seen::now(process)?)))
        .collect()
}

/// Whether a worker has I/O slaves, and the image that it uses, once it has both opened.
fn image_of(process: u32) -> Option<(bool, String)> {
    let entries = |kind: &str| fs::read_dir(format!("/proc/{process}/{kind}")).ok();
    let files = entries("fd")?.flatten();
    let images = files.filter_map(|file| {
        let path = fs::read_link(file.path()).ok()?;
        let image = path.parent()?.file_name()?.to_str()?;
        image.starts_with("image-").then(|| image.to_owned())
    });
    let image = images.min()?;
    let mut threads = entries("task")?.flatten();
    let has_slaves = threads.any(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        name.starts_with("ioslave")
    });
    Some((has_slaves, image))
}

#[test]
fn while_one_has_its_turn_the_others_stand_still() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = place();
    let mut run = spindle(place.path(), &["run", "experiment.toml", "--out", "out"]);
    let began = Instant::now();
    let (mut before, mut still, mut restless) = (BTreeMap::new(), 0, Vec::new());
    let mut images = BTreeMap::new();
    let status = loop {
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < PATIENCE, "the run did not end");
        let now = workers_of(run.id());
        let at_work: Vec<&u32> = now
            .iter()
            .filter(|(_, it)| !it.is_stopped)
            .map(|it| it.0)
            .collect();
        // One that goes on at both looks has had its turn in between, and no other could begin one.
        if let [turn] = at_work[..]
            && before.get(turn).is_some_and(|it: &Seen| !it.is_stopped)
        {
            for (process, seen) in now.iter().filter(|(process, _)| *process != turn) {
                match before.get(process).filter(|before| before.is_stopped) {
                    Some(before) if before == seen => still += 1,
                    Some(_) => restless.push(*process),
                    None => {}
                }
            }
        }
        // What stands still has opened everything.
        let stopped = now.iter().filter(|(_, seen)| seen.is_stopped);
        images.extend(stopped.filter_map(|(process, _)| Some((*process, image_of(*process)?))));
        before = now;
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success());
    // A turn takes 350 ms with its beginning; a machine that is busy lets fewer looks be made.
    assert!(still >= 50, "{still}");
    assert_eq!(restless, Vec::<u32>::new());
    // Each layout had each image, in one of the two rounds.
    let images: BTreeSet<(bool, String)> = images.into_values().collect();
    assert_eq!(images.len(), 4, "{images:?}");
    each_trial_is_of_its_turns(place.path());
    let mut left = fs::read_dir(place.path())
        .unwrap()
        .map(|it| it.unwrap().file_name());
    assert!(left.all(|name| {
        ["experiment.toml", "ledger", "out"]
            .iter()
            .any(|it| name == *it)
    }));
}

fn each_trial_is_of_its_turns(place: &Path) {
    let result = fs::read_to_string(place.join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    let trials = cases
        .iter()
        .flat_map(|case| case["trials"].as_array().unwrap());
    let mut count = 0;
    for trial in trials {
        count += 1;
        assert!(trial["tpm"].as_f64().unwrap() > 0.0, "{trial}");
        let times = &trial["conditions"]["times"];
        let measured_ms = times["measured_ms"].as_u64().unwrap();
        assert!(measured_ms >= 1500, "{times}");
        // The time of both trials is in the whole of each, by halves.
        let whole_ms = times["whole_ms"].as_u64().unwrap();
        assert!(
            whole_ms >= measured_ms + times["warm_up_ms"].as_u64().unwrap(),
            "{times}"
        );
        // Between its turns it stood still for two seconds and more.
        let standstill_ms = trial["conditions"]["standstill"]["total_ms"]
            .as_u64()
            .unwrap();
        assert!(standstill_ms < 1_000, "{trial}");
        // By Little's law: two clients at work in the turns, and none in between.
        let clients = trial["audit"]["clients"]["in_transactions"]
            .as_f64()
            .unwrap();
        assert!((1.5..=2.05).contains(&clients), "{}", trial["audit"]);
    }
    assert_eq!(count, 4);
}

#[test]
fn a_run_that_is_killed_leaves_no_process_and_goes_on() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = place();
    let mut run = spindle(place.path(), &["run", "experiment.toml", "--out", "out"]);
    let began = Instant::now();
    let workers = loop {
        let workers = workers_of(run.id());
        // Both are started, and one of them has its turn.
        if workers.len() == 2 && workers.values().any(|seen| !seen.is_stopped) {
            break workers;
        }
        assert!(began.elapsed() < PATIENCE, "no two trials were under way");
        std::thread::sleep(Duration::from_millis(1));
    };
    run.kill().unwrap();
    run.wait().unwrap();
    let is_there = |process: &&u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // A process without a parent that waits for it may be seen when it is over.
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    while let Some(process) = workers.keys().find(is_there) {
        assert!(began.elapsed() < PATIENCE, "{process} outlived its run");
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = spindle(place.path(), &["resume", "out"]).wait().unwrap();
    assert!(status.success());
    each_trial_is_of_its_turns(place.path());
}
