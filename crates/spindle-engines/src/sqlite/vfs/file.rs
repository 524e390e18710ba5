//! One connection's open database file: its reads and writes, its lock, its share of the memory that all have in
//! common.

use std::ptr::NonNull;
use std::sync::Arc;

use spindle_io::{Arena, Frame, Request, Submission};
use sqlite_plugin::flags::{LockLevel, ShmLockMode};
use sqlite_plugin::vars;
use sqlite_plugin::vfs::VfsResult;

use super::database::Database;
use super::locks::Held;
use super::shared_memory::Share;

/// A database file as a connection has it open.
pub(super) struct DeviceFile {
    database: Arc<Database>,
    held: Held,
    share: Share,
    /// What is read and written lies here: a page, and a block for reads of a few bytes.
    page: Frame,
    block: Frame,
}

fn frame(bytes: u32) -> VfsResult<Frame> {
    let arena = Arena::new(bytes as usize, 1);
    let arena = arena.map_err(|_| vars::SQLITE_NOMEM)?;
    arena.allocate().ok_or(vars::SQLITE_NOMEM)
}

impl DeviceFile {
    pub fn open(database: Arc<Database>) -> VfsResult<DeviceFile> {
        Ok(DeviceFile {
            held: Held {
                connection: database.next_connection(),
                level: LockLevel::Unlocked,
            },
            share: Share::default(),
            page: frame(database.page_bytes)?,
            block: frame(database.block_bytes)?,
            database,
        })
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Reads to the end of `data`, or of the file; returns how many bytes. SQLite reads whole pages, but for some bytes
    /// of the header.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> VfsResult<usize> {
        let in_file = self.database.file_bytes().saturating_sub(offset);
        let length = in_file.min(data.len() as u64) as usize;
        let block_bytes = u64::from(self.database.block_bytes);
        let is_in_a_block = offset % block_bytes + length as u64 <= block_bytes;
        let frame = match is_in_a_block {
            true => &self.block,
            false => &self.page,
        };
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let within = (at % frame.bytes() as u64) as usize;
            let step = (frame.bytes() - within).min(length - done);
            let hold = frame
                .try_write_hold()
                .expect("a file is used by one thread at a time");
            let request = Request::read(at - within as u64, vec![hold], Submission::Alone);
            let read = self.database.carry_out(request);
            read.map_err(|_| vars::SQLITE_IOERR_READ)?;
            let bytes = frame.try_read().expect("the read has ended");
            data[done..done + step].copy_from_slice(&bytes[within..within + step]);
            done += step;
        }
        Ok(length)
    }

    /// Writes whole pages: a part of one would have to be written together with bytes that another may be changing.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> VfsResult<usize> {
        let page_bytes = self.page.bytes();
        if !offset.is_multiple_of(page_bytes as u64) || !data.len().is_multiple_of(page_bytes) {
            return Err(vars::SQLITE_IOERR_WRITE);
        }
        if offset + data.len() as u64 > self.database.file_bytes() {
            return Err(vars::SQLITE_FULL);
        }
        for (number, page) in data.chunks_exact(page_bytes).enumerate() {
            let hold = self.page.try_write_hold();
            let mut hold = hold.expect("a file is used by one thread at a time");
            hold.copy_from_slice(page);
            let at = offset + (number * page_bytes) as u64;
            let from = vec![hold.share(page_bytes)];
            let request = Request::write(at, from, false, Submission::Alone);
            let written = self.database.carry_out(request);
            written.map_err(|_| vars::SQLITE_IOERR_WRITE)?;
        }
        Ok(data.len())
    }

    /// All that was written is on stable storage.
    pub fn sync(&mut self) -> VfsResult<()> {
        let flushed = self.database.carry_out(Request::flush());
        flushed.map_err(|_| vars::SQLITE_IOERR_FSYNC)
    }

    pub fn lock(&mut self, level: LockLevel) -> VfsResult<()> {
        self.database.locks.lock(&mut self.held, level)
    }

    pub fn unlock(&mut self, level: LockLevel) {
        self.database.locks.unlock(&mut self.held, level);
    }

    pub fn map(
        &mut self,
        region: usize,
        bytes: usize,
        extend: bool,
    ) -> VfsResult<Option<NonNull<u8>>> {
        let memory = &self.database.shared_memory;
        memory.map(&mut self.share, region, bytes, extend)
    }

    pub fn lock_slots(&mut self, first: u32, count: u32, mode: ShmLockMode) -> VfsResult<()> {
        let memory = &self.database.shared_memory;
        memory.lock(&mut self.share, first, count, mode)
    }

    pub fn unmap(&mut self) {
        self.database.shared_memory.unmap(&mut self.share);
    }
}

impl Drop for DeviceFile {
    fn drop(&mut self) {
        self.unmap();
        self.unlock(LockLevel::Unlocked);
    }
}
