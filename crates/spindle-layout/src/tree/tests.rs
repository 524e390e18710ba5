//! A tree of files is kept, compared and put back as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

struct Scene {
    place: tempfile::TempDir,
    image: TreeImage,
}

fn directories(place: &Path, name: &str) -> TreeDirectories {
    let root = place.join(name);
    fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    directories
}

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7) as u8 ^ seed).collect()
}

impl Scene {
    fn new() -> Scene {
        let place = tempfile::tempdir().unwrap();
        let golden = directories(place.path(), "golden");
        fs::create_dir(golden.data.join("base")).unwrap();
        fs::write(golden.data.join("base/1"), bytes(1, 3 << 20)).unwrap();
        fs::write(golden.data.join("base/2"), bytes(2, 100)).unwrap();
        fs::write(golden.redo.join("log"), bytes(3, 50_000)).unwrap();
        fs::set_permissions(golden.redo.join("log"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("/nowhere", golden.data.join("link")).unwrap();
        let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
        let image = directories(place.path(), "image");
        let image = TreeImage::provision(&golden, image).unwrap();
        Scene { place, image }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join("image").join(path)
    }

    fn assert_as_golden(&self) {
        assert_eq!(fs::read(self.at("data/base/1")).unwrap(), bytes(1, 3 << 20));
        assert_eq!(fs::read(self.at("data/base/2")).unwrap(), bytes(2, 100));
        assert_eq!(fs::read(self.at("redo/log")).unwrap(), bytes(3, 50_000));
        assert_eq!(self.image.directories().files().unwrap().len(), 3);
        assert_eq!(
            self.image.directories().bytes().unwrap(),
            (3 << 20) + 50_100
        );
    }
}

#[test]
fn an_image_is_the_golden_tree_but_for_links() {
    let scene = Scene::new();
    scene.assert_as_golden();
    let mode = fs::metadata(scene.at("redo/log")).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o640);
    assert!(!scene.at("data/link").exists());
}

#[test]
fn what_a_trial_did_is_undone_in_place() {
    for verify in [Verify::Full, Verify::Changed] {
        let scene = Scene::new();
        let first = scene.at("data/base/1");
        let inode = fs::metadata(&first).unwrap().ino();
        let mut changed = bytes(1, 3 << 20);
        changed[2 << 20] ^= 1;
        changed.truncate((3 << 20) - 5);
        fs::write(&first, changed).unwrap();
        fs::remove_file(scene.at("data/base/2")).unwrap();
        fs::write(scene.at("redo/log"), bytes(3, 90_000)).unwrap();
        fs::create_dir_all(scene.at("temp/new/deep")).unwrap();
        fs::write(scene.at("temp/new/deep/file"), "x").unwrap();
        symlink("/elsewhere", scene.at("data/mine")).unwrap();

        let report = scene.image.restore(verify).unwrap();
        scene.assert_as_golden();
        assert_eq!(fs::metadata(&first).unwrap().ino(), inode);
        // The block in the middle, the one that was cut off, and the file that was gone.
        assert_eq!(report.changed_blocks, 3);
        assert!(!scene.at("temp/new").exists());
        assert!(fs::symlink_metadata(scene.at("data/mine")).is_ok());
        assert_eq!(scene.image.restore(verify).unwrap().changed_blocks, 0);
    }
}

#[test]
fn scattered_blocks_come_back_and_a_golden_tree_that_changed_is_read_anew() {
    let scene = Scene::new();
    let scattered: Vec<usize> = (0..(3 << 20) / 8192)
        .filter(|block| block % 3 != 1)
        .collect();
    let mut changed = bytes(1, 3 << 20);
    for block in &scattered {
        changed[block * 8192 + 8191] ^= 0x80;
    }
    fs::write(scene.at("data/base/1"), changed).unwrap();
    let report = scene.image.restore(Verify::Full).unwrap();
    assert_eq!(report.changed_blocks, scattered.len() as u64);
    assert_eq!(report.copied_bytes, scattered.len() as u64 * 8192);
    scene.assert_as_golden();

    // Its checksums are known by now, and are no longer right.
    let golden = scene.place.path().join("golden/data/base/1");
    let mut other = bytes(1, 3 << 20);
    other[1 << 20] ^= 1;
    fs::write(golden, &other).unwrap();
    assert_eq!(scene.image.restore(Verify::Full).unwrap().changed_blocks, 1);
    assert_eq!(fs::read(scene.at("data/base/1")).unwrap(), other);
}

#[test]
fn a_change_that_hides_its_time_is_found_when_everything_is_compared() {
    let scene = Scene::new();
    let path = scene.at("data/base/2");
    fs::write(&path, bytes(9, 100)).unwrap();
    // As if it had not been written to: what is trusted is what the file says of itself.
    let status = rustix::fs::stat(&path).unwrap();
    scene
        .image
        .stamps
        .lock()
        .unwrap()
        .insert(path.clone(), Stamp::of(&status));
    assert_eq!(
        scene.image.restore(Verify::Changed).unwrap().changed_blocks,
        0
    );
    assert_eq!(scene.image.restore(Verify::Full).unwrap().changed_blocks, 1);
    scene.assert_as_golden();
}

#[test]
fn what_a_volume_was_not_put_back_to_is_found() {
    let not_put_back = |verify, change: &dyn Fn(&Scene), file: &str| {
        let scene = Scene::new();
        change(&scene);
        let told = scene.image.rolled_back(verify, Instant::now());
        let is_it = matches!(&told, Err(LayoutError::NotPutBack { file: found, .. })
            if found.ends_with(file));
        assert!(is_it, "{file}: {told:?}");
        // A second look finds the image as it should be.
        let report = scene.image.rolled_back(verify, Instant::now()).unwrap();
        let wanted = (RestoreMethod::RolledBack, 0, verify);
        assert_eq!(
            (report.method, report.changed_blocks, report.verified),
            wanted
        );
        scene.assert_as_golden();
    };
    for verify in [Verify::Full, Verify::Changed] {
        let write = |path: &'static str, what: Vec<u8>| {
            move |scene: &Scene| fs::write(scene.at(path), &what).unwrap()
        };
        not_put_back(
            verify,
            &write("data/base/2", bytes(9, 100)),
            "image/data/base/2",
        );
        not_put_back(
            verify,
            &write("redo/log", bytes(3, 60_000)),
            "image/redo/log",
        );
        not_put_back(verify, &write("temp/more", bytes(0, 1)), "image/temp/more");
    }
}

