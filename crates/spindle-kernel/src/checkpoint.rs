//! CKPT: moves the position from which recovery would start. A checkpoint notes where the redo ends, has DBWR write every
//! block changed before that, flushes the datafiles where writes are not durable by themselves, and only then
//! enters the position in the control file, which frees the log files before it.

use std::sync::Arc;

use spindle_io::sync::{Notify, Semaphore, timeout};

use crate::control_file::CheckpointRecord;
use crate::error::Result;
use crate::instance::Shared;
use crate::lgwr;
use crate::settings::{PlantedFault, WriteSync};
use crate::wait_event::ProcessWaits;

/// CKPT, as others see it.
pub(crate) struct Checkpoint {
    wanted: Notify,
    /// One checkpoint at a time: the process's own and those made on demand.
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

    /// Asks for a checkpoint soon.
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
        let interval_ns = shared.settings.checkpoint_interval_ns;
        // Whether asked for or due by time makes no difference.
        let _ = timeout(
            &*shared.env,
            interval_ns,
            shared.checkpoint.wanted.notified(),
        )
        .await;
        if shared.health.is_stopping() {
            return;
        }
        if perform(&shared, &waits).await.is_err() {
            return;
        }
    }
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

/// Makes one checkpoint. When it fails so does the instance, whoever asked for it: a system that could not write or flush
/// may forget what it did not write and say yes the next time.
pub(crate) async fn perform(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let outcome = write_and_enter(shared, waits).await;
    if let Err(error) = &outcome {
        shared.process_failed("CKPT", error);
    }
    outcome
}

async fn write_and_enter(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let _turn = hold_back(shared).await;
    // Read first: recovery starts reading here, which must not be after the position.
    let location = shared.log_files.location();
    let position = shared.log.begin_checkpoint();
    shared.dbwr.write_before(shared, position).await?;
    let is_late = shared
        .settings
        .has_planted(PlantedFault::CheckpointTakenLate);
    let position = if is_late {
        shared.log.begin_checkpoint()
    } else {
        position
    };
    flush_datafiles(shared).await?;
    shared
        .control
        .set_checkpoint(shared, waits, CheckpointRecord { position, location })
        .await?;
    shared.log_files.checkpointed(location);
    lgwr::update_room(shared);
    shared.statistics.add_checkpoint();
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
