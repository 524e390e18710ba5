//! Crash at every I/O of a scenario in the simulated world, with several kinds of damage: what was acknowledged is
//! there, what was not is there whole or not at all, and the database works on. Planted bugs must be caught, and rare
//! paths reached.

use crate::simulated::crashes::{
    CrashPoint, FIRST, Loss, crash_points, recovered, sweep, sweep_recoveries, with_flipped_bit,
};
use crate::simulated::{SESSIONS, Scenario, loaded, recover_and_check, run};
use spindle_io::sim::PowerCut;
use spindle_kernel::probe::{self, Probe};
use spindle_kernel::{PlantedFault, Switch, Switches, TornBlocks, WriteSync};

/// Nothing kept, everything kept, and `seeds` kinds of damage of this I/O's own.
fn cuts(io: u64, seeds: u64) -> Vec<PowerCut> {
    let damage = (0..seeds).map(|seed| PowerCut::Damage(io << 8 | seed));
    [PowerCut::LoseAll, PowerCut::KeepAll]
        .into_iter()
        .chain(damage)
        .collect()
}

/// All of these I/Os in `make test-all`, one in `usual` in `make test`.
fn some_of(points: Vec<CrashPoint>, usual: usize) -> Vec<CrashPoint> {
    let stride = spindle_harness::stride(usual);
    points.into_iter().step_by(stride).collect()
}

#[test]
fn no_crash_loses_an_acknowledged_commit() {
    let scenario = Scenario::long(6);
    let points = crash_points(scenario).unwrap();
    for rare in [
        Probe::LogRingWrapped,
        Probe::FreeBufferWait,
        Probe::DeadlockBroken,
        Probe::LockTimeout,
        Probe::RowMigrated,
        Probe::BlockCompacted,
        Probe::EarlierVersionRead,
    ] {
        println!("{rare:?}: {}", probe::hits(rare));
        assert!(probe::hits(rare) > 0, "{rare:?} was not reached");
    }
    assert!(points.len() >= 2000, "only {} I/Os", points.len());
    let points = some_of(points, 40);
    let swept = sweep(scenario, &points, |io| cuts(io, 8));
    println!(
        "{} I/Os, {} recoveries, torn blocks repaired in {} of those looked at",
        points.len(),
        swept.recoveries,
        swept.repaired
    );
    assert_eq!(swept.loss, None);
    assert!(swept.repaired > 0, "no torn block was repaired");
}

#[test]
fn nor_with_flushes_at_checkpoints_and_two_writers() {
    let scenario = Scenario {
        write_sync: WriteSync::Checkpoint,
        writers: 2,
        ..Scenario::plain(2)
    };
    let points = some_of(crash_points(scenario).unwrap(), 24);
    assert_eq!(sweep(scenario, &points, |io| cuts(io, 4)).loss, None);
}

#[test]
fn nor_with_the_checkpoint_close_behind() {
    for write_sync in [WriteSync::Dsync, WriteSync::Checkpoint] {
        // Not every story has a torn block whose image comes later.
        let mut seeds = 9..14;
        assert!(
            seeds.any(|seed| passes_torn_blocks_over(write_sync, seed)),
            "no torn block was passed over"
        );
    }
}

/// Crashes a story with the checkpoint close behind, and loses nothing; whether recovery passed a torn block over.
fn passes_torn_blocks_over(write_sync: WriteSync, seed: u64) -> bool {
    let scenario = Scenario {
        write_sync,
        writers: 2,
        ..Scenario::close_behind(seed)
    };
    let before = [Probe::CheckpointAdvanced, Probe::ImageUsedAgain].map(probe::hits);
    let points = crash_points(scenario).unwrap();
    let after = [Probe::CheckpointAdvanced, Probe::ImageUsedAgain].map(probe::hits);
    let points = some_of(points, 40);
    let swept = sweep(scenario, &points, |io| cuts(io, 2));
    println!(
        "{write_sync:?}: {} I/Os, {} recoveries; positions noted and images used again: {before:?} to {after:?}; torn \
         blocks whose image came later in {} recoveries",
        points.len(),
        swept.recoveries,
        swept.image_later
    );
    assert_eq!(swept.loss, None);
    assert!(after[0] > before[0], "no position was noted in between");
    assert!(after[1] > before[1], "no image was used again");
    swept.image_later > 0
}

