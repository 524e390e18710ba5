//! The processes of a trial: the one that drives it, if it is on this machine, and, when the database is a server, the
//! server's with all that it started. Their processor time and their I/O are one sum. Processes that end are still
//! counted where their parent has waited for them, as servers do.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::cpu::ProcessCpu;
use super::disk::ProcessIo;
use super::{SystemTree, names};

/// The existing processes, by number. One may end before it is looked at.
pub fn ids(tree: &SystemTree) -> Vec<u32> {
    let names = names(&tree.proc).into_iter();
    names.filter_map(|name| name.parse().ok()).collect()
}

/// This program, whatever has become of its file.
pub fn own_program(tree: &SystemTree) -> PathBuf {
    tree.proc.join("self/exe")
}

/// The directory a process works in; `None` when it has ended, or may not be looked at.
pub fn working_directory(tree: &SystemTree, process_id: u32) -> Option<PathBuf> {
    std::fs::read_link(tree.proc.join(format!("{process_id}/cwd"))).ok()
}

/// Whether a path from the directory that a process works in leads to the same as a path of this one, in whatever mount
/// namespace it lives; not when that may not be looked at.
pub fn works_at(tree: &SystemTree, process_id: u32, from_there: &Path, here: &Path) -> bool {
    let directory = tree.proc.join(format!("{process_id}/cwd"));
    let there = std::fs::metadata(directory.join(from_there));
    let of = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (there, std::fs::metadata(here)) {
        (Ok(there), Ok(here)) => of(there) == of(here),
        _ => false,
    }
}

/// The name of a process's program, of which the kernel keeps [`NAME_BYTES`]; `None` when it has ended.
pub fn program_of(tree: &SystemTree, process_id: u32) -> Option<Vec<u8>> {
    let name = std::fs::read(tree.proc.join(format!("{process_id}/comm"))).ok()?;
    Some(name.trim_ascii_end().to_vec())
}

/// Bytes that the kernel keeps of a program's name (TASK_COMM_LEN in include/linux/sched.h, with a zero at its end).
pub const NAME_BYTES: usize = 15;

/// Whether a process was stopped by a signal and has not gone on (proc_pid_stat(5), state `T`); not when it has ended.
pub fn is_stopped(tree: &SystemTree, process_id: u32) -> bool {
    let stat = tree.proc_text(&format!("{process_id}/stat"));
    let state = stat.as_deref().and_then(|stat| field_of(stat, 3));
    state == Some("T")
}

