//! By which nodes a run writes to its devices: never by those in `/dev`, whose times tell `clean` what others wrote.
//! udev sets these times also when a program that had the node open for writing closes it, without a byte written.

use spindle_harness::Watch;
use spindle_layout::LayoutSpec;
use spindle_layout::guard::Permit;
use spindle_layout::spec::{DeviceSharing, LayoutKind, Preparation};

use super::not_ours::{abandoned, cleaned};
use super::scene::{Disk, MIB, Scene, can_run, file_system, layout, tool};

const TOOLS: [&str; 8] = [
    "losetup",
    "mkfs.ext4",
    "blkid",
    "wipefs",
    "blockdev",
    "sfdisk",
    "partx",
    "lvm",
];

/// Layouts on a disk, and what must be on it before.
fn cases(disk: &Disk) -> Vec<(&'static str, Vec<LayoutSpec>)> {
    let of = |kind: LayoutKind| layout("it", vec![disk.spec()], kind);
    let mut overwritten = of(LayoutKind::Raw);
    overwritten.preparation = Preparation {
        discard: false,
        overwrite_passes: 1,
    };
    let mut shared = [of(LayoutKind::Raw), of(LayoutKind::Raw)];
    shared[1].name = "other".to_owned();
    for spec in &mut shared {
        spec.share = Some(DeviceSharing::Fair);
    }
    let mut erased = of(file_system("ext4", &[], ""));
    erased.erase = vec![disk.path.to_str().unwrap().to_owned()];
    vec![
        ("raw", vec![of(LayoutKind::Raw)]),
        ("overwritten", vec![overwritten]),
        ("file system", vec![of(file_system("ext4", &[], ""))]),
        ("shared", shared.to_vec()),
        ("erased", vec![erased]),
    ]
}

#[test]
fn a_run_never_opens_the_nodes_of_others_for_writing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run("a_run_never_opens_the_nodes_of_others_for_writing", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 128 * MIB);
    for (name, specs) in cases(&disk) {
        let path = disk.path.to_str().unwrap();
        if name == "erased" {
            tool("mkfs.ext4", &["-q", "-F", path]);
        }
        let is_left_alone = Watch::sees_none(&[&disk.path], || {
            let provision = scene.carry_out(&specs);
            for made in provision.layouts() {
                assert!(made.is_ok(), "{name}: {made:?}");
            }
            assert_eq!(provision.teardown(), Vec::<String>::new(), "{name}");
        });
        assert!(is_left_alone, "{name}");
    }
    let is_left_alone = Watch::sees_none(&[&disk.path], || {
        let scene = Scene::new();
        abandoned(&scene, &[layout("it", vec![disk.spec()], LayoutKind::Raw)]);
        let cleaned = cleaned(&scene);
        assert!(
            cleaned.left.is_empty() && cleaned.not_ours.is_empty(),
            "{cleaned:?}"
        );
    });
    assert!(is_left_alone, "cleaned");
    let looked = disk.look(&[]).map(|looked| looked.permit);
    assert_eq!(looked, Ok(Permit::Empty));
    // The test sees what it looks for.
    let watch = Watch::new(&[&disk.path]);
    drop(
        std::fs::OpenOptions::new()
            .write(true)
            .open(&disk.path)
            .unwrap(),
    );
    // A program that another test starts then closes it, too.
    assert!(watch.count() >= 1);
}
