//! How a thread sleeps until it is woken. A [`Parker`] is one thread's; its waker may be anywhere.
//!
//! The protocol, and why no wake-up is lost. `state` is one of EMPTY, NOTIFIED, ON_FUTEX, IN_RING.
//! - *Wake* (any thread): make what it is about visible, then `swap(NOTIFIED, AcqRel)`. What the swap found decides
//!   the rest: ON_FUTEX: one futex wake; IN_RING: one write to the eventfd; EMPTY or NOTIFIED: nothing, the owner is
//!   awake and will look at the state before it sleeps.
//! - *Sleep* (the owner): `compare_exchange(EMPTY -> ON_FUTEX | IN_RING)`. It fails when a wake came since the last
//!   [`Parker::take`], and then the owner does not sleep. After it succeeded, every wake finds the sleeping state and
//!   makes the system call. A wake between the exchange and the sleep is not lost either: the futex call compares the
//!   word with ON_FUTEX itself, and the eventfd stays readable, for which a poll is armed on the ring, or is submitted
//!   by the very call that waits.
//! - *Rise* (the owner): `compare_exchange(ON_FUTEX | IN_RING -> EMPTY)`; a NOTIFIED that came meanwhile stays.
//! - *Take* (the owner, right before it polls its future): `NOTIFIED -> EMPTY` with Acquire, which pairs with the swap
//!   of the wake: what the waker did before is seen by the poll.
//!
//! A write to the eventfd that arrives after the owner rose for another reason costs a later wait one needless turn.

use std::sync::Arc;
use std::sync::OnceLock;
use std::task::Wake;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{BorrowedFd, OwnedFd};

use crate::sync::atomic::Ordering;
use crate::sync::{FutexWord, has_planted, thread_local};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const ON_FUTEX: u32 = 2;
const IN_RING: u32 = 3;

/// Planted race: the owner falls asleep whatever the state is.
const LIES_DOWN_UNSEEING: &str = "the owner lies down without looking";

/// One thread's place to sleep.
pub(super) struct Parker {
    state: FutexWord,
    /// Made when the thread gets a ring.
    ring_wake: OnceLock<OwnedFd>,
}

thread_local! {
    static OWN: Arc<Parker> = Arc::new(Parker::new());
}

/// The calling thread's.
pub(super) fn own() -> Arc<Parker> {
    OWN.with(Arc::clone)
}

impl Parker {
    pub(super) const fn new() -> Parker {
        Parker {
            state: FutexWord::new(EMPTY),
            ring_wake: OnceLock::new(),
        }
    }

    /// Whether a wake came since the last time; consumes it.
    pub(super) fn take(&self) -> bool {
        self.state
            .compare_exchange(NOTIFIED, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Sleeps until woken, or for `timeout`, or for no reason; returns at once when a wake is waiting to be taken.
    pub(super) fn sleep(&self, timeout: Option<Duration>) {
        if !self.lie_down(ON_FUTEX) {
            return;
        }
        // Whatever ends the wait (a wake, the time, a signal, a word that changed), the state says what is to be done.
        self.state.sleep_while(ON_FUTEX, timeout);
        self.rise(ON_FUTEX);
    }

    /// Runs `wait`, which sleeps in the thread's ring with the eventfd polled there; not when a wake is waiting.
    pub(super) fn sleep_in_ring(&self, wait: impl FnOnce()) {
        if self.lie_down(IN_RING) {
            wait();
            self.rise(IN_RING);
        }
    }

    /// The eventfd to poll while asleep in a ring.
    pub(super) fn ring_wake(&self) -> std::io::Result<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        if self.ring_wake.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // Only the owner calls this, so it cannot have been set since.
            let _ = self.ring_wake.set(made);
        }
        Ok(self.ring_wake.get().expect("set above").as_fd())
    }

