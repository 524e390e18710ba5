//! Facts about files on a real file system, and the two file managers.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use spindle_io::real::create::{OdmCreation, create_plain};
use spindle_io::real::facts::{self, DirectIo, DirectProbe, SeenBy};
use spindle_io::real::{Caching, FileError, identify};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn names_in(directory: &tempfile::TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(directory.path()).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Bytes that depend on the place in the file.
fn pattern(offset: u64, piece: &mut [u8]) -> Result<(), FileError> {
    for (place, byte) in (offset..).zip(piece) {
        *byte = (place ^ place >> 8 ^ place >> 16) as u8;
    }
    Ok(())
}

fn create_odm(path: &Path, bytes: u64) -> Result<(), FileError> {
    let mut creation = OdmCreation::begin(path, bytes)?;
    creation.fill(pattern)?;
    creation.commit()
}

fn assert_pattern(path: &Path, bytes: usize) {
    let mut content = Vec::new();
    File::open(path).unwrap().read_to_end(&mut content).unwrap();
    let mut expected = vec![0; bytes];
    pattern(0, &mut expected).unwrap();
    assert!(
        content == expected,
        "{} bytes instead of {bytes}, or others",
        content.len()
    );
}

/// A directory on a file system that does direct I/O, or `None` with a note.
fn direct_directory() -> Option<tempfile::TempDir> {
    let directory = directory();
    match facts::direct_probe(directory.path()).unwrap() {
        DirectProbe::Direct => Some(directory),
        DirectProbe::NotDirect { reason, .. } => {
            spindle_harness::skip(reason);
            None
        }
    }
}

#[test]
fn direct_io_is_recognised_and_leaves_nothing_behind() {
    let Some(directory) = direct_directory() else {
        return;
    };
    assert_eq!(names_in(&directory), Vec::<String>::new());
    let path = directory.path().join("data.dbf");
    create_plain(&path, 1 << 16, pattern).unwrap();
    assert_eq!(facts::direct_probe(&path).unwrap(), DirectProbe::Direct);
    assert_pattern(&path, 1 << 16);
    match facts::direct_io(&path).unwrap() {
        DirectIo::Aligned {
            offset_alignment_bytes,
            memory_alignment_bytes,
        } => {
            assert!(offset_alignment_bytes.is_power_of_two() && offset_alignment_bytes <= 65536);
            assert!(memory_alignment_bytes.is_power_of_two() && memory_alignment_bytes <= 65536);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_is_not_direct() {
    let shm = Path::new("/dev/shm");
    if !facts::file_system(shm).is_ok_and(|facts| facts.type_name == "tmpfs") {
        spindle_harness::skip("/dev/shm is no tmpfs");
        return;
    }
    match facts::direct_probe(shm).unwrap() {
        DirectProbe::NotDirect { reason, .. } => assert!(reason.starts_with("tmpfs"), "{reason}"),
        DirectProbe::Direct => panic!("tmpfs is memory"),
    }
}

/// All space is there before the first byte is written: a file that is allocated as it is written lies in more pieces,
/// and where its neighbours let it.
#[test]
fn files_of_both_managers_lie_alike() {
    const BYTES: u64 = 16 << 20;
    const BLOCK_OF_STAT: u64 = 512;
    let Some(directory) = direct_directory() else {
        return;
    };
    let path = |name: &str| directory.path().join(name);
    let plain = path("plain.dbf");
    create_plain(&plain, BYTES, |offset, piece| {
        let allocated_bytes = plain.metadata().unwrap().blocks() * BLOCK_OF_STAT;
        assert!(allocated_bytes >= BYTES, "{allocated_bytes} at {offset}");
        pattern(offset, piece)
    })
    .unwrap();
    let odm = path("odm.dbf");
    create_odm(&odm, BYTES).unwrap();
    for path in [plain, odm] {
        let lies = facts::extents(&File::open(&path).unwrap()).unwrap();
        assert_eq!(lies.unwritten_bytes, 0, "{}", path.display());
        assert_pattern(&path, BYTES as usize);
    }
}

#[test]
fn the_file_system_is_described() {
    let directory = directory();
    let facts = facts::file_system(directory.path()).unwrap();
    assert!(
        !facts.type_name.is_empty() && !facts.type_name.starts_with("0x"),
        "{facts:?}"
    );
    assert!(
        directory
            .path()
            .canonicalize()
            .unwrap()
            .starts_with(&facts.mount_point),
        "{facts:?}"
    );
    assert!(
        facts.block_bytes >= 512 && facts.free_bytes > 0 && !facts.options.is_empty(),
        "{facts:?}"
    );
}

#[test]
fn dropping_the_cache_drops_it() {
    let directory = directory();
    let path = directory.path().join("data.dbf");
    create_plain(&path, 1 << 20, pattern).unwrap();
    let file = File::open(&path).unwrap();
    assert!(
        facts::resident_pages(&file).unwrap() > 0,
        "just written through the cache"
    );
    if facts::file_system(&path).unwrap().type_name == "tmpfs" {
        assert!(
            facts::drop_cache(&file).unwrap() > 0,
            "memory is all it has"
        );
    } else {
        assert_eq!(facts::drop_cache(&file).unwrap(), 0);
        file.read_at(&mut [0; 1], 0).unwrap();
        assert!(facts::resident_pages(&file).unwrap() > 0, "read again");
    }
}

#[test]
fn unwritten_blocks_are_found_and_written_ones_are_not_accused() {
    let directory = directory();
    let path = directory.path().join("data.dbf");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    let empty = facts::extents(&file).unwrap();
    assert_eq!(empty.unwritten_bytes, 0);
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).unwrap();
    if empty.seen_by == SeenBy::Fiemap {
        assert_eq!(facts::extents(&file).unwrap().unwritten_bytes, 1 << 20);
    }
    // All but one block in the middle.
    for offset in (0..1 << 20).step_by(8192).filter(|offset| *offset != 65536) {
        file.write_all_at(&[7; 8192], offset).unwrap();
    }
    file.sync_all().unwrap();
    assert_eq!(facts::extents(&file).unwrap().unwritten_bytes, 8192);
    file.write_all_at(&[7; 8192], 65536).unwrap();
    file.sync_all().unwrap();
    assert_eq!(facts::extents(&file).unwrap().unwritten_bytes, 0);
}

#[test]
fn both_managers_make_whole_files_and_never_overwrite() {
    let Some(directory) = direct_directory() else {
        return;
    };
    // An odd size: direct writes end beyond it, and the file must not.
    const BYTES: u64 = 3 * (1 << 20) + 777;
    let plain = directory.path().join("plain.dbf");
    let odm = directory.path().join("odm.dbf");
    create_plain(&plain, BYTES, pattern).unwrap();
    create_odm(&odm, BYTES).unwrap();
    for path in [&plain, &odm] {
        assert_pattern(path, BYTES as usize);
        let file = File::open(path).unwrap();
        assert_eq!(
            facts::extents(&file).unwrap().unwritten_bytes,
            0,
            "{}",
            path.display()
        );
        for again in [create_plain(path, 8192, pattern), create_odm(path, 8192)] {
            let said = again.unwrap_err().to_string();
            assert!(
                said.contains("exists already") && said.contains(path.to_str().unwrap()),
                "{said}"
            );
        }
        assert_pattern(path, BYTES as usize);
    }
    create_odm(&directory.path().join("empty.dbf"), 0).unwrap();
}

#[test]
fn an_odm_file_is_invisible_until_committed_and_gone_when_dropped_before() {
    let Some(directory) = direct_directory() else {
        return;
    };
    let path = directory.path().join("odm.dbf");
    let mut creation = OdmCreation::begin(&path, 1 << 20).unwrap();
    creation.fill(pattern).unwrap();
    assert!(!path.exists());
    drop(creation);
    assert_eq!(names_in(&directory), Vec::<String>::new());

    let mut creation = OdmCreation::begin(&path, 1 << 20).unwrap();
    creation.fill(pattern).unwrap();
    creation.commit().unwrap();
    assert_eq!(names_in(&directory), ["odm.dbf"]);
    assert_pattern(&path, 1 << 20);

    // Someone else was faster: theirs is kept.
    let second = directory.path().join("second.dbf");
    let late = OdmCreation::begin(&second, 8192).unwrap();
    std::fs::write(&second, "theirs").unwrap();
    assert!(matches!(
        late.commit(),
        Err(FileError::AlreadyExists { .. })
    ));
    assert_eq!(std::fs::read(&second).unwrap(), b"theirs");
}

#[test]
fn a_place_that_is_missing_or_too_small_is_one_clear_error() {
    let said = create_plain(Path::new("/no/such/dir/a.dbf"), 8192, pattern)
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("/no/such/dir/a.dbf") && said.contains("No such file"),
        "{said}"
    );
    let Some(directory) = direct_directory() else {
        return;
    };
    let path = directory.path().join("huge.dbf");
    // More than is free, less than file systems refuse for being too large a file (16 TiB for ext4).
    let bytes = facts::file_system(directory.path()).unwrap().free_bytes + (1 << 40);
    match OdmCreation::begin(&path, bytes) {
        Err(FileError::NoSpace { needed_bytes, .. }) => assert_eq!(needed_bytes, bytes),
        other => panic!("{other:?}"),
    }
    assert_eq!(names_in(&directory), Vec::<String>::new());
}

/// Whether the calling thread has CAP_IPC_LOCK and so is not held to the limit of locked memory.
fn may_lock_any_memory() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

#[test]
fn facts_about_this_process() {
    assert_eq!(facts::is_root(), rustix::process::geteuid().as_raw() == 0);
    if !may_lock_any_memory() && !facts::is_root() {
        assert!(facts::locked_memory_limit_bytes().is_some_and(|bytes| bytes < 1 << 40));
    }
    if let Err(reason) = facts::io_uring_available() {
        assert!(reason.to_string().contains("io_uring"), "{reason}");
    }
    let said = identify(Path::new("/no/such/file"), Caching::Buffered)
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("/no/such/file"), "{said}");
}
