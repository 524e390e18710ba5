//! The mount table, and which mount a path lives on.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::SystemFiles;
use super::block_device::DeviceNumber;

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
    pub source: String,
}

impl Mount {
    /// Every mount this process sees, in the order they were made; empty when the table cannot be read.
    pub fn all(files: &SystemFiles) -> Vec<Mount> {
        let table = files.proc_text("self/mountinfo").unwrap_or_default();
        table.lines().filter_map(Mount::parse).collect()
    }

    /// The mount `path` (absolute, free of links) lives on. Where several cover it, one whose number is `device` (what
    /// `stat` says of the path) wins, then the deepest mount point, then the latest.
    pub fn of<'a>(
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

    fn parse(line: &str) -> Option<Mount> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let file_system: Vec<&str> = file_system.split(' ').collect();
        let options = join_options(mount.get(5)?, file_system.get(2).unwrap_or(&""));
        Some(Mount {
            device: mount.get(2)?.parse().ok()?,
            root: unescape(mount.get(3)?),
            mount_point: unescape(mount.get(4)?),
            options,
            kind: (*file_system.first()?).to_owned(),
            source: unescape(file_system.get(1)?).to_string_lossy().into_owned(),
        })
    }
}

fn join_options(of_mount: &str, of_file_system: &str) -> String {
    let mut options: Vec<&str> = Vec::new();
    for option in of_mount.split(',').chain(of_file_system.split(',')) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(",")
}

/// Undoes the octal escapes (`\040` for a space) of the mount table.
fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'\\')
            .then(|| field.get(at + 1..at + 4))
            .flatten()
            .and_then(|octal| u8::from_str_radix(octal, 8).ok());
        plain.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 4 } else { 1 };
    }
    PathBuf::from(std::ffi::OsString::from_vec(plain))
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
        Mount::all(&Fixture::with(&[("proc/self/mountinfo", TABLE)]).files())
    }

    #[test]
    fn lines_are_read_with_optional_fields_and_escapes() {
        let mounts = table();
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[1].mount_point, Path::new("/data one"));
        assert_eq!(mounts[1].options, "rw,noatime,noquota");
        assert_eq!(mounts[1].kind, "xfs");
        assert_eq!(mounts[1].source, "/dev/sdb1");
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
            Mount::of(&mounts, Path::new(path), device).map(|mount| mount.source.as_str())
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
        assert_eq!(Mount::all(&Fixture::empty().files()), Vec::new());
    }
}
