//! A thread beside a trial that wakes at short steps and notices when it could not: the process was stopped (SIGSTOP, a
//! frozen control group), the machine was suspended, or the hypervisor paused it. Throughput and latencies of such a
//! trial say nothing of its layout. Waiting for a processor is no standstill: the kernel accounts for that time, and it
//! is taken out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use spindle_io::real::facts::processor_use_of_thread;

use spindle_result::Standstill;

/// Time between beats.
const BEAT: Duration = Duration::from_millis(50);
/// A beat that comes later than this is a gap.
const GAP_MIN: Duration = Duration::from_millis(100);

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

/// Adds what was lost between two looks that should have been `step` apart.
fn add_gap(seen: &mut Standstill, before: Look, after: Look, step: Duration) {
    let passed = after.boot.saturating_sub(before.boot);
    let awake = after.awake.saturating_sub(before.awake);
    let queued = after.queued.saturating_sub(before.queued);
    let lost = passed.saturating_sub(step).saturating_sub(queued);
    if lost < GAP_MIN {
        return;
    }
    let milliseconds = |time: Duration| time.as_millis() as u64;
    seen.total_ms += milliseconds(lost);
    seen.longest_ms = seen.longest_ms.max(milliseconds(lost));
    seen.suspended_ms += milliseconds(passed.saturating_sub(awake));
}

impl Heartbeat {
    /// Beats from now on.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start() -> std::io::Result<Heartbeat> {
        let (stop, stopped) = mpsc::channel::<()>();
        let pauses = Arc::new(AtomicU64::new(0));
        let paused = Arc::clone(&pauses);
        let beat = move || {
            let mut seen = Standstill::default();
            let mut before = Look::now();
            let mut pauses_before = 0;
            loop {
                let is_over = stopped.recv_timeout(BEAT) != Err(RecvTimeoutError::Timeout);
                let after = Look::now();
                let pauses = paused.load(Ordering::Acquire);
                if pauses == pauses_before && pauses.is_multiple_of(2) {
                    add_gap(&mut seen, before, after, BEAT);
                }
                (before, pauses_before) = (after, pauses);
                if is_over {
                    return seen;
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

    /// From now on gaps do not count, until it goes on.
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
        let mut seen = Standstill::default();
        add_gap(&mut seen, before, after, BEAT);
        seen
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
        let late = gap(look(0, 0, 0), look(140, 140, 0));
        assert_eq!(late, Standstill::default(), "a beat may be late");
    }

    #[test]
    fn gaps_add_up() {
        let mut seen = gap(look(0, 0, 0), look(1050, 1050, 0));
        add_gap(&mut seen, look(2000, 2000, 0), look(2550, 2550, 0), BEAT);
        assert_eq!((seen.total_ms, seen.longest_ms), (1500, 1000));
    }
}
