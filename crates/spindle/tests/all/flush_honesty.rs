//! `spindle calibrate --flushes` on storage that ignores flushes, which it must name, and on storage that does not,
//! which it must never accuse. Each case is made of loop devices, memory and mounts of its own. The thorough form
//! plants all liars and asks all honest ones, `SPINDLE_HONEST_ROUNDS` times.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_harness::{is_thorough, stride};

use spindle_system::disk::DiskCounters;
use spindle_system::{Beneath, SystemTree};

use crate::calibrate::{NOWHERE, alone};
use crate::few_resources::copy_of_program;
use crate::fuse_server::{FuseServer, PassesOn};
use crate::limits::own_directory;

/// What each case is asked for.
const ARGUMENTS: [&str; 5] = ["--flushes", "--time", "10s", "--quiet", "--json"];
const IMAGE_BYTES: u64 = 320 << 20;
/// How often it is asked on a busy disk.
const TRIES: usize = 3;
/// Others flush about once while one flush through FUSE is under way.
const PAUSE_OF_OTHERS: Duration = Duration::from_micros(300);
/// User and group "nobody" of Debian and most others.
const NOBODY: u32 = 65534;
/// How often each honest target is asked, once if not set.
const ROUNDS: &str = "SPINDLE_HONEST_ROUNDS";

/// Storage made for one case, removed in reverse.
struct Storage {
    directory: tempfile::TempDir,
    undo: Vec<Undo>,
    names: usize,
}

enum Undo {
    Run(Vec<String>),
    Serve(#[allow(dead_code, reason = "it unmounts when it is dropped")] FuseServer),
    RemoveZram(String),
    /// A loop device keeps the setting for its next user.
    SetWriteBack(PathBuf),
}

impl Storage {
    fn new() -> Storage {
        Storage {
            directory: own_directory(),
            undo: Vec::new(),
            names: 0,
        }
    }

    /// A new directory.
    fn place(&mut self) -> PathBuf {
        self.names += 1;
        let path = self.directory.path().join(format!("place{}", self.names));
        fs::create_dir(&path).unwrap();
        path
    }

    fn mount(&mut self, kind: &str, options: &str, source: &str) -> PathBuf {
        let place = self.place();
        let at = place.to_str().unwrap();
        run("mount", &["-t", kind, "-o", options, source, at]);
        self.undo_by(&["umount", "--lazy", at]);
        place
    }

    fn undo_by(&mut self, words: &[&str]) {
        let words = words.iter().map(|word| (*word).to_owned());
        self.undo.push(Undo::Run(words.collect()));
    }

    /// A loop device with a file in `directory`.
    fn loop_in(&mut self, directory: &Path, direct: &str) -> String {
        self.names += 1;
        let image = directory.join(format!("image{}", self.names));
        File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        let direct = format!("--direct-io={direct}");
        let device = run(
            "losetup",
            &["--find", "--show", &direct, image.to_str().unwrap()],
        );
        self.undo_by(&["losetup", "--detach", &device]);
        device
    }

    fn zram(&mut self) -> Option<String> {
        let id = added_zram()?;
        let name = format!("zram{id}");
        self.undo.push(Undo::RemoveZram(id));
        fs::write(
            format!("/sys/block/{name}/disksize"),
            IMAGE_BYTES.to_string(),
        )
        .ok()?;
        Some(format!("/dev/{name}"))
    }

    /// A file system on a device.
    fn formatted(&mut self, device: &str, kind: &str, options: &str) -> PathBuf {
        let (kind, made_as) = match kind {
            "ext4 without a journal" => ("ext4", vec!["mkfs.ext4", "-qF", "-O", "^has_journal"]),
            "xfs" => ("xfs", vec!["mkfs.xfs", "-qf"]),
            "btrfs" => ("btrfs", vec!["mkfs.btrfs", "-qf"]),
            "ext2" => ("ext2", vec!["mkfs.ext2", "-qF"]),
            "ext3" => ("ext3", vec!["mkfs.ext3", "-qF"]),
            _ => ("ext4", vec!["mkfs.ext4", "-qF"]),
        };
        run(made_as[0], &[&made_as[1..], &[device]].concat());
        self.mount(kind, options, device)
    }

    fn on_loop(&mut self, kind: &str, options: &str) -> PathBuf {
        let directory = self.directory.path().to_owned();
        let device = self.loop_in(&directory, "on");
        self.formatted(&device, kind, options)
    }

    fn tmpfs(&mut self) -> PathBuf {
        self.mount("tmpfs", "size=400m", "none")
    }

