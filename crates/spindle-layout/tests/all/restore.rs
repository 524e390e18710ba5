//! The golden copy and the image on real files: what is put back, what is detected, what is left behind. Runs on the
//! file system of the temporary directory, and on tmpfs, where direct I/O is not direct.
#![allow(clippy::single_range_in_vec_init)] // lists of blocks are vectors of ranges, often of one

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate};
use spindle_io::real::facts::{DirectProbe, direct_probe, extents, file_system};
use spindle_io::real::{Caching, FileDevice, FileError, Queue, WrittenBlocks, block_on};
use spindle_io::{Arena, BlockDevice, Request, Submission};
use spindle_layout::{
    ChangedBlocks, DatabaseFiles, DatabaseShape, FileManager, Golden, GoldenSource, Image,
    ImageSpec, LayoutError, Opening, Place, Placement, PlacementTarget, RawDevice, RawSpace,
    RestoreMethod, Verify, ranges,
};

const BLOCK: u64 = 8192;

pub fn shape() -> DatabaseShape {
    DatabaseShape {
        block_bytes: BLOCK,
        control_bytes: 1 << 20,
        redo_bytes: vec![1 << 20; 2],
        undo_bytes: 1 << 20,
        // Not whole runs of 1 MiB.
        data_bytes: vec![(4 << 20) + 3 * BLOCK, 2 << 20],
        double_write_bytes: 0,
        temp_bytes: Vec::new(),
    }
}

/// Places to test on: each is a fresh directory.
fn places() -> Vec<tempfile::TempDir> {
    let mut places = vec![tempfile::tempdir().unwrap()];
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        places.push(memory);
    }
    places
}

fn make(place: &Path, name: &str) -> PathBuf {
    let path = place.join(name);
    std::fs::create_dir(&path).unwrap();
    path
}

/// A golden copy as loaded with nothing but its filling.
pub fn golden(place: &Path) -> Arc<Golden> {
    let directory = make(place, "golden");
    Golden::create(&directory, &shape(), 1, &Arc::default())
        .unwrap()
        .seal(GoldenSource::OnDisk)
        .unwrap()
}

fn image_with(place: &Path, manager: FileManager) -> Result<Image, LayoutError> {
    let spec = ImageSpec {
        files: DatabaseFiles::in_directory(&shape(), &make(place, "image")),
        manager,
        originals: None,
    };
    Image::provision(&golden(place), spec)
}

fn image(place: &Path) -> Image {
    image_with(place, FileManager::Plain).unwrap()
}

fn contents(files: &DatabaseFiles) -> Vec<Vec<u8>> {
    files
        .named()
        .iter()
        .map(|(_, place)| std::fs::read(place.path()).unwrap())
        .collect()
}

fn golden_contents(place: &Path) -> Vec<Vec<u8>> {
    let names = [
        "control.ctl",
        "redo1.log",
        "redo2.log",
        "undo.dbf",
        "data1.dbf",
        "data2.dbf",
    ];
    names
        .iter()
        .map(|name| std::fs::read(place.join("golden").join(name)).unwrap())
        .collect()
}

/// Writes a byte into each of some blocks, unseen by any list.
fn damage(path: &Path, blocks: impl IntoIterator<Item = u64>) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    for block in blocks {
        file.write_all_at(&[0xEE; 3], block * BLOCK + 1000).unwrap();
    }
}

fn list<const N: usize>(files: [(&str, Vec<std::ops::Range<u64>>); N]) -> ChangedBlocks {
    files
        .into_iter()
        .map(|(name, ranges)| (name.to_owned(), ranges))
        .collect()
}

#[test]
fn listed_blocks_are_put_back_and_no_others_are_copied() {
    for place in places() {
        let place = place.path();
        let image = image(place);
        let before = contents(image.files());
        assert_eq!(before, golden_contents(place));
        damage(image.files().data[0].path(), [0, 1, 2, 200, 514]);
        damage(image.files().redo[1].path(), [127]);
        assert_ne!(contents(image.files()), before);
        // One block more than was changed; ranges overlap and are out of order.
        let changed = list([
            ("data1", vec![514..515, 0..2, 1..4, 200..201]),
            ("redo2", vec![127..128]),
        ]);
        let report = image.restore(Some(&changed), Verify::Full).unwrap();
        assert_eq!(contents(image.files()), before);
        assert_eq!((report.changed_blocks, report.copied_bytes), (7, 7 * BLOCK));
        assert_eq!(
            (report.method, report.verified),
            (RestoreMethod::Listed, Verify::Full)
        );
        let is_direct = direct_probe(place).unwrap() == DirectProbe::Direct;
        assert_eq!(report.direct, is_direct);
        if is_direct {
            assert_eq!(report.resident_pages, 0);
        }
        // Nothing to do is nothing done.
        let report = image.restore(Some(&BTreeMap::new()), Verify::Full).unwrap();
        assert_eq!(report.copied_bytes, 0);
    }
}

