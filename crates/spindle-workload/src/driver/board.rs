//! What clients share while they run: counts and latencies that anyone may read meanwhile, and what they wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_io::Env;
use spindle_io::sync::{Latch, Notify, timeout};
use spindle_stats::LatencyHistogram;

use super::client::Behaviour;
use super::deferral::Deferral;
use super::open_loop::OpenLoop;
use super::parts::LeftOpen;
use super::rest::Rest;
use super::time_spent::{ClientClock, Open};
use super::work::ClientError;

/// Histograms of latencies there are at most: clients share them, so that memory does not grow by a quarter of a
/// megabyte with each. A histogram is held for some ten nanoseconds a transaction.
const HISTOGRAMS_MAX: usize = 16;

/// What one client has done.
#[derive(Default)]
pub struct ClientRecord {
    /// Transactions committed.
    pub committed: AtomicU64,
    /// Transactions rolled back and tried again because another was in the way.
    pub retries: AtomicU64,
    /// Those of them that were in a deadlock.
    pub deadlocks: AtomicU64,
    /// Transactions that failed for good, those whose connection was lost included.
    pub errors: AtomicU64,
    /// Times it connected again.
    pub reconnects: AtomicU64,
    /// Number of its last changing transaction whose commit returned.
    pub acknowledged: AtomicU64,
    /// Those of the errors that have a number.
    pub failed: AtomicU64,
    /// When it was connected and about to begin, and when it had ended; 0 before that.
    pub(super) at_work_ns: [AtomicU64; 2],
}

/// What all clients share: what they are told, and what became of their transactions.
pub(super) struct Board {
    pub(super) kinds: Vec<String>,
    /// Clients; their places are followed by those of the processes that carry out what they put off.
    pub(super) clients: usize,
    pub(super) records: Vec<ClientRecord>,
    /// One for each kind, in each.
    pub(super) latencies: Vec<Latch<Vec<LatencyHistogram>>>,
    /// Of each kind, those that took longer than this, as `at_least` of `KindRecord`; few, so all clients share one.
    pub(super) at_least: Latch<Vec<LatencyHistogram>>,
    /// What each client does.
    pub(super) clocks: Vec<Latch<ClientClock>>,
    /// How many were open when measuring ended, and the longest of them.
    pub(super) left_open: Latch<LeftOpen>,
    /// Failed for good while measuring, one for each kind.
    pub(super) failed: Vec<AtomicU64>,
    /// Temporary files of each kind while measuring.
    pub(super) temporary: Vec<Latch<TemporarySpace>>,
    pub(super) open: Option<OpenLoop>,
    /// There, where clients put transactions off.
    pub(super) deferral: Option<Deferral>,
    pub(super) measuring: AtomicBool,
    pub(super) stopping: AtomicBool,
    pub(super) stop: Notify,
    pub(super) failure: Latch<Option<ClientError>>,
    pub(super) first_error: Latch<Option<String>>,
    pub(super) at_work: AtomicU64,
    /// Clients that neither have a session yet nor have failed to get one.
    pub(super) to_come: AtomicU64,
    /// All have come.
    pub(super) begin: Notify,
    pub(super) rest: Rest,
}

/// What the histograms of this many clients take, bytes: of each of `kinds` kinds of transactions, and of delays where
/// transactions arrive at a rate.
pub(super) fn histogram_bytes(clients: usize, kinds: usize, is_open: bool) -> u64 {
    let shared = clients.clamp(1, HISTOGRAMS_MAX);
    let of_kinds = (shared + 1) * kinds;
    let of_delays = if is_open { shared + 1 } else { 0 };
    LatencyHistogram::new().memory_bytes() * (of_kinds + of_delays) as u64
}

/// What transactions of one kind have written to temporary files.
#[derive(Clone, Copy, Default)]
pub(super) struct TemporarySpace {
    pub(super) bytes: u64,
    /// Transactions of which it is known.
    pub(super) known: u64,
}

