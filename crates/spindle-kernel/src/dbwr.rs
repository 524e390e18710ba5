//! DBWR: the database writers. Each serves its own shards of the buffer cache. A writer makes buffers clean when a
//! quarter of them is dirty or a session finds none free, and from the head of its checkpoint queue when recovery would
//! have to read too far back for them. A batch is handed to the datafiles' devices as one: how much of it is under way
//! together is the access path's business. No block goes out before its redo is on stable storage.

use std::sync::Arc;

use spindle_io::sync::{Notify, timeout};
use spindle_io::{Completion, Outcome, Request, Submission};

use crate::buffer_cache::writing::{Candidate, Sealed};
use crate::buffer_cache::{BufferCache, Pin};
use crate::buggify::Switch;
use crate::double_write::{AREA_BLOCKS, Area};
use crate::error::Result;
use crate::instance::Shared;
use crate::settings::{PlantedFault, TornBlocks, WriteSync};
use crate::wait_event::{ProcessWaits, WaitEvent};

/// A writer with nothing to do looks around this often, as Oracle's does.
const IDLE_NS: u64 = 3_000_000_000;

/// The writers, as others see them.
pub(crate) struct Dbwr {
    /// A call for each writer: it looks what there is to do.
    calls: Vec<Arc<Notify>>,
    /// A batch has been written.
    written: Notify,
}

impl Dbwr {
    /// `writers` writers, not yet running.
    pub(crate) fn new(writers: usize) -> Dbwr {
        Dbwr {
            calls: (0..writers).map(|_| Arc::new(Notify::new())).collect(),
            written: Notify::new(),
        }
    }

    /// By which each writer is called.
    pub(crate) fn calls(&self) -> &[Arc<Notify>] {
        &self.calls
    }

    /// A buffer became dirty: its writer starts when too many are.
    pub(crate) fn wake_if_behind(&self, shared: &Shared, pin: &Pin) {
        if let Some(shard) = shared.cache.shard_behind(pin) {
            self.calls[BufferCache::writer_of_shard(shard, self.calls.len())].notify_one();
        }
    }

