//! Which processes have which devices and files open, in any mount namespace: one scan of `/proc` answers for all
//! devices of a plan. A device is known by its number and a file by its inode, so no name can hide it. Looked at are
//! the descriptors of every thread that has its own table, what is mapped into memory (the descriptor may be closed by
//! then), files that an io_uring keeps, and locks. What may not be looked at is counted, and reported by the caller.
//! Sources: proc(5), proc_pid_fd(5), proc_pid_maps(5), proc_pid_map_files(5), proc_locks(5).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spindle_io::real::facts::share_open_files;

use super::{DeviceNumber, StoragePlace, SystemTree, names, text};

/// The number of `/proc/self/ns/pid` where all processes of the machine are seen (`PROC_PID_INIT_INO`,
/// linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What the descriptor of an io_uring leads to.
const RING: &str = "anon_inode:[io_uring]";

/// How a process has something open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenFor {
    /// For reading only.
    Reading,
    /// For writing, or for both.
    Writing,
    /// Mapped into its memory.
    Mapped,
    /// Kept by its own io_uring.
    Ring,
    /// Locked; the descriptor itself cannot be seen.
    Locked,
}

/// A process that has something open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The process; `None` when the kernel does not tell whose a lock is.
    pub pid: Option<u32>,
    /// Its program.
    pub program: String,
    /// How.
    pub open_for: OpenFor,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.open_for {
            OpenFor::Reading => "open for reading",
            OpenFor::Writing => "open for writing",
            OpenFor::Mapped => "mapped into memory",
            OpenFor::Ring => "registered with an io_uring",
            OpenFor::Locked => "locked",
        };
        match self.pid {
            Some(pid) => write!(f, "{how} by {} (process {pid})", self.program),
            None => write!(f, "{how} by a process that the kernel does not name"),
        }
    }
}

/// Who has what open, but for this process itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenFiles {
    /// By process; one that the kernel does not name has none.
    holders: BTreeMap<StoragePlace, BTreeSet<(Option<u32>, OpenFor)>>,
    /// Their programs: each is asked for once, as a process has hundreds of mappings.
    programs: BTreeMap<u32, String>,
    unseen: Unseen,
}

/// What could not be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Processes whose open files this user may not see.
    processes: usize,
    /// Processes of the machine that this process cannot see at all, in words.
    hidden: Option<String>,
}

impl Unseen {
    /// In words; `None` when everything was seen.
    pub fn words(&self) -> Option<String> {
        let closed = match self.processes {
            0 => None,
            1 => Some("the open files of 1 process that belongs to others".to_owned()),
            more => Some(format!(
                "the open files of {more} processes that belong to others"
            )),
        };
        let words: Vec<String> = closed.into_iter().chain(self.hidden.clone()).collect();
        (!words.is_empty()).then(|| words.join(", and "))
    }
}

impl OpenFiles {
    /// Scans `/proc`.
    pub fn read(tree: &SystemTree) -> OpenFiles {
        let mut scan = Scan {
            tree,
            found: OpenFiles::default(),
            mapped: BTreeMap::new(),
        };
        let own = std::process::id();
        let processes = names(&tree.proc).into_iter();
        for pid in processes.filter_map(|name| name.parse().ok()) {
            if pid != own {
                scan.process(pid);
            }
        }
        scan.locks(own);
        scan.found.unseen.hidden = hidden(tree);
        scan.found
    }

    /// Who has it open.
    pub fn holders(&self, storage: StoragePlace) -> impl Iterator<Item = Holder> {
        let holder = |(pid, open_for): &(Option<u32>, OpenFor)| Holder {
            pid: *pid,
            program: pid
                .and_then(|pid| self.programs.get(&pid).cloned())
                .unwrap_or_default(),
            open_for: *open_for,
        };
        let found = self.holders.get(&storage).into_iter().flatten();
        found.map(holder)
    }

    /// Who has a file of the file system open that lies on a block device, mounted or no longer.
    pub fn holders_of_files_on(&self, device: DeviceNumber) -> impl Iterator<Item = Holder> {
        let is_there = move |storage: &StoragePlace| match storage {
            StoragePlace::File { file_system, .. } => DeviceNumber::of_stat(*file_system) == device,
            StoragePlace::Device(_) => false,
        };
        let files = self.holders.keys().filter(move |storage| is_there(storage));
        files.flat_map(|file| self.holders(*file))
    }

    /// What could not be looked at.
    pub fn unseen(&self) -> &Unseen {
        &self.unseen
    }

    fn add(&mut self, storage: StoragePlace, pid: Option<u32>, open_for: OpenFor) {
        let holders = self.holders.entry(storage).or_default();
        holders.insert((pid, open_for));
    }
}

