//! What a transaction's time went to, as its session saw it. Three accounts that overlap are made into parts that do
//! not:
//!
//! - The sessions' wait events are elapsed time. A session that reads with a blocking call is on the processor for some
//!   of it (system calls, copying from the page cache, starting the I/O), and in the run queue for some more, when the
//!   I/O was done and no processor free.
//! - Processor time and run queue of the clients' threads are theirs wherever they were, inside waits and outside.
//!
//! So processor time and run queue are taken whole, and each wait event less its own share of both, which sessions look
//! up in a sample of their waits; all shares together are no more than there was. What is left of an event is time in
//! which the session was blocked. The rest of the mean response time is `other`: latches, page faults, time that the
//! hypervisor took, and the error of the sample. Some waits for room a server counts and does not time. Where one of
//! them was counted, and most of the time is left, that time is its.
//!
//! Waits may come to more than the room that is left for them: they come from samples, and one that began before the
//! measured time counts whole when it ends. Then they are scaled to that room, all alike, and by how much is kept.
//! Parts are therefore never negative, and they add up to the whole.

use spindle_engines::engine::EngineWait;
use spindle_engines::kernel::SampledWaits;

use spindle_result::{OracleEvent, ResponseTime, TimePart, TimeUse, WaitEvent};
use spindle_system::threads::ThreadTimes;

/// The name that the threads of clients begin with.
pub const CLIENT_THREADS: &str = "client";

/// Waits that servers count and do not time.
const UNTIMED: [OracleEvent; 2] = [OracleEvent::FreeBufferWaits, OracleEvent::LogBufferSpace];
/// Share of a transaction's time that must be left for one of them to be what it went to.
const UNTIMED_SHARE_MIN: f64 = 0.5;

/// The waits between two looks at the totals, in their order.
pub fn waits_between(before: &[EngineWait], after: &[EngineWait]) -> Vec<EngineWait> {
    let difference = |(before, after): (&EngineWait, &EngineWait)| EngineWait {
        event: after.event.clone(),
        count: after.count.saturating_sub(before.count),
        total_ns: after.total_ns.saturating_sub(before.total_ns),
        sampled: SampledWaits {
            total_ns: after.sampled.total_ns - before.sampled.total_ns,
            running_ns: after.sampled.running_ns - before.sampled.running_ns,
            run_queue_ns: after.sampled.run_queue_ns - before.sampled.run_queue_ns,
        },
    };
    EngineWait::pairs(before, after).map(difference).collect()
}

/// Time of a wait in which sessions were on a processor or waiting for one, as far as the sample tells; none of it when
/// no wait of the sample was of this event.
fn on_processors_ns(wait: &EngineWait) -> f64 {
    let sampled = &wait.sampled;
    let used_ns = (sampled.running_ns + sampled.run_queue_ns) as f64;
    let share = match sampled.total_ns {
        0 => 0.0,
        total_ns => (used_ns / total_ns as f64).min(1.0),
    };
    wait.total_ns as f64 * share
}

/// The mean time of a transaction, which begins when it was to begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanTime {
    /// All of it.
    pub whole_us: f64,
    /// The part of it in which no client was free for it; 0 unless load arrives at a rate.
    pub before_begin_us: f64,
}

/// A wait is no longer than the longest transaction, about: those that were under way at either end count in part.
const UNTIMED_TOLERANCE: f64 = 2.0;

/// The mean response time in its parts; `None` when there was no transaction. One that several processes carry out side
/// by side counts as often. `longest_us`: the longest of them.
pub fn response_time(
    mean: MeanTime,
    transactions: u64,
    clients: &ThreadTimes,
    waits: &[EngineWait],
    longest_us: f64,
) -> Option<ResponseTime> {
    if transactions == 0 {
        return None;
    }
    let (user_us, system_us) = clients.user_and_system_us();
    let each = |total_us: f64| total_us / transactions as f64;
    let mut exact: Vec<TimePart> = vec![
        part(TimeUse::UserCpu, each(user_us)),
        part(TimeUse::SystemCpu, each(system_us)),
        part(TimeUse::RunQueue, each(clients.run_queue_ns as f64 / 1e3)),
    ];
    if mean.before_begin_us > 0.0 {
        exact.push(part(TimeUse::ClientQueue, mean.before_begin_us));
    }
    // A small sample may tell of more processor time and run queue in waits than the sessions had in all.
    let had_ns = (clients.running_ns + clients.run_queue_ns) as f64;
    let told_ns: f64 = waits.iter().map(on_processors_ns).sum();
    let believed = (had_ns / told_ns.max(1.0)).min(1.0);
    let blocked_ns = |wait: &EngineWait| wait.total_ns as f64 - believed * on_processors_ns(wait);
    let waited = waits.iter().filter(|wait| wait.total_ns > 0);
    let timed = waited.map(|wait| {
        part(
            TimeUse::Wait((&*wait.event).into()),
            each(blocked_ns(wait) / 1e3),
        )
    });
    let mut time = fitted(mean.whole_us, exact, timed.collect());
    if let Some((event, count)) = only_untimed(waits) {
        let least_us = UNTIMED_SHARE_MIN * time.mean_us;
        let most_us = each(UNTIMED_TOLERANCE * longest_us * count as f64);
        let mut parts = time.parts.iter_mut();
        let other = parts.find(|part| part.part == TimeUse::Unaccounted);
        if let Some(other) = other.filter(|other| (least_us..=most_us).contains(&other.us)) {
            other.part = TimeUse::Wait(event);
            time.parts.push(part(TimeUse::Unaccounted, 0.0));
        }
    }
    Some(time)
}

