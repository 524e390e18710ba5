//! The search for the highest rate of a trial, as its measurement needs it.

use spindle_engines::{EngineError, ErrorKind};
use spindle_experiment::Promised;
use spindle_result::Capacity;
use spindle_stats::RateStep;
use spindle_workload::capacity::{self, Goal, find_capacity};
use spindle_workload::driver::Running;

use super::channel::say;
use super::measurement::Measurement;
use super::protocol::{TrialProgress, WorkerReport};

/// A rate is tried for this part of the time measured, and no less than a second.
const TRY_PART: u64 = 4;
const TRY_MIN_MS: u64 = 1_000;

impl Measurement<'_> {
    /// Searches the highest rate that keeps what is promised. Load arrives at it from then on.
    pub(super) async fn find_capacity(&self, promised: Promised) -> Result<Capacity, EngineError> {
        let goal = Goal {
            p99_us: promised.p99_ms as f64 * 1e3,
            spacing: promised.spacing,
        };
        let try_ms = (self.task.measure_ms / TRY_PART).max(TRY_MIN_MS);
        let look = |step: &RateStep| self.look_after(step);
        let Some(running) = self.load.here() else {
            return Err(EngineError::refused(
                "a rate cannot be searched from several load machines",
            ));
        };
        let found = find_capacity(&**self.env, running, goal, try_ms * 1_000_000, look).await;
        let found = found.map_err(|none| match none {
            capacity::NoCapacity::Stopped(error) => error,
            other => EngineError::new(
                ErrorKind::Failed,
                format!("p99 of {} ms: {other}", promised.p99_ms),
            ),
        })?;
        Ok(Capacity {
            p99_us: goal.p99_us,
            rate_per_s: found.rate_per_s,
            closed_loop_per_s: found.closed_loop_per_s,
            is_unsettled: !found.is_settled,
            steps: found.steps,
        })
    }

    /// Tells of a rate that was tried; fails when a client or the database has.
    fn look_after(&self, step: &RateStep) -> Result<(), EngineError> {
        let failed = self.load.here().and_then(Running::failure);
        let failed = failed.map(EngineError::from);
        if let Some(error) = failed.or_else(|| self.engine.counters().failure()) {
            return Err(error);
        }
        say(&WorkerReport::Progress(TrialProgress {
            measuring: false,
            all_at_work: self.load.are_all_at_work(),
            tpm: step.rate_per_s * 60.0,
            tpm_now: step.rate_per_s * 60.0,
            waits: Vec::new(),
        }));
        Ok(())
    }
}
