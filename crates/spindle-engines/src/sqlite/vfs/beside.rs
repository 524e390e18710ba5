//! The files beside a database that lies on a device: rollback journal, log, temporary files. SQLite's own VFS for Unix
//! carries them, so that they are read, written and flushed as they are for a database in a file.
#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::Arc;

use rusqlite::ffi;
use sqlite_plugin::flags::AccessFlags;
use sqlite_plugin::vars;
use sqlite_plugin::vfs::VfsResult;

use super::database::Database;

/// What SQLite's own VFS says of files.
pub(super) const SECTOR_BYTES: i32 = 4096;
/// Files are flushed with all that is needed to find them again.
const SYNC: c_int = ffi::SQLITE_SYNC_NORMAL;
/// The directory is not flushed when a file is removed: SQLite asks for that with `synchronous = extra` only, which
/// `raw` refuses, as the crate that calls us does not pass the question on.
const DIRECTORY_IS_NOT_SYNCED: c_int = 0;

fn result(code: c_int) -> VfsResult<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(code),
    }
}

/// SQLite's own VFS.
fn unix() -> VfsResult<*mut ffi::sqlite3_vfs> {
    // SAFETY: the name is a static string; what is found lives forever, too.
    let found = unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) };
    match found.is_null() {
        true => Err(vars::SQLITE_INTERNAL),
        false => Ok(found),
    }
}

fn name(path: &str) -> VfsResult<CString> {
    CString::new(path).map_err(|_| vars::SQLITE_CANTOPEN)
}

/// Removes a file. Errors: SQLite's; so for the others.
pub(super) fn delete(path: &str) -> VfsResult<()> {
    let (unix, path) = (unix()?, name(path)?);
    // SAFETY: a VFS that SQLite has registered, and a string that outlives the call.
    result(unsafe {
        let delete = (*unix).xDelete.ok_or(vars::SQLITE_INTERNAL)?;
        delete(unix, path.as_ptr(), DIRECTORY_IS_NOT_SYNCED)
    })
}

/// Whether a file exists and may be used so.
pub(super) fn access(path: &str, flags: AccessFlags) -> VfsResult<bool> {
    let (unix, path) = (unix()?, name(path)?);
    let flags = match flags {
        AccessFlags::Exists => ffi::SQLITE_ACCESS_EXISTS,
        AccessFlags::Read => ffi::SQLITE_ACCESS_READ,
        AccessFlags::ReadWrite => ffi::SQLITE_ACCESS_READWRITE,
    };
    let mut answer = 0;
    // SAFETY: a VFS that SQLite has registered, a string and a number that outlive the call.
    result(unsafe {
        let access = (*unix).xAccess.ok_or(vars::SQLITE_INTERNAL)?;
        access(unix, path.as_ptr(), flags, &mut answer)
    })?;
    Ok(answer != 0)
}

/// An open file of SQLite's own VFS.
pub(super) struct BesideFile {
    /// The `sqlite3_file` and whatever the VFS has behind it, aligned as SQLite aligns them.
    memory: Box<[u64]>,
    /// Its name, which the VFS keeps a pointer to.
    _path: Option<CString>,
    /// The database whose journal or log it is.
    redo_of: Option<Arc<Database>>,
}

impl BesideFile {
    /// Opens a file; one without a name is temporary.
    pub fn open(
        path: Option<&str>,
        flags: i32,
        redo_of: Option<Arc<Database>>,
    ) -> VfsResult<BesideFile> {
        let unix = unix()?;
        let path = path.map(name).transpose()?;
        let pointer = path.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        // Names have no parameters behind them here, where those of URIs would be looked for.
        let flags = flags & !ffi::SQLITE_OPEN_URI;
        // SAFETY: `unix` is a VFS that SQLite has registered; the file's memory has the size that it asks for, is
        // aligned, and like the name stays where it is until the file is closed.
        unsafe {
            let bytes = (*unix).szOsFile.unsigned_abs() as usize;
            let mut file = BesideFile {
                memory: vec![0; bytes.div_ceil(size_of::<u64>())].into_boxed_slice(),
                _path: path,
                redo_of,
            };
            let open = (*unix).xOpen.ok_or(vars::SQLITE_INTERNAL)?;
            let code = open(unix, pointer, file.pointer(), flags, ptr::null_mut());
            // A file that could not be opened may have to be closed all the same: dropping it does so.
            result(code).map(|()| file)
        }
    }

