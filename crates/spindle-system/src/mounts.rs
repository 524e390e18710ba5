//! The mount table and the list of swap areas, as the kernel writes them. A line that is not understood is an error,
//! not skipped: what it hides might be the device that is about to be erased.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spindle_io::real::facts::{MountLine, unescaped};

use super::{DeviceNumber, SystemTree, names};

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The number `stat` gives for files here; major 0 when no single block device lies beneath.
    pub device: DeviceNumber,
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of the mount and of the file system, comma separated, each once.
    pub options: String,
    /// Type, such as `ext4`.
    pub kind: String,
    /// What was mounted, as the one who mounted it wrote it.
    pub source: PathBuf,
}

/// A table of the kernel that cannot be read, or not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        reason: String,
    },
    /// A line is not as documented.
    #[error("a line of {table} is not understood: {line:?}")]
    Line {
        /// Which table.
        table: &'static str,
        /// The line.
        line: String,
    },
}

/// Every mount this process sees, in the order they were made.
pub fn mounts(tree: &SystemTree) -> Result<Vec<Mount>, TableError> {
    let path = tree.proc.join("self/mountinfo");
    parse_mounts(&std::fs::read(&path).map_err(|error| unreadable(path, &error))?)
}

/// Every mount this process sees, in the order they were made; empty when the table cannot be read. Lines that are not
/// understood are left out: here nothing is at stake but a description.
pub fn readable_mounts(tree: &SystemTree) -> Vec<Mount> {
    // Not as text: a mount point may have any bytes.
    let table = std::fs::read(tree.proc.join("self/mountinfo")).unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(parse_mount).collect()
}

/// The mount `path` (absolute, free of links) lives on. Where several cover it, one whose number is `device` (what
/// `stat` says of the path) wins, then the deepest mount point, then the latest.
pub fn mount_of<'a>(
    mounts: &'a [Mount],
    path: &Path,
    device: Option<DeviceNumber>,
) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| {
            (
                Some(mount.device) == device,
                mount.mount_point.components().count(),
            )
        })
}

/// What processes see that have one mount namespace and one root directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Their root directory, as a path of this process.
    pub root: PathBuf,
    /// Their mounts, but for those of an earlier view.
    pub mounts: Vec<Mount>,
}

impl View {
    /// An absolute path of these processes, as a path of this process.
    pub fn path(&self, theirs: &Path) -> PathBuf {
        self.root.join(theirs.strip_prefix("/").unwrap_or(theirs))
    }
}

/// Every mount that any process sees, in whatever mount namespace, each once. The view of this process comes first; its
/// own table must be readable. Other processes may end while they are asked.
pub fn views(tree: &SystemTree) -> Result<Vec<View>, TableError> {
    let mut all = vec![View {
        root: PathBuf::from("/"),
        mounts: mounts(tree)?,
    }];
    let own = std::fs::read(tree.proc.join("self/mountinfo")).unwrap_or_default();
    let mut known: BTreeSet<&[u8]> = own.split(|byte| *byte == b'\n').collect();
    let mut tables = Vec::new();
    let mut seen = BTreeSet::new();
    for pid in names(&tree.proc) {
        if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let directory = tree.proc.join(pid);
        // A table shows what its process can reach: that depends on its namespace and on its root directory.
        let view = ["ns/mnt", "root"].map(|link| {
            std::fs::metadata(directory.join(link))
                .ok()
                .map(|it| (it.dev(), it.ino()))
        });
        let is_new = view.contains(&None) || seen.insert(view);
        if is_new {
            let table = std::fs::read(directory.join("mountinfo"));
            tables.extend(table.map(|table| (directory.join("root"), table)));
        }
    }
    for (root, table) in &tables {
        let new = lines(table).filter(|line| known.insert(line));
        let parsed =
            new.map(|line| parse_mount(line).ok_or_else(|| bad_line("a mount table", line)));
        all.push(View {
            root: root.clone(),
            mounts: parsed.collect::<Result<_, _>>()?,
        });
    }
    Ok(all)
}

/// The swap areas in use: devices and files. A kernel without swap has no such list.
pub fn swaps(tree: &SystemTree) -> Result<Vec<PathBuf>, TableError> {
    let path = tree.proc.join("swaps");
    match std::fs::read(&path) {
        Ok(table) => parse_swaps(&table),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(unreadable(path, &error)),
    }
}

pub(crate) fn unreadable(path: PathBuf, error: &std::io::Error) -> TableError {
    TableError::Unreadable {
        path,
        reason: error.to_string(),
    }
}

/// Reads the text of a mount table.
pub fn parse_mounts(table: &[u8]) -> Result<Vec<Mount>, TableError> {
    lines(table)
        .map(|line| parse_mount(line).ok_or_else(|| bad_line("the mount table", line)))
        .collect()
}

