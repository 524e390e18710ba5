//! What clients say of themselves: their counts at a moment, and what became of their transactions. Both are added up
//! over machines: counts are sums, histograms are merged bucket by bucket.

use serde::{Deserialize, Serialize};
use spindle_io::real::facts;
use spindle_stats::{CensoredTimes, LatencyHistogram};
use spindle_system::SystemTree;
use spindle_system::cpu::CpuTimes;
use spindle_system::threads::ThreadTimes;
use spindle_workload::Acknowledged;
use spindle_workload::driver::{
    DeferredRecord, KindRecord, LeftOpen, Running, StatementTotal, TimeSpent,
};

use super::super::response_time::CLIENT_THREADS;

/// What clients have done since they began, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadCounts {
    /// The moment, by the machine's own clock (`facts::monotonic_ns`).
    pub at_ns: u64,
    /// Transactions committed by each client.
    pub committed_by_client: Vec<u64>,
    /// What the time of all of them went to.
    pub spent: TimeSpent,
    /// Transactions tried again.
    pub retries: u64,
    /// Those of them that a deadlock led to.
    pub deadlocks: u64,
    /// Transactions that failed for good.
    pub errors: u64,
    /// Times that clients connected again.
    pub reconnects: u64,
    /// What the first transaction that failed for good was told.
    pub first_error: Option<String>,
    /// What statements took.
    pub statements: Vec<StatementTotal>,
    /// Their threads on the processors.
    pub threads: Option<ThreadTimes>,
    /// All processors of the machine.
    pub cpu: Option<CpuTimes>,
}

impl LoadCounts {
    /// Those of the clients of this process, at a moment of the world's own clock.
    pub fn of(running: &Running, now_ns: u64) -> LoadCounts {
        let tree = SystemTree::default();
        LoadCounts {
            at_ns: facts::monotonic_ns(),
            committed_by_client: running.committed_by_client(),
            spent: running.time_spent(now_ns),
            retries: running.retries(),
            deadlocks: running.deadlocks(),
            errors: running.errors(),
            reconnects: running.reconnects(),
            first_error: running.first_error(),
            statements: running.statements(),
            threads: ThreadTimes::of(&tree, std::process::id(), CLIENT_THREADS),
            cpu: CpuTimes::read(&tree),
        }
    }

    /// Transactions committed by all of them.
    pub fn committed(&self) -> u64 {
        self.committed_by_client.iter().sum()
    }

    /// With those of other clients, which follow in order. Each stands for its moment as much as it has clients.
    #[must_use]
    pub fn and(mut self, other: LoadCounts) -> LoadCounts {
        let (own, others) = (
            self.committed_by_client.len(),
            other.committed_by_client.len(),
        );
        let ahead_ns = i128::from(other.at_ns) - i128::from(self.at_ns);
        let mean_ns = ahead_ns * others as i128 / (own + others).max(1) as i128;
        self.at_ns = (i128::from(self.at_ns) + mean_ns) as u64;
        self.committed_by_client.extend(other.committed_by_client);
        self.spent.add(&other.spent);
        self.retries += other.retries;
        self.deadlocks += other.deadlocks;
        self.errors += other.errors;
        self.reconnects += other.reconnects;
        self.first_error = self.first_error.or(other.first_error);
        add_statements(&mut self.statements, other.statements);
        let both = self.threads.zip(other.threads);
        self.threads = both.map(|(one, more)| one.plus(&more));
        // Shares of different machines have no sum.
        self.cpu = None;
        self
    }
}

fn add_statements(all: &mut Vec<StatementTotal>, others: Vec<StatementTotal>) {
    for other in others {
        let mut known = all.iter_mut();
        match known.find(|known| known.statement == other.statement) {
            Some(known) => {
                known.count += other.count;
                known.timed += other.timed;
                known.total_ns += other.total_ns;
            }
            None => all.push(other),
        }
    }
}

/// What became of the transactions of clients, when they have ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadRecord {
    /// Of each kind.
    pub kinds: Vec<KindRecord>,
    /// Of all kinds together.
    pub rest: RestOfRecord,
}

/// What is said of all kinds together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RestOfRecord {
    /// In an open loop: how long each began after it was due.
    pub delays: LatencyHistogram,
    /// How long those had waited that had not begun when measuring ended.
    pub not_begun: LatencyHistogram,
    /// Those under way when measuring ended.
    pub left_open: LeftOpen,
    /// Those that clients put off.
    pub deferred: Option<DeferredRecord>,
    /// What each client was promised.
    pub acknowledged: Vec<Acknowledged>,
}

impl LoadRecord {
    /// That of the clients of this process.
    pub fn of(running: &Running) -> LoadRecord {
        LoadRecord {
            kinds: running.by_kind(),
            rest: RestOfRecord {
                delays: running.delays(),
                not_begun: running.not_begun(),
                left_open: running.left_open(),
                deferred: running.deferred(),
                acknowledged: running.acknowledged(),
            },
        }
    }

    /// With that of other clients, which follow in order.
    #[must_use]
    pub fn and(mut self, other: LoadRecord) -> LoadRecord {
        // All clients have the same kinds in the same order; two of them may have the same name.
        for (place, kind) in other.kinds.into_iter().enumerate() {
            match self.kinds.get_mut(place) {
                Some(known) => known.add(&kind),
                None => self.kinds.push(kind),
            }
        }
        let (rest, more) = (&mut self.rest, other.rest);
        rest.delays.merge(&more.delays);
        rest.not_begun.merge(&more.not_begun);
        rest.left_open = rest.left_open.and(more.left_open);
        match (&mut rest.deferred, more.deferred) {
            (Some(own), Some(others)) => own.add(&others),
            (own, others) => *own = own.take().or(others),
        }
        rest.acknowledged.extend(more.acknowledged);
        self
    }

