//! The calling thread's io_uring. It is made when the thread first submits to it and belongs to that thread alone, so
//! there is no lock. Requests are queued and handed to the kernel when the thread waits (`block_on`), which is also
//! when results are taken in. The ring owns a request, buffers and open file included, until its completion entry has
//! arrived: dropping a `Completion` is harmless, and closing a ring waits for what is under way. Completions are
//! delivered outside the borrow of the ring, because who learns of one may close a file that the ring has registered.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;

use super::flights::{Finished, Flight, Flights};
use super::queue_calls::QueueCalls;
use super::ring_config::RingConfig;
use super::ring_refusal::why_refused;
use super::ring_tables::{Buffers, Files};
use super::unavailable::NoRing;
use crate::device::{Completion, IoOutcome, Operation};
use crate::real::file::core::Core;
use crate::real::file::open_files;
use crate::real::file::transfer::{Memory, Transfer};
use crate::real::parker::{self, Parker};

/// How many system calls a submit-and-wait is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Submits and reaps in one, as ODM's `odm_io` does.
    One,
    /// Submits in one and reaps in another, as `io_submit` and `io_getevents` do.
    Two,
}

thread_local! {
    static RING: RefCell<Option<Ring>> = const { RefCell::new(None) };
}

/// Marks the completion entries of the poll on the parker's eventfd.
const WAKE: u64 = u64::MAX;

struct Ring {
    uring: IoUring,
    parker: Arc<Parker>,
    flights: Flights<Registered>,
    /// More than this at once could overflow the completion queue.
    flight_limit: usize,
    calls: Calls,
    files: Files,
    buffers: Buffers,
}

/// What the ring's tables may have of a request.
struct Registered {
    /// Whether its buffers may be in the table of buffers.
    fixed: bool,
    /// Its file's place in the table of files.
    file: Option<u32>,
}

/// Queues a read or write of `total` bytes on the calling thread's ring.
pub(crate) fn submit(
    core: &Arc<Core>,
    config: &Arc<RingConfig>,
    calls: Calls,
    offset: u64,
    operation: Operation,
    total: usize,
) -> Completion {
    let (queued, has_finished) = RING.with_borrow_mut(|place| {
        let ring = match place {
            Some(ring) => ring,
            None => match Ring::new(RingConfig::ENTRIES) {
                Ok(ring) => place.insert(ring),
                Err(error) => {
                    let result =
                        Err(core.error(&operation, offset, total, why_refused(&error).to_string()));
                    return (Completion::ready(IoOutcome { result, operation }), false);
                }
            },
        };
        ring.calls = calls;
        let (completer, completion) = Completion::pending();
        let flight = Flight {
            transfer: Transfer::new(offset, operation, total),
            core: Arc::clone(core),
            completer,
            vectors: Vec::new(),
            extra: Registered {
                fixed: ring.fixed(config),
                file: ring.registered_file(core, config),
            },
        };
        ring.launch(flight);
        (completion, ring.flights.has_finished())
    });
    if has_finished {
        deliver();
    }
    queued
}

/// Requests queued or under way on the calling thread's ring.
pub(crate) fn in_flight() -> usize {
    RING.with_borrow(|ring| ring.as_ref().map_or(0, |ring| ring.flights.count()))
}

/// Hands everything queued to the kernel, without waiting.
pub(crate) fn submit_queued() {
    RING.with_borrow_mut(|ring| ring.as_mut().map(Ring::submit_queued));
    deliver();
}

/// Submits what is queued and sleeps until an I/O has ended, the parker is woken, or `timeout` has passed.
pub(crate) fn wait(parker: &Parker, timeout: Option<Duration>) {
    RING.with_borrow_mut(|ring| {
        if let Some(ring) = ring {
            parker.sleep_in_ring(|| ring.enter(1, timeout));
            ring.reap();
        }
    });
    deliver();
}

