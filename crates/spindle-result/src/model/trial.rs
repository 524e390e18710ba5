//! One measured run of a case, as its worker and the runner found it. The journal holds it in this form, too.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::conditions::Conditions;
use super::io_calls::IoCalls;
use super::wait_event::{TimeUse, WaitEvent};
use super::words::open_words;
use super::{Capacity, Promise};
use crate::{Audit, IoCounts};

/// One measured run of a case: what its process found, and what the run adds. The journal holds it in this form too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Round, from 1.
    pub round: u32,
    /// Place in the random order of its round, from 1.
    pub position: u32,
    /// What its process found.
    #[serde(flatten)]
    pub figures: TrialFigures,
    /// How the database was put back to its loaded state before this trial.
    pub restore: Restore,
    /// What it was measured under.
    #[serde(default)]
    pub conditions: Conditions,
}

/// What the process of a trial found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialFigures {
    /// Transactions committed per minute of measured time.
    pub tpm: f64,
    /// Transactions committed in the measured time.
    pub transactions: u64,
    /// Transactions tried again in the measured time: after a lock timeout or a deadlock.
    pub retries: u64,
    /// Those of them that a deadlock led to.
    pub deadlocks: u64,
    /// Transactions that failed for good in the measured time, those whose connection was lost included.
    #[serde(default)]
    pub errors: u64,
    /// Times that clients connected again in it.
    #[serde(default)]
    pub reconnects: u64,
    /// The kinds of transactions apart, in the workload's order; empty when there is one kind only.
    #[serde(default)]
    pub kinds: Vec<KindOfTransaction>,
    /// Rows inserted, for a bulk load.
    #[serde(default)]
    pub rows: Option<u64>,
    /// What each statement took, in the workload's order, for workloads in SQL but those of queries.
    #[serde(default)]
    pub statements: Vec<StatementTime>,
    /// What became of queries, for a workload of them.
    #[serde(default)]
    pub queries: Option<QueryRun>,
    /// How often the buffer cache was of use; `None` where the database does not count that.
    #[serde(default)]
    pub cache: Option<CacheUse>,
    /// Measured time in seconds, the flush at the end included; for a workload of queries from the first one's begin to
    /// the end of the last.
    pub measured_s: f64,
    /// Reads per second that the database issued; `None` where it does not tell, as some existing servers. So for the
    /// next two.
    #[serde(default)]
    pub read_iops: Option<f64>,
    /// Writes per second that the database issued, redo included.
    #[serde(default)]
    pub write_iops: Option<f64>,
    /// KiB per second that the database read and wrote together.
    #[serde(default)]
    pub kib_per_s: Option<f64>,
    /// Time from the begin of a transaction, in an open loop from its intended begin, to the end of its commit. One
    /// that had not ended when the measured time did, or was given up, counts as longer than it was by then. The mean
    /// is all time in transactions within the measured time over the transactions that ended in it.
    pub latency_us: Latency,
    /// What sessions and background processes waited for.
    pub waits: Vec<Wait>,
    /// How the machine's processors spent the measured time; `None` when unknown, as where the database is on an
    /// existing server.
    pub cpu: Option<CpuShares>,
    /// Processor time that one transaction cost; `None` when no transaction was committed.
    pub cpu_us_per_transaction: Option<CpuMicroseconds>,
    /// Memory of the trial's process; `None` when unknown.
    pub memory: Option<Memory>,
    /// The program's own counts beside the device's.
    pub audit: Audit,
    /// What the check of the whole database said after the trial: nothing was lost, and how much was looked at.
    pub check: String,
    /// Space that each segment of the database had in the end.
    pub space: Vec<SegmentSpace>,
    /// What was noticed during this trial, in words.
    pub warnings: Vec<String>,
    /// What the database keeps when the power goes, by its settings in force; unknown in journals of versions that did
    /// not look.
    #[serde(default)]
    pub promise: Promise,
    /// How the trial came to a steady state; `None` when that was not looked at.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
    /// The load that came at a fixed rate, if it did.
    #[serde(default)]
    pub arrivals: Option<Arrivals>,
    /// What clients put off for others to carry out; `None` where they put nothing off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Deferred>,
    /// What the search for the highest rate found, if there was one.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// What a transaction's time went to, as seen from its session; `None` when that is not known.
    #[serde(default)]
    pub response_time: Option<ResponseTime>,
    /// I/O of one transaction; `None` without transactions, or where neither side tells.
    #[serde(default)]
    pub io: Option<IoPerTransaction>,
    /// By how many system calls the I/O was done; of the embedded database only.
    #[serde(default)]
    pub io_calls: Option<IoCalls>,
}

