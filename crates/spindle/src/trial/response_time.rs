//! What a transaction's time went to, as its session saw it. Three accounts that overlap are made into parts that do not:
//!
//! - The sessions' wait events are elapsed time. A session that reads with a blocking call is on the processor for some of
//!   it (system calls, copying from the page cache, starting the I/O), and in the run queue for some more, when the I/O
//!   was done and no processor free.
//! - Processor time and run queue of the clients' threads are theirs wherever they were, inside waits and outside.
//!
//! So processor time and run queue are taken whole, and each wait event less its own share of both, which sessions look up
//! in a sample of their waits. What is left of an event is time in which the session was blocked. The rest of the mean
//! response time is `other`: latches, page faults, time that the hypervisor took, and the error of the sample.

use std::borrow::Cow;

use spindle_engines::engine::EngineWait;
use spindle_engines::kernel::SampledWaits;

use crate::observe::threads::ThreadTimes;
use crate::result::{
    CLIENT_QUEUE, OTHER_TIME, RUN_QUEUE, ResponseTime, SYSTEM_CPU, TimePart, USER_CPU,
};

/// The name that the threads of clients begin with.
pub const CLIENT_THREADS: &str = "client";

/// What sessions waited for under one event in the measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionWait {
    /// Its name.
    pub event: Cow<'static, str>,
    /// All of it, nanoseconds.
    pub total_ns: u64,
    /// The sample of it.
    pub sampled: SampledWaits,
}

impl SessionWait {
    /// The waits between two looks at the totals, in their order.
    pub fn between(before: &[EngineWait], after: &[EngineWait]) -> Vec<SessionWait> {
        let pairs = before.iter().zip(after);
        let difference = |(before, after): (&EngineWait, &EngineWait)| SessionWait {
            event: after.event.clone(),
            total_ns: after.total_ns - before.total_ns,
            sampled: SampledWaits {
                total_ns: after.sampled.total_ns - before.sampled.total_ns,
                running_ns: after.sampled.running_ns - before.sampled.running_ns,
                run_queue_ns: after.sampled.run_queue_ns - before.sampled.run_queue_ns,
            },
        };
        pairs.map(difference).collect()
    }

    /// Time of it in which sessions were blocked: neither on a processor nor waiting for one. All of it when no wait of
    /// the sample was of this event.
    fn blocked_ns(&self) -> f64 {
        let sampled = &self.sampled;
        let used_ns = (sampled.running_ns + sampled.run_queue_ns) as f64;
        let share = match sampled.total_ns {
            0 => 0.0,
            total_ns => (used_ns / total_ns as f64).min(1.0),
        };
        self.total_ns as f64 * (1.0 - share)
    }
}

/// The mean time of a transaction, which begins when it was to begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanTime {
    /// All of it.
    pub whole_us: f64,
    /// The part of it in which no client was free for it; 0 unless load arrives at a rate.
    pub before_begin_us: f64,
}

/// The mean response time in its parts; `None` when there was no transaction.
pub fn response_time(
    mean: MeanTime,
    transactions: u64,
    clients: &ThreadTimes,
    waits: &[SessionWait],
) -> Option<ResponseTime> {
    if transactions == 0 {
        return None;
    }
    let (user_us, system_us) = clients.user_and_system_us();
    let each = |total_us: f64| total_us / transactions as f64;
    let mut parts: Vec<TimePart> = vec![
        part(USER_CPU, each(user_us)),
        part(SYSTEM_CPU, each(system_us)),
        part(RUN_QUEUE, each(clients.run_queue_ns as f64 / 1e3)),
    ];
    let waited = waits.iter().filter(|wait| wait.total_ns > 0);
    parts.extend(waited.map(|wait| part(&wait.event, each(wait.blocked_ns() / 1e3))));
    if mean.before_begin_us > 0.0 {
        parts.push(part(CLIENT_QUEUE, mean.before_begin_us));
    }
    let known_us: f64 = parts.iter().map(|part| part.us).sum();
    parts.push(part(OTHER_TIME, mean.whole_us - known_us));
    parts.sort_by(|a, b| b.us.total_cmp(&a.us));
    Some(ResponseTime {
        mean_us: mean.whole_us,
        parts,
    })
}

fn part(name: &str, us: f64) -> TimePart {
    TimePart {
        part: name.to_owned(),
        us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(whole_us: f64) -> MeanTime {
        MeanTime {
            whole_us,
            before_begin_us: 0.0,
        }
    }

    fn wait(event: &'static str, total_ns: u64, sampled: (u64, u64, u64)) -> SessionWait {
        let (total, running, run_queue) = sampled;
        SessionWait {
            event: event.into(),
            total_ns,
            sampled: SampledWaits {
                total_ns: total,
                running_ns: running,
                run_queue_ns: run_queue,
            },
        }
    }

    #[test]
    fn parts_do_not_overlap_and_add_up() {
        let clients = ThreadTimes {
            user_ticks_us: 10_000,
            system_ticks_us: 30_000,
            running_ns: 4_000_000,
            run_queue_ns: 2_000_000,
        };
        let waits = [
            // A quarter of each read on the processor, an eighth in the run queue.
            wait(
                "db file sequential read",
                8_000_000,
                (80_000, 20_000, 10_000),
            ),
            // No wait of the sample was of this event.
            wait("log file sync", 4_000_000, (0, 0, 0)),
            wait("free buffer waits", 0, (0, 0, 0)),
        ];
        let time = response_time(mean(1_600.0), 10, &clients, &waits).expect("transactions");
        let parts: Vec<(&str, f64)> = time.parts.iter().map(|p| (p.part.as_str(), p.us)).collect();
        assert_eq!(
            parts,
            [
                ("db file sequential read", 500.0),
                ("log file sync", 400.0),
                (SYSTEM_CPU, 300.0),
                (RUN_QUEUE, 200.0),
                (USER_CPU, 100.0),
                (OTHER_TIME, 100.0),
            ]
        );
        let sum: f64 = time.parts.iter().map(|part| part.us).sum();
        assert_eq!(sum, time.mean_us);
    }

    #[test]
    fn a_sample_never_takes_more_than_the_wait() {
        let wait = wait("log file sync", 1_000, (100, 90, 90));
        assert_eq!(wait.blocked_ns(), 0.0);
    }

    #[test]
    fn without_transactions_there_is_no_mean() {
        assert_eq!(
            response_time(mean(0.0), 0, &ThreadTimes::default(), &[]),
            None
        );
    }
}
