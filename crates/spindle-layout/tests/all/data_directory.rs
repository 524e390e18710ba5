//! The data directory on real file systems: what it removes, and what it leaves alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use spindle_io::real::{Caching, FileError, identify};
use spindle_layout::{DataDirectory, LayoutError, check_space};

const RUN: &str = "quickstart-20260101-120000";

fn marker(run: &str) -> String {
    format!("{{\"run\":\"{run}\",\"pid\":1,\"created_unix_s\":0}}\n")
}

/// What a killed run leaves.
fn killed(parent: &Path) -> PathBuf {
    let path = parent.join(format!("spindle-data-{RUN}"));
    for directory in ["golden-1", "image-1", "image-22"] {
        fs::create_dir_all(path.join(directory)).unwrap();
        for file in [
            "control.ctl",
            "redo1.log",
            "undo.dbf",
            "data10.dbf",
            ".data3.dbf.creating-71",
        ] {
            fs::write(path.join(directory).join(file), b"12345678").unwrap();
        }
    }
    fs::write(path.join("SPINDLE-DATA"), marker(RUN)).unwrap();
    path
}

fn leftover(parent: &Path) -> DataDirectory {
    DataDirectory::leftover(parent, RUN)
        .unwrap()
        .expect("there is one")
}

fn refused(parent: &Path) -> String {
    match DataDirectory::leftover(parent, RUN) {
        Err(error @ LayoutError::NotADataDirectory { .. }) => error.to_string(),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("taken for one of ours"),
    }
}

#[test]
fn it_is_made_once_and_removed_whole() {
    let parent = tempfile::tempdir().unwrap();
    let directory = DataDirectory::create(parent.path(), RUN).unwrap();
    let golden = directory.make_golden_directory(1).unwrap();
    fs::write(golden.join("data1.dbf"), b"data").unwrap();
    fs::write(
        directory.make_image_directory(1).unwrap().join("data1.dbf"),
        b"data",
    )
    .unwrap();
    assert_eq!(golden.parent(), Some(directory.path()));
    match DataDirectory::create(parent.path(), RUN) {
        Err(LayoutError::DataDirectoryExists { path }) => assert_eq!(path, directory.path()),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("made twice"),
    }
    let removal = directory.remove().unwrap();
    assert_eq!((removal.removed_bytes, removal.foreign.len()), (8, 0));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn what_came_to_nothing_is_taken_back() {
    let parent = tempfile::tempdir().unwrap();
    let directory = DataDirectory::create(parent.path(), RUN).unwrap();
    let image = directory.make_image_directory(1).unwrap();
    fs::write(image.join("data1.dbf"), b"half a fi").unwrap();
    let kept = directory.make_image_directory(2).unwrap();
    directory.take_back(&image).unwrap();
    assert!(!image.exists() && kept.exists());
    // Its number is free again.
    assert_eq!(directory.make_image_directory(1).unwrap(), image);
    // What is not Spindle's stays, and what is elsewhere is not looked at.
    fs::write(image.join("notes"), b"another's").unwrap();
    directory.take_back(&image).unwrap();
    directory.take_back(parent.path()).unwrap();
    assert!(image.join("notes").exists());
    fs::remove_file(image.join("notes")).unwrap();
}

#[test]
fn it_goes_when_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let directory = DataDirectory::create(parent.path(), RUN).unwrap();
    fs::write(
        directory.make_golden_directory(1).unwrap().join("undo.dbf"),
        b"undo",
    )
    .unwrap();
    drop(directory);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_killed_runs_directory_is_found_and_removed() {
    let parent = tempfile::tempdir().unwrap();
    assert!(
        DataDirectory::leftover(parent.path(), RUN)
            .unwrap()
            .is_none()
    );
    killed(parent.path());
    let removal = leftover(parent.path()).remove().unwrap();
    assert_eq!(
        (removal.removed_bytes, removal.foreign.len()),
        (3 * 5 * 8, 0)
    );
    // Killed at its very first step.
    for make_marker in [false, true] {
        let path = parent.path().join(format!("spindle-data-{RUN}"));
        fs::create_dir(&path).unwrap();
        if make_marker {
            fs::write(path.join("SPINDLE-DATA"), b"").unwrap();
        }
        leftover(parent.path()).remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}

#[test]
fn foreign_things_are_left_and_named() {
    let parent = tempfile::tempdir().unwrap();
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join("data1.dbf"), b"precious").unwrap();
    let path = killed(parent.path());
    fs::write(path.join("notes.txt"), b"mine").unwrap();
    fs::write(path.join("data1.dbf"), b"not in its place").unwrap();
    fs::write(path.join("image-1/thesis.dbf"), b"mine").unwrap();
    fs::create_dir(path.join("image-1/data2.dbf")).unwrap();
    fs::create_dir(path.join("image-03")).unwrap();
    symlink(precious.path(), path.join("image-4")).unwrap();
    symlink(
        precious.path().join("data1.dbf"),
        path.join("image-1/data5.dbf"),
    )
    .unwrap();
    let removal = leftover(parent.path()).remove().unwrap();
    let foreign: Vec<_> = removal
        .foreign
        .iter()
        .map(|file| file.strip_prefix(&path).unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        foreign,
        [
            "data1.dbf",
            "image-03",
            "image-1/data2.dbf",
            "image-1/data5.dbf",
            "image-1/thesis.dbf",
            "image-4",
            "notes.txt"
        ]
    );
    assert!(
        removal
            .foreign
            .iter()
            .all(|file| file.symlink_metadata().is_ok())
    );
    assert_eq!(
        fs::read(precious.path().join("data1.dbf")).unwrap(),
        b"precious"
    );
    assert!(!path.join("golden-1").exists() && !path.join("image-1/undo.dbf").exists());
    // The marker is still there, so that the rest goes once the foreign things are moved away.
    removal.foreign.iter().for_each(|file| {
        let _ = fs::remove_file(file).or_else(|_| fs::remove_dir(file));
    });
    assert!(leftover(parent.path()).remove().unwrap().foreign.is_empty());
    assert!(!path.exists());
}

#[test]
fn what_does_not_bear_the_runs_marker_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    let path = killed(parent.path());
    fs::remove_file(path.join("SPINDLE-DATA")).unwrap();
    assert!(refused(parent.path()).contains("no marker file SPINDLE-DATA"));
    for (text, told) in [
        (marker("another-run"), "another run, \"another-run\""),
        (String::new(), "cannot be read"),
        ("{".to_owned(), "cannot be read"),
    ] {
        fs::write(path.join("SPINDLE-DATA"), text).unwrap();
        let refusal = refused(parent.path());
        assert!(refusal.contains(told), "{refusal}");
    }
    fs::remove_file(path.join("SPINDLE-DATA")).unwrap();
    fs::write(parent.path().join("real-marker"), marker(RUN)).unwrap();
    symlink(parent.path().join("real-marker"), path.join("SPINDLE-DATA")).unwrap();
    assert!(refused(parent.path()).contains("is a symbolic link"));
    assert!(path.join("golden-1/data10.dbf").exists());
}

