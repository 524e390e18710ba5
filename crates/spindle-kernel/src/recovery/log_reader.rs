//! Reading the redo at the start of an instance: batch after batch, file after file, from the place of a checkpoint to
//! the end of the redo, in large reads. The end is where the next batch is not as expected, which is what a crash in
//! the middle of a write leaves. Redo that continues behind such a place shows that it is no end but damage.

use std::fmt::Display;
use std::sync::Arc;

use spindle_io::{Arena, BlockDevice, Submission, read_blocks};

use crate::error::{KernelError, Result};
use crate::log::files::{LOG_FILE_HEADER_BYTES, read_file_header};
use crate::log::marks::Location;
use crate::log::redo::batch;
use crate::settings::PlantedFault;
use crate::sga::Sga;

/// Read in one I/O, of pieces of [`PIECE_BYTES`].
const PIECES: usize = 16;
const PIECE_BYTES: usize = 4096;

/// Bytes of a log file, read ahead.
struct Ahead {
    arena: Arc<Arena>,
    file: usize,
    start: u64,
    bytes: Vec<u8>,
}

impl Ahead {
    fn new() -> Result<Ahead> {
        let arena = Arena::new(PIECE_BYTES, PIECES).map_err(|error| KernelError::Memory {
            what: "reading redo",
            reason: error.to_string(),
        })?;
        Ok(Ahead {
            arena,
            file: 0,
            start: 0,
            bytes: Vec::new(),
        })
    }

    /// `length` bytes from `offset`, a multiple of the redo block's length; a piece's length of the file follows them.
    async fn get(
        &mut self,
        devices: &[Arc<dyn BlockDevice>],
        file: usize,
        offset: u64,
        length: usize,
    ) -> Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if self.file != file || offset < self.start || offset > end {
            (self.file, self.start) = (file, offset);
            self.bytes.clear();
        }
        if offset + length as u64 > self.start + self.bytes.len() as u64 {
            self.bytes.drain(..(offset - self.start) as usize);
            self.start = offset;
            while self.bytes.len() < length {
                self.read_more(&*devices[file]).await?;
            }
        }
        let from = (offset - self.start) as usize;
        Ok(&self.bytes[from..from + length])
    }

    async fn read_more(&mut self, device: &dyn BlockDevice) -> Result<()> {
        let at = self.start + self.bytes.len() as u64;
        let left = (device.limits().capacity_bytes - at) as usize / PIECE_BYTES;
        let frames = (0..left.min(PIECES)).map(|_| self.arena.allocate().expect("all are free"));
        let holds = frames.map(|frame| frame.try_write_hold().expect("the frame is ours"));
        for hold in read_blocks(device, at, holds.collect(), Submission::Alone).await? {
            self.bytes.extend_from_slice(&hold);
        }
        Ok(())
    }
}

/// Reads the log files batch by batch.
pub(crate) struct LogReader<'a> {
    sga: &'a Sga,
    at: Location,
    ahead: Ahead,
}

/// The records of a batch, and where they are.
pub(crate) struct Redo<'a> {
    /// Position of the first record; the log file and its sequence number.
    pub(crate) at: Location,
    /// The records, one after the other.
    pub(crate) records: &'a [u8],
}

