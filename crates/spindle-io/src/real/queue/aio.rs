//! The calling thread's context of the kernel's older asynchronous I/O (io_setup(2), used through libaio by Oracle and
//! InnoDB). Requests are queued and handed over by one `io_submit` when the thread waits (`block_on`), and it waits in
//! `io_getevents`, as those databases do. A poll of the parker's eventfd (Linux 4.18) is always among what is under
//! way, so that another thread can end the wait. As with a ring, a request owns its buffers and its open file until its
//! event has arrived.
//!
//! What the kernel does not make asynchronous, blocks in `io_submit`: every buffered read and write, and direct ones
//! where the file system must allocate. That is how databases meet it, too.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::flights::{Finished, Flight, Flights};
use super::queue_calls::QueueCalls;
use super::unavailable::NoAio;
use crate::device::{Completion, IoOutcome, Operation};
use crate::real::file::core::Core;
use crate::real::file::transfer::{Memory, Transfer};
use crate::real::parker::{self, Parker};

/// Requests under way at once for a thread; as many as InnoDB has for each of its I/O threads.
const DEPTH: usize = 256;
/// The thread's own poll is under way, too.
const EVENTS: usize = DEPTH + 1;
/// Marks the event of the poll on the parker's eventfd.
const WAKE: u64 = u64::MAX;

/// `enum` of linux/aio_abi.h.
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;
const IOCB_CMD_POLL: u16 = 5;
const IOCB_CMD_PREADV: u16 = 7;
const IOCB_CMD_PWRITEV: u16 = 8;

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

