//! What a group does when nothing goes wrong, and whom it refuses.

use super::*;

#[test]
fn what_is_written_is_read_after_another_mount_in_any_order() {
    for (redundancy, striping) in [
        (Redundancy::External, Striping::Coarse),
        (Redundancy::External, Striping::Fine),
        (Redundancy::Normal, Striping::Coarse),
        (Redundancy::High, Striping::Fine),
    ] {
        let mut room = Room::blank(1, 4, 24);
        let (env, members) = (room.env(), room.members());
        room.run(async move {
            let group = with_file(&env, members, redundancy, 7, striping).await;
            let file = group.open_file("users").unwrap();
            for block in 0..7 * MIB / BLOCK {
                write(&file, block, block + 5, false).await.unwrap();
            }
            assert!(matches!(
                group.remove_file("users").await,
                Err(DiskGroupError::FileInUse { .. })
            ));
            drop(file);
            group.dismount().await.unwrap();
        });
        let mut room = Room::new(2, room.images(PowerCut::LoseAll));
        let (env, mut devices) = (room.env(), room.devices());
        devices.reverse();
        room.run(async move {
            let group = DiskGroup::mount(&env, &devices).await.unwrap();
            let file = group.open_file("users").unwrap();
            for block in 0..7 * MIB / BLOCK {
                assert_eq!(
                    read(&file, block).await.unwrap().unwrap(),
                    vec![block + 5; 8]
                );
            }
            let report = group.check().await.unwrap();
            assert_eq!(report.findings, []);
            assert_eq!(
                report.extents,
                if striping == Striping::Fine { 8 } else { 7 }
            );
        });
    }
}

#[test]
fn requests_across_borders_arrive_whole() {
    for striping in [Striping::Coarse, Striping::Fine] {
        let mut room = Room::blank(1, 3, 24);
        let (env, members) = (room.env(), room.members());
        room.run(async move {
            let group = with_file(&env, members, Redundancy::Normal, 6, striping).await;
            let file = group.open_file("users").unwrap();
            let arena = Arena::new(3 * MIB as usize, 2).unwrap();
            let mut hold = arena.allocate().unwrap().try_write_hold().unwrap();
            for (number, block) in hold.chunks_exact_mut(BLOCK as usize).enumerate() {
                stamp(number as u64 + 3, 9, block);
            }
            let hold = hold.share(3 * MIB as usize);
            // Two buffers, neither of which ends at a border.
            let cut = MIB as usize + 8192;
            let from = vec![hold.part(0, cut), hold.part(cut, 3 * MIB as usize - cut)];
            let request = Request::write(3 * BLOCK, from, true, Submission::Batched);
            assert_eq!(file.submit(request).await.result, Ok(()));
            for block in 3..3 + 3 * MIB / BLOCK {
                assert_eq!(
                    read(&file, block).await.unwrap().unwrap(),
                    [9; 8],
                    "block {block}"
                );
            }
            // One buffer across many borders.
            let into = arena.allocate().unwrap().try_write_hold().unwrap();
            let outcome = file
                .submit(Request::read(3 * BLOCK, vec![into], Submission::Alone))
                .await;
            assert_eq!(outcome.result, Ok(()));
            let Operation::Read(into) = outcome.operation else {
                panic!()
            };
            assert!(into[0][..] == hold[..]);
            // Buffers that fit the borders go there without a detour.
            let small = Arena::new(STRIPE_BYTES as usize, 16).unwrap();
            let into = (0..16)
                .map(|_| small.allocate().unwrap().try_write_hold().unwrap())
                .collect();
            let outcome = file
                .submit(Request::read(MIB, into, Submission::Alone))
                .await;
            let Operation::Read(into) = outcome.operation else {
                panic!()
            };
            let bytes: Vec<u8> = into.iter().flat_map(|hold| hold.iter().copied()).collect();
            let from = (MIB - 3 * BLOCK) as usize;
            assert!(bytes[..] == hold[from..from + bytes.len()]);
        });
    }
}

