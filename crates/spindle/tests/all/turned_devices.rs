//! Whole runs whose devices become others between the look at them and their use: the link that names a device is
//! turned, its number is given to another file, the run's own node of it is replaced. Whatever the run makes of that,
//! the other device must stay as it was, byte for byte. On loop devices, as root; without root these tests say so and
//! do nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use spindle_layout::tool::{Tools, find};

const MIB: u64 = 1 << 20;
const DEVICE_BYTES: u64 = 64 * MIB;

/// Layouts, by what lies on the device that becomes another (`LINK`); `KEPT` is a device that nobody touches.
const EMBEDDED: [(&str, &str); 4] = [
    ("raw", "devices = [\"LINK\"]\nraw = true\n"),
    ("ext4", "devices = [\"LINK\"]\nfilesystem = \"ext4\"\n"),
    (
        "redo",
        "devices = [\"KEPT\", \"LINK\"]\nraw = true\nplacement = { redo = [\"LINK\"] }\n",
    ),
    (
        "disk group",
        "devices = [\"KEPT\", \"LINK\"]\ndiskgroup = { allocation_unit = \"1MiB\", redundancy = \"normal\" }\n",
    ),
];
/// The same under a database that speaks SQL.
const IN_SQL: &str = "devices = [\"LINK\"]\nraw = true\nplacement = { redo = \"files\" }\n";

fn experiment(engine: &str, layout: &str) -> String {
    let is_embedded = engine == "kernel";
    let files = if is_embedded {
        ""
    } else {
        "[[layout]]\nname = \"files\"\n"
    };
    let log = if is_embedded {
        "log_file_size = \"1MiB\"\n"
    } else {
        ""
    };
    let settings = match engine {
        "mariadb" => {
            "settings = { innodb_data_file_path = \"ibdata1:48M\", innodb_log_file_size = \"8M\" }\n"
        }
        _ => "",
    };
    format!(
        "name = \"turned\"\n[database]\nengine = \"{engine}\"\nsize = \"8MiB\"\nbuffer_cache = \"6MiB\"\n{log}{settings}\
         [workload]\nclients = 2\n[plan]\nquiet = \"0s\"\nwarmup = \"50ms\"\nmeasure = \"200ms\"\nrounds = 2\n\
         {files}[[layout]]\nname = \"it\"\n{layout}"
    )
}

/// A loop device over its own file; let go when the test ends, if it is still that.
struct Disk {
    path: PathBuf,
    file: PathBuf,
}

impl Disk {
    fn new(file: PathBuf) -> Disk {
        let made = fs::File::create(&file).unwrap();
        made.set_len(DEVICE_BYTES).unwrap();
        let arguments = ["--find", "--show", file.to_str().unwrap()];
        let path = Tools::new().run("losetup", &arguments).unwrap();
        Disk {
            path: path.into(),
            file,
        }
    }

    fn stands(&self) -> bool {
        stands_on(&self.path, &self.file)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.stands() {
            let _ = Tools::new().run("losetup", &["--detach", self.path.to_str().unwrap()]);
        }
    }
}

fn stands_on(device: &Path, file: &Path) -> bool {
    let name = device.file_name().unwrap().to_str().unwrap();
    let backing = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    backing.is_ok_and(|found| Path::new(found.trim()) == file)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Attack {
    TurnsTheLink,
    GivesTheNumberAway,
    ReplacesTheNode,
}

/// When the attack comes: after what the run says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// The devices were looked at.
    Looked,
    /// The device was taken.
    Taken,
    /// A trial goes on.
    Trial,
}

const ATTACKS: [(Attack, Moment); 5] = [
    (Attack::TurnsTheLink, Moment::Taken),
    (Attack::ReplacesTheNode, Moment::Trial),
    (Attack::GivesTheNumberAway, Moment::Trial),
    (Attack::TurnsTheLink, Moment::Looked),
    (Attack::TurnsTheLink, Moment::Trial),
];

struct Scene {
    first: Disk,
    other: Disk,
    kept: Disk,
    link: PathBuf,
    /// What is on the other device.
    precious: Vec<u8>,
    /// A number that is given away must not be taken by another of these tests.
    _alone: MutexGuard<'static, ()>,
    /// Goes last: a loop device is known by its file's name.
    directory: tempfile::TempDir,
}

