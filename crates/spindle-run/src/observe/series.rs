//! What the system did during a trial as columns over time: each value is of the interval between two snapshots. One
//! list says what columns there are; a column more is a line more.

use spindle_engines::engine::CacheCounts;
use spindle_result::{SystemColumn, SystemSeries};

use spindle_system::cpu::{CpuShares, CpuTimes};
use spindle_system::disk::DiskCounters;
use spindle_system::sampler::{MemoryState, Pressure, Sample};

const MIB: f64 = (1 << 20) as f64;

/// What the database says of itself at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseState {
    /// Checkpoints so far: positions entered in the control file; `None` where it does not tell, so for the others.
    pub checkpoints: Option<u64>,
    /// Log switches so far.
    pub log_switches: Option<u64>,
    /// Changed blocks in the buffer cache, bytes.
    pub dirty_buffer_bytes: Option<u64>,
    /// How often the buffer cache was of use so far, where that is counted.
    pub cache: Option<CacheCounts>,
    /// Space of all segments, bytes, where that is known at any time.
    pub segments_bytes: Option<u64>,
}

/// Everything looked at together.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesLook {
    /// The system.
    pub system: Sample,
    /// The database; `None` when only its machine is looked at.
    pub database: Option<DatabaseState>,
    /// Writing threads that wait for a file's lock; `None` when the system does not say.
    pub writers_waiting: Option<u32>,
    /// Processor time that looking has taken so far, nanoseconds.
    pub own_cpu_ns: u64,
}

/// Two looks, one after the other.
struct Interval<'a> {
    before: &'a SeriesLook,
    after: &'a SeriesLook,
}

type Figure = fn(&Interval<'_>) -> Option<f64>;

/// The columns. Those of devices are the sums over all devices of the layout, but for utilisation, which is the busiest
/// one's.
const COLUMNS: &[(&str, Figure)] = &[
    ("device_reads_per_s", |it| it.rate(it.disk()?.reads)),
    ("device_writes_per_s", |it| it.rate(it.disk()?.writes)),
    ("device_flushes_per_s", |it| it.rate(it.disk()?.flushes?)),
    ("device_read_mib_per_s", |it| {
        Some(it.rate(it.disk()?.read_bytes)? / MIB)
    }),
    ("device_written_mib_per_s", |it| {
        Some(it.rate(it.disk()?.written_bytes)? / MIB)
    }),
    ("device_merged_reads_per_s", |it| {
        it.rate(it.disk()?.merged_reads)
    }),
    ("device_merged_writes_per_s", |it| {
        it.rate(it.disk()?.merged_writes)
    }),
    // Mean number of requests under way, by the time they were under way (iostat's aqu-sz).
    ("device_queue_requests", |it| {
        Some(it.disk()?.queue_ms as f64 / 1e3 / it.seconds()?)
    }),
    // From the issue of a request to its completion (iostat's r_await, w_await).
    ("device_read_time_us", |it| {
        mean_us(it.disk()?.read_ms, it.disk()?.reads)
    }),
    ("device_write_time_us", |it| {
        mean_us(it.disk()?.write_ms, it.disk()?.writes)
    }),
    ("device_utilisation_percent", |it| it.utilisation_percent()),
    ("page_cache_mib", |it| {
        Some(it.memory()?.cached_bytes as f64 / MIB)
    }),
    ("dirty_mib", |it| {
        Some(it.memory()?.dirty_bytes as f64 / MIB)
    }),
    ("writeback_mib", |it| {
        Some(it.memory()?.writeback_bytes as f64 / MIB)
    }),
    ("dirty_buffers_mib", |it| {
        Some(it.after.database?.dirty_buffer_bytes? as f64 / MIB)
    }),
    ("segments_mib", |it| {
        Some(it.after.database?.segments_bytes? as f64 / MIB)
    }),
    ("buffer_cache_hit_percent", |it| it.hit_percent()),
    // By the processes of the database, whatever else uses the device.
    ("fetched_mib_per_s", |it| {
        let (before, after) = (it.before.system.process_io?, it.after.system.process_io?);
        Some(it.rate(after.since(&before).read_bytes)? / MIB)
    }),
    ("checkpoints", |it| {
        count(
            it.before.database?.checkpoints?,
            it.after.database?.checkpoints?,
        )
    }),
    ("log_switches", |it| {
        count(
            it.before.database?.log_switches?,
            it.after.database?.log_switches?,
        )
    }),
    ("context_switches_per_s", |it| {
        let (before, after) = (it.before.system.scheduler?, it.after.system.scheduler?);
        it.rate(
            after
                .context_switches
                .saturating_sub(before.context_switches),
        )
    }),
    // At the moment of the look, the one that looks not counted.
    ("runnable_threads", |it| {
        Some(it.after.system.scheduler?.runnable.saturating_sub(1) as f64)
    }),
    ("blocked_threads", |it| {
        Some(it.after.system.scheduler?.blocked as f64)
    }),
    ("writers_waiting_for_file_lock", |it| {
        it.after.writers_waiting.map(f64::from)
    }),
    ("cpu_user_percent", |it| Some(it.cpu()?.user_percent)),
    ("cpu_system_percent", |it| Some(it.cpu()?.system_percent)),
    ("cpu_iowait_percent", |it| Some(it.cpu()?.iowait_percent)),
    ("cpu_steal_percent", |it| Some(it.cpu()?.steal_percent)),
    // Programs other than the database: the kernel's own threads, which work for it too, have no time in programs.
    ("other_programs_cpu_percent", |it| {
        it.other_programs_percent()
    }),
    ("cpu_throttled_percent", |it| {
        let (before, after) = (
            it.before.system.cpu_throttled_us?,
            it.after.system.cpu_throttled_us?,
        );
        it.percent_of_time(after.saturating_sub(before) as f64)
    }),
    ("cpu_pressure_percent", |it| {
        it.pressure(|sample| sample.cpu_pressure)
    }),
    ("memory_pressure_percent", |it| {
        it.pressure(|sample| sample.memory_pressure)
    }),
    ("io_pressure_percent", |it| {
        it.pressure(|sample| sample.io_pressure)
    }),
    // What all of this costs, of one processor.
    ("sampler_cpu_percent", |it| {
        it.percent_of_time((it.after.own_cpu_ns - it.before.own_cpu_ns) as f64 / 1e3)
    }),
];

fn count(before: u64, after: u64) -> Option<f64> {
    Some(after.saturating_sub(before) as f64)
}

/// Mean time of a request; `None` without requests.
fn mean_us(total_ms: u64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| total_ms as f64 * 1e3 / requests as f64)
}

