//! Runs clients: each a process of its own that executes one transaction after the other, until told to stop; in a closed
//! loop as soon as it can, in an open one when the next transaction is due ([`crate::arrivals`]). Counts are atomic numbers
//! that anyone may read meanwhile; latencies count while measuring only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_io::env::LocalFuture;
use spindle_io::sync::{Latch, Notify, timeout};
use spindle_io::{Env, Join};
use spindle_stats::LatencyHistogram;

use crate::arrivals::{Arrivals, Schedule};
use crate::session::{Session, SessionError, Txn};
use crate::workload::{Client, Table, Workload};

/// Streams of chance from here on are the clients'.
const CLIENT_STREAMS: u64 = 1 << 32;
/// The stream of chance of the arrivals.
const ARRIVAL_STREAM: u64 = 1 << 33;
/// A transaction that meets others this often in a row is given up.
const RETRIES_MAX: u32 = 100;

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
    /// Number of its last changing transaction whose commit returned.
    pub acknowledged: AtomicU64,
}

struct Board {
    records: Vec<ClientRecord>,
    latencies: Vec<Latch<LatencyHistogram>>,
    open: Option<OpenLoop>,
    measuring: AtomicBool,
    stopping: AtomicBool,
    stop: Notify,
    failure: Latch<Option<String>>,
}

/// What an open loop has besides.
struct OpenLoop {
    schedule: Latch<Schedule>,
    /// From the intended begin of each transaction to its begin; shared as latencies are.
    delays: Vec<Latch<LatencyHistogram>>,
}

/// How clients behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Behaviour {
    /// Clients at once.
    pub clients: usize,
    /// Pause after each transaction, nanoseconds; of no use with `arrivals`.
    pub think_time_ns: u64,
    /// Transactions come at a rate of their own; `None`: each client begins one when it has ended the last.
    pub arrivals: Option<Arrivals>,
}

/// Clients at work.
pub struct Running {
    board: Arc<Board>,
    joins: Vec<Join>,
}

/// Starts the clients; `connect` gives each a session, in its own process.
pub fn start<S: Session + 'static>(
    env: &Arc<dyn Env>,
    workload: &Arc<dyn Workload>,
    tables: &[Table],
    behaviour: Behaviour,
    connect: impl Fn() -> S + Send + Sync + 'static,
) -> Running {
    let histograms = || -> Vec<Latch<LatencyHistogram>> {
        let count = behaviour.clients.clamp(1, HISTOGRAMS_MAX);
        (0..count).map(|_| Latch::default()).collect()
    };
    let open = behaviour.arrivals.map(|arrivals| OpenLoop {
        schedule: Latch::new(Schedule::new(arrivals, env.now(), env.rng(ARRIVAL_STREAM))),
        delays: histograms(),
    });
    let board = Arc::new(Board {
        records: (0..behaviour.clients)
            .map(|_| ClientRecord::default())
            .collect(),
        latencies: histograms(),
        open,
        measuring: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        stop: Notify::new(),
        failure: Latch::new(None),
    });
    let connect = Arc::new(connect);
    let tables: Arc<[Table]> = tables.into();
    let joins = (0..behaviour.clients)
        .map(|number| {
            let (env_inner, workload, board) =
                (Arc::clone(env), Arc::clone(workload), Arc::clone(&board));
            let (connect, tables) = (Arc::clone(&connect), Arc::clone(&tables));
            let start = Box::new(move || {
                let rng = env_inner.rng(CLIENT_STREAMS + number as u64);
                let client = Client {
                    number,
                    clients: behaviour.clients,
                    changes: 0,
                    rng,
                };
                let session = connect();
                Box::pin(run_client(
                    env_inner, workload, tables, board, client, behaviour, session,
                )) as LocalFuture
            });
            env.spawn(&format!("client{number}"), start)
        })
        .collect();
    Running { board, joins }
}

impl Running {
    /// Transactions committed so far, by all clients.
    pub fn committed(&self) -> u64 {
        self.board
            .records
            .iter()
            .map(|record| record.committed.load(Ordering::Relaxed))
            .sum()
    }

    /// Transactions tried again so far.
    pub fn retries(&self) -> u64 {
        self.board
            .records
            .iter()
            .map(|record| record.retries.load(Ordering::Relaxed))
            .sum()
    }

    /// Those of the retries so far that a deadlock led to.
    pub fn deadlocks(&self) -> u64 {
        self.board
            .records
            .iter()
            .map(|record| record.deadlocks.load(Ordering::Relaxed))
            .sum()
    }

    /// For each client the number of its last changing transaction whose commit returned.
    pub fn acknowledged(&self) -> Vec<u64> {
        self.board
            .records
            .iter()
            .map(|record| record.acknowledged.load(Ordering::Acquire))
            .collect()
    }

