//! What an open loop also has: when transactions arrive, which may change while clients are at work.

use std::sync::atomic::{AtomicU64, Ordering};

use spindle_io::Env;
use spindle_io::sync::{Latch, Notify, timeout};
use spindle_stats::LatencyHistogram;

use super::parts::ClientPart;
use crate::arrivals::{Arrivals, Schedule};

/// The stream of chance of the arrivals; those of later paces follow.
const ARRIVAL_STREAM: u64 = 1 << 33;
/// Arrivals of clients of another part have another one: the number of their first client comes in above this bit.
const PART_BIT: u32 = 34;

/// What an open loop also has.
pub(super) struct OpenLoop {
    pace: Latch<OpenPace>,
    arriving: Arriving,
    /// The pace has changed.
    changed: Notify,
    /// From the intended begin of each transaction to its begin; shared as latencies are.
    pub(super) delays: Vec<Latch<LatencyHistogram>>,
    /// Those that were due and had not begun when measuring ended.
    pub(super) not_begun: Latch<LatencyHistogram>,
    /// When the clients began, where transactions say themselves when they are due; 0 before that.
    began_ns: AtomicU64,
    /// All of these delays so far, of transactions that have begun, nanoseconds.
    pub(super) queued_ns: AtomicU64,
}

/// Whose arrivals they are.
#[derive(Clone, Copy)]
struct Arriving {
    /// The stream of chance of the first pace.
    stream: u64,
    /// See [`Schedule::new`].
    ahead: f64,
}

impl Arriving {
    /// Those of some of the clients.
    fn of(part: ClientPart) -> Arriving {
        Arriving {
            stream: ARRIVAL_STREAM + ((part.first as u64) << PART_BIT),
            ahead: part.first as f64 / part.all.max(1) as f64,
        }
    }
}

/// When transactions arrive.
#[derive(Clone)]
pub(super) struct OpenPace {
    /// How often it has changed.
    changes: u64,
    /// `None`: as soon as a client is free.
    schedule: Option<Schedule>,
}

impl OpenPace {
    /// From now on; every pace has arrivals that no other has.
    fn new(env: &dyn Env, arrivals: Arrivals, of: Arriving, changes: u64) -> OpenPace {
        let rng = || env.rng(of.stream + changes);
        let schedule = || Schedule::new(arrivals, env.now(), rng(), of.ahead);
        OpenPace {
            changes,
            schedule: arrivals.rate_per_s.is_finite().then(schedule),
        }
    }

    /// How long each that is due at `now_ns` and has not begun has waited.
    pub(super) fn waiting_ns(&self, now_ns: u64) -> impl Iterator<Item = u64> + use<> {
        let schedule = self.schedule.iter();
        let waiting: Vec<_> = schedule.map(|it| it.waiting_ns(now_ns)).collect();
        waiting.into_iter().flatten()
    }
}

impl OpenLoop {
    /// Of some of the clients, with this many histograms of delays.
    pub(super) fn new(
        env: &dyn Env,
        arrivals: Arrivals,
        part: ClientPart,
        histograms: usize,
    ) -> OpenLoop {
        let arriving = Arriving::of(part);
        OpenLoop {
            pace: Latch::new(OpenPace::new(env, arrivals, arriving, 0)),
            arriving,
            changed: Notify::new(),
            delays: (0..histograms).map(|_| Latch::default()).collect(),
            not_begun: Latch::default(),
            began_ns: AtomicU64::new(0),
            queued_ns: AtomicU64::new(0),
        }
    }

    /// The pace, in a copy: counting takes long enough to keep clients waiting.
    pub(super) fn pace(&self) -> OpenPace {
        self.pace.lock().clone()
    }

    /// From now on transactions arrive so; those that were due and have not begun are given up.
    pub(super) fn arrive(&self, env: &dyn Env, arrivals: Arrivals) {
        let mut pace = self.pace.lock();
        *pace = OpenPace::new(env, arrivals, self.arriving, pace.changes + 1);
        drop(pace);
        self.wake();
    }

    /// Has all who wait for an arrival look again.
    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// Forgets the delays that were found.
    pub(super) fn forget(&self) {
        let delays = self.delays.iter();
        delays.for_each(|it| *it.lock() = LatencyHistogram::new());
        *self.not_begun.lock() = LatencyHistogram::new();
    }

    /// Waits until a transaction is due that says itself when, after the clients began: that moment; `None` when told
    /// to stop.
    pub(super) async fn due(
        &self,
        env: &dyn Env,
        after_ns: u64,
        is_stopping: impl Fn() -> bool,
    ) -> Option<u64> {
        let now_ns = env.now().max(1);
        let set = (self.began_ns).compare_exchange(0, now_ns, Ordering::AcqRel, Ordering::Acquire);
        let due_ns = set
            .map_or_else(|began_ns| began_ns, |_| now_ns)
            .saturating_add(after_ns);
        loop {
            // Made before the look at what would end the wait.
            let changed = self.changed.notified();
            let wait_ns = due_ns.saturating_sub(env.now());
            match (is_stopping(), wait_ns) {
                (true, _) => return None,
                (false, 0) => return Some(due_ns),
                (false, _) => _ = timeout(env, wait_ns, changed).await,
            }
        }
    }

    /// Waits for the next arrival: when it was due; `None` when told to stop. One that was waited for is none when the
    /// pace changes meanwhile.
    pub(super) async fn arrival(
        &self,
        env: &dyn Env,
        is_stopping: impl Fn() -> bool,
    ) -> Option<u64> {
        loop {
            let (due_ns, changes) = {
                let mut pace = self.pace.lock();
                let due_ns = pace.schedule.as_mut().map(Schedule::take);
                (due_ns.unwrap_or_else(|| env.now()), pace.changes)
            };
            // Made before the look at what would end the wait: a change after that look ends it.
            let changed = self.changed.notified();
            let is_the_same = || self.pace.lock().changes == changes;
            let wait_ns = due_ns.saturating_sub(env.now());
            if wait_ns > 0 && !is_stopping() && is_the_same() {
                let _ = timeout(env, wait_ns, changed).await;
            }
            match (is_stopping(), wait_ns == 0 || is_the_same()) {
                (true, _) => return None,
                (false, true) => return Some(due_ns),
                (false, false) => {}
            }
        }
    }
}
