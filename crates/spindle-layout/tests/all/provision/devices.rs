//! Block devices that were there before: taken only when empty or named, and given back empty.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use spindle_layout::PlacementTarget;
use spindle_layout::guard::{Permit, Refusal};
use spindle_layout::spec::{DeviceSharing, LayoutKind};

use super::making::target;
use super::scene::{Disk, MIB, Scene, can_run, file_system, layout, tool};

const TOOLS: [&str; 8] = [
    "losetup",
    "mkfs.ext4",
    "mkfs.xfs",
    "blkid",
    "wipefs",
    "sfdisk",
    "blockdev",
    "blkdiscard",
];

#[test]
fn an_empty_device_is_taken_and_given_back_empty() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run("an_empty_device_is_taken_and_given_back_empty", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 320 * MIB);
    let before = scene.state();
    for kind in [
        file_system("xfs", &[], ""),
        file_system("ext4", &[], ""),
        LayoutKind::Raw,
    ] {
        let mut spec = layout("it", vec![disk.spec()], kind);
        spec.preparation.discard = true;
        spec.preparation.overwrite_passes = 1;
        let provision = scene.carry_out(&[spec]);
        let target = target(&provision, 0);
        if let PlacementTarget::Devices(devices) = &target {
            assert_eq!(devices.len(), 1);
            let number = |path: &std::path::Path| fs::metadata(path).unwrap().rdev();
            assert_eq!(number(devices[0].path()), number(&disk.path));
            assert_eq!(devices[0].bytes, 320 * MIB);
            let again = disk.look(&[]);
            assert!(matches!(again, Err(Refusal::NotEmpty { .. })), "{again:?}");
        }
        assert_eq!(provision.teardown(), Vec::<String>::new());
        assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
        assert_eq!(scene.state(), before);
    }
}

#[test]
fn a_device_with_something_on_it_is_refused_unless_it_is_named() {
    if !can_run(
        "a_device_with_something_on_it_is_refused_unless_it_is_named",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let path = disk.path.to_str().unwrap().to_owned();
    tool("mkfs.ext4", &["-q", "-L", "precious", &path]);
    let before = fs::read(scene.path().join("disk")).unwrap();
    let spec = layout("it", vec![disk.spec()], file_system("ext4", &[], ""));
    let provision = scene.carry_out(std::slice::from_ref(&spec));
    let error = provision.layouts()[0].as_ref().unwrap_err().to_string();
    assert!(
        error.contains("is not empty: it contains a signature of ext4, label \"precious\""),
        "{error}"
    );
    assert!(error.contains(&format!("erase = [{path:?}]")), "{error}");
    drop(provision);
    assert!(
        fs::read(scene.path().join("disk")).unwrap() == before,
        "nothing was written"
    );

    for wrong in ["", "/dev/loop", "disk", "loop0"] {
        let refusal = disk.look(&[wrong.to_owned()]).unwrap_err();
        assert!(
            matches!(refusal, Refusal::NotEmpty { .. }),
            "{wrong:?}: {refusal}"
        );
    }
    let mut named = spec;
    named.erase = vec![path];
    let provision = scene.carry_out(&[named]);
    assert!(matches!(
        target(&provision, 0),
        PlacementTarget::Directory(_)
    ));
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
}

#[test]
fn a_device_in_use_is_refused_whatever_the_experiment_says() {
    if !can_run(
        "a_device_in_use_is_refused_whatever_the_experiment_says",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let erase = [disk.path.to_str().unwrap().to_owned()];
    let alone = fs::OpenOptions::new();
    let mut alone = alone;
    let held = std::os::unix::fs::OpenOptionsExt::custom_flags(
        alone.read(true),
        rustix::fs::OFlags::EXCL.bits() as i32,
    )
    .open(&disk.path)
    .unwrap();
    let mut spec = layout("it", vec![disk.spec()], file_system("ext4", &[], ""));
    spec.erase = erase.to_vec();
    let provision = scene.carry_out(std::slice::from_ref(&spec));
    let error = provision.layouts()[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("O_EXCL"), "{error}");
    drop((held, provision));

    tool("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let at = scene.path().join("somewhere");
    fs::create_dir(&at).unwrap();
    tool(
        "mount",
        &[disk.path.to_str().unwrap(), at.to_str().unwrap()],
    );
    let refusal = disk.look(&erase).unwrap_err();
    tool("umount", &[at.to_str().unwrap()]);
    assert!(
        matches!(&refusal, Refusal::InUse { uses, .. } if uses[0].to_string().contains("is mounted on")),
        "{refusal}"
    );

    // A loop device on top of it, as on a disk: /sys names no holder then.
    let above = tool(
        "losetup",
        &["--find", "--show", disk.path.to_str().unwrap()],
    );
    let refusal = disk.look(&erase).unwrap_err();
    tool("losetup", &["--detach", &above]);
    assert!(matches!(refusal, Refusal::InUse { .. }), "{refusal}");
}

#[test]
fn devices_are_shared_by_partitions() {
    if !can_run("devices_are_shared_by_partitions", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disks = [
        Disk::new(&scene, "disk1", 64 * MIB),
        Disk::new(&scene, "disk2", 80 * MIB),
    ];
    let before = scene.state();
    let shared = |name: &str| {
        let mut spec = layout(
            name,
            disks.iter().map(Disk::spec).collect(),
            LayoutKind::Raw,
        );
        spec.share = Some(DeviceSharing::Fair);
        spec
    };
    let provision = scene.carry_out(&[shared("one"), shared("two")]);
    let mut parts = Vec::new();
    for index in 0..2 {
        let PlacementTarget::Devices(devices) = target(&provision, index) else {
            panic!("raw is devices")
        };
        parts.push(
            devices
                .iter()
                .map(|device| {
                    let name = device.path().file_name().unwrap();
                    name.to_str().unwrap().to_owned()
                })
                .collect::<Vec<_>>(),
        );
        for device in devices {
            let name = device.path().file_name().unwrap().to_str().unwrap();
            let size = fs::read_to_string(format!("/sys/class/block/{name}/size")).unwrap();
            assert_eq!(size.trim(), (31 * MIB / 512).to_string());
            fs::OpenOptions::new()
                .write(true)
                .open(device.path())
                .unwrap()
                .write_all_at(&[1; 4096], 0)
                .unwrap();
        }
    }
    let name = |disk: usize| disks[disk].path.file_name().unwrap().to_str().unwrap();
    let of = |disk: usize, part: u32| format!("{}p{part}", name(disk));
    assert_eq!(parts, [[of(0, 1), of(1, 2)], [of(0, 2), of(1, 1)]]);
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(scene.state(), before);
    for disk in &disks {
        assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
    }
}

#[test]
fn what_is_left_inside_shared_devices_does_not_stop_the_next_run() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run(
        "what_is_left_inside_shared_devices_does_not_stop_the_next_run",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let disks = [
        Disk::new(&scene, "disk1", 300 * MIB),
        Disk::new(&scene, "disk2", 300 * MIB),
    ];
    let before = scene.state();
    let shared = |name: &str| {
        let mut spec = layout(
            name,
            disks.iter().map(Disk::spec).collect(),
            file_system("btrfs", &[], ""),
        );
        spec.share = Some(DeviceSharing::Fair);
        spec
    };
    for _ in 0..2 {
        let provision = scene.carry_out(&[shared("one"), shared("two")]);
        target(&provision, 0);
        target(&provision, 1);
        assert_eq!(provision.teardown(), Vec::<String>::new());
        assert_eq!(scene.state(), before);
    }
}
