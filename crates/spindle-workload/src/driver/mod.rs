//! Runs clients: each a separate process that executes one transaction after the other, until told to stop; in a
//! closed loop as soon as it can, in an open one when the next transaction is due ([`crate::arrivals`]). Counts are
//! atomic numbers that anyone may read meanwhile; latencies count while measuring only. A transaction that has not
//! ended when measuring does counts as at least as long as it is by then. What a transaction is, [`Work`] says.

mod check;
mod open_loop;
mod rest;
mod time_spent;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_io::env::LocalFuture;
use spindle_io::sync::{Latch, Notify, timeout};
use spindle_io::{Env, Join};
use spindle_stats::{CensoredTimes, LatencyHistogram};

pub use check::{check, check_together};
use open_loop::OpenLoop;
use rest::Rest;
pub use time_spent::TimeSpent;
use time_spent::{ClientClock, Doing, Open};
pub use work::{ClientError, RowWork, StatementTotal, Work};

use crate::arrivals::Arrivals;
use crate::session::{Session, SessionError};
use crate::workload::{Acknowledged, Client, Table, Workload};

/// Streams of chance from here on are the clients'.
const CLIENT_STREAMS: u64 = 1 << 32;
/// A transaction that meets others this often in a row is given up: it has failed for good.
const RETRIES_MAX: u32 = 100;
/// A database that has gone away is waited for so long before a client gives up, and looked for as often.
const RECONNECT_PATIENCE_NS: u64 = 30_000_000_000;
const RECONNECT_PAUSE_NS: u64 = 100_000_000;

/// Whether all clients are connected is looked at as often.
const COMING_LOOK_NS: u64 = 2_000_000;

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
    at_work_ns: [AtomicU64; 2],
}

/// What became of one kind of transaction.
#[derive(Debug, Clone)]
pub struct KindRecord {
    /// Its name.
    pub kind: String,
    /// How long those took that ended while measuring; as many as there were. One that began before counts whole.
    pub latencies: LatencyHistogram,
    /// Those that took at least so long: given up while measuring, or not ended when it did.
    pub at_least: LatencyHistogram,
    /// Those that failed for good while measuring.
    pub errors: u64,
    /// Bytes that those that ended while measuring have written to temporary files, all together; `None` unless it is
    /// known of each.
    pub temporary_bytes: Option<u64>,
}

struct Board {
    kinds: Vec<String>,
    records: Vec<ClientRecord>,
    /// One for each kind, in each.
    latencies: Vec<Latch<Vec<LatencyHistogram>>>,
    /// Of each kind, those that took longer than this, as [`KindRecord::at_least`]; few, so all clients share one.
    at_least: Latch<Vec<LatencyHistogram>>,
    /// What each client does.
    clocks: Vec<Latch<ClientClock>>,
    /// How many were open when measuring ended, and the longest of them.
    left_open: Latch<LeftOpen>,
    /// Failed for good while measuring, one for each kind.
    failed: Vec<AtomicU64>,
    /// Temporary files of each kind while measuring.
    temporary: Vec<Latch<TemporarySpace>>,
    open: Option<OpenLoop>,
    measuring: AtomicBool,
    stopping: AtomicBool,
    stop: Notify,
    failure: Latch<Option<ClientError>>,
    first_error: Latch<Option<String>>,
    at_work: AtomicU64,
    /// Clients that neither have a session yet nor have failed to get one.
    to_come: AtomicU64,
    /// All have come.
    begin: Notify,
    rest: Rest,
}

/// What transactions of one kind have written to temporary files.
#[derive(Clone, Copy, Default)]
struct TemporarySpace {
    bytes: u64,
    /// Transactions of which it is known.
    known: u64,
}

/// Transactions that were under way when measuring ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOpen {
    /// How many.
    pub count: u64,
    /// Time since the longest of them began, or was to begin, nanoseconds.
    pub longest_ns: u64,
}