#[test]
fn past_the_end_and_untorn_beyond_the_limit_are_errors() {
    let mut room = Room::blank(1, 2, 16);
    let (env, members) = (room.env(), room.members());
    room.run(async move {
        let group = with_file(&env, members, Redundancy::External, 2, Striping::Coarse).await;
        let file = group.open_file("users").unwrap();
        assert_eq!(file.limits().capacity_bytes, 2 * MIB);
        let error = write(&file, 2 * MIB / BLOCK, 1, true)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("of +data/users: past the end: it holds 2097152 bytes"),
            "{error}"
        );
        let arena = Arena::new(4096, 1).unwrap();
        let hold = arena
            .allocate()
            .unwrap()
            .try_write_hold()
            .unwrap()
            .share(4096);
        let request = Request::write(0, vec![hold], true, Submission::Alone).atomic();
        let error = file.submit(request).await.result.unwrap_err().to_string();
        assert!(error.contains("at most 512 bytes"), "{error}");
    });
}

#[test]
fn files_are_made_atomically_and_initialised() {
    let mut room = Room::blank(1, 3, 16);
    let (env, members) = (room.env(), room.members());
    room.run(async move {
        let group = with_file(&env, members, Redundancy::Normal, 2, Striping::Coarse).await;
        // Something to be found again by those who forget to initialise.
        let users = group.open_file("users").unwrap();
        for block in 0..2 * MIB / BLOCK {
            write(&users, block, 7, false).await.unwrap();
        }
        drop(users);
        group.remove_file("users").await.unwrap();
        let free = |group: &DiskGroup| {
            group
                .describe()
                .disks
                .iter()
                .map(|disk| disk.free_bytes)
                .sum::<u64>()
        };
        let before = free(&group);
        let creation = group
            .begin_file("index", 3 * MIB, Template::default())
            .await
            .unwrap();
        assert_eq!(free(&group), before - 6 * MIB);
        assert!(matches!(
            group.open_file("index"),
            Err(DiskGroupError::NoSuchFile { .. })
        ));
        drop(creation);
        assert_eq!(free(&group), before, "an aborted creation leaves nothing");
        let creation = group
            .begin_file("index", 3 * MIB, Template::default())
            .await
            .unwrap();
        let filling = creation.device();
        // Backwards, with gaps, two of them at once.
        write(&filling, 500, 3, false).await.unwrap();
        let (one, other) = (write(&filling, 2, 4, false), write(&filling, 700, 5, false));
        other.await.unwrap();
        one.await.unwrap();
        creation.commit().await.unwrap();
        let file = group.open_file("index").unwrap();
        for block in 0..3 * MIB / BLOCK {
            let expected = match block {
                500 => 3,
                2 => 4,
                700 => 5,
                _ => 0,
            };
            assert_eq!(
                read(&file, block).await.unwrap().unwrap(),
                vec![expected; 8],
                "block {block}"
            );
        }
        let again = group.begin_file("index", MIB, Template::default()).await;
        assert!(matches!(again, Err(DiskGroupError::FileExists { .. })));
        let large = group
            .begin_file("large", 100 * MIB, Template::default())
            .await;
        assert!(matches!(large, Err(DiskGroupError::NoSpace { .. })));
        assert_eq!(group.check().await.unwrap().findings, []);
    });
}

