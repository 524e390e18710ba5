//! What a virtual machine is told of its disks: `spindle calibrate --control` in a guest must name the disk whose host
//! ignores flushes, and accuse none whose host carries them out, whatever cache it has. The disks' files lie on a FUSE
//! file system whose flushes take long, as those of a hard disk do.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::fuse_server::{FuseServer, Late};
use crate::limits::own_directory;

/// Of a flush on the host; the guest, whose processor is emulated, takes some two milliseconds for its own part.
const FLUSH: Duration = Duration::from_millis(20);
/// Modes of qemu's disks (qemu-system(1), `-drive cache`), and whether one of them is honest. The first is what all are
/// compared with.
const DISKS: [(&str, bool); 5] = [
    ("none", true),
    ("directsync", true),
    ("writethrough", true),
    ("writeback", true),
    ("unsafe", false),
];
/// Makes ext4 on each disk, and leaves an answer for each but the first; the arguments are a directory, the program,
/// and the modes.
const IN_GUEST: &str = r#"
set -e
answers=$1 spindle=$2
shift 2
disks=($SPINDLE_TEST_DISKS)
mkdir -p /run/guest
for mode in "$@"; do
  mkfs.ext4 -qF "${disks[0]}"
  mkdir -p "/run/guest/$mode"
  mount "${disks[0]}" "/run/guest/$mode"
  disks=("${disks[@]:1}")
done
for mode in "${@:2}"; do
  "$spindle" calibrate "/run/guest/$mode" --control "/run/guest/$1" --flushes --time 10s --quiet --json \
    --no-metadata > "$answers/$mode.json"
done
"#;

#[test]
#[ignore = "starts a virtual machine: make test-vm"]
fn a_disk_whose_host_ignores_flushes_is_named() {
    let place = own_directory();
    let answers = place.path().join("answers");
    fs::create_dir(&answers).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut machine = Command::new(root.join("scripts/test-vm"));
    machine
        .args(["--time-limit", "900", "--share"])
        .arg(&answers);
    let mut servers = Vec::new();
    for (mode, _) in DISKS {
        let (mount_point, beneath) = (
            place.path().join(mode),
            place.path().join(format!("beneath-{mode}")),
        );
        fs::create_dir(&mount_point).unwrap();
        fs::create_dir(&beneath).unwrap();
        servers.push(FuseServer::mount_delayed(
            &mount_point,
            &beneath,
            Late::Flushes,
            FLUSH,
        ));
        let file = mount_point.join("disk");
        let disk = format!("{}=200M,cache={mode}", file.display());
        machine.args(["--disk", &disk]);
    }
    machine.args(["bash", "-c", IN_GUEST, "guest"]);
    machine.arg(&answers).arg(env!("CARGO_BIN_EXE_spindle"));
    machine.args(DISKS.map(|(mode, _)| mode));
    let ended = machine.stdin(Stdio::null()).output().unwrap();
    // What the guest prints is the output; why there is no machine is the error.
    let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
    assert!(ended.status.success(), "{said}");
    for (mode, is_honest) in &DISKS[1..] {
        let answer = fs::read_to_string(answers.join(format!("{mode}.json"))).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let honesty = &answer["honesty"][0];
        println!("{mode}: {}, {}", honesty["trust"], honesty["because"]);
        let expected = if *is_honest { "arrives" } else { "ignored" };
        assert_eq!(honesty["trust"], expected, "{mode}: {honesty}");
        assert_eq!(
            honesty["control"]["is_suspect"], !is_honest,
            "{mode}: {honesty}"
        );
    }
    drop(servers);
}
