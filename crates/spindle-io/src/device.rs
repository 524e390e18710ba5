//! Anything that holds blocks: a file, a raw device, a simulated disk. A [`Request`] owns its buffers until the
//! [`Completion`] gives them back, whatever way the device works: in the call itself (synchronous), by I/O slaves, or
//! by a ring of the kernel's.

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::arena::{ReadHold, WriteHold};
use crate::sync::{Latch, has_planted};

/// The kernel's block layer counts in sectors of this size, whatever the device's own (Linux
/// Documentation/block/stat.rst): sizes in `/sys/block`, block statistics, tables of device-mapper.
pub const LINUX_SECTOR_BYTES: u64 = 512;

/// What every disk writes whole at the least, and the alignment assumed where the system names none. Larger units are
/// for direct writes that ask for atomicity (RWF_ATOMIC), where the system says that the device keeps the promise.
pub const WHOLE_SECTOR_BYTES: u32 = 512;

/// What a device can do, fixed for its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// Offsets, lengths and memory addresses must be multiples of this (1 for a buffered file).
    pub alignment_bytes: u32,
    /// A write of at most this many bytes, a power of two and aligned to its size, that asks for it
    /// ([`Request::atomic`]) is never torn by a power cut. At least [`WHOLE_SECTOR_BYTES`].
    pub atomic_write_bytes: u32,
}

/// How a request may be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submission {
    /// The caller has nothing else to do: a session's single-block read, always its own blocking call.
    Alone,
    /// One of several that may be under way together: the device's method (sync, slaves, async) decides how.
    Batched,
}

/// What is asked of a device. Buffers follow each other on the device from the request's offset.
#[derive(Debug)]
pub enum Operation {
    /// Fill the buffers.
    Read(Vec<WriteHold>),
    /// Write the buffers; `durable` means that completion says "on stable storage" (O_DSYNC).
    Write {
        /// The bytes, in order.
        from: Vec<ReadHold>,
        /// Complete only when a power cut can no longer lose the write.
        durable: bool,
        /// Never to be torn: see [`Limits::atomic_write_bytes`].
        atomic: bool,
    },
    /// Make every write completed before this request durable (`fdatasync`).
    Flush,
}

impl Operation {
    /// Bytes it moves.
    pub fn bytes(&self) -> usize {
        match self {
            Operation::Read(into) => into.iter().map(|hold| hold.len()).sum(),
            Operation::Write { from, .. } => from.iter().map(|hold| hold.len()).sum(),
            Operation::Flush => 0,
        }
    }

    /// `read`, `write` or `flush`.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::Read(_) => "read",
            Operation::Write { .. } => "write",
            Operation::Flush => "flush",
        }
    }
}

/// One I/O.
#[derive(Debug)]
pub struct Request {
    /// First byte on the device; no meaning for a flush.
    pub offset: u64,
    /// What to do.
    pub operation: Operation,
    /// Whether it may be under way together with others.
    pub submission: Submission,
}

impl Request {
    /// A read of consecutive blocks.
    pub fn read(offset: u64, into: Vec<WriteHold>, submission: Submission) -> Request {
        Request {
            offset,
            operation: Operation::Read(into),
            submission,
        }
    }

    /// A write of consecutive blocks.
    pub fn write(
        offset: u64,
        from: Vec<ReadHold>,
        durable: bool,
        submission: Submission,
    ) -> Request {
        Request {
            offset,
            operation: Operation::Write {
                from,
                durable,
                atomic: false,
            },
            submission,
        }
    }

    /// The same write, never to be torn by a power cut; it must be within [`Limits::atomic_write_bytes`].
    pub fn atomic(mut self) -> Request {
        if let Operation::Write { atomic, .. } = &mut self.operation {
            *atomic = true;
        }
        self
    }

    /// A flush of everything written before.
    pub fn flush() -> Request {
        Request {
            offset: 0,
            operation: Operation::Flush,
            submission: Submission::Alone,
        }
    }

    /// Bytes this request moves.
    pub fn bytes(&self) -> usize {
        self.operation.bytes()
    }
}

/// Why an I/O failed, and where: an [`IoFailure`] elsewhere, so that the outcome of every other I/O is small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct IoError(Box<IoFailure>);

