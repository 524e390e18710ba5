//! Everything counted at one moment of a trial, and what two moments say of the time between them.

use spindle_engines::engine::{CacheCounts, EngineCounts, EngineWait};
use spindle_io::real::{QueueCalls, facts};
use spindle_workload::driver::{StatementTotal, TimeSpent};

use super::response_time::{self, MeanTime, response_time};
use spindle_result::{
    CacheUse, ClientProcessors, CpuMicroseconds, CpuShares, IoCalls, IoCounts, ResponseTime,
    StatementTime, Wait,
};
use spindle_system::disk::DiskCounters;
use spindle_system::sampler::Sample;
use spindle_system::threads::ThreadTimes;
use spindle_system::{DeviceNumber, SystemTree};

/// Everything counted, at one moment.
#[derive(Clone)]
pub(super) struct CounterSnapshot {
    pub at_ns: u64,
    pub committed: u64,
    /// By each client.
    pub committed_by_client: Vec<u64>,
    /// What the clients did until then.
    pub spent: TimeSpent,
    pub retries: u64,
    pub deadlocks: u64,
    pub errors: u64,
    pub reconnects: u64,
    pub counts: Option<EngineCounts>,
    pub waits: Vec<EngineWait>,
    pub session_waits: Vec<EngineWait>,
    pub statements: Vec<StatementTotal>,
    /// How often the buffer cache was of use.
    pub cache: Option<CacheCounts>,
    /// The threads of the clients alone.
    pub drivers: Option<ThreadTimes>,
    /// The threads of the clients, and those of a server that serve them; `None` when the system does not tell of them.
    pub clients: Option<ThreadTimes>,
    pub system: Sample,
    /// What this process did beside its I/O.
    pub process: ProcessCounts,
    /// What this process was charged with on the disks of the limit, in their order.
    pub charged: Vec<Option<DiskCounters>>,
}

/// System calls and context switches of this process, and the kernel's workers for it.
#[derive(Clone, Copy)]
pub(super) struct ProcessCounts {
    pub(super) queue: QueueCalls,
    pub(super) sleeps: u64,
    pub(super) preemptions: u64,
    pub(super) workers_ns: u64,
}

/// What the threads are called on which io_uring carries out what would block.
const KERNEL_WORKERS: &str = "iou-wrk";

impl ProcessCounts {
    pub(super) fn now(files: &SystemTree) -> ProcessCounts {
        let workers = ThreadTimes::of(files, std::process::id(), KERNEL_WORKERS);
        ProcessCounts {
            queue: QueueCalls::now(),
            sleeps: facts::sleeps(),
            preemptions: facts::preemptions(),
            workers_ns: workers.map_or(0, |workers| workers.running_ns),
        }
    }
}

pub(super) fn io_calls(begin: &CounterSnapshot, end: &CounterSnapshot) -> Option<IoCalls> {
    let done = physical_counts(begin, end)?;
    let (before, after) = (begin.process, end.process);
    let queue = after.queue - before.queue;
    let requests = done.reads + done.writes;
    Some(IoCalls {
        requests,
        // What was not queued blocked its thread in its own call.
        calls: requests.saturating_sub(queue.requests) + queue.calls,
        submits: queue.submits,
        queued: queue.requests,
        kernel_workers_us: after.workers_ns.saturating_sub(before.workers_ns) / 1_000,
        sleeps: after.sleeps - before.sleeps,
        preemptions: after.preemptions - before.preemptions,
    })
}

/// What the database asked for; `None` where it does not tell.
pub(super) fn tool_counts(begin: &CounterSnapshot, end: &CounterSnapshot) -> Option<IoCounts> {
    let done = end.counts?.since(&begin.counts?)?;
    Some(counts_of(done.data + done.redo))
}

/// The same, with every copy that disk groups wrote.
pub(super) fn physical_counts(begin: &CounterSnapshot, end: &CounterSnapshot) -> Option<IoCounts> {
    let tool = tool_counts(begin, end)?;
    let done = end.counts?.since(&begin.counts?)?;
    Some(on_disks(
        tool,
        counts_of(done.grouped),
        counts_of(done.disks),
    ))
}

