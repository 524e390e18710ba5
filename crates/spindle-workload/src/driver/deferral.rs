//! Transactions that clients put off, as the terminals of TPC-C do with deliveries (clause 2.7.2): a client queues one
//! and continues. Processes beside the clients, each with its own session, carry them out in the order in which they
//! came.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use spindle_io::sync::{Latch, Notify};
use spindle_stats::LatencyHistogram;

/// Clients for each of the processes that carry out what they put off: as many as a warehouse of TPC-C has terminals.
const CLIENTS_PER_PROCESS: usize = 10;

/// Processes that carry out what this many clients put off.
pub fn deferring(clients: usize) -> usize {
    clients.div_ceil(CLIENTS_PER_PROCESS)
}

/// What became of the transactions that clients put off, while measuring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeferredRecord {
    /// From the moment that each was put off to the end of its commit.
    pub completed: LatencyHistogram,
    /// Those that had not begun when measuring ended.
    pub waiting: u64,
}

impl DeferredRecord {
    /// Adds what became of those of other clients.
    pub fn add(&mut self, other: &DeferredRecord) {
        self.completed.merge(&other.completed);
        self.waiting += other.waiting;
    }
}

/// What clients and processes know of each other, whatever the transactions are.
pub(super) struct Deferral {
    /// Clients that may still put something off.
    clients: AtomicU64,
    /// Transactions that have not begun.
    pub(super) waiting: AtomicU64,
    /// Something was put off, or there is something else to look at.
    pub(super) changed: Notify,
    pub(super) record: Latch<DeferredRecord>,
}

impl Deferral {
    pub(super) fn new(clients: usize) -> Deferral {
        Deferral {
            clients: AtomicU64::new(clients as u64),
            waiting: AtomicU64::new(0),
            changed: Notify::new(),
            record: Latch::default(),
        }
    }

    /// Whether all clients have ended, so that nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.clients.load(Ordering::Acquire) == 0
    }
}

/// A client that may put transactions off, until this is dropped.
pub(super) struct PutsOff<'a>(pub(super) Option<&'a Deferral>);

impl Drop for PutsOff<'_> {
    fn drop(&mut self) {
        if let Some(deferral) = self.0 {
            deferral.clients.fetch_sub(1, Ordering::AcqRel);
            deferral.changed.notify_waiters();
        }
    }
}

/// A transaction that was put off.
pub(super) struct Deferred<T> {
    pub txn: T,
    /// The place of the client that put it off.
    pub place: usize,
    /// When that was.
    pub put_off_ns: u64,
}

/// Those that have not begun, the oldest first.
pub(super) struct Queue<T>(Latch<VecDeque<Deferred<T>>>);

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue(Latch::default())
    }
}

impl<T> Queue<T> {
    pub(super) fn put(&self, deferral: &Deferral, deferred: Deferred<T>) {
        self.0.lock().push_back(deferred);
        deferral.waiting.fetch_add(1, Ordering::Relaxed);
        deferral.changed.notify_one();
    }

    pub(super) fn take(&self, deferral: &Deferral) -> Option<Deferred<T>> {
        let deferred = self.0.lock().pop_front()?;
        deferral.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(deferred)
    }
}
