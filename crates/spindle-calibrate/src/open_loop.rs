//! Random reads that come at a rate, whether those before were answered or not: what clients that know nothing of each
//! other meet. The time of a read counts from the moment when it was due, so a device that stands still makes all reads
//! late that were due meanwhile. (A closed loop asks less of a slow device, and hides that.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Method, outcome_of};
use spindle_io::{Arena, BlockDevice, Request, Submission};

use crate::draw::fresh_seed;
use crate::error::CalibrateError;
use crate::figures::{DeviceShare, What};
use crate::observe::{Observed, Tally, Timing, observe};
use crate::point::{Bench, PointLoad};
use crate::result::RatePoint;
use crate::unit::Unit;

/// Parts of the most requests per second at which latency is looked at, in this order: where the time ends early, what
/// there is lies well apart.
pub(crate) const SHARES: [f64; 6] = [0.50, 0.90, 0.10, 0.75, 0.25, 0.95];
/// This many reads are to come at a rate: enough for the slowest of a hundred.
const READS_WANTED: f64 = 400.0;
/// With fewer reads none of them is the slowest of a hundred.
const READS_FOR_P99: u64 = 100;
/// Threads that read, one request each: this many reads can be under way.
const READERS: u32 = 64;
/// Interval between checks of a sleeping thread whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
/// A rate is kept up when this share of what was due was answered.
const KEPT_UP_SHARE: f64 = 0.95;

/// When reads are due, after the begin: with exponential gaps, so that they come in bunches as from many clients.
struct Arrivals<R> {
    rng: R,
    due_s: f64,
    gap_s: f64,
    /// Reads due in each stretch of [`STRETCH_S`].
    due: Vec<u64>,
}

/// Seconds in which reads that are due are counted together.
const STRETCH_S: f64 = 0.005;

impl<R: RngCore> Arrivals<R> {
    fn at_rate(rate_per_s: f64, rng: R) -> Arrivals<R> {
        Arrivals {
            rng,
            due_s: 0.0,
            gap_s: 1.0 / rate_per_s,
            due: Vec::new(),
        }
    }

    fn next(&mut self) -> Duration {
        let uniform = (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        self.due_s -= (1.0 - uniform).ln() * self.gap_s;
        let stretch = (self.due_s / STRETCH_S) as usize;
        if self.due.len() <= stretch {
            self.due.resize(stretch + 1, 0);
        }
        self.due[stretch] += 1;
        Duration::from_secs_f64(self.due_s)
    }

    /// Reads due between two moments, also those that no reader came to.
    fn due_between(&mut self, from_s: f64, to_s: f64) -> f64 {
        while self.due_s <= to_s {
            self.next();
        }
        let in_stretch = |(index, due): (usize, &u64)| {
            let begin_s = index as f64 * STRETCH_S;
            let within_s = (begin_s + STRETCH_S).min(to_s) - begin_s.max(from_s);
            *due as f64 * (within_s / STRETCH_S).max(0.0)
        };
        self.due.iter().enumerate().map(in_stretch).sum()
    }
}

impl Timing {
    /// As long as it takes until enough reads come, within this timing.
    fn for_rate(self, rate_per_s: f64) -> Timing {
        let wanted =
            Duration::from_secs_f64((READS_WANTED / rate_per_s).min(self.most.as_secs_f64()));
        let time = wanted.max(self.least);
        Timing {
            least: time,
            most: time,
            ..self
        }
    }
}

impl Bench<'_> {
    /// Reads at a rate, and what the devices' counters say of it.
    ///
    /// # Errors
    /// See [`Bench::measure`].
    pub(crate) fn at_rate(
        &self,
        rate_per_s: f64,
        timing: Timing,
    ) -> Result<(RatePoint, Option<DeviceShare>), CalibrateError> {
        let timing = timing.for_rate(rate_per_s);
        let what = What::SmallRandom;
        let load = PointLoad {
            what,
            method: Method::Sync,
            depth: READERS,
        };
        let arena = Arena::new(what.length_bytes() as usize, READERS as usize)?;
        let unit = self.open(load, &vec![None; self.targets.len()])?;
        let (tally, stop) = (Tally::new(), AtomicBool::new(false));
        let arrivals = Mutex::new(Arrivals::at_rate(rate_per_s, seeded_rng(fresh_seed(), 0)));
        let before = self.counters();
        let began = Instant::now();
        let observed = std::thread::scope(|scope| {
            let (unit, arena, arrivals, tally, stop) = (&unit, &arena, &arrivals, &tally, &stop);
            let spawned: Vec<_> = (0..READERS)
                .map(|lane| {
                    let reader = Reader {
                        unit,
                        arena,
                        tally,
                        stop,
                        lane: lane as usize,
                    };
                    let due = || {
                        arrivals
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .next()
                    };
                    let body = move || {
                        reader
                            .read_when_due(began, due)
                            .inspect_err(|_| stop.store(true, Ordering::Relaxed))
                    };
                    std::thread::Builder::new().spawn_scoped(scope, body)
                })
                .collect();
            if spawned.iter().any(Result::is_err) {
                stop.store(true, Ordering::Relaxed);
            }
            let observed = observe(tally, timing, stop, self.interrupted);
            for thread in spawned {
                let thread = thread.map_err(CalibrateError::Thread)?;
                thread.join().expect("a reader does not panic")?;
            }
            Ok::<_, CalibrateError>(observed)
        })?;
        self.go_on()?;
        let share = self.share_since(before, tally.done_reads() * what.length_bytes());
        let mut arrivals = arrivals
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let from_s = (observed.began - began).as_secs_f64() + observed.left_out_s;
        let due = arrivals.due_between(from_s, from_s + observed.measured_s);
        Ok((RatePoint::of(rate_per_s, due, &observed), share))
    }
}