    /// An overlay whose changes lie in `directory`.
    fn overlay(&mut self, directory: &Path, options: &str) -> PathBuf {
        let lower = self.place();
        let at = |name: &str| {
            let path = directory.join(name);
            fs::create_dir(&path).unwrap();
            path.display().to_string()
        };
        let (upper, work) = (at("upper"), at("work"));
        let options = format!(
            "lowerdir={},upperdir={upper},workdir={work}{options}",
            lower.display()
        );
        self.mount("overlay", &options, "overlay")
    }

    fn fuse(&mut self, passes_on: PassesOn) -> PathBuf {
        let (place, beneath) = (self.place(), self.place());
        let server = FuseServer::mount(&place, &beneath, passes_on);
        self.undo.push(Undo::Serve(server));
        place
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        while let Some(undo) = self.undo.pop() {
            match undo {
                Undo::Run(words) => {
                    let _ = Command::new(&words[0]).args(&words[1..]).status();
                }
                Undo::Serve(server) => drop(server),
                Undo::SetWriteBack(setting) => {
                    let _ = fs::write(setting, "write back");
                }
                Undo::RemoveZram(id) => {
                    let _ = fs::write(format!("/sys/block/zram{id}/reset"), "1");
                    let _ = fs::write("/sys/class/zram-control/hot_remove", &id);
                }
            }
        }
    }
}

/// The number of a new device in memory, which has no size yet; `None` where the kernel makes none.
pub(crate) fn added_zram() -> Option<String> {
    let id = fs::read_to_string("/sys/class/zram-control/hot_add").ok()?;
    Some(id.trim().to_owned())
}

fn run(program: &str, arguments: &[&str]) -> String {
    let ended = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

/// What is said of a directory: asked a few times where other programs flush so much that it cannot be told.
fn honesty_of(directory: &Path, preload: Option<&Path>) -> Value {
    let mut honesty = Value::Null;
    for _ in 0..TRIES {
        honesty = honesty_now(directory, preload);
        if !is_hidden_by_others(&honesty) {
            break;
        }
    }
    honesty
}

fn is_hidden_by_others(honesty: &Value) -> bool {
    let because = honesty["because"].as_str().unwrap();
    honesty["trust"] == "unknown" && because.contains("of other programs")
}

/// Whether this is said of it, or that it cannot be told beside what other programs flush.
fn assert_trust(honesty: &Value, trust: &str, what: &str) {
    if is_hidden_by_others(honesty) {
        println!("{what}: hidden by others {TRIES} times");
        return;
    }
    assert_eq!(honesty["trust"], trust, "{what}: {honesty}");
}

fn honesty_now(directory: &Path, preload: Option<&Path>) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command.arg("calibrate").arg(directory).args(ARGUMENTS);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}: {said}", directory.display());
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    found["honesty"][0].clone()
}

type Make = fn(&mut Storage) -> Option<PathBuf>;

