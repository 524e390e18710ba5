//! A thread beside a trial that wakes at short steps and notices when it could not: the process was stopped (SIGSTOP, a
//! frozen control group), the machine was suspended, or the hypervisor paused it. It also sees when a signal has
//! stopped a process of the server. Throughput and latencies of such a trial say nothing of its layout.
//!
//! Waiting for a processor is no standstill: the kernel accounts for that time, and it is taken out. Short gaps count
//! only when they add up, as those of `cpulimit` do. What the hypervisor gave to other guests is taken out of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spindle_io::real::facts::processor_use_of_thread;
use spindle_result::Standstill;
use spindle_system::SystemTree;
use spindle_system::cpu::CpuTimes;
use spindle_system::processes::{Processes, is_stopped};

/// Time between beats.
const BEAT: Duration = Duration::from_millis(50);
/// A beat that comes later than this is a gap.
const GAP_MIN: Duration = Duration::from_millis(100);
/// One that comes later than this is a short gap; sooner is what timers of a working machine give.
const SHORT_GAP_MIN: Duration = Duration::from_millis(10);
/// Short gaps count when they are this part of the time that was watched.
const SHORT_GAPS_PART: f64 = 0.10;
/// Beats between two looks for processes that the server has started.
const BEATS_PER_LOOK: usize = 20;

/// The thread at work.
pub struct Heartbeat {
    /// Closed when the time to be watched is over.
    stop: Sender<()>,
    thread: JoinHandle<Standstill>,
    /// Pauses that began and ended so far. In one of them, when it is odd, the process may be stopped; a beat that
    /// comes after one has begun or ended says nothing.
    pauses: Arc<AtomicU64>,
}

/// What the clocks said at one moment.
#[derive(Clone, Copy)]
struct Look {
    /// Time that passed, suspension included (`CLOCK_BOOTTIME`).
    boot: Duration,
    /// Time that passed, suspension left out (`CLOCK_MONOTONIC`).
    awake: Duration,
    /// Time that this thread waited for a processor.
    queued: Duration,
}

impl Look {
    fn now() -> Look {
        let time = |clock| {
            let time = clock_gettime(clock);
            Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
        };
        let queued_ns = processor_use_of_thread().map_or(0, |used| used.run_queue_ns);
        Look {
            boot: time(ClockId::Boottime),
            awake: time(ClockId::Monotonic),
            queued: Duration::from_nanos(queued_ns),
        }
    }
}

/// What was lost so far.
#[derive(Default)]
struct Lost {
    seen: Standstill,
    /// The sum of short gaps.
    short: Duration,
    longest_short: Duration,
    /// All time that was watched.
    watched: Duration,
}

impl Lost {
    /// Adds what was lost between two looks that should have been `step` apart.
    fn add(&mut self, before: Look, after: Look, step: Duration, is_server_stopped: bool) {
        let passed = after.boot.saturating_sub(before.boot);
        let awake = after.awake.saturating_sub(before.awake);
        let queued = after.queued.saturating_sub(before.queued);
        self.watched += passed;
        let lost = match is_server_stopped {
            true => passed,
            false => passed.saturating_sub(step).saturating_sub(queued),
        };
        if lost >= GAP_MIN || is_server_stopped {
            self.seen.total_ms += milliseconds(lost);
            self.seen.longest_ms = self.seen.longest_ms.max(milliseconds(lost));
            self.seen.suspended_ms += milliseconds(passed.saturating_sub(awake));
        } else if lost >= SHORT_GAP_MIN {
            self.short += lost;
            self.longest_short = self.longest_short.max(lost);
        }
    }

    /// All of it. The hypervisor took `stolen` from all processors together, so a gap that it made is no longer than
    /// that.
    fn standstill(self, stolen: Duration) -> Standstill {
        let short = self.short.saturating_sub(stolen);
        let mut seen = self.seen;
        if short.as_secs_f64() >= SHORT_GAPS_PART * self.watched.as_secs_f64() && !short.is_zero() {
            seen.total_ms += milliseconds(short);
            seen.longest_ms = seen.longest_ms.max(milliseconds(self.longest_short));
        }
        seen
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// The processes of a server, which others may stop.
struct Server {
    tree: SystemTree,
    /// Those that it was started as.
    first: Vec<u32>,
    /// With all that they started, as of the last look.
    all: Vec<u32>,
    beats: usize,
}

impl Server {
    fn new(first: Vec<u32>) -> Server {
        Server {
            tree: SystemTree::default(),
            first,
            all: Vec::new(),
            beats: 0,
        }
    }

    /// Whether one of them is stopped.
    fn is_stopped(&mut self) -> bool {
        if self.beats.is_multiple_of(BEATS_PER_LOOK) {
            self.all = Processes::of_servers(self.first.clone()).members(&self.tree);
        }
        self.beats += 1;
        let mut processes = self.all.iter();
        processes.any(|process| is_stopped(&self.tree, *process))
    }
}

/// Time that the hypervisor took from all processors together since the machine started.
fn stolen_so_far() -> Duration {
    let times = CpuTimes::read(&SystemTree::default());
    Duration::from_micros(times.map_or(0, |times| times.steal_us))
}

impl Heartbeat {
    /// Beats from now on, and looks at the processes of a server, if there is one on this machine.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(servers: Vec<u32>) -> std::io::Result<Heartbeat> {
        let (stop, stopped) = mpsc::channel::<()>();
        let pauses = Arc::new(AtomicU64::new(0));
        let paused = Arc::clone(&pauses);
        let beat = move || {
            let mut lost = Lost::default();
            let mut server = Server::new(servers);
            let stolen_before = stolen_so_far();
            let mut before = Look::now();
            let mut pauses_before = 0;
            loop {
                let is_over = stopped.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout);
                let after = Look::now();
                let pauses = paused.load(Ordering::Acquire);
                if pauses == pauses_before && pauses.is_multiple_of(2) {
                    lost.add(before, after, BEAT, server.is_stopped());
                }
                (before, pauses_before) = (after, pauses);
                if is_over {
                    return lost.standstill(stolen_so_far().saturating_sub(stolen_before));
                }
            }
        };
        let thread = std::thread::Builder::new().name("heartbeat".to_owned());
        let thread = thread.spawn(beat)?;
        Ok(Heartbeat {
            stop,
            thread,
            pauses,
        })
    }