/// Processes that exist and do not appear in `/proc` as this process sees it.
fn hidden(tree: &SystemTree) -> Option<String> {
    let namespace = std::fs::read_link(tree.proc.join("self/ns/pid")).ok();
    if namespace.is_some_and(|link| link.as_os_str() != FIRST_PID_NAMESPACE) {
        return Some("processes outside this container (PID namespace)".to_owned());
    }
    let mounts = super::mounts::mounts(tree).unwrap_or_default();
    let proc = mounts
        .iter()
        .rfind(|mount| mount.kind == "proc" && mount.mount_point == tree.proc);
    let hides = proc.is_some_and(|mount| {
        mount.options.split(',').any(|option| {
            option.starts_with("hidepid=") && option != "hidepid=0" && option != "hidepid=off"
        })
    });
    (hides && !rustix::process::geteuid().is_root())
        .then(|| "processes of other users, which /proc hides (hidepid)".to_owned())
}

struct Scan<'a> {
    tree: &'a SystemTree,
    found: OpenFiles,
    /// What a line of a list of mappings leads to, by device and inode as the list has them: libraries are mapped by
    /// all.
    mapped: BTreeMap<(String, String), Option<StoragePlace>>,
}

impl Scan<'_> {
    fn process(&mut self, pid: u32) {
        let directory = self.tree.proc.join(pid.to_string());
        let mut may_see = true;
        let mut tables: Vec<u32> = Vec::new();
        let mut mappings = std::fs::read(directory.join("maps"));
        let threads = names(&directory.join("task"));
        let threads = threads.iter().filter_map(|name| name.parse::<u32>().ok());
        // The first thread may have ended before the others; it has nothing open then.
        for thread in std::iter::once(pid).chain(threads.filter(|thread| *thread != pid)) {
            let known = |table: &u32| share_open_files(*table, thread).unwrap_or(false);
            let of_thread = match thread == pid {
                true => directory.clone(),
                false => directory.join("task").join(thread.to_string()),
            };
            if !tables.iter().any(known) {
                match self.descriptors(pid, &of_thread) {
                    true => tables.push(thread),
                    false => may_see = false,
                }
            }
            if mappings.as_ref().is_ok_and(Vec::is_empty) {
                mappings = std::fs::read(of_thread.join("maps"));
            }
        }
        match mappings {
            Ok(text) => self.mappings(pid, &directory, &String::from_utf8_lossy(&text)),
            Err(error) => may_see &= is_gone(&error),
        }
        // Threads of the kernel have no files, and no command line.
        if !may_see && text(&directory.join("cmdline")).is_some() {
            self.found.unseen.processes += 1;
        }
    }

    /// Looks at a table of descriptors; whether that was allowed.
    fn descriptors(&mut self, pid: u32, directory: &Path) -> bool {
        let entries = match std::fs::read_dir(directory.join("fd")) {
            Ok(entries) => entries,
            Err(error) => return is_gone(&error),
        };
        for entry in entries.flatten() {
            let link = entry.path();
            let about = directory.join("fdinfo").join(entry.file_name());
            let found = std::fs::metadata(&link);
            match &found {
                Ok(metadata) if StoragePlace::of(metadata).is_some() => {
                    if let Some(storage) = self.tree.storage_of(&link, metadata) {
                        self.add(storage, pid, open_for(&about));
                    }
                }
                Ok(metadata) if has_type(metadata) => {}
                // The kernel asks of each descriptor whether this process may look into that one: the answer is the
                // same.
                Err(error) if !is_gone(error) => return false,
                // What the kernel made without a type, such as a ring.
                _ => self.ring(pid, &link, &about),
            }
        }
        true
    }

    fn ring(&mut self, pid: u32, link: &Path, about: &Path) {
        if !std::fs::read_link(link).is_ok_and(|target| target.as_os_str() == RING) {
            return;
        }
        for path in registered_with_ring(&text(about).unwrap_or_default()) {
            if let Some(storage) = self.tree.storage_at(&path) {
                self.add(storage, pid, OpenFor::Ring);
            }
        }
    }

    fn mappings(&mut self, pid: u32, directory: &Path, table: &str) {
        for line in table.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(range), Some(device), Some(inode)) =
                (fields.next(), fields.nth(2), fields.next())
            else {
                continue;
            };
            let key = (device.to_owned(), inode.to_owned());
            if inode == "0" {
                continue;
            }
            let storage = match self.mapped.get(&key) {
                Some(storage) => *storage,
                None => {
                    let link = directory
                        .join("map_files")
                        .join(without_leading_zeros(range));
                    let storage = self
                        .tree
                        .storage_at(&link)
                        .or_else(|| file_of(device, inode));
                    self.mapped.insert(key, storage);
                    storage
                }
            };
            if let Some(storage) = storage {
                self.add(storage, pid, OpenFor::Mapped);
            }
        }
    }

    fn add(&mut self, storage: StoragePlace, pid: u32, open_for: OpenFor) {
        let program = || {
            let name = text(&self.tree.proc.join(pid.to_string()).join("comm"));
            plain(&name.unwrap_or_else(|| "a program without a name".to_owned()))
        };
        self.found.programs.entry(pid).or_insert_with(program);
        self.found.add(storage, Some(pid), open_for);
    }

    /// Locks, which everyone may see. A lock on the node of a device is known by the node's inode.
    fn locks(&mut self, own: u32) {
        let table = self.tree.locks();
        let mut locked: BTreeMap<StoragePlace, BTreeSet<Option<u32>>> = BTreeMap::new();
        for line in table.lines() {
            // `1: POSIX ADVISORY WRITE 1234 00:1a:5678 0 EOF`; a waiter has `->` in the second place.
            let fields: Vec<&str> = line
                .split_ascii_whitespace()
                .filter(|word| *word != "->")
                .collect();
            let (Some(pid), Some(place)) = (fields.get(4), fields.get(5)) else {
                continue;
            };
            let Some((device, inode)) = place.rsplit_once(':') else {
                continue;
            };
            let pid = pid.parse().ok().filter(|pid| *pid != 0);
            if let (Some(file), true) = (file_of(device, inode), pid != Some(own)) {
                locked.entry(file).or_default().insert(pid);
            }
        }
        if locked.is_empty() {
            return;
        }
        for (node, storage) in self.nodes() {
            if let Some(pids) = locked.get(&node).cloned() {
                locked.entry(storage).or_default().extend(pids);
            }
        }
        for (storage, pids) in locked {
            for pid in pids {
                let is_known = self
                    .found
                    .holders(storage)
                    .any(|holder| holder.pid == pid || pid.is_none());
                match (is_known, pid) {
                    (true, _) => {}
                    (false, Some(pid)) => self.add(storage, pid, OpenFor::Locked),
                    (false, None) => self.found.add(storage, None, OpenFor::Locked),
                }
            }
        }
    }

    /// The nodes right below `/dev`, as files, and the devices they mean.
    fn nodes(&self) -> Vec<(StoragePlace, StoragePlace)> {
        let node = |name: String| {
            let path = self.tree.dev.join(name);
            let metadata = path.symlink_metadata().ok()?;
            let storage = self.tree.storage_at(&path)?;
            let node = StoragePlace::File {
                file_system: metadata.dev(),
                inode: metadata.ino(),
            };
            matches!(storage, StoragePlace::Device(_)).then_some((node, storage))
        };
        names(&self.tree.dev).into_iter().filter_map(node).collect()
    }
}