impl Interval<'_> {
    fn seconds(&self) -> Option<f64> {
        let us = (self.after.system.elapsed_us).checked_sub(self.before.system.elapsed_us)?;
        (us > 0).then_some(us as f64 / 1e6)
    }

    fn rate(&self, count: u64) -> Option<f64> {
        Some(count as f64 / self.seconds()?)
    }

    fn percent_of_time(&self, us: f64) -> Option<f64> {
        Some(us / 1e4 / self.seconds()?)
    }

    /// What each device did; `None` when there is none, or one is hidden.
    fn disks(&self) -> Option<Vec<DiskCounters>> {
        let pairs = self
            .before
            .system
            .disks
            .iter()
            .zip(&self.after.system.disks);
        let did = pairs.map(|(before, after)| Some(after.counters?.since(&before.counters?)));
        let did: Vec<DiskCounters> = did.collect::<Option<_>>()?;
        (!did.is_empty()).then_some(did)
    }

    fn disk(&self) -> Option<DiskCounters> {
        Some(DiskCounters::total(&self.disks()?))
    }

    fn utilisation_percent(&self) -> Option<f64> {
        let busiest_ms = self.disks()?.iter().map(|disk| disk.busy_ms).max()?;
        Some(self.percent_of_time(busiest_ms as f64 * 1e3)?.min(100.0))
    }

    fn memory(&self) -> Option<MemoryState> {
        self.after.system.memory
    }

    fn cpu_times(&self) -> Option<CpuTimes> {
        Some(self.after.system.cpu?.since(&self.before.system.cpu?))
    }

    fn cpu(&self) -> Option<CpuShares> {
        self.cpu_times()?.shares()
    }

    /// Share of the blocks wanted that the buffer cache held; `None` when none was wanted.
    fn hit_percent(&self) -> Option<f64> {
        let (before, after) = (self.before.database?.cache?, self.after.database?.cache?);
        let wanted = after.wanted.saturating_sub(before.wanted);
        let missed = after.missed.saturating_sub(before.missed);
        // Blocks that are read ahead are read before they are wanted.
        (wanted > 0).then(|| 100.0 * (1.0 - missed as f64 / wanted as f64).max(0.0))
    }

    fn other_programs_percent(&self) -> Option<f64> {
        let all_us = self.cpu_times()?.user_us as f64;
        let own = self
            .after
            .system
            .process_cpu?
            .since(&self.before.system.process_cpu?);
        let user_percent = self.cpu()?.user_percent;
        // Both count in ticks, each in its own.
        Some(match all_us > 0.0 {
            true => user_percent * (1.0 - own.user_us as f64 / all_us).max(0.0),
            false => 0.0,
        })
    }

    fn pressure(&self, of: fn(&Sample) -> Option<Pressure>) -> Option<f64> {
        let (before, after) = (of(&self.before.system)?, of(&self.after.system)?);
        let lost = after.since(&before);
        Some(self.percent_of_time(lost.some_us as f64)?.min(100.0))
    }
}

