//! Open files. A file is open once at a time, for whatever method: opening takes its lock (`flock`), so that no second
//! instance writes it and `create::remove` leaves it alone. (The lock is advice: `rm` does not ask.) [`identify`] opens
//! a file once for all threads, as Oracle's disk manager does: what it returns is the identifier that threads and
//! devices share, and it has a place in every ring's table of registered files.
//!
//! The lock has a second use. The kernel may carry out a killed process's io_uring requests after the process is gone,
//! and such a late write could land on top of what recovery writes. A request holds its open file, and with it the
//! lock: a waiter that gets the lock has waited for the last of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use spindle_text::file_lock::{self, is_locked_within};
use spindle_text::words;

use crate::real::error::FileError;
use crate::real::facts;
use crate::real::run_path::RunPath;
use crate::real::storage_identity::StorageIdentity;

use super::open_files::Identity;

words! {
    /// Whether blocks pass through the page cache.
    pub enum Caching {
        /// They do: the operating system keeps its own copy.
        Buffered = "buffered",
        /// They do not (`O_DIRECT`), as far as the file system really does: see [`facts::direct_probe`].
        Direct = "direct",
    }
}

/// A file opened once and known to all threads by one identifier.
#[derive(Clone)]
pub struct Identified(pub(crate) Arc<OpenFile>);

impl Identified {
    /// The path by which people know the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// What the system says of the open file itself, whatever its path means now. Errors: the system's.
    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.0.file.metadata()
    }
}

/// Opens and locks the file `path`. Errors: [`FileError::InUse`] when it is open already, [`FileError::DirectRefused`],
/// [`FileError::NotLookedAt`] for a block device, or what the system says.
pub fn identify(path: &Path, caching: Caching) -> Result<Identified, FileError> {
    Ok(identified(OpenFile::open(path, caching)?))
}

/// The same of a file or block device that was looked at, and that people know by the path `called`. Errors:
/// [`FileError::Other`] when it is another one by now, or see [`identify`].
pub fn identify_this(
    path: &Path,
    called: &Path,
    which: StorageIdentity,
    caching: Caching,
) -> Result<Identified, FileError> {
    let opened = OpenFile::open_this(path, called, which, caching)?;
    Ok(identified(opened))
}

fn identified(mut opened: OpenFile) -> Identified {
    opened.identity = Some(Identity::next());
    Identified(Arc::new(opened))
}

/// Takes the lock of an open file, which goes with the open file.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), FileError> {
    match is_locked_within(file, file_lock::DYING) {
        Ok(true) => Ok(()),
        Ok(false) => Err(FileError::InUse {
            path: path.to_owned(),
        }),
        Err(error) => Err(FileError::system("lock", path, error)),
    }
}

/// An open file or block device.
pub(crate) struct OpenFile {
    file: File,
    /// By which people know it.
    pub(crate) path: PathBuf,
    /// Leads to it.
    pub(crate) way: PathBuf,
    pub(crate) caching: Caching,
    pub(crate) identity: Option<Identity>,
}

impl OpenFile {
    /// Opens an existing file for reading and writing and takes its lock.
    pub(crate) fn open(path: &Path, caching: Caching) -> Result<OpenFile, FileError> {
        OpenFile::open_locked(path, path, None, caching)
    }

    /// The same of a file or block device, when it is `which`.
    pub(crate) fn open_this(
        path: &Path,
        called: &Path,
        which: StorageIdentity,
        caching: Caching,
    ) -> Result<OpenFile, FileError> {
        OpenFile::open_locked(path, called, Some(which), caching).map_err(|error| error.of(called))
    }

    fn open_locked(
        path: &Path,
        called: &Path,
        which: Option<StorageIdentity>,
        caching: Caching,
    ) -> Result<OpenFile, FileError> {
        let file = open_with(path, caching, OpenOptions::new().read(true).write(true))?;
        match which {
            Some(which) => which.check(&file, path)?,
            None => must_not_be_device(&file, path)?,
        }
        lock(&file, path)?;
        Ok(OpenFile {
            file,
            path: called.to_owned(),
            way: path.to_owned(),
            caching,
            identity: None,
        })
    }

    /// Opens a file or block device that was looked at, for reading only, and identifies it. It takes no lock: reading
    /// alone does no harm, and may look at what others have in use.
    pub(crate) fn open_to_read(
        path: &Path,
        called: &Path,
        which: StorageIdentity,
        caching: Caching,
    ) -> Result<OpenFile, FileError> {
        let open = || {
            let file = open_with(path, caching, OpenOptions::new().read(true))?;
            which.check(&file, path)?;
            Ok(file)
        };
        Ok(OpenFile {
            file: open().map_err(|error: FileError| error.of(called))?,
            path: called.to_owned(),
            way: path.to_owned(),
            caching,
            identity: Some(Identity::next()),
        })
    }

    /// A file that is open already, whatever it is.
    #[cfg(test)]
    pub(crate) fn of(file: File) -> OpenFile {
        OpenFile {
            file,
            path: PathBuf::from("test"),
            way: PathBuf::from("test"),
            caching: Caching::Buffered,
            identity: None,
        }
    }

    /// Size in bytes, of a block device too.
    pub(crate) fn capacity_bytes(&self) -> io::Result<u64> {
        (&self.file).seek(SeekFrom::End(0))
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A ring that has the file in its table keeps it open, and a lock lasts as long as the open file: end it here.
        // The calling thread's ring lets go now, others when they are next used.
        let _ = flock(&self.file, FlockOperation::Unlock);
        if let Some(identity) = self.identity {
            identity.close();
        }
    }
}

/// Without keeping the time of access, which costs each read a look at the clock, where the file is the caller's: only
/// its owner may ask for that.
fn open_with(path: &Path, caching: Caching, options: &mut OpenOptions) -> Result<File, FileError> {
    let way = RunPath::to(path).map_err(|error| FileError::system("open", path, error))?;
    facts::must_be_storage(way.path(), path)?;
    let flags = match caching {
        Caching::Buffered => 0,
        Caching::Direct => libc::O_DIRECT,
    };
    let opened = match way.open(options, flags | libc::O_NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => way.open(options, flags),
        opened => opened,
    };
    opened.map_err(|error| match (error.raw_os_error(), caching) {
        (Some(libc::EINVAL), Caching::Direct) => direct_refused(path),
        _ => FileError::system("open", path, error),
    })
}

fn must_not_be_device(file: &File, path: &Path) -> Result<(), FileError> {
    let metadata = file.metadata();
    let metadata = metadata.map_err(|error| FileError::system("examine", path, error))?;
    if metadata.file_type().is_block_device() {
        let path = path.to_owned();
        return Err(FileError::NotLookedAt { path });
    }
    Ok(())
}

/// The error for a path whose file system refuses O_DIRECT, naming the file system.
pub(crate) fn direct_refused(path: &Path) -> FileError {
    let file_system =
        facts::file_system(path).map_or_else(|_| "unknown".to_owned(), |facts| facts.type_name);
    FileError::DirectRefused {
        path: path.to_owned(),
        file_system,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_callers_keeps_no_time_of_access() {
        let own = tempfile::NamedTempFile::new().unwrap();
        let mut options = OpenOptions::new();
        let file = open_with(own.path(), Caching::Buffered, options.read(true)).unwrap();
        let flags = rustix::fs::fcntl_getfl(&file).unwrap();
        assert!(flags.contains(rustix::fs::OFlags::NOATIME));
    }
}
