//! Running a future on its own thread, as a dedicated server process runs its session. The thread polls the future.
//! When it has to wait, the thread sleeps: on a futex when it has no I/O under way itself, else in `io_uring_enter` (or
//! `io_getevents`). That first submits what the future queued, so that a batch goes to the system in one call. Both
//! sleeps end at the nearest timer and when another thread wakes the future; how no wake-up is lost is written in
//! `parker`.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::parker::{self, Parker};
use super::queue::{aio, ring};
use super::timers;
use crate::device::{Completion, IoOutcome};
use crate::sync::{self, thread_local};

/// A thread with I/O under way by both io_uring and libaio waits this long for each in turn: neither call ends when an
/// I/O of the other has. No process of the database is such a thread: each waits for one kind of file at a time, and
/// the files of a kind share one method. So no measured transaction waits here.
const TURN: Duration = Duration::from_millis(1);

/// Planted race: a wake that came while the future was polled is forgotten.
const FORGETS_WAKES_OF_THE_POLL: &str = "a wake during the poll is forgotten";

/// The outcome of an I/O; when it has not ended yet, this thread waits for it.
pub fn outcome_of(io: Completion) -> IoOutcome {
    io.already().unwrap_or_else(block_on)
}

thread_local! {
    static THREAD: Thread = Thread::new();
}

/// What a thread needs to run futures; the waker is made once and reused.
struct Thread {
    parker: Arc<Parker>,
    waker: Waker,
    running: Cell<bool>,
}

impl Thread {
    fn new() -> Thread {
        let parker = parker::own();
        Thread {
            waker: Waker::from(Arc::clone(&parker)),
            parker,
            running: Cell::new(false),
        }
    }

    fn wait_until_woken(&self) {
        loop {
            let timeout = timers::fire_due();
            if self.parker.take() {
                submit_queued();
                return;
            }
            sync::assert_no_latch_held();
            match (ring::in_flight() > 0, aio::in_flight() > 0) {
                (false, false) => self.parker.sleep(timeout),
                (true, false) => ring::wait(&self.parker, timeout),
                (false, true) => aio::wait(&self.parker, timeout),
                (true, true) => {
                    let turn = Some(timeout.map_or(TURN, |timeout| timeout.min(TURN)));
                    ring::wait(&self.parker, turn);
                    aio::wait(&self.parker, turn);
                }
            }
        }
    }
}

fn submit_queued() {
    ring::submit_queued();
    aio::submit_queued();
}

/// Runs `future` to its end on the calling thread, which sleeps while the future waits. I/O that the future queued and
/// did not wait for is under way when this returns. Panics when called from within itself: the inner call would swallow
/// the outer one's wake-ups.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Running<'a>(&'a Cell<bool>);
    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }

    THREAD.with(|thread| {
        assert!(
            !thread.running.replace(true),
            "block_on was called by a future that block_on runs; await it instead"
        );
        let _running = Running(&thread.running);
        let mut future = pin!(future);
        let mut context = Context::from_waker(&thread.waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                submit_queued();
                return output;
            }
            if sync::has_planted(FORGETS_WAKES_OF_THE_POLL) {
                thread.parker.take();
            }
            thread.wait_until_woken();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_future_and_one_that_wakes_itself() {
        assert_eq!(block_on(async { 7 }), 7);
        let mut polls = 0;
        block_on(std::future::poll_fn(|context| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        assert_eq!(polls, 3);
    }

    #[test]
    #[should_panic(expected = "await it instead")]
    fn nesting_is_refused() {
        block_on(async { block_on(async {}) });
    }

    #[test]
    #[should_panic(expected = "a latch is held")]
    fn waiting_with_a_latch_is_refused() {
        let latch = sync::Latch::new(());
        block_on(async {
            let _held = latch.lock();
            std::future::pending::<()>().await;
        });
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings {
    use super::*;
    use crate::explore::{Shows, WAITS_FROM_ITS_FIRST_POLL, explore, must_find, spawn};
    use crate::sync::{Latch, Notify, oneshot};

    /// A counter behind a latch and a call for each step of it: one thread waits for two others.
    fn steps() {
        let shared = Arc::new((Latch::new(0), Notify::new()));
        let threads = [(), ()].map(|()| {
            let shared = Arc::clone(&shared);
            spawn(move || {
                let before = *shared.0.lock();
                *shared.0.lock() += 1;
                shared.1.notify_waiters();
                before
            })
        });
        block_on(async {
            loop {
                let called = shared.1.notified();
                if *shared.0.lock() == 2 {
                    break;
                }
                called.await;
            }
        });
        for thread in threads {
            assert!(thread.join().unwrap() < 2);
        }
    }

    /// A permit for each turn goes to and fro between two threads, and an answer at the end.
    fn turns() {
        let (ping, pong) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (sender, receiver) = oneshot::channel();
        let other = spawn({
            let (ping, pong) = (Arc::clone(&ping), Arc::clone(&pong));
            move || {
                block_on(async {
                    for _ in 0..3 {
                        ping.notified().await;
                        pong.notify_one();
                    }
                });
                sender.send(7).unwrap();
            }
        });
        block_on(async {
            for _ in 0..3 {
                ping.notify_one();
                pong.notified().await;
            }
            assert_eq!(receiver.await, Ok(7));
        });
        other.join().unwrap();
    }

    #[test]
    fn no_call_is_missed() {
        explore(5_000, steps);
        must_find(WAITS_FROM_ITS_FIRST_POLL, Shows::Deadlock, 2_000, steps);
        must_find(FORGETS_WAKES_OF_THE_POLL, Shows::Deadlock, 2_000, steps);
    }

    #[test]
    fn no_turn_is_missed() {
        explore(5_000, turns);
        must_find(FORGETS_WAKES_OF_THE_POLL, Shows::Deadlock, 2_000, turns);
    }
}
