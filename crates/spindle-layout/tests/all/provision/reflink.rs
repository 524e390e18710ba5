//! Images whose files share their blocks with originals, on file systems that can and on some that cannot.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spindle_layout::{
    ChangedBlocks, DatabaseFiles, DatabaseShape, FileManager, Golden, GoldenSource, GoldenTree,
    Image, ImageSpec, LayoutError, Placement, PlacementTarget, RawSpace, RestoreMethod,
    TreeDirectories, TreeImage, TreeSite, Verify, reflink_refusal,
};

use super::making::target;
use super::scene::{MIB, Scene, can_run, file_system, layout};

const BLOCK: u64 = 8192;

fn shape() -> DatabaseShape {
    DatabaseShape {
        block_bytes: BLOCK,
        control_bytes: MIB,
        redo_bytes: vec![MIB; 2],
        undo_bytes: MIB,
        data_bytes: vec![3 * MIB + BLOCK, 2 * MIB],
        double_write_bytes: 0,
        temp_bytes: Vec::new(),
    }
}

fn files_in(directory: &Path) -> DatabaseFiles {
    fs::create_dir(directory).unwrap();
    let placement = Placement::in_directory(directory);
    DatabaseFiles::place(&shape(), &placement, &mut RawSpace::default()).unwrap()
}

fn golden(scene: &Scene) -> Arc<Golden> {
    let directory = scene.path().join("golden");
    fs::create_dir(&directory).unwrap();
    let loading = Golden::create(&directory, &shape(), 1, &Arc::default()).unwrap();
    loading.seal(GoldenSource::OnDisk).unwrap()
}

fn contents(files: &DatabaseFiles) -> Vec<Vec<u8>> {
    let files = files.named();
    let read = files.iter().map(|(_, place)| fs::read(place.path()));
    read.collect::<Result<_, _>>().unwrap()
}

fn damage(path: &Path, blocks: &[u64]) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    for block in blocks {
        file.write_all_at(&[0xEE; 3], block * BLOCK + 1000).unwrap();
    }
}

fn clones_in(golden: &Arc<Golden>, directory: &Path) -> (Image, DatabaseFiles) {
    let originals = files_in(&directory.join("original"));
    let spec = ImageSpec {
        files: files_in(&directory.join("image")),
        manager: FileManager::Plain,
        originals: Some(originals.clone()),
    };
    let image = Image::provision(golden, spec).unwrap();
    (image, originals)
}

fn check(golden: &Arc<Golden>, directory: &Path) {
    let (image, originals) = clones_in(golden, directory);
    let before = contents(&originals);
    assert_eq!(contents(image.files()), before);
    let data = image.files().data[0].path();
    damage(data, &[0, 1, 200, 384]);
    damage(image.files().redo[1].path(), &[127]);
    assert_ne!(contents(image.files()), before);
    assert_eq!(
        contents(&originals),
        before,
        "the original keeps its blocks"
    );
    let changed: ChangedBlocks = [
        ("data1".to_owned(), vec![0..2, 200..201, 384..385]),
        ("redo2".to_owned(), std::iter::once(127..128).collect()),
    ]
    .into();
    let report = image.restore(Some(&changed), Verify::Full).unwrap();
    assert_eq!(contents(image.files()), before);
    assert_eq!(
        (
            report.method,
            report.verified,
            report.changed_blocks,
            report.copied_bytes
        ),
        (RestoreMethod::Cloned, Verify::Full, 5, 0)
    );
    assert_eq!(report.moved_files, Vec::<String>::new());
    assert_eq!(report.resident_pages, 0);
    // A list that misses blocks does no harm: all of them are put back.
    damage(data, &[7]);
    let none = ChangedBlocks::new();
    image.restore(Some(&none), Verify::Changed).unwrap();
    assert_eq!(contents(image.files()), before);
    damage(data, &[9]);
    let report = image.restore(None, Verify::Changed).unwrap();
    assert_eq!((report.verified, report.changed_blocks), (Verify::Full, 0));
    // Something wrote to the original: nothing may be measured on that.
    damage(originals.data[1].path(), &[3, 4]);
    match image.restore(Some(&none), Verify::Full) {
        Err(LayoutError::NotPutBack {
            file,
            block,
            blocks,
        }) => assert_eq!((file.as_str(), block, blocks), ("data2", 3, 2)),
        other => panic!("{other:?}"),
    }
}

fn directories_in(directory: PathBuf) -> TreeDirectories {
    fs::create_dir(&directory).unwrap();
    let directories = TreeDirectories::within(|_| directory.clone());
    directories.make().unwrap();
    directories
}

/// Writes to a block of a file, and far behind its end.
fn damage_server_file(path: &Path) {
    damage(path, &[1, 200]);
}

