//! Waiting before a trial until the devices are at rest, so that what came before is not billed to it. On a machine
//! that never is, the wait is learnt from: once it has run out twice in a row, later trials wait a tenth as long, until
//! one finds quiet again.

use std::ops::ControlFlow;
use std::time::Duration;

use spindle_result::QuietWait;
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::caches::{Activity, wait_until_quiet};
use spindle_text::quantity::about_time;

/// After this many waits in a row that ran out, the next are short.
const RUN_OUT_MAX: u32 = 2;
/// A short wait is this part of a whole one.
const SHORT_PART: u32 = 10;

/// Waits for quiet, as long as it is worth it.
pub(super) struct Quiet {
    limit: Duration,
    run_out: u32,
}

impl Quiet {
    /// Waits at most `limit_ms`; 0: never.
    pub(super) fn new(limit_ms: u64) -> Quiet {
        Quiet {
            limit: Duration::from_millis(limit_ms),
            run_out: 0,
        }
    }

    /// How long the next wait may take.
    fn limit(&self) -> Duration {
        match self.run_out < RUN_OUT_MAX {
            true => self.limit,
            false => self.limit / SHORT_PART,
        }
    }

    /// Waits until `devices` are at rest. `hear` is told what is in the way and how long the wait may take in all, and
    /// may end it. `None` when nothing is to be waited for.
    pub(super) fn wait(
        &mut self,
        devices: &[DeviceNumber],
        mut hear: impl FnMut(&Activity, Duration) -> ControlFlow<()>,
    ) -> Option<QuietWait> {
        let limit = self.limit();
        if limit.is_zero() || devices.is_empty() {
            return None;
        }
        let files = SystemTree::default();
        let seen = wait_until_quiet(&files, devices, limit, &mut |activity| {
            hear(activity, limit)
        });
        self.learn(seen.reached);
        Some(QuietWait {
            waited_ms: seen.waited_ms,
            limit_ms: limit.as_millis() as u64,
            is_quiet: seen.reached,
            in_the_way: seen.in_the_way.map(|activity| activity.to_string()),
        })
    }

    fn learn(&mut self, is_quiet: bool) {
        self.run_out = match is_quiet {
            true => 0,
            false => self.run_out + 1,
        };
    }

    /// What is to be said after the wait that made the next ones short.
    pub(super) fn note(&self) -> Option<String> {
        (self.run_out == RUN_OUT_MAX).then(|| {
            let words = |time: Duration| about_time(time.as_millis() as u64);
            format!(
                "this machine was not quiet within {} before {RUN_OUT_MAX} trials in a row: later trials wait {}, until one \
                 finds quiet. plan.quiet says how long to wait",
                words(self.limit),
                words(self.limit())
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_never_quiet_is_waited_for_less_and_one_that_becomes_quiet_again_as_before()
    {
        let mut quiet = Quiet::new(30_000);
        let seconds = |quiet: &Quiet| quiet.limit().as_secs();
        quiet.learn(false);
        assert_eq!((seconds(&quiet), quiet.note()), (30, None));
        quiet.learn(false);
        assert_eq!(seconds(&quiet), 3);
        assert!(quiet.note().unwrap().contains("wait 3 s"));
        quiet.learn(false);
        assert_eq!((seconds(&quiet), quiet.note()), (3, None), "said once");
        quiet.learn(true);
        assert_eq!(seconds(&quiet), 30);
    }

    #[test]
    fn nothing_is_waited_for_where_the_plan_says_so() {
        let device = DeviceNumber { major: 8, minor: 0 };
        let waited = Quiet::new(0).wait(&[device], |_, _| panic!("there is nothing to hear"));
        assert_eq!(waited, None);
    }
}
