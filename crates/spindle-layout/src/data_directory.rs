//! The data directory of a run: everything a run writes outside its results is below it, so that one directory goes
//! when the run ends. It bears a marker file, which says whose it is and is locked while that run is alive; without the
//! marker nothing is ever removed.

use std::ffi::CString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spindle_io::real::{RUN_DIRECTORY_PREFIX, facts};

use crate::error::LayoutError;
use crate::open_directory::{entries, open_within};
use crate::removal::{Removal, SERVER_PREFIX, remove_contents, remove_one, try_lock};

/// Name of the marker file.
const MARKER: &str = "SPINDLE-DATA";

/// A marker is far shorter.
const MARKER_LIMIT_BYTES: u64 = 4096;

/// The marker's contents, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    run: String,
    pid: u32,
    created_unix_s: u64,
}

/// A directory of a run that is alive, held by the lock of its marker. Dropping it removes it as [`Self::remove`] does,
/// but silently and without a second try, so that whatever ends a run in disorder (an error, a panic) leaves nothing
/// behind; only a killed process does, and then [`Self::leftover`] finds it.
pub struct DataDirectory {
    path: PathBuf,
    directory: File,
    /// Holds the lock.
    _marker: Option<File>,
    removed: bool,
}

impl DataDirectory {
    /// Makes `<parent>/spindle-data-<run_id>` with its marker. Errors: [`LayoutError::BadRunId`],
    /// [`LayoutError::DataDirectoryExists`], [`LayoutError::NotWritable`], or the system's; nothing is left then.
    pub fn create(parent: &Path, run_id: &str) -> Result<DataDirectory, LayoutError> {
        let path = path_of(parent, run_id)?;
        let not_writable = |source| LayoutError::NotWritable {
            directory: parent.to_owned(),
            source,
        };
        match DirBuilder::new().mode(0o750).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LayoutError::DataDirectoryExists { path });
            }
            Err(error) => return Err(not_writable(error)),
        }
        let made = open_directory(&path).and_then(|directory| {
            let marker = write_marker(&directory, run_id)?;
            directory.sync_all()?;
            Ok((directory, marker))
        });
        match made {
            Ok((directory, marker)) => Ok(DataDirectory {
                path,
                directory,
                _marker: Some(marker),
                removed: false,
            }),
            Err(error) => {
                // The first error is the one to tell.
                if let Ok(directory) = open_directory(&path) {
                    let _ = unlinkat(&directory, MARKER, AtFlags::empty());
                }
                let _ = std::fs::remove_dir(&path);
                Err(not_writable(error))
            }
        }
    }

    /// The data directory that a killed run left in `parent`, for removing; `None` when there is none. Errors:
    /// [`LayoutError::RunAlive`], [`LayoutError::NotADataDirectory`] when what has its name is no directory or bears
    /// not the marker of this run, or the system's.
    pub fn leftover(parent: &Path, run_id: &str) -> Result<Option<DataDirectory>, LayoutError> {
        let path = path_of(parent, run_id)?;
        let directory = match open_directory(&path) {
            Ok(directory) => directory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::NOTDIR | Errno::LOOP)
                ) =>
            {
                return Err(LayoutError::NotADataDirectory {
                    path,
                    reason: "it is a file or a symbolic link, not a directory".to_owned(),
                });
            }
            Err(error) => return Err(LayoutError::system("open", &path, error)),
        };
        let marker = take_over(&directory, &path, run_id)?;
        Ok(Some(DataDirectory {
            path,
            directory,
            _marker: marker,
            removed: false,
        }))
    }

    /// The same directory by another way to its parent, as of a bind mount; it goes when this one is removed. Errors:
    /// it is another directory, or the system's.
    pub fn seen_from(&self, parent: &Path) -> Result<DataDirectory, LayoutError> {
        let path = parent.join(self.path.file_name().unwrap_or_default());
        let wrong = |error| LayoutError::system("open", &path, error);
        let directory = open_directory(&path).map_err(wrong)?;
        let identity = |of: &File| of.metadata().map(|found| (found.dev(), found.ino()));
        if identity(&directory).map_err(wrong)? != identity(&self.directory).map_err(wrong)? {
            return Err(LayoutError::DataDirectoryExists { path });
        }
        Ok(DataDirectory {
            path,
            directory,
            _marker: None,
            removed: true,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory for a golden copy. Errors: it exists, or the system's.
    pub fn make_golden_directory(&self, number: u32) -> Result<PathBuf, LayoutError> {
        self.make_directory(format!("golden-{number}"))
    }

    /// Makes the directory for files of an image. Errors: it exists, or the system's.
    pub fn make_image_directory(&self, number: u32) -> Result<PathBuf, LayoutError> {
        self.make_directory(format!("image-{number}"))
    }

    /// Makes the directory for the originals of an image's files, which it shares blocks with. Errors: it exists, or
    /// the system's.
    pub fn make_original_directory(&self, number: u32) -> Result<PathBuf, LayoutError> {
        self.make_directory(format!("original-{number}"))
    }

    /// Makes the directory for the files of a database server, in which everything is Spindle's whatever its name.
    /// Others may pass through it: servers run as other users. Errors: it exists, or the system's.
    pub fn make_server_directory(&self, number: u32) -> Result<PathBuf, LayoutError> {
        let name = format!("{SERVER_PREFIX}{number}");
        let path = self.make_directory(name.clone())?;
        let name = CString::new(name).expect("the name has no zero byte");
        let opened = open_within(&self.directory, &name, OFlags::DIRECTORY).and_then(|made| {
            for directory in [&self.directory, &made] {
                fchmod(directory, Mode::from_raw_mode(0o751))?;
            }
            Ok(())
        });
        opened.map_err(|error| LayoutError::system("open to others", &path, error))?;
        Ok(path)
    }

    /// By the open directory: the owner of its parent may have put another in its place.
    fn make_directory(&self, name: String) -> Result<PathBuf, LayoutError> {
        let path = self.path.join(&name);
        let made = mkdirat(&self.directory, name, Mode::from_raw_mode(0o750));
        made.map_err(|error| LayoutError::system("make the directory", &path, error))?;
        Ok(path)
    }

    /// Removes a directory that was made in it, when what it was made for came to nothing. What Spindle did not make
    /// stays, and so does what lies elsewhere. Errors: as of [`Self::remove`].
    pub fn take_back(&self, directory: &Path) -> Result<(), LayoutError> {
        let name = directory.strip_prefix(&self.path).ok();
        match name.and_then(|name| CString::new(name.as_os_str().as_bytes()).ok()) {
            Some(name) => remove_one(&self.directory, &self.path, &name),
            None => Ok(()),
        }
    }

    /// Lets go of it without removing it: what it lies on can be unmounted then. [`Self::leftover`] takes it up again.
    pub fn let_go(mut self) {
        self.removed = true;
    }

    /// Removes the golden copies and images in it, and itself. What Spindle did not make stays, and with it the
    /// directory and its marker: see [`Removal`]. Errors: [`spindle_io::real::FileError::InUse`] when a process of a
    /// killed trial still has a file open, or the system's; what is left then is found by [`Self::leftover`].
    pub fn remove(mut self) -> Result<Removal, LayoutError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<Removal, LayoutError> {
        self.removed = true;
        let removal = remove_contents(&self.directory, &self.path, MARKER)?;
        if removal.foreign.is_empty() {
            let wrong = |error| LayoutError::system("remove", &self.path, error);
            match unlinkat(&self.directory, MARKER, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(wrong(error.into())),
            }
            std::fs::remove_dir(&self.path).map_err(wrong)?;
        }
        Ok(removal)
    }
}

impl Drop for DataDirectory {
    fn drop(&mut self) {
        if !self.removed {
            // The error cannot be reported; a resumed run finds what is left.
            let _ = self.take_away();
        }
    }
}

/// Whether this names a run: it becomes part of names of files and directories.
pub(crate) fn is_run_id(run_id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=100).contains(&run_id.len()) && !run_id.starts_with('.') && run_id.bytes().all(is_allowed)
}

/// Makes sure that the file system of a directory has room for `needed_bytes` more (of golden copies and images; its
/// own metadata are not counted). Errors: [`LayoutError::NotEnoughSpace`], or the system's.
pub fn check_space(directory: &Path, needed_bytes: u64) -> Result<(), LayoutError> {
    let free_bytes = facts::file_system(directory)?.free_bytes;
    if free_bytes < needed_bytes {
        return Err(LayoutError::NotEnoughSpace {
            directory: directory.to_owned(),
            needed_bytes,
            free_bytes,
        });
    }
    Ok(())
}

fn path_of(parent: &Path, run_id: &str) -> Result<PathBuf, LayoutError> {
    if !is_run_id(run_id) {
        return Err(LayoutError::BadRunId {
            run_id: run_id.to_owned(),
        });
    }
    Ok(parent.join(format!("{RUN_DIRECTORY_PREFIX}{run_id}")))
}

/// Opens a directory that is not a symbolic link.
fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32)
        .open(path)
}

