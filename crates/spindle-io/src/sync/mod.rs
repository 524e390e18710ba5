//! The waiting and locking that code here and above may use, in one place, so that a model checker can stand in for it.
//! A [`Latch`] is held for a moment and never across a `submit` (which may be a blocking `pread`): a thread-local count
//! of latches held is asserted to be zero there. Waiting is `tokio::sync`'s, whose parts used here know no runtime.
//!
//! What these are made of is in `native`, and with the feature `shuttle` in `modelled`: then every use of a latch, an
//! atomic or a [`Notify`] is a place where the checker may let another thread continue, and `crate::explore` runs a
//! scenario through thousands of such orders. Atomics that only count (statistics, wait events) are `std`'s in both.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

#[cfg(feature = "shuttle")]
pub(crate) mod modelled;
#[cfg(not(feature = "shuttle"))]
mod native;

#[cfg(feature = "shuttle")]
use modelled as primitives;
#[cfg(not(feature = "shuttle"))]
use native as primitives;

pub(crate) use primitives::{Condvar, FutexWord, Mutex, MutexGuard, thread, thread_local};
pub use primitives::{Notify, atomic, has_planted};
pub use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};

pub use crate::env::{Elapsed, timeout};

thread_local! {
    static LATCHES_HELD: Cell<u32> = const { Cell::new(0) };
}

/// Mutual exclusion for a few instructions; waiting for it blocks the thread.
#[derive(Default)]
pub struct Latch<T>(Mutex<T>);

impl<T> Latch<T> {
    /// A free latch around `value`.
    pub const fn new(value: T) -> Latch<T> {
        Latch(Mutex::new(value))
    }

    /// Takes the latch, spinning and then blocking the thread until it is free.
    pub fn lock(&self) -> LatchGuard<'_, T> {
        let guard = self.0.lock();
        LATCHES_HELD.with(|held| held.set(held.get() + 1));
        LatchGuard(guard)
    }
}

/// Holds a [`Latch`] until dropped.
pub struct LatchGuard<'a, T>(MutexGuard<'a, T>);

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
        LATCHES_HELD.with(|held| held.set(held.get() - 1));
    }
}

/// Panics when the calling thread holds a latch: called wherever it may block or switch tasks.
pub fn assert_no_latch_held() {
    assert_eq!(
        LATCHES_HELD.with(Cell::get),
        0,
        "a latch is held across an I/O or a wait"
    );
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings {
    use super::*;
    use crate::explore::{explore, spawn, yield_now};
    use std::sync::Arc;

    #[test]
    fn a_latch_has_one_holder_and_is_counted_for_it_alone() {
        explore(3_000, || {
            let count = Arc::new(Latch::new(0));
            let threads = [(), ()].map(|()| {
                let count = Arc::clone(&count);
                spawn(move || {
                    assert_no_latch_held();
                    let mut held = count.lock();
                    let before = *held;
                    yield_now();
                    *held = before + 1;
                    assert_eq!(LATCHES_HELD.with(Cell::get), 1);
                    drop(held);
                    assert_no_latch_held();
                })
            });
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            assert_eq!(*count.lock(), 2);
        });
    }
}
