//! Devices of a run that became others since they were looked at: a path that was turned, and a number that was given
//! to another file. Whatever opens them for the run or for a trial is refused, and the other device stays as it was. On
//! loop devices, as root; without root these tests say so and do nothing.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spindle_io::real::{Caching, FileError, Queue, block_on};
use spindle_layout::tool::Tools;
use spindle_layout::{
    DatabaseFiles, FileManager, GoldenTree, Image, ImageSpec, KnownDevice, LayoutError, Opening,
    Place, Placement, PlacementTarget, RawDevice, RawFile, RawSpace, TreeDirectories, TreeImage,
    TreeSite, Verify, create_file,
};

use crate::restore::{golden, shape};

const MIB: u64 = 1 << 20;
const DEVICE_BYTES: u64 = 16 * MIB;

/// A loop device over its own file; let go when the test ends, if it is still that.
struct Disk {
    path: PathBuf,
    file: PathBuf,
}

impl Disk {
    fn new(file: PathBuf, byte: u8) -> Disk {
        fs::write(&file, vec![byte; DEVICE_BYTES as usize]).unwrap();
        let arguments = ["--find", "--show", file.to_str().unwrap()];
        let path = Tools::new().run("losetup", &arguments).unwrap();
        Disk {
            path: path.into(),
            file,
        }
    }

    /// Lets it stand on another file. Another program may take a number that is free for a moment.
    fn stand_on(&self, file: &Path) {
        let (tools, path) = (Tools::new(), self.path.to_str().unwrap());
        for _ in 0..100 {
            if stands_on(&self.path, file) {
                return;
            }
            if stands_on(&self.path, &self.file) {
                let _ = tools.run("losetup", &["--detach", path]);
            }
            let _ = tools.run("losetup", &[path, file.to_str().unwrap()]);
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{path} is not free");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if stands_on(&self.path, &self.file) {
            let _ = Tools::new().run("losetup", &["--detach", self.path.to_str().unwrap()]);
        }
    }
}

fn stands_on(device: &Path, file: &Path) -> bool {
    let name = device.file_name().unwrap().to_str().unwrap();
    let backing = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    backing.is_ok_and(|found| Path::new(found.trim()) == file)
}

/// How a device becomes another.
#[derive(Debug, Clone, Copy)]
enum Attack {
    TurnsThePath,
    GivesTheNumberAway,
}

/// A device that the run has looked at, and one that nobody may lose.
struct Scene {
    first: Disk,
    other: Disk,
    link: PathBuf,
    directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = directory.path().canonicalize().unwrap();
        let first = Disk::new(path.join("first"), 0);
        let other = Disk::new(path.join("other"), 0x5A);
        let link = path.join("link");
        symlink(&first.path, &link).unwrap();
        Scene {
            first,
            other,
            link,
            directory,
        }
    }

    fn raw(&self) -> RawDevice {
        RawDevice::look(&self.link, DEVICE_BYTES).unwrap()
    }

    /// After the attack `what` must be refused, and nobody harmed.
    fn suffer(
        mut self,
        attack: Attack,
        what: &str,
        work: impl FnOnce() -> Result<(), LayoutError>,
    ) {
        match attack {
            Attack::TurnsThePath => {
                fs::remove_file(&self.link).unwrap();
                symlink(&self.other.path, &self.link).unwrap();
            }
            Attack::GivesTheNumberAway => {
                // Two devices on one file would know nothing of each other's pages.
                Tools::new()
                    .run("losetup", &["--detach", self.other.path.to_str().unwrap()])
                    .unwrap();
                self.first.stand_on(&self.other.file);
                self.first.file = self.other.file.clone();
            }
        }
        match work() {
            Err(LayoutError::File(error @ FileError::Other { .. })) => {
                let (told, link) = (error.to_string(), self.link.display().to_string());
                assert!(told.contains(&link), "{attack:?}, {what}: {told}");
            }
            Err(error) => panic!("{attack:?}, {what}: refused for another reason: {error}"),
            Ok(()) => panic!("{attack:?}, {what}: the other device was taken"),
        }
        let _ = fs::File::open(&self.link).unwrap().sync_all();
        let bytes = fs::read(&self.other.file).unwrap();
        let is_untouched = bytes.iter().all(|byte| *byte == 0x5A);
        assert!(is_untouched, "{attack:?}, {what}: it was written to");
    }
}

fn is_skipped() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        spindle_harness::skip("loop devices are root's");
    }
    !is_root
}

const ATTACKS: [Attack; 2] = [Attack::TurnsThePath, Attack::GivesTheNumberAway];

