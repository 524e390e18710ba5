//! The two file managers. The plain one makes a file under its name and writes it through the page cache. The ODM one
//! does what Oracle's disk manager does: it writes past the page cache, and the file stays invisible until it is
//! committed under its name in one step; a creation that is dropped, or whose process dies, leaves nothing. Both
//! allocate all space first, as contiguous as the file system can, then initialise all of it and make it durable: how a
//! file lies must not be what tells two access paths apart. Neither ever overwrites a file. Where the file system has
//! no nameless files (O_TMPFILE), a hidden name (`.name.creating-<process>`) stands in, which a killed process leaves
//! behind.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, RenameFlags, fallocate, fstatvfs, linkat, renameat_with,
};

use super::error::FileError;
use super::file::identify::{direct_refused, lock};
use super::run_path::RunPath;
use crate::arena::{Arena, Frame};

/// Bytes asked of a filler, and written, at a time.
pub const PIECE_BYTES: usize = 1 << 20;

/// Direct writes are multiples of this; every device's sector divides it.
const GRID_BYTES: u64 = 4096;

const MODE: u32 = 0o640;

/// Makes a file of `bytes` bytes through the page cache, each piece from `fill(offset, piece)`, and makes it durable.
/// On failure nothing is left. Errors: `fill`'s, which ends it, or see [`FileError`].
pub fn create_plain<E: From<FileError>>(
    path: &Path,
    bytes: u64,
    fill: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let created = |error| explain("create", path, bytes, error);
    let way = RunPath::to(path).map_err(created)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(MODE);
    let file = way.open(options, 0).map_err(created)?;
    let wrong = |error| E::from(explain("write", path, bytes, error));
    let written = write_plain(&file, bytes, fill, wrong)
        .and_then(|()| file.sync_all().map_err(wrong))
        .and_then(|()| sync_directory(way.path()).map_err(wrong));
    written.inspect_err(|_| {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(way.path());
    })
}

fn write_plain<E>(
    mut file: &File,
    bytes: u64,
    mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    wrong: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    match allocate(file, bytes) {
        // A file system without preallocation allocates as it is written to.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {}
        answer => answer.map_err(&wrong)?,
    }
    let mut piece = vec![0; PIECE_BYTES];
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let piece = &mut piece[..(bytes - offset).min(PIECE_BYTES as u64) as usize];
        fill(offset, piece)?;
        file.write_all(piece).map_err(&wrong)?;
    }
    Ok(())
}

/// A file being made, invisible until [`OdmCreation::commit`]. Dropping it aborts the creation.
#[derive(Debug)]
pub struct OdmCreation {
    file: File,
    /// As people know it.
    path: PathBuf,
    way: RunPath,
    bytes: u64,
    hidden: Option<PathBuf>,
}

impl OdmCreation {
    /// Opens a nameless file in the directory of `path` and allocates its space. Errors: a file of that name exists,
    /// the file system refuses direct I/O, or see [`FileError`].
    pub fn begin(path: &Path, bytes: u64) -> Result<OdmCreation, FileError> {
        let way = RunPath::to(path).map_err(|error| explain("create", path, bytes, error))?;
        if way.path().symlink_metadata().is_ok() {
            return Err(FileError::AlreadyExists {
                path: path.to_owned(),
            });
        }
        let (file, hidden) =
            open_invisible(way.path()).map_err(|error| match error.raw_os_error() {
                Some(libc::EINVAL) => direct_refused(directory(path)),
                _ => explain("create", path, bytes, error),
            })?;
        let creation = OdmCreation {
            file,
            path: path.to_owned(),
            way,
            bytes,
            hidden,
        };
        allocate(&creation.file, bytes.next_multiple_of(GRID_BYTES))
            .map_err(|error| explain("allocate space for", path, bytes, error))?;
        Ok(creation)
    }

