//! A trial with a process that is stopped for a while (SIGSTOP), at several moments, its server's, or in short slices:
//! it is set aside, said and measured again, unless nothing was measured or warmed up at that moment.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spindle_system::SystemTree;
use spindle_system::processes::Processes;

const EXPERIMENT: &str = r#"
name = "stopped"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
warmup = "2s"
measure = "3s"
rounds = 1
quiet = "0s"
[[layout]]
name = "buffered, sync"
"#;
const STOPPED: Duration = Duration::from_millis(1200);
/// Shorter than a gap that counts alone.
const SLICE: Duration = Duration::from_millis(90);
const SLICES: u32 = 50;
const PATIENCE: Duration = Duration::from_secs(120);

/// A moment of the first trial, by the threads that its worker has then.
#[derive(Clone, Copy)]
enum Moment {
    /// Clients are at work; nothing is measured yet.
    WarmUp,
    /// The system is sampled: the measured time.
    Measured,
    /// The clients are gone and so is who watches for standstills: the check, or the end.
    After,
}

impl Moment {
    fn is_now(self, threads: &[String], has_measured: bool) -> bool {
        let has = |name: &str| threads.iter().any(|thread| thread == name);
        match self {
            Moment::WarmUp => has("heartbeat") && !has("sampler") && !has_measured,
            Moment::Measured => has("sampler"),
            Moment::After => has_measured && !has("heartbeat"),
        }
    }
}

/// The run's worker, once it has one.
fn worker_of(run: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.find(|process: &u32| {
        let read = |file: &str| fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        let is_worker = String::from_utf8_lossy(&read("cmdline")).contains("trial-worker");
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        let parent = after_name.and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        is_worker && parent == Some(run)
    })
}

/// All that a process has started, and what those have.
fn descendants_of(process: u32) -> Vec<u32> {
    let tree = SystemTree::default();
    let mut all = Processes::of_servers(vec![process]).members(&tree);
    all.retain(|member| *member != process);
    all
}

fn threads_of(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect()
}