/// What a run and its trials do with a device, beginning with opening it.
fn works(raw: RawDevice, directory: &Path) -> Vec<(&'static str, Work)> {
    let region = Place::Region {
        device: raw.device.clone(),
        first_byte: MIB,
        bytes: MIB,
    };
    let grouped = Place::GroupFile {
        disks: vec![raw.device.clone()],
        file: "data1".to_owned(),
        bytes: MIB,
        fine_stripes: false,
        preferred_failure_group: None,
    };
    let open = |place: Place| -> Work {
        Box::new(move || {
            let mut opening = Opening::new();
            let opened = opening.open(&place, Caching::Direct, Queue::sync(), None);
            block_on(opened).map(drop)
        })
    };
    let make = |place: Place| -> Work {
        Box::new(move || {
            create_file(FileManager::Plain, &place, MIB, |_, piece| {
                piece.fill(1);
                Ok(())
            })
        })
    };
    let (known, target) = (
        raw.device.clone(),
        PlacementTarget::Devices(vec![raw.clone()]),
    );
    let golden = golden_tree(directory);
    let image = tree_directories(directory, "image");
    vec![
        ("opening a region", open(region.clone())),
        ("mounting a group", open(grouped.clone())),
        ("making a region", make(region)),
        ("making a file of a group", make(grouped)),
        (
            "opening it for writing",
            Box::new(move || known.open_file(OpenOptions::new().write(true)).map(drop)),
        ),
        ("looking again", Box::new(move || target.check_devices())),
        (
            "a server's datafile",
            Box::new(move || {
                TreeImage::provision(
                    &golden,
                    TreeSite {
                        raw: vec![file_on(raw)],
                        ..image.into()
                    },
                )
                .map(drop)
            }),
        ),
    ]
}

type Work = Box<dyn FnOnce() -> Result<(), LayoutError>>;

fn tree_directories(place: &Path, name: &str) -> TreeDirectories {
    let root = place.join(name);
    fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    directories
}

fn golden_tree(place: &Path) -> Arc<GoldenTree> {
    let golden = tree_directories(place, "golden tree");
    fs::write(golden.data.join("ibdata1"), vec![7; MIB as usize]).unwrap();
    GoldenTree::seal(golden, &Arc::default()).unwrap()
}

fn file_on(device: RawDevice) -> RawFile {
    RawFile {
        name: "ibdata1".to_owned(),
        bytes: MIB,
        device,
    }
}

#[test]
fn another_device_is_not_opened_whoever_opens_it() {
    if is_skipped() {
        return;
    }
    for attack in ATTACKS {
        let count = {
            let scene = Scene::new();
            works(scene.raw(), scene.directory.path()).len()
        };
        for number in 0..count {
            let scene = Scene::new();
            let mut works = works(scene.raw(), scene.directory.path());
            let (what, work) = works.swap_remove(number);
            scene.suffer(attack, what, work);
        }
    }
}

#[test]
fn a_database_is_not_put_back_on_another_device() {
    if is_skipped() {
        return;
    }
    for attack in ATTACKS {
        let scene = Scene::new();
        let golden = golden(scene.directory.path());
        let placement = Placement::one(&PlacementTarget::Devices(vec![scene.raw()]));
        let files = DatabaseFiles::place(&shape(), &placement, &mut RawSpace::default()).unwrap();
        let manager = FileManager::Plain;
        let image = Image::provision(
            &golden,
            ImageSpec {
                files,
                manager,
                originals: None,
            },
        )
        .unwrap();
        image.restore(None, Verify::Full).unwrap();
        let work = || image.restore(None, Verify::Full).map(drop);
        scene.suffer(attack, "putting regions back", work);
    }
    // A server's node bears the number, whatever the path means.
    let scene = Scene::new();
    let (golden, to) = (
        golden_tree(scene.directory.path()),
        tree_directories(scene.directory.path(), "image"),
    );
    let image = TreeImage::provision(
        &golden,
        TreeSite {
            raw: vec![file_on(scene.raw())],
            ..to.into()
        },
    )
    .unwrap();
    image.restore(Verify::Full).unwrap();
    let work = || image.restore(Verify::Full).map(drop);
    scene.suffer(
        Attack::GivesTheNumberAway,
        "putting a server's file back",
        work,
    );
}

#[test]
fn a_block_device_that_nobody_has_looked_at_is_not_opened() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new();
    let (path, caching) = (&scene.other.path, Caching::Direct);
    let opened = spindle_io::real::FileDevice::open(path, caching, Queue::sync());
    assert!(matches!(opened, Err(FileError::NotLookedAt { .. })));
    let identified = spindle_io::real::identify(path, caching);
    assert!(matches!(identified, Err(FileError::NotLookedAt { .. })));
    let known = KnownDevice::look(path).unwrap();
    known.open(caching, Queue::sync()).unwrap();
}
