//! Recovery, the same at every start: restore torn blocks from the double write areas, find the end of the redo, roll
//! forward from the last checkpoint, make that a checkpoint, open a new log file, roll back what had not committed.
//! After a clean shutdown there is nothing to roll in either direction, and this takes a moment.

use std::collections::BTreeMap;

use crate::block::{self, BlockAddress, Damage, transaction_table};
use crate::control_file::CheckpointRecord;
use crate::error::{KernelError, Result};
use crate::processes::checkpoint::flush_datafiles;
use crate::processes::double_write;
use crate::sga::Sga;
mod log_reader;

use crate::change::roll_back::roll_back;
use crate::log::marks::Location;
use crate::log::redo::{RecordBuilder, Vectors, apply, check, split_record};
use crate::probe::{self, Probe};
use crate::settings::{self, PlantedFault};
use crate::transaction::id_of;
use crate::wait_event::ProcessWaits;
use log_reader::{LogReader, Redo, damaged};
use spindle_io::Request;

/// What recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Bytes of redo rolled forward.
    pub redo_bytes: u64,
    /// Transactions rolled back.
    pub rolled_back: usize,
    /// Torn blocks restored from the double write areas.
    pub restored_blocks: usize,
}

/// Brings the database to the state of its last commit. LGWR, DBWR and CKPT run already; `held_back` keeps checkpoints
/// from beginning (see [`crate::processes::checkpoint::hold_back`]), and is dropped when they may.
pub(crate) async fn recover(
    sga: &Sga,
    waits: &ProcessWaits,
    held_back: impl Sized,
) -> Result<RecoveryReport> {
    let rolled_forward = bring_up(sga, waits).await;
    // Before checkpoints may begin: a recovery that failed must leave no note of how far it came.
    let mut report = rolled_forward.inspect_err(|error| sga.fail_by("", error))?;
    drop(held_back);
    report.rolled_back = roll_back_unfinished(sga, waits).await?;
    Ok(report)
}

/// Rolls forward to the end of the redo, has it all written, and opens a new log file.
async fn bring_up(sga: &Sga, waits: &ProcessWaits) -> Result<RecoveryReport> {
    let restored_blocks = double_write::restore(sga).await?;
    let checkpoint = sga.control.read(|contents| contents.checkpoint);
    let end = find_end(sga, checkpoint).await?;
    sga.log.reset(end.position);
    // Until the ring's place is known nothing can be appended to it, and nothing is: rolling forward makes no redo.
    sga.log_files.reset(end);
    roll_forward(sga, waits, checkpoint).await?;
    if !sga.settings.has_planted(PlantedFault::RecoveryNotWritten) {
        sga.cache.write_before(&sga.health, end.position).await?;
    }
    flush_datafiles(sga).await?;
    let complete = CheckpointRecord {
        position: end.position,
        location: end,
    };
    sga.control.set_checkpoint(sga, waits, complete).await?;
    // A new file: whatever a torn write left behind the end of the redo can never be taken for redo again.
    sga.log_files
        .open_next(sga, sga.database_id(), end.position)
        .await?;
    Ok(RecoveryReport {
        redo_bytes: end.position - checkpoint.position,
        rolled_back: 0,
        restored_blocks,
    })
}

/// Reads to the end of the redo and makes sure that all of it is on stable storage, not merely readable.
async fn find_end(sga: &Sga, checkpoint: CheckpointRecord) -> Result<Location> {
    let mut reader = LogReader::new(sga, checkpoint.location)?;
    while reader.next().await?.is_some() {}
    reader.check_end().await?;
    for device in sga.log_files.devices() {
        device.submit(Request::flush()).await.result?;
    }
    let end = reader.at();
    if end.position < checkpoint.position {
        let reason = format!(
            "it ends here, before the checkpoint at {}",
            checkpoint.position
        );
        return Err(damaged(sga, end, reason));
    }
    Ok(end)
}

async fn roll_forward(sga: &Sga, waits: &ProcessWaits, checkpoint: CheckpointRecord) -> Result<()> {
    let mut reader = LogReader::new(sga, checkpoint.location)?;
    let mut torn = TornBlocks::default();
    while let Some(Redo { mut at, records }) = reader.next().await? {
        let mut rest = records;
        while !rest.is_empty() {
            let record = split_record(rest).map_err(|reason| damaged(sga, at, reason));
            let (vectors, after) = record?;
            let end = at.position + (rest.len() - after.len()) as u64;
            // Changes before the checkpoint are in the datafiles, and their blocks may have been torn since.
            if end > checkpoint.position {
                roll_record(sga, waits, &mut torn, vectors, at, end).await?;
            }
            at.position = end;
            rest = after;
        }
    }
    match torn.pop_first() {
        None => Ok(()),
        Some((_, damage)) => Err(damage),
    }
}

