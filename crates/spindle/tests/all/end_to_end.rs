//! The program as people use it: a short run, a run killed or interrupted and gone on with, and what it says when
//! something is in the way. Everything happens in temporary directories on the file system of the build directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "short"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 2
log_file_size = "2MiB"
[workload]
clients = 4
[plan]
quiet = "0s"
warmup = "200ms"
measure = "600ms"
rounds = 2
[[layout]]
name = "buffered, sync"
[[layout]]
name = "buffered, slaves"
io = { method = "slaves", slaves = 2 }
[[layout]]
name = "buffered, async"
io = { method = "async" }
"#;

/// A place to run in, gone with the test.
pub struct Place {
    directory: tempfile::TempDir,
    ledger: tempfile::TempDir,
}

impl Place {
    pub fn new(experiment: &str) -> Place {
        let place = Place::empty();
        fs::write(place.path().join("experiment.toml"), experiment).unwrap();
        place
    }

    /// One without an experiment.
    pub fn empty() -> Place {
        Place {
            // Beside the program: /tmp may be a tmpfs.
            directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            ledger: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where its ledgers are.
    pub fn ledger(&self) -> &Path {
        self.ledger.path()
    }

    pub fn spindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .env("SPINDLE_LEDGER_DIRECTORY", self.ledger.path())
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.spindle(arguments).output().unwrap()
    }

    pub fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path().join("out/journal.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    fn finished(&self) -> Vec<Value> {
        self.journal()
            .into_iter()
            .filter(|event| event["event"] == "trial_finished")
            .collect()
    }

    pub fn result(&self) -> Value {
        let text = fs::read_to_string(self.path().join("out/result.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// What is in the place besides the experiment and the run directory.
    fn leftovers(&self) -> Vec<PathBuf> {
        let expected = ["experiment.toml", "out"];
        let entries = fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries
            .filter(|path| !expected.iter().any(|name| path.ends_with(name)))
            .collect()
    }

    fn wait_for_trials(&self, child: &mut Child, trials: usize) {
        let began = Instant::now();
        while self.finished().len() < trials {
            assert!(
                child.try_wait().unwrap().is_none(),
                "the run ended before {trials} trials"
            );
            assert!(
                began.elapsed() < Duration::from_secs(120),
                "no {trials} trials in two minutes"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn assert_complete(place: &Place, rounds: u64) {
    let result = place.result();
    for case in result["cases"].as_array().unwrap() {
        assert_eq!(case["status"], "measured", "{case:#}");
        let trials = case["trials"].as_array().unwrap();
        let seen: BTreeSet<u64> = trials
            .iter()
            .map(|trial| trial["round"].as_u64().unwrap())
            .collect();
        assert_eq!(seen, (1..=rounds).collect(), "{}", case["layout"]);
        for trial in trials {
            assert!(trial["transactions"].as_u64().unwrap() > 0);
            assert_eq!(trial["restore"]["verified"], true);
        }
    }
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
}

/// A matrix from the command line: four layouts of one, three rounds, and what each setting does.
#[test]
fn a_matrix_tells_what_each_setting_does() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let experiment = EXPERIMENT.split("[[layout]]").next().unwrap();
    let experiment = experiment
        .replace("600ms", "300ms")
        .replace("rounds = 2", "rounds = 3");
    let place = Place::new(&format!("{experiment}[[layout]]\nname = \"base\"\n"));
    let vary = [
        "--vary",
        "io.method=sync,async",
        "--vary",
        "database.log_files=2,4",
    ];
    let plan = [&["plan", "experiment.toml"][..], &vary, &["--quick"]].concat();
    let (planned, _) = text(&place.output(&plan));
    assert!(
        planned.contains("A matrix of method (sync, async) x log_files (2, 4): 4 layouts."),
        "{planned}"
    );
    assert!(planned.contains("A first look"), "{planned}");
    let output = place.output(&[&["run", "experiment.toml", "--out", "out"][..], &vary].concat());
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    let result = place.result();
    let layouts: Vec<&Value> = result["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| &case["layout"])
        .collect();
    assert_eq!(
        layouts,
        [
            "sync, log_files 2",
            "sync, log_files 4",
            "async, log_files 2",
            "async, log_files 4"
        ]
    );
    let effects = result["effects"].as_array().unwrap();
    assert_eq!(
        (
            effects.len(),
            result["interactions"].as_array().unwrap().len()
        ),
        (2, 1)
    );
    // A standstill of the machine may set a trial aside.
    let is_whole = |effect: &Value| effect["cases"] == 4 && effect["rounds"].as_u64() <= Some(3);
    assert!(effects.iter().all(is_whole), "{effects:#?}");
    assert!(stdout.contains("method async against sync:"), "{stdout}");
    let only = [
        "run",
        "experiment.toml",
        "--out",
        "again",
        "--only",
        "sync, log_files 2,async, log_files 2",
    ];
    let output = place.output(
        &[
            &only[..],
            &vary,
            &["--quick", "--set", "workload.clients=1"],
        ]
        .concat(),
    );
    let (stdout, _) = text(&output);
    assert!(stdout.contains("This was a first look"), "{stdout}");
    assert!(!stdout.contains("log_files 4"), "{stdout}");
}

/// Rounds that say themselves how many it takes, a layout run twice, a warm-up that ends by itself: none of it is told
/// in a time as short as this, and the result says so.
#[test]
fn a_plan_that_stops_by_itself_tells_what_it_saved() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let experiment = EXPERIMENT
        .split("[[layout]]")
        .next()
        .unwrap()
        .replace("warmup = \"200ms\"", "warmup_max = \"1s\"")
        .replace("600ms", "200ms")
        .replace(
            "rounds = 2",
            "rounds = \"auto\"\nprecision = \"50%\"\nmax = 9\nnoise_check = true",
        );
    let place = Place::new(&format!("{experiment}[[layout]]\nname = \"base\"\n"));
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let (_, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    let result = place.result();
    let cases = result["cases"].as_array().unwrap();
    let layouts: Vec<&Value> = cases.iter().map(|case| &case["layout"]).collect();
    assert_eq!(layouts, ["base", "base (again)"]);
    let rounds = cases[0]["trials"].as_array().unwrap().len();
    assert_eq!(rounds, cases[1]["trials"].as_array().unwrap().len());
    assert!((6..=9).contains(&rounds), "{rounds}");
    let warm_up = &cases[0]["trials"][0]["warm_up"];
    assert_eq!(warm_up["is_settled"], false, "{warm_up}");
    assert!(warm_up["duration_s"].as_f64().unwrap() >= 1.0, "{warm_up}");
    let noise = &result["noise"][0];
    assert_eq!(
        (&noise["layout"], &noise["again"]),
        (&"base".into(), &"base (again)".into())
    );
    assert!(noise["floor"].as_f64().unwrap() > 0.0);
    let stopping = &result["stopping"];
    assert_eq!(stopping["trials"].as_u64(), Some(2 * rounds as u64));
    assert_eq!(stopping["trials_of_fixed_plan"], 18);
    assert_eq!(stopping["saved_s"].as_f64().unwrap() > 0.0, rounds < 9);
    assert_eq!(result["rankings"][0]["places"].as_array().unwrap().len(), 1);
    for (definition, value) in [
        ("stopping", stopping),
        ("noise_floor", noise),
        ("warm_up", warm_up),
    ] {
        assert_eq!(errors_by(definition, value), Vec::<String>::new());
    }
    assert!(place.leftovers().is_empty());
}

/// What a part of a result violates of its definition in the schema.
fn errors_by(definition: &str, value: &Value) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    schema["$ref"] = format!("#/$defs/{definition}").into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(value);
    errors.map(|error| error.to_string()).collect()
}

/// A result is as its schema says.
pub fn assert_valid(result: &Value) {
    let schema_path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/result.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema_path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(result).map(|error| error.to_string());
    assert_eq!(errors.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_short_run_ends_with_a_table_a_verdict_and_a_valid_result() {
    let place = Place::new(EXPERIMENT);
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    for expected in [
        "buffered, slaves",
        "tpm",
        "report.html",
        "oltp_mix, 4 clients",
    ] {
        assert!(
            stdout.contains(expected),
            "{expected} is missing in:\n{stdout}"
        );
    }
    assert_complete(&place, 2);
    for case in place.result()["cases"].as_array().unwrap() {
        let calls = &case["trials"][0]["io_calls"];
        let is_queued = case["layout"] == "buffered, async";
        assert_eq!(calls["queued"].as_u64().unwrap() > 0, is_queued, "{calls}");
        assert!(is_queued || calls["calls"] == calls["requests"], "{calls}");
    }
    assert_valid(&place.result());
    for file in [
        "machine.json",
        "experiment.json",
        "report.html",
        "report.md",
        "series",
    ] {
        assert!(place.path().join("out").join(file).exists(), "{file}");
    }
    // Every round ran every case once; a report is a function of the journal alone.
    assert_eq!(place.finished().len(), 6);
    let before = fs::read(place.path().join("out/result.json")).unwrap();
    let again = place.output(&["report", "out", "--json"]);
    assert!(again.status.success());
    assert_eq!(again.stdout, before);
    assert_eq!(
        fs::read(place.path().join("out/result.json")).unwrap(),
        before
    );
}

#[test]
fn a_killed_run_goes_on_and_keeps_its_trials() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = Place::new(EXPERIMENT);
    let mut child = place
        .spindle(&["run", "experiment.toml", "--out", "out", "--quiet"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    place.wait_for_trials(&mut child, 2);
    std::thread::sleep(Duration::from_millis(700));
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = place.finished();
    assert!(
        !place.leftovers().is_empty(),
        "a killed run cannot clean up"
    );
    let output = place.output(&["resume", "out", "--quiet"]);
    let (_, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(
        place.finished()[..kept.len()],
        kept[..],
        "finished trials are kept as they were"
    );
    assert_eq!(place.finished().len(), 6, "no trial was done twice");
    assert_complete(&place, 2);
}

#[test]
fn an_interrupted_run_leaves_nothing_but_a_run_to_go_on_with() {
    let place = Place::new(EXPERIMENT);
    let mut child = place
        .spindle(&["run", "experiment.toml", "--out", "out"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    place.wait_for_trials(&mut child, 1);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("spindle resume"), "{stderr}");
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
    assert!(place.output(&["resume", "out"]).status.success());
    assert_complete(&place, 2);
}

#[test]
fn the_process_of_a_trial_dies_with_its_run() {
    let place = Place::new(&EXPERIMENT.replace("600ms", "60s"));
    let mut child = place
        .spindle(&["run", "experiment.toml", "--out", "out", "--quiet"])
        .spawn()
        .unwrap();
    let worker = loop {
        let tasks = format!("/proc/{}/task/{}/children", child.id(), child.id());
        let children = fs::read_to_string(tasks).unwrap_or_default();
        if let Some(pid) = children.split_whitespace().next() {
            break Pid::from_raw(pid.parse().unwrap()).unwrap();
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended without a trial"
        );
        std::thread::sleep(Duration::from_millis(50));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    while test_kill_process(worker).is_ok() && !is_zombie(worker) {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the worker outlives its run"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A process whose parent died before reading its end stays listed until init does.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}

#[test]
fn a_wrong_experiment_is_shown_and_nothing_is_created() {
    let place = Place::new(&EXPERIMENT.replace("clients", "cleints"));
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let (stdout, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout, "");
    for expected in ["experiment.toml", "cleints", "clients"] {
        assert!(
            stderr.contains(expected),
            "{expected} is missing in:\n{stderr}"
        );
    }
    assert!(!place.path().join("out").exists());
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn too_little_room_is_said_before_anything_is_written() {
    let place = Place::new(EXPERIMENT);
    let output = place.output(&[
        "run",
        "experiment.toml",
        "--out",
        "out",
        "--set",
        "database.size=32TiB",
    ]);
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("are free"), "{stderr}");
    assert!(!place.path().join("out").exists());
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_run_directory_that_cannot_be_is_one_clear_error() {
    let place = Place::new(EXPERIMENT);
    let output = place.output(&["run", "experiment.toml", "--out", "/proc/spindle-run"]);
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("/proc/spindle-run"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let output = place.output(&["report", "experiment.toml"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_run_is_never_written_over() {
    let place = Place::new(EXPERIMENT);
    fs::create_dir(place.path().join("out")).unwrap();
    fs::write(place.path().join("out/journal.jsonl"), "a line\n").unwrap();
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).1.contains("holds a run already"));
}

#[test]
fn load_at_a_rate_is_timed_from_when_it_was_due() {
    let place = Place::new(EXPERIMENT);
    let rate = ["--set", "workload.rate=100/s", "--set", "plan.rounds=1"];
    let arguments = [&["run", "experiment.toml", "--out", "out"][..], &rate].concat();
    let output = place.output(&arguments);
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.contains("fixed rate of 100 a second"), "{stdout}");
    for case in place.result()["cases"].as_array().unwrap() {
        let trial = &case["trials"][0];
        let arrivals = &trial["arrivals"];
        assert_eq!(arrivals["rate_per_s"], 100.0, "{trial:#}");
        // Counted from an earlier moment, the same transactions take no less.
        let longest = |time: &Value| time["max"].as_f64().unwrap();
        assert!(longest(&trial["latency_us"]) >= longest(&arrivals["delay_us"]));
    }
}

#[test]
fn a_dashboard_without_a_terminal_is_refused_before_anything_is_made() {
    let place = Place::new(EXPERIMENT);
    let output = place.output(&["run", "experiment.toml", "--out", "out", "--watch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).1.contains("--watch draws on a terminal"));
    assert!(!place.path().join("out").exists());
}

/// The run directory lies on a file system that is too small, and is made larger before the run goes on. All of it
/// happens in its own mount namespace: no mount outlives it, whatever happens.
#[test]
fn a_full_disk_is_one_clear_error_and_the_run_goes_on_when_there_is_room() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        spindle_harness::skip("mounting a small file system needs root");
        return;
    }
    let place = Place::new(EXPERIMENT);
    fs::create_dir(place.path().join("out")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24k none out && {spindle} run experiment.toml --out out/run --quiet; code=$?; \
         mount -o remount,size=8m out && {spindle} resume out/run --quiet --json > resumed.json && exit $code",
        spindle = env!("CARGO_BIN_EXE_spindle"),
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env("SPINDLE_LEDGER_DIRECTORY", place.ledger.path())
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("No space left"), "{stderr}");
    assert!(stderr.contains("spindle resume"), "{stderr}");
    let resumed: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("resumed.json")).unwrap())
            .unwrap();
    for case in resumed["cases"].as_array().unwrap() {
        assert_eq!(case["trials"].as_array().unwrap().len(), 2, "{case:#}");
    }
    assert_eq!(place.leftovers(), [place.path().join("resumed.json")]);
}

/// Workloads of the embedded database as a newcomer asks for them, with what their trials must bear: fillers that do
/// not compress, and as many histograms as there can be beside a small budget of memory.
#[test]
fn workloads_run_with_their_own_sizes() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let experiments = [
        ("tpcb", "", "4"),
        (
            "tpcc",
            "warehouses = 1\nroom_for = 50000\nkeying_and_think_percent = 1\n",
            "16",
        ),
        ("tpcc", "warehouses = 1\nroom_for = 1000\n", "1"),
    ];
    for (index, (kind, settings, clients)) in experiments.into_iter().enumerate() {
        let cache = ["16MiB", "16MiB", "1MiB"][index];
        let place = Place::new(&format!(
            "[database]\nbuffer_cache = \"{cache}\"\nlog_file_size = \"16MiB\"\n[workload]\nkind = \"{kind}\"\n\
             {settings}clients = {clients}\n[plan]\nquiet = \"0s\"\nwarmup = \"200ms\"\nmeasure = \"400ms\"\nrounds = 1\n\
             [[layout]]\nname = \"here\"\n"
        ));
        let output = place.output(&["run", "experiment.toml", "--out", "out"]);
        let (_, stderr) = text(&output);
        assert!(
            output.status.success(),
            "{kind}, {clients} clients: {stderr}"
        );
        let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
        let result: Value = serde_json::from_str(&result).unwrap();
        let at_work = &result["cases"][0]["trials"][0]["audit"]["clients"];
        let keys_in = settings.contains("keying");
        assert_eq!(
            at_work["thinking"].as_f64() > Some(0.5),
            keys_in,
            "{at_work}"
        );
    }
}

fn run_with_deferred_deliveries(measure: &str) -> (Place, Value) {
    let place = Place::new(&format!(
        "[database]\nbuffer_cache = \"16MiB\"\nlog_file_size = \"16MiB\"\n[workload]\nkind = \"tpcc\"\nwarehouses = 1\n\
         room_for = 50000\ndeferred_delivery = true\nclients = 4\n[plan]\nquiet = \"0s\"\nwarmup = \"200ms\"\n\
         measure = \"{measure}\"\nrounds = 1\n[[layout]]\nname = \"here\"\n",
    ));
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let (_, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    let result = fs::read_to_string(place.path().join("out/result.json")).unwrap();
    (place, serde_json::from_str(&result).unwrap())
}

/// Deliveries that clients queue: processes beside them carry them out, and the clients' time adds up without those.
#[test]
fn deferred_deliveries_are_carried_out_beside_the_clients() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    // On a busy machine none may end in the shortest of these.
    let measured = ["600ms", "5s", "20s"].into_iter();
    let (place, result) = measured
        .map(run_with_deferred_deliveries)
        .find(|(_, result)| {
            let deferred = &result["cases"][0]["trials"][0]["deferred"];
            deferred["transactions"].as_u64() > Some(0)
        })
        .expect("a delivery ends in 20 s");
    let trial = &result["cases"][0]["trials"][0];
    let (deferred, clients) = (&trial["deferred"], &trial["audit"]["clients"]);
    assert!(
        deferred["completed_us"]["p50"].as_f64() > Some(0.0),
        "{deferred}"
    );
    assert_eq!(clients["clients"], 4);
    assert!(clients["deferring"].as_f64() > Some(0.0), "{clients}");
    let page = fs::read_to_string(place.path().join("out/report.html")).unwrap();
    assert!(page.contains("deferred transactions ended"));
    let warnings = result["warnings"].to_string();
    assert!(
        !warnings.contains("accounts for"),
        "the clients' time adds up: {warnings}"
    );
}
