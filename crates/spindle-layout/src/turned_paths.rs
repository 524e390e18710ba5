//! Proof that a device stays the same from the look at it to its release: in each moment of making a layout, using it
//! and taking it away, the path that names its device is turned to another one, or its number is given to another file.
//! The other device must stay as it was, byte for byte, and the layout must stand on the first one or be refused.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::moment::with_hook;
use crate::spec::{DeviceSharing, DeviceSpec, FileSystemSpec, LayoutKind, Preparation, VolumeSpec};
use crate::tool::{Tools, argument, find};
use crate::{Facts, LayoutSpec, Ledger, PlacementTarget, Provision, ProvisionPlan};
use spindle_system::SystemTree;

const MIB: u64 = 1 << 20;

/// A loop device over its own file.
struct Disk {
    path: PathBuf,
    file: PathBuf,
}

impl Disk {
    fn new(file: PathBuf, size_bytes: u64) -> Disk {
        File::create(&file).unwrap().set_len(size_bytes).unwrap();
        let path = tool(
            "losetup",
            &["--find", "--show", "--partscan", argument(&file)],
        );
        Disk {
            path: path.into(),
            file,
        }
    }

    fn number(&self) -> u64 {
        self.path.metadata().unwrap().rdev()
    }

    fn is_attached(&self) -> bool {
        stands_on(&self.path, &self.file)
    }

