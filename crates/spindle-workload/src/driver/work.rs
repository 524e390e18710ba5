//! What clients carry out: transactions of row operations on a [`ClientSession`], or of SQL on a connection
//! ([`crate::sql::SqlWork`]). The driver knows neither.

use std::future::Future;
use std::sync::Arc;

use crate::session::{ClientSession, SessionError, Txn};
use crate::workload::{Client, LoadedTable, TerminalTimes, Workload};
use serde::{Deserialize, Serialize};

/// What ended a client, and with it the load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It could not continue. Which of them meets the same trouble first is chance, so none is named.
    #[error("{0}")]
    Failed(SessionError),
    /// A defect of this program.
    #[error("a client panicked")]
    Panicked,
}

/// What the executions of one statement took, of all clients since they began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementTotal {
    /// Its text, of at most a hundred characters.
    pub statement: String,
    /// Executions that ended well.
    pub count: u64,
    /// Those of them that were timed.
    pub timed: u64,
    /// Their times, nanoseconds.
    pub total_ns: u64,
}

/// Something that clients can carry out.
pub trait Work: Send + Sync + 'static {
    /// A transaction: data.
    type Txn: Send + 'static;
    /// What it is carried out on; used by one client only.
    type Session;

    /// Kinds of transactions, in the order of [`Work::kind`].
    fn kinds(&self) -> Vec<String> {
        vec!["transaction".to_owned()]
    }

    /// Connects a client, in its own process.
    ///
    /// # Errors
    /// See [`SessionError`]; so for the others.
    fn connect(&self) -> Result<Self::Session, SessionError>;

    /// Transactions that a client carries out before it ends, where the work itself says so.
    fn transactions(&self, _client: usize, _clients: usize) -> Option<u64> {
        None
    }

    /// The client's next transaction.
    fn next(&self, client: &mut Client) -> Self::Txn;

    /// Whether transactions say themselves when they are due.
    fn is_paced(&self) -> bool {
        false
    }

    /// When it is due, nanoseconds after all clients began; `None`: as soon as its client is free.
    fn due_ns(&self, _: &Self::Txn) -> Option<u64> {
        None
    }

    /// How long the person at the client's terminal takes over it.
    fn terminal_times(&self, _: &Self::Txn, _: &mut Client) -> TerminalTimes {
        TerminalTimes::default()
    }

    /// Which kind it is.
    fn kind(&self, _: &Self::Txn) -> usize {
        0
    }

    /// Whether clients put transactions of a kind off for others to carry out. Those have no number.
    fn is_deferred(&self, _kind: usize) -> bool {
        false
    }

    /// Its number among those of its client that change something; else 0.
    fn number(&self, txn: &Self::Txn) -> u64;

    /// Carries it out once, its commit included.
    fn attempt(
        &self,
        session: &mut Self::Session,
        txn: &Self::Txn,
    ) -> impl Future<Output = Result<(), SessionError>>;

    /// Bytes that the session has written to temporary files since this was asked last; `None` when that is not known.
    /// It is asked between transactions, so that it takes none of their time.
    fn temporary_bytes(&self, _session: &mut Self::Session) -> Option<u64> {
        None
    }

    /// What statements took since the clients began, where there are any.
    fn statements(&self) -> Vec<StatementTotal> {
        Vec::new()
    }

    /// Clients are to stop: transactions that pause continue at once.
    fn end_pauses(&self) {}

    /// Undoes what an attempt that failed has left.
    fn rollback(
        &self,
        session: &mut Self::Session,
    ) -> impl Future<Output = Result<(), SessionError>>;
}

/// A workload of row operations.
pub struct RowWork<C> {
    /// The workload.
    pub workload: Arc<dyn Workload>,
    /// Its tables.
    pub tables: Arc<[LoadedTable]>,
    /// Gives a client its session.
    pub connect: C,
}

impl<S, C> Work for RowWork<C>
where
    S: ClientSession + 'static,
    C: Fn() -> S + Send + Sync + 'static,
{
    type Txn = Txn;
    type Session = S;

    fn kinds(&self) -> Vec<String> {
        self.workload.kinds()
    }

    fn kind(&self, txn: &Txn) -> usize {
        txn.kind()
    }

    fn connect(&self) -> Result<S, SessionError> {
        Ok((self.connect)())
    }

    fn transactions(&self, client: usize, clients: usize) -> Option<u64> {
        self.workload.transactions(client, clients)
    }

    fn next(&self, client: &mut Client) -> Txn {
        self.workload.next(client, &self.tables)
    }

    fn terminal_times(&self, txn: &Txn, client: &mut Client) -> TerminalTimes {
        self.workload.terminal_times(txn.kind(), client)
    }

    fn is_deferred(&self, kind: usize) -> bool {
        self.workload.is_deferred(kind)
    }

    fn number(&self, txn: &Txn) -> u64 {
        txn.number
    }

    fn temporary_bytes(&self, session: &mut S) -> Option<u64> {
        session.temporary_bytes()
    }

    async fn attempt(&self, session: &mut S, txn: &Txn) -> Result<(), SessionError> {
        for operation in &txn.operations {
            session.execute(operation).await?;
        }
        session.commit().await
    }

    async fn rollback(&self, session: &mut S) -> Result<(), SessionError> {
        session.rollback().await
    }
}
