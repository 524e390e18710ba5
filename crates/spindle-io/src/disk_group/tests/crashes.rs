//! Power cuts: under load, while files are made, and in the mount that follows a crash.

use super::*;

/// Clients work on a mirrored file; the power is cut at many of their I/Os.
fn load(seed: u64, redundancy: Redundancy) -> Option<String> {
    let mut room = Room::blank(seed, 4, 12);
    let (env, members) = (room.env(), room.members());
    room.run(async move {
        let group = with_file(&env, members, redundancy, 3, Striping::Coarse).await;
        // All bits clear, as after a quiet time.
        group.dismount().await.unwrap();
    });
    let (env, devices, model) = (room.env(), room.devices(), Model::default());
    let ends = watch_some(&room, &model, 11);
    let shared = Arc::clone(&model);
    let wrong = room.run(async move {
        let group = DiskGroup::mount(&env, &devices).await.unwrap();
        let file = group.open_file("users").unwrap();
        ended(start(&env, &file, "users", &shared, 25)).await;
        // Bits are cleared after a while, and set again.
        env.sleep(11_000_000_000).await;
        ended(start(&env, &file, "users", &shared, 25)).await;
        let promised = shared.lock().clone();
        promised
            .wrong
            .first()
            .cloned()
            .or(judge_group(&group, &promised).await)
    });
    wrong.or_else(|| judge(&noted(&ends), false))
}

#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut() {
    for redundancy in [Redundancy::External, Redundancy::Normal, Redundancy::High] {
        assert_eq!(load(1, redundancy), None, "{redundancy:?}");
    }
}

#[test]
fn bugs_of_writing_are_found() {
    let normal = |seed| load(seed, Redundancy::Normal);
    must_find(Planted::MirrorNotWritten, normal);
    must_find(Planted::ChangeMapNotWritten, normal);
    must_find(Planted::MountSkipsResync, normal);
    must_find(Planted::FlushesOneDisk, normal);
}

/// As `load`, with a quiet time between a write and the crash: bits are cleared although the write is not stable.
fn quiet(seed: u64) -> Option<String> {
    let mut room = Room::blank(seed, 2, 12);
    let (env, members) = (room.env(), room.members());
    let model = Model::default();
    let (shared, ends) = (Arc::clone(&model), watch_some(&room, &model, 1));
    let list = Arc::clone(&ends);
    room.run(async move {
        let group = with_file(&env, members, Redundancy::Normal, 4, Striping::Coarse).await;
        let file = group.open_file("users").unwrap();
        group.core.clear_bits(false).await.unwrap();
        list.lock().clear();
        for block in [3, 300, 600, 900] {
            let client = Client {
                file: Arc::clone(&file),
                name: "users".to_owned(),
                first: block,
                step: 1,
                blocks: 1,
                model: Arc::clone(&shared),
                durable: false,
            };
            client.work(&mut env.rng(block), 12).await;
            env.sleep(21_000_000_000).await;
        }
    });
    judge(&noted(&ends), false)
}

#[test]
fn bits_are_cleared_only_when_nothing_hangs_on_them() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    assert_eq!(quiet(1), None);
    must_find(Planted::ClearsUnflushed, quiet);
}

