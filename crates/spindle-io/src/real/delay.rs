//! [`DelayedDevice`]: a device that takes longer than the one beneath, so that a slow disk can be tried where there is
//! none. As `dm-delay` does, it waits first and then has the I/O made. Who waits is who would wait for the device: the
//! caller of a blocking call, the slave that makes it, or no thread when requests are under way together; then each
//! waits beside the others, from its own submission on, like in a disk with a deep queue.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_text::settings;

use super::queue::method::Queue;
use super::slaves::SlavePool;
use super::timers;
use crate::device::{
    BlockDevice, Completer, Completion, Follower, IoOutcome, Limits, Operation, Request, Submission,
};
use crate::sync::{self, Latch};

const DELAY_US: RangeInclusive<u64> = 1..=10_000_000;

settings! {
    /// How much longer each I/O takes, at least; 0 leaves a kind as it is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct Delay {
        /// Microseconds that each read takes more.
        read_us: u64 = number_or_zero("read_us", "none", DELAY_US),
        /// Microseconds that each write takes more.
        write_us: u64 = number_or_zero("write_us", "none", DELAY_US),
        /// Microseconds that each flush takes more; also each durable write, besides `write_us`.
        flush_us: u64 = number_or_zero("flush_us", "none", DELAY_US),
    }
}

impl Delay {
    /// Whether nothing is delayed.
    pub fn is_none(&self) -> bool {
        *self == Delay::default()
    }

    fn kinds(&self) -> [(&'static str, u64); 3] {
        [
            ("read", self.read_us),
            ("write", self.write_us),
            ("flush", self.flush_us),
        ]
    }

    /// Whether it is made of whole milliseconds, which is all that dm-delay knows.
    pub fn is_in_milliseconds(&self) -> bool {
        self.kinds().iter().all(|(_, time_us)| time_us % 1000 == 0)
    }

    fn of(&self, operation: &Operation) -> Duration {
        Duration::from_micros(match operation {
            Operation::Read(_) => self.read_us,
            Operation::Write { durable: true, .. } => self.write_us.saturating_add(self.flush_us),
            Operation::Write { .. } => self.write_us,
            Operation::Flush => self.flush_us,
        })
    }
}

impl fmt::Display for Delay {
    /// `read 5 ms, flush 250 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds();
        let set = kinds.iter().filter(|(_, time_us)| *time_us > 0);
        let texts: Vec<String> = set
            .map(|(kind, time_us)| match time_us % 1000 {
                0 => format!("{kind} {} ms", time_us / 1000),
                _ => format!("{kind} {time_us} us"),
            })
            .collect();
        f.write_str(&texts.join(", "))
    }
}

/// A device on which every I/O takes longer.
pub struct DelayedDevice {
    inner: Arc<dyn BlockDevice>,
    delay: Delay,
    waits: Waits,
}

/// Who waits for a batched request's delay.
enum Waits {
    /// The caller.
    Caller,
    /// The slave that makes the call.
    Slave(Arc<SlavePool>),
    /// No thread: it is a timer of the caller's thread.
    Nobody,
}

impl DelayedDevice {
    /// `inner`, each I/O delayed by `delay`; `queue` is the one that carries out the batched requests of
    /// `inner`.
    pub fn new(inner: Arc<dyn BlockDevice>, delay: Delay, queue: &Queue) -> DelayedDevice {
        let waits = match queue.pool() {
            Some(pool) => Waits::Slave(Arc::clone(pool)),
            None if queue.method().is_asynchronous() => Waits::Nobody,
            None => Waits::Caller,
        };
        DelayedDevice {
            inner,
            delay,
            waits,
        }
    }
}

impl BlockDevice for DelayedDevice {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    /// A batched request of a method that has several under way together begins when its delay has passed and the
    /// calling thread waits in `block_on`; its completion must be awaited by that same thread.
    fn submit(&self, request: Request) -> Completion {
        sync::assert_no_latch_held();
        let delay = self.delay.of(&request.operation);
        if delay.is_zero() {
            return self.inner.submit(request);
        }
        let alone = request.submission == Submission::Alone
            || matches!(request.operation, Operation::Flush);
        match &self.waits {
            Waits::Slave(pool) if !alone => {
                let inner = Arc::clone(&self.inner);
                pool.call(Box::new(move || {
                    thread::sleep(delay);
                    blocking(&*inner, request)
                }))
            }
            Waits::Nobody if !alone => Waiting::begin(&self.inner, request, delay),
            _ => {
                thread::sleep(delay);
                self.inner.submit(request)
            }
        }
    }
}

/// Has the calling thread make the I/O.
fn blocking(device: &dyn BlockDevice, mut request: Request) -> IoOutcome {
    request.submission = Submission::Alone;
    let ended = device.submit(request).already();
    ended.expect("a request that is submitted alone has ended when submit returns")
}

/// A request whose delay has not passed yet. It belongs to a timer of the thread that submitted it.
struct Waiting(Latch<Option<Start>>);

struct Start {
    device: Arc<dyn BlockDevice>,
    request: Request,
    completer: Completer,
}

impl Waiting {
    fn begin(device: &Arc<dyn BlockDevice>, request: Request, delay: Duration) -> Completion {
        let (completer, completion) = Completion::pending();
        let waiting = Arc::new(Waiting(Latch::new(Some(Start {
            device: Arc::clone(device),
            request,
            completer,
        }))));
        timers::wake_after(delay, Waker::from(waiting));
        completion
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        let Some(start) = self.0.lock().take() else {
            return;
        };
        let Start {
            device,
            request,
            completer,
        } = start;
        match device.submit(request).already() {
            Ok(outcome) => {
                // The receiver of the outcome may close the device: let go of it first.
                drop(device);
                completer.complete(outcome);
            }
            Err(under_way) => {
                let relay = Relay(Latch::new(Some(completer)));
                drop(under_way.followed_by(Arc::new(relay), 0));
            }
        }
    }
}

/// Passes the end of an I/O on to who waits for the delayed one.
struct Relay(Latch<Option<Completer>>);

impl Follower for Relay {
    fn ended(self: Arc<Self>, _mark: u64, outcome: IoOutcome, _nobody: Completer) {
        let completer = self.0.lock().take();
        completer.expect("an I/O ends once").complete(outcome);
    }
}

impl fmt::Debug for DelayedDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "DelayedDevice({}, {:?})",
            self.inner.name(),
            self.delay
        )
    }
}