/// Lets the calling thread's ring forget identified files that are closed and memory whose config is gone.
fn forget_closed() {
    // At the end of the thread and inside the ring there is nothing to do: it is about to go, or will do this when it
    // is next used.
    let _ = RING.try_with(|ring| {
        if let Ok(mut ring) = ring.try_borrow_mut()
            && let Some(ring) = ring.as_mut()
        {
            ring.files.forget_closed(&ring.uring.submitter());
            ring.buffers.forget_dropped(&ring.uring.submitter());
        }
    });
}

/// Closes the calling thread's ring, when what is under way on it has ended.
pub(crate) fn retire() {
    drop(RING.take());
}

fn deliver() {
    let mut finished =
        RING.with_borrow_mut(|ring| ring.as_mut().map(|ring| ring.flights.take_finished()));
    if let Some(finished) = &mut finished
        && !finished.is_empty()
    {
        finished.drain(..).for_each(Finished::deliver);
        RING.with_borrow_mut(|ring| {
            if let Some(ring) = ring {
                ring.flights.give_room(finished);
            }
        });
    }
}

impl Ring {
    fn new(entries: u32) -> io::Result<Ring> {
        let uring = build(entries)?;
        // The poll on the eventfd has a completion entry too, and may get a second one before it is armed again.
        let flight_limit = uring.params().cq_entries() as usize - 2;
        let parker = parker::own();
        open_files::on_closing(forget_closed);
        let mut ring = Ring {
            uring,
            parker,
            flights: Flights::new(),
            flight_limit,
            calls: Calls::One,
            files: Files::default(),
            buffers: Buffers::default(),
        };
        ring.arm_wake()?;
        Ok(ring)
    }

    fn fixed(&mut self, config: &Arc<RingConfig>) -> bool {
        let asked = config.has_arenas();
        if asked {
            self.buffers.admit(&self.uring.submitter(), config);
        }
        asked
    }

    fn registered_file(&mut self, core: &Core, config: &RingConfig) -> Option<u32> {
        let identity = core.file.identity?;
        let submitter = self.uring.submitter();
        self.files.forget_closed(&submitter);
        match self.files.place(&submitter, identity, core.file.raw_fd()) {
            Ok(place) => Some(place),
            Err(reason) => {
                config.note_unregistered_file(reason);
                None
            }
        }
    }

    #[inline]
    fn launch(&mut self, flight: Flight<Registered>) {
        while self.flights.count() >= self.flight_limit {
            self.enter(1, None);
            self.reap();
        }
        let index = self.flights.add(flight);
        self.queue_flight(index);
    }

