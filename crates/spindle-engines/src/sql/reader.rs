//! A connection that only reads. Each question is one transaction that may change nothing, and no setting outlives it:
//! behind a pool of connections it would stay for the next user of the server's session.

use spindle_workload::SessionError;
use spindle_workload::sql::{SqlConnection, Visit};

/// A comment in each statement, by which those who count a server's statements know that it is none of its load.
pub const OWN_STATEMENT: &str = "/* spindle */";

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

/// With the comment behind its first word: servers leave out those before and behind a statement.
fn marked(statement: &str) -> String {
    match statement.split_once(' ') {
        Some((first, rest)) => format!("{first} {OWN_STATEMENT} {rest}"),
        None => format!("{statement} {OWN_STATEMENT}"),
    }
}

impl<C: SqlConnection> ReadOnly<C> {
    /// Does something in such a transaction.
    pub fn within(
        &mut self,
        act: impl FnOnce(&mut C) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        for statement in self.begin.split(';') {
            self.connection.run(&marked(statement.trim()))?;
        }
        let done = act(&mut self.connection);
        let ended = self.connection.run(&marked("rollback"));
        done.and(ended)
    }
}

impl<C: SqlConnection> Reader for ReadOnly<C> {
    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        self.within(|connection| connection.ask(&marked(sql), visit))
    }

    fn check(&mut self, statements: &[String]) -> Result<(), SessionError> {
        self.within(|connection| connection.prepare(statements))
    }
}
