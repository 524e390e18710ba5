//! Runs clients: each a separate process that executes one transaction after the other, until told to stop; in a
//! closed loop as soon as it can, in an open one when the next transaction is due ([`crate::arrivals`]). Counts are
//! atomic numbers that anyone may read meanwhile; latencies count while measuring only. A transaction that has not
//! ended when measuring does counts as at least as long as it is by then. What a transaction is, [`Work`] says.

mod board;
mod check;
mod client;
mod deferral;
mod open_loop;
mod parts;
mod rest;
mod settings;
mod time_spent;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spindle_io::env::LocalFuture;
use spindle_io::{Env, Join};
use spindle_stats::{CensoredTimes, LatencyHistogram};

pub use board::ClientRecord;
use board::{Board, TemporarySpace, merged};
pub use check::{check, check_together};
pub use client::Behaviour;
use client::{Shared, run_client, run_deferred};
use deferral::Queue;
pub use deferral::{DeferredRecord, deferring};
use open_loop::OpenLoop;
pub use parts::{ClientPart, KindRecord, LeftOpen};
pub use settings::{CLIENTS, ClientSettings};
pub use time_spent::TimeSpent;
pub use work::{ClientError, RowWork, StatementTotal, Work};

use crate::arrivals::Arrivals;
use crate::session::ClientSession;
use crate::workload::{Acknowledged, Client, LoadedTable, Workload};

/// Random streams from here on are the clients'.
const CLIENT_STREAMS: u64 = 1 << 32;
/// Interval between checks whether all clients are connected.
const COMING_LOOK_NS: u64 = 2_000_000;

/// Clients at work.
pub struct Running {
    env: Arc<dyn Env>,
    board: Arc<Board>,
    joins: Vec<Join>,
    statements: Box<dyn Fn() -> Vec<StatementTotal> + Send + Sync>,
    end_pauses: Box<dyn Fn() + Send + Sync>,
}

/// Starts the clients on a workload of row operations; `connect` gives each a session, in its own process.
pub fn start<S: ClientSession + 'static>(
    env: &Arc<dyn Env>,
    workload: &Arc<dyn Workload>,
    tables: &[LoadedTable],
    behaviour: Behaviour,
    connect: impl Fn() -> S + Send + Sync + 'static,
) -> Running {
    let work = RowWork {
        workload: Arc::clone(workload),
        tables: tables.into(),
        connect,
    };
    start_work(env, Arc::new(work), behaviour)
}

/// What clients of this workload share while they run, bytes: histograms above all, for each kind of transaction.
pub fn shared_bytes(workload: &dyn Workload, behaviour: &Behaviour) -> u64 {
    let is_open = behaviour.arrivals.is_some();
    board::histogram_bytes(behaviour.clients, workload.kinds().len(), is_open)
}

/// Starts the clients; each connects in its own process.
pub fn start_work<W: Work>(env: &Arc<dyn Env>, work: Arc<W>, behaviour: Behaviour) -> Running {
    let part = behaviour.part();
    let is_counted =
        behaviour.transactions.is_some() || work.transactions(part.first, part.all).is_some();
    let arrivals = match work.is_paced() {
        true => Some(Arrivals::AT_ONCE),
        false => behaviour.arrivals,
    };
    let behaviour = Behaviour {
        arrivals,
        ..behaviour
    };
    let kinds = work.kinds();
    let deferring = match (0..kinds.len()).any(|kind| work.is_deferred(kind)) {
        true => deferring(behaviour.clients),
        false => 0,
    };
    let board = Arc::new(Board::new(env, kinds, &behaviour, deferring, is_counted));
    let shared = Arc::new(Shared {
        env: Arc::clone(env),
        work: Arc::clone(&work),
        board: Arc::clone(&board),
        behaviour,
        put_off: Queue::default(),
    });
    let joins = (0..behaviour.clients + deferring)
        .map(|place| {
            let number = part.first + place;
            let shared = Arc::clone(&shared);
            let start = Box::new(move || match place < behaviour.clients {
                true => {
                    let client = Client {
                        number,
                        clients: part.all,
                        changes: 0,
                        rng: shared.env.rng(CLIENT_STREAMS + number as u64),
                    };
                    Box::pin(run_client(shared, place, client)) as LocalFuture
                }
                false => Box::pin(run_deferred(shared, place)) as LocalFuture,
            });
            env.spawn(&format!("client{number}"), start)
        })
        .collect();
    let pausing = Arc::clone(&work);
    Running {
        env: Arc::clone(env),
        board,
        joins,
        end_pauses: Box::new(move || pausing.end_pauses()),
        statements: Box::new(move || work.statements()),
    }
}

impl Running {
    /// Transactions committed so far, by all clients.
    pub fn committed(&self) -> u64 {
        self.sum(|record| &record.committed)
    }

