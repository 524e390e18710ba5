//! Logical volumes and partitions on disks of a kernel that has device-mapper, in a virtual machine: `make test-vm` names
//! empty disks in `SPINDLE_TEST_DISKS`. Without them nothing is done here. Everything on these disks is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_layout::guard::{Guard, Permit, Want};
use spindle_layout::spec::{
    DeviceSpec, FileSystemSpec, LayoutKind, Preparation, Share, VolumeSpec,
};
use spindle_layout::tool::Tools;
use spindle_layout::{Facts, LayoutSpec, Ledger, Plan, Provision, SystemTree, Target, clean};

const RUN: &str = "volumes-20260101-120000";
const DISKS: &str = "SPINDLE_TEST_DISKS";
/// Where the child that is killed works; not set in the test itself.
const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
const KILLS: u32 = 4;

fn disks(test: &str) -> Option<Vec<PathBuf>> {
    let named = std::env::var(DISKS).ok();
    if named.is_none() {
        eprintln!("skipped: {test} needs empty disks and device-mapper: make test-vm");
    }
    Some(named?.split(' ').map(PathBuf::from).collect())
}

fn layout(
    name: &str,
    disks: &[PathBuf],
    volume: Option<VolumeSpec>,
    kind: LayoutKind,
) -> LayoutSpec {
    LayoutSpec {
        name: name.to_owned(),
        devices: disks.iter().cloned().map(DeviceSpec::Existing).collect(),
        volume,
        kind,
        share: None,
        erase: Vec::new(),
        preparation: Preparation::default(),
    }
}

fn file_system(type_name: &str) -> LayoutKind {
    LayoutKind::FileSystem(FileSystemSpec {
        type_name: type_name.to_owned(),
        mkfs_options: Vec::new(),
        mount_options: String::new(),
    })
}

fn volume(stripes: u32, mirrors: u32, thin: bool) -> Option<VolumeSpec> {
    Some(VolumeSpec {
        stripes,
        stripe_size_bytes: 64 << 10,
        mirrors,
        thin,
    })
}

fn carry_out(directory: &Path, specs: &[LayoutSpec]) -> Provision {
    let tree = SystemTree::default();
    let mut facts = Facts::gather(specs, &tree);
    facts.mounts_under = directory.join("mounts");
    let plan = Plan::of(specs, &facts, RUN);
    let ledger = Ledger::begin(&directory.join("ledgers"), RUN, &tree).unwrap();
    Provision::carry_out(&plan, Arc::new(ledger), &tree, &mut |_| {}).unwrap()
}

/// What the machine has of mounts below a directory, device-mapper devices and partitions of these disks.
fn state(directory: &Path, disks: &[PathBuf]) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut state: Vec<String> = mounts
        .lines()
        .filter(|line| line.contains(directory.to_str().unwrap()))
        .map(str::to_owned)
        .collect();
    let names = fs::read_dir("/sys/class/block").unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_of_disk = |name: &String| {
        name.starts_with("dm-")
            || disks.iter().any(|disk| {
                let disk = disk.file_name().unwrap().to_str().unwrap();
                name.starts_with(disk) && name != disk
            })
    };
    state.extend(names.filter(is_of_disk));
    state.sort();
    state
}

fn assert_all_empty(disks: &[PathBuf], after: &str) {
    for path in disks {
        let want = Want {
            path,
            least_bytes: 0,
            erase: &[],
        };
        let looked = Guard::new(&SystemTree::default(), &Tools::new()).look(&want);
        let is_empty = looked
            .as_ref()
            .is_ok_and(|looked| looked.permit == Permit::Empty);
        assert!(is_empty, "after {after}: {looked:?}");
    }
}

