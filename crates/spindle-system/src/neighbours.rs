//! Which other programs use the disks of a database while it is measured, and how much: by the kernel's own account of
//! each process (proc_pid_io(5)), looked at before and after. Programs of other users can only be seen by root.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::disk::ProcessIo;
use super::processes::{field_of, ids, parent_of};
use super::{Beneath, DeviceNumber, SystemTree, names};

/// A process that moves less than this in a second disturbs no one, and its open files are not looked at.
const BYTES_PER_S_MIN: f64 = 16.0 * 1024.0;
/// The busiest are asked which disks their files are on; one has all its files looked at.
const ASKED_MAX: usize = 8;
/// `PF_KTHREAD` in include/linux/sched.h: a thread of the kernel, which works for others.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process by its number and the moment it started: numbers are given again.
type Id = (u32, u64);

/// What the other processes of the machine had read and written at a moment.
#[derive(Debug, Clone)]
pub struct OtherPrograms {
    at: Instant,
    processes: BTreeMap<Id, OtherProcess>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OtherProcess {
    parent: u32,
    read_bytes: u64,
    written_bytes: u64,
}

/// What a process moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// Which.
    pub process_id: u32,
    /// Bytes that were fetched from storage for it, per second.
    pub read_bytes_per_s: f64,
    /// Bytes that it wrote or dirtied, per second.
    pub written_bytes_per_s: f64,
}

impl Moved {
    fn bytes_per_s(&self) -> f64 {
        self.read_bytes_per_s + self.written_bytes_per_s
    }
}

impl OtherPrograms {
    /// Looks at all processes but `own` and what it started, and but the kernel's.
    pub fn look(tree: &SystemTree, own: u32) -> OtherPrograms {
        let mut found: BTreeMap<u32, (Stat, OtherProcess)> = BTreeMap::new();
        for process in ids(tree) {
            let stat = tree.proc_text(&format!("{process}/stat"));
            let Some(stat) = stat.as_deref().and_then(Stat::parse) else {
                continue;
            };
            // Of one that may not be looked at only the family is known.
            let io = ProcessIo::read(tree, process);
            let other = OtherProcess {
                parent: stat.parent,
                read_bytes: io.map_or(0, |io| io.read_bytes),
                written_bytes: io.map_or(0, |io| {
                    io.written_bytes.saturating_sub(io.cancelled_write_bytes)
                }),
            };
            found.insert(process, (stat, other));
        }
        let is_own = |process: u32| {
            let line = std::iter::successors(Some(process), |one| {
                let parent = found.get(one)?.1.parent;
                found.contains_key(&parent).then_some(parent)
            });
            // Numbers that were given again meanwhile might make a circle.
            line.take(found.len()).any(|one| one == own)
        };
        let others = found
            .iter()
            .filter(|(process, (stat, _))| stat.flags & KERNEL_THREAD == 0 && !is_own(**process));
        OtherPrograms {
            at: Instant::now(),
            processes: others
                .map(|(process, (stat, other))| ((*process, stat.started), *other))
                .collect(),
        }
    }

    /// The busiest process since an earlier look that has files on one of these disks, or on what lies on them.
    pub fn busiest_on(
        &self,
        disks: &BTreeSet<DeviceNumber>,
        earlier: &OtherPrograms,
        tree: &SystemTree,
    ) -> Option<Moved> {
        let mut moved: Vec<Moved> = self
            .moved_since(earlier)
            .into_iter()
            .filter(|moved| moved.bytes_per_s() >= BYTES_PER_S_MIN)
            .collect();
        moved.sort_by(|one, other| other.bytes_per_s().total_cmp(&one.bytes_per_s()));
        moved.truncate(ASKED_MAX);
        moved
            .into_iter()
            .find(|moved| disks_of(tree, moved.process_id).any(|disk| disks.contains(&disk)))
    }

    /// What each process moved. What a child did is its parent's once it has ended.
    fn moved_since(&self, earlier: &OtherPrograms) -> Vec<Moved> {
        let seconds = (self.at - earlier.at).max(Duration::from_millis(1));
        let mut inherited: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (id, child) in &earlier.processes {
            if !self.processes.contains_key(id) {
                let of_parent = inherited.entry(child.parent).or_default();
                of_parent.0 += child.read_bytes;
                of_parent.1 += child.written_bytes;
            }
        }
        let moved = self.processes.iter().map(|(id, now)| {
            let then = earlier.processes.get(id);
            let inherited = inherited.get(&id.0).copied().unwrap_or_default();
            let since = |now: u64, then: Option<u64>, inherited: u64| {
                let bytes = now.saturating_sub(then.unwrap_or(0) + inherited);
                bytes as f64 / seconds.as_secs_f64()
            };
            Moved {
                process_id: id.0,
                read_bytes_per_s: since(
                    now.read_bytes,
                    then.map(|then| then.read_bytes),
                    inherited.0,
                ),
                written_bytes_per_s: since(
                    now.written_bytes,
                    then.map(|then| then.written_bytes),
                    inherited.1,
                ),
            }
        });
        moved.collect()
    }
}

/// The disks at all levels beneath a file, a directory or a device.
pub fn disks_beneath(tree: &SystemTree, path: &Path) -> BTreeSet<DeviceNumber> {
    let beneath = Beneath::of(tree, path);
    beneath
        .devices()
        .filter_map(|device| device.number)
        .collect()
}