impl Scene {
    /// Nothing is on the other device that would stop anybody; or there is.
    fn new(engine: &str, layout: &str, is_empty: bool) -> Scene {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // Servers have users of their own, who must get to their files.
        let reachable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory.path(), reachable).unwrap();
        let path = directory.path().canonicalize().unwrap();
        let [first, other, kept] =
            ["first", "other", "kept"].map(|name| Disk::new(path.join(name)));
        let mut precious = vec![0; DEVICE_BYTES as usize];
        if !is_empty {
            for at in (0..DEVICE_BYTES as usize).step_by(DEVICE_BYTES as usize / 8) {
                precious[at..at + 4096].fill(0x5A);
            }
            fs::write(&other.file, &precious).unwrap();
        }
        let link = path.join("link");
        symlink(&first.path, &link).unwrap();
        let layout = layout
            .replace("LINK", link.to_str().unwrap())
            .replace("KEPT", kept.path.to_str().unwrap());
        fs::write(path.join("experiment.toml"), experiment(engine, &layout)).unwrap();
        Scene {
            first,
            other,
            kept,
            link,
            precious,
            _alone: alone,
            directory,
        }
    }

    fn spindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.ledger())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    fn ledger(&self) -> PathBuf {
        self.directory.path().join("ledger")
    }

    /// Runs until it ends by itself or `at` says so, hearing each line; what was said.
    fn hear(&self, run: &mut Child, mut at: impl FnMut(&str) -> bool) -> String {
        let mut told = String::new();
        let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            told += &format!("{line}\n");
            if at(&line) {
                break;
            }
        }
        // Nobody may wait for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        told
    }

    fn attack(&self, attack: Attack) {
        match attack {
            Attack::TurnsTheLink => {
                let new = self.link.with_extension("new");
                symlink(&self.other.path, &new).unwrap();
                fs::rename(new, &self.link).unwrap();
            }
            Attack::GivesTheNumberAway => {
                // It goes when nobody has it open any more: see `give_number`.
                let _ =
                    Tools::new().run("losetup", &["--detach", self.first.path.to_str().unwrap()]);
                let _ =
                    Tools::new().run("losetup", &["--detach", self.other.path.to_str().unwrap()]);
            }
            Attack::ReplacesTheNode => {
                let number = self.first.path.metadata().unwrap().rdev();
                let another = self.other.path.metadata().unwrap().rdev();
                for node in nodes().into_iter().filter(|(_, of)| *of == number) {
                    let mode = Mode::RUSR | Mode::WUSR;
                    let new = node.0.with_extension("new");
                    mknodat(CWD, &new, FileType::BlockDevice, mode, another).unwrap();
                    // In one step: a run that finds none at all has only a trial that failed.
                    fs::rename(&new, &node.0).unwrap();
                }
            }
        }
    }

    /// Gives the number of the first device to the other file, if it is free.
    fn give_number(&self) -> bool {
        let (device, file) = (
            self.first.path.to_str().unwrap(),
            self.other.file.to_str().unwrap(),
        );
        let is_free = !Path::new(&format!("/sys/block/{}/loop", &device["/dev/".len()..])).exists();
        is_free && Tools::new().run("losetup", &[device, file]).is_ok()
    }

    /// The other device is as it was, and the run has left no node and no mount.
    fn check(&self, what: &str, told: &str) {
        for device in [&self.other.path, &self.first.path] {
            if stands_on(device, &self.other.file) {
                fs::File::open(device).unwrap().sync_all().unwrap();
            }
        }
        let is_same = fs::read(&self.other.file).unwrap() == self.precious;
        assert!(is_same, "{what}: the other device was written to\n{told}");
        assert!(!told.contains("panicked"), "{what}: {told}");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let first = self.first.path.to_str().unwrap();
        assert!(!mounts.contains(&format!("{first} ")), "{what}: {mounts}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if stands_on(&self.first.path, &self.other.file) {
            let _ = Tools::new().run("losetup", &["--detach", self.first.path.to_str().unwrap()]);
        }
    }
}

