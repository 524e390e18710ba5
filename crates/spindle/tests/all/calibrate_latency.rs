//! `spindle calibrate` on a device whose latency is known: a file system in user space that answers each read after a
//! set time. Every access path must find the curve that follows from it.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::calibrate::{NOWHERE, alone};
use crate::fuse_server::{FuseServer, Late};
use crate::limits::own_directory;

/// So long that what a busy machine adds is a small part of it.
const LATENCY: Duration = Duration::from_millis(40);
/// Part of what is known by which what is found may be off, besides what this machine adds to every wait.
const OFF_MAX: f64 = 0.05;
/// A busy machine may add more at times, though both sides go before other programs (nice -20); it never removes.
const LOOKS_MAX: u32 = 6;
const METHODS: [&str; 4] = ["sync", "slaves", "libaio", "async"];

/// By how much the points of each access path are off, at worst, as parts of what they must be.
fn off(found: &Value) -> Vec<(&str, f64)> {
    let latency_s = LATENCY.as_secs_f64();
    let curves = found["curves"].as_array().unwrap().iter();
    let small = curves.filter(|curve| curve["what"] == "small_random");
    let of_point = |point: &Value| {
        let figure = |name: &str| point[name].as_f64().unwrap();
        let part = |found: f64, known: f64| (found / known - 1.0).abs();
        let iops = part(figure("iops"), figure("depth") / latency_s);
        iops.max(part(figure("mean_us"), latency_s * 1e6))
    };
    let of_curve = |curve: &'_ Value| {
        let points = curve["points"].as_array().unwrap();
        points.iter().map(of_point).fold(0.0, f64::max)
    };
    small
        .map(|curve| (curve["method"].as_str().unwrap(), of_curve(curve)))
        .collect()
}

/// Runs a command; by what part of a latency waits of that length came late meanwhile, on average.
fn lateness_beside(command: &mut Command) -> (Output, f64) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let (mut waits, mut late) = (0, Duration::ZERO);
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(LATENCY);
                late += began.elapsed().saturating_sub(LATENCY);
                waits += 1;
            }
            late.as_secs_f64() / f64::from(waits.max(1)) / LATENCY.as_secs_f64()
        });
        let output = command.output().unwrap();
        is_over.store(true, Ordering::Relaxed);
        (output, waiter.join().unwrap())
    })
}

#[test]
fn every_access_path_finds_the_curve_of_a_known_latency() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !spindle_harness::is_root_or_skip("a FUSE file system") {
        return;
    }
    let _alone = alone();
    let (mount_point, beneath) = (own_directory(), own_directory());
    let _server =
        FuseServer::mount_delayed(mount_point.path(), beneath.path(), Late::Reads, LATENCY);
    let mut best = METHODS.map(|method| (method, f64::INFINITY));
    for _ in 0..LOOKS_MAX {
        let mut command = Command::new("nice");
        command
            .args(["-n", "-20", env!("CARGO_BIN_EXE_spindle"), "calibrate"])
            .arg(mount_point.path())
            .args(["--time", "10s", "--size", "16MiB", "--max-latency", "1s"])
            .args(["--json", "--quiet", "--no-metadata"])
            .env(NOWHERE.0, NOWHERE.1)
            .stdin(Stdio::null());
        let (ended, lateness) = lateness_beside(&mut command);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
        for (method, off) in off(&found) {
            let known = best.iter_mut().find(|(known, _)| *known == method);
            let known = known.unwrap();
            known.1 = known.1.min(off - lateness);
        }
        println!("off by {best:?}, besides waits that were {lateness:.3} late");
        if best.iter().all(|(_, off)| *off <= OFF_MAX) {
            return;
        }
    }
    panic!("off by {best:?}");
}
