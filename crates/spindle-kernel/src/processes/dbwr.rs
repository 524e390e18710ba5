//! DBWR: the database writers. Each serves its own shards of the buffer cache. A writer makes buffers clean when a
//! quarter of them is dirty or a session finds none free, and from the head of its checkpoint queue when recovery would
//! have to read too far back for them. A batch is handed to the datafiles' devices as one: how much of it is under way
//! together is the access path's business. No block goes out before its redo is on stable storage.

use std::sync::Arc;

use spindle_io::sync::timeout;
use spindle_io::{Completion, IoOutcome, Request, Submission};

use crate::buggify::Switch;
use crate::cache::writing::{Candidate, Sealed};
use crate::error::Result;
use crate::settings::{PlantedFault, TornBlocks, WriteSync};
use crate::sga::Sga;
use crate::wait_event::{ProcessWaits, WaitEvent};

use super::double_write::{AREA_BLOCKS, Area};

/// A writer with nothing to do looks around this often, as Oracle's does.
const IDLE_NS: u64 = 3_000_000_000;

/// One database writer process.
pub(crate) async fn run(sga: Arc<Sga>, number: usize) {
    let waits = sga.waits.register();
    let mut area = match area_of(&sga, number) {
        Ok(area) => area,
        Err(error) => {
            sga.process_failed(&format!("DBW{number}"), &error);
            return;
        }
    };
    loop {
        match work(&sga, &waits, &mut area, number).await {
            Ok(true) => {}
            Ok(false) if sga.health.is_stopping() => return,
            Ok(false) => {
                // Nothing to do: a timeout is as good as a wake-up.
                let _ = timeout(&*sga.env, IDLE_NS, sga.cache.writers().called(number)).await;
            }
            Err(error) => {
                sga.process_failed(&format!("DBW{number}"), &error);
                return;
            }
        }
    }
}

fn area_of(sga: &Sga, number: usize) -> Result<Option<Area>> {
    let areas = sga.storage.double_write.as_ref();
    areas
        .filter(|_| sga.settings.torn_blocks == TornBlocks::DoubleWrite)
        .map(|areas| Area::new(areas, sga.settings.block_bytes, number))
        .transpose()
}

/// Does what is most urgent; false when there is nothing to do.
async fn work(
    sga: &Sga,
    waits: &ProcessWaits,
    area: &mut Option<Area>,
    number: usize,
) -> Result<bool> {
    sga.health.check_failed()?;
    let writers = sga.cache.writers().count();
    let limit = sga.settings.write_batch_blocks;
    let due = sga.cache.due(number, limit);
    if !due.is_empty() {
        // Sessions must not starve while a checkpoint is written.
        if sga.cache.is_awaited(number, writers) {
            let cold = sga.cache.cold_dirty(number, writers, limit);
            write_batch(sga, waits, area, cold).await?;
        }
        write_batch(sga, waits, area, due).await?;
        return Ok(true);
    }
    let is_due = sga.cache.is_awaited(number, writers)
        || sga.cache.is_behind(number, writers)
        || sga.buggify.fires(Switch::DbwrEager);
    if is_due {
        let batch = sga.cache.cold_dirty(number, writers, limit);
        let any = !batch.is_empty();
        write_batch(sga, waits, area, batch).await?;
        return Ok(any);
    }
    Ok(false)
}

/// Writes a batch: when this returns, each of its blocks is on its datafile, or the instance fails.
async fn write_batch(
    sga: &Sga,
    waits: &ProcessWaits,
    area: &mut Option<Area>,
    batch: Vec<Candidate>,
) -> Result<()> {
    let mut result = Ok(());
    if let Some(area) = area {
        let mut rest = batch;
        while result.is_ok() && !rest.is_empty() {
            let after = rest.split_off(rest.len().min(AREA_BLOCKS));
            result = write_twice(sga, waits, area, std::mem::replace(&mut rest, after)).await;
        }
    } else if !batch.is_empty() {
        result = write_once(sga, waits, batch).await;
    }
    sga.cache.writers().batch_written();
    result
}