    fn pointer(&mut self) -> *mut ffi::sqlite3_file {
        self.memory.as_mut_ptr().cast()
    }

    /// The VFS's functions for the file; `None` when it is closed.
    fn methods(&mut self) -> Option<&'static ffi::sqlite3_io_methods> {
        // SAFETY: the memory begins with a `sqlite3_file`, zeros or written by the VFS, whose tables of functions are
        // static.
        unsafe { (*self.pointer()).pMethods.as_ref() }
    }

    fn open_methods(&mut self) -> VfsResult<&'static ffi::sqlite3_io_methods> {
        self.methods().ok_or(vars::SQLITE_MISUSE)
    }

    /// Reads; what is missing at the file's end is zeros, which SQLite is told by an error.
    pub fn read(&mut self, offset: usize, data: &mut [u8]) -> VfsResult<usize> {
        let read = self.open_methods()?.xRead.ok_or(vars::SQLITE_INTERNAL)?;
        let (into, bytes) = (data.as_mut_ptr().cast(), data.len() as c_int);
        // SAFETY: an open file, and a buffer of that many bytes.
        result(unsafe { read(self.pointer(), into, bytes, offset as i64) })?;
        if let Some(database) = &self.redo_of {
            database.redo.read(data.len());
        }
        Ok(data.len())
    }

    pub fn write(&mut self, offset: usize, data: &[u8]) -> VfsResult<usize> {
        let write = self.open_methods()?.xWrite.ok_or(vars::SQLITE_INTERNAL)?;
        let (from, bytes) = (data.as_ptr().cast(), data.len() as c_int);
        // SAFETY: an open file, and a buffer of that many bytes.
        result(unsafe { write(self.pointer(), from, bytes, offset as i64) })?;
        if let Some(database) = &self.redo_of {
            database.redo.write(data.len());
        }
        Ok(data.len())
    }

    pub fn truncate(&mut self, size: usize) -> VfsResult<()> {
        let truncate = self
            .open_methods()?
            .xTruncate
            .ok_or(vars::SQLITE_INTERNAL)?;
        // SAFETY: an open file.
        result(unsafe { truncate(self.pointer(), size as i64) })
    }

    pub fn sync(&mut self) -> VfsResult<()> {
        let sync = self.open_methods()?.xSync.ok_or(vars::SQLITE_INTERNAL)?;
        // SAFETY: an open file.
        result(unsafe { sync(self.pointer(), SYNC) })?;
        if let Some(database) = &self.redo_of {
            database.redo.flush();
        }
        Ok(())
    }

    pub fn size(&mut self) -> VfsResult<usize> {
        let size_of = self
            .open_methods()?
            .xFileSize
            .ok_or(vars::SQLITE_INTERNAL)?;
        let mut bytes = 0;
        // SAFETY: an open file, and a number that outlives the call.
        result(unsafe { size_of(self.pointer(), &mut bytes) })?;
        usize::try_from(bytes).map_err(|_| vars::SQLITE_IOERR_FSTAT)
    }

    /// Closes it. Errors: SQLite's.
    pub fn close(mut self) -> VfsResult<()> {
        self.end()
    }

    fn end(&mut self) -> VfsResult<()> {
        let Some(methods) = self.methods() else {
            return Ok(());
        };
        // SAFETY: an open file, which is none afterwards, and is then known to be none.
        unsafe {
            let file = self.pointer();
            let closed = methods.xClose.map_or(ffi::SQLITE_OK, |close| close(file));
            (*file).pMethods = ptr::null();
            result(closed)
        }
    }
}

impl Drop for BesideFile {
    fn drop(&mut self) {
        // A caller that needs the result closes it first.
        let _ = self.end();
    }
}
