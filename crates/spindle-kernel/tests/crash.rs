//! Crash at every I/O of a scenario in the simulated world, with several kinds of damage: what was acknowledged is
//! there, what was not is there whole or not at all, and the database works on. Planted bugs must be caught.

mod simulated;

use simulated::{Scenario, loaded, recover_and_check, run};
use spindle_io::sim::PowerCut;
use spindle_kernel::{PlantedFault, WriteSync};

const FIRST: [u64; simulated::SESSIONS] = [1; simulated::SESSIONS];

fn damages() -> Vec<PowerCut> {
    let mut cuts = vec![PowerCut::LoseAll, PowerCut::KeepAll];
    cuts.extend((0..4).map(PowerCut::Damage));
    cuts
}

/// Crashes at each of the scenario's I/Os, or at every `step`-th; returns the I/Os, and the first loss found.
fn crash_everywhere(scenario: Scenario, step: usize) -> (u64, Option<String>) {
    let start = loaded(scenario);
    let (disks, promised, world, _) = run(scenario, &start, scenario.seed, FIRST, None);
    let ios = world.io_count();
    assert_eq!(promised, [scenario.transactions; simulated::SESSIONS]);
    if let Err(loss) = recover_and_check(scenario, &disks.after(PowerCut::LoseAll), promised) {
        return (ios, Some(format!("after a clean shutdown: {loss}")));
    }
    for io in (1..=ios).step_by(step) {
        let (disks, promised, _, cut) = run(scenario, &start, scenario.seed, FIRST, Some(io));
        assert!(cut, "the same seed makes the same I/Os");
        for damage in damages() {
            let checked = recover_and_check(scenario, &disks.after(damage), promised);
            if let Err(loss) = checked {
                return (
                    ios,
                    Some(format!(
                        "seed {}, crash at I/O {io}, {damage:?}: {loss}",
                        scenario.seed
                    )),
                );
            }
        }
    }
    (ios, None)
}

#[test]
fn no_crash_loses_an_acknowledged_commit() {
    let (ios, loss) = crash_everywhere(Scenario::plain(1), 1);
    assert_eq!(loss, None);
    assert!(ios >= 300, "the scenario makes only {ios} I/Os");
    println!("{ios} I/Os, each crashed {} ways", damages().len());
}

#[test]
fn nor_with_flushes_at_checkpoints_and_two_writers() {
    let scenario = Scenario {
        write_sync: WriteSync::Checkpoint,
        writers: 2,
        ..Scenario::plain(2)
    };
    assert_eq!(crash_everywhere(scenario, 1).1, None);
}

#[test]
fn a_crash_in_recovery_is_recovered_from() {
    // So often that checkpoints come due while recovery rolls forward.
    let scenario = Scenario {
        checkpoint_interval_ns: 200_000,
        ..Scenario::plain(3)
    };
    let start = loaded(scenario);
    let ios = run(scenario, &start, scenario.seed, FIRST, None)
        .2
        .io_count();
    for io in (ios / 3..ios).step_by(41) {
        let (disks, promised, _, _) = run(scenario, &start, scenario.seed, FIRST, Some(io));
        let damaged = disks.after(PowerCut::Damage(io));
        // The next start is crashed as well, at each of its first I/Os.
        for again in 1..60 {
            let (disks, _, _, cut) = run(
                scenario,
                &damaged,
                again,
                promised.map(|number| number + 1),
                Some(again),
            );
            assert!(cut);
            let checked =
                recover_and_check(scenario, &disks.after(PowerCut::Damage(again)), promised);
            if let Err(loss) = checked {
                panic!("crash at I/O {io}, again at I/O {again} of the next start: {loss}");
            }
        }
    }
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
    assert_eq!(promised, found.map(|number| number + scenario.transactions));
    recover_and_check(scenario, &disks.after(PowerCut::LoseAll), promised).unwrap();
}

#[test]
fn planted_bugs_are_caught() {
    for fault in [
        PlantedFault::AcknowledgeBeforeFlush,
        PlantedFault::WriteAheadOfRedo,
    ] {
        let scenario = Scenario {
            planted: Some(fault),
            ..Scenario::plain(1)
        };
        let (_, loss) = crash_everywhere(scenario, 1);
        let loss = loss.unwrap_or_else(|| panic!("{fault:?} was not caught"));
        println!("{fault:?} caught: {loss}");
    }
}

#[test]
fn one_seed_is_one_history() {
    let scenario = Scenario::plain(5);
    let start = loaded(scenario);
    let hash = |seed| run(scenario, &start, seed, FIRST, None).2.trace_hash();
    assert_eq!(hash(5), hash(5));
    assert_ne!(hash(5), hash(6));
}