#[test]
fn a_link_or_a_file_in_its_place_is_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = killed(elsewhere.path());
    let path = parent.path().join(format!("spindle-data-{RUN}"));
    symlink(&target, &path).unwrap();
    assert!(refused(parent.path()).contains("symbolic link"));
    assert!(matches!(
        DataDirectory::create(parent.path(), RUN),
        Err(LayoutError::DataDirectoryExists { .. })
    ));
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"a file").unwrap();
    assert!(refused(parent.path()).contains("not a directory"));
    assert!(target.join("golden-1/data10.dbf").exists());
}

#[test]
fn the_directory_of_a_living_run_is_left_to_it() {
    let parent = tempfile::tempdir().unwrap();
    let directory = DataDirectory::create(parent.path(), RUN).unwrap();
    match DataDirectory::leftover(parent.path(), RUN) {
        Err(LayoutError::RunAlive { pid, .. }) => assert_eq!(pid, std::process::id()),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("removed from a living run"),
    }
    directory.remove().unwrap();
}

#[test]
fn a_file_in_use_is_not_removed() {
    let parent = tempfile::tempdir().unwrap();
    let path = killed(parent.path());
    let used = path.join("image-1/undo.dbf");
    let trial = identify(&used, Caching::Buffered).unwrap();
    match leftover(parent.path()).remove() {
        Err(LayoutError::File(FileError::InUse { path })) => assert_eq!(path, used),
        other => panic!("{other:?}"),
    }
    assert!(used.exists());
    drop(trial);
    assert!(leftover(parent.path()).remove().unwrap().foreign.is_empty());
}

#[test]
fn too_little_space_is_told_with_figures() {
    let parent = tempfile::tempdir().unwrap();
    let directory = DataDirectory::create(parent.path(), RUN).unwrap();
    check_space(directory.path(), 1).unwrap();
    let needed_bytes = 1 << 60;
    match check_space(directory.path(), needed_bytes) {
        Err(error @ LayoutError::NotEnoughSpace { free_bytes, .. }) => {
            let told = error.to_string();
            assert!(free_bytes > 0 && free_bytes < needed_bytes);
            assert!(
                told.contains("1,048,576 TiB needed") && told.contains("free some"),
                "{told}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_place_that_is_no_directory_or_a_bad_name_makes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("file"), b"").unwrap();
    for place in ["missing", "file"] {
        let place = parent.path().join(place);
        let error = DataDirectory::create(&place, RUN)
            .err()
            .expect("no directory");
        assert!(
            matches!(error, LayoutError::NotWritable { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(place.to_str().unwrap()));
    }
    for name in ["", "..", "a/b", ".hidden", "ü"] {
        assert!(
            matches!(
                DataDirectory::create(parent.path(), name),
                Err(LayoutError::BadRunId { .. })
            ),
            "{name}"
        );
    }
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}