impl Board {
    /// For clients that behave so, and this many processes that carry out what they put off.
    pub(super) fn new(
        env: &Arc<dyn Env>,
        kinds: Vec<String>,
        behaviour: &Behaviour,
        deferring: usize,
        measuring: bool,
    ) -> Board {
        let clients = behaviour.clients;
        let places = clients + deferring;
        let count = clients.clamp(1, HISTOGRAMS_MAX);
        let of_kinds = || Latch::new(vec![LatencyHistogram::new(); kinds.len()]);
        let part = behaviour.part();
        let arrivals = behaviour.arrivals;
        let open = arrivals.map(|arrivals| OpenLoop::new(&**env, arrivals, part, count));
        let clock = || Latch::new(ClientClock::new(env.now(), kinds.len()));
        let records = (0..places).map(|_| ClientRecord::default());
        Board {
            clients,
            deferral: (deferring > 0).then(|| Deferral::new(clients)),
            records: records.collect(),
            latencies: (0..count).map(|_| of_kinds()).collect(),
            at_least: of_kinds(),
            clocks: (0..places).map(|_| clock()).collect(),
            left_open: Latch::default(),
            failed: kinds.iter().map(|_| AtomicU64::new(0)).collect(),
            temporary: kinds.iter().map(|_| Latch::default()).collect(),
            open,
            measuring: AtomicBool::new(measuring),
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            failure: Latch::new(None),
            first_error: Latch::new(None),
            at_work: AtomicU64::new(places as u64),
            to_come: AtomicU64::new(places as u64),
            begin: Notify::new(),
            rest: Rest::default(),
            kinds,
        }
    }

    pub(super) fn merged(&self, kinds: std::ops::Range<usize>) -> LatencyHistogram {
        let mut all = LatencyHistogram::new();
        for histograms in &self.latencies {
            let histograms = histograms.lock();
            kinds.clone().for_each(|kind| all.merge(&histograms[kind]));
        }
        all
    }

    /// Counts what is under way at `now_ns`, as at least as long as it is.
    pub(super) fn count_open(&self, now_ns: u64) {
        self.left_open.lock().count = 0;
        let count = |open: Open| {
            let age_ns = now_ns.saturating_sub(open.due_ns);
            self.at_least.lock()[open.kind].record_ns(age_ns);
            let mut left_open = self.left_open.lock();
            left_open.count += 1;
            left_open.longest_ns = left_open.longest_ns.max(age_ns);
        };
        let clocks = self.clocks.iter();
        clocks
            .filter_map(|clock| clock.lock().open())
            .for_each(count);
        if let Some(deferral) = &self.deferral {
            deferral.record.lock().waiting = deferral.waiting.load(Ordering::Relaxed);
        }
        if let Some(open) = &self.open {
            let pace = open.pace();
            let mut not_begun = open.not_begun.lock();
            pace.waiting_ns(now_ns)
                .for_each(|age_ns| not_begun.record_ns(age_ns));
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until all have come, or to be told to stop. A client that begins while others still connect may keep them
    /// out: SQLite admits no session while a commit is being written, and has no queue.
    pub(super) async fn all_have_come(&self) {
        // Made before the look at the count: the last to come after that look ends the wait.
        let all = self.begin.notified();
        if self.to_come.load(Ordering::Acquire) > 0 && !self.is_stopping() {
            all.await;
        }
    }

    /// Waits to be told to stop.
    pub(super) async fn stopped(&self) {
        // Made before the look at the flag: a stop after that look ends the wait.
        let stopped = self.stop.notified();
        if !self.is_stopping() {
            stopped.await;
        }
    }

    /// Sleeps until `until_ns`, or until told to stop.
    pub(super) async fn sleep_until(&self, env: &dyn Env, until_ns: u64) {
        // Made before the look at the flag: a stop after that look ends the wait.
        let stopped = self.stop.notified();
        let wait_ns = until_ns.saturating_sub(env.now());
        if wait_ns > 0 && !self.is_stopping() {
            let _ = timeout(env, wait_ns, stopped).await;
        }
    }
}

/// A client that connects. One that has a session has come, and so has one that gets none, or that panics.
pub(super) struct Coming<'a>(pub(super) &'a Board);

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        if self.0.to_come.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.begin.notify_waiters();
        }
    }
}

/// All of them in one.
pub(super) fn merged(histograms: &[Latch<LatencyHistogram>]) -> LatencyHistogram {
    let mut all = LatencyHistogram::new();
    for histogram in histograms {
        all.merge(&histogram.lock());
    }
    all
}
