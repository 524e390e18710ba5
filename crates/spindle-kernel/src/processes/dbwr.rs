//! DBWR: the database writers. Each serves its own shards of the buffer cache. A writer makes buffers clean when a
//! quarter of them is dirty or a session finds none free, and from the head of its checkpoint queue when recovery would
//! have to read too far back for them. How much of a batch is under way together is up to the access path. Writes that
//! no session waits for are the exception: those are few at a time. Blocks that follow each other in a datafile go out
//! as one write. No block goes out before its redo is on stable storage.

use std::sync::Arc;

use spindle_io::sync::timeout;
use spindle_io::{Completion, IoOutcome, Operation, Request, Submission};

use crate::block::BlockAddress;
use crate::buggify::Switch;
use crate::cache::writing::{Candidate, Sealed};
use crate::error::Result;
use crate::probe::{self, Probe};
use crate::settings::{PlantedFault, TornBlocks, WriteSync};
use crate::sga::Sga;
use crate::wait_event::{ProcessWaits, WaitEvent};

use super::double_write::{AREA_BLOCKS, Area};

/// Blocks of one write, at most: half a mebibyte of the usual size.
const RUN_BLOCKS_MAX: usize = 64;
/// A writer with nothing to do looks around this often, as Oracle's does.
const IDLE_NS: u64 = 3_000_000_000;

/// Most writes under way of a writer that no session waits for. See docs/decisions/0090.
const PACED_WRITES_MAX: usize = 8;

/// How much of a batch is under way together.
#[derive(Clone, Copy)]
enum Pace {
    /// All of it, as far as the access path goes.
    Full,
    /// Few writes, so that LGWR's find the device free; all as soon as anyone waits for this writer.
    LeavesRoom(usize),
}

impl Pace {
    fn is_full(self, sga: &Sga) -> bool {
        let writers = sga.cache.writers();
        match self {
            Pace::Full => true,
            Pace::LeavesRoom(number) => {
                writers.are_waited_for() || sga.cache.is_awaited(number, writers.count())
            }
        }
    }
}

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
        .filter(|_| sga.settings.instance.torn_blocks == TornBlocks::DoubleWrite)
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
            write_batch(sga, waits, area, (cold, Pace::Full)).await?;
        }
        write_batch(sga, waits, area, (due, Pace::LeavesRoom(number))).await?;
        return Ok(true);
    }
    let is_due = sga.cache.is_awaited(number, writers)
        || sga.cache.is_behind(number, writers)
        || sga.buggify.fires(Switch::DbwrEager);
    if is_due {
        let batch = sga.cache.cold_dirty(number, writers, limit);
        let any = !batch.is_empty();
        write_batch(sga, waits, area, (batch, Pace::Full)).await?;
        return Ok(any);
    }
    Ok(false)
}

/// Writes a batch: when this returns, each of its blocks is on its datafile, or the instance fails.
async fn write_batch(
    sga: &Sga,
    waits: &ProcessWaits,
    area: &mut Option<Area>,
    (mut batch, pace): (Vec<Candidate>, Pace),
) -> Result<()> {
    batch.sort_by_key(|candidate| candidate.address().to_u64());
    let mut result = Ok(());
    if let Some(area) = area {
        let mut rest = batch;
        while result.is_ok() && !rest.is_empty() {
            let after = rest.split_off(rest.len().min(AREA_BLOCKS));
            let part = std::mem::replace(&mut rest, after);
            result = write_twice(sga, waits, area, (part, pace)).await;
        }
    } else if !batch.is_empty() {
        result = write_once(sga, waits, (batch, pace)).await;
    }
    sga.cache.writers().batch_written();
    result
}