#[test]
fn who_does_not_belong_is_refused() {
    let mut room = Room::blank(1, 6, 16);
    let (env, mut members) = (room.env(), room.members());
    let others = members.split_off(3);
    let envs = Arc::clone(&env);
    room.run(async move {
        let one = DiskGroup::create(&envs, "one", members, options(Redundancy::Normal))
            .await
            .unwrap();
        let creation = one.begin_file("f", MIB, Template::default()).await.unwrap();
        creation.commit().await.unwrap();
        one.dismount().await.unwrap();
        let mut again = others;
        let duplicate = Disk {
            name: "d3".to_owned(),
            failure_group: None,
            device: Arc::clone(&again[0].device),
        };
        again.push(duplicate);
        let error = DiskGroup::create(&envs, "two", again, options(Redundancy::External))
            .await
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("two disks are called d3"),
            "{error}"
        );
    });
    let images = room.images(PowerCut::KeepAll);
    let mount = |images: Vec<DiskImage>, force: bool| {
        let mut room = Room::new(3, images);
        let (env, devices) = (room.env(), room.devices());
        room.run(async move {
            let options = MountOptions {
                force,
                preferred_failure_group: None,
            };
            let mounted = DiskGroup::mount_with(&env, &devices, &options).await;
            match mounted {
                Ok(group) => Ok(group
                    .describe()
                    .disks
                    .iter()
                    .map(|disk| disk.state)
                    .collect::<Vec<_>>()),
                Err(error) => Err(error.to_string()),
            }
        })
    };
    let pick = |numbers: &[usize]| {
        numbers
            .iter()
            .map(|number| images[*number].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(mount(pick(&[0, 1, 2]), false).unwrap(), ["online"; 3]);
    assert_eq!(
        mount(pick(&[2, 0]), false).unwrap(),
        ["online", "offline", "online"]
    );
    assert!(
        mount(pick(&[1]), false)
            .unwrap_err()
            .contains("missing d0, d2")
    );
    assert!(
        mount(pick(&[0, 1, 2, 3]), false)
            .unwrap_err()
            .contains("is not a disk of a disk group")
    );
    assert!(
        mount(pick(&[0, 1, 1]), false)
            .unwrap_err()
            .contains("are both disk d1")
    );
    // A copy of a disk from before the group was mounted again and changed.
    let mut later = Room::new(4, pick(&[0, 1, 2]));
    let (env, devices) = (later.env(), later.devices());
    later.run(async move {
        let group = DiskGroup::mount(&env, &devices).await.unwrap();
        group.remove_file("f").await.unwrap();
        group.dismount().await.unwrap();
    });
    let mut mixed = later.images(PowerCut::KeepAll);
    mixed[1] = images[1].clone();
    let error = mount(mixed.clone(), false).unwrap_err();
    assert!(
        error.contains("disk d1 (disk1) of disk group one has metadata of step"),
        "{error}"
    );
    assert_eq!(mount(mixed, true).unwrap(), ["online", "offline", "online"]);
}

#[test]
fn two_groups_are_not_mixed() {
    let mut room = Room::blank(1, 4, 16);
    let (env, mut members, devices) = (room.env(), room.members(), room.devices());
    let others = members.split_off(2);
    room.run(async move {
        let one = DiskGroup::create(&env, "one", members, options(Redundancy::External))
            .await
            .unwrap();
        let two = DiskGroup::create(&env, "two", others, options(Redundancy::External))
            .await
            .unwrap();
        one.dismount().await.unwrap();
        two.dismount().await.unwrap();
        let error = DiskGroup::mount(&env, &devices)
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("disk2 is disk d2 of disk group two"),
            "{error}"
        );
        let error = DiskGroup::mount(&env, &devices[..1])
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("missing d1: with external redundancy every disk is needed"),
            "{error}"
        );
    });
}

#[test]
fn a_damaged_header_is_found_by_its_copy_and_repaired() {
    let mut room = Room::blank(1, 2, 16);
    let (env, members) = (room.env(), room.members());
    room.run(async move {
        drop(with_file(&env, members, Redundancy::Normal, 1, Striping::Coarse).await);
    });
    let mut images = room.images(PowerCut::KeepAll);
    images[1].flip(20, 0xFF);
    let mut room = Room::new(2, images);
    let (env, devices) = (room.env(), room.devices());
    room.run(async move {
        let group = DiskGroup::mount(&env, &devices).await.unwrap();
        assert_eq!(group.check().await.unwrap().findings, []);
    });
}