/// Columns being filled, look by look.
#[derive(Debug)]
pub struct SeriesBuilder {
    last: SeriesLook,
    columns: Vec<SystemColumn>,
}

impl SeriesBuilder {
    /// Begins with a look from which the first interval counts.
    pub fn new(first: SeriesLook) -> SeriesBuilder {
        let empty = |(name, _): &(&str, Figure)| SystemColumn {
            name: (*name).into(),
            values: Vec::new(),
        };
        SeriesBuilder {
            last: first,
            columns: COLUMNS.iter().map(empty).collect(),
        }
    }

    /// Adds the interval that ends with this look.
    pub fn add(&mut self, look: SeriesLook) {
        let interval = Interval {
            before: &self.last,
            after: &look,
        };
        for ((_, figure), column) in COLUMNS.iter().zip(&mut self.columns) {
            let value = figure(&interval).filter(|value| value.is_finite());
            column.values.push(value.map(|value| value as f32));
        }
        self.last = look;
    }

    /// Adds an interval of which nothing is known.
    pub fn add_unknown(&mut self) {
        for column in &mut self.columns {
            column.values.push(None);
        }
    }

    /// The columns of which anything is known.
    pub fn finish(self, interval_ms: u64) -> SystemSeries {
        let is_known = |column: &SystemColumn| column.values.iter().any(Option::is_some);
        SystemSeries {
            interval_ms,
            columns: self.columns.into_iter().filter(is_known).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_system::DeviceNumber;
    use spindle_system::cpu::ProcessCpu;
    use spindle_system::sampler::{DiskSample, Scheduler};

    fn look(elapsed_us: u64) -> SeriesLook {
        let nothing = Sample {
            elapsed_us,
            cpu: None,
            process_cpu: None,
            process_io: None,
            disks: Vec::new(),
            memory: None,
            scheduler: None,
            cpu_throttled_us: None,
            cpu_pressure: None,
            memory_pressure: None,
            io_pressure: None,
        };
        SeriesLook {
            system: nothing,
            database: Some(DatabaseState::default()),
            writers_waiting: None,
            own_cpu_ns: 0,
        }
    }

    fn series(first: SeriesLook, second: SeriesLook) -> SystemSeries {
        let mut builder = SeriesBuilder::new(first);
        builder.add(second);
        builder.finish(1000)
    }

    fn value(series: &SystemSeries, name: &str) -> Option<f32> {
        series.column(&name.into())?[0]
    }

    #[test]
    fn rates_and_times_are_of_the_interval_and_all_devices() {
        let disk = |reads, read_ms, busy_ms| DiskSample {
            device: DeviceNumber { major: 8, minor: 0 },
            counters: Some(DiskCounters {
                reads,
                read_ms,
                busy_ms,
                queue_ms: 3 * busy_ms,
                ..DiskCounters::default()
            }),
        };
        let (mut first, mut second) = (look(500_000), look(2_500_000));
        first.system.disks = vec![disk(10, 0, 0), disk(0, 0, 0)];
        second.system.disks = vec![disk(110, 150, 1_000), disk(100, 50, 500)];
        let series = series(first, second);
        assert_eq!(value(&series, "device_reads_per_s"), Some(100.0));
        assert_eq!(value(&series, "device_read_time_us"), Some(1_000.0));
        assert_eq!(value(&series, "device_queue_requests"), Some(2.25));
        assert_eq!(value(&series, "device_utilisation_percent"), Some(50.0));
        // Without a write there is no mean of writes, and what was never known is no column.
        assert_eq!(series.column(&"device_write_time_us".into()), None);
        assert_eq!(series.column(&"cpu_user_percent".into()), None);
    }

    #[test]
    fn programs_that_are_not_the_database_show() {
        let (mut first, mut second) = (look(0), look(1_000_000));
        first.system.cpu = Some(CpuTimes::default());
        first.system.process_cpu = Some(ProcessCpu::default());
        second.system.cpu = Some(CpuTimes {
            user_us: 1_000_000,
            system_us: 500_000,
            idle_us: 500_000,
            ..CpuTimes::default()
        });
        second.system.process_cpu = Some(ProcessCpu {
            user_us: 600_000,
            system_us: 100_000,
        });
        let series = series(first, second);
        assert_eq!(value(&series, "cpu_user_percent"), Some(50.0));
        assert_eq!(value(&series, "other_programs_cpu_percent"), Some(20.0));
    }

    #[test]
    fn what_the_cache_held_is_of_the_interval() {
        let cache = |wanted, missed| DatabaseState {
            cache: Some(CacheCounts {
                wanted,
                missed,
                ..CacheCounts::default()
            }),
            ..DatabaseState::default()
        };
        let hit = |first, second| {
            let (mut before, mut after) = (look(0), look(1_000_000));
            (before.database, after.database) = (Some(first), Some(second));
            value(&series(before, after), "buffer_cache_hit_percent")
        };
        assert_eq!(hit(cache(1_000, 900), cache(1_200, 950)), Some(75.0));
        assert_eq!(hit(cache(1_000, 900), cache(1_010, 950)), Some(0.0));
        assert_eq!(hit(cache(1_000, 900), cache(1_000, 900)), None);
        assert_eq!(hit(cache(1_000, 900), DatabaseState::default()), None);
    }

    #[test]
    fn the_database_and_the_sampler_itself_have_columns() {
        let (mut first, mut second) = (look(0), look(1_000_000));
        first.database = Some(DatabaseState {
            checkpoints: Some(0),
            log_switches: Some(0),
            ..DatabaseState::default()
        });
        second.database = Some(DatabaseState {
            checkpoints: Some(2),
            log_switches: Some(1),
            dirty_buffer_bytes: Some(3 << 20),
            cache: None,
            segments_bytes: Some(5 << 20),
        });
        second.own_cpu_ns = 2_000_000;
        second.writers_waiting = Some(3);
        second.system.scheduler = Some(Scheduler {
            context_switches: 9,
            runnable: 4,
            blocked: 2,
        });
        let series = series(first, second);
        assert_eq!(value(&series, "checkpoints"), Some(2.0));
        assert_eq!(value(&series, "log_switches"), Some(1.0));
        assert_eq!(value(&series, "dirty_buffers_mib"), Some(3.0));
        assert_eq!(value(&series, "segments_mib"), Some(5.0));
        assert_eq!(value(&series, "runnable_threads"), Some(3.0));
        assert_eq!(value(&series, "writers_waiting_for_file_lock"), Some(3.0));
        assert_eq!(value(&series, "sampler_cpu_percent"), Some(0.2));
        // Nothing to compare the switches with.
        assert_eq!(series.column(&"context_switches_per_s".into()), None);
    }

    #[test]
    fn what_a_database_does_not_tell_is_no_column_of_zeros() {
        let series = series(look(0), look(1_000_000));
        for untold in ["checkpoints", "log_switches", "dirty_buffers_mib"] {
            assert_eq!(series.column(&untold.into()), None, "{untold}");
        }
    }
}