/// Seals and submits each run of the batch, then waits for those still under way, whatever happened to others. A block
/// is unchangeable only from its own sealing to its run's completion, and not at all where a copy of it is written.
async fn write_once(
    sga: &Sga,
    waits: &ProcessWaits,
    (batch, pace): (Vec<Candidate>, Pace),
) -> Result<()> {
    let wait = waits.begin(&*sga.env);
    let mut under_way = UnderWay::with_capacity(batch.len());
    let mut result = Ok(());
    for run in runs(batch, run_blocks_max(sga), Candidate::address) {
        // Before blocks are sealed, for sessions may wait for those.
        result = make_way(sga, pace, &mut under_way).await;
        if result.is_err() {
            break;
        }
        result = match seal_all(sga, waits, run).await {
            Ok(sealed) => submit_runs(sga, (sealed, pace), &mut under_way).await,
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
    (batch, pace): (Vec<Candidate>, Pace),
) -> Result<()> {
    let sealed = seal_all(sga, waits, batch).await?;
    let mut result = Ok(());
    if !sealed.is_empty() {
        result = area.keep(sga, waits, &sealed).await;
    }
    if result.is_err() {
        give_up(sga, sealed);
        return result;
    }
    let wait = waits.begin(&*sga.env);
    let mut under_way = UnderWay::with_capacity(sealed.len());
    result = submit_runs(sga, (sealed, pace), &mut under_way).await;
    result = result.and(finish_all(sga, under_way).await);
    wait.end(WaitEvent::DbFileParallelWrite);
    result
}

type UnderWay = Vec<(Vec<Candidate>, Completion)>;

/// Blocks that one write takes at most. A write that is never to be torn takes one.
fn run_blocks_max(sga: &Sga) -> usize {
    match sga.settings.instance.torn_blocks {
        TornBlocks::Atomic => 1,
        TornBlocks::Images | TornBlocks::DoubleWrite => RUN_BLOCKS_MAX,
    }
}

/// Of blocks in the order of their places, those together that follow each other in a datafile.
fn runs<T>(blocks: Vec<T>, blocks_max: usize, address: impl Fn(&T) -> BlockAddress) -> Vec<Vec<T>> {
    let mut runs: Vec<Vec<T>> = Vec::new();
    for block in blocks {
        let place = address(&block);
        match runs.last_mut() {
            Some(run) if run.len() < blocks_max && follows(address(&run[run.len() - 1]), place) => {
                run.push(block);
            }
            _ => runs.push(vec![block]),
        }
    }
    runs
}

fn follows(before: BlockAddress, block: BlockAddress) -> bool {
    before.file == block.file && before.block + 1 == block.block
}

/// Takes blocks for writing, but for those that are clean by now; their redo is on stable storage then.
async fn seal_all(
    sga: &Sga,
    waits: &ProcessWaits,
    candidates: Vec<Candidate>,
) -> Result<Vec<Sealed>> {
    let mut sealed = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        match sga.cache.seal(sga, waits, candidate).await {
            Ok(block) => sealed.extend(block),
            Err(error) => {
                give_up(sga, sealed);
                return Err(error);
            }
        }
    }
    let newest = sealed.iter().map(|block| block.scn).max();
    let planted = sga.settings.has_planted(PlantedFault::WriteAheadOfRedo);
    if let Some(scn) = newest.filter(|_| !planted)
        && let Err(error) = sga.log.flush_to(sga, scn).await
    {
        give_up(sga, sealed);
        return Err(error);
    }
    Ok(sealed)
}

fn give_up(sga: &Sga, sealed: Vec<Sealed>) {
    for block in sealed {
        sga.cache.written(sga, block.candidate, block.bytes, false);
    }
}

/// Where few writes may be under way: waits for half of them.
async fn make_way(sga: &Sga, pace: Pace, under_way: &mut UnderWay) -> Result<()> {
    if under_way.len() < PACED_WRITES_MAX || pace.is_full(sga) {
        return Ok(());
    }
    probe::hit(Probe::WritesPaced);
    let oldest = under_way.drain(..PACED_WRITES_MAX / 2).collect();
    finish_all(sga, oldest).await
}

/// Starts the writes of blocks to their places, one for each run of them.
async fn submit_runs(
    sga: &Sga,
    (sealed, pace): (Vec<Sealed>, Pace),
    under_way: &mut UnderWay,
) -> Result<()> {
    let mut result = Ok(());
    for run in runs(sealed, run_blocks_max(sga), |block| block.address) {
        result = result.and(make_way(sga, pace, under_way).await);
        sga.pause(Switch::DbwrPausesBeforeWrite).await;
        result = result.and(submit(sga, run, under_way));
    }
    result
}

/// Starts the write of a run of blocks to its place.
fn submit(sga: &Sga, run: Vec<Sealed>, under_way: &mut UnderWay) -> Result<()> {
    let flushed = sga.log.flushed();
    let settings = &sga.settings;
    let address = run[0].address;
    if run.len() > 1 {
        probe::hit(Probe::RunWritten);
    }
    let (mut candidates, mut from) = (Vec::new(), Vec::new());
    for block in run {
        assert!(
            block.scn <= flushed,
            "block {} of SCN {} goes out before its redo, which is on stable storage up to {flushed}",
            block.address,
            block.scn
        );
        candidates.push(block.candidate);
        from.push(block.bytes);
    }
    let durable = settings.instance.write_sync == WriteSync::Dsync
        && !settings.has_planted(PlantedFault::DatafileWriteNotDurable);
    let block_bytes = settings.block_bytes;
    sga.statistics.add_physical_write(from.len() * block_bytes);
    let offset = u64::from(address.block) * block_bytes as u64;
    let mut request = Request::write(offset, from, durable, Submission::Batched);
    if settings.instance.torn_blocks == TornBlocks::Atomic
        && !settings.has_planted(PlantedFault::AtomicNotAsked)
    {
        request = request.atomic();
    }
    let device = sga.storage.datafile(address.file);
    match device.submit(request).already() {
        Ok(outcome) => finish(sga, candidates, outcome),
        Err(completion) => {
            under_way.push((candidates, completion));
            Ok(())
        }
    }
}

async fn finish_all(sga: &Sga, under_way: UnderWay) -> Result<()> {
    let mut result = Ok(());
    for (candidates, completion) in under_way {
        result = result.and(finish(sga, candidates, completion.await));
    }
    result
}

fn finish(sga: &Sga, candidates: Vec<Candidate>, outcome: IoOutcome) -> Result<()> {
    let IoOutcome { result, operation } = outcome;
    let Operation::Write { from, .. } = operation else {
        unreachable!("what was asked for comes back");
    };
    for (candidate, bytes) in candidates.into_iter().zip(from) {
        sga.cache.written(sga, candidate, bytes, result.is_ok());
    }
    Ok(result?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_follow_each_other_are_written_together() {
        let place = |file, block| BlockAddress { file, block };
        let whole = [place(1, 7), place(1, 8), place(1, 9)];
        let batch = [&[place(1, 5)][..], &whole, &[place(2, 10)]].concat();
        let of = |blocks_max| runs(batch.clone(), blocks_max, |address| *address);
        assert_eq!(of(64), [&[place(1, 5)][..], &whole, &[place(2, 10)]]);
        assert_eq!(of(2).len(), 4);
        assert_eq!(of(1).len(), 5);
    }
}