/// What an [`IoError`] says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{operation} of {bytes} bytes at byte {offset} of {device}: {reason}")]
pub struct IoFailure {
    /// The device's name: a path, or a simulated disk's name.
    pub device: String,
    /// `read`, `write` or `flush`.
    pub operation: &'static str,
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: usize,
    /// The system's own words.
    pub reason: String,
    /// Of which kind it is.
    pub fault: Fault,
}

/// What is decided on when an I/O has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// What holds the device has no room left: a file system, its quota, or a pool of thin volumes.
    NoRoom,
    /// Anything else.
    Other,
}

impl From<IoFailure> for IoError {
    fn from(failure: IoFailure) -> IoError {
        IoError(Box::new(failure))
    }
}

impl IoError {
    /// The same, of the kind that the system's answer is of.
    pub(crate) fn of_kind(mut self, answer: io::ErrorKind) -> IoError {
        self.0.fault = match answer {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Fault::NoRoom,
            _ => Fault::Other,
        };
        self
    }
}

impl Deref for IoError {
    type Target = IoFailure;
    fn deref(&self) -> &IoFailure {
        &self.0
    }
}

/// What became of an I/O; gives the request's buffers back.
#[derive(Debug)]
pub struct IoOutcome {
    /// Whether all of it was done.
    pub result: Result<(), IoError>,
    /// The operation as submitted, buffers included.
    pub operation: Operation,
}

/// Anything that holds blocks.
pub trait BlockDevice: Send + Sync {
    /// The name people know it by.
    fn name(&self) -> &str;

    /// What it can do.
    fn limits(&self) -> Limits;

    /// Starts an I/O. May block until it is done. The I/O continues when the completion is dropped; its buffers are
    /// then given up by the device when it ends.
    fn submit(&self, request: Request) -> Completion;
}

/// Reads consecutive blocks from byte `offset` on. Returns the buffers, filled.
///
/// # Errors
/// The device's; the buffers are given up then.
pub async fn read_blocks(
    device: &dyn BlockDevice,
    offset: u64,
    into: Vec<WriteHold>,
    submission: Submission,
) -> Result<Vec<WriteHold>, IoError> {
    let outcome = device.submit(Request::read(offset, into, submission)).await;
    outcome.result?;
    match outcome.operation {
        Operation::Read(holds) => Ok(holds),
        other => unreachable!(
            "a device gives back what was submitted, not a {}",
            other.name()
        ),
    }
}

/// Planted race: a waiter looks for the outcome, and leaves its waker some time later.
const LOOKS_THEN_LEAVES_WAKER: &str = "who waits looks, then leaves its waker";

/// The end of an I/O to come.
pub struct Completion(State);

enum State {
    Done(Option<IoOutcome>),
    Pending(Arc<Latch<Shared>>),
    Steps(Pin<Box<dyn Future<Output = IoOutcome> + Send>>),
}

#[derive(Default)]
struct Shared {
    outcome: Option<IoOutcome>,
    waker: Option<Waker>,
    follower: Option<(Arc<dyn Follower>, u64)>,
}

/// A device made of devices, which passes I/Os on and must hear of their end whether or not a caller waits for them.
pub(crate) trait Follower: Send + Sync {
    /// The I/O has ended, on whatever thread. `mark` is what the follower gave; the waiting caller is told by `to`, now
    /// or later.
    fn ended(self: Arc<Self>, mark: u64, outcome: IoOutcome, to: Completer);
}

/// The device's half of a pending [`Completion`].
pub struct Completer(Arc<Latch<Shared>>);

impl Completion {
    /// An I/O that ended within `submit`.
    pub fn ready(outcome: IoOutcome) -> Completion {
        Completion(State::Done(Some(outcome)))
    }

    /// The outcome, when the I/O ended within `submit`; else the completion to wait for.
    pub fn already(self) -> Result<IoOutcome, Completion> {
        match self.0 {
            State::Done(Some(outcome)) => Ok(outcome),
            state => Err(Completion(state)),
        }
    }

    /// An I/O of several steps, which proceed while they are awaited.
    pub(crate) fn of_steps(steps: Pin<Box<dyn Future<Output = IoOutcome> + Send>>) -> Completion {
        Completion(State::Steps(steps))
    }