impl RatePoint {
    /// `due` reads were due while it was observed.
    fn of(rate_per_s: f64, due: f64, observed: &Observed) -> RatePoint {
        let latencies = &observed.latencies;
        RatePoint {
            rate_per_s,
            due_per_s: due / observed.measured_s.max(1e-9),
            iops: observed.per_s,
            // The last one may be under way.
            is_kept_up: (observed.count + 1) as f64 >= KEPT_UP_SHARE * due,
            mean_us: latencies.mean_us(),
            p50_us: latencies.p50_us(),
            p99_us: (observed.count >= READS_FOR_P99).then(|| latencies.p99_us()),
            max_us: latencies.max_us(),
            requests: observed.count,
        }
    }
}

/// One thread that reads.
struct Reader<'a> {
    unit: &'a Unit,
    arena: &'a Arc<Arena>,
    tally: &'a Tally,
    stop: &'a AtomicBool,
    lane: usize,
}

impl Reader<'_> {
    /// `due` draws when the next read is due, after the begin.
    fn read_when_due(
        &self,
        began: Instant,
        due: impl Fn() -> Duration,
    ) -> Result<(), CalibrateError> {
        // The kernel would let a sleep last some 50 us longer.
        let _ = rustix::thread::set_current_timer_slack(Some(1.try_into().expect("it is not 0")));
        let length_bytes = What::SmallRandom.length_bytes();
        let places = self.unit.limits().capacity_bytes / length_bytes;
        let mut rng = seeded_rng(fresh_seed(), self.lane as u64);
        let frame = self.arena.allocate().expect("a frame for each reader");
        loop {
            let due = began + due();
            while !self.stop.load(Ordering::Relaxed) && Instant::now() < due {
                std::thread::sleep((due - Instant::now().min(due)).min(LOOK));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let hold = frame.try_write_hold().expect("the last read has ended");
            let offset = rng.next_u64() % places * length_bytes;
            let read = self
                .unit
                .submit(Request::read(offset, vec![hold], Submission::Alone));
            let outcome = outcome_of(read);
            self.tally.record(self.lane, due.elapsed());
            outcome.result.map_err(CalibrateError::Request)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_due_at_the_rate_and_in_bunches() {
        let mut arrivals = Arrivals::at_rate(1000.0, seeded_rng(1, 1));
        let due: Vec<f64> = (0..10_000).map(|_| arrivals.next().as_secs_f64()).collect();
        assert!((9.5..10.5).contains(&due[9_999]), "{}", due[9_999]);
        let gaps = due.windows(2).map(|pair| pair[1] - pair[0]);
        // Of exponential gaps 63 % are shorter than the mean.
        let short = gaps.filter(|gap| *gap < 0.001).count();
        assert!((6_100..6_500).contains(&short), "{short}");
    }

    #[test]
    fn what_was_due_is_counted_whether_a_reader_came_to_it_or_not() {
        let mut arrivals = Arrivals::at_rate(1000.0, seeded_rng(1, 1));
        let first: Vec<f64> = (0..100).map(|_| arrivals.next().as_secs_f64()).collect();
        let half = arrivals.due_between(0.0512, 0.9987);
        let mut again = Arrivals::at_rate(1000.0, seeded_rng(1, 1));
        let all: Vec<f64> = (0..2_000).map(|_| again.next().as_secs_f64()).collect();
        assert_eq!(first, all[..100]);
        let truth = all
            .iter()
            .filter(|due| (0.0512..0.9987).contains(*due))
            .count();
        assert!((half - truth as f64).abs() < 6.0, "{half}, {truth}");
    }

    #[test]
    fn a_rate_is_kept_up_when_what_was_due_was_answered() {
        let observed = |count: u64| Observed {
            per_s: count as f64,
            all_per_s: count as f64,
            rates: Vec::new(),
            latencies: Default::default(),
            write_latencies: Default::default(),
            is_steady: true,
            began: Instant::now(),
            left_out_s: 0.0,
            measured_s: 1.0,
            count,
        };
        let few = RatePoint::of(15.0, 8.0, &observed(8));
        assert!(few.is_kept_up && few.p99_us.is_none());
        let behind = RatePoint::of(150.0, 150.0, &observed(140));
        assert!(!behind.is_kept_up && behind.p99_us.is_some());
    }

    #[test]
    fn a_slow_rate_is_watched_for_longer() {
        let sample = Duration::from_millis(10);
        let timing = Timing {
            sample,
            least: sample * 100,
            most: sample * 400,
            requests: 0,
        };
        let lasts = |rate| timing.for_rate(rate).least.as_secs_f64();
        assert_eq!(
            (lasts(10_000.0), lasts(200.0), lasts(15.0)),
            (1.0, 2.0, 4.0)
        );
    }
}