/// What a disk is after it was in a group with these allocation units, one after the other.
fn after_groups(disk: DiskImage, groups: &[(&'static str, u64)]) -> DiskImage {
    groups.iter().fold(disk, |disk, (name, au_bytes)| {
        let mut room = Room::new(1, vec![disk]);
        let (env, members) = (room.env(), room.members());
        let mut options = options(Redundancy::External);
        options.allocation_unit_bytes = *au_bytes;
        let name = *name;
        room.run(async move {
            let group = DiskGroup::create(&env, name, members, options).await;
            group.unwrap().dismount().await.unwrap();
        });
        room.images(PowerCut::KeepAll).remove(0)
    })
}

/// Which group is found on a disk, or why none.
fn found_on(disk: DiskImage) -> Result<String, String> {
    let mut room = Room::new(2, vec![disk]);
    let (env, devices) = (room.env(), room.devices());
    room.run(async move {
        let mounted = DiskGroup::mount(&env, &devices).await;
        mounted
            .map(|group| group.name().to_owned())
            .map_err(|error| error.to_string())
    })
}

#[test]
fn a_disk_that_lost_its_header_is_of_its_last_group() {
    let blank = || DiskImage::zeroed(64 << 20);
    let units = [("a", MIB), ("b", 8 * MIB), ("c", 2 * MIB), ("d", 4 * MIB)];
    let mut disk = after_groups(blank(), &units);
    disk.zero(0, BLOCK as usize);
    assert_eq!(found_on(disk), Ok("d".to_owned()));
    // Added, not made.
    let mut room = Room::new(3, vec![blank(), after_groups(blank(), &[("old", MIB)])]);
    let (env, mut members) = (room.env(), room.members());
    let mut options = options(Redundancy::External);
    options.allocation_unit_bytes = 4 * MIB;
    room.run(async move {
        let added = members.split_off(1);
        let group = DiskGroup::create(&env, "new", members, options)
            .await
            .unwrap();
        group.add_disks(added).await.unwrap();
        group.dismount().await.unwrap();
    });
    let mut disk = room.images(PowerCut::KeepAll).remove(1);
    disk.zero(0, BLOCK as usize);
    let error = found_on(disk).unwrap_err();
    assert!(error.contains("disk group new"), "{error}");
}

#[test]
fn a_disk_that_lost_its_header_and_bears_copies_of_two_is_of_neither() {
    let of = |group| after_groups(DiskImage::zeroed(32 << 20), &[group]);
    let (old, mut disk) = (of(("old", MIB)), of(("new", 4 * MIB)));
    let mut copy = vec![0; BLOCK as usize];
    old.read((2 * MIB - BLOCK) as usize, &mut copy);
    disk.write((2 * MIB - BLOCK) as usize, &copy);
    assert_eq!(found_on(disk.clone()), Ok("new".to_owned()));
    disk.zero(0, BLOCK as usize);
    let error = found_on(disk).unwrap_err();
    assert!(
        error.contains("d0 of old") && error.contains("d0 of new"),
        "{error}"
    );
}

#[test]
fn a_long_log_goes_over_into_the_other_slot() {
    let mut room = Room::blank(1, 2, 16);
    let (env, members, devices) = (room.env(), room.members(), room.devices());
    room.run(async move {
        let group = with_file(&env, members, Redundancy::External, 1, Striping::Coarse).await;
        for number in 0..400 {
            let creation = group
                .begin_file(&format!("f{number}"), BLOCK, Template::default())
                .await
                .unwrap();
            creation.commit().await.unwrap();
            if number % 2 == 1 {
                group.remove_file(&format!("f{number}")).await.unwrap();
                group
                    .remove_file(&format!("f{}", number - 1))
                    .await
                    .unwrap();
            }
        }
        let names = |group: &DiskGroup| {
            group
                .describe()
                .files
                .into_iter()
                .map(|file| file.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&group), ["users"]);
        group.dismount().await.unwrap();
        let group = DiskGroup::mount(&env, &devices).await.unwrap();
        assert_eq!(names(&group), ["users"]);
        assert_eq!(group.check().await.unwrap().findings, []);
    });
}

#[test]
fn a_wrong_stripe_is_found() {
    must_find(Planted::StripeOffByOne, |seed| {
        let mut room = Room::blank(seed, 4, 16);
        let (env, members) = (room.env(), room.members());
        room.run(async move {
            let group = with_file(&env, members, Redundancy::External, 4, Striping::Fine).await;
            let file = group.open_file("users").unwrap();
            for block in 0..4 * MIB / BLOCK {
                write(&file, block, block + 1, false).await.unwrap();
            }
            for block in 0..4 * MIB / BLOCK {
                let found = read(&file, block).await.unwrap();
                if found != Ok(vec![block + 1; 8]) {
                    return Some(format!("block {block}: {found:?}"));
                }
            }
            None
        })
    });
}
