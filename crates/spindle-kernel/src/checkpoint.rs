//! CKPT: moves the position from which recovery would start. A checkpoint notes where the redo ends, has DBWR write every
//! block changed before that, flushes the datafiles where writes are not durable by themselves, and only then
//! enters the position in the control file, which frees the log files before it.

use std::sync::Arc;

use spindle_io::Request;
use spindle_io::sync::{Notify, Semaphore, timeout};

use crate::control_file::CheckpointRecord;
use crate::error::Result;
use crate::instance::Shared;
use crate::lgwr;
use crate::settings::WriteSync;
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
        if let Err(error) = perform(&shared, &waits).await {
            shared.fail(format!("CKPT: {error}"));
            return;
        }
    }
}

/// Makes one checkpoint.
pub(crate) async fn perform(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let _turn = shared
        .checkpoint
        .turn
        .acquire()
        .await
        .expect("the semaphore is never closed");
    // Read first: recovery starts reading here, which must not be after the position.
    let location = shared.log_files.location();
    let position = shared.log.begin_checkpoint();
    shared.dbwr.write_before(shared, position).await?;
    flush_datafiles(shared).await?;
    shared
        .control
        .set_checkpoint(shared, waits, CheckpointRecord { position, location })
        .await?;
    shared.log_files.checkpointed(position);
    lgwr::update_room(shared);
    shared.statistics.add_checkpoint();
    Ok(())
}

/// Makes what DBWR wrote durable, where its writes were not.
pub(crate) async fn flush_datafiles(shared: &Shared) -> Result<()> {
    if shared.settings.write_sync == WriteSync::Checkpoint {
        for device in shared.storage.datafiles() {
            device.submit(Request::flush()).await.result?;
        }
    }
    Ok(())
}
