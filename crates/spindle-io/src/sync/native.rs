//! What waiting and locking are made of in the program: `parking_lot`'s mutex, `std`'s atomics and threads, `tokio`'s
//! `Notify`, and the system's futex.

use std::ops::Deref;
use std::time::Duration;

use rustix::thread::futex;

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
pub use std::sync::atomic;
pub(crate) use std::{thread, thread_local};
pub use tokio::sync::Notify;

/// An atomic word that a thread can sleep on while it has a certain value.
pub(crate) struct FutexWord(atomic::AtomicU32);

impl FutexWord {
    pub(crate) const fn new(value: u32) -> FutexWord {
        FutexWord(atomic::AtomicU32::new(value))
    }

    /// Sleeps if the word is `value`, until woken, or for `timeout`, or for no reason.
    pub(crate) fn sleep_while(&self, value: u32, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| futex::Timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, value, timeout.as_ref());
    }

    /// Wakes one thread that sleeps on the word.
    pub(crate) fn wake_one(&self) {
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }
}

impl Deref for FutexWord {
    type Target = atomic::AtomicU32;
    fn deref(&self) -> &atomic::AtomicU32 {
        &self.0
    }
}

/// True when a test has planted the race of that name, which the model checker must find: never in the program.
#[inline(always)]
pub const fn has_planted(_race: &str) -> bool {
    false
}