#[test]
fn nor_an_entry_of_an_index() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let rare = [
        Probe::NodeSplit,
        Probe::RootGrown,
        Probe::NodeTidied,
        Probe::LeafReclaimed,
    ];
    // Not every story has all of them.
    let eventful = (20..40).find_map(|seed| {
        let scenario = Scenario::indexed(seed);
        let before = rare.map(probe::hits);
        let points = crash_points(scenario).unwrap();
        let mut hits = rare.into_iter().zip(before);
        let has_all = hits.all(|(rare, before)| probe::hits(rare) > before);
        has_all.then_some((scenario, points))
    });
    let (scenario, points) = eventful.expect("one story of twenty has all rare events");
    println!("seed {}", scenario.seed);
    let points = some_of(points, 40);
    let swept = sweep(scenario, &points, |io| cuts(io, 3));
    println!("{} I/Os, {} recoveries", points.len(), swept.recoveries);
    assert_eq!(swept.loss, None);
    let again = sweep_recoveries(scenario, &points, 61.min(points.len().div_ceil(10)));
    assert_eq!(again.loss, None);
    assert!(again.in_roll_back > 0, "no roll-back was crashed");
}

#[test]
fn nor_when_the_undo_segment_grows() {
    let scenario = Scenario::grown(31);
    let before = probe::hits(Probe::UndoGrown);
    let points = crash_points(scenario).unwrap();
    let grown = probe::hits(Probe::UndoGrown) - before;
    assert!(grown > 0, "the undo segment did not grow");
    let points = some_of(points, 36);
    let swept = sweep(scenario, &points, |io| cuts(io, 2));
    println!("{} I/Os, {} recoveries", points.len(), swept.recoveries);
    assert_eq!(swept.loss, None);
    let again = sweep_recoveries(scenario, &points, 61.min(points.len().div_ceil(10)));
    assert_eq!(again.loss, None);
    assert!(again.in_roll_back > 0, "no roll-back was crashed");
}

#[test]
fn nor_with_a_double_write() {
    for (write_sync, writers) in [(WriteSync::Dsync, 1), (WriteSync::Checkpoint, 2)] {
        let scenario = Scenario {
            torn_blocks: TornBlocks::DoubleWrite,
            write_sync,
            writers,
            ..Scenario::plain(10)
        };
        let points = some_of(crash_points(scenario).unwrap(), 60);
        let swept = sweep(scenario, &points, |io| cuts(io, 2));
        println!(
            "{write_sync:?}: {} I/Os, {} recoveries, torn blocks restored in {}",
            points.len(),
            swept.recoveries,
            swept.restored
        );
        assert_eq!(swept.loss, None);
        assert!(swept.restored > 0, "no torn block was restored");
        let again = sweep_recoveries(scenario, &points, 61.min(points.len().div_ceil(10)));
        assert_eq!(again.loss, None);
    }
}

#[test]
fn nor_with_writes_that_are_never_torn() {
    let scenario = Scenario {
        torn_blocks: TornBlocks::Atomic,
        ..Scenario::plain(11)
    };
    let points = some_of(crash_points(scenario).unwrap(), 8);
    let swept = sweep(scenario, &points, |io| cuts(io, 2));
    assert_eq!(swept.loss, None);
    assert_eq!(swept.repaired, 0, "a block was torn");
}

#[test]
fn what_is_noted_at_an_io_is_what_a_power_cut_there_leaves() {
    for scenario in [Scenario::plain(6), Scenario::long(7)] {
        let start = loaded(scenario);
        let points = crash_points(scenario).unwrap();
        for point in points.iter().step_by(37) {
            let (disks, promised, _, cut) =
                run(scenario, &start, scenario.seed, FIRST, Some(point.io));
            assert!(cut, "the same seed makes the same I/Os");
            assert_eq!(promised, point.promised);
            for cut in cuts(point.io, 3) {
                assert!(
                    disks.after(cut) == point.after(cut),
                    "I/O {}, {cut:?}",
                    point.io
                );
            }
        }
    }
}

