//! `clean` leaves alone what is not, or no longer, a dead run's. Each of these breaks one of the marks by which it
//! knows.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_layout::clean::clean_run;
use spindle_layout::guard::Refusal;
use spindle_layout::spec::LayoutKind;
use spindle_layout::{Cleaned, clean};
use spindle_system::SystemTree;

use super::scene::{Disk, MIB, RUN, Scene, can_run, carry_out_in, file_system, layout, tool};

const TOOLS: [&str; 5] = ["losetup", "mkfs.ext4", "blkid", "wipefs", "blockdev"];

/// Times of files go in steps of some milliseconds: what is to be later than something else waits so long.
pub(super) const STEP_OF_TIMES: Duration = Duration::from_millis(30);

/// Makes layouts and lets them lie, as a killed run does.
pub(super) fn abandoned(scene: &Scene, specs: &[spindle_layout::LayoutSpec]) {
    let (provision, ledger) = carry_out_in(scene.path(), specs);
    for made in provision.layouts() {
        assert!(made.is_ok(), "{made:?}");
    }
    let kept = fs::read(scene.ledgers().join(format!("{RUN}.jsonl"))).unwrap();
    provision.abandon();
    // In a process that is killed nothing is dropped; its descriptors are closed.
    std::mem::forget(Arc::clone(&ledger));
    drop(ledger);
    fs::remove_file(scene.ledgers().join(format!("{RUN}.jsonl"))).unwrap();
    fs::write(scene.ledgers().join("dead.jsonl"), kept).unwrap();
    std::thread::sleep(STEP_OF_TIMES);
}

