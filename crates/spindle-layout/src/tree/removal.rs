//! Takes a server's tree away: everything within a directory that Spindle made for it, by way of open directories, so
//! that no symbolic link is followed and no other file system entered.

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, OFlags, statat, unlinkat};
use spindle_io::real::FileError;
use spindle_system::{SystemTree, processes};

use crate::error::LayoutError;
use crate::open_directory::{entries, is_on_mount_of, open_within};

/// How long a server that is being killed may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Removes what has this name in an open directory, with all that is in it; returns the bytes of its files. Errors: the
/// system's; a directory on another file system is an error, too.
pub(crate) fn remove_tree(directory: &File, name: &CStr, path: &Path) -> Result<u64, LayoutError> {
    let wrong = |error| LayoutError::system("remove", path, error);
    let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(wrong)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Directory {
        unlinkat(directory, name, AtFlags::empty()).map_err(wrong)?;
        return Ok(status.st_size.unsigned_abs());
    }
    let inner = open_within(directory, name, OFlags::DIRECTORY).map_err(wrong)?;
    if !is_on_mount_of(&inner, directory).map_err(wrong)? {
        return Err(wrong(rustix::io::Errno::XDEV));
    }
    let mut bytes = 0;
    for entry in entries(&inner, path)? {
        let entry_path = path.join(std::ffi::OsStr::from_bytes(entry.to_bytes()));
        bytes += remove_tree(&inner, &entry, &entry_path)?;
    }
    unlinkat(directory, name, AtFlags::REMOVEDIR).map_err(wrong)?;
    Ok(bytes)
}

pub(super) fn remove_entry(directory: &File, name: &CStr, path: &Path) -> Result<(), LayoutError> {
    remove_tree(directory, name, path).map(|_| ())
}

/// Waits until no process works in a directory or below it, as database servers do in that of their data. Errors:
/// [`FileError::InUse`].
pub(crate) fn wait_until_left(path: &Path) -> Result<(), LayoutError> {
    let began = Instant::now();
    // As the system names the directories of processes.
    let whole = path.canonicalize();
    let whole = whole.map_err(|error| LayoutError::system("look for", path, error))?;
    while is_worked_in(&whole) {
        if began.elapsed() > PATIENCE {
            let path = path.to_path_buf();
            return Err(FileError::InUse { path }.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn is_worked_in(path: &Path) -> bool {
    let tree = SystemTree::default();
    let mut directories = processes::ids(&tree)
        .into_iter()
        .filter_map(|id| processes::working_directory(&tree, id));
    directories.any(|directory| directory.starts_with(path))
}
