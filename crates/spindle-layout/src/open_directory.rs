//! Looking into a directory that is open: no path is followed, so that what is found is in that very directory.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, openat};
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
