//! Logical volumes and partitions on disks of a kernel that has device-mapper, in a virtual machine: `make test-vm`
//! names empty disks in `SPINDLE_TEST_DISKS`. Without them nothing is done here. Everything on these disks is lost.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_layout::guard::{Guard, Permit, Want};
use spindle_layout::plan::DelayedBy;
use spindle_layout::spec::{
    Delay, DeviceSharing, DeviceSpec, FileSystemSpec, LayoutKind, Preparation, VolumeSpec,
};
use spindle_layout::tool::Tools;
use spindle_layout::{Facts, LayoutSpec, Ledger, PlacementTarget, Provision, ProvisionPlan, clean};
use spindle_system::SystemTree;

const RUN: &str = "volumes-20260101-120000";
const DISKS: &str = "SPINDLE_TEST_DISKS";
/// Where the child that is killed works; not set in the test itself.
const DIRECTORY: &str = "SPINDLE_TEST_DIRECTORY";
/// How often the run is killed, if not [`KILLS`].
const ASKED_KILLS: &str = "SPINDLE_KILLS";
const KILLS: u32 = 6;

fn disks() -> Vec<PathBuf> {
    let named = std::env::var(DISKS).expect("scripts/test-vm names the disks");
    named.split(' ').map(PathBuf::from).collect()
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
        delay: None,
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
    let plan = ProvisionPlan::of(specs, &facts, RUN);
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

fn zero(disk: &Path) {
    let mut file = fs::OpenOptions::new().write(true).open(disk).unwrap();
    let bytes = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    for at in (0..bytes).step_by(1 << 20) {
        std::os::unix::fs::FileExt::write_all_at(&file, &[0; 1 << 20], at).unwrap();
    }
    file.sync_all().unwrap();
}

fn segment_types() -> String {
    let arguments = ["lvs", "--noheadings", "-o", "segtype,stripes"];
    let output = Command::new("lvm").args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn volumes_of_every_kind_are_made_and_taken_away() {
    let disks = disks();
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
            PlacementTarget::Directory(path) => {
                fs::write(path.join("data1.dbf"), vec![1; 1 << 20]).unwrap()
            }
            PlacementTarget::Devices(devices) => {
                assert_eq!(devices.len(), 1);
                let file = fs::OpenOptions::new()
                    .write(true)
                    .open(devices[0].path())
                    .unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &[1; 4096], 0).unwrap();
                file.sync_all().unwrap();
            }
            PlacementTarget::DiskGroup(group) => panic!("{group:?} is made by the program"),
        }
        assert_eq!(provision.teardown(), Vec::<String>::new(), "{name}");
        assert_eq!(state(directory.path(), &disks), before, "{name}");
        assert_all_empty(&disks, name);
        eprintln!("made and removed: {name}");
    }
}

/// A volume's first bytes, or a file's on it, and the number of the device.
struct Contents {
    path: PathBuf,
    device: PathBuf,
}

impl Contents {
    fn of(target: &PlacementTarget, group: &str) -> Contents {
        let device = Path::new("/dev").join(group).join("data");
        let path = match target {
            PlacementTarget::Directory(directory) => directory.join("data1.dbf"),
            _ => device.clone(),
        };
        Contents { path, device }
    }

