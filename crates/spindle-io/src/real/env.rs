//! The real [`Env`]: the monotonic clock, one thread per process, work that costs what it costs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;

use super::block_on::block_on;
use super::facts;
use super::queue::{aio, ring};
use super::timers::Sleep;
use crate::env::{self, Env, Join, LocalFuture, ProcessStart, ProcessorUse};

/// Stack of a process, bytes: many times what one needs, and so small that a thousand cost little address space and
/// never a huge page.
const STACK_BYTES: usize = 256 << 10;

/// What the panic says when a process gets no thread: a catcher knows by this that it was no mistake of the program.
pub const NO_THREAD: &str = "the system has no thread to give";

/// The world of threads and the monotonic clock.
#[derive(Debug)]
pub struct RealEnv {
    began: Instant,
    seed: u64,
}

impl RealEnv {
    /// A world that begins now; `seed` decides its random numbers and nothing else.
    pub fn new(seed: u64) -> Arc<RealEnv> {
        Arc::new(RealEnv {
            began: Instant::now(),
            seed,
        })
    }
}

impl Env for RealEnv {
    fn now(&self) -> u64 {
        // 2^64 ns are 584 years.
        self.began.elapsed().as_nanos() as u64
    }

    /// Must be awaited on the thread that asked for it, inside [`block_on`].
    fn sleep(&self, duration_ns: u64) -> LocalFuture {
        Box::pin(Sleep::new(Duration::from_nanos(duration_ns)))
    }

    fn be_prompt(&self) {
        super::prompt::be_prompt();
    }

    /// A thread of that name. When it has ended, the I/O on its ring has ended too. Panics when the system has no
    /// thread to give, as `std::thread::spawn` does.
    fn spawn(&self, name: &str, start: ProcessStart) -> Join {
        let (sender, join) = Join::pair();
        let body = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| block_on(start())));
            // Before anyone learns of the end: files and locked memory are free then, and not some time later.
            ring::retire();
            aio::retire();
            if ended.is_ok() {
                // The receiver may be gone: a process need not be waited for.
                let _ = sender.send(());
            }
        };
        let named = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK_BYTES);
        named
            .spawn(body)
            .unwrap_or_else(|error| panic!("{NO_THREAD} for {name}: {error}"));
        join
    }

    fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
        env::seeded_rng(self.seed, stream)
    }

    fn processor_use(&self) -> Option<ProcessorUse> {
        facts::processor_use_of_thread()
    }
}