/// How clients behave.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Behaviour {
    /// Clients at once.
    pub clients: usize,
    /// Transactions that each client carries out before it ends; `None`: until it is told to stop.
    pub transactions: Option<u64>,
    /// A client whose connection is lost connects again; else it ends the run.
    pub reconnect: bool,
    /// Pause after each transaction, nanoseconds; of no use with `arrivals`.
    pub think_time_ns: u64,
    /// Transactions come at their own rate; `None`: each client begins one when it has ended the last. An infinite
    /// rate is that, too, until [`Running::arrive`] sets another.
    pub arrivals: Option<Arrivals>,
}

/// Clients at work.
pub struct Running {
    env: Arc<dyn Env>,
    board: Arc<Board>,
    joins: Vec<Join>,
    statements: Box<dyn Fn() -> Vec<StatementTotal> + Send + Sync>,
    end_pauses: Box<dyn Fn() + Send + Sync>,
}

/// Starts the clients on a workload of row operations; `connect` gives each a session, in its own process.
pub fn start<S: Session + 'static>(
    env: &Arc<dyn Env>,
    workload: &Arc<dyn Workload>,
    tables: &[Table],
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

/// Starts the clients; each connects in its own process.
pub fn start_work<W: Work>(env: &Arc<dyn Env>, work: Arc<W>, behaviour: Behaviour) -> Running {
    let is_counted =
        behaviour.transactions.is_some() || work.transactions(0, behaviour.clients).is_some();
    let arrivals = match work.is_paced() {
        true => Some(Arrivals::AT_ONCE),
        false => behaviour.arrivals,
    };
    let behaviour = Behaviour {
        arrivals,
        ..behaviour
    };
    let board = Arc::new(Board::new(env, work.kinds(), behaviour, is_counted));
    let joins = (0..behaviour.clients)
        .map(|number| {
            let (env_inner, work, board) = (Arc::clone(env), Arc::clone(&work), Arc::clone(&board));
            let start = Box::new(move || {
                let rng = env_inner.rng(CLIENT_STREAMS + number as u64);
                let client = Client {
                    number,
                    clients: behaviour.clients,
                    changes: 0,
                    rng,
                };
                Box::pin(run_client(env_inner, work, board, client, behaviour)) as LocalFuture
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
        self.board.records.iter().map(promised).collect()
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
        let records = self.board.records.iter();
        records
            .map(|record| record.committed.load(Ordering::Relaxed))
            .collect()
    }

    /// What the time of all clients went to until `now_ns`.
    pub fn time_spent(&self, now_ns: u64) -> TimeSpent {
        let mut all = TimeSpent::none(self.board.kinds.len());
        for clock in &self.board.clocks {
            all.add(&clock.lock().spent(now_ns));
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

    /// The same of all transactions that were due while measuring, also of those that had not begun by its end.
    pub fn delay_times(&self) -> CensoredTimes {
        let open = self.board.open.as_ref();
        let not_begun = open.map(|open| open.not_begun.lock().clone());
        CensoredTimes::new(self.delays(), &not_begun.unwrap_or_default())
    }

    /// Transactions that are due at `now_ns` and have not begun, for want of a free client; 0 in a closed loop.
    pub fn backlog(&self, now_ns: u64) -> u64 {
        let open = self.board.open.as_ref();
        let pace = open.map(OpenLoop::pace);
        pace.map_or(0, |pace| pace.waiting_ns(now_ns).count() as u64)
    }

    /// Returns when every client is connected and at work, or one has failed. Where transactions arrive at a rate, they
    /// do so as `arrivals` says from then on: what was due before is nobody's delay.
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
        let at_work = || self.board.at_work.load(Ordering::Acquire);
        self.board.rest.begin(&*self.env, at_work).await;
    }

    /// Lets clients that pause go on.
    pub fn go_on(&self) {
        self.board.rest.end();
    }

    /// Lets every client end its transaction and returns when all have; the first failure, if any.
    pub async fn stop(&mut self) -> Result<(), ClientError> {
        self.board.stopping.store(true, Ordering::Release);
        self.board.stop.notify_waiters();
        self.board.begin.notify_waiters();
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

fn merged(histograms: &[Latch<LatencyHistogram>]) -> LatencyHistogram {
    let mut all = LatencyHistogram::new();
    for histogram in histograms {
        all.merge(&histogram.lock());
    }
    all
}

impl Board {
    fn new(env: &Arc<dyn Env>, kinds: Vec<String>, behaviour: Behaviour, measuring: bool) -> Board {
        let count = behaviour.clients.clamp(1, HISTOGRAMS_MAX);
        let of_kinds = || Latch::new(vec![LatencyHistogram::new(); kinds.len()]);
        let open = behaviour.arrivals;
        let open = open.map(|arrivals| OpenLoop::new(&**env, arrivals, count));
        let clock = || Latch::new(ClientClock::new(env.now(), kinds.len()));
        let records = (0..behaviour.clients).map(|_| ClientRecord::default());
        Board {
            records: records.collect(),
            latencies: (0..count).map(|_| of_kinds()).collect(),
            at_least: of_kinds(),
            clocks: (0..behaviour.clients).map(|_| clock()).collect(),
            left_open: Latch::default(),
            failed: kinds.iter().map(|_| AtomicU64::new(0)).collect(),
            temporary: kinds.iter().map(|_| Latch::default()).collect(),
            open,
            measuring: AtomicBool::new(measuring),
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            failure: Latch::new(None),
            first_error: Latch::new(None),
            at_work: AtomicU64::new(behaviour.clients as u64),
            to_come: AtomicU64::new(behaviour.clients as u64),
            begin: Notify::new(),
            rest: Rest::default(),
            kinds,
        }
    }

    fn merged(&self, kinds: std::ops::Range<usize>) -> LatencyHistogram {
        let mut all = LatencyHistogram::new();
        for histograms in &self.latencies {
            let histograms = histograms.lock();
            kinds.clone().for_each(|kind| all.merge(&histograms[kind]));
        }
        all
    }

    /// Counts what is under way at `now_ns`, as at least as long as it is.
    fn count_open(&self, now_ns: u64) {
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
        if let Some(open) = &self.open {
            let pace = open.pace();
            let mut not_begun = open.not_begun.lock();
            pace.waiting_ns(now_ns)
                .for_each(|age_ns| not_begun.record_ns(age_ns));
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until all have come, or to be told to stop. Who begins while others still connect may keep them out:
    /// SQLite lets nobody in while a commit is being written, and has no queue.
    async fn all_have_come(&self) {
        // Made before the look at the count: the last to come after that look ends the wait.
        let all = self.begin.notified();
        if self.to_come.load(Ordering::Acquire) > 0 && !self.is_stopping() {
            all.await;
        }
    }

    /// Waits to be told to stop.
    async fn stopped(&self) {
        // Made before the look at the flag: a stop after that look ends the wait.
        let stopped = self.stop.notified();
        if !self.is_stopping() {
            stopped.await;
        }
    }

    /// Sleeps until `until_ns`, or until told to stop.
    async fn sleep_until(&self, env: &dyn Env, until_ns: u64) {
        // Made before the look at the flag: a stop after that look ends the wait.
        let stopped = self.stop.notified();
        let wait_ns = until_ns.saturating_sub(env.now());
        if wait_ns > 0 && !self.is_stopping() {
            let _ = timeout(env, wait_ns, stopped).await;
        }
    }
}

/// A client that connects. One that has a session has come, and so has one that gets none, or that panics.
struct Coming<'a>(&'a Board);

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        if self.0.to_come.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.begin.notify_waiters();
        }
    }
}

async fn run_client<W: Work>(
    env: Arc<dyn Env>,
    work: Arc<W>,
    board: Arc<Board>,
    client: Client,
    behaviour: Behaviour,
) {
    let number = client.number;
    let place = ClientPlace {
        env,
        work: &*work,
        board: &board,
        client,
        behaviour,
    };
    if let Err(error) = place.work().await {
        let mut failure = board.failure.lock();
        failure.get_or_insert(ClientError::Failed { number, error });
        drop(failure);
        board.at_work.fetch_sub(1, Ordering::Release);
    }
}

/// A client at its place.
struct ClientPlace<'a, W: Work> {
    env: Arc<dyn Env>,
    work: &'a W,
    board: &'a Board,
    client: Client,
    behaviour: Behaviour,
}

impl<W: Work> ClientPlace<'_, W> {
    async fn work(mut self) -> Result<(), SessionError> {
        let board = self.board;
        let coming = Coming(board);
        let connected = self.work.connect();
        drop(coming);
        let mut session = connected?;
        board.all_have_come().await;
        let of_work = self
            .work
            .transactions(self.client.number, self.client.clients);
        let mut left = of_work.or(self.behaviour.transactions).unwrap_or(u64::MAX);
        self.record().at_work_ns[0].store(self.env.now().max(1), Ordering::Relaxed);
        while left > 0 && !board.is_stopping() {
            if board.rest.is_asked_for() {
                self.turn_to(Doing::Away, self.env.now());
                board.rest.take().await;
                continue;
            }
            left -= 1;
            self.turn_to(Doing::Between, self.env.now());
            let txn = self.work.next(&mut self.client);
            let mut due_ns = None;
            if let Some(open) = &board.open {
                self.turn_to(Doing::Idle, self.env.now());
                let is_stopping = || board.is_stopping();
                due_ns = match self.work.due_ns(&txn) {
                    Some(after_ns) => open.due(&*self.env, after_ns, is_stopping).await,
                    None => open.arrival(&*self.env, is_stopping).await,
                };
                if due_ns.is_none() {
                    break;
                }
            }
            let began_ns = self.begin(&txn, due_ns);
            match self.carry_out(&mut session, &txn).await {
                Ok(()) => {
                    self.count(&txn, began_ns, due_ns);
                    self.count_temporary_space(&txn, &mut session);
                }
                Err(error) => {
                    self.count_given_up(&txn, due_ns.unwrap_or(began_ns));
                    self.count_error(&txn, error, &mut session).await?;
                    // What it has written does not count for the next one.
                    self.work.temporary_bytes(&mut session);
                }
            }
            if self.behaviour.think_time_ns > 0 {
                let now_ns = self.env.now();
                self.turn_to(Doing::Thinking, now_ns);
                let until_ns = now_ns + self.behaviour.think_time_ns;
                board.sleep_until(&*self.env, until_ns).await;
            }
        }
        self.turn_to(Doing::Away, self.env.now());
        self.record().at_work_ns[1].store(self.env.now(), Ordering::Relaxed);
        board.at_work.fetch_sub(1, Ordering::Release);
        // What its thread and its connection have done can be counted as long as they are there.
        board.stopped().await;
        Ok(())
    }

    fn record(&self) -> &ClientRecord {
        &self.board.records[self.client.number]
    }

    fn turn_to(&self, doing: Doing, now_ns: u64) {
        let mut clock = self.board.clocks[self.client.number].lock();
        clock.turn_to(doing, now_ns);
    }

    /// A transaction begins now.
    fn begin(&self, txn: &W::Txn, due_ns: Option<u64>) -> u64 {
        let began_ns = self.env.now();
        let open = Open {
            kind: self.work.kind(txn),
            due_ns: due_ns.unwrap_or(began_ns),
        };
        self.turn_to(Doing::Transaction(open), began_ns);
        if let Some(open_loop) = &self.board.open {
            let delay_ns = began_ns.saturating_sub(open.due_ns);
            open_loop.queued_ns.fetch_add(delay_ns, Ordering::Relaxed);
        }
        began_ns
    }

    /// One that failed for good would have taken longer than it did.
    fn count_given_up(&self, txn: &W::Txn, due_ns: u64) {
        if self.board.measuring.load(Ordering::Relaxed) {
            let age_ns = self.env.now().saturating_sub(due_ns);
            self.board.at_least.lock()[self.work.kind(txn)].record_ns(age_ns);
        }
    }

    fn count(&self, txn: &W::Txn, began_ns: u64, due_ns: Option<u64>) {
        let (board, now_ns) = (self.board, self.env.now());
        self.turn_to(Doing::Between, now_ns);
        let histogram = self.client.number % board.latencies.len();
        if board.measuring.load(Ordering::Relaxed) {
            let latency_ns = now_ns.saturating_sub(due_ns.unwrap_or(began_ns));
            let kind = self.work.kind(txn);
            board.latencies[histogram].lock()[kind].record_ns(latency_ns);
            if let (Some(open), Some(due_ns)) = (&board.open, due_ns) {
                let delay_ns = began_ns.saturating_sub(due_ns);
                open.delays[histogram].lock().record_ns(delay_ns);
            }
        }
        self.record().committed.fetch_add(1, Ordering::Relaxed);
    }

    fn count_temporary_space(&self, txn: &W::Txn, session: &mut W::Session) {
        let bytes = self.work.temporary_bytes(session);
        if let (Some(bytes), true) = (bytes, self.board.measuring.load(Ordering::Relaxed)) {
            let mut temporary = self.board.temporary[self.work.kind(txn)].lock();
            temporary.bytes += bytes;
            temporary.known += 1;
        }
    }

    /// Counts a transaction that failed for good, and makes the session fit for the next one.
    async fn count_error(
        &self,
        txn: &W::Txn,
        error: SessionError,
        session: &mut W::Session,
    ) -> Result<(), SessionError> {
        let goes_on = match &error {
            SessionError::Refused(_) => true,
            // Others were in the way until it was given up.
            SessionError::Retry(_) | SessionError::Deadlock(_) => true,
            SessionError::Lost(_) => self.behaviour.reconnect,
            SessionError::Failed(_) => false,
        };
        if !goes_on {
            return Err(error);
        }
        self.record().errors.fetch_add(1, Ordering::Relaxed);
        if self.work.number(txn) > 0 {
            self.record().failed.fetch_add(1, Ordering::Release);
        }
        if self.board.measuring.load(Ordering::Relaxed) {
            self.board.failed[self.work.kind(txn)].fetch_add(1, Ordering::Relaxed);
        }
        let mut first_error = self.board.first_error.lock();
        first_error.get_or_insert(error.to_string());
        drop(first_error);
        if matches!(error, SessionError::Lost(_)) {
            return self.reconnect(session).await;
        }
        match self.work.rollback(session).await {
            Err(SessionError::Lost(_)) if self.behaviour.reconnect => self.reconnect(session).await,
            rolled_back => rolled_back,
        }
    }

    /// Connects again, for as long as a database takes to come back.
    async fn reconnect(&self, session: &mut W::Session) -> Result<(), SessionError> {
        let now_ns = self.env.now();
        self.turn_to(Doing::Away, now_ns);
        let end_ns = now_ns + RECONNECT_PATIENCE_NS;
        loop {
            match self.work.connect() {
                Ok(connected) => {
                    *session = connected;
                    self.record().reconnects.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(SessionError::Lost(_)) if self.env.now() < end_ns => {
                    if self.board.is_stopping() {
                        return Ok(());
                    }
                    let until_ns = self.env.now() + RECONNECT_PAUSE_NS;
                    self.board.sleep_until(&*self.env, until_ns).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Carries a transaction out, from the beginning again when another was in the way.
    async fn carry_out(&self, session: &mut W::Session, txn: &W::Txn) -> Result<(), SessionError> {
        let record = self.record();
        let mut tries = 0;
        while let Err(error) = self.work.attempt(session, txn).await {
            let deadlocks = match error {
                SessionError::Retry(_) => 0,
                SessionError::Deadlock(_) => 1,
                _ => return Err(error),
            };
            if tries == RETRIES_MAX {
                return Err(error);
            }
            tries += 1;
            record.retries.fetch_add(1, Ordering::Relaxed);
            record.deadlocks.fetch_add(deadlocks, Ordering::Relaxed);
            self.work.rollback(session).await?;
        }
        let number = self.work.number(txn);
        if number > 0 {
            record.acknowledged.store(number, Ordering::Release);
        }
        Ok(())
    }
}
