//! What a trial also needs when its load arrives at a rate: clients that wake on time, and a judgement whether the
//! database kept up.

use std::num::NonZeroU64;

use spindle_result::{Arrivals, Latency};

use super::protocol::Task;

/// A replay has fallen behind when one of a hundred transactions is late by more than this share of its whole time, and
/// by more seconds than these.
const LATE_SHARE: f64 = 0.05;
const LATE_S: f64 = 1.0;

/// What became of load that came at a rate, or when a recording says; `delay_us` is how late transactions began.
pub(super) fn arrivals(
    task: &Task,
    backlogs: &[u64],
    transactions: u64,
    delay_us: impl FnOnce() -> Latency,
) -> Option<Arrivals> {
    let settings = task.workload.transactions.settings();
    if let Some(rate_per_s) = settings.recorded_rate_per_s() {
        let delay_us = delay_us();
        return Some(Arrivals {
            rate_per_s,
            is_recorded: true,
            delay_us,
            backlog: 0,
            is_overloaded: is_behind(delay_us.p99, transactions as f64 / rate_per_s),
        });
    }
    let arrivals = task.workload.arrivals?;
    Some(Arrivals {
        rate_per_s: arrivals.rate_per_s,
        is_recorded: false,
        delay_us: delay_us(),
        backlog: backlogs.last().copied().unwrap_or(0),
        is_overloaded: is_overloaded(backlogs),
    })
}

/// Whether a replay fell behind what was recorded, by how late one of a hundred transactions began.
fn is_behind(late_us: f64, whole_s: f64) -> bool {
    late_us > 1e6 * (LATE_SHARE * whole_s).max(LATE_S)
}

/// Has clients that this thread is about to start wake within a microsecond of the time that they sleep to. The system
/// would else round by 50 us ("timer slack", prctl(2), which new threads inherit), and charge it to every transaction.
pub(super) fn begin_on_time() {
    // A system that refuses leaves clients a little late: the delay that is reported shows it.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Whether the database fell behind for good, by the transactions that were due and had not begun, sampled over the
/// measured time: in the second half there was always a backlog, and it grew. One that keeps up has none now and then,
/// even right after a stall.
fn is_overloaded(backlogs: &[u64]) -> bool {
    let second_half = &backlogs[backlogs.len() / 2..];
    let (third, last) = second_half.split_at(second_half.len() / 2);
    let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
    !third.is_empty() && !second_half.contains(&0) && mean(last) > mean(third)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_that_is_late_by_a_share_of_its_time_is_behind() {
        assert!(!is_behind(900_000.0, 1.0), "less than a second");
        assert!(is_behind(1_100_000.0, 1.0));
        assert!(!is_behind(4_000_000.0, 100.0));
        assert!(is_behind(6_000_000.0, 100.0));
    }

    #[test]
    fn a_backlog_that_grows_is_overload_and_one_that_is_worked_off_is_none() {
        let growing: Vec<u64> = (0..100).map(|sample| 5 * sample).collect();
        assert!(is_overloaded(&growing));
        assert!(!is_overloaded(&[0; 100]));
        let mut stall = [0; 100];
        stall[90..].copy_from_slice(&[10, 40, 90, 140, 190, 240, 200, 150, 100, 50]);
        assert!(!is_overloaded(&stall), "a stall at the end");
        let shrinking: Vec<u64> = (0..100).map(|sample| 500 - 5 * sample).collect();
        assert!(!is_overloaded(&shrinking), "a warm-up that left a backlog");
        let mut late = growing.clone();
        late[60] = 0;
        assert!(!is_overloaded(&late), "it was worked off in between");
    }

    #[test]
    fn too_few_samples_tell_nothing() {
        assert!(!is_overloaded(&[]));
        assert!(!is_overloaded(&[7, 9]));
        assert!(is_overloaded(&[1, 5, 7, 9]));
    }
}
