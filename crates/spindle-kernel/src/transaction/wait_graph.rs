//! Who waits for whom. A transaction waits for one row at a time, so the graph is a set of chains, and a circle is
//! found by following one of them from the transaction that begins to wait (the wait-for graph of Gray and Reuter,
//! "Transaction Processing", 1993, 7.11). The transaction that would close a circle learns of it and does not wait; the
//! others never notice.
//!
//! A transaction that waits for a row waits for its owner. All waiters look at one [`Holder`], and a row that is handed
//! over is one step: its new owner waits no longer, and those behind it wait for it.
//!
//! Why nothing is missed on real threads: a transaction joins a row's queue, enters its wait and looks, all under the
//! latch of the row's shard, under which rows are handed over, too. So every entry is true, and the last transaction of
//! a circle to enter saw all others. Why nothing is made up: a holder that has ended does not wait, so no chain leads
//! through it. One that has just been given a row does not wait yet, so that closes no circle.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use spindle_io::sync::atomic::{AtomicU64, Ordering};
use spindle_io::sync::{Latch, has_planted};

/// Planted race: a row is handed over, and those behind still wait for its former owner.
pub(crate) const LEAVES_WAITS_BEHIND: &str = "who waits for a row still waits for who had it";

/// The transaction that has a row, as those who wait for the row see it. Changes under the latch of the graph.
pub(crate) struct Holder(AtomicU64);

impl Holder {
    /// Of a row that `owner` has.
    pub(crate) fn new(owner: u64) -> Holder {
        Holder(AtomicU64::new(owner))
    }

    fn transaction(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The waits of an instance: for each transaction that waits, who has what it waits for.
#[derive(Default)]
pub(crate) struct WaitGraph {
    holders: Latch<FxHashMap<u64, Arc<Holder>>>,
}

impl WaitGraph {
    /// Notes that `waiter` waits for `holder`. When that would close a circle it does not wait, and the error holds the
    /// transactions of the circle, each waiting for the next, `waiter` first.
    pub(crate) fn wait_for(&self, waiter: u64, holder: &Arc<Holder>) -> Result<(), Vec<u64>> {
        let mut holders = self.holders.lock();
        let mut circle = vec![waiter];
        let mut next = Some(holder.transaction());
        // Ends: there is no circle in the graph, for each was refused.
        while let Some(transaction) = next {
            if transaction == waiter {
                return Err(circle);
            }
            circle.push(transaction);
            next = holders.get(&transaction).map(|held| held.transaction());
        }
        holders.insert(waiter, Arc::clone(holder));
        Ok(())
    }

    /// A row passes to `next`, who waited for it.
    pub(crate) fn hand_over(&self, next: u64, holder: &Holder) {
        let mut holders = self.holders.lock();
        holders.remove(&next);
        if !has_planted(LEAVES_WAITS_BEHIND) {
            holder.0.store(next, Ordering::Relaxed);
        }
    }

    /// The transaction has given up.
    pub(crate) fn wait_no_longer(&self, waiter: u64) {
        self.holders.lock().remove(&waiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(owner: u64) -> Arc<Holder> {
        Arc::new(Holder::new(owner))
    }

    #[test]
    fn two_that_wait_for_each_other_are_a_circle() {
        let graph = WaitGraph::default();
        assert_eq!(graph.wait_for(1, &held_by(2)), Ok(()));
        assert_eq!(graph.wait_for(2, &held_by(1)), Err(vec![2, 1]));
    }

    #[test]
    fn of_three_in_a_circle_only_the_last_is_told() {
        let graph = WaitGraph::default();
        assert_eq!(graph.wait_for(1, &held_by(2)), Ok(()));
        assert_eq!(graph.wait_for(3, &held_by(1)), Ok(()));
        assert_eq!(graph.wait_for(2, &held_by(3)), Err(vec![2, 3, 1]));
        // It does not wait: others may wait for it.
        assert_eq!(graph.wait_for(4, &held_by(2)), Ok(()));
    }

    #[test]
    fn a_long_chain_is_no_circle() {
        let graph = WaitGraph::default();
        for waiter in (0..1000).rev() {
            assert_eq!(graph.wait_for(waiter, &held_by(waiter + 1)), Ok(()));
        }
        assert_eq!(graph.wait_for(1000, &held_by(0)).unwrap_err().len(), 1001);
    }

    #[test]
    fn whoever_has_stopped_waiting_is_in_no_circle() {
        let graph = WaitGraph::default();
        assert_eq!(graph.wait_for(1, &held_by(3)), Ok(()));
        assert_eq!(graph.wait_for(2, &held_by(1)), Ok(()));
        graph.wait_no_longer(1);
        assert_eq!(graph.wait_for(1, &held_by(4)), Ok(()));
        assert_eq!(graph.wait_for(3, &held_by(2)), Ok(()));
        for waiter in 1..=3 {
            graph.wait_no_longer(waiter);
        }
        assert!(graph.holders.lock().is_empty());
    }

    #[test]
    fn those_behind_wait_for_the_new_owner() {
        let graph = WaitGraph::default();
        let row = held_by(9);
        assert_eq!(graph.wait_for(1, &row), Ok(()));
        assert_eq!(graph.wait_for(2, &row), Ok(()));
        graph.hand_over(1, &row);
        // The old owner is in nobody's way.
        assert_eq!(graph.wait_for(9, &held_by(2)), Ok(()));
        assert_eq!(graph.wait_for(1, &held_by(2)), Err(vec![1, 2]));
    }
}