/// The wait for room that was counted and not timed, if there is one and no other; and how often.
fn only_untimed(waits: &[EngineWait]) -> Option<(WaitEvent, u64)> {
    let counted = waits
        .iter()
        .filter(|wait| wait.count > 0 && wait.total_ns == 0);
    let events = counted.map(|wait| (WaitEvent::from(&*wait.event), wait.count));
    let mut untimed = events.filter(|(event, _)| UNTIMED.contains(event.nearest()));
    let first = untimed.next()?;
    untimed.next().is_none().then_some(first)
}

/// Parts that add up to the whole. What is known exactly goes first; the rest is `other`.
fn fitted(whole_us: f64, mut exact: Vec<TimePart>, mut waits: Vec<TimePart>) -> ResponseTime {
    let accounted_us = sum_us(&exact) + sum_us(&waits);
    let room_us = (whole_us - scale_to(&mut exact, whole_us)).max(0.0);
    let other_us = (room_us - scale_to(&mut waits, room_us)).max(0.0);
    let mut parts = exact;
    parts.append(&mut waits);
    parts.push(part(TimeUse::Unaccounted, other_us));
    parts.sort_by(|a, b| b.us.total_cmp(&a.us));
    ResponseTime {
        mean_us: whole_us,
        parts,
        excess_us: (accounted_us - whole_us).max(0.0),
    }
}

/// Scales parts down to what they can be at most together, and returns what they then are.
fn scale_to(parts: &mut [TimePart], most_us: f64) -> f64 {
    let sum = sum_us(parts);
    if sum <= most_us {
        return sum;
    }
    parts.iter_mut().for_each(|part| part.us *= most_us / sum);
    most_us
}

fn sum_us(parts: &[TimePart]) -> f64 {
    parts.iter().map(|part| part.us).sum()
}

