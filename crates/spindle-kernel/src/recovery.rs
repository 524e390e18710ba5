//! Recovery, the same at every start: find the end of the redo, roll forward from the last checkpoint, make that a
//! checkpoint, open a new log file, roll back what had not committed. After a clean shutdown there is nothing to
//! roll in either direction, and this takes a moment.

use crate::block::{self, transaction_table};
use crate::checkpoint::{flush_datafiles, hold_back};
use crate::control_file::{CheckpointRecord, read_bytes};
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::lgwr::{LOG_FILE_HEADER_BYTES, Location, read_file_header};
use crate::probe::{self, Probe};
use crate::redo::{RECORD_HEADER_BYTES, RecordBuilder, Vectors, apply, batch};
use crate::settings::PlantedFault;
use crate::transaction::{id_of, roll_back};
use crate::wait_event::ProcessWaits;
use spindle_io::Request;

/// What recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Bytes of redo rolled forward.
    pub redo_bytes: u64,
    /// Transactions rolled back.
    pub rolled_back: usize,
}

/// Reads the log files batch by batch.
struct LogReader<'a> {
    shared: &'a Shared,
    at: Location,
}

impl LogReader<'_> {
    /// The records of the next batch, or `None` at the end of the redo.
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(batch) = self.batch_here().await? {
                return Ok(Some(batch));
            }
            if !self.go_on_to_next_file().await? {
                return Ok(None);
            }
        }
    }

    async fn batch_here(&mut self) -> Result<Option<Vec<u8>>> {
        let files = &self.shared.log_files;
        let device = &*files.devices()[self.at.file];
        let capacity = device.limits().capacity_bytes;
        if self.at.offset + LOG_FILE_HEADER_BYTES > capacity {
            return Ok(None);
        }
        let header = read_bytes(device, self.at.offset, batch::HEADER_BYTES).await?;
        let Some(payload_bytes) = batch::expected(&header, self.at.sequence, self.at.position)
        else {
            return Ok(None);
        };
        let bytes = batch::HEADER_BYTES + payload_bytes;
        if self.at.offset + bytes as u64 + LOG_FILE_HEADER_BYTES > capacity {
            return Ok(None);
        }
        let mut whole = read_bytes(device, self.at.offset, bytes).await?;
        let planted = self
            .shared
            .settings
            .has_planted(PlantedFault::BatchChecksumUnverified);
        if !planted && !batch::is_whole(&whole) {
            return Ok(None);
        }
        self.at.position += payload_bytes as u64;
        self.at.offset += (bytes as u64).next_multiple_of(files.redo_block_bytes());
        Ok(Some(whole.split_off(batch::HEADER_BYTES)))
    }

    async fn go_on_to_next_file(&mut self) -> Result<bool> {
        let devices = self.shared.log_files.devices();
        let file = (self.at.file + 1) % devices.len();
        let header = read_bytes(&*devices[file], 0, LOG_FILE_HEADER_BYTES as usize).await?;
        let expected = Some((self.at.sequence + 1, self.at.position));
        if read_file_header(&header, self.shared.database_id()) != expected {
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
}

/// Brings the database to the state of its last commit. LGWR, DBWR and CKPT run already.
pub(crate) async fn recover(shared: &Shared, waits: &ProcessWaits) -> Result<RecoveryReport> {
    let held_back = hold_back(shared).await;
    let checkpoint = shared.control.read(|contents| contents.checkpoint);
    let end = find_end(shared, checkpoint).await?;
    shared.log.reset(end.position);
    // Until the ring's place is known nothing can be appended to it, and nothing is: rolling forward makes no redo.
    shared.log_files.reset(end);
    roll_forward(shared, waits, checkpoint).await?;
    if !shared
        .settings
        .has_planted(PlantedFault::RecoveryNotWritten)
    {
        shared.dbwr.write_before(shared, end.position).await?;
    }
    flush_datafiles(shared).await?;
    let complete = CheckpointRecord {
        position: end.position,
        location: end,
    };
    shared
        .control
        .set_checkpoint(shared, waits, complete)
        .await?;
    // A new file: whatever a torn write left behind the end of the redo can never be taken for redo again.
    shared.log_files.open_next(shared, end.position).await?;
    drop(held_back);
    let rolled_back = roll_back_unfinished(shared, waits).await?;
    Ok(RecoveryReport {
        redo_bytes: end.position - checkpoint.position,
        rolled_back,
    })
}

/// Reads to the end of the redo and makes sure that all of it is on stable storage, not merely readable.
async fn find_end(shared: &Shared, checkpoint: CheckpointRecord) -> Result<Location> {
    let mut reader = LogReader {
        shared,
        at: checkpoint.location,
    };
    while reader.next().await?.is_some() {}
    for device in shared.log_files.devices() {
        device.submit(Request::flush()).await.result?;
    }
    if reader.at.position < checkpoint.position {
        return Err(KernelError::ControlFile {
            device: shared.log_files.devices()[reader.at.file]
                .name()
                .to_string(),
            reason: format!(
                "redo ends at {}, before the checkpoint at {}: log files were lost or damaged",
                reader.at.position, checkpoint.position
            ),
        });
    }
    Ok(reader.at)
}

async fn roll_forward(
    shared: &Shared,
    waits: &ProcessWaits,
    checkpoint: CheckpointRecord,
) -> Result<()> {
    let mut reader = LogReader {
        shared,
        at: checkpoint.location,
    };
    let mut position = checkpoint.location.position;
    while let Some(records) = reader.next().await? {
        let mut rest = &records[..];
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
            let (record, after) = rest.split_at(length);
            let end = position + length as u64;
            // Changes before the checkpoint are in the datafiles, and their blocks may have been torn since.
            if end > checkpoint.position {
                roll_record(shared, waits, &record[RECORD_HEADER_BYTES..], position, end).await?;
            }
            position = end;
            rest = after;
        }
    }
    Ok(())
}