/// Seals and submits each block of the batch, then waits for those still under way, whatever happened to others. A
/// block is unchangeable only from its own sealing to its own completion.
async fn write_once(sga: &Sga, waits: &ProcessWaits, batch: Vec<Candidate>) -> Result<()> {
    let wait = waits.begin(&*sga.env);
    let mut under_way = UnderWay::with_capacity(batch.len());
    let mut result = Ok(());
    for candidate in batch {
        result = match seal(sga, waits, candidate).await {
            Ok(Some(sealed)) => {
                sga.pause(Switch::DbwrPausesBeforeWrite).await;
                submit(sga, sealed, &mut under_way)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if result.is_err() {
            break;
        }
    }
    result = result.and(finish_all(sga, under_way).await);
    wait.end(WaitEvent::DbFileParallelWrite);
    result
}

/// Seals all blocks of the batch, writes them to the writer's area, and then to their places.
async fn write_twice(
    sga: &Sga,
    waits: &ProcessWaits,
    area: &mut Area,
    batch: Vec<Candidate>,
) -> Result<()> {
    let mut sealed = Vec::with_capacity(batch.len());
    let mut result = Ok(());
    for candidate in batch {
        match seal(sga, waits, candidate).await {
            Ok(block) => sealed.extend(block),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    if result.is_ok() && !sealed.is_empty() {
        result = area.keep(sga, waits, &sealed).await;
    }
    if result.is_err() {
        for block in sealed {
            sga.cache.written(block.candidate, block.bytes, false);
        }
        return result;
    }
    let wait = waits.begin(&*sga.env);
    let mut under_way = UnderWay::with_capacity(sealed.len());
    for block in sealed {
        sga.pause(Switch::DbwrPausesBeforeWrite).await;
        result = result.and(submit(sga, block, &mut under_way));
    }
    result = result.and(finish_all(sga, under_way).await);
    wait.end(WaitEvent::DbFileParallelWrite);
    result
}

type UnderWay = Vec<(Candidate, Completion)>;

/// Takes a block for writing; its redo is on stable storage by then. `None` when it is clean already.
async fn seal(sga: &Sga, waits: &ProcessWaits, candidate: Candidate) -> Result<Option<Sealed>> {
    let Some(sealed) = sga.cache.seal(sga, waits, candidate).await? else {
        return Ok(None);
    };
    let planted = sga.settings.has_planted(PlantedFault::WriteAheadOfRedo);
    if !planted && let Err(error) = sga.log.flush_to(sga, sealed.scn).await {
        sga.cache.written(sealed.candidate, sealed.bytes, false);
        return Err(error);
    }
    Ok(Some(sealed))
}

/// Starts the write of a block to its place.
fn submit(sga: &Sga, sealed: Sealed, under_way: &mut UnderWay) -> Result<()> {
    let Sealed {
        candidate,
        address,
        scn,
        bytes,
    } = sealed;
    let flushed = sga.log.flushed();
    assert!(
        scn <= flushed,
        "block {address} of SCN {scn} goes out before its redo, which is on stable storage up to {flushed}"
    );
    let settings = &sga.settings;
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
    sga.statistics.add_physical_write(block_bytes);
    let device = sga.storage.datafile(address.file);
    match device.submit(request).already() {
        Ok(outcome) => finish(sga, candidate, outcome),
        Err(completion) => {
            under_way.push((candidate, completion));
            Ok(())
        }
    }
}

async fn finish_all(sga: &Sga, under_way: UnderWay) -> Result<()> {
    let mut result = Ok(());
    for (candidate, completion) in under_way {
        result = result.and(finish(sga, candidate, completion.await));
    }
    result
}

fn finish(sga: &Sga, candidate: Candidate, outcome: IoOutcome) -> Result<()> {
    let IoOutcome { result, operation } = outcome;
    sga.cache.written(candidate, operation, result.is_ok());
    Ok(result?)
}