    /// Queues what is left of a request.
    fn queue_flight(&mut self, index: u32) {
        let flight = self.flights.get_mut(index);
        let (position, flags, is_read) = (
            flight.transfer.position(),
            flight.transfer.flags(),
            flight.transfer.is_read(),
        );
        let fd = Fd(flight
            .extra
            .file
            .map_or(flight.core.file.raw_fd(), |place| place as i32));
        let entry = match flight.transfer.memory() {
            Memory::One(piece) => {
                let (start, length) = (
                    piece.iov_base.cast::<u8>(),
                    piece.iov_len.min(1 << 30) as u32,
                );
                match (
                    is_read,
                    flight
                        .extra
                        .fixed
                        .then(|| self.buffers.find(&piece))
                        .flatten(),
                ) {
                    (true, None) => opcode::Read::new(fd, start, length)
                        .offset(position)
                        .build(),
                    (true, Some(slot)) => opcode::ReadFixed::new(fd, start, length, slot)
                        .offset(position)
                        .build(),
                    (false, None) => opcode::Write::new(fd, start, length)
                        .offset(position)
                        .rw_flags(flags)
                        .build(),
                    (false, Some(slot)) => opcode::WriteFixed::new(fd, start, length, slot)
                        .offset(position)
                        .rw_flags(flags)
                        .build(),
                }
            }
            Memory::Several(pieces) => {
                flight.vectors = pieces;
                let (first, count) = (flight.vectors.as_ptr(), flight.vectors.len() as u32);
                match is_read {
                    true => opcode::Readv::new(fd, first, count)
                        .offset(position)
                        .build(),
                    false => opcode::Writev::new(fd, first, count)
                        .offset(position)
                        .rw_flags(flags)
                        .build(),
                }
            }
        };
        let flags = if flight.extra.file.is_some() {
            Flags::FIXED_FILE
        } else {
            Flags::empty()
        };
        self.push(&entry.flags(flags).user_data(index.into()));
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: an entry points to buffers and vectors that its flight owns until the completion entry is reaped,
        // and names a file that the flight keeps open; the poll points to nothing.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            self.call(0, None);
        }
    }

    fn arm_wake(&mut self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let fd = self.parker.ring_wake()?.as_raw_fd();
        let poll = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32)
            .multi(true)
            .build();
        self.push(&poll.user_data(WAKE));
        Ok(())
    }

    fn submit_queued(&mut self) {
        while !self.uring.submission().is_empty() {
            self.call(0, None);
            self.reap();
        }
    }

    /// Submits what is queued and waits for `want` completion entries, in one system call or two.
    fn enter(&mut self, want: usize, timeout: Option<Duration>) {
        let nothing_queued = self.uring.submission().is_empty();
        if nothing_queued && self.uring.completion().len() >= want {
            return;
        }
        if self.calls == Calls::Two && !nothing_queued {
            self.call(0, None);
        }
        self.call(want, timeout);
    }

    fn call(&self, want: usize, timeout: Option<Duration>) {
        let submitter = self.uring.submitter();
        let answer = match timeout {
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&timeout))
            }
            None => submitter.submit_and_wait(want),
        };
        QueueCalls::count(*answer.as_ref().unwrap_or(&0));
        let Err(error) = answer else { return };
        match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR) => {}
            // Short of memory, or completions to be reaped first: the caller reaps and tries again.
            Some(Errno::AGAIN | Errno::BUSY) => std::thread::yield_now(),
            // The kernel owns buffers and does not say until when: nothing can be saved. (Closing the ring will find
            // the same and end the process.)
            _ => panic!("io_uring_enter failed: {error}"),
        }
    }

    /// Takes in every completion entry there is.
    fn reap(&mut self) {
        while let Some(entry) = self.next_entry() {
            if entry.user_data() == WAKE {
                if !cqueue::more(entry.flags()) {
                    self.arm_wake().expect("the eventfd exists");
                }
                continue;
            }
            let index = entry.user_data() as u32;
            let answer = usize::try_from(entry.result())
                .map_err(|_| Errno::from_raw_os_error(-entry.result()));
            if !self.flights.answered(index, answer) {
                self.queue_flight(index);
            }
        }
    }

    fn next_entry(&mut self) -> Option<cqueue::Entry> {
        self.uring.completion().next()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.flights.count() > 0 {
            self.enter(1, None);
            self.reap();
        }
        // The kernel closes a ring some time later; files and locked memory are to be free now. There may be no table.
        let _ = self.uring.submitter().unregister_files();
        let _ = self.uring.submitter().unregister_buffers();
        let finished = self.flights.take_finished();
        finished.into_iter().for_each(Finished::deliver);
    }
}

/// Makes a ring with the cheapest way of completing that the kernel has: completions are processed when the owner asks
/// for them (Linux 6.1), or at its next system call (5.19), or by interrupting it.
pub(in crate::real) fn build(entries: u32) -> io::Result<IoUring> {
    let builder = || {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(entries.next_power_of_two() * 4);
        builder
    };
    let is_old = |answer: &io::Result<IoUring>| {
        answer
            .as_ref()
            .is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL))
    };
    let mut answer = builder()
        .setup_submit_all()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries);
    if is_old(&answer) {
        answer = builder()
            .setup_submit_all()
            .setup_coop_taskrun()
            .build(entries);
    }
    if is_old(&answer) {
        answer = builder().build(entries);
    }
    let uring = answer?;
    // Multishot polls came with the same release as this feature.
    if !uring.params().is_feature_resource_tagging() {
        return Err(io::Error::other("Linux 5.13 or later is needed"));
    }
    Ok(uring)
}

/// Whether this process can use io_uring; else why not and what would help.
pub fn io_uring_available() -> Result<(), NoRing> {
    probe().map_err(|error| why_refused(&error))
}

