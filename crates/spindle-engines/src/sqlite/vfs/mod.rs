//! SQLite's database file on a block device: a VFS (https://www.sqlite.org/vfs.html) over [`spindle_io::BlockDevice`].
//! The main database file lies on a device from its first byte on, as the same bytes would in a file; its rollback
//! journal or log, and temporary files, lie in the file system beside the device's node, by SQLite's own VFS
//! (`beside`).
//!
//! A device has no length that tells where a database ends, so **the database file is as long as the device**, in whole
//! pages, always. That is right at every moment, also after a crash: how many pages a database has is in its header,
//! which SQLite trusts before the length of the file (https://www.sqlite.org/fileformat2.html#in_header_database_size)
//! when it has itself written it, and `header` refuses any other. A length guessed from that header would not be right:
//! between the end of a transaction that shrinks the database and the end of its journal the header says the new size,
//! and rolling back would put an empty page where the last page of the old one is. Nor would none at all: SQLite
//! removes the journal of an empty database unread. A length that is too large harms nothing. What is read beyond the
//! header's pages is never used, a rollback cuts off pages that are no longer used, and truncating is a no-op. Growing
//! ends at the device's end by `max_page_count`, so that a transaction is refused in time, and not a checkpoint of what
//! was promised.
//!
//! Reads go to the device in whole blocks, writes in whole pages, and pages are no smaller than blocks: nothing is ever
//! read to be written again beside something new. A database belongs to one process, by the lock of its node; its
//! connections lock each other out in memory (`locks`), and share the index of the log there (`shared_memory`), which
//! is made again from the log by the first connection, as after every crash.
//!
//! Only `sqlite` may come here.

mod beside;
mod database;
mod file;
mod header;
mod locks;
mod shared_memory;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rusqlite::{Connection, OpenFlags};
use spindle_io::BlockDevice;
use spindle_io::real::{Caching, Queue, block_on};
use spindle_layout::Opening;
use sqlite_plugin::flags::{AccessFlags, LockLevel, OpenKind, OpenOpts, ShmLockMode};
use sqlite_plugin::vars;
use sqlite_plugin::vfs::{RegisterOpts, Vfs, VfsHandle, VfsResult, register_static};

use super::elsewhere::Elsewhere;
use crate::EngineError;
use crate::engine::EngineCounts;
use beside::BesideFile;
use database::{Database, on_another_thread};
use file::DeviceFile;

/// This program can put a database on a device.
pub const IS_BUILT: bool = true;
/// What SQLite knows the VFS by.
const NAME: &str = "spindle-device";
/// What SQLite puts behind the name of a database for files beside it.
const ENDS_OF_LOGS: [&str; 2] = ["-journal", "-wal"];

/// The databases that are open on devices, by their paths.
static DATABASES: Mutex<BTreeMap<String, Arc<Database>>> = Mutex::new(BTreeMap::new());

fn databases() -> MutexGuard<'static, BTreeMap<String, Arc<Database>>> {
    DATABASES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database on a device or in a disk group, which SQLite can be connected to while this lives. Fields are dropped in
/// this order.
pub struct Attached {
    database: Arc<Database>,
    mounted: Mounted,
}

/// The disk group that a database lies in, if it does; dismounted when this is dropped.
struct Mounted(Option<Opening>);

impl Attached {
    /// Opens the device or the file of a disk group on which the database at `path` was put.
    ///
    /// # Errors
    /// `Failed`: it cannot be opened, or holds no database that can be worked with there.
    pub fn open(path: &Path, elsewhere: &Elsewhere) -> Result<Attached, EngineError> {
        let what = || format!("opening the database {}", path.display());
        let failed = |reason: EngineError| EngineError::failed(what(), reason);
        let name = path
            .to_str()
            .ok_or_else(|| EngineError::failed(what(), "its path is not text (UTF-8)"))?;
        let (device, mounted): (Arc<dyn BlockDevice>, Mounted) = match elsewhere {
            Elsewhere::Device(device) => {
                let device = device.open(Caching::Direct, Queue::sync());
                let device = device.map_err(|error| EngineError::failed(what(), error))?;
                (Arc::new(device), Mounted(None))
            }
            Elsewhere::Group(place) => {
                let opened = on_another_thread(|| {
                    let mut opening = Opening::new();
                    let file = opening.open(place, Caching::Direct, Queue::sync(), None);
                    block_on(file).map(|file| (file.device, opening))
                });
                let (device, opening) =
                    opened.map_err(|error| EngineError::failed(what(), error))?;
                (device, Mounted(Some(opening)))
            }
        };
        let database = Database::open(name, device).map_err(failed)?;
        Attached::of(database, mounted).map_err(failed)
    }

    fn of(database: Database, mounted: Mounted) -> Result<Attached, EngineError> {
        register()?;
        let database = Arc::new(database);
        databases().insert(database.name.clone(), Arc::clone(&database));
        Ok(Attached { database, mounted })
    }

    /// Connects to it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn connect(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        Connection::open_with_flags_and_vfs(&self.database.name, flags, NAME)
    }

    /// Pages that there is room for.
    pub fn pages_max(&self) -> u64 {
        self.database.pages_max
    }

    /// I/O so far: on the device, and on journal and log.
    pub fn counts(&self) -> EngineCounts {
        // The disks last: what they did is never less than what was asked of them.
        let (data, redo) = (*self.database.data.lock(), *self.database.redo.lock());
        let mut counts = EngineCounts {
            data,
            redo,
            ..EngineCounts::default()
        };
        if let Mounted(Some(opening)) = &self.mounted {
            (counts.grouped, counts.disks) = (data, opening.disk_counters());
        }
        counts
    }

    /// The first I/O that failed, in words: SQLite itself only says that one did.
    pub fn failure(&self) -> Option<String> {
        self.database.failure.get().cloned()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        databases().remove(&self.database.name);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(opening) = self.0.take() {
            // What a dismount leaves undone, the next mount does.
            let _ = on_another_thread(|| block_on(opening.close()));
        }
    }
}