/// Waits for a moment of the first trial. `None` when the worker was gone before it could be seen.
fn wait_for(moment: Moment, run: &mut Child) -> Option<u32> {
    let began = Instant::now();
    let (mut worker, mut has_measured, mut had_heartbeat) = (None, false, false);
    while began.elapsed() < PATIENCE {
        if run.try_wait().unwrap().is_some() {
            return None;
        }
        // The first worker with clients; those that try out what Spindle costs have no heartbeat.
        let now = worker.or_else(|| worker_of(run.id()));
        if let Some(process) = now {
            let threads = threads_of(process);
            if threads.iter().any(|thread| thread == "heartbeat") {
                (worker, had_heartbeat) = (Some(process), true);
            }
            if had_heartbeat && moment.is_now(&threads, has_measured) {
                return (!threads.is_empty()).then_some(process);
            }
            has_measured |= threads.iter().any(|thread| thread == "sampler");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("the moment did not come");
}

fn send(process: u32, signal: Signal) {
    // One that has ended in the meantime cannot be stopped.
    let _ = kill_process(Pid::from_raw(process as i32).unwrap(), signal);
}

/// Which processes are stopped.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    /// The worker of the trial.
    Worker,
    /// The worker, and the run.
    WorkerAndRun,
    /// The worker, half of the time, as `cpulimit` does.
    WorkerInSlices,
    /// The server and all that it started.
    Server,
}

impl Target {
    /// Stops them for [`STOPPED`], or less in all.
    fn stop_a_while(self, run: u32, worker: u32) {
        let of_server = || descendants_of(worker);
        let (processes, slice, slices) = match self {
            Target::Worker => (vec![worker], STOPPED, 1),
            Target::WorkerAndRun => (vec![worker, run], STOPPED, 1),
            Target::WorkerInSlices => (vec![worker], SLICE, SLICES),
            Target::Server => (of_server(), STOPPED, 1),
        };
        assert!(!processes.is_empty());
        for _ in 0..slices {
            processes
                .iter()
                .for_each(|process| send(*process, Signal::STOP));
            std::thread::sleep(slice);
            processes
                .iter()
                .for_each(|process| send(*process, Signal::CONT));
            std::thread::sleep(SLICE.min(slice) / 9);
        }
    }

    fn experiment(self) -> String {
        match self {
            Target::Server => EXPERIMENT
                .replace("[database]\n", "[database]\nengine = \"postgres\"\n")
                .replace("memory = \"8MiB\"\nlog_file_size = \"2MiB\"\n", "")
                .replace("1MiB", "4MiB"),
            // On a busy machine the moment is met late.
            Target::WorkerInSlices => EXPERIMENT.replace("\"3s\"", "\"6s\""),
            _ => EXPERIMENT.to_owned(),
        }
    }
}

/// Runs the experiment, stops its processes at a moment. The journal and the result; nothing when the moment was too
/// short to be met.
fn run_stopped(moment: Moment, target: Target) -> Option<(Vec<Value>, Value, String)> {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ledger = tempfile::tempdir().unwrap();
    fs::write(place.path().join("experiment.toml"), target.experiment()).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "experiment.toml", "--out", "out"])
        .env("SPINDLE_LEDGER_DIRECTORY", ledger.path())
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let met = wait_for(moment, &mut run);
    if let Some(worker) = met {
        target.stop_a_while(run.id(), worker);
    }
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    met?;
    let journal = read(&place.path().join("out/journal.jsonl"));
    let journal = journal
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let result = serde_json::from_str(&read(&place.path().join("out/result.json"))).unwrap();
    Some((
        journal,
        result,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The first trial was set aside for a standstill of `least_ms` or more, and the round has another one.
fn check_set_aside(least_ms: u64, journal: &[Value], result: &Value, told: &str) {
    let events = |kind: &str| {
        journal
            .iter()
            .filter(|event| event["event"] == kind)
            .count()
    };
    assert!(events("trial_set_aside") >= 1, "{told}");
    assert_eq!(events("trial_finished"), 1, "{told}");
    let case = &result["cases"][0];
    // A busy machine may have stood still before.
    let all = case["set_aside"].as_array().unwrap();
    let is_ours = |set_aside: &&Value| {
        let still = &set_aside["trial"]["conditions"]["standstill"];
        still["total_ms"].as_u64() >= Some(least_ms)
    };
    let ours = all.iter().find(is_ours);
    let ours = ours.unwrap_or_else(|| panic!("{all:?}"));
    let reason = ours["reason"].as_str().unwrap();
    assert!(reason.contains("stood still for"), "{reason}");
    assert_eq!(case["trials"].as_array().unwrap().len(), 1);
    assert_eq!(case["trials"][0]["round"], 1);
    assert!(
        told.contains("set aside:") && told.contains("it will be measured again"),
        "{told}"
    );
    let warnings = result["warnings"].to_string();
    assert!(
        warnings.contains("They were measured again and do not count."),
        "{warnings}"
    );
}

#[test]
fn a_worker_stopped_in_its_measured_time_is_measured_again() {
    let (journal, result, told) =
        run_stopped(Moment::Measured, Target::Worker).expect("it is long enough");
    check_set_aside(1000, &journal, &result, &told);
}

#[test]
fn so_is_one_stopped_with_its_run() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let (journal, result, told) =
        run_stopped(Moment::Measured, Target::WorkerAndRun).expect("it is long enough");
    check_set_aside(1000, &journal, &result, &told);
}

#[test]
fn so_is_one_stopped_in_slices() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let stopped = run_stopped(Moment::Measured, Target::WorkerInSlices);
    let (journal, result, told) = stopped.expect("it is long enough");
    check_set_aside(STOPPED.as_millis() as u64 / 4, &journal, &result, &told);
}

#[test]
fn so_is_one_whose_server_was_stopped() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !crate::postgres_run::is_installed() {
        return;
    }
    let stopped = run_stopped(Moment::Measured, Target::Server);
    let (journal, result, told) = stopped.expect("it is long enough");
    check_set_aside(1000, &journal, &result, &told);
}

#[test]
fn so_is_one_stopped_while_it_warms_up() {
    let (journal, result, told) =
        run_stopped(Moment::WarmUp, Target::Worker).expect("it is long enough");
    check_set_aside(1000, &journal, &result, &told);
}

#[test]
fn a_standstill_after_the_measured_time_does_no_harm() {
    // The moment is short: where it cannot be met in five runs there is nothing to be seen.
    let seen = (0..5).find_map(|_| run_stopped(Moment::After, Target::Worker));
    let Some((journal, _, told)) = seen else {
        return spindle_harness::skip("the check after a trial was too short to be met");
    };
    let set_aside = journal
        .iter()
        .filter(|event| event["event"] == "trial_set_aside");
    for event in set_aside {
        // Another may have been, on a machine that stands still by itself.
        let lost_ms = event["trial"]["conditions"]["standstill"]["total_ms"]
            .as_u64()
            .unwrap();
        assert!(lost_ms < STOPPED.as_millis() as u64 - 100, "{told}");
    }
}