#[test]
fn a_missed_block_is_named_when_everything_is_verified() {
    for place in places() {
        let image = image(place.path());
        damage(image.files().data[0].path(), [7]);
        damage(image.files().data[1].path(), [40, 41, 200]);
        damage(image.files().undo.path(), [3]);
        let changed = list([("data1", vec![7..8]), ("data2", vec![40..41])]);
        // What was copied is right, so verifying only that sees nothing: the full one must be what finds it.
        let report = image.restore(Some(&changed), Verify::Changed).unwrap();
        assert_eq!(report.verified, Verify::Changed);
        let error = image.restore(Some(&changed), Verify::Full).unwrap_err();
        match &error {
            LayoutError::RestoreMissed {
                file,
                block,
                blocks,
            } => {
                assert_eq!((file.as_str(), *block, *blocks), ("undo", 3, 3));
            }
            other => panic!("{other:?}"),
        }
        assert!(error.to_string().contains("block 3 of undo"), "{error}");
        // Detected, not silently repaired; comparing repairs it.
        assert!(image.restore(Some(&changed), Verify::Full).is_err());
        let report = image.restore(None, Verify::Changed).unwrap();
        assert_eq!(
            (report.method, report.verified),
            (RestoreMethod::Compared, Verify::Full)
        );
        assert_eq!((report.changed_blocks, report.copied_bytes), (3, 3 * BLOCK));
        assert_eq!(contents(image.files()), golden_contents(place.path()));
        assert_eq!(image.restore(None, Verify::Full).unwrap().changed_blocks, 0);
    }
}

#[test]
fn the_list_of_a_device_restores_what_the_device_wrote() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path());
    let path = image.files().data[1].path();
    let bytes = std::fs::metadata(path).unwrap().len();
    let tracker = WrittenBlocks::new(bytes, BLOCK);
    let device = FileDevice::open(path, Caching::Buffered, Queue::sync())
        .unwrap()
        .with_tracker(Arc::clone(&tracker));
    let arena = Arena::new(BLOCK as usize, 2).unwrap();
    let frames: Vec<_> = (0..2).map(|_| arena.allocate().unwrap()).collect();
    for block in [5, 6, 100] {
        let from = frames
            .iter()
            .map(|frame| frame.try_read_hold().unwrap())
            .collect();
        let request = Request::write(block * BLOCK, from, true, Submission::Alone);
        block_on(device.submit(request)).result.unwrap();
    }
    // The file is locked as long as the trial's process has it open.
    match image.restore(None, Verify::Full) {
        Err(LayoutError::File(FileError::InUse { path: in_use })) => assert_eq!(in_use, *path),
        other => panic!("{other:?}"),
    }
    drop(device);
    let changed = list([("data2", ranges(tracker.written()))]);
    assert_eq!(changed["data2"], [5..8, 100..102]);
    let report = image.restore(Some(&changed), Verify::Full).unwrap();
    assert_eq!(report.changed_blocks, 5);
}