    /// Initialises the whole file, each piece from `fill(offset, piece)`, by direct writes. Errors: `fill`'s, which
    /// ends it, or see [`FileError`].
    pub fn fill<E: From<FileError>>(
        &mut self,
        mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let wrong = |error| explain("write", &self.path, self.bytes, error);
        let arena = Arena::new(PIECE_BYTES, 1).map_err(wrong)?;
        let frame: Frame = arena.allocate().expect("a new arena has its frames");
        let mut piece = frame.try_write().expect("the frame is nobody else's");
        for offset in (0..self.bytes).step_by(PIECE_BYTES) {
            let length = (self.bytes - offset).min(PIECE_BYTES as u64);
            fill(offset, &mut piece[..length as usize])?;
            let on_grid = length.next_multiple_of(GRID_BYTES) as usize;
            piece[length as usize..on_grid].fill(0);
            let written = self.file.write_all_at(&piece[..on_grid], offset);
            written.map_err(wrong)?;
        }
        Ok(())
    }

    /// Makes the file durable and gives it its name, in that order. On failure nothing is left. Errors:
    /// [`FileError::AlreadyExists`] when a file of that name has appeared meanwhile, or the system's.
    pub fn commit(mut self) -> Result<(), FileError> {
        let wrong = |error| explain("commit", &self.path, self.bytes, error);
        self.file
            .set_len(self.bytes)
            .and_then(|()| self.file.sync_all())
            .map_err(wrong)?;
        match &self.hidden {
            None => link(&self.file, self.way.path()),
            Some(hidden) => {
                renameat_with(CWD, hidden, CWD, self.way.path(), RenameFlags::NOREPLACE)
                    .map_err(io::Error::from)
            }
        }
        .map_err(wrong)?;
        let synced = sync_directory(self.way.path()).map_err(|error| {
            let _ = std::fs::remove_file(self.way.path());
            wrong(error)
        });
        self.hidden = None;
        synced
    }
}

impl Drop for OdmCreation {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// Allocates all space of a new file at once. What is more than is free is refused first: a file system that tries
/// takes all space there is for a while, and other writers meanwhile fail.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let room = fstatvfs(file)?;
    if bytes > room.f_bavail.saturating_mul(room.f_frsize) {
        return Err(io::Error::from(io::ErrorKind::StorageFull));
    }
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

/// A new, invisible file for direct I/O, and its hidden name if it has to have one.
fn open_invisible(path: &Path) -> io::Result<(File, Option<PathBuf>)> {
    let open = |flags| {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .mode(MODE)
            .custom_flags(libc::O_DIRECT | flags);
        options
    };
    match open(libc::O_TMPFILE).open(directory(path)) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let name = path
                .file_name()
                .ok_or(io::ErrorKind::InvalidFilename)?
                .to_string_lossy();
            let hidden = directory(path).join(format!(".{name}.creating-{}", std::process::id()));
            Ok((open(0).create_new(true).open(&hidden)?, Some(hidden)))
        }
        answer => Ok((answer?, None)),
    }
}

/// Names a nameless file. By way of /proc, which every process may take; naming by descriptor alone (AT_EMPTY_PATH) is
/// a privilege before Linux 6.10, kept for places without /proc.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let by_proc = format!("/proc/self/fd/{}", file.as_raw_fd());
    match linkat(CWD, by_proc, CWD, path, AtFlags::SYMLINK_FOLLOW) {
        Err(rustix::io::Errno::NOENT) => Ok(linkat(file, "", CWD, path, AtFlags::EMPTY_PATH)?),
        answer => Ok(answer?),
    }
}

/// Removes a file unless it is open as a device. Errors: [`FileError::InUse`], or the system's.
pub fn remove(path: &Path) -> Result<(), FileError> {
    let opened = RunPath::to(path).and_then(|way| {
        let file = way.open(OpenOptions::new().read(true), 0)?;
        Ok((way, file))
    });
    let (way, file) = opened.map_err(|error| FileError::system("open", path, error))?;
    lock(&file, path)?;
    std::fs::remove_file(way.path())
        .and_then(|()| sync_directory(way.path()))
        .map_err(|error| FileError::system("remove", path, error))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

fn directory(path: &Path) -> &Path {
    super::facts::parent(path)
}

fn explain(action: &'static str, path: &Path, needed_bytes: u64, error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => FileError::AlreadyExists {
            path: path.to_owned(),
        },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::NoSpace {
            path: path.to_owned(),
            needed_bytes,
        },
        _ => FileError::system(action, path, error),
    }
}