#[test]
fn a_crash_in_recovery_is_recovered_from_three_deep() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    // So often that checkpoints come due while recovery rolls forward.
    let scenario = Scenario {
        checkpoint_interval_ns: 200_000,
        ..Scenario::plain(3)
    };
    let points = crash_points(scenario).unwrap();
    let swept = sweep_recoveries(scenario, &points, 41);
    println!(
        "{} recoveries of crashed recoveries, {} crashed in roll-back",
        swept.recoveries, swept.in_roll_back
    );
    assert_eq!(swept.loss, None);
    assert!(
        swept.in_roll_back > 0,
        "no recovery was crashed in roll-back"
    );
}

#[test]
fn the_database_works_on_after_a_crash() {
    let scenario = Scenario::plain(4);
    let start = loaded(scenario);
    let (disks, promised, _, cut) = run(scenario, &start, scenario.seed, FIRST, Some(200));
    assert!(cut);
    let (found, images) =
        recover_and_check(scenario, &disks.after(PowerCut::Damage(9)), promised).unwrap();
    let next = found.map(|number| number + 1);
    let (disks, promised, _, _) = run(scenario, &images, 77, next, None);
    assert_eq!(promised, scenario.promised_after(next));
    recover_and_check(scenario, &disks.after(PowerCut::LoseAll), promised).unwrap();
}

/// A scenario in which the fault can do harm, and how many of its points to pass over from one crash to the next.
fn harmful(fault: PlantedFault) -> (Scenario, usize) {
    let plain = Scenario {
        planted: Some(fault),
        ..Scenario::plain(1)
    };
    let fast_redo = Scenario {
        planted: Some(fault),
        ..Scenario::fast_redo(1)
    };
    let indexed = Scenario {
        planted: Some(fault),
        sessions: 5,
        switches: Switches::of(&[Switch::SessionPausesOnItsWay]),
        ..Scenario::indexed(1)
    };
    let crowded = Scenario {
        sessions: SESSIONS,
        undo_blocks: 200,
        ..indexed
    };
    match fault {
        PlantedFault::DatafilesNotFlushed => (
            Scenario {
                write_sync: WriteSync::Checkpoint,
                ..plain
            },
            1,
        ),
        PlantedFault::LogFileReusedEarly => (fast_redo, 5),
        // Shows when recovery's old start has been written over.
        PlantedFault::ControlFileNotDurable => (
            Scenario {
                data_write_ns: 20_000,
                control_write_ns: 20_000,
                checkpoint_progress_ns: 2_000_000,
                ..fast_redo
            },
            11,
        ),
        PlantedFault::LogHeaderNotDurable => (
            Scenario {
                planted: Some(fault),
                ..Scenario::long(1)
            },
            1,
        ),
        PlantedFault::CheckpointTakenLate => (
            Scenario {
                write_sync: WriteSync::Checkpoint,
                planted: Some(fault),
                ..Scenario::close_behind(1)
            },
            1,
        ),
        PlantedFault::DoubleWriteLeftOut => (
            Scenario {
                torn_blocks: TornBlocks::DoubleWrite,
                ..plain
            },
            1,
        ),
        // Shows before any crash, or not at all.
        PlantedFault::ScanSeesLatest => (
            Scenario {
                audits: true,
                sessions: 4,
                cache_blocks: 128,
                ..plain
            },
            31,
        ),
        PlantedFault::DoubleWriteReusedEarly => (
            Scenario {
                torn_blocks: TornBlocks::DoubleWrite,
                write_sync: WriteSync::Checkpoint,
                ..plain
            },
            1,
        ),
        PlantedFault::AtomicNotAsked => (
            Scenario {
                torn_blocks: TornBlocks::Atomic,
                ..plain
            },
            1,
        ),
        PlantedFault::CheckpointPositionTooFar | PlantedFault::ImageTooOld => (
            Scenario {
                planted: Some(fault),
                ..Scenario::close_behind(1)
            },
            1,
        ),
        // Those of indexes; the last three show before any crash, or not at all.
        PlantedFault::SplitUntold | PlantedFault::EntriesNotUndone => (indexed, 1),
        PlantedFault::NeighbourIgnored
        | PlantedFault::GhostGoneEarly
        | PlantedFault::KeyUnlocked => (crowded, 1001),
        // Shows in few stories, but in those at once: one note shrinks, another grows, the first is rolled back.
        PlantedFault::FreedSpaceNotKept => (plain, 16),
        // Transactions of several undo blocks.
        PlantedFault::UndoChainCut => (
            Scenario {
                changes_max: 60,
                ..plain
            },
            1,
        ),
        _ => (plain, 1),
    }
}