    /// Attaches it to a loop device again, to the same one if no other process took that meanwhile.
    fn attach_again(&mut self) {
        let arguments = ["--partscan", argument(&self.path), argument(&self.file)];
        if Tools::new().run("losetup", &arguments).is_err() {
            let arguments = ["--find", "--show", "--partscan", argument(&self.file)];
            self.path = tool("losetup", &arguments).into();
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_attached() {
            let _ = Tools::new().run("losetup", &["--detach", argument(&self.path)]);
        }
    }
}

/// Whether this loop device stands on that file now.
fn stands_on(device: &Path, file: &Path) -> bool {
    let name = device.file_name().unwrap();
    let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
    let found = fs::read_to_string(backing).unwrap_or_default();
    Path::new(found.trim()) == file
}

/// Runs a tool that must succeed. Others look at every loop device now and then, and have it open for a moment.
fn tool(program: &str, arguments: &[&str]) -> String {
    for _ in 0..50 {
        match Tools::new().run(program, arguments) {
            Ok(said) => return said,
            Err(error) => eprintln!("{program} {arguments:?}: {error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{program} {arguments:?} never succeeded");
}

/// What another program does in a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Attack {
    /// Turns the link that names the device.
    TurnsTheLink,
    /// Detaches the loop device and attaches it to another file, which then has its number.
    GivesTheNumberAway,
}

/// What happened when the attack came in one moment.
struct Outcome {
    /// How many moments there were.
    moments: u32,
    /// Why the layouts were refused, if they were.
    refused: Option<String>,
    /// What could not be removed.
    left: Vec<String>,
}

struct Scene {
    /// What the experiment means.
    first: Disk,
    /// Bears bytes that must not be lost, and no signature that would stop Spindle.
    other: Disk,
    link: PathBuf,
    precious: Vec<u8>,
    /// A number that is given away must not be taken by another of these tests.
    _alone: MutexGuard<'static, ()>,
    /// Goes last: a loop device is known by its file's name.
    directory: tempfile::TempDir,
}

impl Scene {
    fn new(size_bytes: u64) -> Scene {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // In memory, where there is such a place: nothing waits for a disk.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let directory = directory.unwrap();
        let path = directory.path().canonicalize().unwrap();
        let first = Disk::new(path.join("first"), size_bytes);
        let other = Disk::new(path.join("other"), size_bytes);
        let precious: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8 | 1).collect();
        let device = OpenOptions::new().write(true).open(&other.file).unwrap();
        for at in [0, size_bytes / 2, size_bytes - MIB] {
            device.write_all_at(&precious, at).unwrap();
        }
        device.sync_all().unwrap();
        let precious = fs::read(&other.file).unwrap();
        let link = path.join("link");
        Scene {
            directory,
            first,
            other,
            link,
            precious,
            _alone: alone,
        }
    }

    fn turn_to(&self, disk: &Disk) {
        turn(&self.link, &disk.path);
    }

    /// Makes layouts, uses them and takes them away; the attack comes in the moment of this number.
    fn suffer(&mut self, specs: &[LayoutSpec], attack: Attack, at: u32) -> Outcome {
        if !self.first.is_attached() {
            // The last attack took it away.
            self.first.attach_again();
        }
        self.turn_to(&self.first);
        tool("blkdiscard", &["--force", argument(&self.first.path)]);
        if !specs[0].erase.is_empty() {
            tool("mkfs.ext4", &["-q", argument(&self.first.path)]);
        }
        let moments = Rc::new(Cell::new(0));
        let told = Rc::new(RefCell::new(String::new()));
        let (count, name) = (Rc::clone(&moments), Rc::clone(&told));
        let (link, other) = (self.link.clone(), self.other.path.clone());
        let (device, file) = (self.first.path.clone(), self.other.file.clone());
        let hook = move |what: &str| {
            count.set(count.get() + 1);
            if count.get() != at {
                return;
            }
            name.replace(what.to_owned());
            match attack {
                Attack::TurnsTheLink => turn(&link, &other),
                Attack::GivesTheNumberAway => {
                    let tools = Tools::new();
                    let _ = tools.run("losetup", &["--detach", argument(&device)]);
                    let _ = tools.run("losetup", &[argument(&device), argument(&file)]);
                }
            }
        };
        let (refused, left) = with_hook(hook, || self.make_and_take_away(specs));
        let moment = format!("{attack:?} in moment {at} ({})", told.borrow());
        // Another program may have been faster: then the number is not ours to detach.
        if attack == Attack::GivesTheNumberAway && stands_on(&self.first.path, &self.other.file) {
            let _ = Tools::new().run("losetup", &["--detach", argument(&self.first.path)]);
        }
        let now = fs::read(&self.other.file).unwrap();
        assert!(
            now == self.precious,
            "{moment}: the other device was written to"
        );
        Outcome {
            moments: moments.get(),
            refused,
            left,
        }
    }

    /// The system, but for other processes: only the tests know these devices, and who has a device open is asked many
    /// times over. (`provision/in_use.rs` is about processes.)
    fn tree(&self) -> SystemTree {
        let proc = self.directory.path().join("proc");
        if fs::create_dir(&proc).is_ok() {
            for entry in fs::read_dir("/proc").unwrap().flatten() {
                let name = entry.file_name();
                if name
                    .to_str()
                    .is_some_and(|name| name.parse::<u32>().is_err())
                {
                    symlink(entry.path(), proc.join(name)).unwrap();
                }
            }
        }
        SystemTree::default().with_proc(proc)
    }

    fn make_and_take_away(&self, specs: &[LayoutSpec]) -> (Option<String>, Vec<String>) {
        let tree = self.tree();
        let ledgers = self.directory.path().join("ledgers");
        let run = format!(
            "turned-{}",
            self.directory.path().file_name().unwrap().display()
        );
        let ledger = Arc::new(Ledger::begin(&ledgers, &run, &tree).unwrap());
        let mut facts = Facts::gather(specs, &tree);
        facts.mounts_under = self.directory.path().join("mounts");
        let plan = ProvisionPlan::of(specs, &facts, &run);
        let kept = Arc::clone(&ledger);
        let provision = Provision::carry_out(&plan, kept, &tree, &mut |_| {}).unwrap();
        let mut refused = None;
        for made in provision.layouts() {
            match made {
                Ok(made) => self.use_target(&made.target),
                Err(error) => refused = Some(error.to_string()),
            }
        }
        let left = provision.teardown();
        assert_eq!(ledger.entries(), [], "{left:?}");
        let nodes = fs::read_dir("/dev/spindle").into_iter().flatten().flatten();
        let nodes = nodes.filter(|entry| entry.file_name().to_string_lossy().starts_with(&run));
        assert_eq!(nodes.count(), 0, "device nodes stay");
        (refused, left)
    }

    /// Writes to what was made, which must be the first device or a part of it.
    fn use_target(&self, target: &PlacementTarget) {
        match target {
            PlacementTarget::Directory(directory) => {
                fs::write(directory.join("data1"), vec![7; MIB as usize]).unwrap();
                let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
                let at = directory.to_str().unwrap();
                let line = mounts.lines().find(|line| line.contains(at)).unwrap();
                self.must_be_first(Path::new(line.split(' ').next().unwrap()));
            }
            PlacementTarget::Devices(devices) => {
                for device in devices {
                    self.must_be_first(device.path());
                    let opened = device.device.open_file(OpenOptions::new().write(true));
                    let file = opened.unwrap();
                    file.write_all_at(&[7; 4096], 3 * MIB).unwrap();
                    file.sync_all().unwrap();
                }
            }
            PlacementTarget::DiskGroup(group) => panic!("{group:?} is made by the program"),
        }
    }

    fn must_be_first(&self, path: &Path) {
        let number = path.metadata().unwrap().rdev();
        let tree = SystemTree::default();
        let name = tree.kernel_name(path).unwrap();
        let first = self.first.path.file_name().unwrap().to_str().unwrap();
        let is_first = number == self.first.number() || name.starts_with(&format!("{first}p"));
        assert!(is_first, "{} is not the first device", path.display());
    }

    fn layout(&self, kind: LayoutKind) -> LayoutSpec {
        LayoutSpec {
            name: "it".to_owned(),
            devices: vec![DeviceSpec::Existing(self.link.clone())],
            volume: None,
            kind,
            share: None,
            erase: Vec::new(),
            preparation: Preparation::default(),
            delay: None,
        }
    }
}

fn turn(link: &Path, to: &Path) {
    let new = link.with_extension("new");
    symlink(to, &new).unwrap();
    fs::rename(new, link).unwrap();
}

fn file_system(type_name: &str) -> LayoutKind {
    // What each needs for a device of 16 MiB: all of it is read again and again.
    let small: &[&str] = match type_name {
        "xfs" => &["--unsupported"],
        "btrfs" => &["--mixed"],
        _ => &[],
    };
    LayoutKind::FileSystem(FileSystemSpec {
        type_name: type_name.to_owned(),
        mkfs_options: small.iter().map(ToString::to_string).collect(),
        mount_options: String::new(),
    })
}

/// Every attack in every moment of making, using and taking away; `specs` says what is made.
fn in_every_moment(size_bytes: u64, tools: &[&str], specs: impl Fn(&mut Scene) -> Vec<LayoutSpec>) {
    let is_missing = |tool: &&&str| find(tool).is_none();
    let missing: Vec<&&str> = tools.iter().filter(is_missing).collect();
    if !rustix::process::geteuid().is_root() || !missing.is_empty() {
        spindle_harness::skip(format_args!("turned paths need root and {tools:?}"));
        return;
    }
    for attack in [Attack::TurnsTheLink, Attack::GivesTheNumberAway] {
        let mut scene = Scene::new(size_bytes);
        let specs = specs(&mut scene);
        let peace = scene.suffer(&specs, attack, 0);
        assert_eq!(peace.refused, None, "without an attack it is made");
        assert_eq!(peace.left, Vec::<String>::new());
        assert!(peace.moments > 10, "{} moments", peace.moments);
        let (mut made, mut refused) = (0, 0);
        for at in 1..=peace.moments {
            match scene.suffer(&specs, attack, at).refused {
                None => made += 1,
                Some(_) => refused += 1,
            }
        }
        // The first moments come before the device is held, the last ones after it was made.
        assert!(made > 0 && refused > 0, "{made} made, {refused} refused");
    }
}

const TOOLS: [&str; 5] = ["losetup", "blkid", "wipefs", "blockdev", "blkdiscard"];

#[test]
fn an_empty_device_is_not_taken_in_place_of_the_one_that_was_looked_at() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    in_every_moment(16 * MIB, &TOOLS, |scene| {
        // Nothing on it would stop Spindle.
        let other = OpenOptions::new()
            .write(true)
            .open(&scene.other.file)
            .unwrap();
        other.set_len(0).unwrap();
        other.set_len(16 * MIB).unwrap();
        scene.precious.fill(0);
        vec![scene.layout(LayoutKind::Raw)]
    });
}

