//! A connection that only reads. Each question is one transaction that may change nothing, and no setting outlives
//! it: behind a pool of connections that would stay with whoever uses the server's session next.

use spindle_workload::SessionError;
use spindle_workload::sql::{SqlConnection, Visit};

/// Reads from a server.
pub trait Reader {
    /// Asks a question, and hands over each row of the answer.
    ///
    /// # Errors
    /// See [`SessionError`]; also that it would change something. The next question may be asked all the same.
    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError>;

    /// Whether the server can prepare these statements; it carries out none.
    ///
    /// # Errors
    /// What is wrong with the first that it cannot.
    fn check(&mut self, statements: &[String]) -> Result<(), SessionError>;
}

/// A connection to a server whose transactions that only read are begun by `begin`.
pub(crate) struct ReadOnly<C> {
    pub connection: C,
    pub begin: &'static str,
}

impl<C: SqlConnection> ReadOnly<C> {
    fn within(
        &mut self,
        act: impl FnOnce(&mut C) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        self.connection.run(self.begin)?;
        let done = act(&mut self.connection);
        let ended = self.connection.run("rollback");
        done.and(ended)
    }
}

impl<C: SqlConnection> Reader for ReadOnly<C> {
    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        self.within(|connection| connection.ask(sql, visit))
    }

    fn check(&mut self, statements: &[String]) -> Result<(), SessionError> {
        self.within(|connection| connection.prepare(statements))
    }
}
