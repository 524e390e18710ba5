//! Why one layout is slower, from runs of the program: response times add up on a real trial, a delay that was put in
//! is found where it was put, and the system is sampled. How long things take is not looked at: the machine may be
//! busy.

use std::fs;
use std::process::{Command, Stdio};

use spindle_result::{ResponseTime, RunResult, SystemFigure, TimeUse};

/// Two rounds; a block is read 20 ms slower on the second layout, which is more than a busy disk adds to a commit.
const EXPERIMENT: &str = r#"
name = "why"
[database]
size = "4MiB"
buffer_cache = "1MiB"
memory = "16MiB"
datafiles = 2
log_file_size = "2MiB"
[workload]
clients = 4
[plan]
quiet = "0s"
warmup = "300ms"
measure = "2s"
rounds = 2
[[layout]]
name = "as it is"
io = { caching = "direct" }
[[layout]]
name = "delayed"
io = { caching = "direct" }
delay = { read_us = 20_000 }
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

fn assert_adds_up(time: &ResponseTime, mean_us: f64) {
    let sum_us: f64 = time.parts.iter().map(|part| part.us).sum();
    assert!((sum_us - time.mean_us).abs() < 1e-6 * time.mean_us);
    assert_eq!(time.mean_us, mean_us);
    let other_us = time.part_us(&TimeUse::Unaccounted);
    // Latches, page faults and the error of the sample, which is large in two seconds on a busy machine.
    assert!(other_us.abs() <= 0.25 * time.mean_us, "{time:?}");
}

#[test]
fn a_delay_is_found_where_it_was_put() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if fs::metadata("/proc/thread-self/schedstat").is_err() {
        spindle_harness::skip(
            "the kernel does not keep the run queue of threads (CONFIG_SCHED_INFO)",
        );
        return;
    }
    let result = run(EXPERIMENT);
    for case in &result.cases {
        for trial in &case.trials {
            let time = trial.response_time.as_ref().expect("schedstat is there");
            assert_adds_up(time, trial.latency_us.mean);
            assert!(trial.io.expect("transactions").read_bytes > Some(0.0));
        }
        let sampled = |name: &str| case.system.iter().any(|mean| mean.name.name() == name);
        for column in [
            "page_cache_mib",
            "runnable_threads",
            "sampler_cpu_percent",
            "checkpoints",
        ] {
            assert!(sampled(column), "{column}: {:?}", case.system);
        }
    }
    let [attribution] = result.attributions.as_slice() else {
        panic!("one pair: {:?}", result.attributions);
    };
    assert_eq!(attribution.slower, "delayed");
    assert_eq!(attribution.parts[0].part.name(), "db file sequential read");
    let share = attribution.parts[0].us / attribution.difference_us;
    assert!(share > 0.7, "{attribution:?}");
    let sum_us: f64 = attribution.parts.iter().map(|part| part.us).sum();
    assert!((sum_us - attribution.difference_us).abs() < 1e-6 * attribution.difference_us);
    let mut throttled = result.findings.iter();
    if let Some(finding) = throttled.find(|finding| finding.kind == "throttled") {
        assert_eq!(finding.layouts, ["delayed"]);
        assert!(
            finding.evidence[0].contains("delayed by Spindle"),
            "{finding:?}"
        );
    } else {
        // It needs the device's own account, and a device that other programs do not slow.
        let device = |case: &spindle_result::Case| case.trials[0].audit.device;
        let has_device = result.cases.iter().any(|case| device(case).is_some());
        let is_shared = result.findings.iter().any(|finding| {
            let mut evidence = finding.evidence.iter();
            evidence.any(|text| text.contains("the same device"))
        });
        assert!(!has_device || is_shared, "{:?}", result.findings);
    }
}

/// A cache of half the data, filled by slow reads.
fn filling(warmup: &str, rounds: u32) -> String {
    format!(
        "name = \"cold\"\n[database]\nsize = \"16MiB\"\nbuffer_cache = \"8MiB\"\nmemory = \"32MiB\"\n\
         [workload]\nclients = 4\n[plan]\nquiet = \"0s\"\nwarmup = \"{warmup}\"\nmeasure = \"4s\"\nrounds = {rounds}\n\
         [[layout]]\nname = \"slow\"\nio = {{ caching = \"direct\" }}\ndelay = {{ read_us = 5000 }}\n"
    )
}

#[test]
fn a_cold_start_is_said_and_a_warm_one_is_not() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let said = |warmup, rounds| {
        let result = run(&filling(warmup, rounds));
        let mut texts = result.warnings.into_iter().map(|warning| warning.text);
        let text = texts.find(|text| text.starts_with("Cold start"));
        let mut means = result.cases[0].system.iter();
        let hits = means.find(|of| of.name == SystemFigure::BufferCacheHitPercent);
        (text, hits.expect("the embedded database counts it").mean)
    };
    let (cold, hits_when_cold) = said("0s", 1);
    let cold = cold.expect("nothing was in the cache when measuring began");
    assert!(
        cold.contains("% of the blocks that slow wanted were not in its cache"),
        "{cold}"
    );
    // By chance less is read at the end of a trial than at its start; hardly in each of two.
    let (warm, hits_when_warm) = said("16s", 2);
    assert_eq!(warm, None);
    assert!(
        hits_when_cold < hits_when_warm && hits_when_warm < 90.0,
        "{hits_when_cold} % and {hits_when_warm} %"
    );
}