/// Whether a process or descriptor ended while it was looked at, which hides nothing.
fn is_gone(error: &std::io::Error) -> bool {
    matches!(
        rustix::io::Errno::from_io_error(error),
        Some(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH)
    )
}

/// From the flags of `/proc/PID/fdinfo/FD`, octal; open(2) has the access mode in the lowest two bits.
fn open_for(about: &Path) -> OpenFor {
    let text = text(about).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    match flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok()) {
        Some(flags) if flags & 3 == 0 => OpenFor::Reading,
        _ => OpenFor::Writing,
    }
}

fn has_type(metadata: &std::fs::Metadata) -> bool {
    const TYPE_BITS: u32 = 0o170_000;
    metadata.mode() & TYPE_BITS != 0
}

/// The paths below `UserFiles:` of a ring (io_uring/fdinfo.c): `    3: /dev/sdb`.
fn registered_with_ring(about: &str) -> Vec<PathBuf> {
    let lines = about
        .lines()
        .skip_while(|line| !line.starts_with("UserFiles:"))
        .skip(1);
    let entry = |line: &str| {
        let (number, path) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    lines
        .map_while(|line| line.starts_with(' ').then(|| entry(line)))
        .flatten()
        .collect()
}

/// A file by the words of the kernel's tables: `08:01` or `fe:1f` and a decimal inode.
fn file_of(device: &str, inode: &str) -> Option<StoragePlace> {
    let (major, minor) = device.split_once(':')?;
    let [major, minor] = [major, minor].map(|part| u32::from_str_radix(part, 16).ok());
    Some(StoragePlace::File {
        file_system: rustix::fs::makedev(major?, minor?),
        inode: inode.parse().ok()?,
    })
}

/// `/proc/PID/maps` pads addresses with zeros, the names in `/proc/PID/map_files` have none.
fn without_leading_zeros(range: &str) -> String {
    let plain = |address: &str| match address.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    };
    let ends: Vec<String> = range.split('-').map(plain).collect();
    ends.join("-")
}

/// A process chooses its own name; it may not write to a terminal with it.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_ring_are_found() {
        let about = "pos:\t0\nflags:\t02000002\nUserFiles:\t3\n    0: /dev/sdb\n    2: /x y\nUserBufs:\t1\n    0: 0x1/4096\n";
        assert_eq!(
            registered_with_ring(about),
            [PathBuf::from("/dev/sdb"), PathBuf::from("/x y")]
        );
        assert!(registered_with_ring("SqThread:\t-1\n").is_empty());
    }

    #[test]
    fn addresses_are_those_of_the_other_directory() {
        assert_eq!(without_leading_zeros("00400000-00452000"), "400000-452000");
        assert_eq!(without_leading_zeros("7f00-7f10"), "7f00-7f10");
    }
}