/// Blocks that were found damaged where the redo has no image of them yet, with what was wrong. A block that a crash
/// has torn was written once more after these changes, and an image precedes every such write: it comes later in the
/// redo. So does PostgreSQL keep a list of invalid pages in recovery.
type TornBlocks = BTreeMap<BlockAddress, KernelError>;

/// Carries out the vectors of one record, on each block that does not have them yet.
async fn roll_record(
    sga: &Sga,
    waits: &ProcessWaits,
    torn: &mut TornBlocks,
    vectors: &[u8],
    at: Location,
    end: u64,
) -> Result<()> {
    let mut done: Vec<BlockAddress> = Vec::new();
    for vector in Vectors::new(vectors) {
        let address = vector.address;
        if done.contains(&address) {
            continue;
        }
        done.push(address);
        check_address(sga, address).map_err(|reason| damaged(sga, at, reason))?;
        let found = if vector.kind.replaces_block() {
            if torn.remove(&address).is_some() {
                probe::hit(Probe::ImageCameLater);
            }
            sga.cache.get_new(sga, waits, address).await
        } else if torn.contains_key(&address) {
            continue;
        } else {
            sga.cache.get(sga, waits, address).await
        };
        let pin = match found {
            Ok(pin) => pin,
            Err(damage @ KernelError::DamagedBlock { .. }) => {
                torn.insert(address, damage);
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut bytes = pin.write(sga, waits).await?;
        if !vector.kind.replaces_block() && block::scn(&bytes) >= end {
            // It can be read, and yet be lost at the next power cut, if the write or the flush that should have made it
            // stable failed before this start: it is written once more. With images that would be one write too many,
            // which a crash might tear: there the block is stable, or its image has just replaced it.
            if sga.settings.instance.torn_blocks != settings::TornBlocks::Images {
                sga.cache.begin_roll_forward(&pin, at.position);
            }
            continue;
        }
        sga.cache.begin_roll_forward(&pin, at.position);
        for vector in Vectors::new(vectors).filter(|vector| vector.address == address) {
            for _ in 0..1 + usize::from(sga.settings.has_planted(PlantedFault::RedoAppliedTwice)) {
                check(vector, &bytes).map_err(|reason| damaged(sga, at, reason))?;
                apply(vector, &mut bytes, end);
            }
        }
        block::set_scn(&mut bytes, end);
    }
    Ok(())
}

/// Error when the database has no such block, or none that redo may touch.
fn check_address(sga: &Sga, address: BlockAddress) -> std::result::Result<(), Damage> {
    let blocks = sga.control.read(|contents| {
        let file = contents.file_blocks.get(usize::from(address.file));
        file.copied().unwrap_or(0)
    });
    if (1..blocks).contains(&address.block) {
        return Ok(());
    }
    Err(Damage(format!(
        "it changes block {address}, which there is not"
    )))
}

/// Undoes every transaction whose slot is in use.
async fn roll_back_unfinished(sga: &Sga, waits: &ProcessWaits) -> Result<usize> {
    let mut builder = RecordBuilder::default();
    let mut unfinished = Vec::new();
    for (number, address) in sga.undo.table().enumerate() {
        let pin = sga.cache.get(sga, waits, address).await?;
        let bytes = pin.read(sga, waits).await?;
        for place in 0..sga.undo.slots_per_block() {
            let slot = number * sga.undo.slots_per_block() + place;
            let entry = transaction_table::entry(&bytes, place);
            sga.undo.recall(slot, entry);
            if entry.active && !sga.settings.has_planted(PlantedFault::UndoSkipped) {
                unfinished.push(id_of(slot, entry.wrap));
            }
        }
    }
    if !unfinished.is_empty() {
        probe::hit(Probe::RollBackBegun);
        for id in &unfinished {
            roll_back(sga, waits, &mut builder, *id).await?;
        }
        probe::hit(Probe::RollBackEnded);
    }
    Ok(unfinished.len())
}
