//! Groups made, shown, changed and checked, and whose disks are left alone.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: DiskGroupCommand,
}

fn said(line: &str) -> Result<DiskGroupAnswer, String> {
    let words = std::iter::once("diskgroup").chain(line.split_whitespace());
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    carry_out(line.command, &Arc::default()).map_err(|error| error.to_string())
}

fn text(line: &str) -> String {
    let answer = said(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(answer.is_well, "{line}: {}", answer.text);
    answer.text
}

#[test]
fn a_group_is_made_shown_changed_and_checked() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (a, b, c) = (path("a"), path("b"), path("c"));
    let made = text(&format!(
        "create data --redundancy normal --allocation-unit 1MiB --size 12MiB {a}:left {b}:right"
    ));
    assert!(
        made.contains("normal redundancy, allocation unit 1 MiB"),
        "{made}"
    );
    assert!(made.contains("data_0001"), "{made}");
    let shown = text(&format!("show --disk {b} --disk {a}"));
    assert_eq!(shown, made);
    let added = text(&format!(
        "add --disk {a} --disk {b} --size 12MiB {c} --power 2"
    ));
    assert!(added.contains("data_0002"), "{added}");
    text(&format!("check --disk {a} --disk {b} --disk {c}"));
    let dropped = text(&format!("drop data_0000 --disk {a} --disk {b} --disk {c}"));
    assert!(
        dropped.starts_with("0 extents moved, 0 bytes\n1 disk(s) have left"),
        "{dropped}"
    );
    let few = said(&format!("show --disk {b}")).err().unwrap();
    assert!(few.contains("missing data_0002"), "{few}");
    text(&format!("rebalance --disk {b} --disk {c}"));
}

#[test]
fn what_holds_data_is_not_taken_unless_it_is_named() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("letters");
    let mut bytes = vec![0; 12 << 20];
    // Far from both ends.
    bytes[7_000_000] = 1;
    std::fs::write(&path, &bytes).unwrap();
    let name = path.display();
    let refused = said(&format!("create data --allocation-unit 1MiB {name}"))
        .err()
        .unwrap();
    assert!(
        refused.contains(&format!("add --erase {name}")),
        "{refused}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing was written");
    text(&format!(
        "create data --allocation-unit 1MiB {name} --erase {name}"
    ));
    let again = said(&format!("create other --allocation-unit 1MiB {name}"));
    let again = again.err().unwrap();
    assert!(again.contains("of the Spindle disk group"), "{again}");
    let missing = said(&format!("create data {name}-not")).err().unwrap();
    assert!(missing.contains("give --size"), "{missing}");
}

#[test]
fn a_file_that_a_process_has_open_is_not_taken_whatever_is_named() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("disk");
    std::fs::write(&path, vec![0; 12 << 20]).unwrap();
    // By another name of the same file.
    let link = directory.path().join("link");
    std::fs::hard_link(&path, &link).unwrap();
    let mut holder = std::process::Command::new("sleep")
        .arg("600")
        .stdin(std::fs::File::open(&link).unwrap())
        .spawn()
        .unwrap();
    let name = path.display();
    let refused = said(&format!(
        "create data --allocation-unit 1MiB {name} --erase {name}"
    ));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let refused = refused.err().unwrap();
    assert!(
        refused.contains("is open for reading by sleep"),
        "{refused}"
    );
    assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
    text(&format!("create data --allocation-unit 1MiB {name}"));
}

/// A process that has something open for writing, and ends with this.
struct HeldOpen(std::process::Child);

impl HeldOpen {
    fn new(path: &Path) -> HeldOpen {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).open(path).unwrap();
        let mut sleep = std::process::Command::new("sleep");
        HeldOpen(sleep.arg("600").stdin(file).spawn().unwrap())
    }
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two files that are a group of normal redundancy.
fn two_disks(directory: &Path) -> [PathBuf; 2] {
    let disks = ["a", "b"].map(|name| directory.join(name));
    let [a, b] = disks.each_ref().map(|path| path.display());
    text(&format!(
        "create data --redundancy normal --allocation-unit 1MiB --size 12MiB {a} {b}"
    ));
    disks
}