/// A trial is asked for its figures as if they were its own.
impl Deref for Trial {
    type Target = TrialFigures;

    fn deref(&self) -> &TrialFigures {
        &self.figures
    }
}

impl DerefMut for Trial {
    fn deref_mut(&mut self) -> &mut TrialFigures {
        &mut self.figures
    }
}

impl TrialFigures {
    /// NOPM: new orders of TPC-C that ended per minute of measured time, those that the standard wants rolled back (one
    /// in a hundred) included; `None` for other workloads.
    pub fn nopm(&self) -> Option<f64> {
        let new_orders = self.kinds.iter().find(|kind| kind.is_new_order())?;
        Some(new_orders.transactions as f64 * 60.0 / self.measured_s)
    }

    /// Seconds that the flush at the end took, a part of `measured_s`; `None` when there was none, or it is not part of
    /// it.
    pub fn flush_s(&self) -> Option<f64> {
        let flush_s = self.audit.flush_at_end_us? / 1e6;
        self.queries.is_none().then_some(flush_s)
    }
}

/// Transactions of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindOfTransaction {
    /// Its name.
    pub kind: String,
    /// How many were committed.
    pub transactions: u64,
    /// How long they took.
    pub latency_us: Latency,
}

/// How often the buffer cache was of use in the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CacheUse {
    /// Blocks that were looked for in it.
    pub wanted: u64,
    /// Those of them that were not there, and had to be read.
    pub missed: u64,
    /// How much of it had been filled at the end of the measured time, 0 to 1, if every block that was read since the
    /// start took a new place, so the cache is at most this full.
    pub filled_at_end: f64,
}

/// The executions of one statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementTime {
    /// Its text, cut where it becomes long; `begin` and `commit` of the transaction.
    pub statement: String,
    /// How often it ended well in the measured time.
    pub count: u64,
    /// Mean time from asking to the last row, as the client sees it, microseconds; of a statement below 0.1 ms, that of
    /// one execution in sixteen.
    pub mean_us: f64,
}

open_words! {
    /// Kinds of transactions that have a separate figure.
    KindName:
    /// TPC-C's new order.
    NewOrder => "new_order",
}

impl KindOfTransaction {
    /// Whether these are the transactions that TPC-C's throughput counts.
    pub fn is_new_order(&self) -> bool {
        KindName::from(self.kind.as_str()) == KindName::NewOrder
    }
}

/// A power or throughput run of queries. Its figures are never official TPC results: those are audited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryRun {
    /// The queries and refresh functions that were carried out, in the order of their numbers.
    pub times: Vec<QueryTime>,
    /// Geometric mean of the queries' seconds, refresh functions left out; `None` when one of them never had an answer.
    pub geometric_mean_s: Option<f64>,
    /// The standard's power, with the refresh functions when they ran; `None` unless a single stream answered every
    /// query of the benchmark.
    pub power: Option<f64>,
    /// The standard's throughput; `None` unless several streams answered every query of the benchmark.
    pub throughput: Option<f64>,
    /// Bytes that the queries that ended well wrote to temporary files, all streams together, refresh functions left
    /// out; `None` unless it is known of each.
    #[serde(default)]
    pub temporary_bytes: Option<u64>,
}

/// One query, or refresh function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryTime {
    /// Its name: `Q1` to `Q22`, `RF1`, `RF2`.
    pub name: String,
    /// Seconds that it took, the mean of all streams; `None` when it never ended well.
    pub seconds: Option<f64>,
    /// How often it ended well.
    pub count: u64,
    /// How often it failed or was cancelled.
    pub errors: u64,
    /// Bytes that it wrote to temporary files, the mean of all streams; `None` when that is not known.
    #[serde(default)]
    pub temporary_bytes: Option<f64>,
}

impl QueryTime {
    /// Whether it is one of the functions that refresh the data.
    pub fn is_refresh(&self) -> bool {
        is_refresh(&self.name)
    }
}

open_words! {
    /// The functions of TPC-H that refresh the data; all else is a query.
    QueryName:
    /// New sales.
    RefreshOfNewSales => "RF1",
    /// Old sales.
    RefreshOfOldSales => "RF2",
}

/// Whether this is the name of a function that refreshes the data.
pub fn is_refresh(query: &str) -> bool {
    !matches!(QueryName::from(query), QueryName::Other(_))
}

