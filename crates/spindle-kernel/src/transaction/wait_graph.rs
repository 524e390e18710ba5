//! Who waits for whom. A transaction waits for one row at a time, so the graph is a set of chains, and a circle is
//! found by following one of them from the transaction that begins to wait (the wait-for graph of Gray and Reuter,
//! "Transaction Processing", 1993, 7.11). Whoever would close a circle learns of it and does not wait; the others never
//! notice.
//!
//! Why nothing is missed on real threads: a transaction enters its wait and looks under one latch, after it has made
//! sure to be called when the row is released, and again whenever it finds another holder. In a circle every entry is
//! therefore true, and whoever entered the last one saw all others. Why nothing is made up: an entry that is no longer
//! true names a holder that has ended. That one waits for nobody, so no chain leads through it.

use rustc_hash::FxHashMap;
use spindle_io::sync::Latch;

/// The waits of an instance: for each transaction that waits, the one it waits for.
#[derive(Default)]
pub(crate) struct WaitGraph {
    holders: Latch<FxHashMap<u64, u64>>,
}

impl WaitGraph {
    /// Notes that `waiter` waits for `holder`, in place of any other before. When that would close a circle it waits
    /// for nobody, and the error holds the transactions of the circle, each waiting for the next, `waiter` first.
    pub(crate) fn wait_for(&self, waiter: u64, holder: u64) -> Result<(), Vec<u64>> {
        let mut holders = self.holders.lock();
        holders.remove(&waiter);
        let mut circle = vec![waiter];
        let mut next = Some(holder);
        // Ends: there is no circle in the graph, for each was refused.
        while let Some(transaction) = next {
            if transaction == waiter {
                return Err(circle);
            }
            circle.push(transaction);
            next = holders.get(&transaction).copied();
        }
        holders.insert(waiter, holder);
        Ok(())
    }

    /// The transaction has what it waited for, or has given up.
    pub(crate) fn wait_no_longer(&self, waiter: u64) {
        self.holders.lock().remove(&waiter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_wait_for_each_other_are_a_circle() {
        let graph = WaitGraph::default();
        assert_eq!(graph.wait_for(1, 2), Ok(()));
        assert_eq!(graph.wait_for(2, 1), Err(vec![2, 1]));
    }

    #[test]
    fn of_three_in_a_circle_only_the_last_is_told() {
        let graph = WaitGraph::default();
        assert_eq!(graph.wait_for(1, 2), Ok(()));
        assert_eq!(graph.wait_for(3, 1), Ok(()));
        assert_eq!(graph.wait_for(2, 3), Err(vec![2, 3, 1]));
        // It does not wait, so that the others, who look again, find no circle.
        assert_eq!(graph.wait_for(1, 2), Ok(()));
        assert_eq!(graph.wait_for(3, 1), Ok(()));
    }

    #[test]
    fn a_long_chain_is_no_circle() {
        let graph = WaitGraph::default();
        for waiter in (0..1000).rev() {
            assert_eq!(graph.wait_for(waiter, waiter + 1), Ok(()));
        }
        assert_eq!(graph.wait_for(1000, 0).unwrap_err().len(), 1001);
    }

    #[test]
    fn whoever_has_stopped_waiting_is_in_no_circle() {
        let graph = WaitGraph::default();
        assert_eq!(graph.wait_for(1, 2), Ok(()));
        // The holder has become another.
        assert_eq!(graph.wait_for(1, 3), Ok(()));
        assert_eq!(graph.wait_for(2, 1), Ok(()));
        assert_eq!(graph.wait_for(1, 2), Err(vec![1, 2]));
        graph.wait_no_longer(2);
        assert_eq!(graph.wait_for(1, 2), Ok(()));
        graph.wait_no_longer(1);
        assert!(graph.holders.lock().is_empty());
    }
}
