//! Watching the clients while time passes: their throughput at each step, until enough of it has passed.

use spindle_engines::EngineError;
use spindle_io::real::facts;
use spindle_result::WarmUp;
use spindle_stats::steady_after;
use spindle_workload::driver::Running;

use super::channel::say;
use super::counter_snapshot::waits_between;
use super::load::clients::LoadClients;
use super::load::spread::SpreadLoad;
use super::load::words::Tick;
use super::measurement::Measurement;
use super::protocol::{TrialProgress, WorkerReport};
use spindle_engines::engine::EngineWait;

/// Interval between samples in a warm-up that ends by itself: the fewest that tell a steady state take five seconds.
const WARM_UP_SAMPLE_MS: u64 = 50;
/// And between checks whether it is one.
const WARM_UP_LOOK_MS: u64 = 500;
/// Interval between checks whether every client has finished: what the system did is counted until then.
const FINISHED_LOOK_NS: u64 = 2_000_000;

/// How long the clients are watched.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// This many milliseconds.
    Passed(u64),
    /// As long as one has something left to do.
    Finished,
}

/// What was seen at each step while time passed.
#[derive(Default)]
pub(super) struct Watched {
    /// Transactions per second since the step before.
    pub samples: Vec<f64>,
    /// Transactions that were due and had not begun.
    pub backlogs: Vec<u64>,
}

/// What the steps of a watch are told against.
struct Watching {
    first: Tick,
    last: Tick,
    waits: Vec<EngineWait>,
    measuring: bool,
    watched: Watched,
}