#[test]
fn a_raw_device_stays_the_same() {
    in_every_moment(16 * MIB, &TOOLS, |scene| {
        vec![scene.layout(LayoutKind::Raw)]
    });
}

#[test]
fn a_device_of_a_disk_group_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    in_every_moment(16 * MIB, &TOOLS, |scene| {
        vec![scene.layout(LayoutKind::DiskGroup)]
    });
}

#[test]
fn a_device_that_is_erased_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    in_every_moment(16 * MIB, &[&TOOLS[..], &["mkfs.ext4"]].concat(), |scene| {
        let mut raw = scene.layout(LayoutKind::Raw);
        raw.erase = vec![scene.first.path.display().to_string()];
        vec![raw]
    });
}

#[test]
fn a_preconditioned_device_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    in_every_moment(16 * MIB, &[&TOOLS[..], &["mkfs.ext4"]].concat(), |scene| {
        let mut ext4 = scene.layout(file_system("ext4"));
        ext4.preparation = Preparation {
            discard: true,
            overwrite_passes: 1,
        };
        vec![ext4]
    });
}

#[test]
fn a_device_under_ext4_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    in_every_moment(16 * MIB, &[&TOOLS[..], &["mkfs.ext4"]].concat(), |scene| {
        vec![scene.layout(file_system("ext4"))]
    });
}

