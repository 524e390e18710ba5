//! How the time that a person gives is divided between requests and commits, once targets are ready.

use std::time::Duration;

/// What flushes and commits of a target take: about this long, and this part of the time.
const COMMITS_TAKE: (Duration, f64) = (Duration::from_secs(6), 0.07);
/// Requests have this part of the time at least.
const REQUESTS_PART_MIN: f64 = 0.3;
/// A calibration that takes longer than this part of the time that was asked for says so.
const TOLD_FROM: f64 = 1.2;

/// The parts of a calibration.
pub(crate) struct TimeBudget {
    asked: Duration,
    passed: Duration,
    /// Of requests.
    pub(crate) requests: Duration,
    /// Of flushes and commits.
    commits: Duration,
}

impl TimeBudget {
    /// After `passed`, with this many targets that meet commits, too.
    pub(crate) fn of(asked: Duration, passed: Duration, written: usize) -> TimeBudget {
        let (fixed, part) = COMMITS_TAKE;
        let commits = (fixed + asked.mul_f64(part)) * written as u32;
        let least = asked.mul_f64(REQUESTS_PART_MIN);
        TimeBudget {
            asked,
            passed,
            requests: asked.saturating_sub(passed + commits).max(least),
            commits,
        }
    }

    /// What a person is told where it will take longer than was asked for.
    pub(crate) fn takes_longer(&self) -> Option<String> {
        let takes = self.passed + self.requests + self.commits;
        (takes > self.asked.mul_f64(TOLD_FROM)).then(|| {
            format!(
                "this will take about {:.0} s instead of {:.0} s: flushes and commits alone take {:.0} s",
                takes.as_secs_f64(),
                self.asked.as_secs_f64(),
                self.commits.as_secs_f64()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_than_was_asked_for_is_told() {
        let budget = |asked_s, written| {
            let asked = Duration::from_secs(asked_s);
            TimeBudget::of(asked, asked.mul_f64(0.25), written)
        };
        let usual = budget(120, 1);
        assert_eq!(usual.takes_longer(), None);
        assert!(usual.requests > Duration::from_secs(60));
        let told = budget(10, 2).takes_longer().unwrap();
        assert!(told.contains("19 s instead of 10 s"), "{told}");
        assert_eq!(budget(10, 0).takes_longer(), None);
    }
}
