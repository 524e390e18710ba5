//! DBWR: the database writers. Each serves its own shards of the buffer cache. A writer makes buffers clean when a quarter
//! of them is dirty or a session finds none free, and from the head of its checkpoint queue when recovery would have to
//! read too far back for them. A batch is handed to the datafiles' devices as one: how much of it is under way together is
//! the access path's business. No block goes out before its redo is on stable storage.

use std::sync::Arc;

use spindle_io::sync::atomic::{AtomicBool, Ordering};
use spindle_io::sync::{Notify, timeout};
use spindle_io::{Completion, Outcome, Request, Submission};

use crate::buffer_cache::writing::{Candidate, Sealed};
use crate::buffer_cache::{BufferCache, Pin};
use crate::error::Result;
use crate::instance::Shared;
use crate::settings::{PlantedFault, WriteSync};
use crate::wait_event::{ProcessWaits, WaitEvent};

/// A writer with nothing to do looks around this often, as Oracle's does.
const IDLE_NS: u64 = 3_000_000_000;

#[derive(Default)]
struct Writer {
    wake: Notify,
    /// A session found no free buffer.
    demand: AtomicBool,
}

/// The writers, as others see them.
pub(crate) struct Dbwr {
    writers: Vec<Writer>,
    /// A batch has been written.
    written: Notify,
}

impl Dbwr {
    /// `writers` writers, not yet running.
    pub(crate) fn new(writers: usize) -> Dbwr {
        Dbwr {
            writers: (0..writers).map(|_| Writer::default()).collect(),
            written: Notify::new(),
        }
    }

    fn writer_of_shard(&self, shard: usize) -> &Writer {
        &self.writers[BufferCache::writer_of_shard(shard, self.writers.len())]
    }

    /// A session needs a free buffer in a shard.
    pub(crate) fn wake_for_demand(&self, shard: usize) {
        let writer = self.writer_of_shard(shard);
        writer.demand.store(true, Ordering::Relaxed);
        writer.wake.notify_one();
    }

    /// A buffer became dirty: its writer starts when too many are.
    pub(crate) fn wake_if_behind(&self, shared: &Shared, pin: &Pin) {
        if let Some(shard) = shared.cache.shard_behind(pin) {
            self.writer_of_shard(shard).wake.notify_one();
        }
    }

    /// Asks for every block to be written that recovery would need redo before `target` for.
    pub(crate) fn raise_target(&self, shared: &Shared, target: u64) {
        for (number, writer) in self.writers.iter().enumerate() {
            if shared.cache.queue(number).raise_target(target) {
                writer.wake.notify_one();
            }
        }
    }

    /// Has these blocks written, and returns when they are.
    pub(crate) async fn write_before(&self, shared: &Shared, target: u64) -> Result<()> {
        self.raise_target(shared, target);
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            shared.health.check()?;
            if !shared.cache.has_before(target) {
                return Ok(());
            }
            written.await;
        }
    }

    /// Wakes the writers, and who waits for them, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        for writer in &self.writers {
            writer.wake.notify_one();
        }
        self.written.notify_waiters();
    }
}

/// One database writer process.
pub(crate) async fn run(shared: Arc<Shared>, number: usize) {
    let waits = shared.waits.register();
    loop {
        match work(&shared, &waits, number).await {
            Ok(true) => {}
            Ok(false) if shared.health.is_stopping() => return,
            Ok(false) => {
                // Nothing to do: a timeout is as good as a wake-up.
                let _ = timeout(
                    &*shared.env,
                    IDLE_NS,
                    shared.dbwr.writers[number].wake.notified(),
                )
                .await;
            }
            Err(error) => {
                shared.process_failed(&format!("DBW{number}"), &error);
                return;
            }
        }
    }
}

/// Does what is most urgent; false when there is nothing to do.
async fn work(shared: &Shared, waits: &ProcessWaits, number: usize) -> Result<bool> {
    shared.health.check_failed()?;
    let writer = &shared.dbwr.writers[number];
    let writers = shared.dbwr.writers.len();
    let limit = shared.settings.write_batch_blocks;
    let due = shared.cache.due(number, limit);
    if !due.is_empty() {
        // Sessions must not starve while a checkpoint is written.
        if writer.demand.swap(false, Ordering::Relaxed) {
            let cold = shared.cache.cold_dirty(number, writers, limit);
            write_batch(shared, waits, cold).await?;
        }
        write_batch(shared, waits, due).await?;
        return Ok(true);
    }
    if writer.demand.swap(false, Ordering::Relaxed) || shared.cache.is_behind(number, writers) {
        let batch = shared.cache.cold_dirty(number, writers, limit);
        let any = !batch.is_empty();
        write_batch(shared, waits, batch).await?;
        return Ok(any);
    }
    Ok(false)
}

/// Seals and submits each block of the batch, then waits for those still under way, whatever happened to others. A block
/// is unchangeable only from its own sealing to its own completion.
async fn write_batch(shared: &Shared, waits: &ProcessWaits, batch: Vec<Candidate>) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let began_ns = shared.env.now();
    let mut under_way: Vec<(Candidate, Completion)> = Vec::with_capacity(batch.len());
    let mut result = Ok(());
    for candidate in batch {
        result = match submit(shared, waits, candidate).await {
            Ok(None) => Ok(()),
            Ok(Some((candidate, completion))) => match completion.already() {
                Ok(outcome) => finish(shared, candidate, outcome),
                Err(completion) => {
                    under_way.push((candidate, completion));
                    Ok(())
                }
            },
            Err(error) => Err(error),
        };
        if result.is_err() {
            break;
        }
    }
    for (candidate, completion) in under_way {
        result = result.and(finish(shared, candidate, completion.await));
    }
    waits.add(WaitEvent::DbFileParallelWrite, shared.env.now() - began_ns);
    shared.dbwr.written.notify_waiters();
    result
}

/// Starts the write of one block, whose redo is on stable storage by then; `None` when it is clean already.
async fn submit(
    shared: &Shared,
    waits: &ProcessWaits,
    candidate: Candidate,
) -> Result<Option<(Candidate, Completion)>> {
    let Some(sealed) = shared.cache.seal(shared, waits, candidate).await? else {
        return Ok(None);
    };
    let Sealed {
        candidate,
        address,
        scn,
        bytes,
    } = sealed;
    let planted = shared.settings.has_planted(PlantedFault::WriteAheadOfRedo);
    if !planted && let Err(error) = shared.log.flush_to(shared, scn).await {
        shared.cache.written(candidate, bytes, false);
        return Err(error);
    }
    let block_bytes = bytes.len();
    let durable = shared.settings.write_sync == WriteSync::Dsync
        && !shared
            .settings
            .has_planted(PlantedFault::DatafileWriteNotDurable);
    let offset = u64::from(address.block) * block_bytes as u64;
    let request = Request::write(offset, vec![bytes], durable, Submission::Batched);
    shared.statistics.add_physical_write(block_bytes);
    let device = shared.storage.datafile(address.file);
    Ok(Some((candidate, device.submit(request))))
}

fn finish(shared: &Shared, candidate: Candidate, outcome: Outcome) -> Result<()> {
    let Outcome { result, operation } = outcome;
    shared.cache.written(candidate, operation, result.is_ok());
    Ok(result?)
}
