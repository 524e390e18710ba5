//! Disks that fail under load, at every redundancy, and power cuts after that.

use super::*;
use crate::sim::{IoFault, IoKind, Lasts};

/// What became of a story.
struct Told {
    wrong: Option<String>,
    refused: u64,
    writes: u64,
    /// Disk and kind of the first I/O that failed.
    failed: Option<(u64, IoKind)>,
    offline: usize,
}

/// Clients work; the I/O `fails_after` I/Os from their start fails. With `cuts`, the power is cut at many I/Os after
/// it.
fn failing(seed: u64, redundancy: Redundancy, fails_after: u64, lasts: Lasts, cuts: bool) -> Told {
    let mut room = Room::blank(seed, 4, 12);
    let (env, members, devices) = (room.env(), room.members(), room.devices());
    room.run(async move {
        with_file(&env, members, redundancy, 4, Striping::Coarse)
            .await
            .dismount()
            .await
            .unwrap();
    });
    let (env, model) = (room.env(), Model::default());
    let group = room.run(async move { DiskGroup::mount(&env, &devices).await.unwrap() });
    let group = Arc::new(group);
    let io = room.world.io_count() + fails_after;
    room.world.fail_io(IoFault { io, lasts, seed });
    let ends = watch_some(&room, &model, if cuts { 3 } else { u64::MAX });
    let (env, shared, story) = (room.env(), Arc::clone(&model), Arc::clone(&group));
    room.run(async move {
        let file = story.open_file("users").unwrap();
        ended(start(&env, &file, "users", &shared, 30)).await;
    });
    let failed = room
        .world
        .failed_io()
        .map(|failed| (failed.disk, failed.kind));
    // The disk works again, so that what is found now is not its failure once more.
    room.world.fail_io(IoFault {
        io: u64::MAX,
        lasts: Lasts::Once,
        seed,
    });
    ends.lock().retain(|end| end.io >= io);
    let promised = model.lock().clone();
    let (refused, writes, story) = (promised.refused, promised.writes, Arc::clone(&group));
    let live = promised.wrong.first().cloned();
    let live = live.or_else(|| {
        room.run(async move {
            if redundancy == Redundancy::External {
                None
            } else {
                judge_group(&story, &promised).await
            }
        })
    });
    let wrong = live.or_else(|| {
        if cuts {
            judge(&noted(&ends), false)
        } else {
            None
        }
    });
    let offline = group
        .describe()
        .disks
        .iter()
        .filter(|disk| disk.state == "offline")
        .count();
    Told {
        wrong,
        refused,
        writes,
        failed,
        offline,
    }
}

/// Each disk fails in turn: its reads, its writes, its flushes, once or forever.
#[test]
fn each_disk_may_fail_in_turn() {
    for redundancy in [Redundancy::Normal, Redundancy::High] {
        let mut seen = std::collections::BTreeSet::new();
        let mut offline = 0;
        for fails_after in 1..=90_u64 {
            for lasts in [Lasts::Once, Lasts::ForEver] {
                // One of the two in turn, unless all are wanted.
                let is_once = matches!(lasts, Lasts::Once);
                if one_in() > 1 && is_once != fails_after.is_multiple_of(2) {
                    continue;
                }
                let told = failing(fails_after % 9, redundancy, fails_after, lasts, false);
                assert_eq!(told.wrong, None, "{redundancy:?}, {fails_after}, {lasts:?}");
                assert_eq!(
                    told.refused, 0,
                    "{redundancy:?}, {fails_after}, {lasts:?}: an I/O was refused"
                );
                offline += told.offline;
                seen.extend(told.failed);
            }
        }
        for disk in 0..4 {
            for kind in [IoKind::Read, IoKind::Write, IoKind::DurableWrite] {
                assert!(
                    seen.contains(&(disk, kind)),
                    "{kind:?} of disk {disk} never failed"
                );
            }
        }
        assert!(seen.iter().any(|(_, kind)| *kind == IoKind::Flush));
        assert!(offline > 25, "disks went offline {offline} times");
    }
}