impl Measurement<'_> {
    /// The time before measuring: as long as told, or until the throughput is steady. `None` when it was told.
    pub(super) async fn warm_up(&mut self) -> Result<Option<WarmUp>, EngineError> {
        let Some(most_ms) = self.task.warmup_max_ms else {
            let until = Until::Passed(self.task.warmup_ms);
            self.watch_from_now(until, self.task.sample_ms).await?;
            return Ok(None);
        };
        let began_ns = self.env.now();
        let least_ms = self.task.warmup_ms.min(most_ms);
        let mut samples = self
            .watch_from_now(Until::Passed(least_ms), WARM_UP_SAMPLE_MS)
            .await?
            .samples;
        let mut passed_ms = least_ms;
        let mut is_settled = steady_after(&samples).is_some();
        while !is_settled && passed_ms < most_ms {
            // A longer series is looked at less often.
            let more_ms = (passed_ms / 20)
                .max(WARM_UP_LOOK_MS)
                .min(most_ms - passed_ms);
            let more = self
                .watch_from_now(Until::Passed(more_ms), WARM_UP_SAMPLE_MS)
                .await?;
            samples.extend(more.samples);
            passed_ms += more_ms;
            is_settled = steady_after(&samples).is_some();
        }
        Ok(Some(WarmUp {
            duration_s: (self.env.now() - began_ns) as f64 / 1e9,
            is_settled,
        }))
    }

    /// Has load machines watch their clients for as long as is told, and waits until that begins. Those in this process
    /// need no arrangement.
    pub(super) async fn arrange(
        &mut self,
        until: Until,
        step_ms: u64,
        measured: bool,
    ) -> Result<(), EngineError> {
        let (LoadClients::Spread(spread), Until::Passed(length_ms)) = (&mut self.load, until)
        else {
            return Ok(());
        };
        let from_ns = spread.arrange(length_ms, step_ms, measured)?;
        let wait_ns = from_ns.saturating_sub(facts::monotonic_ns());
        self.env.sleep(wait_ns).await;
        Ok(())
    }

    /// Lets time pass that is not measured.
    async fn watch_from_now(&mut self, until: Until, step_ms: u64) -> Result<Watched, EngineError> {
        self.arrange(until, step_ms, false).await?;
        self.watch(until, step_ms, false).await
    }

    /// Lets time pass, sampling throughput; fails as soon as a client has.
    pub(super) async fn watch(
        &mut self,
        until: Until,
        step_ms: u64,
        measuring: bool,
    ) -> Result<Watched, EngineError> {
        match (&mut self.load, until) {
            (LoadClients::Here(_), _) => self.watch_here(until, step_ms, measuring).await,
            (LoadClients::Spread(spread), Until::Passed(length_ms)) => {
                let first = spread.tick()?;
                let mut watching = self.begin_watching(first, measuring);
                for _ in 0..SpreadLoad::ticks(length_ms, step_ms) {
                    let LoadClients::Spread(spread) = &mut self.load else {
                        break;
                    };
                    let tick = spread.tick()?;
                    self.step(&mut watching, tick)?;
                }
                Ok(watching.watched)
            }
            (LoadClients::Spread(_), Until::Finished) => Err(EngineError::other(
                "clients on load machines have no last transaction",
            )),
        }
    }

    async fn watch_here(
        &self,
        until: Until,
        step_ms: u64,
        measuring: bool,
    ) -> Result<Watched, EngineError> {
        let LoadClients::Here(running) = &self.load else {
            return Ok(Watched::default());
        };
        let tick = |now_ns| Tick {
            at_ns: now_ns,
            committed: running.committed(),
            backlog: running.backlog(now_ns),
        };
        let began_ns = self.env.now();
        let end_ns = match until {
            Until::Passed(duration_ms) => began_ns + duration_ms * 1_000_000,
            Until::Finished => u64::MAX,
        };
        let mut watching = self.begin_watching(tick(began_ns), measuring);
        let is_over = |last_ns| match until {
            Until::Passed(_) => last_ns >= end_ns,
            Until::Finished => running.is_finished(),
        };
        while !is_over(watching.last.at_ns) {
            let next_ns = (watching.last.at_ns + step_ms * 1_000_000).min(end_ns);
            self.sleep_until(running, next_ns, until).await;
            if let Some(error) = running.failure() {
                return Err(error.into());
            }
            self.step(&mut watching, tick(self.env.now()))?;
        }
        Ok(watching.watched)
    }

    fn begin_watching(&self, first: Tick, measuring: bool) -> Watching {
        Watching {
            first,
            last: first,
            waits: self.engine.counters().waits(),
            measuring,
            watched: Watched::default(),
        }
    }

    /// Takes a step, and tells of it.
    fn step(&self, watching: &mut Watching, tick: Tick) -> Result<(), EngineError> {
        if let Some(error) = self.engine.counters().failure() {
            return Err(error);
        }
        let per_second = |since: &Tick| {
            let done = tick.committed.saturating_sub(since.committed) as f64;
            done * 1e9 / tick.at_ns.saturating_sub(since.at_ns).max(1) as f64
        };
        let tps = per_second(&watching.last);
        watching.watched.samples.push(tps);
        watching.watched.backlogs.push(tick.backlog);
        watching.last = tick;
        say(&WorkerReport::Progress(TrialProgress {
            measuring: watching.measuring,
            all_at_work: self.load.are_all_at_work(),
            tpm: 60.0 * per_second(&watching.first),
            tpm_now: tps * 60.0,
            waits: waits_between(
                &watching.waits,
                &self.engine.counters().waits(),
                self.engine.counters().waits_are_sampled(),
            ),
        }));
        Ok(())
    }

    /// Lets time pass until a moment, or until the last client has finished, when that is what is waited for.
    async fn sleep_until(&self, running: &Running, moment_ns: u64, until: Until) {
        let left_ns = || moment_ns.saturating_sub(self.env.now());
        match until {
            Until::Passed(_) => self.env.sleep(left_ns()).await,
            Until::Finished => {
                while left_ns() > 0 && !running.is_finished() {
                    self.env.sleep(left_ns().min(FINISHED_LOOK_NS)).await;
                }
            }
        }
    }
}
