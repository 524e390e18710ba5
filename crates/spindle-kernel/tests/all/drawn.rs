//! Scenarios drawn from seeds: each is one history, whoever runs it; crashes lose nothing; and all of them together
//! reach every rare path there is a probe for.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::simulated::crashes::{Sweep, counted_points, crash_at, crash_recovery};
use crate::simulated::drawn::{Trace, trace};
use crate::simulated::reached::Reached;
use crate::simulated::{Scenario, loaded};
use spindle_io::sim::PowerCut;

const THREADS: usize = 2;

/// Calls `work` for every seed, on threads, and returns what came out, in order of the seeds.
fn for_seeds<T: Send>(seeds: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        break;
                    }
                    let result = work(seed);
                    done.lock().unwrap().push((seed, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(seed, _)| *seed);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Each seed twice here; and once in a debug and once in a release build, when `make test` says where to leave or find
/// the others' histories.
#[test]
fn one_seed_is_one_history() {
    let seeds = 50;
    #[expect(clippy::disallowed_methods, reason = "speed is told in real seconds")]
    let began = Instant::now();
    let twice = for_seeds(seeds, |seed| {
        let scenario = Scenario::drawn(seed);
        let [one, two] = [(); 2].map(|()| trace(scenario));
        assert_eq!(one, two, "seed {seed} has two histories: {scenario:?}");
        one.unwrap_or_else(|loss| panic!("seed {seed}: {loss}: {scenario:?}"))
    });
    let wall_s = began.elapsed().as_secs_f64();
    let ios: u64 = twice.iter().map(|trace| 2 * trace.ios).sum();
    let virtual_ns: u64 = twice.iter().map(|trace| 2 * trace.virtual_ns).sum();
    println!(
        "{seeds} seeds twice in {wall_s:.1} s: {:.1} virtual seconds and {:.0} I/Os per second",
        virtual_ns as f64 / 1e9 / wall_s,
        ios as f64 / wall_s
    );
    let distinct: std::collections::BTreeSet<_> = twice.iter().map(|trace| trace.hash).collect();
    assert_eq!(distinct.len(), twice.len(), "two seeds have one history");
    compare_with_other_build(&twice);
}

/// A debug build leaves its histories in the file that `SPINDLE_TRACES` names, a release build compares its own.
fn compare_with_other_build(traces: &[Trace]) {
    let Ok(path) = std::env::var("SPINDLE_TRACES") else {
        return;
    };
    let mut mine = String::new();
    for (seed, trace) in traces.iter().enumerate() {
        writeln!(mine, "{seed} {trace:?}").unwrap();
    }
    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    if cfg!(debug_assertions) {
        std::fs::write(path, mine).unwrap();
    } else {
        let theirs = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{path}, to be left by a debug build: {error}"));
        for (mine, theirs) in mine.lines().zip(theirs.lines()) {
            assert_eq!(mine, theirs, "release and debug builds differ");
        }
        assert_eq!(mine, theirs, "release and debug builds differ");
        println!("{} histories are those of the debug build", traces.len());
    }
}

#[test]
fn every_rare_path_is_reached_and_nothing_is_lost() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let outcomes = for_seeds(40, |seed| {
        let before = Reached::on_this_thread();
        let scenario = Scenario::drawn(1000 + seed);
        let swept = crashes_of(scenario);
        let reached = Reached::on_this_thread().since(&before);
        (scenario, swept, reached)
    });
    let (mut reached, mut recoveries) = (Reached::default(), 0);
    for (scenario, swept, reached_here) in outcomes {
        assert!(
            swept.loss.is_none(),
            "{}: {scenario:?}",
            swept.loss.unwrap()
        );
        recoveries += swept.recoveries;
        reached.add(&reached_here);
    }
    println!("{recoveries} recoveries");
    for (name, count) in Reached::names().iter().zip(reached.counts()) {
        println!("{name}: {count}");
    }
    assert_eq!(reached.missing(), [""; 0], "not reached");
}

/// Some crashes of the scenario, and of one recovery.
fn crashes_of(scenario: Scenario) -> Sweep {
    let images = loaded(scenario);
    let points = counted_points(scenario, &images, 10);
    let (points, _) = points.unwrap_or_else(|words| panic!("{words}: {scenario:?}"));
    let mut total = Sweep::default();
    for point in &points {
        total.add(crash_at(
            scenario,
            point,
            &[PowerCut::Damage(point.io)],
            true,
        ));
    }
    if total.loss.is_none() {
        crash_recovery(scenario, &points[points.len() / 2], 6, &mut total);
    }
    total
}