/// Files are made one after the other; each is there whole, or not at all.
fn creation(seed: u64) -> Option<String> {
    let mut room = Room::blank(seed, 3, 12);
    let (env, members) = (room.env(), room.members());
    let model = Model::default();
    let (shared, ends) = (Arc::clone(&model), watch_some(&room, &model, 5));
    let list = Arc::clone(&ends);
    room.run(async move {
        let group = DiskGroup::create(&env, "data", members, options(Redundancy::Normal))
            .await
            .unwrap();
        list.lock().clear();
        for number in 0..3 {
            let name = format!("f{number}");
            let creation = group
                .begin_file(&name, MIB, Template::default())
                .await
                .unwrap();
            let filling = creation.device();
            for block in 0..20 {
                write(&filling, block, 7, false).await.unwrap();
            }
            creation.commit().await.unwrap();
            let mut model = shared.lock();
            for block in [0, 19, 20, 255] {
                let version = if block < 20 { 7 } else { 0 };
                let known = Known {
                    allowed: vec![version],
                    latest: Some(version),
                };
                model.blocks.insert((name.clone(), block), known);
            }
        }
    });
    let ends = noted(&ends);
    if let wrong @ Some(_) = judge(&ends, false) {
        return wrong;
    }
    // A file that was not promised is there whole, if it is there.
    for end in &ends {
        let images = end
            .moments
            .iter()
            .map(|moment| moment.image_after(PowerCut::Damage(end.io)));
        let mut room = Room::new(1, images.collect());
        let (env, devices, io) = (room.env(), room.devices(), end.io);
        let wrong = room.run(async move {
            let group = DiskGroup::mount(&env, &devices).await.unwrap();
            for file in group.describe().files {
                let device = group.open_file(&file.name).unwrap();
                for (block, version) in [(0, 7), (19, 7), (20, 0), (255, 0)] {
                    if read(&device, block).await.unwrap() != Ok(vec![version; 8]) {
                        return Some(format!("{} is half made at I/O {io}", file.name));
                    }
                }
            }
            None
        });
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}

#[test]
fn a_file_is_made_whole_or_not_at_all() {
    assert_eq!(creation(1), None);
    must_find(Planted::CommitsInMemory, creation);
}

/// A crash, and another one at I/Os of the mount that follows it.
#[test]
fn a_mount_can_be_cut_off_too() {
    let mut room = Room::blank(3, 3, 12);
    let (env, members) = (room.env(), room.members());
    let model = Model::default();
    let shared = Arc::clone(&model);
    let ends = watch(&room, &model, 37);
    let list = Arc::clone(&ends);
    room.run(async move {
        let group = with_file(&env, members, Redundancy::Normal, 3, Striping::Coarse).await;
        let file = group.open_file("users").unwrap();
        list.lock().clear();
        ended(start(&env, &file, "users", &shared, 20)).await;
    });
    let end = ends.lock().pop().unwrap();
    let images: Vec<DiskImage> = end
        .moments
        .iter()
        .map(|moment| moment.image_after(PowerCut::Damage(8)))
        .collect();
    let mut room = Room::new(4, images);
    let (env, devices) = (room.env(), room.devices());
    let promised = Arc::new(Latch::new(end.promised.clone()));
    let ends = watch_some(&room, &promised, 1);
    room.run(async move {
        DiskGroup::mount(&env, &devices)
            .await
            .unwrap()
            .dismount()
            .await
            .unwrap();
    });
    let ends = noted(&ends);
    assert!(ends.len() as u64 * one_in() > 20);
    assert_eq!(judge(&ends, false), None);
}

fn bytes_of(images: &[DiskImage]) -> Vec<Vec<u8>> {
    let bytes = |image: &DiskImage| {
        let mut bytes = vec![0; image.capacity_bytes()];
        image.read(0, &mut bytes);
        bytes
    };
    images.iter().map(bytes).collect()
}

#[test]
fn a_look_tells_what_a_mount_would_mend_and_writes_nothing() {
    let mut room = Room::blank(1, 3, 12);
    let (env, members) = (room.env(), room.members());
    let (disk, byte) = room.run(async move {
        let group = with_file(&env, members, Redundancy::Normal, 3, Striping::Coarse).await;
        let file = group.open_file("users").unwrap();
        write(&file, 0, 7, true).await.unwrap();
        let members = group.core.members.load_full();
        let map = &group.core.all_maps()[0];
        let (member, place) = members.attached(&map.extents()[0]).nth(1).unwrap();
        (usize::from(member.disk), member.byte_of(place) as usize)
    });
    // The group was never dismounted, and one copy did not get all of the last write.
    let mut room = Room::new(2, room.images(PowerCut::LoseAll));
    room.disks[disk].decay(byte + 4000, 0xff);
    let before = bytes_of(&room.images(PowerCut::LoseAll));
    let (env, devices) = (room.env(), room.devices());
    room.run(async move {
        let options = MountOptions::default();
        let view = GroupView::open(&env, &devices, &options).await.unwrap();
        assert!(view.unequal_extents() > 0);
        assert_eq!(view.describe().files.len(), 1);
        let findings = view.check_while(&|| true).await.unwrap().findings;
        assert!(
            matches!(
                &findings[..],
                [GroupFinding::CopiesDiffer {
                    extent: 0,
                    at: 4000,
                    ..
                }]
            ),
            "{findings:?}"
        );
    });
    let after = bytes_of(&room.images(PowerCut::KeepAll));
    assert!(before == after, "a look has written");
    let (env, devices) = (room.env(), room.devices());
    room.run(async move {
        let group = DiskGroup::mount(&env, &devices).await.unwrap();
        assert_eq!(group.check().await.unwrap().findings, []);
        group.dismount().await.unwrap();
        let options = MountOptions::default();
        let view = GroupView::open(&env, &devices, &options).await.unwrap();
        assert_eq!(view.unequal_extents(), 0);
        let findings = view.check_while(&|| true).await.unwrap().findings;
        assert_eq!(findings, []);
    });
}
