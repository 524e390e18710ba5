//! The timers of one thread: deadlines in order, each with the waker of the sleep that registered it. [`Sleep`] puts
//! itself in when first polled and takes itself out when dropped; `block_on` sleeps no longer than to the nearest. A
//! delayed I/O waits here, too ([`wake_after`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Order of deadlines; the number tells apart sleeps that end at the same instant.
type Key = (Instant, u64);

thread_local! {
    static TIMERS: RefCell<BTreeMap<Key, Waker>> = const { RefCell::new(BTreeMap::new()) };
    static NEXT_NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// A century: as good as forever, and still a deadline that can be computed.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Completes at its deadline. Polled by the thread that polled it first.
pub(super) struct Sleep {
    deadline: Instant,
    registered: Option<Key>,
}

impl Sleep {
    pub(super) fn new(duration: Duration) -> Sleep {
        Sleep {
            deadline: Instant::now() + duration.min(FOREVER),
            registered: None,
        }
    }

    fn deregister(&mut self) {
        if let Some(key) = self.registered.take() {
            // At the end of a thread the timers may be gone before the sleep. The waker is dropped after the borrow.
            let _waker = TIMERS.try_with(|timers| timers.borrow_mut().remove(&key));
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.deadline {
            self.deregister();
            return Poll::Ready(());
        }
        let deadline = self.deadline;
        let key = *self.registered.get_or_insert_with(|| next_key(deadline));
        let _previous =
            TIMERS.with_borrow_mut(|timers| timers.insert(key, context.waker().clone()));
        Poll::Pending
    }
}

fn next_key(deadline: Instant) -> Key {
    (deadline, NEXT_NUMBER.replace(NEXT_NUMBER.get() + 1))
}

/// Has `waker` woken on the calling thread when `delay` has passed and the thread waits in `block_on`.
pub(super) fn wake_after(delay: Duration, waker: Waker) {
    let key = next_key(Instant::now() + delay.min(FOREVER));
    TIMERS.with_borrow_mut(|timers| timers.insert(key, waker));
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.deregister();
    }
}

/// Wakes the sleeps whose time has come; returns how long the next one has to wait.
pub(super) fn fire_due() -> Option<Duration> {
    let now = TIMERS.with_borrow(|timers| (!timers.is_empty()).then(Instant::now))?;
    loop {
        // One at a time, woken outside the borrow: a waker may drop a future that holds another sleep.
        let due = TIMERS.with_borrow_mut(|timers| {
            let first = timers.first_entry()?;
            let deadline = first.key().0;
            Some(if deadline <= now {
                Ok(first.remove())
            } else {
                Err(deadline - now)
            })
        });
        match due? {
            Ok(waker) => waker.wake(),
            Err(wait) => return Some(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    struct Count(AtomicU32);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn due_sleeps_fire_and_dropped_ones_do_not() {
        let count = Arc::new(Count(AtomicU32::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        assert_eq!(fire_due(), None);

        let mut soon = Sleep::new(Duration::from_millis(2));
        let mut dropped = Sleep::new(Duration::from_millis(1));
        let mut late = Sleep::new(Duration::from_secs(3600));
        for sleep in [&mut soon, &mut dropped, &mut late] {
            assert!(Pin::new(sleep).poll(&mut context).is_pending());
        }
        drop(dropped);
        std::thread::sleep(Duration::from_millis(3));
        let next = fire_due().expect("the late one is left");
        assert!(next > Duration::from_secs(3000));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(Pin::new(&mut soon).poll(&mut context).is_ready());
        drop(late);
        assert_eq!(fire_due(), None);
    }

    #[test]
    fn a_sleep_of_for_ever_can_be_asked_for() {
        let mut sleep = Sleep::new(Duration::MAX);
        assert!(
            Pin::new(&mut sleep)
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
}
