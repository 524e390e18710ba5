//! What an engine offers to workloads in SQL: a connection whose calls return when the database has answered.

use std::time::Duration;

use super::dialect::Dialect;
use super::value::{Value, parse_decimal};
use crate::session::SessionError;

/// A row of an answer.
pub trait SqlRow {
    /// The value of a column, counted from 0.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: no such column, or a type that workloads do not use.
    fn value(&self, column: usize) -> Result<Value<'_>, SessionError>;

    /// How many columns it has.
    fn columns(&self) -> usize;

    /// The name of a column, counted from 0; empty when there is none.
    fn name(&self, column: usize) -> &str;

    /// A whole number.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: it is none.
    fn int(&self, column: usize) -> Result<i64, SessionError> {
        match self.value(column)? {
            Value::Int(number) => Ok(number),
            Value::Decimal { digits, scale: 0 } => Ok(digits),
            Value::Text(text) => text.parse().map_err(|_| no(column, "whole number", &text)),
            Value::Decimal { digits, scale } if whole(digits, scale).is_some() => {
                Ok(whole(digits, scale).unwrap_or(digits))
            }
            other => Err(no(column, "whole number", &other)),
        }
    }

    /// A number, as near as a float comes.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: it is none.
    fn float(&self, column: usize) -> Result<f64, SessionError> {
        match self.value(column)? {
            Value::Int(number) => Ok(number as f64),
            Value::Float(number) => Ok(number),
            Value::Decimal { digits, scale } => Ok(digits as f64 / 10f64.powi(i32::from(scale))),
            Value::Text(text) => text.parse().map_err(|_| no(column, "number", &text)),
            other => Err(no(column, "number", &other)),
        }
    }

    /// The digits of an exact number with `scale` places.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: it is none, or has more places.
    fn decimal(&self, column: usize, scale: u8) -> Result<i64, SessionError> {
        let value = self.value(column)?;
        let digits = match &value {
            Value::Int(number) => number.checked_mul(10i64.pow(u32::from(scale))),
            Value::Decimal { digits, scale: own } => {
                parse_decimal(&super::value::decimal_text(*digits, *own), scale)
            }
            Value::Text(text) => parse_decimal(text, scale),
            // What a database that knows only floats keeps of an exact number.
            Value::Float(number) => Some((number * 10f64.powi(i32::from(scale))).round() as i64),
            _ => None,
        };
        digits.ok_or_else(|| no(column, "exact number", &value))
    }

    /// A text.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: it is none.
    fn text(&self, column: usize) -> Result<String, SessionError> {
        match self.value(column)? {
            Value::Text(text) => Ok(text.into_owned()),
            other => Err(no(column, "text", &other)),
        }
    }

    /// Whether a column has no value.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: no such column.
    fn is_null(&self, column: usize) -> Result<bool, SessionError> {
        Ok(self.value(column)? == Value::Null)
    }
}

fn whole(digits: i64, scale: u8) -> Option<i64> {
    let unit = 10i64.checked_pow(u32::from(scale))?;
    (digits % unit == 0).then_some(digits / unit)
}

fn no(column: usize, wanted: &str, found: &dyn std::fmt::Debug) -> SessionError {
    SessionError::Failed(format!("column {column} is no {wanted}: {found:?}"))
}

fn no_pipelines(dialect: Dialect) -> SessionError {
    SessionError::Failed(format!("{dialect:?} has no pipelines"))
}

/// Takes the rows of a table that is being loaded.
pub trait RowSink {
    /// One row, its values in the order of the columns.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError>;
}

/// Makes rows: puts each into the sink.
pub type MakeRows = Box<dyn Fn(&mut dyn RowSink) -> Result<(), SessionError> + Send + Sync>;

/// Rows of one table that one connection loads.
pub struct LoadPart {
    /// The table.
    pub table: &'static str,
    /// Its columns, in the order of a row's values.
    pub columns: &'static [&'static str],
    /// Makes the rows.
    pub rows: MakeRows,
}

/// What failed in a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineFailure {
    /// Why.
    pub error: SessionError,
    /// Which of the statements that were sent since it began, from 0; `None`: none of them, as where a transaction
    /// cannot be committed.
    pub statement: Option<usize>,
}

impl From<SessionError> for PipelineFailure {
    fn from(error: SessionError) -> PipelineFailure {
        let statement = None;
        PipelineFailure { error, statement }
    }
}