    /// From now on latencies count, or no longer.
    pub fn measure(&self, measuring: bool) {
        self.board.measuring.store(measuring, Ordering::Relaxed);
    }

    /// The first failure of a client, if any.
    pub fn failure(&self) -> Option<String> {
        self.board.failure.lock().clone()
    }

    /// Latencies of the transactions that ended while measuring: in an open loop from the intended begin on.
    pub fn latencies(&self) -> LatencyHistogram {
        merged(&self.board.latencies)
    }

    /// Of the same transactions, how long each began after it was due; empty in a closed loop.
    pub fn delays(&self) -> LatencyHistogram {
        let open = self.board.open.as_ref();
        open.map_or_else(LatencyHistogram::new, |open| merged(&open.delays))
    }

    /// Transactions that are due at `now_ns` and have not begun, for want of a free client; 0 in a closed loop.
    pub fn backlog(&self, now_ns: u64) -> u64 {
        let open = self.board.open.as_ref();
        // Looked at in a copy: counting takes long enough to keep clients waiting.
        let schedule = open.map(|open| open.schedule.lock().clone());
        schedule.map_or(0, |schedule| schedule.backlog(now_ns))
    }

    /// Lets every client end its transaction and returns when all have; the first failure, if any.
    pub async fn stop(&mut self) -> Result<(), String> {
        self.board.stopping.store(true, Ordering::Release);
        self.board.stop.notify_waiters();
        for join in std::mem::take(&mut self.joins) {
            if join.ended().await.is_err() {
                self.board
                    .failure
                    .lock()
                    .get_or_insert("a client panicked".to_string());
            }
        }
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
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
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

async fn run_client<S: Session>(
    env: Arc<dyn Env>,
    workload: Arc<dyn Workload>,
    tables: Arc<[Table]>,
    board: Arc<Board>,
    mut client: Client,
    behaviour: Behaviour,
    mut session: S,
) {
    let record = &board.records[client.number];
    let histogram = client.number % board.latencies.len();
    while !board.is_stopping() {
        let txn = workload.next(&mut client, &tables);
        let due_ns = board.open.as_ref().map(|open| open.schedule.lock().take());
        if let Some(due_ns) = due_ns {
            board.sleep_until(&*env, due_ns).await;
            if board.is_stopping() {
                return;
            }
        }
        let began_ns = env.now();
        if let Err(error) = execute(&mut session, &txn, record).await {
            board
                .failure
                .lock()
                .get_or_insert(format!("client {}: {error}", client.number));
            return;
        }
        if board.measuring.load(Ordering::Relaxed) {
            let latency_ns = env.now().saturating_sub(due_ns.unwrap_or(began_ns));
            board.latencies[histogram].lock().record_ns(latency_ns);
            if let (Some(open), Some(due_ns)) = (&board.open, due_ns) {
                open.delays[histogram]
                    .lock()
                    .record_ns(began_ns.saturating_sub(due_ns));
            }
        }
        record.committed.fetch_add(1, Ordering::Relaxed);
        if behaviour.think_time_ns > 0 {
            let until_ns = env.now() + behaviour.think_time_ns;
            board.sleep_until(&*env, until_ns).await;
        }
    }
}

/// Carries a transaction out, from the beginning again when another was in the way.
async fn execute<S: Session>(
    session: &mut S,
    txn: &Txn,
    record: &ClientRecord,
) -> Result<(), SessionError> {
    let mut tries = 0;
    loop {
        let Err(error) = attempt(session, txn).await else {
            break;
        };
        if tries == RETRIES_MAX || matches!(error, SessionError::Failed(_)) {
            return Err(error);
        }
        tries += 1;
        record.retries.fetch_add(1, Ordering::Relaxed);
        let deadlocks = u64::from(matches!(error, SessionError::Deadlock(_)));
        record.deadlocks.fetch_add(deadlocks, Ordering::Relaxed);
        session.rollback().await?;
    }
    if txn.number > 0 {
        record.acknowledged.store(txn.number, Ordering::Release);
    }
    Ok(())
}

async fn attempt<S: Session>(session: &mut S, txn: &Txn) -> Result<(), SessionError> {
    for operation in &txn.operations {
        session.execute(operation).await?;
    }
    session.commit().await
}

/// Reads the whole database and says whether anything was lost.
pub async fn check<S: Session>(
    session: &mut S,
    workload: &dyn Workload,
    acknowledged: Vec<u64>,
) -> Result<String, String> {
    let mut checker = workload.checker(acknowledged);
    for table in 0..workload.tables().len() {
        let visited = session
            .visit(table, &mut |bytes| checker.row(table, bytes))
            .await;
        visited.map_err(|error| error.to_string())?;
    }
    checker.finish()
}
