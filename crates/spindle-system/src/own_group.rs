//! Control groups of our own: made, told a value, joined, removed. They are named `spindle-<process>-<number>`; those
//! that a killed run left behind are found by [`remove_leftovers`]. What a group limits is [`super::memory`]'s and
//! [`super::io_limit`]'s.
//! Sources: Linux Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use super::cgroup::{CgroupVersion, Hierarchy, has_word};
use super::{SystemTree, text};

/// Processes that were just killed leave their group a moment later: removal is tried this often.
const REMOVE_TRIES: u32 = 25;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// Numbers the groups of this process.
static NEXT_GROUP: AtomicU32 = AtomicU32::new(0);

/// What groups of ours can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// Memory, page cache included.
    Memory,
    /// Requests and bytes of block devices.
    BlockIo,
}

impl Controller {
    const ALL: [Controller; 2] = [Controller::Memory, Controller::BlockIo];

    /// Its name in version 1, and in version 2.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Controller::Memory => ("memory", "memory"),
            Controller::BlockIo => ("blkio", "io"),
        }
    }

    /// Where this process stands for it; `None` if it is not mounted.
    pub fn of_self(self, files: &SystemTree) -> Option<Hierarchy> {
        let (v1, v2) = self.names();
        Hierarchy::of_self(files, v1).or_else(|| Hierarchy::of_self(files, v2))
    }

    fn as_said(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::BlockIo => "block I/O",
        }
    }

    fn how_to_mount(self) -> String {
        let (v1, v2) = self.names();
        format!("mount cgroup v2 with its {v2} controller, or the {v1} controller of v1")
    }

    /// Users have delegated groups for memory, seldom for block I/O.
    fn how_to_be_permitted(self) -> &'static str {
        match self {
            Controller::Memory => "run as root, or under `systemd-run --user --scope`",
            Controller::BlockIo => "run as root",
        }
    }
}

/// Why groups of ours cannot limit something here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupsUnavailable {
    /// The kernel has no such controller, or it is not mounted.
    #[error("no {} controller is mounted: {}", .0.as_said(), .0.how_to_mount())]
    NoController(Controller),
    /// Groups can be made, but not by us.
    #[error("not permitted to make a control group in {}: {}", .1.display(), .0.how_to_be_permitted())]
    NotPermitted(Controller, PathBuf),
    /// Version 2 only: no group from our own upwards can have children with a limit.
    #[error(
        "the {} controller is not handed down to {} (cgroup.subtree_control) and cannot be while processes run \
         in that very group: run under `systemd-run --scope`",
        .0.as_said(),
        .1.display()
    )]
    NotHandedDown(Controller, PathBuf),
}

/// Where groups of ours with a controller can be made: our own group where possible; in version 2, where a group with
/// processes cannot hand the controller down, the nearest above that does. Nothing is changed.
pub(super) fn parent_of_ours(
    files: &SystemTree,
    controller: Controller,
) -> Result<(CgroupVersion, PathBuf), GroupsUnavailable> {
    let hierarchy = controller.of_self(files);
    let hierarchy = hierarchy.ok_or(GroupsUnavailable::NoController(controller))?;
    let parent = match hierarchy.version {
        CgroupVersion::V1 => hierarchy.own.as_path(),
        CgroupVersion::V2 => hierarchy
            .upwards()
            .find(|group| can_hand_down(group, controller.names().1))
            .ok_or_else(|| GroupsUnavailable::NotHandedDown(controller, hierarchy.own.clone()))?,
    };
    let parent = parent.to_path_buf();
    match rustix::fs::access(&parent, Access::WRITE_OK) {
        Ok(()) => Ok((hierarchy.version, parent)),
        Err(_) => Err(GroupsUnavailable::NotPermitted(controller, parent)),
    }
}

