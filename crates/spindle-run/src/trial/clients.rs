//! From the clocks of the clients to the mean time of a transaction, and to the account of all clients.
//!
//! The mean is all time that clients were in transactions within the measured time, over the transactions that ended in
//! it: the response time of operational analysis (P. J. Denning and J. P. Buzen, "The Operational Analysis of Queueing
//! Network Models", ACM Computing Surveys 10, 1978). A transaction that began earlier counts with its time within, one
//! that has not ended with its time so far, and one that was given up with what it took. So a client that waits for its
//! turn all the time counts whole, though it ends nothing.

use spindle_workload::driver::{LeftOpen, TimeSpent};

use super::response_time::MeanTime;
use spindle_result::ClientAudit;

/// What the clients did in a window of time.
pub(super) struct Window {
    /// How long it was, nanoseconds.
    pub length_ns: u64,
    /// What the clients' time in it went to.
    pub spent: TimeSpent,
    /// Transactions that each client ended in it.
    pub ended: Vec<u64>,
    /// Those under way at its end.
    pub left_open: LeftOpen,
    /// Every client has a number of transactions to carry out: turns are not taken.
    pub is_counted: bool,
}

impl Window {
    /// The mean time of a transaction, from when it was due; 0 without any.
    pub fn mean_time(&self) -> MeanTime {
        MeanTime {
            whole_us: self.each_us(self.spent.in_transactions() + self.spent.queued_ns),
            before_begin_us: self.each_us(self.spent.queued_ns),
        }
    }

    /// All clients, by Little's law from the figures that are published.
    pub fn audit(&self, mean: MeanTime) -> ClientAudit {
        let length_ns = self.length_ns.max(1) as f64;
        let clients_in = |time_ns: u64| time_ns as f64 / length_ns;
        let ended = self.ended.iter().sum::<u64>();
        let in_transactions = match ended {
            // Without a throughput and a mean there is no law to hold them to.
            0 => clients_in(self.spent.in_transactions()),
            ended => ended as f64 * 1e3 / length_ns * (mean.whole_us - mean.before_begin_us),
        };
        let (got_a_turn, fewest, most) = ClientAudit::turns(&self.ended);
        let clients = self.ended.len() as u64;
        ClientAudit {
            clients,
            in_transactions,
            deferring: clients_in(self.spent.deferred_ns),
            thinking: clients_in(self.spent.thinking_ns),
            idle: clients_in(self.spent.idle_ns),
            away: clients_in(self.spent.away_ns),
            open_at_end: self.left_open.count,
            longest_open_s: self.left_open.longest_ns as f64 / 1e9,
            got_a_turn: if self.is_counted { clients } else { got_a_turn },
            fewest,
            most,
        }
    }

    fn each_us(&self, time_ns: u64) -> f64 {
        match self.ended.iter().sum::<u64>() {
            0 => 0.0,
            ended => time_ns as f64 / 1e3 / ended as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of four clients: one ends 1,000 transactions of 10 ms, the others wait in their first.
    fn starving() -> Window {
        Window {
            length_ns: 10_000_000_000,
            spent: TimeSpent {
                in_transactions_ns: vec![40_000_000_000],
                ..TimeSpent::none(1)
            },
            ended: vec![1_000, 0, 0, 0],
            left_open: LeftOpen {
                count: 3,
                longest_ns: 12_000_000_000,
            },
            is_counted: false,
        }
    }

    #[test]
    fn clients_that_wait_count_in_the_mean_and_the_law_holds() {
        let window = starving();
        let mean = window.mean_time();
        assert_eq!((mean.whole_us, mean.before_begin_us), (40_000.0, 0.0));
        let audit = window.audit(mean);
        assert!((audit.in_transactions - 4.0).abs() < 1e-9);
        assert!(audit.holds());
        assert_eq!((audit.got_a_turn, audit.fewest, audit.most), (1, 0, 1_000));
        assert_eq!((audit.open_at_end, audit.longest_open_s), (3, 12.0));
    }

    #[test]
    fn a_mean_that_leaves_them_out_is_told() {
        let ended_alone = MeanTime {
            whole_us: 10_000.0,
            before_begin_us: 0.0,
        };
        let audit = starving().audit(ended_alone);
        assert!((audit.in_transactions - 1.0).abs() < 1e-9);
        assert!(!audit.holds());
    }

    #[test]
    fn time_without_a_transaction_is_no_work_and_a_queue_is_none_of_the_clients() {
        let mut window = starving();
        window.ended = vec![500, 500];
        window.spent = TimeSpent {
            in_transactions_ns: vec![2_000_000_000],
            queued_ns: 50_000_000_000,
            deferred_ns: 0,
            thinking_ns: 8_000_000_000,
            idle_ns: 6_000_000_000,
            away_ns: 4_000_000_000,
            between_ns: 0,
        };
        let mean = window.mean_time();
        assert_eq!((mean.whole_us, mean.before_begin_us), (52_000.0, 50_000.0));
        let audit = window.audit(mean);
        assert!(
            (audit.at_work() - 0.2).abs() < 1e-9 && audit.holds(),
            "{audit:?}"
        );
        // The driver itself takes the rest.
        window.spent.idle_ns -= 1_000_000_000;
        assert!(!window.audit(mean).holds());
    }

    #[test]
    fn those_who_carry_out_what_clients_put_off_are_at_work_beside_them() {
        let mut window = starving();
        window.spent.in_transactions_ns[0] += 5_000_000_000;
        let without = window.audit(window.mean_time());
        assert!(!without.holds(), "four and a half clients of four");
        window.spent.deferred_ns = 5_000_000_000;
        let audit = window.audit(window.mean_time());
        assert!((audit.at_work() - 4.5).abs() < 1e-9 && audit.holds());
    }

    #[test]
    fn without_transactions_there_is_no_mean() {
        let mut window = starving();
        window.ended = vec![0, 0, 0, 0];
        assert_eq!(window.mean_time().whole_us, 0.0);
        // All of their time was within transactions, none of it between them.
        let audit = window.audit(window.mean_time());
        assert!((audit.in_transactions - 4.0).abs() < 1e-9 && audit.holds());
    }
}
