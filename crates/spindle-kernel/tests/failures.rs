//! Each I/O of a database's story failed, once and for ever, in the simulated world; blocks that were damaged or written
//! to the wrong place; sessions that die. Nothing hangs, nothing wrong is served, nothing acknowledged is lost.

#[allow(dead_code)] // Each test uses a part.
mod simulated;

use std::collections::BTreeMap;

use simulated::Scenario;
use simulated::failures::{Beginning, Wrong, crashed};
use spindle_io::sim::{IoFault, IoKind, Lasts};
use spindle_kernel::{PlantedFault, WriteSync};

fn scenario(write_sync: WriteSync, planted: Option<PlantedFault>) -> Scenario {
    Scenario {
        write_sync,
        planted,
        cache_blocks: 24,
        ..Scenario::plain(11)
    }
}

fn once(io: u64) -> IoFault {
    IoFault {
        io,
        lasts: Lasts::Once,
        seed: io,
    }
}

/// What a sweep over all I/Os of a story found.
#[derive(Default)]
struct Sweep {
    stories: usize,
    failed: BTreeMap<IoKind, usize>,
    wrong: Option<Wrong>,
}

/// Fails every I/O of the story, one after the other, until something is wrong.
fn sweep(beginning: &Beginning, lasts: Lasts) -> Sweep {
    let mut swept = Sweep::default();
    for io in 1..=beginning.ios() {
        swept.stories += 1;
        match beginning.fail(IoFault { lasts, ..once(io) }) {
            Ok(failed) => *swept.failed.entry(failed.kind).or_default() += 1,
            Err(wrong) => {
                swept.wrong = Some(wrong);
                break;
            }
        }
    }
    swept
}

fn every_io(write_sync: WriteSync, lasts: Lasts) {
    let beginning = crashed(scenario(write_sync, None));
    let swept = sweep(&beginning, lasts);
    println!(
        "{write_sync:?}, {lasts:?}: {} I/Os failed one by one: {:?}",
        swept.stories, swept.failed
    );
    let wrong = swept.wrong.map(|wrong| (swept.stories, wrong));
    assert_eq!(wrong, None, "at the I/O of this number");
    assert_eq!(swept.failed.len(), 4, "not every kind of I/O was failed");
}

#[test]
fn every_io_fails_once() {
    every_io(WriteSync::Dsync, Lasts::Once);
}

#[test]
fn every_io_fails_for_ever() {
    every_io(WriteSync::Dsync, Lasts::ForEver);
}

#[test]
fn every_io_fails_once_with_flushes_at_checkpoints() {
    every_io(WriteSync::Checkpoint, Lasts::Once);
}

#[test]
fn every_io_fails_for_ever_with_flushes_at_checkpoints() {
    every_io(WriteSync::Checkpoint, Lasts::ForEver);
}

#[test]
fn errors_that_are_ignored_are_caught() {
    for (fault, write_sync) in [
        (PlantedFault::FlushErrorIgnored, WriteSync::Checkpoint),
        (PlantedFault::LogWriteErrorIgnored, WriteSync::Dsync),
    ] {
        let beginning = crashed(scenario(write_sync, Some(fault)));
        let swept = sweep(&beginning, Lasts::Once);
        println!("{fault:?}: story {}: {:?}", swept.stories, swept.wrong);
        assert!(swept.wrong.is_some(), "{fault:?} was not told of");
        let lost = (1..=beginning.ios()).find_map(|io| {
            let fault = once(io);
            [1, 5, 25].into_iter().find_map(|ios_after| {
                let wrong = beginning.fail_and_cut(fault, ios_after).err()?;
                Some((io, ios_after, wrong))
            })
        });
        println!("{fault:?}: I/O, power cut so many I/Os after it: {lost:?}");
        let is_loss = matches!(lost, Some((_, _, Wrong::Lost(_))));
        assert!(is_loss, "{fault:?} lost nothing");
    }
}