    #[cfg(test)]
    pub(super) fn is_asleep_in_ring(&self) -> bool {
        self.state.load(Ordering::Acquire) == IN_RING
    }

    fn lie_down(&self, where_to: u32) -> bool {
        if has_planted(LIES_DOWN_UNSEEING) {
            self.state.store(where_to, Ordering::Release);
            return true;
        }
        self.state
            .compare_exchange(EMPTY, where_to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    fn rise(&self, from: u32) {
        let _ = self
            .state
            .compare_exchange(from, EMPTY, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn notify(&self) {
        match self.state.swap(NOTIFIED, Ordering::AcqRel) {
            ON_FUTEX => self.state.wake_one(),
            IN_RING => {
                let fd = self
                    .ring_wake
                    .get()
                    .expect("a thread asleep in its ring has an eventfd");
                // Fails only when the counter is full (2^64 - 2 wakes), and then it is readable anyway.
                let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
            }
            _ => {}
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_wake_before_the_sleep_is_kept() {
        let parker = Arc::new(Parker::new());
        assert!(!parker.take());
        parker.wake_by_ref();
        parker.sleep(None); // would hang if the wake were lost
        parker.sleep_in_ring(|| panic!("does not sleep with a wake waiting"));
        assert!(parker.take());
        assert!(!parker.take(), "taken once");
    }

    #[test]
    fn many_wakes_from_another_thread_are_all_seen() {
        const ROUNDS: u64 = 20_000;
        let parker = Arc::new(Parker::new());
        let (sent, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let waker = std::thread::spawn({
            let (parker, sent, seen) = (Arc::clone(&parker), Arc::clone(&sent), Arc::clone(&seen));
            move || {
                for round in 1..=ROUNDS {
                    sent.store(round, Ordering::Relaxed);
                    parker.wake_by_ref();
                    while seen.load(Ordering::Acquire) < round {
                        std::thread::yield_now();
                    }
                }
            }
        });
        let mut last = 0;
        while last < ROUNDS {
            while !parker.take() {
                parker.sleep(None);
            }
            last = sent.load(Ordering::Relaxed);
            seen.store(last, Ordering::Release);
        }
        waker.join().unwrap();
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings {
    use super::*;
    use crate::explore::{Shows, exhaust, explore, must_find, spawn, yield_now};
    use crate::sync::atomic::AtomicU32;

    /// Two threads each do something and wake the owner, who sleeps until it has seen both.
    fn wakes(wakers: u32, sleep: impl Fn(&Parker)) {
        let parker = Arc::new(Parker::new());
        parker.ring_wake().unwrap();
        let done = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..wakers)
            .map(|_| {
                let (parker, done) = (Arc::clone(&parker), Arc::clone(&done));
                spawn(move || {
                    done.fetch_add(1, Ordering::Relaxed);
                    parker.wake();
                })
            })
            .collect();
        while done.load(Ordering::Relaxed) < wakers {
            while !parker.take() {
                sleep(&parker);
            }
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }

    fn on_the_futex() {
        wakes(2, |parker| parker.sleep(None));
    }

    /// A ring that waits for the eventfd and for nothing else.
    fn in_the_ring() {
        wakes(2, |parker| {
            parker.sleep_in_ring(|| {
                let fd = parker.ring_wake().unwrap();
                while rustix::io::read(fd, &mut [0; 8]).is_err() {
                    yield_now();
                }
            });
        });
    }

    #[test]
    fn no_wake_is_lost_on_the_futex() {
        exhaust(2_000_000, || wakes(1, |parker| parker.sleep(None)));
        explore(5_000, on_the_futex);
        must_find(LIES_DOWN_UNSEEING, Shows::Deadlock, 1_000, on_the_futex);
    }

    #[test]
    fn no_wake_is_lost_in_the_ring() {
        explore(5_000, in_the_ring);
        must_find(LIES_DOWN_UNSEEING, Shows::NoEnd, 1_000, in_the_ring);
    }
}