#[test]
fn a_tree_goes_away_whole_and_what_links_point_to_stays() {
    let scene = Scene::new();
    let outside = scene.place.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    symlink(&outside, scene.at("data/way")).unwrap();
    let parent = File::open(scene.place.path()).unwrap();
    wait_until_left(&scene.at("")).unwrap();
    let removed = remove_tree(&parent, c"image", &scene.at("")).unwrap();
    assert!(removed >= (3 << 20) + 50_100);
    assert!(!scene.at("").exists());
    assert_eq!(fs::read_to_string(outside).unwrap(), "mine");
}

#[test]
fn an_image_that_a_server_still_works_in_is_not_touched() {
    let scene = Scene::new();
    fs::remove_file(scene.at("data/base/2")).unwrap();
    let mut server = std::process::Command::new("sleep")
        .arg("1")
        .current_dir(scene.at("data/base"))
        .spawn()
        .unwrap();
    scene.image.restore(Verify::Full).unwrap();
    let ended = server.try_wait().unwrap();
    server.wait().unwrap();
    assert!(ended.is_some(), "it was put back beneath the server");
    scene.assert_as_golden();
}

/// As io_uring keeps files of a server that has gone.
#[test]
fn an_image_that_is_still_written_to_is_not_touched() {
    let scene = Scene::new();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(scene.at("data/base/2"));
    let file = file.unwrap();
    let late = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::os::unix::fs::FileExt::write_all_at(&file, b"late", 0).unwrap();
    });
    scene.image.restore(Verify::Full).unwrap();
    late.join().unwrap();
    scene.assert_as_golden();
}

/// A directory of the same file system may be mounted within, which its device number does not tell.
#[test]
fn what_is_mounted_within_a_tree_stays() {
    if !spindle_harness::is_root_or_skip("what_is_mounted_within_a_tree_stays") {
        return;
    }
    let scene = Scene::new();
    let theirs = scene.place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("thesis"), "precious").unwrap();
    let within = scene.at("data/mounted");
    fs::create_dir(&within).unwrap();
    let call = |program: &str, words: &[&str]| {
        let ended = std::process::Command::new(program).args(words).status();
        assert!(ended.unwrap().success(), "{program} {words:?}");
    };
    let at = within.to_str().unwrap();
    call("mount", &["--bind", theirs.to_str().unwrap(), at]);
    let put_back = scene.image.restore(Verify::Changed);
    let top = File::open(scene.place.path()).unwrap();
    let removed = remove_tree(&top, c"image", &scene.at(""));
    call("umount", &[at]);
    assert!(put_back.is_err() && removed.is_err());
    assert_eq!(
        fs::read_to_string(theirs.join("thesis")).unwrap(),
        "precious"
    );
}