/// A program that another test starts has the ledger open for a moment, and its lock: as long the run seems alive.
pub(super) fn cleaned(scene: &Scene) -> Cleaned {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let cleaned = cleaned_now(scene);
        if !cleaned.alive || Instant::now() > until {
            return cleaned;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn cleaned_now(scene: &Scene) -> Cleaned {
    let mut all = clean(&scene.ledgers(), &SystemTree::default(), false, None).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn a_living_run_is_left_alone() {
    let scene = Scene::new();
    let (provision, ledger) = carry_out_in(
        scene.path(),
        &[layout(
            "it",
            vec![scene.file("a", 16 * MIB)],
            LayoutKind::Raw,
        )],
    );
    let during = scene.state();
    // The first one leaves it its lock, too.
    for _ in 0..2 {
        let cleaned = cleaned_now(&scene);
        assert!(cleaned.alive && cleaned.removed.is_empty(), "{cleaned:?}");
        assert_eq!(scene.state(), during);
    }
    assert_eq!(provision.teardown(), Vec::<String>::new());
    drop(ledger);
    assert_eq!(
        clean(&scene.ledgers(), &SystemTree::default(), false, None).unwrap(),
        []
    );
}

#[test]
fn a_dry_run_tells_and_touches_nothing() {
    if !can_run("a_dry_run_tells_and_touches_nothing", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let before = scene.state();
    abandoned(
        &scene,
        &[layout(
            "it",
            vec![scene.file("a", 32 * MIB)],
            file_system("ext4", &[], ""),
        )],
    );
    let during = scene.state();
    let told = clean(&scene.ledgers(), &SystemTree::default(), true, None).unwrap();
    assert_eq!(scene.state(), during);
    let done = cleaned(&scene);
    assert_eq!(told[0].removed, done.removed);
    assert_eq!(scene.state(), before);
}

#[test]
fn another_file_of_that_name_stays() {
    let scene = Scene::new();
    let spec = layout("it", vec![scene.file("a", 16 * MIB)], LayoutKind::Raw);
    // As root the file has a loop device, which goes first.
    abandoned(&scene, &[spec]);
    fs::rename(scene.path().join("a"), scene.path().join("moved")).unwrap();
    fs::write(scene.path().join("a"), b"mine").unwrap();
    let cleaned = cleaned(&scene);
    assert!(
        cleaned
            .not_ours
            .iter()
            .any(|text| text.contains("another file of that name")),
        "{cleaned:?}"
    );
    assert_eq!(fs::read(scene.path().join("a")).unwrap(), b"mine");
}

#[test]
fn a_loop_device_that_stands_for_something_else_stays() {
    if !can_run("a_loop_device_that_stands_for_something_else_stays", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    abandoned(
        &scene,
        &[layout(
            "it",
            vec![scene.file("a", 16 * MIB)],
            LayoutKind::Raw,
        )],
    );
    let line = scene
        .state()
        .into_iter()
        .find(|line| line.starts_with("/sys/block/loop"))
        .unwrap();
    let name = line
        .split(' ')
        .next()
        .unwrap()
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();
    let device = format!("/dev/{name}");
    tool("losetup", &["--detach", &device]);
    let other = scene.path().join("other");
    fs::File::create(&other).unwrap().set_len(MIB).unwrap();
    tool("losetup", &[&device, other.to_str().unwrap()]);
    let cleaned = cleaned(&scene);
    let backing = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap();
    tool("losetup", &["--detach", &device]);
    assert!(backing.trim().ends_with("/other"), "{backing}");
    assert!(
        cleaned.not_ours[0].contains("now stands for"),
        "{cleaned:?}"
    );
}

#[test]
fn a_mount_of_another_stays() {
    if !can_run("a_mount_of_another_stays", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    abandoned(
        &scene,
        &[layout(
            "it",
            vec![scene.file("a", 32 * MIB)],
            file_system("ext4", &[], ""),
        )],
    );
    let at = scene.path().join(format!("mounts/spindle-{RUN}-1"));
    let at = at.to_str().unwrap();
    tool("umount", &[at]);
    tool("mount", &["-t", "tmpfs", "mine", at]);
    let first = cleaned(&scene);
    let still = scene
        .state()
        .iter()
        .any(|line| line.contains(" - tmpfs mine "));
    tool("umount", &[at]);
    fs::remove_dir_all(scene.path().join("mounts")).unwrap();
    assert!(
        still
            && first
                .not_ours
                .iter()
                .any(|text| text.contains("mine is mounted there now")),
        "{first:?}"
    );
}

#[test]
fn a_device_that_bears_something_new_is_not_erased() {
    if !can_run("a_device_that_bears_something_new_is_not_erased", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    abandoned(
        &scene,
        &[layout(
            "it",
            vec![disk.spec()],
            file_system("ext4", &[], ""),
        )],
    );
    let at = scene.path().join(format!("mounts/spindle-{RUN}-1"));
    tool("umount", &[at.to_str().unwrap()]);
    tool(
        "mkfs.ext4",
        &["-q", "-F", "-L", "precious", disk.path.to_str().unwrap()],
    );
    let cleaned = cleaned(&scene);
    assert!(
        cleaned
            .not_ours
            .iter()
            .any(|text| text.contains("which the run did not make")),
        "{cleaned:?}"
    );
    let refusal = disk.look(&[]).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::NotEmpty { content, .. } if content.contains("precious")),
        "{refusal}"
    );
}

#[test]
fn bytes_without_a_name_are_erased_only_while_the_device_stayed() {
    if !can_run(
        "bytes_without_a_name_are_erased_only_while_the_device_stayed",
        &TOOLS,
    ) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let spec = layout("it", vec![disk.spec()], LayoutKind::Raw);
    let (provision, ledger) = carry_out_in(scene.path(), &[spec]);
    let kept = fs::read_to_string(scene.ledgers().join(format!("{RUN}.jsonl"))).unwrap();
    // A device that is written from its first byte on bears no stamp.
    assert!(kept.contains("\"is_stamped\":true"), "{kept}");
    let kept = kept.replace("\"is_stamped\":true", "\"is_stamped\":false");
    drop((provision, ledger));
    // What a database wrote, as if the run had died instead.
    let file = fs::OpenOptions::new().write(true).open(&disk.path).unwrap();
    file.write_all_at(&[9; 4096], 0).unwrap();
    drop(file);
    let path = scene.ledgers().join("dead.jsonl");
    // As if the system had been started again.
    let boot = boot_id();
    fs::write(&path, kept.replace(&boot, "another-start")).unwrap();
    let first = cleaned(&scene);
    assert!(
        first.not_ours.len() == 1 && disk.look(&[]).is_err(),
        "{first:?}"
    );
    // It is said as long as it is there.
    assert_eq!(cleaned(&scene).not_ours, first.not_ours);
    fs::write(&path, kept).unwrap();
    let second = cleaned(&scene);
    assert_eq!(second.removed.len(), 1, "{second:?}");
    assert!(disk.look(&[]).is_ok());
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn a_ledger_that_is_not_understood_is_kept_and_nothing_touched() {
    let scene = Scene::new();
    fs::create_dir(scene.ledgers()).unwrap();
    let heading = "{\"run\":{\"format\":1,\"run\":\"x\",\"pid\":1,\"boot_id\":null}}\n";
    let victim = scene.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let entry = format!(
        "{{\"making\":{{\"number\":1,\"layout\":null,\"record\":{{\"made\":\"made_directory\",\"path\":{:?}}}}}}}\n",
        victim
    );
    let path = scene.ledgers().join("dead.jsonl");
    for damaged in [
        format!("{heading}{entry}nonsense\n"),
        format!(
            "{heading}{entry}{{\"making\":{{\"number\":2,\"layout\":null,\"record\":{{\"made\":\"of_a_later_version\"}}}}}}\n"
        ),
        format!("{entry}{heading}"),
        heading.replace("\"format\":1", "\"format\":2") + &entry,
    ] {
        fs::write(&path, &damaged).unwrap();
        let cleaned = cleaned(&scene);
        assert!(cleaned.left[0].contains("is not understood"), "{cleaned:?}");
        assert!(victim.exists() && fs::read_to_string(&path).unwrap() == damaged);
    }
    // The line that was being written when the run died is no damage.
    fs::write(&path, format!("{heading}{entry}{{\"making\":{{\"num")).unwrap();
    let done = cleaned(&scene);
    assert_eq!((done.removed.len(), done.left.len()), (1, 0), "{done:?}");
    assert!(!victim.exists() && !path.exists());
    // Neither is a ledger that was only just begun.
    for begun in ["", "{\"ru", heading] {
        fs::File::create(&path)
            .unwrap()
            .write_all(begun.as_bytes())
            .unwrap();
        cleaned_nothing(&cleaned(&scene));
        assert!(!path.exists());
    }
}

fn cleaned_nothing(cleaned: &Cleaned) {
    assert!(
        cleaned.removed.is_empty() && cleaned.left.is_empty(),
        "{cleaned:?}"
    );
}

#[test]
fn a_ledger_that_is_no_file_of_ones_own_is_not_obeyed() {
    let scene = Scene::new();
    fs::create_dir(scene.ledgers()).unwrap();
    let victim = scene.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let text = format!(
        "{{\"run\":{{\"format\":1,\"run\":\"x\",\"pid\":1,\"boot_id\":null}}}}\n\
         {{\"making\":{{\"number\":1,\"layout\":null,\"record\":{{\"made\":\"made_directory\",\"path\":{victim:?}}}}}}}\n"
    );
    let refused = |words: &str| {
        let cleaned = cleaned(&scene);
        assert!(cleaned.left[0].contains(words), "{cleaned:?}");
        assert!(victim.exists());
    };
    let (path, elsewhere) = (
        scene.ledgers().join("dead.jsonl"),
        scene.path().join("mine"),
    );
    fs::write(&elsewhere, &text).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    refused("it is a link");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), text);
    fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    refused("not a regular file");
    fs::remove_file(&path).unwrap();
    fs::write(&path, &text).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        refused("belongs to user 65534");
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    assert_eq!(cleaned(&scene).removed.len(), 1, "one's own is obeyed");
    assert!(!victim.exists());
}

/// A database that libblkid does not know: nothing tells it from the run's own, but the run's stamp, which is gone.
#[test]
fn data_that_a_person_put_on_a_raw_device_after_a_kill_stay() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !can_run(
        "data_that_a_person_put_on_a_raw_device_after_a_kill_stay",
        &TOOLS,
    ) {
        return;
    }
    // All of the device, or its beginning alone.
    for written_bytes in [64 * MIB, 100 << 10] {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 64 * MIB);
        let mut spec = layout("it", vec![disk.spec()], LayoutKind::Raw);
        spec.preparation.overwrite_passes = 1;
        abandoned(&scene, &[spec]);
        let theirs: Vec<u8> = (0..written_bytes).map(|at| (at % 251) as u8 | 1).collect();
        let device = fs::OpenOptions::new().write(true).open(&disk.path).unwrap();
        device.write_all_at(&theirs, 0).unwrap();
        device.sync_all().unwrap();
        drop(device);
        let before = fs::read(scene.path().join("disk")).unwrap();
        let cleaned = cleaned(&scene);
        assert_eq!(cleaned.not_ours.len(), 1, "{cleaned:?}");
        assert!(
            cleaned.not_ours[0].contains("nothing on it says whose that is"),
            "{cleaned:?}"
        );
        assert!(
            fs::read(scene.path().join("disk")).unwrap() == before,
            "a byte of theirs changed"
        );
    }
}

#[test]
fn what_a_killed_run_left_on_a_raw_device_goes() {
    if !can_run("what_a_killed_run_left_on_a_raw_device_goes", &TOOLS) {
        return;
    }
    let scene = Scene::new();
    let disk = Disk::new(&scene, "disk", 64 * MIB);
    let mut spec = layout("it", vec![disk.spec()], LayoutKind::Raw);
    spec.preparation.overwrite_passes = 1;
    abandoned(&scene, &[spec]);
    // The run goes on: what is on the device counts as its own.
    let tree = SystemTree::default();
    let cleaned = clean_run(&scene.ledgers(), "dead", &tree, None).unwrap();
    let cleaned = cleaned.expect("there is a ledger");
    assert_eq!(cleaned.not_ours, Vec::<String>::new());
    assert_eq!(
        disk.look(&[]).unwrap().permit,
        spindle_layout::guard::Permit::Empty
    );
}

/// The stamp lies in the first MiB. Whoever used the rest of the device after the kill left no trace there.
#[test]
fn what_lies_behind_the_first_mib_after_a_kill_counts_as_a_persons() {
    if !can_run(
        "what_lies_behind_the_first_mib_after_a_kill_counts_as_a_persons",
        &TOOLS,
    ) {
        return;
    }
    for is_written in [false, true] {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 64 * MIB);
        let spec = layout("it", vec![disk.spec()], LayoutKind::Raw);
        abandoned(&scene, &[spec]);
        let theirs = vec![7; MIB as usize];
        if is_written {
            let device = fs::OpenOptions::new().write(true).open(&disk.path).unwrap();
            for at in [40, 63] {
                device.write_all_at(&theirs, at * MIB).unwrap();
            }
            device.sync_all().unwrap();
        }
        let cleaned = cleaned(&scene);
        let mut removed = cleaned.removed.iter();
        let removed = removed.find(|what| what.starts_with("what Spindle put on"));
        let removed = removed.expect("the device is emptied");
        let stays = "; the data behind its first MiB stay";
        assert_eq!(removed.contains(stays), is_written, "{cleaned:?}");
        let left = fs::read(scene.path().join("disk")).unwrap();
        for at in [40, 63] {
            let kept = &left[(at * MIB) as usize..][..MIB as usize];
            assert_eq!(kept == theirs, is_written, "a byte of theirs changed");
        }
        assert!(left[..MIB as usize].iter().all(|byte| *byte == 0));
        match disk.look(&[]) {
            Ok(looked) => assert!(!is_written, "{:?}", looked.permit),
            Err(refusal) => assert!(is_written, "{refusal}"),
        }
    }
}

/// What lies behind the end that a device had is nobody's to empty, nor to mark as Spindle's.
#[test]
fn what_a_device_has_grown_by_stays() {
    if !can_run("what_a_device_has_grown_by_stays", &TOOLS) {
        return;
    }
    for is_killed in [false, true] {
        let scene = Scene::new();
        let disk = Disk::new(&scene, "disk", 64 * MIB);
        let mut spec = layout("it", vec![disk.spec()], LayoutKind::Raw);
        spec.preparation.overwrite_passes = 1;
        let file = scene.path().join("disk");
        let grow = || {
            let grown = fs::OpenOptions::new().write(true).open(&file).unwrap();
            let theirs = vec![5; 4 * MIB as usize];
            grown.write_all_at(&theirs, 64 * MIB).unwrap();
            tool("losetup", &["--set-capacity", disk.path.to_str().unwrap()]);
        };
        if is_killed {
            abandoned(&scene, &[spec]);
            grow();
            let cleaned = cleaned(&scene);
            assert!(
                cleaned.not_ours.is_empty() && cleaned.left.is_empty(),
                "{cleaned:?}"
            );
        } else {
            let (provision, ledger) = carry_out_in(scene.path(), &[spec]);
            grow();
            drop((provision, ledger));
        }
        let left = fs::read(&file).unwrap();
        let theirs = &left[64 * MIB as usize..];
        assert!(theirs.len() == 4 * MIB as usize && theirs.iter().all(|byte| *byte == 5));
        assert!(left[..MIB as usize].iter().all(|byte| *byte == 0));
        assert!(disk.look(&[]).is_err(), "it holds something");
    }
}
