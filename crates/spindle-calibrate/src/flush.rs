//! How long a flush takes: `fdatasync` after a write of 8 KiB through the page cache, as databases write their logs, by
//! one thread and by many at once. Only in files that were made for it. Each writer goes through its own part again
//! and again, so that no flush has to record a longer file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use spindle_io::real::{Caching, FileDevice};
use spindle_io::{Arena, BlockDevice, Request, Submission};

use crate::error::CalibrateError;
use crate::observe::{Tally, Timing, observe};
use crate::result::Flushed;
use crate::target::Made;

/// Writers at once: one, and many.
pub(crate) const WRITERS: [u32; 2] = [1, 16];
pub(crate) const WRITE_BYTES: usize = 8 << 10;
/// The part that a writer goes through.
pub(crate) const PART_BYTES: u64 = 512 << 10;

/// Holds the load until it is steady; `None` for a target that may not be written.
///
/// # Errors
/// The file cannot be opened, a request failed, or the system refuses memory or threads.
pub(crate) fn measure(
    target: &Made,
    writers: u32,
    timing: Timing,
    interrupted: &AtomicBool,
) -> Result<Option<Flushed>, CalibrateError> {
    let Some(file) = target.to_write(Caching::Buffered)? else {
        return Ok(None);
    };
    let arena = Arena::new(WRITE_BYTES, writers as usize)?;
    let (tally, stop) = (Tally::new(), AtomicBool::new(false));
    let observed = std::thread::scope(|scope| {
        let (file, arena, tally, stop) = (&file, &arena, &tally, &stop);
        let spawned: Vec<_> = (0..writers)
            .map(|writer| {
                let body = move || {
                    write(file, arena, writer, tally, stop)
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
            thread?.join().expect("a writer does not panic")?;
        }
        Ok::<_, CalibrateError>(observed)
    })?;
    let latencies = &observed.latencies;
    Ok(Some(Flushed {
        writers,
        flushes_per_s: observed.per_s,
        mean_us: latencies.mean_us(),
        p50_us: latencies.p50_us(),
        p99_us: latencies.p99_us(),
        max_us: latencies.max_us(),
        is_steady: observed.is_steady,
        flushes: observed.count,
    }))
}

/// Writes and flushes until told to stop. The time of the flush alone counts.
fn write(
    file: &FileDevice,
    arena: &Arc<Arena>,
    writer: u32,
    tally: &Tally,
    stop: &AtomicBool,
) -> Result<(), CalibrateError> {
    let frame = arena.allocate().expect("a frame for each writer");
    let hold = frame.try_write_hold().expect("the frame is nobody else's");
    let block = hold.share(WRITE_BYTES);
    let first = u64::from(writer) * PART_BYTES % file.limits().capacity_bytes;
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        let from = vec![block.part(0, WRITE_BYTES)];
        now(
            file,
            Request::write(first + at, from, false, Submission::Alone),
        )?;
        at = (at + WRITE_BYTES as u64) % PART_BYTES;
        let began = Instant::now();
        now(file, Request::flush())?;
        tally.record(writer as usize, began.elapsed());
    }
    Ok(())
}

/// A request that the caller carries out itself.
fn now(file: &FileDevice, request: Request) -> Result<(), CalibrateError> {
    let outcome = file.submit(request).already();
    let outcome = outcome.unwrap_or_else(|_| unreachable!("a request alone ends in the call"));
    outcome.result.map_err(CalibrateError::Request)
}
