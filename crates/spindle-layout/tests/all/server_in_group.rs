//! Files of a server that lie in a disk group: put there, said where they are, and put back in place. The disks are
//! files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spindle_io::real::{Caching, FileDevice, Queue, RealEnv, block_on};
use spindle_io::{Arena, Env, Request, Submission, disk_group};
use spindle_layout::{
    GoldenTree, GroupedFile, KnownDevice, LayoutError, Opening, Place, TreeDirectories, TreeImage,
    TreeSite, Verify, place_of,
};

const MIB: u64 = 1 << 20;
/// Of the golden file: some pieces, and blocks of another.
const BYTES: u64 = 2 * MIB + 3 * 4096;
const OTHER: &str = "spindle.cfg";

fn disks(place: &Path) -> Vec<KnownDevice> {
    let disks = ["disk1", "disk2"].map(|name| place.join(name));
    let member = |disk: &PathBuf| {
        File::create(disk).unwrap().set_len(32 * MIB).unwrap();
        disk_group::Disk {
            name: disk.file_name().unwrap().to_str().unwrap().to_owned(),
            failure_group: None,
            device: Arc::new(FileDevice::open(disk, Caching::Direct, Queue::sync()).unwrap()),
        }
    };
    let members = disks.iter().map(member).collect();
    let options = disk_group::DiskGroupOptions {
        allocation_unit_bytes: MIB,
        redundancy: disk_group::Redundancy::Normal,
        ..disk_group::DiskGroupOptions::default()
    };
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(async {
        let made = disk_group::DiskGroup::create(&env, "spindle", members, options).await;
        made.unwrap().dismount().await.unwrap();
    });
    let known = disks.each_ref().map(|disk| KnownDevice::look(disk));
    known.map(Result::unwrap).to_vec()
}

fn directories(place: &Path, name: &str) -> TreeDirectories {
    let root = place.join(name);
    fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    directories
}

fn golden(place: &Path) -> Arc<GoldenTree> {
    let golden = directories(place, "golden");
    let content: Vec<u8> = (0..BYTES).map(|at| (at / 3 % 251) as u8).collect();
    fs::write(golden.data.join("spindle.db"), content).unwrap();
    fs::write(golden.data.join(OTHER), "x").unwrap();
    GoldenTree::seal(golden, &Arc::default()).unwrap()
}

fn file(disks: &[KnownDevice], bytes: u64) -> GroupedFile {
    GroupedFile {
        name: "spindle.db".to_owned(),
        disks: disks.to_vec(),
        bytes,
        fine_stripes: false,
        preferred_failure_group: None,
    }
}

/// Writes a block of a file in a group over, as a server might.
fn overwrite(place: &Place, offset: u64) {
    let arena = Arena::new(4096, 1).unwrap();
    let frame = arena.allocate().unwrap();
    frame.try_write().unwrap().fill(0xA5);
    block_on(async {
        let mut opening = Opening::new();
        let opened = opening.open(place, Caching::Direct, Queue::sync(), None);
        let device = opened.await.unwrap().device;
        let from = vec![frame.try_read_hold().unwrap()];
        let write = Request::write(offset, from, false, Submission::Alone);
        device.submit(write).await.result.unwrap();
        drop(device);
        opening.close().await.unwrap();
    });
}

#[test]
fn a_file_in_a_group_says_where_it_is_and_is_put_back_in_place() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (golden, disks) = (golden(place.path()), disks(place.path()));
    let files = [file(&disks, 4 * MIB)];
    let image = directories(place.path(), "image");
    let image = TreeImage::provision(
        &golden,
        TreeSite {
            grouped: files.to_vec(),
            prefix: "1-".to_owned(),
            ..image.into()
        },
    )
    .unwrap();
    let other = directories(place.path(), "other");
    let other = TreeImage::provision(
        &golden,
        TreeSite {
            grouped: files.to_vec(),
            prefix: "2-".to_owned(),
            ..other.into()
        },
    )
    .unwrap();

    let stands = image.directories().data.join("spindle.db");
    let found = place_of(&stands).unwrap().unwrap();
    assert!(matches!(&found, Place::GroupFile { file, .. } if file == "1-spindle.db"));
    let beside = image.directories().data.join(OTHER);
    assert_eq!(place_of(&beside).unwrap(), None);

    let changed = |image: &TreeImage| image.restore(Verify::Changed).unwrap().changed_blocks;
    assert_eq!(changed(&image), 0);
    overwrite(&found, 4096);
    overwrite(&found, 2 * MIB + 8192);
    // What is written behind the golden file's end stays.
    overwrite(&found, 3 * MIB);
    fs::write(&stands, "gone").unwrap();
    assert_eq!(changed(&image), 2);
    assert_eq!(place_of(&stands).unwrap(), Some(found));
    assert_eq!(image.restore(Verify::Full).unwrap().changed_blocks, 0);
    assert_eq!(changed(&other), 0, "it has a file of its own");
}

#[test]
fn a_file_that_is_larger_than_its_room_is_refused() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (golden, disks) = (golden(place.path()), disks(place.path()));
    let image = directories(place.path(), "image");
    let files = [file(&disks, 2 * MIB)];
    let refused = TreeImage::provision(
        &golden,
        TreeSite {
            grouped: files.to_vec(),
            prefix: "1-".to_owned(),
            ..image.into()
        },
    )
    .err();
    assert!(
        matches!(refused, Some(LayoutError::NoRoomInGroup { .. })),
        "{refused:?}"
    );
}
