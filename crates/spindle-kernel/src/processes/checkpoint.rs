//! CKPT: moves the position from which recovery would begin. Checkpoints are incremental, as Oracle's: DBWR writes what
//! was changed longest ago, all the time, and CKPT notes every few seconds in the control file how far that has come,
//! which frees the log files before it. A full checkpoint, which has DBWR write everything, is made at a shutdown, on
//! demand, and when the ring of log files has no room left.
//!
//! **What must hold.** Let P be the position in the control file, and let I(c) be the record with the last image of a
//! block at or before its change c (or the record that formats the block again).
//!
//! 1. *A change is on stable storage, or its redo is read*: each change c before P is in its block on stable storage.
//! 2. *A block that may be torn has an image that is read*: while a write of a block is not on stable storage, P is not
//!    after the image I(c) of any change c that this write carries and earlier ones did not make stable.
//!
//! Then recovery from P finds, at each change c of a block: either P <= I(c), and the image has come before; or I(c) <
//! P, and the change is on stable storage, so that a whole block has it (its SCN says so) and a torn one was written
//! again since with an image after P, which is still to come: until then recovery passes over the block. It never
//! writes a block of which it has not read an image, so it may crash anywhere itself.
//!
//! **How it is kept.** A block becomes dirty *at a position*: where its last image is, if that still counts, else at
//! the end of the redo, and then the record carries an image. So while it is dirty this position bounds both 1 and 2.
//! DBWR's queue of dirty blocks is ordered by it; a block leaves the queue when its write is complete. CKPT takes for P
//! the lowest position of all queues. To look at a queue and to raise its *floor* to what was seen is one step; an
//! image before the floor no longer counts, so nothing enters before it later, and the looks at several queues need not
//! be at one moment. Where complete writes are not stable (`write_sync = Checkpoint`) the datafiles are flushed between
//! the look and the note: every block that had left its queue is stable then.
//!
//! An image counts for half of the lag only. A block that is written and changed in turn would else be due again at
//! once.

use std::sync::Arc;

use spindle_io::sync::{has_planted, timeout};

use crate::buggify::Switch;
use crate::control_file::CheckpointRecord;
use crate::error::Result;
use crate::probe::{self, Probe};
use crate::processes::lgwr;
use crate::settings::{PlantedFault, WriteSync};
use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

/// Planted race: a process that waited for its turn makes its checkpoint, whatever has happened since.
pub(crate) const CHECKPOINT_AFTER_FAILURE: &str = "a checkpoint is made after recovery failed";

/// The checkpoint process.
pub(crate) async fn run(sga: Arc<Sga>) {
    let waits = sga.waits.register();
    loop {
        if !sga.buggify.fires(Switch::CheckpointAtOnce) {
            let progress_ns = sga.settings.checkpoint_progress_ns;
            // Whether asked for or due by time makes no difference.
            let _ = timeout(&*sga.env, progress_ns, sga.checkpoint.wanted.notified()).await;
        }
        if sga.health.is_stopping() {
            return;
        }
        let outcome = progress(&sga, &waits).await;
        if or_fail(&sga, outcome).is_err() {
            return;
        }
    }
}

/// Has DBWR write what has become too old, notes how far it has come, and makes room in the ring if there is none.
async fn progress(sga: &Sga, waits: &ProcessWaits) -> Result<()> {
    let _turn = turn(sga).await?;
    let now_ns = sga.env.now();
    if let Some(since_ns) = now_ns.checked_sub(sga.settings.instance.checkpoint_interval_ns) {
        let target = sga.log_files.changed_by(since_ns);
        sga.cache.raise_target(target);
    }
    let planted = sga
        .settings
        .has_planted(PlantedFault::CheckpointPositionTooFar);
    note_position(sga, waits, planted.then(|| sga.cache.target())).await?;
    if !sga.log.ring_has_room() {
        write_everything(sga, waits).await?;
    }
    Ok(())
}

/// Keeps checkpoints from beginning while the result exists: until all redo is rolled forward, blocks that no buffer
/// holds may lack changes, and a checkpoint would say that they do not.
pub(crate) async fn hold_back(sga: &Sga) -> impl Sized + use<'_> {
    sga.checkpoint
        .turn
        .acquire()
        .await
        .expect("the semaphore is never closed")
}

/// The turn to make a checkpoint. Error when the instance has failed meanwhile: recovery perhaps, and what it left
/// behind says nothing of how far the datafiles have come.
async fn turn(sga: &Sga) -> Result<impl Sized + use<'_>> {
    let turn = hold_back(sga).await;
    if !has_planted(CHECKPOINT_AFTER_FAILURE) {
        sga.health.check_failed()?;
    }
    Ok(turn)
}

/// Makes one full checkpoint.
pub(crate) async fn perform(sga: &Sga, waits: &ProcessWaits) -> Result<()> {
    let outcome = match turn(sga).await {
        Ok(_turn) => write_everything(sga, waits).await,
        Err(error) => Err(error),
    };
    or_fail(sga, outcome)
}

/// A checkpoint that fails fails the instance, however it was requested. A system that could not write or flush may
/// forget what it did not write and say yes the next time.
fn or_fail(sga: &Sga, outcome: Result<()>) -> Result<()> {
    if let Err(error) = &outcome {
        sga.process_failed("CKPT", error);
    }
    outcome
}

async fn write_everything(sga: &Sga, waits: &ProcessWaits) -> Result<()> {
    let end = sga.log.end();
    let planted = sga
        .settings
        .has_planted(PlantedFault::CheckpointDoesNotWait);
    if !planted {
        sga.cache.write_before(&sga.health, end).await?;
    }
    note_position(sga, waits, planted.then_some(end)).await?;
    sga.statistics.add_checkpoint();
    Ok(())
}

/// Enters in the control file how far DBWR has come, or `instead` (a planted fault).
async fn note_position(sga: &Sga, waits: &ProcessWaits, instead: Option<u64>) -> Result<()> {
    let mut position = instead.unwrap_or_else(|| sga.cache.settle_lowest());
    let noted = sga.control.read(|contents| contents.checkpoint.position);
    if position <= noted {
        return Ok(());
    }
    sga.pause(Switch::CheckpointPauses).await;
    flush_datafiles(sga).await?;
    sga.pause(Switch::CheckpointPauses).await;
    if sga.settings.has_planted(PlantedFault::CheckpointTakenLate) {
        position = sga.cache.settle_lowest();
    }
    if sga.cache.dirty_buffers() > 0 {
        probe::hit(Probe::CheckpointAdvanced);
    }
    if sga.settings.has_planted(PlantedFault::CheckpointBeyondRedo) {
        position = sga.log.end() + 1;
    }
    let flushed = sga.log.flushed();
    sga.require(
        || position <= flushed,
        || format!("a checkpoint at {position}, and redo is on stable storage up to {flushed}"),
    )?;
    let location = sga.log_files.place_of(position);
    sga.control
        .set_checkpoint(sga, waits, CheckpointRecord { position, location })
        .await?;
    sga.statistics.add_checkpoint_position();
    sga.pause(Switch::CheckpointPauses).await;
    sga.log_files.checkpointed(location);
    lgwr::update_room(sga);
    Ok(())
}

/// Makes what DBWR wrote durable, where its writes were not.
pub(crate) async fn flush_datafiles(sga: &Sga) -> Result<()> {
    let planted = sga.settings.has_planted(PlantedFault::DatafilesNotFlushed);
    if sga.settings.instance.write_sync == WriteSync::Checkpoint && !planted {
        sga.flush_datafiles().await?;
    }
    Ok(())
}