#[test]
fn files_stay_where_they_are() {
    for manager in [FileManager::Plain, FileManager::Odm] {
        let place = tempfile::tempdir().unwrap();
        let image = match image_with(place.path(), manager) {
            Err(LayoutError::File(FileError::DirectRefused { .. })) => {
                spindle_harness::skip("no direct I/O here");
                continue;
            }
            made => made.unwrap(),
        };
        let look = || -> Vec<_> {
            let files = image.files().named().into_iter().map(|(_, of)| {
                let file = File::open(of.path()).unwrap();
                (extents(&file).unwrap(), file.metadata().unwrap().ino())
            });
            files.collect()
        };
        let before = look();
        assert!(
            before
                .iter()
                .all(|(extents, _)| extents.unwritten_bytes == 0)
        );
        damage(image.files().data[0].path(), 3..60);
        let copies_on_write = file_system(place.path()).unwrap().type_name == "btrfs";
        let report = image.restore(None, Verify::Full).unwrap();
        assert_eq!(report.changed_blocks, 57);
        if !copies_on_write {
            assert_eq!(look(), before);
            assert_eq!(report.moved_files, [""; 0]);
        }
        // A hole that is filled again may lie elsewhere; one that is left open certainly does.
        let file = OpenOptions::new()
            .write(true)
            .open(image.files().data[1].path())
            .unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 0, 4 * BLOCK).unwrap();
        file.sync_all().unwrap();
        match image.restore(Some(&BTreeMap::new()), Verify::Changed) {
            Ok(report) => assert_eq!(report.moved_files, ["data2"]),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_list_that_does_not_fit_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path());
    damage(image.files().data[0].path(), [0]);
    let damaged = contents(image.files());
    for (wrong, told) in [
        (
            list([("data1", vec![0..1]), ("data3", vec![0..1])]),
            "data3",
        ),
        (
            list([("data1", vec![0..1]), ("data2", vec![0..257])]),
            "block 256 of data2",
        ),
    ] {
        let error = image.restore(Some(&wrong), Verify::Full).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert_eq!(contents(image.files()), damaged);
    }
}

