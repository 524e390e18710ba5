//! Taking a data directory away without harm: only regular files of known names in directories of known names go, by
//! way of open directories, so that no symbolic link is ever followed and no mounted file system entered. Everything
//! else is foreign: it stays and is reported.

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, statat, unlinkat};
use spindle_io::real::FileError;
use spindle_text::file_lock::{self, is_locked_within};

use crate::error::LayoutError;
use crate::open_directory::{entries, is_on_mount_of, open_within};
use crate::shape::is_known_file_name;
use crate::tree::{remove_tree, wait_until_left};

/// What became of a data directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removal {
    /// Bytes in the files removed.
    pub removed_bytes: u64,
    /// What Spindle did not make and left where it is. When there is any, the directory and its marker stay, too.
    pub foreign: Vec<PathBuf>,
}

/// Directories that a data directory holds.
const DIRECTORY_NAMES: [&str; 3] = ["golden-", "image-", "original-"];
/// Directories whose contents are a database server's, and go whatever their names.
pub(crate) const SERVER_PREFIX: &str = "server-";

/// Removes what Spindle makes in the open data directory at `path`, except `marker`. Errors: [`FileError::InUse`] when
/// a process still has a file open, or the system's.
pub(crate) fn remove_contents(
    directory: &File,
    path: &Path,
    marker: &str,
) -> Result<Removal, LayoutError> {
    let mut removal = Removal::default();
    for name in entries(directory, path)? {
        if name.to_bytes() == marker.as_bytes() {
            continue;
        }
        remove_directory(directory, path, &name, &mut removal)?;
    }
    Ok(removal)
}

/// Removes the directory `name` in the open data directory at `path` as [`remove_contents`] does. Errors: see there.
pub(crate) fn remove_one(directory: &File, path: &Path, name: &CStr) -> Result<(), LayoutError> {
    remove_directory(directory, path, name, &mut Removal::default())
}

fn remove_directory(
    directory: &File,
    path: &Path,
    name: &CStr,
    removal: &mut Removal,
) -> Result<(), LayoutError> {
    let inner_path = join(path, name);
    match open_directory_of_ours(directory, name) {
        Some(_) if name.to_bytes().starts_with(SERVER_PREFIX.as_bytes()) => {
            wait_until_left(&inner_path)?;
            removal.removed_bytes += remove_tree(directory, name, &inner_path)?;
        }
        Some(inner) => {
            let foreign_before = removal.foreign.len();
            remove_files(&inner, &inner_path, removal)?;
            if removal.foreign.len() == foreign_before {
                unlinkat(directory, name, AtFlags::REMOVEDIR)
                    .map_err(|error| LayoutError::system("remove", &inner_path, error))?;
            }
        }
        None => removal.foreign.push(inner_path),
    }
    Ok(())
}

/// The directory of this name, if it is one that Spindle makes and nothing is mounted there.
fn open_directory_of_ours(directory: &File, name: &CStr) -> Option<File> {
    let text = name.to_str().ok()?;
    let mut known = DIRECTORY_NAMES.iter().chain([&SERVER_PREFIX]);
    let is_known = known.any(|known| {
        text.strip_prefix(known).is_some_and(|number| {
            number
                .parse::<u32>()
                .is_ok_and(|value| value.to_string() == number)
        })
    });
    if !is_known {
        return None;
    }
    let inner = open_within(directory, name, OFlags::DIRECTORY).ok()?;
    is_on_mount_of(&inner, directory).ok()?.then_some(inner)
}

fn remove_files(directory: &File, path: &Path, removal: &mut Removal) -> Result<(), LayoutError> {
    for name in entries(directory, path)? {
        let file_path = join(path, &name);
        let status = statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| LayoutError::system("examine", &file_path, error))?;
        let is_ours = name.to_str().is_ok_and(is_known_file_name)
            && FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        if !is_ours {
            removal.foreign.push(file_path);
            continue;
        }
        let file = open_within(directory, &name, OFlags::NONBLOCK)
            .map_err(|error| LayoutError::system("open", &file_path, error))?;
        if !try_lock(&file, &file_path)? {
            return Err(FileError::InUse { path: file_path }.into());
        }
        unlinkat(directory, &*name, AtFlags::empty())
            .map_err(|error| LayoutError::system("remove", &file_path, error))?;
        removal.removed_bytes += status.st_size.unsigned_abs();
    }
    Ok(())
}

/// Takes the lock of an open file; false when another holds it for longer than dying takes.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<bool, LayoutError> {
    is_locked_within(file, file_lock::DYING)
        .map_err(|error| LayoutError::system("lock", path, error))
}

fn join(path: &Path, name: &CStr) -> PathBuf {
    path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}
