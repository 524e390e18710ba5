//! What is made works, and nothing of it stays.

use std::fs;
use std::os::unix::fs::FileExt;

use spindle_layout::spec::{DeviceSharing, LayoutKind};
use spindle_layout::{PlacementTarget, Provision};

use super::scene::{MIB, Scene, can_run, file_system, layout};

const TOOLS: [&str; 6] = [
    "losetup",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "blkid",
    "mount",
];

pub fn target(provision: &Provision, layout: usize) -> PlacementTarget {
    match &provision.layouts()[layout] {
        Ok(made) => made.target.clone(),
        Err(error) => panic!("{error}"),
    }
}

fn write_in(target: &PlacementTarget) {
    match target {
        PlacementTarget::Directory(directory) => {
            fs::write(directory.join("data1.dbf"), vec![7; 1 << 20]).unwrap()
        }
        PlacementTarget::Devices(devices) => {
            for device in devices {
                let file = fs::OpenOptions::new()
                    .write(true)
                    .open(device.path())
                    .unwrap();
                file.write_all_at(&[7; 4096], 0).unwrap();
                file.sync_all().unwrap();
            }
        }
        PlacementTarget::DiskGroup(group) => panic!("{group:?} is made by the program"),
    }
}

#[test]
fn every_kind_is_made_used_and_taken_away() {
    if !can_run("every_kind_is_made_used_and_taken_away", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let one = |name: &str, size_mib: u64, kind| {
        layout(name, vec![scene.file(name, size_mib * MIB)], kind)
    };
    let specs = [
        one("ext2", 32, file_system("ext2", &[], "")),
        one("ext3", 32, file_system("ext3", &["-b", "4096"], "noatime")),
        one(
            "ext4",
            32,
            file_system("ext4", &[], "noatime,data=writeback"),
        ),
        one("xfs", 320, file_system("xfs", &[], "")),
        one("btrfs", 128, file_system("btrfs", &[], "nodatacow")),
        layout(
            "btrfs on two",
            vec![scene.file("b1", 128 * MIB), scene.file("b2", 128 * MIB)],
            file_system("btrfs", &["-d", "raid0"], ""),
        ),
        layout(
            "raw",
            vec![scene.file("r1", 16 * MIB), scene.file("r2", 16 * MIB)],
            LayoutKind::Raw,
        ),
    ];
    let before = scene.state();
    let provision = scene.carry_out(&specs);
    for (index, spec) in specs.iter().enumerate() {
        let target = target(&provision, index);
        write_in(&target);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        match (&spec.kind, target) {
            (LayoutKind::FileSystem(of), PlacementTarget::Directory(path)) => {
                let line = mounts
                    .lines()
                    .find(|line| line.contains(&format!(" {} ", path.display())));
                let line = line.expect("it is mounted");
                assert!(line.contains(&format!(" - {} ", of.type_name)), "{line}");
                let options: Vec<&str> = of
                    .mount_options
                    .split(',')
                    .filter(|option| !option.is_empty())
                    .collect();
                assert!(options.iter().all(|option| line.contains(option)), "{line}");
            }
            (_, PlacementTarget::Devices(devices)) => {
                assert_eq!(devices.len(), 2);
                assert!(
                    devices
                        .iter()
                        .all(|device| device.path().starts_with("/dev")),
                    "{devices:?}"
                );
            }
            (kind, target) => panic!("{kind:?} became {target:?}"),
        }
    }
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(scene.state(), before);
}

#[test]
fn what_is_dropped_goes_too() {
    if !can_run("what_is_dropped_goes_too", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.state();
    let spec = layout(
        "ext4",
        vec![scene.file("one", 32 * MIB)],
        file_system("ext4", &[], ""),
    );
    drop(scene.carry_out(&[spec]));
    assert_eq!(scene.state(), before);
}

#[test]
fn files_are_shared_by_ranges() {
    if !can_run("files_are_shared_by_ranges", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.state();
    let shared = |name: &str| {
        let devices = (1..=2)
            .map(|number| scene.file(&format!("disk{number}"), 65 * MIB))
            .collect();
        let mut spec = layout(name, devices, LayoutKind::Raw);
        spec.share = Some(DeviceSharing::Fair);
        spec
    };
    let provision = scene.carry_out(&[shared("one"), shared("two")]);
    let mut seen = Vec::new();
    for index in 0..2 {
        let PlacementTarget::Devices(devices) = target(&provision, index) else {
            panic!("raw is devices")
        };
        for device in devices {
            let sectors = format!(
                "/sys/block/{}/",
                device.path().file_name().unwrap().to_str().unwrap()
            );
            let text = |file: &str| {
                fs::read_to_string(format!("{sectors}{file}"))
                    .unwrap()
                    .trim()
                    .to_owned()
            };
            assert_eq!(text("size"), (32 * MIB / 512).to_string());
            seen.push((
                index,
                text("loop/backing_file").ends_with("disk1"),
                text("loop/offset"),
            ));
        }
    }
    let (outer, inner) = ("0".to_owned(), (32 * MIB).to_string());
    assert_eq!(
        seen,
        [
            (0, true, outer.clone()),
            (0, false, inner.clone()),
            (1, true, inner),
            (1, false, outer)
        ]
    );
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(scene.state(), before);
}

#[test]
fn without_root_files_stand_in_for_devices() {
    let scene = Scene::new();
    let before = scene.state();
    let spec = layout("raw", vec![scene.file("one", 16 * MIB)], LayoutKind::Raw);
    let mut facts = spindle_layout::Facts::gather(
        std::slice::from_ref(&spec),
        &spindle_system::SystemTree::default(),
    );
    facts.is_root = false;
    let plan = spindle_layout::ProvisionPlan::of(&[spec], &facts, super::scene::RUN);
    let tree = spindle_system::SystemTree::default();
    let ledger = spindle_layout::Ledger::begin(&scene.ledgers(), super::scene::RUN, &tree).unwrap();
    let provision = Provision::carry_out(&plan, ledger.into(), &tree, &mut |_| {}).unwrap();
    let PlacementTarget::Devices(devices) = target(&provision, 0) else {
        panic!("raw is devices")
    };
    assert_eq!(devices.len(), 1);
    assert_eq!(fs::metadata(devices[0].path()).unwrap().len(), 16 * MIB);
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(scene.state(), before);
}
