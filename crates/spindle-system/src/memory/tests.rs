//! Tests of the memory budget: against fixture trees for both interfaces, and against the running kernel when it lets
//! us make groups.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use rustix::fs::{Advice, fadvise};

use super::super::fixture::Fixture;
use super::*;

const MIB: u64 = 1 << 20;
const V2_MOUNT: &str = "1 0 0:4 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

/// A version 2 tree: the top hands memory down to `slice`, `slice` hands `slice_hands_down`, our scope holds us.
fn v2_tree(slice_hands_down: &str, slice_processes: &str) -> Fixture {
    Fixture::with(&[
        ("proc/self/mountinfo", V2_MOUNT),
        ("proc/self/cgroup", "0::/slice/scope\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
        ("sys/fs/cgroup/slice/cgroup.type", "domain\n"),
        ("sys/fs/cgroup/slice/cgroup.controllers", "cpu memory\n"),
        (
            "sys/fs/cgroup/slice/cgroup.subtree_control",
            slice_hands_down,
        ),
        ("sys/fs/cgroup/slice/cgroup.procs", slice_processes),
        ("sys/fs/cgroup/slice/scope/cgroup.type", "domain\n"),
        (
            "sys/fs/cgroup/slice/scope/cgroup.controllers",
            "cpu memory\n",
        ),
        ("sys/fs/cgroup/slice/scope/cgroup.subtree_control", ""),
        ("sys/fs/cgroup/slice/scope/cgroup.procs", "77\n"),
    ])
}

/// The files a kernel would put in a new group; a fixture's directory has to be given them, and freed of them.
fn as_the_kernel_would(group: &MemoryGroup, files: &[(&str, &str)]) {
    for (name, value) in files {
        fs::write(group.path().join(name), value).expect("control file");
    }
}

fn empty_directory(path: &Path) {
    for entry in fs::read_dir(path).expect("group").flatten() {
        fs::remove_file(entry.path()).expect("control file");
    }
}

#[test]
fn version_2_uses_the_nearest_group_that_hands_memory_down() {
    let fixture = v2_tree("memory\n", "");
    let budget = MemoryBudget::available(&fixture.files()).expect("available");
    assert_eq!(budget.version, CgroupVersion::V2);
    assert_eq!(budget.parent, fixture.path("sys/fs/cgroup/slice"));
}

#[test]
fn version_2_tells_an_empty_group_to_hand_memory_down() {
    let fixture = v2_tree("cpu\n", "");
    let budget = MemoryBudget::available(&fixture.files()).expect("available");
    assert_eq!(budget.parent, fixture.path("sys/fs/cgroup/slice"));
    let control = "sys/fs/cgroup/slice/cgroup.subtree_control";
    assert_eq!(fixture.read(control), "cpu\n");
    let group = budget.create_group().expect("group");
    assert_eq!(fixture.read(control), "+memory");
    group.remove().expect("removed");
}

#[test]
fn version_2_skips_groups_with_processes_of_their_own() {
    let fixture = v2_tree("cpu\n", "5\n");
    let budget = MemoryBudget::available(&fixture.files()).expect("available");
    assert_eq!(budget.parent, fixture.path("sys/fs/cgroup"));

    fixture.write("sys/fs/cgroup/cgroup.subtree_control", "");
    fixture.write("sys/fs/cgroup/cgroup.type", "domain\n");
    fixture.write("sys/fs/cgroup/cgroup.procs", "1\n");
    assert_eq!(
        MemoryBudget::available(&fixture.files()),
        Err(GroupsUnavailable::NotHandedDown(
            Controller::Memory,
            fixture.path("sys/fs/cgroup/slice/scope")
        ))
    );
}

#[test]
fn without_a_controller_the_budget_says_so() {
    assert_eq!(
        MemoryBudget::available(&Fixture::empty().files()),
        Err(GroupsUnavailable::NoController(Controller::Memory))
    );
}

#[test]
fn a_version_2_group_is_limited_filled_read_and_removed() {
    let fixture = v2_tree("memory\n", "");
    let budget = MemoryBudget::available(&fixture.files()).expect("available");
    let group = budget.create_group().expect("group");
    let stat = "anon 1000\nfile 9000\nshmem 2000\nfile_dirty 500\nfile_writeback 1\n";
    as_the_kernel_would(
        &group,
        &[
            ("cgroup.procs", ""),
            ("memory.max", "max\n"),
            ("memory.swap.max", "max\n"),
            ("memory.current", "12000\n"),
            ("memory.stat", stat),
            ("memory.events", "max 3\noom 2\noom_kill 1\n"),
        ],
    );
    let content = |name: &str| fixture.read(group.path().join(name));
    group.set_limit(16 * MIB).expect("limit");
    assert_eq!(content("memory.max"), "16777216");
    group.forbid_swap().expect("swap off");
    assert_eq!(content("memory.swap.max"), "0");
    assert_eq!(
        group.usage().expect("usage"),
        MemoryUsage {
            total_bytes: 12000,
            anonymous_bytes: 1000,
            shared_bytes: 2000,
            file_bytes: 7000,
            dirty_bytes: 500,
            out_of_memory_kills: Some(1),
        }
    );
    let path = group.path().to_path_buf();
    group.add_process(4242).expect("process");
    assert_eq!(fixture.read(path.join("cgroup.procs")), "4242");

    empty_directory(&path);
    drop(group);
    assert!(!path.exists());
}

#[test]
fn a_group_that_still_holds_a_process_is_left_alone() {
    let fixture = v2_tree("memory\n", "");
    let budget = MemoryBudget::available(&fixture.files()).expect("available");
    let group = budget.create_group().expect("group");
    as_the_kernel_would(&group, &[("cgroup.procs", "31\n32\n")]);
    let path = group.path().to_path_buf();
    let message = group.remove().expect_err("refused").to_string();
    assert!(message.contains("31, 32"), "{message}");
    assert_eq!(fixture.read(path.join("cgroup.procs")), "31\n32\n");
}

/// Lets a child read a file of 64 MiB through the page cache in a new group; returns what the group then holds.
fn usage_after_reading(budget: &MemoryBudget, file: &Path, limit: Option<u64>) -> MemoryUsage {
    let group = budget.create_group().expect("group");
    if let Some(limit_bytes) = limit {
        group.set_limit(limit_bytes).expect("limit");
        group.forbid_swap().expect("swap off");
    }
    let data = File::open(file).expect("file");
    fadvise(&data, 0, None, Advice::DontNeed).expect("dropped from the page cache");
    let mut child = Command::new("sh")
        .args(["-c", "read go && cat \"$0\" > /dev/null"])
        .arg(file)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    group.add_process(child.id()).expect("child in the group");
    let mut go = child.stdin.take().expect("pipe");
    go.write_all(b"go\n").expect("started");
    assert!(child.wait().expect("ended").success());
    let usage = group.usage().expect("usage");
    let path = group.path().to_path_buf();
    group.remove().expect("removed");
    assert!(!path.exists());
    usage
}

#[test]
fn the_kernel_holds_the_page_cache_to_the_limit() {
    let budget = match MemoryBudget::available(&SystemTree::default()) {
        Ok(budget) => budget,
        Err(reason) => {
            return spindle_harness::skip(format_args!("memory cannot be limited here: {reason}"));
        }
    };
    // Beside the test program, because /tmp may be a tmpfs, whose pages are not page cache.
    let program = std::env::current_exe().expect("path of the test");
    let directory = tempfile::tempdir_in(program.parent().expect("directory")).expect("directory");
    let file = directory.path().join("64MiB");
    let mut data = File::create(&file).expect("file");
    for _ in 0..64 {
        data.write_all(&vec![0x5a; MIB as usize]).expect("written");
    }
    data.sync_all()
        .expect("on the device, so that its pages can be dropped");

    let free = usage_after_reading(&budget, &file, None);
    assert!(free.file_bytes >= 60 * MIB, "{free:?}");
    let limited = usage_after_reading(&budget, &file, Some(16 * MIB));
    assert!(limited.file_bytes <= 16 * MIB, "{limited:?}");
    assert!(limited.file_bytes >= MIB, "{limited:?}");
    assert_eq!(limited.out_of_memory_kills, Some(0), "{limited:?}");
}

#[test]
fn the_kernel_keeps_a_group_until_its_process_has_ended() {
    let budget = match MemoryBudget::available(&SystemTree::default()) {
        Ok(budget) => budget,
        Err(reason) => {
            return spindle_harness::skip(format_args!("memory cannot be limited here: {reason}"));
        }
    };
    let mut child = Command::new("sh")
        .args(["-c", "read end"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut group = budget.create_group().expect("group");
    group.add_process(child.id()).expect("added");
    let path = group.path().to_path_buf();
    match group.take_away() {
        Err(MemoryError::StillHolds { processes, .. }) => {
            assert_eq!(processes, child.id().to_string());
        }
        other => panic!("a group with a live process: {other:?}"),
    }
    assert!(path.exists());
    assert!(child.try_wait().expect("known").is_none(), "left alone");
    drop(child.stdin.take());
    child.wait().expect("ended");
    group.remove().expect("removed");
    assert!(!path.exists());
}