/// The disks beneath what a process has open, and beneath where it works.
fn disks_of(tree: &SystemTree, process: u32) -> impl Iterator<Item = DeviceNumber> {
    let directory = tree.proc.join(process.to_string());
    let open = names(&directory.join("fd")).into_iter();
    let open: Vec<_> = open.map(|name| directory.join("fd").join(name)).collect();
    let places = open.into_iter().chain([directory.join("cwd")]);
    let disks: BTreeSet<DeviceNumber> = places
        .filter(|place| {
            let found = std::fs::metadata(place);
            found.is_ok_and(|found| {
                use std::os::unix::fs::FileTypeExt;
                found.is_file() || found.is_dir() || found.file_type().is_block_device()
            })
        })
        .flat_map(|place| disks_beneath(tree, &place))
        .collect();
    disks.into_iter()
}

/// What is needed of proc_pid_stat(5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Field 9.
    flags: u64,
    /// Field 22.
    started: u64,
}

impl Stat {
    fn parse(stat: &str) -> Option<Stat> {
        Some(Stat {
            parent: parent_of(stat)?,
            flags: field_of(stat, 9)?.parse().ok()?,
            started: field_of(stat, 22)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    fn stat(parent: u32, flags: u64) -> String {
        format!("1 (a b) c) S {parent} 0 0 0 0 {flags} 0 0 0 0 0 0 0 0 0 0 0 0 77 0")
    }

    fn io(read_bytes: u64, written_bytes: u64) -> String {
        format!(
            "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: {read_bytes}\n\
             write_bytes: {written_bytes}\ncancelled_write_bytes: 0\n"
        )
    }

    fn process(fixture: &Fixture, id: u32, parent: u32, flags: u64, written_bytes: u64) {
        fixture.write(&format!("proc/{id}/stat"), &stat(parent, flags));
        fixture.write(&format!("proc/{id}/io"), &io(0, written_bytes));
    }

    /// What each moved in ten seconds, by process.
    fn moved(fixture: &Fixture, earlier: &OtherPrograms) -> Vec<(u32, f64)> {
        let mut now = OtherPrograms::look(&fixture.files(), 100);
        now.at = earlier.at + Duration::from_secs(10);
        let moved = now.moved_since(earlier).into_iter();
        moved
            .map(|of| (of.process_id, of.written_bytes_per_s))
            .collect()
    }

    #[test]
    fn own_processes_and_threads_of_the_kernel_are_no_neighbours() {
        let fixture = Fixture::empty();
        process(&fixture, 1, 0, 0, 0);
        process(&fixture, 2, 0, KERNEL_THREAD, 0);
        process(&fixture, 100, 1, 0, 0);
        process(&fixture, 101, 100, 0, 0);
        process(&fixture, 102, 101, 0, 0);
        process(&fixture, 200, 1, 0, 1_000);
        let earlier = OtherPrograms::look(&fixture.files(), 100);
        for (id, parent, flags) in [(2, 0, KERNEL_THREAD), (101, 100, 0), (102, 101, 0)] {
            process(&fixture, id, parent, flags, 500_000);
        }
        process(&fixture, 200, 1, 0, 11_000);
        assert_eq!(moved(&fixture, &earlier), [(1, 0.0), (200, 1_000.0)]);
    }

    /// A shell that starts one program after the other is the one that writes, from now on.
    #[test]
    fn what_an_ended_child_did_before_is_not_done_now() {
        let fixture = Fixture::empty();
        process(&fixture, 200, 1, 0, 0);
        process(&fixture, 201, 200, 0, 7_000_000);
        let earlier = OtherPrograms::look(&fixture.files(), 100);
        std::fs::remove_file(fixture.path("proc/201/stat")).unwrap();
        process(&fixture, 200, 1, 0, 7_050_000);
        assert_eq!(moved(&fixture, &earlier), [(200, 5_000.0)]);
    }

    /// Real: a program that works in a directory, on the disks beneath it, writes there.
    #[test]
    fn a_program_that_writes_beside_us_is_found_by_its_files() {
        let tree = SystemTree::default();
        let place = tempfile::tempdir_in(".").expect("a directory on a disk");
        let disks = disks_beneath(&tree, place.path());
        assert!(!disks.is_empty(), "of {}", place.path().display());
        let earlier = OtherPrograms::look(&tree, std::process::id());
        let writing =
            "while :; do dd if=/dev/zero of=f bs=64k count=16 conv=fsync 2>/dev/null; done";
        let mut command = std::process::Command::new("sh");
        // Another process group, so that all of it can be ended.
        use std::os::unix::process::CommandExt;
        let child = command
            .args(["-c", writing])
            .current_dir(place.path())
            .process_group(0)
            .spawn();
        let mut child = child.expect("there is a shell");
        let until = Instant::now() + Duration::from_secs(60);
        // It is this test's own, and so looked at as if it were not. Others may write more on this disk.
        let writes = || {
            let now = OtherPrograms::look(&tree, u32::MAX);
            let mut moved = now.moved_since(&earlier).into_iter();
            let its = moved.find(|of| of.process_id == child.id());
            its.is_some_and(|of| of.written_bytes_per_s > BYTES_PER_S_MIN)
        };
        let mut is_found = false;
        while !is_found && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            is_found = writes() && disks_of(&tree, child.id()).any(|disk| disks.contains(&disk));
        }
        let group = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("ours");
        child.wait().expect("ours");
        assert!(is_found);
    }
}
