//! A database on a device, and what its connections have in common.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use spindle_io::real::IoCounts;
use spindle_io::real::block_on;
use spindle_io::{Arena, BlockDevice, IoError, IoOutcome, Operation, Request, Submission};

use super::header::Header;
use super::locks::Locks;
use super::shared_memory::SharedMemory;
use crate::EngineError;

/// The least that direct I/O is done in, whatever a device allows.
const SECTOR_BYTES: u32 = 512;

/// A database on a device.
pub(super) struct Database {
    /// The path that SQLite knows it by.
    pub name: String,
    device: Arc<dyn BlockDevice>,
    /// What the device reads and writes at the least.
    pub block_bytes: u32,
    pub page_bytes: u32,
    /// Pages that there is room for.
    pub pages_max: u64,
    pub locks: Locks,
    pub shared_memory: SharedMemory,
    /// I/O on the device.
    pub data: Counts,
    /// I/O on journal and log.
    pub redo: Counts,
    /// The first I/O that failed.
    pub failure: OnceLock<String>,
    connections: AtomicU64,
}

/// I/O, counted by several threads.
#[derive(Default)]
pub(super) struct Counts(Mutex<IoCounts>);

impl Counts {
    pub fn lock(&self) -> MutexGuard<'_, IoCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn read(&self, bytes: usize) {
        let mut counts = self.lock();
        counts.reads.add_assign(1);
        counts.read_bytes.add_assign(bytes as u64);
    }

    pub fn write(&self, bytes: usize) {
        let mut counts = self.lock();
        counts.writes.add_assign(1);
        counts.write_bytes.add_assign(bytes as u64);
    }

    pub fn flush(&self) {
        self.lock().flushes.add_assign(1);
    }
}

impl Database {
    /// The database on a device.
    ///
    /// # Errors
    /// `Failed`: it cannot be worked with.
    pub fn open(name: &str, device: Arc<dyn BlockDevice>) -> Result<Database, EngineError> {
        let limits = device.limits();
        let block_bytes = limits.alignment_bytes.max(SECTOR_BYTES);
        let header = header_of(&*device, block_bytes)?;
        let page_bytes = header.page_bytes;
        if page_bytes < block_bytes {
            return Err(EngineError::other(format!(
                "its database has pages of {page_bytes} bytes, and the device's blocks have {block_bytes}: set page_size = \
                 {block_bytes} or more"
            )));
        }
        let pages_max = limits.capacity_bytes / u64::from(page_bytes);
        if u64::from(header.pages) > pages_max {
            return Err(EngineError::other(format!(
                "its database has {} pages of {page_bytes} bytes, and the device has room for {pages_max}",
                header.pages
            )));
        }
        Ok(Database {
            name: name.to_owned(),
            device,
            block_bytes,
            page_bytes,
            pages_max,
            locks: Locks::default(),
            shared_memory: SharedMemory::default(),
            data: Counts::default(),
            redo: Counts::default(),
            failure: OnceLock::new(),
            connections: AtomicU64::new(0),
        })
    }

    /// A number for a connection, which no other has.
    pub fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// How long the database file is: see the module.
    pub fn file_bytes(&self) -> u64 {
        self.pages_max * u64::from(self.page_bytes)
    }

    /// Carries out an I/O on the device, and counts it; its buffers are then free again. The first failure is kept.
    pub fn carry_out(&self, request: Request) -> Result<(), IoError> {
        let bytes = request.bytes();
        let outcome = perform(&*self.device, request);
        match (&outcome.result, &outcome.operation) {
            (Err(error), _) => drop(self.failure.set(error.to_string())),
            (Ok(()), Operation::Read(_)) => self.data.read(bytes),
            (Ok(()), Operation::Write { .. }) => self.data.write(bytes),
            (Ok(()), Operation::Flush) => self.data.flush(),
        }
        outcome.result
    }
}

/// What the first block of a device says.
fn header_of(device: &dyn BlockDevice, block_bytes: u32) -> Result<Header, EngineError> {
    let arena = Arena::new(block_bytes as usize, 1)
        .map_err(|error| EngineError::failed("taking memory for a block", error))?;
    let frame = arena.allocate().expect("it has a frame");
    let hold = frame.try_write_hold().expect("nobody else has the frame");
    let outcome = perform(device, Request::read(0, vec![hold], Submission::Alone));
    outcome.result?;
    // The outcome has the hold; without it the frame can be read.
    drop(outcome.operation);
    Header::read(&frame.try_read().expect("the read has ended"))
}

/// Carries out an I/O to its end. Devices that are files end it in the call; on others, such as disk groups, it may
/// take steps, which another thread then goes through: the caller may be a future that its own thread runs.
fn perform(device: &dyn BlockDevice, request: Request) -> IoOutcome {
    match device.submit(request).already() {
        Ok(outcome) => outcome,
        Err(pending) => on_another_thread(|| block_on(pending)),
    }
}

/// Has another thread do what may block on a future, and waits for it.
pub(super) fn on_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let ended = scope.spawn(work).join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