/// Whether this process ignores a signal (proc_pid_status(5), `SigIgn`).
pub fn ignores_signal(tree: &SystemTree, signal: i32) -> bool {
    let status = tree.proc_text("self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// The process of a server that works in one of these directories, by the names that its program may have: the one that
/// started the others. Where directories of processes may not be looked at, the only one of the name; `None`: there is
/// none, or it is not known which it is.
pub fn server_in(tree: &SystemTree, directories: &[PathBuf], programs: &[String]) -> Option<u32> {
    let is_named = |process: &u32| {
        let program = program_of(tree, *process).unwrap_or_default();
        programs.iter().any(|name| name.as_bytes() == program)
    };
    let named: BTreeSet<u32> = ids(tree).into_iter().filter(is_named).collect();
    let is_first = |process: &&u32| {
        let stat = tree.proc_text(&format!("{process}/stat"));
        let parent = stat.as_deref().and_then(parent_of);
        parent.is_none_or(|parent| !named.contains(&parent))
    };
    let first: Vec<u32> = named.iter().filter(is_first).copied().collect();
    let canonical = |directory: &PathBuf| directory.canonicalize().ok();
    let directories: Vec<PathBuf> = directories.iter().filter_map(canonical).collect();
    let works_there = |place: &Path| directories.iter().any(|directory| directory == place);
    let places = first
        .iter()
        .map(|process| working_directory(tree, *process));
    let places: Vec<Option<PathBuf>> = places.collect();
    let found = places.iter().position(|place| {
        let place = place.as_deref();
        place.is_some_and(works_there)
    });
    match (found, first.as_slice(), places.as_slice()) {
        (Some(found), _, _) => Some(first[found]),
        (None, [only], [None]) => Some(*only),
        _ => None,
    }
}

/// Processes that are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processes {
    /// `None`: it is on another machine.
    driver: Option<u32>,
    servers: Vec<u32>,
}

impl Processes {
    /// One process, alone.
    pub fn one(process_id: u32) -> Processes {
        Processes {
            driver: Some(process_id),
            servers: Vec::new(),
        }
    }

    /// A process, and servers with all their descendants.
    pub fn with_servers(driver: u32, servers: Vec<u32>) -> Processes {
        Processes {
            driver: Some(driver),
            servers,
        }
    }

    /// Servers with all their descendants; their clients are on another machine.
    pub fn of_servers(servers: Vec<u32>) -> Processes {
        Processes {
            driver: None,
            servers,
        }
    }

    /// Their processor time; `None` when the driving process's is not known, or, without one, that of no other is.
    pub fn cpu(&self, files: &SystemTree) -> Option<ProcessCpu> {
        let of = |process: &u32| {
            let stat = files.proc_text(&format!("{process}/stat"))?;
            ProcessCpu::parse_with_ended_children(&stat)
        };
        let own = match self.driver {
            Some(driver) => Some(ProcessCpu::read(files, driver)?),
            None => None,
        };
        let members = self.members(files);
        let times = own.into_iter().chain(members.iter().filter_map(of));
        times.reduce(|sum, time| sum.and(&time))
    }

    /// Their I/O; `None` as for [`Self::cpu`].
    pub fn io(&self, files: &SystemTree) -> Option<ProcessIo> {
        let own = match self.driver {
            Some(driver) => Some(ProcessIo::read(files, driver)?),
            None => None,
        };
        let members = self.members(files);
        let counters = members.iter().filter_map(|id| ProcessIo::read(files, *id));
        let counters = own.into_iter().chain(counters);
        counters.reduce(|sum, counters| sum.and(&counters))
    }

    /// The servers and their descendants.
    pub fn members(&self, files: &SystemTree) -> Vec<u32> {
        if self.servers.is_empty() {
            return Vec::new();
        }
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for process in ids(files) {
            let stat = files.proc_text(&format!("{process}/stat"));
            if let Some(parent) = stat.as_deref().and_then(parent_of) {
                children.entry(parent).or_default().push(process);
            }
        }
        let mut members = self.servers.clone();
        let mut looked_at = 0;
        while let Some(process) = members.get(looked_at) {
            let found = children.remove(process).unwrap_or_default();
            members.extend(found);
            looked_at += 1;
        }
        members
    }
}

/// The process that started one, from its proc_pid_stat(5).
pub(super) fn parent_of(stat: &str) -> Option<u32> {
    field_of(stat, 4)?.parse().ok()
}

/// A field of proc_pid_stat(5) by its number there, from 3. The second, a name, may hold anything.
pub(super) fn field_of(stat: &str, number: usize) -> Option<&str> {
    let (_, from_third_field) = stat.rsplit_once(')')?;
    from_third_field.split_whitespace().nth(number - 3)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    fn stat(parent: u32, times: [u32; 4]) -> String {
        let [user, system, ended_user, ended_system] = times;
        format!(
            "1 (a b) S {parent} 1 1 0 -1 0 0 0 0 0 {user} {system} {ended_user} {ended_system} 20 0"
        )
    }

    #[test]
    fn only_a_process_that_a_signal_stopped_is_stopped() {
        let fixture = Fixture::with(&[
            ("proc/7/stat", "7 (a) T) S 1"),
            ("proc/8/stat", "8 (S) T 1"),
            ("proc/9/stat", "9 (traced) t 1"),
        ]);
        let stopped = |process| is_stopped(&fixture.files(), process);
        assert!(stopped(8));
        assert!(![7, 9, 10].into_iter().any(stopped));
    }

    #[test]
    fn a_server_counts_with_all_its_descendants_and_those_that_ended() {
        let stats = [
            ("proc/5/stat", stat(1, [1, 2, 40, 40])),
            ("proc/7/stat", stat(5, [10, 20, 3, 4])),
            ("proc/8/stat", stat(7, [100, 0, 0, 0])),
            ("proc/9/stat", stat(8, [0, 200, 0, 0])),
            ("proc/10/stat", stat(1, [900, 900, 0, 0])),
        ];
        let files: Vec<(&str, &str)> = stats.iter().map(|(p, s)| (*p, s.as_str())).collect();
        let fixture = Fixture::with(&files);
        let watched = Processes::with_servers(5, vec![7]);
        assert_eq!(
            watched.cpu(&fixture.files()),
            Some(ProcessCpu {
                user_us: 1_140_000,
                system_us: 2_260_000
            })
        );
        let alone = Processes::one(5).cpu(&fixture.files());
        assert_eq!(alone.map(|cpu| cpu.user_us), Some(10_000));
        let from_afar = Processes::of_servers(vec![7]).cpu(&fixture.files());
        assert_eq!(from_afar.map(|cpu| cpu.user_us), Some(1_130_000));
        let unknown = Processes::of_servers(Vec::new());
        assert_eq!(unknown.cpu(&fixture.files()), None);
        assert_eq!(unknown.io(&fixture.files()), None);
    }

    #[test]
    fn a_process_works_at_a_place_whatever_leads_there() {
        let place = tempfile::tempdir().unwrap();
        let (home, other) = (place.path().join("home"), place.path().join("other"));
        std::fs::create_dir_all(home.join("within")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, home.join("link")).unwrap();
        let fixture = Fixture::with(&[("proc/7/comm", "postgres\n")]);
        let tree = fixture.files();
        let works_at = |from: &str, here: &Path| works_at(&tree, 7, Path::new(from), here);
        assert!(!works_at("", &home), "nobody may look where it works");
        std::os::unix::fs::symlink(&home, tree.proc.join("7/cwd")).unwrap();
        assert!(works_at("", &home) && works_at("link", &other));
        assert!(!works_at("within", &other) && !works_at("none", &other));
    }

    #[test]
    fn a_server_is_found_by_its_directory_or_as_the_only_one_of_its_name() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stats = [
            ("proc/7/stat", stat(1, [0; 4])),
            ("proc/8/stat", stat(7, [0; 4])),
            ("proc/9/stat", stat(1, [0; 4])),
        ];
        let mut files: Vec<(&str, &str)> = stats.iter().map(|(p, s)| (*p, s.as_str())).collect();
        files.extend([
            ("proc/7/comm", "postgres\n"),
            ("proc/8/comm", "postgres\n"),
            ("proc/9/comm", "mariadbd\n"),
        ]);
        let fixture = Fixture::with(&files);
        let tree = fixture.files();
        let found = |directory: &Path, program: &str| {
            server_in(&tree, &[directory.to_owned()], &[program.to_owned()])
        };
        // Nobody may look where they work.
        assert_eq!(found(one.path(), "postgres"), Some(7));
        assert_eq!(found(one.path(), "mysqld"), None);
        let works_in = |process: u32, place: &Path| {
            let link = tree.proc.join(format!("{process}/cwd"));
            std::os::unix::fs::symlink(place.canonicalize().unwrap(), link).unwrap();
        };
        works_in(7, one.path());
        works_in(9, one.path());
        assert_eq!(found(one.path(), "postgres"), Some(7));
        assert_eq!(found(other.path(), "postgres"), None);
        assert_eq!(found(one.path(), "mariadbd"), Some(9));
    }
}