fn bytes_of(disks: &[PathBuf]) -> Vec<Vec<u8>> {
    disks
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Whether every command that changes or checks a group is refused for this reason, and writes nothing.
fn is_left_alone(arguments: &str, disks: &[PathBuf], why: &str) {
    let before = bytes_of(disks);
    let new = disks[0].with_file_name("new");
    let commands = [
        format!("drop data_0000 {arguments}"),
        format!("rebalance {arguments}"),
        format!("add --size 12MiB {arguments} {}", new.display()),
        format!("check {arguments}"),
    ];
    for command in commands {
        let refused = said(&command).err().unwrap_or_else(|| panic!("{command}"));
        assert!(refused.contains(why), "{command}: {refused}");
    }
    let shown = text(&format!("show {arguments}"));
    assert!(shown.starts_with("in use: "), "{shown}");
    assert!(
        shown.contains(why) && shown.contains("data_0001"),
        "{shown}"
    );
    assert!(bytes_of(disks) == before, "{arguments}: written to");
    assert!(!new.exists());
}

#[test]
fn a_group_whose_disk_another_has_open_is_not_changed() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disks = two_disks(directory.path());
    let link = directory.path().join("link");
    std::fs::hard_link(&disks[1], &link).unwrap();
    let arguments = format!(
        "--disk {} --disk {}",
        disks[0].display(),
        disks[1].display()
    );
    let holder = HeldOpen::new(&link);
    is_left_alone(&arguments, &disks, "is open for writing by sleep");
    drop(holder);
    text(&format!("rebalance {arguments}"));
}

/// A loop device, which goes with this.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Loop {
        let mut command = std::process::Command::new("losetup");
        let output = command
            .args(["--find", "--show", "--partscan"])
            .arg(file)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        Loop(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let mut command = std::process::Command::new("losetup");
        // The test has said by then what went wrong.
        let _ = command.args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_group_is_in_use_by_whatever_name_its_disks_are_given() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !spindle_harness::is_root_or_skip("makes loop devices") {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disks = two_disks(directory.path());
    let device = Loop::over(&disks[0]);
    let other = disks[1].display();
    let by_file = format!("--disk {} --disk {other}", disks[0].display());
    let by_device = format!("--disk {} --disk {other}", device.0);
    // The loop device above the file, and its own users.
    let name = device.0.trim_start_matches("/dev/");
    is_left_alone(&by_file, &disks, name);
    let holder = HeldOpen::new(Path::new(&device.0));
    is_left_alone(&by_file, &disks, name);
    is_left_alone(&by_device, &disks, "is open for writing by sleep");
    drop(holder);
    // The file below the device.
    let holder = HeldOpen::new(&disks[0]);
    is_left_alone(&by_device, &disks, "is open for writing by sleep");
    drop(holder);
    text(&format!("rebalance {by_device}"));
}

#[test]
fn a_group_that_is_shown_or_checked_is_not_written_to() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disks = two_disks(directory.path());
    let before = bytes_of(&disks);
    for command in ["show", "check"] {
        let [a, b] = disks.each_ref().map(|path| path.display());
        text(&format!("{command} --disk {a} --disk {b}"));
        assert!(bytes_of(&disks) == before, "{command} has written");
    }
}

#[test]
fn what_is_no_disk_or_is_given_twice_is_named() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disks = two_disks(directory.path());
    let pipe = directory.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let others = [
        pipe.as_path(),
        &socket,
        directory.path(),
        Path::new("/dev/null"),
    ];
    for path in others.map(Path::display) {
        for command in [
            format!("show --disk {path}"),
            format!("check --disk {path}"),
            format!("rebalance --disk {path}"),
            format!("create other {path}"),
        ] {
            let refused = said(&command).err().unwrap();
            assert!(
                refused.contains("is neither a block device nor a file"),
                "{command}: {refused}"
            );
        }
    }
    let [a, b] = disks.each_ref().map(|path| path.display());
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&disks[0], &link).unwrap();
    let link = link.display();
    for command in [
        format!("show --disk {a} --disk {b} --disk {link}"),
        format!("rebalance --disk {a} --disk {link}"),
        format!("create other {a} {link}"),
        format!("add --disk {a} --disk {b} {link}"),
    ] {
        let refused = said(&command).err().unwrap();
        let words = format!("{a} and {link} are the same file or device");
        assert!(refused.contains(&words), "{command}: {refused}");
    }
    let refused = said(&format!("show --disk {a} --disk {a}")).err().unwrap();
    assert!(refused.contains("is given twice"), "{refused}");
}