/// Nodes of devices that runs have made, with the number of each.
fn nodes() -> Vec<(PathBuf, u64)> {
    let runs = fs::read_dir("/dev/spindle").into_iter().flatten().flatten();
    let nodes = runs.filter_map(|run| fs::read_dir(run.path()).ok());
    let numbered = nodes.flatten().flatten().filter_map(|node| {
        let number = node.metadata().ok()?.rdev();
        Some((node.path(), number))
    });
    numbered.collect()
}

fn is_skipped() -> bool {
    let is_missing = |tool: &&&str| find(tool).is_none();
    let tools = ["losetup", "blkid", "wipefs", "blockdev", "mkfs.ext4"];
    let missing: Vec<&&str> = tools.iter().filter(is_missing).collect();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !missing.is_empty() {
        spindle_harness::skip(format_args!("turned devices need root and {missing:?}"));
    }
    !is_root || !missing.is_empty()
}

/// A run that suffers an attack, and goes on to its end.
fn suffers(engine: &str, (name, layout): (&str, &str), (attack, moment): (Attack, Moment)) {
    let what = format!("{engine} on {name}, {attack:?} after {moment:?}");
    let scene = Scene::new(engine, layout, true);
    let mut run = scene
        .spindle(&["run", "experiment.toml", "--out", "out"])
        .spawn()
        .unwrap();
    let (mut is_taken, mut is_attacked) = (false, false);
    let link = scene.link.to_str().unwrap();
    let mut told = scene.hear(&mut run, |line| {
        is_attacked = match moment {
            Moment::Looked => true,
            Moment::Taken => is_taken,
            Moment::Trial => line.starts_with("trial 1/"),
        };
        is_taken |= line.starts_with("take the device") && line.contains(link);
        is_attacked
    });
    if is_attacked {
        scene.attack(attack);
    }
    let status = loop {
        if attack == Attack::GivesTheNumberAway && is_attacked {
            scene.give_number();
        }
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    let journal = fs::read_to_string(scene.directory.path().join("out/journal.jsonl"));
    let journal = journal.unwrap_or_default();
    let failures = journal.lines().filter(|line| line.contains("trial_failed"));
    told.extend(failures);
    scene.check(&what, &told);
    assert!(is_attacked, "{what}: it ended before\n{told}");
    let code = status.code();
    match attack {
        // What was taken is not looked for by its path again.
        Attack::TurnsTheLink if moment != Moment::Looked => {
            assert_eq!(code, Some(0), "{what}: {told}")
        }
        // A file system that is mounted needs no node.
        Attack::ReplacesTheNode if name == "ext4" => {
            assert_eq!(code, Some(0), "{what}: {told}")
        }
        Attack::ReplacesTheNode => assert_eq!(code, Some(1), "{what}: {told}"),
        _ => assert!(
            [Some(0), Some(1), Some(3)].contains(&code),
            "{what}: {code:?} {told}"
        ),
    }
}

#[test]
fn a_run_never_writes_to_a_device_that_took_the_place_of_its_own() {
    if is_skipped() {
        return;
    }
    let cases = EMBEDDED
        .iter()
        .flat_map(|layout| ATTACKS.map(|attack| (*layout, attack)));
    for (layout, attack) in cases.step_by(spindle_harness::stride(12)) {
        suffers("kernel", layout, attack);
    }
}

#[test]
fn a_server_on_a_device_never_writes_to_another() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    if find("mariadbd").is_none() {
        spindle_harness::skip("MariaDB is not installed");
        return;
    }
    for attack in ATTACKS.into_iter().step_by(spindle_harness::stride(5)) {
        suffers("mariadb", ("raw", IN_SQL), attack);
    }
}

#[cfg(feature = "sqlite-devices")]
#[test]
fn sqlite_on_a_device_never_writes_to_another() {
    if is_skipped() {
        return;
    }
    for attack in ATTACKS.into_iter().step_by(spindle_harness::stride(2)) {
        suffers("sqlite", ("raw", IN_SQL), attack);
    }
}