#[test]
fn a_device_under_xfs_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    in_every_moment(16 * MIB, &[&TOOLS[..], &["mkfs.xfs"]].concat(), |scene| {
        vec![scene.layout(file_system("xfs"))]
    });
}

#[test]
fn a_device_under_btrfs_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let tools = [&TOOLS[..], &["mkfs.btrfs"]].concat();
    in_every_moment(16 * MIB, &tools, |scene| {
        vec![scene.layout(file_system("btrfs"))]
    });
}

#[test]
fn a_device_that_is_cut_stays_the_same() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let tools = [&TOOLS[..], &["sfdisk", "partx"]].concat();
    in_every_moment(72 * MIB, &tools, |scene| {
        let shared = ["one", "two"].map(|name| LayoutSpec {
            name: name.to_owned(),
            share: Some(DeviceSharing::Fair),
            ..scene.layout(LayoutKind::Raw)
        });
        shared.to_vec()
    });
}

#[test]
#[ignore = "needs device-mapper: make test-vm"]
fn a_device_of_a_volume_stays_the_same() {
    let tools = [&TOOLS[..], &["mkfs.ext4", "lvm"]].concat();
    in_every_moment(64 * MIB, &tools, |scene| {
        let mut volume = scene.layout(file_system("ext4"));
        volume.volume = Some(VolumeSpec {
            stripes: 1,
            stripe_size_bytes: 64 << 10,
            mirrors: 0,
            thin: false,
        });
        vec![volume]
    });
}

/// Data appear on the device between the look at it and the first write: it is refused, and nothing of theirs goes when
/// the refused layout is removed.
#[test]
fn data_that_appear_while_a_device_is_claimed_stay() {
    if !spindle_harness::is_root_or_skip("a loop device") {
        return;
    }
    let scene = Scene::new(16 * MIB);
    let theirs = vec![0x5a; 16 * MIB as usize];
    let (device, bytes) = (scene.first.path.clone(), theirs.clone());
    let plants = move |what: &str| {
        if what == "noted" {
            let device = OpenOptions::new().write(true).open(&device).unwrap();
            device.write_all_at(&bytes, 0).unwrap();
            device.sync_all().unwrap();
        }
    };
    let specs = [LayoutSpec {
        devices: vec![DeviceSpec::Existing(scene.first.path.clone())],
        ..scene.layout(LayoutKind::Raw)
    }];
    let tree = SystemTree::default();
    let ledgers = scene.directory.path().join("ledgers");
    let left = with_hook(plants, || {
        let ledger = Arc::new(Ledger::begin(&ledgers, "run", &tree).unwrap());
        let plan = ProvisionPlan::of(&specs, &Facts::gather(&specs, &tree), "run");
        let provision = Provision::carry_out(&plan, ledger, &tree, &mut |_| {}).unwrap();
        let refused = provision.layouts()[0].as_ref().unwrap_err().to_string();
        assert!(refused.contains("is not empty"), "{refused}");
        provision.teardown()
    });
    assert_eq!(left, Vec::<String>::new());
    assert!(fs::read(&scene.first.file).unwrap() == theirs);
}
