//! A measured time of several turns: what was counted in each, added up as if they had followed each other. Between its
//! turns a trial is at rest, and others have theirs.

use spindle_engines::engine::{CacheCounts, EngineCounts, EngineWait};
use spindle_io::real::QueueCalls;
use spindle_result::{SystemColumn, SystemSeries};
use spindle_system::disk::DiskCounters;
use spindle_system::sampler::{DiskSample, Sample};
use spindle_workload::driver::StatementTotal;

use super::counter_snapshot::{CounterSnapshot, ProcessCounts};

impl CounterSnapshot {
    /// Puts this moment, the end of the turns so far, off by what was counted from `begin` to `end`, another turn.
    pub(super) fn put_off(&mut self, begin: &CounterSnapshot, end: &CounterSnapshot) {
        let add = |sum: &mut u64, begin: u64, end: u64| *sum += end.saturating_sub(begin);
        add(&mut self.at_ns, begin.at_ns, end.at_ns);
        add(&mut self.committed, begin.committed, end.committed);
        let clients = begin
            .committed_by_client
            .iter()
            .zip(&end.committed_by_client);
        for (sum, (&begin, &end)) in self.committed_by_client.iter_mut().zip(clients) {
            add(sum, begin, end);
        }
        self.spent.add(&end.spent.since(&begin.spent));
        add(&mut self.retries, begin.retries, end.retries);
        add(&mut self.deadlocks, begin.deadlocks, end.deadlocks);
        add(&mut self.errors, begin.errors, end.errors);
        add(&mut self.reconnects, begin.reconnects, end.reconnects);
        self.counts = known([self.counts, begin.counts, end.counts], counts).flatten();
        put_off_waits(&mut self.waits, &begin.waits, &end.waits);
        put_off_waits(
            &mut self.session_waits,
            &begin.session_waits,
            &end.session_waits,
        );
        put_off_statements(&mut self.statements, &begin.statements, &end.statements);
        self.cache = known([self.cache, begin.cache, end.cache], cache);
        self.clients = known(
            [self.clients, begin.clients, end.clients],
            |sum, begin, end| sum.plus(&end.since(&begin)),
        );
        put_off_sample(&mut self.system, &begin.system, &end.system);
        self.process = process(self.process, begin.process, end.process);
        let charged = begin.charged.iter().zip(&end.charged);
        for (sum, (begin, end)) in self.charged.iter_mut().zip(charged) {
            *sum = known([*sum, *begin, *end], disk);
        }
    }
}

/// A sum that is known where all of its parts are.
fn known<T: Copy, S>(parts: [Option<T>; 3], sum: impl Fn(T, T, T) -> S) -> Option<S> {
    let [so_far, begin, end] = parts;
    Some(sum(so_far?, begin?, end?))
}

fn counts(sum: EngineCounts, begin: EngineCounts, end: EngineCounts) -> Option<EngineCounts> {
    let turn = end.since(&begin)?;
    Some(EngineCounts {
        data: sum.data + turn.data,
        redo: sum.redo + turn.redo,
        grouped: sum.grouped + turn.grouped,
        disks: sum.disks + turn.disks,
    })
}

fn put_off_waits(sums: &mut [EngineWait], begin: &[EngineWait], end: &[EngineWait]) {
    for (begin, end) in EngineWait::pairs(begin, end) {
        let mut sums = sums.iter_mut();
        let Some(sum) = sums.find(|sum| sum.event == end.event) else {
            continue;
        };
        sum.count += end.count.saturating_sub(begin.count);
        sum.total_ns += end.total_ns.saturating_sub(begin.total_ns);
        sum.sampled.total_ns += end.sampled.total_ns - begin.sampled.total_ns;
        sum.sampled.running_ns += end.sampled.running_ns - begin.sampled.running_ns;
        sum.sampled.run_queue_ns += end.sampled.run_queue_ns - begin.sampled.run_queue_ns;
    }
}

fn put_off_statements(
    sums: &mut Vec<StatementTotal>,
    begin: &[StatementTotal],
    end: &[StatementTotal],
) {
    for after in end {
        let is_same = |other: &&StatementTotal| other.statement == after.statement;
        let before = begin.iter().find(is_same);
        let (count, timed, total_ns) =
            before.map_or((0, 0, 0), |it| (it.count, it.timed, it.total_ns));
        let more = StatementTotal {
            statement: after.statement.clone(),
            count: after.count - count,
            timed: after.timed - timed,
            total_ns: after.total_ns - total_ns,
        };
        match sums.iter_mut().find(|sum| sum.statement == more.statement) {
            Some(sum) => {
                sum.count += more.count;
                sum.timed += more.timed;
                sum.total_ns += more.total_ns;
            }
            None => sums.push(more),
        }
    }
}

fn cache(sum: CacheCounts, begin: CacheCounts, end: CacheCounts) -> CacheCounts {
    CacheCounts {
        wanted: sum.wanted + end.wanted.saturating_sub(begin.wanted),
        missed: sum.missed + end.missed.saturating_sub(begin.missed),
        // What was read in between two turns is in the cache all the same.
        read_in: end.read_in,
        block_bytes: sum.block_bytes,
    }
}

fn disk(sum: DiskCounters, begin: DiskCounters, end: DiskCounters) -> DiskCounters {
    DiskCounters::total(&[sum, end.since(&begin)])
}

