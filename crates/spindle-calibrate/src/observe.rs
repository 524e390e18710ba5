//! Watching a load until it is steady: how much was done is sampled at equal intervals, latencies are kept for every
//! ten of them, and the beginning is left out of both by the rule of `spindle_stats::steady_after` (MSER-5).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use spindle_stats::{LatencyHistogram, STEADY_SAMPLES_MIN, estimate_mean, steady_after};

/// Histograms that threads share: each has a lock.
const LANES: usize = 4;
/// Samples for which latencies are kept together.
const SAMPLES_PER_EPOCH: usize = 10;
/// The mean throughput is known well enough when half its 95 % interval is no wider than this part of it.
const PRECISION: f64 = 0.02;

/// The beginning, which is left out however steady it looks, and the part of the time that it takes, about: a limit by
/// the kernel is kept in slices of 100 ms (block/blk-throttle.c), and what an idle time saved comes on top of it.
const BEGIN_S: f64 = 0.15;
const BEGIN_PART_MAX: f64 = 0.2;

/// How long to watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Between two samples.
    pub(crate) sample: Duration,
    /// At least this long: a hundred samples, or more.
    pub(crate) least: Duration,
    /// At most this long, steady or not,
    pub(crate) most: Duration,
    /// and up to twice that until this many requests were done.
    pub(crate) requests: u64,
}

impl Timing {
    /// For this many samples, at least and at most.
    pub(crate) fn of(sample: Duration, (least, most): (u32, u32)) -> Timing {
        Timing {
            sample,
            least: sample * least,
            most: sample * most,
            requests: 0,
        }
    }

    /// Exactly this long, steady or not, in this many samples.
    pub(crate) fn fixed(time: Duration, samples: u32) -> Timing {
        let sample = (time / samples).max(Duration::from_millis(1));
        Timing {
            sample,
            least: time,
            most: time,
            requests: 0,
        }
    }
}

/// What threads have done.
pub(crate) struct Tally {
    reads: KindTally,
    writes: KindTally,
}

/// Requests of one kind, by lanes.
#[derive(Default)]
struct KindTally {
    done: [AtomicU64; LANES],
    latencies: [Mutex<LatencyHistogram>; LANES],
}

/// Latencies of requests that ended together.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) reads: Vec<Duration>,
    pub(crate) writes: Vec<Duration>,
}

/// A histogram as its buckets.
type Buckets = Vec<(u64, u64)>;

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            reads: KindTally::default(),
            writes: KindTally::default(),
        }
    }

    /// Counts a read, or a flush; threads with different lanes do not wait for each other.
    pub(crate) fn record(&self, lane: usize, latency: Duration) {
        self.reads.record(lane, &[latency]);
    }

    /// Counts what ended together, and leaves the room for it empty.
    pub(crate) fn take_in(&self, lane: usize, ended: &mut Ended) {
        self.reads.record(lane, &ended.reads);
        self.writes.record(lane, &ended.writes);
        ended.reads.clear();
        ended.writes.clear();
    }

    pub(crate) fn done(&self) -> u64 {
        self.reads.done() + self.writes.done()
    }

    /// Of these, reads.
    pub(crate) fn done_reads(&self) -> u64 {
        self.reads.done()
    }
}

impl KindTally {
    fn record(&self, lane: usize, ended: &[Duration]) {
        if ended.is_empty() {
            return;
        }
        let lane = lane % LANES;
        self.done[lane].fetch_add(ended.len() as u64, Ordering::Relaxed);
        let mut latencies = self.lock(lane);
        for latency in ended {
            latencies.record_ns(latency.as_nanos().try_into().unwrap_or(u64::MAX));
        }
    }

