//! A workload in SQL as the driver carries it out.

use std::sync::Arc;

use spindle_io::Env;

use super::connection::SqlConnection;
use super::pause::Pauses;
use super::timed::{StatementTimes, Timed};
use super::{SqlTransaction, SqlWorkload};
use crate::driver::{StatementTotal, Work};
use crate::session::SessionError;
use crate::workload::{Client, TerminalTimes};

/// Makes a connection.
pub type Connect = Box<dyn Fn() -> Result<Box<dyn SqlConnection>, SessionError> + Send + Sync>;

/// A workload and what connects its clients to the database.
pub struct SqlWork {
    /// The workload.
    pub workload: Arc<dyn SqlWorkload>,
    /// Connects a client.
    pub connect: Connect,
    /// Its clock times statements.
    pub env: Arc<dyn Env>,
    /// How long they take.
    pub times: StatementTimes,
    /// Where their transactions pause.
    pub pauses: Pauses,
}

impl Work for SqlWork {
    type Txn = Box<dyn SqlTransaction>;
    type Session = Timed;

    fn kinds(&self) -> Vec<String> {
        self.workload.kinds()
    }

    fn connect(&self) -> Result<Self::Session, SessionError> {
        let mut connection = (self.connect)()?;
        self.workload.prepare(&mut *connection)?;
        if let Some(limit) = self.workload.statement_limit() {
            connection.limit_statement(Some(limit))?;
        }
        if self.workload.watches_temporary_space() {
            connection.watch_temporary_space()?;
        }
        let statements = self.workload.statements(connection.dialect());
        Ok(self
            .times
            .watch(connection, &statements, &self.env, self.pauses.of_client()))
    }

    fn statements(&self) -> Vec<StatementTotal> {
        self.times.totals()
    }

    fn end_pauses(&self) {
        self.pauses.end();
    }

    fn transactions(&self, client: usize, clients: usize) -> Option<u64> {
        self.workload.transactions(client, clients)
    }

    fn is_paced(&self) -> bool {
        self.workload.is_paced()
    }

    fn due_ns(&self, txn: &Self::Txn) -> Option<u64> {
        txn.due_us().map(|due_us| due_us.saturating_mul(1_000))
    }

    fn next(&self, client: &mut Client) -> Self::Txn {
        self.workload.next(client)
    }

    fn terminal_times(&self, txn: &Self::Txn, client: &mut Client) -> TerminalTimes {
        self.workload.terminal_times(txn.kind(), client)
    }

    fn kind(&self, txn: &Self::Txn) -> usize {
        txn.kind()
    }

    fn is_deferred(&self, kind: usize) -> bool {
        self.workload.is_deferred(kind)
    }

    fn number(&self, txn: &Self::Txn) -> u64 {
        txn.number()
    }

    fn temporary_bytes(&self, session: &mut Self::Session) -> Option<u64> {
        match self.workload.watches_temporary_space() {
            true => session.temporary_bytes(),
            false => None,
        }
    }

    async fn attempt(
        &self,
        session: &mut Self::Session,
        txn: &Self::Txn,
    ) -> Result<(), SessionError> {
        txn.run(session)
    }

    async fn rollback(&self, session: &mut Self::Session) -> Result<(), SessionError> {
        session.rollback()
    }
}
