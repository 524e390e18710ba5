//! Workloads in SQL: what clients do to a database that speaks it. A [`SqlWorkload`] says how its tables are made and
//! filled, which statements it runs, makes transactions, and checks afterwards that nothing was lost; an engine
//! implements [`SqlConnection`] and knows no workload. A new workload is one file or folder here, with its settings,
//! and one line in the list of `kinds`; what differs between dialects stands in [`dialect`] or beside the statement.

pub mod connection;
pub mod dialect;
mod junk;
pub mod kind;
mod literals;
mod numbered;
pub mod pause;
pub mod rows;
pub mod timed;
mod tpcb;
pub mod tpcc;
pub mod tpch;
pub mod value;
pub mod work;

pub use connection::{LoadPart, RowSink, SqlConnection, SqlRow, Visit};
pub use dialect::Dialect;
pub use junk::Junk;
pub use literals::{continued_bytes, has_escapes_behind, is_identifier_letter};
pub use rows::RowsInSql;
pub use tpcb::Tpcb;
pub use tpcc::{Sizes, Tpcc, TpccMix};
pub use tpch::Tpch;
pub use tpch::answers::KeptAnswer;
pub use value::Value;
pub use work::SqlWork;

use std::time::Duration;

use spindle_text::load_file::Dump;

use crate::session::SessionError;
use crate::workload::{Acknowledged, CheckError, Client, TerminalTimes};

/// Which of a workload's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementOrigin {
    /// One of [`SqlWorkload::create_tables`].
    Table(usize),
    /// One of [`SqlWorkload::statements`].
    Statement(usize),
}

/// How much of a server is Spindle's own, and is put back before each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ours {
    /// All of it.
    Server,
    /// A database.
    Database,
    /// A schema in a database of others.
    Schema,
}

/// Whether a text has one of these words, which are in small letters.
pub(crate) fn has_any(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// What clients do, in SQL.
pub trait SqlWorkload: Send + Sync {
    /// The name in the experiment file.
    fn name(&self) -> &'static str;

    /// The kinds of transactions, in the order of [`SqlTransaction::kind`].
    fn kinds(&self) -> Vec<String>;

    /// Statements that make the tables, empty; and procedures, if it calls any.
    fn create_tables(&self, dialect: Dialect) -> Vec<String>;

    /// Dumps that the database's own tools restore, and files that it is copied from, each with the number of
    /// statements of [`SqlWorkload::create_tables`] that come before it.
    fn dumps(&self) -> Vec<(usize, &Dump)> {
        Vec::new()
    }

    /// The files of a server that its database is a copy of, if it is one.
    fn copied_from(&self) -> Option<&Dump> {
        let mut dumps = self.dumps().into_iter().map(|(_, dump)| dump);
        dumps.find(|dump| dump.form.is_of_files())
    }

    /// What is to be done when tables, rows and indexes exist.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn after_load(&self, _: &mut dyn SqlConnection) -> Result<(), SessionError> {
        Ok(())
    }

    /// Why a statement may not be carried out where `ours` is put back, and where it stands; `None`: all may. `others`
    /// are the schemas or databases there that are not Spindle's, in small letters.
    fn beyond(&self, _: Dialect, _ours: Ours, _others: &[String]) -> Option<String> {
        None
    }

    /// Where a statement stands, when it comes from a file.
    fn place(&self, _: StatementOrigin) -> Option<&str> {
        None
    }

    /// The rows to load, in parts that may be loaded in any order and at once.
    fn load_parts(&self, _: Dialect) -> Vec<LoadPart> {
        Vec::new()
    }

    /// Statements that make keys and indexes after the rows are loaded. An engine may put what they make elsewhere than
    /// the tables.
    fn create_indexes(&self, _: Dialect) -> Vec<String> {
        Vec::new()
    }

    /// The statements of transactions, in the order of their numbers. Parameters are written `$1`, `$2` and so on, for
    /// every dialect.
    fn statements(&self, dialect: Dialect) -> Vec<String>;

    /// What clients send that has one of these words, which are in small letters: statements of
    /// [`SqlWorkload::statements`], and others.
    fn sent_with(&self, words: &[&str], dialect: Dialect) -> Vec<String> {
        let mut statements = self.statements(dialect);
        statements.retain(|statement| has_any(statement, words));
        statements
    }

    /// Prepares the statements on a connection.
    ///
    /// # Errors
    /// See [`SessionError`]; it says which statement, when that comes from a file.
    fn prepare(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let statements = self.statements(connection.dialect());
        let refused = connection.prepare_what_can(&statements)?;
        match refused.into_iter().next() {
            None => Ok(()),
            Some((number, error)) => Err(match self.place(StatementOrigin::Statement(number)) {
                Some(place) => error.at(place),
                None => error,
            }),
        }
    }

    /// Transactions that a client carries out before it ends, where the workload says so.
    fn transactions(&self, _client: usize, _clients: usize) -> Option<u64> {
        None
    }

    /// Whether its transactions say when they are due.
    fn is_paced(&self) -> bool {
        false
    }

    /// A statement that takes longer is cancelled, and its transaction has failed.
    fn statement_limit(&self) -> Option<Duration> {
        None
    }

    /// Whether it is of interest what transactions write to temporary files.
    fn watches_temporary_space(&self) -> bool {
        false
    }

    /// Answers that clients were given, where they are kept.
    fn kept_answers(&self) -> Vec<KeptAnswer> {
        Vec::new()
    }

    /// The client's next transaction.
    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction>;

    /// Whether clients put transactions of this kind off for others to carry out. Those have no number.
    fn is_deferred(&self, _kind: usize) -> bool {
        false
    }

    /// How long the person at the client's terminal takes over a transaction of this kind.
    fn terminal_times(&self, _kind: usize, _client: &mut Client) -> TerminalTimes {
        TerminalTimes::default()
    }

    /// Looks at the whole database after a run; `acknowledged` has, for each client, what it was promised. What was
    /// found, in words.
    ///
    /// # Errors
    /// See [`CheckError`].
    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError>;
}

/// A transaction: its inputs, drawn when it was made, so that trying again does the same.
pub trait SqlTransaction: Send {
    /// Which of the workload's kinds it is.
    fn kind(&self) -> usize {
        0
    }

    /// When it is due, microseconds after all clients began; `None`: as soon as its client is free.
    fn due_us(&self) -> Option<u64> {
        None
    }

    /// For a transaction that changes something and is looked for by the check, its number among the client's (the
    /// first is 1); else 0.
    fn number(&self) -> u64 {
        0
    }

    /// Carries it out, from begin to commit. A transaction that by its rules ends in a rollback has succeeded then.
    ///
    /// # Errors
    /// See [`SessionError`]; the caller rolls back.
    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError>;
}
