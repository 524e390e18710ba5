//! What goes wrong with one layout is said in its tool's words, and concerns it alone.

use spindle_layout::spec::LayoutKind;
use spindle_layout::{SystemTree, clean};

use super::making::target;
use super::scene::{MIB, Scene, can_run, file_system, layout};

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
        ("could not make the file ", "no room for 1048576 TiB in "),
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
    let spindle_layout::Target::Directory(directory) = target(&provision, 0) else {
        panic!("a file system is a directory")
    };
    let open = std::fs::File::create(directory.join("open")).unwrap();
    let left = provision.teardown();
    assert!(
        left[0].contains("is still in use") && left.len() >= 3,
        "{left:?}"
    );
    drop(open);
    let cleaned = clean(&scene.ledgers(), &SystemTree::default(), false).unwrap();
    assert_eq!(
        (cleaned.len(), cleaned[0].left.len()),
        (1, 0),
        "{cleaned:?}"
    );
    assert_eq!(scene.state(), before);
}
