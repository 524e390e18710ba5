//! A run: records one after the other in a temporary segment, written once and read once, from front to back. Each
//! block bears its address, the number of its run and a checksum; a read that finds anything else is an error, never
//! an answer. The space of what has been read, and of a run that is dropped, is free again.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_io::{Arena, Request, Submission, read_blocks};

use super::TempWork;
use crate::block::{self, BlockAddress, BlockKind, HEADER_BYTES};
use crate::error::{KernelError, Result};
use crate::temp_space::{TempExtent, TempSpace};
use crate::wait_event::WaitEvent;

/// Bytes of a record's length.
const LENGTH_BYTES: usize = 4;

/// Records that have been written.
pub(crate) struct Run {
    space: Arc<TempSpace>,
    /// Those that have not been read yet.
    extents: VecDeque<TempExtent>,
    /// Bytes of the records, lengths included, that have not been read yet.
    bytes: u64,
    /// All that were written.
    records: u64,
    stamp: u64,
    piece_blocks: usize,
}

impl Run {
    /// Bytes of the records, lengths included, that have not been read yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Records that were written.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        for extent in self.extents.drain(..) {
            self.space.give_back(extent);
        }
    }
}

/// Memory for the I/Os of a run, or of several that take turns.
pub(crate) fn arena(work: &TempWork) -> Result<Arc<Arena>> {
    let block_bytes = work.sga.settings.block_bytes;
    let arena = Arena::new(block_bytes, work.piece_blocks());
    arena.map_err(|error| KernelError::Memory {
        what: "a temporary segment",
        reason: error.to_string(),
    })
}

/// Bytes of records in an I/O.
fn payload_bytes(work: &TempWork, blocks: usize) -> usize {
    blocks * (work.sga.settings.block_bytes - HEADER_BYTES)
}

/// Writes a run.
pub(crate) struct RunWriter {
    work: TempWork,
    arena: Arc<Arena>,
    /// Records that have not been written yet.
    pending: Vec<u8>,
    run: Run,
    /// Blocks written so far.
    blocks: u64,
}

impl RunWriter {
    /// Nothing is written yet. `arena` is used while an I/O is under way only.
    pub(crate) fn new(work: &TempWork, arena: &Arc<Arena>) -> RunWriter {
        let space = &work.sga.temp;
        RunWriter {
            work: work.clone(),
            arena: Arc::clone(arena),
            pending: Vec::new(),
            run: Run {
                space: Arc::clone(space),
                extents: VecDeque::new(),
                bytes: 0,
                records: 0,
                stamp: space.stamp(),
                piece_blocks: work.piece_blocks(),
            },
            blocks: 0,
        }
    }

    /// Adds a record.
    pub(crate) async fn put(&mut self, record: &[u8]) -> Result<()> {
        let length = (record.len() as u32).to_le_bytes();
        self.run.records += 1;
        self.pending.extend_from_slice(&length);
        self.pending.extend_from_slice(record);
        while self.pending.len() >= payload_bytes(&self.work, self.run.piece_blocks) {
            self.write_piece().await?;
        }
        Ok(())
    }

    /// Writes what is left.
    pub(crate) async fn finish(mut self) -> Result<Run> {
        while !self.pending.is_empty() {
            self.write_piece().await?;
        }
        Ok(self.run)
    }

    /// Writes as much as one I/O takes.
    async fn write_piece(&mut self) -> Result<()> {
        let sga = &*self.work.sga;
        self.work.check()?;
        let block_bytes = sga.settings.block_bytes;
        let extent_blocks = u64::from(self.run.space.extent_blocks());
        let within = (self.blocks % extent_blocks) as u32;
        if within == 0 {
            let extent = self.run.space.take()?;
            self.run.extents.push_back(extent);
        }
        let extent = *self.run.extents.back().expect("taken above");
        let payload = self
            .pending
            .len()
            .min(payload_bytes(&self.work, self.run.piece_blocks));
        let chunks = self.pending[..payload].chunks(block_bytes - HEADER_BYTES);
        let mut holds = Vec::with_capacity(self.run.piece_blocks);
        for (number, chunk) in chunks.enumerate() {
            let frame = self
                .arena
                .allocate()
                .expect("a frame for each block of an I/O");
            let mut bytes = frame.try_write_hold().expect("the frame is ours");
            let address = extent.block(within + number as u32);
            block::format(&mut bytes, BlockKind::Temporary, address, 0);
            block::set_scn(&mut bytes, self.run.stamp);
            let end = HEADER_BYTES + chunk.len();
            bytes[HEADER_BYTES..end].copy_from_slice(chunk);
            bytes[end..].fill(0);
            block::seal(&mut bytes);
            holds.push(bytes.share(block_bytes));
        }
        let written = holds.len();
        let first = extent.block(within);
        let offset = u64::from(first.block) * block_bytes as u64;
        let request = Request::write(offset, holds, false, Submission::Alone);
        let wait = self.work.waits.begin(&*sga.env);
        let outcome = sga.storage.tempfile(first.file).submit(request).await;
        wait.end(WaitEvent::DirectPathWriteTemp);
        outcome
            .result
            .map_err(|error| KernelError::TempIo { error })?;
        let bytes = (written * block_bytes) as u64;
        self.work.usage.written.fetch_add(bytes, Ordering::Relaxed);
        sga.statistics.add_temp_write(bytes);
        // What was not filled is not used either: the next I/O begins where one may.
        self.blocks += self.run.piece_blocks as u64;
        self.run.bytes += payload as u64;
        self.pending.drain(..payload);
        Ok(())
    }
}