fn segment_types() -> String {
    let arguments = ["lvs", "--noheadings", "-o", "segtype,stripes"];
    let output = Command::new("lvm").args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn volumes_of_every_kind_are_made_and_taken_away() {
    let Some(disks) = disks("volumes_of_every_kind_are_made_and_taken_away") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let kinds = [
        ("linear", volume(1, 0, false), LayoutKind::Raw, "linear 1"),
        (
            "striped",
            volume(4, 0, false),
            file_system("xfs"),
            "striped 4",
        ),
        ("raid1", volume(1, 1, false), file_system("ext4"), "raid1 2"),
        ("raid10", volume(2, 1, false), LayoutKind::Raw, "raid10 4"),
        ("thin", volume(4, 0, true), file_system("ext4"), "thin "),
    ];
    for (name, volume, kind, segments) in kinds {
        let provision = carry_out(directory.path(), &[layout(name, &disks, volume, kind)]);
        let made = provision.layouts()[0]
            .as_ref()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = segment_types();
        let squeezed = found.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
        assert!(squeezed.contains(segments), "{name}: {found}");
        match &made.target {
            Target::Directory(path) => fs::write(path.join("data1.dbf"), vec![1; 1 << 20]).unwrap(),
            Target::Devices(devices) => {
                assert_eq!(devices.len(), 1);
                let file = fs::OpenOptions::new()
                    .write(true)
                    .open(&devices[0].path)
                    .unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], 0).unwrap();
                file.sync_all().unwrap();
            }
            Target::DiskGroup(group) => panic!("{group:?} is made by the program"),
        }
        assert_eq!(provision.teardown(), Vec::<String>::new(), "{name}");
        assert_eq!(state(directory.path(), &disks), before, "{name}");
        assert_all_empty(&disks, name);
        eprintln!("made and taken away: {name}");
    }
}

fn shared(disks: &[PathBuf]) -> Vec<LayoutSpec> {
    let mut specs = vec![
        layout("volume", disks, volume(4, 0, false), file_system("ext4")),
        layout("raw", disks, None, LayoutKind::Raw),
    ];
    for spec in &mut specs {
        spec.share = Some(Share::Fair);
    }
    specs
}

#[test]
fn a_volume_of_partitions_beside_raw_ones() {
    let Some(disks) = disks("a_volume_of_partitions_beside_raw_ones") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let provision = carry_out(directory.path(), &shared(&disks));
    for made in provision.layouts() {
        assert!(made.is_ok(), "{made:?}");
    }
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(state(directory.path(), &disks), before);
    assert_all_empty(&disks, "sharing");
}

/// The run that is killed. In the test itself it has nothing to do.
#[test]
fn child() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let disks = disks("child").expect("the test names them");
        let provision = carry_out(Path::new(&directory), &shared(&disks));
        assert!(
            provision.layouts().iter().all(Result::is_ok),
            "{:?}",
            provision.layouts()
        );
        assert_eq!(provision.teardown(), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_left_of_volumes_whose_run_was_killed() {
    let Some(disks) = disks("nothing_is_left_of_volumes_whose_run_was_killed") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let began = Instant::now();
    assert!(start().wait().unwrap().success());
    let whole = began.elapsed();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    for kill in 0..KILLS {
        let after = Duration::from_micros(random.next_u64() % (whole.as_micros() as u64));
        let mut child = start();
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
        let cleaned = clean_when_dead(&directory.path().join("ledgers"));
        assert_eq!(
            state(directory.path(), &disks),
            before,
            "kill {kill} after {after:?}: {cleaned:#?}"
        );
        assert_all_empty(
            &disks,
            &format!("kill {kill} after {after:?}: {cleaned:#?}"),
        );
        eprintln!(
            "killed after {after:?} of {whole:?}, {} things taken away",
            cleaned.len()
        );
    }
}

/// A tool that was at work when its run was killed ends by itself, and the run counts as alive until then.
fn clean_when_dead(ledgers: &Path) -> Vec<String> {
    let began = Instant::now();
    loop {
        let cleaned = clean(ledgers, &SystemTree::default(), false).unwrap();
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
            began.elapsed() < Duration::from_secs(300),
            "its tools do not end: {cleaned:?}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}