#[test]
fn a_file_of_another_size_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path());
    let file = OpenOptions::new()
        .write(true)
        .open(image.files().undo.path())
        .unwrap();
    file.set_len(2 << 20).unwrap();
    match image.restore(None, Verify::Full) {
        Err(LayoutError::SizeChanged {
            file, found_bytes, ..
        }) => {
            assert_eq!((file.as_str(), found_bytes), ("undo", 2 << 20));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_golden_copy_is_not_copied() {
    let place = tempfile::tempdir().unwrap();
    let image = image(place.path());
    let before = contents(image.files());
    damage(&place.path().join("golden/data1.dbf"), [9]);
    match image.restore(Some(&list([("data1", vec![8..12])])), Verify::Full) {
        Err(LayoutError::GoldenDamaged { file, block }) => {
            assert_eq!((file.as_str(), block), ("data1", 9))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(contents(image.files()), before);
}

#[test]
fn a_golden_copy_in_memory_is_read_no_more() {
    for place in places() {
        let directory = make(place.path(), "golden");
        let loading = Golden::create(&directory, &shape(), 1, &Arc::default()).unwrap();
        let golden = loading.seal(GoldenSource::InMemory).unwrap();
        let before = golden_contents(place.path());
        std::fs::remove_dir_all(&directory).unwrap();
        let spec = ImageSpec {
            files: DatabaseFiles::in_directory(&shape(), &make(place.path(), "image")),
            manager: FileManager::Plain,
            originals: None,
        };
        let image = Image::provision(&golden, spec).unwrap();
        assert_eq!(contents(image.files()), before);
        let data = image.files().data[0].path();
        damage(data, [0, 130, 514]);
        let changed = list([("data1", vec![0..1, 130..131, 514..515])]);
        let report = image.restore(Some(&changed), Verify::Full).unwrap();
        assert_eq!(
            (report.changed_blocks, report.resident_pages > 0),
            (3, !report.direct)
        );
        assert_eq!(contents(image.files()), before);
        // Found by comparing.
        damage(data, [7, 8]);
        let report = image.restore(None, Verify::Full).unwrap();
        assert_eq!(report.changed_blocks, 2);
        assert_eq!(contents(image.files()), before);
        // A list that misses a block is found out as ever.
        damage(data, [3, 200]);
        let missed = image.restore(Some(&list([("data1", vec![200..201])])), Verify::Full);
        assert!(matches!(
            missed,
            Err(LayoutError::RestoreMissed { block: 3, .. })
        ));
    }
}

#[test]
fn unwritten_files_are_refused() {
    for place in places() {
        let directory = make(place.path(), "golden");
        let loading = Golden::create(&directory, &shape(), 1, &Arc::default()).unwrap();
        // Even a redo file: reads of its holes would cost nothing.
        let file = OpenOptions::new()
            .write(true)
            .open(loading.files().redo[0].path())
            .unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, punch, 64 * 1024, 64 * 1024).unwrap();
        match loading.seal(GoldenSource::OnDisk) {
            Err(LayoutError::Unwritten {
                file,
                unwritten_bytes,
                file_bytes,
            }) => {
                assert_eq!(
                    (file.as_str(), unwritten_bytes, file_bytes),
                    ("redo1", 65536, 1 << 20)
                );
            }
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("a hole went unseen"),
        }
    }
}

#[test]
fn compressible_data_are_refused_but_not_compressible_redo() {
    let place = tempfile::tempdir().unwrap();
    let directory = make(place.path(), "golden");
    let loading = Golden::create(&directory, &shape(), 1, &Arc::default()).unwrap();
    let fill = |path: &Path, share: f64| {
        let mut bytes = std::fs::read(path).unwrap();
        for block in bytes.chunks_exact_mut(BLOCK as usize) {
            block[..(BLOCK as f64 * share) as usize].fill(b'x');
        }
        OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .write_all_at(&bytes, 0)
            .unwrap();
    };
    fill(loading.files().redo[0].path(), 1.0);
    fill(loading.files().control.path(), 1.0);
    fill(loading.files().data[0].path(), 0.2); // short rows: a fifth of their bytes are empty fields
    loading.seal(GoldenSource::OnDisk).unwrap();

    let directory = make(place.path(), "compressible");
    let loading = Golden::create(&directory, &shape(), 1, &Arc::default()).unwrap();
    fill(loading.files().data[1].path(), 0.5);
    match loading.seal(GoldenSource::OnDisk) {
        Err(LayoutError::Compressible {
            file,
            packed_percent,
            ..
        }) => {
            assert_eq!((file.as_str(), packed_percent), ("data2", 50));
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("half a file of x went unseen"),
    }
}

#[test]
fn data_that_repeat_from_block_to_block_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let loading =
        Golden::create(&make(place.path(), "golden"), &shape(), 1, &Arc::default()).unwrap();
    let path = loading.files().data[0].path();
    let mut bytes = std::fs::read(path).unwrap();
    let (first, rest) = bytes.split_at_mut(BLOCK as usize);
    rest.chunks_exact_mut(BLOCK as usize)
        .for_each(|block| block.copy_from_slice(first));
    std::fs::write(path, &bytes).unwrap();
    assert!(
        matches!(loading.seal(GoldenSource::OnDisk), Err(LayoutError::Compressible { file, .. }) if file == "data1")
    );
}

#[test]
fn a_failed_provision_leaves_nothing_of_its_own() {
    for manager in [FileManager::Plain, FileManager::Odm] {
        let place = tempfile::tempdir().unwrap();
        let golden = golden(place.path());
        let directory = make(place.path(), "image");
        let spec = ImageSpec {
            files: DatabaseFiles::in_directory(&shape(), &directory),
            manager,
            originals: None,
        };
        let others = directory.join("data2.dbf");
        std::fs::write(&others, b"not Spindle's").unwrap();
        match Image::provision(&golden, spec.clone()) {
            Err(LayoutError::File(FileError::AlreadyExists { path })) => assert_eq!(path, others),
            Err(LayoutError::File(FileError::DirectRefused { .. })) => continue,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("a file was overwritten"),
        }
        let left: Vec<_> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(left, std::slice::from_ref(&others));
        assert_eq!(std::fs::read(&others).unwrap(), b"not Spindle's");
        std::fs::remove_file(&others).unwrap();
        // In the middle of a file.
        damage(&place.path().join("golden/data1.dbf"), [300]);
        match Image::provision(&golden, spec) {
            Err(LayoutError::GoldenDamaged { file, block }) => {
                assert_eq!((file.as_str(), block), ("data1", 300))
            }
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("a damaged block was copied"),
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
}

#[test]
fn files_may_lie_in_several_directories() {
    let place = tempfile::tempdir().unwrap();
    let golden = golden(place.path());
    let (data, redo) = (make(place.path(), "image"), make(place.path(), "elsewhere"));
    let placement = Placement {
        redo: PlacementTarget::Directory(redo.clone()),
        ..Placement::in_directory(&data)
    };
    let files = DatabaseFiles::place(&shape(), &placement, &mut RawSpace::default()).unwrap();
    let spec = ImageSpec {
        files,
        manager: FileManager::Plain,
        originals: None,
    };
    let image = Image::provision(&golden, spec).unwrap();
    let mut of_redo = image.files().redo.iter().map(Place::path);
    assert!(of_redo.all(|path| path.parent() == Some(&redo)));
    assert_eq!(contents(image.files()), golden_contents(place.path()));
}

#[test]
fn regions_of_raw_devices_are_put_back_in_place() {
    let place = tempfile::tempdir().unwrap();
    if direct_probe(place.path()).unwrap() != DirectProbe::Direct {
        spindle_harness::skip("raw devices are direct, and there is no direct I/O here");
        return;
    }
    let golden = golden(place.path());
    let devices = ["disk1", "disk2"].map(|name| {
        let (path, bytes) = (place.path().join(name), 9 << 20);
        std::fs::write(&path, vec![0xAA; bytes]).unwrap();
        RawDevice::look(&path, bytes as u64).unwrap()
    });
    let read = |device: &RawDevice| std::fs::read(device.path()).unwrap();
    let placement = Placement::one(&PlacementTarget::Devices(devices.to_vec()));
    let files = DatabaseFiles::place(&shape(), &placement, &mut RawSpace::default()).unwrap();
    let spec = ImageSpec {
        files,
        manager: FileManager::Odm,
        originals: None,
    };
    let image = Image::provision(&golden, spec).unwrap();
    let region = |place: &Place| match place {
        Place::Region {
            device,
            first_byte,
            bytes,
        } => {
            let from = *first_byte as usize;
            std::fs::read(device.path()).unwrap()[from..from + *bytes as usize].to_vec()
        }
        other => panic!("{other:?} is not raw"),
    };
    let named = image.files().named();
    let regions = || -> Vec<_> { named.iter().map(|(_, place)| region(place)).collect() };
    assert_eq!(regions(), golden_contents(place.path()));
    let before = devices.each_ref().map(read);
    // Nothing but regions was touched.
    for (device, bytes) in devices.iter().zip(&before) {
        let ours: usize = named
            .iter()
            .filter_map(|(_, place)| match place {
                Place::Region {
                    device: of, bytes, ..
                } if *of == device.device => Some(*bytes),
                _ => None,
            })
            .sum::<u64>() as usize;
        let untouched = bytes.iter().filter(|byte| **byte == 0xAA).count();
        assert!(untouched >= bytes.len() - ours);
        assert!(bytes[..1 << 20].iter().all(|byte| *byte == 0xAA));
        assert!(bytes[8 << 20..].iter().all(|byte| *byte == 0xAA));
    }
    // Block 7 of data2 is written through the device, as a database does.
    let mut opening = Opening::new();
    let data2 = &image.files().data[1];
    let file = block_on(opening.open(data2, Caching::Direct, Queue::sync(), Some(BLOCK))).unwrap();
    let device = &file.device;
    let frame = Arena::new(BLOCK as usize, 1).unwrap().allocate().unwrap();
    frame.try_write().unwrap().fill(0x11);
    let hold = frame.try_read_hold().unwrap();
    let request = Request::write(7 * BLOCK, vec![hold], true, Submission::Alone);
    block_on(device.submit(request)).result.unwrap();
    let past_the_end = Request::write(
        device.limits().capacity_bytes,
        vec![frame.try_read_hold().unwrap()],
        true,
        Submission::Alone,
    );
    assert!(block_on(device.submit(past_the_end)).result.is_err());
    assert!(matches!(
        image.restore(None, Verify::Full),
        Err(LayoutError::File(FileError::InUse { .. }))
    ));
    let written: Vec<u64> = file.written.as_ref().unwrap().written().collect();
    drop((file, opening));
    assert_ne!(devices.each_ref().map(read), before);
    let changed = list([("data2", ranges(written))]);
    let report = image.restore(Some(&changed), Verify::Full).unwrap();
    assert_eq!((report.changed_blocks, report.direct), (1, true));
    assert_eq!(devices.each_ref().map(read), before);
    // Unseen damage is found by comparing.
    let Place::Region {
        device, first_byte, ..
    } = &image.files().undo
    else {
        panic!("undo is not raw");
    };
    damage(device.path(), [first_byte / BLOCK + 3]);
    assert!(matches!(
        image.restore(Some(&BTreeMap::new()), Verify::Full),
        Err(LayoutError::RestoreMissed { block: 3, .. })
    ));
    assert_eq!(image.restore(None, Verify::Full).unwrap().changed_blocks, 1);
    assert_eq!(devices.each_ref().map(read), before);
}
