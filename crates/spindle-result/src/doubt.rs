//! Trials that say nothing of their layout: the process or the machine stood still meanwhile, the trial lasted much
//! longer than asked, or no transaction was committed in it. Such a trial is set aside and measured again; it stays in
//! the journal and in the result, and counts for nothing.

use std::fmt;

use super::Trial;

/// A trial is tried at most this often in a round; when every try is in doubt, the round goes without it.
pub const TRIES_MAX: usize = 3;
/// This share of the watched time may be lost before a trial is in doubt, and at least [`STILL_MIN_MS`].
const STILL_PART: f64 = 0.05;
/// Standstills shorter than this are the system's own, milliseconds.
const STILL_MIN_MS: f64 = 200.0;
/// A trial may last longer than asked by this share, and at least by [`LATE_MIN_MS`].
const LATE_PART: f64 = 0.10;
/// Milliseconds that the clock of a trial is read late on a busy machine.
const LATE_MIN_MS: f64 = 200.0;

/// Why a trial is set aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// Its process or the machine stood still.
    StoodStill {
        /// For this long, seconds.
        seconds: f64,
        /// Because the machine was suspended.
        is_suspended: bool,
    },
    /// It lasted longer than asked, though nothing stood still.
    Overlong {
        /// Seconds that it lasted, the flush left out.
        lasted_s: f64,
        /// Seconds that were asked for.
        asked_s: f64,
    },
    /// No transaction was committed: the storage stood still, or the time is too short for the layout.
    Idle,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::StoodStill {
                seconds,
                is_suspended: true,
            } => write!(f, "the machine was suspended for {seconds:.1} s"),
            Doubt::StoodStill { seconds, .. } => write!(
                f,
                "a process of the trial or the whole machine stood still for {seconds:.1} s"
            ),
            Doubt::Overlong { lasted_s, asked_s } => {
                write!(f, "it lasted {lasted_s:.1} s instead of {asked_s:.1} s")
            }
            Doubt::Idle => f.write_str("no transaction was committed"),
        }
    }
}

/// Why a trial is in doubt, if it is.
pub fn doubt(trial: &Trial) -> Option<Doubt> {
    let conditions = &trial.conditions;
    let times = conditions.times.unwrap_or_default();
    if let Some(still) = conditions.standstill {
        let watched_ms = (times.warm_up_ms + times.measured_ms + times.flush_ms) as f64;
        let lost_ms = still.total_ms as f64;
        if lost_ms >= (STILL_PART * (watched_ms - lost_ms)).max(STILL_MIN_MS) {
            return Some(Doubt::StoodStill {
                seconds: lost_ms / 1e3,
                is_suspended: 2 * still.suspended_ms > still.total_ms,
            });
        }
    }
    // A query that did not end is told by its own name.
    if trial.tpm <= 0.0 && trial.queries.is_none() {
        return Some(Doubt::Idle);
    }
    let (lasted_ms, asked_ms) = (times.measured_ms as f64, conditions.asked_ms? as f64);
    (lasted_ms - asked_ms > (LATE_PART * asked_ms).max(LATE_MIN_MS)).then_some(Doubt::Overlong {
        lasted_s: lasted_ms / 1e3,
        asked_s: asked_ms / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Conditions, QueryRun, Standstill, TrialTimes, sample};
    use super::*;

    fn trial(still_ms: u64, measured_ms: u64, asked_ms: Option<u64>) -> Trial {
        let mut trial = sample::trial(1, 100.0);
        trial.conditions = Conditions {
            standstill: Some(Standstill {
                total_ms: still_ms,
                longest_ms: still_ms,
                suspended_ms: 0,
            }),
            asked_ms,
            times: Some(TrialTimes {
                measured_ms,
                ..TrialTimes::default()
            }),
            ..Conditions::default()
        };
        trial
    }

    #[test]
    fn a_standstill_counts_by_its_share_of_the_trial() {
        let is_doubted = |still, measured| doubt(&trial(still, measured, None)).is_some();
        assert!(is_doubted(2500, 5500));
        assert!(is_doubted(200, 500));
        assert!(!is_doubted(190, 500), "what any system does");
        assert!(!is_doubted(900, 20_000) && is_doubted(1100, 20_000));
    }

    #[test]
    fn a_trial_without_a_commit_is_in_doubt_unless_queries_are_what_it_measures() {
        let mut idle = trial(0, 900, Some(900));
        assert_eq!(doubt(&idle), None);
        idle.figures.tpm = 0.0;
        assert_eq!(doubt(&idle), Some(Doubt::Idle));
        idle.figures.queries = Some(QueryRun {
            times: Vec::new(),
            geometric_mean_s: None,
            power: None,
            throughput: None,
            temporary_bytes: None,
        });
        assert_eq!(doubt(&idle), None);
    }

    #[test]
    fn a_trial_that_lasts_too_long_is_in_doubt_even_if_nobody_saw_a_standstill() {
        let text = |measured, asked| doubt(&trial(0, measured, asked)).map(|why| why.to_string());
        assert_eq!(
            text(5500, Some(3000)).unwrap(),
            "it lasted 5.5 s instead of 3.0 s"
        );
        assert_eq!(text(3290, Some(3000)), None);
        assert_eq!(text(280, Some(100)), None, "a clock read late");
        assert_eq!(text(5500, None), None, "nobody knows how long queries take");
    }
}
