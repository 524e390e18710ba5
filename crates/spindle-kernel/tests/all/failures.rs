//! Each I/O of a database's story failed, once and for ever, in the simulated world; blocks that were damaged or
//! written to the wrong place; sessions that die. Nothing hangs, nothing wrong is served, nothing acknowledged is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::simulated::crashes::recovered;
use crate::simulated::failures::{Beginning, Wrong, crashed};
use crate::simulated::live::Live;
use crate::simulated::{SESSIONS, Scenario, loaded};
use spindle_io::Env;
use spindle_io::sim::{IoFault, IoKind, Lasts};
use spindle_kernel::{Instance, PlantedFault, RowId, Shutdown, TornBlocks, WriteSync};

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

/// Fails each of these I/Os of the story, one after the other, until something is wrong.
fn sweep(beginning: &Beginning, ios: impl Iterator<Item = u64>, lasts: Lasts) -> Sweep {
    let mut swept = Sweep::default();
    for io in ios {
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
    every_io_of(scenario(write_sync, None), lasts);
}

fn every_io_of(scenario: Scenario, lasts: Lasts) {
    let beginning = crashed(scenario);
    let ios = (1..=beginning.ios()).step_by(spindle_harness::stride(6));
    let swept = sweep(&beginning, ios, lasts);
    let (write_sync, torn_blocks) = (scenario.write_sync, scenario.torn_blocks);
    println!(
        "{write_sync:?}, {torn_blocks:?}, {lasts:?}: {} I/Os failed one by one: {:?}",
        swept.stories, swept.failed
    );
    let wrong = swept.wrong.map(|wrong| (swept.stories, wrong));
    assert_eq!(wrong, None, "at the story of this number");
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
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    every_io(WriteSync::Checkpoint, Lasts::ForEver);
}

/// Without images recovery looks at what the datafiles hold, which after a failed write or flush need not be stable.
#[test]
fn every_io_fails_once_without_images() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (write_sync, torn_blocks) in [
        (WriteSync::Dsync, TornBlocks::Atomic),
        (WriteSync::Checkpoint, TornBlocks::DoubleWrite),
        (WriteSync::Checkpoint, TornBlocks::Atomic),
    ] {
        let scenario = Scenario {
            torn_blocks,
            ..scenario(write_sync, None)
        };
        every_io_of(scenario, Lasts::Once);
    }
}

#[test]
fn every_io_fails_once_with_indexes() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let scenario = Scenario {
        cache_blocks: 24,
        ..Scenario::indexed(13)
    };
    every_io_of(scenario, Lasts::Once);
}

#[test]
fn errors_that_are_ignored_are_caught() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (fault, write_sync) in [
        (PlantedFault::FlushErrorIgnored, WriteSync::Checkpoint),
        (PlantedFault::LogWriteErrorIgnored, WriteSync::Dsync),
    ] {
        let beginning = crashed(scenario(write_sync, Some(fault)));
        let swept = sweep(&beginning, 1..=beginning.ios(), Lasts::Once);
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

/// A database with an account locked and changed by a session that is no more.
fn after_a_death(live: &mut Live, instance: &Arc<Instance>) -> RowId {
    let row = instance.table("accounts").unwrap().row_id(17);
    let mut session = instance.session();
    live.run(async move {
        let damage = |bytes: &mut [u8]| bytes.fill(9);
        session.update_row(row, 0..8, damage).await.unwrap();
        session.update_row(row, 8..16, damage).await.unwrap();
    });
    row
}

/// Changes the row within the lock timeout, and gives what it was.
async fn take_over(instance: Arc<Instance>, row: RowId) -> Vec<u8> {
    let mut session = instance.session();
    session.update_row(row, 0..8, |_| ()).await.unwrap();
    let was = session.read_row(row, |row| row[..16].to_vec()).await;
    session.rollback().await.unwrap();
    was.unwrap()
}

#[test]
fn pmon_rolls_back_what_a_dropped_session_left() {
    let scenario = Scenario::plain(14);
    let mut live = Live::on(scenario, &loaded(scenario));
    let instance = Arc::new(live.start().unwrap());
    let row = after_a_death(&mut live, &instance);
    let was = live.run(take_over(Arc::clone(&instance), row));
    assert_eq!(was, [0; 16]);
    assert_eq!(instance.statistics().rollbacks, 2);
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
}

#[test]
fn a_shutdown_right_after_a_death_leaves_nothing_to_roll_back() {
    let scenario = Scenario::plain(14);
    let mut live = Live::on(scenario, &loaded(scenario));
    let instance = Arc::new(live.start().unwrap());
    after_a_death(&mut live, &instance);
    let instance = Arc::into_inner(instance).unwrap();
    live.run(instance.shutdown(Shutdown::Normal)).unwrap();
    let images = live.images();
    let again = Live::on(scenario, &images).start().unwrap();
    assert_eq!(again.recovery().rolled_back, 0);
    recovered(scenario, &images, [0; SESSIONS]).unwrap();
}

#[test]
fn what_pmon_cannot_roll_back_it_tries_again() {
    let scenario = Scenario {
        checkpoint_interval_ns: u64::MAX / 4,
        ..Scenario::plain(14)
    };
    let mut live = Live::on(scenario, &loaded(scenario));
    let instance = Arc::new(live.start().unwrap());
    let accounts = instance.table("accounts").unwrap();
    let row = accounts.row_id(17);
    let (mut session, all) = (instance.session(), Arc::clone(&instance));
    let session = live.run(async move {
        session
            .update_row(row, 0..8, |bytes| bytes.fill(9))
            .await
            .unwrap();
        // Clean and cold, the row's block goes out of the cache: PMON will have to read it.
        all.checkpoint().await.unwrap();
        let mut other = all.session();
        for _ in 0..4 {
            other.scan(&accounts, 10, 50, |_, _| {}).await.unwrap();
        }
        session
    });
    drop(session);
    live.fail_next_io();
    let before = instance.statistics().rollbacks;
    let env = live.world.env();
    live.run(async move { env.sleep(1_000_000_000).await });
    assert_eq!(live.world.failed_io().unwrap().kind, IoKind::Read);
    assert_eq!(instance.statistics().rollbacks, before);
    let env = live.world.env();
    live.run(async move { env.sleep(9_000_000_000).await });
    assert_eq!(instance.statistics().rollbacks, before + 1);
    assert_eq!(instance.failure(), None);
    assert_eq!(live.run(take_over(Arc::clone(&instance), row)), [0; 16]);
}
