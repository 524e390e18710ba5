//! The mount table, and which mount a path lives on.

use std::path::Path;

pub use spindle_layout::system::Mount;
use spindle_layout::system::mounts::parse_mount;

use super::SystemFiles;
use super::block_device::DeviceNumber;

/// Every mount this process sees, in the order they were made; empty when the table cannot be read. Lines that are not
/// understood are left out: here nothing is at stake but a description.
pub fn all(files: &SystemFiles) -> Vec<Mount> {
    let table = files.proc_text("self/mountinfo").unwrap_or_default();
    let lines = table.lines();
    lines
        .filter_map(|line| parse_mount(line.as_bytes()))
        .collect()
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
        all(&Fixture::with(&[("proc/self/mountinfo", TABLE)]).files())
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
        assert_eq!(all(&Fixture::empty().files()), Vec::new());
    }
}