/// A server's files: as many as it likes, longer and shorter than they were, and new ones.
fn check_tree(golden: &Arc<GoldenTree>, directory: &Path) {
    let directories = directories_in(directory.join("server"));
    let originals = directories_in(directory.join("server-original"));
    let site = TreeSite {
        originals: Some(originals.clone()),
        ..directories.clone().into()
    };
    let image = TreeImage::provision(golden, site).unwrap();
    let (table, log) = (
        directories.data.join("base/1"),
        directories.redo.join("log"),
    );
    let before = [&table, &log].map(|path| fs::read(path).unwrap());
    assert_eq!(before.each_ref().map(Vec::len), [1_000_000, 50_000]);
    for verify in [Verify::Full, Verify::Changed] {
        damage_server_file(&table);
        fs::write(directories.temp.join("new"), "x").unwrap();
        fs::remove_file(&log).unwrap();
        let report = image.restore(verify).unwrap();
        assert_eq!([&table, &log].map(|path| fs::read(path).unwrap()), before);
        assert_eq!(directories.files().unwrap().len(), 2);
        let copied = (report.changed_blocks, report.copied_bytes);
        assert_eq!((report.method, copied), (RestoreMethod::Cloned, (0, 0)));
    }
    // Something wrote to the original.
    damage(&originals.data.join("base/1"), &[3, 4]);
    damage_server_file(&table);
    let told = image.restore(Verify::Full).unwrap_err().to_string();
    assert!(told.contains("base/1"), "{told}");
}

fn golden_tree(scene: &Scene) -> Arc<GoldenTree> {
    let directories = directories_in(scene.path().join("golden-tree"));
    fs::create_dir(directories.data.join("base")).unwrap();
    let bytes: Vec<u8> = (0..1_000_000u32).map(|at| (at / 3) as u8).collect();
    fs::write(directories.data.join("base/1"), &bytes).unwrap();
    fs::write(directories.redo.join("log"), &bytes[..50_000]).unwrap();
    GoldenTree::seal(directories, &Arc::default()).unwrap()
}

#[test]
fn files_share_blocks_with_their_originals_and_are_put_back() {
    let tools = ["losetup", "mkfs.xfs", "mkfs.btrfs", "blkid", "mount"];
    if !can_run(
        "files_share_blocks_with_their_originals_and_are_put_back",
        &tools,
    ) {
        return;
    }
    let scene = Scene::new();
    let specs = [
        ("xfs", 320, file_system("xfs", &["-m", "reflink=1"], "")),
        ("btrfs", 128, file_system("btrfs", &[], "")),
        ("nodatacow", 128, file_system("btrfs", &[], "nodatacow")),
    ]
    .map(|(name, mib, kind)| layout(name, vec![scene.file(name, mib * MIB)], kind));
    let provision = scene.carry_out(&specs);
    let (golden, golden_tree) = (golden(&scene), golden_tree(&scene));
    for (index, spec) in specs.iter().enumerate() {
        let PlacementTarget::Directory(directory) = target(&provision, index) else {
            panic!("{} is a file system", spec.name);
        };
        assert_eq!(reflink_refusal(&directory), None, "{}", spec.name);
        check(&golden, &directory);
        check_tree(&golden_tree, &directory);
        eprintln!("put back by reflink: {}", spec.name);
    }
    assert_eq!(provision.teardown(), Vec::<String>::new());
}

#[test]
fn what_cannot_share_blocks_is_told() {
    if !can_run(
        "what_cannot_share_blocks_is_told",
        &["losetup", "mkfs.ext4", "mkfs.xfs"],
    ) {
        return;
    }
    let scene = Scene::new();
    let specs = [
        ("ext4", 32, file_system("ext4", &[], "")),
        ("old xfs", 320, file_system("xfs", &["-m", "reflink=0"], "")),
    ]
    .map(|(name, mib, kind)| {
        let file = scene.file(&name.replace(' ', "-"), mib * MIB);
        layout(name, vec![file], kind)
    });
    let provision = scene.carry_out(&specs);
    let golden = golden(&scene);
    for index in 0..specs.len() {
        let PlacementTarget::Directory(directory) = target(&provision, index) else {
            panic!("a file system");
        };
        let told = reflink_refusal(&directory).unwrap();
        assert!(told.contains("reflink=1"), "{told}");
        let originals = files_in(&directory.join("original"));
        let files = files_in(&directory.join("image"));
        let spec = ImageSpec {
            files,
            manager: FileManager::Plain,
            originals: Some(originals),
        };
        let refused = Image::provision(&golden, spec).err().unwrap();
        assert!(refused.to_string().contains("share blocks"), "{refused}");
        let left = |name: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(directory.join(name)).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        assert!(left("original").is_empty() && left("image").is_empty());
    }
}
