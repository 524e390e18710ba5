//! Where `/proc`, `/sys` and the like are found, and the plainest ways to read a file of them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the system's own trees are found: `/proc`, `/sys`, `/dev`, `/etc` and `/lib/modules`, or fixtures standing in
/// for them. Only this crate reads in them; `/dev` is for all, as nodes of devices are opened elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemTree {
    /// Stands for `/proc`.
    pub(crate) proc: PathBuf,
    /// Stands for `/sys`.
    pub(crate) sys: PathBuf,
    /// Stands for `/dev`.
    pub dev: PathBuf,
    /// Stands for `/etc`.
    pub(crate) etc: PathBuf,
    /// Stands for `/lib/modules`.
    pub(crate) modules: PathBuf,
}

impl Default for SystemTree {
    /// The running system's own.
    fn default() -> Self {
        SystemTree {
            proc: "/proc".into(),
            sys: "/sys".into(),
            dev: "/dev".into(),
            etc: "/etc".into(),
            modules: "/lib/modules".into(),
        }
    }
}

impl SystemTree {
    /// A directory in which no name is a file or a device of a user's: `/proc/sys`. Tools that take a name without a
    /// slash for a path are started in it.
    pub fn without_user_files(&self) -> PathBuf {
        self.proc.join("sys")
    }

    /// The time the system was started, as a name that no other start has; `None` when the kernel does not tell.
    pub fn boot_id(&self) -> Option<String> {
        text(&self.proc.join("sys/kernel/random/boot_id"))
    }

    /// Requests of kernel AIO that are taken now, and how many there may be; `None` where the kernel has no such AIO
    /// (Linux Documentation/admin-guide/sysctl/fs.rst).
    pub fn aio_requests(&self) -> Option<(u64, u64)> {
        Some((
            self.proc_number("sys/fs/aio-nr")?,
            self.proc_number("sys/fs/aio-max-nr")?,
        ))
    }

    /// The locks that processes of this machine hold (proc_locks(5)); empty when they cannot be read.
    pub fn locks(&self) -> String {
        self.proc_text("locks").unwrap_or_default()
    }

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

    pub(crate) fn proc_text(&self, file: &str) -> Option<String> {
        text(&self.proc.join(file))
    }

    pub(crate) fn proc_number<N: FromStr>(&self, file: &str) -> Option<N> {
        number(&self.proc.join(file))
    }

    pub(crate) fn sys_text(&self, file: &str) -> Option<String> {
        text(&self.sys.join(file))
    }
}

/// A file's text without the white space around it; `None` if it cannot be read or says nothing.
pub(crate) fn text(file: &Path) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Names in a directory, sorted; empty when there is no such directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// A file that holds one number.
pub(crate) fn number<N: FromStr>(file: &Path) -> Option<N> {
    text(file)?.parse().ok()
}

/// A file that holds 0 or 1.
pub(crate) fn flag(file: &Path) -> Option<bool> {
    number::<u64>(file).map(|value| value != 0)
}

/// The value after `key` in a file of `key value` or `key: value` lines, such as `/proc/meminfo` or `memory.stat`.
pub(crate) fn keyed_number(text: &str, key: &str) -> Option<u64> {
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
        let files = SystemTree {
            proc: "/f/p".into(),
            sys: "/f/s".into(),
            ..SystemTree::default()
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