fn put_off_sample(sum: &mut Sample, begin: &Sample, end: &Sample) {
    sum.cpu = known([sum.cpu, begin.cpu, end.cpu], |sum, begin, end| {
        sum.and(&end.since(&begin))
    });
    let process_cpu = [sum.process_cpu, begin.process_cpu, end.process_cpu];
    sum.process_cpu = known(process_cpu, |sum, begin, end| sum.and(&end.since(&begin)));
    let process_io = [sum.process_io, begin.process_io, end.process_io];
    sum.process_io = known(process_io, |sum, begin, end| sum.and(&end.since(&begin)));
    let disks = begin.disks.iter().zip(&end.disks);
    for (sum, (begin, end)) in sum.disks.iter_mut().zip(disks) {
        *sum = DiskSample {
            device: sum.device,
            counters: known([sum.counters, begin.counters, end.counters], disk),
        };
    }
}

fn process(sum: ProcessCounts, begin: ProcessCounts, end: ProcessCounts) -> ProcessCounts {
    let queue = end.queue - begin.queue;
    ProcessCounts {
        queue: QueueCalls {
            calls: sum.queue.calls + queue.calls,
            submits: sum.queue.submits + queue.submits,
            requests: sum.queue.requests + queue.requests,
        },
        sleeps: sum.sleeps + (end.sleeps - begin.sleeps),
        preemptions: sum.preemptions + (end.preemptions - begin.preemptions),
        workers_ns: sum.workers_ns + end.workers_ns.saturating_sub(begin.workers_ns),
    }
}

/// Adds the series of another turn behind that of those before. What only some turns know, such as how long writes
/// took, is unknown in the others.
pub(super) fn join_series(series: &mut SystemSeries, next: SystemSeries) {
    let samples =
        |columns: &[SystemColumn]| columns.first().map_or(0, |column| column.values.len());
    let (before, more) = (samples(&series.columns), samples(&next.columns));
    series.interval_ms = next.interval_ms;
    for column in &next.columns {
        if series.column(&column.name).is_none() {
            series.columns.push(SystemColumn {
                name: column.name.clone(),
                values: vec![None; before],
            });
        }
    }
    for column in &mut series.columns {
        match next.column(&column.name) {
            Some(values) => column.values.extend_from_slice(values),
            None => column.values.resize(before + more, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_between_two_turns_does_not_count() {
        let at = |wanted, missed, read_in| CacheCounts {
            wanted,
            missed,
            read_in,
            block_bytes: 8192,
        };
        // The first turn ended at 100; until the second began, 50 more were wanted.
        let sum = cache(at(100, 20, 30), at(150, 40, 60), at(250, 45, 70));
        assert_eq!(sum, at(200, 25, 70));
        let disk_at = |reads, busy_ms| DiskCounters {
            reads,
            busy_ms,
            ..DiskCounters::default()
        };
        let sum = disk(disk_at(10, 5), disk_at(1_000, 500), disk_at(1_007, 503));
        assert_eq!((sum.reads, sum.busy_ms), (17, 8));
    }

    #[test]
    fn what_is_not_known_of_a_turn_is_not_known_of_all() {
        let add = |sum: u64, begin: u64, end: u64| sum + end - begin;
        assert_eq!(known([Some(5), Some(10), Some(12)], add), Some(7));
        assert_eq!(known([Some(5), None, Some(12)], add), None);
        assert_eq!(known([None, Some(10), Some(12)], add), None);
    }

    #[test]
    fn statements_and_waits_of_turns_add_up() {
        let total = |statement: &str, count| StatementTotal {
            statement: statement.to_owned(),
            count,
            timed: count,
            total_ns: 10 * count,
        };
        let mut sums = vec![total("a", 5)];
        let after = [total("a", 9), total("b", 2)];
        put_off_statements(&mut sums, &[total("a", 7)], &after);
        assert_eq!(sums, [total("a", 7), total("b", 2)]);

        let wait = |count| EngineWait {
            event: "log file sync".into(),
            count,
            total_ns: 3 * count,
            sampled: Default::default(),
        };
        let mut waits = [wait(4)];
        put_off_waits(&mut waits, &[wait(10)], &[wait(16)]);
        assert_eq!(waits, [wait(10)]);
    }

    #[test]
    fn series_of_turns_follow_each_other() {
        let series = |values: &[f32]| SystemSeries {
            interval_ms: 100,
            columns: vec![SystemColumn {
                name: "dirty_mib".into(),
                values: values.iter().map(|value| Some(*value)).collect(),
            }],
        };
        let mut joined = SystemSeries::default();
        join_series(&mut joined, series(&[1.0, 2.0]));
        join_series(&mut joined, series(&[3.0]));
        assert_eq!(joined, series(&[1.0, 2.0, 3.0]));
    }

    #[test]
    fn what_only_some_turns_know_stays_in_its_own_column() {
        let series = |columns: &[(&str, &[f32])]| SystemSeries {
            interval_ms: 100,
            columns: Vec::from_iter(columns.iter().map(|(name, values)| SystemColumn {
                name: (*name).into(),
                values: values.iter().map(|value| Some(*value)).collect(),
            })),
        };
        let mut joined = SystemSeries::default();
        join_series(
            &mut joined,
            series(&[("dirty_mib", &[1.0, 2.0]), ("tps", &[10.0, 20.0])]),
        );
        join_series(
            &mut joined,
            series(&[("device_write_time_us", &[7.0]), ("tps", &[30.0])]),
        );
        let values = |name: &str| joined.column(&name.into()).unwrap().to_vec();
        assert_eq!(values("dirty_mib"), [Some(1.0), Some(2.0), None]);
        assert_eq!(values("tps"), [Some(10.0), Some(20.0), Some(30.0)]);
        assert_eq!(values("device_write_time_us"), [None, None, Some(7.0)]);
        assert!(joined.columns.iter().all(|column| column.values.len() == 3));
    }
}
