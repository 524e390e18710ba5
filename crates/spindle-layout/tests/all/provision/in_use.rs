//! Real devices that others use, in ways that `O_EXCL` does not tell: open in a process, mounted in another namespace,
//! reached by another stack of devices. Each is refused, in the plan too, also when the experiment names the device for
//! erasing; and not a byte is written.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use spindle_layout::guard::Refusal;
use spindle_layout::spec::LayoutKind;

use super::scene::{Disk, MIB, Scene, can_run, layout, plan_in, tool};

const TOOLS: [&str; 7] = [
    "losetup",
    "mkfs.ext4",
    "blkid",
    "wipefs",
    "sfdisk",
    "blockdev",
    "unshare",
];

/// A shell that does something, says so, and then sleeps until it is dropped.
pub struct Holder(Child);

impl Holder {
    pub fn new(script: &str) -> Holder {
        let script = format!("{script}\necho ready\nexec sleep 600");
        let mut child = Command::new("sh")
            .args(["-ec", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 6];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut said)
            .expect("the shell is ready");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The plan refuses, a run refuses, nothing is written; returns the plan's words.
pub fn refused(scene: &Scene, device: &Path, files: &[&str]) -> String {
    let read = || {
        files
            .iter()
            .map(|name| fs::read(scene.path().join(name)).unwrap())
            .collect::<Vec<_>>()
    };
    let before = read();
    let mut spec = layout(
        "it",
        vec![spindle_layout::spec::DeviceSpec::Existing(
            device.to_owned(),
        )],
        LayoutKind::Raw,
    );
    spec.erase = vec![device.display().to_string()];
    let plan = plan_in(scene.path(), std::slice::from_ref(&spec));
    let obstacles: Vec<String> = plan.layouts[0]
        .obstacles
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(obstacles.len(), 1, "{obstacles:?}");
    let provision = scene.carry_out(&[spec]);
    assert!(provision.layouts()[0].is_err());
    drop(provision);
    assert!(read() == before, "nothing was written");
    obstacles[0].clone()
}

pub fn attach(arguments: &[&str]) -> Disk {
    let arguments = [&["--find", "--show"], arguments].concat();
    Disk {
        path: PathBuf::from(tool("losetup", &arguments)),
    }
}

#[test]
fn a_device_that_a_process_has_open_is_refused() {
    if !can_run("a_device_that_a_process_has_open_is_refused", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let path = disk.path.display().to_string();
    for (redirect, words) in [
        ("3<>", "open for writing by sleep"),
        ("3<", "open for reading by sleep"),
    ] {
        let holder = Holder::new(&format!("exec {redirect}{path}"));
        let said = refused(&scene, &disk.path, &["disk"]);
        let pid = holder.0.id();
        assert!(
            said.contains(words) && said.contains(&format!("(process {pid})")),
            "{said}"
        );
    }
    // By a second node of the same number, in its own mount namespace.
    let node = scene.path().join("node");
    let script = format!("exec 3<>{}", node.display());
    let number = fs::read_to_string(format!(
        "/sys/class/block/{}/dev",
        disk.path.file_name().unwrap().display()
    ))
    .unwrap();
    let (major, minor) = number.trim().split_once(':').unwrap();
    tool("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let holder = Holder::new(&script);
    fs::remove_file(&node).unwrap();
    let said = refused(&scene, &disk.path, &["disk"]);
    assert!(said.contains("open for writing"), "{said}");
    drop(holder);
    assert!(disk.look(&[]).is_ok(), "free again");
}

#[test]
fn who_has_a_device_open_for_a_moment_is_waited_for() {
    if !can_run("who_has_a_device_open_for_a_moment_is_waited_for", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    // A moment becomes long on a busy machine: it is too long once, and not each time.
    let mut looks = (0..20).map(|_| {
        let holder = Holder::new(&format!("exec 3<{}", disk.path.display()));
        let ending = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            drop(holder);
        });
        let looked = disk.look(&[]);
        ending.join().unwrap();
        looked
    });
    assert!(looks.any(|looked| looked.is_ok()), "nobody waits");
}

#[test]
fn partitions_and_their_disk_count_for_each_other() {
    if !can_run("partitions_and_their_disk_count_for_each_other", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let table = scene.path().join("table");
    fs::write(&table, "label: gpt\nsize=20MiB\nsize=20MiB\n").unwrap();
    let run = format!(
        "sfdisk --quiet {} < {}",
        disk.path.display(),
        table.display()
    );
    tool("sh", &["-c", &run]);
    let part = |number: u32| PathBuf::from(format!("{}p{number}", disk.path.display()));
    // Kernels that read no GPT are told; the nodes appear a little later.
    let _ = Command::new("partx")
        .args(["--update", disk.path.to_str().unwrap()])
        .output();
    let is_node =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device());
    for _ in 0..3000 {
        if is_node(&part(1)) && is_node(&part(2)) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(is_node(&part(1)) && is_node(&part(2)), "partitions");
    let holder = Holder::new(&format!("exec 3<>{}", part(1).display()));
    for device in [&disk.path, &part(1)] {
        let said = refused(&scene, device, &["disk"]);
        assert!(said.contains("p1 is open for writing"), "{said}");
    }
    let beside = Disk { path: part(2) };
    assert!(beside.look(&[]).is_ok());
    std::mem::forget(beside);
    drop(holder);
    let holder = Holder::new(&format!("exec 3<>{}", disk.path.display()));
    let said = refused(&scene, &part(2), &["disk"]);
    assert!(said.contains("is open for writing"), "{said}");
    drop(holder);
}

#[test]
fn what_is_mounted_in_another_namespace_is_refused() {
    if !can_run("what_is_mounted_in_another_namespace_is_refused", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    tool("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let at = scene.path().join("at");
    fs::create_dir(&at).unwrap();
    let inside = format!(
        "mount -o ro,noload {} {} && echo ready && exec sleep 600",
        disk.path.display(),
        at.display()
    );
    let mut child = Command::new("unshare")
        .args(["-m", "sh", "-ec", &inside])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 6])
        .unwrap();
    let holder = Holder(child);
    let said = refused(&scene, &disk.path, &["disk"]);
    assert!(said.contains("is mounted on"), "{said}");
    drop(holder);
}

#[test]
fn what_lies_beneath_and_beside_a_loop_device_counts() {
    if !can_run("what_lies_beneath_and_beside_a_loop_device_counts", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let below = Disk::new(&scene, "disk", 160 * MIB);
    let file = scene.path().join("disk");
    tool("mkfs.ext4", &["-q", below.path.to_str().unwrap()]);
    let range = attach(&[
        "--offset",
        "80MiB",
        "--sizelimit",
        "64MiB",
        below.path.to_str().unwrap(),
    ]);
    let beside = attach(&[file.to_str().unwrap()]);
    let link = scene.path().join("link");
    fs::hard_link(&file, &link).unwrap();
    let by_link = attach(&[link.to_str().unwrap()]);
    let at = scene.path().join("at");
    fs::create_dir(&at).unwrap();
    tool(
        "mount",
        &[
            "-o",
            "ro",
            below.path.to_str().unwrap(),
            at.to_str().unwrap(),
        ],
    );
    let said = refused(&scene, &range.path, &["disk"]);
    tool("umount", &[at.to_str().unwrap()]);
    let name = below.path.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(&format!("{name} is mounted on")), "{said}");
    for device in [&below.path, &beside.path, &by_link.path] {
        let said = refused(&scene, device, &["disk"]);
        assert!(said.contains("the file is part of loop"), "{said}");
    }
    drop((beside, by_link));
    let holder = Holder::new(&format!("exec 3<>{}", file.display()));
    let said = refused(&scene, &range.path, &["disk"]);
    assert!(
        said.contains("the file is open for writing by sleep"),
        "{said}"
    );
    drop(holder);
    assert!(
        matches!(range.look(&[]), Ok(_) | Err(Refusal::NotEmpty { .. })),
        "free again"
    );
    drop(range);
}

#[test]
fn one_storage_under_two_names_is_refused() {
    if !can_run("one_storage_under_two_names_is_refused", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let alias = scene.path().join("alias");
    std::os::unix::fs::symlink(&disk.path, &alias).unwrap();
    let named = |name: &str, path: &Path| {
        let device = spindle_layout::spec::DeviceSpec::Existing(path.to_owned());
        layout(name, vec![device], LayoutKind::Raw)
    };
    let plan = plan_in(
        scene.path(),
        &[named("one", &disk.path), named("two", &alias)],
    );
    for layout in &plan.layouts {
        let said = layout.obstacles[0].to_string();
        assert!(said.contains("come down to the same bytes"), "{said}");
    }
}

#[test]
fn the_plan_says_what_a_run_would_find() {
    if !can_run("the_plan_says_what_a_run_would_find", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let mut alone = fs::OpenOptions::new();
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    let alone = std::os::unix::fs::OpenOptionsExt::custom_flags(alone.read(true), exclusive);
    // This very process is no holder by its descriptors.
    let held = alone.open(&disk.path).unwrap();
    let said = refused(&scene, &disk.path, &["disk"]);
    assert!(said.contains("O_EXCL"), "{said}");
    drop(held);
    let spec = layout("it", vec![scene.file("disk", 64 * MIB)], LayoutKind::Raw);
    let plan = plan_in(scene.path(), &[spec]);
    let said = plan.layouts[0].obstacles[0].to_string();
    assert!(said.contains("exists already"), "{said}");
}
