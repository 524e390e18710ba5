//! System calls by which this process hands over queued I/O and collects what has ended: `io_uring_enter`, `io_submit`,
//! `io_getevents`. What a blocking method does needs no count: it makes one call for each request.

use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);
static SUBMITS: AtomicU64 = AtomicU64::new(0);
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Calls since the process began, or between two readings (subtract them), of all threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCalls {
    /// Calls of any kind.
    pub calls: u64,
    /// Those of `calls` that handed requests over.
    pub submits: u64,
    /// Requests handed over; the polls by which threads wake each other count, and are few.
    pub requests: u64,
}

impl QueueCalls {
    /// What was counted until now.
    pub fn now() -> QueueCalls {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueCalls {
            calls: get(&CALLS),
            submits: get(&SUBMITS),
            requests: get(&REQUESTS),
        }
    }

    /// Counts a call that handed over this number of requests.
    pub(crate) fn count(requests: usize) {
        CALLS.fetch_add(1, Ordering::Relaxed);
        if requests > 0 {
            SUBMITS.fetch_add(1, Ordering::Relaxed);
            REQUESTS.fetch_add(requests as u64, Ordering::Relaxed);
        }
    }
}

impl Sub for QueueCalls {
    type Output = QueueCalls;
    /// What was counted since `earlier`.
    fn sub(self, earlier: QueueCalls) -> QueueCalls {
        QueueCalls {
            calls: self.calls - earlier.calls,
            submits: self.submits - earlier.submits,
            requests: self.requests - earlier.requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_hand_nothing_over_are_no_submits() {
        let before = QueueCalls::now();
        QueueCalls::count(3);
        QueueCalls::count(0);
        // Other tests of this process count, too.
        let counted = QueueCalls::now() - before;
        assert!(counted.calls >= 2 && counted.submits >= 1);
        assert!(counted.requests >= 3);
    }
}