/// Learns of each row of an answer.
pub type Visit<'a> = &'a mut dyn FnMut(&dyn SqlRow) -> Result<(), SessionError>;

/// Ends what a connection waits for, from another thread, and perhaps the connection with it.
pub type Breaker = Box<dyn FnOnce() + Send>;

/// A connection to a database that speaks SQL. Statements are named by their number among those prepared.
pub trait SqlConnection: Send {
    /// What it speaks.
    fn dialect(&self) -> Dialect;

    /// Prepares the statements of a workload, replacing those prepared before.
    ///
    /// # Errors
    /// See [`SessionError`]; so for the others.
    fn prepare(&mut self, statements: &[String]) -> Result<(), SessionError> {
        let first = self.prepare_what_can(statements)?.into_iter().next();
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The same. A statement that cannot be prepared now is prepared when it is used first; why each of these could
    /// not, by its number.
    fn prepare_what_can(
        &mut self,
        statements: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError>;

    /// Carries out statements as they are written, one after the other.
    fn run(&mut self, sql: &str) -> Result<(), SessionError>;

    /// Asks as it is written, and calls `visit` with each row.
    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError>;

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), SessionError>;

    /// Begins a transaction that changes nothing.
    fn begin_reading(&mut self) -> Result<(), SessionError> {
        self.begin()
    }

    /// Ends the transaction; its changes are promised when this returns.
    fn commit(&mut self) -> Result<(), SessionError>;

    /// Undoes the transaction, if there is one.
    fn rollback(&mut self) -> Result<(), SessionError>;

    /// From now on [`SqlConnection::in_transaction`] is asked for.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn watch_transactions(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    /// Whether a transaction is open, failed or not, as the database said with its last answer.
    fn in_transaction(&self) -> bool;

    /// Carries out a prepared statement; the number of rows it changed.
    fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<u64, SessionError>;

    /// Carries out a prepared statement and calls `visit` with each row of its answer; the number of rows.
    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError>;

    /// As [`SqlConnection::query`], of values that are kept and sent again: none of them may change on its way. A
    /// database that can write any value as a text does so.
    fn query_to_keep(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.query(statement, parameters, visit)
    }

    /// As [`SqlConnection::query`], of an answer that is not read: a database that can write any value as a text does
    /// so.
    fn query_unread(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        self.query(statement, parameters, &mut |_| Ok(()))
    }

    /// Sends a prepared statement whose answer [`SqlConnection::end_pipeline`] takes; only where the dialect
    /// has [`Dialect::has_pipelines`].
    fn send(&mut self, _statement: usize, _: &[Value<'_>]) -> Result<(), SessionError> {
        Err(no_pipelines(self.dialect()))
    }

    /// Ends what the server carries out as one, of what was sent.
    fn sync_pipeline(&mut self) -> Result<(), SessionError> {
        Err(no_pipelines(self.dialect()))
    }

    /// Takes the answers to all that was sent.
    ///
    /// # Errors
    /// The first that failed.
    fn end_pipeline(&mut self) -> Result<(), PipelineFailure> {
        Err(no_pipelines(self.dialect()).into())
    }

    /// Loads rows the fastest way there is, in its own transaction; how many.
    fn load(&mut self, part: &LoadPart) -> Result<u64, SessionError>;

    /// From now on a statement that takes longer is cancelled and [`SessionError::Refused`]; `None`: it may take its
    /// time.
    fn limit_statement(&mut self, _: Option<Duration>) -> Result<(), SessionError> {
        Ok(())
    }

    /// From now on [`SqlConnection::temporary_bytes`] is asked for.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn watch_temporary_space(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    /// Bytes that its statements have written to temporary files since this was asked last; `None` when that is not
    /// known.
    fn temporary_bytes(&mut self) -> Option<u64> {
        None
    }

    /// Waits within a transaction. [`super::timed::Timed`], which clients have, waits no longer when they are to stop.
    #[allow(clippy::disallowed_methods)] // Clients of SQL have threads, and no simulated world.
    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    /// What ends its wait for an answer; `None` where none can be ended.
    fn breaker(&self) -> Option<Breaker> {
        None
    }

    /// Whether it is of no more use: the database has closed it.
    fn is_closed(&self) -> bool;
}