    /// Transactions tried again so far.
    pub fn retries(&self) -> u64 {
        self.sum(|record| &record.retries)
    }

    /// Those of the retries so far that a deadlock led to.
    pub fn deadlocks(&self) -> u64 {
        self.sum(|record| &record.deadlocks)
    }

    /// Transactions that failed for good so far.
    pub fn errors(&self) -> u64 {
        self.sum(|record| &record.errors)
    }

    /// Times so far that clients connected again.
    pub fn reconnects(&self) -> u64 {
        self.sum(|record| &record.reconnects)
    }

    /// What the first transaction that failed for good was told, if any did.
    pub fn first_error(&self) -> Option<String> {
        self.board.first_error.lock().clone()
    }

    /// Whether every client has carried out its transactions, or failed.
    pub fn is_finished(&self) -> bool {
        self.board.at_work.load(Ordering::Acquire) == 0
    }

    /// From when the first client began to when the last ended, nanoseconds; `None` as long as one is at work.
    pub fn at_work_ns(&self) -> Option<(u64, u64)> {
        let moments = |which: usize| {
            let records = self.board.records.iter();
            let moments =
                records.map(move |record| record.at_work_ns[which].load(Ordering::Relaxed));
            // A client that failed at its first step never began.
            moments.filter(|&moment| moment > 0)
        };
        match self.is_finished() {
            true => Some((moments(0).min()?, moments(1).max()?)),
            false => None,
        }
    }

    /// What became of each kind of transaction while measuring.
    pub fn by_kind(&self) -> Vec<KindRecord> {
        let of = |(number, kind): (usize, &String)| {
            let latencies = self.board.merged(number..number + 1);
            let temporary = *self.board.temporary[number].lock();
            KindRecord {
                kind: kind.clone(),
                errors: self.board.failed[number].load(Ordering::Relaxed),
                temporary_bytes: (temporary.known == latencies.count()).then_some(temporary.bytes),
                at_least: self.board.at_least.lock()[number].clone(),
                latencies,
            }
        };
        self.board.kinds.iter().enumerate().map(of).collect()
    }

    fn sum(&self, counter: impl Fn(&ClientRecord) -> &AtomicU64) -> u64 {
        let records = self.board.records.iter();
        records
            .map(|record| counter(record).load(Ordering::Relaxed))
            .sum()
    }

    /// For each client what it was promised of its transactions that have a number.
    pub fn acknowledged(&self) -> Vec<Acknowledged> {
        let promised = |record: &ClientRecord| Acknowledged {
            last: record.acknowledged.load(Ordering::Acquire),
            failed: record.failed.load(Ordering::Acquire),
        };
        self.clients().map(promised).collect()
    }

    /// From now on latencies count, or no longer: then each transaction under way counts as one that took at least as
    /// long as it is. Where each client has a number of transactions, they count from the first.
    pub fn measure(&self, measuring: bool) {
        let was_measuring = self.board.measuring.swap(measuring, Ordering::Relaxed);
        if was_measuring && !measuring {
            self.board.count_open(self.env.now());
        }
    }

    /// Transactions committed so far by each client.
    pub fn committed_by_client(&self) -> Vec<u64> {
        self.clients()
            .map(|record| record.committed.load(Ordering::Relaxed))
            .collect()
    }

    fn clients(&self) -> impl Iterator<Item = &ClientRecord> {
        self.board.records.iter().take(self.board.clients)
    }

    /// What the time of all clients went to until `now_ns`.
    pub fn time_spent(&self, now_ns: u64) -> TimeSpent {
        let mut all = TimeSpent::none(self.board.kinds.len());
        for (place, clock) in self.board.clocks.iter().enumerate() {
            let spent = clock.lock().spent(now_ns);
            all.add(&match place < self.board.clients {
                true => spent,
                false => spent.into_deferred(),
            });
        }
        if let Some(open) = &self.board.open {
            let pace = open.pace();
            let waiting_ns: u64 = pace.waiting_ns(now_ns).sum();
            all.queued_ns = open.queued_ns.load(Ordering::Relaxed) + waiting_ns;
        }
        all
    }

    /// What statements took since the clients began, where there are any.
    pub fn statements(&self) -> Vec<StatementTotal> {
        (self.statements)()
    }

    /// What became of the transactions that clients put off; `None` where they put nothing off.
    pub fn deferred(&self) -> Option<DeferredRecord> {
        let deferral = self.board.deferral.as_ref();
        deferral.map(|deferral| deferral.record.lock().clone())
    }

    /// Transactions under way when measuring ended.
    pub fn left_open(&self) -> LeftOpen {
        *self.board.left_open.lock()
    }

    /// The first failure of a client, if any.
    pub fn failure(&self) -> Option<ClientError> {
        self.board.failure.lock().clone()
    }

