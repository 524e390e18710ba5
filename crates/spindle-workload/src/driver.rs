//! Runs clients: each a process of its own that executes one transaction after the other, until told to stop. Counts are
//! atomic numbers that anyone may read meanwhile; latencies count while measuring only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_io::env::LocalFuture;
use spindle_io::sync::{Latch, Notify, timeout};
use spindle_io::{Env, Join};
use spindle_stats::LatencyHistogram;

use crate::session::{Session, SessionError, Txn};
use crate::workload::{Client, Table, Workload};

/// Streams of chance from here on are the clients'.
const CLIENT_STREAMS: u64 = 1 << 32;
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
    measuring: AtomicBool,
    stopping: AtomicBool,
    stop: Notify,
    failure: Latch<Option<String>>,
}

/// How clients behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// Clients at once.
    pub clients: usize,
    /// Pause after each transaction, nanoseconds.
    pub think_time_ns: u64,
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
    let board = Arc::new(Board {
        records: (0..behaviour.clients)
            .map(|_| ClientRecord::default())
            .collect(),
        latencies: (0..behaviour.clients.clamp(1, HISTOGRAMS_MAX))
            .map(|_| Latch::default())
            .collect(),
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

    /// Latencies of the transactions that ended while measuring.
    pub fn latencies(&self) -> LatencyHistogram {
        let mut all = LatencyHistogram::new();
        for latencies in &self.board.latencies {
            all.merge(&latencies.lock());
        }
        all
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
    let latencies = &board.latencies[client.number % board.latencies.len()];
    while !board.stopping.load(Ordering::Acquire) {
        let txn = workload.next(&mut client, &tables);
        let began_ns = env.now();
        if let Err(error) = execute(&mut session, &txn, record).await {
            board
                .failure
                .lock()
                .get_or_insert(format!("client {}: {error}", client.number));
            return;
        }
        if board.measuring.load(Ordering::Relaxed) {
            let latency_ns = env.now() - began_ns;
            latencies.lock().record_ns(latency_ns);
        }
        record.committed.fetch_add(1, Ordering::Relaxed);
        if behaviour.think_time_ns > 0 {
            // Told to stop while thinking: the loop ends.
            let _ = timeout(&*env, behaviour.think_time_ns, board.stop.notified()).await;
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
