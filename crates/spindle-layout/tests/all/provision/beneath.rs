//! Devices and files in use where no process shows it: the device beneath a loop device is mounted in a namespace
//! without processes, or no longer in any; a file is used through an overlay, where it has another identity.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use spindle_layout::guard::{Guard, Refusal, Want};
use spindle_layout::tool::Tools;
use spindle_system::SystemTree;

use super::in_use::{Holder, attach, refused};
use super::scene::{Disk, MIB, Scene, can_run, tool};

const TOOLS: [&str; 6] = [
    "losetup",
    "mkfs.ext4",
    "blkid",
    "wipefs",
    "unshare",
    "mount",
];

/// Mounts that end with the test, the last first.
#[derive(Default)]
struct Mounts(Vec<PathBuf>);

impl Mounts {
    /// Mounts with these arguments; the last is the mount point, relative paths are those of `directory`.
    fn add(&mut self, directory: &Path, arguments: &[&str]) {
        let mount = Command::new("mount")
            .args(arguments)
            .current_dir(directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&mount.stderr);
        assert!(mount.status.success(), "mount {arguments:?}: {said}");
        self.0.push(directory.join(arguments.last().unwrap()));
    }

    fn end_last(&mut self) {
        tool("umount", &[self.0.pop().unwrap().to_str().unwrap()]);
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        for point in self.0.iter().rev() {
            let _ = Command::new("umount").arg("--lazy").arg(point).status();
        }
    }
}

/// A disk with a file system, and a loop device on a range of it.
fn disk_and_range(scene: &Scene) -> (Disk, Disk) {
    let disk = Disk::new(scene, "disk", 200 * MIB);
    let path = disk.path.to_str().unwrap();
    // All is written at once: nothing changes by itself later.
    tool(
        "mkfs.ext4",
        &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", path],
    );
    let range = attach(&["--offset", "80MiB", "--sizelimit", "80MiB", path]);
    (disk, range)
}

