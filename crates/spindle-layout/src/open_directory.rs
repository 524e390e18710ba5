//! Looking into a directory that is open: no path is followed, so that what is found is in that very directory.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Statx, StatxFlags, openat, statx};
use rustix::io::Errno;

use crate::error::LayoutError;

/// Names in an open directory, in alphabetical order.
pub(crate) fn entries(directory: &File, path: &Path) -> Result<Vec<CString>, LayoutError> {
    let wrong = |error: Errno| LayoutError::system("list", path, error);
    let mut names = Vec::new();
    for entry in Dir::read_from(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Opens what has this name in an open directory for reading; a symbolic link is refused.
pub(crate) fn open_within(directory: &File, name: &CStr, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty()).map(File::from)
}

/// Whether what is open is on the same mount as the directory that it is in. Another file system may be mounted there,
/// and so may a part of the same one (`mount --bind`), which only the number of the mount tells (statx(2), Linux 5.8).
/// Files of an overlay may have another device than their directories.
pub(crate) fn is_on_mount_of(inner: &File, outer: &File) -> Result<bool, Errno> {
    let wanted = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
    let look = |of: &File| statx(of, "", AtFlags::EMPTY_PATH, wanted);
    let (inner, outer) = (look(inner)?, look(outer)?);
    let is_directory = FileType::from_raw_mode(inner.stx_mode.into()) == FileType::Directory;
    let device = |of: &Statx| (of.stx_dev_major, of.stx_dev_minor);
    let is_same_device = !is_directory || device(&inner) == device(&outer);
    Ok(is_same_device && inner.stx_mnt_id == outer.stx_mnt_id)
}