    fn write(&self, byte: u8) {
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![byte; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
    }

    fn read(&self) -> u8 {
        let file = fs::File::open(&self.path).unwrap();
        let mut bytes = vec![0; 1 << 20];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        bytes[0]
    }

    fn number(&self) -> u64 {
        std::os::unix::fs::MetadataExt::rdev(&fs::metadata(&self.device).unwrap())
    }
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn a_thin_volume_is_put_back_to_what_was_kept() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let group = format!("spindle-{RUN}-1");
    for (name, kind) in [("raw", LayoutKind::Raw), ("ext4", file_system("ext4"))] {
        let specs = [layout(name, &disks, volume(2, 0, true), kind)];
        let provision = carry_out(directory.path(), &specs);
        let made = provision.layouts()[0].as_ref().unwrap();
        let contents = Contents::of(&made.target, &group);
        contents.write(1);
        provision.keep(0).unwrap();
        let (number, mounts) = (contents.number(), state(directory.path(), &disks));
        for byte in [2, 3] {
            contents.write(byte);
            assert_eq!(contents.read(), byte, "{name}");
            provision
                .roll_back(0)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(contents.read(), 1, "{name}");
            assert_eq!(contents.number(), number, "{name}");
            assert_eq!(state(directory.path(), &disks), mounts, "{name}");
        }
        // A file that is still open keeps its volume; what is in it is not lost.
        if let PlacementTarget::Directory(path) = &made.target {
            contents.write(4);
            let open = fs::File::open(path.join("data1.dbf")).unwrap();
            let told = provision.roll_back(0).unwrap_err().to_string();
            assert!(told.contains("still in use"), "{told}");
            drop(open);
            assert_eq!(contents.read(), 4);
        }
        assert_eq!(provision.teardown(), Vec::<String>::new(), "{name}");
        assert_eq!(state(directory.path(), &disks), before, "{name}");
        assert_all_empty(&disks, name);
        eprintln!("kept and put back: {name}");
    }
}

/// Who finds a pool with room may put a volume there.
#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn a_volume_that_a_person_added_stays() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let group = format!("spindle-{RUN}-1");
    let specs = [layout("thin", &disks, volume(1, 0, true), LayoutKind::Raw)];
    let provision = carry_out(directory.path(), &specs);
    let lvm = |arguments: &[&str]| {
        let status = Command::new("lvm").args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let (pool, mine) = (format!("{group}/pool"), format!("{group}/mine"));
    lvm(&[
        "lvcreate",
        "--yes",
        "--virtualsize",
        "16m",
        "--thin",
        "--name",
        "mine",
        &pool,
    ]);
    let path = Path::new("/dev").join(&mine);
    fs::write(&path, vec![0x5a; 1 << 20]).unwrap();
    let is_there = || fs::read(&path).unwrap()[..1 << 20] == vec![0x5a; 1 << 20];
    let cleaned = || {
        let ledgers = directory.path().join("ledgers");
        clean(&ledgers, &SystemTree::default(), false, None).unwrap()
    };
    let left = provision.teardown().join("; ");
    assert!(left.contains("volume mine"), "{left}");
    assert!(is_there());
    for is_active in [true, false] {
        let active = if is_active { "y" } else { "n" };
        lvm(&["vgchange", "--activate", active, &group]);
        let cleaned = cleaned();
        assert!(
            cleaned[0].left.join("; ").contains("volume mine"),
            "{cleaned:#?}"
        );
    }
    lvm(&["vgchange", "--activate", "y", &group]);
    assert!(is_there());
    lvm(&["lvremove", "--yes", &mine]);
    let cleaned = cleaned();
    assert!(cleaned[0].left.is_empty(), "{cleaned:#?}");
    assert_eq!(state(directory.path(), &disks), before);
    // A person wrote to these disks, so what is left there is not the run's to erase.
    assert_eq!(cleaned[0].not_ours.len(), disks.len(), "{cleaned:#?}");
    disks.iter().for_each(|disk| zero(disk));
    assert_all_empty(&disks, "zeroing");
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn a_thin_pool_that_is_half_full_is_not_kept() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let specs = [layout(
        "full",
        &disks[..1],
        volume(1, 0, true),
        LayoutKind::Raw,
    )];
    let provision = carry_out(directory.path(), &specs);
    let PlacementTarget::Devices(devices) = &provision.layouts()[0].as_ref().unwrap().target else {
        panic!("it is raw");
    };
    let file = fs::OpenOptions::new()
        .write(true)
        .open(devices[0].path())
        .unwrap();
    for mebibyte in 0..(devices[0].bytes >> 20) * 6 / 10 {
        std::os::unix::fs::FileExt::write_all_at(&file, &[5; 1 << 20], mebibyte << 20).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let told = provision.keep(0).unwrap_err().to_string();
    assert!(told.contains("% full"), "{told}");
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_all_empty(&disks, "a full pool");
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn dm_delay_slows_what_lies_beneath_a_layout() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let delay = |read_ms: u64, flush_ms: u64| {
        Some(Delay {
            read_us: read_ms * 1000,
            write_us: 0,
            flush_us: flush_ms * 1000,
        })
    };
    let mut specs = [
        layout("raw", &disks[..1], None, LayoutKind::Raw),
        layout("ext4", &disks[1..2], None, file_system("ext4")),
        layout(
            "ext4 on stripes",
            &disks[2..],
            volume(2, 0, false),
            file_system("ext4"),
        ),
    ];
    specs[0].delay = delay(200, 0);
    specs[1].delay = delay(0, 300);
    specs[2].delay = delay(0, 300);
    let provision = carry_out(directory.path(), &specs);
    let made = |index: usize| {
        let made = provision.layouts()[index].as_ref();
        let made = made.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(made.delayed_by, Some(DelayedBy::DeviceMapper));
        made.target.clone()
    };
    let timed = |work: &dyn Fn()| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    let PlacementTarget::Devices(devices) = made(0) else {
        panic!("it is raw");
    };
    // Lower bounds only: the machine is slow. A tick of the kernel's clock may be missing.
    let read = timed(&|| {
        let file = fs::File::open(devices[0].path()).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut [0; 4096], 8 << 20).unwrap();
    });
    assert!(read >= Duration::from_millis(190), "{read:?}");
    for index in [1, 2] {
        let PlacementTarget::Directory(path) = made(index) else {
            panic!("a file system");
        };
        // The file system's own journal waits, too: a new name is nothing that the database would write.
        let synced = timed(&|| {
            fs::create_dir(path.join("made")).unwrap();
            fs::File::open(&path).unwrap().sync_all().unwrap();
        });
        assert!(synced >= Duration::from_millis(290), "{index}: {synced:?}");
        eprintln!("delayed: {}, {synced:?}", specs[index].name);
    }
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(state(directory.path(), &disks), before);
    assert_all_empty(&disks, "delays");
}

fn shared(disks: &[PathBuf]) -> Vec<LayoutSpec> {
    let mut specs = vec![
        layout("volume", disks, volume(4, 0, false), file_system("ext4")),
        layout("raw", disks, None, LayoutKind::Raw),
    ];
    for spec in &mut specs {
        spec.share = Some(DeviceSharing::Fair);
    }
    specs
}

#[test]
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn a_volume_of_partitions_beside_raw_ones() {
    let disks = disks();
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
#[ignore = "a process that another test starts and kills"]
fn child() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let disks = disks();
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
#[ignore = "needs empty disks and device-mapper: make test-vm"]
fn nothing_is_left_of_volumes_whose_run_was_killed() {
    let disks = disks();
    let directory = tempfile::tempdir().unwrap();
    let before = state(directory.path(), &disks);
    let start = || {
        spindle_harness::child!(child)
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let began = Instant::now();
    let mut child = start();
    let calls = seen_lvm(&mut child, usize::MAX);
    assert!(child.wait().unwrap().success());
    let whole = began.elapsed();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    let kills = std::env::var(ASKED_KILLS).map_or(KILLS, |kills| kills.parse().unwrap());
    for kill in 0..kills {
        let drawn = random.next_u64();
        let began = Instant::now();
        let mut child = start();
        // LVM goes on when the run is dead.
        let in_lvm = match kill % 2 {
            0 => Some(seen_lvm(&mut child, 1 + drawn as usize % calls)),
            _ => {
                let after = Duration::from_micros(drawn % (whole.as_micros() as u64));
                std::thread::sleep(after);
                None
            }
        };
        let after = began.elapsed();
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(
            status.success() || status.signal() == Some(9),
            "kill {kill}: it failed by itself: {status}"
        );
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
            "killed after {after:?} of {whole:?}, in call {in_lvm:?} of {calls} of LVM, {} things removed",
            cleaned.len()
        );
    }
}

/// Waits until a run has called LVM so often, or has ended; how often it has.
fn seen_lvm(run: &mut Child, calls: usize) -> usize {
    let tasks = PathBuf::from(format!("/proc/{}/task", run.id()));
    let mut seen = BTreeSet::new();
    while seen.len() < calls && run.try_wait().unwrap().is_none() {
        let threads = fs::read_dir(&tasks).into_iter().flatten().flatten();
        let children =
            threads.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let children: String = children.collect();
        seen.extend(children.split_whitespace().filter_map(|process| {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
            (name.trim() == "lvm").then(|| process.to_owned())
        }));
        std::thread::sleep(Duration::from_millis(2));
    }
    seen.len()
}

/// A tool that was at work when its run was killed ends by itself, and the run counts as alive until then.
fn clean_when_dead(ledgers: &Path) -> Vec<String> {
    let began = Instant::now();
    loop {
        let cleaned = clean(ledgers, &SystemTree::default(), false, None).unwrap();
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
