//! Disks that come and go, under load, with power cuts.

use super::*;
use crate::disk_group::disk::format::{DiskHeader, Membership};

/// Two disks are added to two that are full of a file, which is spread over all four; then the first is dropped.
fn rebalancing(seed: u64, power: u32) -> Option<String> {
    let mut room = Room::blank(seed, 4, 14);
    let (env, mut members) = (room.env(), room.members());
    let new = members.split_off(2);
    let model = Model::default();
    let (shared, ends) = (Arc::clone(&model), watch_some(&room, &model, 13));
    let list = Arc::clone(&ends);
    let wrong = room.run(async move {
        let group = with_file(&env, members, Redundancy::External, 8, Striping::Coarse).await;
        let file = group.open_file("users").unwrap();
        ended(start(&env, &file, "users", &shared, 20)).await;
        list.lock().clear();
        let clients = start(&env, &file, "users", &shared, 60);
        group.add_disks(new).await.unwrap();
        let done = group.rebalance(power).await.unwrap();
        assert_eq!(done.extents, 4, "half of the extents move");
        let units = |group: &DiskGroup| group.describe().files[0].allocation_units.clone();
        assert_eq!(units(&group), [(0, 2), (1, 2), (2, 2), (3, 2)]);
        group.drop_disk("d0").await.unwrap();
        let done = group.rebalance(power).await.unwrap();
        assert_eq!(done.disks_removed, 1);
        assert_eq!(group.describe().disks.len(), 3);
        ended(clients).await;
        let promised = shared.lock().clone();
        promised
            .wrong
            .first()
            .cloned()
            .or(judge_group(&group, &promised).await)
    });
    // The dropped disk stays in the room: a mount passes over it, or refuses it by name once it is marked.
    wrong.or_else(|| judge_members(&noted(&ends)))
}

/// As `judge`, leaving out disks that say they have been dropped.
fn judge_members(ends: &[End]) -> Option<String> {
    for end in ends {
        for cut in [PowerCut::Damage(end.io), PowerCut::LoseAll] {
            let images: Vec<DiskImage> = end
                .moments
                .iter()
                .map(|moment| moment.image_after(cut))
                .collect();
            let is_member = |image: &DiskImage| {
                let mut block = vec![0; 4096];
                image.read(0, &mut block);
                let header = DiskHeader::decode(&block);
                header.is_some_and(|header| header.membership == Membership::Member)
            };
            let images = images.into_iter().filter(is_member).collect();
            if let Some(wrong) = judge_end(images, &end.promised, false) {
                return Some(format!("after {cut:?} at I/O {}: {wrong}", end.io));
            }
        }
    }
    None
}

#[test]
fn a_rebalance_under_load_survives_power_cuts() {
    assert_eq!(rebalancing(1, 1), None);
    assert_eq!(rebalancing(2, 4), None);
}

#[test]
fn bugs_of_rebalancing_are_found() {
    must_find(Planted::MovesUnflushed, |seed| rebalancing(seed, 2));
    must_find(Planted::MovesUnlocked, |seed| rebalancing(seed, 2));
}

