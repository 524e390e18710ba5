//! [`FileDevice`]: one open file or block device as a `BlockDevice`. Its [`Queue`] carries out batched
//! requests; a request submitted alone is always the caller's own blocking call, as a session's single-block read is
//! in every database, and a flush is always `fdatasync` in the caller's thread. A durable write is the same with every
//! method: RWF_DSYNC, which gives that one write the semantics of O_DSYNC.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::counts::{IoCounts, WrittenBlocks};
use super::error::FileError;
use super::facts::{self, DirectIo};
use super::file::core::Core;
use super::file::identify::{Caching, Identified, OpenFile, identify, identify_this};
use super::file::transfer;
use super::queue::method::{Method, Queue};
use super::storage_identity::StorageIdentity;
use crate::device::{
    BlockDevice, Completion, IoOutcome, Limits, Operation, Request, Submission, WHOLE_SECTOR_BYTES,
};
use crate::sync;

/// An open file or block device.
pub struct FileDevice {
    core: Arc<Core>,
    queue: Queue,
}

impl FileDevice {
    /// Opens an existing file for reading and writing; one of a disk manager is identified. Errors:
    /// [`FileError::InUse`] when it is open already, [`FileError::NotLookedAt`] for a block device, and others of
    /// [`FileError`].
    pub fn open(path: &Path, caching: Caching, queue: Queue) -> Result<FileDevice, FileError> {
        let file = match queue.method().identifies_files() {
            true => identify(path, caching)?.0,
            false => Arc::new(OpenFile::open(path, caching)?),
        };
        FileDevice::on(file, queue)
    }

    /// The same of a file or block device that was looked at, and that people know by the path `called`. Errors:
    /// [`FileError::Other`] when it is another one by now, or see [`FileDevice::open`].
    pub fn open_this(
        path: &Path,
        called: &Path,
        which: StorageIdentity,
        caching: Caching,
        queue: Queue,
    ) -> Result<FileDevice, FileError> {
        let file = match queue.method().identifies_files() {
            true => identify_this(path, called, which, caching)?.0,
            false => Arc::new(OpenFile::open_this(path, called, which, caching)?),
        };
        FileDevice::on(file, queue)
    }

    /// The same for reading only, without a lock: a write to it fails, and others may have it in use. It is identified
    /// whatever the queue, so that rings register it. Errors: see [`FileDevice::open_this`].
    pub fn open_to_read(
        path: &Path,
        called: &Path,
        which: StorageIdentity,
        caching: Caching,
        queue: Queue,
    ) -> Result<FileDevice, FileError> {
        let file = OpenFile::open_to_read(path, called, which, caching)?;
        FileDevice::on(Arc::new(file), queue)
    }

    /// A device on a file that is identified already, which other devices may share. Errors: see [`FileError`].
    pub fn on_identified(file: &Identified, queue: Queue) -> Result<FileDevice, FileError> {
        FileDevice::on(Arc::clone(&file.0), queue)
    }

    /// A device on `bytes` bytes of an identified file or block device, from `first_byte` on: one database file of
    /// several on a raw device. Errors: [`FileError::BadRegion`] when it reaches past the end or its edges do not suit
    /// the device's alignment, or see [`FileError`].
    pub fn on_region(
        file: &Identified,
        first_byte: u64,
        bytes: u64,
        queue: Queue,
    ) -> Result<FileDevice, FileError> {
        let mut device = FileDevice::on_identified(file, queue)?;
        let core = Arc::get_mut(&mut device.core).expect("a new device has no I/O under way");
        let alignment_bytes = u64::from(core.limits.alignment_bytes);
        let end = first_byte.checked_add(bytes);
        let is_within = end.is_some_and(|end| end <= core.limits.capacity_bytes);
        if !is_within
            || [first_byte, bytes]
                .iter()
                .any(|edge| !edge.is_multiple_of(alignment_bytes))
        {
            return Err(FileError::BadRegion {
                path: file.path().to_owned(),
                first_byte,
                bytes,
                capacity_bytes: core.limits.capacity_bytes,
                alignment_bytes,
            });
        }
        core.first_byte = first_byte;
        core.limits.capacity_bytes = bytes;
        Ok(device)
    }

    fn on(file: Arc<OpenFile>, queue: Queue) -> Result<FileDevice, FileError> {
        let limits = limits(&file).map_err(|error| error.of(&file.path))?;
        Ok(FileDevice {
            core: Arc::new(Core::new(file, limits)),
            queue,
        })
    }

    /// The same device, marking in `tracker` every block it writes. To be called before any I/O.
    pub fn with_tracker(self, tracker: Arc<WrittenBlocks>) -> FileDevice {
        let mut core = self.core;
        Arc::get_mut(&mut core)
            .expect("the device has I/O under way")
            .tracker = Some(tracker);
        FileDevice {
            core,
            queue: self.queue,
        }
    }

    /// What this device has done since it was opened.
    pub fn counters(&self) -> IoCounts {
        self.core.counters.read()
    }

    /// What I/O of it needs, for a ring that takes requests by itself.
    pub(super) fn core(&self) -> Arc<Core> {
        Arc::clone(&self.core)
    }

    /// How batched requests are carried out.
    pub fn method(&self) -> Method {
        self.queue.method()
    }

    /// Whether the page cache is used.
    pub fn caching(&self) -> Caching {
        self.core.file.caching
    }
}

impl BlockDevice for FileDevice {
    fn name(&self) -> &str {
        self.core.name()
    }

    fn limits(&self) -> Limits {
        self.core.limits.clone()
    }

    /// Batched requests of a method that is [asynchronous](Method::is_asynchronous) go out when the calling thread next
    /// waits in `block_on`, and their completions must be awaited by that same thread.
    fn submit(&self, request: Request) -> Completion {
        sync::assert_no_latch_held();
        let total = request.bytes();
        let Request {
            offset,
            operation,
            submission,
        } = request;
        if let Err(error) = self.core.check_bounds(&operation, offset, total) {
            return Completion::ready(IoOutcome {
                result: Err(error),
                operation,
            });
        }
        if let (Operation::Write { .. }, Some(tracker)) = (&operation, &self.core.tracker) {
            tracker.mark(offset, total as u64);
        }
        let offset = self.core.first_byte + offset;
        let batched = submission == Submission::Batched && !matches!(operation, Operation::Flush);
        match batched {
            true => self.queue.submit(&self.core, offset, operation, total),
            false => Completion::ready(transfer::perform(&self.core, offset, operation, total)),
        }
    }
}

impl fmt::Debug for FileDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "FileDevice({}, {:?}, {})",
            self.core.name(),
            self.caching(),
            self.method()
        )
    }
}

fn limits(file: &OpenFile) -> Result<Limits, FileError> {
    let capacity_bytes = file
        .capacity_bytes()
        .map_err(|error| FileError::system("find the size of", &file.path, error))?;
    let alignment_bytes = match (file.caching, facts::direct_io(&file.way)?) {
        (Caching::Buffered, _) => 1,
        (
            Caching::Direct,
            DirectIo::Aligned {
                offset_alignment_bytes,
                memory_alignment_bytes,
            },
        ) => offset_alignment_bytes.max(memory_alignment_bytes),
        (Caching::Direct, _) => WHOLE_SECTOR_BYTES,
    };
    Ok(Limits {
        capacity_bytes,
        alignment_bytes,
        atomic_write_bytes: match file.caching {
            Caching::Direct => facts::atomic_write_bytes(&file.way)?.max(WHOLE_SECTOR_BYTES),
            Caching::Buffered => WHOLE_SECTOR_BYTES,
        },
    })
}
