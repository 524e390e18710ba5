//! What goes wrong with one layout is said in its tool's words, and concerns it alone.

use std::sync::Arc;

use spindle_layout::guard::Permit;
use spindle_layout::spec::{LayoutKind, VolumeSpec};
use spindle_layout::{Facts, Ledger, Provision, ProvisionPlan, clean};
use spindle_system::DeviceMapper;
use spindle_system::SystemTree;

use super::making::target;
use super::scene::{Disk, MIB, RUN, Scene, can_run, file_system, layout};

const TOOLS: [&str; 3] = ["losetup", "mkfs.ext4", "blkid"];

#[test]
fn a_layout_that_fails_leaves_the_others() {
    if !can_run("a_layout_that_fails_leaves_the_others", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.state();
    let specs = [
        layout(
            "bad option",
            vec![scene.file("a", 32 * MIB)],
            file_system("ext4", &["-O", "no_such_feature"], ""),
        ),
        layout(
            "bad mount",
            vec![scene.file("b", 32 * MIB)],
            file_system("ext4", &[], "data=nonsense"),
        ),
        layout("too large", vec![scene.file("c", 1 << 60)], LayoutKind::Raw),
        layout(
            "not there",
            vec![spindle_layout::spec::DeviceSpec::Existing(
                "/dev/no-such-disk".into(),
            )],
            LayoutKind::Raw,
        ),
        layout(
            "no such type",
            vec![scene.file("d", 32 * MIB)],
            file_system("no-such-type", &[], ""),
        ),
        layout(
            "good",
            vec![scene.file("e", 32 * MIB)],
            file_system("ext4", &[], ""),
        ),
    ];
    let provision = scene.carry_out(&specs);
    let errors: Vec<String> = provision.layouts()[..5]
        .iter()
        .map(|made| made.as_ref().unwrap_err().to_string())
        .collect();
    let expected = [
        (
            "could not format ",
            "mkfs.ext4 ended with code 1 and said: Invalid filesystem option set: no_such_feature",
        ),
        (
            "could not mount it on ",
            "mount ended with code 32 and said: ",
        ),
        ("could not make the file ", "no room for 1,048,576 TiB in "),
        ("there is no device /dev/no-such-disk", "No such file"),
        ("mkfs.no-such-type is not installed", ""),
    ];
    for (error, (begin, inside)) in errors.iter().zip(expected) {
        assert!(
            error.starts_with(begin) && error.contains(inside),
            "{error}"
        );
    }
    target(&provision, 5);
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(scene.state(), before);
}

/// The plan says so. Without it LVM gets as far as the volume itself; where there is device-mapper, `volumes.rs` goes
/// on.
#[test]
fn a_volume_without_device_mapper_says_so_and_leaves_nothing() {
    let test = "a_volume_without_device_mapper_says_so_and_leaves_nothing";
    if !can_run(test, &["losetup", "lvm", "blkid"]) {
        return;
    }
    let devices = std::fs::read_to_string("/proc/devices").unwrap();
    if devices.contains("device-mapper")
        || std::path::Path::new("/lib/modules").join(kernel()).exists()
    {
        spindle_harness::skip(format_args!("{test} needs a kernel without device-mapper"));
        return;
    }
    let scene = Scene::new();
    let before = scene.state();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let mut spec = layout(
        "it",
        vec![disk.spec(), scene.file("b", 64 * MIB)],
        LayoutKind::Raw,
    );
    spec.volume = Some(VolumeSpec {
        stripes: 2,
        stripe_size_bytes: 64 << 10,
        mirrors: 0,
        thin: false,
    });
    let other = layout("other", vec![scene.file("c", 32 * MIB)], LayoutKind::Raw);
    let specs = [spec, other];
    let provision = scene.carry_out(&specs);
    let error = provision.layouts()[0].as_ref().unwrap_err().to_string();
    assert!(
        error.contains("modprobe dm-mod") && error.contains("CONFIG_BLK_DEV_DM"),
        "{error}"
    );
    target(&provision, 1);
    assert_eq!(provision.teardown(), Vec::<String>::new());

    let tree = SystemTree::default();
    let mut facts = Facts::gather(&specs, &tree);
    facts.device_mapper = DeviceMapper::Loaded;
    let plan = ProvisionPlan::of(&specs, &facts, RUN);
    let ledger = Ledger::begin(&scene.ledgers(), RUN, &tree).unwrap();
    let provision = Provision::carry_out(&plan, Arc::new(ledger), &tree, &mut |_| {}).unwrap();
    let error = provision.layouts()[0].as_ref().unwrap_err().to_string();
    assert!(
        error.starts_with("could not make a volume of 2 stripes of 64 KiB in "),
        "{error}"
    );
    assert!(
        error.contains("lvm ended with code ") && error.contains("device-mapper"),
        "{error}"
    );
    assert_eq!(provision.teardown(), Vec::<String>::new());
    assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
    drop(disk);
    std::fs::remove_file(scene.path().join("disk")).unwrap();
    assert_eq!(scene.state(), before);
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn a_file_that_exists_is_not_touched() {
    let scene = Scene::new();
    std::fs::write(scene.path().join("mine"), b"precious").unwrap();
    let before = scene.state();
    let provision = scene.carry_out(&[layout(
        "it",
        vec![scene.file("mine", 16 * MIB)],
        LayoutKind::Raw,
    )]);
    let error = provision.layouts()[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    drop(provision);
    assert_eq!(scene.state(), before);
    assert_eq!(
        std::fs::read(scene.path().join("mine")).unwrap(),
        b"precious"
    );
}

#[test]
fn what_is_busy_is_told_and_cleaned_later() {
    if !can_run("what_is_busy_is_told_and_cleaned_later", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.state();
    let provision = scene.carry_out(&[layout(
        "it",
        vec![scene.file("a", 32 * MIB)],
        file_system("ext4", &[], ""),
    )]);
    let spindle_layout::PlacementTarget::Directory(directory) = target(&provision, 0) else {
        panic!("a file system is a directory")
    };
    let open = std::fs::File::create(directory.join("open")).unwrap();
    let left = provision.teardown();
    assert!(
        left[0].contains("is still in use") && left.len() >= 3,
        "{left:?}"
    );
    drop(open);
    let clean = || clean(&scene.ledgers(), &SystemTree::default(), false, None).unwrap();
    let (mut cleaned, mut looks) = (clean(), 0);
    // What another test just starts has this one's files until it becomes a program, the lock of the ledger among them.
    while cleaned[0].alive && looks < 1_000 {
        looks += 1;
        std::thread::sleep(std::time::Duration::from_millis(10));
        cleaned = clean();
    }
    assert_eq!(
        (cleaned.len(), cleaned[0].left.len()),
        (1, 0),
        "{cleaned:?}"
    );
    assert_eq!(scene.state(), before);
}