/// Storage that ignores flushes, whether the short form has it, and what must be said of it.
const LIARS: [(&str, bool, &str, Make); 27] = [
    ("tmpfs", false, "memory", |s| Some(s.tmpfs())),
    ("ramfs", false, "memory", |s| {
        Some(s.mount("ramfs", "rw", "none"))
    }),
    ("devtmpfs", false, "memory", |s| {
        Some(s.mount("devtmpfs", "rw", "none"))
    }),
    ("ext4 on zram", false, "memory", |s| on_zram(s, "ext4")),
    ("xfs on zram", false, "memory", |s| on_zram(s, "xfs")),
    ("btrfs on zram", false, "memory", |s| on_zram(s, "btrfs")),
    ("ext4 on a loop device on tmpfs", false, "memory", |s| {
        loop_on_tmpfs(s, "ext4")
    }),
    ("xfs on a loop device on tmpfs", false, "memory", |s| {
        loop_on_tmpfs(s, "xfs")
    }),
    ("overlay on tmpfs", false, "memory", |s| {
        let tmpfs = s.tmpfs();
        Some(s.overlay(&tmpfs, ""))
    }),
    ("ext4 with its journal on tmpfs", true, "memory", |s| {
        let (disk, memory) = disk_and_memory(s);
        run(
            "mke2fs",
            &["-qF", "-O", "journal_dev", "-b", "4096", &memory],
        );
        let journal = format!("device={memory}");
        run("mkfs.ext4", &["-qF", "-b", "4096", "-J", &journal, &disk]);
        Some(s.mount("ext4", "rw", &disk))
    }),
    ("btrfs over a disk and tmpfs", false, "memory", |s| {
        let (disk, memory) = disk_and_memory(s);
        run("mkfs.btrfs", &["-qf", "-d", "raid0", &disk, &memory]);
        Some(s.mount("btrfs", "rw", &disk))
    }),
    ("ext4, nobarrier", true, "ignored", |s| {
        Some(s.on_loop("ext4", "nobarrier"))
    }),
    ("ext4, barrier=0", false, "ignored", |s| {
        Some(s.on_loop("ext4", "barrier=0"))
    }),
    ("ext3, nobarrier", false, "ignored", |s| {
        Some(s.on_loop("ext3", "nobarrier"))
    }),
    ("btrfs, nobarrier", false, "ignored", |s| {
        Some(s.on_loop("btrfs", "nobarrier"))
    }),
    ("overlay, volatile", false, "ignored", |s| {
        let place = s.place();
        Some(s.overlay(&place, ",volatile"))
    }),
    ("overlay on ext4 with nobarrier", false, "ignored", |s| {
        let beneath = s.on_loop("ext4", "nobarrier");
        Some(s.overlay(&beneath, ""))
    }),
    (
        "ext4 on a loop device set to write through",
        false,
        "ignored",
        |s| write_through(s, "ext4"),
    ),
    (
        "xfs on a loop device set to write through",
        false,
        "ignored",
        |s| write_through(s, "xfs"),
    ),
    (
        "ext4 on a loop device on ext4 with nobarrier",
        false,
        "ignored",
        |s| {
            let beneath = s.on_loop("ext4", "nobarrier");
            let device = s.loop_in(&beneath, "off");
            Some(s.formatted(&device, "ext4", "rw"))
        },
    ),
    ("FUSE", false, "ignored", |s| Some(s.fuse(|_, _| false))),
    ("FUSE that ignores fsync", true, "ignored", |s| {
        Some(s.fuse(|_, is_of_data| is_of_data))
    }),
    ("FUSE that ignores fdatasync", false, "ignored", |s| {
        Some(s.fuse(|_, is_of_data| !is_of_data))
    }),
    ("FUSE that ignores one of two", false, "ignored", |s| {
        Some(s.fuse(|number, _| number % 2 > 0))
    }),
    ("FUSE that ignores one of three", false, "ignored", |s| {
        Some(s.fuse(|number, _| number % 3 > 0))
    }),
    ("FUSE that ignores one of ten", true, "ignored", |s| {
        Some(s.fuse(|number, _| number % 10 > 0))
    }),
    (
        "xfs on a loop device on ext4 with barrier=0",
        false,
        "ignored",
        |s| {
            let beneath = s.on_loop("ext4", "barrier=0");
            let device = s.loop_in(&beneath, "on");
            Some(s.formatted(&device, "xfs", "rw"))
        },
    ),
];

fn on_zram(storage: &mut Storage, kind: &str) -> Option<PathBuf> {
    let device = storage.zram()?;
    Some(storage.formatted(&device, kind, "rw"))
}

fn loop_on_tmpfs(storage: &mut Storage, kind: &str) -> Option<PathBuf> {
    let tmpfs = storage.tmpfs();
    let device = storage.loop_in(&tmpfs, "off");
    Some(storage.formatted(&device, kind, "rw"))
}

/// A loop device on the tests' disk, and one in memory.
fn disk_and_memory(storage: &mut Storage) -> (String, String) {
    let directory = storage.directory.path().to_owned();
    let tmpfs = storage.tmpfs();
    (
        storage.loop_in(&directory, "on"),
        storage.loop_in(&tmpfs, "off"),
    )
}

fn write_through(storage: &mut Storage, kind: &str) -> Option<PathBuf> {
    let directory = storage.directory.path().to_owned();
    let device = storage.loop_in(&directory, "off");
    let name = device.trim_start_matches("/dev/");
    let setting = Path::new("/sys/block").join(name).join("queue/write_cache");
    fs::write(&setting, "write through").unwrap();
    storage.undo.push(Undo::SetWriteBack(setting));
    Some(storage.formatted(&device, kind, "rw"))
}

