//! What the system says about itself: the machine a run stood on, what its processors, devices and memory did during a
//! trial, and whether the device's own counts agree with ours. The runner calls it between trials and the journal keeps
//! what it returns; nothing here knows of experiments, and nothing here is called on a path that is being measured,
//! except the cheap [`sampler`].
//!
//! All of it is read from `/proc`, `/sys` and `/etc` through [`SystemFiles`], so that tests stand on fixture trees. A
//! file that is missing or unreadable gives `None`: what a kernel hides is recorded as unknown, never guessed.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub mod block_device;
pub mod caches;
pub mod cgroup;
pub mod cpu;
pub mod device_probe;
pub mod disk;
pub mod file_locks;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod io_limit;
pub mod machine;
pub mod memory;
pub mod mounts;
pub mod own_group;
pub mod processes;
pub mod sampler;
pub mod series;
pub mod threads;

/// Where the system's own files are found: `/proc`, `/sys` and `/etc`, or fixtures standing in for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFiles {
    /// Stands for `/proc`.
    pub proc: PathBuf,
    /// Stands for `/sys`.
    pub sys: PathBuf,
    /// Stands for `/etc`.
    pub etc: PathBuf,
}

impl Default for SystemFiles {
    /// The running system's own.
    fn default() -> Self {
        SystemFiles {
            proc: PathBuf::from("/proc"),
            sys: PathBuf::from("/sys"),
            etc: PathBuf::from("/etc"),
        }
    }
}

impl SystemFiles {
    /// The place of an absolute path that the system itself named, such as a mount point: under `/sys` and `/proc` it
    /// is looked for in this tree, elsewhere it is taken as it stands.
    pub fn locate(&self, absolute: &Path) -> PathBuf {
        let under = |prefix: &str, stand_in: &Path| {
            let rest = absolute.strip_prefix(prefix).ok()?;
            Some(stand_in.join(rest))
        };
        under("/sys", &self.sys)
            .or_else(|| under("/proc", &self.proc))
            .unwrap_or_else(|| absolute.to_path_buf())
    }

    /// The text of a file of these trees, without the white space around it; `None` if it cannot be read or says
    /// nothing.
    pub fn text_of(&self, file: &Path) -> Option<String> {
        text(file)
    }

    /// The number that a file of these trees holds.
    pub fn number_of(&self, file: &Path) -> Option<u64> {
        number(file)
    }

    fn proc_text(&self, file: &str) -> Option<String> {
        text(&self.proc.join(file))
    }

    fn proc_number<N: FromStr>(&self, file: &str) -> Option<N> {
        number(&self.proc.join(file))
    }

    fn sys_text(&self, file: &str) -> Option<String> {
        text(&self.sys.join(file))
    }
}

/// A file's text without the white space around it; `None` if it cannot be read or says nothing.
fn text(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// A file that holds one number.
fn number<N: FromStr>(file: &Path) -> Option<N> {
    text(file)?.parse().ok()
}

/// A file that holds 0 or 1.
fn flag(file: &Path) -> Option<bool> {
    number::<u64>(file).map(|value| value != 0)
}

/// The value after `key` in a file of `key value` or `key: value` lines, such as `/proc/meminfo` or `memory.stat`.
fn keyed_number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        if name.strip_suffix(':').unwrap_or(name) != key {
            return None;
        }
        words.next()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_named_by_the_system_are_found_in_the_stand_in_tree() {
        let files = SystemFiles {
            proc: "/f/p".into(),
            sys: "/f/s".into(),
            etc: "/f/e".into(),
        };
        assert_eq!(
            files.locate(Path::new("/sys/fs/cgroup")),
            Path::new("/f/s/fs/cgroup")
        );
        assert_eq!(
            files.locate(Path::new("/proc/self")),
            Path::new("/f/p/self")
        );
        assert_eq!(files.locate(Path::new("/system")), Path::new("/system"));
    }

    #[test]
    fn keyed_numbers_match_whole_keys_only() {
        let text = "Dirty:   12 kB\nDirtyMore: 5 kB\nrss 7\n";
        assert_eq!(keyed_number(text, "Dirty"), Some(12));
        assert_eq!(keyed_number(text, "rss"), Some(7));
        assert_eq!(keyed_number(text, "Dir"), None);
    }
}