impl LogReader<'_> {
    /// A reader that begins at `at`.
    pub(crate) fn new(sga: &Sga, at: Location) -> Result<LogReader<'_>> {
        Ok(LogReader {
            sga,
            at,
            ahead: Ahead::new()?,
        })
    }

    /// Where the next batch would be.
    pub(crate) fn at(&self) -> Location {
        self.at
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.sga.log_files.devices()
    }

    async fn bytes(&mut self, file: usize, offset: u64, length: usize) -> Result<&[u8]> {
        let devices = self.sga.log_files.devices();
        self.ahead.get(devices, file, offset, length).await
    }

    /// The next batch, or `None` at the end of the redo.
    pub(crate) async fn next(&mut self) -> Result<Option<Redo<'_>>> {
        let payload_bytes = loop {
            if let Some(payload_bytes) = self.batch_here().await? {
                break payload_bytes;
            }
            if !self.go_on_to_next_file().await? {
                return Ok(None);
            }
        };
        let at = self.at;
        let bytes = batch::HEADER_BYTES + payload_bytes;
        self.at.position += payload_bytes as u64;
        self.at.offset += (bytes as u64).next_multiple_of(self.sga.log_files.redo_block_bytes());
        let whole = self.bytes(at.file, at.offset, bytes).await?;
        let records = &whole[batch::HEADER_BYTES..];
        Ok(Some(Redo { at, records }))
    }

    /// Payload length of the batch here, if there is a whole one.
    async fn batch_here(&mut self) -> Result<Option<usize>> {
        let at = self.at;
        let capacity = self.devices()[at.file].limits().capacity_bytes;
        let database = self.sga.database_id();
        if at.offset + LOG_FILE_HEADER_BYTES > capacity {
            return Ok(None);
        }
        let header = self.bytes(at.file, at.offset, batch::HEADER_BYTES).await?;
        let found = batch::Header::read(header, database);
        let Some(found) = found.filter(|found| found.is_at(at.sequence, at.position)) else {
            return Ok(None);
        };
        let bytes = batch::HEADER_BYTES + found.payload_bytes;
        if at.offset + bytes as u64 + LOG_FILE_HEADER_BYTES > capacity {
            return Ok(None);
        }
        let settings = &self.sga.settings;
        let planted = settings.has_planted(PlantedFault::BatchChecksumUnverified);
        let whole = self.bytes(at.file, at.offset, bytes).await?;
        Ok((planted || batch::is_whole(whole)).then_some(found.payload_bytes))
    }

    fn next_file(&self) -> usize {
        (self.at.file + 1) % self.devices().len()
    }

    /// Sequence number and first position of a log file, if it has a whole header.
    async fn file_header(&mut self, file: usize) -> Result<Option<(u32, u64)>> {
        let database = self.sga.database_id();
        let header = self.bytes(file, 0, LOG_FILE_HEADER_BYTES as usize).await?;
        Ok(read_file_header(header, database))
    }

    async fn go_on_to_next_file(&mut self) -> Result<bool> {
        let file = self.next_file();
        let expected = Some((self.at.sequence + 1, self.at.position));
        if self.file_header(file).await? != expected {
            return Ok(false);
        }
        let (sequence, offset) = (self.at.sequence + 1, LOG_FILE_HEADER_BYTES);
        self.at = Location {
            file,
            sequence,
            offset,
            ..self.at
        };
        Ok(true)
    }

    /// Makes sure that the place reached is the end of the redo. LGWR writes a batch, and opens a log file, only when
    /// all redo before it is on stable storage: where later redo is found, what lies here was written once and is
    /// damaged.
    pub(crate) async fn check_end(&mut self) -> Result<()> {
        let settings = &self.sga.settings;
        if settings.has_planted(PlantedFault::RedoEndUnverified) {
            return Ok(());
        }
        let Location {
            file,
            sequence,
            offset,
            position,
        } = self.at;
        for other in 0..self.devices().len() {
            let header = self.file_header(other).await?;
            if let Some((later, _)) = header.filter(|(found, _)| *found > sequence) {
                return Err(self.damaged(format!(
                    "{} goes on with sequence {later}",
                    self.devices()[other].name()
                )));
            }
        }
        let here =
            |header: &batch::Header| header.sequence == sequence && header.position > position;
        let behind = |header: &batch::Header| header.sequence == sequence + 1;
        let mut later = self.find_batch(file, offset, here).await?;
        if later.is_none() {
            later = self.find_batch(self.next_file(), 0, behind).await?;
        }
        match later {
            Some(header) => Err(self.damaged(format!(
                "redo of sequence {}, position {}, follows",
                header.sequence, header.position
            ))),
            None => Ok(()),
        }
    }

    /// The first batch of a kind that begins not farther from `offset` than a batch is long.
    async fn find_batch(
        &mut self,
        file: usize,
        offset: u64,
        wanted: impl Fn(&batch::Header) -> bool,
    ) -> Result<Option<batch::Header>> {
        let step_bytes = self.sga.log_files.redo_block_bytes();
        let capacity = self.devices()[file].limits().capacity_bytes;
        let reach = LOG_FILE_HEADER_BYTES + self.sga.log.arena().frame_bytes() as u64;
        let end = (offset + reach).min(capacity.saturating_sub(LOG_FILE_HEADER_BYTES));
        let database = self.sga.database_id();
        let mut at = offset;
        while at <= end {
            let header = self.bytes(file, at, batch::HEADER_BYTES).await?;
            let found = batch::Header::read(header, database);
            if let Some(found) = found.filter(|found| wanted(found)) {
                return Ok(Some(found));
            }
            at += step_bytes;
        }
        Ok(None)
    }

    fn damaged(&self, reason: impl Display) -> KernelError {
        damaged(self.sga, self.at, reason)
    }
}

/// The error of redo that is not as it was written.
pub(crate) fn damaged(sga: &Sga, at: Location, reason: impl Display) -> KernelError {
    KernelError::DamagedRedo {
        device: sga.log_files.devices()[at.file].name().to_string(),
        sequence: at.sequence,
        position: at.position,
        reason: reason.to_string(),
    }
}