/// Honest file systems on a loop device on the disk: the type and its options.
const HONEST: [(&str, &str); 30] = [
    ("ext4", "rw"),
    ("ext4", "data=writeback"),
    ("ext4", "data=journal"),
    ("ext4", "data=writeback,journal_async_commit"),
    ("ext4", "journal_checksum"),
    ("ext4", "commit=1"),
    ("ext4", "commit=600"),
    ("ext4", "nodelalloc"),
    ("ext4", "discard"),
    ("ext4", "noatime,nodiratime,lazytime"),
    ("ext4", "sync"),
    ("ext4", "max_batch_time=0"),
    ("ext4", "auto_da_alloc"),
    ("ext4 without a journal", "rw"),
    ("ext3", "rw"),
    ("ext3", "data=writeback"),
    ("ext2", "rw"),
    ("xfs", "rw"),
    ("xfs", "wsync"),
    ("xfs", "logbufs=8,logbsize=256k"),
    ("xfs", "discard,inode64"),
    ("xfs", "noatime,swalloc"),
    ("btrfs", "rw"),
    ("btrfs", "compress=zstd"),
    ("btrfs", "nodatacow"),
    ("btrfs", "nodatasum,noatime"),
    ("btrfs", "notreelog"),
    ("btrfs", "flushoncommit"),
    ("btrfs", "ssd,discard=async"),
    ("btrfs", "commit=300,autodefrag"),
];

/// Honest storage of other kinds.
const HONEST_OTHERS: [(&str, Make); 5] = [
    ("the tests' directory", |s| Some(s.place())),
    ("ext4 on a loop device through the page cache", |s| {
        let directory = s.directory.path().to_owned();
        let device = s.loop_in(&directory, "off");
        Some(s.formatted(&device, "ext4", "rw"))
    }),
    ("xfs on a loop device on ext4 on a loop device", |s| {
        let beneath = s.on_loop("ext4", "rw");
        let device = s.loop_in(&beneath, "on");
        Some(s.formatted(&device, "xfs", "rw"))
    }),
    ("overlay", |s| {
        let place = s.place();
        Some(s.overlay(&place, ""))
    }),
    ("FUSE that passes flushes on", |s| Some(s.fuse(|_, _| true))),
];

/// Whether the disk that the tests lie on tells what reaches it.
fn can_plant() -> bool {
    if !spindle_harness::is_root_or_skip("mounts and loop devices") {
        return false;
    }
    let tree = SystemTree::default();
    let beneath = Beneath::of(&tree, own_directory().path());
    let lowest = beneath.devices().find(|device| device.is_lowest);
    let number = lowest.and_then(|device| device.number);
    let is_told = number.is_some_and(|number| DiskCounters::are_kept(&tree, number));
    if !is_told {
        spindle_harness::skip("counters of the disk beneath the tests' directory");
    }
    is_told
}

#[test]
fn storage_that_ignores_flushes_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_plant() {
        return;
    }
    let mut named = 0;
    for (what, _, trust, make) in LIARS.into_iter().filter(|liar| liar.1 || is_thorough()) {
        let mut storage = Storage::new();
        let Some(directory) = make(&mut storage) else {
            spindle_harness::skip(what);
            continue;
        };
        let honesty = honesty_of(&directory, None);
        assert_trust(&honesty, trust, what);
        named += 1;
    }
    println!("{named} liars named");
}

/// What other programs flush meanwhile is not taken for the flushes of a liar.
#[test]
fn others_do_not_hide_storage_that_ignores_flushes() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_plant() {
        return;
    }
    let mut storage = Storage::new();
    let busy = File::create(storage.directory.path().join("busy")).unwrap();
    let liars: [PassesOn; 2] = [|_, _| false, |number, _| number % 10 > 0];
    let directories = liars.map(|liar| storage.fuse(liar));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                busy.write_all_at(&[1; 4096], 0).unwrap();
                busy.sync_data().unwrap();
                std::thread::sleep(PAUSE_OF_OTHERS);
            }
        });
        let said = directories.map(|directory| honesty_now(&directory, None));
        is_over.store(true, Ordering::Relaxed);
        for honesty in said {
            assert_ne!(honesty["trust"], "arrives", "{honesty}");
        }
    });
}