/// Crashes within which every fault must show.
const CRASHES_MAX: usize = 10_000;
/// Stories that a fault is given to show in.
const STORIES: u64 = 12;

/// The first loss that a fault leads to, and the crashes it took to find it.
fn loss_by(fault: PlantedFault) -> (usize, Option<String>) {
    let (scenario, step) = harmful(fault);
    let mut crashes = 0;
    for seed in scenario.seed..scenario.seed + STORIES {
        let (more, loss) = loss_in(Scenario { seed, ..scenario }, step);
        crashes += more;
        if loss.is_some() || crashes > CRASHES_MAX {
            return (crashes, loss);
        }
    }
    (crashes, None)
}

fn loss_in(scenario: Scenario, step: usize) -> (usize, Option<String>) {
    let points = match crash_points(scenario) {
        Ok(points) => points,
        Err(loss) => return (1, Some(format!("before any crash: {loss}"))),
    };
    let points: Vec<_> = points.into_iter().step_by(step).collect();
    let words = |loss: Option<Loss>| loss.map(|loss| loss.to_string());
    let swept = sweep(scenario, &points, |io| cuts(io, 2));
    if swept.loss.is_some() {
        return (swept.recoveries, words(swept.loss));
    }
    let again = sweep_recoveries(scenario, &points, 41);
    (swept.recoveries + again.recoveries, words(again.loss))
}

#[test]
fn planted_bugs_are_caught() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let mut uncaught = Vec::new();
    for fault in PlantedFault::ALL {
        // No power cut changes a block behind the kernel's back: see the test of damaged blocks.
        if fault == PlantedFault::BlockChecksumUnverified {
            continue;
        }
        match loss_by(fault) {
            (crashes, Some(loss)) if crashes <= CRASHES_MAX => {
                println!("{fault:?}: caught by crash {crashes}: {loss}");
            }
            (crashes, _) => uncaught.push(format!("{fault:?}, in {crashes} crashes")),
        }
    }
    assert!(uncaught.is_empty(), "not caught: {uncaught:?}");
}

#[test]
fn without_the_bug_the_same_scenarios_lose_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for fault in [
        PlantedFault::LogFileReusedEarly,
        PlantedFault::ControlFileNotDurable,
        PlantedFault::UndoChainCut,
        PlantedFault::ScanSeesLatest,
    ] {
        let scenario = Scenario {
            planted: None,
            ..harmful(fault).0
        };
        let waits = probe::hits(Probe::LogFileWait);
        let points = crash_points(scenario).unwrap();
        if fault == PlantedFault::LogFileReusedEarly {
            assert!(
                probe::hits(Probe::LogFileWait) > waits,
                "no log file was waited for"
            );
        }
        let sampled: Vec<_> = points.into_iter().step_by(25).collect();
        assert_eq!(sweep(scenario, &sampled, |io| cuts(io, 2)).loss, None);
    }
}

#[test]
fn a_damaged_block_is_reported_and_never_served() {
    let scenario = Scenario::plain(8);
    let unverified = Scenario {
        planted: Some(PlantedFault::BlockChecksumUnverified),
        ..scenario
    };
    let images = loaded(scenario);
    let (mut reported, mut served) = (0, 0);
    for block in 1..70 {
        let damaged = with_flipped_bit(scenario, &images, block);
        let unserved = recovered(scenario, &damaged, [0; SESSIONS]);
        let loss = unserved.err().unwrap_or_default();
        let address = format!("block 1.{block} of disk{}", crate::simulated::UNDO_DISK + 1);
        assert!(
            loss.is_empty() || loss.contains(&address),
            "{address} was damaged, but: {loss}"
        );
        reported += usize::from(!loss.is_empty());
        let loss = recovered(unverified, &damaged, [0; SESSIONS]).err();
        served += usize::from(loss.is_some_and(|loss| !loss.contains(&address)));
    }
    println!(
        "of 69 damaged blocks {reported} were needed and reported; unverified, {served} led astray"
    );
    assert!(reported > 60 && served > 0);
}

#[test]
fn one_seed_is_one_history() {
    let scenario = Scenario::plain(5);
    let start = loaded(scenario);
    let hash = |seed| run(scenario, &start, seed, FIRST, None).2.trace_hash();
    assert_eq!(hash(5), hash(5));
    assert_ne!(hash(5), hash(6));
}