    /// From now on gaps do not count, until it continues.
    pub fn pause(&self) {
        self.pauses.fetch_add(1, Ordering::Release);
    }

    /// They count again.
    pub fn go_on(&self) {
        self.pauses.fetch_add(1, Ordering::Release);
    }

    /// Ends the watch: what was lost since its start.
    ///
    /// # Panics
    /// When the thread did.
    pub fn finish(self) -> Standstill {
        drop(self.stop);
        self.thread.join().expect("a heartbeat does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(boot_ms: u64, awake_ms: u64, queued_ms: u64) -> Look {
        Look {
            boot: Duration::from_millis(boot_ms),
            awake: Duration::from_millis(awake_ms),
            queued: Duration::from_millis(queued_ms),
        }
    }

    fn gap(before: Look, after: Look) -> Standstill {
        let mut lost = Lost::default();
        lost.add(before, after, BEAT, false);
        lost.standstill(Duration::ZERO)
    }

    #[test]
    fn a_stopped_process_a_suspended_machine_and_a_full_run_queue_are_told_apart() {
        let stopped = gap(look(0, 0, 0), look(4050, 4050, 0));
        assert_eq!((stopped.total_ms, stopped.suspended_ms), (4000, 0));
        let suspended = gap(look(0, 0, 0), look(60_050, 50, 0));
        assert_eq!(
            (suspended.total_ms, suspended.suspended_ms),
            (60_000, 60_000)
        );
        let queued = gap(look(0, 0, 0), look(2050, 2050, 1990));
        assert_eq!(queued, Standstill::default());
    }

    #[test]
    fn gaps_add_up() {
        let mut lost = Lost::default();
        lost.add(look(0, 0, 0), look(1050, 1050, 0), BEAT, false);
        lost.add(look(2000, 2000, 0), look(2550, 2550, 0), BEAT, false);
        let seen = lost.standstill(Duration::ZERO);
        assert_eq!((seen.total_ms, seen.longest_ms), (1500, 1000));
    }

    /// Ten seconds of beats, every one of which comes `late_ms` late.
    fn late(late_ms: u64, stolen_ms: u64) -> Standstill {
        let mut lost = Lost::default();
        let step_ms = 50 + late_ms;
        for beat in 0..10_000 / step_ms {
            let (from_ms, to_ms) = (beat * step_ms, (beat + 1) * step_ms);
            lost.add(
                look(from_ms, from_ms, 0),
                look(to_ms, to_ms, 0),
                BEAT,
                false,
            );
        }
        lost.standstill(Duration::from_millis(stolen_ms))
    }

    #[test]
    fn a_process_stopped_in_slices_stood_still_and_one_that_a_hypervisor_slows_did_not() {
        let slices = late(90, 0);
        assert!(slices.total_ms > 6_000, "{slices:?}");
        assert_eq!(slices.longest_ms, 90);
        assert!(late(12, 0).total_ms > 1_500);
        assert_eq!(late(9, 0), Standstill::default(), "timers are late");
        assert_eq!(late(12, 1_900), Standstill::default(), "other guests ran");
    }

    #[test]
    fn a_few_short_gaps_are_the_systems_own() {
        let mut lost = Lost::default();
        lost.add(look(0, 0, 0), look(140, 140, 0), BEAT, false);
        for beat in 1..100 {
            let from_ms = 140 + beat * 50;
            lost.add(
                look(from_ms, from_ms, 0),
                look(from_ms + 50, from_ms + 50, 0),
                BEAT,
                false,
            );
        }
        assert_eq!(lost.standstill(Duration::ZERO), Standstill::default());
    }

    #[test]
    fn the_time_in_which_a_server_is_stopped_is_lost() {
        let mut lost = Lost::default();
        for beat in 0..20 {
            let (from_ms, to_ms) = (beat * 50, beat * 50 + 50);
            let (before, after) = (look(from_ms, from_ms, 0), look(to_ms, to_ms, 0));
            lost.add(before, after, BEAT, (5..11).contains(&beat));
        }
        assert_eq!(lost.standstill(Duration::ZERO).total_ms, 300);
    }
}