/// Libraries that ignore one way to make a write durable, and that way.
const SHIMS: [(&str, &str); 3] = [
    ("fdatasync", "int fdatasync(int fd) { return 0; }\n"),
    ("fsync", "int fsync(int fd) { return 0; }\n"),
    (
        "O_DSYNC",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n\
         int open64(const char *path, int flags, int mode) {\n\
         int (*real)(const char *, int, int) = dlsym(RTLD_NEXT, \"open64\");\n\
         return real(path, flags & ~04010000, mode); }\n",
    ),
];

#[test]
fn a_library_that_ignores_flushes_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_plant() {
        return;
    }
    let directory = own_directory();
    let (source, library) = (
        directory.path().join("shim.c"),
        directory.path().join("shim.so"),
    );
    let (from, to) = (source.to_str().unwrap(), library.to_str().unwrap());
    for (ignored, shim) in SHIMS {
        fs::write(&source, shim).unwrap();
        run("cc", &["-shared", "-fPIC", "-o", to, from, "-ldl"]);
        let honesty = honesty_of(directory.path(), Some(&library));
        assert_trust(&honesty, "ignored", ignored);
        if is_hidden_by_others(&honesty) {
            continue;
        }
        let because = honesty["because"].as_str().unwrap();
        assert!(because.contains("LD_PRELOAD"), "{because}");
        assert!(because.contains(&format!("({ignored})")), "{because}");
    }
}

#[test]
fn storage_that_flushes_is_never_accused() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_plant() {
        return;
    }
    let rounds = std::env::var(ROUNDS).map_or(1, |rounds| rounds.parse().unwrap());
    let mut honest = 0;
    let mut ask = |what: &str, directory: &Path| {
        for _ in 0..rounds {
            let honesty = honesty_of(directory, None);
            assert_trust(&honesty, "arrives", what);
            honest += 1;
        }
    };
    for (kind, options) in HONEST.into_iter().step_by(stride(HONEST.len())) {
        let mut storage = Storage::new();
        let directory = storage.on_loop(kind, options);
        ask(&format!("{kind}, {options}"), &directory);
    }
    for (what, make) in HONEST_OTHERS
        .into_iter()
        .step_by(stride(HONEST_OTHERS.len()))
    {
        let mut storage = Storage::new();
        if let Some(directory) = make(&mut storage) {
            ask(what, &directory);
        }
    }
    println!("{honest} honest answers");
}

/// Who has no rights is told the same, by one writer and by many, in less than a minute.
#[test]
fn an_ordinary_user_is_answered_within_a_minute() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !spindle_harness::is_root_or_skip("becoming an ordinary user needs root") {
        return;
    }
    let _alone = alone();
    // Where that user may look.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    copy_of_program(place.path());
    std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let began = Instant::now();
    let ended = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["--no-new-privs", "--bounding-set=-all", "./spindle"])
        .args([
            "calibrate",
            ".",
            "--flushes",
            "--json",
            "--quiet",
            "--no-metadata",
        ])
        .env(NOWHERE.0, NOWHERE.1)
        .current_dir(place.path())
        .output()
        .unwrap();
    let (took, said) = (began.elapsed(), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
    // What it does beside measuring takes longer on a busy machine.
    assert!(took < Duration::from_secs(90), "{took:?}");
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let as_root = honesty_of(place.path(), None);
    let own = &found["honesty"][0];
    let is_hidden = is_hidden_by_others(own) || is_hidden_by_others(&as_root);
    assert!(
        is_hidden || own["trust"] == as_root["trust"],
        "{own} {as_root}"
    );
    let flushes = found["flushes"].as_array().unwrap();
    for (by, writers) in [("fdatasync", 1), ("fdatasync", 16), ("direct_dsync", 1)] {
        let is_it = |of: &&Value| of["by"] == by && of["writers"] == writers;
        let of = flushes.iter().find(is_it).unwrap();
        assert!(of["p99_us"].as_f64() >= of["p50_us"].as_f64(), "{of}");
    }
}

/// The directory of a loop device's file is found, and told.
#[test]
fn the_storage_beneath_is_found_by_itself() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_plant() {
        return;
    }
    let mut storage = Storage::new();
    let directory = storage.on_loop("ext4", "rw");
    let honesty = honesty_of(&directory, None);
    assert_trust(&honesty, "arrives", "ext4 on a loop device");
    let beneath = storage.directory.path().to_str().unwrap();
    assert_eq!(honesty["control"]["path"], beneath, "{honesty}");
    // Whether it is suspect is a matter of time, and others use the machine.
    assert!(honesty["control"]["times_sooner"].is_number(), "{honesty}");
    let because = honesty["control_because"].as_str().unwrap();
    assert!(because.starts_with("the directory of loop"), "{because}");
    let names: Vec<_> = fs::read_dir(beneath).unwrap().collect();
    assert_eq!(names.len(), 2, "the image and the mount point: {names:?}");
}

/// btrfs has device numbers that stand for no device. Its reads are counted where its disks are.
#[test]
fn reads_of_a_file_system_that_hides_its_device_are_counted() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _alone = alone();
    if !can_plant() {
        return;
    }
    let mut storage = Storage::new();
    let directory = storage.on_loop("btrfs", "rw");
    let ended = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["calibrate", "--time", "10s", "--quiet", "--json"])
        .arg(&directory)
        .env(NOWHERE.0, NOWHERE.1)
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let read = &found["cache"]["device"]["device_bytes"];
    assert!(read.as_u64().unwrap() > 0, "{}", found["cache"]);
}
