//! How long it takes until a write is durable: `fdatasync` after a write through the page cache, as most databases
//! write their logs, or after a direct one, and direct writes that are durable when they end; by one thread and by many
//! at once. Only in files that were made for it. Each writer goes through its own part again and again, so that no
//! flush has to record a longer file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use spindle_io::real::{Caching, FileDevice, FileError, outcome_of};
use spindle_io::{Arena, BlockDevice, Request, Submission};
use spindle_layout::LayoutError;

use crate::error::CalibrateError;
use crate::figures::{DurableBy, Flushed};
use crate::observe::{Observed, Tally, Timing, observe};
use crate::target::ReadyTarget;

/// Writers at once: one, and many.
pub(crate) const WRITERS: [u32; 2] = [1, 16];
pub(crate) const WRITE_BYTES: usize = 8 << 10;
/// The part that a writer goes through.
pub(crate) const PART_BYTES: u64 = 512 << 10;

impl DurableBy {
    fn caching(self) -> Caching {
        match self {
            DurableBy::Fdatasync => Caching::Buffered,
            DurableBy::DirectFdatasync | DurableBy::DirectDsync => Caching::Direct,
        }
    }
}

/// Threads that write and make durable what they wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writers {
    pub(crate) by: DurableBy,
    pub(crate) count: u32,
    /// Length of a write.
    pub(crate) write_bytes: usize,
    /// The part of the file that each goes through.
    pub(crate) part_bytes: u64,
    /// The write counts for the time, too, and not its flush alone.
    pub(crate) with_write: bool,
}

impl Writers {
    /// Writes of 8 KiB, of whose time the flush alone counts, where there is one.
    pub(crate) fn usual(by: DurableBy, count: u32) -> Writers {
        Writers {
            by,
            count,
            write_bytes: WRITE_BYTES,
            part_bytes: PART_BYTES,
            with_write: by == DurableBy::DirectDsync,
        }
    }
}

/// Holds the load until it is steady; `None` for a target that may not be written, and where direct writes are refused.
///
/// # Errors
/// The file cannot be opened, a request failed, or the system refuses memory or threads.
pub(crate) fn measure(
    target: &ReadyTarget,
    writers: Writers,
    timing: Timing,
    interrupted: &AtomicBool,
) -> Result<Option<Observed>, CalibrateError> {
    let file = match target.to_write(writers.by.caching()) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) if is_direct_refused(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let arena = Arena::new(writers.write_bytes, writers.count as usize)?;
    let (tally, stop) = (Tally::new(), AtomicBool::new(false));
    let observed = std::thread::scope(|scope| {
        let (file, arena, tally, stop) = (&file, &arena, &tally, &stop);
        let spawned: Vec<_> = (0..writers.count)
            .map(|writer| {
                let body = move || {
                    write(file, arena, (writers, writer), tally, stop)
                        .inspect_err(|_| stop.store(true, Ordering::Relaxed))
                };
                std::thread::Builder::new().spawn_scoped(scope, body)
            })
            .collect();
        if spawned.iter().any(Result::is_err) {
            stop.store(true, Ordering::Relaxed);
        }
        let observed = observe(tally, timing, stop, interrupted);
        for thread in spawned {
            let thread = thread.map_err(CalibrateError::Thread)?;
            thread.join().expect("a writer does not panic")?;
        }
        Ok::<_, CalibrateError>(observed)
    })?;
    Ok(Some(observed))
}

fn is_direct_refused(error: &CalibrateError) -> bool {
    matches!(
        error,
        CalibrateError::Open(LayoutError::File(FileError::DirectRefused { .. }))
            | CalibrateError::File(FileError::DirectRefused { .. })
    )
}

impl Flushed {
    /// What writers came to on a target.
    pub(crate) fn of(target: String, writers: Writers, observed: &Observed) -> Flushed {
        let latencies = &observed.latencies;
        Flushed {
            target,
            by: writers.by,
            writers: writers.count,
            flushes_per_s: observed.per_s,
            mean_us: latencies.mean_us(),
            p50_us: latencies.p50_us(),
            p99_us: latencies.p99_us(),
            max_us: latencies.max_us(),
            is_steady: observed.is_steady,
            flushes: observed.count,
        }
    }
}

/// Writes and makes durable until told to stop.
fn write(
    file: &FileDevice,
    arena: &Arc<Arena>,
    (writers, writer): (Writers, u32),
    tally: &Tally,
    stop: &AtomicBool,
) -> Result<(), CalibrateError> {
    let length = writers.write_bytes;
    let frame = arena.allocate().expect("a frame for each writer");
    let hold = frame.try_write_hold().expect("the frame is nobody else's");
    let block = hold.share(length);
    let capacity = file.limits().capacity_bytes;
    let part = writers.part_bytes.min(capacity);
    let first = u64::from(writer) * part % capacity;
    let is_durable = writers.by == DurableBy::DirectDsync;
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        let from = vec![block.part(0, length)];
        let began = Instant::now();
        now(
            file,
            Request::write(first + at, from, is_durable, Submission::Alone),
        )?;
        at = (at + length as u64) % part;
        let flushing = Instant::now();
        if !is_durable {
            now(file, Request::flush())?;
        }
        let from = if writers.with_write { began } else { flushing };
        tally.record(writer as usize, from.elapsed());
    }
    Ok(())
}

/// A request that the caller carries out itself.
fn now(file: &FileDevice, request: Request) -> Result<(), CalibrateError> {
    let outcome = outcome_of(file.submit(request));
    outcome.result.map_err(CalibrateError::Request)
}