    /// Latencies of the transactions that ended while measuring: in an open loop from the intended begin on.
    pub fn latencies(&self) -> LatencyHistogram {
        self.board.merged(0..self.board.kinds.len())
    }

    /// Times of all transactions while measuring, also of those that had not ended by its end.
    pub fn times(&self) -> CensoredTimes {
        let mut at_least = LatencyHistogram::new();
        let kinds = self.board.at_least.lock();
        kinds.iter().for_each(|kind| at_least.merge(kind));
        drop(kinds);
        if let Some(open) = &self.board.open {
            at_least.merge(&open.not_begun.lock());
        }
        CensoredTimes::new(self.latencies(), &at_least)
    }

    /// Of the transactions that ended, how long each began after it was due; empty in a closed loop.
    pub fn delays(&self) -> LatencyHistogram {
        let open = self.board.open.as_ref();
        open.map_or_else(LatencyHistogram::new, |open| merged(&open.delays))
    }

    /// How long those had waited that were due and had not begun when measuring ended; empty in a closed loop.
    pub fn not_begun(&self) -> LatencyHistogram {
        let open = self.board.open.as_ref();
        open.map_or_else(LatencyHistogram::new, |open| open.not_begun.lock().clone())
    }

    /// The same of all transactions that were due while measuring, also of those that had not begun by its end.
    pub fn delay_times(&self) -> CensoredTimes {
        CensoredTimes::new(self.delays(), &self.not_begun())
    }

    /// Transactions that are due at `now_ns` and have not begun, for want of a free client; 0 in a closed loop.
    pub fn backlog(&self, now_ns: u64) -> u64 {
        let open = self.board.open.as_ref();
        let pace = open.map(OpenLoop::pace);
        pace.map_or(0, |pace| pace.waiting_ns(now_ns).count() as u64)
    }

    /// Returns when every client is connected and at work, or one has failed. Where transactions arrive at a rate, they
    /// do so as `arrivals` says from then on: what was due before counts as no delay.
    pub async fn begun(&self, arrivals: Option<Arrivals>) {
        while self.board.to_come.load(Ordering::Acquire) > 0 && self.failure().is_none() {
            self.env.sleep(COMING_LOOK_NS).await;
        }
        if let Some(arrivals) = arrivals {
            self.arrive(arrivals);
        }
    }

    /// From now on transactions arrive so; those that were due and have not begun are given up. Of use in an open loop
    /// only.
    pub fn arrive(&self, arrivals: Arrivals) {
        if let Some(open) = &self.board.open {
            open.arrive(&*self.env, arrivals);
        }
    }

    /// Forgets what was found of latencies and errors while measuring.
    pub fn forget(&self) {
        let board = &self.board;
        let clear = |histograms: &mut Vec<LatencyHistogram>| {
            histograms
                .iter_mut()
                .for_each(|it| *it = LatencyHistogram::new());
        };
        board.latencies.iter().for_each(|it| clear(&mut it.lock()));
        clear(&mut board.at_least.lock());
        *board.left_open.lock() = LeftOpen::default();
        if let Some(deferral) = &board.deferral {
            *deferral.record.lock() = DeferredRecord::default();
        }
        for (failed, temporary) in board.failed.iter().zip(&board.temporary) {
            failed.store(0, Ordering::Relaxed);
            *temporary.lock() = TemporarySpace::default();
        }
        if let Some(open) = &board.open {
            open.forget();
        }
    }

    /// Lets every client end its transaction and pause; returns when all pause, have ended or have failed.
    pub async fn pause(&self) {
        self.board.rest.ask();
        self.wake_deferring();
        let at_work = || self.board.at_work.load(Ordering::Acquire);
        self.board.rest.begun(&*self.env, at_work).await;
    }

    /// Has those who wait for transactions that were put off look again.
    fn wake_deferring(&self) {
        if let Some(deferral) = &self.board.deferral {
            deferral.changed.notify_waiters();
        }
    }

    /// Lets clients that pause continue.
    pub fn go_on(&self) {
        self.board.rest.end();
    }

    /// Lets every client end its transaction and returns when all have; the first failure, if any.
    pub async fn stop(&mut self) -> Result<(), ClientError> {
        self.board.stopping.store(true, Ordering::Release);
        self.board.stop.notify_waiters();
        self.board.begin.notify_waiters();
        self.wake_deferring();
        if let Some(open) = &self.board.open {
            open.wake();
        }
        self.board.rest.end();
        (self.end_pauses)();
        for join in std::mem::take(&mut self.joins) {
            if join.ended().await.is_err() {
                let mut failure = self.board.failure.lock();
                failure.get_or_insert(ClientError::Panicked);
            }
        }
        // The work, and with it the database, is let go.
        let statements = self.statements();
        self.statements = Box::new(move || statements.clone());
        self.end_pauses = Box::new(|| {});
        self.failure().map_or(Ok(()), Err)
    }
}
