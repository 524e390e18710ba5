//! Whether a trial accounts for all of its clients, and whether each of them got a turn.

use serde::{Deserialize, Serialize};

/// Throughput times mean transaction time may differ by this share from the clients at work.
const TOLERANCE: f64 = 0.03;
/// And this many clients at any rate: of few at work, rounding is a large share.
const TOLERANCE_CLIENTS: f64 = 0.02;

/// What the clients of a trial did, all together. By Little's law (J. D. C. Little, Operations Research 9, 1961) the
/// transactions under way are throughput times mean transaction time, so in a trial that left nothing out these are the
/// clients that were at work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClientAudit {
    /// Clients there were.
    pub clients: u64,
    /// Those in a transaction at a time, on average: throughput times mean transaction time, from its begin.
    pub in_transactions: f64,
    /// Of these, processes that carry out what clients have put off; they are none of the clients.
    #[serde(default, skip_serializing_if = "is_none")]
    pub deferring: f64,
    /// Those thinking.
    pub thinking: f64,
    /// Those for which nothing was due.
    pub idle: f64,
    /// Those that were connecting, or had ended.
    pub away: f64,
    /// Transactions that had not ended when the measured time did. They count as at least as long as they were by then.
    pub open_at_end: u64,
    /// Seconds since the oldest of these began; 0 without any.
    pub longest_open_s: f64,
    /// Clients that ended at least a tenth of an equal share of the transactions; all, where an equal share is below
    /// five.
    pub got_a_turn: u64,
    /// Transactions of the client that ended fewest.
    pub fewest: u64,
    /// Of the one that ended most.
    pub most: u64,
}

fn is_none(deferring: &f64) -> bool {
    *deferring == 0.0
}

impl ClientAudit {
    /// Clients that ought to have been in a transaction, with the processes that were, beside them.
    pub fn at_work(&self) -> f64 {
        self.clients as f64 + self.deferring - self.thinking - self.idle - self.away
    }

    /// Whether the transactions account for the clients at work, within 3 %.
    pub fn holds(&self) -> bool {
        let at_work = self.at_work();
        let off = (self.in_transactions - at_work).abs();
        off <= (TOLERANCE * at_work).max(TOLERANCE_CLIENTS)
    }

    /// Clients that got a turn, and the transactions of the least and the most served, by what each of them ended.
    pub fn turns(ended: &[u64]) -> (u64, u64, u64) {
        let share = ended.iter().sum::<u64>() as f64 / ended.len().max(1) as f64;
        let is_served = |&&count: &&u64| share < 5.0 || count as f64 >= share / 10.0;
        let served = ended.iter().filter(is_served).count() as u64;
        let fewest = ended.iter().min().copied().unwrap_or(0);
        let most = ended.iter().max().copied().unwrap_or(0);
        (served, fewest, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn audit(in_transactions: f64, thinking: f64, idle: f64) -> ClientAudit {
        ClientAudit {
            clients: 8,
            in_transactions,
            deferring: 0.0,
            thinking,
            idle,
            away: 0.0,
            open_at_end: 8,
            longest_open_s: 0.001,
            got_a_turn: 8,
            fewest: 90,
            most: 110,
        }
    }

    #[test]
    fn the_law_holds_within_three_percent_of_the_clients_at_work() {
        assert!(audit(7.98, 0.0, 0.0).holds());
        assert!(audit(7.77, 0.0, 0.0).holds());
        assert!(!audit(7.7, 0.0, 0.0).holds());
        assert!(!audit(8.3, 0.0, 0.0).holds());
        assert!(audit(2.0, 6.0, 0.0).holds());
        assert!(!audit(1.9, 6.0, 0.0).holds());
        assert!(audit(0.02, 0.0, 7.97).holds(), "nobody has much to do");
        assert!(!audit(1.0, 0.0, 0.0).holds(), "a starving client left out");
    }

    #[test]
    fn a_client_that_is_not_served_is_told_from_one_that_had_bad_luck() {
        assert_eq!(ClientAudit::turns(&[300, 1, 9769, 5108]), (2, 1, 9769));
        assert_eq!(ClientAudit::turns(&[0, 0, 0, 20]), (1, 0, 20));
        assert_eq!(ClientAudit::turns(&[90, 110, 100]), (3, 90, 110));
        assert_eq!(
            ClientAudit::turns(&[0, 2, 3, 1]),
            (4, 0, 3),
            "too few to tell"
        );
        assert_eq!(ClientAudit::turns(&[]), (0, 0, 0));
    }
}
