//! I/O slaves: threads that make blocking I/O calls for others, as Oracle's `dbwr_io_slaves` do. Requests wait in one
//! queue, first come first served; whichever slave is free takes the next.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::core::Core;
use super::file::transfer::perform;
use super::prompt;
use crate::device::{Completer, Completion, Fault, IoError, IoFailure, IoOutcome, Operation};
use crate::sync::{Condvar, Mutex, has_planted, thread};

/// Planted race: whether a slave sleeps is looked at before the request is in the queue.
const LOOKS_THEN_QUEUES: &str = "who submits looks for sleepers, then queues";

/// A number of I/O slaves, shared by the devices made with it. Dropping the last handle lets the slaves finish what is
/// queued and waits for them to end.
pub struct SlavePool {
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<()>>,
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
    work: Work,
    completer: Completer,
}

/// What a slave does.
enum Work {
    /// The blocking call of a file device.
    Transfer {
        core: Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    },
    /// A blocking call of another kind.
    Call(Box<dyn FnOnce() -> IoOutcome + Send>),
}

impl Work {
    /// Does it. A panic is a failed I/O, whose buffers are lost: the waiting caller hears why, and the slave continues.
    fn carry_out(self, slave: usize) -> IoOutcome {
        match self {
            // The receiver of the outcome may close the device: it is let go of before that.
            Work::Transfer {
                core,
                offset,
                operation,
                total,
            } => {
                let name = operation.name();
                catch_unwind(AssertUnwindSafe(|| {
                    perform(&core, offset, operation, total)
                }))
                .unwrap_or_else(|panic| {
                    let device = core.name().to_owned();
                    lost(slave, device, (name, offset, total), &*panic)
                })
            }
            Work::Call(call) => catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
                let device = "a device behind I/O slaves".to_owned();
                lost(slave, device, ("call", 0, 0), &*panic)
            }),
        }
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}

/// An I/O in the middle of which its slave panicked.
fn lost(
    slave: usize,
    device: String,
    (operation, offset, bytes): (&'static str, u64, usize),
    panic: &(dyn Any + Send),
) -> IoOutcome {
    IoOutcome {
        result: Err(IoError::from(IoFailure {
            device,
            operation,
            offset,
            bytes,
            reason: format!("ioslave{slave} panicked: {}", words(panic)),
            fault: Fault::Other,
        })),
        operation: Operation::Flush,
    }
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
            let named = thread::Builder::new().name(format!("ioslave{slave}"));
            pool.threads.push(named.spawn(move || {
                prompt::be_prompt();
                shared.serve(slave);
            })?);
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
        self.queue(Work::Transfer {
            core: Arc::clone(core),
            offset,
            operation,
            total,
        })
    }

    /// Has a slave make `call`, which may block; its captures are let go of before its end is reported.
    pub(super) fn call(&self, call: Box<dyn FnOnce() -> IoOutcome + Send>) -> Completion {
        self.queue(Work::Call(call))
    }

    fn queue(&self, work: Work) -> Completion {
        let (completer, completion) = Completion::pending();
        let job = Job { work, completer };
        let mut queue = self.shared.queue.lock();
        let wake = queue.idle > 0;
        if has_planted(LOOKS_THEN_QUEUES) {
            drop(queue);
            queue = self.shared.queue.lock();
        }
        queue.jobs.push_back(job);
        drop(queue);
        if wake {
            self.shared.work.notify_one();
        }
        completion
    }
}

impl Shared {
    fn serve(&self, slave: usize) {
        while let Some(Job { work, completer }) = self.next_job() {
            let outcome = work.carry_out(slave);
            self.served[slave].fetch_add(1, Ordering::Relaxed);
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
        let own = thread::current().id();
        for thread in self.threads.drain(..) {
            // A slave's call may have held the last handle: that slave ends by itself.
            if thread.thread().id() == own {
                continue;
            }
            // What its work panics with is told to who waits for it.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SlavePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SlavePool({} slaves)", self.slaves())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::real::block_on;

    #[test]
    fn a_panic_is_told_to_who_waits_and_the_slave_goes_on() {
        let pool = SlavePool::new(1).unwrap();
        let panics = pool.call(Box::new(|| panic!("planted")));
        let failed = block_on(panics).result.unwrap_err();
        assert_eq!(failed.reason, "ioslave0 panicked: planted");
        let done = pool.call(Box::new(|| IoOutcome {
            result: Ok(()),
            operation: Operation::Flush,
        }));
        assert!(block_on(done).result.is_ok());
    }

    #[test]
    fn a_call_may_let_go_of_the_last_handle() {
        let pool = SlavePool::new(2).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let handle = Arc::clone(&pool);
        drop(pool.call(Box::new(move || {
            // Until the other handle is gone.
            let _ = wait.recv();
            drop(handle);
            sender.send(()).unwrap();
            IoOutcome {
                result: Ok(()),
                operation: Operation::Flush,
            }
        })));
        drop(pool);
        drop(go);
        receiver.recv().expect("the slave did not wait for itself");
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings {
    use super::*;
    use crate::arena::Arena;
    use crate::device::{BlockDevice, Request, Submission};
    use crate::explore::{Shows, explore, must_find, spawn};
    use crate::real::{Caching, FileDevice, Queue, block_on};

    const BLOCK: usize = 512;

    /// Two threads write a block each through two slaves and read them back; then the pool ends.
    fn two_writers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(2 * BLOCK as u64).unwrap();
        let pool = SlavePool::new(2).unwrap();
        let method = Queue::slaves(Arc::clone(&pool));
        let device = Arc::new(FileDevice::open(file.path(), Caching::Buffered, method).unwrap());
        // This is not reached where a planted race ends in a deadlock.
        drop(file);
        let writers = [1, 2].map(|mark: u8| {
            let device = Arc::clone(&device);
            spawn(move || {
                let arena = Arena::new(BLOCK, 1).unwrap();
                let frame = arena.allocate().unwrap();
                let mut hold = frame.try_write_hold().unwrap();
                hold.fill(mark);
                let place = u64::from(mark - 1) * BLOCK as u64;
                let write =
                    Request::write(place, vec![hold.share(BLOCK)], false, Submission::Batched);
                block_on(device.submit(write)).result.unwrap();
                frame
                    .try_write()
                    .expect("the slave gave the frame back")
                    .fill(0);
                let hold = frame.try_write_hold().unwrap();
                let read = Request::read(place, vec![hold], Submission::Batched);
                block_on(device.submit(read)).result.unwrap();
                assert_eq!(frame.try_read().unwrap()[..], [mark; BLOCK]);
            })
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        drop(device);
        let served: u64 = pool.served().iter().sum();
        assert_eq!(served, 4);
        drop(pool);
    }

    #[test]
    fn every_request_is_served_and_the_pool_ends() {
        explore(500, two_writers);
        must_find(LOOKS_THEN_QUEUES, Shows::Deadlock, 2_000, two_writers);
    }
}
