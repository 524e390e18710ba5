//! By how many system calls an access path does its I/O, and what else that costs the system.

use serde::{Deserialize, Serialize};

/// What the process of a trial of the embedded database counted beside its I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoCalls {
    /// Reads and writes of the database.
    pub requests: u64,
    /// System calls that carried them out: one for each that blocks its thread, and those by which queues are handed
    /// over and results collected (`io_uring_enter`, `io_submit`, `io_getevents`).
    pub calls: u64,
    /// Those of `calls` that handed over requests in a queue.
    pub submits: u64,
    /// Requests that they handed over.
    pub queued: u64,
    /// Processor time in microseconds of workers of the kernel (`iou-wrk`), to which io_uring gives what would block;
    /// those that ended meanwhile are not in it.
    pub kernel_workers_us: u64,
    /// Times that a thread gave its processor away to wait.
    pub sleeps: u64,
    /// Times that one had to leave it to another thread.
    pub preemptions: u64,
}

impl IoCalls {
    /// The sum over several trials; `None` without any.
    pub fn sum(trials: impl Iterator<Item = IoCalls>) -> Option<IoCalls> {
        trials.reduce(|a, b| IoCalls {
            requests: a.requests + b.requests,
            calls: a.calls + b.calls,
            submits: a.submits + b.submits,
            queued: a.queued + b.queued,
            kernel_workers_us: a.kernel_workers_us + b.kernel_workers_us,
            sleeps: a.sleeps + b.sleeps,
            preemptions: a.preemptions + b.preemptions,
        })
    }

    /// System calls for one request; `None` without requests.
    pub fn per_request(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.calls as f64 / self.requests as f64)
    }

    /// Requests that one call handed over, on average; `None` when nothing was queued.
    pub fn per_submit(&self) -> Option<f64> {
        (self.submits > 0).then(|| self.queued as f64 / self.submits as f64)
    }
}
