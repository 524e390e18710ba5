//! The waiting and locking that code above may use, in one place, so that a model checker can stand in for it.
//! A [`Latch`] is held for a moment and never across a `submit` (which may be a blocking `pread`): a thread-local count
//! of latches held is asserted to be zero there. Waiting is `tokio::sync`'s, whose parts used here know no runtime.

use std::cell::Cell;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::task::Poll;

use crate::env::Env;

pub use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

thread_local! {
    static LATCHES_HELD: Cell<u32> = const { Cell::new(0) };
}

/// Mutual exclusion for a few instructions; waiting for it blocks the thread.
#[derive(Default)]
pub struct Latch<T>(parking_lot::Mutex<T>);

impl<T> Latch<T> {
    /// A free latch around `value`.
    pub const fn new(value: T) -> Latch<T> {
        Latch(parking_lot::Mutex::new(value))
    }

    /// Takes the latch, spinning and then blocking the thread until it is free.
    pub fn lock(&self) -> LatchGuard<'_, T> {
        let guard = self.0.lock();
        LATCHES_HELD.set(LATCHES_HELD.get() + 1);
        LatchGuard(guard)
    }
}

/// Holds a [`Latch`] until dropped.
pub struct LatchGuard<'a, T>(parking_lot::MutexGuard<'a, T>);

impl<T> Deref for LatchGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for LatchGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for LatchGuard<'_, T> {
    fn drop(&mut self) {
        LATCHES_HELD.set(LATCHES_HELD.get() - 1);
    }
}

/// Panics when the calling thread holds a latch: called wherever it may block or switch tasks.
pub fn assert_no_latch_held() {
    assert_eq!(
        LATCHES_HELD.get(),
        0,
        "a latch is held across an I/O or a wait"
    );
}

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