fn name(disk: &Disk) -> &str {
    disk.path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn a_mount_that_was_taken_out_of_its_place_counts() {
    if !can_run("a_mount_that_was_taken_out_of_its_place_counts", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let (disk, range) = disk_and_range(&scene);
    let mut mounts = Mounts::default();
    fs::create_dir(scene.path().join("at")).unwrap();
    for (hold, words) in [
        (
            "exec 3<>at/file",
            format!("a file on {} is open for writing by sleep", name(&disk)),
        ),
        // No file is open, but the directory of the process is there.
        (
            "cd at",
            format!("the kernel gives {}, which lies beneath", name(&disk)),
        ),
    ] {
        mounts.add(scene.path(), &[disk.path.to_str().unwrap(), "at"]);
        fs::write(scene.path().join("at/file"), "x").unwrap();
        let holder = Holder::new(&format!("cd {}\n{hold}", scene.path().display()));
        tool(
            "umount",
            &["--lazy", mounts.0.pop().unwrap().to_str().unwrap()],
        );
        // What was written goes to the disk.
        rustix::fs::sync();
        let said = refused(&scene, &range.path, &["disk"]);
        assert!(said.contains(&words), "{said}");
        drop(holder);
    }
}

#[test]
fn a_mount_in_a_namespace_without_processes_counts() {
    if !can_run("a_mount_in_a_namespace_without_processes_counts", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let (disk, range) = disk_and_range(&scene);
    let mut mounts = Mounts::default();
    for directory in ["at", "namespaces"] {
        fs::create_dir(scene.path().join(directory)).unwrap();
    }
    mounts.add(
        scene.path(),
        &["--bind", "--make-private", "namespaces", "namespaces"],
    );
    let namespace = scene.path().join("namespaces/one");
    fs::write(&namespace, "").unwrap();
    let kept = format!("--mount={}", namespace.display());
    let inside = format!(
        "mount {} {}",
        disk.path.display(),
        scene.path().join("at").display()
    );
    tool("unshare", &[&kept, "sh", "-ec", &inside]);
    mounts.0.push(namespace);
    rustix::fs::sync();
    let said = refused(&scene, &range.path, &["disk"]);
    let words = format!("the kernel gives {}, which lies beneath", name(&disk));
    assert!(said.contains(&words), "{said}");
}

/// Looks at a file that may be erased.
fn look_at(file: &Path) -> Result<(), Refusal> {
    let (tree, tools) = (SystemTree::default(), Tools::new());
    Guard::new(&tree, &tools).look_at_file(file, true).map(drop)
}

/// Whether something is so within a minute.
fn soon(is_so: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let is_now = is_so();
        if is_now || Instant::now() > until {
            return is_now;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether nothing speaks against a file, soon. What this program has open, a tool that another test starts has open
/// for a moment as well; the mount namespace of another test keeps a copy of a mount until that test ends.
fn is_free(file: &Path) -> bool {
    soon(|| look_at(file).is_ok())
}

fn new_file(scene: &Scene, name: &str) -> PathBuf {
    let path = scene.path().join(name);
    fs::File::create(&path).unwrap().set_len(32 * MIB).unwrap();
    path
}

fn directories(scene: &Scene, names: &[&str]) {
    for name in names {
        fs::create_dir_all(scene.path().join(name)).unwrap();
    }
}

#[test]
fn a_file_of_a_layer_is_refused_and_one_of_the_overlay_is_not() {
    if !can_run(
        "a_file_of_a_layer_is_refused_and_one_of_the_overlay_is_not",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let mut mounts = Mounts::default();
    directories(
        &scene,
        &[
            "ov/low er",
            "ov/l:2",
            "ov/up,per/deep",
            "ov/work",
            "ov/all",
            "bound",
            "elsewhere/up,per",
        ],
    );
    let below = ["ov/low er/one", "ov/l:2/two", "ov/up,per/deep/three"];
    let below = below.map(|name| new_file(&scene, name));
    let free = ["beside", "elsewhere/up,per/four"].map(|name| new_file(&scene, name));
    let here = scene.path().display();
    for (directory, place) in [
        (scene.path(), String::new()),
        (Path::new("/"), format!("{here}/")),
    ] {
        let options = format!(
            "lowerdir={place}ov/low er:{place}ov/l\\:2,upperdir={place}ov/up\\,per,workdir={place}ov/work"
        );
        let at = scene.path().join("ov/all");
        mounts.add(
            directory,
            &[
                "-t",
                "overlay",
                "overlay",
                "-o",
                &options,
                at.to_str().unwrap(),
            ],
        );
        mounts.add(scene.path(), &["--bind", "ov/up,per/deep", "bound"]);
        let bound = scene.path().join("bound/three");
        for file in below.iter().chain([&bound]) {
            let said = look_at(file).unwrap_err().to_string();
            let words = format!("a layer of the overlay that is mounted on {here}/ov/all");
            assert!(said.contains(&words), "{said}");
        }
        for file in free.iter().chain([&scene.path().join("ov/all/deep/three")]) {
            assert!(is_free(file), "{:?}", look_at(file));
        }
        let holder = Holder::new(&format!("exec 3<>'{}'", below[0].display()));
        let said = look_at(&scene.path().join("ov/all/one")).unwrap_err();
        assert!(
            said.to_string().contains("open for writing by sleep"),
            "{said}"
        );
        drop(holder);
        mounts.end_last();
        mounts.end_last();
        assert!(below.iter().all(|file| is_free(file)), "free again");
    }
}

#[test]
fn an_overlay_that_comes_after_the_claim_is_seen_before_the_first_write() {
    if !can_run(
        "an_overlay_that_comes_after_the_claim_is_seen_before_the_first_write",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let mut mounts = Mounts::default();
    directories(&scene, &["low", "up", "work", "all"]);
    let file = new_file(&scene, "low/disk");
    let disk = attach(&[file.to_str().unwrap()]);
    let (tree, tools) = (SystemTree::default(), Tools::new());
    let guard = Guard::new(&tree, &tools);
    let want = Want {
        path: &disk.path,
        least_bytes: 0,
        erase: &[],
    };
    let taken = guard.claim(&want).unwrap();
    let options = "lowerdir=low,upperdir=up,workdir=work";
    let overlay = ["-t", "overlay", "overlay", "-o", options, "all"];
    mounts.add(scene.path(), &overlay);
    let said = guard.check_again(&taken, &want).unwrap_err().to_string();
    assert!(said.contains("a layer of the overlay"), "{said}");
    mounts.end_last();
    guard.check_again(&taken, &want).unwrap();
}

#[test]
fn an_overlay_over_its_own_layer_is_no_layer() {
    if !can_run("an_overlay_over_its_own_layer_is_no_layer", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let mut mounts = Mounts::default();
    directories(&scene, &["all", "upper", "work"]);
    let options = "lowerdir=all,upperdir=upper,workdir=work";
    mounts.add(
        scene.path(),
        &["-t", "overlay", "overlay", "-o", options, "all"],
    );
    let file = new_file(&scene, "all/one");
    assert!(is_free(&file));
    assert!(look_at(&scene.path().join("upper/one")).is_err());
}

#[test]
fn a_layer_above_the_directory_of_the_mount_command_is_found() {
    if !can_run(
        "a_layer_above_the_directory_of_the_mount_command_is_found",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let mut mounts = Mounts::default();
    let names = ["in/here", "lower", "in/upper", "in/work", "all", "work"];
    directories(&scene, &names);
    let file = new_file(&scene, "lower/one");
    let options = "lowerdir=../../lower,upperdir=../upper,workdir=../work";
    let at = scene.path().join("all");
    let arguments = [
        "-t",
        "overlay",
        "overlay",
        "-o",
        options,
        at.to_str().unwrap(),
    ];
    mounts.add(&scene.path().join("in/here"), &arguments);
    let said = look_at(&file).unwrap_err().to_string();
    assert!(said.contains("a layer of the overlay"), "{said}");
    let beside = new_file(&scene, "work/one");
    assert!(is_free(&beside), "no layer: {:?}", look_at(&beside));
}

#[test]
fn a_device_on_a_file_of_a_layer_is_refused() {
    if !can_run("a_device_on_a_file_of_a_layer_is_refused", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let mut mounts = Mounts::default();
    directories(&scene, &["lower", "upper", "work", "all", "at"]);
    new_file(&scene, "upper/disk");
    let options = "lowerdir=lower,upperdir=upper,workdir=work";
    mounts.add(
        scene.path(),
        &["-t", "overlay", "overlay", "-o", options, "all"],
    );
    let through = attach(&[scene.path().join("all/disk").to_str().unwrap()]);
    let path = through.path.to_str().unwrap();
    tool("mkfs.ext4", &["-q", path]);
    mounts.add(scene.path(), &["-o", "ro", path, "at"]);
    let direct = attach(&[scene.path().join("upper/disk").to_str().unwrap()]);
    let said = refused(&scene, &direct.path, &["upper/disk"]);
    assert!(said.contains("a layer of the overlay"), "{said}");
    mounts.end_last();
    // Tools of other tests may have the device open for a moment.
    let said = || through.look(&[]).map_err(|refusal| refusal.to_string());
    let is_part = || matches!(said(), Err(said) if said.contains("the file is part of loop"));
    assert!(soon(is_part), "{:?}", said());
    drop(direct);
    assert!(
        soon(|| matches!(through.look(&[]), Err(Refusal::NotEmpty { .. }))),
        "a device on a file of an overlay is judged as any: {:?}",
        said()
    );
}