/// A run is killed, its device becomes another, and it is cleaned up after, or goes on.
fn is_killed_and_suffers((name, layout): (&str, &str), attack: Attack, then: &[&str]) {
    let what = format!("{name} killed, {attack:?}, {then:?}");
    // Nothing on the other one would stop anybody.
    let scene = Scene::new("kernel", layout, true);
    let mut run = scene
        .spindle(&["run", "experiment.toml", "--out", "out"])
        .spawn()
        .unwrap();
    let mut told = scene.hear(&mut run, |line| line.starts_with("trial 1/"));
    run.kill().unwrap();
    run.wait().unwrap();
    scene.attack(attack);
    if attack == Attack::GivesTheNumberAway {
        let began = std::time::Instant::now();
        while !scene.give_number() && began.elapsed() < std::time::Duration::from_secs(5) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    for arguments in then {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut next = scene.spindle(&arguments).spawn().unwrap();
        told += &scene.hear(&mut next, |_| false);
        let status = next.wait().unwrap();
        scene.check(&what, &told);
        assert!(
            status.code().is_some_and(|code| code <= 3),
            "{what}: {status} {told}"
        );
    }
    // In peace again, nothing stands in the way.
    if attack == Attack::TurnsTheLink {
        let why = "is no longer the device that was examined";
        assert!(told.contains(why), "{what}: {told}");
        fs::remove_file(&scene.link).unwrap();
        symlink(&scene.first.path, &scene.link).unwrap();
        let mut again = scene.spindle(&["resume", "out"]).spawn().unwrap();
        told += &scene.hear(&mut again, |_| false);
        assert_eq!(again.wait().unwrap().code(), Some(0), "{what}: {told}");
    }
}

#[test]
fn what_a_killed_run_left_is_taken_away_from_no_other_device() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    let cases = EMBEDDED.iter().flat_map(|layout| {
        [Attack::TurnsTheLink, Attack::GivesTheNumberAway].map(|attack| (*layout, attack))
    });
    for (number, (layout, attack)) in cases.enumerate().step_by(spindle_harness::stride(3)) {
        match number % 2 {
            0 => is_killed_and_suffers(layout, attack, &["clean", "resume out"]),
            _ => is_killed_and_suffers(layout, attack, &["resume out", "clean"]),
        }
    }
}

/// The mount that the run began on is missing when it is to go on: in a mount namespace, which takes every mount along.
#[test]
fn a_run_does_not_go_on_in_a_directory_whose_mount_is_missing() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new("kernel", "path = \"mounted\"\n", true);
    fs::create_dir(scene.directory.path().join("mounted")).unwrap();
    let script = format!(
        "truncate -s 256M disk && mkfs.ext4 -q disk && mount -o loop disk mounted || exit 71; \
         {spindle} run experiment.toml --out out --quiet & \
         until grep -qs trial_started out/journal.jsonl; do kill -0 $! || exit 70; sleep 0.02; done; \
         kill -KILL $!; wait $!; umount -l mounted; {spindle} resume out --quiet",
        spindle = env!("CARGO_BIN_EXE_spindle"),
    );
    let mut resumed = Command::new("unshare");
    resumed.args(["--mount", "sh", "-c", &script]);
    let output = resumed
        .current_dir(scene.directory.path())
        .env("SPINDLE_LEDGER_DIRECTORY", scene.ledger())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("ext4 mounted at"), "{told}");
    assert!(
        told.contains("mount what is missing, then resume"),
        "{told}"
    );
    let beneath = fs::read_dir(scene.directory.path().join("mounted")).unwrap();
    assert_eq!(beneath.count(), 0, "{told}");
}