    /// The same completion; `follower` learns of the end first. The I/O must be one under way: see
    /// [`Completion::already`].
    pub(crate) fn followed_by(self, follower: Arc<dyn Follower>, mark: u64) -> Completion {
        let State::Pending(shared) = &self.0 else {
            unreachable!("only an I/O under way is followed")
        };
        let outcome = {
            let mut held = shared.lock();
            let outcome = held.outcome.take();
            if outcome.is_none() {
                held.follower = Some((Arc::clone(&follower), mark));
            }
            outcome
        };
        if let Some(outcome) = outcome {
            follower.ended(mark, outcome, Completer(Arc::clone(shared)));
        }
        self
    }

    /// An I/O under way, and the half with which the device says that it ended.
    pub fn pending() -> (Completer, Completion) {
        let shared = Arc::new(Latch::new(Shared::default()));
        (
            Completer(Arc::clone(&shared)),
            Completion(State::Pending(shared)),
        )
    }
}

impl Completer {
    /// Hands the outcome over and wakes who waits for it.
    pub fn complete(self, outcome: IoOutcome) {
        match self.settle(outcome) {
            Ok(waker) => waker.into_iter().for_each(Waker::wake),
            Err((completer, outcome)) => completer.tell_follower(outcome),
        }
    }

    /// Hands the outcome over; the waker that it returns is still to be woken. Gives both back when a follower is to
    /// learn of it first.
    #[inline]
    pub(crate) fn settle(
        self,
        outcome: IoOutcome,
    ) -> Result<Option<Waker>, (Completer, IoOutcome)> {
        let mut shared = self.0.lock();
        if shared.follower.is_some() {
            drop(shared);
            return Err((self, outcome));
        }
        shared.outcome = Some(outcome);
        Ok(shared.waker.take())
    }

    fn tell_follower(self, outcome: IoOutcome) {
        let follower = self.0.lock().follower.take();
        let (follower, mark) = follower.expect("only the end of the I/O takes its follower");
        follower.ended(mark, outcome, self);
    }
}

impl Future for Completion {
    type Output = IoOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<IoOutcome> {
        match &mut self.0 {
            State::Done(outcome) => {
                Poll::Ready(outcome.take().expect("a completion is awaited once"))
            }
            State::Pending(shared) => {
                let mut held = shared.lock();
                let outcome = held.outcome.take();
                if has_planted(LOOKS_THEN_LEAVES_WAKER) && outcome.is_none() {
                    drop(held);
                    held = shared.lock();
                }
                match outcome {
                    Some(outcome) => Poll::Ready(outcome),
                    None => {
                        held.waker = Some(context.waker().clone());
                        Poll::Pending
                    }
                }
            }
            State::Steps(steps) => steps.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Completion")
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings {
    use super::*;
    use crate::explore::{Shows, exhaust, explore, must_find, spawn};
    use crate::real::block_on;

    /// A device completes an I/O that another thread waits for.
    fn completion() {
        let (completer, completion) = Completion::pending();
        let device = spawn(move || {
            completer.complete(IoOutcome {
                result: Ok(()),
                operation: Operation::Flush,
            });
        });
        assert!(block_on(completion).result.is_ok());
        device.join().unwrap();
    }

    #[test]
    fn every_completion_is_heard_of() {
        exhaust(500_000, completion);
        must_find(LOOKS_THEN_LEAVES_WAKER, Shows::Deadlock, 1_000, completion);
    }

    /// A caller waits for one of two completions and has let the other go.
    #[test]
    fn a_completion_nobody_waits_for_harms_nobody() {
        explore(1_000, || {
            let (completers, completions): (Vec<_>, Vec<_>) =
                [(), ()].map(|()| Completion::pending()).into_iter().unzip();
            let devices = completers.into_iter().map(|completer| {
                spawn(move || {
                    completer.complete(IoOutcome {
                        result: Ok(()),
                        operation: Operation::Flush,
                    });
                })
            });
            let devices: Vec<_> = devices.collect();
            let waited_for = completions.into_iter().next().expect("there are two");
            assert!(block_on(waited_for).result.is_ok());
            devices
                .into_iter()
                .for_each(|device| device.join().unwrap());
        });
    }
}