/// Makes the VFS known to SQLite, once.
fn register() -> Result<(), EngineError> {
    static REGISTERED: OnceLock<Result<(), i32>> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        let name = CString::new(NAME).expect("a name without zeros");
        let options = RegisterOpts {
            make_default: false,
        };
        register_static(name, DeviceVfs, options).map(|_| ())
    });
    registered
        .map_err(|code| EngineError::other(format!("SQLite does not take the VFS: error {code}")))
}

struct DeviceVfs;

/// An open file.
enum Handle {
    Device(DeviceFile),
    Beside(BesideFile),
}

impl VfsHandle for Handle {
    fn readonly(&self) -> bool {
        false
    }

    fn in_memory(&self) -> bool {
        false
    }
}

impl Handle {
    /// The main database: SQLite locks no other file, and maps the memory of no other.
    fn device(&mut self) -> VfsResult<&mut DeviceFile> {
        match self {
            Handle::Device(file) => Ok(file),
            Handle::Beside(_) => Err(vars::SQLITE_MISUSE),
        }
    }
}

impl Vfs for DeviceVfs {
    type Handle = Handle;

    fn open(&self, path: Option<&str>, options: OpenOpts) -> VfsResult<Handle> {
        if options.kind() == OpenKind::MainDb {
            let database = path.and_then(|path| databases().get(path).cloned());
            let database = database.ok_or(vars::SQLITE_CANTOPEN)?;
            return DeviceFile::open(database).map(Handle::Device);
        }
        let ends = ENDS_OF_LOGS.iter();
        let mut names = ends.filter_map(|end| path?.strip_suffix(end));
        let of = names.find_map(|name| databases().get(name).cloned());
        BesideFile::open(path, options.flags(), of).map(Handle::Beside)
    }

    fn delete(&self, path: &str) -> VfsResult<()> {
        beside::delete(path)
    }

    fn access(&self, path: &str, flags: AccessFlags) -> VfsResult<bool> {
        beside::access(path, flags)
    }

    fn file_size(&self, handle: &mut Handle) -> VfsResult<usize> {
        match handle {
            Handle::Device(file) => Ok(file.database().file_bytes() as usize),
            Handle::Beside(file) => file.size(),
        }
    }

    fn truncate(&self, handle: &mut Handle, size: usize) -> VfsResult<()> {
        match handle {
            Handle::Device(_) => Ok(()),
            Handle::Beside(file) => file.truncate(size),
        }
    }

    fn write(&self, handle: &mut Handle, offset: usize, data: &[u8]) -> VfsResult<usize> {
        match handle {
            Handle::Device(file) => file.write(offset as u64, data),
            Handle::Beside(file) => file.write(offset, data),
        }
    }

    fn read(&self, handle: &mut Handle, offset: usize, data: &mut [u8]) -> VfsResult<usize> {
        match handle {
            Handle::Device(file) => file.read(offset as u64, data),
            Handle::Beside(file) => file.read(offset, data),
        }
    }

    fn sync(&self, handle: &mut Handle) -> VfsResult<()> {
        match handle {
            Handle::Device(file) => file.sync(),
            Handle::Beside(file) => file.sync(),
        }
    }

    fn lock(&self, handle: &mut Handle, level: LockLevel) -> VfsResult<()> {
        handle.device()?.lock(level)
    }

    fn unlock(&self, handle: &mut Handle, level: LockLevel) -> VfsResult<()> {
        handle.device()?.unlock(level);
        Ok(())
    }

    fn check_reserved_lock(&self, handle: &mut Handle) -> VfsResult<bool> {
        Ok(handle.device()?.database().locks.is_reserved())
    }

    fn close(&self, handle: Handle) -> VfsResult<()> {
        match handle {
            Handle::Device(_) => Ok(()),
            Handle::Beside(file) => file.close(),
        }
    }

    fn sector_size(&self, handle: &mut Handle) -> VfsResult<i32> {
        match handle {
            Handle::Device(file) => Ok(file.database().block_bytes as i32),
            Handle::Beside(_) => Ok(beside::SECTOR_BYTES),
        }
    }

    /// As SQLite's own VFS has it of files: what is written leaves untouched what lies beside it.
    fn device_characteristics(&self, _: &mut Handle) -> VfsResult<i32> {
        Ok(vars::SQLITE_IOCAP_POWERSAFE_OVERWRITE)
    }

    fn shm_map(
        &self,
        handle: &mut Handle,
        region: usize,
        bytes: usize,
        extend: bool,
    ) -> VfsResult<Option<NonNull<u8>>> {
        handle.device()?.map(region, bytes, extend)
    }

    fn shm_lock(
        &self,
        handle: &mut Handle,
        first: u32,
        count: u32,
        mode: ShmLockMode,
    ) -> VfsResult<()> {
        handle.device()?.lock_slots(first, count, mode)
    }

    fn shm_barrier(&self, _: &mut Handle) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn shm_unmap(&self, handle: &mut Handle, _: bool) -> VfsResult<()> {
        handle.device()?.unmap();
        Ok(())
    }
}