/// Without the right to make nodes, as root of many a container is, devices are reached through the descriptors that
/// hold them; a tool that resolves its path is not started.
#[test]
fn where_no_node_can_be_made_devices_are_reached_through_descriptors() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    if find("setpriv").is_none() {
        spindle_harness::skip("taking a right away needs setpriv (package util-linux)");
        return;
    }
    for (layout, is_made) in [
        (EMBEDDED[0], true),
        (EMBEDDED[3], true),
        (EMBEDDED[1], false),
    ] {
        let before = nodes();
        let scene = Scene::new("kernel", layout.1, true);
        let mut run = scene.spindle(&["run", "experiment.toml", "--out", "out"]);
        let mut without = Command::new("setpriv");
        without
            .args(["--bounding-set=-mknod", "--inh-caps=-mknod"])
            .arg(run.get_program())
            .args(run.get_args());
        for (name, value) in run.get_envs() {
            without.env(name, value.unwrap());
        }
        let directory = run.get_current_dir().unwrap().to_owned();
        run = without;
        let output = run.current_dir(directory).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        scene.check(layout.0, &told);
        let result = fs::read_to_string(scene.directory.path().join("out/result.json"));
        let result = result.unwrap_or_else(|error| panic!("{}: {error}\n{told}", layout.0));
        match is_made {
            true => assert_eq!(output.status.code(), Some(0), "{}: {told}", layout.0),
            false => {
                assert_eq!(output.status.code(), Some(3), "{}: {told}", layout.0);
                assert!(result.contains("no node of it can be made"), "{told}");
            }
        }
        // Others may run meanwhile, and have nodes of their devices; a run that was killed earlier may have left some.
        let devices = [&scene.first, &scene.other, &scene.kept];
        let numbers = devices.map(|device| device.path.metadata().unwrap().rdev());
        let is_left = |node: &(PathBuf, u64)| numbers.contains(&node.1) && !before.contains(node);
        assert_eq!(nodes().into_iter().find(is_left), None);
    }
}

/// What `spindle diskgroup create` is told of a device that holds what may not be lost.
#[test]
fn a_disk_group_made_by_hand_takes_no_device_that_is_used_or_holds_anything() {
    if is_skipped() {
        return;
    }
    let scene = Scene::new("kernel", EMBEDDED[0].1, true);
    let create = |device: &Path| {
        let output = scene
            .spindle(&["diskgroup", "create", "data", device.to_str().unwrap()])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told)
    };
    let refused = |device: &Path, why: &str| {
        let before = fs::read(&scene.first.file).unwrap();
        let (code, told) = create(device);
        assert_eq!(code, Some(1), "{why}: {told}");
        assert!(told.contains(why), "{why}: {told}");
        assert!(
            fs::read(&scene.first.file).unwrap() == before,
            "{why}: it was written to"
        );
    };
    let (tools, first) = (Tools::new(), scene.first.path.to_str().unwrap());
    // A process has it open, without O_EXCL; by the link, too.
    let user = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(first)
        .unwrap();
    refused(&scene.first.path, "open for writing");
    refused(&scene.link, "open for writing");
    drop(user);
    // Mounted.
    tools.run("mkfs.ext4", &["-q", first]).unwrap();
    let at = scene.directory.path().join("mounted");
    fs::create_dir(&at).unwrap();
    let at = at.to_str().unwrap().to_owned();
    tools.run("mount", &[first, &at]).unwrap();
    let mounted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        refused(&scene.link, "mounted");
    }));
    tools.run("umount", &[&at]).unwrap();
    mounted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // It bears a file system; then bytes in the middle only.
    refused(&scene.link, "ext4");
    tools.run("blkdiscard", &["--force", first]).unwrap();
    let device = fs::OpenOptions::new().write(true).open(first).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&device, &[0x5A; 4096], 31 * MIB).unwrap();
    device.sync_all().unwrap();
    drop(device);
    refused(&scene.link, "--erase");
}

/// A link that goes back and forth while a group is made: whichever device the group took, the other is untouched.
#[test]
fn a_disk_group_made_by_hand_lies_on_one_device_however_its_link_is_turned() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_skipped() {
        return;
    }
    for round in 0..24_u64.div_ceil(spindle_harness::stride(4) as u64) {
        let scene = Scene::new("kernel", EMBEDDED[0].1, true);
        let arguments = ["diskgroup", "create", "data", scene.link.to_str().unwrap()];
        let mut create = scene.spindle(&arguments).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(7 * round));
        scene.attack(Attack::TurnsTheLink);
        let told = scene.hear(&mut create, |_| false);
        let status = create.wait().unwrap();
        let has_any = |disk: &Disk| {
            fs::File::open(&disk.path).unwrap().sync_all().unwrap();
            fs::read(&disk.file).unwrap().iter().any(|byte| *byte != 0)
        };
        let written = [&scene.first, &scene.other].map(has_any);
        match status.code() {
            Some(0) => assert_ne!(written[0], written[1], "round {round}: {told}"),
            Some(1) => assert_eq!(written, [false, false], "round {round}: {told}"),
            code => panic!("round {round}: {code:?} {told}"),
        }
    }
}