thread_local! {
    static CONTEXT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

struct Context {
    id: libc::c_ulong,
    parker: Arc<Parker>,
    flights: Flights<()>,
    /// Flights to be handed over when the thread next waits; `None` stands for the poll.
    queued: Vec<Option<u32>>,
}

/// Queues a read or write of `total` bytes for the calling thread's context.
pub(crate) fn submit(
    core: &Arc<Core>,
    offset: u64,
    operation: Operation,
    total: usize,
) -> Completion {
    let queued = CONTEXT.with_borrow_mut(|place| {
        let context = match place {
            Some(context) => context,
            None => match Context::new() {
                Ok(context) => place.insert(context),
                Err(error) => {
                    let result =
                        Err(core.error(&operation, offset, total, NoAio::of(&error).to_string()));
                    return Completion::ready(IoOutcome { result, operation });
                }
            },
        };
        let (completer, completion) = Completion::pending();
        context.launch(Flight {
            transfer: Transfer::new(offset, operation, total),
            core: Arc::clone(core),
            completer,
            vectors: Vec::new(),
            extra: (),
        });
        completion
    });
    deliver();
    queued
}

/// Requests queued or under way in the calling thread's context.
pub(crate) fn in_flight() -> usize {
    CONTEXT.with_borrow(|context| {
        context
            .as_ref()
            .map_or(0, |context| context.flights.count())
    })
}

/// Hands everything queued to the kernel, without waiting.
pub(crate) fn submit_queued() {
    CONTEXT.with_borrow_mut(|context| context.as_mut().map(Context::submit));
    deliver();
}

/// Submits what is queued and sleeps until an I/O has ended, the parker is woken, or `timeout` has passed.
pub(crate) fn wait(parker: &Parker, timeout: Option<Duration>) {
    CONTEXT.with_borrow_mut(|context| {
        if let Some(context) = context {
            parker.sleep_in_ring(|| context.wait(timeout));
        }
    });
    deliver();
}

/// Closes the calling thread's context, when what is under way in it has ended.
pub(crate) fn retire() {
    drop(CONTEXT.take());
}

fn deliver() {
    let finished = CONTEXT.with_borrow_mut(|context| {
        let context = context.as_mut();
        context.map(|context| context.flights.take_finished())
    });
    let finished = finished.into_iter().flatten();
    finished.for_each(Finished::deliver);
}

/// Whether this process can use the kernel's older asynchronous I/O (libaio); else why not and what would
/// help.
pub fn libaio_available() -> Result<(), NoAio> {
    probe().map_err(|error| NoAio::of(&error))
}

/// Whether this process can have a context. Errors: the system's.
fn probe() -> io::Result<()> {
    setup(1).map(destroy)
}

fn setup(events: usize) -> io::Result<libc::c_ulong> {
    let mut id: libc::c_ulong = 0;
    // SAFETY: `id` outlives the call, and is 0 as io_setup demands.
    let answer = unsafe { libc::syscall(libc::SYS_io_setup, events as libc::c_uint, &raw mut id) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(id)
}

fn destroy(id: libc::c_ulong) {
    // SAFETY: takes a number; the kernel waits for what is under way. An error is of no use here.
    let _ = unsafe { libc::syscall(libc::SYS_io_destroy, id) };
}

impl Context {
    fn new() -> io::Result<Context> {
        let parker = parker::own();
        parker.ring_wake()?;
        Ok(Context {
            id: setup(EVENTS)?,
            parker,
            flights: Flights::new(),
            queued: vec![None],
        })
    }

    fn launch(&mut self, flight: Flight<()>) {
        while self.flights.count() >= DEPTH {
            self.submit();
            self.reap(1, None);
        }
        let index = self.flights.add(flight);
        self.queued.push(Some(index));
    }

    fn wait(&mut self, timeout: Option<Duration>) {
        self.submit();
        if !self.flights.has_finished() {
            self.reap(1, timeout);
        }
    }

    /// Hands over what is queued. A request that the kernel refuses ends here.
    fn submit(&mut self) {
        while !self.queued.is_empty() {
            let queued = std::mem::take(&mut self.queued);
            let blocks: Vec<libc::iocb> = queued.iter().map(|which| self.block(*which)).collect();
            let pointers: Vec<*const libc::iocb> = blocks.iter().map(std::ptr::from_ref).collect();
            // SAFETY: the control blocks live until after the call; what they point to (buffers, vectors, the open
            // file) is owned by their flights until their events have been reaped. The poll points to nothing.
            let answer = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.id,
                    pointers.len() as libc::c_long,
                    pointers.as_ptr(),
                )
            };
            let taken = usize::try_from(answer).unwrap_or(0);
            QueueCalls::count(taken);
            let error = (answer < 0).then(io::Error::last_os_error);
            self.queued = queued[taken..].to_vec();
            if let Some(error) = error {
                self.refused(&error);
            }
        }
    }

    /// The first of the queue was not taken.
    fn refused(&mut self, error: &io::Error) {
        let error = Errno::from_io_error(error).unwrap_or(Errno::IO);
        if matches!(error, Errno::AGAIN | Errno::INTR) {
            // Short of room: completions make some.
            self.reap(usize::from(self.queued.len() < self.flights.count()), None);
            return;
        }
        match self.queued.remove(0) {
            Some(index) => self.answered(index, Err(error)),
            // Without the poll a wake would be lost: nothing can be saved.
            None => panic!(
                "io_submit refuses to poll an eventfd: {error}; Linux 4.18 or later is needed"
            ),
        }
    }

    /// The control block of a flight, or of the poll.
    fn block(&mut self, which: Option<u32>) -> libc::iocb {
        // SAFETY: a structure of numbers, for which zero is a value.
        let mut block: libc::iocb = unsafe { std::mem::zeroed() };
        let Some(index) = which else {
            let fd = self.parker.ring_wake().expect("made with the context");
            block.aio_data = WAKE;
            block.aio_lio_opcode = IOCB_CMD_POLL;
            block.aio_fildes = fd.as_raw_fd() as u32;
            block.aio_buf = libc::POLLIN as u64;
            return block;
        };
        let flight = self.flights.get_mut(index);
        let is_read = flight.transfer.is_read();
        block.aio_data = index.into();
        block.aio_fildes = flight.core.file.raw_fd() as u32;
        block.aio_offset = flight.transfer.position() as i64;
        block.aio_rw_flags = flight.transfer.flags();
        match flight.transfer.memory() {
            Memory::One(piece) => {
                block.aio_lio_opcode = if is_read {
                    IOCB_CMD_PREAD
                } else {
                    IOCB_CMD_PWRITE
                };
                block.aio_buf = piece.iov_base as u64;
                block.aio_nbytes = piece.iov_len as u64;
            }
            Memory::Several(pieces) => {
                flight.vectors = pieces;
                block.aio_lio_opcode = if is_read {
                    IOCB_CMD_PREADV
                } else {
                    IOCB_CMD_PWRITEV
                };
                block.aio_buf = flight.vectors.as_ptr() as u64;
                block.aio_nbytes = flight.vectors.len() as u64;
            }
        }
        block
    }

    /// Takes in events; waits for `least` of them.
    fn reap(&mut self, least: usize, timeout: Option<Duration>) {
        let mut events = [Event::default(); 64];
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: room for as many events as are asked for, and a time or none; both outlive the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                least as libc::c_long,
                events.len() as libc::c_long,
                events.as_mut_ptr(),
                timeout,
            )
        };
        QueueCalls::count(0);
        let Ok(count) = usize::try_from(answer) else {
            let error = io::Error::last_os_error();
            // The kernel owns buffers and does not say until when: nothing can be saved.
            assert_eq!(
                error.raw_os_error(),
                Some(libc::EINTR),
                "io_getevents failed: {error}"
            );
            return;
        };
        for event in &events[..count] {
            if event.data == WAKE {
                self.drain_wakes();
                self.queued.push(None);
                continue;
            }
            let answer = usize::try_from(event.result)
                .map_err(|_| Errno::from_raw_os_error(-event.result as i32));
            self.answered(event.data as u32, answer);
        }
    }

    /// The eventfd is polled by level: read, it is quiet until the next wake.
    fn drain_wakes(&self) {
        let fd = self.parker.ring_wake().expect("made with the context");
        let _ = rustix::io::read(fd, &mut [0; 8]);
    }

    fn answered(&mut self, index: u32, answer: Result<usize, Errno>) {
        if !self.flights.answered(index, answer) {
            self.queued.push(Some(index));
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        while self.flights.count() > 0 {
            self.submit();
            self.reap(1, None);
        }
        destroy(self.id);
        let finished = self.flights.take_finished();
        finished.into_iter().for_each(Finished::deliver);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::arena::Arena;
    use crate::device::{BlockDevice, Request, Submission};
    use crate::env::Env;
    use crate::real::{Caching, FileDevice, Queue, RealEnv, RingConfig, block_on, facts};
    use crate::sync::Notify;

    const BYTES: usize = 4096;

    fn is_missing() -> bool {
        libaio_available()
            .inspect_err(|reason| spindle_harness::skip(reason))
            .is_err()
    }

    fn device(directory: &std::path::Path, name: &str, method: Queue) -> FileDevice {
        let path = directory.join(name);
        File::create_new(&path)
            .and_then(|file| file.set_len(BYTES as u64))
            .unwrap();
        FileDevice::open(&path, Caching::Buffered, method).unwrap()
    }

    fn read(arena: &Arc<Arena>) -> Request {
        let hold = arena.allocate().unwrap().try_write_hold().unwrap();
        Request::read(0, vec![hold], Submission::Batched)
    }

    /// While a request is under way that does not end, other threads and timers are heard.
    #[test]
    fn a_thread_asleep_in_io_getevents_is_woken_by_another() {
        const ROUNDS: u32 = 5_000;
        if is_missing() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let device = device(directory.path(), "file", Queue::libaio());
        let arena = Arena::new(BYTES, 1).unwrap();
        let completion = device.submit(read(&arena));
        // Held back from the kernel: it cannot end.
        let held_back = CONTEXT.with_borrow_mut(|context| {
            let queued = &mut context.as_mut().unwrap().queued;
            queued.pop().unwrap()
        });
        let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let parker = parker::own();
        let other = std::thread::spawn({
            let (ping, pong) = (Arc::clone(&ping), Arc::clone(&pong));
            move || {
                for round in 0..ROUNDS {
                    // Every other time when it is surely asleep, else in the middle of whatever it does.
                    while round % 2 == 0 && !parker.is_asleep_in_ring() {
                        std::thread::yield_now();
                    }
                    ping.notify_one();
                    block_on(pong.notified());
                }
            }
        });
        block_on(async {
            for _ in 0..ROUNDS {
                ping.notified().await;
                assert_eq!(in_flight(), 1, "the read is still under way");
                pong.notify_one();
            }
            RealEnv::new(1).sleep(1_000_000).await;
            CONTEXT.with_borrow_mut(|context| context.as_mut().unwrap().queued.push(held_back));
            completion.await.result.unwrap();
        });
        other.join().unwrap();
    }

    #[test]
    fn a_thread_may_have_both_kinds_under_way() {
        if is_missing() || facts::io_uring_available().is_err() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let ring = Queue::uring(Arc::new(RingConfig::new()));
        let devices = [("a", Queue::libaio()), ("b", ring)]
            .map(|(name, method)| device(directory.path(), name, method));
        let arena = Arena::new(BYTES, 64).unwrap();
        block_on(async {
            for _ in 0..200 {
                let completions: Vec<_> = (0..64)
                    .map(|number| devices[number % 2].submit(read(&arena)))
                    .collect();
                for completion in completions {
                    completion.await.result.unwrap();
                }
            }
        });
    }

    #[test]
    fn what_the_kernel_refuses_ends_in_an_error_and_the_rest_goes_on() {
        if is_missing() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let device = device(directory.path(), "file", Queue::libaio());
        let arena = Arena::new(BYTES, 3).unwrap();
        let write = |is_atomic| {
            let hold = arena.allocate().unwrap().try_read_hold().unwrap();
            let request = Request::write(0, vec![hold], true, Submission::Batched);
            if is_atomic { request.atomic() } else { request }
        };
        // No buffered write can be atomic.
        let completions = [false, true, false].map(|is_atomic| device.submit(write(is_atomic)));
        let ended = block_on(async {
            let mut ended = Vec::new();
            for completion in completions {
                ended.push(completion.await.result.is_ok());
            }
            ended
        });
        assert_eq!(ended, [true, false, true]);
    }
}