/// I/O in the measured time over the transactions committed in it: what the database asked for, and what its devices
/// did. What a flush at the end wrote is not in it. Devices of others' files do theirs, too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IoPerTransaction {
    /// Reads of the database; `None` where it does not tell, so for the next three.
    #[serde(default)]
    pub reads: Option<f64>,
    /// Writes of the database, redo included.
    #[serde(default)]
    pub writes: Option<f64>,
    /// Bytes the database read.
    #[serde(default)]
    pub read_bytes: Option<f64>,
    /// Bytes the database wrote, redo included.
    #[serde(default)]
    pub written_bytes: Option<f64>,
    /// Bytes the devices read; `None` when hidden, as below.
    pub device_read_bytes: Option<f64>,
    /// Bytes the devices wrote.
    pub device_written_bytes: Option<f64>,
    /// `device_written_bytes` over `written_bytes`: above 1 for what a layout adds (journals of file systems, mirrors,
    /// parity), below 1 for writes that were merged in memory or had not gone out by the end. `None` when nothing was
    /// written, or one side is unknown.
    pub write_amplification: Option<f64>,
}

impl IoPerTransaction {
    /// From the counts of both sides; `None` without transactions, or without counts.
    pub fn of(
        transactions: u64,
        database: Option<IoCounts>,
        device: Option<IoCounts>,
    ) -> Option<IoPerTransaction> {
        database.or(device).filter(|_| transactions > 0)?;
        let each = |counts: Option<IoCounts>, count: fn(&IoCounts) -> u64| {
            Some(count(&counts?) as f64 / transactions as f64)
        };
        let written = |counts: &IoCounts| counts.write_bytes;
        let amplification = |(database, device): (IoCounts, IoCounts)| {
            (database.write_bytes > 0)
                .then(|| device.write_bytes as f64 / database.write_bytes as f64)
        };
        Some(IoPerTransaction {
            reads: each(database, |counts| counts.reads),
            writes: each(database, |counts| counts.writes),
            read_bytes: each(database, |counts| counts.read_bytes),
            written_bytes: each(database, written),
            device_read_bytes: each(device, |counts| counts.read_bytes),
            device_written_bytes: each(device, written),
            write_amplification: database.zip(device).and_then(amplification),
        })
    }
}

/// The time before the measured one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How long it was, in seconds.
    pub duration_s: f64,
    /// Whether the throughput was stationary when it ended; `false` when the limit ended it.
    pub is_settled: bool,
}

/// Load that arrives at a fixed rate, whatever the database makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Transactions that were to begin each second, of a recording on average.
    pub rate_per_s: f64,
    /// Whether they were to begin when a recording says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_recorded: bool,
    /// Time from the intended begin of a transaction to the begin, for want of a free client.
    pub delay_us: Latency,
    /// Transactions that were due and had not begun when the measured time ended.
    pub backlog: u64,
    /// The backlog grew and was never worked off: the layout cannot carry this load, and its transaction times would
    /// keep growing.
    #[serde(default)]
    pub is_overloaded: bool,
}

/// Transactions that clients put off, as the deliveries of TPC-C: others carry them out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deferred {
    /// Those that ended in the measured time.
    pub transactions: u64,
    /// Time from the moment that each was put off to the end of its commit.
    pub completed_us: Latency,
    /// Those that had not begun when the measured time ended.
    pub waiting: u64,
}

impl Deferred {
    /// Whether more were put off than carried out: at the end more than a tenth of them waited, and more than one for
    /// each of ten clients.
    pub fn is_behind(&self, clients: u64) -> bool {
        self.waiting > (self.transactions / 10).max(clients.div_ceil(10))
    }
}

/// The mean time of a transaction, from its begin to the end of its commit, split into what the session did in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseTime {
    /// The whole, in microseconds.
    pub mean_us: f64,
    /// Its parts, the largest first; they add up to the whole.
    pub parts: Vec<TimePart>,
    /// Microseconds by which the accounts of the parts were beyond the whole, before they were scaled down to it; 0
    /// when they fitted.
    #[serde(default)]
    pub excess_us: f64,
}

impl ResponseTime {
    /// Microseconds of a part; 0 when it is not among the parts.
    pub fn part_us(&self, of: &TimeUse) -> f64 {
        let mut parts = self.parts.iter();
        let part = parts.find(|part| part.part == *of);
        part.map_or(0.0, |part| part.us)
    }
}