/// Reads one line of a mount table; `None` when it is not as documented.
pub fn parse_mount(line: &[u8]) -> Option<Mount> {
    let line = MountLine::parse(line)?;
    Some(Mount {
        device: DeviceNumber {
            major: line.major,
            minor: line.minor,
        },
        root: line.root,
        mount_point: line.mount_point,
        options: line.options,
        kind: line.kind,
        source: line.source,
    })
}

/// Reads the text of `/proc/swaps` (proc_swaps(5)): a heading, then a path and more in columns.
pub fn parse_swaps(table: &[u8]) -> Result<Vec<PathBuf>, TableError> {
    let is_heading = |line: &&[u8]| line.starts_with(b"Filename");
    lines(table)
        .filter(|line| !is_heading(line))
        .map(|line| {
            let path = line.split(|byte| byte.is_ascii_whitespace()).next();
            match path {
                Some(path) if path.starts_with(b"/") => Ok(unescaped(path)),
                _ => Err(bad_line("the list of swap areas", line)),
            }
        })
        .collect()
}

fn lines(table: &[u8]) -> impl Iterator<Item = &[u8]> {
    table
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

fn bad_line(table: &'static str, line: &[u8]) -> TableError {
    TableError::Line {
        table,
        line: String::from_utf8_lossy(line).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const TABLE: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,errors=continue
40 27 8:17 / /data\\040one rw,noatime shared:5 master:1 - xfs /dev/sdb1 rw,noquota
41 27 0:45 / /tmp rw - tmpfs tmpfs rw,size=100k
42 40 8:33 / /data\\040one rw - ext4 /dev/sdc1 rw
a broken line
";

    fn table() -> Vec<Mount> {
        readable_mounts(&Fixture::with(&[("proc/self/mountinfo", TABLE)]).files())
    }

    #[test]
    fn lines_are_read_with_optional_fields_and_escapes() {
        let mounts = table();
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[1].mount_point, Path::new("/data one"));
        assert_eq!(mounts[1].options, "rw,noatime,noquota");
        assert_eq!(mounts[1].kind, "xfs");
        assert_eq!(mounts[1].source, Path::new("/dev/sdb1"));
        assert_eq!(
            mounts[1].device,
            DeviceNumber {
                major: 8,
                minor: 17
            }
        );
        assert_eq!(mounts[0].options, "rw,relatime,discard,errors=continue");
    }

    #[test]
    fn deepest_then_latest_mount_wins_unless_the_device_says_otherwise() {
        let mounts = table();
        let kind = |path: &str, device| {
            mount_of(&mounts, Path::new(path), device).and_then(|mount| mount.source.to_str())
        };
        assert_eq!(kind("/home/x", None), Some("/dev/vda"));
        assert_eq!(kind("/data one/f", None), Some("/dev/sdc1"));
        assert_eq!(kind("/tmpfile", None), Some("/dev/vda"));
        let beneath = DeviceNumber {
            major: 8,
            minor: 17,
        };
        assert_eq!(kind("/data one/f", Some(beneath)), Some("/dev/sdb1"));
    }

    #[test]
    fn no_table_gives_no_mounts() {
        assert_eq!(readable_mounts(&Fixture::empty().files()), Vec::new());
    }

    #[test]
    fn optional_fields_and_escapes_are_read() {
        let table = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
            40 27 8:17 / /data\\040one rw,noatime shared:5 master:1 - xfs /dev/my\\040disk rw,noquota\n";
        let mounts = parse_mounts(table).unwrap();
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[1].mount_point, PathBuf::from("/data one"));
        assert_eq!(mounts[1].source, PathBuf::from("/dev/my disk"));
        assert_eq!(mounts[1].options, "rw,noatime,noquota");
        assert_eq!(
            (mounts[1].kind.as_str(), mounts[1].device.minor),
            ("xfs", 17)
        );
    }

    #[test]
    fn what_is_not_understood_is_said_and_not_skipped() {
        for table in [
            "a broken line\n",
            "27 1 x:0 / / rw - ext4 /dev/vda rw\n",
            "27 1 8:0 / / rw ext4 /dev/sda rw\n",
        ] {
            assert!(parse_mounts(table.as_bytes()).is_err(), "{table}");
        }
        assert!(parse_swaps(b"Filename Type Size\nnonsense\n").is_err());
    }

    #[test]
    fn swap_areas_are_devices_and_files() {
        let table = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sdb2                               partition\t1\t0\t-2\n/swap\\040file file 1 0 -3\n";
        let paths = parse_swaps(table).unwrap();
        assert_eq!(
            paths,
            [PathBuf::from("/dev/sdb2"), PathBuf::from("/swap file")]
        );
    }
}