/// Carries out the vectors of one record, on each block that does not have them yet.
async fn roll_record(
    shared: &Shared,
    waits: &ProcessWaits,
    vectors: &[u8],
    start: u64,
    end: u64,
) -> Result<()> {
    let mut done: Vec<block::BlockAddress> = Vec::new();
    for vector in Vectors::new(vectors) {
        let address = vector.address;
        if done.contains(&address) {
            continue;
        }
        done.push(address);
        let pin = if vector.kind.replaces_block() {
            shared.cache.get_new(shared, waits, address).await?
        } else {
            shared.cache.get(shared, waits, address).await?
        };
        let mut bytes = pin.write(shared, waits).await?;
        if !vector.kind.replaces_block() && block::scn(&bytes) >= end {
            continue;
        }
        shared.cache.mark_dirty(&pin, start);
        for vector in Vectors::new(vectors).filter(|vector| vector.address == address) {
            for _ in 0..1 + usize::from(shared.settings.has_planted(PlantedFault::RedoAppliedTwice))
            {
                apply(vector, &mut bytes);
            }
        }
        block::set_scn(&mut bytes, end);
    }
    Ok(())
}

/// Undoes every transaction whose slot is in use.
async fn roll_back_unfinished(shared: &Shared, waits: &ProcessWaits) -> Result<usize> {
    let mut builder = RecordBuilder::default();
    let mut unfinished = Vec::new();
    for (number, address) in shared.undo.table().enumerate() {
        let pin = shared.cache.get(shared, waits, address).await?;
        let bytes = pin.read(shared, waits).await?;
        for place in 0..shared.undo.slots_per_block() {
            let slot = number * shared.undo.slots_per_block() + place;
            let entry = transaction_table::entry(&bytes, place);
            shared.undo.set_wrap(slot, entry.wrap);
            if entry.active && !shared.settings.has_planted(PlantedFault::UndoSkipped) {
                unfinished.push(id_of(slot, entry.wrap));
            }
        }
    }
    if !unfinished.is_empty() {
        probe::hit(Probe::RollBackBegun);
        for id in &unfinished {
            roll_back(shared, waits, &mut builder, *id).await?;
        }
        probe::hit(Probe::RollBackEnded);
    }
    Ok(unfinished.len())
}
