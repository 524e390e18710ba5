//! From what the process of a trial found to what the journal keeps of it.

use super::restored::Restored;
use crate::trial::protocol::TrialOutcome;
use spindle_result::{Audit, Conditions, IoPerTransaction, SystemSeries, Trial};
use spindle_system::disk::page_cache_share_of_reads;

/// A trial as the journal keeps it, with its series.
pub(super) struct FinishedTrial {
    pub(super) trial: Trial,
    /// Transactions per second.
    pub(super) samples: Vec<f64>,
    /// What the system did meanwhile.
    pub(super) system: SystemSeries,
}

impl FinishedTrial {
    /// Puts together what the trial's process found and how its database was restored before.
    pub(super) fn of(
        round: u32,
        position: u32,
        outcome: TrialOutcome,
        restored: Restored,
        conditions: Conditions,
    ) -> FinishedTrial {
        let measured_s = outcome.measured.as_secs_f64();
        let per_second = |count: u64| count as f64 / measured_s;
        let tool = outcome.tool;
        let mut audit = Audit::of_counts(outcome.physical, outcome.device);
        // The process's own account is better than the device's, which others use as well.
        let by_process = |fetched_bytes| page_cache_share_of_reads(tool.read_bytes, fetched_bytes);
        audit.page_cache_share = outcome
            .fetched_bytes
            .and_then(by_process)
            .or(audit.page_cache_share);
        audit.dirty_bytes_at_end = outcome.dirty_bytes;
        audit.dirty_buffer_bytes_at_end = outcome.dirty_buffer_bytes;
        audit.cached_pages_at_end = outcome.cached_pages;
        audit.flush_at_end_us = outcome.flush.map(|flush| flush.as_secs_f64() * 1e6);
        audit.clients = outcome.clients;
        audit.client_processors = outcome.client_processors;
        audit.page_cache_bytes_at_end = outcome.page_cache_bytes;
        let mut warnings = restored.warnings;
        warnings.extend(outcome.warnings);
        warnings.extend(stolen(outcome.steal_percent));
        let trial = Trial {
            round,
            position,
            tpm: outcome.transactions as f64 * 60.0 / measured_s,
            transactions: outcome.transactions,
            retries: outcome.retries,
            deadlocks: outcome.deadlocks,
            errors: outcome.errors,
            reconnects: outcome.reconnects,
            kinds: outcome.kinds,
            rows: outcome.rows,
            statements: outcome.statements,
            queries: outcome.queries,
            cache: outcome.cache,
            measured_s,
            read_iops: per_second(tool.reads),
            write_iops: per_second(tool.writes),
            kib_per_s: per_second(tool.read_bytes + tool.write_bytes) / 1024.0,
            latency_us: outcome.latency_us,
            waits: outcome.waits,
            cpu: outcome.cpu,
            cpu_us_per_transaction: outcome.cpu_us_per_transaction,
            memory: outcome.memory,
            audit,
            restore: restored.restore,
            check: outcome.check,
            space: outcome.space,
            warnings,
            promise: outcome.promise,
            warm_up: outcome.warm_up,
            arrivals: outcome.arrivals,
            capacity: outcome.capacity,
            response_time: outcome.response_time,
            conditions,
            io_calls: outcome.io_calls,
            io: IoPerTransaction::of(outcome.transactions, tool, outcome.device),
        };
        FinishedTrial {
            trial,
            samples: outcome.samples,
            system: outcome.system,
        }
    }
}

/// What is to be said of processor time that a hypervisor took.
fn stolen(steal_percent: f64) -> Option<String> {
    (steal_percent >= 5.0)
        .then(|| format!("the hypervisor took {steal_percent:.0} % of processor time for others"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::trial::protocol::Span;
    use spindle_result::{
        CpuShares, IoCounts, KindOfTransaction, Latency, Promise, Restore, TrialTimes,
    };
    use spindle_workload::sql::{Mix, SqlWorkload, Tpcc};

    #[test]
    fn the_workload_names_new_orders_as_results_know_them() {
        let tpcc = Tpcc::new(1, Mix::STANDARD, false, 1);
        let kinds = tpcc.kinds().into_iter().map(|kind| KindOfTransaction {
            kind,
            transactions: 1,
            latency_us: Latency {
                p50: 1.0,
                p95: 1.0,
                p99: 1.0,
                max: 1.0,
                mean: 1.0,
            },
        });
        assert_eq!(kinds.filter(KindOfTransaction::is_new_order).count(), 1);
    }

    #[test]
    fn a_trial_keeps_what_its_process_found() {
        let outcome = TrialOutcome {
            transactions: 30,
            retries: 7,
            deadlocks: 2,
            errors: 3,
            reconnects: 1,
            kinds: Vec::new(),
            rows: None,
            statements: Vec::new(),
            queries: None,
            cache: None,
            measured: Duration::from_secs(2),
            span: Span::default(),
            tool: IoCounts {
                reads: 60,
                write_bytes: 30 * 4096,
                ..IoCounts::default()
            },
            physical: IoCounts::default(),
            device: Some(IoCounts {
                write_bytes: 30 * 6144,
                ..IoCounts::default()
            }),
            fetched_bytes: None,
            latency_us: Latency {
                p50: 1.0,
                p95: 2.0,
                p99: 3.0,
                max: 4.0,
                mean: 1.5,
            },
            clients: None,
            client_processors: None,
            arrivals: None,
            capacity: None,
            waits: Vec::new(),
            response_time: None,
            cpu: Some(CpuShares {
                user: 25.0,
                system: 25.0,
                iowait: 25.0,
                idle: 25.0,
            }),
            steal_percent: 6.0,
            cpu_us_per_transaction: None,
            memory: None,
            dirty_bytes: Some(4096),
            flush: Some(Duration::from_millis(3)),
            standstill: None,
            times: TrialTimes::default(),
            warm_up: None,
            samples: vec![15.0],
            system: SystemSeries::default(),
            dirty_buffer_bytes: Some(65_536),
            cached_pages: Some(12),
            page_cache_bytes: None,
            io_calls: None,
            check: String::new(),
            answers: Vec::new(),
            space: Vec::new(),
            written: Vec::new(),
            promise: Promise::default(),
            warnings: vec!["from the process".to_string()],
        };
        let restored = Restored {
            restore: Restore {
                method: "m".to_string(),
                changed_blocks: 0,
                verified: true,
                duration_ms: 0,
            },
            warnings: vec!["from the restore".to_string()],
        };
        let finished = FinishedTrial::of(2, 3, outcome, restored, Conditions::default());
        let trial = &finished.trial;
        assert_eq!((trial.round, trial.position), (2, 3));
        assert_eq!(trial.tpm, 900.0);
        assert_eq!((trial.retries, trial.deadlocks), (7, 2));
        assert_eq!((trial.errors, trial.reconnects), (3, 1));
        assert_eq!(trial.audit.dirty_bytes_at_end, Some(4096));
        assert_eq!(trial.audit.dirty_buffer_bytes_at_end, Some(65_536));
        assert_eq!(trial.audit.cached_pages_at_end, Some(12));
        assert_eq!(trial.audit.flush_at_end_us, Some(3000.0));
        assert_eq!(
            trial.warnings,
            [
                "from the restore",
                "from the process",
                "the hypervisor took 6 % of processor time for others"
            ]
        );
        assert_eq!(finished.samples, [15.0]);
        let io = trial.io.expect("there were transactions");
        assert_eq!((io.reads, io.written_bytes), (2.0, 4096.0));
        assert_eq!(io.device_written_bytes, Some(6144.0));
        assert_eq!(io.write_amplification, Some(1.5));
    }
}
