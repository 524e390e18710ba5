//! Are the points of `spindle calibrate` measured at no more cost than by fio? Ours and fio in turn, five pairs (twenty
//! of what differs most), medians of their ratios, on one processor: `cargo bench -p spindle-calibrate` pins itself to
//! the first that it may use. A file of unwritten extents answers reads without a device: the software's limit.
//! `--check` ends with 1 when a goal is missed, `--quick` takes moments. Takes 1 GiB in the target directory while it
//! runs. fio's own `t/io_uring` is in no package: it is compared where the variable `T_IO_URING` names one that was
//! built from fio's source.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It lives in the real world, and tells its figures.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use spindle_calibrate::What;
use spindle_calibrate::speed::{Reached, Reads};
use spindle_io::real::Method;

const UNWRITTEN_BYTES: u64 = 512 << 20;
const WRITTEN_BYTES: usize = 512 << 20;
const PAIRS: usize = 5;
/// Times as many pairs where they differ most: a device's rate changes by a third from one moment to the next, and
/// `t/io_uring` tells few figures.
const MORE_PAIRS: usize = 4;

const BEST: &str = "--ioengine=io_uring --iodepth=32 --fixedbufs=1 --registerfiles=1 --iodepth_batch_submit=32 \
                    --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32";
const LARGE: &str = "--ioengine=io_uring --iodepth=8 --bs=1m --rw=read";
const PSYNC: &str = "--ioengine=psync --iodepth=1";

