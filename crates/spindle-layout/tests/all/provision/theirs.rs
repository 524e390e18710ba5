//! What a person does with a device, or a name, after a run was killed: `clean` leaves that alone, however much it
//! looks like what the run had made. Beside each case stands one in which nobody did anything, and the run's own goes.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_io::disk_group::{Disk as GroupDisk, DiskGroup, DiskGroupOptions};
use spindle_io::real::{Caching, Queue, RealEnv, block_on};
use spindle_layout::guard::Permit;
use spindle_layout::spec::{DeviceSharing, DeviceSpec, LayoutKind};
use spindle_layout::{Cleaned, KnownDevice, LayoutSpec};

use super::not_ours::{STEP_OF_TIMES, abandoned, cleaned};
use super::scene::{Disk, MIB, Scene, can_run, file_system, layout, tool};

const TOOLS: [&str; 6] = [
    "losetup",
    "mkfs.ext4",
    "mkfs.minix",
    "blkid",
    "wipefs",
    "sfdisk",
];

/// Makes a disk group, as a run or `spindle diskgroup` does.
fn make_group(device: &Path, name: &str, disk_name: &str) {
    let env: Arc<dyn spindle_io::Env> = RealEnv::new(1);
    let device = KnownDevice::look(device).unwrap();
    let device = device.open(Caching::Buffered, Queue::sync()).unwrap();
    let disks = vec![GroupDisk {
        name: disk_name.to_owned(),
        failure_group: None,
        device: Arc::new(device),
    }];
    let options = DiskGroupOptions {
        allocation_unit_bytes: MIB,
        ..DiskGroupOptions::default()
    };
    block_on(async {
        let group = DiskGroup::create(&env, name, disks, options).await;
        group.unwrap().dismount().await.unwrap();
    });
}

/// Whether it was left alone; else it was removed.
fn is_left(cleaned: &Cleaned) -> bool {
    assert!(cleaned.left.is_empty(), "{cleaned:?}");
    !cleaned.not_ours.is_empty()
}

fn bytes(scene: &Scene) -> Vec<u8> {
    fs::read(scene.path().join("disk")).unwrap()
}

#[test]
fn a_group_that_is_not_the_runs_stays_though_the_stamp_is_there() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run(
        "a_group_that_is_not_the_runs_stays_though_the_stamp_is_there",
        &TOOLS,
    ) {
        return;
    }
    for (group, disk_name, is_theirs) in [
        ("prod", "prod_0000", true),
        ("prod", "disk1", true),
        ("spindle", "spindle_0000", true),
        ("spindle", "disk1", false),
    ] {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 64 * MIB);
        abandoned(&scene, &[layout("it", vec![disk.spec()], LayoutKind::Raw)]);
        make_group(&disk.path, group, disk_name);
        let before = bytes(&scene);
        assert_eq!(is_left(&cleaned(&scene)), is_theirs, "{group} {disk_name}");
        let after = bytes(&scene);
        assert_eq!(after == before, is_theirs);
        // The header, and its copy.
        let has_header = after.windows(8).any(|bytes| bytes == b"SPNDLDSK");
        assert_eq!(has_header, is_theirs);
    }
}

#[test]
fn a_file_that_was_given_the_inode_of_the_runs_stays() {
    if !can_run("a_file_that_was_given_the_inode_of_the_runs_stays", &TOOLS) {
        return;
    }
    // As long as the run's, or not.
    for size_bytes in [16 * MIB, 9] {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 64 * MIB);
        tool("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
        let at = scene.path().join("small");
        fs::create_dir(&at).unwrap();
        let mount = [disk.path.to_str().unwrap(), at.to_str().unwrap()];
        tool("mount", &mount);
        let path = at.join("a");
        let file = DeviceSpec::File {
            path: path.clone(),
            size_bytes: 16 * MIB,
        };
        abandoned(&scene, &[layout("it", vec![file], LayoutKind::Raw)]);
        let inode = fs::metadata(&path).unwrap().ino();
        detach_from(&path);
        let make_again = || {
            fs::remove_file(&path).unwrap();
            let file = fs::File::create(&path).unwrap();
            file.set_len(size_bytes).unwrap();
            file.metadata().unwrap().ino()
        };
        // The inode is free when the last one has closed the file: a tool of another test, for one.
        let until = Instant::now() + Duration::from_secs(60);
        while make_again() != inode {
            assert!(Instant::now() < until, "it is not given again");
            std::thread::sleep(Duration::from_millis(20));
        }
        let cleaned = cleaned(&scene);
        assert!(is_left(&cleaned), "{cleaned:?}");
        assert_eq!(fs::metadata(&path).unwrap().len(), size_bytes);
        tool("umount", &[at.to_str().unwrap()]);
    }
}

/// Detaches the loop devices on a file.
fn detach_from(file: &Path) {
    let said = tool(
        "losetup",
        &[
            "--associated",
            file.to_str().unwrap(),
            "--noheadings",
            "--output",
            "NAME",
        ],
    );
    for device in said.lines() {
        tool("losetup", &["--detach", device.trim()]);
    }
}

/// Layouts that share a disk: raw ones of two parts each, or one with a file system on its part.
fn sharing(disk: &Disk, kind: &LayoutKind) -> Vec<LayoutSpec> {
    let names: &[&str] = match kind {
        LayoutKind::Raw => &["one", "two"],
        _ => &["one"],
    };
    let shared = |name: &&str| {
        let mut spec = layout(name, vec![disk.spec()], kind.clone());
        spec.share = Some(DeviceSharing::Fair);
        spec
    };
    names.iter().map(shared).collect()
}

