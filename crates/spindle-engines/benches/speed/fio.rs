//! fio (https://github.com/axboe/fio), the peer of everything that reaches a device. What it needs of processor time is
//! its own account of its job threads (RUSAGE_THREAD), so that its start and its report are not counted against it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

/// What fio reached.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    /// I/Os per second of all jobs.
    pub per_second: f64,
    /// Processor time of one I/O, user and system, microseconds.
    pub cpu_us: f64,
}

/// Whether there is a fio; says what to do when there is none.
pub fn is_here() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        eprintln!(
            "  fio is not installed: as root on Debian `scripts/setup` installs it (package fio)"
        );
    }
    found
}

/// Options of every job: direct 8 KiB blocks by blocking calls of threads, for so long.
fn common(measure: Duration) -> Vec<String> {
    let mut options: Vec<String> =
        "--thread --direct=1 --ioengine=psync --norandommap --randrepeat=0 --time_based \
         --eta=never --output-format=json"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    options.push(format!("--runtime={}ms", measure.as_millis()));
    options
}

fn file(path: &Path) -> String {
    format!("--filename={}", path.display())
}

/// Random reads by `jobs` threads.
pub fn reads(path: &Path, jobs: usize, measure: Duration) -> Reached {
    let mut options = common(measure);
    options.extend(["--name=reads", "--rw=randread", "--bs=8k"].map(str::to_owned));
    options.extend([format!("--numjobs={jobs}"), file(path)]);
    run(&options)
}

/// The job that writes as LGWR does.
pub struct LogJob<'a> {
    pub path: &'a Path,
    /// Bytes of one write.
    pub bytes: u64,
    /// Writes per second.
    pub per_second: u64,
}

/// Random reads and durable writes, half and half, by `jobs` threads, and beside them one that writes a log.
pub fn updates(path: &Path, jobs: usize, log: &LogJob<'_>, measure: Duration) -> Reached {
    let mut options = common(measure);
    options.push("--sync=dsync".to_owned());
    options.extend(["--name=data", "--rw=randrw", "--rwmixread=50", "--bs=8k"].map(str::to_owned));
    options.extend([format!("--numjobs={jobs}"), file(path)]);
    options.extend(["--name=log", "--rw=write", "--numjobs=1"].map(str::to_owned));
    options.extend([
        format!("--bs={}", log.bytes),
        format!("--rate_iops={}", log.per_second),
        file(log.path),
    ]);
    run(&options)
}

fn run(options: &[String]) -> Reached {
    let output = Command::new("fio")
        .args(options)
        .output()
        .expect("fio starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let from = text.find('{').unwrap_or_else(|| {
        panic!(
            "fio said: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let report: Value = serde_json::from_str(&text[from..]).expect("fio reports in JSON");
    let jobs = report["jobs"].as_array().expect("fio reports its jobs");
    let figure = |job: &Value, key: &str| job[key].as_f64().unwrap_or(0.0);
    let both = |job: &Value, key: &str| figure(&job["read"], key) + figure(&job["write"], key);
    let ios: f64 = jobs.iter().map(|job| both(job, "total_ios")).sum();
    // In percent of the job's milliseconds; fio counts whole ones, of user and of system time, and so loses half of one
    // of each on average.
    let cpu_ms = |job: &Value| {
        let percent = figure(job, "usr_cpu") + figure(job, "sys_cpu");
        percent / 100.0 * figure(job, "job_runtime") + 1.0
    };
    let cpu_us = 1e3 * jobs.iter().map(cpu_ms).sum::<f64>();
    Reached {
        per_second: jobs.iter().map(|job| both(job, "iops")).sum(),
        cpu_us: cpu_us / ios,
    }
}