    fn lock(&self, lane: usize) -> std::sync::MutexGuard<'_, LatencyHistogram> {
        self.latencies[lane]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self) -> u64 {
        self.done
            .iter()
            .map(|done| done.load(Ordering::Relaxed))
            .sum()
    }

    /// Latencies since they were last taken.
    fn take(&self) -> Buckets {
        let mut buckets = Vec::new();
        for lane in 0..LANES {
            let mut latencies = self.lock(lane);
            if latencies.count() > 0 {
                buckets.extend(std::mem::take(&mut *latencies).to_buckets());
            }
        }
        buckets
    }
}

/// What a load came to.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) per_s: f64,
    /// From the begin on, with what was left out.
    pub(crate) all_per_s: f64,
    /// Throughput in each interval, from the begin on.
    pub(crate) rates: Vec<f64>,
    /// Of all requests.
    pub(crate) latencies: LatencyHistogram,
    /// Of writes alone.
    pub(crate) write_latencies: LatencyHistogram,
    pub(crate) is_steady: bool,
    /// When the watch began.
    pub(crate) began: Instant,
    /// Seconds at the beginning that are left out.
    pub(crate) left_out_s: f64,
    pub(crate) measured_s: f64,
    pub(crate) count: u64,
}

/// Watches until the load is steady and its mean known, or the time is over; then tells the threads to stop. Ends at
/// once when they were told already, because one of them failed, and when `interrupted` is set.
pub(crate) fn observe(
    tally: &Tally,
    timing: Timing,
    stop: &AtomicBool,
    interrupted: &AtomicBool,
) -> Observed {
    let began = Instant::now();
    let mut marks: Vec<(f64, u64)> = vec![(0.0, tally.done())];
    let mut epochs: Vec<(Buckets, Buckets)> = Vec::new();
    let mut answer = (0, false);
    while !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
        let due = timing.sample * marks.len() as u32;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        marks.push((began.elapsed().as_secs_f64(), tally.done()));
        if !(marks.len() - 1).is_multiple_of(SAMPLES_PER_EPOCH) {
            continue;
        }
        epochs.push((tally.reads.take(), tally.writes.take()));
        let has_enough = tally.done() - marks[0].1 >= timing.requests;
        let is_over = began.elapsed() >= timing.most * if has_enough { 1 } else { 2 };
        if (began.elapsed() < timing.least || !has_enough) && !is_over {
            continue;
        }
        answer = judge(&rates(&marks));
        let may_end = timing.least < timing.most && answer.1;
        if may_end || is_over {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let (cut_epochs, is_steady) = answer;
    let cut_epochs = cut_epochs.max(epochs_of_begin(&marks));
    let first = (cut_epochs * SAMPLES_PER_EPOCH).min(marks.len() - 1);
    let (last, from) = (marks[marks.len() - 1], marks[first]);
    let measured_s = last.0 - from.0;
    let count = last.1 - from.1;
    let (reads, writes): (Vec<Buckets>, Vec<Buckets>) = epochs.into_iter().skip(cut_epochs).unzip();
    let writes = writes.concat();
    Observed {
        per_s: if measured_s > 0.0 {
            count as f64 / measured_s
        } else {
            0.0
        },
        all_per_s: (last.1 - marks[0].1) as f64 / last.0.max(1e-9),
        rates: rates(&marks),
        latencies: LatencyHistogram::from_buckets(&[reads.concat(), writes.clone()].concat()),
        write_latencies: LatencyHistogram::from_buckets(&writes),
        is_steady,
        began,
        left_out_s: from.0,
        measured_s,
        count,
    }
}

/// Epochs at the beginning that are left out in any case; none where an epoch is much longer than it.
fn epochs_of_begin(marks: &[(f64, u64)]) -> usize {
    let passed_s = marks[marks.len() - 1].0;
    let epoch_s = passed_s / (marks.len() - 1).max(1) as f64 * SAMPLES_PER_EPOCH as f64;
    let begin_s = BEGIN_S.min(BEGIN_PART_MAX * passed_s);
    match epoch_s > 0.0 && epoch_s <= 2.0 * BEGIN_S {
        true => (begin_s / epoch_s).ceil() as usize,
        false => 0,
    }
}

/// Throughput of each interval.
fn rates(marks: &[(f64, u64)]) -> Vec<f64> {
    let pairs = marks.windows(2);
    pairs
        .map(|pair| (pair[1].1 - pair[0].1) as f64 / (pair[1].0 - pair[0].0).max(1e-9))
        .collect()
}

/// Epochs to leave out at the beginning, and whether the rest is steady and its mean known well enough. Of a series
/// that is not steady a quarter is left out.
fn judge(rates: &[f64]) -> (usize, bool) {
    let quarter = rates.len() / 4 / SAMPLES_PER_EPOCH;
    if rates.len() < STEADY_SAMPLES_MIN {
        return (quarter, false);
    }
    let Some(cut) = steady_after(rates) else {
        return (quarter, false);
    };
    let cut_epochs = cut.div_ceil(SAMPLES_PER_EPOCH);
    let means: Vec<f64> = rates[cut_epochs * SAMPLES_PER_EPOCH..]
        .chunks_exact(SAMPLES_PER_EPOCH)
        .map(|chunk| chunk.iter().sum::<f64>() / SAMPLES_PER_EPOCH as f64)
        .collect();
    let is_known = estimate_mean(&means).is_ok_and(|estimate| {
        estimate
            .ci95
            .is_some_and(|(low, high)| (high - low) / 2.0 <= PRECISION * estimate.mean)
    });
    (cut_epochs, is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_saved_up_is_left_out() {
        let burst: Vec<f64> = (0..200)
            .map(|at| {
                if at < 30 {
                    4000.0
                } else {
                    300.0 + f64::from(at % 3)
                }
            })
            .collect();
        assert_eq!(judge(&burst), (3, true));
    }

    #[test]
    fn a_beginning_is_left_out_of_what_looks_steady() {
        let marks = |sample_s: f64| -> Vec<(f64, u64)> {
            (0..=100).map(|at| (f64::from(at) * sample_s, 0)).collect()
        };
        let epochs = |sample_s| epochs_of_begin(&marks(sample_s));
        // 100 ms of 500, 200 of 1,000; an epoch of a long hold would be minutes.
        assert_eq!((epochs(0.005), epochs(0.01), epochs(30.0)), (2, 2, 0));
        assert_eq!(epochs_of_begin(&[(0.0, 0)]), 0);
    }

    #[test]
    fn what_still_moves_is_not_steady() {
        let rising: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(judge(&rising), (5, false));
        assert!(!judge(&[1.0; 50]).1);
    }

    #[test]
    fn a_load_that_stalls_is_watched_no_longer_than_the_most() {
        let (tally, stop) = (Tally::new(), AtomicBool::new(false));
        let sample = Duration::from_millis(1);
        let timing = Timing {
            sample,
            least: sample * 100,
            most: sample * 120,
            requests: 0,
        };
        let observed = observe(&tally, timing, &stop, &AtomicBool::new(false));
        assert_eq!((observed.count, observed.latencies.count()), (0, 0));
        assert!(stop.load(Ordering::Relaxed));
    }

    #[test]
    fn few_requests_are_watched_for_twice_as_long() {
        let (tally, stop) = (Tally::new(), AtomicBool::new(false));
        let sample = Duration::from_millis(1);
        let timing = Timing {
            sample,
            least: sample * 100,
            most: sample * 100,
            requests: 10,
        };
        let observed = observe(&tally, timing, &stop, &AtomicBool::new(false));
        assert!(observed.began.elapsed() >= timing.most * 2);
    }

    #[test]
    fn an_interrupt_ends_the_watch_at_once() {
        let (tally, stop) = (Tally::new(), AtomicBool::new(false));
        let sample = Duration::from_secs(3600);
        let timing = Timing {
            sample,
            least: sample,
            most: sample,
            requests: 0,
        };
        observe(&tally, timing, &stop, &AtomicBool::new(true));
        assert!(stop.load(Ordering::Relaxed), "its threads are told");
    }
}
