//! Killed at any moment, by SIGKILL, a run leaves nothing that `clean` does not find. The run is a separate process:
//! this test, called again. `SPINDLE_KILLS` says how often it is killed (20 in `make test-all` and 5 in `make test`, if
//! not set), `SPINDLE_KILLS_FROM` which kill of their endless row is the first, so that `scripts/soak-layouts` can go
//! on where it was.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_harness::stride;
use spindle_layout::guard::Permit;
use spindle_layout::record::RunDirectory;
use spindle_layout::spec::{DeviceSharing, DeviceSpec, LayoutKind};
use spindle_layout::{DataDirectory, LayoutSpec, PlacementTarget, clean};
use spindle_system::SystemTree;

use super::scene::{Disk, MIB, RUN, Scene, can_run, carry_out_in, file_system, layout};

const TOOLS: [&str; 9] = [
    "losetup",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "blkid",
    "wipefs",
    "sfdisk",
    "blockdev",
    "mount",
];

/// Where the child works; not set in the test itself.
const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
/// The devices it may take, separated by spaces.
const DISKS: &str = "SPINDLE_TEST_DISKS";

/// What clean says of a device that it leaves alone.
const LEFT_TO_ERASE: &str = "to use it again, name it in erase";
const KILLS: &str = "SPINDLE_KILLS";
const KILLS_DEFAULT: u32 = 20;
const KILLS_FROM: &str = "SPINDLE_KILLS_FROM";

fn specs(directory: &Path, disks: &[PathBuf]) -> Vec<LayoutSpec> {
    let file = |name: &str, size_mib: u64| DeviceSpec::File {
        path: directory.join(name),
        size_bytes: size_mib * MIB,
    };
    let disk = |index: usize| DeviceSpec::Existing(disks[index].clone());
    let shared = |name: &str, kind| {
        let mut spec = layout(name, vec![disk(1), disk(2)], kind);
        spec.share = Some(DeviceSharing::Fair);
        spec
    };
    let mut taken = layout("xfs on a disk", vec![disk(0)], file_system("xfs", &[], ""));
    taken.preparation.overwrite_passes = 1;
    vec![
        layout(
            "ext4",
            vec![file("a", 48)],
            file_system("ext4", &[], "noatime"),
        ),
        taken,
        layout(
            "btrfs",
            vec![file("b", 128), file("c", 128)],
            file_system("btrfs", &[], "nodatacow"),
        ),
        layout("raw", vec![file("d", 16)], LayoutKind::Raw),
        shared("half", LayoutKind::Raw),
        shared("other half", file_system("btrfs", &[], "")),
    ]
}

/// The run that is killed. In the test itself it has nothing to do.
#[test]
#[ignore = "a process that another test starts and kills"]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let disks: Vec<PathBuf> = std::env::var(DISKS)
        .unwrap()
        .split(' ')
        .map(PathBuf::from)
        .collect();
    let (provision, ledger) = carry_out_in(&directory, &specs(&directory, &disks));
    let mut directories = Vec::new();
    for made in provision.layouts() {
        let made = made.as_ref().unwrap_or_else(|error| panic!("{error}"));
        if let PlacementTarget::Directory(parent) = &made.target {
            let record = RunDirectory {
                parent: parent.clone(),
                run: RUN.to_owned(),
            };
            let entry = ledger.note(Some(&made.name), record.into()).unwrap();
            let data = DataDirectory::create(parent, RUN).unwrap();
            let image = data.make_image_directory(1).unwrap();
            std::fs::write(image.join("data1.dbf"), vec![5; 1 << 20]).unwrap();
            directories.push((entry, data));
        }
    }
    for (entry, data) in directories {
        data.remove().unwrap();
        ledger.gone(entry).unwrap();
    }
    assert_eq!(provision.teardown(), Vec::<String>::new());
}