fn part(part: TimeUse, us: f64) -> TimePart {
    TimePart { part, us }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::RngCore;

    use super::*;

    const LONGEST_US: f64 = 2_000.0;

    fn mean(whole_us: f64) -> MeanTime {
        MeanTime {
            whole_us,
            before_begin_us: 0.0,
        }
    }

    fn wait(event: &'static str, total_ns: u64, sampled: (u64, u64, u64)) -> EngineWait {
        let (total, running, run_queue) = sampled;
        EngineWait {
            event: event.into(),
            count: u64::from(total_ns > 0),
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
        let time =
            response_time(mean(1_600.0), 10, &clients, &waits, LONGEST_US).expect("transactions");
        let parts: Vec<(&str, f64)> = time.parts.iter().map(|p| (p.part.name(), p.us)).collect();
        assert_eq!(
            parts,
            [
                ("db file sequential read", 500.0),
                ("log file sync", 400.0),
                ("system CPU", 300.0),
                ("run queue", 200.0),
                ("user CPU", 100.0),
                ("other", 100.0),
            ]
        );
        let sum: f64 = time.parts.iter().map(|part| part.us).sum();
        assert_eq!(sum, time.mean_us);
    }

    #[test]
    fn what_is_counted_and_not_timed_has_what_is_left_where_that_is_most() {
        let clients = ThreadTimes {
            user_ticks_us: 10_000,
            system_ticks_us: 0,
            running_ns: 1_000_000,
            run_queue_ns: 0,
        };
        let counted = |event| EngineWait {
            count: 4,
            ..wait(event, 0, (0, 0, 0))
        };
        let free = "innodb_buffer_pool_wait_free (free buffer waits)";
        let of = |mean_us, more: &[EngineWait]| {
            let read = wait("db file sequential read", 4_000_000, (0, 0, 0));
            let waits = [&[read], more].concat();
            let time = response_time(mean(mean_us), 10, &clients, &waits, LONGEST_US)
                .expect("transactions");
            (time.part_us(&free.into()), time.part_us(&"other".into()))
        };
        assert_eq!(of(2_000.0, &[counted(free)]), (1_500.0, 0.0));
        assert_eq!(of(900.0, &[counted(free)]), (0.0, 400.0));
        assert_eq!(of(2_000.0, &[]), (0.0, 1_500.0));
        // Three waits of 2 ms at most are not 15 ms.
        let few = EngineWait {
            count: 3,
            ..counted(free)
        };
        assert_eq!(of(2_000.0, &[few]), (0.0, 1_500.0));
        // Which of two it was is not known; a row lock is timed.
        let log = "innodb_log_waits (log buffer space)";
        assert_eq!(of(2_000.0, &[counted(free), counted(log)]), (0.0, 1_500.0));
        let row_lock = "innodb_row_lock (enq: TX - row lock contention)";
        assert_eq!(of(2_000.0, &[counted(row_lock)]), (0.0, 1_500.0));
    }

    #[test]
    fn waits_beyond_the_whole_are_scaled_to_the_room_there_is() {
        let clients = ThreadTimes {
            user_ticks_us: 10_000,
            system_ticks_us: 0,
            running_ns: 1_000_000,
            run_queue_ns: 0,
        };
        let waits = [
            wait("busy", 30_000_000, (0, 0, 0)),
            wait("sync", 10_000_000, (0, 0, 0)),
        ];
        let time =
            response_time(mean(900.0), 10, &clients, &waits, LONGEST_US).expect("transactions");
        assert_eq!(time.part_us(&"user CPU".into()), 100.0);
        assert_eq!(
            (time.part_us(&"busy".into()), time.part_us(&"sync".into())),
            (600.0, 200.0)
        );
        assert_eq!(
            (time.part_us(&"other".into()), time.excess_us),
            (0.0, 3_200.0)
        );
        // Processor time alone is beyond it.
        let time =
            response_time(mean(50.0), 10, &clients, &waits, LONGEST_US).expect("transactions");
        assert_eq!(
            (
                time.part_us(&"user CPU".into()),
                time.part_us(&"busy".into())
            ),
            (50.0, 0.0)
        );
    }

    /// Whatever the accounts say, and however little they fit together.
    #[test]
    fn parts_are_never_negative_and_always_add_up() {
        let mut rng = spindle_io::env::seeded_rng(40, 1);
        let mut draw = |below: u64| rng.next_u64() % below;
        for _ in 0..20_000 {
            let magnitude = 10_u64.pow(draw(10) as u32);
            let clients = ThreadTimes {
                user_ticks_us: draw(magnitude),
                system_ticks_us: draw(magnitude),
                running_ns: draw(1_000 * magnitude),
                run_queue_ns: draw(1_000 * magnitude),
            };
            let waits: Vec<EngineWait> = ["a", "b", "c"][..draw(4) as usize]
                .iter()
                .map(|event| {
                    let sampled = (draw(magnitude), draw(magnitude), draw(magnitude));
                    wait(event, draw(10_000 * magnitude), sampled)
                })
                .collect();
            let whole_us = draw(10 * magnitude) as f64 / 7.0;
            let mean = MeanTime {
                whole_us,
                before_begin_us: draw(2) as f64 * whole_us * draw(100) as f64 / 100.0,
            };
            let time =
                response_time(mean, 1 + draw(1_000), &clients, &waits, LONGEST_US).expect("some");
            let sum_us = sum_us(&time.parts);
            assert!((sum_us - whole_us).abs() <= 1e-9 * whole_us, "{time:?}");
            assert!(time.parts.iter().all(|part| part.us >= 0.0), "{time:?}");
        }
    }

    #[test]
    fn a_sample_never_takes_more_than_the_wait() {
        let wait = wait("log file sync", 1_000, (100, 90, 90));
        assert_eq!(on_processors_ns(&wait), 1_000.0);
    }

    /// Seen on a busy machine with 13 waits in the sample: sessions that did nothing but read were half of their time
    /// in `other`.
    #[test]
    fn waits_take_no_more_processor_time_than_there_was() {
        let clients = ThreadTimes {
            user_ticks_us: 0,
            system_ticks_us: 0,
            running_ns: 0,
            run_queue_ns: 1_000_000,
        };
        let read = wait("db file sequential read", 8_000_000, (400_000, 0, 300_000));
        let time =
            response_time(mean(800.0), 10, &clients, &[read], LONGEST_US).expect("transactions");
        assert_eq!(time.part_us(&"run queue".into()), 100.0);
        assert_eq!(time.part_us(&"db file sequential read".into()), 700.0);
        assert_eq!(time.part_us(&"other".into()), 0.0);
    }

    #[test]
    fn without_transactions_there_is_no_mean() {
        assert_eq!(
            response_time(mean(0.0), 0, &ThreadTimes::default(), &[], LONGEST_US),
            None
        );
    }
}
