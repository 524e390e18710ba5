//! Every client is counted, from runs of the program: SQLite with four writers, of which one after the other gets its
//! turn, or does not; the embedded database with think time; load at a rate. Whatever the machine does meanwhile,
//! throughput times mean time is the clients at work, and the parts of the mean add up to it.

use std::fs;
use std::process::{Command, Stdio};

use spindle_result::{RunResult, Trial};

const SQLITE: &str = r#"
name = "writers"
[database]
engine = "sqlite"
size = "4MiB"
buffer_cache = "1MiB"
[workload]
clients = 4
read_percent = 0
[plan]
quiet = "0s"
warmup = "300ms"
measure = "1500ms"
rounds = 2
[[layout]]
name = "DELETE"
database = { settings = { journal_mode = "delete" } }
[[layout]]
name = "WAL"
"#;

const THINKING: &str = r#"
name = "thinking"
[database]
size = "16MiB"
buffer_cache = "2MiB"
memory = "16MiB"
[workload]
clients = 6
think_time = "100ms"
[plan]
quiet = "0s"
warmup = "200ms"
measure = "3s"
rounds = 1
[[layout]]
name = "a"
"#;

fn run(experiment: &str) -> RunResult {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(directory.path().join("experiment.toml"), experiment).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["run", "experiment.toml", "--out", "out", "--quiet"])
        .current_dir(directory.path())
        .env("SPINDLE_LEDGER_DIRECTORY", directory.path().join("ledger"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = fs::read_to_string(directory.path().join("out/result.json")).unwrap();
    RunResult::from_json(&text).unwrap()
}

fn trials(result: &RunResult) -> impl Iterator<Item = &Trial> {
    result.cases.iter().flat_map(|case| &case.trials)
}

/// Within 3 %, and from the published figures alone: measured time without the flush, throughput, mean.
fn assert_accounts_for_all(trial: &Trial, clients: f64) {
    let audit = trial.audit.clients.expect("the program fills it in");
    assert!(audit.holds(), "{audit:?}");
    let window_s = trial.measured_s - trial.audit.flush_at_end_us.unwrap_or(0.0) / 1e6;
    let queued_us = trial
        .arrivals
        .map_or(0.0, |arrivals| arrivals.delay_us.mean);
    let mean_s = (trial.latency_us.mean - queued_us) / 1e6;
    let in_transactions = trial.transactions as f64 / window_s * mean_s;
    assert!(
        (in_transactions - audit.in_transactions).abs() <= 0.01 * in_transactions,
        "{in_transactions} {audit:?}"
    );
    let at_work = in_transactions + audit.thinking + audit.idle + audit.away;
    assert!((at_work - clients).abs() <= 0.03 * clients, "{audit:?}");
    let Some(time) = &trial.response_time else {
        return;
    };
    let sum_us: f64 = time.parts.iter().map(|part| part.us).sum();
    assert!(
        (sum_us - trial.latency_us.mean).abs() <= 0.01 * sum_us,
        "{time:?}"
    );
    assert!(time.parts.iter().all(|part| part.us >= 0.0), "{time:?}");
}

#[test]
fn four_writers_of_sqlite_are_four_clients() {
    let result = run(SQLITE);
    assert_eq!(trials(&result).count(), 4);
    for trial in trials(&result) {
        assert_accounts_for_all(trial, 4.0);
        let audit = trial.audit.clients.unwrap();
        // What waited to the end is in the longest time, if not in the percentiles.
        assert!(
            trial.latency_us.max / 1e6 >= 0.99 * audit.longest_open_s,
            "{trial:?}"
        );
        assert!(audit.most >= audit.fewest && audit.got_a_turn <= 4);
    }
    for finding in &result.findings {
        if finding.kind == "clients starve" {
            assert!(finding.evidence[0].contains(" of 4 clients got a turn"));
        }
    }
}

#[test]
fn think_time_and_load_at_a_rate_are_accounted_for() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let result = run(THINKING);
    let trial = trials(&result).next().unwrap();
    assert_accounts_for_all(trial, 6.0);
    assert!(trial.audit.clients.unwrap().thinking > 0.5);
    let at_a_rate = THINKING.replace("think_time = \"100ms\"", "rate = \"10/s\"");
    let result = run(&at_a_rate);
    let trial = trials(&result).next().unwrap();
    assert_accounts_for_all(trial, 6.0);
    assert!(trial.audit.clients.unwrap().idle > 0.5);
}