/// Disks are so full that what a move gives away is taken by the next.
fn crowded(seed: u64) -> Option<String> {
    let mut room = Room::blank(seed, 3, 9);
    let (env, mut members) = (room.env(), room.members());
    let last = members.pop().unwrap();
    let model = Model::default();
    let (shared, ends) = (Arc::clone(&model), watch_some(&room, &model, 1));
    let list = Arc::clone(&ends);
    let wrong = room.run(async move {
        let group = with_file(&env, members, Redundancy::External, 8, Striping::Coarse).await;
        let file = group.open_file("users").unwrap();
        let client = |block: u64| Client {
            file: Arc::clone(&file),
            name: "users".to_owned(),
            first: block,
            step: 256,
            blocks: 8,
            model: Arc::clone(&shared),
            durable: true,
        };
        client(0).work(&mut env.rng(1), 60).await;
        list.lock().clear();
        group.add_disks(vec![last]).await.unwrap();
        let moving = group.rebalance(1);
        let making = async {
            for number in 0..12 {
                let name = format!("f{number}");
                if let Ok(creation) = group.begin_file(&name, MIB, Template::default()).await {
                    let filling = creation.device();
                    write(&filling, 0, 99, true).await.unwrap();
                }
            }
        };
        let (mut moving, mut making) = (std::pin::pin!(moving), std::pin::pin!(making));
        let (mut moved, mut made) = (false, false);
        std::future::poll_fn(|context| {
            moved = moved || moving.as_mut().poll(context).is_ready();
            made = made || making.as_mut().poll(context).is_ready();
            if moved && made {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        let promised = shared.lock().clone();
        judge_group(&group, &promised).await
    });
    wrong.or_else(|| judge_members(&noted(&ends)))
}

#[test]
fn space_is_given_away_only_when_the_move_is_durable() {
    assert_eq!(crowded(1), None);
    must_find(Planted::FreesBeforeMoved, crowded);
}

#[test]
fn every_file_is_even_after_a_rebalance() {
    let mut room = Room::blank(1, 6, 40);
    let (env, mut members) = (room.env(), room.members());
    let new = members.split_off(4);
    room.run(async move {
        let group = with_file(&env, members, Redundancy::Normal, 30, Striping::Fine).await;
        let template = Template {
            striping: Striping::Coarse,
            redundancy: Some(Redundancy::External),
        };
        group
            .begin_file("temp", 12 * MIB, template)
            .await
            .unwrap()
            .commit()
            .await
            .unwrap();
        group.add_disks(new).await.unwrap();
        group.rebalance(11).await.unwrap();
        for file in group.describe().files {
            let total: u64 = file.allocation_units.iter().map(|(_, units)| units).sum();
            assert_eq!(file.allocation_units.len(), 6);
            for (disk, units) in &file.allocation_units {
                // A unit more or less for primary and second copies each, where they do not divide.
                let most = if total.is_multiple_of(6) { 0 } else { 2 };
                assert!(
                    units.abs_diff(total / 6) <= most,
                    "{}: disk {disk} has {units} of {total}",
                    file.name
                );
            }
        }
        assert_eq!(group.check().await.unwrap().findings, []);
        assert_eq!(
            group.rebalance(3).await.unwrap(),
            Rebalanced::default(),
            "there is nothing left to do"
        );
        assert!(group.rebalance(12).await.is_err());
    });
}

/// A disk that is offline is dropped: its copies are made again from the others.
#[test]
fn an_offline_disk_can_be_dropped() {
    let mut room = Room::blank(1, 4, 16);
    let (env, members, devices) = (room.env(), room.members(), room.devices());
    room.run(async move {
        with_file(&env, members, Redundancy::Normal, 8, Striping::Coarse)
            .await
            .dismount()
            .await
            .unwrap();
        let group = DiskGroup::mount(&env, &devices[1..]).await.unwrap();
        let error = group.drop_disk("d9").await.unwrap_err().to_string();
        assert!(
            error.contains("no disk d9; it has: d0, d1, d2, d3"),
            "{error}"
        );
        group.drop_disk("d0").await.unwrap();
        let done = group.rebalance(2).await.unwrap();
        assert_eq!(done.disks_removed, 1);
        assert_eq!(group.check().await.unwrap().findings, []);
        group.drop_disk("d1").await.unwrap();
        let error = group.drop_disk("d2").await.unwrap_err().to_string();
        assert!(
            error.contains("2 failure groups are needed, and 1 would be left"),
            "{error}"
        );
    });
}

#[test]
fn a_check_names_what_differs() {
    let mut room = Room::blank(1, 3, 12);
    let (env, members) = (room.env(), room.members());
    let group = room
        .run(async move { with_file(&env, members, Redundancy::High, 2, Striping::Coarse).await });
    // The second extent of the file, on whichever AU, on disk 1.
    let place = group.core.all_maps()[0].extents()[1]
        .places()
        .find(|place| place.disk == 1)
        .unwrap();
    room.disks[1].decay(place.au as usize * MIB as usize + 5000, 1);
    room.run(async move {
        let findings = group.check().await.unwrap().findings;
        assert_eq!(findings.len(), 1);
        let words = findings[0].to_string();
        assert!(
            words.starts_with(
                "file users, extent 1: copies differ from byte 1053576 of the file on; disks "
            ),
            "{words}"
        );
        assert!(words.ends_with("| d1"), "{words}");
    });
}
