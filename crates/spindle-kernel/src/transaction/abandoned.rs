//! What sessions leave behind that end in mid-transaction: [`crate::processes::pmon`] rolls it back.

use spindle_io::sync::{Latch, Notify, Semaphore};

use super::Transaction;

/// The transactions of sessions that are no more, and how PMON is called to roll them back.
pub(crate) struct Abandoned {
    pub(crate) transactions: Latch<Vec<Transaction>>,
    pub(crate) wanted: Notify,
    /// One roll-back at a time: the process's own and those at a shutdown.
    pub(crate) turn: Semaphore,
}

impl Abandoned {
    /// No session has died yet.
    pub(crate) fn new() -> Abandoned {
        Abandoned {
            transactions: Latch::default(),
            wanted: Notify::new(),
            turn: Semaphore::new(1),
        }
    }

    /// Takes over the transaction of a session that is no more.
    pub(crate) fn adopt(&self, transaction: Transaction) {
        self.transactions.lock().push(transaction);
        self.wanted.notify_one();
    }

    /// True when nothing is left that could not be rolled back.
    pub(crate) fn is_done(&self) -> bool {
        self.transactions.lock().is_empty()
    }

    /// Wakes PMON, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        self.wanted.notify_one();
    }
}