    /// Times of all transactions, also of those that had not ended.
    pub fn times(&self) -> CensoredTimes {
        let (mut ended, mut at_least) = (LatencyHistogram::new(), self.rest.not_begun.clone());
        for kind in &self.kinds {
            ended.merge(&kind.latencies);
            at_least.merge(&kind.at_least);
        }
        CensoredTimes::new(ended, &at_least)
    }

    /// How long each began after it was due, also of those that had not begun.
    pub fn delay_times(&self) -> CensoredTimes {
        CensoredTimes::new(self.rest.delays.clone(), &self.rest.not_begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(at_ns: u64, committed_by_client: &[u64]) -> LoadCounts {
        LoadCounts {
            at_ns,
            committed_by_client: committed_by_client.to_vec(),
            spent: TimeSpent {
                in_transactions_ns: vec![10, 20],
                ..TimeSpent::default()
            },
            retries: 1,
            deadlocks: 2,
            errors: 3,
            reconnects: 4,
            first_error: None,
            statements: vec![StatementTotal {
                statement: format!("select {}", committed_by_client.len() % 2),
                count: 5,
                timed: 5,
                total_ns: 50,
            }],
            threads: Some(ThreadTimes {
                running_ns: 7,
                ..ThreadTimes::default()
            }),
            cpu: Some(CpuTimes::default()),
        }
    }

    #[test]
    fn counts_are_sums_and_their_moment_is_that_of_the_clients() {
        let all = counts(1_000, &[1, 2, 3]).and(counts(1_400, &[4]));
        assert_eq!(all.at_ns, 1_100);
        assert_eq!(all.committed_by_client, [1, 2, 3, 4]);
        assert_eq!(all.committed(), 10);
        assert_eq!(all.spent.in_transactions_ns, [20, 40]);
        assert_eq!(
            (all.retries, all.deadlocks, all.errors, all.reconnects),
            (2, 4, 6, 8)
        );
        assert_eq!(all.statements.len(), 1);
        assert_eq!(all.statements[0].total_ns, 100);
        assert_eq!(all.threads.unwrap().running_ns, 14);
        assert_eq!(
            counts(1_400, &[4]).and(counts(1_000, &[1, 2, 3])).at_ns,
            1_100
        );
        let unlike = counts(0, &[1]).and(counts(0, &[1, 2]));
        assert_eq!(unlike.statements.len(), 2);
    }

    /// A record of transactions that took these times, as it comes from another machine.
    fn record(ended_us: &[u64], open_us: &[u64], kind: &str) -> LoadRecord {
        let histogram = |times_us: &[u64]| {
            let mut all = LatencyHistogram::new();
            times_us.iter().for_each(|us| all.record_ns(us * 1_000));
            all
        };
        let kinds = vec![KindRecord {
            kind: kind.to_owned(),
            latencies: histogram(ended_us),
            at_least: histogram(open_us),
            errors: 1,
            temporary_bytes: Some(5),
        }];
        let rest = RestOfRecord {
            delays: histogram(ended_us),
            left_open: LeftOpen {
                count: open_us.len() as u64,
                longest_ns: open_us.iter().max().copied().unwrap_or(0),
            },
            acknowledged: vec![Acknowledged { last: 9, failed: 1 }],
            deferred: Some(DeferredRecord {
                completed: histogram(ended_us),
                waiting: 4,
            }),
            ..RestOfRecord::default()
        };
        // As it is said.
        let said = serde_json::to_string(&(&kinds, &rest)).unwrap();
        let (kinds, rest) = serde_json::from_str(&said).unwrap();
        LoadRecord { kinds, rest }
    }

    #[test]
    fn records_of_two_machines_are_that_of_one_with_all_clients() {
        let first: Vec<u64> = (1..500).map(|i| i * 7).collect();
        let second: Vec<u64> = (1..900).map(|i| i * i).collect();
        let both = record(&first, &[40_000], "pay").and(record(&second, &[9, 80_000], "pay"));
        let all: Vec<u64> = first.iter().chain(&second).copied().collect();
        let one = record(&all, &[40_000, 9, 80_000], "pay");
        assert_eq!(both.kinds[0].latencies, one.kinds[0].latencies);
        assert_eq!(both.kinds[0].at_least, one.kinds[0].at_least);
        for percent in [1.0, 50.0, 95.0, 99.0, 100.0] {
            let of = |record: &LoadRecord| record.times().percentile_us(percent);
            assert_eq!(of(&both), of(&one));
        }
        assert_eq!(both.times().max_us(), one.times().max_us());
        assert_eq!(both.delay_times().max_us(), one.delay_times().max_us());
        assert_eq!(both.rest.left_open, one.rest.left_open);
        assert_eq!(both.rest.acknowledged.len(), 2);
        let (deferred, of_one) = (both.rest.deferred.unwrap(), one.rest.deferred.unwrap());
        assert_eq!(deferred.completed, of_one.completed);
        assert_eq!(deferred.waiting, 8);
        assert_eq!(both.kinds[0].errors, 2);
        assert_eq!(both.kinds[0].temporary_bytes, Some(10));
        // Scripts of different directories may have one name.
        let twice = |one: &[u64], other: &[u64]| {
            let mut both = record(one, &[], "load.sql");
            both.kinds.extend(record(other, &[], "load.sql").kinds);
            both
        };
        let kinds = LoadRecord::default()
            .and(twice(&first, &second))
            .and(twice(&[1], &[]))
            .kinds;
        let ended: Vec<u64> = kinds.iter().map(|kind| kind.latencies.count()).collect();
        assert_eq!(ended, [500, 899]);
    }
}
