//! "Empty" means looked at: data anywhere on a device are refused unless the experiment names it, and what an earlier
//! run of Spindle left is known for that, as long as nobody has changed it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use spindle_layout::PlacementTarget;
use spindle_layout::guard::{Permit, Refusal};
use spindle_layout::spec::LayoutKind;

use super::making::target;
use super::scene::{Disk, MIB, Scene, can_run, file_system, layout};

const TOOLS: [&str; 5] = ["losetup", "blkid", "wipefs", "blockdev", "mkfs.ext4"];

fn write(disk: &Disk, at: u64, bytes: &[u8]) {
    let device = OpenOptions::new().write(true).open(&disk.path).unwrap();
    device.write_all_at(bytes, at).unwrap();
    device.sync_all().unwrap();
}

fn not_empty(disk: &Disk) -> String {
    match disk.look(&[]) {
        Err(refusal @ Refusal::NotEmpty { .. }) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn data_anywhere_on_a_device_are_met() {
    if !can_run("data_anywhere_on_a_device_are_met", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    // A small device is read whole; behind a large one there is a file, which tells where it was ever written.
    for size in [64 * MIB, 3072 * MIB] {
        let name = format!("disk{size}");
        let disk = Disk::new(&scene, &name, size);
        assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
        let before = fs::metadata(scene.path().join(&name)).unwrap().len();
        write(&disk, 37 * MIB + 12_345, &[1]);
        let said = not_empty(&disk);
        assert!(
            said.contains("data of an unknown kind (at byte 388"),
            "{said}"
        );
        assert!(said.contains("erase = ["), "{said}");
        let spec = layout("it", vec![disk.spec()], LayoutKind::Raw);
        let provision = scene.carry_out(&[spec]);
        assert!(provision.layouts()[0].is_err());
        drop(provision);
        let file = fs::File::open(scene.path().join(&name)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 37 * MIB + 12_345).unwrap();
        assert_eq!((byte[0], file.metadata().unwrap().len()), (1, before));
        let named = [disk.path.display().to_string()];
        assert!(matches!(
            disk.look(&named).unwrap().permit,
            Permit::Erase { .. }
        ));
        write(&disk, 37 * MIB + 12_345, &[0]);
        assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
    }
}

#[test]
fn what_a_run_left_is_known_until_it_is_changed() {
    if !can_run("what_a_run_left_is_known_until_it_is_changed", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 96 * MIB);
    for kind in [
        LayoutKind::Raw,
        file_system("ext4", &[], ""),
        LayoutKind::Raw,
    ] {
        let provision = scene.carry_out(&[layout("it", vec![disk.spec()], kind)]);
        match target(&provision, 0) {
            PlacementTarget::Devices(_) => write(&disk, 40 * MIB, &[7; 70_000]),
            PlacementTarget::Directory(at) => {
                fs::write(at.join("file"), vec![9; 3 * MIB as usize]).unwrap()
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(provision.teardown(), Vec::<String>::new());
        assert_eq!(
            disk.look(&[]).unwrap().permit,
            Permit::Empty,
            "the next run is not asked for erase"
        );
    }
    write(&disk, 80 * MIB, &[1]);
    assert!(not_empty(&disk).contains("data of an unknown kind"));
    write(&disk, 80 * MIB, &[0]);
    assert_eq!(disk.look(&[]).unwrap().permit, Permit::Empty);
    // The mark copied to a device with other data says nothing.
    let mut end_of_first = vec![0; 4096];
    let read = fs::File::open(&disk.path).unwrap();
    read.read_exact_at(&mut end_of_first, MIB - 4096).unwrap();
    assert!(end_of_first.starts_with(b"SPNDLEFT"));
    let other = Disk::new(&scene, "other", 96 * MIB);
    write(&other, 40 * MIB, &[8; 70_000]);
    write(&other, MIB - 4096, &end_of_first);
    assert!(not_empty(&other).contains("data of an unknown kind"));
}

#[test]
fn a_disk_of_a_disk_group_is_called_so() {
    if !can_run("a_disk_of_a_disk_group_is_called_so", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let env: std::sync::Arc<dyn spindle_io::Env> = spindle_io::real::RealEnv::new(1);
    spindle_io::real::block_on(async {
        use spindle_io::disk_group::{Disk as GroupDisk, DiskGroup, DiskGroupOptions};
        use spindle_io::real::{Caching, Queue};
        let known = spindle_layout::KnownDevice::look(&disk.path).unwrap();
        let device = known.open(Caching::Buffered, Queue::sync()).unwrap();
        let disks = vec![GroupDisk {
            name: "data_0000".to_owned(),
            failure_group: None,
            device: std::sync::Arc::new(device),
        }];
        let options = DiskGroupOptions {
            allocation_unit_bytes: MIB,
            ..DiskGroupOptions::default()
        };
        let group = DiskGroup::create(&env, "data", disks, options)
            .await
            .unwrap();
        group.dismount().await.unwrap();
    });
    let said = not_empty(&disk);
    assert!(
        said.to_lowercase()
            .contains("disk data_0000 of the spindle disk group data"),
        "{said}"
    );
}
