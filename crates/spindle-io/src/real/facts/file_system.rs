//! Which file system a path is on: type, device, mount point, options, space. From statfs(2) and /proc/self/mountinfo.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};

use crate::real::error::FileError;

/// The file system under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsFacts {
    /// `ext4`, `xfs`, `tmpfs`, ...; the magic number in hexadecimal when the mount is not listed.
    pub type_name: String,
    /// Magic number of the type (`f_type` of statfs).
    pub magic: u64,
    /// Major number of the device as stat reports it: 0 for file systems without one of their own (tmpfs, btrfs).
    pub device_major: u32,
    /// Minor number.
    pub device_minor: u32,
    /// Bytes free for an ordinary user.
    pub free_bytes: u64,
    /// Block size of the file system in bytes.
    pub block_bytes: u64,
    /// Where it is mounted; empty when the mount is not listed, as all below.
    pub mount_point: PathBuf,
    /// What is mounted: `/dev/vda`, `tmpfs`, ...
    pub source: String,
    /// Options of the mount and of the file system, comma-separated.
    pub options: String,
}

/// The file system that holds `path`, which must exist. Errors: the system's.
pub fn file_system(path: &Path) -> Result<FsFacts, FileError> {
    let wrong = |error| FileError::system("examine the file system of", path, error);
    let space = statfs(path).map_err(wrong)?;
    let status = statx(
        CWD,
        path,
        AtFlags::empty(),
        StatxFlags::BASIC_STATS | StatxFlags::MNT_ID,
    )
    .map_err(wrong)?;
    let mount_id = (status.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(status.stx_mnt_id);
    let list = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = mounts(&list).find(|mount| match mount_id {
        Some(id) => mount.id == id,
        None => (mount.major, mount.minor) == (status.stx_dev_major, status.stx_dev_minor),
    });
    // The type of f_type differs between architectures.
    let magic = space.f_type as u64;
    Ok(FsFacts {
        type_name: mount
            .as_ref()
            .map_or_else(|| format!("{magic:#x}"), |mount| mount.type_name.clone()),
        magic,
        device_major: status.stx_dev_major,
        device_minor: status.stx_dev_minor,
        free_bytes: space.f_bavail * space.f_bsize as u64,
        block_bytes: space.f_bsize as u64,
        mount_point: mount
            .as_ref()
            .map(|mount| mount.point.clone())
            .unwrap_or_default(),
        source: mount
            .as_ref()
            .map(|mount| mount.source.clone())
            .unwrap_or_default(),
        options: mount.map(|mount| mount.options).unwrap_or_default(),
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    major: u32,
    minor: u32,
    point: PathBuf,
    type_name: String,
    source: String,
    options: String,
}

/// The lines of /proc/self/mountinfo, proc_pid_mountinfo(5): id, parent, major:minor, root, mount point, options,
/// optional fields up to a dash, type, source, options of the file system.
fn mounts(list: &str) -> impl Iterator<Item = Mount> + '_ {
    list.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mount: Vec<_> = mount.split(' ').collect();
        let system: Vec<_> = system.split(' ').collect();
        let (major, minor) = mount.get(2)?.split_once(':')?;
        Some(Mount {
            id: mount[0].parse().ok()?,
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
            point: PathBuf::from(unescape(mount.get(4)?)),
            type_name: (*system.first()?).to_owned(),
            source: unescape(system.get(1)?),
            options: format!("{},{}", mount.get(5)?, system.get(2)?),
        })
    })
}

/// Undoes the escaping of blanks, tabs, line ends and backslashes as three octal digits.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            Some(byte) => {
                text.push(byte.into());
                text.push_str(&part[3..]);
            }
            None => {
                text.push('\\');
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines_are_taken_apart() {
        let list = "29 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
                    71 29 0:42 /sub /mnt/my\\040disk\\134 rw,noatime shared:1 master:2 - btrfs /dev/loop\\0401 rw,space_cache\n\
                    nonsense\n";
        let mounts: Vec<_> = mounts(list).collect();
        assert_eq!(mounts.len(), 2);
        assert_eq!(
            (mounts[0].id, mounts[0].major, mounts[0].options.as_str()),
            (29, 254, "rw,relatime,rw,discard")
        );
        assert_eq!(mounts[1].point, Path::new("/mnt/my disk\\"));
        assert_eq!(
            (mounts[1].type_name.as_str(), mounts[1].source.as_str()),
            ("btrfs", "/dev/loop 1")
        );
    }

    #[test]
    fn proc_is_recognised() {
        let facts = file_system(Path::new("/proc/self")).unwrap();
        assert_eq!((facts.type_name.as_str(), facts.magic), ("proc", 0x9fa0)); // PROC_SUPER_MAGIC
        assert_eq!(facts.mount_point, Path::new("/proc"));
        let missing = file_system(Path::new("/no/such/file"))
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("/no/such/file") && missing.contains("No such file"),
            "{missing}"
        );
    }
}