fn start(scene: &Scene, disks: &[Disk]) -> Child {
    let paths: Vec<&str> = disks
        .iter()
        .map(|disk| disk.path.to_str().unwrap())
        .collect();
    spindle_harness::child!(child)
        .env(DIRECTORY, scene.path())
        .env(DISKS, paths.join(" "))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn nothing_is_left_of_a_run_that_was_killed_at_any_moment() {
    if !can_run(
        "nothing_is_left_of_a_run_that_was_killed_at_any_moment",
        &TOOLS,
    ) {
        return;
    }
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (kills, first): (u32, u32) = (
        number(KILLS, KILLS_DEFAULT / stride(10) as u32),
        number(KILLS_FROM, 0),
    );
    let scene = Scene::new();
    let disks = [
        Disk::new(&scene, "disk1", 320 * MIB),
        Disk::new(&scene, "disk2", 300 * MIB),
        Disk::new(&scene, "disk3", 300 * MIB),
    ];
    let before = scene.state();
    let began = Instant::now();
    assert!(
        start(&scene, &disks).wait().unwrap().success(),
        "it works when it is left alone"
    );
    let mut whole = began.elapsed();
    assert_eq!(scene.state(), before);

    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    (0..first).for_each(|_| {
        random.next_u64();
    });
    let (mut found_something, mut asks) = (0, 0);
    for kill in first..first + kills {
        let after = Duration::from_micros(random.next_u64() % (whole.as_micros() as u64));
        let mut child = start(&scene, &disks);
        std::thread::sleep(after);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if status.success() {
            // It is quicker now.
            whole = whole.min(after);
        }
        assert!(
            status.success() || status.signal() == Some(9),
            "kill {kill}: it failed by itself: {status}"
        );
        let cleaned = clean_when_dead(&scene);
        found_something += u32::from(!cleaned.is_empty());
        assert_eq!(
            scene.state(),
            before,
            "kill {kill} after {after:?}: {cleaned:#?}"
        );
        for disk in &disks {
            let looked = disk.look(&[]);
            let is_empty = looked
                .as_ref()
                .is_ok_and(|looked| looked.permit == Permit::Empty);
            // Killed while it gave the device back, by the node in /dev: then clean cannot tell its writes from
            // others', and leaves what is there to `erase`.
            if !is_empty && cleaned.iter().any(|line| line.contains(LEFT_TO_ERASE)) {
                blank(&disk.path);
                asks += 1;
                continue;
            }
            assert!(
                is_empty,
                "kill {kill} after {after:?}: {looked:?}; {cleaned:#?}"
            );
        }
        assert_eq!(
            clean(&scene.ledgers(), &SystemTree::default(), false, None).unwrap(),
            []
        );
    }
    assert!(
        asks <= kills.div_ceil(4),
        "{asks} of {kills} kills leave a device to erase"
    );
    assert!(
        kills < 10 || found_something > kills / 4,
        "{found_something} of {kills} kills hit a run at work"
    );
    eprintln!("killed {kills} times, {found_something} times with something to clean");
}

/// Overwrites a device with zeros, as who knows that nothing on it is needed.
fn blank(device: &Path) {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(device)
        .unwrap();
    let zeros = vec![0; MIB as usize];
    while file.write_all(&zeros).is_ok() {}
    file.sync_all().unwrap();
}

/// A tool that was at work when its run was killed ends by itself, and the run counts as alive until then.
fn clean_when_dead(scene: &Scene) -> Vec<String> {
    let began = Instant::now();
    loop {
        let cleaned = clean(&scene.ledgers(), &SystemTree::default(), false, None).unwrap();
        if cleaned.iter().all(|ledger| !ledger.alive) {
            for ledger in &cleaned {
                assert!(
                    ledger.left.is_empty() && ledger.not_ours.is_empty(),
                    "{cleaned:#?}"
                );
            }
            return cleaned
                .into_iter()
                .flat_map(|ledger| ledger.removed)
                .collect();
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "its tools do not end: {cleaned:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
