//! A thread beside a trial that looks at the system at equal steps, from the first moment of the measured time to the
//! last. It measures what it costs itself, by its own processor time.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spindle_io::real::facts::processor_time_of_thread;

use crate::observe::series::{DatabaseState, SeriesBuilder, SeriesLook};
use spindle_result::SystemSeries;
use spindle_system::file_locks::WritingThreads;
use spindle_system::sampler::Sampler;

/// Looks are this far apart, but for short trials.
const INTERVAL_MAX_MS: u64 = 1000;
const INTERVAL_MIN_MS: u64 = 100;
/// A short trial has about this many.
const LOOKS_MIN: u64 = 10;

/// Time between looks for a measured time: a second, less for trials that are over in ten.
pub fn interval_ms(measure_ms: u64) -> u64 {
    (measure_ms / LOOKS_MIN).clamp(INTERVAL_MIN_MS, INTERVAL_MAX_MS)
}

/// The thread at work.
pub struct SeriesRecorder {
    /// Closed when the measured time is over.
    stop: Sender<()>,
    thread: JoinHandle<SystemSeries>,
}

struct Looking<D> {
    sampler: Sampler,
    writers: WritingThreads,
    database: D,
    cpu_before: Duration,
}

impl<D: Fn() -> DatabaseState> Looking<D> {
    fn look(&mut self) -> SeriesLook {
        SeriesLook {
            system: self.sampler.sample(),
            database: Some((self.database)()),
            writers_waiting: self.writers.waiting(),
            own_cpu_ns: (processor_time_of_thread() - self.cpu_before).as_nanos() as u64,
        }
    }
}

impl SeriesRecorder {
    /// Looks now, and from now on every `interval_ms`.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(
        sampler: Sampler,
        writers: WritingThreads,
        database: impl Fn() -> DatabaseState + Send + 'static,
        interval_ms: u64,
    ) -> std::io::Result<SeriesRecorder> {
        let (stop, stopped) = mpsc::channel::<()>();
        let interval = Duration::from_millis(interval_ms);
        let record = move || {
            let mut looking = Looking {
                sampler,
                writers,
                database,
                cpu_before: processor_time_of_thread(),
            };
            let mut series = SeriesBuilder::new(looking.look());
            let mut next = Instant::now() + interval;
            let wait = |until: Instant| {
                stopped.recv_timeout(until.saturating_duration_since(Instant::now()))
            };
            while wait(next) == Err(RecvTimeoutError::Timeout) {
                series.add(looking.look());
                next += interval;
            }
            // The last look is due at the very end of the measured time, which may come a little sooner.
            if next.saturating_duration_since(Instant::now()) < interval / 10 {
                series.add(looking.look());
            }
            series.finish(interval_ms)
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned());
        let thread = thread.spawn(record)?;
        Ok(SeriesRecorder { stop, thread })
    }

    /// Ends the thread; what it saw. Nothing, if it panicked.
    pub fn finish(self) -> SystemSeries {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_system::DeviceNumber;
    use spindle_system::SystemTree;
    use spindle_system::processes::Processes;

    #[test]
    fn a_trial_of_ten_seconds_or_more_is_looked_at_each_second() {
        let intervals = [100, 1_000, 5_000, 10_000, 86_400_000].map(interval_ms);
        assert_eq!(intervals, [100, 100, 500, 1_000, 1_000]);
    }

    /// What was seen in this time, every 100 ms, and how long it was looked for at most.
    fn seen_in(time: Duration) -> (SystemSeries, Duration) {
        let began = Instant::now();
        let process_id = std::process::id();
        let files = SystemTree::default();
        let sampler = Sampler::new(
            files.clone(),
            Vec::<DeviceNumber>::new(),
            Processes::one(process_id),
        );
        let writers = WritingThreads::of(files, process_id);
        let recorder = SeriesRecorder::start(sampler, writers, DatabaseState::default, 100);
        let recorder = recorder.expect("a thread");
        std::thread::sleep(time);
        (recorder.finish(), began.elapsed())
    }

    /// The instrument's processor time in each interval.
    fn cpu_of(series: &SystemSeries) -> &[Option<f32>] {
        let cpu = series.column(&"sampler_cpu_percent".into());
        cpu.expect("it runs")
    }

    #[test]
    fn every_interval_has_a_value_in_each_column() {
        // A busy machine may let the looks begin late, so the first time with enough of them counts.
        let mut times = (0..10).map(|_| {
            let (series, longest) = seen_in(Duration::from_millis(550));
            let (found, due) = (cpu_of(&series).len(), longest.as_millis() as usize / 100);
            assert!(found <= due + 1, "{longest:?}: {series:?}");
            (found + 1 >= due).then_some(series)
        });
        let series = times.find_map(|series| series);
        let series = series.expect("a look in each interval");
        let cpu = cpu_of(&series);
        assert!(cpu.iter().all(|percent| percent.is_some_and(|p| p > 0.0)));
        assert!(series.columns.iter().all(|c| c.values.len() == cpu.len()));
        assert!(series.column(&"page_cache_mib".into()).is_some());
    }
}