#[test]
fn partitions_that_are_not_the_runs_stay_though_the_table_is() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run(
        "partitions_that_are_not_the_runs_stay_though_the_table_is",
        &TOOLS,
    ) {
        return;
    }
    let raw = LayoutKind::Raw;
    let ext4 = file_system("ext4", &[], "");
    let touch = |_: &Scene, disk: &Disk| {
        let device = fs::OpenOptions::new().write(true).open(&disk.path).unwrap();
        let mut block = [0; 4096];
        let at = 127 * MIB;
        fs::File::open(&disk.path)
            .unwrap()
            .read_exact_at(&mut block, at)
            .unwrap();
        device.write_all_at(&block, at).unwrap();
    };
    let replace = |_: &Scene, disk: &Disk| {
        let path = disk.path.to_str().unwrap();
        tool("sfdisk", &["--quiet", "--no-reread", "--delete", path]);
        let script = "echo size=32M | sfdisk --quiet --no-reread --append \"$0\"";
        tool("sh", &["-ec", script, path]);
        tool("partx", &["--update", path]);
        tool(
            "mkfs.ext4",
            &["-q", "-F", "-L", "precious", &format!("{path}p1")],
        );
    };
    let put_another = |scene: &Scene, disk: &Disk| {
        let path = disk.path.to_str().unwrap();
        unmount_all(scene);
        tool(
            "mkfs.ext4",
            &["-q", "-F", "-L", "precious", &format!("{path}p1")],
        );
    };
    // As where the run was killed while it made them: the nodes are younger than its last word.
    let make_nodes_anew = |_: &Scene, disk: &Disk| {
        let path = disk.path.to_str().unwrap();
        tool("partx", &["--delete", path]);
        tool("partx", &["--add", path]);
    };
    let write_to_part = |_: &Scene, disk: &Disk| {
        let part = format!("{}p1", disk.path.to_str().unwrap());
        let part = fs::OpenOptions::new().write(true).open(part).unwrap();
        part.write_all_at(&[7; 4096], 2 * MIB).unwrap();
    };
    type Done<'a> = &'a dyn Fn(&Scene, &Disk);
    let cases: [(&LayoutKind, Done<'_>, bool); 8] = [
        (&raw, &make_nodes_anew, false),
        (&raw, &write_to_part, true),
        (&raw, &|_, _| {}, false),
        (&ext4, &|_, _| {}, false),
        // Others wrote to the disk, and each partition still bears what the run put there.
        (&ext4, &touch, false),
        (&raw, &touch, true),
        (&raw, &replace, true),
        (&ext4, &put_another, true),
    ];
    for (number, (kind, done, is_theirs)) in cases.into_iter().enumerate() {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 128 * MIB);
        abandoned(&scene, &sharing(&disk, kind));
        done(&scene, &disk);
        let cleaned = cleaned(&scene);
        assert_eq!(is_left(&cleaned), is_theirs, "case {number}: {cleaned:?}");
        let path = disk.path.to_str().unwrap();
        let look = disk.look(&[]).map(|looked| looked.permit);
        assert_eq!(
            look == Ok(Permit::Empty),
            !is_theirs,
            "case {number}: {look:?}"
        );
        // So that the disk can be detached.
        if is_theirs {
            tool("partx", &["--delete", path]);
        }
    }
}

fn unmount_all(scene: &Scene) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for point in points.filter(|point| Path::new(point).starts_with(scene.path())) {
        tool("umount", &[point]);
    }
}

/// Changes what the ledger of the dead run says of its device, surely later than what was before and earlier than what
/// follows.
fn amend(scene: &Scene, from: &str, to: &str) {
    let path = scene.ledgers().join("dead.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::thread::sleep(STEP_OF_TIMES);
    fs::write(&path, text.replace(from, to)).unwrap();
    std::thread::sleep(STEP_OF_TIMES);
}

#[test]
fn a_file_system_without_an_identity_counts_only_while_nobody_wrote() {
    if !can_run(
        "a_file_system_without_an_identity_counts_only_while_nobody_wrote",
        &TOOLS,
    ) {
        return;
    }
    for is_theirs in [false, true] {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 64 * MIB);
        abandoned(&scene, &[layout("it", vec![disk.spec()], LayoutKind::Raw)]);
        let make = || tool("mkfs.minix", &["-3", disk.path.to_str().unwrap()]);
        let has_type = (
            "\"file_system_type\":null",
            "\"file_system_type\":\"minix\"",
        );
        if is_theirs {
            amend(&scene, has_type.0, has_type.1);
            make();
        } else {
            make();
            amend(&scene, has_type.0, has_type.1);
        }
        let before = bytes(&scene);
        let cleaned = cleaned(&scene);
        assert_eq!(is_left(&cleaned), is_theirs, "{cleaned:?}");
        assert_eq!(bytes(&scene) == before, is_theirs);
    }
}

#[test]
fn bytes_without_a_stamp_count_only_while_nobody_wrote() {
    if !can_run(
        "bytes_without_a_stamp_count_only_while_nobody_wrote",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    abandoned(&scene, &[layout("it", vec![disk.spec()], LayoutKind::Raw)]);
    amend(&scene, "\"is_stamped\":true", "\"is_stamped\":false");
    let device = fs::OpenOptions::new().write(true).open(&disk.path).unwrap();
    device.write_all_at(&[7; 1 << 20], 0).unwrap();
    device.sync_all().unwrap();
    drop(device);
    let before = bytes(&scene);
    let cleaned = cleaned(&scene);
    assert!(is_left(&cleaned), "{cleaned:?}");
    assert!(bytes(&scene) == before, "a byte of theirs changed");
}