/// A part of a transaction's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimePart {
    /// What it went to.
    pub part: TimeUse,
    /// Microseconds of one transaction; never below zero (but for `other` in runs of older versions).
    pub us: f64,
}

/// Space of a table or of the undo segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSpace {
    /// Name of the segment.
    pub segment: String,
    /// Extents it had.
    pub extents: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// Distribution of a time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50: f64,
    /// 95 of 100 took no longer.
    pub p95: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// The waits for one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Which.
    pub event: WaitEvent,
    /// How often someone waited.
    pub count: u64,
    /// Time waited by all together, in microseconds.
    pub total_us: f64,
    /// `total_us / count`; 0 without waits, or when it is not known.
    pub mean_us: f64,
    /// It was seen in samples: `count` says in how many, and the mean of one wait is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
}

/// Shares of the machine's processor time in percent, all processors together; they add up to about 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Running programs, niced ones included.
    pub user: f64,
    /// Running the kernel, interrupts included.
    pub system: f64,
    /// Idle with an I/O outstanding.
    pub iowait: f64,
    /// Idle without.
    pub idle: f64,
}

/// Processor time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuMicroseconds {
    /// In programs.
    pub user: f64,
    /// In the kernel on their behalf.
    pub system: f64,
}

/// Memory that belongs to the trial's process alone, not to files: the page cache is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The buffer cache, as configured.
    pub buffer_cache_bytes: u64,
    /// All else that the process had before there were clients: log buffers, headers of buffers, code's own data.
    pub instance_bytes: u64,
    /// What it had grown by when the measured time ended, for each session: its thread and session, and its share of
    /// all that grew with use.
    pub session_bytes: u64,
}

/// How the database was put back to its loaded state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// Name of the method, the same for every trial of a run.
    pub method: String,
    /// Blocks copied back.
    pub changed_blocks: u64,
    /// Whether the files were compared with the loaded state afterwards and found equal.
    pub verified: bool,
    /// Time it took, in milliseconds; not part of the measured time.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::sample;

    const COUNTED: IoCounts = IoCounts {
        reads: 30,
        writes: 10,
        read_bytes: 3_000,
        write_bytes: 1_000,
    };

    #[test]
    fn a_queue_of_a_tenth_is_behind_unless_each_who_serves_it_has_one() {
        let of = |transactions, waiting| Deferred {
            transactions,
            completed_us: Latency {
                p50: 1.0,
                p95: 1.0,
                p99: 1.0,
                max: 1.0,
                mean: 1.0,
            },
            waiting,
        };
        assert!(!of(1_000, 100).is_behind(8) && of(1_000, 101).is_behind(8));
        assert!(!of(0, 2).is_behind(20) && of(0, 3).is_behind(20));
    }

    #[test]
    fn what_one_side_does_not_tell_is_unknown_and_the_other_is_not() {
        let of_device = IoPerTransaction::of(10, None, Some(COUNTED)).expect("one side tells");
        assert_eq!((of_device.reads, of_device.written_bytes), (None, None));
        assert_eq!(of_device.device_read_bytes, Some(300.0));
        assert_eq!(of_device.write_amplification, None);
        let both = IoPerTransaction::of(10, Some(COUNTED), Some(COUNTED)).expect("both tell");
        assert_eq!(
            (both.reads, both.write_amplification),
            (Some(3.0), Some(1.0))
        );
        assert_eq!(IoPerTransaction::of(10, None, None), None);
        assert_eq!(IoPerTransaction::of(0, Some(COUNTED), None), None);
    }

    #[test]
    fn counts_that_are_null_or_absent_are_read_as_unknown() {
        let told = serde_json::to_value(sample::trial(1, 600.0)).expect("JSON");
        let read = |trial: &Value| Trial::deserialize(trial).expect("a trial");
        assert_eq!(read(&told).read_iops, Some(20.0));
        let mut null = told.clone();
        let mut absent = told;
        for of in ["read_iops", "write_iops", "kib_per_s"] {
            null[of] = Value::Null;
            let fields = absent.as_object_mut().expect("fields");
            fields.remove(of);
        }
        null["audit"]["tool"] = Value::Null;
        let audit = absent["audit"].as_object_mut().expect("fields");
        audit.remove("tool");
        for trial in [null, absent] {
            let trial = read(&trial);
            assert_eq!((trial.read_iops, trial.kib_per_s), (None, None));
            assert_eq!(trial.audit.tool, None);
        }
    }
}
