//! Files of a server that lie on raw devices: put on them, put back in place, and nobody given a right that he had not.
//! On loop devices, as root; without root these tests say so and do nothing.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use spindle_layout::{
    GoldenTree, LayoutError, RawDevice, RawFile, TreeDirectories, TreeImage, TreeSite, Verify,
};

const MIB: u64 = 1 << 20;
/// The owner of the golden file: nobody.
const OWNER: u32 = 65534;

/// A file as a block device; detached when the test ends, however it ends.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(directory: &Path, name: &str, bytes: u64) -> LoopDevice {
        let file = directory.join(name);
        fs::write(&file, vec![0x5A; bytes as usize]).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        LoopDevice(String::from_utf8(made.stdout).unwrap().trim().into())
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.0).unwrap()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}

fn is_skipped() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        spindle_harness::skip("device nodes and loop devices are root's");
    }
    !is_root
}

fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at / 3 % 251) as u8).collect()
}

fn directories(place: &Path, name: &str) -> TreeDirectories {
    let root = place.join(name);
    fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    directories
}

/// A golden tree with a file of this size that is to lie on a device.
fn golden(place: &Path, bytes: u64) -> Arc<GoldenTree> {
    let golden = directories(place, "golden");
    let file = golden.data.join("ibdata1");
    fs::write(&file, content(bytes)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o660)).unwrap();
    chown(&file, Some(OWNER), Some(OWNER)).unwrap();
    fs::write(golden.data.join("aria"), "x").unwrap();
    GoldenTree::seal(golden, &Arc::default()).unwrap()
}

fn raw_file(bytes: u64, device: &Path, device_bytes: u64) -> RawFile {
    RawFile {
        name: "ibdata1".to_owned(),
        bytes,
        device: RawDevice::look(device, device_bytes).unwrap(),
    }
}

#[test]
fn a_file_lies_on_its_device_and_is_put_back_there() {
    if is_skipped() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let device = LoopDevice::new(place.path(), "disk", 8 * MIB);
    let other = LoopDevice::new(place.path(), "other", MIB);
    let golden = golden(place.path(), 5 * MIB);
    let before = fs::metadata(&device.0).unwrap();
    let raw = [raw_file(5 * MIB, &device.0, 8 * MIB)];
    let directories = directories(place.path(), "image");
    let image = TreeImage::provision(
        &golden,
        TreeSite {
            raw: raw.to_vec(),
            ..directories.into()
        },
    )
    .unwrap();
    let node = image.directories().data.join("ibdata1");
    let as_golden = || {
        let bytes = device.bytes();
        assert!(
            bytes[..5 << 20] == content(5 * MIB),
            "it is not the golden file"
        );
        assert!(
            bytes[5 << 20..].iter().all(|byte| *byte == 0x5A),
            "more was written than the file has"
        );
        let found = fs::symlink_metadata(&node).unwrap();
        assert!(found.file_type().is_block_device());
        assert_eq!(found.rdev(), before.rdev());
        assert_eq!(
            (found.uid(), found.gid(), found.mode() & 0o777),
            (OWNER, OWNER, 0o600)
        );
        // That of the system is what it was.
        let now = fs::metadata(&device.0).unwrap();
        assert_eq!(
            (now.uid(), now.gid(), now.mode()),
            (before.uid(), before.gid(), before.mode())
        );
    };
    as_golden();
    let listed = image.directories().files().unwrap();
    assert!(listed.contains(&node), "{listed:?}");
    for verify in [Verify::Full, Verify::Changed] {
        // As a server does, and it leaves no time of change on a device.
        let file = OpenOptions::new().write(true).open(&node).unwrap();
        file.write_all_at(&[1; 100], 0).unwrap();
        file.write_all_at(&[1; 100], 4 * MIB + 77).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let report = image.restore(verify).unwrap();
        assert_eq!((report.changed_blocks, report.resident_pages), (2, 0));
        as_golden();
        assert_eq!(image.restore(Verify::Full).unwrap().changed_blocks, 0);
    }
    // Something else in the place of the node: neither a file nor a device that was not meant is written to.
    fs::remove_file(&node).unwrap();
    fs::write(&node, "a file").unwrap();
    image.restore(Verify::Full).unwrap();
    as_golden();
    fs::remove_file(&node).unwrap();
    let numbers = fs::metadata(&other.0).unwrap().rdev();
    let (major, minor) = (rustix::fs::major(numbers), rustix::fs::minor(numbers));
    let made = Command::new("mknod")
        .arg(&node)
        .args(["b", &major.to_string(), &minor.to_string()])
        .status();
    assert!(made.unwrap().success());
    image.restore(Verify::Full).unwrap();
    as_golden();
    assert!(other.bytes().iter().all(|byte| *byte == 0x5A));
}

#[test]
fn what_is_no_device_or_too_small_is_refused_before_it_is_written_to() {
    if is_skipped() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let golden = golden(place.path(), 2 * MIB);
    let refused = |name: &str, raw: RawFile| {
        let directories = directories(place.path(), name);
        match TreeImage::provision(
            &golden,
            TreeSite {
                raw: vec![raw],
                ..directories.into()
            },
        ) {
            Err(refused) => refused,
            Ok(_) => panic!("{name} was taken"),
        }
    };
    let device = LoopDevice::new(place.path(), "disk", MIB);
    let small = refused("image-1", raw_file(2 * MIB, &device.0, MIB));
    assert!(
        matches!(small, LayoutError::NoRoomOnDevices { .. }),
        "{small}"
    );
    assert!(device.bytes().iter().all(|byte| *byte == 0x5A));
    let file = place.path().join("a file");
    fs::write(&file, vec![7; 3 << 20]).unwrap();
    let plain = refused("image-2", raw_file(2 * MIB, &file, 3 * MIB));
    assert!(plain.to_string().contains("plain file"), "{plain}");
    assert!(fs::read(&file).unwrap() == vec![7; 3 << 20]);
}
