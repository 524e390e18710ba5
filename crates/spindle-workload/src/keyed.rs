//! Transactions that find rows by their keys and decide by what they read: procedures, carried out where the rows are.
//! A workload in SQL has them for the embedded database, which speaks none; inputs, mix and checks are the same.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;

use spindle_query::{Cell, Columns, Query};

use crate::session::SessionError;

/// A step on its way.
pub type StepFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionError>> + 'a>>;

/// Gets a row of an answer, and its columns.
pub type TakeRow<'a> = &'a mut dyn FnMut(&Columns, &[Cell<'_>]);

/// An index: the number of its table, and its place among the table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOf {
    /// Which table.
    pub table: usize,
    /// Which of its indexes.
    pub index: usize,
}

/// Rows by their keys. Each step sees what was committed when it began, and what its transaction has done.
pub trait Keyed {
    /// The row of a key; the first of them when several have it.
    fn get<'a>(&'a mut self, index: IndexOf, key: &'a [u8]) -> StepFuture<'a, Option<Vec<u8>>>;

    /// Calls `visit` with each row whose key is `from` or more and `to` or less, in the order of keys, until it breaks.
    fn range<'a>(
        &'a mut self,
        index: IndexOf,
        from: &'a [u8],
        to: &'a [u8],
        visit: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> StepFuture<'a, ()>;

    /// Adds a row.
    fn insert<'a>(&'a mut self, table: usize, row: &'a [u8]) -> StepFuture<'a, ()>;

    /// Locks the row of a key, and has `edit` change it as it is by then; false when there is no such row.
    fn update<'a>(
        &'a mut self,
        index: IndexOf,
        key: &'a [u8],
        edit: &'a mut dyn FnMut(&mut Vec<u8>),
    ) -> StepFuture<'a, bool>;

    /// Deletes the row of a key; false when there is none.
    fn delete<'a>(&'a mut self, index: IndexOf, key: &'a [u8]) -> StepFuture<'a, bool>;

    /// Carries a query out; `take` gets each row of the answer, and its columns. It sees nothing of the session's
    /// transaction.
    fn ask<'a>(&'a mut self, query: &'a Query, take: TakeRow<'a>) -> StepFuture<'a, ()>;
}

/// How a procedure ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its transaction is to be committed.
    Done,
    /// By its rules it is to be rolled back; it has done what it should.
    RolledBack,
}

/// A transaction: its inputs, drawn when it was made, so that trying again does the same.
pub trait Procedure: Send + Sync {
    /// Which of the workload's kinds it is.
    fn kind(&self) -> usize {
        0
    }

    /// Carries it out, but for its end.
    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended>;
}

/// A procedure as a step of a transaction.
#[derive(Clone)]
pub struct ProcedureCall(Arc<dyn Procedure>);

impl ProcedureCall {
    /// A call of a procedure.
    pub fn new(procedure: impl Procedure + 'static) -> ProcedureCall {
        ProcedureCall(Arc::new(procedure))
    }

    /// The procedure.
    pub fn procedure(&self) -> &dyn Procedure {
        &*self.0
    }
}

impl PartialEq for ProcedureCall {
    /// The same call.
    fn eq(&self, other: &ProcedureCall) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ProcedureCall {}

impl std::fmt::Debug for ProcedureCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Call(of kind {})", self.0.kind())
    }
}

/// What a transaction needs and the database does not have.
pub(crate) fn is_missing(what: impl std::fmt::Display) -> SessionError {
    SessionError::Failed(format!("{what} is not there"))
}
