//! The world code runs in. Kernel and workload code is plain `async fn` over an [`Env`]: in the real world every
//! process is a thread that blocks on its own future, in the simulated one a task in virtual time.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Poll;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::sync::oneshot;

/// A future that is polled by one thread only, the one that made it.
pub type LocalFuture<T = ()> = Pin<Box<dyn Future<Output = T>>>;

/// What a new process does: called once where the process lives, so that its future never changes threads.
pub type ProcessStart = Box<dyn FnOnce() -> LocalFuture + Send>;

/// The world: its clock, its processes, its chance.
pub trait Env: Send + Sync {
    /// Nanoseconds since the world began; never goes back.
    fn now(&self) -> u64;

    /// Completes when `duration_ns` have passed.
    fn sleep(&self, duration_ns: u64) -> LocalFuture;

    /// Starts a process. `name` (at most 15 bytes are shown by the system) is for people and traces.
    fn spawn(&self, name: &str, start: ProcessStart) -> Join;

    /// A stream of random numbers: the same seed and stream number always give the same numbers.
    fn rng(&self, stream: u64) -> Xoshiro256PlusPlus;

    /// The calling process is waited for by others and computes little: it is to run soon after it is woken. Means
    /// nothing where processes need no processors.
    fn be_prompt(&self) {}

    /// What the calling process has had of the processors since it began. `None` where processes need none, as in the
    /// simulated world, or where the system does not tell. It may take some microseconds: ask seldom.
    fn processor_use(&self) -> Option<ProcessorUse> {
        None
    }
}

/// How long one process ran, and how long it was ready to run and had to wait for a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorUse {
    /// On a processor, nanoseconds.
    pub running_ns: u64,
    /// In the run queue, nanoseconds.
    pub run_queue_ns: u64,
}

/// Waits for a process to end.
pub struct Join(oneshot::Receiver<()>);

impl Join {
    /// The waiting half for a world's `spawn`, and what it must send to (or drop) when the process has ended.
    pub fn pair() -> (oneshot::Sender<()>, Join) {
        let (sender, receiver) = oneshot::channel();
        (sender, Join(receiver))
    }

    /// Returns when the process has ended; `Err` when it ended by a panic or with its world.
    pub async fn ended(self) -> Result<(), ProcessLost> {
        self.0.await.map_err(|_| ProcessLost)
    }
}

/// A process ended without finishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the process ended without finishing (it panicked, or its world ended)")]
pub struct ProcessLost;

/// The time given to [`timeout`] ran out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// Waits for `future`, at most `wait_ns`. The future is looked at first, so one that is ready never times out. It is
/// dropped on a timeout and therefore must be a wait, never an I/O.
pub async fn timeout<F: Future>(
    env: &dyn Env,
    wait_ns: u64,
    future: F,
) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut sleep = env.sleep(wait_ns);
    std::future::poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        sleep.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}

/// The generator all worlds use, seeded by one number for the world and one for the stream.
pub fn seeded_rng(seed: u64, stream: u64) -> Xoshiro256PlusPlus {
    use rand_xoshiro::rand_core::SeedableRng;
    // Weyl-sequence constant of SplitMix64 (Steele, Lea, Flood 2014): neighbouring streams start far apart.
    Xoshiro256PlusPlus::seed_from_u64(
        seed ^ stream.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    )
}
