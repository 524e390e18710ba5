//! Whether a limit really holds: for each rate that is limited, I/O of that kind as fast as it goes, for about a
//! second, by a process in the limited group. It counts what it knows to have reached the device, so that nothing else
//! that uses the device is taken for its own. Asked for by the run before the first trial of a limited layout.

use std::fs::{File, OpenOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spindle_engines::EngineError;
use spindle_io::real::{Caching, FileDevice, Queue, SlavePool};
use spindle_io::{Arena, BlockDevice, Completion, Request, Submission};
use spindle_layout::KnownDevice;

use spindle_system::disk::DiskCounters;
use spindle_system::io_limit::Rates;

/// Size of the scratch file.
pub const SCRATCH_BYTES: u64 = 16 << 20;
/// Requests under way together.
const AT_ONCE: usize = 4;
/// Writes that are left in the page cache before a flush, whose own requests may be held and hide that the writes are
/// not.
const WRITES_PER_FLUSH: usize = 32;
/// Length of the requests that rates of requests are tried with: no more than a block.
const SMALL_BYTES: u64 = 4096;
/// Longest of those that rates of bytes are tried with.
const LARGE_BYTES_MAX: u64 = 256 << 10;
/// A second's allowance of bytes is this many requests at least.
const LARGE_PER_SECOND: u64 = 64;
const TIME: Duration = Duration::from_secs(1);

/// What to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitProbe {
    /// The rates to which this process is held.
    pub rates: Rates,
    /// A file of [`SCRATCH_BYTES`] to read and write, or a device to read.
    pub scratch: KnownDevice,
    /// How writes reach the device; `None` for a device that must not be written.
    pub writes: Option<ProbedWrites>,
}

/// How the database's writes reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbedWrites {
    /// Past the page cache.
    Direct,
    /// Through the page cache, each write durable when it returns.
    BufferedDurable,
    /// Left in the page cache, for the kernel to write when it likes.
    BufferedLater,
}

/// Carries the probe out. Returns the first rate that was exceeded, in words; error: why it could not be tried.
pub async fn probe(task: &LimitProbe) -> Result<Option<String>, EngineError> {
    let Rates {
        read_iops,
        write_iops,
        read_bps,
        write_bps,
    } = task.rates;
    let length_of = |bps: u64| {
        let length = (bps / LARGE_PER_SECOND) / SMALL_BYTES * SMALL_BYTES;
        length.clamp(SMALL_BYTES, LARGE_BYTES_MAX)
    };
    let tries = [
        (false, read_iops.map(|_| SMALL_BYTES)),
        (false, read_bps.map(length_of)),
        (true, write_iops.map(|_| SMALL_BYTES)),
        (true, write_bps.map(length_of)),
    ];
    for (is_write, length) in tries {
        let Some(length) = length else { continue };
        let writes = match (is_write, task.writes) {
            (true, None) => continue,
            (true, writes) => writes,
            (false, _) => None,
        };
        let (done, time) = ProbeLoad::new(task, writes, length)?.run().await?;
        if let Some(exceeded) = task.rates.exceeded(&done, time) {
            return Ok(Some(exceeded));
        }
    }
    Ok(None)
}

/// I/O of one kind and length on places of the scratch file that do not touch, so that no two become one request.
struct ProbeLoad {
    device: FileDevice,
    writes: Option<ProbedWrites>,
    arena: Arc<Arena>,
    length: u64,
    scratch: File,
    next: u64,
}

impl ProbeLoad {
    fn new(
        task: &LimitProbe,
        writes: Option<ProbedWrites>,
        length: u64,
    ) -> Result<ProbeLoad, EngineError> {
        let caching = match writes {
            None | Some(ProbedWrites::Direct) => Caching::Direct,
            Some(ProbedWrites::BufferedDurable | ProbedWrites::BufferedLater) => Caching::Buffered,
        };
        let what = "testing the limit";
        let pool = SlavePool::new(AT_ONCE).map_err(|error| EngineError::failed(what, error))?;
        Ok(ProbeLoad {
            device: (task.scratch.open(caching, Queue::slaves(pool)))
                .map_err(|error| EngineError::failed(what, error))?,
            writes,
            arena: Arena::new(length as usize, AT_ONCE)
                .map_err(|error| EngineError::failed(what, error))?,
            length,
            scratch: (task.scratch.open_file(OpenOptions::new().read(true)))
                .map_err(|error| EngineError::failed(what, error))?,
            next: 0,
        })
    }

    /// Works for the time, not counting the first requests, which may have an allowance saved up.
    async fn run(mut self) -> Result<(DiskCounters, Duration), EngineError> {
        self.batch().await?;
        let mut done = DiskCounters::default();
        let began = Instant::now();
        while began.elapsed() < TIME {
            let requests = self.batch().await?;
            match self.writes {
                None => {
                    done.reads += requests;
                    done.read_bytes += requests * self.length;
                }
                Some(_) => {
                    done.writes += requests;
                    done.written_bytes += requests * self.length;
                }
            }
        }
        Ok((done, began.elapsed()))
    }

    /// Some requests together; how many there were. All have reached the device when this returns.
    async fn batch(&mut self) -> Result<u64, EngineError> {
        if self.writes != Some(ProbedWrites::BufferedLater) {
            self.requests().await?;
            return Ok(AT_ONCE as u64);
        }
        for _ in 0..WRITES_PER_FLUSH / AT_ONCE {
            self.requests().await?;
        }
        // Unlike fdatasync, it has the kernel's flusher write, as a dirty page that has grown old does.
        rustix::fs::syncfs(&self.scratch)
            .map_err(|error| EngineError::failed("flushing the scratch file", error))?;
        Ok(WRITES_PER_FLUSH as u64)
    }

    /// Submits some requests together and waits for all of them.
    async fn requests(&mut self) -> Result<(), EngineError> {
        let under_way: Vec<Completion> = (0..AT_ONCE)
            .map(|_| {
                let request = self.request();
                self.device.submit(request)
            })
            .collect();
        for completion in under_way {
            completion.await.result?;
        }
        Ok(())
    }

    fn request(&mut self) -> Request {
        let places = (SCRATCH_BYTES / (2 * self.length)).max(1);
        let offset = self.next % places * 2 * self.length;
        self.next += 1;
        let frame = self.arena.allocate().expect("as many frames as requests");
        let hold = frame.try_write_hold().expect("the frame is nobody else's");
        match self.writes {
            None => Request::read(offset, vec![hold], Submission::Batched),
            Some(writes) => {
                let durable = writes != ProbedWrites::BufferedLater;
                let from = vec![hold.share(self.length as usize)];
                Request::write(offset, from, durable, Submission::Batched)
            }
        }
    }
}
