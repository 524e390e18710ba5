//! One row of figures per case: the means over its trials that tables show.

use super::mean::mean_of;
use super::{Case, OracleEvent, Trial, WaitEvent};

/// Means of a case over its trials, in the units of the columns that people read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Transactions per minute.
    pub tpm: f64,
    /// Half the width of the 95 % interval of `tpm`, in percent of it; `None` with a single trial.
    pub tpm_half_width_percent: Option<f64>,
    /// New orders per minute of TPC-C; `None` for other workloads.
    pub nopm: Option<f64>,
    /// Reads per second; `None` when no trial knows, so for the next two.
    pub read_iops: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
    /// KiB read and written per second.
    pub kib_per_s: Option<f64>,
    /// Mean `log file parallel write` in milliseconds; `None` when there was none.
    pub log_file_parallel_write_ms: Option<f64>,
    /// Mean `db file sequential read` in milliseconds; `None` when there was none.
    pub db_file_sequential_read_ms: Option<f64>,
    /// Share of the machine's processor time in programs, in percent; `None` when no trial knows, so for the others.
    pub cpu_user_percent: Option<f64>,
    /// Share in the kernel, in percent.
    pub cpu_system_percent: Option<f64>,
    /// Share idle with an I/O outstanding, in percent.
    pub cpu_iowait_percent: Option<f64>,
    /// Median transaction time in milliseconds, the mean of the trials' medians; so are the other percentiles.
    pub p50_ms: f64,
    /// 95th percentile of the transaction time in milliseconds.
    pub p95_ms: f64,
    /// 99th percentile of the transaction time in milliseconds.
    pub p99_ms: f64,
    /// Bytes read by the database over bytes read by the device; `None` when no trial knows.
    pub read_ratio: Option<f64>,
    /// Bytes written by the database over bytes written by the device; `None` when no trial knows.
    pub write_ratio: Option<f64>,
}

impl Case {
    /// Means over the trials; `None` without trials.
    pub fn summary(&self) -> Option<Summary> {
        let tpm = self.tpm?;
        let mean = |figure: fn(&Trial) -> f64| mean_of(self.trials.iter().map(figure));
        let known =
            |figure: fn(&Trial) -> Option<f64>| mean_of(self.trials.iter().filter_map(figure));
        Some(Summary {
            tpm: tpm.mean,
            tpm_half_width_percent: tpm
                .ci95
                .filter(|_| tpm.mean > 0.0)
                .map(|(low, high)| 50.0 * (high - low) / tpm.mean),
            nopm: self.nopm.map(|nopm| nopm.mean),
            read_iops: known(|trial| trial.read_iops),
            write_iops: known(|trial| trial.write_iops),
            kib_per_s: known(|trial| trial.kib_per_s),
            log_file_parallel_write_ms: self.mean_nearest_ms(&OracleEvent::LogFileParallelWrite),
            db_file_sequential_read_ms: self.mean_nearest_ms(&OracleEvent::DbFileSequentialRead),
            cpu_user_percent: known(|trial| Some(trial.cpu?.user)),
            cpu_system_percent: known(|trial| Some(trial.cpu?.system)),
            cpu_iowait_percent: known(|trial| Some(trial.cpu?.iowait)),
            p50_ms: mean(|trial| trial.latency_us.p50 / 1e3)?,
            p95_ms: mean(|trial| trial.latency_us.p95 / 1e3)?,
            p99_ms: mean(|trial| trial.latency_us.p99 / 1e3)?,
            read_ratio: known(|trial| trial.audit.read_ratio),
            write_ratio: known(|trial| trial.audit.write_ratio),
        })
    }

    /// All events that sessions waited for, the greatest total time first.
    pub fn wait_events(&self) -> Vec<&WaitEvent> {
        let mut totals: Vec<(&WaitEvent, f64)> = Vec::new();
        for wait in self.trials.iter().flat_map(|trial| &trial.waits) {
            match totals.iter_mut().find(|(event, _)| **event == wait.event) {
                Some((_, total_us)) => *total_us += wait.total_us,
                None => totals.push((&wait.event, wait.total_us)),
            }
        }
        totals.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        totals.into_iter().map(|(event, _)| event).collect()
    }

    /// Number of waits for the events of which `is_it` is true, and the time waited in microseconds, over all trials.
    pub fn total_wait(&self, is_it: impl Fn(&WaitEvent) -> bool) -> (u64, f64) {
        let waits = self.trials.iter().flat_map(|trial| &trial.waits);
        waits
            .filter(|wait| is_it(&wait.event))
            .fold((0, 0.0), |(count, total_us), wait| {
                (count + wait.count, total_us + wait.total_us)
            })
    }

    /// Whether such events were seen in samples only.
    pub(super) fn is_sampled(&self, is_it: impl Fn(&WaitEvent) -> bool) -> bool {
        let mut waits = self.trials.iter().flat_map(|trial| &trial.waits);
        waits.any(|wait| wait.sampled && is_it(&wait.event))
    }

    /// Time waited for an event per committed transaction in microseconds, all processes together, over all trials;
    /// `None` without waits or without committed transactions.
    pub fn wait_us_per_transaction(&self, event: &WaitEvent) -> Option<f64> {
        let transactions: u64 = self.trials.iter().map(|trial| trial.transactions).sum();
        let (count, total_us) = self.total_wait(|it| it == event);
        (count > 0 && transactions > 0).then(|| total_us / transactions as f64)
    }

    /// Mean time of one wait for an event over all trials, each wait weighing the same.
    pub fn mean_wait_ms(&self, event: &WaitEvent) -> Option<f64> {
        self.mean_ms(|it| it == event)
    }

    /// The same of all events that one of Oracle's is nearest to.
    pub fn mean_nearest_ms(&self, event: &OracleEvent) -> Option<f64> {
        self.mean_ms(|it| it.nearest() == event)
    }

    fn mean_ms(&self, is_it: impl Fn(&WaitEvent) -> bool) -> Option<f64> {
        let (count, total_us) = self.total_wait(&is_it);
        let is_sampled = self.is_sampled(is_it);
        (count > 0 && !is_sampled).then(|| total_us / count as f64 / 1e3)
    }
}