/// A file or directory of a group could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("control group: cannot {action} {}: {source}", .path.display())]
pub struct Refused {
    /// What was tried.
    pub action: &'static str,
    /// On which file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Refused {
    pub(super) fn new(action: &'static str, path: &Path, source: io::Error) -> Refused {
        Refused {
            action,
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Makes a new, empty group.
pub(super) fn create_in(parent: &Path) -> Result<PathBuf, Refused> {
    loop {
        let number = NEXT_GROUP.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("spindle-{}-{number}", process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            // An earlier process of the same id left it behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(Refused::new("create", &path, error)),
        }
    }
}

/// Writes a control file of the system's, which exists.
#[allow(clippy::disallowed_methods)]
pub(super) fn write(path: &Path, value: &str) -> Result<(), Refused> {
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|error| Refused::new("write", path, error))
}

/// Moves a process, with all its threads, into a group.
pub(super) fn add_process(group: &Path, process_id: u32) -> Result<(), Refused> {
    write(&group.join("cgroup.procs"), &process_id.to_string())
}

/// Waits until no process is in a group, this long at most: one that was killed leaves it when its I/O under way has
/// ended. A group that cannot be looked at has none.
pub fn wait_until_left(group: &Path, limit: Duration) {
    let began = Instant::now();
    while text(&group.join("cgroup.procs")).is_some() && began.elapsed() < limit {
        thread::sleep(REMOVE_PAUSE);
    }
}

/// Tries something until it succeeds, half a second at most: a group goes when its processes have.
pub(super) fn patiently<E>(mut attempt: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut tries_left = REMOVE_TRIES;
    loop {
        let outcome = attempt();
        tries_left -= 1;
        if outcome.is_ok() || tries_left == 0 {
            return outcome;
        }
        thread::sleep(REMOVE_PAUSE);
    }
}

/// Whether a version 2 group gives its children a controller, or can be told to. Only the root of all and groups
/// without their own processes can ("no internal processes"); the root alone has no `cgroup.type`.
fn can_hand_down(group: &Path, controller: &str) -> bool {
    if has_word(&group.join("cgroup.subtree_control"), controller) {
        return true;
    }
    let is_root = !group.join("cgroup.type").exists();
    let is_empty = fs::read(group.join("cgroup.procs")).is_ok_and(|ids| ids.is_empty());
    has_word(&group.join("cgroup.controllers"), controller) && (is_root || is_empty)
}

/// Has a version 2 group give its children a controller.
pub(super) fn hand_down(group: &Path, controller: &str) -> Result<(), Refused> {
    let control = group.join("cgroup.subtree_control");
    if has_word(&control, controller) {
        return Ok(());
    }
    write(&control, &format!("+{controller}"))
}

/// A group of a Spindle process that no longer exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Its directory.
    pub path: PathBuf,
    /// Whether it is gone now.
    pub removed: bool,
}

/// Removes the groups, in our own group and in all above, whose process no longer exists. Groups that cannot be
/// removed, because something still runs in them, are left and reported.
pub fn remove_leftovers(files: &SystemTree) -> Vec<Leftover> {
    let hierarchies = Controller::ALL
        .iter()
        .filter_map(|controller| controller.of_self(files));
    let mut groups: Vec<PathBuf> = hierarchies
        .flat_map(|hierarchy| {
            hierarchy
                .upwards()
                .map(Path::to_path_buf)
                .collect::<Vec<_>>()
        })
        .collect();
    groups.sort();
    groups.dedup();
    let mut leftovers: Vec<Leftover> = groups
        .into_iter()
        .filter_map(|group| fs::read_dir(group).ok())
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let owner = owner_of(entry.file_name().to_str()?)?;
            (!files.proc.join(owner.to_string()).exists()).then(|| entry.path())
        })
        .map(|path| Leftover {
            removed: fs::remove_dir(&path).is_ok(),
            path,
        })
        .collect();
    leftovers.sort_by(|a, b| a.path.cmp(&b.path));
    leftovers
}

/// The process that made the group of this name, if it is one of ours.
fn owner_of(name: &str) -> Option<u32> {
    let (process, number) = name.strip_prefix("spindle-")?.split_once('-')?;
    number.parse::<u32>().ok()?;
    process.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const V1_MOUNTS: &str = "1 0 0:4 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                             2 0 0:5 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";

    #[test]
    fn only_groups_of_ours_with_a_dead_owner_are_leftovers() {
        let fixture = Fixture::with(&[
            ("proc/self/mountinfo", V1_MOUNTS),
            ("proc/self/cgroup", "4:memory:/mine\n3:blkio:/\n"),
            ("sys/fs/cgroup/memory/mine/spindle-200-1/busy", ""),
        ]);
        fixture.directory("proc/100");
        for name in ["spindle-100-0", "spindle-200-0", "spindle-x-0", "other"] {
            fixture.directory(&format!("sys/fs/cgroup/memory/mine/{name}"));
        }
        fixture.directory("sys/fs/cgroup/memory/spindle-300-7");
        fixture.directory("sys/fs/cgroup/blkio/spindle-400-0");
        let found = remove_leftovers(&fixture.files());
        let leftover = |path: &str, removed| Leftover {
            path: fixture.path(&format!("sys/fs/cgroup/memory/{path}")),
            removed,
        };
        assert_eq!(
            found,
            [
                Leftover {
                    path: fixture.path("sys/fs/cgroup/blkio/spindle-400-0"),
                    removed: true,
                },
                leftover("mine/spindle-200-0", true),
                leftover("mine/spindle-200-1", false),
                leftover("spindle-300-7", true),
            ]
        );
        for name in ["spindle-100-0", "spindle-x-0", "other", "spindle-200-1"] {
            let path = fixture.path(&format!("sys/fs/cgroup/memory/mine/{name}"));
            assert!(path.exists(), "{name}");
        }
        assert!(!fixture.path("sys/fs/cgroup/memory/spindle-300-7").exists());
    }
}
