//! Which file system a path is on: type, device, mount point, options, space. From statfs(2) and /proc/self/mountinfo.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};

use super::mount_table::MountLine;
use crate::real::error::FileError;

/// The file system under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsFacts {
    /// `ext4`, `xfs`, `tmpfs`, ...; the magic number in hexadecimal when the mount is not listed.
    pub type_name: String,
    /// Magic number of the type (`f_type` of statfs).
    pub magic: u64,
    /// Major number of the device as stat reports it: 0 for file systems without their own device (tmpfs, btrfs).
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
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    let mount = lines
        .filter_map(MountLine::parse)
        .find(|mount| match mount_id {
            Some(id) => mount.id == id,
            None => (mount.major, mount.minor) == (status.stx_dev_major, status.stx_dev_minor),
        });
    // The type of f_type differs between architectures.
    let magic = space.f_type as u64;
    Ok(FsFacts {
        type_name: mount
            .as_ref()
            .map_or_else(|| format!("{magic:#x}"), |mount| mount.kind.clone()),
        magic,
        device_major: status.stx_dev_major,
        device_minor: status.stx_dev_minor,
        free_bytes: space.f_bavail * space.f_bsize as u64,
        block_bytes: space.f_bsize as u64,
        mount_point: mount
            .as_ref()
            .map(|mount| mount.mount_point.clone())
            .unwrap_or_default(),
        source: mount
            .as_ref()
            .map(|mount| mount.source.to_string_lossy().into_owned())
            .unwrap_or_default(),
        options: mount.map(|mount| mount.options).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