/// Whether this process can have a ring; makes one and drives an empty request through it.
fn probe() -> io::Result<()> {
    let mut uring = build(4)?;
    let nop = opcode::Nop::new().build();
    // SAFETY: an empty request refers to nothing.
    unsafe { uring.submission().push(&nop) }.map_err(io::Error::other)?;
    uring.submit_and_wait(1)?;
    match uring.completion().next().map(|entry| entry.result()) {
        Some(0) => Ok(()),
        Some(result) => Err(io::Error::from_raw_os_error(-result)),
        None => Err(io::Error::other("an empty request did not complete")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, Frame};
    use crate::device::Limits;
    use crate::env::Env;
    use crate::real::file::identify::OpenFile;
    use crate::real::{RealEnv, block_on};
    use crate::sync::Notify;
    use std::fs::File;
    use std::io::Write;

    /// A pipe as a device: a read of it stays under way until something is written to the other end.
    struct Pipe {
        core: Arc<Core>,
        writer: File,
        config: Arc<RingConfig>,
        frame: Frame,
    }

    const BYTES: usize = 512;

    impl Pipe {
        /// `None`, with a note, where there is no io_uring.
        fn new() -> Option<Pipe> {
            if let Err(reason) = io_uring_available() {
                spindle_harness::skip(reason);
                return None;
            }
            let (reader, writer) = io::pipe().unwrap();
            let file = OpenFile::of(File::from(std::os::fd::OwnedFd::from(reader)));
            let limits = Limits {
                capacity_bytes: u64::MAX,
                alignment_bytes: 1,
                atomic_write_bytes: 1,
            };
            let writer = File::from(std::os::fd::OwnedFd::from(writer));
            let frame = Arena::new(BYTES, 1).unwrap().allocate().unwrap();
            let core = Arc::new(Core::new(Arc::new(file), limits));
            Some(Pipe {
                core,
                writer,
                config: Arc::new(RingConfig::new()),
                frame,
            })
        }

        fn read(&self) -> Completion {
            let operation = Operation::Read(vec![self.frame.try_write_hold().unwrap()]);
            submit(&self.core, &self.config, Calls::Two, 0, operation, BYTES)
        }
    }

    #[test]
    fn a_thread_asleep_in_its_ring_is_woken_by_another() {
        const ROUNDS: u32 = 5_000;
        let Some(mut pipe) = Pipe::new() else { return };
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
        let completion = pipe.read();
        block_on(async {
            for _ in 0..ROUNDS {
                ping.notified().await;
                assert_eq!(in_flight(), 1, "the read is still under way");
                pong.notify_one();
            }
            pipe.writer.write_all(&[7; BYTES]).unwrap();
            completion.await.result.unwrap();
        });
        other.join().unwrap();
        assert_eq!(pipe.frame.try_read().unwrap()[..], [7; BYTES]);
    }

    #[test]
    fn a_sleep_ends_while_io_is_under_way_and_a_short_read_is_continued() {
        let Some(mut pipe) = Pipe::new() else { return };
        let env = RealEnv::new(1);
        let completion = pipe.read();
        block_on(async {
            env.sleep(1_000_000).await;
            for piece in [&[1; 200][..], &[2; 312]] {
                assert_eq!(in_flight(), 1, "the read is still under way");
                pipe.writer.write_all(piece).unwrap();
                env.sleep(1_000_000).await;
            }
            completion.await.result.unwrap();
        });
        let bytes = pipe.frame.try_read().unwrap();
        assert!(bytes[..200] == [1; 200] && bytes[200..] == [2; 312]);
        assert_eq!(pipe.core.counters.read().reads, 1);
    }

    #[test]
    fn the_end_of_a_pipe_is_an_end_of_file() {
        let Some(pipe) = Pipe::new() else { return };
        let completion = pipe.read();
        drop(pipe.writer);
        let said = block_on(completion).result.unwrap_err().to_string();
        assert!(
            said.ends_with("unexpected end of file after 0 bytes"),
            "{said}"
        );
    }
}