/// With one copy a failed I/O is refused, nothing is wrong, and everything else goes on.
#[test]
fn without_a_mirror_failures_are_told() {
    let mut refused = 0;
    for fails_after in 1..=60 {
        let told = failing(2, Redundancy::External, fails_after, Lasts::Once, false);
        assert_eq!(told.wrong, None, "{fails_after}");
        refused += told.refused;
        assert!(told.writes > 0);
    }
    assert!(refused > 30);
}

/// After a disk has failed, and while it is taken offline, the power is cut.
fn failing_and_cut(seed: u64) -> Option<String> {
    (1..=5)
        .find_map(|part| failing(seed, Redundancy::Normal, part * 13, Lasts::ForEver, true).wrong)
}

#[test]
fn a_power_cut_after_a_failure_loses_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    assert_eq!(failing_and_cut(1), None);
    let high = failing(3, Redundancy::High, 30, Lasts::ForEver, true);
    assert_eq!(high.wrong, None);
}

#[test]
fn acknowledging_too_early_is_found() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    must_find(Planted::AcknowledgesBeforeOffline, failing_and_cut);
}

/// Two disks of high redundancy fail one after the other; a third is more than the group can spare.
#[test]
fn two_of_three_copies_may_fail_and_the_third_may_not() {
    let mut room = Room::blank(5, 3, 12);
    let (env, members) = (room.env(), room.members());
    let group = room
        .run(async move { with_file(&env, members, Redundancy::High, 2, Striping::Coarse).await });
    let (group, model) = (Arc::new(group), Model::default());
    let mut refused = Vec::new();
    for round in 0..3 {
        let io = room.world.io_count() + 3;
        room.world.fail_io(IoFault {
            io,
            lasts: Lasts::ForEver,
            seed: round,
        });
        let (env, story, shared) = (room.env(), Arc::clone(&group), Arc::clone(&model));
        room.run(async move {
            let file = story.open_file("users").unwrap();
            ended(start(&env, &file, "users", &shared, 40)).await;
        });
        refused.push(model.lock().refused);
        assert_eq!(model.lock().wrong, Vec::<String>::new());
    }
    assert_eq!(refused[..2], [0, 0]);
    assert!(refused[2] > 0, "the last copy failed and nobody was told");
    let online = group
        .describe()
        .disks
        .iter()
        .filter(|disk| disk.state == "online")
        .count();
    assert!(online <= 1);
    room.world.fail_io(IoFault {
        io: u64::MAX,
        lasts: Lasts::Once,
        seed: 0,
    });
    let promised = model.lock().clone();
    let images = room.images(PowerCut::Damage(2));
    assert_eq!(judge_end(images, &promised, false), None);
}

/// A block that cannot be read is read elsewhere and rewritten in place.
#[test]
fn a_bad_block_is_mended() {
    let mut room = Room::blank(6, 2, 12);
    let (env, members) = (room.env(), room.members());
    let group =
        room.run(
            async move { with_file(&env, members, Redundancy::Normal, 1, Striping::Coarse).await },
        );
    let group = Arc::new(group);
    let io = room.world.io_count() + 1;
    room.world.fail_io(IoFault {
        io,
        lasts: Lasts::Once,
        seed: 1,
    });
    let story = Arc::clone(&group);
    let before = room.world.io_count();
    room.run(async move {
        let file = story.open_file("users").unwrap();
        assert_eq!(read(&file, 5).await.unwrap().unwrap(), [0; 8]);
        assert!(
            story
                .describe()
                .disks
                .iter()
                .all(|disk| disk.state == "online")
        );
        assert_eq!(story.check().await.unwrap().findings, []);
    });
    assert!(room.world.failed_io().is_some());
    // The failed read, the mirror for the reader, the mirror for the mending, the rewriting and a look at it.
    assert!(room.world.io_count() - before >= 5);
}
