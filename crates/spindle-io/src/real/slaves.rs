//! I/O slaves: threads that make blocking I/O calls for others, as Oracle's `dbwr_io_slaves` do. Requests wait in one
//! queue, first come first served; whichever slave is free takes the next.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::file::Core;
use super::transfer::perform;
use crate::device::{Completer, Completion, Operation};

/// A number of I/O slaves, shared by the devices made with it. Dropping the last handle lets the slaves finish what is
/// queued and waits for them to end.
pub struct SlavePool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    served: Box<[AtomicU64]>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

struct Job {
    core: Arc<Core>,
    offset: u64,
    operation: Operation,
    total: usize,
    completer: Completer,
}

impl SlavePool {
    /// Starts `slaves` threads (at least 1) named `ioslave0`, `ioslave1`, ... Errors: the system has no thread to give.
    pub fn new(slaves: usize) -> io::Result<Arc<SlavePool>> {
        assert!(slaves > 0, "a pool without slaves would never do anything");
        let served = (0..slaves).map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            served,
        });
        // Made first: should a thread be refused, dropping the pool ends those that started.
        let mut pool = SlavePool {
            shared,
            threads: Vec::with_capacity(slaves),
        };
        for slave in 0..slaves {
            let shared = Arc::clone(&pool.shared);
            let named = std::thread::Builder::new().name(format!("ioslave{slave}"));
            pool.threads.push(named.spawn(move || shared.serve(slave))?);
        }
        Ok(Arc::new(pool))
    }

    /// How many slaves there are.
    pub fn slaves(&self) -> usize {
        self.threads.len()
    }

    /// Requests each slave has served.
    pub fn served(&self) -> Vec<u64> {
        self.shared
            .served
            .iter()
            .map(|served| served.load(Ordering::Relaxed))
            .collect()
    }

    pub(super) fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        let (completer, completion) = Completion::pending();
        let job = Job {
            core: Arc::clone(core),
            offset,
            operation,
            total,
            completer,
        };
        let mut queue = self.shared.queue.lock();
        queue.jobs.push_back(job);
        let wake = queue.idle > 0;
        drop(queue);
        if wake {
            self.shared.work.notify_one();
        }
        completion
    }
}

impl Shared {
    fn serve(&self, slave: usize) {
        while let Some(Job {
            core,
            offset,
            operation,
            total,
            completer,
        }) = self.next_job()
        {
            let outcome = perform(&core, offset, operation, total);
            self.served[slave].fetch_add(1, Ordering::Relaxed);
            // The device may be closed by whoever hears of the end: let go of it first.
            drop(core);
            completer.complete(outcome);
        }
    }

    /// Waits for work; `None` when the pool is closed and nothing is left to do.
    fn next_job(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            self.work.wait(&mut queue);
            queue.idle -= 1;
        }
    }
}

impl Drop for SlavePool {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A slave that panicked has said so; its request's completion is lost and whoever waits for it hangs, which
            // is not made better by a second panic here.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SlavePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SlavePool({} slaves)", self.slaves())
    }
}