/// What was asked for, with what disk groups were asked for replaced by what they did on their disks. The three are
/// counted one after the other while I/O continues, so the groups may be ahead of the whole by what came between.
fn on_disks(tool: IoCounts, grouped: IoCounts, disks: IoCounts) -> IoCounts {
    let of = |field: fn(&IoCounts) -> u64| {
        (field(&tool) + field(&disks)).saturating_sub(field(&grouped))
    };
    IoCounts {
        reads: of(|counts| counts.reads),
        writes: of(|counts| counts.writes),
        read_bytes: of(|counts| counts.read_bytes),
        write_bytes: of(|counts| counts.write_bytes),
    }
}

fn counts_of(counts: spindle_io::real::IoCounts) -> IoCounts {
    IoCounts {
        reads: counts.reads,
        writes: counts.writes,
        read_bytes: counts.read_bytes,
        write_bytes: counts.write_bytes,
    }
}

/// What the devices did between two looks; `None` where there are none, or one is hidden.
pub(crate) fn device_counts(begin: &Sample, end: &Sample) -> Option<IoCounts> {
    if begin.disks.is_empty() {
        return None;
    }
    let mut sum = IoCounts::default();
    for (before, after) in begin.disks.iter().zip(&end.disks) {
        let DiskCounters {
            reads,
            read_bytes,
            writes,
            written_bytes,
            ..
        } = after.counters?.since(&before.counters?);
        sum.reads += reads;
        sum.read_bytes += read_bytes;
        sum.writes += writes;
        sum.write_bytes += written_bytes;
    }
    Some(sum)
}

pub(super) fn done_on(
    device: DeviceNumber,
    begin: &CounterSnapshot,
    end: &CounterSnapshot,
) -> Option<DiskCounters> {
    let of = |moment: &CounterSnapshot| {
        let mut disks = moment.system.disks.iter();
        disks.find(|disk| disk.device == device)?.counters
    };
    Some(of(end)?.since(&of(begin)?))
}

/// Bytes that the processes fetched from storage between two looks.
pub(crate) fn fetched_bytes(begin: &Sample, end: &Sample) -> Option<u64> {
    let (before, after) = (begin.process_io?, end.process_io?);
    Some(after.since(&before).read_bytes)
}

/// Those that sessions waited for in between.
pub(super) fn waits_between(begin: &[EngineWait], end: &[EngineWait], sampled: bool) -> Vec<Wait> {
    let mut waits = waits(begin, end, sampled);
    waits.retain(|wait| wait.count > 0);
    waits
}

pub(super) fn waits(begin: &[EngineWait], end: &[EngineWait], sampled: bool) -> Vec<Wait> {
    // What others set to zero meanwhile is unknown.
    let difference = |(before, after): (&EngineWait, &EngineWait)| {
        let count = after.count.checked_sub(before.count)?;
        let total_us = after.total_ns.checked_sub(before.total_ns)? as f64 / 1e3;
        let mean_us = if count > 0 && !sampled {
            total_us / count as f64
        } else {
            0.0
        };
        Some(Wait {
            event: (&*after.event).into(),
            count,
            total_us,
            mean_us,
            sampled,
        })
    };
    EngineWait::pairs(begin, end)
        .filter_map(difference)
        .collect()
}

/// How often the cache, of this many bytes, was of use in the measured time, by its counts before there were clients,
/// at the begin of that time and at its end.
pub(super) fn cache_use(counts: [Option<CacheCounts>; 3], cache_bytes: u64) -> Option<CacheUse> {
    let [Some(start), Some(begin), Some(end)] = counts else {
        return None;
    };
    let read_in_bytes = end.read_in.saturating_sub(start.read_in) * end.block_bytes;
    Some(CacheUse {
        wanted: end.wanted.saturating_sub(begin.wanted),
        missed: end.missed.saturating_sub(begin.missed),
        filled_at_end: (read_in_bytes as f64 / cache_bytes.max(1) as f64).min(1.0),
    })
}

/// What statements took that ended in between. A client that connected again has the same ones.
pub(super) fn statements(begin: &[StatementTotal], end: &[StatementTotal]) -> Vec<StatementTime> {
    let of = |after: &StatementTotal| {
        let mut before = begin.iter();
        let before = before.find(|before| before.statement == after.statement);
        let (count, timed, total_ns) = before.map_or((0, 0, 0), |before| {
            (before.count, before.timed, before.total_ns)
        });
        let (count, timed) = (after.count - count, after.timed - timed);
        (timed > 0).then(|| StatementTime {
            statement: after.statement.clone(),
            count,
            mean_us: (after.total_ns - total_ns) as f64 / 1e3 / timed as f64,
        })
    };
    end.iter().filter_map(of).collect()
}

