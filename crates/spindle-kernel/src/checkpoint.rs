//! CKPT: moves the position from which recovery would begin. Checkpoints are incremental, as Oracle's: DBWR writes what
//! was changed longest ago, all the time, and CKPT notes every few seconds in the control file how far that has come,
//! which frees the log files before it. A full checkpoint, which has DBWR write everything, is made at a shutdown, on
//! demand, and when the ring of log files has no room left.
//!
//! **What must hold.** Let P be the position in the control file, and let I(c) be the record with the last image of a
//! block at or before its change c (or the record that formats the block anew).
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

use spindle_io::sync::{Notify, Semaphore, has_planted, timeout};

use crate::buggify::Switch;
use crate::control_file::CheckpointRecord;
use crate::error::Result;
use crate::instance::Shared;
use crate::lgwr;
use crate::probe::{self, Probe};
use crate::settings::{PlantedFault, WriteSync};
use crate::wait_event::ProcessWaits;

/// Planted race: who waited for its turn to make a checkpoint makes it, whatever has happened since.
pub(crate) const CHECKPOINT_AFTER_FAILURE: &str = "a checkpoint is made after recovery failed";

/// CKPT, as others see it.
pub(crate) struct Checkpoint {
    wanted: Notify,
    /// One at a time: CKPT's own work and checkpoints on demand.
    turn: Semaphore,
}

impl Checkpoint {
    /// No checkpoint is under way.
    pub(crate) fn new() -> Checkpoint {
        Checkpoint {
            wanted: Notify::new(),
            turn: Semaphore::new(1),
        }
    }

    /// Asks CKPT to note the position now, and to make room in the ring of log files if that does not.
    pub(crate) fn request(&self) {
        self.wanted.notify_one();
    }

    /// Wakes CKPT, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        self.wanted.notify_one();
    }
}

/// The checkpoint process.
pub(crate) async fn run(shared: Arc<Shared>) {
    let waits = shared.waits.register();
    loop {
        if !shared.buggify.fires(Switch::CheckpointAtOnce) {
            let progress_ns = shared.settings.checkpoint_progress_ns;
            // Whether asked for or due by time makes no difference.
            let _ = timeout(
                &*shared.env,
                progress_ns,
                shared.checkpoint.wanted.notified(),
            )
            .await;
        }
        if shared.health.is_stopping() {
            return;
        }
        let outcome = progress(&shared, &waits).await;
        if or_fail(&shared, outcome).is_err() {
            return;
        }
    }
}

/// Has DBWR write what has become too old, notes how far it has come, and makes room in the ring if there is none.
async fn progress(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let _turn = turn(shared).await?;
    let now_ns = shared.env.now();
    if let Some(since_ns) = now_ns.checked_sub(shared.settings.checkpoint_interval_ns) {
        let target = shared.log_files.changed_by(since_ns);
        shared.dbwr.raise_target(shared, target);
    }
    let planted = shared
        .settings
        .has_planted(PlantedFault::CheckpointPositionTooFar);
    note_position(shared, waits, planted.then(|| shared.cache.target())).await?;
    if !shared.log.ring_has_room() {
        write_everything(shared, waits).await?;
    }
    Ok(())
}

/// Keeps checkpoints from beginning while the result exists: until all redo is rolled forward, blocks that no buffer
/// holds may lack changes, and a checkpoint would say that they do not.
pub(crate) async fn hold_back(shared: &Shared) -> impl Sized + use<'_> {
    shared
        .checkpoint
        .turn
        .acquire()
        .await
        .expect("the semaphore is never closed")
}

/// The turn to make a checkpoint. Error when the instance has failed meanwhile: recovery perhaps, and what it left
/// behind says nothing of how far the datafiles have come.
async fn turn(shared: &Shared) -> Result<impl Sized + use<'_>> {
    let turn = hold_back(shared).await;
    if !has_planted(CHECKPOINT_AFTER_FAILURE) {
        shared.health.check_failed()?;
    }
    Ok(turn)
}

/// Makes one full checkpoint.
pub(crate) async fn perform(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let outcome = match turn(shared).await {
        Ok(_turn) => write_everything(shared, waits).await,
        Err(error) => Err(error),
    };
    or_fail(shared, outcome)
}

/// A checkpoint that fails fails the instance, whoever asked for it: a system that could not write or flush may forget
/// what it did not write and say yes the next time.
fn or_fail(shared: &Shared, outcome: Result<()>) -> Result<()> {
    if let Err(error) = &outcome {
        shared.process_failed("CKPT", error);
    }
    outcome
}

async fn write_everything(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let end = shared.log.end();
    let planted = shared
        .settings
        .has_planted(PlantedFault::CheckpointDoesNotWait);
    if !planted {
        shared.dbwr.write_before(shared, end).await?;
    }
    note_position(shared, waits, planted.then_some(end)).await?;
    shared.statistics.add_checkpoint();
    Ok(())
}

/// Enters in the control file how far DBWR has come, or `instead` (a planted fault).
async fn note_position(shared: &Shared, waits: &ProcessWaits, instead: Option<u64>) -> Result<()> {
    let mut position = instead.unwrap_or_else(|| shared.cache.settle_lowest(shared));
    let noted = shared.control.read(|contents| contents.checkpoint.position);
    if position <= noted {
        return Ok(());
    }
    shared.pause(Switch::CheckpointPauses).await;
    flush_datafiles(shared).await?;
    shared.pause(Switch::CheckpointPauses).await;
    if shared
        .settings
        .has_planted(PlantedFault::CheckpointTakenLate)
    {
        position = shared.cache.settle_lowest(shared);
    }
    if shared.cache.dirty_buffers() > 0 {
        probe::hit(Probe::CheckpointAdvanced);
    }
    if shared
        .settings
        .has_planted(PlantedFault::CheckpointBeyondRedo)
    {
        position = shared.log.end() + 1;
    }
    let flushed = shared.log.flushed();
    shared.require(
        || position <= flushed,
        || format!("a checkpoint at {position}, and redo is on stable storage up to {flushed}"),
    )?;
    let location = shared.log_files.place_of(position);
    shared
        .control
        .set_checkpoint(shared, waits, CheckpointRecord { position, location })
        .await?;
    shared.statistics.add_checkpoint_position();
    shared.pause(Switch::CheckpointPauses).await;
    shared.log_files.checkpointed(location);
    lgwr::update_room(shared);
    Ok(())
}

/// Makes what DBWR wrote durable, where its writes were not.
pub(crate) async fn flush_datafiles(shared: &Shared) -> Result<()> {
    let planted = shared
        .settings
        .has_planted(PlantedFault::DatafilesNotFlushed);
    if shared.settings.write_sync == WriteSync::Checkpoint && !planted {
        shared.flush_datafiles().await?;
    }
    Ok(())
}
