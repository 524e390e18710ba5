//! What waiting and locking are made of under the model checker (feature `shuttle`). All threads of a scenario take
//! turns on one thread of the system, and may change over wherever one of these is used. `shuttle` treats every atomic
//! operation as sequentially consistent: orders that only weaker memory allows are not seen.
//!
//! `tokio`'s `Notify`, `Semaphore`, `oneshot` and `mpsc` are the ones the program uses. A call of theirs is one step,
//! for nothing in them changes over (their insides are proved by `tokio`'s own use of `loom`); around a [`Notify`]
//! there is a place to change over, and the others are used next to atomics or latches.

use std::cell::Cell;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};
use std::time::Duration;

pub use shuttle::sync::atomic;
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub(crate) use shuttle::{thread, thread_local};

std::thread_local! {
    // Of the system's thread: a scenario never leaves the one it began on.
    pub(crate) static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// True when a test has planted the race of that name, which the checker must find.
pub fn has_planted(race: &str) -> bool {
    PLANTED.get() == Some(race)
}

/// `parking_lot`'s face on `shuttle`'s mutex.
#[derive(Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Empty only while its thread waits for a [`Condvar`].
pub(crate) struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("held")
    }
}

/// `parking_lot`'s face on `shuttle`'s condition variable.
pub(crate) struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Condvar {
        Condvar(shuttle::sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect("held");
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// The system's futex: comparing the word and falling asleep are one step for the waker.
pub(crate) struct FutexWord {
    word: AtomicU32,
    queue: Mutex<()>,
    sleeper: Condvar,
}

impl FutexWord {
    pub(crate) const fn new(value: u32) -> FutexWord {
        FutexWord {
            word: AtomicU32::new(value),
            queue: Mutex::new(()),
            sleeper: Condvar::new(),
        }
    }

    pub(crate) fn sleep_while(&self, value: u32, timeout: Option<Duration>) {
        if timeout.is_some() {
            // Time is not modelled: it may have passed as soon as another thread has had a turn.
            return thread::yield_now();
        }
        let mut queue = self.queue.lock();
        if self.word.load(Ordering::SeqCst) == value {
            self.sleeper.wait(&mut queue);
        }
    }

    pub(crate) fn wake_one(&self) {
        let _queue = self.queue.lock();
        self.sleeper.notify_one();
    }
}

impl Deref for FutexWord {
    type Target = AtomicU32;
    fn deref(&self) -> &AtomicU32 {
        &self.word
    }
}

/// `tokio`'s `Notify`, with a place to change over before every call.
pub struct Notify {
    notify: tokio::sync::Notify,
    place: AtomicBool,
}

/// A wait that has begun.
pub struct Notified<'a> {
    notify: &'a Notify,
    /// `None` until it is polled, under a planted race.
    waiting: Option<Pin<Box<tokio::sync::futures::Notified<'a>>>>,
}

/// The planted race of all who wait: what is called out before the first poll is not heard, as if the wait began after
/// the look that decided for it.
pub const WAITS_FROM_ITS_FIRST_POLL: &str = "a wait begins with its first poll";

impl Notify {
    /// Without waiters.
    pub const fn new() -> Notify {
        Notify {
            notify: tokio::sync::Notify::const_new(),
            place: AtomicBool::new(false),
        }
    }

    /// Wakes one who waits, or else the next who will.
    pub fn notify_one(&self) {
        self.change_over();
        self.notify.notify_one();
    }

    /// Wakes everyone who waits.
    pub fn notify_waiters(&self) {
        self.change_over();
        self.notify.notify_waiters();
    }

    /// Begins to wait.
    pub fn notified(&self) -> Notified<'_> {
        self.change_over();
        let late = has_planted(WAITS_FROM_ITS_FIRST_POLL);
        Notified {
            notify: self,
            waiting: (!late).then(|| Box::pin(self.notify.notified())),
        }
    }

    fn change_over(&self) {
        self.place.load(Ordering::SeqCst);
    }
}

impl Default for Notify {
    fn default() -> Notify {
        Notify::new()
    }
}

impl Notified<'_> {
    /// Queues up for a single call, too.
    pub fn enable(mut self: Pin<&mut Self>) -> bool {
        self.waiting
            .as_mut()
            .is_some_and(|waiting| waiting.as_mut().enable())
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let notify = self.notify;
        notify.change_over();
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(notify.notify.notified()));
        waiting.as_mut().poll(context)
    }
}