    /// Asks for every block to be written that recovery would need redo before `target` for.
    pub(crate) fn raise_target(&self, shared: &Shared, target: u64) {
        for (number, call) in self.calls.iter().enumerate() {
            if shared.cache.queue(number).raise_target(target) {
                call.notify_one();
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
        for call in &self.calls {
            call.notify_one();
        }
        self.written.notify_waiters();
    }
}

/// One database writer process.
pub(crate) async fn run(shared: Arc<Shared>, number: usize) {
    let waits = shared.waits.register();
    let mut area = match area_of(&shared, number) {
        Ok(area) => area,
        Err(error) => {
            shared.process_failed(&format!("DBW{number}"), &error);
            return;
        }
    };
    loop {
        match work(&shared, &waits, &mut area, number).await {
            Ok(true) => {}
            Ok(false) if shared.health.is_stopping() => return,
            Ok(false) => {
                // Nothing to do: a timeout is as good as a wake-up.
                let _ = timeout(&*shared.env, IDLE_NS, shared.dbwr.calls[number].notified()).await;
            }
            Err(error) => {
                shared.process_failed(&format!("DBW{number}"), &error);
                return;
            }
        }
    }
}

fn area_of(shared: &Shared, number: usize) -> Result<Option<Area>> {
    let areas = shared.storage.double_write.as_ref();
    areas
        .filter(|_| shared.settings.torn_blocks == TornBlocks::DoubleWrite)
        .map(|areas| Area::new(areas, shared.settings.block_bytes, number))
        .transpose()
}

/// Does what is most urgent; false when there is nothing to do.
async fn work(
    shared: &Shared,
    waits: &ProcessWaits,
    area: &mut Option<Area>,
    number: usize,
) -> Result<bool> {
    shared.health.check_failed()?;
    let writers = shared.dbwr.calls.len();
    let limit = shared.settings.write_batch_blocks;
    let due = shared.cache.due(number, limit);
    if !due.is_empty() {
        // Sessions must not starve while a checkpoint is written.
        if shared.cache.is_awaited(number, writers) {
            let cold = shared.cache.cold_dirty(number, writers, limit);
            write_batch(shared, waits, area, cold).await?;
        }
        write_batch(shared, waits, area, due).await?;
        return Ok(true);
    }
    let is_due = shared.cache.is_awaited(number, writers)
        || shared.cache.is_behind(number, writers)
        || shared.buggify.fires(Switch::DbwrEager);
    if is_due {
        let batch = shared.cache.cold_dirty(number, writers, limit);
        let any = !batch.is_empty();
        write_batch(shared, waits, area, batch).await?;
        return Ok(any);
    }
    Ok(false)
}

/// Writes a batch: when this returns, each of its blocks is on its datafile, or the instance fails.
async fn write_batch(
    shared: &Shared,
    waits: &ProcessWaits,
    area: &mut Option<Area>,
    batch: Vec<Candidate>,
) -> Result<()> {
    let mut result = Ok(());
    if let Some(area) = area {
        let mut rest = batch;
        while result.is_ok() && !rest.is_empty() {
            let after = rest.split_off(rest.len().min(AREA_BLOCKS));
            result = write_twice(shared, waits, area, std::mem::replace(&mut rest, after)).await;
        }
    } else if !batch.is_empty() {
        result = write_once(shared, waits, batch).await;
    }
    shared.dbwr.written.notify_waiters();
    result
}

/// Seals and submits each block of the batch, then waits for those still under way, whatever happened to others. A
/// block is unchangeable only from its own sealing to its own completion.
async fn write_once(shared: &Shared, waits: &ProcessWaits, batch: Vec<Candidate>) -> Result<()> {
    let wait = waits.begin(&*shared.env);
    let mut under_way = UnderWay::with_capacity(batch.len());
    let mut result = Ok(());
    for candidate in batch {
        result = match seal(shared, waits, candidate).await {
            Ok(Some(sealed)) => {
                shared.pause(Switch::DbwrPausesBeforeWrite).await;
                submit(shared, sealed, &mut under_way)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if result.is_err() {
            break;
        }
    }
    result = result.and(finish_all(shared, under_way).await);
    wait.end(WaitEvent::DbFileParallelWrite);
    result
}

/// Seals all blocks of the batch, writes them to the writer's area, and then to their places.
async fn write_twice(
    shared: &Shared,
    waits: &ProcessWaits,
    area: &mut Area,
    batch: Vec<Candidate>,
) -> Result<()> {
    let mut sealed = Vec::with_capacity(batch.len());
    let mut result = Ok(());
    for candidate in batch {
        match seal(shared, waits, candidate).await {
            Ok(block) => sealed.extend(block),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    if result.is_ok() && !sealed.is_empty() {
        result = area.keep(shared, waits, &sealed).await;
    }
    if result.is_err() {
        for block in sealed {
            shared.cache.written(block.candidate, block.bytes, false);
        }
        return result;
    }
    let wait = waits.begin(&*shared.env);
    let mut under_way = UnderWay::with_capacity(sealed.len());
    for block in sealed {
        shared.pause(Switch::DbwrPausesBeforeWrite).await;
        result = result.and(submit(shared, block, &mut under_way));
    }
    result = result.and(finish_all(shared, under_way).await);
    wait.end(WaitEvent::DbFileParallelWrite);
    result
}

type UnderWay = Vec<(Candidate, Completion)>;

/// Takes a block for writing; its redo is on stable storage by then. `None` when it is clean already.
async fn seal(
    shared: &Shared,
    waits: &ProcessWaits,
    candidate: Candidate,
) -> Result<Option<Sealed>> {
    let Some(sealed) = shared.cache.seal(shared, waits, candidate).await? else {
        return Ok(None);
    };
    let planted = shared.settings.has_planted(PlantedFault::WriteAheadOfRedo);
    if !planted && let Err(error) = shared.log.flush_to(shared, sealed.scn).await {
        shared.cache.written(sealed.candidate, sealed.bytes, false);
        return Err(error);
    }
    Ok(Some(sealed))
}

/// Starts the write of a block to its place.
fn submit(shared: &Shared, sealed: Sealed, under_way: &mut UnderWay) -> Result<()> {
    let Sealed {
        candidate,
        address,
        scn,
        bytes,
    } = sealed;
    let flushed = shared.log.flushed();
    assert!(
        scn <= flushed,
        "block {address} of SCN {scn} goes out before its redo, which is on stable storage up to {flushed}"
    );
    let settings = &shared.settings;
    let block_bytes = bytes.len();
    let durable = settings.write_sync == WriteSync::Dsync
        && !settings.has_planted(PlantedFault::DatafileWriteNotDurable);
    let offset = u64::from(address.block) * block_bytes as u64;
    let mut request = Request::write(offset, vec![bytes], durable, Submission::Batched);
    if settings.torn_blocks == TornBlocks::Atomic
        && !settings.has_planted(PlantedFault::AtomicNotAsked)
    {
        request = request.atomic();
    }
    shared.statistics.add_physical_write(block_bytes);
    let device = shared.storage.datafile(address.file);
    match device.submit(request).already() {
        Ok(outcome) => finish(shared, candidate, outcome),
        Err(completion) => {
            under_way.push((candidate, completion));
            Ok(())
        }
    }
}

async fn finish_all(shared: &Shared, under_way: UnderWay) -> Result<()> {
    let mut result = Ok(());
    for (candidate, completion) in under_way {
        result = result.and(finish(shared, candidate, completion.await));
    }
    result
}

fn finish(shared: &Shared, candidate: Candidate, outcome: Outcome) -> Result<()> {
    let Outcome { result, operation } = outcome;
    shared.cache.written(candidate, operation, result.is_ok());
    Ok(result?)
}
