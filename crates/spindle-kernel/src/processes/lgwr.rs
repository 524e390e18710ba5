//! LGWR: the log writer. It takes all redo there is (group commit), writes it durably, and lets the commits return.
//! When a batch does not fit its log file LGWR switches to the next one. What it writes moves the checkpoint's target
//! along. When the ring runs short of files that a checkpoint has freed, changes are held back, never LGWR.

use std::sync::Arc;

use spindle_io::sync::timeout;
use spindle_io::{Request, Submission};

use crate::buggify::Switch;
use crate::error::Result;
use crate::log::buffer::{Batch, PADDING_MAX};
use crate::log::marks::Location;
use crate::log::redo::batch;
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::wait_event::{ProcessWaits, WaitEvent};

/// LGWR looks for redo that no session waits for as often as Oracle's: every 3 seconds.
const IDLE_NS: u64 = 3_000_000_000;

/// The log writer process.
pub(crate) async fn run(sga: Arc<Sga>) {
    let waits = sga.waits.register();
    sga.env.be_prompt();
    loop {
        while !sga.log.is_wanted() {
            if sga.health.is_stopping() {
                return;
            }
            if timeout(&*sga.env, IDLE_NS, sga.log.lgwr.notified())
                .await
                .is_err()
            {
                sga.log.request(sga.log.end());
            }
        }
        sga.pause(Switch::LgwrTakesLate).await;
        if let Err(error) = write_pending(&sga, &waits).await {
            sga.process_failed("LGWR", &error);
            return;
        }
    }
}

/// Writes all redo there is.
async fn write_pending(sga: &Sga, waits: &ProcessWaits) -> Result<()> {
    sga.health.check_failed()?;
    let (bytes, position) = sga.log.pending();
    if bytes == 0 {
        return Ok(());
    }
    // More redo may join before the batch is taken, up to a full buffer: that is what must fit.
    let batch_bytes_max = sga.log.arena().frame_bytes() as u64;
    if sga.log_files.left() < batch_bytes_max {
        switch(sga, position).await?;
    }
    let location = sga.log_files.location();
    let Some(batch) = sga.log.take(sga.database_id(), location.sequence) else {
        return Ok(());
    };
    if sga
        .settings
        .has_planted(PlantedFault::AcknowledgeBeforeFlush)
    {
        sga.log.acknowledge(batch.end);
    }
    let end = batch.end;
    write_batch(sga, waits, batch, location).await?;
    update_room(sga);
    move_target(sga);
    sga.log.written(end);
    Ok(())
}

/// Has DBWR write what recovery would have to read too far back for, and CKPT note the position when that frees the
/// next log file.
fn move_target(sga: &Sga) {
    let files = &sga.log_files;
    let Some(target) = files.move_target() else {
        return;
    };
    sga.cache.raise_target(target);
    if !files.next_is_free() && !sga.cache.has_before(files.end_of_next()) {
        sga.checkpoint.request();
    }
}

async fn write_batch(
    sga: &Sga,
    waits: &ProcessWaits,
    batch: Batch,
    location: Location,
) -> Result<()> {
    let files = &sga.log_files;
    let bytes = batch::HEADER_BYTES + (batch.end - batch.start) as usize;
    let padded = files.padded(bytes as u64) as usize;
    let device = &files.devices()[location.file];
    check_place(sga, &batch, padded as u64, location)?;
    let piece_bytes = sga
        .settings
        .log_write_bytes_max
        .next_multiple_of(PADDING_MAX);
    let wait = waits.begin(&*sga.env);
    let mut under_way = Vec::new();
    let mut result = Ok(());
    let mut start = 0;
    while start < padded {
        sga.pause(Switch::LgwrPausesInBatch).await;
        let length = piece_bytes.min(padded - start);
        let hold = batch.bytes.part(start, length);
        let request = Request::write(
            location.offset + start as u64,
            vec![hold],
            !sga.settings.has_planted(PlantedFault::LogWriteNotDurable),
            Submission::Batched,
        );
        match device.submit(request).already() {
            Ok(outcome) => result = result.and(outcome.result),
            Err(completion) => under_way.push(completion),
        }
        start += length;
    }
    for completion in under_way {
        result = result.and(completion.await.result);
    }
    wait.end(WaitEvent::LogFileParallelWrite);
    let ignored = sga.settings.has_planted(PlantedFault::LogWriteErrorIgnored);
    if !ignored {
        result?;
    }
    sga.statistics.add_redo_write(bytes, padded);
    let lost_count = sga.settings.has_planted(PlantedFault::RedoEndMiscounted);
    let next = Location {
        position: batch.end + u64::from(lost_count),
        offset: location.offset + padded as u64,
        ..location
    };
    files.advance(next, padded as u64, sga.env.now());
    Ok(())
}

/// A batch continues where the last one ended, and fits its file.
fn check_place(sga: &Sga, batch: &Batch, padded: u64, location: Location) -> Result<()> {
    let device = &sga.log_files.devices()[location.file];
    let capacity_bytes = device.limits().capacity_bytes;
    sga.require(
        || {
            let continues = batch.start == location.position && batch.start < batch.end;
            continues && location.offset + padded <= capacity_bytes
        },
        || {
            format!(
                "redo from position {} to {} would go to {location:?}, and the file has {capacity_bytes} bytes",
                batch.start, batch.end
            )
        },
    )
}

/// Switches to the next log file, which is free: changes were held back in time (see
/// [`crate::log::files::LogFiles::has_room`]).
async fn switch(sga: &Sga, position: u64) -> Result<()> {
    let files = &sga.log_files;
    let reused = sga.settings.has_planted(PlantedFault::LogFileReusedEarly);
    sga.require(
        || files.next_is_free() || reused,
        || {
            let (end, from) = (files.end_of_next(), files.needed_from());
            format!("the next log file holds redo up to {end}, and recovery would begin at {from}")
        },
    )?;
    files.open_next(sga, sga.database_id(), position).await?;
    if files.location().sequence as usize > files.devices().len() {
        probe::hit(Probe::LogRingWrapped);
    }
    sga.statistics.add_log_switch();
    Ok(())
}

/// Lets changes continue or holds them back, by the room there is.
pub(crate) fn update_room(sga: &Sga) {
    let _turn = sga.log_files.room_turn.lock();
    let has_room = sga.log_files.has_room(sga.log.arena().frame_bytes())
        || sga.settings.has_planted(PlantedFault::LogFileReusedEarly)
        || sga.settings.has_planted(PlantedFault::RoomOverstated);
    if !has_room {
        sga.checkpoint.request();
    }
    sga.log.set_ring_has_room(has_room);
}