fn write_marker(directory: &File, run_id: &str) -> io::Result<File> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let marker = Marker {
        run: run_id.to_owned(),
        pid: std::process::id(),
        created_unix_s: since_1970.map_or(0, |time| time.as_secs()),
    };
    let text = serde_json::to_string(&marker)? + "\n";
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(
        directory,
        MARKER,
        flags,
        Mode::from_raw_mode(0o640),
    )?);
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}

/// Takes the lock of the marker of a run that is no longer alive. A run killed at its very first step leaves an empty
/// directory, or one with an empty marker: that needs no marker to be removed.
fn take_over(directory: &File, path: &Path, run_id: &str) -> Result<Option<File>, LayoutError> {
    let not_ours = |reason| {
        Err(LayoutError::NotADataDirectory {
            path: path.to_owned(),
            reason,
        })
    };
    let name = CString::new(MARKER).expect("the name has no zero byte");
    let marker_path = path.join(MARKER);
    let file = match open_within(directory, &name, OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(Errno::NOENT) if entries(directory, path)?.is_empty() => return Ok(None),
        Err(Errno::NOENT) => return not_ours(format!("it holds no marker file {MARKER}")),
        Err(Errno::LOOP) => return not_ours(format!("its marker {MARKER} is a symbolic link")),
        Err(error) => return Err(LayoutError::system("open", &marker_path, error)),
    };
    let mut text = String::new();
    (&file)
        .take(MARKER_LIMIT_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| LayoutError::system("read", &marker_path, error))?;
    let marker = serde_json::from_str::<Marker>(&text);
    if !try_lock(&file, &marker_path)? {
        return Err(LayoutError::RunAlive {
            path: path.to_owned(),
            pid: marker.map_or(0, |marker| marker.pid),
        });
    }
    match marker {
        Ok(marker) if marker.run == run_id => Ok(Some(file)),
        Ok(marker) => not_ours(format!("its marker names another run, {:?}", marker.run)),
        Err(_) if text.is_empty() && entries(directory, path)?.len() == 1 => Ok(Some(file)),
        Err(error) => not_ours(format!("its marker {MARKER} cannot be read ({error})")),
    }
}