/// Where a run's stamp or mark lies, and what signatures there are far from the first block.
const STAMP_AT: usize = (1 << 20) - 4096;
const BTRFS_AT: usize = (64 << 10) + 64;

/// A disk of 16 MiB that bears what others left, far from its first block.
fn used_disk(path: &Path) {
    let mut bytes = vec![0; 16 << 20];
    bytes[BTRFS_AT..][..8].copy_from_slice(b"_BHRfS_M");
    bytes[STAMP_AT..][..8].copy_from_slice(b"SPNDHERE");
    let end = bytes.len() - 512;
    bytes[end..][..8].copy_from_slice(b"EFI PART");
    std::fs::write(path, bytes).unwrap();
}

/// Whether nothing is left of that.
fn is_erased(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let is_zero = |at: usize| bytes[at..][..8] == [0; 8];
    is_zero(BTRFS_AT) && is_zero(STAMP_AT) && is_zero(bytes.len() - 512)
}

#[test]
fn what_may_be_erased_is_erased_before_it_joins_a_group() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let [a, b] = ["a", "b"].map(|name| directory.path().join(name));
    for path in [&a, &b] {
        used_disk(path);
    }
    let (first, second) = (a.display(), b.display());
    let unit = "--allocation-unit 1MiB";
    // A group that cannot be made erases nothing.
    let refused = said(&format!(
        "create data --redundancy normal {unit} {first} --erase {first}"
    ));
    assert!(refused.is_err() && !is_erased(&a));
    let refused = said(&format!("create data {first}:a/b --erase {first}"));
    assert!(refused.is_err() && !is_erased(&a));
    text(&format!("create data {unit} {first} --erase {first}"));
    assert!(is_erased(&a));
    let refused = said(&format!("add --disk {first} {second}:a/b --erase {second}"));
    assert!(refused.is_err() && !is_erased(&b));
    text(&format!("add --disk {first} {second} --erase {second}"));
    assert!(is_erased(&b));
    text(&format!("check --disk {first} --disk {second}"));
}

/// How many partitions the kernel has of a device, and what blkid finds on it.
fn told_of(device: &Loop) -> (usize, String) {
    let run = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        let output = command.args(arguments).arg(&device.0).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = run("lsblk", &["--noheadings", "--raw"]);
    (listed.lines().count() - 1, run("blkid", &["-p"]))
}

#[test]
fn a_device_is_erased_and_named_as_it_was_given() {
    if !spindle_harness::is_root_or_skip("makes loop devices") {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, vec![0; 32 << 20]).unwrap();
    let device = Loop::over(&file);
    let name = device.0.clone();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(arguments).arg(&name).status().unwrap();
    };
    let table = directory.path().join("table");
    std::fs::write(&table, "label: gpt\nsize=8MiB\n").unwrap();
    let mut sfdisk = std::process::Command::new("sfdisk");
    let cut = sfdisk
        .args(["--quiet", &name])
        .stdin(std::fs::File::open(&table).unwrap());
    cut.status().unwrap();
    run("partx", &["--update"]);
    let (_, before) = told_of(&device);
    assert!(before.contains("gpt"), "{before}");
    let large = "--allocation-unit 64MiB";
    let refused = said(&format!("create data {large} {name} --erase {name}"));
    let refused = refused.err().unwrap();
    assert!(
        refused.contains(&format!("{name} is too small")),
        "{refused}"
    );
    assert_eq!(told_of(&device).1, before);
    let made = text(&format!("create data {name} --erase {name}"));
    assert!(made.contains(&name) && !made.contains("/fd/"), "{made}");
    let (partitions, after) = told_of(&device);
    assert_eq!((partitions, after.as_str()), (0, ""));
    let shown = text(&format!("show --disk {name}"));
    assert_eq!(shown, made);
    let again = text(&format!("rebalance --disk {name}"));
    assert!(again.contains(&name) && !again.contains("/fd/"), "{again}");
}