/// Reads a run.
pub(crate) struct RunReader {
    work: TempWork,
    arena: Arc<Arena>,
    run: Run,
    /// Blocks of the first extent that have been read.
    within: u32,
    /// What has been read, from `at` on not yet given.
    bytes: Vec<u8>,
    at: usize,
}

impl RunReader {
    /// Nothing is read yet.
    pub(crate) fn new(work: &TempWork, run: Run) -> Result<RunReader> {
        Ok(RunReader {
            work: work.clone(),
            arena: arena(work)?,
            run,
            within: 0,
            bytes: Vec::new(),
            at: 0,
        })
    }

    /// Puts the next record into `record`; false at the end.
    pub(crate) async fn next(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        if !self.has(LENGTH_BYTES).await? {
            return Ok(false);
        }
        let length = &self.bytes[self.at..self.at + LENGTH_BYTES];
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        self.at += LENGTH_BYTES;
        if !self.has(length).await? {
            unreachable!("a record goes beyond its run, though every block was checked");
        }
        record.clear();
        record.extend_from_slice(&self.bytes[self.at..self.at + length]);
        self.at += length;
        Ok(true)
    }

    /// Whether there are this many bytes more, which have been read then.
    async fn has(&mut self, wanted: usize) -> Result<bool> {
        while self.bytes.len() - self.at < wanted {
            if self.run.bytes == 0 {
                return Ok(false);
            }
            self.read_piece().await?;
        }
        Ok(true)
    }

    /// Address of the next block.
    fn first(&self) -> BlockAddress {
        let extent = self.run.extents.front();
        let extent = extent.expect("a run has the extents of its bytes");
        extent.block(self.within)
    }

    async fn read_piece(&mut self) -> Result<()> {
        let sga = Arc::clone(&self.work.sga);
        self.work.check()?;
        let block_bytes = sga.settings.block_bytes;
        let payload = self
            .run
            .bytes
            .min(payload_bytes(&self.work, self.run.piece_blocks) as u64);
        let blocks = (payload as usize).div_ceil(block_bytes - HEADER_BYTES);
        let first = self.first();
        let frame = |_| {
            self.arena
                .allocate()
                .expect("a frame for each block of an I/O")
        };
        let frames: Vec<_> = (0..blocks).map(frame).collect();
        let hold = |frame: &spindle_io::Frame| frame.try_write_hold().expect("the frame is ours");
        let offset = u64::from(first.block) * block_bytes as u64;
        let into = frames.iter().map(hold).collect();
        let device = &**sga.storage.tempfile(first.file);
        let wait = self.work.waits.begin(&*sga.env);
        let read = read_blocks(device, offset, into, Submission::Alone).await;
        wait.end(WaitEvent::DirectPathReadTemp);
        let holds = read.map_err(|error| KernelError::TempIo { error })?;
        sga.statistics.add_temp_read((blocks * block_bytes) as u64);
        self.bytes.drain(..self.at);
        self.at = 0;
        let mut left = payload as usize;
        for (number, hold) in holds.iter().enumerate() {
            let address = BlockAddress {
                block: first.block + number as u32,
                ..first
            };
            self.check(hold, address)?;
            let taken = left.min(block_bytes - HEADER_BYTES);
            self.bytes
                .extend_from_slice(&hold[HEADER_BYTES..HEADER_BYTES + taken]);
            left -= taken;
        }
        self.run.bytes -= payload;
        self.within += self.run.piece_blocks as u32;
        if self.within >= self.run.space.extent_blocks() {
            self.within = 0;
            if let Some(extent) = self.run.extents.pop_front() {
                self.run.space.give_back(extent);
            }
        }
        Ok(())
    }

    /// Whether a block is the one that was written there.
    fn check(&self, bytes: &[u8], address: BlockAddress) -> Result<()> {
        block::verify(bytes, address).map_err(|damage| self.damaged(address, damage))?;
        match block::kind(bytes) == BlockKind::Temporary as u8
            && block::scn(bytes) == self.run.stamp
        {
            true => Ok(()),
            false => Err(self.damaged(address, "it is of another sort or aggregation")),
        }
    }

    fn damaged(&self, address: BlockAddress, reason: impl Display) -> KernelError {
        let device = self.work.sga.storage.tempfile(address.file);
        KernelError::DamagedBlock {
            address,
            device: device.name().to_string(),
            reason: reason.to_string(),
        }
    }
}
