//! How long transactions took, those of each kind apart.

use spindle_experiment::WorkloadChoice;
use spindle_result::{Deferred, KindOfTransaction, Latency};
use spindle_stats::{CensoredTimes, LatencyHistogram};
use spindle_workload::driver::{DeferredRecord, KindRecord, TimeSpent};

/// The kinds of transactions apart, when there are several; queries have their own place.
pub(super) fn kinds(
    workload: &WorkloadChoice,
    kinds: &[KindRecord],
    spent: &TimeSpent,
) -> Vec<KindOfTransaction> {
    if kinds.len() < 2 || workload.transactions.ask_queries() {
        return Vec::new();
    }
    let of = |(record, time_ns): (&KindRecord, &u64)| {
        let transactions = record.latencies.count();
        let mean_us = match (transactions, workload.is_open()) {
            (0, _) => 0.0,
            // Which kind a transaction in the queue will be is not drawn yet.
            (_, true) => record.latencies.mean_us(),
            _ => *time_ns as f64 / 1e3 / transactions as f64,
        };
        let times = CensoredTimes::new(record.latencies.clone(), &record.at_least);
        KindOfTransaction {
            kind: record.kind.clone(),
            transactions,
            latency_us: latency(&times, mean_us),
        }
    };
    kinds
        .iter()
        .zip(&spent.in_transactions_ns)
        .map(of)
        .collect()
}

/// What clients put off.
pub(super) fn deferred(record: &DeferredRecord) -> Deferred {
    let times = CensoredTimes::new(record.completed.clone(), &LatencyHistogram::new());
    Deferred {
        transactions: record.completed.count(),
        completed_us: latency(&times, record.completed.mean_us()),
        waiting: record.waiting,
    }
}

/// Says when more was put off than carried out.
pub(super) fn fell_behind(deferred: &Deferred, clients: u32) -> Option<String> {
    deferred.is_behind(u64::from(clients)).then(|| {
        format!(
            "Deferred transactions fell behind: {} were carried out and {} still waited at the end. The throughput \
             lasts only as long as that queue may grow.",
            deferred.transactions, deferred.waiting
        )
    })
}

/// Percentiles and mean.
pub(super) fn latency(times: &CensoredTimes, mean_us: f64) -> Latency {
    Latency {
        p50: times.percentile_us(50.0),
        p95: times.percentile_us(95.0),
        p99: times.percentile_us(99.0),
        max: times.max_us(),
        mean: mean_us,
    }
}
