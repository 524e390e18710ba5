//! A pause that all clients take together, each between two of its transactions, so that nothing is under way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_io::Env;
use spindle_io::sync::Notify;

/// Interval between checks whether every client pauses.
const LOOK_NS: u64 = 500_000;

/// The pause of all clients.
#[derive(Default)]
pub(super) struct Rest {
    is_asked_for: AtomicBool,
    /// Clients that pause.
    resting: AtomicU64,
    /// It is over.
    is_over: Notify,
}

impl Rest {
    /// Asks for it.
    pub fn ask(&self) {
        self.is_asked_for.store(true, Ordering::Release);
    }

    /// Returns when as many pause as are at work.
    pub async fn begun(&self, env: &dyn Env, at_work: impl Fn() -> u64) {
        while at_work() > self.resting.load(Ordering::Acquire) {
            env.sleep(LOOK_NS).await;
        }
    }

    /// Lets all continue.
    pub fn end(&self) {
        self.is_asked_for.store(false, Ordering::Release);
        self.is_over.notify_waiters();
    }

    pub fn is_asked_for(&self) -> bool {
        self.is_asked_for.load(Ordering::Acquire)
    }

    /// A client pauses as long as that is asked for.
    pub async fn take(&self) {
        self.resting.fetch_add(1, Ordering::AcqRel);
        loop {
            // Made before the look at the flag: a pause that ends after that look ends the wait.
            let over = self.is_over.notified();
            if !self.is_asked_for() {
                break;
            }
            over.await;
        }
        self.resting.fetch_sub(1, Ordering::AcqRel);
    }
}