pub(super) fn response_time_between(
    begin: &CounterSnapshot,
    end: &CounterSnapshot,
    mean: MeanTime,
    transactions: u64,
    longest_us: f64,
) -> Option<ResponseTime> {
    let clients = end.clients?.since(&begin.clients?);
    let waits = response_time::waits_between(&begin.session_waits, &end.session_waits);
    response_time(mean, transactions, &clients, &waits, longest_us)
}

/// What clients took of the processors during this much time in transactions.
pub(super) fn client_processors(
    begin: &CounterSnapshot,
    end: &CounterSnapshot,
    in_transactions_ns: u64,
) -> Option<ClientProcessors> {
    let used = end.drivers?.since(&begin.drivers?);
    let share = |ns: u64| (ns as f64 / in_transactions_ns as f64).min(1.0);
    (in_transactions_ns > 0).then(|| ClientProcessors {
        running: share(used.running_ns),
        waiting: share(used.run_queue_ns),
    })
}

/// How processors spent the time between two looks, and what a hypervisor took of it, percent.
pub(crate) fn cpu_shares(begin: &Sample, end: &Sample) -> (Option<CpuShares>, f64) {
    let shares = match (begin.cpu, end.cpu) {
        (Some(before), Some(after)) => after.since(&before).shares(),
        _ => None,
    };
    let cpu = shares.map(|shares| CpuShares {
        user: shares.user_percent,
        system: shares.system_percent,
        iowait: shares.iowait_percent,
        idle: shares.idle_percent,
    });
    (cpu, shares.map_or(0.0, |shares| shares.steal_percent))
}

/// Processor time of the processes between two looks, for each transaction.
pub(crate) fn cpu_per_transaction(
    begin: &Sample,
    end: &Sample,
    transactions: u64,
) -> Option<CpuMicroseconds> {
    let used = end.process_cpu?.since(&begin.process_cpu?);
    (transactions > 0).then(|| CpuMicroseconds {
        user: used.user_us as f64 / transactions as f64,
        system: used.system_us as f64 / transactions as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(reads: u64, writes: u64) -> IoCounts {
        IoCounts {
            reads,
            writes,
            read_bytes: reads * 8192,
            write_bytes: writes * 8192,
        }
    }

    #[test]
    fn a_cache_is_as_full_as_what_was_read_into_it_since_the_start() {
        let at = |wanted, missed, read_in| {
            Some(CacheCounts {
                wanted,
                missed,
                read_in,
                block_bytes: 8192,
            })
        };
        let used = cache_use([at(5, 5, 10), at(100, 60, 90), at(300, 90, 138)], 2 << 20);
        let filled = |filled_at_end| CacheUse {
            wanted: 200,
            missed: 30,
            filled_at_end,
        };
        assert_eq!(used, Some(filled(0.5)));
        let full = cache_use([at(5, 5, 10), at(100, 60, 90), at(300, 90, 138)], 1 << 10);
        assert_eq!(full, Some(filled(1.0)));
        assert_eq!(cache_use([at(5, 5, 5), None, at(9, 9, 9)], 1), None);
    }

    #[test]
    fn statements_are_those_that_ended_in_between() {
        // Of each two executions one is timed.
        let total = |statement: &str, count, total_ns| StatementTotal {
            statement: statement.to_owned(),
            count,
            timed: u64::div_ceil(count, 2),
            total_ns,
        };
        let before = [total("select", 10, 5_000), total("commit", 2, 100)];
        let after = [
            total("select", 14, 13_000),
            total("commit", 2, 100),
            total("insert", 1, 7_000),
        ];
        let time = |statement: &str, count, mean_us| StatementTime {
            statement: statement.to_owned(),
            count,
            mean_us,
        };
        assert_eq!(
            statements(&before, &after),
            [time("select", 4, 4.0), time("insert", 1, 7.0)]
        );
        assert_eq!(statements(&[], &after[2..]), [time("insert", 1, 7.0)]);
    }

    #[test]
    fn copies_of_disk_groups_are_counted_even_when_a_group_is_ahead_of_the_whole() {
        let on_mirrors = on_disks(counts(100, 60), counts(90, 50), counts(90, 100));
        assert_eq!(on_mirrors, counts(100, 110));
        let ahead = on_disks(counts(100, 50), counts(101, 51), counts(101, 102));
        assert_eq!(ahead, counts(100, 101));
    }
}