/// What must hold of a ratio, ours over the other.
#[derive(Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let time = Duration::from_millis(if has("--quick") { 300 } else { 2500 });
    let pairs = if has("--quick") { 2 } else { PAIRS };
    if Command::new("fio").arg("--version").output().is_err() {
        println!("fio is not installed: as root on Debian `scripts/setup bench` installs it");
        return ExitCode::SUCCESS;
    }
    pin();
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let (unwritten, written) = (place.path().join("unwritten"), place.path().join("written"));
    make_unwritten(&unwritten);
    make_written(&written);
    println!(
        "{:<52}{:>12}{:>12}  {:<20}{:<9}",
        "figure", "ours", "other's", "ratio (pairs)", "goal"
    );
    let reads = |method, depth, what, has_fixed_buffers| Reads {
        method,
        depth,
        what,
        has_fixed_buffers,
    };
    let small = |method, depth| reads(method, depth, What::SmallRandom, true);
    let ours = |reads: Reads, file: &Path| reads.hold(file, time).expect("reads succeed");
    let (deep, one) = (small(Method::Async, 32), small(Method::Sync, 1));
    let large = |has_fixed| reads(Method::Async, 8, What::LargeSequential, has_fixed);
    let mut is_all_met = true;
    let mut tell = |name, goal, figure: fn(&Reached) -> f64, turns: &[[Reached; 2]]| {
        let turns = turns
            .iter()
            .map(|[ours, other]| (figure(ours), figure(other)));
        is_all_met &= tell_ratio(name, goal, &turns.collect::<Vec<_>>());
    };
    let per_s = |of: &Reached| of.per_s;
    let cpu_us = |of: &Reached| of.cpu_us;

    let turns = in_turn(
        pairs,
        || ours(deep, &unwritten),
        || fio(BEST, &unwritten, time),
    );
    tell(
        "unwritten file, depth 32, reads/s; fio's best",
        Goal::AtLeast(1.0),
        per_s,
        &turns,
    );
    tell(
        "the same, CPU us per read",
        Goal::AtMost(1.0),
        cpu_us,
        &turns,
    );
    let turns = in_turn(
        pairs,
        || ours(one, &unwritten),
        || fio(PSYNC, &unwritten, time),
    );
    tell(
        "unwritten file, one by one, reads/s; fio psync",
        Goal::AtLeast(1.0),
        per_s,
        &turns,
    );
    let turns = in_turn(
        pairs * MORE_PAIRS,
        || ours(deep, &written),
        || fio(BEST, &written, time),
    );
    tell(
        "real file, depth 32, reads/s; fio's best",
        Goal::AtLeast(0.97),
        per_s,
        &turns,
    );
    tell(
        "the same, CPU us per read",
        Goal::AtMost(1.0),
        cpu_us,
        &turns,
    );
    let turns = in_turn(
        pairs,
        || ours(large(true), &written),
        || fio(LARGE, &written, time),
    );
    tell(
        "1 MiB, depth 8, CPU us per read; fio unregistered",
        Goal::AtMost(0.3),
        cpu_us,
        &turns,
    );
    let turns = in_turn(
        pairs,
        || ours(large(true), &written),
        || ours(large(false), &written),
    );
    tell(
        "the same; ours unregistered",
        Goal::AtMost(1.0),
        cpu_us,
        &turns,
    );
    match std::env::var_os("T_IO_URING") {
        Some(program) => {
            let program = Path::new(&program);
            let turns = in_turn(
                pairs * MORE_PAIRS,
                || ours(deep, &unwritten),
                || t_io_uring(program, &unwritten, time),
            );
            tell(
                "unwritten file, depth 32, reads/s; t/io_uring",
                Goal::AtLeast(0.9),
                per_s,
                &turns,
            );
        }
        None => println!("T_IO_URING names no t/io_uring of fio's source: it is not compared"),
    }
    match has("--check") && !is_all_met {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Both measured in turn, so many pairs. Who begins alternates: a device that tires favours neither.
fn in_turn(
    pairs: usize,
    ours: impl Fn() -> Reached,
    other: impl Fn() -> Reached,
) -> Vec<[Reached; 2]> {
    let pair = |number: usize| match number % 2 {
        0 => {
            let ours = ours();
            [ours, other()]
        }
        _ => {
            let other = other();
            [ours(), other]
        }
    };
    (0..pairs).map(pair).collect()
}

/// To the first processor of those that it may use; fio inherits that.
fn pin() {
    let allowed = sched_getaffinity(None).expect("the system tells its processors");
    let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
    let mut only = CpuSet::new();
    only.set(first.expect("there is a processor"));
    sched_setaffinity(None, &only).expect("it may use one of its processors");
}

fn make_unwritten(path: &Path) {
    let file = File::create(path).expect("a file is made");
    rustix::fs::fallocate(
        &file,
        rustix::fs::FallocateFlags::empty(),
        0,
        UNWRITTEN_BYTES,
    )
    .expect("the file system allocates");
}

fn make_written(path: &Path) {
    let mut file = File::create(path).expect("a file is made");
    let piece: Vec<u8> = (0..1_u32 << 20)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for _ in 0..WRITTEN_BYTES >> 20 {
        file.write_all(&piece).expect("there is room");
    }
    file.sync_all().expect("it reaches the disk");
}

/// Random direct reads of 8 KiB by fio. Of processor time its own account of its job counts, without start and report.
fn fio(how: &str, path: &Path, time: Duration) -> Reached {
    let ended = Command::new("fio")
        .args(
            "--name=reads --thread --direct=1 --bs=8k --rw=randread --norandommap --randrepeat=0"
                .split(' '),
        )
        .args("--time_based --eta=never --output-format=json".split(' '))
        .args(how.split_whitespace())
        .arg(format!("--runtime={}ms", time.as_millis()))
        .arg(format!("--filename={}", path.display()))
        .output()
        .expect("fio starts");
    let text = String::from_utf8_lossy(&ended.stdout);
    let report: Value = serde_json::from_str(&text[text.find('{').expect("fio reports")..])
        .expect("fio reports in JSON");
    let job = &report["jobs"][0];
    let figure = |value: &Value| value.as_f64().unwrap_or(0.0);
    let percent = figure(&job["usr_cpu"]) + figure(&job["sys_cpu"]);
    let cpu_us = percent / 100.0 * figure(&job["job_runtime"]) * 1e3;
    Reached {
        per_s: figure(&job["read"]["iops"]),
        cpu_us: cpu_us / figure(&job["read"]["total_ios"]).max(1.0),
    }
}

/// The same by fio's `t/io_uring`, which counts whole seconds and does not tell its processor time.
fn t_io_uring(program: &Path, path: &Path, time: Duration) -> Reached {
    let ended = Command::new(program)
        .args("-d32 -s32 -c1 -b8192 -p0 -B1 -F1 -n1 -O1 -t1 -R1".split(' '))
        .arg(format!("-r{}", time.as_secs_f64().ceil() as u64 + 1))
        .arg(path)
        .output()
        .expect("t/io_uring starts");
    let text = String::from_utf8_lossy(&ended.stdout);
    let rates = text.lines().filter_map(|line| {
        let figure = line.strip_prefix("IOPS=")?.split(',').next()?;
        let (number, factor) = match (figure.strip_suffix('K'), figure.strip_suffix('M')) {
            (Some(thousands), _) => (thousands, 1e3),
            (_, Some(millions)) => (millions, 1e6),
            _ => (figure, 1.0),
        };
        Some(number.parse::<f64>().ok()? * factor)
    });
    let rates: Vec<f64> = rates.collect();
    assert!(!rates.is_empty(), "t/io_uring tells its rates: {text}");
    Reached {
        per_s: rates.iter().sum::<f64>() / rates.len() as f64,
        cpu_us: f64::NAN,
    }
}

/// Tells a figure of pairs, and whether its goal is met.
fn tell_ratio(name: &str, goal: Goal, turns: &[(f64, f64)]) -> bool {
    let ratios = sorted(turns.iter().map(|(ours, other)| ours / other));
    let middle = |values: &[f64]| values[values.len() / 2];
    let ratio = middle(&ratios);
    let (is_met, words) = match goal {
        Goal::AtLeast(least) => (ratio >= least, format!(">= {least}")),
        Goal::AtMost(most) => (ratio <= most, format!("<= {most}")),
    };
    println!(
        "{name:<52}{:>12.2}{:>12.2}  {:<20}{words:<9}{}",
        middle(&sorted(turns.iter().map(|turn| turn.0))),
        middle(&sorted(turns.iter().map(|turn| turn.1))),
        format!(
            "{ratio:.2} ({:.2}-{:.2})",
            ratios[0],
            ratios[ratios.len() - 1]
        ),
        if is_met { "met" } else { "NOT MET" }
    );
    is_met
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
